"""Bring the host to a wished state, and write nothing when it is there already.

Each function looks first, with reads. What matches is done; what contradicts is refused, naming what is there; what is
absent is made, once. No mutation is repeated here. A function may be called again after any failure; give it the
error or the stored intent as ``after``, and it waits until that request can no longer take effect before it sends
another.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from gitprovider import mutations as arguments
from gitprovider._core.edits import blob_sha
from gitprovider.checks import is_sha, refuse
from gitprovider.contract import InspectableProvider, TreeEntry, optional
from gitprovider.errors import (
    AlreadyExistsError,
    ConflictError,
    GitProviderError,
    HeadMovedError,
    NotMergeableError,
    NotMergeableReason,
    RepoMovedError,
    UnexpectedResponseError,
)
from gitprovider.intent import Intent
from gitprovider.models import (
    Author,
    Branch,
    BranchProtection,
    Commit,
    DeleteFile,
    FileChange,
    MergeMethod,
    MergeResult,
    MoveFile,
    PullRequest,
    PullRequestState,
    PutFile,
    Repo,
    Visibility,
)
from gitprovider.resolve import Resolution, Verdict, resolve

_T = TypeVar("_T")


class Ensured(NamedTuple, Generic[_T]):
    """The value as the host holds it, and whether this call changed anything."""

    value: _T
    changed: bool


Evidence = GitProviderError | Intent


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    """How to wait for an earlier request to settle: both injectable, by default real time.

    Attributes:
        sleep: waits that many seconds; None is ``time.sleep``.
        now: the present time, aware.
    """

    sleep: Callable[[float], None] | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


_REAL_TIME = Settling()


def ensure_repo(
    provider: InspectableProvider,
    repo: str,
    *,
    description: str = "",
    visibility: Visibility = Visibility.PRIVATE,
    auto_init: bool = False,
    after: Evidence | None = None,
    settling: Settling = _REAL_TIME,
) -> Ensured[Repo]:
    """Make a repository unless it is there.

    Args:
        description: an empty one asks for nothing; another must be the repository's own.
        visibility: must be the repository's own.
        auto_init: for a repository that is made; one that is there is not looked into.
        after: the error, or the intent, of an earlier try of the same call; it is waited out first.

    Raises:
        ConflictError: it is there with another visibility or description, or archived.
        RepoMovedError: the path leads to a repository that was renamed.
        GitProviderError: whatever ``get_repo`` and ``create_repo`` raise.
    """
    visibility = arguments.create_repo(repo, description=description, visibility=visibility, auto_init=auto_init)
    _settle(provider, after, settling, "create_repo", repo=repo)

    def look() -> Repo | None:
        return look_repo(provider, repo, description=description, visibility=visibility)

    return _ensure(
        look,
        lambda: provider.create_repo(repo, description=description, visibility=visibility, auto_init=auto_init),
    )


def look_repo(
    provider: InspectableProvider, repo: str, *, description: str = "", visibility: Visibility = Visibility.PRIVATE
) -> Repo | None:
    """The repository when it is as asked, None when there is none; raises as :func:`ensure_repo` does."""
    there = optional(provider.get_repo, repo)
    if there is None:
        return None
    if there.path.lower() != repo.lower():
        raise RepoMovedError(
            f"{repo} is now {there.path}", moved_to=there.path, provider=provider.name, operation="get_repo", repo=repo
        )
    if there.visibility is not visibility:
        _contradict(provider, repo, f"it exists and is {there.visibility.value}; asked was {visibility.value}")
    if description and there.description != description:
        _contradict(provider, repo, f"it exists with the description {there.description!r}")
    if there.archived:
        _contradict(provider, repo, "it exists and is archived, so that nothing can be written to it")
    return there


def ensure_branch(
    provider: InspectableProvider,
    repo: str,
    name: str,
    *,
    source: str,
    after: Evidence | None = None,
    settling: Settling = _REAL_TIME,
) -> Ensured[Branch]:
    """Make a branch unless it is there, at the commit that ``source`` (a branch name or a full sha) names now.

    Args:
        after: the error, or the intent, of an earlier try of the same call; it is waited out first. When that try
            turns out to have made the branch, it counts as ensured, even where it has moved on since.

    Raises:
        HeadMovedError: the branch is there, at another commit: ``actual``. It is not moved.
        NotFoundError: no such repository or source.
        GitProviderError: whatever ``create_branch`` raises.
    """
    source = arguments.create_branch(repo, name, source=source)
    earlier = _settle(provider, after, settling, "create_branch", repo=repo, branch=name)
    if earlier is not None and earlier.verdict is Verdict.APPLIED:
        return Ensured(earlier.value, changed=False)
    sha = source if is_sha(source) else provider.head(repo, source)
    return _ensure(
        lambda: look_branch(provider, repo, name, sha=sha), lambda: provider.create_branch(repo, name, source=sha)
    )


def look_branch(provider: InspectableProvider, repo: str, name: str, *, sha: str) -> Branch | None:
    """The branch when it is at ``sha``, None when there is none; raises HeadMovedError when it is elsewhere."""
    head = optional(provider.head, repo, name)
    if head is None:
        return None
    if head != sha:
        raise HeadMovedError(
            f"the branch {name} exists and is at {head}; asked was {sha}",
            expected=sha,
            actual=head,
            provider=provider.name,
            operation="create_branch",
            repo=repo,
        )
    return Branch(name=name, sha=head)


def ensure_protection(
    provider: InspectableProvider,
    repo: str,
    branch: str,
    rules: BranchProtection = BranchProtection(),
    *,
    after: Evidence | None = None,
    settling: Settling = _REAL_TIME,
) -> Ensured[BranchProtection]:
    """Protect a branch at least as much as ``rules``, unless it is.

    Args:
        after: the error, or the intent, of an earlier try of the same call; it is waited out first.

    Raises:
        GitProviderError: whatever ``protect_branch`` raises; ConflictError also when what holds cannot be read.
    """
    arguments.protect_branch(repo, branch, rules)
    _settle(provider, after, settling, "protect_branch", repo=repo, branch=branch)
    return _ensure(
        lambda: look_protection(provider, repo, branch, rules), lambda: provider.protect_branch(repo, branch, rules)
    )


def look_protection(
    provider: InspectableProvider, repo: str, branch: str, rules: BranchProtection
) -> BranchProtection | None:
    """What holds for the branch when it is at least ``rules``, otherwise None."""
    held = provider.protection(repo, branch)
    return None if held is None or rules.missing_from(held) else held


def ensure_files(
    provider: InspectableProvider,
    repo: str,
    branch: str,
    changes: Sequence[FileChange],
    *,
    message: str,
    author: Author | None = None,
    after: Evidence | None = None,
    settling: Settling = _REAL_TIME,
) -> Ensured[Commit]:
    """Commit those of ``changes`` that the branch does not hold yet, in one commit on the head that was looked at.

    A file is as asked when its blob sha is that of the content and its mode the one asked for (``executable=None``:
    either). A deleted file is as asked when nothing is at its path; a moved one, when nothing is at its old path and
    something at its new one.

    Args:
        after: the error, or the intent, of an earlier try of the same call; it is waited out first.

    Returns:
        The new commit; or, when there was nothing to do, the branch's head.

    Raises:
        NotFoundError: no such repository, or no such branch in a repository that has commits.
        HeadMovedError: the branch moved between the look and the commit; nothing was repeated.
        GitProviderError: whatever ``commit_files`` raises.
    """
    # In memory from here on: what is compared must be what is sent.
    changes, _ = arguments.commit_files(repo, branch, changes, message=message, author=author, expected_head=None)
    _settle(provider, after, settling, "commit_files", repo=repo, branch=branch)
    head, missing = look_files(provider, repo, branch, changes)
    if missing:
        made = provider.commit_files(repo, branch, missing, message=message, author=author, expected_head=head)
        return Ensured(made, changed=True)
    there = provider.commit(repo, head or provider.head(repo, branch))
    return Ensured(dataclasses.replace(there, branch=branch), changed=False)


def look_files(
    provider: InspectableProvider, repo: str, branch: str, changes: Sequence[FileChange]
) -> tuple[str | None, list[FileChange]]:
    """The branch's head (None when there is no such branch), and those of ``changes`` that it does not hold."""
    head = optional(provider.head, repo, branch)
    if head is None:
        return None, [change for change in changes if not isinstance(change, DeleteFile)]
    tree = provider.tree(repo, head)
    sha256 = len(head) == 64
    return head, [change for change in changes if not _is_there(change, tree.get, sha256)]


def _is_there(change: FileChange, at: Callable[[str], TreeEntry | None], sha256: bool) -> bool:
    entry = at(change.path)
    match change:
        case DeleteFile():
            return entry is None
        case MoveFile(to=to):
            return entry is None and at(to) is not None
        case PutFile(executable=executable):
            modes = {True: ("100755",), False: ("100644",), None: ("100644", "100755")}[executable]
            return entry is not None and entry.mode in modes and entry.sha == blob_sha(change.data(), sha256=sha256)


def ensure_pull_request(
    provider: InspectableProvider,
    repo: str,
    *,
    source_branch: str,
    target_branch: str,
    title: str,
    description: str = "",
    draft: bool = False,
    labels: Sequence[str] = (),
    reviewers: Sequence[str] = (),
    after: Evidence | None = None,
    settling: Settling = _REAL_TIME,
) -> Ensured[PullRequest]:
    """Open a pull request unless one is open between the branches, or is merged with the head that is there now.

    Args:
        title, draft: must be those of the pull request that is open.
        description, labels, reviewers: for one that is opened; those of one that is there are not compared.
        after: the error, or the intent, of an earlier try of the same call; it is waited out first.

    Raises:
        ConflictError: one is open with another title, or a draft where none was asked or the other way round; or
            there is nothing to merge.
        GitProviderError: whatever ``open_pull_request`` raises.
    """
    labels, reviewers = arguments.open_pull_request(
        repo,
        source_branch=source_branch,
        target_branch=target_branch,
        title=title,
        description=description,
        draft=draft,
        labels=labels,
        reviewers=reviewers,
    )
    same = {"source_branch": source_branch, "target_branch": target_branch}
    _settle(provider, after, settling, "open_pull_request", repo=repo, **same)
    return _ensure(
        lambda: look_pull_request(
            provider, repo, source_branch=source_branch, target_branch=target_branch, title=title, draft=draft
        ),
        lambda: provider.open_pull_request(
            repo,
            source_branch=source_branch,
            target_branch=target_branch,
            title=title,
            description=description,
            draft=draft,
            labels=labels,
            reviewers=reviewers,
        ),
    )


def look_pull_request(
    provider: InspectableProvider, repo: str, *, source_branch: str, target_branch: str, title: str, draft: bool = False
) -> PullRequest | None:
    """The pull request that :func:`ensure_pull_request` asks for, or None; raises as that does."""
    found = provider.find_pull_requests(repo, source_branch=source_branch, target_branch=target_branch)
    for pull in found:
        if pull.state is PullRequestState.OPEN:
            if pull.title.strip() != title.strip():
                _contradict(provider, repo, f"pull request {pull.number} is open with the title {pull.title!r}")
            if pull.draft is not draft:
                _contradict(
                    provider, repo, f"pull request {pull.number} is open {'as' if pull.draft else 'as no'} draft"
                )
            return pull
    merged = next((pull for pull in found if pull.state is PullRequestState.MERGED), None)
    if merged is None or merged.title.strip() != title.strip():
        return None
    head = optional(provider.head, repo, source_branch)
    return merged if head is None or head == merged.head_sha else None


def ensure_merged(
    provider: InspectableProvider,
    repo: str,
    number: int,
    *,
    method: MergeMethod = MergeMethod.MERGE,
    expected_head: str | None = None,
    message: str | None = None,
    delete_source_branch: bool = False,
    timeout: float = 30.0,
    after: Evidence | None = None,
    settling: Settling = _REAL_TIME,
) -> Ensured[MergeResult]:
    """Merge a pull request unless it is merged.

    Args:
        method, message: for a merge that is made; how an earlier one was made is not compared.
        expected_head: the head that it must be, or have been, merged at.
        delete_source_branch: a branch that is still at the merged head is deleted also when the merge was made before.
        after: the error, or the intent, of an earlier try of the same call; it is waited out first.

    Raises:
        HeadMovedError: it is at another head than ``expected_head``, or was merged at another.
        NotMergeableError: it is closed (CLOSED), or whatever ``merge_pull_request`` finds.
        GitProviderError: whatever ``merge_pull_request`` raises.
    """
    method, expected_head = arguments.merge_pull_request(
        repo,
        number,
        method=method,
        expected_head=expected_head,
        message=message,
        delete_source_branch=delete_source_branch,
        timeout=timeout,
    )
    _settle(provider, after, settling, "merge_pull_request", repo=repo, number=number)
    pull, result = look_merged(
        provider, repo, number, expected_head=expected_head, delete_source_branch=delete_source_branch
    )
    if result is not None:
        return Ensured(result, changed=False)
    made = provider.merge_pull_request(
        repo,
        number,
        method=method,
        expected_head=expected_head or pull.head_sha,
        message=message,
        delete_source_branch=delete_source_branch,
        timeout=timeout,
    )
    return Ensured(made, changed=True)


def look_merged(
    provider: InspectableProvider,
    repo: str,
    number: int,
    *,
    expected_head: str | None = None,
    delete_source_branch: bool = False,
) -> tuple[PullRequest, MergeResult | None]:
    """The pull request, and its merge when nothing remains to be done; raises as :func:`ensure_merged` does."""
    pull = provider.get_pull_request(repo, number)
    known: dict[str, Any] = {"provider": provider.name, "operation": "merge_pull_request", "repo": repo}
    if expected_head is not None and pull.head_sha is not None and pull.head_sha != expected_head:
        raise HeadMovedError(
            f"pull request {number} is {pull.state.value} at the head {pull.head_sha}; asked was {expected_head}",
            expected=expected_head,
            actual=pull.head_sha,
            **known,
        )
    if pull.state is PullRequestState.CLOSED:
        raise NotMergeableError(
            f"pull request {number} is closed without being merged", reason=NotMergeableReason.CLOSED, **known
        )
    if pull.state is PullRequestState.OPEN:
        return pull, None
    if pull.merge_commit_sha is None:
        raise UnexpectedResponseError(
            f"pull request {number} is merged, and the host does not name the commit", **known
        )
    if delete_source_branch and optional(provider.head, repo, pull.source_branch) == pull.head_sha:
        return pull, None
    return pull, MergeResult(sha=pull.merge_commit_sha, already_merged=True)


def _ensure(look: Callable[[], _T | None], make: Callable[[], _T]) -> Ensured[_T]:
    there = look()
    if there is not None:
        return Ensured(there, changed=False)
    try:
        return Ensured(make(), changed=True)
    except AlreadyExistsError:
        # Somebody was quicker, or an earlier request of ours was; what is there now decides.
        there = look()
        if there is None:
            raise
        return Ensured(there, changed=False)


def _settle(
    provider: InspectableProvider, after: Evidence | None, settling: Settling, operation: str, **same: object
) -> Resolution | None:
    """Wait until the earlier try ``after`` can no longer take effect, and return what became of it."""
    if after is None:
        return None
    intent = after.intent if isinstance(after, GitProviderError) else after
    if intent is None:  # a read failed, or an argument was refused: nothing had been sent
        return None
    for name, value in {"operation": operation, **same}.items():
        was = getattr(intent, name)
        if was is not None and was != value:  # None: the call was refused before that was noted
            refuse("after", f"is evidence of another call: its {name} is {was!r}, not {value!r}")
    return resolve(provider, after, wait=True, sleep=settling.sleep, now=settling.now)


def _contradict(provider: InspectableProvider, repo: str, problem: str) -> NoReturn:
    raise ConflictError(f"{repo}: {problem}", provider=provider.name, repo=repo)
