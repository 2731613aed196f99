"""The fault matrix: each mutation, each of its requests, each fault, before and after the effect, once and for good.

Whatever goes wrong, no request that asks for a change is sent twice, and the outcome tells the truth.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitprovider import BranchProtection, GitProviderError, Outcome, PutFile
from tests.support.github_faults import FAULTS, Broken, When
from tests.support.github_graphql import with_graphql
from tests.support.github_hub import REPO, Hub, running

Given = Callable[[Hub], Any]


def _empty(hub: Hub) -> None:
    hub.forge.create_repo("acme/empty")


def _protected(hub: Hub) -> None:
    hub.given_repo()
    hub.given_rule(BranchProtection(required_checks=("ci",)))


def _signed(hub: Hub) -> None:
    hub.given_repo()
    hub.forge.put_rule(REPO, "ma*", BranchProtection(), {"signatures": True})


def _keep_signatures(hub: Hub) -> Any:
    hub.fake.shows_wildcards = True
    return hub.provider.protect_branch(REPO, "main", BranchProtection(required_approvals=1))


def _pulled(hub: Hub) -> None:
    hub.given_repo()
    hub.given_pull()


def _branched(hub: Hub) -> None:
    hub.given_repo()
    hub.given_branch("feature")
    hub.given_commit("feature", PutFile(path="feature.txt", content="feature"))


def _commit_by_graphql(hub: Hub) -> Any:
    with with_graphql(hub) as provider:
        return provider.commit_files(REPO, "main", FILES, message="m")


FILES = [PutFile(path="README.md", content="new"), PutFile(path="a.bin", content=b"\xff")]
SCENARIOS: dict[str, tuple[Given, Given]] = {
    "create_repo": (lambda hub: None, lambda hub: hub.provider.create_repo("acme/new")),
    "create_branch": (Hub.given_repo, lambda hub: hub.provider.create_branch(REPO, "develop", source="main")),
    "protect_branch": (Hub.given_repo, lambda hub: hub.provider.protect_branch(REPO, "main")),
    "tighten": (
        _protected,
        lambda hub: hub.provider.protect_branch(REPO, "main", BranchProtection(enforce_admins=True)),
    ),
    "keep_signatures": (_signed, _keep_signatures),
    "commit_files": (Hub.given_repo, lambda hub: hub.provider.commit_files(REPO, "main", FILES, message="m")),
    "commit_by_graphql": (Hub.given_repo, _commit_by_graphql),
    "first_commit": (_empty, lambda hub: hub.provider.commit_files("acme/empty", "main", FILES, message="m")),
    "open_pull_request": (
        _branched,
        lambda hub: hub.provider.open_pull_request(
            REPO,
            source_branch="feature",
            target_branch="main",
            title="t",
            labels=["bug"],
            reviewers=["hubot"],
        ),
    ),
    "merge_pull_request": (
        _pulled,
        lambda hub: hub.provider.merge_pull_request(REPO, 1, delete_source_branch=True, timeout=3),
    ),
}


# These say that the request was refused. A host that did as it was asked and then said so would be lying, and no caller
# could tell: they are injected before the effect only.
REFUSALS = ("429 with a wait", "429 without", "403 limited")
MATRIX = [
    pytest.param(fault, when, lasting, id=f"{name}-{when}-{'lasting' if lasting else 'once'}")
    for name, fault in FAULTS.items()
    for when in ("before", "after")
    for lasting in (False, True)
    if when == "before" or name not in REFUSALS
]


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, int, str]]:
    """Per scenario a forge to copy, and the requests and the result of the call when nothing fails."""
    root = tmp_path_factory.mktemp("forges")
    made: dict[str, tuple[Path, int, str]] = {}
    for name, (given, call) in SCENARIOS.items():
        (root / name).mkdir()
        with running(root / name) as hub:
            given(hub)
        with running(root / f"{name}-run", like=root / name) as hub:
            call(hub)
            made[name] = (root / name, len(hub.sent), _shape(hub.state()))
    return made


@pytest.mark.parametrize(("fault", "when", "lasting"), MATRIX)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_fault_repeats_no_change_and_the_outcome_is_true(
    templates: dict[str, tuple[Path, int, str]], tmp_path: Path, scenario: str, fault: Broken, when: When, lasting: bool
) -> None:
    """For every request of the mutation in turn: one error of ours, each change asked for once, and no false report."""
    template, requests, done = templates[scenario]
    for number in range(1, requests + 1):
        with running(tmp_path / str(number), like=template) as hub:
            _, call = SCENARIOS[scenario]
            before = hub.state()
            hub.given_fault(fault.at(number, when, None if lasting else 1))

            error = _error_of(call, hub)

            where = f"request {number} of {requests}"
            repeated = [what for what, times in _changes_asked(hub).items() if times > 1]
            assert repeated == [], f"{where}: sent twice"
            assert hub.waits == [] or scenario == "merge_pull_request", f"{where}: a mutation waited"
            if error is None:
                assert _shape(hub.state()) == done, f"{where}: reported as done"
            else:
                _check_outcome(error, before, hub.state(), where)


def _error_of(call: Given, hub: Hub) -> GitProviderError | None:
    """The error that the call ends with; anything but ours fails the test."""
    try:
        call(hub)
    except GitProviderError as error:
        return error
    return None


def _changes_asked(hub: Hub) -> Counter[tuple[str, str, bytes]]:
    return Counter((entry.method, entry.path, entry.body) for entry in hub.host.request_log.mutations())


def _shape(state: Any) -> str:
    """The state without the shas of commits, which hold the time."""
    return re.sub(r"\b[0-9a-f]{40}\b", "sha", repr(state))


def _check_outcome(error: GitProviderError, before: Any, after: Any, where: str) -> None:
    assert error.intent is not None
    assert (error.provider, error.operation) == ("github", error.intent.operation)
    match error.outcome:
        case Outcome.NOT_APPLIED:
            assert after == before, f"{where}: said to be not applied, and something changed"
            assert error.completed == ()
        case Outcome.PARTIAL:
            assert after != before, f"{where}: said to be partial, and nothing changed"
            assert error.completed != ()
        case Outcome.UNKNOWN:
            assert error.completed == ()
            assert error.intent.sent_at is not None
    assert not (error.retryable and after != before), f"{where}: said to be safe to repeat"
