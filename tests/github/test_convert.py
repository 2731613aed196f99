"""GitHub's JSON as values: what is missing or of another type is an error, never a None in a value."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gitprovider import BranchProtection, PullRequestState, PutFile, Visibility
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.response import BodyError, Response
from gitprovider.github import convert, protection
from tests.support.github_hub import REPO, Hub

JUNK: tuple[Any, ...] = (None, 7, -1, "", "junk", True, [], {}, [None], [7])
CONVERTERS: dict[str, tuple[str, Callable[[Response], Any]]] = {
    "repo": ("", lambda response: convert.repo(JsonReader(response))),
    "branches": ("/branches", lambda response: [convert.branch(item) for item in JsonReader.each(response)]),
    "head": ("/branches/main", lambda response: convert.head(JsonReader(response))),
    "ref": ("/git/ref/heads/main", lambda response: convert.new_branch(JsonReader(response))),
    "pull": ("/pulls/1", lambda response: _pull(JsonReader(response))),
    "tree": ("/git/trees/main", lambda response: convert.tree(JsonReader(response))),
    "protection": ("/branches/main/protection", lambda response: protection.demands(JsonReader(response))),
}


def _pull(fields: JsonReader) -> tuple[object, bool]:
    return convert.pull_request(fields), convert.in_one_repo(fields)


def _altered(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The data with one field removed or of another kind, for every field that a converter could look at."""
    if len(path) > 3:
        return
    items = data.items() if isinstance(data, dict) else enumerate(data[:1]) if isinstance(data, list) else ()
    for name, value in items:
        yield (*path, name), value
        yield from _altered(value, (*path, name))


def _with(data: Any, path: tuple[Any, ...], value: Any, *, gone: bool = False) -> Any:
    """A copy in which the field at ``path`` has this value, or is gone."""
    copied = copy.copy(data)
    name, *rest = path
    if rest:
        copied[name] = _with(data[name], tuple(rest), value, gone=gone)
    elif gone:
        del copied[name]
    else:
        copied[name] = value
    return copied


@pytest.mark.parametrize("name", CONVERTERS)
def test_any_field_may_be_anything(hub: Hub, name: str) -> None:
    """Every field of a real answer in turn is removed, or is junk: a value, or BodyError."""
    where, converter = CONVERTERS[name]
    hub.given_pull()
    hub.given_rule(BranchProtection(required_checks=("ci",), required_approvals=2))
    with hub.provider.sdk() as client:
        _, data = client.requester.requestJsonAndCheck("GET", f"/repos/{REPO}{where}")
    converter(Response(status=200, data=data))

    for path, _ in _altered(data):
        for answer in (_with(data, path, None, gone=True), *(_with(data, path, junk) for junk in JUNK)):
            try:
                made = converter(Response(status=200, data=answer))
            except BodyError:
                continue
            _check_whole(made, path)


def _check_whole(made: Any, path: tuple[Any, ...]) -> None:
    """No value holds what its type forbids: it was checked when it was made, and so it is when it is made again."""
    for value in made if isinstance(made, list | tuple) else [made]:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            dataclasses.replace(value)
            needed = [f.name for f in dataclasses.fields(value) if "None" not in str(f.type)]
            assert [name for name in needed if getattr(value, name) is None] == [], path


def test_a_server_from_before_visibility_says_private(hub: Hub) -> None:
    """A boolean in its place."""
    with hub.provider.sdk() as client:
        _, data = client.requester.requestJsonAndCheck("GET", f"/repos/{REPO}")
    del data["visibility"]

    for private, visibility in ((True, Visibility.PRIVATE), (False, Visibility.PUBLIC)):
        assert convert.repo(JsonReader(Response(status=200, data=data | {"private": private}))).visibility is visibility


# From https://docs.github.com/rest/pulls/pulls#get-a-pull-request
@pytest.mark.parametrize(
    ("fields", "state", "sha"),
    [
        ({"state": "open", "merged_at": None, "merge_commit_sha": "e5bd3914e2e596debea16f433f57875b5b90bcd6"},
         PullRequestState.OPEN, None),
        ({"state": "closed", "merged_at": None, "merge_commit_sha": "e5bd3914e2e596debea16f433f57875b5b90bcd6"},
         PullRequestState.CLOSED, None),
        ({"state": "closed", "merged_at": "2011-01-26T19:01:12Z",
          "merge_commit_sha": "e5bd3914e2e596debea16f433f57875b5b90bcd6"},
         PullRequestState.MERGED, "e5bd3914e2e596debea16f433f57875b5b90bcd6"),
    ],
)  # fmt: skip
def test_a_test_merge_is_no_merge(hub: Hub, fields: dict[str, Any], state: PullRequestState, sha: str | None) -> None:
    """GitHub shows the commit of a trial merge under the same name."""
    hub.given_pull()
    with hub.provider.sdk() as client:
        _, data = client.requester.requestJsonAndCheck("GET", f"/repos/{REPO}/pulls/1")

    pull = convert.pull_request(JsonReader(Response(status=200, data=data | fields)))

    assert (pull.state, pull.merge_commit_sha) == (state, sha)


def test_a_look_finds_what_the_operations_made(hub: Hub) -> None:
    """HostState tells of commits, trees, reachability and pull requests as they are."""
    first = hub.forge.head(REPO, "main")
    made = hub.provider.commit_files(REPO, "main", [PutFile(path="run", content="x", executable=True)], message="m")
    pull = hub.given_pull()
    provider = hub.provider

    assert provider.head(REPO, "main") == made.sha
    assert provider.commit(REPO, made.sha).parent == first
    assert provider.tree(REPO, made.sha)["run"].mode == "100755"
    assert provider.contains(REPO, first, "main")
    assert provider.contains(REPO, made.sha, "main")
    assert not provider.contains(REPO, pull.head_sha, "main")
    assert not provider.contains(REPO, "1" * 40, "main")
    assert provider.get_pull_request(REPO, 1).head_sha == pull.head_sha
    found = provider.find_pull_requests(REPO, source_branch="feature", target_branch="main")
    assert [pull.number for pull in found] == [1]
