"""What the benchmarks share: processes for hosts and peers, and reports as Markdown and as a drawing."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PEERS = {
    "github": ("gitprovider", "requests", "PyGithub", "ogr", "gfo"),
    "gitlab": ("gitprovider", "requests", "python-gitlab", "ogr", "gfo"),
}
NAMES = {"github": "GitHub", "gitlab": "GitLab"}
OPERATIONS = (
    "get_repo", "list_branches", "create_repo", "create_branch", "commit_files", "protect_branch",
    "open_pull_request", "merge_pull_request",
)  # fmt: skip


class Worker:
    """A process that answers a line of JSON with a line of JSON. ``first`` is what it said at its start."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environ}
        )
        self.first = self._line()

    def ask(self, **asked: Any) -> Any:
        """Send a command and return the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self._line()

    def _line(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a process of the benchmark ended with {self._process.wait()}")
        return json.loads(line)

    def end(self) -> None:
        """End the process, which ends with its input."""
        self._process.communicate()


class Rig:
    """A fake host and the peers, each in a process of its own. The peers other than ours run in their environment."""

    def __init__(self, kind: str, peers: str, stack: ExitStack) -> None:
        self.kind = kind
        self._python = peers
        self._stack = stack
        self.host = self._start(sys.executable, "host.py", kind)
        self.url: str = self.host.first["url"]
        self.peers = {name: self.peer(name) for name in PEERS[kind]}

    def peer(self, name: str, **options: Any) -> Worker:
        """Start a peer with these options of its constructor."""
        python = sys.executable if name == "gitprovider" else self._python
        return self._start(python, "peer.py", name, self.kind, self.url, self.host.first["token"], json.dumps(options))

    def _start(self, python: str, script: str, *arguments: str) -> Worker:
        # In the peers' environment, this library cannot be imported.
        own = {"PYTHONPATH": str(HERE.parent)} if python == sys.executable else {"PYTHONPATH": ""}
        worker = Worker([python, str(HERE / script), *arguments], own)
        self._stack.callback(worker.end)
        return worker

    def call(
        self,
        peer: Worker,
        operation: str,
        *,
        prepare: Mapping[str, Any] = {},
        faults: Sequence[Mapping[str, Any]] = (),
        **how: Any,
    ) -> dict[str, Any]:
        """Run one operation of a peer. Return what it cost, with the ``requests`` and ``bytes`` that the host saw."""
        given = self.host.ask(do="prepare", operation=operation, **prepare)
        self.host.ask(do="log")
        self.host.ask(do="faults", faults=list(faults))
        asked = {"times": 1, "memory": False, "sleeps": False} | how
        result: dict[str, Any] = peer.ask(operation=operation, given=given, **asked)
        self.host.ask(do="faults", faults=[])
        result |= self.host.ask(do="log")
        return result


@contextmanager
def rigs(peers: str) -> Iterator[dict[str, Rig]]:
    """A rig for each host. ``peers`` is the Python of the environment that has the peers."""
    with ExitStack() as stack:
        yield {kind: Rig(kind, peers, stack) for kind in PEERS}


def versions(made: Mapping[str, Rig]) -> str:
    """One line with the date and the versions of everything that was measured."""
    found: dict[str, str] = {}
    for rig in made.values():
        for peer in rig.peers.values():
            found |= peer.first
    listed = ", ".join(f"{name} {found[name]}" for name in sorted(found, key=str.casefold))
    return f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}: {listed}"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown. Every column but the first is aligned to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


class Panel(NamedTuple):
    """Bars with one unit: a title, and a label and a value for each bar."""

    title: str
    bars: Sequence[tuple[str, float]]
    unit: str = ""


_TEXT, _OURS, _OTHERS = "#6e7781", "#2f81f7", "#9aa4ae"  # each is readable on white and on black


def draw(panels: Sequence[Panel], note: str) -> str:
    """An SVG with a panel below the other. The bars of this library have a colour of their own."""
    parts: list[str] = []
    y = 24
    for panel in panels:
        parts.append(f'<text x="0" y="{y}" font-weight="bold">{escape(panel.title)}</text>')
        most = max([value for _, value in panel.bars] + [1e-9])
        for label, value in panel.bars:
            y += 22
            colour = _OURS if label.startswith("gitprovider") else _OTHERS
            width = max(410 * value / most, 1)
            shown = f"{value:,.{0 if value >= 100 or value == int(value) else 2}f}{panel.unit}"
            parts.append(f'<text x="230" y="{y}" text-anchor="end">{escape(label)}</text>')
            parts.append(f'<rect x="240" y="{y - 12}" width="{width:.0f}" height="15" rx="2" fill="{colour}"/>')
            parts.append(f'<text x="{248 + width:.0f}" y="{y}">{escape(shown)}</text>')
        y += 40
    parts.append(f'<text x="0" y="{y - 8}" font-size="10">{escape(note)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{y}" viewBox="0 0 760 {y}" '
        f'font-family="sans-serif" font-size="13" fill="{_TEXT}">\n' + "\n".join(parts) + "\n</svg>\n"
    )


def publish(name: str, text: str, panels: Sequence[Panel], note: str) -> None:
    """Print a report, and write it and its drawing to the results."""
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text + "\n")
    (RESULTS / f"{name}.svg").write_text(draw(panels, note))


def judge(bars: Sequence[tuple[str, float, float]]) -> int:
    """Print each ratio with its bar, and return 1 if one is beyond it."""
    worst = 0
    for what, ratio, bar in bars:
        verdict = "within" if ratio <= bar else "BEYOND"
        print(f"{verdict} the bar: {what}: {ratio:.2f}, at most {bar:.2f}")
        worst |= ratio > bar
    return worst
