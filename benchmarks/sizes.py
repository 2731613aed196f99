"""What large things cost: memory of a large commit and a long list, and milliseconds of a large local forge.

``python benchmarks/sizes.py`` serves fake hosts from other processes, so that their memory is not counted. It writes
``benchmarks/results/sizes.md`` and ``sizes.svg``, and fails beyond a bar: a commit at most three times its content, a
list of 100,000 branches at most 150 MB, and no local operation above 100 ms that need not touch everything.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from rig import HERE, NAMES, Panel, Worker, judge, publish, table

from gitprovider import BranchProtection, DeleteFile, MoveFile, PutFile
from gitprovider.connect import connect
from gitprovider.fakes.http import Request, Response
from gitprovider.fakes.serve import serving
from gitprovider.local import LocalProvider

REPO = "acme/widgets"
BRANCHES = 100_000
MEGABYTE = 1_000_000
FILES, PULLS = 50_000, 10_000
CONTENTS: Mapping[str, Callable[[int], list[bytes | str]]] = {
    "one file of 25 MB, binary": lambda size: [os.urandom(25 * size)],
    "one file of 25 MB, text": lambda size: ["a line.\n" * (25 * size // 8)],
    "five files of 10 MB, binary": lambda size: [os.urandom(10 * size) for _ in range(5)],
    "five files of 10 MB, text": lambda size: ["a line.\n" * (10 * size // 8) for _ in range(5)],
}


class LongList:
    """A host that has nothing but 100,000 branches. It keeps none of them."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def handle(self, request: Request) -> Response:
        """Return one page."""
        page, last = int(request.query["page"]), BRANCHES // 100
        sha = "0123456789abcdef" * 2 + "01234567"
        at = f"https://git.example.org/acme/widgets/commits/{sha}"
        items = [
            {"name": f"feature/{number:06}", "commit": {"sha": sha, "id": sha, "url": at}, "protected": False}
            for number in range((page - 1) * 100, page * 100)
        ]
        links = [f'<{request.origin}/?page={last}>; rel="last"', f'<{request.origin}/?page={page + 1}>; rel="next"']
        more = page < last
        headers = {"Content-Type": "application/json"}
        if self._kind == "gitlab":
            headers["X-Next-Page"] = str(page + 1) if more else ""
        elif more:
            headers["Link"] = ", ".join(links)
        return Response(status=200, headers=headers, body=json.dumps(items).encode())


def serve(kind: str) -> None:
    """Serve the long list until standard input ends."""
    with serving(LongList(kind)) as url:
        print(json.dumps({"url": url, "token": "t0ken-t0ken"}), flush=True)
        sys.stdin.read()


def list_all(kind: str, url: str, token: str) -> None:
    """Print the megabytes that this process has at its peak, after it listed all branches."""
    with connect(kind, url=url, token=token) as provider:
        assert len(provider.list_branches(REPO)) == BRANCHES
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, flush=True)


def start(script: str, *arguments: str) -> Worker:
    """Start a script of this folder, which can import the library."""
    return Worker([sys.executable, str(HERE / script), *arguments], {"PYTHONPATH": str(HERE.parent)})


def of_commits(kind: str) -> dict[str, float]:
    """How many times its content a commit needs in memory at the peak, the content itself not counted."""
    host = start("host.py", kind)
    found = {}
    with connect(kind, url=host.first["url"], token=host.first["token"], timeout=120) as provider:
        provider.commit_files(REPO, "main", [PutFile(path="f", content=b"\xff")], message="m")  # loads modules
        for name, contents in CONTENTS.items():
            made = contents(MEGABYTE)
            changes = [PutFile(path=f"f{number}", content=content) for number, content in enumerate(made)]
            tracemalloc.start()
            provider.commit_files(REPO, "main", changes, message="m")
            found[name] = tracemalloc.get_traced_memory()[1] / sum(map(len, made))
            tracemalloc.stop()
    host.end()
    return found


def of_lists(kind: str) -> float:
    """Megabytes of a process that lists 100,000 branches."""
    host = start("sizes.py", "serve", kind)
    client = start("sizes.py", "list", kind, host.first["url"], host.first["token"])
    host.end()
    return float(client.first)


def of_local(root: str) -> dict[str, float]:
    """Milliseconds of each operation on a large local forge."""
    provider = LocalProvider(root)
    fill(provider)
    found: dict[str, list[float]] = {}
    for turn in range(5):
        for name, call in local_calls(provider, turn).items():
            began = time.perf_counter()
            call()
            found.setdefault(name, []).append(1000 * (time.perf_counter() - began))
    return {name: statistics.median(times) for name, times in found.items()}


def fill(provider: LocalProvider) -> None:
    """Make 50,000 files, as many in one directory, 10,000 branches, and an open pull request for each."""
    forge = provider.forge
    forge.create_repo(REPO)
    blob = forge.write_blob(REPO, b"a line\n")
    paths = [f"d{number // 1000:03}/f{number:06}" for number in range(FILES)] + ["one", "two", "three", "four", "five"]
    tree = forge.write_tree(REPO, None, dict.fromkeys(paths, (blob, "100644")))
    first = forge.write_commit(REPO, tree=tree, parents=[], message="first")
    forge.create_branch(REPO, "main", first)
    changed = forge.write_tree(REPO, tree, {"changed": (blob, "100644")})
    second = forge.write_commit(REPO, tree=changed, parents=[first], message="second")
    for number in range(PULLS):
        forge.create_branch(REPO, f"b{number:05}", second)
        forge.open_pull_request(REPO, source_branch=f"b{number:05}", target_branch="main", title="A title")


def local_calls(provider: LocalProvider, turn: int) -> dict[str, Callable[[], Any]]:
    """The operations on a large forge, in the order in which they work."""
    name, opened = f"new-{turn}", []

    def commit(*changes: Any) -> Callable[[], Any]:
        return lambda: provider.commit_files(REPO, name, changes, message="m")

    def open_pull_request() -> None:
        made = provider.open_pull_request(REPO, source_branch=name, target_branch="main", title="A title")
        opened.append(made.number)

    rules = BranchProtection.nothing()
    file = ("one", "two", "three", "four", "five")[turn]
    return {
        "get_repo": lambda: provider.get_repo(REPO),
        "create_repo": lambda: provider.create_repo(f"acme/{name}"),
        "create_branch": lambda: provider.create_branch(REPO, name, source="main"),
        "commit_files, a changed file": commit(PutFile(path="d001/f001001", content=f"{turn}")),
        "commit_files, a new file": commit(PutFile(path=f"d002/{name}", content="x")),
        "commit_files, a moved file": commit(MoveFile(path=file, to=f"moved/{name}")),
        "commit_files, a deleted file": commit(DeleteFile(path=f"d003/f{3000 + turn:06}")),
        "open_pull_request": open_pull_request,
        "find_pull_requests": lambda: provider.find_pull_requests(REPO, source_branch=name, target_branch="main"),
        "get_pull_request": lambda: provider.get_pull_request(REPO, opened[0]),
        "merge_pull_request": lambda: provider.merge_pull_request(REPO, opened[0], delete_source_branch=True),
        "protect_branch": lambda: provider.protect_branch(REPO, f"b0000{turn}", rules),
        "protection": lambda: provider.protection(REPO, "main"),
        "head": lambda: provider.head(REPO, "b05000"),
        "list_branches, touches all": lambda: provider.list_branches(REPO),
    }


def main(arguments: list[str]) -> int:
    """Measure, report and judge."""
    if arguments[:1] == ["serve"]:
        serve(arguments[1])
        return 0
    if arguments[:1] == ["list"]:
        list_all(*arguments[1:])
        return 0
    lists = {kind: of_lists(kind) for kind in NAMES}  # first: a new process counts the peak of the one that starts it
    commits = {kind: of_commits(kind) for kind in NAMES}
    with tempfile.TemporaryDirectory() as root:
        local = of_local(root)
    note = f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}"
    text = [
        "# Large things",
        note,
        "Memory at the peak of a commit, in times of its content, which is not counted itself:",
        table(
            ["", *(NAMES[kind] for kind in commits)],
            [[name, *(f"{commits[kind][name]:.2f}" for kind in commits)] for name in CONTENTS],
        ),
        f"Memory of a whole process that lists {BRANCHES:,} branches:",
        table(["", "MB"], [[NAMES[kind], f"{size:.0f}"] for kind, size in lists.items()]),
        f"A local forge with {FILES:,} files, {PULLS:,} branches and {PULLS:,} open pull requests:",
        table(["", "ms"], [[name, f"{value:.1f}"] for name, value in local.items()]),
    ]
    panels = [
        *(Panel(f"{NAMES[kind]}: memory of a commit, in times of its content", list(rows.items()))
          for kind, rows in commits.items()),
        Panel(f"memory to list {BRANCHES:,} branches", [(NAMES[kind], size) for kind, size in lists.items()], " MB"),
        Panel(f"local forge, {FILES:,} files, {PULLS:,} branches and pull requests", list(local.items()), " ms"),
    ]  # fmt: skip
    publish("sizes", "\n\n".join(text), panels, note)
    bars = [(f"{NAMES[kind]}: {name}", value, 3.0) for kind, rows in commits.items() for name, value in rows.items()]
    bars += [(f"{NAMES[kind]}: MB for the list", size, 150.0) for kind, size in lists.items()]
    bars += [(f"local: ms of {name}", value, 100.0) for name, value in local.items() if "touches all" not in name]
    return judge(bars)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
