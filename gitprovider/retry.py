"""Retry for reads, and limits on waits and responses. Nothing here depends on a host (adr/0003, adr/0018).

:func:`with_retry` retries one call. :class:`Retrier` is the same loop with one wait budget for several calls, such as
the pages of a listing. :class:`Limits` are those of a provider, and :func:`deadline` bounds the calls in one block.
"""

from __future__ import annotations

import contextvars
import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, Literal, Protocol, TypeVar

from gitprovider import checks
from gitprovider.checks import refuse
from gitprovider.errors import GitProviderError, RetryCancelledError

_T = TypeVar("_T")
_MAX_EXPONENT = 62  # 2**62 seconds is longer than any cap; beyond it a float would overflow at attempt 1024.


class CancelEvent(Protocol):
    """The event that :func:`cancel_on` takes, such as a ``threading.Event``."""

    def is_set(self) -> bool:
        """Report whether the event is set."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the event is set, but at most ``timeout`` seconds."""
        ...


def _uniform(a: float, b: float) -> float:
    import random  # loaded at the first failure, as email.utils below: most processes see none

    return random.uniform(a, b)  # noqa: S311 - jitter, not a secret


_cancel: contextvars.ContextVar[CancelEvent | None] = contextvars.ContextVar("gitprovider_cancel", default=None)


@contextmanager
def cancel_on(event: CancelEvent) -> Iterator[None]:
    """Within the block, setting ``event`` ends a wait between two attempts at once, with RetryCancelledError.

    The event is kept in a context variable, so it applies only to this thread or task. A running attempt is not
    interrupted. The event is checked again before the next attempt, and before a mutation begins.
    """
    token = _cancel.set(event)
    try:
        yield
    finally:
        _cancel.reset(token)


def check_cancelled() -> None:
    """Raise RetryCancelledError if the event of :func:`cancel_on` is set."""
    event = _cancel.get()
    if event is not None and event.is_set():
        raise RetryCancelledError("the call was cancelled")


def wait(seconds: float, sleep: Callable[[float], None] | None = None) -> None:
    """Wait ``seconds``, or until the event of :func:`cancel_on` is set.

    Raises:
        RetryCancelledError: the event was set before or during the wait, or the wait would end after the deadline of
            :func:`gitprovider.deadline`.
    """
    left = seconds_left()
    if left is not None and seconds > left:
        raise RetryCancelledError("the wait was cancelled: it would end after the deadline")
    event = _cancel.get()
    if event is None:
        (sleep or time.sleep)(seconds)
        return
    if not event.is_set():
        if sleep is None:
            event.wait(seconds)
        else:
            sleep(seconds)
    check_cancelled()


class PollDeadline:
    """The pauses between reads that poll a host, within a total time.

    Pauses double from ``first`` to ``longest`` seconds. Each pause is subtracted from the total time in full, even if
    the clock does not advance.

    Args:
        seconds: the total time.
        sleep: waits the given number of seconds; None is ``time.sleep``.
        clock: returns monotonic seconds.
        first, longest: the first and the longest pause in seconds.
    """

    def __init__(
        self,
        seconds: float,
        *,
        sleep: Callable[[float], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        first: float = 0.25,
        longest: float = 4.0,
    ) -> None:
        self._seconds = seconds
        self._sleep = sleep
        self._clock = clock
        self._pause = first
        self._longest = longest
        self._waited = 0.0
        self._started = clock()

    @property
    def left(self) -> float:
        """The remaining seconds; zero or less when the time is up. The deadline of a block ends it earlier."""
        own = self._seconds - max(self._waited, self._clock() - self._started)
        outer = seconds_left()
        return own if outer is None else min(own, outer)

    def next_pause(self) -> float:
        """Return the next pause in seconds. The one after it is twice as long, up to the longest."""
        pause, self._pause = self._pause, min(self._pause * 2, self._longest)
        return pause

    def wait(self, seconds: float) -> None:
        """Wait the given number of seconds.

        Raises:
            RetryCancelledError: the event of :func:`cancel_on` was set before or during the wait.
        """
        self._waited += seconds
        wait(seconds, self._sleep)

    def pause(self) -> bool:
        """Wait for the next pause or the remaining time, whichever is shorter. Return False if the time is up.

        Raises:
            RetryCancelledError: the event of :func:`cancel_on` was set before or during the wait.
        """
        if (left := self.left) <= 0:
            return False
        self.wait(min(self.next_pause(), left))
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOptions:
    """How often, and for how long, a read is attempted.

    Attributes:
        max_attempts: the number of attempts, including the first; 1 turns retrying off.
        base_delay, max_delay: seconds. The wait after attempt n is uniform in
            [0, min(max_delay, base_delay * 2**(n-1))].
        max_retry_after: the longest wait, in seconds, that is honoured if the host asks for one.
        on_excessive_retry_after: what to do if the host asks for a longer wait. ``"raise"`` stops at once and reports
            the wait. ``"cap"`` waits ``max_retry_after`` and retries.
        max_total_wait: the limit for the sum of all waits of one operation, in seconds.
        deadline: seconds after the operation's first attempt. No wait may end later; None for no deadline.
        on_retry: called as ``on_retry(attempt, delay, error)`` before each wait. ``attempt`` is the number of the
            failed attempt, from 1.
        sleep, random, clock: injectable. ``random(a, b)`` returns a uniform number, ``clock()`` returns monotonic
            seconds. ``sleep=None`` is ``time.sleep``, or the event's own wait inside :func:`cancel_on`.
    """

    max_attempts: int = 4
    base_delay: float = 0.25
    max_delay: float = 4.0
    max_retry_after: float = 60.0
    on_excessive_retry_after: Literal["raise", "cap"] = "raise"
    max_total_wait: float = 90.0
    deadline: float | None = None
    on_retry: Callable[[int, float, Exception], None] | None = None
    sleep: Callable[[float], None] | None = field(default=None, repr=False)
    random: Callable[[float, float], float] = field(default=_uniform, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    def __post_init__(self) -> None:
        for name in ("base_delay", "max_delay", "max_retry_after", "max_total_wait", "deadline"):
            if name != "deadline" or self.deadline is not None:
                checks.keep(self, **{name: checks.check_seconds(name, getattr(self, name))})
        for name in ("on_retry", "sleep", "random", "clock"):
            if name not in ("on_retry", "sleep") or getattr(self, name) is not None:
                checks.check_callable(name, getattr(self, name))
        excessive = checks.check_text("on_excessive_retry_after", self.on_excessive_retry_after)
        if excessive not in ("raise", "cap"):
            refuse("on_excessive_retry_after", 'must be "raise" or "cap"')
        checks.keep(
            self,
            max_attempts=checks.check_int("max_attempts", self.max_attempts, least=1),
            on_excessive_retry_after=excessive,
        )

    def backoff(self, attempt: int) -> float:
        """Return the wait after attempt ``attempt``, counted from 0, with full jitter."""
        ceiling = min(self.max_delay, self.base_delay * 2.0 ** min(attempt, _MAX_EXPONENT))
        return min(max(self.random(0.0, ceiling), 0.0), ceiling)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a remote host's response is read. Beyond a limit the read ends, with an error that names the limit.

    Attributes:
        max_body: the largest body of one response, in bytes after decompression.
        max_pages: the largest number of pages in one list. A page has up to 100 items.
        deadline: the longest time for one request, in seconds from its start to the last byte of its response; None
            for no limit. The provider's ``timeout`` limits each wait for the host instead, so a host that sends one
            byte at a time never exceeds it.
        clock: injectable; returns monotonic seconds.

    Raises:
        InvalidRequestError: a limit is wrong.
    """

    max_body: int = 64 * 1024 * 1024
    max_pages: int = 1000
    deadline: float | None = None
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    def __post_init__(self) -> None:
        checks.check_int("max_body", self.max_body, least=1)
        checks.check_int("max_pages", self.max_pages, least=1)
        if self.deadline is not None:
            checks.check_seconds("deadline", self.deadline, zero=False)


class Deadline:
    """A time limit that has begun.

    Attributes:
        name: what an error calls it.
    """

    def __init__(self, name: str, seconds: float, clock: Callable[[], float]) -> None:
        self.name = f"{name} of {seconds:g} seconds"
        self._clock = clock
        self._ends = clock() + seconds

    @property
    def left(self) -> float:
        """The remaining seconds; zero or less when the time is up."""
        return self._ends - self._clock()


_deadlines: contextvars.ContextVar[tuple[Deadline, ...]] = contextvars.ContextVar("gitprovider_deadlines", default=())


@contextmanager
def limited(limit: Deadline | None) -> Iterator[None]:
    """Apply ``limit`` within the block, besides those that apply already. None applies no further one."""
    token = _deadlines.set(_deadlines.get() if limit is None else (*_deadlines.get(), limit))
    try:
        yield
    finally:
        _deadlines.reset(token)


@contextmanager
def deadline(seconds: float, *, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Within the block, the calls of remote providers end ``seconds`` after its start, all of them together.

    After that time a request in flight is abandoned, and no other is sent: ProviderUnavailableError, with the outcome
    of the step. A wait between two attempts that would end later is not begun. Blocks can be nested, and the earliest
    deadline decides. It is kept in a context variable, so it applies only to this thread or task.

    The lookup of a host's name is the system's own call and cannot be interrupted. The local forge, which has no host
    to wait for, has its own ``timeout``.

    Args:
        seconds: the time for all calls in the block.
        clock: returns monotonic seconds.

    Raises:
        InvalidRequestError: ``seconds`` is not a finite number, or is negative.
    """
    with limited(Deadline("the deadline", checks.check_seconds("seconds", seconds), clock)):
        yield


def earliest_deadline() -> Deadline | None:
    """Return the deadline that ends first, or None if there is none."""
    return min(_deadlines.get(), key=lambda limit: limit.left, default=None)


def seconds_left() -> float | None:
    """Return the seconds until the earliest deadline, or None if there is none."""
    limit = earliest_deadline()
    return None if limit is None else limit.left


class WaitBudget:
    """The waits of one operation: their sum is at most ``max_total_wait``, and none ends after a deadline.

    The threads of an operation share it.
    """

    def __init__(self, options: RetryOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._waited = 0.0
        self._started: float | None = None

    def start(self) -> None:
        """Start the deadline, unless it has started."""
        if self._started is None:
            self._started = self._options.clock()

    @property
    def left(self) -> float:
        """The longest wait, in seconds, that is still allowed."""
        self.start()
        left = [self._options.max_total_wait - self._waited]
        if self._options.deadline is not None:
            left.append(self._options.deadline - (self._options.clock() - (self._started or 0.0)))
        if (in_block := seconds_left()) is not None:
            left.append(in_block)
        return min(left)

    def take(self, seconds: float) -> bool:
        """Count a wait if it is still allowed, and report whether it is."""
        with self._lock:
            if seconds > self.left:
                return False
            self._waited += seconds
            return True

    def wait(self, seconds: float) -> None:
        """Wait, after :meth:`take`.

        Raises:
            RetryCancelledError: the event of :func:`cancel_on` was set before or during the wait.
        """
        wait(seconds, self._options.sleep)


class Retrier(Generic[_T]):
    """The retry loop. Its wait budget and its deadline start at the first call and are shared by all calls.

    Args:
        budget: the waits of an operation that waits for other reasons as well. The default is a budget of its own.
        should_retry: reports whether an error is worth another attempt. Other errors are raised unchanged.
        retry_after: returns the seconds that the host asked to wait, or None. The default is the error's own
            ``retry_after``.
        before_wait: called with the same arguments as ``on_retry``, before it. It is for the provider's own use.
    """

    def __init__(
        self,
        options: RetryOptions | None = None,
        *,
        should_retry: Callable[[Exception], bool],
        retry_after: Callable[[Exception], float | None] | None = None,
        before_wait: Callable[[int, float, Exception], None] | None = None,
        budget: WaitBudget | None = None,
    ) -> None:
        self._options = options or RetryOptions()
        self._budget = budget or WaitBudget(self._options)
        self._should_retry = should_retry
        self._asked = retry_after or _own_retry_after
        self._before_wait = before_wait

    def __call__(self, fn: Callable[[], _T]) -> _T:
        """Call ``fn`` until it returns, and return its result.

        Raises:
            Exception: the last error of ``fn``. If it is a GitProviderError, ``attempts`` is set.
            RetryCancelledError: the wait before another attempt was cancelled. ``__cause__`` is the last error.
        """
        self._budget.start()
        attempt = 1
        while True:
            try:
                return fn()
            except Exception as exc:
                if not self._should_retry(exc):
                    raise
                delay = self._delay(attempt, exc)
                if isinstance(exc, GitProviderError):
                    exc.attempts = attempt
                if delay is None:
                    raise
                error = exc
            self._wait(attempt, delay, error)
            attempt += 1

    def _delay(self, attempt: int, error: Exception) -> float | None:
        """Return the wait before the next attempt, or None if there is no further attempt."""
        options = self._options
        if attempt >= options.max_attempts:
            return None
        asked = _seconds(self._asked(error))
        if asked is None:
            delay = options.backoff(attempt - 1)
        elif asked <= options.max_retry_after:
            delay = asked + min(max(options.random(0.0, 1.0), 0.0), 1.0)
        elif options.on_excessive_retry_after == "cap":
            delay = options.max_retry_after
        else:
            return None
        left = seconds_left()  # an attempt that would begin at the deadline itself is refused
        if left is not None and delay >= left:
            return None
        return delay if self._budget.take(delay) else None

    def _wait(self, attempt: int, delay: float, error: Exception) -> None:
        for callback in (self._before_wait, self._options.on_retry):
            if callback is not None:
                callback(attempt, delay, error)
        try:
            self._budget.wait(delay)
        except RetryCancelledError as cancelled:
            if isinstance(error, GitProviderError):
                for name in ("provider", "operation", "repo", "attempts", "retry_after", "failed_step"):
                    setattr(cancelled, name, getattr(error, name))
            raise cancelled from error


def with_retry(
    fn: Callable[[], _T],
    options: RetryOptions | None = None,
    *,
    should_retry: Callable[[Exception], bool],
    retry_after: Callable[[Exception], float | None] | None = None,
) -> _T:
    """Call ``fn`` until it returns, at most ``options.max_attempts`` times, and return its result.

    Only reads may be retried.

    Args:
        fn: the read. It must open whatever it needs at each call.
        should_retry: reports whether an error is worth another attempt. Other errors are raised unchanged.
        retry_after: returns the seconds that the host asked to wait, or None. The default is the error's own
            ``retry_after``.

    Raises:
        Exception: the last error of ``fn``. If it is a GitProviderError, ``attempts`` is set.
        RetryCancelledError: the wait before another attempt was cancelled. ``__cause__`` is the last error.
    """
    return Retrier[_T](options, should_retry=should_retry, retry_after=retry_after)(fn)


def _own_retry_after(error: Exception) -> float | None:
    value = getattr(error, "retry_after", None)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _seconds(value: float | None) -> float | None:
    """Return a usable wait, or None for a negative number or NaN."""
    return value if value is not None and not math.isnan(value) and value >= 0 else None


def parse_retry_after(value: str | None, *, date: str | None = None, now: datetime | None = None) -> float | None:
    """Return the seconds that a ``Retry-After`` header asks to wait (RFC 9110, section 10.2.3), or None.

    A negative number, NaN, an empty value or any other text gives None. A date in the past gives 0.

    Args:
        value: an integer or decimal number of seconds, or an HTTP-date.
        date: the response's own ``Date`` header. An HTTP-date is compared with it, which avoids errors from a wrong
            local clock.
        now: used if there is no usable ``Date``; the current time by default.
    """
    if value is None or not (text := value.strip()):
        return None
    if re.fullmatch(r"\d{1,18}(\.\d{0,18})?|\.\d{1,18}", text, re.ASCII):
        return float(text)
    until = _http_date(text)
    if until is None:
        return None
    since = _http_date(date) or now or datetime.now(UTC)
    return max((until - since).total_seconds(), 0.0)


def _http_date(value: str | None) -> datetime | None:
    if not value:
        return None
    from email.utils import parsedate_to_datetime

    try:
        parsed = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
