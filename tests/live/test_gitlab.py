"""GitLabProvider against a real GitLab.

It needs ``GITLAB_LIVE_TOKEN`` (scope ``api``) and ``GITLAB_LIVE_NAMESPACE`` (a group or user in which the token may
create projects); ``GITLAB_LIVE_URL`` is https://gitlab.com unless it is set.
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
    DeleteFile,
    GitProviderError,
    HeadMovedError,
    MoveFile,
    NotFoundError,
    NotMergeableError,
    PermissionDeniedError,
    PutFile,
)
from gitprovider.bootstrap import bootstrap
from gitprovider.gitlab import GitLabProvider

pytestmark = pytest.mark.live

TOKEN, NAMESPACE = os.environ.get("GITLAB_LIVE_TOKEN", ""), os.environ.get("GITLAB_LIVE_NAMESPACE", "")
if not (TOKEN and NAMESPACE):
    pytest.skip("set GITLAB_LIVE_TOKEN and GITLAB_LIVE_NAMESPACE", allow_module_level=True)


@pytest.fixture
def provider() -> Iterator[GitLabProvider]:
    url = os.environ.get("GITLAB_LIVE_URL", "https://gitlab.com")
    with GitLabProvider(url, private_token=TOKEN) as provider:
        yield provider


@pytest.fixture
def repo(provider: GitLabProvider) -> Iterator[str]:
    """A path that nothing has; whatever is there afterwards is deleted."""
    path = f"{NAMESPACE}/gitprovider-live-{secrets.token_hex(6)}"
    yield path
    with provider.sdk() as client:
        client.projects.delete(path)


def test_a_bootstrap_runs_through(provider: GitLabProvider, repo: str, tmp_path: Path) -> None:
    """From a directory to a protected branch, over a merged merge request; and a second run changes nothing."""
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


def test_commits_are_what_was_asked_for(provider: GitLabProvider, repo: str) -> None:
    """Binary files, modes, moves, deletions and an empty repository; an expected head that is not there."""
    provider.create_repo(repo)
    first = provider.commit_files(
        repo,
        "main",
        [
            PutFile(path="a/bin", content=bytes(range(256))),
            PutFile(path="b", content="b"),
            PutFile(path="c", content=""),
        ],
        message="First",
    )
    second = provider.commit_files(
        repo,
        "main",
        [MoveFile(path="b", to="d/e"), DeleteFile(path="c"), PutFile(path="run", content="#!", executable=True)],
        message="Second",
        expected_head=first.sha,
    )

    tree = provider.tree(repo, second.sha)
    assert {path: entry.mode for path, entry in tree.items()} == {
        "a/bin": "100644",
        "d/e": "100644",
        "run": "100755",
    }
    assert tree == {**tree, "a/bin": provider.tree(repo, first.sha)["a/bin"]}
    same = [PutFile(path="run", content="#!")]
    assert provider.commit_files(repo, "main", same, message="Nothing").sha == second.sha
    with pytest.raises(HeadMovedError):
        provider.commit_files(repo, "main", [PutFile(path="x", content="")], message="m", expected_head=first.sha)


@pytest.mark.parametrize("below", ["b", "link"])
def test_a_file_below_a_file_is_refused(provider: GitLabProvider, repo: str, below: str) -> None:
    """What the query shows of files above a path, and GitLab's own answer where there is none."""
    provider.create_repo(repo)
    head = provider.commit_files(repo, "main", [PutFile(path=below, content="b")], message="m").sha

    with pytest.raises(GitProviderError):
        provider.commit_files(repo, "main", [PutFile(path=f"{below}/x", content="")], message="m")

    assert provider.head(repo, "main") == head


def test_refusals_have_their_meaning(provider: GitLabProvider, repo: str) -> None:
    """The texts of the table, as this GitLab says them."""
    provider.create_repo(repo)
    head = provider.commit_files(repo, "main", [PutFile(path="a", content="1")], message="m").sha
    provider.create_branch(repo, "feature", source=head)

    with pytest.raises(AlreadyExistsError) as taken:
        provider.create_repo(repo)
    assert taken.value.existing.path == repo
    with pytest.raises(AlreadyExistsError):
        provider.create_branch(repo, "feature", source="main")
    with pytest.raises(NotFoundError):
        provider.create_branch(repo, "other", source="1" * 40)
    with pytest.raises(NotFoundError):
        provider.open_pull_request(repo, source_branch="missing", target_branch="main", title="t")
    provider.protect_branch(repo, "main")
    with pytest.raises(PermissionDeniedError):
        provider.commit_files(repo, "main", [PutFile(path="b", content="")], message="m")
    provider.commit_files(repo, "feature", [PutFile(path="b", content="")], message="m")
    draft = provider.open_pull_request(repo, source_branch="feature", target_branch="main", title="t", draft=True)
    assert (draft.title, draft.draft) == ("t", True)
    with pytest.raises(AlreadyExistsError):
        provider.open_pull_request(repo, source_branch="feature", target_branch="main", title="t")
    with pytest.raises(NotMergeableError):
        provider.merge_pull_request(repo, draft.number)
