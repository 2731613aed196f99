"""The clients of a forked process: none of its parent's, whatever its parent was doing."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from gitprovider._remote.client_pool import ClientPool
from tests.support.fake_client import FakeClient


def in_child(check: Callable[[], bool]) -> bool:
    """What ``check`` says in a forked process. A child that fails or hangs says nothing, which is False."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the child
        try:
            os.write(write, b"y" if check() else b"n")
        finally:
            os._exit(0)
    os.close(write)
    try:
        return os.read(read, 1) == b"y"
    finally:
        os.close(read)
        os.waitpid(child, 0)


def lent(pool: ClientPool[FakeClient], count: int) -> list[FakeClient]:
    """``count`` clients that were lent at the same time and returned."""
    if not count:
        return []
    with pool.client() as client:
        return [client, *lent(pool, count - 1)]


@pytest.mark.parametrize("idle", [1, 2, 5])
def test_a_child_is_lent_no_client_of_its_parent(idle: int) -> None:
    """If this fails, a child writes to its parent's sockets, and each reads what the other asked for."""
    pool = ClientPool(FakeClient, 10)
    parents = lent(pool, idle)

    assert in_child(lambda: not {*map(id, lent(pool, idle + 1))} & {*map(id, parents)})
    assert {*map(id, lent(pool, idle))} == {*map(id, parents)}


def test_a_client_lent_across_a_fork_is_not_kept_by_the_child() -> None:
    """If this fails, a fork in the middle of an operation puts the parent's socket into the child's pool."""
    pool = ClientPool(FakeClient, 10)

    def has_its_own() -> bool:
        lending.close()  # in the child alone: the operation ends there too
        with pool.client() as own:
            return own is not parents and not parents.closed

    with ExitStack() as lending:
        parents = lending.enter_context(pool.client())
        assert in_child(has_its_own)
    with pool.client() as again:
        assert again is parents


def test_a_child_closes_only_its_own_clients() -> None:
    """If this fails, a child that closes its provider ends the parent's requests."""
    pool = ClientPool(FakeClient, 10)
    parents = lent(pool, 3)

    def close() -> bool:
        own = lent(pool, 2)
        pool.close()
        return all(client.closed for client in own) and not any(client.closed for client in parents)

    assert in_child(close)
    assert not any(client.closed for client in parents)


def test_a_lock_that_a_thread_of_the_parent_held_is_free_in_the_child() -> None:
    """If this fails, the child waits forever for a thread that it does not have."""
    pool = ClientPool(FakeClient, 10)
    with pool._lock:
        assert in_child(lambda: not pool._lock.locked())


def test_a_grandchild_and_a_pool_that_is_gone() -> None:
    """If this fails, a second fork shares clients, or a fork hook keeps every pool alive."""
    pool, gone = ClientPool(FakeClient, 10), ClientPool(FakeClient, 10)
    lent(gone, 1)
    del gone

    def child() -> bool:
        parents = lent(pool, 2)
        return in_child(lambda: not {*map(id, lent(pool, 2))} & {*map(id, parents)})

    assert in_child(child)
