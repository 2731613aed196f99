"""What is in a repository: branches, objects and commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import pygit2

from gitprovider import checks
from gitprovider._core import edits
from gitprovider.contract import TreeEntry
from gitprovider.errors import AlreadyExistsError, ConflictError, HeadMovedError, InvalidRequestError, NotFoundError
from gitprovider.local.errors import damaged
from gitprovider.local.git import BareRepository, CommitRecord, commit_record, signature
from gitprovider.local.protection import refuse_deletion, refuse_push
from gitprovider.local.pull_requests import close, open_pull_requests_of
from gitprovider.local.session import OnCommit, Session, Sessions
from gitprovider.local.trees import write_tree
from gitprovider.models import Author, FileChange

_MODES = (edits.PLAIN, edits.EXECUTABLE, edits.LINK, edits.SUBMODULE, edits.DIRECTORY)


class Commits(Sessions):
    """The branches, objects and commits of the forge's repositories."""

    # Branches

    def branches(self, path: str) -> list[tuple[str, str]]:
        """Every branch and the sha of its head, sorted by name."""
        with self._reading(path) as session:
            return session.git.branches()

    def head(self, path: str, branch: str) -> str:
        """The branch's head.

        Raises:
            NotFoundError: the branch does not exist.
        """
        with self._reading(path) as session:
            return session.head(branch)

    def create_branch(self, path: str, name: str, sha: str) -> None:
        """Create a branch at a commit.

        Raises:
            AlreadyExistsError: the branch exists. ``existing`` is the pair of its name and head.
            NotFoundError: the commit does not exist.
            ConflictError: the name of another branch is a path prefix of this one, or the reverse.
        """
        checks.check_branch("name", name)
        with self._writing(path) as session:
            held = session.git.head(name)
            if held is not None:
                raise AlreadyExistsError(f"{session.repo.path} has a branch {name!r}", existing=(name, held))
            session.git.commit(sha)
            session.git.refuse_clash(name)
            try:
                session.git.set_branch(name, sha, old=None)
            except HeadMovedError as error:
                held = error.actual
                raise AlreadyExistsError(f"{session.repo.path} has a branch {name!r}", existing=(name, held)) from None

    def move_branch(
        self, path: str, branch: str, sha: str, *, expected: str | None, force: bool = False, bypass: bool = False
    ) -> None:
        """Move a branch to a commit, from ``expected`` where that is given.

        Args:
            force: allow a commit that does not descend from the head.
            bypass: ignore the branch's protection. The caller decides who may.

        Raises:
            NotFoundError: the branch or the commit does not exist.
            HeadMovedError: the branch is not at ``expected``, or the commit does not descend from the head.
            PermissionDeniedError: the protection forbids it.
        """
        with self._writing(path) as session:
            held = session.head(branch)
            _refuse_moved(branch, expected, held)
            session.git.commit(sha)
            if not force and not session.git.contains(held, sha):
                raise HeadMovedError(
                    f"{sha} does not descend from {held}, the head of {branch!r}", expected=expected, actual=held
                )
            if not bypass:
                refuse_push(session, branch, old=held, new=sha)
            session.git.set_branch(branch, sha, old=held)

    def delete_branch(
        self,
        path: str,
        branch: str,
        *,
        expected: str | None = None,
        bypass: bool = False,
        refuse_targeted: bool = False,
    ) -> None:
        """Delete a branch, at ``expected`` where that is given, and close the open pull requests from or to it.

        Args:
            refuse_targeted: refuse to delete the target of an open pull request.
            bypass: ignore the branch's protection.

        Raises:
            NotFoundError: the branch does not exist.
            HeadMovedError: the branch is not at ``expected``.
            PermissionDeniedError: the protection forbids it.
            ConflictError: it is the default branch, or the target that ``refuse_targeted`` keeps.
        """
        with self._writing(path) as session:
            held = session.head(branch)
            _refuse_moved(branch, expected, held)
            if branch == session.repo.default_branch:
                raise ConflictError(f"{branch!r} is the default branch and cannot be deleted")
            if not bypass:
                refuse_deletion(session, branch)
            pulls = open_pull_requests_of(session, branch)
            numbers = sorted(pull.number for pull in pulls if pull.target_branch == branch)
            if refuse_targeted and numbers:
                raise ConflictError(
                    f"the branch {branch!r} was not deleted: it is the target of the open pull requests {numbers}",
                    hint="merge or close them, or give them another target branch",
                )
            for pull in pulls:
                close(session, pull)
            session.git.delete_branch(branch, old=held)

    # Objects

    def write_blob(self, path: str, data: bytes) -> str:
        """Write a blob that no tree names yet, and return its sha."""
        with self._reading(path) as session:
            return session.git.write_blob(data)

    def read_blob(self, path: str, sha: str) -> bytes:
        """A blob's content.

        Raises:
            NotFoundError: the blob does not exist.
        """
        with self._reading(path) as session:
            blob = session.git.find(sha)
            if not isinstance(blob, pygit2.Blob):
                raise NotFoundError(f"{session.repo.path} has no blob {sha}")
            return bytes(blob.data)

    def write_tree(self, path: str, base_tree: str | None, entries: Mapping[str, tuple[str, str] | None]) -> str:
        """Write the tree that ``entries`` make of ``base_tree``: path to blob sha and mode, or to None to delete it.

        Raises:
            NotFoundError: the base tree or a blob does not exist.
            InvalidRequestError: Git does not allow a path or mode; a deleted path does not exist; a file is below a
                file or in place of a directory.
        """
        with self._reading(path) as session:
            for name, entry in entries.items():
                checks.check_file_path("entries", name)
                if entry is not None and entry[1] not in _MODES:
                    checks.refuse("entries", f"give {name!r} the mode {entry[1]!r}; allowed are {', '.join(_MODES)}")
                if entry is not None and entry[1] != edits.SUBMODULE and session.git.find(entry[0]) is None:
                    raise NotFoundError(f"{session.repo.path} has no object {entry[0]}")
            return write_tree(session.git, None if base_tree is None else _tree(session, base_tree), entries)

    def read_tree(self, path: str, tree_or_commit: str) -> dict[str, TreeEntry]:
        """Every file of a tree or of a commit's tree, by path.

        Raises:
            NotFoundError: the tree or commit does not exist.
        """
        with self._reading(path) as session:
            return session.git.files(_tree(session, tree_or_commit))

    def read_entries(self, path: str, tree_or_commit: str, paths: Iterable[str]) -> dict[str, TreeEntry | None]:
        """What a tree or commit has at some paths: None for nothing, mode ``040000`` for a directory.

        Raises:
            NotFoundError: the tree or commit does not exist.
        """
        with self._reading(path) as session:
            tree = _tree(session, tree_or_commit)
            return {name: session.git.entry(tree, name) for name in paths}

    # Commits

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
        """Write a commit that no branch names yet, and return its sha.

        Raises:
            NotFoundError: the tree or a parent does not exist.
        """
        with self._reading(path) as session:
            _tree(session, tree)
            for parent in parents:
                session.git.commit(parent)
            return self._write_commit(session.git, tree, parents, message, author=author, committer=committer)

    def read_commit(self, path: str, sha: str) -> CommitRecord:
        """A commit by its sha.

        Raises:
            NotFoundError: the commit does not exist.
        """
        with self._reading(path) as session:
            return commit_record(session.git.commit(sha))

    def contains(self, path: str, sha: str, branch: str) -> bool:
        """Whether the commit is reachable from the branch's head. An unknown commit is not.

        Raises:
            NotFoundError: the branch does not exist.
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
        on_plan: Callable[[edits.Edits], None] | None = None,
        on_commit: OnCommit | None = None,
    ) -> CommitRecord:
        """Commit changes to a branch under one lock, by the rules of ``commit_files``.

        Args:
            bypass: ignore the branch's protection.
            allow_empty: make a commit where nothing changes. Without it the head is returned.
            on_plan: called with the edits before they are written, where a commit is made.
            on_commit: called before the branch moves.
        """
        checks.check_branch("branch", branch)
        with self._writing(path) as session:
            git, held = session.git, session.git.head(branch)
            if held is None:
                _refuse_first(session, branch)
            _refuse_moved(branch, expected_head, held)
            base = None if held is None else _head_commit(session, held)
            base_tree = None if base is None else git.own(base.tree_id)
            planned = edits.plan(
                changes, cache(partial(git.entry, base_tree)), occupied=partial(_is_occupied, git, base_tree)
            )
            if base is not None and not planned.effective and not allow_empty:
                return commit_record(base)
            if on_plan is not None:
                on_plan(planned)
            tree = _write_edits(git, base_tree, planned)
            sha = self._write_commit(git, tree, [held] if held else [], message, author=author)
            # Read before the branch moves: a read that failed afterwards would make the commit look refused.
            made = commit_record(git.commit(sha))
            if on_commit is not None:
                on_commit(held, sha)
            if not bypass:
                refuse_push(session, branch, old=held, new=sha)
            git.set_branch(branch, sha, old=held)
            return made

    def _write_commit(
        self,
        git: BareRepository,
        tree: str,
        parents: Sequence[str],
        message: str,
        *,
        author: Author | None,
        committer: Author | None = None,
    ) -> str:
        now = self._now()
        return git.write_commit(
            tree=tree,
            parents=parents,
            message=message,
            author=signature(author or self.identity, now),
            committer=signature(committer or self.identity, now),
        )


def _write_edits(git: BareRepository, base: pygit2.Tree | None, planned: edits.Edits) -> str:
    entries: dict[str, tuple[str, str] | None] = {}
    for edit in planned.effective:
        if edit.data is not None:
            git.write_blob(edit.data)
        entries[edit.path] = edit.after
    return write_tree(git, base, entries)


def _is_occupied(git: BareRepository, tree: Any, directory: str, gone: set[str]) -> bool:
    return any(f"{directory}/{name}" not in gone for name in git.files(git.own(tree[directory].id)))


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
        raise damaged(session.repo.path, f"the branch's head {sha} is not a commit")
    return commit


def _tree(session: Session, sha: str) -> pygit2.Tree:
    found: Any = session.git.find(sha)
    if isinstance(found, pygit2.Commit):
        found = session.git.own(found.tree_id)
    if not isinstance(found, pygit2.Tree):
        raise NotFoundError(f"{session.repo.path} has no tree or commit {sha}")
    return found
