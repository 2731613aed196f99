"""commit_files: which actions are chosen, what one query asks for, and what the new commit stands on."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gitprovider._core.edits import blob_sha, lookup_in, plan
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.response import Response as HostResponse
from gitprovider.contract import TreeEntry
from gitprovider.errors import (
    ConflictError,
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    RepoMovedError,
    UnexpectedResponseError,
)
from gitprovider.fakes.http import Request, Response
from gitprovider.gitlab import GitLabProvider
from gitprovider.gitlab.commits import Touched, actions, encoded, queries, seen
from gitprovider.models import Author, BranchProtection, Commit, DeleteFile, FileChange, MoveFile, PutFile
from tests.gitlab.world import REPO, World

TEXT = TreeEntry(blob_sha(b"text"), "100644")
RUN = TreeEntry(blob_sha(b"run"), "100755")


def chosen(changes: Sequence[FileChange], **entries: TreeEntry) -> list[dict[str, Any]]:
    return actions(plan(changes, lookup_in(entries)))


def sent_actions(world: World) -> list[dict[str, Any]]:
    bodies = [json.loads(entry.body) for entry in world.request_log.mutations()]
    return [action for body in bodies for action in body["actions"]]


# Actions


def test_a_put_is_a_create_or_an_update_by_what_is_there() -> None:
    """GL-CF-01: the API has no upsert."""
    changes = [PutFile(path="new", content="1"), PutFile(path="old", content="2")]

    assert [action["action"] for action in chosen(changes, old=TEXT)] == ["create", "update"]


def test_the_same_content_is_no_action() -> None:
    """GL-CF-07: GitLab would make an empty commit of it."""
    assert chosen([PutFile(path="a", content=b"text")], a=TEXT) == []


@pytest.mark.parametrize(
    ("executable", "there", "content", "verbs"),
    [
        (None, None, "new", ["create"]),
        (None, RUN, "new", ["update"]),
        (True, None, "new", ["create", "chmod True"]),
        (False, None, "new", ["create"]),
        (True, TEXT, "text", ["chmod True"]),
        (False, RUN, "run", ["chmod False"]),
        (False, RUN, "new", ["update", "chmod False"]),
        (True, RUN, "new", ["update"]),
    ],
)
def test_the_executable_bit_is_an_action_of_its_own(
    executable: bool | None, there: TreeEntry | None, content: str, verbs: list[str]
) -> None:
    """GL-CF-06: create and update drop it silently, and False is sent as well."""
    entries = {} if there is None else {"a": there}

    made = chosen([PutFile(path="a", content=content, executable=executable)], **entries)

    shown = [f"{one['action']} {one.get('execute_filemode', '')}".rstrip() for one in made]
    assert shown == verbs


def test_what_goes_is_sent_before_what_comes() -> None:
    """A file may take the place that another one leaves."""
    changes: list[FileChange] = [PutFile(path="a/b", content="1"), DeleteFile(path="a")]

    assert [action["action"] for action in chosen(changes, a=TEXT)] == ["delete", "create"]


def test_a_directory_that_the_same_call_empties_makes_room() -> None:
    """Whether it is empty then is the host's to see; its own text for that is an InvalidRequestError."""
    changes: list[FileChange] = [PutFile(path="dir", content="x"), DeleteFile(path="dir/inside")]
    there = {"dir": TreeEntry("1" * 40, "040000"), "dir/inside": TEXT}

    assert [action["action"] for action in chosen(changes, **there)] == ["delete", "create"]


@pytest.mark.parametrize("mode", ["40000", "040000"])
def test_a_directory_is_one_by_either_form_of_its_mode(mode: str) -> None:
    """Git itself writes it without the leading zero."""
    nodes = [{"path": "a", "oid": "1" * 40, "mode": mode}]
    repository = {"empty": False, "blobs": {"nodes": nodes}, "above": {"nodes": []}}

    found = seen(JsonReader(HostResponse(status=200, data=repository)))

    with pytest.raises(InvalidRequestError, match="directory"):
        plan([PutFile(path="a", content="")], lookup_in(found.entries))


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"", "text"),
        (b"plain\n", "text"),
        ("grüße \U0001f680\t\n".encode(), "text"),
        (b"\xff\xfe", "base64"),
        (b"nul\0", "base64"),
        (b"cr\r\n", "base64"),
        (b"\x1b[31m", "base64"),
    ],
)
def test_content_is_sent_in_a_form_that_keeps_it(content: bytes, encoding: str) -> None:
    """GL-CF-08: an empty file's content is sent too; what a proxy or a parameter guard could touch goes as base64."""
    made = encoded(content)

    assert made["encoding"] == encoding
    sent = made["content"]
    assert (base64.b64decode(sent) if encoding == "base64" else sent.encode()) == content


@pytest.mark.parametrize(
    ("change", "entries", "problem"),
    [
        (DeleteFile(path="a"), {}, "does not exist"),
        (MoveFile(path="a", to="b"), {}, "does not exist"),
        (MoveFile(path="a", to="b"), {"a": TEXT, "b": TEXT}, "exists"),
        (PutFile(path="a", content=""), {"a": TreeEntry("1" * 40, "120000")}, "symbolic link"),
        (DeleteFile(path="a"), {"a": TreeEntry("1" * 40, "160000")}, "submodule"),
        (PutFile(path="a", content=""), {"a": TreeEntry("1" * 40, "040000")}, "directory"),
        (PutFile(path="a/b/c", content=""), {"a/b": TEXT}, "not a directory"),
        (MoveFile(path="x", to="a/b"), {"x": TEXT, "a": TreeEntry("1" * 40, "120000")}, "not a directory"),
    ],
)
def test_a_change_that_does_not_fit_is_refused(change: FileChange, entries: dict[str, TreeEntry], problem: str) -> None:
    """All by what the query found, before the commit."""
    with pytest.raises(InvalidRequestError, match=problem) as caught:
        plan([change], lookup_in(entries))

    assert caught.value.argument == "changes"


def test_the_evidence_says_what_the_paths_will_be() -> None:
    """For resolve: blob and mode, or gone."""
    changes: list[FileChange] = [
        PutFile(path="a", content="new"),
        DeleteFile(path="b"),
        MoveFile(path="c", to="d"),
        PutFile(path="e", content="x", executable=True),
    ]

    files = plan(changes, lookup_in({"a": RUN, "b": TEXT, "c": RUN})).files

    assert files == {
        "a": (blob_sha(b"new"), "100755"),
        "b": None,
        "c": None,
        "d": tuple(RUN),
        "e": (blob_sha(b"x"), "100755"),
    }


def test_a_sha_256_repository_has_its_own_ids() -> None:
    """The content that is there is recognised in it as well."""
    there = TreeEntry(blob_sha(b"text", sha256=True), "100644")

    assert actions(plan([PutFile(path="a", content=b"text")], lookup_in({"a": there}), sha256=True)) == []


# Queries


@pytest.mark.parametrize("depth", [0, 1, 5, 40])
@pytest.mark.parametrize("count", [1, 99, 100, 101, 1000])
def test_no_query_is_refused_for_its_complexity(count: int, depth: int) -> None:
    """GitLab counts 250 at most; each path, and each directory above, is asked for exactly once."""
    changed = ["/".join([*(f"d{number}-{level}" for level in range(depth)), f"f{number}"]) for number in range(count)]

    asked = queries(changed)

    paths = [path for one in asked for path in one.paths]
    above = [path for one in asked for path in one.above]
    assert paths == changed
    assert len(above) == len(set(above)) == count * depth
    for one in asked:
        assert _complexity(one) <= 250
        assert max(len(one.paths), len(one.above)) <= 100


def _complexity(asked: Touched) -> float:
    """By app/graphql/types/base_field.rb: a list counts its fields and paths, and 1 % more for each of its page."""
    lists = sum((len(part) + 6) * (1 + max(len(part), 1) / 100) for part in (asked.paths, asked.above))
    return lists + 11  # project, repository, empty, rootRef, tree, lastCommit, sha, with what Gitaly adds


def test_a_hundred_paths_of_a_few_directories_are_one_query() -> None:
    """The usual case costs no more for its directories."""
    assert len(queries([f"src/a/b{n % 10}/f{n}" for n in range(100)])) == 1


def test_further_queries_are_by_the_sha(world: World) -> None:
    """The branch may move between two of them."""
    world.provider().commit_files(
        REPO, "main", [PutFile(path=f"f{number}", content="") for number in range(150)], message="m"
    )

    asked = [json.loads(entry.body)["variables"] for entry in world.request_log.entries if "graphql" in entry.path]
    assert [(one["ref"], one["type"]) for one in asked] == [("main", "HEADS"), (world.head, None)]


# On the host


def race(world: World, action: Callable[[], object], *, method: str, endpoint: str) -> None:
    """Do ``action`` once, right before the fake answers such a request."""
    handle = world.fake.handle
    due = [action]

    def racing(request: Request) -> Response:
        if request.method == method and world.fake.endpoint(request).endswith(endpoint) and due:
            due.pop()()
        return handle(request)

    world.fake.handle = racing  # type: ignore[method-assign]  # interposed, not replaced


def test_a_commit_on_another_head_than_read_is_partial(world: World) -> None:
    """GitLab has no compare-and-set: the commit is there, on the other's, and the error says so."""
    race(world, lambda: world.commit("main", {"theirs": b"1"}), method="POST", endpoint="/commits")

    with pytest.raises(HeadMovedError) as caught:
        world.provider().commit_files(REPO, "main", [PutFile(path="ours", content="2")], message="m")

    error = caught.value
    assert error.outcome is Outcome.PARTIAL
    made = error.completed[0].value
    assert isinstance(made, Commit)
    assert made.sha == world.forge.head(REPO, "main")
    assert (error.expected, error.actual) == (world.head, made.parent)


def test_a_file_that_came_meanwhile_is_a_moved_head(world: World) -> None:
    """Refused by its text, the branch having moved: nothing was applied."""
    race(world, lambda: world.commit("main", {"ours": b"1"}), method="POST", endpoint="/commits")

    with pytest.raises(HeadMovedError) as caught:
        world.provider().commit_files(REPO, "main", [PutFile(path="ours", content="2")], message="m")

    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert (caught.value.expected, caught.value.actual) == (world.head, world.forge.head(REPO, "main"))


def test_something_in_the_way_that_no_list_shows_is_not_a_moved_head(world: World) -> None:
    """The same text, and the branch is where it was: a submodule is at the path."""
    world.commit("main", {"module": ("1" * 40, "160000")})

    with pytest.raises(InvalidRequestError):
        world.provider().commit_files(REPO, "main", [PutFile(path="module", content="2")], message="m")


def test_an_expected_head_that_is_not_there_stops_before_the_commit(world: World) -> None:
    """Also where the changes would change nothing."""
    with pytest.raises(HeadMovedError) as caught:
        world.provider().commit_files(
            REPO, "main", [PutFile(path="README.md", content=b"# Widgets\n")], message="m", expected_head="1" * 40
        )

    assert world.mutations == []
    assert caught.value.actual == world.head


def test_a_protected_branch_says_what_to_do(world: World) -> None:
    """A 403 is not only "forbidden"."""
    world.forge.put_rule(REPO, "main", BranchProtection())

    with pytest.raises(PermissionDeniedError) as caught:
        world.provider().commit_files(REPO, "main", [PutFile(path="a", content="")], message="m")

    assert "pull request" in (caught.value.hint or "")


def test_the_author_is_sent_and_nobody_else_is_made_up(world: World) -> None:
    """Without one, the host takes the credential's user."""
    provider = world.provider()

    provider.commit_files(REPO, "main", [PutFile(path="a", content="")], message="m")
    provider.commit_files(
        REPO, "main", [PutFile(path="b", content="")], message="m", author=Author(name="Ann", email="ann@example.org")
    )

    bodies = [json.loads(entry.body) for entry in world.request_log.mutations()]
    assert "author_name" not in bodies[0]
    assert (bodies[1]["author_name"], bodies[1]["author_email"]) == ("Ann", "ann@example.org")
    assert all("start_branch" not in body and "force" not in body for body in bodies)


def test_executable_files_of_a_first_commit_take_a_second_one(world: World) -> None:
    """An empty project takes nothing but "create"."""
    world.forge.create_repo("acme/empty")

    value = world.provider().commit_files(
        "acme/empty", "main", [PutFile(path="run", content="#!", executable=True)], message="m"
    )

    assert value.sha == world.forge.head("acme/empty", "main")
    assert world.forge.read_tree("acme/empty", value.sha)["run"].mode == "100755"
    assert len(world.mutations) == 2


def test_a_failure_of_that_second_commit_is_partial(world: World) -> None:
    """The files are there, and `completed` has their commit."""
    world.forge.create_repo("acme/empty")
    world.fault("status", method="POST", endpoint="/commits", nth=2, status=500)

    with pytest.raises(ProviderUnavailableError) as caught:
        world.provider().commit_files(
            "acme/empty", "main", [PutFile(path="run", content="#!", executable=True)], message="m"
        )

    assert caught.value.outcome is Outcome.PARTIAL
    assert caught.value.completed[0].value.sha == world.forge.head("acme/empty", "main")


def test_the_default_branch_is_asked_for_where_graphql_does_not_say(world: World) -> None:
    """Of an empty repository some versions give no rootRef."""
    world.forge.create_repo("acme/empty")
    unborn: dict[str, Any] = {"empty": True, "rootRef": None, "tree": {"lastCommit": None}, "blobs": {"nodes": []}}
    answer: Any = {"data": {"project": {"repository": {**unborn, "above": {"nodes": []}}}}}
    world.fault("status", endpoint="graphql", times=None, status=200, body=json.dumps(answer).encode())
    provider = world.provider()

    with pytest.raises(InvalidRequestError) as caught:
        provider.commit_files("acme/empty", "develop", [PutFile(path="a", content="")], message="m")
    assert caught.value.argument == "branch"
    provider.commit_files("acme/empty", "main", [PutFile(path="a", content="")], message="m")

    assert dict(world.forge.branches("acme/empty")).keys() == {"main"}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (lambda world: world.fake.hidden.add(REPO), NotFoundError),
        (lambda world: world.forge.rename_repo(REPO, "acme/gadgets"), RepoMovedError),
    ],
)
def test_a_project_that_graphql_does_not_see_is_told_by_rest(
    world: World, given: Callable[[World], object], error: type[GitProviderError]
) -> None:
    """GraphQL has null for a missing, an invisible and a moved project alike."""
    given(world)

    with pytest.raises(error) as caught:
        world.provider().commit_files(REPO, "main", [PutFile(path="a", content="")], message="m")

    if isinstance(caught.value, RepoMovedError):
        assert caught.value.moved_to == "acme/gadgets"
    assert world.mutations == []


def test_a_repository_that_is_turned_off_is_told(world: World) -> None:
    """GL-AR-01: the project is there, and its repository is null."""
    body = json.dumps({"data": {"project": {"repository": None}}}).encode()
    world.fault("status", endpoint="graphql", status=200, body=body)

    with pytest.raises(PermissionDeniedError) as caught:
        world.provider().commit_files(REPO, "main", [PutFile(path="a", content="")], message="m")

    assert "settings" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("errors", "error"),
    [
        ([{"message": "Internal server error"}], ProviderUnavailableError),
        ([{"message": "too much", "extensions": {"code": "madeUp"}}], UnexpectedResponseError),
    ],
)
def test_errors_of_graphql_stop_it_before_the_commit(
    world: World, errors: list[dict[str, Any]], error: type[GitProviderError]
) -> None:
    """They come with status 200."""
    world.fault("status", endpoint="graphql", status=200, body=json.dumps({"errors": errors}).encode())

    with pytest.raises(error) as caught:
        world.provider().commit_files(REPO, "main", [PutFile(path="a", content="")], message="m")

    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert world.mutations == []


def test_the_intent_says_what_was_to_be(world: World) -> None:
    """Enough for resolve to find the commit without its sha."""
    world.fault("reset", method="POST", endpoint="/commits", when="after")

    with pytest.raises(ProviderUnavailableError) as caught:
        world.provider().commit_files(REPO, "main", [PutFile(path="a", content="1")], message="Add a")

    intent = caught.value.intent
    assert intent is not None
    assert (intent.base_sha, intent.branch, intent.message) == (world.head, "main", "Add a")
    assert intent.files == {"a": (blob_sha(b"1"), "100644")}
    assert intent.sent_at is not None


def test_conflict_errors_are_not_confused(provider: GitLabProvider, world: World) -> None:
    """A push rule is a policy, not a moved head."""
    world.fake.commit_message_pattern = "^feat"

    with pytest.raises(PermissionDeniedError, match="does not follow the pattern") as caught:
        provider.commit_files(REPO, "main", [PutFile(path="a", content="")], message="bootstrap")

    assert not isinstance(caught.value, ConflictError)
