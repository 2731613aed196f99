"""GitHubProvider against a real GitHub.

It needs ``GITHUB_LIVE_TOKEN`` (classic scopes ``repo`` and ``delete_repo``) and ``GITHUB_LIVE_NAMESPACE`` (the token's
user, or an organization in which it may create repositories; its plan must have branch protection for private ones);
``GITHUB_LIVE_URL`` is https://github.com unless it is set.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitprovider import (
    AlreadyExistsError,
    BranchProtection,
    ConflictError,
    DeleteFile,
    HeadMovedError,
    MoveFile,
    NotFoundError,
    NotMergeableError,
    PermissionDeniedError,
    PutFile,
)
from gitprovider.bootstrap import bootstrap
from gitprovider.events import Event, RequestEvent
from gitprovider.github import GitHubProvider
from gitprovider.models import FileChange

pytestmark = pytest.mark.live

TOKEN, NAMESPACE = os.environ.get("GITHUB_LIVE_TOKEN", ""), os.environ.get("GITHUB_LIVE_NAMESPACE", "")
if not (TOKEN and NAMESPACE):
    pytest.skip("set GITHUB_LIVE_TOKEN and GITHUB_LIVE_NAMESPACE", allow_module_level=True)


@pytest.fixture
def provider() -> Iterator[GitHubProvider]:
    with GitHubProvider(TOKEN, base_url=os.environ.get("GITHUB_LIVE_URL", "https://github.com")) as provider:
        yield provider


@pytest.fixture
def repo(provider: GitHubProvider) -> Iterator[str]:
    """A path that nothing has; whatever is there afterwards is deleted."""
    path = f"{NAMESPACE}/gitprovider-live-{secrets.token_hex(6)}"
    yield path
    with provider.sdk() as client:
        client.get_repo(path).delete()


def test_a_bootstrap_runs_through(provider: GitHubProvider, repo: str, tmp_path: Path) -> None:
    """From a directory to a protected branch, over a merged pull request; and a second run changes nothing."""
    (tmp_path / "README.md").write_text("# Live\n")
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "run.sh").chmod(0o755)

    first = bootstrap(provider, repo, source=tmp_path, pull_request=True, within=180)
    second = bootstrap(provider, repo, source=tmp_path, pull_request=True, within=180)

    first.raise_for_error()
    second.raise_for_error()
    held = provider.protection(repo, "main")
    assert held is not None
    assert BranchProtection().missing_from(held) == ()
    assert provider.tree(repo, provider.head(repo, "main"))["run.sh"].mode == "100755"


def test_commits_are_what_was_asked_for(provider: GitHubProvider, repo: str) -> None:
    """Binary files, modes, moves, deletions and an empty repository; an expected head that is not there."""
    provider.create_repo(repo)
    files = [
        PutFile(path="a/bin", content=bytes(range(256))),
        PutFile(path="b", content="b"),
        PutFile(path="c", content=""),
    ]
    first = provider.commit_files(repo, "main", files, message="First")
    second = provider.commit_files(
        repo,
        "main",
        [MoveFile(path="b", to="d/e"), DeleteFile(path="c"), PutFile(path="run", content="#!", executable=True)],
        message="Second",
        expected_head=first.sha,
    )

    tree = provider.tree(repo, second.sha)
    assert {path: entry.mode for path, entry in tree.items()} == {"a/bin": "100644", "d/e": "100644", "run": "100755"}
    assert tree["a/bin"] == provider.tree(repo, first.sha)["a/bin"]
    same = [PutFile(path="run", content="#!")]
    assert provider.commit_files(repo, "main", same, message="Nothing").sha == second.sha
    with pytest.raises(HeadMovedError):
        provider.commit_files(repo, "main", [PutFile(path="x", content="")], message="m", expected_head=first.sha)


def test_commits_by_graphql_are_what_was_asked_for(provider: GitHubProvider, repo: str) -> None:
    """This GitHub knows the query and the mutation: modes are kept, the message survives, the head is checked."""
    provider.create_repo(repo, auto_init=True)
    tool = [PutFile(path="bin/tool", content="#!", executable=True)]
    first = provider.commit_files(repo, "main", tool, message="First")
    sent: list[str] = []

    def seen(event: Event) -> None:
        if isinstance(event, RequestEvent):
            sent.append(event.endpoint)

    url = os.environ.get("GITHUB_LIVE_URL", "https://github.com")
    with GitHubProvider(TOKEN, base_url=url, commit_api="auto", on_event=seen) as auto:
        changes: list[FileChange] = [
            PutFile(path="bin/tool", content=b"\xff"),
            PutFile(path="a/new", content=""),
            DeleteFile(path="README.md"),
        ]
        second = auto.commit_files(repo, "main", changes, message="Second\n\nBody\nof two lines")
        assert sent == ["/graphql", "/graphql"]
        with pytest.raises(HeadMovedError):
            auto.commit_files(repo, "main", tool, message="m", expected_head=first.sha)

    found = provider.commit(repo, second.sha)
    assert (found.parent, found.message) == (first.sha, "Second\n\nBody\nof two lines")
    tree = provider.tree(repo, second.sha)
    assert {path: entry.mode for path, entry in tree.items()} == {"bin/tool": "100755", "a/new": "100644"}


def test_refusals_have_their_meaning(provider: GitHubProvider, repo: str) -> None:
    """The texts of the table, as this GitHub says them."""
    provider.create_repo(repo)
    with pytest.raises(NotFoundError):
        provider.create_branch(repo, "early", source="main")
    head = provider.commit_files(repo, "main", [PutFile(path="a", content="1")], message="m").sha
    provider.create_branch(repo, "feature", source=head)

    with pytest.raises(AlreadyExistsError) as taken:
        provider.create_repo(repo)
    assert taken.value.existing.path == repo
    with pytest.raises(AlreadyExistsError):
        provider.create_branch(repo, "feature", source="main")
    with pytest.raises(ConflictError):
        provider.create_branch(repo, "feature/below", source="main")
    with pytest.raises(NotFoundError):
        provider.create_branch(repo, "other", source="1" * 40)
    with pytest.raises(ConflictError):
        provider.open_pull_request(repo, source_branch="feature", target_branch="main", title="t")
    with pytest.raises(NotFoundError):
        provider.open_pull_request(repo, source_branch="missing", target_branch="main", title="t")
    provider.protect_branch(repo, "main", BranchProtection(enforce_admins=True))
    with pytest.raises(PermissionDeniedError):
        provider.commit_files(repo, "main", [PutFile(path="b", content="")], message="m")


def test_a_pull_request_is_merged_once(provider: GitHubProvider, repo: str) -> None:
    """A draft is refused, a merge at its head is done, and a second one says that it was."""
    provider.create_repo(repo, auto_init=True)
    provider.create_branch(repo, "feature", source="main")
    head = provider.commit_files(repo, "feature", [PutFile(path="b", content="b")], message="m").sha
    pull = provider.open_pull_request(repo, source_branch="feature", target_branch="main", title="t", labels=["live"])

    with pytest.raises(AlreadyExistsError) as taken:
        provider.open_pull_request(repo, source_branch="feature", target_branch="main", title="t")
    with pytest.raises(HeadMovedError):
        provider.merge_pull_request(repo, pull.number, expected_head="1" * 40)
    first = provider.merge_pull_request(repo, pull.number, expected_head=head, delete_source_branch=True)
    second = provider.merge_pull_request(repo, pull.number, expected_head=head)

    assert taken.value.existing.number == pull.number
    assert (second.sha, second.already_merged) == (first.sha, True)
    assert [branch.name for branch in provider.list_branches(repo)] == ["main"]
    with pytest.raises(NotMergeableError):
        provider.merge_pull_request(repo, _closed(provider, repo))


def _closed(provider: GitHubProvider, repo: str) -> int:
    provider.create_branch(repo, "closed", source="main")
    provider.commit_files(repo, "closed", [PutFile(path="c", content="c")], message="m")
    pull = provider.open_pull_request(repo, source_branch="closed", target_branch="main", title="t")
    with provider.sdk() as client:
        client.get_repo(repo).get_pull(pull.number).edit(state="closed")
    return pull.number
