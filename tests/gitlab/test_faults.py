"""The fault matrix: reads survive what passes, mutations are sent once, and the outcome is what is known.

Imitated on ``responses`` for every operation and every kind of fault; tried on sockets in test_sockets.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from gitprovider.errors import (
    GitProviderError,
    Outcome,
    ProviderUnavailableError,
    RateLimitedError,
    RepoMovedError,
    UnexpectedResponseError,
)
from gitprovider.gitlab import GitLabProvider
from gitprovider.models import PutFile
from tests.support.gitlab_world import REPO, World

Call = Callable[[GitLabProvider, World], Any]


@dataclass(frozen=True)
class Mutation:
    """An operation, its effect step, and the reads before it."""

    call: Call
    effect: tuple[str, str]
    reads: tuple[tuple[str, str], ...]


def merge(provider: GitLabProvider, world: World) -> Any:
    return provider.merge_pull_request(REPO, 1)


MUTATIONS = {
    "create_repo": Mutation(
        lambda provider, world: provider.create_repo("acme/new"), ("POST", "/projects$"), (("GET", "/namespaces"),)
    ),
    "create_branch": Mutation(
        lambda provider, world: provider.create_branch(REPO, "new", source="main"),
        ("POST", "/branches$"),
        (("GET", "/branches/"),),
    ),
    "protect_branch": Mutation(
        lambda provider, world: provider.protect_branch(REPO, "feature"),
        ("POST", "/protected_branches$"),
        (("GET", "/protected_branches$"), ("GET", "/branches/")),
    ),
    "commit_files": Mutation(
        lambda provider, world: provider.commit_files(REPO, "main", [PutFile(path="a", content="a")], message="m"),
        ("POST", "/commits$"),
        (("POST", "/api/graphql"),),
    ),
    "open_pull_request": Mutation(
        lambda provider, world: provider.open_pull_request(
            REPO, source_branch="other", target_branch="main", title="t", reviewers=["alice"]
        ),
        ("POST", "/merge_requests$"),
        (("GET", "/users"),),
    ),
    "merge_pull_request": Mutation(
        merge, ("PUT", "/merge$"), (("GET", r"/merge_requests/\{iid\}$"), ("GET", r"/projects/\{\w+\}$"))
    ),
}
READS: dict[str, Call] = {
    "get_repo": lambda provider, world: provider.get_repo(REPO),
    "list_branches": lambda provider, world: provider.list_branches(REPO),
}


@dataclass(frozen=True)
class Case:
    """A fault, and what it means: whether a read is tried again, the error, and the outcome at the effect step."""

    fault: dict[str, Any]
    retried: bool
    error: type[GitProviderError]
    outcome: Outcome


FAULTS = {
    "reset": Case({"kind": "reset"}, True, ProviderUnavailableError, Outcome.UNKNOWN),
    "timeout": Case({"kind": "timeout"}, True, ProviderUnavailableError, Outcome.UNKNOWN),
    "cut": Case({"kind": "cut"}, True, ProviderUnavailableError, Outcome.UNKNOWN),
    "cut json": Case(
        {"kind": "status", "status": 200, "body": b'{"id": 7, "na'}, True, UnexpectedResponseError, Outcome.UNKNOWN
    ),
    "html": Case({"kind": "html", "status": 200}, False, UnexpectedResponseError, Outcome.UNKNOWN),
    "shape": Case({"kind": "shape", "status": 200}, False, UnexpectedResponseError, Outcome.UNKNOWN),
    "empty": Case({"kind": "status", "status": 200, "body": b""}, False, UnexpectedResponseError, Outcome.UNKNOWN),
    "redirect": Case({"kind": "redirect"}, False, RepoMovedError, Outcome.UNKNOWN),
    "429": Case(
        {"kind": "status", "status": 429, "headers": {"Retry-After": "3"}}, True, RateLimitedError, Outcome.NOT_APPLIED
    ),
    "408": Case({"kind": "status", "status": 408}, True, ProviderUnavailableError, Outcome.UNKNOWN),
    **{
        str(status): Case({"kind": "status", "status": status}, True, ProviderUnavailableError, Outcome.UNKNOWN)
        for status in (500, 502, 503, 504, 520, 524)
    },
    "501": Case({"kind": "status", "status": 501}, False, ProviderUnavailableError, Outcome.UNKNOWN),
    # GitLab relays its storage's failures as 400.
    "400 of the storage": Case(
        {"kind": "status", "status": 400, "body": b'{"message": "4:Deadline Exceeded"}'},
        True,
        ProviderUnavailableError,
        Outcome.UNKNOWN,
    ),
    "404 page": Case({"kind": "html", "status": 404}, False, UnexpectedResponseError, Outcome.UNKNOWN),
    "404 of the router": Case(
        {"kind": "status", "status": 404, "body": b'{"error": "404 Not Found"}'},
        False,
        UnexpectedResponseError,
        Outcome.UNKNOWN,
    ),
    "502 page": Case({"kind": "html", "status": 502}, True, ProviderUnavailableError, Outcome.UNKNOWN),
}


def inject(world: World, case: Case, where: tuple[str, str], **known: Any) -> None:
    method, endpoint = where
    world.fault(**case.fault, method=method, endpoint=endpoint, **known)


def attempts(world: World, where: tuple[str, str]) -> int:
    method, endpoint = where
    return sum(
        entry.method == method and bool(re.search(endpoint, entry.endpoint)) for entry in world.request_log.entries
    )


@pytest.mark.parametrize("operation", READS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_read_survives_what_passes_and_nothing_else(ready: World, operation: str, fault: str) -> None:
    """Three failures are ridden out; what is no passing failure is told at once."""
    case = FAULTS[fault]
    ready.fault(**case.fault, times=3)

    if case.retried:
        READS[operation](ready.provider(), ready)
        assert len(ready.request_log) == 4
        return
    with pytest.raises(case.error) as caught:
        READS[operation](ready.provider(), ready)
    # A moved repository is looked up once, to say where it is.
    assert len(ready.request_log) == (2 if case.error is RepoMovedError else 1)
    assert caught.value.attempts == 1


@pytest.mark.parametrize("operation", READS)
@pytest.mark.parametrize("fault", [name for name, case in FAULTS.items() if case.retried])
def test_a_read_gives_up_after_four_tries(ready: World, operation: str, fault: str) -> None:
    """The last error is raised, and says how often it was tried."""
    case = FAULTS[fault]
    ready.fault(**case.fault, times=None)

    with pytest.raises(case.error) as caught:
        READS[operation](ready.provider(), ready)

    assert len(ready.request_log) == caught.value.attempts == 4
    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert caught.value.retryable


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("operation", MUTATIONS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_mutation_s_effect_step_is_sent_once(ready: World, operation: str, fault: str, when: str) -> None:
    """Whether the host had taken it or not: once, and the outcome does not claim more than is known."""
    case, mutation = FAULTS[fault], MUTATIONS[operation]
    inject(ready, case, mutation.effect, when=when, times=None)
    before = ready.snapshot()

    with pytest.raises(GitProviderError) as caught:
        mutation.call(ready.provider(), ready)

    error = caught.value
    assert (ready.snapshot() == before) is (when == "before")
    assert attempts(ready, mutation.effect) == 1
    assert isinstance(error, case.error)
    assert error.outcome is case.outcome
    assert error.retryable is (case.outcome is Outcome.NOT_APPLIED and error.transient)
    assert error.intent is not None
    assert error.intent.sent_at is not None
    assert (error.operation, error.provider, error.completed) == (operation, "gitlab", ())


@pytest.mark.parametrize("operation", MUTATIONS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_read_inside_a_mutation_stops_it_before_the_effect(ready: World, operation: str, fault: str) -> None:
    """It is not retried, and nothing was applied: the whole call can be made again."""
    case, mutation = FAULTS[fault], MUTATIONS[operation]
    for where in mutation.reads:
        ready.script.clear()
        ready.request_log.clear()
        inject(ready, case, where, times=None)
        before = ready.snapshot()

        with pytest.raises(GitProviderError) as caught:
            mutation.call(ready.provider(), ready)

        assert ready.snapshot() == before
        assert attempts(ready, mutation.effect) == 0
        # A moved repository is looked up, which for a project's own endpoint is the same one.
        assert attempts(ready, where) <= (2 if case.error is RepoMovedError else 1)
        assert caught.value.outcome is Outcome.NOT_APPLIED
        assert caught.value.attempts == 1
        assert caught.value.intent is not None
        assert caught.value.intent.sent_at is None


@pytest.mark.parametrize("operation", MUTATIONS)
def test_nothing_fails_without_a_fault(ready: World, operation: str) -> None:
    """The matrix above stands on calls that succeed, with one mutation each."""
    mutation = MUTATIONS[operation]

    mutation.call(ready.provider(), ready)

    assert attempts(ready, mutation.effect) == 1
    assert len(ready.mutations) == 1


def test_only_the_page_that_failed_is_read_again(world: World) -> None:
    """The pages before it are kept, and the waits of all pages share one budget."""
    for number in range(250):
        world.branch(f"b{number:03}")
    world.fault("status", endpoint="/branches$", nth=2, times=2, status=502)

    assert len(world.provider().list_branches(REPO)) == 251

    assert [entry.query["page"] for entry in world.request_log.entries] == ["1", "2", "2", "2", "3"]


def test_a_short_page_before_the_last_is_an_error(world: World) -> None:
    """A list with a hole would be taken for the whole."""
    for number in range(150):
        world.branch(f"b{number:03}")
    world.fault(
        "status", endpoint="/branches$", status=200, body=b"[]", headers={"X-Next-Page": "2", "X-Per-Page": "100"}
    )

    with pytest.raises(UnexpectedResponseError, match="items would be missing"):
        world.provider().list_branches(REPO)
