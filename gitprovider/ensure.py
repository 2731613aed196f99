"""Bring the host to a desired state, and write nothing if it is in that state already.

Each function reads first. If the host's state matches, nothing is sent. If it contradicts the desired state, the
function raises an error that names the current state. Otherwise it sends one mutation. A mutation is never repeated.

A function may be called again after any failure. Pass the error or the stored intent as ``after``. The function then
waits until that request can no longer take effect before it sends another. With a ``key``, the provider's store keeps
the intent, and the function may be called again after a kill.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from gitprovider._core.claims import Claim, IntentStore, check_key, claimed, unresolved_error
from gitprovider._core.edits import holds
from gitprovider.checks import check_repo_path, guarded, refuse
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
    UnsupportedOptionError,
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
    PullRequest,
    PullRequestState,
    Repo,
    Visibility,
)
from gitprovider.mutations import (
    CommitFiles,
    CreateBranch,
    CreateRepo,
    MergePullRequest,
    Mutation,
    OpenPullRequest,
    ProtectBranch,
)
from gitprovider.resolve import Resolution, Verdict, resolve

_T = TypeVar("_T")


class Ensured(NamedTuple, Generic[_T]):
    """The result of an ``ensure_`` function: the value on the host, and whether this call changed anything."""

    value: _T
    changed: bool


Evidence = GitProviderError | Intent


class Settling(NamedTuple):
    """How to wait until an earlier request has settled. The default is real time.

    Attributes:
        sleep: waits the given number of seconds; None is ``time.sleep``.
        now: returns the current time, aware.
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
    key: str | None = None,
    settling: Settling = _REAL_TIME,
) -> Ensured[Repo]:
    """Create a repository unless it exists.

    Args:
        description: an existing repository must have this description. An empty one matches any.
        visibility: an existing repository must have this visibility.
        auto_init: applies to a new repository. The content of an existing one is not read.
        after: the error or the intent of an earlier attempt at the same call. The function first waits until that
            request has settled.
        key: names this call in the provider's store of intents. If an earlier attempt left its intent there, the
            function first waits until that request has settled. Another mutation's intent raises ConflictError.

    Raises:
        ConflictError: the repository exists with another visibility or description, or is archived.
        RepoMovedError: the path redirects to a renamed repository.
        GitProviderError: any error of ``get_repo`` or ``create_repo``.
    """
    repo = check_repo_path(repo)
    asked = CreateRepo(description=description, visibility=visibility, auto_init=auto_init)
    with _settled(provider, repo, asked, after, key, settling):
        return _ensure(provider, repo, asked, lambda: matching_repo(provider, repo, asked))


def matching_repo(provider: InspectableProvider, repo: str, asked: CreateRepo) -> Repo | None:
    """Return the repository if it is as requested, or None if it does not exist.

    Raises the errors of :func:`ensure_repo`.
    """
    found = optional(provider.get_repo, repo)
    if found is None:
        return None
    if found.path.lower() != repo.lower():
        raise RepoMovedError(
            f"{repo} is now {found.path}", moved_to=found.path, provider=provider.name, operation="get_repo", repo=repo
        )
    if found.visibility is not asked.visibility:
        _contradict(provider, repo, f"it exists and is {found.visibility.value}, not {asked.visibility.value}")
    if asked.description and found.description != asked.description:
        _contradict(provider, repo, f"it exists with the description {found.description!r}")
    if found.archived:
        _contradict(provider, repo, "it exists and is archived, so nothing can be written to it")
    return found


def ensure_branch(
    provider: InspectableProvider,
    repo: str,
    name: str,
    *,
    source: str,
    after: Evidence | None = None,
    key: str | None = None,
    settling: Settling = _REAL_TIME,
) -> Ensured[Branch]:
    """Create a branch unless it exists. It must be at the commit that ``source`` names now.

    Args:
        source: a branch name or a full commit sha.
        after: the error or the intent of an earlier attempt at the same call. The function first waits until that
            request has settled. If the request created the branch, the branch is accepted even if it has moved since.
        key: names this call in the provider's store of intents. If an earlier attempt left its intent there, the
            function first waits until that request has settled. Another mutation's intent raises ConflictError.

    Raises:
        HeadMovedError: the branch exists at another commit, which is ``actual``. It is not moved.
        NotFoundError: no such repository or source.
        GitProviderError: any error of ``create_branch``.
    """
    repo = check_repo_path(repo)
    asked = CreateBranch(name=name, source=source)
    with _settled(provider, repo, asked, after, key, settling) as earlier:
        if earlier is not None and earlier.verdict is Verdict.APPLIED:
            return Ensured(earlier.value, changed=False)
        sha = asked.source_sha or provider.head(repo, asked.source)
        return _ensure(
            provider,
            repo,
            dataclasses.replace(asked, source=sha),
            lambda: matching_branch(provider, repo, name, sha=sha),
        )


def matching_branch(provider: InspectableProvider, repo: str, name: str, *, sha: str) -> Branch | None:
    """Return the branch if it is at ``sha``, or None if it does not exist.

    Raises:
        HeadMovedError: the branch is at another commit.
    """
    head = optional(provider.head, repo, name)
    if head is None:
        return None
    if head != sha:
        raise HeadMovedError(
            f"the branch {name} exists and is at {head}, not at {sha}",
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
    key: str | None = None,
    settling: Settling = _REAL_TIME,
) -> Ensured[BranchProtection]:
    """Protect a branch at least as much as ``rules``, unless it is protected that much already.

    Args:
        after: the error or the intent of an earlier attempt at the same call. The function first waits until that
            request has settled.
        key: names this call in the provider's store of intents. If an earlier attempt left its intent there, the
            function first waits until that request has settled. Another mutation's intent raises ConflictError.

    Raises:
        ConflictError: the current protection cannot be read.
        GitProviderError: any error of ``protect_branch``.
    """
    repo = check_repo_path(repo)
    asked = ProtectBranch(branch=branch, rules=rules)
    with _settled(provider, repo, asked, after, key, settling):
        return _ensure(provider, repo, asked, lambda: matching_protection(provider, repo, branch, rules))


def matching_protection(
    provider: InspectableProvider, repo: str, branch: str, rules: BranchProtection
) -> BranchProtection | None:
    """Return the branch's protection if it is at least as strict as ``rules``, otherwise None."""
    try:
        current = provider.protection(repo, branch)
    except ConflictError as error:
        if error.code != "unfinished":
            raise
        return None  # the call itself finishes what an earlier one began
    return None if current is None or rules.missing_from(current) else current


def ensure_files(
    provider: InspectableProvider,
    repo: str,
    branch: str,
    changes: Sequence[FileChange],
    *,
    message: str,
    author: Author | None = None,
    after: Evidence | None = None,
    key: str | None = None,
    settling: Settling = _REAL_TIME,
) -> Ensured[Commit]:
    """Commit those of ``changes`` that the branch does not have yet, in one commit on the head that was read.

    A PutFile needs no commit if the path has its content (the same blob sha) and its mode (``executable=None``: any
    mode). A DeleteFile needs none if its path does not exist. A MoveFile needs none if its old path does not exist and
    its new path does.

    Args:
        after: the error or the intent of an earlier attempt at the same call. The function first waits until that
            request has settled.
        key: names this call in the provider's store of intents. If an earlier attempt left its intent there, the
            function first waits until that request has settled. Another mutation's intent raises ConflictError.

    Returns:
        The new commit, or the branch's head if there was nothing to commit.

    Raises:
        NotFoundError: no such repository, or no such branch in a repository that has commits.
        HeadMovedError: the branch moved between the read and the commit. Nothing is repeated.
        GitProviderError: any error of ``commit_files``.
    """
    # The files are read into memory once: the content that is compared must be the content that is sent.
    repo = check_repo_path(repo)
    asked = CommitFiles(branch=branch, changes=changes, message=message, author=author)
    with _settled(provider, repo, asked, after, key, settling):
        head, missing = missing_files(provider, repo, branch, asked.changes)
        if missing:
            asked = dataclasses.replace(asked, changes=missing, expected_head=head)
            return Ensured(asked.apply(provider, repo), changed=True)
        current = provider.commit(repo, head or provider.head(repo, branch))
        return Ensured(dataclasses.replace(current, branch=branch), changed=False)


def missing_files(
    provider: InspectableProvider, repo: str, branch: str, changes: Sequence[FileChange]
) -> tuple[str | None, list[FileChange]]:
    """Return the branch's head (None if the branch does not exist) and those of ``changes`` that it does not have."""
    head = optional(provider.head, repo, branch)
    if head is None:
        return None, [change for change in changes if not isinstance(change, DeleteFile)]
    tree = provider.tree(repo, head)
    sha256 = len(head) == 64
    return head, [change for change in changes if not holds(change, tree.get, sha256=sha256)]


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
    key: str | None = None,
    settling: Settling = _REAL_TIME,
) -> Ensured[PullRequest]:
    """Open a pull request unless one is open between the branches, or was merged at the source branch's current head.

    Args:
        title, draft: an open pull request must have these values.
        description, labels, reviewers: apply to a new pull request. Those of an existing one are not compared.
        after: the error or the intent of an earlier attempt at the same call. The function first waits until that
            request has settled.
        key: names this call in the provider's store of intents. If an earlier attempt left its intent there, the
            function first waits until that request has settled. Another mutation's intent raises ConflictError.

    Raises:
        ConflictError: a pull request is open with another title or another draft state; or there is nothing to merge.
        GitProviderError: any error of ``open_pull_request``.
    """
    repo = check_repo_path(repo)
    asked = OpenPullRequest(
        source_branch=source_branch,
        target_branch=target_branch,
        title=title,
        description=description,
        draft=draft,
        labels=labels,
        reviewers=reviewers,
    )
    with _settled(provider, repo, asked, after, key, settling):
        return _ensure(provider, repo, asked, lambda: matching_pull_request(provider, repo, asked))


def matching_pull_request(provider: InspectableProvider, repo: str, asked: OpenPullRequest) -> PullRequest | None:
    """Return the pull request that :func:`ensure_pull_request` asks for, or None if it must be opened.

    Raises the errors of :func:`ensure_pull_request`.
    """
    source, title = asked.source_branch, asked.title
    found = provider.find_pull_requests(repo, source_branch=source, target_branch=asked.target_branch)
    for pull in found:
        if pull.state is PullRequestState.OPEN:
            if not _same_title(pull, title):
                _contradict(provider, repo, f"pull request {pull.number} is open with the title {pull.title!r}")
            if pull.draft is not asked.draft:
                kind = "as a draft" if pull.draft else "and is not a draft"
                _contradict(provider, repo, f"pull request {pull.number} is open {kind}")
            return pull
    merged = next((pull for pull in found if pull.state is PullRequestState.MERGED), None)
    if merged is None or not _same_title(merged, title):
        return None
    head = optional(provider.head, repo, source)
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
    key: str | None = None,
    settling: Settling = _REAL_TIME,
) -> Ensured[MergeResult]:
    """Merge a pull request unless it is merged.

    Args:
        method, message: apply to a new merge. Those of an earlier merge are not compared.
        expected_head: the head that the pull request is, or was, merged at.
        delete_source_branch: delete the source branch if it is at the merged head, even if the pull request was merged
            before.
        after: the error or the intent of an earlier attempt at the same call. The function first waits until that
            request has settled.
        key: names this call in the provider's store of intents. If an earlier attempt left its intent there, the
            function first waits until that request has settled. Another mutation's intent raises ConflictError.

    Raises:
        HeadMovedError: the pull request is, or was merged, at another head than ``expected_head``.
        NotMergeableError: the pull request is closed (CLOSED), or ``merge_pull_request`` raised it.
        GitProviderError: any other error of ``merge_pull_request``.
    """
    repo = check_repo_path(repo)
    asked = MergePullRequest(
        number=number,
        method=method,
        expected_head=expected_head,
        message=message,
        delete_source_branch=delete_source_branch,
        timeout=timeout,
    )
    with _settled(provider, repo, asked, after, key, settling):
        pull, result = finished_merge(provider, repo, asked)
        if result is not None:
            return Ensured(result, changed=False)
        # Of a merge that is done, the head need not be pinned: then no second merge request is sent.
        head = asked.expected_head or pull.head_sha if pull.state is PullRequestState.OPEN else None
        asked = dataclasses.replace(asked, expected_head=head)
        return Ensured(asked.apply(provider, repo), changed=True)


def finished_merge(
    provider: InspectableProvider, repo: str, asked: MergePullRequest
) -> tuple[PullRequest, MergeResult | None]:
    """Return the pull request, and its merge if nothing remains to be done, otherwise None.

    Raises the errors of :func:`ensure_merged`.
    """
    number, expected_head = asked.number, asked.expected_head
    pull = provider.get_pull_request(repo, number)
    error_kwargs: dict[str, Any] = {"provider": provider.name, "operation": "merge_pull_request", "repo": repo}
    if expected_head is not None and pull.head_sha is not None and pull.head_sha != expected_head:
        raise HeadMovedError(
            f"pull request {number} is {pull.state.value} at the head {pull.head_sha}, not at {expected_head}",
            expected=expected_head,
            actual=pull.head_sha,
            **error_kwargs,
        )
    if pull.state is PullRequestState.CLOSED:
        raise NotMergeableError(
            f"pull request {number} was closed without a merge", reason=NotMergeableReason.CLOSED, **error_kwargs
        )
    if pull.state is PullRequestState.OPEN:
        return pull, None
    if pull.merge_commit_sha is None:
        raise UnexpectedResponseError(
            f"pull request {number} is merged, but the host does not name the commit", **error_kwargs
        )
    if asked.delete_source_branch and optional(provider.head, repo, pull.source_branch) == pull.head_sha:
        return pull, None
    return pull, MergeResult(sha=pull.merge_commit_sha, already_merged=True)


def ensure_change(
    provider: InspectableProvider,
    repo: str,
    changes: Sequence[FileChange],
    *,
    source_branch: str,
    target_branch: str,
    title: str,
    description: str = "",
    message: str | None = None,
    author: Author | None = None,
    method: MergeMethod | None = MergeMethod.MERGE,
    delete_source_branch: bool = True,
    timeout: float = 30.0,
    after: Evidence | None = None,
    key: str | None = None,
    settling: Settling = _REAL_TIME,
) -> Ensured[PullRequest | None]:
    """Bring changes into a branch through a pull request, unless that was done before.

    It creates the branch, commits, opens the pull request and merges it, and it may be called again after a failure at
    any step. Calling the four ``ensure_`` functions in a row does not have this property: after the branch of a merged
    pull request is deleted, they would create the branch again and find nothing to merge.

    The title identifies the change. If a pull request with this title between the two branches is merged, the change is
    done. Then only the source branch is deleted, if it is still at the merged head.

    Args:
        changes: as for ``commit_files``.
        source_branch: the branch of the pull request. It is created at the head of ``target_branch`` unless it exists.
        title, description: of the pull request.
        message: the commit's message; None uses the title.
        method: how the pull request is merged; None leaves it open.
        delete_source_branch: delete the source branch after the merge.
        timeout: as for ``merge_pull_request``.
        after: the error or the intent of an earlier attempt at any of the four steps. The function first waits until
            that request has settled.
        key: names this call in the provider's store of intents. Each step has a key of its own, ``KEY:create_branch``
            and so on. If an earlier attempt left an intent there, the function first waits until it has settled.

    Returns:
        The pull request as it is now, or None if the target branch has the changes and no pull request was needed.

    Raises:
        ConflictError: a pull request with another title is open between the branches.
        GitProviderError: any error of the four ``ensure_`` functions.
    """
    repo = check_repo_path(repo)
    committed = CommitFiles(
        branch=source_branch, changes=changes, message=title if message is None else message, author=author
    )
    asked = OpenPullRequest(
        source_branch=source_branch, target_branch=target_branch, title=title, description=description
    )
    steps: list[Mutation[Any]] = [CreateBranch(name=source_branch, source=target_branch), committed, asked]
    if method is not None:
        merge = MergePullRequest(
            number=1, method=method, delete_source_branch=delete_source_branch, timeout=timeout
        )  # the number is not known yet, and no check depends on it
        steps.append(merge)
    source_branch, target_branch, title = asked.source_branch, asked.target_branch, asked.title
    description = asked.description
    for step in steps:
        check_supported(provider, repo, step)
    _check_evidence(after)
    key = None if key is None else check_key(key)
    keys: dict[str, str | None] = {step.operation: None if key is None else f"{key}:{step.operation}" for step in steps}
    for step in steps:
        if (step_key := keys[step.operation]) is not None:
            settle_stored(provider, step_key, settling, asked=(repo, step))
    if after is not None and getattr(after, "intent", after) is not None:
        resolve(provider, after, wait=True, sleep=settling.sleep, now=settling.now)

    def finish(number: int) -> bool:
        if method is None:
            return False
        return ensure_merged(
            provider,
            repo,
            number,
            method=method,
            delete_source_branch=delete_source_branch,
            timeout=timeout,
            key=keys["merge_pull_request"],
            settling=settling,
        ).changed

    found = provider.find_pull_requests(repo, source_branch=source_branch, target_branch=target_branch)
    done = next((pull for pull in found if pull.state is PullRequestState.MERGED and _same_title(pull, title)), None)
    if done is not None:
        return Ensured(done, changed=finish(done.number))
    is_open = any(pull.state is PullRequestState.OPEN for pull in found)
    if not is_open and not missing_files(provider, repo, target_branch, committed.changes)[1]:
        return Ensured(None, changed=False)
    changed = False
    if optional(provider.head, repo, source_branch) is None:
        changed = ensure_branch(
            provider, repo, source_branch, source=target_branch, key=keys["create_branch"], settling=settling
        ).changed
    commit = ensure_files(
        provider,
        repo,
        source_branch,
        committed.changes,
        message=committed.message,
        author=author,
        key=keys["commit_files"],
        settling=settling,
    )
    pull = ensure_pull_request(
        provider,
        repo,
        source_branch=source_branch,
        target_branch=target_branch,
        title=title,
        description=description,
        key=keys["open_pull_request"],
        settling=settling,
    )
    merged = finish(pull.value.number)
    changed = changed or commit.changed or pull.changed or merged
    return Ensured(provider.get_pull_request(repo, pull.value.number) if merged else pull.value, changed=changed)


def _same_title(pull: PullRequest, title: str) -> bool:
    return pull.title.strip() == title.strip()


def check_supported(provider: InspectableProvider, repo: str, asked: Mutation[Any]) -> None:
    """Check, before any request, that the provider can carry out the mutation as requested.

    The providers of this package have ``check(repo, asked)``. For any other provider, ``supports(option)`` is called if
    it exists.

    Raises:
        InvalidRequestError: the host does not accept the path or an argument.
        UnsupportedOptionError: the host cannot honour an option.
    """
    check_repo_path(repo)
    check = getattr(provider, "check", None)
    if check is not None:
        check(repo, asked)
        return
    supports: Callable[[str], bool] = getattr(provider, "supports", lambda option: True)
    for option in asked.options():
        if not supports(option):
            raise UnsupportedOptionError(
                f"{option}: the provider {provider.name} does not support it",
                option=option,
                hint="leave the option out, or set it on the host by hand",
            )


def _ensure(
    provider: InspectableProvider, repo: str, asked: Mutation[_T], matching: Callable[[], _T | None]
) -> Ensured[_T]:
    found = matching()
    if found is not None:
        return Ensured(found, changed=False)
    try:
        return Ensured(asked.apply(provider, repo), changed=True)
    except AlreadyExistsError:
        # Another client, or an earlier request of this one, was faster. The host's current state decides.
        found = matching()
        if found is None:
            raise
        return Ensured(found, changed=False)


# The fields of an intent that distinguish one call of an operation from another.
_IDENTITY = ("branch", "number", "source_branch", "target_branch")


@contextmanager
def _settled(
    provider: InspectableProvider,
    repo: str,
    asked: Mutation[Any],
    after: Evidence | None,
    key: str | None,
    settling: Settling,
) -> Iterator[Resolution | None]:
    """Check the mutation, and wait until earlier attempts have settled. The block makes the next one, under the key.

    Yields the resolution of the earlier attempt, or None if there is none, or if it sent nothing.
    """
    check_supported(provider, repo, asked)
    _check_evidence(after)
    with nullcontext() if key is None else claimed(store_of(provider), key) as claim:
        stored = None if claim is None else claim.look()
        if claim is not None and stored is not None:
            _refuse_another(provider, repo, asked, stored, claim.key)
        earlier = _resolve_earlier(provider, repo, asked, after, settling)
        if claim is None or stored is None:
            yield earlier
            return
        earlier = _resolve_stored(provider, claim, stored, settling)
        yield earlier
        if earlier.verdict is Verdict.UNDECIDED:  # the host has what was asked for, whoever did it
            claim.settle()


def store_of(provider: InspectableProvider) -> IntentStore:
    """Return the store that a provider tells its effects.

    Raises:
        InvalidRequestError: it has none.
    """
    store: IntentStore | None = getattr(provider, "intents", None)
    if store is None:
        refuse("key", "needs a provider that has a store: give connect() or the provider's class intents=store")
    return store


def settle_stored(
    provider: InspectableProvider, key: str, settling: Settling, *, asked: tuple[str, Mutation[Any]] | None = None
) -> None:
    """Wait until the request whose intent an earlier call left under the key has settled.

    Args:
        asked: the repository and the mutation that the intent must be of; None accepts any.

    Raises:
        ConflictError: the intent is of another mutation, or another call is running under the key.
        GitProviderError: any error of ``resolve``.
    """
    with claimed(store_of(provider), key) as claim:
        if (stored := claim.look()) is not None:
            if asked is not None:
                repo, step = asked
                if isinstance(step, MergePullRequest) and stored.number is not None:
                    step = dataclasses.replace(step, number=stored.number)  # it is not known yet
                _refuse_another(provider, repo, step, stored, key)
            _resolve_stored(provider, claim, stored, settling)


def _resolve_stored(provider: InspectableProvider, claim: Claim, stored: Intent, settling: Settling) -> Resolution:
    """Find out what became of the intent of an earlier call, and tell the store if it is decided."""
    found = resolve(provider, stored, wait=True, sleep=settling.sleep, now=settling.now)
    if found.verdict is Verdict.UNDECIDED:
        claim.distrust()
    else:
        claim.settle()
    return found


def _resolve_earlier(
    provider: InspectableProvider, repo: str, asked: Mutation[Any], after: Evidence | None, settling: Settling
) -> Resolution | None:
    intent = after.intent if isinstance(after, GitProviderError) else after
    if after is None or intent is None:  # a read failed, or an argument was refused: nothing was sent
        return None
    record = asked.record()
    same = {"operation": asked.operation, "repo": repo, **{name: record[name] for name in _IDENTITY if name in record}}
    for name, value in same.items():
        recorded = getattr(intent, name)
        if recorded is not None and recorded != value:  # None: the call was refused before it was recorded
            refuse("after", f"is from another call: its {name} is {recorded!r}, not {value!r}")
    return resolve(provider, after, wait=True, sleep=settling.sleep, now=settling.now)


@guarded("after")
def _check_evidence(after: Any) -> None:
    if after is not None and not isinstance(after, GitProviderError | Intent):
        refuse("after", f"must be an error, an intent or None, not {type(after).__name__}")


def _refuse_another(provider: InspectableProvider, repo: str, asked: Mutation[Any], stored: Intent, key: str) -> None:
    """Raise ConflictError if the intent that is stored under the key is of another mutation."""
    same = {"provider": provider.name, "operation": asked.operation, "repo": repo, **asked.record()}
    unknown: tuple[Any, ...] = (None, (), {})  # a field that only one of them knows
    differs = [
        name
        for name, value in same.items()
        if value not in unknown and getattr(stored, name) not in unknown and getattr(stored, name) != value
    ]
    if not differs and isinstance(asked, CommitFiles):
        entries = {path: None if entry is None else TreeEntry(*entry) for path, entry in stored.files.items()}
        # Of the changes, an ensure_files commits those that the branch does not have.
        sent = [change for change in asked.changes if change.path in entries]
        sha256 = any(entry is not None and len(entry.sha) == 64 for entry in entries.values())
        if not entries.keys() <= {*asked.paths} or not all(holds(one, entries.get, sha256=sha256) for one in sent):
            differs = ["files"]
    if differs:
        error = unresolved_error(key, stored)
        error.message += f", which is another mutation: it differs in {', '.join(differs)}"
        error.args = (error.message,)
        error.provider, error.operation, error.repo = provider.name, asked.operation, repo
        raise error


def _contradict(provider: InspectableProvider, repo: str, problem: str) -> NoReturn:
    raise ConflictError(f"{repo}: {problem}", provider=provider.name, repo=repo)
