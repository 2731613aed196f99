"""The GitLab fake: groups, and lists of projects, commits and tags."""

from __future__ import annotations

import pathlib
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests

from tests.support.gitlab_hand import REPO, Hand, a_hand


@pytest.fixture
def hand(tmp_path: pathlib.Path) -> Hand:
    return a_hand(tmp_path)


def _made(hand: Hand, **given: Any) -> Any:
    return hand.send("POST", "/groups", {"name": "Tools", "path": "tools", **given})


def test_a_group_is_created_read_and_holds_projects(hand: Hand) -> None:
    """If it fails, a client that sets up groups cannot create a project in one."""
    top = _made(hand)
    below = _made(hand, name="CI tools", path="ci", parent_id=top.data["id"], visibility="public")
    hand.send("POST", "/projects", {"name": "runner", "namespace_id": below.data["id"]})

    assert (top.status, top.effect, below.data["full_path"]) == (201, True, "tools/ci")
    assert below.data["full_name"] == "Tools / CI tools"
    assert hand.send("GET", f"/groups/{below.data['id']}").data == hand.send("GET", "/groups/tools%2Fci").data
    assert [one["path"] for one in hand.send("GET", "/groups/tools/subgroups").data] == ["ci"]
    assert hand.send("GET", "/groups/tools/projects").data == []
    deep = hand.send("GET", "/groups/tools/projects", query={"include_subgroups": "true"}).data
    assert [one["path_with_namespace"] for one in deep] == ["tools/ci/runner"]
    tops = hand.send("GET", "/groups", query={"top_level_only": "true"}).data
    assert [one["full_path"] for one in tops] == ["acme", "tools"]
    assert [one["full_path"] for one in hand.send("GET", "/groups", headers={}).data] == ["tools/ci"]


@pytest.mark.parametrize(
    ("given", "status", "fact"),
    [
        ({"path": "acme"}, 400, "gl-group-taken"),
        ({"path": "reviewer"}, 400, "gl-group-taken"),
        ({"path": "-x"}, 400, "gl-project-name-invalid"),
        ({"parent_id": 7}, 404, "gl-group-missing"),
        ({"visibility": "secret"}, 400, "gl-param-invalid"),
        ({"name": None}, 400, "gl-param-missing"),
    ],
)
def test_a_group_that_may_not_be_created_is_not(hand: Hand, given: dict[str, Any], status: int, fact: str) -> None:
    """If it fails, two groups have one path, or a group has a name that GitLab refuses."""
    before = set(hand.fake.groups)

    refused = _made(hand, **given)

    assert (refused.status, refused.fact, refused.effect) == (status, fact, False)
    assert hand.fake.groups == before


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["other/c", "acme/b", "tanuki/a"]),
        ({"owned": "true"}, ["tanuki/a"]),
        ({"membership": "true"}, ["acme/b", "tanuki/a"]),
        ({"search": "C"}, ["other/c"]),
        ({"visibility": "public"}, ["other/c"]),
        ({"archived": "true"}, ["acme/b"]),
        ({"order_by": "path", "sort": "asc"}, ["tanuki/a", "acme/b", "other/c"]),
    ],
)
def test_projects_are_listed_as_asked(hand: Hand, query: dict[str, str], names: list[str]) -> None:
    """If it fails, a filter of the list is dropped and a client works on other people's projects."""
    for path in ("tanuki/a", "acme/b", "other/c"):
        hand.given_repo(path=path)
    hand.send("PUT", "/projects/other%2Fc", {"visibility": "public"})
    hand.send("POST", "/projects/acme%2Fb/archive")

    assert [one["path_with_namespace"] for one in hand.send("GET", "/projects", query=query).data] == names
    assert [one["path"] for one in hand.send("GET", "/projects", headers={}).data] == ["c"]


@pytest.mark.parametrize(
    "path", ["/projects", "/groups", "/projects/1/merge_requests", "/projects/1/repository/commits"]
)
def test_a_list_refuses_a_parameter_that_is_not_modelled(hand: Hand, path: str) -> None:
    """If it fails, a filter is dropped and the list has items that were not asked for."""
    hand.given_repo()

    refused = hand.send("GET", path, query={"milestone": "v1"})

    assert (refused.status, "milestone" in refused.message) == (501, True)


@pytest.mark.parametrize(
    ("method", "rest", "body"),
    [
        ("PUT", "", {"description": "x", "topics": ["y"]}),
        ("POST", "/merge_requests", {"title": "x", "source_branch": "a", "target_branch": "main", "milestone_id": 1}),
    ],
)
def test_a_write_refuses_a_parameter_that_is_not_modelled(
    hand: Hand, method: str, rest: str, body: dict[str, Any]
) -> None:
    """If it fails, a part of a write is dropped and the response says that all is well."""
    hand.given_repo()

    refused = hand.repo(method, rest, body)

    assert (refused.status, refused.effect) == (501, False)
    assert hand.repo("GET", "").data["description"] != "x"


def test_merge_requests_of_one_user_are_refused(hand: Hand) -> None:
    """If it fails, a scope is dropped and the list has other people's merge requests."""
    hand.given_repo()

    scopes = ("all", "created_by_me")
    assert [hand.repo("GET", "/merge_requests", query={"scope": one}).status for one in scopes] == [200, 501]


def test_commits_are_listed_newest_first_and_by_what_is_asked(hand: Hand) -> None:
    """If it fails, a filter of the list of commits is dropped."""
    first = hand.given_repo()
    second = hand.given_commit("main", {"docs/a.txt": b"a"})
    third = hand.given_commit("main", {"b.txt": b"b"})

    def listed(**query: Any) -> list[str]:
        return [one["id"] for one in hand.repo("GET", "/repository/commits", query=query).data]

    assert listed() == [third, second, first]
    assert listed(path="docs") == [second]
    assert listed(ref_name=second) == [second, first]
    assert listed(until="2001-01-01") == listed(author="nobody") == []
    assert len(listed(since="2001-01-01T00:00:00Z")) == 3
    assert "X-Total" not in hand.repo("GET", "/repository/commits").headers
    assert hand.repo("GET", "/repository/commits", query={"since": "yesterday"}).fact == "gl-param-invalid"
    assert hand.repo("GET", "/repository/commits", query={"ref_name": "absent"}).status == 501


@pytest.mark.parametrize(("message", "annotated"), [("", False), ("One", True)])
def test_a_tag_is_created_read_and_deleted(hand: Hand, message: str, annotated: bool) -> None:
    """If it fails, a client cannot release, or a tag is no ref for the other endpoints."""
    head = hand.given_repo()

    made = hand.repo("POST", "/repository/tags", {"tag_name": "v1", "ref": "main", "message": message})

    assert (made.status, made.data["commit"]["id"], made.data["message"]) == (201, head, message)
    assert (made.data["target"] != head) is annotated
    assert hand.repo("GET", "/repository/tags/v1").data == made.data
    assert hand.repo("GET", "/repository/tags").data == [made.data]
    assert hand.repo("GET", "/repository/files/README.md/raw", query={"ref": "v1"}).data == "hello\n"
    refs = hand.repo("GET", f"/repository/commits/{head}/refs", query={"type": "tag"}).data
    assert refs == [{"type": "tag", "name": "v1"}]
    assert hand.repo("DELETE", "/repository/tags/v1").status == 204
    assert hand.repo("GET", "/repository/tags/v1").fact == "gl-tag-missing"


@pytest.mark.parametrize(("name", "ref"), [("v1", "main"), ("v2", "absent"), ("a..b", "main")])
def test_a_tag_that_may_not_be_created_is_400(hand: Hand, name: str, ref: str) -> None:
    """If it fails, a tag moves, or leads nowhere."""
    hand.given_repo()
    hand.repo("POST", "/repository/tags", {"tag_name": "v1", "ref": "main"})

    refused = hand.repo("POST", "/repository/tags", {"tag_name": name, "ref": ref})

    assert (refused.status, refused.fact) == (400, "gl-tag-refused")
    assert [one["name"] for one in hand.repo("GET", "/repository/tags").data] == ["v1"]


def test_the_links_of_a_list_lead_to_its_next_page(hand: Hand) -> None:
    """If it fails, a client that follows them is refused: GitLab puts the project's id into them."""
    head = hand.given_repo()
    for number in range(25):
        hand.fake.forge.create_branch(REPO, f"b{number:02}", head)

    first = hand.repo("GET", "/repository/branches")
    link = requests.utils.parse_header_links(first.headers["Link"])
    following = next(one["url"] for one in link if one["rel"] == "next")
    parts = urlsplit(following)
    second = hand.send("GET", f"/{parts.path.partition('/api/v4/')[2]}", query=dict(parse_qsl(parts.query)))

    assert (len(first.data), second.status, len(second.data)) == (20, 200, 6)


def test_a_parameter_that_gitlab_does_not_have_is_ignored(hand: Hand) -> None:
    """If it fails, a client that sends one everywhere is refused by the fake, and not by the host."""
    made = hand.send("POST", "/projects", {"name": "new", "no_such_parameter": 1})

    assert made.status == 201
