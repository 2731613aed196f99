"""The pool of clients: one for each running operation, none shared across a fork."""

from __future__ import annotations

import os
import threading

import pytest

from gitprovider._remote.client_pool import ClientPool
from gitprovider.errors import InvalidRequestError
from tests.support.fake_client import FakeClient


def test_a_client_serves_one_operation_at_a_time() -> None:
    """Two operations at once never share a client; one after the other they do."""
    pool = ClientPool(FakeClient, 10)

    with pool.client() as a, pool.client() as b:
        assert a is not b
    with pool.client() as c:
        assert c in (a, b)


def test_a_forked_child_does_not_use_its_parents_clients() -> None:
    """An inherited socket is written to by both processes; the child makes its own, whatever lock was held."""
    pool = ClientPool(FakeClient, 10)
    with pool.client() as parents:
        pass
    read, write = os.pipe()
    with pool._lock:
        child = os.fork()
        if child == 0:  # pragma: no cover - the child
            with pool.client() as own:
                os.write(write, b"own" if own is not parents else b"same")
            os._exit(0)
    os.close(write)
    answer = os.read(read, 10)
    os.close(read)
    os.waitpid(child, 0)

    assert answer == b"own"


def test_a_closed_pool_lends_nothing_and_closes_what_comes_back() -> None:
    """Closing while an operation runs closes its client at its end."""
    pool = ClientPool(FakeClient, 10)
    with pool.client() as idle:
        pass

    with pool.client() as lent, pool.client() as other:
        assert idle in (lent, other)
        pool.close()
        assert [client.closed for client in (lent, other)] == [False, False]
    assert [client.closed for client in (lent, other)] == [True, True]
    with pytest.raises(InvalidRequestError, match="closed"), pool.client():
        pass


def test_idle_clients_beyond_the_size_are_closed() -> None:
    """A burst of callers would leave its sockets open for as long as the provider lives."""
    pool = ClientPool(FakeClient, 1)

    with pool.client() as first, pool.client() as second, pool.client() as third:
        pass

    assert [client.closed for client in (first, second, third)] == [True, True, False]


def test_threads_get_clients_of_their_own() -> None:
    """Under contention no client is lent twice."""
    pool = ClientPool(FakeClient, 10)
    busy: set[int] = set()
    clashes: list[int] = []

    def work() -> None:
        for _ in range(200):
            with pool.client() as client:
                if id(client) in busy:
                    clashes.append(id(client))
                busy.add(id(client))
                busy.discard(id(client))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not clashes
