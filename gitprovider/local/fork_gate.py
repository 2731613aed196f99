"""A gate that delays a fork until no other thread is inside the forge.

SQLite's locks and libgit2's mutexes belong to the process. A child that is forked while another thread holds one would
inherit it locked, without the thread that unlocks it, and wait forever.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Two threads that fork inside their own operations at the same time would otherwise wait for each other forever.
_MAX_WAIT_SECONDS = 60.0


class _Gate:
    """Counts the threads that are inside an operation, and stops new ones while a fork is waiting."""

    def __init__(self) -> None:
        self._depth = threading.local()
        self._changed = threading.Condition()
        self._inside = 0
        self._forks = 0

    @contextmanager
    def inside(self) -> Iterator[None]:
        """One operation of the calling thread. Operations nest, and the inner ones never wait."""
        depth: int = getattr(self._depth, "value", 0)
        if depth == 0:
            with self._changed:
                self._changed.wait_for(lambda: not self._forks, _MAX_WAIT_SECONDS)
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
            self._changed.wait_for(lambda: self._inside <= own, _MAX_WAIT_SECONDS)

    def after_in_parent(self) -> None:
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()

    def after_in_child(self) -> None:
        # Only the thread that forked exists in the child.
        self._changed = threading.Condition()
        self._inside = 1 if getattr(self._depth, "value", 0) else 0
        self._forks = 0


_gate = _Gate()
inside = _gate.inside
os.register_at_fork(
    before=_gate.before_fork, after_in_parent=_gate.after_in_parent, after_in_child=_gate.after_in_child
)
