"""A cancelled task leaves nothing behind that nobody hears of, by whatever means it was cancelled."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import trio

from gitprovider.aio import AsyncGitProvider
from gitprovider.errors import InvalidRequestError, Outcome, ProviderUnavailableError, RetryCancelledError
from gitprovider.events import CancelledEvent, Event
from gitprovider.intent import Intent
from gitprovider.models import Branch
from gitprovider.retry import wait
from tests.aio.means import MEANS, Cancel, reached, run, spin

by_every_means = pytest.mark.parametrize("means", MEANS)
BRANCH = Branch(name="x", sha="a" * 40)
INTENT = Intent(operation="create_branch", provider="fake", repo="a/b")
APPLIED = CancelledEvent(operation="create_branch", provider="fake", repo="a/b")


class Host:
    """A provider whose operations stand at the host until the test releases them."""

    name = "fake"

    def __init__(self, act: Callable[[], Any] = lambda: BRANCH) -> None:
        self.began = threading.Event()
        self.release = threading.Event()
        self.ended = threading.Event()
        self.calls: list[str] = []
        self.events: list[Event] = []
        self._act = act

    def get_repo(self, repo: str) -> Any:
        return self._call(repo)

    def create_branch(self, repo: str, name: str, *, source: str) -> Any:
        return self._call(name)

    def _call(self, name: str) -> Any:
        self.calls.append(name)
        self.began.set()
        try:
            self.release.wait(30)
            return self._act()
        finally:
            self.ended.set()

    def over(self, **known: Any) -> AsyncGitProvider:
        """The coroutines over this host."""
        host: Any = self
        return AsyncGitProvider(host, on_event=self.events.append, **known)


async def create(provider: AsyncGitProvider, name: str = "x") -> object:
    return await provider.create_branch("a/b", name, source="main")


def cancelled_in_flight(means: str, host: Host, **known: Any) -> None:
    """Cancel a mutation at the host twice; it may end only after the test has released it."""
    ended: list[int] = []

    async def call() -> None:
        try:
            await create(host.over(**known))
        finally:
            ended.append(1)

    async def control(cancel: Cancel) -> None:
        await reached(host.began)
        for _ in range(2):
            cancel()
            await spin()
            assert (ended, host.events) == ([], [])
        host.release.set()

    run(means, call, control)
    assert ended == [1]


@by_every_means
def test_a_mutation_in_flight_is_waited_for_and_told_once(means: str) -> None:
    """A task that ends before its thread leaves a request behind that no event tells of."""
    host = Host()

    cancelled_in_flight(means, host)

    assert host.events == [APPLIED]


@by_every_means
def test_the_event_says_what_became_of_the_mutation(means: str) -> None:
    """The error that nobody caught is in the event, with the evidence for resolve."""

    def lost() -> None:
        raise ProviderUnavailableError("reset", outcome=Outcome.UNKNOWN, intent=INTENT)

    host = Host(lost)

    cancelled_in_flight(means, host)

    (event,) = host.events
    assert isinstance(event, CancelledEvent)
    assert (event.error, event.outcome, event.intent) == ("ProviderUnavailableError", Outcome.UNKNOWN, INTENT)


@by_every_means
def test_the_wait_of_a_mutation_ends_with_its_task(means: str) -> None:
    """While a host computes mergeability nothing was sent; a long wait would outlive the task."""
    host = Host(lambda: wait(30.0))
    host.release.set()

    async def control(cancel: Cancel) -> None:
        await reached(host.began)
        cancel()

    run(means, lambda: create(host.over()), control)

    (event,) = host.events
    assert isinstance(event, CancelledEvent)
    assert (event.error, event.outcome) == ("RetryCancelledError", Outcome.NOT_APPLIED)


@by_every_means
def test_the_grace_ends_the_wait_and_not_the_turn(means: str) -> None:
    """The abandoned mutation is told as unknown, and nothing else is at the host with it until its thread ends."""
    host = Host()
    provider = host.over(max_concurrency=1, grace=0.0)

    async def control(cancel: Cancel) -> None:
        await reached(host.began)
        cancel()
        while not host.events:
            await anyio.lowlevel.checkpoint()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(create, provider, "second")
            await spin()
            assert host.calls == ["x"]
            host.release.set()

    run(means, lambda: create(provider), control)

    (event,) = host.events
    assert isinstance(event, CancelledEvent)
    assert (event.error, event.outcome) == (None, Outcome.UNKNOWN)
    assert event.intent is not None
    assert event.intent.sent_at is not None
    assert host.calls == ["x", "second"]


@by_every_means
def test_a_mutation_in_the_queue_is_not_begun(means: str) -> None:
    """Cancelled before its turn, it sends nothing then or later, and there is nothing to tell."""
    host = Host()
    provider = host.over(max_concurrency=1)

    async def control(cancel: Cancel) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(create, provider, "first")
            await reached(host.began)
            queued.set()
            await spin()
            cancel()
            await spin()
            host.release.set()

    async def call() -> None:
        await reached(queued)
        await create(provider, "queued")

    queued = threading.Event()
    run(means, call, control)

    assert (host.calls, host.events) == (["first"], [])


@by_every_means
def test_a_cancelled_read_ends_at_once_and_keeps_its_turn(means: str) -> None:
    """Otherwise cancelled reads pile up at the host, beyond max_concurrency."""
    host = Host()
    provider = host.over(max_concurrency=1)

    async def control(cancel: Cancel) -> None:
        await reached(host.began)
        cancel()
        await spin()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(provider.get_repo, "second")
            await spin()
            assert host.calls == ["a/b"]
            host.release.set()

    run(means, lambda: provider.get_repo("a/b"), control)

    assert (host.calls, host.events) == (["a/b", "second"], [])


@by_every_means
def test_the_waits_of_a_cancelled_read_end(means: str) -> None:
    """A long wait between two tries would keep its thread and its turn."""
    causes: list[type[BaseException]] = []

    def act() -> None:
        try:
            wait(30.0)
        except RetryCancelledError as error:
            causes.append(type(error))
            raise

    host = Host(act)
    host.release.set()

    async def control(cancel: Cancel) -> None:
        await reached(host.began)
        cancel()

    run(means, lambda: host.over().get_repo("a/b"), control)

    assert host.ended.wait(10)
    assert causes == [RetryCancelledError]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("run_main", [asyncio.run, lambda main: trio.run(lambda: main)], ids=["asyncio", "trio"])
def test_ctrl_c_waits_for_a_mutation_in_flight(run_main: Callable[[Any], None], times: int) -> None:
    """Ctrl+C, also pressed twice, must not leave the program before it is known what became of the request."""
    parked, told = threading.Event(), threading.Event()

    def act() -> Branch:
        with suppress(RetryCancelledError):
            wait(30.0)
        told.set()
        pressed.wait(30)
        return BRANCH

    host = Host(act)
    host.release.set()
    pressed = threading.Event()

    async def park() -> None:
        await reached(host.began)
        await spin()
        parked.set()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(park)
            await create(host.over())

    def press() -> None:
        for before in (parked, told)[:times]:
            assert before.wait(10)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        told.wait(10)
        pressed.set()

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - trio wraps it into a group
        run_main(main())
    thread.join()

    assert isinstance(caught.value, KeyboardInterrupt) or caught.group_contains(KeyboardInterrupt)
    assert host.events == [APPLIED]


def test_a_coroutine_that_is_closed_tells_of_its_mutation() -> None:
    """A loop that is torn down closes its coroutines, which cannot wait: the outcome is unknown, and told."""
    host = Host()

    async def main() -> None:
        coroutine = create(host.over())
        coroutine.send(None)
        coroutine.send(None)
        await reached(host.began)
        coroutine.close()

    asyncio.run(main())
    host.release.set()

    (event,) = host.events
    assert isinstance(event, CancelledEvent)
    assert event.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_task_that_is_already_cancelled_begins_nothing(backend: str) -> None:
    """A clean-up that calls a mutation in a cancelled scope would send it and lose its answer."""
    host = Host()
    host.release.set()

    async def main() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await create(host.over())

    anyio.run(main, backend=backend)

    assert (host.calls, host.events) == ([], [])


def test_a_closed_provider_refuses_calls() -> None:
    """A raw error of the standard library's pool would say nothing to the caller."""
    provider = Host().over()

    async def main() -> None:
        await provider.aclose()
        await create(provider)

    with pytest.raises(InvalidRequestError, match="closed"):
        asyncio.run(main())


class Load:
    """A host that counts who is there, and tasks that are cancelled at random."""

    name = "fake"
    most_allowed = 4

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.here = self.most = self.begun = 0
        self.events: list[Event] = []
        self.results = 0

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        with self.lock:
            self.begun += 1
            self.here += 1
            self.most = max(self.most, self.here)
            pause = self.random.choice([0.0, 0.0, 0.0005, 0.002])
        threading.Event().wait(pause)
        with self.lock:
            self.here -= 1
        return BRANCH

    async def one(self, provider: AsyncGitProvider) -> None:
        await create(provider)
        self.results += 1

    async def cancelled(self, provider: AsyncGitProvider, backend: str) -> None:
        """One mutation, cancelled by a random means at a random moment, or not at all."""
        call = partial(self.one, provider)
        delay = self.random.choice([0.0, 0.0002, 0.001, 0.003, 0.05])
        kind = self.random.randrange(5 if backend == "asyncio" else 1)
        if kind == 0:
            with anyio.move_on_after(delay):
                await call()
        elif kind == 1:
            task = asyncio.ensure_future(call())
            asyncio.get_running_loop().call_later(delay, task.cancel)
            asyncio.get_running_loop().call_later(delay * 2, task.cancel)
            await asyncio.wait([task])
        elif kind == 2:
            await asyncio.gather(asyncio.wait_for(call(), delay), return_exceptions=True)
        elif kind == 3:
            try:
                async with asyncio.timeout(delay):
                    await call()
            except TimeoutError:
                pass
        else:
            await asyncio.gather(self.grouped(call, delay), return_exceptions=True)

    async def grouped(self, call: Callable[[], Awaitable[None]], delay: float) -> None:
        async def fail() -> None:
            await asyncio.sleep(delay)
            raise ZeroDivisionError

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(call())  # type: ignore[arg-type] # an Awaitable is a coroutine here
            tasks.create_task(fail())

    async def main(self, backend: str, number: int) -> None:
        host: Any = self
        provider = AsyncGitProvider(host, max_concurrency=self.most_allowed, on_event=self.events.append)
        for _ in range(0, number, 50):
            async with anyio.create_task_group() as tasks:
                for _ in range(50):
                    tasks.start_soon(self.cancelled, provider, backend)


def endure(backend: str, number: int) -> None:
    """That many mutations: each that began ended in one event or one result, and never too many at once."""
    load = Load(seed=number)

    anyio.run(load.main, backend, number, backend=backend)

    assert load.begun == load.results + len(load.events)
    assert load.most <= Load.most_allowed
    assert load.events
    assert load.results


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_some_random_cancellations(backend: str) -> None:
    """600 mutations: a mutation that is told twice, or not at all, is one that a caller repeats or forgets."""
    endure(backend, 300)


@pytest.mark.soak
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_many_random_cancellations(backend: str) -> None:
    """20,000 mutations, as above."""
    endure(backend, 10_000)
