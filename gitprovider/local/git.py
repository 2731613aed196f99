"""One bare Git repository, opened for one operation through pygit2: objects, refs and history.

Loose objects are not flushed to disk one by one, which is Git's default too (``core.fsync``). A killed process loses
nothing. A power failure may lose the last seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pygit2
from pygit2.enums import SortMode

from gitprovider import checks
from gitprovider.contract import TreeEntry
from gitprovider.errors import ConflictError, InvalidRequestError, NotFoundError
from gitprovider.local.errors import damaged, disk_error
from gitprovider.local.refs import HEADS, Refs
from gitprovider.models import Author

# Above the priorities of libgit2's own backends, which are 1 and 2.
_FIRST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRecord:
    """A commit of the forge. ``time`` is the committer's, in aware UTC."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    message: str
    author_name: str
    author_email: str
    time: datetime


class BareRepository:
    """An open repository. It belongs to one thread and is closed after the operation.

    Attributes:
        path: the repository's full path, for messages.
        git: the pygit2 repository, for objects and history.
        refs: its refs.
    """

    def __init__(self, git_dir: Path, path: str) -> None:
        self.path = path
        self.refs = Refs(git_dir, path)
        self.git = pygit2.Repository(str(git_dir))
        # Of the places for loose objects, this one comes first: what it writes is for this user alone.
        private = pygit2.OdbBackendLoose(str(git_dir / "objects"), -1, False, 0o700, 0o400)
        self.git.odb.add_backend(private, _FIRST)

    # Objects

    def find(self, sha: str) -> Any:
        """The object, or None when it does not exist."""
        # A sha of 64 digits names nothing in a SHA-1 repository.
        return self.git.get(pygit2.Oid(hex=sha)) if len(sha) == 40 and checks.is_sha(sha) else None

    def commit(self, sha: str) -> pygit2.Commit:
        """A commit that a caller named.

        Raises:
            NotFoundError: the commit does not exist.
        """
        found: Any = self.find(sha)
        if not isinstance(found, pygit2.Commit):
            raise NotFoundError(f"{self.path} has no commit {sha}", repo=self.path)
        return found

    def own(self, oid: pygit2.Oid) -> Any:
        """An object that a ref, a commit or a tree of this repository names. A missing one is damage."""
        found: Any = self.git.get(oid)
        if found is None:
            raise damaged(self.path, f"the object {oid} is missing")
        return found

    def write_blob(self, data: bytes) -> str:
        """Write a blob, unless it exists, and return its sha."""
        return str(self.git.create_blob(data))

    def write_commit(
        self,
        *,
        tree: str,
        parents: Sequence[str],
        message: str,
        author: pygit2.Signature,
        committer: pygit2.Signature,
    ) -> str:
        """Write a commit object that no ref names yet."""
        oids = [pygit2.Oid(hex=parent) for parent in parents]
        sha = str(self.git.create_commit(None, author, committer, message, pygit2.Oid(hex=tree), oids))
        self._check_written(sha)
        return sha

    def _check_written(self, sha: str) -> None:
        if pygit2.Oid(hex=sha) not in self.git:  # as on a full disk, where libgit2 reports success
            raise pygit2.GitError(f"the object {sha} was not written")

    def files(self, tree: pygit2.Tree) -> dict[str, TreeEntry]:
        """Every file below ``tree``, by path."""
        found: dict[str, TreeEntry] = {}
        pending = [("", tree)]
        while pending:
            prefix, node = pending.pop()
            for entry in node:
                path = prefix + (entry.raw_name or b"").decode(errors="replace")
                if entry.filemode == pygit2.enums.FileMode.TREE:
                    pending.append((path + "/", self.own(entry.id)))
                else:
                    found[path] = TreeEntry(str(entry.id), f"{int(entry.filemode):06o}")
        return dict(sorted(found.items()))

    def entry(self, tree: pygit2.Tree | None, path: str) -> TreeEntry | None:
        """What is at ``path``, or None. A directory has the mode ``040000``."""
        *folders, name = path.split("/")
        for folder in folders:
            if tree is None or folder not in tree:
                return None
            found = tree[folder]
            tree = self.own(found.id) if found.filemode == pygit2.enums.FileMode.TREE else None
        if tree is None or name not in tree:
            return None
        return TreeEntry(str(tree[name].id), f"{int(tree[name].filemode):06o}")

    # History

    def contains(self, sha: str, head: str) -> bool:
        """Whether ``sha`` is ``head`` or an ancestor of it. An unknown commit is not."""
        if sha == head:
            return True
        if not isinstance(self.find(sha), pygit2.Commit):
            return False
        return self.git.descendant_of(pygit2.Oid(hex=head), pygit2.Oid(hex=sha))

    def commits_between(self, base: str | None, head: str) -> list[pygit2.Commit]:
        """The commits reachable from ``head`` and not from ``base``, parents first."""
        walk = self.git.walk(pygit2.Oid(hex=head), SortMode.TOPOLOGICAL | SortMode.REVERSE)
        if base is not None:
            walk.hide(pygit2.Oid(hex=base))
        return list(walk)

    def merge_base(self, one: str, other: str) -> str | None:
        """A best common ancestor, or None for histories that have nothing in common."""
        base = self.git.merge_base(pygit2.Oid(hex=one), pygit2.Oid(hex=other))
        return None if base is None else str(base)

    # Refs

    def branches(self) -> list[tuple[str, str]]:
        """Every branch and the sha of its head, sorted by name."""
        return sorted(self.refs.branches().items())

    def head(self, branch: str) -> str | None:
        """The branch's head, or None when the branch does not exist."""
        return self.refs.get(HEADS + branch)

    def has_branches(self) -> bool:
        """Whether any branch exists. An empty repository has none."""
        return self.refs.first(HEADS) is not None

    def refuse_clash(self, branch: str) -> None:
        """Refuse a branch name that is a path prefix of another, or the reverse. Git stores branches as files.

        Raises:
            ConflictError: such a branch exists.
        """
        above = (str(folder) for folder in PurePosixPath(branch).parents)
        other = next((name for name in above if self.head(name) is not None), None) or self.refs.first(
            f"{HEADS}{branch}/"
        )
        if other is not None:
            other = other.removeprefix(HEADS)
            raise ConflictError(f"{self.path} has the branch {other!r}; Git cannot store {branch!r} beside it")

    def set_branch(self, branch: str, sha: str, *, old: str | None) -> None:
        """Move the branch from ``old`` to ``sha``; None for a branch that is not there yet. See :meth:`Refs.set`."""
        self._check_written(sha)
        self.refs.set(HEADS + branch, sha, old)

    def delete_branch(self, branch: str, *, old: str) -> None:
        """Delete the branch, which is at ``old``. See :meth:`Refs.delete`."""
        self.refs.delete(HEADS + branch, old)


@contextmanager
def opened(git_dir: Path, path: str) -> Iterator[BareRepository]:
    """Open a repository for one operation, and map the errors of pygit2 and the file system.

    Raises:
        ProviderUnavailableError: the directory or an object is missing or damaged, or the disk failed or is full.
        PermissionDeniedError: this user may not read or write the directory.
    """
    try:
        if not git_dir.is_dir():
            raise damaged(path, f"its directory {git_dir} is missing")
        repository = BareRepository(git_dir, path)
        try:
            yield repository
        finally:
            repository.git.free()
    except KeyError as exc:
        # pygit2 raises it for a missing object.
        raise damaged(path, f"the object {exc.args[0] if exc.args else ''} is missing") from exc
    except (OSError, pygit2.GitError) as exc:
        raise disk_error(exc, git_dir, repo=path) or damaged(path, exc) from exc


def signature(author: Author, at: datetime) -> pygit2.Signature:
    """Git's signature of a person at a time, in UTC.

    Raises:
        InvalidRequestError: nothing is left of the name or address once Git has stripped it.
    """
    try:
        return pygit2.Signature(author.name, author.email, int(at.timestamp()), 0)
    except (pygit2.GitError, ValueError) as exc:
        raise InvalidRequestError(f"author: Git does not accept it: {exc}", argument="author") from exc


def commit_record(commit: pygit2.Commit) -> CommitRecord:
    """A commit object as a record."""
    return CommitRecord(
        sha=str(commit.id),
        tree=str(commit.tree_id),
        parents=tuple(str(parent) for parent in commit.parent_ids),
        message=commit.message,
        author_name=commit.author.name,
        author_email=commit.author.email,
        time=datetime.fromtimestamp(commit.commit_time, UTC),
    )
