"""What a provider costs in processor time: 20 callers at once, against ``requests`` alone for the same calls.

``python benchmarks/processor_time.py github|gitlab`` serves a fake host from another process, so that its work is not
counted, and fails when the provider needs more than 1.5 times as much as ``requests``.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import requests

from gitprovider import PutFile
from gitprovider.connect import connect

BAR = 1.5
CALLERS = 20
TURNS = 5  # of each caller in a round: a repository, a listing, a new branch
ROUNDS = 3
BRANCHES = 50
REPO, BUSY = "acme/widgets", "acme/busy"  # what is read has a steady size; branches are made in the other

Turn = Callable[[int, int], None]


@contextmanager
def served(host: str) -> Iterator[tuple[str, str]]:
    """A fake host in a process of its own: its URL and the token that it takes."""
    with tempfile.TemporaryDirectory() as root:
        command = [sys.executable, "-m", "gitprovider.fakes.serve", host, "--root", root]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            url, token = (server.stdout.readline().split(": ", 1)[1].strip() for _ in range(2))
            yield url, token
        finally:
            server.terminate()
            server.wait()
            server.stdout.close()


def processor_time(turn: Turn, round_number: int) -> float:
    """Seconds of this process for one round of all callers."""

    def caller(number: int) -> None:
        for n in range(TURNS):
            turn(number, round_number * TURNS + n)

    before = time.process_time()
    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(caller, range(CALLERS)))
    return time.process_time() - before


def with_requests(host: str, url: str, token: str, sha: str) -> Turn:
    """The same three calls, with a session a caller and nothing else."""
    sessions = [requests.Session() for _ in range(CALLERS)]
    if host == "github":
        headers, api = {"Authorization": f"token {token}"}, f"{url}/repos/{REPO}"
        branches, create = f"{api}/branches", f"{url}/repos/{BUSY}/git/refs"
    else:
        projects = f"{url}/api/v4/projects"
        headers, api = {"PRIVATE-TOKEN": token}, f"{projects}/{quote(REPO, safe='')}"
        branches, create = f"{api}/repository/branches", f"{projects}/{quote(BUSY, safe='')}/repository/branches"

    def send(session: requests.Session, method: str, url: str, **more: Any) -> Any:
        answer = session.request(method, url, headers=headers, timeout=15, **more)
        answer.raise_for_status()
        return answer.json()

    def turn(caller: int, number: int) -> None:
        session, name = sessions[caller], f"r-{caller}-{number}"
        send(session, "GET", api)
        send(session, "GET", branches, params={"per_page": 100, "page": 1})
        body = {"ref": f"refs/heads/{name}", "sha": sha} if host == "github" else {"branch": name, "ref": sha}
        send(session, "POST", create, json=body)

    return turn


def measure(host: str) -> float:
    """How many times the processor time of ``requests`` the provider needs."""
    with served(host) as (url, token), connect(host, url=url, token=token) as provider:
        for repo in (REPO, BUSY):
            provider.create_repo(repo)
            sha = provider.commit_files(repo, "main", [PutFile(path="a", content="a")], message="m").sha
        for number in range(BRANCHES):
            provider.create_branch(REPO, f"b{number}", source="main")

        def turn(caller: int, number: int) -> None:
            provider.get_repo(REPO)
            provider.list_branches(REPO)
            provider.create_branch(BUSY, f"p-{caller}-{number}", source=sha)

        bare = with_requests(host, url, token, sha)
        processor_time(turn, -2), processor_time(bare, -1)  # connections are made, and modules loaded
        ratios = []
        for number in range(ROUNDS):
            ours, theirs = processor_time(turn, number), processor_time(bare, number)
            ratios.append(ours / theirs)
            print(f"round {number + 1}: {ours:.2f} s, requests {theirs:.2f} s: {ours / theirs:.2f} times")
        return statistics.median(ratios)


def main(arguments: list[str]) -> int:
    """Measure the hosts named, or both; fail beyond the bar."""
    worst = 0.0
    for host in arguments or ["github", "gitlab"]:
        ratio = measure(host)
        print(f"{host}: {ratio:.2f} times the processor time of requests; at most {BAR}")
        worst = max(worst, ratio)
    return 0 if worst <= BAR else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
