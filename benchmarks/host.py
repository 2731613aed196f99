"""A fake host in a process of its own, driven by one line of JSON at a time.

``python benchmarks/host.py github|gitlab`` prints its URL and token. It then reads commands from standard input, and
answers each with one line: ``prepare`` makes what an operation needs, ``faults`` sets the faults that follow, ``log``
returns the requests since the last call, ``delay`` sets the seconds before each answer.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from typing import Any

from gitprovider.fakes.faults import Fault, FaultyHost
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.http import Request, Response
from gitprovider.fakes.serve import serving
from gitprovider.local.forge import Forge

REPO = "acme/widgets"
FAKES: Mapping[str, type[FakeGitHub] | type[FakeGitLab]] = {"github": FakeGitHub, "gitlab": FakeGitLab}


class Bench:
    """The host: a fake behind a fault script, with a delay, which counts bytes."""

    def __init__(self, kind: str, root: str) -> None:
        self.forge = Forge(root, combine=FAKES[kind].combine)
        self.fake = FAKES[kind](self.forge)
        if isinstance(self.fake, FakeGitHub):
            self.fake.rate_limit = 10**9
        self.faulty = FaultyHost(self.fake)
        self._delay = 0.0
        self._bytes = 0
        self._made = 0
        self._lock = threading.Lock()
        self._files(REPO, 1)

    def handle(self, request: Request) -> Response:
        """Answer one request, after the delay."""
        time.sleep(self._delay)
        response = self.faulty.handle(request)
        with self._lock:
            self._bytes += len(request.body) + len(response.body)
        return response

    def command(self, do: str, **given: Any) -> Any:
        """Run one command and return its answer."""
        return getattr(self, f"_do_{do}")(**given)

    def _do_delay(self, seconds: float) -> None:
        self._delay = seconds

    def _do_faults(self, faults: list[dict[str, Any]]) -> None:
        self.faulty.script.clear()
        for fault in faults:
            body = fault.pop("body", None)
            self.faulty.script.add(Fault(**fault, body=None if body is None else body.encode()))

    def _do_log(self) -> dict[str, Any]:
        entries = self.faulty.request_log.entries
        self.faulty.request_log.clear()
        with self._lock:
            size, self._bytes = self._bytes, 0
        rows = [[entry.method, entry.endpoint, entry.is_mutation, entry.effect] for entry in entries]
        return {"requests": rows, "bytes": size}

    def _do_prepare(self, operation: str, files: int = 1, branches: int = 0) -> dict[str, Any]:
        """Make what one call of an operation needs, and return its arguments."""
        self._made += 1
        name = f"{operation.replace('_', '-')}-{self._made}"
        if operation == "create_repo":
            return {"repo": f"acme/{name}"}
        if operation in ("get_repo", "list_branches"):
            return {"repo": self._branches(branches) if branches else REPO}
        repo = REPO if files == 1 else f"acme/files-{files}"
        if files > 1:
            self._files(repo, files)
        if operation == "create_branch":
            return {"repo": repo, "name": name}
        head = self.forge.head(repo, "main")
        self.forge.create_branch(repo, name, head)
        if operation == "commit_files":
            return {"repo": repo, "branch": name, "number": self._made}
        if operation == "protect_branch":
            return {"repo": repo, "branch": name}
        blob = self.forge.write_blob(repo, name.encode())
        tree = self.forge.write_tree(repo, self.forge.read_commit(repo, head).tree, {f"{name}.txt": (blob, "100644")})
        commit = self.forge.write_commit(repo, tree=tree, parents=[head], message=name)
        self.forge.move_branch(repo, name, commit, expected=head)
        if operation == "open_pull_request":
            return {"repo": repo, "branch": name}
        opened = self.forge.open_pull_request(repo, source_branch=name, target_branch="main", title=name)
        return {"repo": repo, "number": opened.number}

    def _branches(self, count: int) -> str:
        repo = f"acme/branches-{count}"
        if all(known.path != repo for known in self.forge.repos()):
            self._files(repo, 1)
            head = self.forge.head(repo, "main")
            for number in range(count - 1):
                self.forge.create_branch(repo, f"b{number:05}", head)
        return repo

    def _files(self, repo: str, count: int) -> None:
        """A repository with so many files, a thousand in each directory, and the one that is changed."""
        if any(known.path == repo for known in self.forge.repos()):
            return
        self.forge.create_repo(repo)
        blob = self.forge.write_blob(repo, b"a line\n")
        paths = ["a.txt", *(f"d{number // 1000:03}/f{number:06}.txt" for number in range(count - 1))]
        tree = self.forge.write_tree(repo, None, dict.fromkeys(paths, (blob, "100644")))
        commit = self.forge.write_commit(repo, tree=tree, parents=[], message="given")
        self.forge.create_branch(repo, "main", commit)


def main(kind: str) -> None:
    """Serve until standard input ends."""
    with tempfile.TemporaryDirectory() as root:
        bench = Bench(kind, root)
        with serving(bench) as url:
            print(json.dumps({"url": url, "token": bench.fake.token}), flush=True)
            for line in sys.stdin:
                print(json.dumps(bench.command(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
