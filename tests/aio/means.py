"""Every means by which a task is cancelled: asyncio's own, trio's own, and anyio's on both."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import pytest
import trio

Call = Callable[[], Awaitable[object]]
Cancel = Callable[[], object]
Control = Callable[[Cancel], Awaitable[None]]
# Runs the call, gives the control what cancels it, and returns when the call's task has ended. The control may cancel
# twice.
Means = Callable[[Call, Control], Awaitable[None]]


class Failure(Exception):
    """A sibling's failure, which cancels the task beside it."""


async def _task_cancel(call: Call, control: Control) -> None:
    task: asyncio.Task[object] = asyncio.ensure_future(call())
    await control(task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def _wait_for(call: Call, control: Control) -> None:
    loop = asyncio.get_running_loop()
    real, offset = loop.time, 0.0
    loop.time = lambda: real() + offset  # type: ignore[method-assign] # the injected clock

    def jump() -> None:
        nonlocal offset
        offset = 3601.0

    task = asyncio.ensure_future(asyncio.wait_for(call(), 3600.0))
    await control(jump)
    with pytest.raises(TimeoutError):
        await task


async def _timeout(call: Call, control: Control) -> None:
    limit = asyncio.timeout(None)

    async def limited() -> None:
        async with limit:
            await call()

    def expire() -> None:
        if not limit.expired():
            limit.reschedule(asyncio.get_running_loop().time())

    task = asyncio.ensure_future(limited())
    await control(expire)
    with pytest.raises(TimeoutError):
        await task


async def _task_group(call: Call, control: Control) -> None:
    failing = asyncio.Event()

    async def sibling() -> None:
        await failing.wait()
        raise Failure

    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(call())  # type: ignore[arg-type] # an Awaitable is a coroutine here
            tasks.create_task(sibling())

    task = asyncio.ensure_future(group())
    await control(failing.set)
    with pytest.raises(ExceptionGroup) as caught:
        await task
    assert caught.group_contains(Failure)


async def _scope(call: Call, control: Control) -> None:
    scope = anyio.CancelScope()

    async def scoped() -> None:
        with scope:
            await call()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scoped)
        await control(scope.cancel)
    assert scope.cancelled_caught


async def _scope_then_cancel(call: Call, control: Control) -> None:
    scope = anyio.CancelScope()

    async def scoped() -> None:
        with scope:
            await call()

    task = asyncio.ensure_future(scoped())
    both = iter([scope.cancel, task.cancel])
    await control(lambda: next(both, task.cancel)())
    await asyncio.wait([task])
    assert task.cancelled() or scope.cancelled_caught


async def _trio_scope(call: Call, control: Control, deadline: bool = False) -> None:
    scope = trio.CancelScope()

    async def scoped() -> None:
        with scope:
            await call()

    def expire() -> None:
        scope.deadline = trio.current_time()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(scoped)
        await control(expire if deadline else scope.cancel)
    assert scope.cancelled_caught


async def _trio_nursery(call: Call, control: Control) -> None:
    failing = trio.Event()

    async def sibling() -> None:
        await failing.wait()
        raise Failure

    async def group() -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                nursery.start_soon(sibling)
        except* Failure:
            pass

    async with trio.open_nursery() as outer:
        outer.start_soon(group)
        await control(failing.set)


MEANS: dict[str, tuple[str, Means]] = {
    "asyncio task.cancel": ("asyncio", _task_cancel),
    "asyncio wait_for": ("asyncio", _wait_for),
    "asyncio timeout": ("asyncio", _timeout),
    "asyncio TaskGroup": ("asyncio", _task_group),
    "asyncio anyio scope": ("asyncio", _scope),
    "asyncio anyio scope, then task.cancel": ("asyncio", _scope_then_cancel),
    "trio scope": ("trio", _trio_scope),
    "trio deadline": ("trio", partial(_trio_scope, deadline=True)),
    "trio nursery": ("trio", _trio_nursery),
    "trio anyio scope": ("trio", _scope),
}


def run(name: str, call: Call, control: Control) -> None:
    """Run ``call`` on a loop of its own and cancel it by the means of that name."""
    backend, means = MEANS[name]
    anyio.run(means, call, control, backend=backend)


async def spin(turns: int = 20) -> None:
    """Let every other task get on."""
    for _ in range(turns):
        await anyio.lowlevel.checkpoint()


async def reached(event: Any) -> None:
    """Wait until a thread has set ``event``."""
    assert await anyio.to_thread.run_sync(event.wait, 10)
