"""What is in a repository: branches, objects and commits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pygit2

from gitprovider import checks
from gitprovider.contract import TreeEntry
from gitprovider.errors import AlreadyExistsError, ConflictError, HeadMovedError, InvalidRequestError, NotFoundError
from gitprovider.local import pulls
from gitprovider.local.git import CommitRecord, commit_record, damaged, signature
from gitprovider.local.rules import refuse_deletion, refuse_push
from gitprovider.local.session import OnCommit, Session, Sessions
from gitprovider.local.trees import entries_of, write_tree
from gitprovider.models import Author, FileChange

_MODES = ("100644", "100755", "120000", "160000", "040000")


class Contents(Sessions):
    """The branches, objects and commits of the forge's repositories."""

    # Branches

    def branches(self, path: str) -> list[tuple[str, str]]:
        """Every branch and its head's sha, sorted by name."""
        with self._reading(path) as session:
            return session.git.branches()

    def head(self, path: str, branch: str) -> str:
        """The branch's head.

        Raises:
            NotFoundError: no such branch.
        """
        with self._reading(path) as session:
            return session.head(branch)

    def create_branch(self, path: str, name: str, sha: str) -> None:
        """Create a branch at a commit.

        Raises:
            AlreadyExistsError: ``existing`` is the pair of its name and head.
            NotFoundError: no such commit.
            ConflictError: a branch is in the way whose name is a path prefix of this one, or the other way about.
        """
        checks.check_branch("name", name)
        with self._writing(path) as session:
            held = session.git.head(name)
            if held is not None:
                raise AlreadyExistsError(f"{session.repo.path} has a branch {name!r}", existing=(name, held))
            session.git.commit(sha)
            session.git.refuse_clash(name)
            session.git.set_branch(name, sha)

    def move_branch(
        self, path: str, branch: str, sha: str, *, expected: str | None, force: bool = False, bypass: bool = False
    ) -> None:
        """Move a branch to a commit, from ``expected`` where that is given.

        Args:
            force: also where the commit does not descend from the head.
            bypass: regardless of the branch's protection; who may is for the caller to know.

        Raises:
            NotFoundError: no such branch or commit.
            HeadMovedError: the branch is not at ``expected``, or the commit does not descend from it.
            PermissionDeniedError: the protection forbids it.
        """
        with self._writing(path) as session:
            held = session.head(branch)
            _refuse_moved(branch, expected, held)
            session.git.commit(sha)
            if not force and not session.git.contains(held, sha):
                raise HeadMovedError(
                    f"{sha} does not descend from {held}, where the branch {branch!r} is",
                    expected=expected,
                    actual=held,
                )
            self._push(session, branch, held, sha, bypass=bypass)

    def delete_branch(self, path: str, branch: str, *, expected: str | None = None, bypass: bool = False) -> None:
        """Delete a branch, at ``expected`` where that is given. Open pull requests from or to it are closed.

        Raises:
            NotFoundError: no such branch.
            HeadMovedError: it is not at ``expected``.
            PermissionDeniedError: its protection forbids it.
            ConflictError: it is the default branch.
        """
        with self._writing(path) as session:
            _refuse_moved(branch, expected, session.head(branch))
            if branch == session.repo.default_branch:
                raise ConflictError(f"{branch!r} is the default branch, and cannot be deleted")
            if not bypass:
                refuse_deletion(session.protection(branch), branch)
            pulls.close_all_of(session, branch)
            session.git.delete_branch(branch)

    @staticmethod
    def _push(session: Session, branch: str, old: str | None, new: str, *, bypass: bool) -> None:
        if not bypass:
            passed = session.checks(new)
            refuse_push(session.protection(branch), session.git, branch, old=old, new=new, passed=passed)
        session.git.set_branch(branch, new)

    # Objects

    def write_blob(self, path: str, data: bytes) -> str:
        """Write a blob and return its sha. Nothing names it yet."""
        with self._reading(path) as session:
            return session.git.write_blob(data)

    def read_blob(self, path: str, sha: str) -> bytes:
        """A blob's content.

        Raises:
            NotFoundError: no such blob.
        """
        with self._reading(path) as session:
            blob = session.git.find(sha)
            if not isinstance(blob, pygit2.Blob):
                raise NotFoundError(f"{session.repo.path} has no blob {sha}")
            return bytes(blob.data)

    def write_tree(self, path: str, base_tree: str | None, entries: Mapping[str, tuple[str, str] | None]) -> str:
        """Write the tree that ``entries`` (path to blob sha and mode, or None to delete) make of ``base_tree``.

        Raises:
            NotFoundError: no such base tree or blob.
            InvalidRequestError: a path or mode that Git does not take; deleting what is not there; a file below a
                file or in place of a directory.
        """
        with self._reading(path) as session:
            for name, entry in entries.items():
                checks.check_file_path("entries", name)
                if entry is not None and entry[1] not in _MODES:
                    checks.refuse("entries", f"give {name!r} the mode {entry[1]!r}; allowed are {', '.join(_MODES)}")
                if entry is not None and entry[1] != "160000" and session.git.find(entry[0]) is None:
                    raise NotFoundError(f"{session.repo.path} has no object {entry[0]}")
            return write_tree(session.git, None if base_tree is None else _tree(session, base_tree), entries)

    def read_tree(self, path: str, tree_or_commit: str) -> dict[str, TreeEntry]:
        """Every file of a tree or of a commit's tree, by path.

        Raises:
            NotFoundError: no such tree or commit.
        """
        with self._reading(path) as session:
            return session.git.files(_tree(session, tree_or_commit))

    def read_entries(self, path: str, tree_or_commit: str, paths: Iterable[str]) -> dict[str, TreeEntry | None]:
        """What a tree or commit has at some paths, None for nothing; a directory has the mode ``040000``.

        Raises:
            NotFoundError: no such tree or commit.
        """
        with self._reading(path) as session:
            tree = _tree(session, tree_or_commit)
            return {name: session.git.entry(tree, name) for name in paths}

    def write_commit(
        self,
        path: str,
        *,
        tree: str,
        parents: Sequence[str],
        message: str,
        author: Author | None = None,
        committer: Author | None = None,
    ) -> str:
        """Write a commit object and return its sha. No branch names it yet.

        Raises:
            NotFoundError: no such tree or parent.
        """
        with self._reading(path) as session:
            _tree(session, tree)
            for parent in parents:
                session.git.commit(parent)
            now = self._now()
            return session.git.write_commit(
                tree=tree,
                parents=list(parents),
                message=message,
                author=signature(author or self.identity, now),
                committer=signature(committer or self.identity, now),
            )

    def read_commit(self, path: str, sha: str) -> CommitRecord:
        """A commit by its sha.

        Raises:
            NotFoundError: there is none.
        """
        with self._reading(path) as session:
            return commit_record(session.git.commit(sha))

    def contains(self, path: str, sha: str, branch: str) -> bool:
        """Whether the commit is reachable from the branch's head; an unknown commit is not.

        Raises:
            NotFoundError: no such branch.
        """
        with self._reading(path) as session:
            return session.git.contains(sha, session.head(branch))

    def commit_changes(
        self,
        path: str,
        branch: str,
        changes: Sequence[FileChange],
        *,
        message: str,
        author: Author | None = None,
        expected_head: str | None = None,
        bypass: bool = False,
        allow_empty: bool = False,
        on_commit: OnCommit | None = None,
    ) -> CommitRecord:
        """Commit changes to a branch under one lock; see GitProviderContract.commit_files.

        Args:
            bypass: regardless of the branch's protection.
            allow_empty: make a commit also where nothing changes; otherwise the head is returned.
            on_commit: called with the head built on (None for a first commit) and the commit's sha, before the
                branch moves.
        """
        checks.check_branch("branch", branch)
        with self._writing(path) as session:
            git, held = session.git, session.git.head(branch)
            if held is None:
                _refuse_first(session, branch)
            _refuse_moved(branch, expected_head, held)
            base = None if held is None else _head_commit(session, held)
            base_tree = None if base is None else git.own(base.tree_id)
            tree = write_tree(git, base_tree, entries_of(git, base_tree, changes))
            if base is not None and str(base.tree_id) == tree and not allow_empty:
                return commit_record(base)
            now = self._now()
            sha = git.write_commit(
                tree=tree,
                parents=[] if held is None else [held],
                message=message,
                author=signature(author or self.identity, now),
                committer=signature(self.identity, now),
            )
            # Read before the branch moves: a read that failed afterwards would make the commit look refused.
            made = commit_record(git.commit(sha))
            if on_commit is not None:
                on_commit(held, sha)
            self._push(session, branch, held, sha, bypass=bypass)
            return made


def _refuse_moved(branch: str, expected: str | None, actual: str | None) -> None:
    if expected is not None and expected != actual:
        where = f"at {actual}" if actual else "not there"
        raise HeadMovedError(f"the branch {branch!r} is {where}, not at {expected}", expected=expected, actual=actual)


def _refuse_first(session: Session, branch: str) -> None:
    if session.git.has_branches():
        raise NotFoundError(f"{session.repo.path} has no branch {branch!r}", repo=session.repo.path)
    if branch != session.repo.default_branch:
        raise InvalidRequestError(
            f"branch: {session.repo.path} is empty; its first commit goes to {session.repo.default_branch!r}",
            argument="branch",
        )


def _head_commit(session: Session, sha: str) -> pygit2.Commit:
    commit: Any = session.git.own(pygit2.Oid(hex=sha))
    if not isinstance(commit, pygit2.Commit):
        raise damaged(session.repo.path, f"the branch's head {sha} is no commit")
    return commit


def _tree(session: Session, sha: str) -> pygit2.Tree:
    found: Any = session.git.find(sha)
    if isinstance(found, pygit2.Commit):
        found = session.git.own(found.tree_id)
    if not isinstance(found, pygit2.Tree):
        raise NotFoundError(f"{session.repo.path} has no tree or commit {sha}")
    return found
