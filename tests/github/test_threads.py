"""One provider, many threads, and a fork in between: each answer belongs to its caller, each change is sent once."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gitprovider import InvalidRequestError, PutFile
from gitprovider.github import GitHubProvider
from tests.support.github_hub import REPO, Hub, wired

THREADS = 32
ROUNDS = 8  # four operations a round and thread: 1,024 in all


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Hub]:
    """A repository a thread, on a loopback port: sockets are what threads and forks could share."""
    with wired(tmp_path / "forge", rate_limit=1_000_000) as hub:
        for number in range(THREADS):
            hub.given_repo(f"acme/r{number}")
        yield hub


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads that are switched as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def _work(provider: GitHubProvider, number: int) -> list[str]:
    """Four operations a round; what does not answer to this thread's own repository is returned."""
    repo, wrong = f"acme/r{number}", []
    for turn in range(ROUNDS):
        content = f"{number}-{turn}"
        found = provider.get_repo(repo)
        head = provider.head(repo, "main")
        branch = provider.create_branch(repo, f"b{turn}", source=head)
        commit = provider.commit_files(
            repo, "main", [PutFile(path="a", content=content, executable=False)], message=content
        )
        if (found.path, branch.name, branch.sha) != (repo, f"b{turn}", head):
            wrong.append(f"{found.path} {branch} for {repo}")
        if (commit.parent, commit.message) != (head, content):
            wrong.append(f"{commit} for {content} on {head}")
    return wrong


@pytest.mark.usefixtures("switching")
def test_a_thousand_operations_in_32_threads(wire: Hub) -> None:
    """No answer reaches another caller, and the request log has every change once."""
    with ThreadPoolExecutor(THREADS) as pool:
        wrong = [text for texts in pool.map(lambda n: _work(wire.provider, n), range(THREADS)) for text in texts]

    assert wrong == []
    sent = Counter((entry.method, entry.path, entry.body) for entry in wire.host.request_log.mutations())
    assert set(sent.values()) == {1}
    assert len(sent) == THREADS * ROUNDS * 4  # a branch; a tree, a commit and the move of main


def test_a_fork_after_first_use_shares_no_connection(wire: Hub) -> None:
    """Four children and the parent go on with the provider that had been used: each reads its own repositories."""
    wire.provider.get_repo("acme/r0")
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            _exit_with(_reads(wire.provider, number))
        children.append(child)
    own = _reads(wire.provider, 4)

    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert own


def _reads(provider: GitHubProvider, number: int) -> bool:
    return all(provider.get_repo(f"acme/r{n}").path == f"acme/r{n}" for n in range(number, THREADS, 4))


def _exit_with(well: bool) -> None:
    os._exit(0 if well else 1)


def test_a_fork_while_threads_work_leaves_no_lock_behind(wire: Hub) -> None:
    """The child's provider works although a thread of the parent held its pool."""
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            wire.provider.get_repo("acme/r1")

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        with wire.provider._pool._lock:
            child = os.fork()
            if child == 0:
                _exit_with(_reads(wire.provider, 28))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        stop.set()
        thread.join()

    assert status == 0


def test_many_threads_ask_once_whose_credential_it_is(hub: Hub) -> None:
    """The others wait for the answer."""
    start = threading.Barrier(8)

    def create(number: int) -> None:
        start.wait()
        hub.provider.create_repo(f"acme/new{number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(create, range(8)))

    assert hub.calls().count("GET /user") == 1


def test_who_waits_for_the_login_keeps_no_other_operation_waiting(hub: Hub) -> None:
    """A host that answers one request slowly stalls the calls that need that answer, and those alone."""
    with hub.provider._credential._login_lock, ThreadPoolExecutor(1) as pool:
        found = pool.submit(hub.provider.get_repo, REPO).result(timeout=10)

    assert found.path == REPO


def test_a_child_learns_the_login_although_a_thread_of_the_parent_was_asking(hub: Hub) -> None:
    """The child's lock is held by nobody."""
    with hub.provider._credential._login_lock:
        child = os.fork()
        if child == 0:
            _exit_with(hub.provider._credential._login_lock.acquire(timeout=5))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert status == 0


def test_a_closed_provider_refuses(hub: Hub) -> None:
    """Nothing is sent by one whose connections were given up."""
    hub.provider.close()

    with pytest.raises(InvalidRequestError, match="closed"):
        hub.provider.get_repo(REPO)

    assert hub.sent == []
