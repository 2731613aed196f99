"""The coroutines: concurrency, cancellation of reads and mutations, and errors as they are."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from gitprovider import Verdict, retry
from gitprovider.aio import AsyncGitProvider
from gitprovider.errors import (
    InvalidRequestError,
    NotFoundError,
    Outcome,
    ProviderUnavailableError,
    RetryCancelledError,
)
from gitprovider.events import CancelledEvent, Event
from gitprovider.intent import Intent
from gitprovider.local import LocalProvider
from gitprovider.models import Branch, BranchProtection, DeleteFile, MergeMethod, PullRequestState, PutFile
from gitprovider.mutations import plain_rules
from gitprovider.retry import RetryOptions, wait, with_retry

pytestmark = pytest.mark.anyio

RULES = BranchProtection(required_checks=("ci",))
CHANGES = [DeleteFile(path="a.txt")]
BRANCH = Branch(name="x", sha="a" * 40)
INTENT = Intent(operation="create_branch", provider="fake", repo="a/b")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class FakeProvider:
    """Each operation does what the test says, on the worker thread."""

    name = "fake"

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act
        self.closed = False
        self.began = threading.Event()

    def get_repo(self, repo: str) -> Any:
        return self._do()

    def create_branch(self, repo: str, name: str, *, source: str) -> Any:
        return self._do()

    def _do(self) -> Any:
        self.began.set()
        return self.act()

    def close(self) -> None:
        self.closed = True


def wrapped(act: Callable[[], Any], **known: Any) -> tuple[FakeProvider, AsyncGitProvider]:
    fake: Any = FakeProvider(act)
    return fake, AsyncGitProvider(fake, **known)


async def began(fake: FakeProvider) -> None:
    assert await anyio.to_thread.run_sync(fake.began.wait, 10)


async def test_a_value_and_an_error_come_through() -> None:
    """No exception group and no wrapper stands between the caller and the provider's error."""
    _, provider = wrapped(lambda: BRANCH)
    assert await provider.create_branch("a/b", "x", source="main") is BRANCH

    def fail() -> None:
        raise ProviderUnavailableError("down", outcome=Outcome.UNKNOWN)

    _, provider = wrapped(fail)
    with pytest.raises(ProviderUnavailableError) as caught:
        await provider.create_branch("a/b", "x", source="main")
    assert caught.value.outcome is Outcome.UNKNOWN
    with pytest.raises(ProviderUnavailableError):
        await provider.get_repo("a/b")


async def test_a_cancelled_read_ends_its_wait_at_once() -> None:
    """A wait of an hour between two tries ends with the task, on its thread as well."""
    ended = threading.Event()

    def down() -> None:
        raise ProviderUnavailableError("down", retry_after=3600.0)

    def read() -> None:
        try:
            with_retry(down, RetryOptions(max_retry_after=4000, max_total_wait=4000), should_retry=lambda e: True)
        except RetryCancelledError:
            ended.set()

    fake, provider = wrapped(read)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(provider.get_repo, "a/b")
            await began(fake)
            tasks.cancel_scope.cancel()

    assert await anyio.to_thread.run_sync(ended.wait, 10)


async def test_a_cancelled_mutation_is_waited_for_and_reported() -> None:
    """The task ends only after the mutation did; the event says what became of it."""
    release = threading.Event()
    events: list[Event] = []

    def lost() -> None:
        release.wait(10)
        raise ProviderUnavailableError("reset", outcome=Outcome.UNKNOWN, intent=INTENT)

    fake, provider = wrapped(lost, on_event=events.append)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_create, provider)
            await began(fake)
            scope.cancel()
            release.set()

    assert scope.cancelled_caught
    assert events == [
        CancelledEvent(
            operation="create_branch",
            provider="fake",
            repo="a/b",
            error="ProviderUnavailableError",
            message="reset",
            outcome=Outcome.UNKNOWN,
            intent=INTENT,
        )
    ]


async def _create(provider: AsyncGitProvider) -> None:
    await provider.create_branch("a/b", "x", source="main")


async def test_a_mutation_that_succeeds_after_the_cancellation_is_reported_as_success() -> None:
    """No outcome and no error: it was applied, though nobody took its value."""
    release = threading.Event()
    events: list[Event] = []

    def slow() -> Branch:
        release.wait(10)
        return BRANCH

    fake, provider = wrapped(slow, on_event=events.append)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_create, provider)
            await began(fake)
            scope.cancel()
            release.set()

    assert events == [CancelledEvent(operation="create_branch", provider="fake", repo="a/b")]


async def test_the_grace_bounds_the_wait_and_leaves_the_outcome_unknown() -> None:
    """A mutation that does not end in time is left to its thread, and its outcome is said to be unknown."""
    release = threading.Event()
    events: list[Event] = []
    fake, provider = wrapped(lambda: release.wait(30), on_event=events.append, grace=0.0)

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_create, provider)
            await began(fake)
            scope.cancel()
    release.set()

    (event,) = events
    assert isinstance(event, CancelledEvent)
    assert (event.outcome, event.error) == (Outcome.UNKNOWN, None)


@pytest.mark.parametrize(
    ("name", "asked", "known"),
    [
        ("create_repo", {}, {"visibility": "private", "description": "", "auto_init": False}),
        ("create_branch", {"name": "x", "source": "A" * 40}, {"branch": "x", "source_sha": "a" * 40}),
        ("create_branch", {"name": "x", "source": "main"}, {"branch": "x"}),
        ("protect_branch", {"branch": "x", "rules": RULES}, {"branch": "x", "rules": plain_rules(RULES)}),
        ("commit_files", {"branch": "x", "changes": CHANGES, "message": "m"}, {"branch": "x", "message": "m"}),
        (
            "open_pull_request",
            {"source_branch": "x", "target_branch": "y", "title": "t", "labels": ["bug"]},
            {"source_branch": "x", "target_branch": "y", "title": "t", "draft": False, "labels": ["bug"]},
        ),
        (
            "merge_pull_request",
            {"number": 7, "expected_head": "A" * 40, "method": MergeMethod.SQUASH},
            {"number": 7, "head_sha": "a" * 40, "method": "squash", "delete_source_branch": False},
        ),
    ],
)
async def test_the_evidence_of_an_abandoned_mutation_is_never_of_one_that_was_not_sent(
    name: str, asked: dict[str, Any], known: dict[str, Any]
) -> None:
    """resolve would take an intent without a time of sending for one that may be repeated, while its thread goes on."""
    release = threading.Event()
    events: list[Event] = []
    fake, provider = wrapped(lambda: release.wait(30), on_event=events.append, grace=0.0)
    setattr(fake, name, lambda *args, **kwargs: fake._do())

    async def call() -> None:
        await getattr(provider, name)("a/b", **asked)

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await began(fake)
            scope.cancel()
    release.set()

    (event,) = events
    assert isinstance(event, CancelledEvent)
    assert event.intent is not None
    record = json.loads(json.dumps(event.intent.to_json()))
    sent, given_up = record.pop("sent_at"), record.pop("lost_at")
    assert sent <= given_up
    assert record == {"operation": name, "provider": "fake", "repo": "a/b", **known}


async def test_a_bug_in_a_mutation_leaves_the_outcome_unknown() -> None:
    """An exception that is no error of a provider's says nothing of what was sent, and is not told as applied."""
    events: list[Event] = []
    release = threading.Event()

    def broken() -> None:
        release.wait(10)
        raise ZeroDivisionError

    fake, provider = wrapped(broken, on_event=events.append)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_create, provider)
            await began(fake)
            scope.cancel()
            release.set()

    (event,) = events
    assert isinstance(event, CancelledEvent)
    assert (event.error, event.outcome) == ("ZeroDivisionError", Outcome.UNKNOWN)


async def test_a_wait_inside_a_mutation_ends_with_the_task() -> None:
    """While a host computes mergeability, nothing was sent: the cancellation ends the poll."""
    events: list[Event] = []
    fake, provider = wrapped(lambda: wait(3600.0), on_event=events.append)

    with anyio.fail_after(10), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_create, provider)
            await began(fake)
            scope.cancel()

    (event,) = events
    assert isinstance(event, CancelledEvent)
    assert (event.error, event.outcome) == ("RetryCancelledError", Outcome.NOT_APPLIED)


async def test_a_mutation_in_the_queue_is_not_begun() -> None:
    """Cancelled before its turn, it has sent nothing."""
    release = threading.Event()
    calls: list[int] = []

    def act() -> Branch:
        calls.append(1)
        release.wait(10)
        return BRANCH

    fake, provider = wrapped(act, max_concurrency=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_create, provider)
        await began(fake)
        with anyio.move_on_after(0.01) as scope:
            await provider.create_branch("a/b", "y", source="main")
        release.set()

    assert scope.cancelled_caught
    assert calls == [1]


async def test_concurrency_is_bounded() -> None:
    """No more operations run at once than were allowed."""
    lock = threading.Lock()
    running = most = 0

    def act() -> Branch:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.001)
        with lock:
            running -= 1
        return BRANCH

    _, provider = wrapped(act, max_concurrency=3)
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(_create, provider)

    assert most <= 3


async def test_closing_closes_the_provider() -> None:
    """Whoever builds one closes it, here by ``async with``."""
    fake, provider = wrapped(lambda: None)

    async with provider:
        pass

    assert fake.closed
    assert "FakeProvider" in repr(provider)


@pytest.mark.parametrize("wrong", [{"max_concurrency": 0}, {"grace": -1}])
async def test_wrong_bounds_are_refused(wrong: dict[str, Any]) -> None:
    """An unbounded or negative bound is an invalid request."""
    with pytest.raises(InvalidRequestError):
        wrapped(lambda: None, **wrong)


async def test_the_reads_of_the_host_s_state_are_coroutines(tmp_path: Path) -> None:
    """A coroutine that has to look at a branch or a tree blocks the event loop, or hires a thread by itself."""
    with LocalProvider(tmp_path) as local:
        local.create_repo("acme/x", auto_init=True)
        local.create_branch("acme/x", "topic", source="main")
        sha = local.commit_files("acme/x", "topic", [PutFile(path="f", content="f")], message="m").sha
        local.open_pull_request("acme/x", source_branch="topic", target_branch="main", title="t")
        local.protect_branch("acme/x", "main", RULES)
        between: dict[str, Any] = {"source_branch": "topic", "target_branch": "main"}
        provider = AsyncGitProvider(local)

        assert await provider.head("acme/x", "topic") == sha
        assert await provider.contains("acme/x", sha, "topic")
        assert not await provider.contains("acme/x", sha, "main")
        assert await provider.commit("acme/x", sha) == local.commit("acme/x", sha)
        assert await provider.tree("acme/x", sha) == local.tree("acme/x", sha)
        assert await provider.protection("acme/x", "main") == local.protection("acme/x", "main")
        assert await provider.find_pull_requests("acme/x", **between) == [await provider.get_pull_request("acme/x", 1)]
        assert await provider.find_pull_requests("acme/x", **between, state=PullRequestState.MERGED) == []
        assert provider.supports("open_pull_request.draft")


async def test_the_functions_over_a_provider_are_coroutines(tmp_path: Path) -> None:
    """ensure_, resolve and bootstrap, which wait for minutes, block the event loop of a service."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files/f").write_text("f")
    with LocalProvider(tmp_path / "forge") as local:
        provider = AsyncGitProvider(local)

        made, changed = await provider.ensure_repo("acme/x", description="d")
        found = await provider.resolve(_lost("acme/x"), wait=True)
        report = await provider.bootstrap("acme/y", source=tmp_path / "files")

    assert (made.path, changed, found.verdict, report.ok) == ("acme/x", True, Verdict.APPLIED, True)


async def test_a_provider_of_the_contract_alone_is_told_so() -> None:
    """The caller meets an AttributeError on a thread."""
    _, provider = wrapped(lambda: None)

    with pytest.raises(InvalidRequestError, match="no reads of HostState"):
        await provider.ensure_repo("acme/x")
    with pytest.raises(InvalidRequestError, match="no reads of HostState"):
        await provider.head("acme/x", "main")


async def test_a_cancelled_function_begins_no_further_mutation(tmp_path: Path) -> None:
    """A task that was cancelled during the look of an ensure_ writes all the same."""
    looking = threading.Event()

    class Slow(LocalProvider):
        def get_repo(self, repo: str) -> Any:
            looking.set()
            cancelled = retry._cancel.get()
            assert cancelled is not None
            cancelled.wait(10)
            return super().get_repo(repo)

    with Slow(tmp_path) as local:
        provider = AsyncGitProvider(local)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(provider.ensure_repo, "acme/x")
            await anyio.to_thread.run_sync(looking.wait)
            tasks.cancel_scope.cancel()

        with LocalProvider(tmp_path) as other, pytest.raises(NotFoundError):
            other.get_repo("acme/x")


def _lost(repo: str) -> Intent:
    sent = datetime(2024, 1, 1, tzinfo=UTC)
    known: dict[str, Any] = {"visibility": "private", "description": "d", "auto_init": False}
    return Intent(operation="create_repo", provider="local", repo=repo, sent_at=sent, lost_at=sent, **known)


@pytest.mark.parametrize("grace", [60.0, 0.0])
async def test_a_cancelled_function_is_waited_for_and_reported(grace: float) -> None:
    """A deployment that stops in the middle of an ensure_ does not know whether it wrote."""
    release = threading.Event()
    events: list[Event] = []

    def slow(provider: Any, repo: str) -> None:
        try:
            provider.get_repo(repo)
            wait(3600.0)
        except RetryCancelledError as ended:
            release.wait(10)
            raise ProviderUnavailableError("reset", outcome=Outcome.UNKNOWN, intent=INTENT) from ended

    fake, provider = wrapped(lambda: None, on_event=events.append, grace=grace)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(provider.run, slow, "a/b")
            await began(fake)
            scope.cancel()
            if grace:
                release.set()
    release.set()

    (event,) = events
    assert isinstance(event, CancelledEvent)
    assert (event.operation, event.repo, event.outcome) == ("slow", "a/b", Outcome.UNKNOWN)
    assert event.intent == (INTENT if grace else None)
