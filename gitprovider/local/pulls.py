"""Pull requests: opening, what stands in the way of a merge, merging, closing.

A merge writes two refs before it moves the target branch: ``refs/pull/N/head``, the head that is merged, and
``refs/pull/N/merge``, the commit that the target is to get. The row is committed after the branch moved; so a process
killed in between leaves an open row whose recorded commit is reachable from the target, and such a row is merged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from gitprovider import checks
from gitprovider.errors import (
    AlreadyExistsError,
    ConflictError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
)
from gitprovider.local.database import PullRecord, pull_record, to_json
from gitprovider.local.merges import merge_commit, merged_tree
from gitprovider.local.rules import missing_for_merge
from gitprovider.local.session import OnCommit, Session
from gitprovider.models import Author, MergeMethod, PullRequestState

_EXPLAINED = {
    NotMergeableReason.CLOSED: "it is not open",
    NotMergeableReason.DRAFT: "it is a draft",
    NotMergeableReason.REVIEWS: "the target branch demands approvals that are missing",
    NotMergeableReason.CHECKS: "the target branch demands checks that have not passed",
    NotMergeableReason.METHOD: "the target branch takes no merge commits; use SQUASH or REBASE",
}


def _ref(number: int, name: str) -> str:
    return f"refs/pull/{number}/{name}"


def record_of(session: Session, row: sqlite3.Row) -> PullRecord:
    """The row as it stands now: an open one follows its branches, and one whose merge took effect is merged."""
    with session.database.reads_back(f"pull request {row['number']} of {session.repo.path}"):
        record = pull_record(row)
    if record.state is PullRequestState.OPEN:
        record = _as_of_now(session, record)
    return record.replace(approvals=_approvals(session, record))


def _as_of_now(session: Session, record: PullRecord) -> PullRecord:
    git = session.git
    source, target = git.head(record.source_branch), git.head(record.target_branch)
    made = git.ref(_ref(record.number, "merge"))
    if made is not None and target is not None and git.contains(made, target):
        merged = git.ref(_ref(record.number, "head")) or record.head_sha
        return record.replace(state=PullRequestState.MERGED, head_sha=merged, merge_commit_sha=made)
    # A branch that is gone closes its pull requests, also where a kill or a push kept the row from saying so.
    state = PullRequestState.OPEN if source and target else PullRequestState.CLOSED
    return record.replace(state=state, head_sha=source or record.head_sha, base_sha=target or record.base_sha)


def _approvals(session: Session, record: PullRecord) -> tuple[str, ...]:
    rows = session.db.execute(
        "SELECT user, sha FROM approvals WHERE repo_id = ? AND number = ? ORDER BY user",
        (session.repo.id, record.number),
    ).fetchall()
    protection = session.protection(record.target_branch) if rows else None
    dismiss = protection is not None and protection.dismiss_stale_approvals
    return tuple(row["user"] for row in rows if not dismiss or row["sha"] == record.head_sha)


def find(session: Session, number: int) -> PullRecord:
    """A pull request by its number.

    Raises:
        NotFoundError: there is none.
    """
    row = session.db.execute(
        "SELECT * FROM pulls WHERE repo_id = ? AND number = ?", (session.repo.id, number)
    ).fetchone()
    if row is None:
        raise NotFoundError(f"{session.repo.path} has no pull request {number}", repo=session.repo.path)
    return record_of(session, row)


def select(session: Session, source_branch: str | None, target_branch: str | None) -> list[PullRecord]:
    """The pull requests from and to these branches (None: any), newest first."""
    rows = session.db.execute(
        "SELECT * FROM pulls WHERE repo_id = ? AND (?2 IS NULL OR source_branch = ?2)"
        " AND (?3 IS NULL OR target_branch = ?3) ORDER BY number DESC",
        (session.repo.id, source_branch, target_branch),
    ).fetchall()
    return [record_of(session, row) for row in rows]


def open_one(
    session: Session,
    *,
    source_branch: str,
    target_branch: str,
    title: str,
    description: str,
    draft: bool,
    labels: Iterable[str],
    reviewers: Iterable[str],
    allow_empty: bool,
    settings: Mapping[str, Any],
    at: datetime,
) -> PullRecord:
    """Open a pull request under the next number. See Forge.open_pull_request."""
    source, target = session.head(source_branch), session.head(target_branch)
    if source_branch == target_branch:
        raise InvalidRequestError("target_branch: is the source branch", argument="target_branch")
    refuse_second(session, source_branch, target_branch)
    if not allow_empty:
        if session.git.contains(source, target):
            raise ConflictError(
                f"there is nothing to merge: {target_branch!r} has every commit of {source_branch!r}",
                hint="commit to the source branch first",
            )
        if session.git.merge_base(source, target) is None:
            raise ConflictError(f"{source_branch!r} and {target_branch!r} have no history in common")
    session.write("UPDATE repos SET last_number = last_number + 1 WHERE id = ?", session.repo.id)
    number: int = session.write("SELECT last_number FROM repos WHERE id = ?", session.repo.id).fetchone()[0]
    session.write(
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
        at.isoformat(),
        to_json(dict(settings)),
    )
    return find(session, number)


def refuse_second(session: Session, source_branch: str, target_branch: str) -> None:
    """Refuse a second open pull request between two branches.

    Raises:
        AlreadyExistsError: ``existing`` is the open one's PullRecord.
    """
    for record in select(session, source_branch, target_branch):
        if record.state is PullRequestState.OPEN:
            raise AlreadyExistsError(
                f"pull request {record.number} is open from {source_branch!r} to {target_branch!r}", existing=record
            )
        # Its row may still say open, as after an interrupted merge, and would be in the way of the new one.
        save(session, record)


def save(session: Session, record: PullRecord) -> None:
    """Write the record over its row."""
    session.write(
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


def update(session: Session, number: int, state: PullRequestState | None, changed: Mapping[str, Any]) -> PullRecord:
    """Change what people may change of a pull request. See Forge.update_pull_request."""
    record = find(session, number)
    if state is not None and state is not record.state:
        if PullRequestState.MERGED in (state, record.state):
            raise ConflictError(f"pull request {number} is {record.state}; only a merge leads to merged, and none back")
        if state is PullRequestState.OPEN:
            session.head(record.source_branch)
            session.head(record.target_branch)
            refuse_second(session, record.source_branch, record.target_branch)
        record = record.replace(state=state)
    save(session, record.replace(**changed))
    return find(session, number)


def close_all_of(session: Session, branch: str) -> None:
    """Close the open pull requests from or to a branch that is about to be deleted."""
    for record in select(session, None, None):
        if branch in (record.source_branch, record.target_branch) and record.state is PullRequestState.OPEN:
            save(session, record.replace(state=PullRequestState.CLOSED))


def prepare(
    session: Session,
    record: PullRecord,
    method: MergeMethod,
    *,
    bypass: bool,
    write: Callable[[], str],
) -> str:
    """What ``write`` makes for the target branch, once nothing forbids the merge.

    Raises:
        NotMergeableError: the first of CLOSED, DRAFT, METHOD (by the repository's settings), CONFLICT, METHOD (a
            rebase that would differ), REVIEWS, CHECKS and METHOD (linear history).
    """
    if record.state is not PullRequestState.OPEN:
        raise _refused(record, NotMergeableReason.CLOSED)
    if record.draft:
        raise _refused(record, NotMergeableReason.DRAFT)
    if session.repo.settings.get(f"allow_{method.value}") is False:
        raise _refused(record, NotMergeableReason.METHOD, f"the repository does not admit {method.name}")
    made = write()
    if not bypass:
        reason = missing_for_merge(
            session.protection(record.target_branch),
            method,
            approvals=len(record.approvals),
            passed=session.checks(record.head_sha),
        )
        if reason is not None:
            raise _refused(record, reason)
    return made


def mergeability(
    session: Session, number: int, method: MergeMethod, *, bypass: bool, committer: Author, at: datetime
) -> NotMergeableReason | None:
    """What a merge would be refused for. See Forge.mergeability."""
    record = find(session, number)

    def write() -> str:
        if method is not MergeMethod.REBASE:
            # The tree alone tells of conflicts; whoever asks again and again leaves no commits behind.
            return merged_tree(session.git, record.base_sha, record.head_sha)
        return _commit(session, record, method, message=None, committer=committer, at=at)

    try:
        prepare(session, record, method, bypass=bypass, write=write)
    except NotMergeableError as error:
        return error.reason
    return None


def _commit(
    session: Session, record: PullRecord, method: MergeMethod, *, message: str | None, committer: Author, at: datetime
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
        committer=committer,
        at=at,
    )


def merge(
    session: Session,
    number: int,
    method: MergeMethod,
    *,
    expected_head: str | None,
    message: str | None,
    bypass: bool,
    on_commit: OnCommit | None,
    committer: Author,
    at: datetime,
) -> PullRecord:
    """Merge a pull request. See Forge.merge."""
    record = find(session, number)
    if record.state is not PullRequestState.CLOSED and expected_head not in (None, record.head_sha):
        raise HeadMovedError(
            f"the source branch {record.source_branch!r} is at {record.head_sha}, not at {expected_head}",
            expected=expected_head,
            actual=record.head_sha,
        )
    sha = prepare(
        session,
        record,
        method,
        bypass=bypass,
        write=lambda: _commit(session, record, method, message=message, committer=committer, at=at),
    )
    save(session, record.replace(state=PullRequestState.MERGED, merge_commit_sha=sha))
    merged = find(session, number)  # before the branch moves: a read that failed afterwards would deny the merge
    if on_commit is not None:
        on_commit(record.base_sha, sha)
    session.git.set_ref(_ref(number, "head"), record.head_sha)
    session.git.set_ref(_ref(number, "merge"), sha)
    session.git.set_branch(record.target_branch, sha)
    return merged


def _refused(record: PullRecord, reason: NotMergeableReason, problem: str | None = None) -> NotMergeableError:
    problem = problem or _EXPLAINED[reason]
    return NotMergeableError(f"pull request {record.number} cannot be merged: {problem}", reason=reason)


def approve(session: Session, number: int, user: str) -> None:
    """Record that ``user`` approves of the pull request's present head."""
    record = find(session, number)
    session.write(
        "INSERT INTO approvals VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET sha = excluded.sha",
        session.repo.id,
        number,
        user,
        record.head_sha,
    )


def set_check(session: Session, sha_or_branch: str, name: str, state: str) -> None:
    """Record the state of a check on a commit."""
    if state not in ("success", "failure", "pending"):
        raise InvalidRequestError("state: must be success, failure or pending", argument="state")
    sha = sha_or_branch if checks.is_sha(sha_or_branch) else session.head(sha_or_branch)
    session.git.commit(sha)
    session.write(
        "INSERT INTO checks VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET state = excluded.state",
        session.repo.id,
        sha,
        name,
        state,
    )
