"""What happens to a mutation when something goes wrong, beside the others.

``python benchmarks/faults.py PYTHON`` injects the same faults into the request that makes each mutation's effect. It
counts how often a mutation was sent again, took effect twice, or was reported as a success that it was not, and how
long the library would have slept: no sleep happens. The others run with PYTHON. It writes
``benchmarks/results/faults.md`` and ``faults.svg``, and fails if this library is not zero in every column.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from rig import NAMES, OPERATIONS, PEERS, Panel, Rig, judge, publish, rigs, table, versions

MUTATIONS = OPERATIONS[2:]
LIMIT = b'{"message": "You have exceeded a secondary rate limit"}'.decode()
FAULTS: Mapping[str, Mapping[str, Any]] = {
    "the connection is reset after the effect": {"kind": "reset", "when": "after"},
    "the answer is cut off after the effect": {"kind": "cut", "when": "after"},
    "502 after the effect": {"kind": "status", "status": 502, "when": "after"},
    "503 before it": {"kind": "status", "status": 503},
    "503 each time": {"kind": "status", "status": 503, "times": None},
    "429 with Retry-After: 2": {"kind": "status", "status": 429, "headers": {"Retry-After": "2"}},
    "403 that is a rate limit": {"kind": "status", "status": 403, "headers": {"Retry-After": "2"}, "body": LIMIT},
    "a login page with 200 before it": {"kind": "html", "status": 200},
    "JSON of another shape with 200 before it": {"kind": "shape", "status": 200},
    "301 to the repository before it": {"kind": "redirect", "status": 301},
}
COLUMNS = {
    "again": "sent again",
    "twice": "took effect twice",
    "false": "success that was none",
    "slept": "seconds slept because of it",
}


def effect(requests: list[list[Any]]) -> tuple[str, str] | None:
    """The method and the endpoint of the last request with an effect."""
    return next(((method, endpoint) for method, endpoint, _, done in reversed(requests) if done), None)


def outcomes(rig: Rig, name: str) -> dict[str, float]:
    """What happened in all runs of one peer."""
    peer = rig.peers[name]
    found = {"runs": 0.0, **dict.fromkeys(COLUMNS, 0.0)}
    path = "repos/acme/widgets" if rig.kind == "github" else "api/v4/projects/acme%2Fwidgets"
    for operation in MUTATIONS:
        clean = rig.call(peer, operation)
        step = effect(clean["requests"])
        if clean.get("missing") or clean["error"] or step is None:
            continue
        usual = count(clean["requests"], step)
        for fault in FAULTS.values():
            method, endpoint = step
            headers = dict(fault.get("headers", {}))
            if fault["kind"] == "redirect":
                headers["Location"] = f"{rig.url}/{path}"
            at = {"method": method, "endpoint": f"^{re.escape(endpoint)}$", "headers": headers}
            result = rig.call(peer, operation, faults=[{**fault, **at}])
            done = sum(row[3] for row in result["requests"])
            found["runs"] += 1
            found["again"] += max(count(result["requests"], step) - usual, 0)
            found["twice"] += done > sum(row[3] for row in clean["requests"])
            found["false"] += result["error"] is None and not done
            found["slept"] += max(result["slept"] - clean["slept"], 0)
    return found


def count(requests: list[list[Any]], step: tuple[str, str]) -> int:
    """How many of the requests are the step."""
    return sum((method, endpoint) == step for method, endpoint, _, _ in requests)


def main(python: str) -> int:
    """Measure, report and judge."""
    with rigs(python) as made:
        found = {kind: {name: outcomes(rig, name) for name in PEERS[kind]} for kind, rig in made.items()}
        note = versions(made)
    text = [
        "# The same faults, beside others",
        note,
        "Each fault is injected into the request that makes the effect of each mutation that the library has: "
        + "; ".join(FAULTS) + ". Sleeps are counted and do not happen.",
    ]  # fmt: skip
    panels: list[Panel] = []
    bars: list[tuple[str, float, float]] = []
    for kind, peers in found.items():
        rows = [[name, *(f"{row[column]:,.0f}" for column in ("runs", *COLUMNS))] for name, row in peers.items()]
        text += [f"## {NAMES[kind]}", table(["", "runs", *COLUMNS.values()], rows)]
        for column, title in COLUMNS.items():
            panels.append(Panel(f"{NAMES[kind]}: {title}", [(name, round(row[column])) for name, row in peers.items()]))
            bars.append((f"{NAMES[kind]}: {title}", peers["gitprovider"][column], 0.0))
    publish("faults", "\n\n".join(text), panels, note)
    return judge(bars)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
