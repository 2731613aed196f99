"""Pull requests with their approvals and checks: opening, changing, merging, closing.

A merge writes two refs before it moves the target branch: ``refs/pull/N/head``, the merged head, and
``refs/pull/N/merge``, the commit that the target is to get. The row is committed after the branch has moved. A process
that is killed in between leaves an open row whose recorded commit is reachable from the target. Such a pull request
reads as merged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from gitprovider import checks
from gitprovider.checks import refuse
from gitprovider.errors import (
    AlreadyExistsError,
    ConflictError,
    HeadMovedError,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
)
from gitprovider.local.database import PullRecord, pull_record, to_json
from gitprovider.local.merges import merge_commit, merged_tree
from gitprovider.local.protection import missing_for_merge, protection_of
from gitprovider.local.refs import PULLS
from gitprovider.local.session import OnCommit, Session, Sessions
from gitprovider.models import MergeMethod, PullRequestState

_EXPLAINED = {
    NotMergeableReason.CLOSED: "it is not open",
    NotMergeableReason.DRAFT: "it is a draft",
    NotMergeableReason.REVIEWS: "the target branch requires approvals that are missing",
    NotMergeableReason.CHECKS: "the target branch requires checks that have not passed",
    NotMergeableReason.METHOD: "the target branch takes no merge commits; use SQUASH or REBASE",
}


class PullRequests(Sessions):
    """The pull requests, approvals and checks of the forge's repositories."""

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
            allow_empty: open it although the target has every commit of the source.

        Raises:
            AlreadyExistsError: one is open between the branches. ``existing`` is its PullRecord.
            NotFoundError: a branch does not exist.
            ConflictError: there is nothing to merge.
        """
        with self._writing(path) as session:
            source, target = session.head(source_branch), session.head(target_branch)
            if source_branch == target_branch:
                refuse("target_branch", "is the source branch")
            _refuse_second(session, source_branch, target_branch)
            if not allow_empty:
                _refuse_empty(session, source_branch, source, target_branch, target)
            session.execute("UPDATE repos SET last_number = last_number + 1 WHERE id = ?", session.repo.id)
            row = session.execute("SELECT last_number FROM repos WHERE id = ?", session.repo.id).fetchone()
            number: int = row["last_number"]
            session.execute(
                "INSERT INTO pulls VALUES (?, ?, 'open', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)",
                session.repo.id,
                number,
                title,
                description,
                source_branch,
                target_branch,
                source,
                target,
                int(draft),
                to_json(list(labels)),
                to_json(list(reviewers)),
                self._now().isoformat(),
                to_json(dict(settings or {})),
            )
            return _find(session, number)

    def pull_request(self, path: str, number: int) -> PullRecord:
        """A pull request by its number.

        Raises:
            NotFoundError: the pull request does not exist.
        """
        with self._reading(path) as session:
            return _find(session, number)

    def pull_requests(
        self,
        path: str,
        *,
        source_branch: str | None = None,
        target_branch: str | None = None,
        state: PullRequestState | None = None,
    ) -> list[PullRecord]:
        """The pull requests between these branches in this state, newest first. None means any."""
        with self._reading(path) as session:
            found = _select(session, source_branch, target_branch)
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
        """Change what is not None. ``settings`` are merged into the existing ones.

        Raises:
            NotFoundError: the pull request does not exist, or a branch of one that is reopened does not.
            ConflictError: the state would change from or to merged.
            AlreadyExistsError: another one is open between the branches of one that is reopened.
        """
        with self._writing(path) as session:
            record = _find(session, number)
            if state is not None and state is not record.state:
                if PullRequestState.MERGED in (state, record.state):
                    raise ConflictError(
                        f"pull request {number} is {record.state}; only a merge changes that from or to merged"
                    )
                if state is PullRequestState.OPEN:
                    session.head(record.source_branch)
                    session.head(record.target_branch)
                    _refuse_second(session, record.source_branch, record.target_branch)
                record = record.replace(state=state)
            changed = {
                "title": title,
                "description": description,
                "draft": draft,
                "labels": None if labels is None else tuple(labels),
                "reviewers": None if reviewers is None else tuple(reviewers),
                "settings": None if settings is None else {**record.settings, **settings},
            }
            _save(session, record.replace(**{name: value for name, value in changed.items() if value is not None}))
            return _find(session, number)

    def mergeability(
        self, path: str, number: int, *, method: MergeMethod = MergeMethod.MERGE, bypass: bool = False
    ) -> NotMergeableReason | None:
        """The reason for which a merge would be refused, or None.

        The repository's settings ``allow_merge``, ``allow_squash`` and ``allow_rebase`` forbid a method where False.

        Args:
            bypass: ignore approvals, checks and linear history.

        Raises:
            NotFoundError: the pull request does not exist.
        """
        with self._reading(path) as session:
            record, at = _find(session, number), self._now()

            def write() -> str:
                if method is not MergeMethod.REBASE:
                    # The tree alone shows conflicts, so polling leaves no commits behind.
                    return merged_tree(session.git, record.base_sha, record.head_sha)
                return self._write_merge(session, record, method, None, at)

            try:
                _write_mergeable(session, record, method, bypass=bypass, write=write)
            except NotMergeableError as error:
                return error.reason
            return None

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
            bypass: ignore approvals, checks and linear history.
            on_commit: called before the target branch moves, with its head and the sha that it is to get.

        Raises:
            NotFoundError: the pull request does not exist.
            HeadMovedError: the source branch is not at ``expected_head``.
            NotMergeableError: CLOSED, DRAFT, CONFLICT, REVIEWS, CHECKS or METHOD; PENDING (transient) when another
                program has just moved the target branch.
        """
        with self._writing(path) as session:
            record, at = _find(session, number), self._now()
            if record.state is not PullRequestState.CLOSED and expected_head not in (None, record.head_sha):
                raise HeadMovedError(
                    f"the source branch {record.source_branch!r} is at {record.head_sha}, not at {expected_head}",
                    expected=expected_head,
                    actual=record.head_sha,
                )
            sha = _write_mergeable(
                session,
                record,
                method,
                bypass=bypass,
                write=lambda: self._write_merge(session, record, method, message, at),
            )
            _save(session, record.replace(state=PullRequestState.MERGED, merge_commit_sha=sha))
            # Read before the branch moves: a read that failed afterwards would make the merge look refused.
            merged = _find(session, number)
            if on_commit is not None:
                on_commit(record.base_sha, sha)
            refs = session.git.refs
            for name, value in ((_ref(number, "head"), record.head_sha), (_ref(number, "merge"), sha)):
                refs.set(name, value, refs.get(name))
            try:
                session.git.set_branch(record.target_branch, sha, old=record.base_sha)
            except HeadMovedError as error:
                raise NotMergeableError(error.message, reason=NotMergeableReason.PENDING, transient=True) from None
            return merged

    def _write_merge(
        self, session: Session, record: PullRecord, method: MergeMethod, message: str | None, at: datetime
    ) -> str:
        default = (
            f"{record.title} (#{record.number})"
            if method is MergeMethod.SQUASH
            else f"Merge pull request #{record.number} from {record.source_branch}\n\n{record.title}"
        )
        return merge_commit(
            session.git,
            method,
            target=record.base_sha,
            source=record.head_sha,
            message=message or default,
            committer=self.identity,
            at=at,
        )

    # Approvals and checks

    def approve(self, path: str, number: int, user: str = "reviewer") -> None:
        """Record that ``user`` approves of a pull request at its present head.

        Raises:
            NotFoundError: the pull request does not exist.
        """
        with self._writing(path) as session:
            session.execute(
                "INSERT INTO approvals VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET sha = excluded.sha",
                session.repo.id,
                number,
                user,
                _find(session, number).head_sha,
            )

    def set_check(self, path: str, sha_or_branch: str, name: str, state: str) -> None:
        """Set a check on a commit, or on a branch's present head, to ``success``, ``failure`` or ``pending``.

        Raises:
            NotFoundError: the branch or commit does not exist.
        """
        with self._writing(path) as session:
            if state not in ("success", "failure", "pending"):
                refuse("state", "must be success, failure or pending")
            sha = sha_or_branch if checks.is_sha(sha_or_branch) else session.head(sha_or_branch)
            session.git.commit(sha)
            session.execute(
                "INSERT INTO checks VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET state = excluded.state",
                session.repo.id,
                sha,
                name,
                state,
            )

    def checks(self, path: str, sha: str) -> dict[str, str]:
        """The states of the checks on a commit, by name."""
        with self._reading(path) as session:
            return session.checks(sha)


def open_pull_requests_of(session: Session, branch: str) -> list[PullRecord]:
    """The open pull requests from or to a branch."""
    rows = session.execute(
        "SELECT * FROM pulls WHERE repo_id = ?1 AND state = 'open' AND ?2 IN (source_branch, target_branch)",
        session.repo.id,
        branch,
    ).fetchall()
    return [record for row in rows if (record := _current(session, row)).state is PullRequestState.OPEN]


def close(session: Session, record: PullRecord) -> None:
    """Close a pull request whose branch is about to be deleted."""
    _save(session, record.replace(state=PullRequestState.CLOSED))


def _find(session: Session, number: int) -> PullRecord:
    row = session.execute("SELECT * FROM pulls WHERE repo_id = ? AND number = ?", session.repo.id, number).fetchone()
    if row is None:
        raise NotFoundError(f"{session.repo.path} has no pull request {number}", repo=session.repo.path)
    return _current(session, row)


def _select(session: Session, source_branch: str | None, target_branch: str | None) -> list[PullRecord]:
    rows = session.execute(
        "SELECT * FROM pulls WHERE repo_id = ?1 AND (?2 IS NULL OR source_branch = ?2)"
        " AND (?3 IS NULL OR target_branch = ?3) ORDER BY number DESC",
        session.repo.id,
        source_branch,
        target_branch,
    ).fetchall()
    return [_current(session, row) for row in rows]


def _current(session: Session, row: sqlite3.Row) -> PullRecord:
    """The present state: an open one follows its branches, and one whose merge took effect is merged."""
    with session.database.parsing(f"pull request {row['number']} of {session.repo.path}"):
        record = pull_record(row)
    if record.state is PullRequestState.OPEN:
        record = _follow_branches(session, record)
    return record.replace(approvals=_approvals(session, record))


def _follow_branches(session: Session, record: PullRecord) -> PullRecord:
    git = session.git
    source, target = git.head(record.source_branch), git.head(record.target_branch)
    made = git.refs.get(_ref(record.number, "merge"))
    if made is not None and target is not None and git.contains(made, target):
        merged = git.refs.get(_ref(record.number, "head")) or record.head_sha
        return record.replace(state=PullRequestState.MERGED, head_sha=merged, merge_commit_sha=made)
    # A missing branch closes its pull requests, even where a kill or a push left the row open.
    state = PullRequestState.OPEN if source and target else PullRequestState.CLOSED
    return record.replace(state=state, head_sha=source or record.head_sha, base_sha=target or record.base_sha)


def _approvals(session: Session, record: PullRecord) -> tuple[str, ...]:
    rows = session.execute(
        "SELECT user, sha FROM approvals WHERE repo_id = ? AND number = ? ORDER BY user",
        session.repo.id,
        record.number,
    ).fetchall()
    protection = protection_of(session, record.target_branch) if rows else None
    dismiss = protection is not None and protection.dismiss_stale_approvals
    return tuple(row["user"] for row in rows if not dismiss or row["sha"] == record.head_sha)


def _save(session: Session, record: PullRecord) -> None:
    session.execute(
        "UPDATE pulls SET state = ?, title = ?, description = ?, head_sha = ?, base_sha = ?, draft = ?, labels = ?,"
        " reviewers = ?, merge_commit_sha = ?, settings = ? WHERE repo_id = ? AND number = ?",
        record.state.value,
        record.title,
        record.description,
        record.head_sha,
        record.base_sha,
        int(record.draft),
        to_json(list(record.labels)),
        to_json(list(record.reviewers)),
        record.merge_commit_sha,
        to_json(record.settings),
        session.repo.id,
        record.number,
    )


def _refuse_second(session: Session, source_branch: str, target_branch: str) -> None:
    for record in _select(session, source_branch, target_branch):
        if record.state is PullRequestState.OPEN:
            raise AlreadyExistsError(
                f"pull request {record.number} is open from {source_branch!r} to {target_branch!r}", existing=record
            )
        # The row may still be open, as after an interrupted merge. It would block the new one.
        _save(session, record)


def _refuse_empty(session: Session, source_branch: str, source: str, target_branch: str, target: str) -> None:
    if session.git.contains(source, target):
        raise ConflictError(
            f"there is nothing to merge: {target_branch!r} has every commit of {source_branch!r}",
            hint="commit to the source branch first",
        )
    if session.git.merge_base(source, target) is None:
        raise ConflictError(f"{source_branch!r} and {target_branch!r} have no history in common")


def _write_mergeable(
    session: Session, record: PullRecord, method: MergeMethod, *, bypass: bool, write: Callable[[], str]
) -> str:
    """Return what ``write`` makes for the target branch, once nothing forbids the merge.

    Raises:
        NotMergeableError: the first of CLOSED, DRAFT, METHOD (by the repository's settings), CONFLICT, METHOD (a
            rebase that would differ), REVIEWS, CHECKS and METHOD (linear history).
    """
    if record.state is not PullRequestState.OPEN:
        raise _refused(record, NotMergeableReason.CLOSED)
    if record.draft:
        raise _refused(record, NotMergeableReason.DRAFT)
    if session.repo.settings.get(f"allow_{method.value}") is False:
        raise _refused(record, NotMergeableReason.METHOD, f"the repository does not allow {method.name}")
    made = write()
    if not bypass:
        reason = missing_for_merge(
            session, record.target_branch, method, approvals=len(record.approvals), head=record.head_sha
        )
        if reason is not None:
            raise _refused(record, reason)
    return made


def _refused(record: PullRecord, reason: NotMergeableReason, problem: str | None = None) -> NotMergeableError:
    problem = problem or _EXPLAINED[reason]
    return NotMergeableError(f"pull request {record.number} cannot be merged: {problem}", reason=reason)


def _ref(number: int, name: str) -> str:
    return f"{PULLS}{number}/{name}"
