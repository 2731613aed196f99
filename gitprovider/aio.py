"""The same eight operations as coroutines, on worker threads (extra ``[aio]``).

::

    provider = AsyncGitProvider(GitHubProvider(token))
    repo = await provider.get_repo("acme/widgets")

What a cancelled task leaves behind:

* A read stops waiting at once. A wait between two tries ends; a request on its way ends by its own timeout, unseen.
* A mutation that was begun is not abandoned: the task waits for its end, at most ``grace`` seconds, reports what became
  of it as a :class:`gitprovider.events.CancelledEvent`, and then the cancellation goes on. Waits inside the mutation
  (while a host computes mergeability) end at once. A mutation that still stands in the queue is not begun.

This holds for every kind of cancellation: an anyio or trio scope, ``Task.cancel()``, ``asyncio.wait_for``,
``asyncio.timeout``, a failing ``TaskGroup``, and Ctrl+C. Further cancellations do not end the wait. A call keeps its
place among ``max_concurrency`` until its thread has ended, whatever became of its task.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

from gitprovider import checks
from gitprovider._core.extras import missing_extra
from gitprovider.contract import GitProviderContract
from gitprovider.errors import InvalidRequestError, Outcome, ProviderUnavailableError
from gitprovider.events import CancelledEvent, Hook, emit
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
from gitprovider.retry import cancel_on

try:
    import anyio
    import anyio.lowlevel
    import anyio.to_thread
except ImportError as cause:
    raise missing_extra("aio", cause) from None

_T = TypeVar("_T")


class AsyncGitProvider:
    """A provider whose operations are coroutines. Each means what GitProviderContract says.

    Args:
        provider: any provider that threads may share, as the three of this library.
        max_concurrency: how many operations run at once; further ones wait their turn. An operation whose task was
            cancelled counts until its thread has ended.
        grace: how many seconds a cancelled task waits for the end of a mutation in flight.
        on_event: told of mutations whose task was cancelled. Everything else is told to the provider's own hook.

    Works under asyncio and trio. Closing it closes the provider.
    """

    def __init__(
        self,
        provider: GitProviderContract,
        *,
        max_concurrency: int = 32,
        grace: float = 60.0,
        on_event: Hook | None = None,
    ) -> None:
        self._provider = provider
        self._max_concurrency = checks.check_int("max_concurrency", max_concurrency, least=1)
        self._grace = checks.check_seconds("grace", grace)
        self._hook = on_event
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
        """Close the provider, if it can be closed."""
        self._closed = True
        if self._workers is not None:
            self._workers.shutdown(wait=False)
        close = getattr(self._provider, "close", None)
        if close is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(close)

    def __repr__(self) -> str:
        return f"AsyncGitProvider({self._provider!r})"

    async def get_repo(self, repo: str) -> Repo:
        """Read a repository.

        A repository that was renamed is read at its new place: the value's ``path`` is the new one.

        Args:
            repo: the full path.

        Raises:
            NotFoundError: there is none, or this credential may not see it; hosts do not tell these apart.
            RetryCancelledError: the event of ``cancel_on`` was set during a wait.

        GitHub: ``GET /repos/{owner}/{repo}`` (https://docs.github.com/rest/repos/repos#get-a-repository).
        GitLab: ``GET /projects/:id`` (https://docs.gitlab.com/api/projects/#get-a-single-project).
        """
        return await self._read(lambda: self._provider.get_repo(repo))

    async def list_branches(self, repo: str) -> list[Branch]:
        """List every branch, sorted by name (code points), each once. Empty for an empty repository.

        Pages of 100 are read one after another; a failure repeats the page that failed. A page that is short before
        the last, comes twice, or is no list, is an error, never a shorter result.

        Raises:
            NotFoundError: no such repository.
            RetryCancelledError: the event of ``cancel_on`` was set during a wait.

        GitHub: ``GET /repos/{owner}/{repo}/branches`` (https://docs.github.com/rest/branches/branches#list-branches).
        GitLab: ``GET /projects/:id/repository/branches``
        (https://docs.gitlab.com/api/branches/#list-repository-branches).
        """
        return await self._read(lambda: self._provider.list_branches(repo))

    async def create_repo(
        self,
        repo: str,
        *,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
        auto_init: bool = False,
    ) -> Repo:
        """Create a repository. Its effect step is the create request.

        Args:
            repo: the full path; the namespace must exist (local: it is made).
            description: one line.
            visibility: PUBLIC, PRIVATE or INTERNAL (GitHub: INTERNAL is unsupported on github.com's own API;
                GitLab: unsupported on gitlab.com, which has disabled it).
            auto_init: make a first commit with a README on the default branch. On hosts where that is done in the
                background the branch may appear moments later.

        Raises:
            AlreadyExistsError: the path is taken; ``existing`` is that Repo when it can be seen.
            NotFoundError: no such namespace, or this credential may not see it.
            PermissionDeniedError: not allowed to create there, or the plan or a policy forbids the visibility.
            InvalidRequestError: a name that the host would refuse or quietly change.

        GitHub: ``POST /orgs/{org}/repos`` or ``POST /user/repos``
        (https://docs.github.com/rest/repos/repos#create-an-organization-repository).
        GitLab: ``POST /projects`` (https://docs.gitlab.com/api/projects/#create-a-project).
        """
        return await self._mutate(
            repo, partial(CreateRepo, description=description, visibility=visibility, auto_init=auto_init)
        )

    async def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        """Create a branch. Its effect step is the create request; an existing branch is never moved.

        Args:
            name: the bare name, such as ``feature/login``.
            source: the name of an existing branch, whose head is read first, or a full commit sha.

        Raises:
            AlreadyExistsError: ``existing`` is that Branch.
            NotFoundError: no such repository, no such source branch or commit, or the repository is empty.
            ConflictError: a branch is in the way whose name is a path prefix (``release`` and ``release/1``).
            PermissionDeniedError: a rule forbids the name.

        GitHub: ``POST /repos/{owner}/{repo}/git/refs`` (https://docs.github.com/rest/git/refs#create-a-reference).
        GitLab: ``POST /projects/:id/repository/branches``
        (https://docs.gitlab.com/api/branches/#create-repository-branch).
        """
        return await self._mutate(repo, partial(CreateBranch, name=name, source=source))

    async def protect_branch(
        self, repo: str, branch: str, rules: BranchProtection = BranchProtection()
    ) -> BranchProtection:
        """Protect a branch at least as much as ``rules``, and return what now holds on the host.

        ``rules`` is a floor: what holds is read first, the stricter of both is taken for every field, and settings
        that this library does not model are kept. A failed read stops the call before the write. The host's answer is
        compared with what was asked.

        GitLab, where a rule of its Free tier cannot be changed in place: a bridge rule keeps the branch protected
        while the old rule is made anew; a failure in between leaves at least what held.

        Raises:
            NotFoundError: no such repository or branch.
            ConflictError: another rule, which this call may not change, makes the branch laxer than asked; or what
                holds cannot be read. Nothing was changed.
            PermissionDeniedError: needs administration rights (GitLab: Maintainer), or the plan has no protection.
                With outcome PARTIAL: the host took the write and holds less than was asked.

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
        """Commit all changes at once. Its effect step is the move of the branch, which is never forced.

        Content is written byte for byte. Changes that change nothing return the head (as a Commit with the head's
        own message and parent where the host gives them), without an empty commit. In an empty repository this makes
        the first commit, on the default branch. On GitHub, whose Git data API refuses an empty repository, several
        files take a seed commit of one of them and then the rest. On GitLab, which sets no mode there, executable files
        take a second commit.

        Args:
            branch: an existing branch; in an empty repository the default branch.
            changes: at least one; a path at most once; 25 MB a file and 50 MB a call at most. All are checked, and
                files named by path are read, before any request.
            message: not empty.
            author: None leaves it to the host, which takes the credential's user.
            expected_head: the full sha that the branch must be at.

        Raises:
            NotFoundError: no such repository; the branch does not exist in a repository that has commits.
            HeadMovedError: the branch is not at ``expected_head``, or moved while the commit was made. GitLab has no
                compare-and-set on a branch: there the new commit's parent is compared with the head read before, and
                a difference is HeadMovedError with outcome PARTIAL and the commit in ``completed``.
            InvalidRequestError: deleting or moving what is not there; moving onto an existing path; a file below a
                file or in place of a directory; a symbolic link or submodule at a touched path; in an empty
                repository, another branch than the default one, or anything but PutFile.
            PermissionDeniedError: the branch is protected against direct commits.

        GitHub: ``POST /repos/{owner}/{repo}/git/trees``, ``…/git/commits``, ``PATCH …/git/refs/heads/{branch}``
        (https://docs.github.com/rest/git).
        GitLab: ``POST /projects/:id/repository/commits``
        (https://docs.gitlab.com/api/commits/#create-a-commit-with-multiple-files-and-actions).
        """
        return await self._mutate(
            repo,
            partial(
                CommitFiles,
                branch=branch,
                changes=changes,
                message=message,
                author=author,
                expected_head=expected_head,
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
        """Open a pull request between two branches of the repository. Its effect step is the create request.

        Args:
            source_branch, target_branch: two existing, different branches; ``owner:branch`` is refused.
            title: one line of at most 255 characters.
            description: Markdown.
            draft: open it as a draft.
            labels: names; a host makes those that do not exist.
            reviewers: user names whose review is requested.

        Raises:
            AlreadyExistsError: one is open between these branches; ``existing`` is that PullRequest.
            NotFoundError: no such repository, source branch or target branch.
            ConflictError: there is nothing to merge: no commits between the branches (GitHub, local; GitLab opens it).
            PermissionDeniedError: the plan has no drafts; the credential may not open pull requests.
            Any error with outcome PARTIAL: the pull request was made, in ``completed``, and a label or reviewer not.

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
        """Merge a pull request at a known head. Its effect step is the merge request, sent once with that head's sha.

        Already merged at that head is success, with ``already_merged=True``. Success is reported only when the host
        says merged.

        Args:
            number: the number people see (GitLab: iid).
            method: MERGE makes a merge commit, SQUASH one commit, REBASE none of its own.
            expected_head: the full sha that the source branch must be at; None takes the head read just before.
            message: the message of the merge or squash commit; with REBASE, which makes none, InvalidRequestError.
            delete_source_branch: afterwards, in the same repository only, and only while the branch still is at the
                merged head.
            timeout: how many seconds to wait, reading only, while the host computes whether it can be merged.

        Raises:
            NotFoundError: no such repository or pull request.
            HeadMovedError: the source branch is not at ``expected_head``.
            NotMergeableError: ``reason`` is CONFLICT, CHECKS, REVIEWS, DRAFT, BEHIND, CLOSED, METHOD (the
                repository's settings contradict the method), POLICY, PENDING (still computing; or, with outcome
                UNKNOWN, accepted and not merged in time) or UNKNOWN.
            PermissionDeniedError: may not merge into the target branch.
            Any error with outcome PARTIAL: merged, with the MergeResult in ``completed``, and the source branch stays.

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
            # The refusal of an argument is the provider's to raise, with all that its errors and events hold.
            result: _T = getattr(self._provider, operation)(repo, **cast(Any, asking).keywords)
            return result

        flight = await self._start(call)
        try:
            await flight.ended.wait()
        except BaseException as interruption:
            if not flight.withdraw():
                try:
                    if not isinstance(interruption, GeneratorExit):
                        await flight.outlast(self._grace)
                finally:
                    record = asked[0].record() if asked else {}
                    emit(self._hook, self._report(flight, operation, repo, record))
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

    def _report(self, flight: _Flight[Any], operation: str, repo: str, record: dict[str, Any]) -> CancelledEvent:
        provider = str(getattr(self._provider, "name", type(self._provider).__name__))
        known: dict[str, Any] = {"operation": operation, "provider": provider, "repo": checks.shown_repo(repo)}
        if not flight.future.done():
            # What the provider knows of it is on its thread; what was asked and when is known here. Without a time
            # of sending, the intent would say that nothing was sent.
            intent = Intent(**known, **record, sent_at=flight.queued_at, lost_at=datetime.now(UTC))
            return CancelledEvent(**known, outcome=Outcome.UNKNOWN, intent=intent)
        error = flight.future.exception()
        return CancelledEvent(
            **known,
            error=type(error).__name__ if error else None,
            outcome=getattr(error, "outcome", Outcome.UNKNOWN if error else None),
            intent=getattr(error, "intent", None),
        )


class _Flight(Generic[_T]):
    """One call on a worker thread, and how a task waits for it.

    Attributes:
        future: the call itself. It is done when the thread has ended the call, and not before.
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
            self._call = self._refuse  # it stands in the queue all the same
            self._refuse()
        self.future.add_done_callback(lambda _: wake())

    def _run(self) -> _T:
        """On the thread: make the call, with its waits tied to the task's cancellation."""
        with cancel_on(self._cancelled):
            return self._call()

    def _refuse(self) -> _T:
        raise ProviderUnavailableError("no thread can be started; nothing was sent") from None

    def withdraw(self) -> bool:
        """End the call's waits. True if it was still in the queue: it will never begin."""
        self._cancelled.set()
        return self.future.cancel()

    async def outlast(self, seconds: float) -> None:
        """Wait for the end of the call, at most that long, whatever else interrupts the task meanwhile."""
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
    """A function for any thread that sets ``event`` on the running loop. A loop that has ended is left alone."""
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
