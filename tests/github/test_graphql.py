"""commit_files with commit_api="auto": what GraphQL reads, what the mutation carries, and what a failure says."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import responses
from hypothesis import given, settings
from hypothesis import strategies as st

from gitprovider import (
    Author,
    DeleteFile,
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    MoveFile,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    PutFile,
    RateLimitedError,
    Verdict,
    connect,
    resolve,
)
from gitprovider.fakes.faults import Fault, FaultKind
from gitprovider.github import GitHubProvider
from gitprovider.models import FileChange
from tests.support.github_graphql import refused, with_graphql
from tests.support.github_hub import REPO, Hub, running
from tests.support.throttles import Recorder

QUERY, MUTATION = "POST /graphql", "POST /graphql createCommitOnBranch"
WRITE = ["POST /git/trees", "POST /git/commits", "PATCH /git/refs/{ref/}"]
BRANCH, TREE, REF = "GET /branches/{branch/}", "GET /git/trees/{name/}", "GET /git/ref/{ref/}"
NEW = [PutFile(path="a/b/new.txt", content="new")]


def _calls(hub: Hub) -> list[str]:
    return [f"{entry.method} {entry.endpoint.replace('/repos/{owner}/{repo}', '')}" for entry in hub.sent]


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ([PutFile(path="a/b/new.txt", content=b"\xff\0"), PutFile(path="README.md", content="x")], {}),
        ([DeleteFile(path="README.md")], {"message": "Headline\n\nThe body\nof two lines"}),
        ([PutFile(path=f"d{n}/f", content=f"{n}") for n in range(100)], {}),
    ],
    ids=["files", "deletion", "a hundred"],
)
def test_what_the_mutation_carries_is_two_requests(hub: Hub, changes: list[FileChange], more: dict[str, Any]) -> None:
    """One read and one mutation make the commit, with its message, on the head that was read."""
    base = hub.forge.head(REPO, "main")
    asked = {"message": "m"} | more

    with with_graphql(hub) as provider:
        made = provider.commit_files(REPO, "main", changes, **asked)

    assert _calls(hub) == [QUERY, MUTATION]
    assert (made.parent, made.message, made.sha) == (base, asked["message"], hub.forge.head(REPO, "main"))
    tree = hub.forge.read_tree(REPO, made.sha)
    assert {change.path: change.path in tree for change in changes} == {
        change.path: isinstance(change, PutFile) for change in changes
    }


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ([PutFile(path="new.sh", content="x", executable=True)], {}),
        ([PutFile(path="README.md", content="x", executable=True)], {}),
        ([MoveFile(path="README.md", to="R.md")], {}),
        (NEW, {"author": Author(name="A", email="a@example.org")}),
        ([DeleteFile(path="README.md"), PutFile(path="README.md/f", content="x")], {}),
        *((NEW, {"message": message}) for message in ("a\n", "a\nb", "a\n\nb\n\nc", "a\r\n\r\nb", " a", "a\n\nb \nc")),
    ],
)
def test_what_the_mutation_cannot_carry_exactly_goes_by_the_git_data_api(
    hub: Hub, changes: list[FileChange], more: dict[str, Any]
) -> None:
    """Modes, moves, authors and messages that would not survive take four requests, and the mutation is not tried."""
    with with_graphql(hub) as provider:
        made = provider.commit_files(REPO, "main", changes, **({"message": "m"} | more))

    assert _calls(hub) == [QUERY, *WRITE]
    assert hub.forge.head(REPO, "main") == made.sha


def test_a_server_without_the_mutation_is_read_by_graphql_alone(hub: Hub) -> None:
    """GitHub Enterprise Server before 3.3 has the query and not the mutation."""
    with with_graphql(hub, mutation=False) as provider:
        provider.commit_files(REPO, "main", NEW, message="m")

    assert _calls(hub) == [QUERY, *WRITE]


def test_more_paths_than_one_query_takes_are_read_at_the_same_commit(hub: Hub) -> None:
    """The second query names the commit: the branch may move between the two."""
    changes = [PutFile(path=f"f{n}", content=f"{n}") for n in range(250)]
    base = hub.forge.head(REPO, "main")

    with with_graphql(hub) as provider:
        provider.commit_files(REPO, "main", changes, message="m")

    assert _calls(hub) == [QUERY, QUERY, MUTATION]
    assert [json.loads(entry.body)["variables"].get("at") for entry in hub.sent] == ["refs/heads/main", base, None]


def test_changes_that_change_nothing_are_one_request(hub: Hub) -> None:
    """The mutation would make an empty commit of them."""
    head = hub.forge.head(REPO, "main")

    with with_graphql(hub) as provider:
        found = provider.commit_files(REPO, "main", [PutFile(path="README.md", content="hello\n")], message="m")

    assert _calls(hub) == [QUERY]
    assert (found.sha, found.message) == (head, "given")


@pytest.mark.parametrize("status", [403, 404])
def test_a_host_that_refuses_graphql_is_asked_once(hub: Hub, status: int) -> None:
    """The REST API reads the branch and the directories on the way, and the next commit does not ask GraphQL again."""
    hub.given_commit("main", PutFile(path="a/b/c.txt", content="c"))
    hub.given_fault(Fault(kind="status", status=status, endpoint="/graphql", times=None, body=b'{"message": "no"}'))

    with with_graphql(hub) as provider:
        provider.commit_files(REPO, "main", NEW, message="m")
        provider.commit_files(REPO, "main", [PutFile(path="README.md", content="x")], message="m")

    assert _calls(hub) == [QUERY, BRANCH, *[TREE] * 3, *WRITE, BRANCH, TREE, *WRITE]
    assert all("recursive" not in entry.query for entry in hub.sent)


def test_a_field_that_the_server_does_not_know_is_asked_for_once(hub: Hub) -> None:
    """A validation error is about the server and not about the commit."""
    body = json.dumps({"errors": [{"message": "Field 'file' doesn't exist on type 'Commit'"}]}).encode()
    hub.given_fault(Fault(kind="status", status=200, endpoint="/graphql", times=None, body=body))

    with with_graphql(hub) as provider:
        provider.commit_files(REPO, "main", [PutFile(path="x", content="x")], message="m")
        provider.commit_files(REPO, "main", [PutFile(path="y", content="y")], message="m")

    assert _calls(hub) == [QUERY, *[BRANCH, TREE, *WRITE] * 2]


def test_a_null_without_its_own_error_is_no_absence(hub: Hub) -> None:
    """What GitHub could not read would be overwritten otherwise."""
    data = {
        "offers": None,
        "repository": {
            "nameWithOwner": REPO,
            "ref": {
                "id": "r", "name": "main", "prefix": "refs/heads/",
                "target": {
                    "oid": "1" * 40, "message": "m", "url": "u", "tree": {"oid": "2" * 40},
                    "parents": {"nodes": []}, "f0": None,
                },
            },
        },
    }  # fmt: skip
    body = json.dumps({"data": data}).encode()
    hub.given_fault(Fault(kind="status", status=200, endpoint="/graphql", body=body))

    with with_graphql(hub) as provider, pytest.raises(GitProviderError, match="neither") as caught:
        provider.commit_files(REPO, "main", [PutFile(path="x", content="x")], message="m")

    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert _calls(hub) == [QUERY]


@pytest.mark.parametrize("repo", ["acme/none", REPO])
def test_the_rest_api_says_what_is_missing(hub: Hub, repo: str) -> None:
    """A null branch or repository of GraphQL proves nothing."""
    with with_graphql(hub) as provider, pytest.raises(NotFoundError):
        provider.commit_files(repo, "none", NEW, message="m")

    assert _calls(hub)[:2] == [QUERY, BRANCH]


@pytest.mark.parametrize(
    ("kind", "words", "error", "outcome"),
    [
        ("STALE_DATA", 'Expected branch to point to "1" but it did not.', HeadMovedError, Outcome.NOT_APPLIED),
        ("X", f"refs/heads/main is at {'1' * 40} but expected {'2' * 40}", HeadMovedError, Outcome.NOT_APPLIED),
        ("FORBIDDEN", "Repository rule violations found\n\n3 of 3", PermissionDeniedError, Outcome.NOT_APPLIED),
        ("BRANCH_PROTECTION_RULE_VIOLATION", "protected branch 'main' check failed", PermissionDeniedError,
         Outcome.NOT_APPLIED),
        ("FORBIDDEN", "Resource not accessible by integration", PermissionDeniedError, Outcome.NOT_APPLIED),
        ("UNPROCESSABLE", "Repository was archived so is read-only", PermissionDeniedError, Outcome.NOT_APPLIED),
        ("UNPROCESSABLE", "A path was requested for deletion which does not exist as of commit oid `1`",
         InvalidRequestError, Outcome.NOT_APPLIED),
        ("UNPROCESSABLE", "was submitted too quickly", RateLimitedError, Outcome.NOT_APPLIED),
        ("", "Something went wrong while executing your query.", GitProviderError, Outcome.UNKNOWN),
        ("NEWLY_MADE", "words that nobody has seen", GitProviderError, Outcome.UNKNOWN),
    ],
)  # fmt: skip
def test_a_refused_mutation_is_told_by_its_words(
    hub: Hub, kind: str, words: str, error: type[GitProviderError], outcome: Outcome
) -> None:
    """A verdict is NOT_APPLIED. Words that are no verdict leave the outcome unknown."""
    hub.given_fault(Fault(kind="status", status=200, endpoint="/graphql", nth=2, body=refused(kind, words)))

    with with_graphql(hub) as provider, pytest.raises(error) as caught:
        provider.commit_files(REPO, "main", NEW, message="m")

    assert caught.value.outcome is outcome
    assert sum(entry.is_mutation for entry in hub.sent) == 1
    if isinstance(caught.value, HeadMovedError):
        assert caught.value.expected == caught.value.actual == hub.forge.head(REPO, "main")


@pytest.mark.parametrize("kind", ["reset", "timeout", "cut", "html", "shape", "status"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_mutation_is_sent_once_and_resolve_decides(hub: Hub, kind: FaultKind, when: Any) -> None:
    """The outcome is unknown, the intent has the base and the files, and reads find out what became of it."""
    base = hub.forge.head(REPO, "main")
    status = 502 if kind == "status" else None
    hub.given_fault(Fault(kind=kind, endpoint="/graphql", nth=2, when=when, status=status))

    with with_graphql(hub) as provider:
        with pytest.raises(GitProviderError) as caught:
            provider.commit_files(REPO, "main", NEW, message="m")
        intent = caught.value.intent
        assert intent is not None
        found = resolve(
            provider,
            caught.value,
            wait=True,
            sleep=lambda seconds: None,
            now=lambda: datetime.now(UTC) + timedelta(hours=1),
        )

    assert caught.value.outcome is Outcome.UNKNOWN
    assert sum(entry.is_mutation for entry in hub.sent) == 1
    assert (intent.base_sha, list(intent.files)) == (base, ["a/b/new.txt"])
    assert found.verdict is (Verdict.APPLIED if when == "after" else Verdict.NOT_APPLIED)


@pytest.mark.parametrize(
    ("field", "value"),
    [("message", "other"), ("parents", {"nodes": [{"oid": "1" * 40}]}), ("oid", "zz"), ("oid", None)],
)
def test_another_commit_than_the_one_asked_for_is_no_success(hub: Hub, field: str, value: Any) -> None:
    """GitHub's own words decide whether the commit is the one that was asked for."""
    made = {
        "oid": "3" * 40, "message": "m", "url": "u", "parents": {"nodes": [{"oid": hub.forge.head(REPO, "main")}]},
    } | {field: value}  # fmt: skip
    body = json.dumps({"data": {"createCommitOnBranch": {"commit": made, "ref": None}}}).encode()
    hub.given_fault(Fault(kind="status", status=200, endpoint="/graphql", nth=2, body=body))

    with with_graphql(hub) as provider, pytest.raises(GitProviderError) as caught:
        provider.commit_files(REPO, "main", NEW, message="m")

    assert caught.value.outcome is Outcome.UNKNOWN


_PATHS = st.sampled_from(["a", "a/b", "a/b/c", "d", "d/e", "README.md", "x.bin"])
_CHANGES = st.lists(
    st.one_of(
        st.builds(
            PutFile,
            path=_PATHS,
            content=st.binary(max_size=4),
            executable=st.sampled_from([None, None, True, False]),
        ),
        st.builds(DeleteFile, path=_PATHS),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda change: change.path,
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One forge for all examples, each with two branches of its own."""
    root = tmp_path_factory.mktemp("pair") / "forge"
    with running(root) as hub:
        hub.given_repo()
        hub.given_commit("main", PutFile(path="a/b/c", content="c"), PutFile(path="d/e", content="e", executable=True))
        with with_graphql(hub) as auto:
            yield hub, auto, iter(range(10**6))


@settings(max_examples=40, deadline=None)
@given(changes=_CHANGES)
def test_both_ways_make_the_same_tree(pair: Any, changes: list[FileChange]) -> None:
    """The mutation is used only where it makes exactly the commit that the Git data API makes, and refuses the same."""
    hub, auto, numbers = pair
    number = next(numbers)
    results = []
    for provider, branch in ((hub.provider, f"rest{number}"), (auto, f"auto{number}")):
        hub.given_branch(branch)
        try:
            made = provider.commit_files(REPO, branch, changes, message="m")
        except InvalidRequestError as error:
            results.append(error.message)
        else:
            results.append(hub.forge.read_commit(REPO, made.sha).tree)

    assert results[0] == results[1]


@pytest.mark.parametrize("value", ["graphql", "", None, 7])
def test_another_commit_api_is_refused(hub: Hub, value: Any) -> None:
    """An option that is accepted and ignored would promise what it does not do."""
    with pytest.raises(InvalidRequestError) as caught:
        hub.connect(commit_api=value)

    assert caught.value.argument == "commit_api"


def test_connect_passes_the_commit_api_on(hub: Hub, tmp_path: Path) -> None:
    """The option reaches the provider, and no other host has it."""
    with connect("github", token="t", commit_api="auto", environ={}) as provider:
        assert provider._commit_api.auto
    with pytest.raises(InvalidRequestError):
        connect("local", root=tmp_path, commit_api="auto", environ={})


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("https://api.github.com", "https://api.github.com/graphql"),
        ("https://ghe.example.com/api/v3", "https://ghe.example.com/api/graphql"),
        ("https://api.acme.ghe.com", "https://api.acme.ghe.com/graphql"),
    ],
)
def test_graphql_is_beside_the_rest_api(base: str, path: str) -> None:
    """On Enterprise Server another address would be a 404, and GraphQL would be taken for refused."""
    throttle, sent = Recorder(), list[str]()

    def answer(request: Any) -> tuple[int, dict[str, str], str]:
        sent.append(request.url.replace(":443", ""))
        return 500, {}, "{}"

    with responses.RequestsMock() as rsps:
        rsps.add_callback("POST", re.compile(re.escape(base.rpartition("/api/")[0] or base)), answer)
        with (
            GitHubProvider("token", base_url=base, commit_api="auto", throttle=throttle) as provider,
            pytest.raises(ProviderUnavailableError),
        ):
            provider.commit_files(REPO, "main", NEW, message="m")

    assert sent == [path]
    assert [(one.resource, one.mutation) for one in throttle.sending] == [("graphql", False)]


def test_the_mutation_is_one_to_the_throttle(hub: Hub) -> None:
    """GitHub limits changes more than reads, and the query is a POST too."""
    throttle = Recorder()

    with hub.connect(commit_api="auto", throttle=throttle) as provider:
        provider.commit_files(REPO, "main", NEW, message="m")

    assert [(one.resource, one.mutation) for one in throttle.sending] == [("graphql", False), ("graphql", True)]
