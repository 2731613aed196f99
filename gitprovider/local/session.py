"""A session: one repository's row, the database and the Git repository, opened for one operation."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any

from gitprovider.errors import NotFoundError, PermissionDeniedError, RepoMovedError
from gitprovider.local.database import Database, RepoRecord, Rule, repo_record
from gitprovider.local.git import BareRepository, opened
from gitprovider.local.storage import refuse_link
from gitprovider.models import Author, BranchProtection

IDENTITY = Author(name="gitprovider", email="forge@gitprovider.invalid")
# Called before the branch moves, with the head that the commit is built on (None for a first commit) and its sha.
OnCommit = Callable[[str | None, str], None]
# What several rules that cover one branch demand together. They are given oldest first, at least one.
Combine = Callable[[Sequence[Rule]], BranchProtection]


def strictest(rules: Sequence[Rule]) -> BranchProtection:
    """The strictest value of each field."""
    return reduce(BranchProtection.stricter, (rule.protection for rule in rules))


def utc_now() -> datetime:
    """The present time."""
    return datetime.now(UTC)


@dataclass(slots=True)
class Session:
    """What an operation on a repository works with. It lives as long as the database's transaction.

    Attributes:
        database: the forge's database.
        db: a connection to it, inside a transaction.
        repo: the repository's row.
        git: the repository on disk.
        combine: the forge's combination of several rules.
    """

    database: Database
    db: sqlite3.Connection
    repo: RepoRecord
    git: BareRepository
    combine: Combine

    def checks(self, sha: str) -> dict[str, str]:
        """The states of the checks on a commit, by name."""
        rows = self.execute("SELECT name, state FROM checks WHERE repo_id = ? AND sha = ?", self.repo.id, sha)
        return {row["name"]: row["state"] for row in rows}

    def head(self, branch: str) -> str:
        """The branch's head.

        Raises:
            NotFoundError: the branch does not exist.
        """
        head = self.git.head(branch)
        if head is None:
            raise NotFoundError(f"{self.repo.path} has no branch {branch!r}", repo=self.repo.path)
        return head

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Execute one statement with ``values`` as its parameters."""
        return self.db.execute(statement, values)


def find_repo(database: Database, db: sqlite3.Connection, root: Path, path: str) -> RepoRecord:
    """The row of a repository.

    Raises:
        RepoMovedError: the repository was renamed.
        NotFoundError: the repository does not exist.
        ProviderUnavailableError: its directory is not below the root.
    """
    row = db.execute("SELECT * FROM repos WHERE path = ?", (path,)).fetchone()
    if row is None:
        moved = db.execute(
            "SELECT repos.path FROM redirects JOIN repos ON repos.id = repo_id WHERE redirects.path = ?", (path,)
        ).fetchone()
        if moved is not None:
            raise RepoMovedError(f"{path} has been renamed to {moved[0]}", moved_to=moved[0], repo=path)
        raise NotFoundError(f"there is no repository {path}", repo=path)
    with database.parsing(f"the row of {path}"):
        repo = repo_record(row, root)
    refuse_link(root, repo.git_dir)
    return repo


class Sessions:
    """Base class of the forge's parts: its folder, its clock, and the sessions.

    Attributes:
        root: the forge's folder.
        identity: the committer, and the author where none is given.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        now: Callable[[], datetime] = utc_now,
        combine: Combine = strictest,
        identity: Author = IDENTITY,
        lock_wait: float | None = None,
    ) -> None:
        self.root = Path(root).absolute()
        self.identity = identity
        self._now = now
        self._combine = combine
        self._database = Database(self.root, lock_wait=lock_wait)

    @contextmanager
    def _reading(self, path: str) -> Iterator[Session]:
        with self._database.reading() as db, self._session(db, path) as session:
            yield session

    @contextmanager
    def _writing(self, path: str) -> Iterator[Session]:
        with self._database.writing() as db, self._session(db, path, writable=True) as session:
            yield session

    @contextmanager
    def _session(self, db: sqlite3.Connection, path: str, *, writable: bool = False) -> Iterator[Session]:
        repo = find_repo(self._database, db, self.root, path)
        if writable and repo.archived:
            raise PermissionDeniedError(f"{repo.path} is archived and therefore read-only", repo=repo.path)
        with opened(repo.git_dir, repo.path) as git:
            yield Session(self._database, db, repo, git, self._combine)
