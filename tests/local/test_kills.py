"""A process that is killed at any moment leaves a forge that opens, needs no repair and is sound to Git."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitprovider import PutFile
from gitprovider.local import Forge
from tests.support.local_forge import REPO, git, kill, reports, start

OPERATIONS = ["commit", "merge", "create_repo", "delete_repo", "create_branch", "delete_branch", "open"]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_killed_at_a_line(tmp_path: Path, operation: str) -> None:
    """Wherever it is killed, the effect shows whole or not at all, and repeating the call brings it about once."""
    (kills,) = reports([start("killed", tmp_path, operation)])

    assert {fact["shows"] for fact in kills} == {True, False}
    assert len(kills) > 12


@pytest.mark.parametrize("acknowledged", [3, 10, 17])
def test_killed_while_it_writes(forge: Forge, acknowledged: int) -> None:
    """Killed anywhere, also inside of Git's and SQLite's own code: what was acknowledged is there, and work goes on."""
    first = forge.head(REPO, "main")
    forge.create_branch(REPO, "pinned", first)
    process = start("writer", forge.root, "writer", 1000, first)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(acknowledged)]

    facts = kill(process)

    tree = forge.read_tree(REPO, forge.head(REPO, "main"))
    assert all(fact["path"] in tree for fact in facts if fact.get("path") and not fact.get("refused"))
    assert len(lines) == acknowledged
    for repo in forge.repos():
        git(repo.git_dir, "fsck", "--strict")
    forge.commit_changes(REPO, "main", [PutFile(path="after", content="x")], message="after")
    assert "after" in forge.read_tree(REPO, forge.head(REPO, "main"))
