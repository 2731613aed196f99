"""Limits on what a remote host may send, and on how long it may take.

:class:`Limits` are those of a provider. :func:`deadline` bounds the calls in one block.
"""

from __future__ import annotations

import contextvars
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gitprovider import checks


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
