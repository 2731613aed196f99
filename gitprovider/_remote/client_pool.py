"""A pool of SDK clients. Each running operation has its own client, and no client is shared across a fork."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from gitprovider._remote.response import Client
from gitprovider.errors import InvalidRequestError

_C = TypeVar("_C", bound=Client)


def after_fork(hook: Callable[[], None]) -> None:
    """Call ``hook`` in each child process that is forked from this one. A system without fork has none."""
    register = getattr(os, "register_at_fork", None)
    if register is not None:
        register(after_in_child=hook)


class ClientPool(Generic[_C]):
    """The clients of one provider.

    Connections of PyGithub and requests must not be shared. Measurements showed that a client used by two threads can
    return one caller's data to the other, and that after a fork both processes write to the same socket.

    Args:
        size: how many idle clients are kept. Any number may be lent at the same time.
    """

    def __init__(self, make: Callable[[], _C], size: int) -> None:
        self._make = make
        self._size = size
        self._lock = threading.Lock()
        self._idle: list[_C] = []
        self._closed = False
        after_fork(_WeakReset(self))

    @contextmanager
    def client(self) -> Iterator[_C]:
        """Lend a client to the calling operation.

        Raises:
            InvalidRequestError: the pool is closed.
        """
        client, process = self._take(), os.getpid()
        try:
            yield client
        finally:
            if process == os.getpid():  # after a fork, the client and its sockets belong to the parent process
                self._give(client)

    def check_open(self) -> None:
        """Check that the pool is not closed.

        Raises:
            InvalidRequestError: the pool is closed.
        """
        if self._closed:
            raise InvalidRequestError("this provider is closed; build a new one")

    def close(self) -> None:
        """Close the idle clients. Lent clients are closed when they are returned."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for client in idle:
            client.close()

    def _take(self) -> _C:
        with self._lock:
            self.check_open()
            if self._idle:
                return self._idle.pop()
        return self._make()

    def _give(self, client: _C) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < self._size:
                self._idle.append(client)
                return
        client.close()

    def _reset(self) -> None:
        # The parent still uses these sockets: they are dropped, not closed. A thread of the parent may hold the lock.
        self._idle = []
        self._lock = threading.Lock()


class _WeakReset:
    """A fork hook that does not keep its pool alive. It empties the pool of the child process."""

    def __init__(self, pool: ClientPool[Any]) -> None:
        self._pool = weakref.ref(pool)

    def __call__(self) -> None:
        pool = self._pool()
        if pool is not None:
            pool._reset()
