"""Eight processes that write to one repository at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gitprovider import PullRequestState, PutFile
from gitprovider.local import Forge
from gitprovider.local.storage import SCRATCH
from tests.support.local_forge import REPO, git, reports, start

WRITERS = 8
ROUNDS = 3


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Forge, list[dict[str, Any]]]:
    """A forge after eight processes wrote to it, and all that they reported."""
    root = tmp_path_factory.mktemp("forge")
    forge = Forge(root)
    forge.create_repo(REPO)
    first = forge.commit_changes(REPO, "main", [PutFile(path="README.md", content="# Widgets\n")], message="first")
    forge.create_branch(REPO, "pinned", first.sha)
    forge.create_branch(REPO, "contended", first.sha)
    forge.commit_changes(REPO, "contended", [PutFile(path="contended", content="x")], message="contended")
    forge.open_pull_request(REPO, source_branch="contended", target_branch="main", title="contended")
    printed = reports([start("writer", root, f"writer{index}", ROUNDS, first.sha) for index in range(WRITERS)])
    return forge, [fact for lines in printed for fact in lines]


def _of(facts: list[dict[str, Any]], what: str, *, refused: bool) -> list[dict[str, Any]]:
    return [fact for fact in facts if fact["what"] == what and ("refused" in fact) is refused]


def test_every_acknowledged_commit_is_there(written: tuple[Forge, list[dict[str, Any]]]) -> None:
    """A writer that reads the head outside the lock would drop another's commit."""
    forge, facts = written

    files = forge.read_tree(REPO, forge.head(REPO, "main"))

    acknowledged = _of(facts, "commit", refused=False)
    assert len(acknowledged) == WRITERS * ROUNDS
    assert {fact["path"] for fact in acknowledged} <= set(files)
    assert all(forge.contains(REPO, fact["sha"], "main") for fact in acknowledged)


def test_every_acknowledged_merge_is_there(written: tuple[Forge, list[dict[str, Any]]]) -> None:
    """Each merge is on main, and its pull request says so."""
    forge, facts = written

    merged = _of(facts, "merge", refused=False)

    assert len(merged) == WRITERS * ROUNDS
    assert {fact["path"] for fact in merged} <= set(forge.read_tree(REPO, forge.head(REPO, "main")))
    assert {fact["sha"] for fact in merged} <= {
        pull.merge_commit_sha for pull in forge.pull_requests(REPO, state=PullRequestState.MERGED)
    }


def test_every_acknowledged_branch_is_there(written: tuple[Forge, list[dict[str, Any]]]) -> None:
    """Branches that were made at the same time do not lose each other."""
    forge, facts = written

    names = {name for name, _ in forge.branches(REPO)}

    assert {fact["name"] for fact in _of(facts, "branch", refused=False)} <= names
    assert len(_of(facts, "branch", refused=False)) == WRITERS * ROUNDS


def test_numbers_are_unique(written: tuple[Forge, list[dict[str, Any]]]) -> None:
    """Every number is given once, and none is left out."""
    _, facts = written

    numbers = [fact["number"] for fact in _of(facts, "open", refused=False)]

    assert sorted(numbers) == list(range(2, 2 + WRITERS * ROUNDS))


@pytest.mark.parametrize(
    ("what", "winners", "refusal"),
    [
        ("same branch", ROUNDS, "AlreadyExistsError"),
        ("same repository", ROUNDS, "AlreadyExistsError"),
        ("same head", 1, "HeadMovedError"),
        ("same merge", 1, "NotMergeableError"),
    ],
)
def test_what_only_one_can_have(
    written: tuple[Forge, list[dict[str, Any]]], what: str, winners: int, refusal: str
) -> None:
    """One of the writers has it, and every other one is refused cleanly, with nothing applied."""
    _, facts = written

    won, refused = _of(facts, what, refused=False), _of(facts, what, refused=True)

    assert len(won) == winners
    assert {(fact["refused"], fact["outcome"]) for fact in refused} == {(refusal, "not_applied")}


def test_nothing_else_was_refused(written: tuple[Forge, list[dict[str, Any]]]) -> None:
    """Waiting for the lock is no error: who contends for nothing is never refused."""
    _, facts = written

    assert [
        fact
        for what in ("commit", "branch", "change", "open", "merge", "merged")
        for fact in _of(facts, what, refused=True)
    ] == []


def test_git_finds_every_repository_sound(written: tuple[Forge, list[dict[str, Any]]]) -> None:
    """Git itself reads every repository that the writers made or wrote to."""
    forge, _ = written

    for repo in forge.repos():
        git(repo.git_dir, "fsck", "--strict")


def test_nothing_is_left_lying_about(written: tuple[Forge, list[dict[str, Any]]]) -> None:
    """Whoever lost the race for a repository takes its half-made directory away."""
    forge, _ = written

    assert not list(Path(forge.root).rglob("*.lock"))
    assert [path.name for path in (forge.root / SCRATCH).iterdir()] == [".made-by-gitprovider"]
    assert {path.name for path in forge.root.iterdir()} <= {
        "forge.sqlite3",
        "forge.sqlite3-wal",
        "forge.sqlite3-shm",
        "repositories",
        SCRATCH,
    }
