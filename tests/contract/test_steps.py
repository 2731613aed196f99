"""A failed mutation names its steps alike on the three hosts, so that a caller may compare them with a string."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitprovider import BranchProtection, GitProviderError, Outcome, ProviderUnavailableError, PutFile
from gitprovider.mutations import (
    CommitFiles,
    CreateBranch,
    CreateRepo,
    MergePullRequest,
    Mutation,
    OpenPullRequest,
    ProtectBranch,
)
from tests.rigs import ForgeRig, github_rig, gitlab_rig, local_rig

HOSTS: dict[str, Callable[[Path], Any]] = {"local": local_rig, "github": github_rig, "gitlab": gitlab_rig}
MUTATIONS = (CreateRepo, CreateBranch, ProtectBranch, CommitFiles, OpenPullRequest, MergePullRequest)
Steps = tuple[list[str], str | None, Outcome]


def given(rig: ForgeRig) -> str:
    """A branch that is one commit ahead, and a pull request (1) from another one."""
    repo = rig.given_repo()
    for branch in ("change", "later"):
        rig.given_branch(repo, branch)
        rig.given_commit(repo, branch, {f"{branch}.txt": b"new\n"})
    rig.given_pull_request(repo, source_branch="change")
    return repo


CALLS: dict[str, Callable[[ForgeRig, str], object]] = {
    "create_repo": lambda rig, repo: rig.provider.create_repo(rig.fresh_path()),
    "create_branch": lambda rig, repo: rig.provider.create_branch(repo, "topic", source="main"),
    "protect_branch": lambda rig, repo: rig.provider.protect_branch(repo, "later"),
    "commit_files": lambda rig, repo: rig.provider.commit_files(
        repo, "later", [PutFile(path="a.txt", content="a\n")], message="Add a"
    ),
    "open_pull_request": lambda rig, repo: rig.provider.open_pull_request(
        repo, source_branch="later", target_branch="main", title="Later"
    ),
    "merge_pull_request": lambda rig, repo: rig.provider.merge_pull_request(repo, 1),
}


def steps(rig: ForgeRig, call: Callable[[ForgeRig, str], object], repo: str) -> Steps:
    """What the call's error says: completed steps, the failed one, and the outcome."""
    with pytest.raises(GitProviderError) as caught:
        call(rig, repo)
    return [step.name for step in caught.value.completed], caught.value.failed_step, caught.value.outcome


def lose(rig: ForgeRig) -> None:
    """The next change takes effect, and nobody hears of it. The local forge has a disk instead of a network."""
    if rig.given_lost_answer():
        return

    def fail() -> None:
        raise ProviderUnavailableError("the disk failed", outcome=Outcome.UNKNOWN)

    rig.on_next_mutation(fail, when="after")


def on_each_host(root: Path, case: Callable[[ForgeRig], Steps]) -> dict[str, Steps]:
    """What the case comes to on a fresh host of each kind."""
    found = {}
    for name, made in HOSTS.items():
        with made(root / name) as rig:
            found[name] = case(rig)
    return found


@pytest.mark.parametrize("kind", MUTATIONS, ids=lambda kind: kind.operation)
def test_a_lost_answer_is_a_failed_effect_step(tmp_path: Path, kind: type[Mutation[Any]]) -> None:
    """The mutation's own ``effect``, with nothing completed before it."""

    def case(rig: ForgeRig) -> Steps:
        repo = given(rig)
        lose(rig)
        return steps(rig, CALLS[kind.operation], repo)

    assert on_each_host(tmp_path, case) == dict.fromkeys(HOSTS, ([], kind.effect, Outcome.UNKNOWN))


def test_a_failed_deletion_leaves_a_completed_merge(tmp_path: Path) -> None:
    """Of the source branch, whose pull request is merged already."""

    def case(rig: ForgeRig) -> Steps:
        repo = given(rig)
        rig.given_merged(repo, 1)
        lose(rig)
        return steps(rig, lambda rig, repo: rig.provider.merge_pull_request(repo, 1, delete_source_branch=True), repo)

    assert on_each_host(tmp_path, case) == dict.fromkeys(HOSTS, (["merge"], "delete source branch", Outcome.PARTIAL))


@pytest.mark.parametrize("kind", MUTATIONS, ids=lambda kind: kind.operation)
def test_a_refused_effect_step_is_named(tmp_path: Path, kind: type[Mutation[Any]]) -> None:
    """A taken name, a protected branch, or a repository that is archived."""

    def refuse(rig: ForgeRig, repo: str) -> Callable[[ForgeRig, str], object]:
        if kind.operation == "create_repo":
            return lambda rig, repo: rig.provider.create_repo(repo)
        if kind.operation == "commit_files":
            rig.given_protection(repo, "later", BranchProtection(enforce_admins=True))
            return CALLS[kind.operation]
        rig.given_archived(repo)
        return CALLS[kind.operation]

    def case(rig: ForgeRig) -> Steps:
        repo = given(rig)
        return steps(rig, refuse(rig, repo), repo)

    assert on_each_host(tmp_path, case) == dict.fromkeys(HOSTS, ([], kind.effect, Outcome.NOT_APPLIED))
