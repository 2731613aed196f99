"""The same eight operations as coroutines, on worker threads (extra ``[aio]``).

::

    provider = AsyncGitProvider(GitHubProvider(token))
    repo = await provider.get_repo("acme/widgets")

What a cancelled task leaves behind:

* A read stops waiting at once. A wait between two tries ends; a request on its way ends by its own timeout, unseen.
* A mutation that was begun is not abandoned: the task waits for its end, at most ``grace`` seconds, reports what became
  of it as a :class:`gitprovider.events.CancelledEvent`, and then the cancellation goes on. Waits inside the mutation
  (while a host computes mergeability) end at once. A mutation that still stands in the queue is not begun.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import Enum
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from gitprovider import checks
from gitprovider._core.extras import missing_extra
from gitprovider._core.operation import plain_rules
from gitprovider.contract import GitProviderContract
from gitprovider.errors import Outcome
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
from gitprovider.retry import cancel_on

try:
    import anyio
    import anyio.lowlevel
    import anyio.to_thread
except ImportError as cause:
    raise missing_extra("aio", cause) from None

_T = TypeVar("_T")


class AsyncGitProvider:
    """A provider whose operations are coroutines; each means what GitProviderContract says.

    Args:
        provider: any provider that threads may share, as the three of this library.
        max_concurrency: how many operations run at once; further ones wait their turn.
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
        self._limiter = anyio.CapacityLimiter(checks.check_int("max_concurrency", max_concurrency, least=1))
        self._grace = checks.check_seconds("grace", grace)
        self._hook = on_event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the provider, if it can be closed."""
        close = getattr(self._provider, "close", None)
        if close is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(close)

    def __repr__(self) -> str:
        return f"AsyncGitProvider({self._provider!r})"

    async def get_repo(self, repo: str) -> Repo:
        """See GitProviderContract."""
        return await self._read(lambda: self._provider.get_repo(repo))

    async def list_branches(self, repo: str) -> list[Branch]:
        """See GitProviderContract."""
        return await self._read(lambda: self._provider.list_branches(repo))

    async def create_repo(
        self,
        repo: str,
        *,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
        auto_init: bool = False,
    ) -> Repo:
        """See GitProviderContract."""
        return await self._mutate(
            "create_repo",
            repo,
            lambda: self._provider.create_repo(
                repo, description=description, visibility=visibility, auto_init=auto_init
            ),
            visibility=visibility,
            description=description,
            auto_init=auto_init,
        )

    async def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        """See GitProviderContract."""
        return await self._mutate(
            "create_branch",
            repo,
            lambda: self._provider.create_branch(repo, name, source=source),
            branch=name,
            source_sha=_sha(source),
        )

    async def protect_branch(
        self, repo: str, branch: str, rules: BranchProtection = BranchProtection()
    ) -> BranchProtection:
        """See GitProviderContract."""
        return await self._mutate(
            "protect_branch",
            repo,
            lambda: self._provider.protect_branch(repo, branch, rules),
            branch=branch,
            rules=rules,
        )

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
        """See GitProviderContract."""
        return await self._mutate(
            "commit_files",
            repo,
            lambda: self._provider.commit_files(
                repo, branch, changes, message=message, author=author, expected_head=expected_head
            ),
            branch=branch,
            message=message,
            base_sha=_sha(expected_head),
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
        """See GitProviderContract."""
        return await self._mutate(
            "open_pull_request",
            repo,
            lambda: self._provider.open_pull_request(
                repo,
                source_branch=source_branch,
                target_branch=target_branch,
                title=title,
                description=description,
                draft=draft,
                labels=labels,
                reviewers=reviewers,
            ),
            source_branch=source_branch,
            target_branch=target_branch,
            title=title,
            draft=draft,
            labels=labels,
            reviewers=reviewers,
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
        """See GitProviderContract."""
        return await self._mutate(
            "merge_pull_request",
            repo,
            lambda: self._provider.merge_pull_request(
                repo,
                number,
                method=method,
                expected_head=expected_head,
                message=message,
                delete_source_branch=delete_source_branch,
                timeout=timeout,
            ),
            number=number,
            method=method,
            head_sha=_sha(expected_head),
            delete_source_branch=delete_source_branch,
        )

    async def _read(self, call: Callable[[], _T]) -> _T:
        cancelled = threading.Event()

        def run() -> _T:
            with cancel_on(cancelled):
                return call()

        try:
            return await anyio.to_thread.run_sync(run, limiter=self._limiter, abandon_on_cancel=True)
        finally:
            cancelled.set()

    async def _mutate(self, operation: str, repo: str, call: Callable[[], _T], **asked: Any) -> _T:
        flight = _Flight(call, self._grace)
        # The turn is awaited outside the shield: a task that is cancelled in the queue has sent nothing.
        async with self._limiter, anyio.create_task_group() as tasks:
            tasks.start_soon(flight.watch)
            with flight.shield:
                await anyio.to_thread.run_sync(flight.run, limiter=anyio.CapacityLimiter(1), abandon_on_cancel=True)
            try:
                await anyio.lowlevel.checkpoint_if_cancelled()
            except anyio.get_cancelled_exc_class():
                emit(self._hook, self._report(operation, repo, flight, asked))
                raise
            tasks.cancel_scope.cancel()
        return flight.result()

    def _report(self, operation: str, repo: str, flight: _Flight[Any], asked: dict[str, Any]) -> CancelledEvent:
        provider = str(getattr(self._provider, "name", type(self._provider).__name__))
        known: dict[str, Any] = {"operation": operation, "provider": provider, "repo": repo}
        if not flight.ended:
            # What the provider knows of it is on its thread; what was asked and when is known here. Without a time
            # of sending, the intent would say that nothing was sent.
            plain = {name: _plain(value) for name, value in asked.items()}
            intent = Intent(**known, **plain, sent_at=flight.began, lost_at=datetime.now(UTC))
            return CancelledEvent(**known, outcome=Outcome.UNKNOWN, intent=intent)
        return CancelledEvent(
            **known,
            error=type(flight.error).__name__ if flight.error else None,
            outcome=getattr(flight.error, "outcome", Outcome.UNKNOWN if flight.error else None),
            intent=getattr(flight.error, "intent", None),
        )


def _sha(value: Any) -> str | None:
    return value.lower() if isinstance(value, str) and checks.is_sha(value) else None


def _plain(value: Any) -> Any:
    """An argument as an intent holds it."""
    if isinstance(value, BranchProtection):
        return plain_rules(value)
    if isinstance(value, Enum):
        return value.value
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


class _Flight(Generic[_T]):
    """One mutation on its worker thread, and the task that waits for it."""

    def __init__(self, call: Callable[[], _T], grace: float) -> None:
        self.shield = anyio.CancelScope(shield=True)
        self.cancelled = threading.Event()
        self.began = datetime.now(UTC)
        self.ended = False
        self.error: BaseException | None = None
        self._call = call
        self._grace = grace
        self._values: list[_T] = []

    def run(self) -> None:
        """On the thread: make the call, with its waits tied to the task's cancellation."""
        try:
            with cancel_on(self.cancelled):
                self._values.append(self._call())
        except BaseException as error:
            self.error = error
        finally:
            self.ended = True

    async def watch(self) -> None:
        """On the loop: when the task is cancelled, end the waits and begin to count the grace."""
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            if not self.ended:
                self.cancelled.set()
                self.shield.deadline = anyio.current_time() + self._grace
            raise

    def result(self) -> _T:
        """What the call returned; or its error, raised."""
        if self.error is not None:
            raise self.error
        return self._values[0]
