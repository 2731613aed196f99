"""Reads that see an earlier state for a while, as on hosts that are eventually consistent."""

from __future__ import annotations

import threading
from collections.abc import Hashable


class StaleReads:
    """Counts, for each key, how many reads still see the earlier state. Safe to call from many threads."""

    def __init__(self) -> None:
        self._left: dict[Hashable, int] = {}
        self._lock = threading.Lock()

    def start(self, key: Hashable, reads: int) -> None:
        """Make the next ``reads`` reads of ``key`` stale."""
        with self._lock:
            self._left[key] = reads

    def start_once(self, key: Hashable, reads: int) -> None:
        """Like :meth:`start`, but do nothing if the key was started before."""
        with self._lock:
            self._left.setdefault(key, reads)

    def is_pending(self, key: Hashable) -> bool:
        """Whether the next read of ``key`` is stale."""
        with self._lock:
            return self._left.get(key, 0) > 0

    def count(self, key: Hashable) -> bool:
        """Count one read, and return whether it is stale."""
        with self._lock:
            left = self._left.get(key, 0)
            if left:
                self._left[key] = left - 1
            return left > 0
