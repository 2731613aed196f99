"""The forge's database in SQLite: repositories, pull requests, rules, approvals and checks.

Each operation opens and closes its own connection (0.3 ms). Threads never share one, and none is carried across a
fork, after which SQLite's locks would no longer hold.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from gitprovider.errors import GitProviderError, Outcome, ProviderUnavailableError
from gitprovider.local.errors import disk_error
from gitprovider.local.fork_gate import inside
from gitprovider.local.storage import make_folder
from gitprovider.models import BranchProtection, PullRequestState, Visibility

# "gpfg": distinguishes a forge's database from any other SQLite file.
_APPLICATION_ID = 0x67706667
_VERSION = 1
# How long a writer waits for the others. It waits in short turns, because SQLite blocks Ctrl+C while it waits.
LOCK_WAIT_SECONDS = 60.0
_TURN_MILLISECONDS = 100
# Other processes hold every other lock for moments only.
_BUSY_SECONDS = 10.0

_SCHEMA = f"""
PRAGMA journal_mode = WAL;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};
CREATE TABLE repos (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL COLLATE NOCASE UNIQUE,
    directory TEXT NOT NULL COLLATE NOCASE UNIQUE,
    description TEXT NOT NULL,
    visibility TEXT NOT NULL,
    default_branch TEXT NOT NULL,
    archived INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    settings TEXT NOT NULL,
    last_number INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE redirects (
    path TEXT PRIMARY KEY COLLATE NOCASE,
    repo_id INTEGER NOT NULL REFERENCES repos (id) ON DELETE CASCADE
);
CREATE TABLE pulls (
    repo_id INTEGER NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    source_branch TEXT NOT NULL,
    target_branch TEXT NOT NULL,
    head_sha TEXT NOT NULL,
    base_sha TEXT NOT NULL,
    draft INTEGER NOT NULL,
    labels TEXT NOT NULL,
    reviewers TEXT NOT NULL,
    created_at TEXT NOT NULL,
    merge_commit_sha TEXT,
    settings TEXT NOT NULL,
    PRIMARY KEY (repo_id, number)
);
CREATE UNIQUE INDEX one_open_pull ON pulls (repo_id, source_branch, target_branch) WHERE state = 'open';
CREATE TABLE approvals (
    repo_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    user TEXT NOT NULL,
    sha TEXT NOT NULL,
    PRIMARY KEY (repo_id, number, user),
    FOREIGN KEY (repo_id, number) REFERENCES pulls (repo_id, number) ON DELETE CASCADE
);
CREATE TABLE checks (
    repo_id INTEGER NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    sha TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (repo_id, sha, name)
);
CREATE TABLE rules (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repo_id INTEGER NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    pattern TEXT NOT NULL,
    protection TEXT NOT NULL,
    settings TEXT NOT NULL,
    UNIQUE (repo_id, pattern)
);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoRecord:
    """A repository of the forge.

    Attributes:
        id: unique. The id of a deleted repository is never used again.
        settings: JSON values of a fake server.
        git_dir: the bare repository. A rename of ``path`` does not move it.
    """

    id: int
    path: str
    description: str
    visibility: Visibility
    default_branch: str
    archived: bool
    created_at: datetime
    settings: dict[str, Any]
    git_dir: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRecord:
    """A pull request of the forge.

    Attributes:
        head_sha: the source branch's head; once closed or merged, the head at that time.
        base_sha: the target branch's head; once closed or merged, the head at that time.
        approvals: the users whose approval counts now.
        settings: JSON values of a fake server.
    """

    number: int
    state: PullRequestState
    title: str
    description: str
    source_branch: str
    target_branch: str
    head_sha: str
    base_sha: str
    draft: bool
    labels: tuple[str, ...]
    reviewers: tuple[str, ...]
    approvals: tuple[str, ...]
    created_at: datetime
    merge_commit_sha: str | None
    settings: dict[str, Any]

    def replace(self, **changed: Any) -> PullRecord:
        """The record with some fields changed."""
        return replace(self, **changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A protection rule for the branches whose name matches ``pattern``. ``*`` is any run of characters."""

    id: int
    pattern: str
    protection: BranchProtection
    settings: dict[str, Any]


class Database:
    """The database of one forge: a file that exists complete or not at all.

    Args:
        root: the forge's directory.
        lock_wait: seconds that a writer waits for others; None is LOCK_WAIT_SECONDS.
    """

    def __init__(self, root: Path, *, lock_wait: float | None = None) -> None:
        self._lock_wait = lock_wait
        self.path = root / "forge.sqlite3"
        self._repositories = root / "repositories"

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view. A forge that does not exist yet reads as empty and is not made."""
        with inside(), self._opened(":memory:" if self._is_new() else str(self.path), only_reading=True) as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Be the only writer of the forge. Nothing that is read inside changes until the block ends and commits."""
        with inside(), self._opened(self._made()) as connection:
            self._begin(connection)
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            try:
                connection.execute("COMMIT")
            except sqlite3.Error as exc:
                raise self._unavailable(exc, outcome=Outcome.UNKNOWN) from exc

    def _is_new(self) -> bool:
        with self._disk():
            if self.path.exists():
                return False
            if not self._repositories.exists():
                return True
        raise ProviderUnavailableError(
            f"the forge's database {self.path} is missing, but its repositories exist",
            transient=False,
            hint="restore the database from a backup",
        )

    def _made(self) -> str:
        if self._is_new():
            # Made under another name and then linked: neither a kill nor a race leaves an incomplete database.
            draft = self.path.with_name(f".{secrets.token_hex(8)}.sqlite3")
            with self._disk():
                make_folder(self.path.parent)
                draft.touch(0o600)  # SQLite gives its other files the mode of this one
                with self._opened(str(draft), fresh=True):
                    pass
                with suppress(FileExistsError):
                    os.link(draft, self.path)
                draft.unlink()
        return str(self.path)

    @contextmanager
    def _disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            raise disk_error(exc, self.path.parent) or exc from exc

    @contextmanager
    def _opened(self, name: str, *, fresh: bool = False, only_reading: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            connection, as_of = self._connected(name, fresh=fresh), None
        except sqlite3.Error as exc:
            # SQLite makes files beside the database for a reader too. Where it cannot, as on a read-only or full disk,
            # the file is read as it is, if nothing waits in its log.
            as_of = self._settled() if only_reading and isinstance(exc, sqlite3.OperationalError) else None
            if as_of is None:
                raise self._unavailable(exc) from exc
        try:
            if as_of is not None:
                connection = self._connected(f"{self.path.as_uri()}?immutable=1")
            with closing(connection):
                yield connection
        except sqlite3.Error as exc:
            raise self._unavailable(exc) from exc
        if as_of is not None and self._settled() != as_of:
            raise self._locked()

    def _connected(self, name: str, *, fresh: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(name, timeout=_BUSY_SECONDS, isolation_level=None, uri=name.startswith("file:"))
        try:
            connection.row_factory = sqlite3.Row
            if fresh or name == ":memory:":
                connection.executescript(_SCHEMA)
            elif connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
                raise sqlite3.DatabaseError("it is empty or not a forge's database")
            elif (version := connection.execute("PRAGMA user_version").fetchone()[0]) != _VERSION:
                raise sqlite3.DatabaseError(f"its layout is version {version}; this library reads {_VERSION}")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _settled(self) -> tuple[int, int] | None:
        """The state of the database's file; None while its log has something that the file has not."""
        try:
            log = self.path.with_name(f"{self.path.name}-wal")
            if log.exists() and log.stat().st_size:
                return None
            stat = self.path.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size

    def _begin(self, connection: sqlite3.Connection) -> None:
        deadline = time.monotonic() + (LOCK_WAIT_SECONDS if self._lock_wait is None else self._lock_wait)
        connection.execute(f"PRAGMA busy_timeout = {_TURN_MILLISECONDS}")
        while not connection.in_transaction:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as exc:
                if not _is_busy(exc) or time.monotonic() >= deadline:
                    raise
        connection.execute(f"PRAGMA busy_timeout = {int(_BUSY_SECONDS * 1000)}")

    def _unavailable(self, exc: sqlite3.Error, outcome: Outcome = Outcome.NOT_APPLIED) -> GitProviderError:
        if _is_busy(exc):
            return self._locked(outcome)
        return disk_error(exc, self.path, outcome=outcome) or ProviderUnavailableError(
            f"the forge's database {self.path} cannot be used: {exc}",
            transient=False,
            outcome=outcome,
            hint="restore the database from a backup",
        )

    def _locked(self, outcome: Outcome = Outcome.NOT_APPLIED) -> ProviderUnavailableError:
        return ProviderUnavailableError(
            f"the forge's database {self.path} is locked by another writer", transient=True, outcome=outcome
        )

    @contextmanager
    def parsing(self, what: str) -> Iterator[None]:
        """Parse rows. A row that cannot be parsed raises ProviderUnavailableError, which names it by ``what``."""
        try:
            yield
        except (ValueError, TypeError, LookupError) as exc:
            raise ProviderUnavailableError(
                f"the forge's database {self.path} is damaged: {what} cannot be parsed: {exc}",
                transient=False,
                hint="restore the database from a backup",
            ) from exc


def _is_busy(exc: sqlite3.Error) -> bool:
    # The low byte is the primary code, which is the same for SQLITE_BUSY_RECOVERY and similar codes.
    return getattr(exc, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def to_json(value: Any) -> str:
    """A column's JSON text. Equal values give equal text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def rules_json(protection: BranchProtection) -> str:
    """A protection as a column's JSON text."""
    return to_json(asdict(protection))


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"{text!r} is not a JSON object")
    return value


def repo_record(row: Mapping[str, Any] | sqlite3.Row, root: Path) -> RepoRecord:
    """A row of ``repos`` as a record."""
    return RepoRecord(
        id=row["id"],
        path=row["path"],
        description=row["description"],
        visibility=Visibility(row["visibility"]),
        default_branch=row["default_branch"],
        archived=bool(row["archived"]),
        created_at=datetime.fromisoformat(row["created_at"]),
        settings=_object(row["settings"]),
        git_dir=root / "repositories" / row["directory"],
    )


def pull_record(row: Mapping[str, Any] | sqlite3.Row) -> PullRecord:
    """A row of ``pulls`` as a record, without its approvals."""
    return PullRecord(
        number=row["number"],
        state=PullRequestState(row["state"]),
        title=row["title"],
        description=row["description"],
        source_branch=row["source_branch"],
        target_branch=row["target_branch"],
        head_sha=row["head_sha"],
        base_sha=row["base_sha"],
        draft=bool(row["draft"]),
        labels=tuple(json.loads(row["labels"])),
        reviewers=tuple(json.loads(row["reviewers"])),
        approvals=(),
        created_at=datetime.fromisoformat(row["created_at"]),
        merge_commit_sha=row["merge_commit_sha"],
        settings=_object(row["settings"]),
    )


def rule_record(row: Mapping[str, Any] | sqlite3.Row) -> Rule:
    """A row of ``rules`` as a record."""
    protection = _object(row["protection"])
    protection["required_checks"] = tuple(protection["required_checks"])
    return Rule(
        id=row["id"],
        pattern=row["pattern"],
        protection=BranchProtection(**protection),
        settings=_object(row["settings"]),
    )
