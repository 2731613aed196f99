"""The GitLab fake reads queries and forms as it reads JSON."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import pytest
import requests

from gitprovider.fakes.gitlab.forms import nested
from tests.support.gitlab_hand import REPO, Hand, Said, a_hand

WAYS = ("query", "urlencoded", "multipart")


@pytest.fixture
def hand(tmp_path: pathlib.Path) -> Hand:
    hand = a_hand(tmp_path, tier="premium")
    hand.given_repo()
    return hand


def _sent(hand: Hand, way: str, method: str, rest: str, fields: Sequence[tuple[str, str]]) -> Said:
    """Send fields the way that curl does with ``--data`` or ``--form``, or in the query."""
    every: dict[str, dict[str, Any]] = {
        "query": {"params": fields},
        "urlencoded": {"data": fields},
        "multipart": {"files": [(name, (None, value)) for name, value in fields]},
    }
    made = requests.Request(method, "https://gitlab.example.com/", **every[way]).prepare()
    body = made.body.encode() if isinstance(made.body, str) else made.body or b""
    headers = {**made.headers, "PRIVATE-TOKEN": hand.fake.token}
    assert made.url is not None
    return hand.repo(method, rest + made.url.removeprefix("https://gitlab.example.com/"), body, headers=headers)


@pytest.mark.parametrize("way", WAYS)
def test_a_commit_is_made_of_a_form_s_actions(hand: Hand, way: str) -> None:
    """If it fails, a client that writes forms cannot commit, or one action overwrites another."""
    fields = [
        *(("branch", "main"), ("commit_message", "grüße\r\n")),
        *(("actions[][action]", "create"), ("actions[][file_path]", "a.txt"), ("actions[][content]", "a, b\n&=")),
        *(("actions[][action]", "update"), ("actions[][file_path]", "README.md"), ("actions[][content]", "")),
    ]

    made = _sent(hand, way, "POST", "/repository/commits", fields)

    assert (made.status, made.data["message"]) == (201, "grüße\r\n")
    read = {path: hand.repo("GET", f"/repository/files/{path}/raw").data for path in ("a.txt", "README.md")}
    assert read == {"a.txt": "a, b\n&=", "README.md": None}


@pytest.mark.parametrize("way", WAYS)
def test_a_rule_is_made_of_text_that_means_numbers_and_booleans(hand: Hand, way: str) -> None:
    """If it fails, the curl lines of GitLab's documentation are refused."""
    fields = [
        *(("name", "release/*"), ("merge_access_level", "30"), ("allow_force_push", "true")),
        *(("allowed_to_push[][access_level]", "40"), ("allowed_to_push[][user_id]", "46")),
    ]

    made = _sent(hand, way, "POST", "/protected_branches", fields)

    assert (made.status, made.data["allow_force_push"]) == (201, True)
    assert [one["access_level"] for one in made.data["merge_access_levels"]] == [30]
    assert [(one["access_level"], one["user_id"]) for one in made.data["push_access_levels"]] == [(40, 46)]


@pytest.mark.parametrize("way", WAYS)
def test_a_rule_s_entry_is_removed_by_text(hand: Hand, way: str) -> None:
    """If it fails, ``_destroy=false`` deletes an entry, or ``_destroy=true`` keeps it."""
    made = hand.repo("POST", "/protected_branches", {"name": "x", "allowed_to_push": [{"user_id": 46}]})
    number = str(made.data["push_access_levels"][0]["id"])
    left = []

    for word in ("false", "true"):
        fields = [("allowed_to_push[][id]", number), ("allowed_to_push[][_destroy]", word)]
        left.append(len(_sent(hand, way, "PATCH", "/protected_branches/x", fields).data["push_access_levels"]))

    assert left == [1, 0]


@pytest.mark.parametrize(
    ("fields", "status", "fact"),
    [
        ([("name", "x"), ("push_access_level", "35")], 400, "gl-param-invalid"),
        ([("name", "x"), ("allow_force_push", "maybe")], 400, "gl-param-invalid"),
        ([("name", "x"), ("allowed_to_push[][user_id]", "alice")], 400, "gl-param-invalid"),
        ([("name", "x"), ("name[]", "y")], 400, "gl-bad-request"),
    ],
)
def test_text_that_means_nothing_is_refused(hand: Hand, fields: list[tuple[str, str]], status: int, fact: str) -> None:
    """If it fails, a wrong value in a form passes for another one."""
    refused = _sent(hand, "urlencoded", "POST", "/protected_branches", fields)

    assert (refused.status, refused.fact) == (status, fact)
    assert hand.forge.rules(REPO) == []


@pytest.mark.parametrize(
    ("fields", "read"),
    [
        ([("a", "1"), ("a", "2")], {"a": "2"}),
        ([("a[]", "1"), ("a[]", "2,3")], {"a": ["1", "2,3"]}),
        ([("a[b][c]", "1"), ("a[b][d]", "2")], {"a": {"b": {"c": "1", "d": "2"}}}),
        ([("a[][b]", "1"), ("a[][c]", "2"), ("a[][b]", "3")], {"a": [{"b": "1", "c": "2"}, {"b": "3"}]}),
        ([("a[][b][]", "1"), ("a[][b][]", "2")], {"a": [{"b": ["1", "2"]}]}),
    ],
)
def test_names_in_brackets_are_lists_and_objects(fields: list[tuple[str, str]], read: dict[str, Any]) -> None:
    """If it fails, nested parameters are read in another way than Rack reads them."""
    assert nested(fields) == read


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"search": "FEAT"}, ["a-feat", "feat-a", "feat-b"]),
        ({"search": "^feat"}, ["feat-a", "feat-b"]),
        ({"search": "feat$"}, ["a-feat"]),
        ({"regex": "^feat-[b-z]"}, ["feat-b"]),
        ({"regex": "-a$", "search": "^f"}, ["feat-a"]),
    ],
)
def test_branches_are_searched_as_documented(hand: Hand, query: dict[str, str], names: list[str]) -> None:
    """If it fails, a search finds no branch or all of them: https://docs.gitlab.com/api/branches/ ."""
    for name in ("a-feat", "feat-a", "feat-b"):
        hand.forge.create_branch(REPO, name, hand.forge.head(REPO, "main"))

    assert [one["name"] for one in hand.repo("GET", "/repository/branches", query=query).data] == names


@pytest.mark.parametrize(
    "changed", [{"description": "Widgets"}, {"description": ""}, {"visibility": "public"}, {"visibility": "internal"}]
)
def test_a_project_s_description_and_visibility_change(hand: Hand, changed: dict[str, str]) -> None:
    """If it fails, a PUT says 200 and changes nothing."""
    made = hand.repo("PUT", "", changed)

    assert (made.status, made.effect) == (200, True)
    assert hand.repo("GET", "").data.items() >= changed.items()


def test_a_visibility_that_is_forbidden_stays_as_it_was(hand: Hand) -> None:
    """If it fails, a change of visibility goes around the administrator's rule."""
    hand.fake.restricted_visibilities = {"public"}

    assert hand.repo("PUT", "", {"visibility": "public"}).fact == "gl-visibility-restricted"
    assert hand.repo("GET", "").data["visibility"] == "private"
