"""python-gitlab's own retry: what it does as it ships, what this library turns off, and what comes back when asked.

These tests are what adr/0003, adr/0008 and the README say, with the numbers. A release of python-gitlab that changes
its ways turns one of them red.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import gitlab
import pytest
import requests
import responses

from gitprovider.errors import Outcome, ProviderUnavailableError, RateLimitedError
from gitprovider.gitlab import GitLabProvider
from gitprovider.retry import deadline
from tests.support.gitlab_world import REPO, TOKEN, URL, FakeTime

PROJECTS = f"{URL}/api/v4/projects"
PROJECT = f"{PROJECTS}/acme%2Fplatform%2Fwidgets"
BRANCHES = f"{PROJECT}/repository/branches"
SHA = "1" * 40
HTTP_DATE = {"Date": "Wed, 21 Oct 2026 07:28:00 GMT", "Retry-After": "Wed, 21 Oct 2026 07:28:30 GMT"}
# The application's own limiter refuses, and the other limiter's headers are there too, with plenty left.
APPLICATION = {"Retry-After": "9", "RateLimit-Remaining": "1873", "RateLimit-Reset": "4102444800"}


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What python-gitlab sleeps, by time.sleep."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


@pytest.fixture
def clock() -> FakeTime:
    return FakeTime()


@pytest.fixture
def make(clock: FakeTime) -> Callable[..., GitLabProvider]:
    return lambda **options: GitLabProvider(private_token=TOKEN, retry=clock.retry(), **options)


def posts(rsps: responses.RequestsMock) -> int:
    return sum(call.request.method == "POST" for call in rsps.calls)


# As it ships


def test_python_gitlab_re_sends_a_post_on_429_ten_times(rsps: responses.RequestsMock, naps: list[float]) -> None:
    """By default, and sleeps whatever Retry-After says each time."""
    rsps.post(PROJECTS, status=429, headers={"Retry-After": "600"})

    with pytest.raises(gitlab.GitlabCreateError):
        gitlab.Gitlab(URL, private_token=TOKEN).projects.create({"name": "x"})

    assert posts(rsps) == 11
    assert naps == [600] * 10


def test_python_gitlab_sends_a_post_again_that_is_then_taken(rsps: responses.RequestsMock, naps: list[float]) -> None:
    """The caller never hears of the 429."""
    rsps.post(PROJECTS, status=429, headers={"Retry-After": "1"})
    rsps.post(PROJECTS, status=201, json={"id": 7, "name": "x"})

    assert gitlab.Gitlab(URL, private_token=TOKEN).projects.create({"name": "x"}).id == 7

    assert posts(rsps) == 2


@pytest.mark.pitfall("GL-X-05")
def test_python_gitlab_dies_of_an_http_date(rsps: responses.RequestsMock, naps: list[float]) -> None:
    """RFC 9110 allows the form; int() does not."""
    rsps.post(PROJECTS, status=429, headers=HTTP_DATE)

    with pytest.raises(ValueError, match="invalid literal for int"):
        gitlab.Gitlab(URL, private_token=TOKEN).projects.create({"name": "x"})


@pytest.mark.pitfall("GL-X-12")
@pytest.mark.parametrize("status", [500, 502, 503, 504, 520])
def test_python_gitlab_re_sends_a_post_on_5xx_when_asked_to(
    rsps: responses.RequestsMock, naps: list[float], status: int
) -> None:
    """retry_transient_errors is one flag for every verb; by default it is off."""
    rsps.post(PROJECTS, status=status)
    client = gitlab.Gitlab(URL, private_token=TOKEN, retry_transient_errors=True)

    with pytest.raises(gitlab.GitlabCreateError):
        client.projects.create({"name": "x"})
    with pytest.raises(gitlab.GitlabCreateError):
        gitlab.Gitlab(URL, private_token=TOKEN).projects.create({"name": "x"})

    assert posts(rsps) == 11 + 1


def test_python_gitlab_re_sends_a_post_after_a_timeout_when_asked_to(
    rsps: responses.RequestsMock, naps: list[float]
) -> None:
    """Whether or not the host had taken it."""
    rsps.post(PROJECTS, body=requests.ReadTimeout("read timed out"))
    rsps.post(PROJECTS, status=201, json={"id": 7})

    gitlab.Gitlab(URL, private_token=TOKEN, retry_transient_errors=True).projects.create({"name": "x"})

    assert posts(rsps) == 2


def test_python_gitlab_takes_the_token_to_another_host(rsps: responses.RequestsMock) -> None:
    """A redirect, or the link to the next page, decides where the PRIVATE-TOKEN goes."""
    rsps.get(f"{URL}/api/v4/version", status=302, headers={"Location": "https://elsewhere.invalid/"})
    rsps.get("https://elsewhere.invalid/", json={})

    gitlab.Gitlab(URL, private_token=TOKEN).http_get("/version")

    assert rsps.calls[-1].request.headers["PRIVATE-TOKEN"] == TOKEN


@pytest.mark.pitfall("GL-X-04")
def test_python_gitlab_has_no_timeout(rsps: responses.RequestsMock) -> None:
    """A half-open connection is waited for forever."""
    rsps.get(f"{URL}/api/v4/version", json={})

    gitlab.Gitlab(URL, private_token=TOKEN).http_get("/version")

    assert rsps.calls[-1].request.req_kwargs["timeout"] is None  # type: ignore[attr-defined]  # added by responses


# Ours


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "0"}, {"Retry-After": "600"}, HTTP_DATE, APPLICATION])
def test_a_429_on_a_mutation_is_one_request(
    rsps: responses.RequestsMock,
    naps: list[float],
    make: Callable[..., GitLabProvider],
    clock: FakeTime,
    headers: dict[str, str],
) -> None:
    """Neither layer repeats it, and neither waits."""
    rsps.post(BRANCHES, status=429, headers=headers)

    with pytest.raises(RateLimitedError) as caught:
        make().create_branch(REPO, "feature", source=SHA)

    assert posts(rsps) == 1
    assert (naps, clock.slept) == ([], [])
    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert caught.value.retryable


@pytest.mark.parametrize("status", [500, 502, 503, 504, 520, 408])
def test_a_5xx_on_a_mutation_is_one_request_at_both_layers(
    rsps: responses.RequestsMock, naps: list[float], make: Callable[..., GitLabProvider], clock: FakeTime, status: int
) -> None:
    """And whether it was taken is UNKNOWN; with python-gitlab's 429 back it is no different."""
    rsps.post(BRANCHES, status=status)

    for provider in (make(), make(obey_rate_limit=True)):
        with pytest.raises(ProviderUnavailableError) as caught:
            provider.create_branch(REPO, "feature", source=SHA)
        assert caught.value.outcome is Outcome.UNKNOWN
        assert not caught.value.retryable

    assert posts(rsps) == 2
    assert (naps, clock.slept) == ([], [])


@pytest.mark.pitfall("GL-X-05")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (HTTP_DATE, 30.0),
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "2.5"}, 2.5),
        (APPLICATION, 9.0),
        ({"Retry-After": "junk"}, None),
        (
            {
                "RateLimit-Remaining": "0",
                "RateLimit-Reset": "1700000042",
                "Date": "Tue, 14 Nov 2023 22:13:20 GMT",
            },
            42.0,
        ),
        ({"RateLimit-Remaining": "0", "RateLimit-Reset": "9" * 15}, None),
        ({"RateLimit-Remaining": "0", "RateLimit-Reset": "soon"}, None),
        (
            {
                "RateLimit-Remaining": "0",
                "RateLimit-Reset": "253402300800",
                "Date": "Tue, 14 Nov 2023 22:13:20 GMT",
            },
            251702300800.0,  # after the year 9999, which no calendar of Python's has
        ),
        (
            {
                "RateLimit-Remaining": "1873",
                "RateLimit-Reset": "1700000042",
                "Date": "Tue, 14 Nov 2023 22:13:20 GMT",
            },
            None,
        ),
    ],
)
def test_the_wait_that_was_asked_for_is_understood(
    rsps: responses.RequestsMock, make: Callable[..., GitLabProvider], headers: dict[str, str], seconds: float | None
) -> None:
    """Every form of Retry-After; RateLimit-Reset only where nothing is left."""
    rsps.post(BRANCHES, status=429, headers=headers)

    with pytest.raises(RateLimitedError) as caught:
        make().create_branch(REPO, "feature", source=SHA)

    assert caught.value.retry_after == seconds


def test_a_read_waits_for_an_http_date_and_is_tried_again(
    rsps: responses.RequestsMock, make: Callable[..., GitLabProvider], clock: FakeTime, naps: list[float]
) -> None:
    """At our layer alone: what was asked, and at most a second more."""
    rsps.get(BRANCHES, status=429, headers=HTTP_DATE)
    rsps.get(BRANCHES, json=[])

    assert make().list_branches(REPO) == []

    assert clock.slept == [31.0]
    assert naps == []


# With the option


def test_with_the_option_a_mutation_is_re_sent_and_nothing_is_on_top(
    rsps: responses.RequestsMock, naps: list[float], make: Callable[..., GitLabProvider], clock: FakeTime
) -> None:
    """python-gitlab's ten repeats, its own sleeps, and then one error."""
    rsps.post(BRANCHES, status=429, headers={"Retry-After": "3"})

    with pytest.raises(RateLimitedError) as caught:
        make(obey_rate_limit=True).create_branch(REPO, "feature", source=SHA)

    assert posts(rsps) == 11
    assert (naps, clock.slept) == ([3] * 10, [])
    assert caught.value.attempts == 1


def test_with_the_option_and_a_deadline_nothing_is_repeated(
    rsps: responses.RequestsMock, naps: list[float], make: Callable[..., GitLabProvider]
) -> None:
    """If this fails, python-gitlab sleeps past the caller's deadline."""
    rsps.post(BRANCHES, status=429, headers={"Retry-After": "3"})

    with deadline(60), pytest.raises(RateLimitedError):
        make(obey_rate_limit=True).create_branch(REPO, "feature", source=SHA)

    assert posts(rsps) == 1
    assert naps == []


def test_with_the_option_a_read_is_left_to_python_gitlab(
    rsps: responses.RequestsMock, naps: list[float], make: Callable[..., GitLabProvider], clock: FakeTime
) -> None:
    """Eleven requests, not forty-four; a 5xx of a read is still ours."""
    rsps.get(PROJECT, status=429, headers={"Retry-After": "3"})
    with pytest.raises(RateLimitedError):
        make(obey_rate_limit=True).get_repo(REPO)
    assert (len(rsps.calls), clock.slept) == (11, [])

    rsps.replace(responses.GET, PROJECT, status=502)
    with pytest.raises(ProviderUnavailableError):
        make(obey_rate_limit=True).get_repo(REPO)

    assert len(rsps.calls) == 11 + 4


@pytest.mark.parametrize(
    ("headers", "slept"),
    [(HTTP_DATE, 30), ({"Retry-After": "2.5"}, 3), ({"Retry-After": "junk", "RateLimit-Reset": "soon"}, 0.1)],
)
def test_with_the_option_no_form_of_the_header_is_deadly(
    rsps: responses.RequestsMock,
    naps: list[float],
    make: Callable[..., GitLabProvider],
    headers: dict[str, str],
    slept: float,
) -> None:
    """What python-gitlab cannot read is made readable on the way."""
    rsps.get(BRANCHES, status=429, headers=headers)
    rsps.get(BRANCHES, json=[])

    assert make(obey_rate_limit=True).list_branches(REPO) == []

    assert naps == [slept]
