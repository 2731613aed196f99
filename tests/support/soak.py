"""Random sequences of calls with random faults, and what must be true after each of them."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from gitprovider import (
    BranchProtection,
    DeleteFile,
    GitProviderError,
    Intent,
    MergeMethod,
    Outcome,
    PutFile,
    Verdict,
    Visibility,
    resolve,
)
from gitprovider.ensure import Settling
from gitprovider.fakes.faults import Fault
from tests.support import calls
from tests.support.calls import Call
from tests.support.hosts import Kind, everything, given_project, host

STEPS = 8

_BRANCHES = ("main", "change", "later", "develop")
_CHANGES = (
    (PutFile(path="README.md", content="# Other\n"),),
    (PutFile(path="bin/run", content="#!/bin/sh\n", executable=True), PutFile(path="data", content=b"\x00\xff")),
    (DeleteFile(path="old.txt"),),
    (PutFile(path="old.txt", content="new\n"), DeleteFile(path="README.md")),
)

CALLS = st.one_of(
    st.builds(
        calls.create_repo,
        st.sampled_from(("acme/widgets", "acme/gadgets")),
        st.sampled_from((Visibility.PRIVATE, Visibility.PUBLIC)),
    ),
    st.builds(calls.create_branch, st.sampled_from(("develop", "topic")), st.sampled_from(_BRANCHES)),
    st.builds(
        calls.protect_branch,
        st.sampled_from(("main", "develop")),
        st.sampled_from((BranchProtection(), BranchProtection(require_pull_request=False))),
    ),
    st.builds(
        calls.commit_files, st.sampled_from(_BRANCHES), st.sampled_from(_CHANGES), st.sampled_from(("One", "Two"))
    ),
    st.builds(calls.open_pull_request, st.sampled_from(("later", "develop")), st.sampled_from(("A change", "Another"))),
    st.builds(
        calls.merge_pull_request,
        st.integers(1, 3),
        st.sampled_from((MergeMethod.MERGE, MergeMethod.SQUASH)),
        st.booleans(),
    ),
)

_TIMES = st.sampled_from((1, None))  # once, or from then on
_STATUSES = st.builds(
    Fault,
    times=_TIMES,
    kind=st.just("status"),
    status=st.sampled_from((429, 500, 502, 503, 504)),
    nth=st.integers(1, 7),
    when=st.just("before"),
)
_LOST = st.builds(
    Fault,
    times=_TIMES,
    kind=st.sampled_from(("reset", "timeout", "cut", "html", "shape")),
    nth=st.integers(1, 7),
    when=st.sampled_from(("before", "after")),
)
_GATEWAY = st.builds(
    Fault,
    times=_TIMES,
    kind=st.just("status"),
    status=st.sampled_from((500, 502, 503, 504)),
    nth=st.integers(1, 7),
    when=st.just("after"),
)
_REDIRECT = st.builds(Fault, kind=st.just("redirect"), nth=st.integers(1, 7))
FAULTS = st.one_of(st.none(), _LOST, _STATUSES, _GATEWAY, _REDIRECT)


class Soak(RuleBasedStateMachine):
    """One host of one kind; each step is a call with at most one fault, looked up and ensured afterwards."""

    kind: Kind

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        root = Path(tempfile.mkdtemp(prefix="soak-"))
        self._stack.callback(shutil.rmtree, root)
        self.host = self._stack.enter_context(host(self.kind, root / "forge"))
        given_project(self.host.forge, calls.REPO)

    def teardown(self) -> None:
        self._stack.close()

    @rule(call=CALLS, fault=FAULTS)
    def step(self, call: Call, fault: Fault | None) -> None:
        provider, forge = self.host.provider, self.host.forge
        # A rule that GitLab's bridge leaves behind beside a laxer one is there, and demands nothing.
        before, demanded = everything(forge), everything(forge, effective=True)
        self.host.forget()
        if fault is not None:
            self.host.arm(fault)
        error: GitProviderError | None = None
        try:
            call.do(provider)
        except GitProviderError as raised:
            error = raised
        self.host.disarm()
        note(f"{call} -> {error!r}")
        self._nothing_twice()
        changed = everything(forge) != before
        if error is None:
            assert call.holds(forge), "success was reported, and the host does not hold it"
        elif error.outcome is Outcome.NOT_APPLIED:
            assert not changed, "NOT_APPLIED was said, and something changed"
        self._resolved(call, error, changed=everything(forge, effective=True) != demanded)
        self._ensured(call, error)

    def _nothing_twice(self) -> None:
        sent = self.host.sent()
        assert len(set(sent)) == len(sent), f"sent twice: {sent}"

    def _resolved(self, call: Call, error: GitProviderError | None, *, changed: bool) -> None:
        """resolve agrees with the forge, and says nothing too early."""
        if error is None or error.intent is None:
            return
        provider = self.host.provider
        self.host.forget()
        early = resolve(provider, error)
        verdict = resolve(provider, error, now=self._settled).verdict
        note(f"resolve: {early.verdict}, then {verdict}")
        assert self.host.sent() == [], "resolve wrote"
        if error.outcome is not Outcome.NOT_APPLIED:
            assert early.verdict is not Verdict.NOT_APPLIED or error.intent.sent_at is None
        if verdict is Verdict.NOT_APPLIED:
            assert not changed, "resolve says NOT_APPLIED, and something changed"
        if verdict is Verdict.APPLIED:
            assert call.holds(self.host.forge), "resolve says APPLIED, and the host does not hold it"
        if error.outcome is not Outcome.NOT_APPLIED and changed and call.holds(self.host.forge):
            # The rule is there, and so is the bridge to it: only a part of the call took effect.
            right = Verdict.CONFLICT if self._bridges(error.intent) else Verdict.APPLIED
            assert verdict is right, f"it took effect, and resolve says {verdict}"

    def _bridges(self, intent: Intent) -> list[str]:
        """The rules of an unfinished protect_branch on GitLab: no call here asks for a wildcard."""
        if intent.operation != "protect_branch":
            return []
        return [rule.pattern for rule in self.host.forge.rules(intent.repo) if "*" in rule.pattern]

    def _ensured(self, call: Call, error: GitProviderError | None) -> None:
        """ensure ends in the state asked for, or says what contradicts it; then there is nothing left to do."""
        provider, settling = self.host.provider, Settling(sleep=lambda seconds: None, now=self._settled)
        self.host.forget()
        contradiction: GitProviderError | None = None
        try:
            call.ensure(provider, error, settling)
        except GitProviderError as refused:
            contradiction = refused
        note(f"ensure: {contradiction!r}")
        self._nothing_twice()
        if contradiction is not None:
            assert contradiction.outcome is Outcome.NOT_APPLIED, "ensure failed half-way without a fault"
            return
        assert call.holds(self.host.forge), "ensure returned, and the host does not hold it"
        if error is not None and error.intent is not None:
            assert not self._bridges(error.intent), "ensure returned, and left the bridge"
        self.host.forget()
        again = call.ensure(provider, error, settling)
        assert not again.changed
        assert self.host.sent() == [], "ensure wrote though everything was there"

    def _settled(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.host.provider.settle + 1)


def run(kind: Kind, sequences: int) -> None:
    """Run that many random sequences on one host."""
    machine: Any = type(f"Soak{kind.title()}", (Soak,), {"kind": kind})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=sequences,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
