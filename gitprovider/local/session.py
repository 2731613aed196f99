"""One operation on one repository: its row, the database and the Git repository, opened together."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gitprovider.errors import NotFoundError, PermissionDeniedError, RepoMovedError
from gitprovider.local.database import Database, RepoRecord, Rule, repo_record, rule
from gitprovider.local.git import BareRepository, opened
from gitprovider.local.rules import Combine, matches, strictest
from gitprovider.models import Author, BranchProtection

IDENTITY = Author(name="gitprovider", email="forge@gitprovider.invalid")
# Called with the head that was built on (None: there was none) and the new commit's sha, before the branch moves.
OnCommit = Callable[[str | None, str], None]


@dataclass(slots=True)
class Session:
    """What an operation on a repository works with. Lives as long as the database's transaction.

    Attributes:
        db: the connection, inside a transaction.
        repo: the repository's row.
        git: the repository on disk.
    """

    database: Database
    db: sqlite3.Connection
    repo: RepoRecord
    git: BareRepository
    combine: Combine

    def rules(self) -> list[Rule]:
        """Every protection rule, oldest first."""
        rows = self.db.execute("SELECT * FROM rules WHERE repo_id = ? ORDER BY id", (self.repo.id,)).fetchall()
        with self.database.reads_back(f"a rule of {self.repo.path}"):
            return [rule(row) for row in rows]

    def matching_rules(self, branch: str) -> list[Rule]:
        """The rules that cover ``branch``, oldest first."""
        return [found for found in self.rules() if matches(found.pattern, branch)]

    def protection(self, branch: str) -> BranchProtection | None:
        """What holds for ``branch``, or None when no rule covers it."""
        covering = self.matching_rules(branch)
        return self.combine(covering) if covering else None

    def checks(self, sha: str) -> dict[str, str]:
        """The states of the checks on a commit, by name."""
        rows = self.db.execute("SELECT name, state FROM checks WHERE repo_id = ? AND sha = ?", (self.repo.id, sha))
        return {row["name"]: row["state"] for row in rows}

    def head(self, branch: str) -> str:
        """The branch's head.

        Raises:
            NotFoundError: no such branch.
        """
        head = self.git.head(branch)
        if head is None:
            raise NotFoundError(f"{self.repo.path} has no branch {branch!r}", repo=self.repo.path)
        return head

    def write(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Execute one statement; ``values`` are its parameters."""
        return self.db.execute(statement, values)


def find_repo(database: Database, db: sqlite3.Connection, root: Path, path: str) -> RepoRecord:
    """The row of a repository.

    Raises:
        RepoMovedError: it has another path now.
        NotFoundError: there is none.
    """
    row = db.execute("SELECT * FROM repos WHERE path = ?", (path,)).fetchone()
    if row is None:
        moved = db.execute(
            "SELECT repos.path FROM redirects JOIN repos ON repos.id = repo_id WHERE redirects.path = ?", (path,)
        ).fetchone()
        if moved is not None:
            raise RepoMovedError(f"{path} has been renamed to {moved[0]}", moved_to=moved[0], repo=path)
        raise NotFoundError(f"there is no repository {path}", repo=path)
    with database.reads_back(f"the row of {path}"):
        return repo_record(row, root)


def utc_now() -> datetime:
    """The present time."""
    return datetime.now(UTC)


class Sessions:
    """What every part of the forge stands on: its folder, its clock, and the way to a session.

    Attributes:
        root: the forge's folder.
        identity: who the committer is, and the author where none is given.
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
        with self._database.reading() as db:
            repo = find_repo(self._database, db, self.root, path)
            with opened(repo.git_dir, repo.path) as git:
                yield Session(self._database, db, repo, git, self._combine)

    @contextmanager
    def _writing(self, path: str) -> Iterator[Session]:
        with self._database.writing() as db:
            repo = find_repo(self._database, db, self.root, path)
            if repo.archived:
                raise PermissionDeniedError(f"{repo.path} is archived, and read-only", repo=repo.path)
            with opened(repo.git_dir, repo.path) as git:
                yield Session(self._database, db, repo, git, self._combine)
