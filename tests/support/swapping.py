"""Something changes at a chosen system call, so that a race happens at every point in turn and never by chance."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any


@contextmanager
def system_calls(before: Callable[[int], None]) -> Iterator[None]:
    """Call ``before`` with the number of each call of the ``os`` module and of files, right before it is made.

    It sees the calls themselves and not the names that they are imported by, so it holds for any implementation.
    """
    number = 0

    def profile(frame: FrameType, event: str, function: Any) -> None:
        nonlocal number
        if event == "c_call" and _is_system_call(function):
            number += 1
            before(number)

    earlier = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(earlier)


def count_system_calls(function: Callable[[], object]) -> int:
    """Return how many such calls ``function`` makes."""
    numbers = [0]
    with suppress(Exception), system_calls(numbers.append):
        function()
    return max(numbers)


def _is_system_call(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or type(owner).__module__
    return module in ("posix", "io", "_io") or type(owner).__module__ == "posix"
