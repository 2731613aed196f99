"""The key of a mutation, and the store that remembers its intent while its result is not known.

A mutation under a key tells the store its intent just before its effect step is sent. It tells the store again when the
result is known, or when the response is lost. A process that is killed in between leaves the intent behind::

    with remembered(store, "onboard:acme/x:merge"):
        provider.merge_pull_request("acme/x", 1)
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from gitprovider.checks import check_text, refuse
from gitprovider.errors import ConflictError
from gitprovider.events import logged
from gitprovider.intent import Intent

MAX_KEY = 500


@runtime_checkable
class IntentStore(Protocol):
    """Where intents are kept while their results are not known. Threads and processes share it.

    A method that fails raises. The mutation is then not sent.
    """

    def put(self, key: str, intent: Intent) -> None:
        """Claim the key for a mutation that is about to be sent. The claim is atomic: one of two callers gets it.

        The mutation calls it again before its next effect, if it has several, and when the response is lost. A store
        may replace the intent then, or keep the first one and raise ConflictError.

        Raises:
            ConflictError: the key has an unresolved intent.
        """

    def get(self, key: str) -> Intent | None:
        """Return the unresolved intent of the key, or None."""

    def done(self, key: str) -> None:
        """Remove the intent of the key: its result is known. A key without an intent is no error."""

    def unresolved(self) -> Iterable[tuple[str, Intent]]:
        """Return every key whose intent is unresolved, with the intent, the oldest first."""
        ...


class Claim:
    """A key that is in use. One mutation at a time uses it.

    Attributes:
        store, key: the store, and the key in it.
        ending: whether the mutation has ended and only its store has yet to be told.
        version, flight: notes of a SqliteIntentStore: what it had under the key when it was last asked, and the lock
            that shows other processes that the mutation is running.
    """

    def __init__(self, store: IntentStore, key: str) -> None:
        self.store = check_store("store", store)
        self.key = check_key(key)
        self.ending = False
        self.version: int | None = None
        self.flight: int | None = None
        self._asked = False  # whether the store was asked since the last mutation ended
        self._told = False  # whether the store has an intent of the running mutation
        self._running = threading.Lock()

    def look(self) -> Intent | None:
        """Return the intent that an earlier call left under the key, or None."""
        self._asked = True
        return self.store.get(self.key)

    def settle(self) -> None:
        """Tell the store that the result of the earlier call is known."""
        self.store.done(self.key)

    def distrust(self) -> None:
        """Let the next mutation ask the store again, and be refused, because the earlier call is undecided."""
        self._asked = False

    def begin(self) -> None:
        """Begin a mutation, before its first request.

        Raises:
            ConflictError: the key has an unresolved intent, or another mutation is using it.
        """
        if not self._running.acquire(blocking=False):
            raise ConflictError(
                f"the key {self.key!r} is in use by another mutation",
                code="key-in-use",
                hint="a key serves one mutation; give each its own",
            )
        try:
            if not self._asked and (found := self.look()) is not None:
                raise unresolved_error(self.key, found)
        except BaseException:
            self._running.release()
            raise

    def send(self, intent: Intent) -> None:
        """Tell the store what is about to be sent."""
        if self._told:  # an earlier effect of the same mutation was acknowledged
            with contextlib.suppress(ConflictError):
                self.store.put(self.key, intent)
                return
            self.store.done(self.key)
        self._told = True
        try:
            self.store.put(self.key, intent)
        except Exception:
            self._told = False  # the key may be another call's now
            raise

    def end(self, lost: Intent | None) -> None:
        """End the mutation. ``lost`` is its intent if the result is not known or not complete; None if it is."""
        self.ending = True
        try:
            # The call has its own result, and the intent stays: resolve finds out what became of it.
            with logged("the intent store could not be told the result of %r", self.key):
                if self._told and lost is None:
                    self.store.done(self.key)
                elif self._told and lost is not None:
                    with contextlib.suppress(ConflictError):
                        self.store.put(self.key, lost)
        finally:
            self._asked = self._told = self.ending = False
            self._running.release()


_claim: contextvars.ContextVar[Claim | None] = contextvars.ContextVar("gitprovider_claim", default=None)


def current_claim() -> Claim | None:
    """Return the claim of the block that is running, or None."""
    return _claim.get()


@contextmanager
def claimed(store: IntentStore, key: str) -> Iterator[Claim]:
    """Let the mutations inside the block use the key, and lend its claim."""
    claim = Claim(store, key)
    token = _claim.set(claim)
    try:
        yield claim
    finally:
        _claim.reset(token)


def remembered(store: IntentStore, key: str) -> contextlib.AbstractContextManager[object]:
    """Remember the mutation that runs in the block under ``key`` until its result is known.

    The store has the intent from just before the effect step is sent until the host has acknowledged or refused it. If
    the response is lost, or if the process is killed, the intent stays. A mutation under a key with an unresolved
    intent raises ConflictError before any request. The block works with the providers of this package, and also in a
    coroutine, with ``AsyncGitProvider``.

    Args:
        store: an IntentStore.
        key: names this mutation, such as ``onboard:acme/x:merge``: 1 to 500 characters. It serves one mutation at a
            time.

    Raises:
        InvalidRequestError: the key or the store is wrong.
    """
    return claimed(store, key)


def check_key(key: str) -> str:
    """Check a key: 1 to 500 characters, none of them a control character."""
    return check_text("key", key, empty=False, limit=MAX_KEY)


def check_store(argument: str, store: IntentStore) -> IntentStore:
    """Check that a store has the methods of one."""
    if not isinstance(store, IntentStore):
        refuse(argument, f"must have put, get, done and unresolved; {type(store).__name__} does not")
    return store


def unresolved_error(key: str, found: Intent) -> ConflictError:
    """Return the error for a key that an earlier call has left unresolved."""
    return ConflictError(
        f"the key {key!r} has an unresolved {found.operation} on {found.repo}",
        code="key-unresolved",
        hint="find out with resolve(provider, store.get(key), wait=True) what became of it; then call store.done(key)",
    )
