"""A provider as coroutines that run on worker threads (extra ``[aio]``).

::

    provider = AsyncGitProvider(GitHubProvider(token))
    repo = await provider.get_repo("acme/widgets")
    merged, changed = await provider.ensure_merged("acme/widgets", 7, key="merge:7")

The operations, the reads of HostState, ``resolve``, ``recover``, the ``ensure_`` functions and ``bootstrap`` are
methods, with the arguments that they have elsewhere.

When a task is cancelled:

* A read stops waiting at once. A wait between two attempts ends. A request in flight runs in the background until its
  own timeout, and its result is discarded.
* A mutation that has started is not abandoned. The task waits up to ``grace`` seconds for it to end and emits a
  :class:`gitprovider.events.CancelledEvent` with the result. Then the cancellation continues. Waits inside the mutation
  (while a host computes mergeability) end at once. A mutation that is still queued is not started.

This holds for every kind of cancellation: a scope of anyio or trio, ``Task.cancel()``, ``asyncio.wait_for``,
``asyncio.timeout``, a failing ``TaskGroup``, and Ctrl+C. A second cancellation does not end the wait. A call counts
towards ``max_concurrency`` until its thread has ended it.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

from gitprovider import checks
from gitprovider import ensure as _ensure
from gitprovider._core.extras import missing_extra
from gitprovider.bootstrap import bootstrap as _bootstrap
from gitprovider.contract import GitProviderContract, HostState, InspectableProvider
from gitprovider.errors import InvalidRequestError, Outcome, ProviderUnavailableError
from gitprovider.events import CancelledEvent, Hook, check_hooks, described, emit
from gitprovider.intent import Intent
from gitprovider.models import (
    Author,
    Branch,
    BranchProtection,
    Commit,
    FileChange,
    MergeMethod,
    MergeResult,
    PullRequest,
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
from gitprovider.resolve import recover as _recover
from gitprovider.resolve import resolve as _resolve
from gitprovider.retry import cancel_on

try:
    import anyio
    import anyio.lowlevel
    import anyio.to_thread
except ImportError as cause:
    raise missing_extra("aio", cause) from None

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Method = Callable[Concatenate["AsyncGitProvider", _P], Coroutine[Any, Any, _T]]


def _read(function: Callable[Concatenate[HostState, _P], _T]) -> _Method[_P, _T]:
    """Return a read of HostState as a method that is awaited."""

    @wraps(function)
    async def method(self: AsyncGitProvider, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        read: Callable[_P, _T] = getattr(self._inspectable(), function.__name__)
        return await self._read(lambda: read(*args, **kwargs))

    return method


def _composed(function: Callable[Concatenate[InspectableProvider, _P], _T]) -> _Method[_P, _T]:
    """Return a function of a provider, which may send mutations, as a method that is awaited."""

    @wraps(function)
    async def method(self: AsyncGitProvider, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        self._inspectable()
        return await self.run(function, *args, **kwargs)

    return method


class AsyncGitProvider:
    """A provider whose operations are coroutines, as specified by GitProviderContract.

    It works under asyncio and trio. Closing it closes the provider.

    Args:
        provider: any thread-safe provider, such as the three of this library.
        max_concurrency: how many operations run at once. Further operations are queued. A cancelled operation counts
            until its thread has ended it.
        grace: how many seconds a cancelled task waits for a mutation in flight to end.
        on_event: called with a CancelledEvent for each mutation whose task was cancelled. The provider's own hook
            receives all other events.
    """

    def __init__(
        self,
        provider: GitProviderContract,
        *,
        max_concurrency: int = 32,
        grace: float = 60.0,
        on_event: Hook | Sequence[Hook] | None = None,
    ) -> None:
        self._provider = provider
        self._max_concurrency = checks.check_int("max_concurrency", max_concurrency, least=1)
        self._grace = checks.check_seconds("grace", grace)
        self._hooks = check_hooks(on_event)
        self._closed = False
        self._workers: ThreadPoolExecutor | None = None
        self._pid = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the provider if it has a ``close`` method. Further calls are refused."""
        self._closed = True
        if self._workers is not None:
            self._workers.shutdown(wait=False)
        close = getattr(self._provider, "close", None)
        if close is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(close)

    def __repr__(self) -> str:
        return f"AsyncGitProvider({getattr(self, '_provider', None)!r})"

    async def get_repo(self, repo: str) -> Repo:
        """Return a repository.

        If the repository was renamed, it is read at its new path, and ``path`` of the value is the new path.

        Args:
            repo: the full path.

        Raises:
            NotFoundError: the repository does not exist, or this credential may not see it. Hosts do not distinguish
                the two.
            RetryCancelledError: the event of ``cancel_on`` was set during a wait.

        GitHub: ``GET /repos/{owner}/{repo}`` (https://docs.github.com/rest/repos/repos#get-a-repository).
        GitLab: ``GET /projects/:id`` (https://docs.gitlab.com/api/projects/#get-a-single-project).
        """
        return await self._read(lambda: self._provider.get_repo(repo))

    async def list_branches(self, repo: str) -> list[Branch]:
        """Return every branch once, sorted by name (code points). The list is empty for an empty repository.

        Pages of 100 are read one after another, or side by side with ``page_concurrency`` of GitHubProvider. If a page
        fails, only that page is read again. A page that is short but not the last, a repeated page, or a body that is
        not a list is an error, never a shorter result.

        Branches that are made or deleted while the pages are read can move others between the pages. Where the host
        tells the size of the whole list (GitLab: the number of branches; GitHub: only the number of pages), the list is
        read again if it does not fit, three times at most. On GitHub, a deletion that leaves the number of pages as it
        was can hide another branch: no request of GitHub's shows it.

        Args:
            repo: the full path.

        Raises:
            NotFoundError: no such repository.
            RetryCancelledError: the event of ``cancel_on`` was set during a wait.

        GitHub: ``GET /repos/{owner}/{repo}/branches`` (https://docs.github.com/rest/branches/branches#list-branches).
        GitLab: ``GET /projects/:id/repository/branches``
        (https://docs.gitlab.com/api/branches/#list-repository-branches).
        """
        return await self._read(lambda: self._provider.list_branches(repo))

    async def create_repo(
        self, repo: str, *, description: str = "", visibility: Visibility = Visibility.PRIVATE, auto_init: bool = False
    ) -> Repo:
        """Create a repository and return it. The effect step is the create request.

        Args:
            repo: the full path. The namespace must exist (local: it is created). The old path of a renamed repository
                is free, and then no longer leads to that one.
            description: one line.
            visibility: PUBLIC, PRIVATE or INTERNAL (GitHub: INTERNAL is unsupported on github.com's own API;
                GitLab: unsupported on gitlab.com, which has disabled it).
            auto_init: create a first commit with a README on the default branch. A host may do this in the background;
                the branch then appears moments later.

        Raises:
            AlreadyExistsError: the path is taken. ``existing`` is that Repo if this credential may see it.
            NotFoundError: the namespace does not exist, or this credential may not see it.
            PermissionDeniedError: the credential may not create there, or the plan or a policy forbids the visibility.
            InvalidRequestError: the host would refuse the name or silently change it.

        GitHub: ``POST /orgs/{org}/repos`` or ``POST /user/repos``
        (https://docs.github.com/rest/repos/repos#create-an-organization-repository).
        GitLab: ``POST /projects`` (https://docs.gitlab.com/api/projects/#create-a-project).
        """
        return await self._mutate(
            repo, partial(CreateRepo, description=description, visibility=visibility, auto_init=auto_init)
        )

    async def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        """Create a branch and return it. The effect step is the create request. An existing branch is never moved.

        Args:
            name: the branch name without ``refs/heads/``, such as ``feature/login``.
            source: the name of an existing branch, whose head is read first, or a full commit sha.

        Raises:
            AlreadyExistsError: the branch exists. ``existing`` is that Branch.
            NotFoundError: no such repository, no such source branch or commit, or the repository is empty.
            ConflictError: one name is a path prefix of another branch's (``release`` and ``release/1``).
            PermissionDeniedError: a rule forbids the name.

        GitHub: ``POST /repos/{owner}/{repo}/git/refs`` (https://docs.github.com/rest/git/refs#create-a-reference).
        GitLab: ``POST /projects/:id/repository/branches``
        (https://docs.gitlab.com/api/branches/#create-repository-branch).
        """
        return await self._mutate(repo, partial(CreateBranch, name=name, source=source))

    async def protect_branch(
        self, repo: str, branch: str, rules: BranchProtection = BranchProtection()
    ) -> BranchProtection:
        """Protect a branch at least as much as ``rules``, and return the protection that is now in force.

        ``rules`` is a minimum. The current protection is read first, and each field is set to the stricter of the two
        values. Settings that this library does not model are kept; if they cannot be, nothing is written. If the read
        fails, nothing is written. The host's response is compared with the request.

        GitLab: a rule on the Free tier cannot be changed in place. A temporary bridge rule keeps the branch protected
        while the rule is replaced. A failure in between never leaves the branch less protected than before.

        Args:
            branch: an existing branch, not a pattern.
            rules: the least protection that the branch has afterwards.

        Raises:
            NotFoundError: no such repository or branch.
            ConflictError: another rule, which this call may not change, makes the branch less protected than
                requested; the current protection cannot be read; or a setting would be lost. Nothing was changed.
            PermissionDeniedError: administration rights are needed (GitLab: Maintainer), or the plan has no
                protection. With outcome PARTIAL: the host accepted the write but protects less than requested.

        GitHub: ``PUT /repos/{owner}/{repo}/branches/{branch}/protection``
        (https://docs.github.com/rest/branches/branch-protection#update-branch-protection).
        GitLab: ``POST`` and ``PATCH /projects/:id/protected_branches``
        (https://docs.gitlab.com/api/protected_branches/).
        """
        return await self._mutate(repo, partial(ProtectBranch, branch=branch, rules=rules))

    async def commit_files(
        self,
        repo: str,
        branch: str,
        changes: Sequence[FileChange],
        *,
        message: str,
        author: Author | None = None,
        expected_head: str | None = None,
    ) -> Commit:
        """Commit all changes at once and return the commit. The effect step moves the branch, never by force.

        Content is written byte for byte. If the changes have no effect, no commit is made and the branch's head is
        returned, with its own message and parent where the host gives them. In an empty repository this makes the first
        commit, on the default branch. There, GitHub needs two commits for several files, because its Git data API
        refuses an empty repository: a seed commit of one file, then the rest. GitLab needs a second commit there for
        executable files, because the first cannot set a mode. GitHub signs a commit that is made with its mutation
        (``commit_api="auto"``), and one by an App; it does not sign one that a user's token makes otherwise.

        Args:
            branch: an existing branch; in an empty repository the default branch.
            changes: at least one change, each path at most once, at most 25 MB per file and 50 MB per call. All changes
                are checked, and files given by path are read, before any request.
            message: not empty.
            author: None leaves the author to the host, which uses the credential's user.
            expected_head: the full sha that the branch must be at.

        Raises:
            NotFoundError: no such repository, or no such branch in a repository that has commits.
            HeadMovedError: the branch is not at ``expected_head``, or it moved while the commit was made. GitLab has no
                compare-and-set on a branch. There, the new commit's parent is compared with the head read before. If
                they differ, the outcome is PARTIAL and ``completed`` has the commit.
            InvalidRequestError: a change deletes or moves a path that does not exist, moves onto an existing path, puts
                a file below a file or in place of a directory, or touches a symbolic link or submodule. In an empty
                repository: the branch is not the default branch, or a change is not a PutFile.
            PermissionDeniedError: the branch is protected against direct commits.

        GitHub: ``POST /repos/{owner}/{repo}/git/trees``, ``…/git/commits``, ``PATCH …/git/refs/heads/{branch}``
        (https://docs.github.com/rest/git).
        GitLab: ``POST /projects/:id/repository/commits``
        (https://docs.gitlab.com/api/commits/#create-a-commit-with-multiple-files-and-actions).
        """
        return await self._mutate(
            repo,
            partial(
                CommitFiles, branch=branch, changes=changes, message=message, author=author, expected_head=expected_head
            ),
        )

    async def open_pull_request(
        self,
        repo: str,
        *,
        source_branch: str,
        target_branch: str,
        title: str,
        description: str = "",
        draft: bool = False,
        labels: Sequence[str] = (),
        reviewers: Sequence[str] = (),
    ) -> PullRequest:
        """Open a pull request between two branches of the repository. The effect step is the create request.

        Args:
            source_branch, target_branch: two different, existing branches. ``owner:branch`` is refused.
            title: one line of at most 255 characters.
            description: Markdown.
            draft: open it as a draft.
            labels: label names. The host creates those that do not exist.
            reviewers: user names to request a review from.

        Raises:
            AlreadyExistsError: a pull request is open between these branches. ``existing`` is that PullRequest.
            NotFoundError: no such repository, source branch or target branch.
            ConflictError: there are no commits between the branches (GitHub, local; GitLab opens it anyway), or the two
                branches have no history in common.
            PermissionDeniedError: the plan has no drafts, or the credential may not open pull requests.
            Any error with outcome PARTIAL: the pull request was opened and is in ``completed``, but a label or reviewer
                was not set.

        GitHub: ``POST /repos/{owner}/{repo}/pulls`` (https://docs.github.com/rest/pulls/pulls#create-a-pull-request).
        GitLab: ``POST /projects/:id/merge_requests`` (https://docs.gitlab.com/api/merge_requests/#create-mr).
        """
        return await self._mutate(
            repo,
            partial(
                OpenPullRequest,
                source_branch=source_branch,
                target_branch=target_branch,
                title=title,
                description=description,
                draft=draft,
                labels=labels,
                reviewers=reviewers,
            ),
        )

    async def merge_pull_request(
        self,
        repo: str,
        number: int,
        *,
        method: MergeMethod = MergeMethod.MERGE,
        expected_head: str | None = None,
        message: str | None = None,
        delete_source_branch: bool = False,
        timeout: float = 30.0,
    ) -> MergeResult:
        """Merge a pull request at a known head. The effect step is the merge request, sent once with that head's sha.

        If the pull request is already merged at that head, the call succeeds with ``already_merged=True``. Success is
        reported only if the host says that the pull request is merged.

        Args:
            number: the number shown to users (GitLab: iid).
            method: MERGE creates a merge commit, SQUASH one commit, REBASE no commit of its own.
            expected_head: the full sha that the source branch must be at. None uses the head read just before the
                merge.
            message: the message of the merge or squash commit. It is refused with REBASE, which makes no commit.
            delete_source_branch: delete the source branch after the merge. It is deleted only if it is in the same
                repository and still at the merged head, and if no other open pull request is from or into it, because
                a host closes those.
            timeout: seconds to wait, by reading only, while the host computes whether the pull request can be merged.

        Raises:
            NotFoundError: no such repository or pull request.
            HeadMovedError: the source branch is not at ``expected_head``.
            NotMergeableError: ``reason`` is CONFLICT, CHECKS, REVIEWS, DRAFT, BEHIND, CLOSED, METHOD (the
                repository's settings forbid the method), POLICY, PENDING (the host is still computing; or, with
                outcome UNKNOWN, it accepted the merge and did not finish in time) or UNKNOWN.
            PermissionDeniedError: the credential may not merge into the target branch.
            Any error with outcome PARTIAL: the merge is done, the MergeResult is in ``completed``, and the source
                branch was not deleted.

        GitHub: ``PUT /repos/{owner}/{repo}/pulls/{number}/merge``
        (https://docs.github.com/rest/pulls/pulls#merge-a-pull-request).
        GitLab: ``PUT /projects/:id/merge_requests/:iid/merge``
        (https://docs.gitlab.com/api/merge_requests/#merge-a-merge-request).
        """
        return await self._mutate(
            repo,
            partial(
                MergePullRequest,
                number=number,
                method=method,
                expected_head=expected_head,
                message=message,
                delete_source_branch=delete_source_branch,
                timeout=timeout,
            ),
        )

    head = _read(HostState.head)
    contains = _read(HostState.contains)
    commit = _read(HostState.commit)
    tree = _read(HostState.tree)
    protection = _read(HostState.protection)
    find_pull_requests = _read(HostState.find_pull_requests)
    get_pull_request = _read(HostState.get_pull_request)

    resolve = _composed(_resolve)
    recover = _composed(_recover)
    ensure_repo = _composed(_ensure.ensure_repo)
    ensure_branch = _composed(_ensure.ensure_branch)
    ensure_protection = _composed(_ensure.ensure_protection)
    ensure_files = _composed(_ensure.ensure_files)
    ensure_pull_request = _composed(_ensure.ensure_pull_request)
    ensure_merged = _composed(_ensure.ensure_merged)
    ensure_change = _composed(_ensure.ensure_change)
    bootstrap = _composed(_bootstrap)

    def supports(self, option: str) -> bool:
        """Report whether the host honours an option. It reads a table and does not wait, so it is no coroutine."""
        supported: bool = cast(Any, self._provider).supports(option)
        return supported

    async def run(self, function: Callable[Concatenate[Any, _P], _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a function of your own, ``function(provider, *args, **kwargs)``, on a worker thread; return its result.

        The functions of this library that take a provider first are methods. Because ``function`` may send mutations, a
        cancelled task waits for it as for a mutation: its waits end at once, no further mutation begins, and the
        CancelledEvent has the function's name.
        """

        def call() -> _T:
            return function(self._provider, *args, **kwargs)

        repo: Any = args[0] if args and isinstance(args[0], str) else kwargs.get("repo", "")
        name = getattr(function, "__name__", type(function).__name__)
        return await self._outlasting(call, lambda flight: self._report(flight, name, repo, None))

    def _inspectable(self) -> InspectableProvider:
        if not isinstance(self._provider, InspectableProvider):
            raise InvalidRequestError(f"{type(self._provider).__name__} has no reads of HostState, which this needs")
        return self._provider

    async def _read(self, call: Callable[[], _T]) -> _T:
        flight = await self._start(call)
        try:
            await flight.ended.wait()
        except BaseException:
            flight.withdraw()
            raise
        try:
            return flight.future.result()
        finally:
            del flight  # an error's traceback leads here, and from here to the error

    async def _mutate(self, repo: str, asking: Callable[[], Mutation[_T]]) -> _T:
        asked: list[Mutation[_T]] = []
        operation: str = cast(Any, asking).func.operation

        def call() -> _T:
            with suppress(Exception):
                asked.append(asking())
            if asked:
                return asked[0].apply(self._provider, repo)
            # An argument is wrong. The provider raises the error itself, with its own attributes and events.
            result: _T = getattr(self._provider, operation)(repo, **cast(Any, asking).keywords)
            return result

        return await self._outlasting(
            call, lambda flight: self._report(flight, operation, repo, asked[0].record() if asked else {})
        )

    async def _outlasting(self, call: Callable[[], _T], report: Callable[[_Flight[_T]], CancelledEvent]) -> _T:
        """Make a call that is waited for when the task is cancelled, and then reported."""
        flight = await self._start(call)
        try:
            await flight.ended.wait()
        except BaseException as interruption:
            if not flight.withdraw():
                try:
                    if not isinstance(interruption, GeneratorExit):
                        await flight.outlast(self._grace)
                finally:
                    emit(self._hooks, report(flight))
            raise
        try:
            return flight.future.result()
        finally:
            del flight

    async def _start(self, call: Callable[[], _T]) -> _Flight[_T]:
        """Queue a call. A task that is already cancelled queues nothing."""
        await anyio.lowlevel.checkpoint()
        if self._closed:
            raise InvalidRequestError("this provider was closed; build a new one")
        if self._workers is None or self._pid != os.getpid():  # threads do not survive a fork
            self._workers = ThreadPoolExecutor(self._max_concurrency, thread_name_prefix="gitprovider")
            self._pid = os.getpid()
        return _Flight(self._workers, call)

    def _report(self, flight: _Flight[Any], operation: str, repo: str, record: dict[str, Any] | None) -> CancelledEvent:
        """Return the event of a cancelled call. ``record`` has the mutation's arguments; None for a function."""
        provider = str(getattr(self._provider, "name", type(self._provider).__name__))
        known: dict[str, Any] = {"operation": operation, "provider": provider, "repo": checks.shown_repo(repo)}
        if not flight.future.done():
            # The provider's own intent is on the worker thread. This one is built from the arguments and the start
            # time: an intent without `sent_at` would mean that nothing was sent.
            intent = None
            if record is not None:
                intent = Intent(**known, **record, sent_at=flight.queued_at, lost_at=datetime.now(UTC))
            return CancelledEvent(**known, outcome=Outcome.UNKNOWN, intent=intent)
        error = flight.future.exception()
        return CancelledEvent(
            **known,
            **described(error),
            outcome=getattr(error, "outcome", Outcome.UNKNOWN if error else None),
            intent=getattr(error, "intent", None),
        )


class _Flight(Generic[_T]):
    """One call on a worker thread, and the task that waits for it.

    Attributes:
        future: the call. It is done when the thread has ended the call, and not before.
        ended: set on the task's event loop after the future is done.
        queued_at: when the call was queued.
    """

    def __init__(self, workers: ThreadPoolExecutor, call: Callable[[], _T]) -> None:
        self.ended = anyio.Event()
        self.queued_at = datetime.now(UTC)
        self._call = call
        self._cancelled = threading.Event()
        wake = _waker(self.ended)
        try:
            self.future: Future[_T] = workers.submit(contextvars.copy_context().run, self._run)
        except RuntimeError:
            self._call = self._refuse  # the call may be in the queue all the same
            self._refuse()
        self.future.add_done_callback(lambda _: wake())

    def _run(self) -> _T:
        """Make the call on the worker thread. The task's cancellation ends the call's waits."""
        with cancel_on(self._cancelled):
            return self._call()

    def _refuse(self) -> _T:
        raise ProviderUnavailableError("no thread can be started; nothing was sent") from None

    def withdraw(self) -> bool:
        """End the call's waits. Return True if the call was still queued: it will never start."""
        self._cancelled.set()
        return self.future.cancel()

    async def outlast(self, seconds: float) -> None:
        """Wait up to ``seconds`` for the call to end. A further cancellation does not end the wait."""
        deadline = anyio.current_time() + seconds
        while not self.future.done() and anyio.current_time() < deadline:
            try:
                with anyio.CancelScope(shield=True, deadline=deadline):
                    await self.ended.wait()
            except GeneratorExit:
                raise
            except BaseException:  # noqa: S112 - a further cancellation; the first one is raised at the end
                continue


def _waker(event: anyio.Event) -> Callable[[], None]:
    """Return a function that sets ``event`` from any thread. It does nothing when the event loop has ended."""
    schedule: Callable[[Callable[[], None]], Any]
    if anyio.get_cancelled_exc_class() is asyncio.CancelledError:
        schedule = asyncio.get_running_loop().call_soon_threadsafe
    else:
        import trio

        schedule = trio.lowlevel.current_trio_token().run_sync_soon

    def wake() -> None:
        with suppress(RuntimeError):
            schedule(event.set)

    return wake
