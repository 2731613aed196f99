"""Values from JSON as GitLab was recorded to send it, and what is not accepted as such."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.response import BodyError, Response
from gitprovider.gitlab import convert, protection
from gitprovider.gitlab.errors import GraphQLError
from gitprovider.models import PullRequestState, Visibility

SHA, OTHER = "1" * 40, "2" * 40
# https://docs.gitlab.com/api/projects/#get-a-single-project
PROJECT: dict[str, Any] = {
    "id": 20729408,
    "path_with_namespace": "acme/platform/widgets",
    "default_branch": "main",
    "visibility": "private",
    "description": None,
    "archived": False,
    "web_url": "https://gitlab.com/acme/platform/widgets",
    "http_url_to_repo": "https://gitlab.com/acme/platform/widgets.git",
    "ssh_url_to_repo": "git@gitlab.com:acme/platform/widgets.git",
    "created_at": "2020-08-22T08:27:48.093+02:00",
}
# https://docs.gitlab.com/api/branches/#get-single-repository-branch
BRANCH: dict[str, Any] = {"name": "main", "protected": True, "commit": {"id": SHA, "short_id": SHA[:8]}}
# https://docs.gitlab.com/api/commits/#get-a-single-commit
COMMIT: dict[str, Any] = {
    "id": SHA,
    "parent_ids": [OTHER, "3" * 40],
    "message": "Add a\n\nbody\n",
    "web_url": "https://gitlab.com/acme/widgets/-/commit/1",
}
# https://docs.gitlab.com/api/merge_requests/#get-single-mr
MERGE_REQUEST: dict[str, Any] = {
    "iid": 7,
    "state": "opened",
    "title": "Draft: A change",
    "description": None,
    "source_branch": "feature",
    "target_branch": "main",
    "sha": SHA,
    "draft": True,
    "web_url": "https://gitlab.com/acme/widgets/-/merge_requests/7",
    "created_at": "2020-08-22T08:27:48.093Z",
    "merge_commit_sha": None,
    "squash_commit_sha": None,
}
# https://docs.gitlab.com/api/protected_branches/#list-protected-branches
RULE: dict[str, Any] = {
    "name": "main",
    "push_access_levels": [{"id": 1, "access_level": 40, "access_level_description": "Maintainers"}],
    "merge_access_levels": [{"id": 2, "access_level": 30}],
    "allow_force_push": False,
}


def response(data: Any) -> Response:
    return Response(status=200, data=data)


def read(data: Any) -> JsonReader:
    return JsonReader(response(data))


def test_a_project_is_a_repository() -> None:
    """Its description is never None, its time is UTC."""
    value = convert.repo(read(PROJECT))

    assert (value.path, value.id, value.visibility) == ("acme/platform/widgets", "20729408", Visibility.PRIVATE)
    assert (value.description, value.archived, value.default_branch) == ("", False, "main")
    assert value.created_at == datetime(2020, 8, 22, 6, 27, 48, 93000, tzinfo=UTC)
    assert value.clone_url.endswith("widgets.git")


def test_a_commit_has_its_first_parent() -> None:
    """Of a merge the target's side; of a first commit none."""
    assert convert.commit(read(COMMIT), "main").parent == OTHER
    assert convert.commit(read({**COMMIT, "parent_ids": []}), "main").parent is None


@pytest.mark.parametrize(
    ("fields", "state", "title", "draft"),
    [
        ({}, PullRequestState.OPEN, "A change", True),
        ({"title": "[Draft] Draft: x"}, PullRequestState.OPEN, "Draft: x", True),
        ({"title": "(draft)x"}, PullRequestState.OPEN, "x", True),
        ({"title": "A change", "draft": False}, PullRequestState.OPEN, "A change", False),
        ({"title": "A change"}, PullRequestState.OPEN, "A change", True),
        ({"state": "locked"}, PullRequestState.OPEN, "A change", True),
        ({"state": "closed"}, PullRequestState.CLOSED, "A change", True),
    ],
)
def test_a_merge_request_is_a_pull_request(
    fields: dict[str, Any], state: PullRequestState, title: str, draft: bool
) -> None:
    """Its draft's prefix is taken off once; locked is still open."""
    value = convert.pull_request(read({**MERGE_REQUEST, **fields}))

    assert (value.state, value.title, value.draft, value.description) == (state, title, draft, "")
    assert value.merge_commit_sha is None


def test_a_draft_of_before_14_is_one() -> None:
    """The field had another name."""
    old = {name: value for name, value in MERGE_REQUEST.items() if name != "draft"}

    assert convert.pull_request(read({**old, "work_in_progress": True})).draft


@pytest.mark.parametrize(
    ("fields", "sha"),
    [
        ({"merge_commit_sha": OTHER, "squash_commit_sha": "3" * 40}, OTHER),
        ({"squash_commit_sha": "3" * 40}, "3" * 40),
        ({}, SHA),
    ],
)
def test_what_a_merge_produced_is_the_last_commit_of_it(fields: dict[str, Any], sha: str) -> None:
    """The merge commit, else the squash commit, else, fast-forward, the head."""
    data = {**MERGE_REQUEST, "state": "merged", **fields}

    assert convert.pull_request(read(data)).merge_commit_sha == sha


NEEDED = [
    *(
        (PROJECT, convert.repo, name)
        for name in ("id", "path_with_namespace", "visibility", "web_url", "http_url_to_repo")
    ),
    *((BRANCH, convert.branch, name) for name in ("name", "commit")),
    *((COMMIT, convert.commit, name) for name in ("id", "parent_ids")),
    *(
        (MERGE_REQUEST, convert.pull_request, name)
        for name in ("iid", "state", "title", "source_branch", "target_branch")
    ),
    *((RULE, protection.rule, name) for name in ("name", "push_access_levels", "merge_access_levels")),
]


@pytest.mark.parametrize(("body", "value_of", "name"), NEEDED, ids=[name for _, _, name in NEEDED])
@pytest.mark.parametrize("value", ["absent", None, {"odd": 1}, [], 1.5, ""])
def test_a_field_that_a_value_needs_is_never_guessed(
    body: dict[str, Any], value_of: Any, name: str, value: Any
) -> None:
    """Missing, null or of another type: an error that names it, and no value with a hole."""
    data = deepcopy(body)
    if value == "absent":
        del data[name]
    else:
        data[name] = value
    if value == [] and name in ("parent_ids", "push_access_levels", "merge_access_levels"):
        value_of(read(data))  # a list that is empty is a list
        return

    with pytest.raises(BodyError, match=name):
        value_of(read(data))


@pytest.mark.pitfall("GL-X-09")
@pytest.mark.parametrize("data", [None, [], "text", 7, [PROJECT]])
def test_a_response_of_another_shape_is_no_value(data: Any) -> None:
    """A list, a string, nothing at all."""
    for value_of in (convert.repo, convert.commit, convert.branch):
        with pytest.raises(BodyError):
            value_of(read(data))
    with pytest.raises(BodyError):
        convert.graphql(response(data))


@pytest.mark.parametrize(
    ("name", "value"), [("state", "brand_new"), ("sha", "abc"), ("iid", 0), ("created_at", "yesterday")]
)
def test_a_field_of_a_value_that_is_not_possible_is_no_value(name: str, value: Any) -> None:
    """What the value itself refuses is the host's doing, not the caller's."""
    with pytest.raises(BodyError):
        convert.pull_request(read({**MERGE_REQUEST, name: value}))


def test_errors_of_graphql_are_not_taken_for_data() -> None:
    """Partial data beside errors is not a response either."""
    with pytest.raises(GraphQLError) as caught:
        convert.graphql(response({"data": {"project": None}, "errors": [{"message": "broken"}]}))

    assert (caught.value.kind, str(caught.value)) == ("", "broken")
    assert convert.graphql(response({"data": {"project": None}, "errors": []})).object_or_none("project") is None
