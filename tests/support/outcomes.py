"""What each fault at each effect step leads to, on each host: the table that the decision on outcomes holds.

``python -m tests.support.outcomes`` writes it anew.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gitprovider import BranchProtection, GitProviderError, MergeMethod, Outcome, PutFile, Verdict, Visibility, resolve
from gitprovider.fakes.faults import Fault
from tests.support import calls
from tests.support.calls import Call
from tests.support.hosts import EFFECTS, KINDS, Host, Kind, everything, given_project, host

PAGE = Path(__file__).parents[2] / "adr" / "0009-outcome-and-resolution.md"
BEGIN, END = "<!-- the table begins: python -m tests.support.outcomes -->", "<!-- the table ends -->"

CALLS: Mapping[str, Call] = {
    call.name: call
    for call in (
        calls.create_repo("acme/gadgets", Visibility.PRIVATE),
        calls.create_branch("develop", "main"),
        calls.protect_branch("later", BranchProtection()),
        calls.commit_files("main", [PutFile(path="a", content="a\n", executable=False)], "Add a"),
        calls.open_pull_request("later", "Later"),
        calls.merge_pull_request(1, MergeMethod.MERGE, delete=False),
    )
}

_LIMITED = b'{"message": "You have exceeded a secondary rate limit.", "documentation_url": "https://docs.github.com"}'


@dataclass(frozen=True)
class Row:
    """One row: a fault, or several that must lead to the same."""

    title: str
    faults: Sequence[Fault]
    hosts: Sequence[Kind] = ("github", "gitlab")


def _both(kind: str, title: str, hosts: Sequence[Kind] = ("github", "gitlab")) -> list[Row]:
    fault = Fault(kind=kind)  # type: ignore[arg-type]  # the callers give the kinds that there are
    return [
        Row(f"{title}, request not carried out", [fault], hosts),
        Row(f"{title}, request carried out", [replace(fault, when="after")], hosts),
    ]


_MOVED = Fault(kind="redirect", headers={"Location": "https://api.github.com/repositories/1"})
_BROKEN = [Fault(kind="status", status=status) for status in (500, 502, 503, 504)]
ROWS = [
    Row(
        "429, with and without Retry-After",
        [
            Fault(kind="status", status=429, headers={"Retry-After": "7"}),
            Fault(kind="status", status=429, body=b'{"message": "Too Many Requests"}'),
        ],
    ),
    Row("403, secondary rate limit", [Fault(kind="status", status=403, body=_LIMITED)], ("github",)),
    Row("307 of a moved repository", [_MOVED], ("github",)),
    *_both("redirect", "307 by a gateway"),
    Row("500, 502, 503, 504, request not carried out", _BROKEN),
    Row("500, 502, 503, 504, request carried out", [replace(fault, when="after") for fault in _BROKEN]),
    *_both("reset", "connection reset"),
    *_both("timeout", "timeout"),
    *_both("cut", "answer cut"),
    *_both("html", "HTML with a status of success"),
    *_both("shape", "JSON of another shape"),
    Row("the disk fails before the record", [Fault(kind="reset")], ("local",)),
    Row("the disk fails after the record", [Fault(kind="reset", when="after")], ("local",)),
]


@dataclass(frozen=True)
class Cell:
    """What one fault led to: the error's outcome, and the verdict once it had settled."""

    outcome: Outcome
    verdict: Verdict

    def __str__(self) -> str:
        return f"{self.outcome} → {self.verdict}".replace("_", " ")


def cell(kind: Kind, call: Call, fault: Fault) -> Cell:
    """Call, with that fault at the effect step, on a fresh host; and look afterwards."""
    with tempfile.TemporaryDirectory() as root, host(kind, Path(root) / "forge") as there:
        given_project(there.forge, calls.REPO)
        return _look(there, call, _at_effect(there, call, fault))


def _at_effect(there: Host, call: Call, fault: Fault) -> Fault:
    method, endpoint = EFFECTS[there.kind][call.name]
    return replace(fault, method=method or None, endpoint=endpoint)


def _look(there: Host, call: Call, fault: Fault) -> Cell:
    before = everything(there.forge)
    there.arm(fault)
    try:
        call.do(there.provider)
    except GitProviderError as raised:
        error = raised
    else:
        raise AssertionError(f"{call} on {there.kind} succeeded in spite of {fault}")
    there.disarm()
    settled = datetime.now(UTC) + timedelta(seconds=there.provider.settle)
    found = resolve(there.provider, error, now=lambda: settled)
    if (found.verdict is Verdict.APPLIED) is not (everything(there.forge) != before):
        raise AssertionError(f"{call} on {there.kind} after {fault}: {found}")
    return Cell(error.outcome, found.verdict)


def table(kind: Kind, *, each: bool = True) -> str:
    """The table of one host, as Markdown; with ``each`` from every fault of a row, otherwise from its first."""
    lines = ["| " + " | ".join(["", *(f"`{name}`" for name in CALLS)]) + " |", "|---" * (len(CALLS) + 1) + "|"]
    for row in ROWS:
        if kind not in row.hosts:
            continue
        cells = []
        for call in CALLS.values():
            different = {str(cell(kind, call, fault)) for fault in (row.faults if each else row.faults[:1])}
            cells.append("; ".join(sorted(different)))
        lines.append("| " + " | ".join([row.title, *cells]) + " |")
    return "\n".join(lines)


_TITLES: Mapping[Kind, str] = {"local": "### Local forge", "github": "### GitHub", "gitlab": "### GitLab"}


def main() -> None:
    """Write the tables anew."""
    page = PAGE.read_text(encoding="utf-8")
    head, tail = page[: page.index(BEGIN)], page[page.index(END) :]
    tables = [f"{_TITLES[kind]}\n\n{table(kind)}" for kind in KINDS]
    PAGE.write_text("\n\n".join([head + BEGIN, *tables, tail]), encoding="utf-8")


def written(kind: Kind) -> str:
    """The table of one host as the page has it."""
    page = PAGE.read_text(encoding="utf-8")
    return page[page.index(BEGIN) : page.index(END)].partition(_TITLES[kind])[2].partition("###")[0].strip()


if __name__ == "__main__":
    main()
