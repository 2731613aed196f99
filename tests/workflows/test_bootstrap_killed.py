"""A bootstrap killed with SIGKILL at any of its writes: the same call ends as an undisturbed one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gitprovider import bootstrap
from gitprovider.local import LocalProvider
from tests.support.bootstrapping import a_directory
from tests.support.mutations import REPO

# create_repo, the files, develop, the change's branch, the change, the pull request, its merge, the deletion of its
# branch, the protection
WRITES = 9


def process(root: Path, source: Path, number: int, when: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.support.killed", str(root), str(source), str(number), when],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )


def state(root: Path) -> dict[str, Any]:
    """What people see: every branch's files and the messages behind it, protection, pull requests; no commit ids."""
    provider = LocalProvider(root)
    branches = {branch.name: branch for branch in provider.list_branches(REPO)}

    def messages(sha: str | None) -> list[str]:
        found = []
        while sha is not None:
            commit = provider.commit(REPO, sha)
            found.append(commit.message)
            sha = commit.parent
        return found

    return {
        "trees": {name: provider.tree(REPO, branch.sha) for name, branch in branches.items()},
        "messages": {name: messages(branch.sha) for name, branch in branches.items()},
        "protected": {name: provider.protection(REPO, name) for name in branches},
        "pulls": [
            (pull.number, pull.state, pull.title, pull.source_branch)
            for pull in provider.find_pull_requests(REPO, source_branch="bootstrap", target_branch="main")
        ],
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("undisturbed")
    done = process(folder / "forge", a_directory(folder / "source"), 0, "never")
    assert (done.returncode, done.stdout.strip()) == (0, str(WRITES)), done.stderr
    return state(folder / "forge")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(1, WRITES + 1))
def test_a_killed_run_is_finished_by_the_next(
    number: int, when: str, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    """Killed right before or right after any write, the next run ends in the same trees, branches and pull request."""
    root, source = tmp_path / "forge", a_directory(tmp_path / "source")
    killed = process(root, source, number, when)
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    report = bootstrap(LocalProvider(root), REPO, source=source, pull_request=True)

    assert report.ok
    assert state(root) == undisturbed
