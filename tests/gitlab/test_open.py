"""open_pull_request: what GitLab would do unasked is refused, and what it dropped is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gitprovider.errors import (
    AlreadyExistsError,
    GitProviderError,
    InvalidRequestError,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    UnexpectedResponseError,
)
from gitprovider.gitlab.convert import first_quick_action
from gitprovider.models import PullRequest, PullRequestState
from tests.support.gitlab_world import REPO, World

Make = Callable[..., World]


def opened(world: World, **options: Any) -> PullRequest:
    options = {"source_branch": "other", "target_branch": "main", "title": "A change", **options}
    return world.provider().open_pull_request(REPO, **options)


def failed(world: World, error: type[GitProviderError], **options: Any) -> Any:
    with pytest.raises(error) as caught:
        opened(world, **options)
    return caught.value


# Titles


@pytest.mark.parametrize("title", ["Draft: x", "draft:x", "[Draft] x", "(draft) x", "DRAFT: x", " [draft]x"])
def test_a_title_that_makes_a_draft_is_refused_before_any_request(ready: World, title: str) -> None:
    """GL-PR-07: GitLab has no other mark for a draft."""
    error = failed(ready, InvalidRequestError, title=title)

    assert error.argument == "title"
    assert ready.sent == []


@pytest.mark.parametrize("title", ["Drafting", "draft", "A draft: x", "WIP: x", "Draft - x"])
def test_a_title_that_makes_no_draft_is_kept(ready: World, title: str) -> None:
    """Only GitLab's own three forms, at the beginning."""
    assert opened(ready, title=title).title == title


@pytest.mark.parametrize("title", ["x", "Draft: x", "[Draft] x"])
def test_a_draft_is_made_by_a_prefix_that_the_value_does_not_show(ready: World, title: str) -> None:
    """GL-PR-07: added and taken off again, once."""
    value = opened(ready, title=title, draft=True)

    assert (value.title, value.draft) == (title, True)
    [sent] = ready.request_log.mutations()
    assert json.loads(sent.body)["title"] == f"Draft: {title}"


def test_a_draft_s_title_has_room_for_the_prefix(ready: World) -> None:
    """255 characters in all."""
    assert failed(ready, InvalidRequestError, title="x" * 249, draft=True).argument == "title"
    assert opened(ready, title="x" * 248, draft=True).title == "x" * 248


def test_a_draft_that_an_old_server_makes_unasked_is_told(ready: World) -> None:
    """The merge request is there, and is not what was asked for."""
    handle = ready.fake.handle

    def old(request: Any) -> Any:
        answer = handle(request)
        if request.method != "POST":
            return answer
        return replace(answer, body=answer.body.replace(b'"draft": false', b'"draft": true'))

    ready.fake.handle = old  # type: ignore[method-assign]  # interposed, not replaced

    error = failed(ready, UnexpectedResponseError, title="WIP: x")

    assert error.outcome is Outcome.PARTIAL
    assert error.completed[0].value.number == 2


# Descriptions


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/close", "/close"),
        ("text\n/label ~bug\n", "/label ~bug"),
        ("text\r\n/assign me\r\nmore", "/assign me"),
        ("/APPROVE", "/APPROVE"),
        ("  /merge  ", "/merge"),
        ("```\n/close\n```", None),
        ("```\n/close\n```\n/close", "/close"),
        ("```\n/close", "/close"),
        ("see /close", None),
        ("/closed", None),
        ("/etc/hosts", None),
        ("/close/it", None),
        ("/unknown thing", None),
        ("/ close", None),
        ("", None),
    ],
)
def test_quick_actions_are_found_where_gitlab_finds_them(text: str, found: str | None) -> None:
    """Known names at the beginning of a line, outside fenced code."""
    assert first_quick_action(text) == found


def test_a_description_that_would_be_executed_is_refused_before_any_request(ready: World) -> None:
    """GitLab would take the line out and do it."""
    error = failed(ready, InvalidRequestError, description="Why.\n\n/label ~bug")

    assert error.argument == "description"
    assert ready.sent == []


def test_a_description_that_was_not_kept_is_told(ready: World) -> None:
    """A command of a version that is not known here."""
    handle = ready.fake.handle

    def newer(request: Any) -> Any:
        answer = handle(request)
        return replace(answer, body=answer.body.replace(b"/brand_new", b"")) if request.method == "POST" else answer

    ready.fake.handle = newer  # type: ignore[method-assign]  # interposed, not replaced

    assert failed(ready, UnexpectedResponseError, description="x\n/brand_new").outcome is Outcome.PARTIAL


# Labels and reviewers


def test_labels_go_in_the_same_request_and_have_no_comma(ready: World) -> None:
    """A comma would make two of one."""
    opened(ready, labels=["a b", "c"])

    assert ready.forge.pull_request(REPO, 2).labels == ("a b", "c")
    assert failed(ready, InvalidRequestError, labels=["a,b"]).argument == "labels"


def test_labels_that_were_not_set_are_told(ready: World) -> None:
    """A guest may open a merge request and set none."""
    handle = ready.fake.handle

    def guest(request: Any) -> Any:
        if request.method == "POST":
            data = json.loads(request.body)
            data["labels"] = []
            request = replace(request, body=json.dumps(data).encode())
        return handle(request)

    ready.fake.handle = guest  # type: ignore[method-assign]  # interposed, not replaced

    error = failed(ready, PermissionDeniedError, labels=["bug"])

    assert error.outcome is Outcome.PARTIAL
    assert "bug" in error.message
    assert error.completed[0].value.number == 2


@pytest.mark.parametrize(("tier", "kept"), [("free", 1), ("premium", 2)])
def test_reviewers_that_the_tier_drops_are_told(make_world: Make, tier: str, kept: int) -> None:
    """GL-PR-07: Free keeps the first, with 201."""
    world = make_world("ready", tier=tier)

    if tier == "premium":
        opened(world, reviewers=["alice", "bob"])
    else:
        error = failed(world, PermissionDeniedError, reviewers=["alice", "bob"])
        assert error.outcome is Outcome.PARTIAL
        assert isinstance(error.completed[0].value, PullRequest)

    assert len(world.forge.pull_request(REPO, 2).reviewers) == kept


def test_a_reviewer_who_may_not_read_it_is_told(ready: World) -> None:
    """Dropped silently by GitLab."""
    ready.fake.outsiders.add("alice")

    assert failed(ready, PermissionDeniedError, reviewers=["alice"]).outcome is Outcome.PARTIAL


def test_a_reviewer_who_does_not_exist_stops_it_before_it_is_opened(ready: World) -> None:
    """Users are numbers to GitLab, looked up by their exact name."""
    error = failed(ready, InvalidRequestError, reviewers=["nobody"])

    assert error.argument == "reviewers"
    assert ready.mutations == []


# What is there, and what is not


def test_the_one_that_is_open_is_found(ready: World) -> None:
    """GL-PR-01: 409 with a list; looked up by both branches, not by the number in the text."""
    error = failed(ready, AlreadyExistsError, source_branch="feature")

    assert isinstance(error.existing, PullRequest)
    assert (error.existing.number, error.existing.state) == (1, PullRequestState.OPEN)


def test_the_one_that_cannot_be_seen_is_none(ready: World) -> None:
    """A failing look does not hide what was said."""
    ready.fault("status", method="GET", endpoint="merge_requests$", status=500, times=None)

    assert failed(ready, AlreadyExistsError, source_branch="feature").existing is None


@pytest.mark.parametrize("branch", ["source_branch", "target_branch"])
def test_a_missing_branch_is_not_found(ready: World, branch: str) -> None:
    """By name, in the host's words."""
    error = failed(ready, NotFoundError, **{branch: "missing"})

    assert branch in error.message
    assert not error.retryable


def test_a_source_branch_that_is_not_seen_yet_is_not_missing(ready: World) -> None:
    """GL-PR-04, GL-CB-06: a clustered GitLab refuses it for seconds; the same call is safe and will do."""
    text = b'{"message": {"source_branch": ["does not exist"]}}'
    ready.fault("status", method="POST", endpoint="merge_requests$", status=400, body=text)

    error = failed(ready, ProviderUnavailableError)

    assert (error.retryable, error.outcome) == (True, Outcome.NOT_APPLIED)
    assert len(ready.mutations) == 1
    assert opened(ready).number == 2


def test_a_merge_request_without_its_sha_is_a_value(make_world: Make) -> None:
    """The head is computed later."""
    world = make_world("ready")
    world.fake.late_sha = True

    assert opened(world).head_sha is None


def test_an_archived_project_says_so(ready: World) -> None:
    """GL-AR-01: a bare 403 may mean that, a low role, or a feature that is off."""
    ready.forge.update_repo(REPO, archived=True)

    assert "archived" in (failed(ready, PermissionDeniedError).hint or "")
