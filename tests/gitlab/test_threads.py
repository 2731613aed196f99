"""One provider, many threads, and a fork in between: each answer belongs to its caller, each change is sent once."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from gitprovider import NotFoundError, PutFile
from gitprovider.fakes.faults import FaultyHost, RequestLog
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.serve import serving
from gitprovider.gitlab import GitLabProvider
from gitprovider.local import Forge
from tests.support.gitlab_world import TOKEN

THREADS = 32
ROUNDS = 8  # four operations a round and thread: 1,024 in all


@contextmanager
def a_provider(root: Path, repositories: int) -> Iterator[tuple[GitLabProvider, RequestLog]]:
    """Repositories r0, r1, … on a loopback port: sockets are what threads and forks could share."""
    forge = Forge(root, combine=FakeGitLab.combine)
    for number in range(repositories):
        forge.create_repo(f"acme/r{number}", auto_init=True)
    request_log = RequestLog()
    host = FaultyHost(FakeGitLab(forge, token=TOKEN), request_log)
    with serving(host) as url, GitLabProvider(url, private_token=TOKEN) as provider:
        yield provider, request_log


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads that are switched as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def _work(provider: GitLabProvider, number: int) -> list[str]:
    """Four operations a round, one of them refused; what does not belong to this thread is returned."""
    repo, wrong = f"acme/r{number}", []
    for turn in range(ROUNDS):
        content = f"{number}-{turn}"
        found = provider.get_repo(repo)
        commit = provider.commit_files(repo, "main", [PutFile(path="a", content=content)], message=content)
        branch = provider.create_branch(repo, f"b{turn}", source=commit.sha)
        if (found.path, commit.message, branch.sha) != (repo, content, commit.sha):
            wrong.append(f"{found.path}, {commit.message}, {branch} for {repo}, {content}")
        try:
            provider.get_repo(f"acme/missing{number}")
        except NotFoundError as error:
            # A header of another thread's answer would show as another status or id.
            if (error.status, error.repo) != (404, f"acme/missing{number}"):
                wrong.append(f"{error!r} for {repo}")
        else:
            wrong.append(f"found what is missing for {repo}")
    return wrong


@pytest.mark.usefixtures("switching")
def test_a_thousand_operations_in_32_threads(tmp_path: Path) -> None:
    """No answer reaches another caller, and the request log has every change once."""
    with a_provider(tmp_path / "forge", THREADS) as (provider, request_log), ThreadPoolExecutor(THREADS) as pool:
        wrong = [text for texts in pool.map(lambda n: _work(provider, n), range(THREADS)) for text in texts]

    assert wrong == []
    sent = Counter((entry.method, entry.path, entry.body) for entry in request_log.mutations())
    assert set(sent.values()) == {1}
    assert len(sent) == THREADS * ROUNDS * 2  # a commit and a branch


def _reads(provider: GitLabProvider, number: int) -> bool:
    return all(provider.get_repo(f"acme/r{n}").path == f"acme/r{n}" for n in range(number, 16, 4))


def test_a_fork_after_first_use_shares_no_connection(tmp_path: Path) -> None:
    """Four children and the parent go on with the provider that had been used: each reads its own repositories."""
    with a_provider(tmp_path / "forge", 16) as (provider, _):
        provider.get_repo("acme/r0")
        children = []
        for number in range(4):
            child = os.fork()
            if child == 0:
                well = False
                try:
                    well = _reads(provider, number)
                finally:
                    os._exit(0 if well else 1)
            children.append(child)
        own = _reads(provider, 0)

        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
        assert own
