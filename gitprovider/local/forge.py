"""The forge: a Git host in a folder. Real bare repositories, and pull requests, rules and checks in SQLite.

::

    root/forge.sqlite3                        repositories, pull requests, rules, approvals, checks
    root/repositories/acme/widgets.git        a plain bare repository: `git clone` takes its path
    root/tmp/                                 repositories that are being made or removed

Every write holds SQLite's write lock around read, check and move, since libgit2's creation of a ref is no
compare-and-set. Reads take no lock. Any number of processes and threads may share a root; nothing is kept open between
two calls, so a fork is harmless.

A forge raises the library's own errors, with ``provider`` left to the caller.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pygit2

from gitprovider import checks
from gitprovider.enums import MergeMethod, NotMergeableReason, PullRequestState, Visibility
from gitprovider.errors import (
    AlreadyExistsError,
    ConflictError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    NotMergeableError,
    PermissionDeniedError,
)
from gitprovider.local import directories, pulls
from gitprovider.local.records import Database, PullRecord, RepoRecord, Rule, repo_record, rules_json, to_json
from gitprovider.local.repository import BareRepository, CommitRecord, commit_record, damaged, opened, signature
from gitprovider.local.rules import Combine, refuse_deletion, refuse_push, strictest
from gitprovider.local.session import Session, find_repo
from gitprovider.local.trees import entries_of, write_tree
from gitprovider.models import Author, BranchProtection, FileChange
from gitprovider.state import TreeEntry

OnCommit = Callable[[str | None, str], None]
IDENTITY = Author(name="gitprovider", email="forge@gitprovider.invalid")


class Forge:
    """A Git host in a folder.

    Every method that takes ``path`` raises NotFoundError for a repository that is not there, RepoMovedError for one
    that was renamed, and ProviderUnavailableError (not transient) for one that is damaged, naming what; every method
    that changes an archived repository raises PermissionDeniedError.

    Args:
        root: its directory; made by the first write.
        now: the clock of commits and records, as aware datetimes.
        combine: what several rules that cover one branch demand together; by default the strictest of each field.
        identity: who the committer is, and the author where none is given.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        combine: Combine = strictest,
        identity: Author = IDENTITY,
    ) -> None:
        self.root = Path(root).absolute()
        self.identity = identity
        self._now = now
        self._combine = combine
        self._database = Database(self.root)

    def __repr__(self) -> str:
        return f"Forge({str(self.root)!r})"

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

    # Repositories

    def create_repo(
        self,
        path: str,
        *,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
        auto_init: bool = False,
        default_branch: str = "main",
        settings: Mapping[str, Any] | None = None,
    ) -> RepoRecord:
        """Create a repository, with ``auto_init`` with a README in a first commit.

        Raises:
            AlreadyExistsError: ``existing`` is the RepoRecord that has the path.
            ConflictError: something that no forge made is where its directory is to be.
        """
        checks.check_repo_path(path)
        checks.check_branch("default_branch", default_branch)
        with self._database.writing() as db:
            self._refuse_taken(db, path)
            db.execute("DELETE FROM redirects WHERE path = ?", (path,))
            row = db.execute(
                "INSERT INTO repos (path, directory, description, visibility, default_branch, created_at, settings)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING *",
                (
                    path,
                    _free_directory(db, path),
                    description,
                    Visibility(visibility).value,
                    default_branch,
                    self._now().isoformat(),
                    to_json(dict(settings or {})),
                ),
            ).fetchone()
            repo = repo_record(row, self.root)

            def fill(git_dir: Path) -> None:
                if auto_init:
                    with opened(git_dir, path) as git:
                        self._write_readme(git, repo)

            directories.make(self.root, repo.git_dir, repo.id, default_branch, fill)
        return repo

    def _write_readme(self, git: BareRepository, repo: RepoRecord) -> None:
        text = f"# {repo.path.rpartition('/')[2]}\n" + (f"\n{repo.description}\n" if repo.description else "")
        tree = write_tree(git, None, {"README.md": (git.write_blob(text.encode()), "100644")})
        by = signature(self.identity, self._now())
        git.set_branch(
            repo.default_branch,
            git.write_commit(tree=tree, parents=[], message="Initial commit", author=by, committer=by),
        )

    def repo(self, path: str) -> RepoRecord:
        """A repository by its path; letters' case does not matter."""
        with self._reading(path) as session:
            return session.repo

    def repo_by_id(self, id: int) -> RepoRecord:  # noqa: A002 - the field's name
        """A repository by its id.

        Raises:
            NotFoundError: there is none.
        """
        for repo in self.repos():
            if repo.id == id:
                return repo
        raise NotFoundError(f"there is no repository with the id {id}")

    def repos(self) -> list[RepoRecord]:
        """Every repository, by path."""
        with self._database.reading() as db:
            rows = db.execute("SELECT * FROM repos ORDER BY path").fetchall()
            with self._database.reads_back("a repository's row"):
                return [repo_record(row, self.root) for row in rows]

    def rename_repo(self, path: str, new_path: str) -> RepoRecord:
        """Give a repository another path. The old one then answers RepoMovedError; the directory stays where it is.

        Raises:
            AlreadyExistsError: ``existing`` is the RepoRecord that has the new path.
        """
        checks.check_repo_path(new_path, "new_path")
        with self._database.writing() as db:
            repo = find_repo(self._database, db, self.root, path)
            if new_path.lower() != repo.path.lower():
                self._refuse_taken(db, new_path)
            db.execute("UPDATE repos SET path = ? WHERE id = ?", (new_path, repo.id))
            db.execute("INSERT OR REPLACE INTO redirects VALUES (?, ?)", (repo.path, repo.id))
            db.execute("DELETE FROM redirects WHERE path = ?", (new_path,))
            return find_repo(self._database, db, self.root, new_path)

    def update_repo(
        self,
        path: str,
        *,
        archived: bool | None = None,
        default_branch: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> RepoRecord:
        """Change what is not None; ``settings`` are merged into those that are kept.

        Raises:
            NotFoundError: no such branch, in a repository that has branches.
        """
        with self._database.writing() as db:
            repo = find_repo(self._database, db, self.root, path)
            if archived is not None:
                db.execute("UPDATE repos SET archived = ? WHERE id = ?", (int(archived), repo.id))
            if settings is not None:
                merged = to_json({**repo.settings, **settings})
                db.execute("UPDATE repos SET settings = ? WHERE id = ?", (merged, repo.id))
            if default_branch is not None:
                checks.check_branch("default_branch", default_branch)
                db.execute("UPDATE repos SET default_branch = ? WHERE id = ?", (default_branch, repo.id))
                with opened(repo.git_dir, repo.path) as git:
                    if git.has_branches():
                        Session(self._database, db, repo, git, self._combine).head(default_branch)
                    git.set_default(default_branch)
            return find_repo(self._database, db, self.root, path)

    def delete_repo(self, path: str) -> None:
        """Delete a repository with everything in it, also an archived or damaged one."""
        with self._database.writing() as db:
            repo = find_repo(self._database, db, self.root, path)
            db.execute("DELETE FROM repos WHERE id = ?", (repo.id,))
        # The row goes first: killed in between, the directory is left, which the next repository of that path replaces.
        with self._database.writing() as db:
            directory = str(repo.git_dir.relative_to(self.root / "repositories"))
            if not db.execute("SELECT 1 FROM repos WHERE directory = ?", (directory,)).fetchone():
                directories.remove(self.root, repo.git_dir)

    def _refuse_taken(self, db: Any, path: str) -> None:
        row = db.execute("SELECT * FROM repos WHERE path = ?", (path,)).fetchone()
        if row is not None:
            with self._database.reads_back(f"the row of {path}"):
                raise AlreadyExistsError(f"the repository {row['path']} exists", existing=repo_record(row, self.root))

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
            InvalidRequestError: deleting what is not there; a file below a file or in place of a directory.
        """
        with self._reading(path) as session:
            for entry in entries.values():
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
            if on_commit is not None:
                on_commit(held, sha)
            self._push(session, branch, held, sha, bypass=bypass)
            return commit_record(git.commit(sha))

    # Protection

    def rules(self, path: str) -> list[Rule]:
        """Every protection rule, oldest first."""
        with self._reading(path) as session:
            return session.rules()

    def matching_rules(self, path: str, branch: str) -> list[Rule]:
        """The rules whose pattern covers the branch, oldest first."""
        with self._reading(path) as session:
            return session.matching_rules(branch)

    def put_rule(
        self, path: str, pattern: str, protection: BranchProtection, settings: Mapping[str, Any] | None = None
    ) -> Rule:
        """Make the rule of exactly this pattern, or replace it, its settings included."""
        checks.check_text("pattern", pattern, empty=False, limit=255)
        with self._writing(path) as session:
            return _put_rule(session, pattern, protection, settings or {})

    def tighten(self, path: str, branch: str, protection: BranchProtection) -> BranchProtection:
        """Protect a branch at least as much as ``protection``, under one lock, and return what holds then.

        Raises:
            NotFoundError: no such branch.
        """
        with self._writing(path) as session:
            session.head(branch)
            covering = session.matching_rules(branch)
            wanted = strictest(covering).stricter(protection) if covering else protection
            held = self._combine(covering) if covering else None
            if held is None or protection.missing_from(held):
                exact = next((rule for rule in covering if rule.pattern == branch), None)
                _put_rule(session, branch, wanted, {} if exact is None else exact.settings)
            return self._combine(session.matching_rules(branch))

    def delete_rule(self, path: str, pattern: str) -> None:
        """Delete the rule of exactly this pattern.

        Raises:
            NotFoundError: there is none.
        """
        with self._writing(path) as session:
            gone = session.write("DELETE FROM rules WHERE repo_id = ? AND pattern = ?", session.repo.id, pattern)
            if not gone.rowcount:
                raise NotFoundError(f"{session.repo.path} has no rule for {pattern!r}")

    def protection(self, path: str, branch: str) -> BranchProtection | None:
        """What the rules that cover the branch demand together, or None when none does."""
        with self._reading(path) as session:
            return session.protection(branch)

    # Pull requests

    def open_pull_request(
        self,
        path: str,
        *,
        source_branch: str,
        target_branch: str,
        title: str,
        description: str = "",
        draft: bool = False,
        labels: Iterable[str] = (),
        reviewers: Iterable[str] = (),
        allow_empty: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> PullRecord:
        """Open a pull request between two branches, under the repository's next number.

        Args:
            allow_empty: also where the target has every commit of the source.

        Raises:
            AlreadyExistsError: one is open between them; ``existing`` is its PullRecord.
            NotFoundError: no such branch.
            ConflictError: there is nothing to merge.
        """
        with self._writing(path) as session:
            return pulls.open_one(
                session,
                source_branch=source_branch,
                target_branch=target_branch,
                title=title,
                description=description,
                draft=draft,
                labels=labels,
                reviewers=reviewers,
                allow_empty=allow_empty,
                settings=settings or {},
                at=self._now(),
            )

    def pull_request(self, path: str, number: int) -> PullRecord:
        """A pull request by its number.

        Raises:
            NotFoundError: there is none.
        """
        with self._reading(path) as session:
            return pulls.find(session, number)

    def pull_requests(
        self,
        path: str,
        *,
        source_branch: str | None = None,
        target_branch: str | None = None,
        state: PullRequestState | None = None,
    ) -> list[PullRecord]:
        """The pull requests that are so, newest first; None means any."""
        with self._reading(path) as session:
            found = pulls.select(session, source_branch, target_branch)
            return [record for record in found if state is None or record.state is state]

    def update_pull_request(
        self,
        path: str,
        number: int,
        *,
        state: PullRequestState | None = None,
        title: str | None = None,
        description: str | None = None,
        draft: bool | None = None,
        labels: Iterable[str] | None = None,
        reviewers: Iterable[str] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> PullRecord:
        """Change what is not None; ``settings`` are merged into those that are kept.

        Raises:
            NotFoundError: no such pull request, or a branch of one to be reopened is gone.
            ConflictError: it is merged, or is to become so without a merge.
            AlreadyExistsError: another one is open between the branches of one to be reopened.
        """
        with self._writing(path) as session:
            changed: dict[str, Any] = {"title": title, "description": description, "draft": draft}
            changed["labels"] = None if labels is None else tuple(labels)
            changed["reviewers"] = None if reviewers is None else tuple(reviewers)
            if settings is not None:
                changed["settings"] = {**pulls.find(session, number).settings, **settings}
            given = {name: value for name, value in changed.items() if value is not None}
            return pulls.update(session, number, state, given)

    def mergeability(
        self, path: str, number: int, *, method: MergeMethod = MergeMethod.MERGE, bypass: bool = False
    ) -> NotMergeableReason | None:
        """What a merge would be refused for, or None.

        Raises:
            NotFoundError: no such pull request.
        """
        with self._reading(path) as session:
            record = pulls.find(session, number)
            reason = pulls.obstacle(session, record, method, bypass=bypass)
            if reason in (NotMergeableReason.CLOSED, NotMergeableReason.DRAFT):
                return reason
            try:
                pulls.build(session, record, method, message=None, committer=self.identity, at=self._now())
            except NotMergeableError as error:
                return error.reason
            return reason

    def merge(
        self,
        path: str,
        number: int,
        *,
        method: MergeMethod,
        expected_head: str | None = None,
        message: str | None = None,
        bypass: bool = False,
        on_commit: OnCommit | None = None,
    ) -> PullRecord:
        """Merge a pull request: MERGE always makes a merge commit, SQUASH one commit, REBASE none of its own.

        Args:
            bypass: regardless of approvals, checks and linear history.
            on_commit: called with the target's head and the sha it is to get, before the branch moves.

        Raises:
            NotFoundError: no such pull request.
            HeadMovedError: the source branch is not at ``expected_head``.
            NotMergeableError: CLOSED, DRAFT, CONFLICT, REVIEWS, CHECKS or METHOD.
        """
        with self._writing(path) as session:
            return pulls.merge(
                session,
                number,
                method,
                expected_head=expected_head,
                message=message,
                bypass=bypass,
                on_commit=on_commit,
                committer=self.identity,
                at=self._now(),
            )

    def approve(self, path: str, number: int, user: str = "reviewer") -> None:
        """Let ``user`` approve of a pull request at its present head.

        Raises:
            NotFoundError: no such pull request.
        """
        with self._writing(path) as session:
            pulls.approve(session, number, user)

    def set_check(self, path: str, sha_or_branch: str, name: str, state: str) -> None:
        """Set a check on a commit, or on a branch's present head, to ``success``, ``failure`` or ``pending``.

        Raises:
            NotFoundError: no such branch or commit.
        """
        with self._writing(path) as session:
            pulls.set_check(session, sha_or_branch, name, state)

    def checks(self, path: str, sha: str) -> dict[str, str]:
        """The states of the checks on a commit, by name."""
        with self._reading(path) as session:
            return session.checks(sha)


def locate(directory: str | os.PathLike[str]) -> tuple[Path, str]:
    """The root of the forge that a repository's directory belongs to, and the repository's full path.

    Raises:
        NotFoundError: no forge has this directory.
    """
    wanted = Path(directory).absolute()
    for root in wanted.parents:
        if (root / "forge.sqlite3").is_file():
            for repo in Forge(root).repos():
                if repo.git_dir == wanted:
                    return root, repo.path
            break
    raise NotFoundError(f"{wanted} is not a repository of a local forge")


def _free_directory(db: Any, path: str) -> str:
    # Another repository may have been made under this path and renamed since: its directory kept the name.
    name, suffix = f"{path}.git", 1
    while db.execute("SELECT 1 FROM repos WHERE directory = ?", (name,)).fetchone():
        suffix += 1
        name = f"{path}.{suffix}.git"
    return name


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


def _put_rule(session: Session, pattern: str, protection: BranchProtection, settings: Mapping[str, Any]) -> Rule:
    session.write(
        "INSERT INTO rules (repo_id, pattern, protection, settings) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (repo_id, pattern) DO UPDATE SET protection = excluded.protection, settings = excluded.settings",
        session.repo.id,
        pattern,
        rules_json(protection),
        to_json(dict(settings)),
    )
    return next(rule for rule in session.rules() if rule.pattern == pattern)
