"""An intent store in one SQLite file."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NoReturn

from gitprovider._core.claims import Claim, check_key, current_claim, unresolved_error
from gitprovider.checks import check_text, refuse
from gitprovider.errors import ConflictError, ProviderUnavailableError
from gitprovider.intent import Intent

if TYPE_CHECKING:  # loaded where they are needed: most processes have no store
    import sqlite3
    from pathlib import Path

# "gpin": distinguishes an intent store from any other SQLite file.
_APPLICATION_ID = 0x6770696E
_VERSION = 1
_BUSY_SECONDS = 10.0
# A killed process may have been sending for as long as this, since nobody saw when it ended.
_LONGEST_SENDING = timedelta(minutes=10)
# A resolved key is kept this long. A process that read it before then notices that another one has used it.
_KEPT = timedelta(days=1)
# The byte that is locked while the file is created. No call gets it.
_CREATION = 1 << 48

_SCHEMA = f"""
PRAGMA journal_mode = WAL;
BEGIN IMMEDIATE;
CREATE TABLE intents (
    key TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    intent TEXT,
    flight INTEGER,
    changed_at TEXT NOT NULL
);
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};
COMMIT;
"""


class SqliteIntentStore:
    """An IntentStore in a SQLite file, which is created with mode 0600. Threads and processes of one machine share it.

    A mutation that is running holds a lock that the system releases when its process ends. Therefore no other process
    takes a slow mutation for a lost one: ``get`` and ``put`` raise ConflictError meanwhile.

    Nothing stays open between two calls except the file of these locks, ``PATH-running``.

    Args:
        path: the file. Its directory is created if it does not exist.
        now: returns the current time, aware.

    Every method raises InvalidRequestError for a key that is wrong, and ProviderUnavailableError if the file cannot be
    read or written, is damaged, or was written by a newer version.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        if not isinstance(path, str | os.PathLike):
            refuse("path", f"must be a path, not {type(path).__name__}")
        # One file has one name, also behind a symbolic link: the locks are in a file beside it.
        from pathlib import Path

        self.path = Path(os.path.realpath(check_text("path", os.fspath(path), empty=False)))
        self._running = _Running(self.path.with_name(f"{self.path.name}-running"))
        self._now = now

    def __repr__(self) -> str:
        return f"SqliteIntentStore({str(getattr(self, 'path', ''))!r})"

    def put(self, key: str, intent: Intent) -> None:
        """Claim the key for a mutation that is about to be sent, in one transaction.

        Raises:
            ConflictError: the key has an unresolved intent of another call, or another call has used it since this
                one read it.
        """
        check_key(key)
        if not isinstance(intent, Intent):
            refuse("intent", f"must be an Intent, not {type(intent).__name__}")
        claim = self._claim(key)
        begins = claim is not None and claim.flight is None
        if claim is not None and begins:
            with self._disk():
                claim.flight = self._running.start()
        try:
            with self._writing() as db:
                version, found, flight = self._row(db, key)
                if found is not None and (claim is None or flight != claim.flight):
                    self._refuse_running(key, found, flight)
                    raise unresolved_error(key, found)
                if claim is not None and claim.version not in (None, version):
                    raise ConflictError(
                        f"another call used the key {key!r} at the same time",
                        code="key-in-use",
                        transient=True,
                        hint="look at the host again: the other call may have done it",
                    )
                flight = None if claim is None or claim.ending else claim.flight
                row = (key, version + 1, json.dumps(intent.to_json()), flight, self._now().isoformat())
                db.execute("INSERT OR REPLACE INTO intents VALUES (?, ?, ?, ?, ?)", row)
        except BaseException:
            if begins:
                self._land(claim)
            raise
        if claim is not None:
            claim.version = version + 1
            if claim.ending:
                self._land(claim)

    def get(self, key: str) -> Intent | None:
        """Return the unresolved intent of the key, or None.

        If the process that left it was killed, the intent gets a ``lost_at``, because nobody else saw its end.

        Raises:
            ConflictError: a running call has the key. Its own result will tell.
        """
        check_key(key)
        with self._reading() as db:
            version, found, flight = (0, None, None) if db is None else self._row(db, key)
        if (claim := self._claim(key)) is not None:
            claim.version = version
        if found is None:
            return None
        self._refuse_running(key, found, flight)
        return self._seen(key, found, flight)

    def done(self, key: str) -> None:
        """Remove the intent of the key, unless another call has used the key since this one read it."""
        check_key(key)
        claim = self._claim(key)
        try:
            with self._writing() as db:
                version, found, flight = self._row(db, key)
                if found is None or (claim is not None and claim.version not in (None, version)):
                    return
                if claim is None or flight != claim.flight:
                    self._refuse_running(key, found, flight)
                now = self._now()
                db.execute(
                    "UPDATE intents SET intent = NULL, flight = NULL, version = ?, changed_at = ? WHERE key = ?",
                    (version + 1, now.isoformat(), key),
                )
                # Times of one clock, in UTC, compare as text.
                old = (now - _KEPT).isoformat()
                db.execute("DELETE FROM intents WHERE intent IS NULL AND changed_at < ?", (old,))
        finally:
            self._land(claim)
        if claim is not None:
            claim.version = version + 1

    def unresolved(self) -> list[tuple[str, Intent]]:
        """Return every key whose intent is unresolved, with the intent, the oldest first, without running calls."""
        with self._reading() as db:
            query = "SELECT key, intent, flight FROM intents WHERE intent IS NOT NULL ORDER BY changed_at, key"
            rows = [] if db is None else db.execute(query).fetchall()
        found = [(key, self._parsed(key, text), flight) for key, text, flight in rows]
        return [(key, self._seen(key, intent, flight)) for key, intent, flight in found if not self._is_running(flight)]

    def _claim(self, key: str) -> Claim | None:
        claim = current_claim()
        return claim if claim is not None and claim.store is self and claim.key == key else None

    def _land(self, claim: Claim | None) -> None:
        """Release the lock of a call that has ended."""
        if claim is not None and claim.flight is not None:
            self._running.end(claim.flight)
            claim.flight = None

    def _is_running(self, flight: int | None) -> bool:
        if flight is None:
            return False
        with self._disk():
            return self._running.holds(flight)

    def _refuse_running(self, key: str, found: Intent, flight: int | None) -> None:
        if self._is_running(flight):
            raise ConflictError(
                f"the key {key!r} is in use: a {found.operation} on {found.repo} is running",
                code="key-in-use",
                transient=True,
                hint="wait until the other call has ended",
            )

    def _seen(self, key: str, found: Intent, flight: int | None) -> Intent:
        """Return the intent. If its process was killed, set ``lost_at`` to the latest time that it may have sent."""
        if flight is None or found.lost_at is not None or found.sent_at is None:
            return found
        lost = replace(found, lost_at=min(self._now(), found.sent_at + _LONGEST_SENDING))
        with suppress(ProviderUnavailableError), self._writing() as db:  # a store that is read-only tells it each time
            db.execute(
                "UPDATE intents SET intent = ?, flight = NULL WHERE key = ? AND flight = ?",
                (json.dumps(lost.to_json()), key, flight),
            )
        return lost

    # The database

    def _row(self, db: sqlite3.Connection, key: str) -> tuple[int, Intent | None, int | None]:
        """Return the version, the intent and the flight of a key. A key that is not there has version 0."""
        row = db.execute("SELECT version, intent, flight FROM intents WHERE key = ?", (key,)).fetchone()
        if row is None:
            return 0, None, None
        version, text, flight = row
        return version, None if text is None else self._parsed(key, text), flight

    def _parsed(self, key: str, text: str) -> Intent:
        try:
            return Intent.from_json(json.loads(text))
        except (ValueError, TypeError, RecursionError) as exc:
            self._refuse(f"is damaged: the intent of {key!r} cannot be read: {exc}")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """Lend a connection, or None if the file does not exist yet."""
        if self._is_empty():
            yield None
            return
        with self._opened() as db:
            yield db

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection inside a transaction of the only writer. The block's end commits it."""
        with self._opened(create=True) as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    @contextmanager
    def _opened(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        import sqlite3

        try:
            if create and self._is_empty():
                self._make()
            db = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
            try:
                self._check_layout(db)
                db.execute("PRAGMA synchronous = FULL")
                yield db
            finally:
                db.close()
        except sqlite3.Error as exc:
            if getattr(exc, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                raise ProviderUnavailableError(
                    f"the intent store {self.path} is locked by another writer", transient=True
                ) from exc
            self._refuse(f"cannot be used: {exc}")

    def _is_empty(self) -> bool:
        """Report whether the file does not exist, or was not written to since it was created."""
        with self._disk():
            return not self.path.exists() or self.path.stat().st_size == 0

    def _make(self) -> None:
        """Create the file under another name first, because nobody may see it without its layout."""
        import sqlite3

        with self._disk(), self._running.alone():
            if not self._is_empty():
                return
            draft = self.path.with_name(f"{self.path.name}-draft")
            for suffix in ("", "-wal", "-shm"):  # of a process that was killed here
                draft.with_name(draft.name + suffix).unlink(missing_ok=True)
            # SQLite gives its other files the mode of this one.
            os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            with closing(sqlite3.connect(draft, timeout=_BUSY_SECONDS, isolation_level=None)) as db:
                db.executescript(_SCHEMA)
            draft.replace(self.path)

    def _check_layout(self, db: sqlite3.Connection) -> None:
        application, version = (
            db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if application != _APPLICATION_ID:
            self._refuse("is not an intent store", "give it a file of its own")
        if version != _VERSION:
            self._refuse(
                f"has the layout of version {version}; this library reads {_VERSION}",
                "use the version of gitprovider that wrote it, or another file",
            )

    @contextmanager
    def _disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            self._refuse(f"cannot be used: {exc.strerror}", "give it a file that this user can read and write")

    def _refuse(
        self, problem: str, hint: str = "restore it from a backup, or move it away and check the host"
    ) -> NoReturn:
        raise ProviderUnavailableError(f"the intent store {self.path} {problem}", transient=False, hint=hint)


class _Running:
    """Locks that show which calls are running. The system releases those of a process that ends, however it ends.

    Each call has a byte of one file, far beyond its end. POSIX locks belong to the process: closing any descriptor of
    the file would release them all, so a process opens it once and keeps it open, and a forked child inherits none.
    """

    _files: dict[tuple[int, Path], int] = {}  # noqa: RUF012 - one for the process
    _ours: set[tuple[int, int]] = set()  # noqa: RUF012 - one for the process
    _lock = threading.Lock()

    def __init__(self, path: Path) -> None:
        self._path = path

    def start(self) -> int:
        """Lock a byte for a call, and return its number."""
        number = int.from_bytes(os.urandom(6))
        with self._lock:
            fcntl.lockf(self._file(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
            self._ours.add((os.getpid(), number))
        return number

    def end(self, number: int) -> None:
        """Release the byte of a call."""
        with self._lock, suppress(OSError):
            self._ours.discard((os.getpid(), number))
            fcntl.lockf(self._file(), fcntl.LOCK_UN, 1, number)

    def holds(self, number: int) -> bool:
        """Report whether the call with that byte is running, in this or another process."""
        with self._lock:
            if (os.getpid(), number) in self._ours:
                return True
            file = self._file()
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
            except (BlockingIOError, PermissionError):  # POSIX allows both
                return True
            fcntl.lockf(file, fcntl.LOCK_UN, 1, number)
            return False

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only process and thread that creates the store."""
        with self._lock:
            fcntl.lockf(self._file(), fcntl.LOCK_EX, 1, _CREATION)
            try:
                yield
            finally:
                fcntl.lockf(self._file(), fcntl.LOCK_UN, 1, _CREATION)

    def _file(self) -> int:
        key = (os.getpid(), self._path)
        if key not in self._files:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._files[key] = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._files[key]
