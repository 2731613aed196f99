"""A fork waits until no other thread is inside the forge.

SQLite counts its locks, and libgit2 its mutexes, per process. A child forked while another thread held one would
inherit it locked by nobody, and wait for it forever.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# A thread that forks from within its own operation, while another one does the same, would wait for it forever.
_PATIENCE_SECONDS = 60.0


class _Gate:
    """Counts the threads that are inside an operation, and holds new ones back while a fork is due."""

    def __init__(self) -> None:
        self._depth = threading.local()
        self._changed = threading.Condition()
        self._inside = 0
        self._forks = 0

    @contextmanager
    def inside(self) -> Iterator[None]:
        """One operation of the calling thread. Operations nest: the inner ones never wait."""
        depth: int = getattr(self._depth, "value", 0)
        if depth == 0:
            with self._changed:
                self._changed.wait_for(lambda: not self._forks, _PATIENCE_SECONDS)
                self._inside += 1
        self._depth.value = depth + 1
        try:
            yield
        finally:
            self._depth.value = depth
            if depth == 0:
                with self._changed:
                    self._inside -= 1
                    self._changed.notify_all()

    def before_fork(self) -> None:
        own = 1 if getattr(self._depth, "value", 0) else 0
        with self._changed:
            self._forks += 1
            self._changed.wait_for(lambda: self._inside <= own, _PATIENCE_SECONDS)

    def after_in_parent(self) -> None:
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()

    def after_in_child(self) -> None:
        # Of all threads only the one that forked is there.
        self._changed = threading.Condition()
        self._inside = 1 if getattr(self._depth, "value", 0) else 0
        self._forks = 0


_gate = _Gate()
inside = _gate.inside
os.register_at_fork(
    before=_gate.before_fork, after_in_parent=_gate.after_in_parent, after_in_child=_gate.after_in_child
)
