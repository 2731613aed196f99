"""What an operation costs, beside the others: requests, seconds, processor time, bytes and memory.

``python benchmarks/cost.py PYTHON`` runs this library with the running Python, and the others with PYTHON, on fake
hosts in processes of their own. It writes ``benchmarks/results/cost.md`` and ``cost.svg``, and fails if a ratio is
beyond its bar. Absolute times depend on the machine and are not judged.
"""

from __future__ import annotations

import statistics
import sys
from typing import Any

from rig import NAMES, OPERATIONS, PEERS, Panel, Rig, judge, publish, rigs, table, versions

DELAY = 0.05
BRANCHES = 1003
CALLS = 200
ROUNDS = 3
FILES = (100, 10_000, 90_000)
SIDE_BY_SIDE = "gitprovider, page_concurrency=4"


def requests_of(rig: Rig) -> dict[str, dict[str, int | None]]:
    """The requests of each operation of each peer; None if it has none, or the fake does not serve what it asks for."""
    found: dict[str, dict[str, int | None]] = {}
    for operation in OPERATIONS:
        found[operation] = {}
        for name, peer in rig.peers.items():
            # Twice: the first may learn what the second knows.
            result = [rig.call(peer, operation) for _ in range(2)][1]
            failed = result.get("missing") or result["error"]
            found[operation][name] = None if failed else len(result["requests"])
    return found


def listing(rig: Rig) -> dict[str, tuple[float, int, int]]:
    """Seconds, requests and items of a listing, for each peer, with a delay before each answer."""
    peers = dict(rig.peers)
    if rig.kind == "github":
        peers[SIDE_BY_SIDE] = rig.peer("gitprovider", page_concurrency=4)
    for peer in peers.values():  # connections are made, and modules loaded
        rig.call(peer, "list_branches", prepare={"branches": BRANCHES})
    rig.host.ask(do="delay", seconds=DELAY)
    found = {}
    for name, peer in peers.items():
        results = [rig.call(peer, "list_branches", prepare={"branches": BRANCHES}, sleeps=True) for _ in range(ROUNDS)]
        seconds = statistics.median(result["seconds"] for result in results)
        found[name] = (seconds, len(results[-1]["requests"]), results[-1]["count"])
    rig.host.ask(do="delay", seconds=0.0)
    return found


def processor(rig: Rig) -> dict[str, float]:
    """Milliseconds of processor time of one get_repo, for each peer."""
    found = {}
    for name, peer in rig.peers.items():
        results = [rig.call(peer, "get_repo", times=CALLS)["cpu"] for _ in range(ROUNDS + 1)]
        found[name] = 1000 * statistics.median(results[1:]) / CALLS
    return found


def commits(rig: Rig) -> dict[str, dict[int, dict[str, float]]]:
    """Requests, bytes, peak of memory and processor time of a commit, for each peer and size of the repository."""
    found: dict[str, dict[int, dict[str, float]]] = {}
    for name, peer in rig.peers.items():
        for files in FILES:
            first = rig.call(peer, "commit_files", prepare={"files": files})
            if first.get("missing") or first["error"]:
                break
            plain = [rig.call(peer, "commit_files", prepare={"files": files}) for _ in range(ROUNDS)]
            found.setdefault(name, {})[files] = {
                "requests": len(first["requests"]),
                "bytes": plain[-1]["bytes"],
                "peak": rig.call(peer, "commit_files", prepare={"files": files}, memory=True)["peak"],
                "cpu": 1000 * statistics.median(result["cpu"] for result in plain),
            }
    return found


def report(kind: str, measured: Any) -> list[str]:
    """The tables of one host."""
    names = PEERS[kind]
    counts, listed, cpu, sizes = measured
    shown = [
        [operation, *("–" if row[name] is None else row[name] for name in names)] for operation, row in counts.items()
    ]
    return [
        f"## {NAMES[kind]}",
        "Requests of each operation (– : it has none, or asks for an endpoint that the fake does not serve):",
        table(["", *names], shown),
        f"{BRANCHES:,} branches, {DELAY * 1000:.0f} ms before each answer, with each library's defaults:",
        table(
            ["", "seconds", "requests", "branches"],
            [[name, f"{seconds:.2f}", requests, items] for name, (seconds, requests, items) in listed.items()],
        ),
        "Processor time of one get_repo, in milliseconds:",
        table(["", *cpu], [["get_repo", *(f"{value:.2f}" for value in cpu.values())]]),
        "A commit that changes one file and adds another, by the number of files in the repository:",
        table(
            ["", "files", "requests", "KB sent and received", "KB of memory at the peak", "ms of processor time"],
            [
                [
                    name,
                    f"{files:,}",
                    row["requests"],
                    f"{row['bytes'] / 1000:,.1f}",
                    f"{row['peak'] / 1000:,.0f}",
                    f"{row['cpu']:.1f}",
                ]
                for name, by_size in sizes.items()
                for files, row in by_size.items()
            ],
        ),
    ]


def main(python: str) -> int:
    """Measure, report and judge."""
    with rigs(python) as made:
        measured = {kind: (requests_of(rig), listing(rig), processor(rig), commits(rig)) for kind, rig in made.items()}
        note = versions(made)
    text = ["# Cost, beside others", note]
    panels: list[Panel] = []
    bars: list[tuple[str, float, float]] = []
    for kind, (counts, listed, cpu, sizes) in measured.items():
        host = NAMES[kind]
        text += report(kind, measured[kind])
        panels += [
            Panel(f"{host}: seconds to list {BRANCHES:,} branches at {DELAY * 1000:.0f} ms a request",
                  [(name, seconds) for name, (seconds, _, _) in listed.items()], " s"),
            Panel(f"{host}: requests of a commit of two files",
                  [(name, count) for name, count in counts["commit_files"].items() if count is not None]),
            Panel(f"{host}: KB of a commit to a repository of {FILES[-1]:,} files",
                  [(name, round(rows[FILES[-1]]["bytes"] / 1000, 2)) for name, rows in sizes.items()], " KB"),
            Panel(f"{host}: processor time of get_repo", list(cpu.items()), " ms"),
        ]  # fmt: skip
        ours, bare = listed["gitprovider"][0], listed["requests"][0]
        bars.append((f"{host}: a serial listing, against requests", ours / bare, 1.05))
        if SIDE_BY_SIDE in listed:
            bars.append((f"{host}: a listing side by side, against requests", listed[SIDE_BY_SIDE][0] / bare, 0.55))
        bars.append(
            (f"{host}: processor time of get_repo, against requests", cpu["gitprovider"] / cpu["requests"], 2.0)
        )
        small, large = sizes["gitprovider"][FILES[0]], sizes["gitprovider"][FILES[-1]]
        for what in ("bytes", "peak"):
            grown = large[what] / small[what]
            bars.append((f"{host}: {what} of a commit, {FILES[-1]:,} files against {FILES[0]}", grown, 1.1))
    publish("cost", "\n\n".join(text), panels, note)
    return judge(bars)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
