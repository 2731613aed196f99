"""ensure_change: a change by pull request is one call that may be run again, on every host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gitprovider import (
    BranchProtection,
    ConflictError,
    Outcome,
    PullRequestState,
    PutFile,
    UnsupportedOptionError,
    bootstrap,
    ensure_change,
    ensure_protection,
)
from tests.support.rigs import LocalRig, RemoteRig, github_rig, gitlab_rig, local_rig

RIGS: list[Any] = [local_rig, github_rig, gitlab_rig]
BETWEEN: Any = {"source_branch": "bump", "target_branch": "main"}


@pytest.fixture(params=RIGS, ids=["local", "github", "gitlab"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A rig of each host."""
    with request.param(tmp_path) as made:
        yield made


def bump(version: str) -> list[PutFile]:
    return [PutFile(path="VERSION", content=version)]


def test_a_second_run_changes_nothing_and_leaves_no_branch(rig: LocalRig | RemoteRig) -> None:
    """The second run would create the branch anew and die of having nothing to merge."""
    repo = rig.given_repo()

    first = ensure_change(rig.provider, repo, bump("2"), **BETWEEN, title="Version 2")
    sent = rig.mutations_seen()
    second = ensure_change(rig.provider, repo, bump("2"), **BETWEEN, title="Version 2")

    assert first.changed
    assert first.value is not None
    assert first.value.state is PullRequestState.MERGED
    assert second.changed is False
    assert second.value == first.value
    assert rig.mutations_seen() == sent
    assert set(rig.branches(repo)) == {"main"}
    assert rig.files(repo, "main")["VERSION"].content == b"2"


def test_another_title_is_another_change(rig: LocalRig | RemoteRig) -> None:
    """The next change on the same branch name would be taken for the one before."""
    repo = rig.given_repo()
    ensure_change(rig.provider, repo, bump("2"), **BETWEEN, title="Version 2")

    third = ensure_change(rig.provider, repo, bump("3"), **BETWEEN, title="Version 3")

    assert third.changed
    assert rig.files(repo, "main")["VERSION"].content == b"3"


def test_what_the_target_holds_needs_no_pull_request(rig: LocalRig | RemoteRig) -> None:
    """A branch would be made for a change that is there already."""
    repo = rig.given_repo()
    rig.given_commit(repo, "main", {"VERSION": b"2"})
    sent = rig.mutations_seen()

    there = ensure_change(rig.provider, repo, bump("2"), **BETWEEN, title="Version 2")

    assert (there.value, there.changed) == (None, False)
    assert rig.mutations_seen() == sent


def test_without_a_method_the_pull_request_stays_open(rig: LocalRig | RemoteRig) -> None:
    """A change that somebody is to review would be merged."""
    repo = rig.given_repo()

    first = ensure_change(rig.provider, repo, bump("2"), **BETWEEN, title="Version 2", method=None)
    second = ensure_change(rig.provider, repo, bump("2"), **BETWEEN, title="Version 2", method=None)

    assert first.value is not None
    assert first.value.state is PullRequestState.OPEN
    assert (second.value, second.changed) == (first.value, False)


def test_an_open_pull_request_of_another_title_is_a_conflict(rig: LocalRig | RemoteRig) -> None:
    """Somebody else's pull request would be merged as ours."""
    repo = rig.given_repo()
    ensure_change(rig.provider, repo, bump("2"), **BETWEEN, title="Version 2", method=None)

    with pytest.raises(ConflictError):
        ensure_change(rig.provider, repo, bump("3"), **BETWEEN, title="Version 3")


def test_a_run_that_stopped_after_each_step_is_finished_by_the_next(rig: LocalRig | RemoteRig) -> None:
    """A run that died half-way would have to be cleaned up by hand."""
    repo = rig.given_repo()
    rig.given_branch(repo, "bump")
    rig.given_commit(repo, "bump", {"VERSION": b"2"})

    done = ensure_change(rig.provider, repo, bump("2"), **BETWEEN, title="Version 2")

    assert done.value is not None
    assert done.value.state is PullRequestState.MERGED
    assert set(rig.branches(repo)) == {"main"}


def test_ensure_refuses_an_option_before_any_request(tmp_path: Path) -> None:
    """A repository would be looked at, or made, before the option is found to be impossible on this host."""
    with gitlab_rig(tmp_path) as rig:
        repo = rig.given_repo()
        sent = rig.requests_seen()

        with pytest.raises(UnsupportedOptionError):
            ensure_protection(rig.provider, repo, "main", BranchProtection(required_approvals=1))

        assert rig.requests_seen() == sent


@pytest.mark.parametrize("plan", [True, False])
def test_bootstrap_refuses_an_option_before_any_request(plan: bool, tmp_path: Path) -> None:
    """The repository would be made, and the plan would promise what the host cannot do."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "README.md").write_text("# Project")
    with gitlab_rig(tmp_path / "host") as rig:
        repo, sent = rig.fresh_path(), rig.requests_seen()

        with pytest.raises(UnsupportedOptionError) as caught:
            bootstrap(
                rig.provider, repo, source=tmp_path / "project", plan=plan, rules=BranchProtection(required_approvals=1)
            )

        assert caught.value.option == "protect_branch.required_approvals"
        assert caught.value.outcome is Outcome.NOT_APPLIED
        assert rig.requests_seen() == sent
