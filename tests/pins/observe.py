"""What the providers do, observed: the goldens of ``tests/pins/golden``, made anew.

``python -m tests.pins.observe NAME …`` writes the goldens of those names; without a name it lists them. A golden is
written anew only where a change is meant, and its difference is then part of the commit:

- ``requests-github`` and ``requests-gitlab``: the requests of each call when no answer is lost.
- ``outcomes``: how each call ends, also when the answers are lost from one of its requests on: the error, its outcome,
  and what resolve says of it.
- ``steps``: of the same errors the failed step, and the completed ones.
- ``intents``: of those that may have changed something the evidence, without ``steps``.
- ``suite``: the names of the contract's cases, and with how many parameters each one runs.

``records-0.1.0`` is never written anew: what that version stored must stay readable.
"""

from __future__ import annotations

import functools
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gitprovider import GitProviderError, Intent, Outcome, ProviderUnavailableError, resolve
from gitprovider.fakes.faults import Fault
from gitprovider.testing import GitProviderContractTests
from tests.pins.cases import FREE, GITHUB, LOCAL, PREMIUM, WORLDS, Case, cases_of
from tests.support.rigs import AnyProvider, LocalRig, RemoteRig, github_rig, gitlab_rig, local_rig

FOLDER = Path(__file__).parent / "golden"
# Sections, and what each holds by the name of a call.
Golden = Mapping[str, Mapping[str, Any]]

_RIGS: Mapping[str, Callable[..., AbstractContextManager[LocalRig | RemoteRig]]] = {
    LOCAL: local_rig,
    GITHUB: github_rig,
    FREE: functools.partial(gitlab_rig, tier="free"),
    PREMIUM: functools.partial(gitlab_rig, tier="premium"),
}
SENT_AT, LOST_AT = "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:15+00:00"


@dataclass(frozen=True)
class Run:
    """One call: what was sent, and the error that it ended with."""

    sent: tuple[str, ...]
    mutations: int
    error: GitProviderError | None
    verdict: str
    record: Mapping[str, Any] | None

    @property
    def outcome(self) -> str:
        return f"{type(self.error).__name__}, {self.error.outcome}{self.verdict}" if self.error else "done"

    @property
    def steps(self) -> list[Any]:
        return [self.error.failed_step, [step.name for step in self.error.completed]] if self.error else []


def run(world: str, case: Case, lost: int = 0) -> Run:
    """Make the call on a fresh host. From its request number ``lost`` on, each takes effect and its answer is lost."""
    with tempfile.TemporaryDirectory() as root, _RIGS[world](Path(root), **case.knobs) as rig:
        repo = case.given(rig)
        heads = rig.branches(repo) if rig.exists(repo) else {}
        before = rig.mutations_seen()
        if lost:
            _lose(rig, lost)
        error = None
        try:
            case.call(rig, repo)
        except GitProviderError as raised:
            error = raised
        sent: tuple[str, ...] = ()
        mutations = rig.mutations_seen() - before
        if isinstance(rig, RemoteRig):
            sent = tuple(f"{entry.method} {entry.endpoint}" for entry in rig.host.request_log.entries)
        if error is None or error.outcome is Outcome.NOT_APPLIED or error.intent is None:
            return Run(sent, mutations, error, "", None)
        rig.renewed()
        return Run(sent, mutations, error, f", {_verdict(rig.provider, error)}", plain(error.intent, heads))


def _lose(rig: LocalRig | RemoteRig, number: int) -> None:
    if isinstance(rig, RemoteRig):
        rig.host.script.add(Fault(kind="reset", when="after", nth=number, times=None))
        return

    # The local forge has no requests: its changes are counted, and the disk fails while one is being recorded.
    def lose(left: int) -> None:
        if left > 1:
            rig.on_next_mutation(lambda: lose(left - 1), when="after")
        else:
            raise ProviderUnavailableError("the disk failed", outcome=Outcome.UNKNOWN)

    rig.on_next_mutation(lambda: lose(number), when="after")


def _verdict(provider: AnyProvider, error: GitProviderError) -> str:
    settled = datetime.now(UTC) + timedelta(hours=1)
    try:
        return resolve(provider, error, now=lambda: settled).verdict
    except GitProviderError as raised:
        return type(raised).__name__


def plain(intent: Intent, heads: Mapping[str, str]) -> dict[str, Any]:
    """The record with times and commits that are the same in each run: 1…, 2… are the heads before, a…, b… are new."""
    record: dict[str, Any] = json.loads(json.dumps(intent.to_json()))
    times = [time for time in (intent.sent_at, intent.lost_at) if time is not None]
    assert times == sorted(times)
    assert {time.utcoffset() for time in times} <= {timedelta(0)}
    record |= {name: time for name, time in (("sent_at", SENT_AT), ("lost_at", LOST_AT)) if name in record}
    known: dict[str, str] = {}
    for number, (_, sha) in enumerate(sorted(heads.items()), 1):
        known.setdefault(sha, f"{number % 10}" * 40)
    new = iter("abcdef")
    for name, value in record.items():
        if isinstance(value, str) and re.fullmatch(r"[0-9a-f]{40}", value):
            if value not in known:
                known[value] = next(new) * 40
            record[name] = known[value]
    return record


@functools.cache
def observed(world: str) -> Mapping[str, Mapping[str, Any]]:
    """What all cases of a world do, by kind of golden and name of the call."""
    found: dict[str, dict[str, Any]] = {"requests": {}, "outcomes": {}, "intents": {}, "steps": {}}

    def note(name: str, ran: Run) -> None:
        found["outcomes"][name] = ran.outcome
        if ran.error is not None:
            found["steps"][name] = ran.steps
        if ran.record is not None:
            found["intents"][name] = {k: v for k, v in ran.record.items() if k != "steps"}

    for name, case in cases_of(world).items():
        undisturbed = run(world, case)
        found["requests"][name] = list(undisturbed.sent)
        note(name, undisturbed)
        if undisturbed.error is None and case.lost:
            for number in range(1, (len(undisturbed.sent) or undisturbed.mutations) + 1):
                where = undisturbed.sent[number - 1] if undisturbed.sent else "change"
                note(f"{name} | {number} {where}", run(world, case, number))
    return found


def suite() -> Golden:
    """The contract's cases, and with how many parameters each one runs."""
    cases: dict[str, int] = {}
    for name in sorted(dir(GitProviderContractTests)):
        if name.startswith("test_"):
            marks = getattr(getattr(GitProviderContractTests, name), "pytestmark", ())
            cases[name] = 1
            for mark in marks:
                if mark.name == "parametrize":
                    cases[name] *= len(mark.args[1])
    return {"cases": cases}


# Of each golden: what it is of, and its sections.
GOLDENS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "requests-github": ("requests", (GITHUB,)),
    "requests-gitlab": ("requests", (FREE, PREMIUM)),
    "outcomes": ("outcomes", WORLDS),
    "intents": ("intents", WORLDS),
    "steps": ("steps", WORLDS),
}


def golden(name: str) -> Golden:
    """What is written."""
    read: Golden = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return read


def write(name: str) -> None:
    """Write a golden anew: a line for each call."""
    kind, worlds = GOLDENS.get(name, ("", ()))
    made = suite() if name == "suite" else {world: observed(world)[kind] for world in worlds}
    (FOLDER / f"{name}.json").write_text("\n".join(_lines(made)) + "\n", encoding="utf-8")


def _lines(made: Golden) -> Iterator[str]:
    yield "{"
    for section, calls in made.items():
        yield f" {json.dumps(section)}: {{"
        rows = [f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in calls.items()]
        yield ",\n".join(rows)
        yield " }" if section == list(made)[-1] else " },"
    yield "}"


if __name__ == "__main__":
    names = sys.argv[1:]
    if not names or not {*GOLDENS, "suite"}.issuperset(names):
        raise SystemExit(f"name one or more of: {' '.join([*GOLDENS, 'suite'])}")
    for chosen in names:
        write(chosen)
