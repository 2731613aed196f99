"""A shared rate limit: the seam that every request passes, and the budget of one process (adr/0022)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from gitprovider import checks

# GitHub asks for at least a minute after a secondary limit that names no time:
# https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
UNSTATED_BLOCK = 60.0
SAME_WINDOW = 5.0  # seconds by which the ends of one window may differ, for clocks in whole seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A request that is about to be sent.

    Attributes:
        host: the host's name and port.
        resource: the limit that counts it: ``core`` or ``graphql`` on GitHub, ``api`` on GitLab.
        mutation: whether it changes something on the host.
        wait: waits that many seconds within the operation's budget (``RetryOptions.max_total_wait`` and ``deadline``).
            It raises RateLimitedError, NOT_APPLIED, with ``retry_after``, at once if the budget does not allow the
            wait, and RetryCancelledError if the wait is cancelled.
    """

    host: str
    resource: str
    mutation: bool
    wait: Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What the host's response to a request says about its limits.

    Attributes:
        host, resource: as in :class:`Sending`, or as the response names the resource.
        status: the HTTP status, or None if there was no response.
        limit, remaining: the requests of a whole window, and those left in this one; None if the host does not say.
        resets_in: seconds until the window ends, by the host's clock; None if the host does not say.
        blocked_for: if the host refused the request because of a limit, the seconds that it asked to wait. 60 if it
            named no time. None for any other response.
    """

    host: str
    resource: str
    status: int | None
    limit: int | None = None
    remaining: int | None = None
    resets_in: float | None = None
    blocked_for: float | None = None


@runtime_checkable
class Throttle(Protocol):
    """Decides when a request may be sent. A remote provider calls it for every request, in several threads at once."""

    def before(self, request: Sending) -> None:
        """Return when the request may be sent; wait with ``request.wait``.

        Raises:
            RateLimitedError: the wait would be longer than the operation allows. Nothing is sent.
            RetryCancelledError: the wait was cancelled. Nothing is sent.
        """
        ...

    def after(self, response: Answered) -> None:
        """Learn from the response to a request, or that there was none."""
        ...


def read_answer(
    request: Sending, status: int | None, headers: Mapping[str, str], *, blocked_for: float | None, date: float
) -> Answered:
    """Read a response's headers. What is not a usable number is left out.

    Args:
        headers: with names in lower case. GitHub's begin with ``x-ratelimit-``, GitLab's with ``ratelimit-``.
        blocked_for: as in :class:`Answered`.
        date: the time of the response by the host's clock, in seconds since the epoch.
    """
    reset = limit_header(headers, "reset")
    return Answered(
        host=request.host,
        resource=headers.get("x-ratelimit-resource") or request.resource,
        status=status,
        limit=limit_header(headers, "limit"),
        remaining=limit_header(headers, "remaining"),
        resets_in=None if reset is None else max(reset - date, 0.0),
        blocked_for=blocked_for,
    )


def limit_header(headers: Mapping[str, str], name: str) -> int | None:
    """Return the number in a rate-limit header of GitHub or GitLab, or None if there is no usable one."""
    text = headers.get(f"x-ratelimit-{name}") or headers.get(f"ratelimit-{name}") or ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 15 else None


@dataclass(slots=True)
class _Window:
    """What is known of one limit. Times are the budget's own clock."""

    limit: int | None = None
    left: int | None = None
    ends: float | None = None
    blocked_until: float = 0.0


class HostBudget:
    """The limits of one credential, shared by the threads of one process.

    It is fed from the responses of the providers that it is given to. Give one budget to every provider that uses
    tokens of the same user: a host counts them together. Before a request it waits while nothing is left of a window,
    or while the host has asked to wait. For several processes or machines, see ``gitprovider.redis.RedisBudget``.

    Args:
        reserve: how many requests of each window are left to others, such as a person with the same credential.
        mutations_per_minute: the most requests per minute that change something, spread evenly; None for no limit.
            GitHub allows 80 a minute that create content.
        clock: returns monotonic seconds.

    Raises:
        InvalidRequestError: an argument is wrong.
    """

    def __init__(
        self,
        *,
        reserve: int = 10,
        mutations_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reserve, self._pause = checked_settings(reserve, mutations_per_minute)
        self._clock = clock
        self._lock = threading.Lock()
        self._windows: dict[tuple[str, str], _Window] = {}
        self._next_mutation: dict[str, float] = {}

    def before(self, request: Sending) -> None:
        """Wait until the request fits into the limits, and count it.

        Raises:
            RateLimitedError: the wait would be longer than the operation allows. Nothing is sent.
            RetryCancelledError: the wait was cancelled. Nothing is sent.
        """
        while (delay := self._admit(request)) > 0:
            request.wait(delay)

    def _admit(self, request: Sending) -> float:
        """Count the request and return 0, or return the seconds after which to ask again."""
        with self._lock:
            now = self._clock()
            window = self._windows.setdefault((request.host, request.resource), _Window())
            if window.ends is not None and now >= window.ends:
                window.left, window.ends = window.limit, None
            if now < window.blocked_until:
                return window.blocked_until - now
            if window.left is not None and window.left <= self._reserve and window.ends is not None:
                return window.ends - now
            if request.mutation and self._pause:
                due = self._next_mutation.get(request.host, now)
                if now < due:
                    return due - now
                self._next_mutation[request.host] = now + self._pause
            if window.left is not None:
                window.left -= 1
            return 0.0

    def after(self, response: Answered) -> None:
        """Learn from a response. Within one window the lowest number counts; a window's end never moves back."""
        with self._lock:
            now = self._clock()
            window = self._windows.setdefault((response.host, response.resource), _Window())
            if response.blocked_for is not None:
                window.blocked_until = max(window.blocked_until, now + response.blocked_for)
            if response.limit is not None:
                window.limit = response.limit
            if response.remaining is None or response.resets_in is None:
                return
            ends = now + response.resets_in
            if window.ends is not None and ends < window.ends - SAME_WINDOW:
                return  # a late response of a window that is over
            follows = window.ends is not None and ends > window.ends + SAME_WINDOW
            if window.left is None or follows:
                window.left = response.remaining
            else:
                window.left = min(window.left, response.remaining)
            window.ends = ends if window.ends is None else max(ends, window.ends)


def checked_settings(reserve: int, mutations_per_minute: float | None) -> tuple[int, float]:
    """Return the reserve, and the seconds between two mutations, which are 0 without a limit.

    Raises:
        InvalidRequestError: an argument is wrong.
    """
    checks.check_int("reserve", reserve, least=0)
    if mutations_per_minute is None:
        return reserve, 0.0
    checks.check_seconds("mutations_per_minute", mutations_per_minute)
    if mutations_per_minute == 0:
        checks.refuse("mutations_per_minute", "must be more than 0, or None for no limit")
    return reserve, 60.0 / mutations_per_minute
