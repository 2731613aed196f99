"""Reads under faults: they survive what passes, ask for a page four times at most, and say what they were told."""

from __future__ import annotations

import pytest

from gitprovider import (
    AuthenticationError,
    GitProviderError,
    NotFoundError,
    PermissionDeniedError,
    ProviderUnavailableError,
    RateLimitedError,
    RetryOptions,
    UnexpectedResponseError,
)
from gitprovider.events import Event, RetryEvent
from gitprovider.fakes.faults import Fault
from tests.github.hub import REPO, Hub
from tests.github.test_faults import FAULTS, Broken

PASSING = {name: fault for name, fault in FAULTS.items() if name not in ("html", "wrong shape", "307")}
LASTING = {name: fault for name, fault in PASSING.items() if not name.startswith(("429", "403"))}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_passing_fault_costs_one_more_request(hub: Hub, fault: Broken) -> None:
    """A repository is read all the same, after one wait."""
    hub.given_fault(fault.at(1, "before", 1))

    repo = hub.provider.get_repo(REPO)

    assert repo.path == REPO
    assert (len(hub.sent), len(hub.waits)) == (2, 1)


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_failing_page_is_repeated_alone(hub: Hub, fault: Broken) -> None:
    """The third page fails, and the first two are not asked for again."""
    for number in range(300):
        hub.given_branch(f"b{number:03}")
    hub.given_fault(fault.at(3, "before", 1))

    listed = hub.provider.list_branches(REPO)

    assert [branch.name for branch in listed] == sorted(name for name, _ in hub.forge.branches(REPO))
    assert [entry.query["page"] for entry in hub.sent] == ["1", "2", "3", "3", "4"]


@pytest.mark.parametrize("fault", LASTING.values(), ids=LASTING)
def test_a_lasting_fault_ends_after_four_attempts(hub: Hub, fault: Broken) -> None:
    """The error is the last one, and tells how often was tried."""
    hub.given_fault(fault.at(1, "before", None))

    with pytest.raises(ProviderUnavailableError if fault.kind != "cut" else GitProviderError) as caught:
        hub.provider.get_repo(REPO)

    assert caught.value.attempts == 4
    assert (len(hub.sent), len(hub.waits)) == (4, 3)


@pytest.mark.parametrize(
    ("headers", "waits", "asked"),
    [
        ({"Retry-After": "7"}, [7, 7, 7], 7),
        ({"Retry-After": "61"}, [], 61),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1000000030", "Date": "Sun, 09 Sep 2001 01:46:40 GMT"},
         [31, 31], 31),
        ({"Retry-After": "Sun, 09 Sep 2001 01:46:45 GMT", "Date": "Sun, 09 Sep 2001 01:46:40 GMT"}, [5, 5, 5], 5),
        ({"X-RateLimit-Remaining": "4900"}, [60], 60),
    ],
    ids=["Retry-After", "longer than honoured", "the reset of the primary limit", "an HTTP-date", "a secondary limit"],
)  # fmt: skip
@pytest.mark.parametrize("status", [403, 429])
def test_a_limit_is_waited_for_as_long_as_it_asks(
    hub: Hub, status: int, headers: dict[str, str], waits: list[int], asked: float
) -> None:
    """By Retry-After, by the reset against the host's own clock, or a minute; beyond the budget it is reported."""
    body = b'{"message": "API rate limit exceeded for user ID 1."}'
    hub.given_fault(Fault(kind="status", status=status, headers=headers, body=body, times=None))

    with pytest.raises(RateLimitedError) as caught:
        hub.provider.get_repo(REPO)

    assert caught.value.retry_after == asked
    assert caught.value.attempts == len(waits) + 1
    assert [int(seconds) for seconds in hub.waits] == waits


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, b'{"message": "Requires authentication"}', AuthenticationError),
        (403, b'{"message": "Resource not accessible by personal access token"}', PermissionDeniedError),
        (404, b'{"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}', NotFoundError),
        (404, b"<html>Not Found</html>", UnexpectedResponseError),
        (451, b'{"message": "Repository access blocked", "block": {"reason": "dmca"}}', PermissionDeniedError),
        (200, b"<html>Sign in</html>", UnexpectedResponseError),
        (200, b"null", UnexpectedResponseError),
        (200, b'"text"', UnexpectedResponseError),
        (200, b"", UnexpectedResponseError),
        (200, b'{"id": 1}', UnexpectedResponseError),
        (200, b"[" * 100_000, UnexpectedResponseError),
    ],
)
def test_what_does_not_pass_is_not_repeated(hub: Hub, status: int, body: bytes, kind: type[GitProviderError]) -> None:
    """A refusal, and an answer that is no repository, is an error at once (JSON that breaks off is tried again)."""
    hub.given_fault(Fault(kind="status", status=status, body=body, times=None))

    with pytest.raises(kind) as caught:
        hub.provider.get_repo(REPO)

    assert len(hub.sent) == (4 if body.startswith(b"[") else 1)
    assert caught.value.status == status


@pytest.mark.parametrize("body", [b'{"name": "main"}', b"null", b'"text"', b'[{"name": "main"}]', b"[1]", b"[null]"])
def test_a_page_that_is_no_list_of_branches_is_an_error(hub: Hub, body: bytes) -> None:
    """Never a shorter list, and never a branch without a head."""
    hub.given_fault(Fault(kind="status", status=200, body=body, times=None))

    with pytest.raises(UnexpectedResponseError):
        hub.provider.list_branches(REPO)


def test_a_short_page_before_the_last_is_an_error(hub: Hub) -> None:
    """The list would have a hole: GitHub says that more follow, and the page is not full."""
    link = '<https://api.github.com/repositories/1/branches?page=2>; rel="next"'
    hub.given_fault(Fault(kind="status", status=200, body=b"[]", headers={"Link": link}))

    with pytest.raises(UnexpectedResponseError) as caught:
        hub.provider.list_branches(REPO)

    assert caught.value.operation == "list_branches"
    assert len(hub.sent) == 1


def test_every_wait_is_told(hub: Hub) -> None:
    """One event a wait, with the attempt that failed and the error."""
    events: list[Event] = []
    hub.given_fault(Fault(kind="status", status=502, times=2))

    with hub.connect(on_event=events.append) as provider:
        provider.get_repo(REPO)

    told = [event for event in events if isinstance(event, RetryEvent)]
    assert [(event.attempt, event.error) for event in told] == [
        (1, "ProviderUnavailableError"),
        (2, "ProviderUnavailableError"),
    ]


def test_a_202_that_never_ends_is_an_error(hub: Hub) -> None:
    """PyGithub would sleep and ask again without end."""
    hub.given_fault(Fault(kind="status", status=202, body=b"{}", times=None))

    with pytest.raises(ProviderUnavailableError) as caught:
        hub.provider.get_repo(REPO)

    assert (caught.value.status, caught.value.attempts, len(hub.sent)) == (202, 4, 4)


def test_looks_are_not_retried(hub: Hub) -> None:
    """The reads of HostState end with the first failure: who looks after one decides how long."""
    hub.given_fault(Fault(kind="status", status=503, times=None))

    with pytest.raises(ProviderUnavailableError):
        hub.provider.head(REPO, "main")

    assert (len(hub.sent), hub.waits) == (1, [])


def test_retrying_can_be_turned_off(hub: Hub) -> None:
    """One attempt is one request."""
    hub.given_fault(Fault(kind="status", status=503, times=None))

    with hub.connect(retry=RetryOptions(max_attempts=1)) as provider, pytest.raises(ProviderUnavailableError):
        provider.get_repo(REPO)

    assert len(hub.sent) == 1
