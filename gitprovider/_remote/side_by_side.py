"""The parts of an operation that send side by side, each with a client and a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from typing import Generic, TypeVar

_T = TypeVar("_T")
_P = TypeVar("_P")


class StoppedError(BaseException):
    """Another part failed or met a limit, so nothing was sent. No step interprets it: it is no result of the host."""


class SideBySide(Generic[_P, _T]):
    """Tasks that parts of one operation run at the same time, each in the next free part.

    If a task fails, nothing more is begun. If the host answers that a limit is reached, the part that was told goes on,
    with its own retries, and the others send nothing any more. What is left is for the caller to do, one by one.

    Args:
        run: runs one task in a part.
    """

    def __init__(self, run: Callable[[_P, int], _T], tasks: Iterable[int]) -> None:
        self._run = run
        self._tasks: Iterator[int] = iter(tasks)
        self._lock = threading.Lock()
        self._limited: object = None
        self._failure: BaseException | None = None
        self._done: dict[int, _T] = {}

    def check(self, part: object) -> None:
        """Check that the part may send.

        Raises:
            StoppedError: it may not.
        """
        if self._failure is not None or self._limited not in (None, part):
            raise StoppedError

    def met_limit(self, part: object) -> None:
        """Stop all other parts. The first part that meets a limit is the one that goes on.

        Raises:
            StoppedError: another part met the limit before.
        """
        with self._lock:
            self._limited = self._limited or part
        self.check(part)

    def finish(self) -> None:
        """Begin no further task. Those that have begun are completed."""
        with self._lock:
            self._tasks = iter(())

    def results(self, own: _P, lend: Callable[[], AbstractContextManager[_P]], further: int) -> dict[int, _T]:
        """Run the tasks in ``own`` by the calling thread, and in ``further`` lent parts. All threads end with the call.

        Raises:
            BaseException: the first failure of a task.
        """

        def work() -> None:
            try:
                with lend() as part:
                    self._work(part)
            except BaseException as exc:
                self._fail(exc)

        with ThreadPoolExecutor(further, thread_name_prefix="gitprovider-pages") as threads:
            try:
                for _ in range(further):
                    # In a copy of the context, which has the deadlines and what cancels the call.
                    threads.submit(copy_context().run, work)
                self._work(own)
            except BaseException as exc:
                self._fail(exc)
        if self._failure is not None:
            try:
                raise self._failure
            finally:
                self._failure = None  # a traceback refers to this frame
        return self._done

    def _work(self, part: _P) -> None:
        while True:
            with self._lock:
                task = next(self._tasks, None)
            if task is None:
                return
            try:
                self.check(part)
                self._done[task] = self._run(part, task)
            except StoppedError:
                return

    def _fail(self, exc: BaseException) -> None:
        with self._lock:
            self._failure = self._failure or exc
