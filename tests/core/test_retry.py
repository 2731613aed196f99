"""The retry loop: bounds, the host's wait, budgets, cancellation. The clock, the sleep and the dice are injected."""

import math
import pathlib
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitprovider.errors import InvalidRequestError, NotFoundError, ProviderUnavailableError, RetryCancelledError
from gitprovider.retry import Retrier, RetryOptions, cancel_on, parse_retry_after, with_retry


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def options(self, **changes: Any) -> RetryOptions:
        known: dict[str, Any] = {"sleep": self.sleep, "clock": lambda: self.now, "random": lambda a, b: b}
        return RetryOptions(**{**known, **changes})


class Flaky:
    """Fails as often as it was told, then returns how often it was called."""

    def __init__(self, failures: int = 10**9, **known: Any) -> None:
        self.failures = failures
        self.known = known
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        if self.calls <= self.failures:
            raise ProviderUnavailableError(f"failure {self.calls}", **self.known)
        return self.calls


def always(error: Exception) -> bool:
    return True


def test_the_defaults_are_the_policy() -> None:
    """adr/0003: four attempts, 0.25 s, 4 s, a host's wait up to 60 s, 90 s in all, reported beyond."""
    options = RetryOptions()

    assert (options.max_attempts, options.base_delay, options.max_delay) == (4, 0.25, 4.0)
    assert (options.max_retry_after, options.max_total_wait) == (60.0, 90.0)
    assert (options.on_excessive_retry_after, options.deadline) == ("raise", None)


@given(
    st.integers(1, 40), st.floats(0, 10), st.floats(0, 100), st.floats(0, 1), st.one_of(st.none(), st.floats(0, 200))
)
def test_every_wait_is_within_its_bounds(attempts: int, base: float, cap: float, dice: float, asked: Any) -> None:
    """Full Jitter stays in [0, min(cap, base * 2**n)], the host's wait is never undercut, and the total is capped."""
    clock = Clock()
    options = clock.options(
        max_attempts=attempts, base_delay=base, max_delay=cap, random=lambda a, b: a + dice * (b - a)
    )
    flaky = Flaky(retry_after=asked)

    with pytest.raises(ProviderUnavailableError) as caught:
        with_retry(flaky, options, should_retry=always)

    assert caught.value.attempts == flaky.calls == len(clock.slept) + 1 <= attempts
    assert sum(clock.slept) <= options.max_total_wait
    for n, slept in enumerate(clock.slept):
        if asked is None:
            assert 0 <= slept <= min(cap, base * 2**n)
        else:
            assert asked <= slept <= asked + 1
            assert asked <= options.max_retry_after


@given(st.integers(0, 10**6))
def test_backoff_does_not_overflow(attempt: int) -> None:
    """Attempt 5000 and beyond wait the cap; ``2.0 ** 1024`` would be an OverflowError."""
    assert RetryOptions(random=lambda a, b: b).backoff(attempt) <= 4.0


def test_a_success_after_failures_is_returned() -> None:
    """Three failures, then an answer: four calls, three waits that double."""
    clock = Clock()

    assert with_retry(Flaky(3), clock.options(), should_retry=always) == 4
    assert clock.slept == [0.25, 0.5, 1.0]


def test_one_attempt_never_sleeps() -> None:
    """``max_attempts=1`` turns retrying off."""
    clock = Clock()

    with pytest.raises(ProviderUnavailableError, match="failure 1"):
        with_retry(Flaky(), clock.options(max_attempts=1), should_retry=always)

    assert clock.slept == []


def test_a_refused_error_passes_through_untouched() -> None:
    """What ``should_retry`` refuses is raised as the very same object, on the first try."""
    clock = Clock()
    error = NotFoundError("none", repo="a/b")

    def fail() -> None:
        raise error

    with pytest.raises(NotFoundError) as caught:
        with_retry(fail, clock.options(), should_retry=lambda e: not isinstance(e, NotFoundError))

    assert caught.value is error
    assert error.attempts == 1
    assert clock.slept == []


def test_a_foreign_error_is_retried_without_being_marked() -> None:
    """The loop knows no host: any exception may be worth another try."""
    clock = Clock()
    empty: dict[str, str] = {}
    answers: list[Callable[[], str]] = [lambda: empty["x"], lambda: "ok"]

    assert with_retry(lambda: answers.pop(0)(), clock.options(), should_retry=always) == "ok"


def test_an_interrupt_is_never_retried() -> None:
    """Ctrl+C during a try ends the loop, even when everything is said to be retryable."""
    calls = []

    def interrupted() -> None:
        calls.append(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_retry(interrupted, Clock().options(), should_retry=always)

    assert len(calls) == 1


def test_a_longer_wait_than_allowed_stops_at_once_and_is_reported() -> None:
    """The host asks for 61 s: no wait, one call, and the error says how long was asked."""
    clock = Clock()
    flaky = Flaky(retry_after=61.0)

    with pytest.raises(ProviderUnavailableError) as caught:
        with_retry(flaky, clock.options(), should_retry=always)

    assert (flaky.calls, clock.slept, caught.value.retry_after) == (1, [], 61.0)


def test_a_longer_wait_is_capped_when_asked_to() -> None:
    """``"cap"`` waits the cap and tries again."""
    clock = Clock()
    options = clock.options(on_excessive_retry_after="cap", max_retry_after=20.0)

    assert with_retry(Flaky(1, retry_after=3600.0), options, should_retry=always) == 2
    assert clock.slept == [20.0]


@pytest.mark.parametrize("junk", [-1.0, math.nan, "12", True, None])
def test_a_wait_that_is_junk_counts_as_absent(junk: Any) -> None:
    """Jitter is used instead; a negative number must not become ``sleep(-1)``."""
    clock = Clock()

    with_retry(Flaky(1, retry_after=junk), clock.options(), should_retry=always)

    assert clock.slept == [0.25]


def test_the_total_wait_is_shared_by_all_calls_of_a_retrier() -> None:
    """The pages of one listing share one budget: 90 s an operation, not 90 s a page."""
    clock = Clock()
    retrier = Retrier[int](clock.options(max_total_wait=50.0), should_retry=always)

    assert retrier(Flaky(1, retry_after=30.0)) == 2
    with pytest.raises(ProviderUnavailableError):
        retrier(Flaky(1, retry_after=30.0))

    assert clock.slept == [31.0]


def test_no_wait_ends_after_the_deadline() -> None:
    """A wait that would end too late is not begun."""
    clock = Clock()

    with pytest.raises(ProviderUnavailableError) as caught:
        with_retry(Flaky(retry_after=4.0), clock.options(deadline=12.0), should_retry=always)

    assert clock.slept == [5.0, 5.0]
    assert caught.value.attempts == 3


def test_on_retry_is_told_before_each_wait() -> None:
    """A service can report: which attempt failed, how long it waits, and why."""
    told: list[tuple[int, float, str]] = []
    options = Clock().options(on_retry=lambda attempt, delay, error: told.append((attempt, delay, str(error))))

    with_retry(Flaky(2), options, should_retry=always)

    assert told == [(1, 0.25, "failure 1"), (2, 0.5, "failure 2 (tried 2 times)")]


def test_each_attempt_opens_its_file_anew(tmp_path: pathlib.Path) -> None:
    """A body that was half read by a failed try is read from its beginning by the next."""
    file = tmp_path / "body"
    file.write_bytes(b"0123456789")
    seen: list[bytes] = []

    def upload() -> bytes:
        with file.open("rb") as body:
            seen.append(body.read(4))
            if len(seen) < 3:
                raise ProviderUnavailableError("reset")
            return seen[-1] + body.read()

    assert with_retry(upload, Clock().options(), should_retry=always) == b"0123456789"
    assert seen == [b"0123", b"0123", b"0123"]


def test_cancelling_ends_a_wait() -> None:
    """The event is set during a wait: no further try, and the cause is the last failure."""
    event = threading.Event()
    clock = Clock()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        event.set()

    flaky = Flaky(provider="github", operation="get_repo", repo="a/b")
    with cancel_on(event), pytest.raises(RetryCancelledError) as caught:
        with_retry(flaky, clock.options(sleep=sleep), should_retry=always)

    assert flaky.calls == 1
    assert isinstance(caught.value.__cause__, ProviderUnavailableError)
    assert (caught.value.provider, caught.value.repo, caught.value.attempts) == ("github", "a/b", 1)


def test_cancelling_wakes_a_real_wait_at_once() -> None:
    """Without an injected sleep the wait is the event's own, so a set event ends an hour's wait."""
    event = threading.Event()
    waiting = threading.Event()
    ended: list[BaseException] = []

    def fail() -> None:
        waiting.set()
        raise ProviderUnavailableError("down", retry_after=3600.0)

    def work() -> None:
        with cancel_on(event):
            try:
                with_retry(fail, RetryOptions(max_retry_after=4000, max_total_wait=4000), should_retry=always)
            except RetryCancelledError as error:
                ended.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert waiting.wait(10)
    event.set()
    thread.join(10)

    assert len(ended) == 1


def test_a_cancelled_event_counts_in_its_block_alone() -> None:
    """The event is a context variable: after the block, and in other threads, nothing is cancelled."""
    event = threading.Event()
    event.set()
    clock = Clock()

    with cancel_on(event):
        pass

    assert with_retry(Flaky(1), clock.options(), should_retry=always) == 2


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 5 ", 5.0),
        ("0", 0.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("Wed, 21 Oct 2026 07:28:30 GMT", 30.0),
        ("Wednesday, 21-Oct-26 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2026 07:00:00 GMT", 0.0),
        ("-1", None),
        ("", None),
        ("  ", None),
        ("NaN", None),
        ("inf", None),
        ("1e9", None),
        ("soon", None),
        ("1_000", None),
        ("٣", None),
        ("Wed, 99 Oct 2026 07:28:00 GMT", None),
        (None, None),
    ],
)
def test_retry_after_in_all_its_forms(value: str | None, seconds: float | None) -> None:
    """Integers, decimals and dates are understood, a date against the answer's own Date; junk is absent."""
    assert parse_retry_after(value, date="Wed, 21 Oct 2026 07:28:00 GMT") == seconds


def test_a_date_without_a_date_header_is_read_against_the_clock() -> None:
    """When the host sends no usable Date, the present has to do."""
    now = datetime(2026, 10, 21, 7, 28, tzinfo=UTC)

    for date in (None, "junk"):
        assert parse_retry_after("Wed, 21 Oct 2026 07:28:30 GMT", date=date, now=now) == 30.0


@given(st.text(max_size=30))
def test_no_header_raises(value: str) -> None:
    """Whatever a host or proxy writes there, the answer is a usable number or None."""
    seconds = parse_retry_after(value, date=value)

    assert seconds is None or (math.isfinite(seconds) and seconds >= 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_attempts": 0},
        {"max_attempts": True},
        {"max_attempts": 2.5},
        {"base_delay": -1},
        {"max_delay": math.nan},
        {"max_retry_after": math.inf},
        {"max_total_wait": "9"},
        {"deadline": -0.1},
        {"on_excessive_retry_after": "ignore"},
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    """An option that cannot mean anything is refused when it is made, naming it."""
    with pytest.raises(InvalidRequestError) as caught:
        RetryOptions(**wrong)

    assert caught.value.argument == next(iter(wrong))
