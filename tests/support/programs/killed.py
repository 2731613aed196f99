"""Kills an operation with SIGKILL at chosen lines of the forge's code, and looks at what each kill left behind.

Usage: killed.py FOLDER OPERATION. The operation runs in a forked child on a fresh copy of the same forge each time. A
few kills are spread over all its lines; then the line is sought at which its effect begins to show, and a kill is made
at every line around it. One JSON document is printed for each kill.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import gitprovider.local
from gitprovider import AlreadyExistsError, NotFoundError, PullRequestState, PutFile, optional
from gitprovider.local import LocalProvider

REPO = "acme/widgets"
OTHER = "acme/other"
CODE = str(Path(gitprovider.local.__file__).parent)
SPREAD, BEFORE, BEYOND = 3, 2, 10


def seed(root: Path) -> None:
    provider = LocalProvider(root)
    provider.create_repo(REPO, auto_init=True)
    provider.create_repo(OTHER, auto_init=True)
    provider.create_branch(REPO, "feature", source="main")
    provider.commit_files(REPO, "feature", [PutFile(path="feature", content="x")], message="feature")
    provider.commit_files(REPO, "main", [PutFile(path="main", content="x")], message="main")
    provider.create_branch(REPO, "idle", source="feature")
    provider.open_pull_request(REPO, source_branch="feature", target_branch="main", title="feature")


def is_merged(provider: LocalProvider) -> bool:
    pull = provider.get_pull_request(REPO, 1)
    merged = pull.state is PullRequestState.MERGED
    shown = "feature" in provider.tree(REPO, provider.head(REPO, "main"))
    assert merged == shown, f"the pull request is {pull.state}, and its file is {'' if shown else 'not '}on main"
    assert not merged or provider.head(REPO, "main") == pull.merge_commit_sha
    return merged


def is_committed(provider: LocalProvider) -> bool:
    tree = provider.tree(REPO, provider.head(REPO, "main"))
    assert ("new/a" in tree) == ("new/b" in tree)
    return "new/a" in tree


def is_created(provider: LocalProvider) -> bool:
    repo = optional(provider.get_repo, "acme/new")
    assert repo is None or [branch.name for branch in provider.list_branches("acme/new")] == ["main"]
    return repo is not None


def has_branch(provider: LocalProvider, name: str) -> bool:
    return name in [branch.name for branch in provider.list_branches(REPO)]


def open_pull(provider: LocalProvider) -> None:
    provider.open_pull_request(REPO, source_branch="idle", target_branch="main", title="idle")


def is_open(provider: LocalProvider) -> bool:
    found = provider.find_pull_requests(REPO, source_branch="idle", target_branch="main")
    assert [pull.number for pull in found] in ([], [2])
    return bool(found)


def commit(provider: LocalProvider) -> None:
    files = [PutFile(path=path, content=path) for path in ("new/a", "new/b")]
    provider.commit_files(REPO, "main", files, message="new")


# What runs, and whether its effect shows; the latter also asserts that it shows whole or not at all.
OPERATIONS: dict[str, tuple[Callable[[LocalProvider], object], Callable[[LocalProvider], bool]]] = {
    "commit": (commit, is_committed),
    "merge": (lambda p: p.merge_pull_request(REPO, 1), is_merged),
    "create_repo": (lambda p: p.create_repo("acme/new", auto_init=True), is_created),
    "delete_repo": (lambda p: p.forge.delete_repo(OTHER), lambda p: optional(p.get_repo, OTHER) is None),
    "create_branch": (lambda p: p.create_branch(REPO, "new", source="main"), lambda p: has_branch(p, "new")),
    "delete_branch": (lambda p: p.forge.delete_branch(REPO, "idle"), lambda p: not has_branch(p, "idle")),
    "open": (open_pull, is_open),
}


class Line:
    """Counts the lines of the forge's code that run, and kills the process at one of them."""

    def __init__(self, fatal: int | None) -> None:
        self.count = 0
        self.fatal = fatal

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Line | None:
        if not frame.f_code.co_filename.startswith(CODE):
            return None
        if event == "line":
            self.count += 1
            if self.count == self.fatal:
                os.kill(os.getpid(), signal.SIGKILL)
        return self


class Killer:
    def __init__(self, folder: Path, name: str) -> None:
        self.call, self.shows = OPERATIONS[name]
        self.seed, self.case = folder / "seed", folder / "case"
        seed(self.seed)

    def fresh(self) -> LocalProvider:
        shutil.rmtree(self.case, ignore_errors=True)
        shutil.copytree(self.seed, self.case)
        return LocalProvider(self.case)

    def lines(self) -> int:
        provider, line = self.fresh(), Line(None)
        sys.settrace(line)
        self.call(provider)
        sys.settrace(None)
        return line.count

    def kill_at(self, number: int, *, fsck: bool = False) -> bool:
        """Whether the effect shows after a kill at that line; everything else is asserted."""
        provider = self.fresh()
        child = os.fork()
        if child == 0:
            sys.settrace(Line(number))
            self.call(provider)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"line {number} was not reached"
        shows = self.shows(provider)
        if fsck:
            self.sound(provider)
        try:
            self.call(provider)
        except (AlreadyExistsError, NotFoundError):
            assert shows, "refused, though nothing had happened"
        assert self.shows(provider), "repeating it does not bring it about"
        print(json.dumps({"line": number, "shows": shows}), flush=True)
        return shows

    def sound(self, provider: LocalProvider) -> None:
        for repo in provider.forge.repos():
            done = subprocess.run(
                ["git", "-C", str(repo.git_dir), "fsck", "--strict", "--no-dangling"], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + done.stderr


def main(folder: Path, name: str) -> None:
    killer = Killer(folder, name)
    last = killer.lines()
    early, late = 1, last
    for number in range(1, last + 1, max(1, (last - 1) // SPREAD)):
        early, late = (early, min(late, number)) if killer.kill_at(number) else (max(early, number), late)
    while late - early > 1:
        middle = (early + late) // 2
        early, late = (early, middle) if killer.kill_at(middle) else (middle, late)
    for number in range(max(1, early - BEFORE), min(last, late + BEYOND) + 1):
        killer.kill_at(number, fsck=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
