"""The forge beside a living Git on the same repositories: nothing that either of the two acknowledged is lost."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gitprovider import (
    AlreadyExistsError,
    GitProviderError,
    HeadMovedError,
    NotMergeableError,
    NotMergeableReason,
    Outcome,
    ProviderUnavailableError,
    PutFile,
)
from gitprovider.local import Forge, LocalProvider, refs
from gitprovider.local.refs import Refs
from tests.support.local_forge import REPO, git, reports, start

FILE = [PutFile(path="ours", content="ours")]
WRITERS, ROUNDS = 8, 2
# Git's tools may lose a race, too. What one of them acknowledged counts, and nothing else.
QUIET = ["-c", "user.name=git", "-c", "user.email=git@example.org", "-c", "gc.autoDetach=false"]


def tried(directory: Path, *arguments: str) -> str | None:
    """What git printed, or None where it refused."""
    done = subprocess.run(["git", "-C", str(directory), *QUIET, *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def commit_on(parent: str) -> tuple[str, ...]:
    return ("commit-tree", f"{parent}^{{tree}}", "-p", parent, "-m", "by git")


def commit_of_git(git_dir: Path, parent: str) -> str:
    return git(git_dir, *QUIET, *commit_on(parent))


def topic(provider: LocalProvider) -> int:
    provider.create_branch(REPO, "topic", source="main")
    provider.commit_files(REPO, "topic", [PutFile(path="topic", content="topic")], message="topic")
    return provider.open_pull_request(REPO, source_branch="topic", target_branch="main", title="topic").number


# What moves a ref states the value that was read

CALLS: dict[str, tuple[str, Callable[[LocalProvider], Any]]] = {
    "commit": ("main", lambda p: p.commit_files(REPO, "main", FILE, message="ours")),
    "commit on a head": (
        "main",
        lambda p: p.commit_files(REPO, "main", FILE, message="ours", expected_head=p.head(REPO, "main")),
    ),
    "merge": ("main", lambda p: p.merge_pull_request(REPO, 1)),
    "move": ("main", lambda p: p.forge.move_branch(REPO, "main", p.head(REPO, "topic"), expected=None, force=True)),
    "delete": ("topic", lambda p: p.forge.delete_branch(REPO, "topic")),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_a_ref_that_git_moves_meanwhile_is_left_to_git(
    provider: LocalProvider, git_dir: Path, monkeypatch: pytest.MonkeyPatch, call: str, packed: bool
) -> None:
    """A commit that git acknowledged between our read and our move would be lost."""
    topic(provider)
    branch, made = CALLS[call]
    theirs = commit_of_git(git_dir, provider.head(REPO, branch))
    locked = Refs._locked

    @contextmanager
    def after_git(self: Refs, name: str) -> Iterator[None]:
        if name == f"refs/heads/{branch}":
            git(git_dir, "update-ref", name, theirs)
            if packed:
                git(git_dir, "pack-refs", "--all", "--prune")
        with locked(self, name):
            yield

    monkeypatch.setattr(Refs, "_locked", after_git)
    with pytest.raises(GitProviderError) as caught:
        made(provider)

    error = caught.value
    assert error.outcome is Outcome.NOT_APPLIED
    if isinstance(error, NotMergeableError):
        assert (error.reason, error.retryable) == (NotMergeableReason.PENDING, True)
    else:
        assert isinstance(error, HeadMovedError)
        assert error.actual == theirs
    assert git(git_dir, "rev-parse", branch) == theirs
    monkeypatch.undo()
    assert provider.get_pull_request(REPO, 1).state.value == "open"
    made(provider)


def test_a_branch_that_git_makes_meanwhile_is_left_to_git(
    provider: LocalProvider, git_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A branch is never moved by its creation, whoever made it."""
    theirs = commit_of_git(git_dir, provider.head(REPO, "main"))
    locked = Refs._locked

    @contextmanager
    def after_git(self: Refs, name: str) -> Iterator[None]:
        git(git_dir, "update-ref", name, theirs)
        with locked(self, name):
            yield

    monkeypatch.setattr(Refs, "_locked", after_git)
    with pytest.raises(AlreadyExistsError) as caught:
        provider.create_branch(REPO, "new", source="main")

    assert caught.value.existing.sha == theirs
    assert provider.head(REPO, "new") == theirs


def test_a_deletion_while_git_packs(forge: Forge, git_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deletion that writes back what it read before git packed would undo the packing."""
    for name in ("gone", "kept", "deep/kept"):
        forge.create_branch(REPO, name, forge.head(REPO, "main"))
    git(git_dir, *QUIET, "tag", "-a", "v1", "-m", "v1", "main")
    locked = Refs._locked

    @contextmanager
    def while_git_packs(self: Refs, name: str) -> Iterator[None]:
        if name == "packed-refs":
            self.get("refs/heads/none")  # what is packed has been read before
            (git_dir / "refs/heads/gone.lock").unlink()  # git would wait for it
            git(git_dir, "pack-refs", "--all", "--prune")
            (git_dir / "refs/heads/gone.lock").hardlink_to(git_dir / "gitprovider-lock")
        with locked(self, name):
            yield

    monkeypatch.setattr(Refs, "_locked", while_git_packs)
    forge.delete_branch(REPO, "gone")

    assert [name for name, _ in forge.branches(REPO)] == ["deep/kept", "kept", "main"]
    assert git(git_dir, "for-each-ref", "--format=%(refname:short)").split() == ["deep/kept", "kept", "main", "v1"]
    assert git(git_dir, "rev-parse", "v1^{}") == forge.head(REPO, "main")


def test_a_deleted_branch_leaves_nothing_in_the_way(provider: LocalProvider, git_dir: Path) -> None:
    """Its folder would keep a branch of the folder's name from being made, by git or by us."""
    provider.create_branch(REPO, "a/b/c", source="main")
    provider.forge.delete_branch(REPO, "a/b/c")
    assert not (git_dir / "refs/heads/a").exists()
    (git_dir / "refs/heads/a/b").mkdir(parents=True)

    provider.create_branch(REPO, "a", source="main")

    assert git(git_dir, "rev-parse", "a") == provider.head(REPO, "main")


def test_a_symbolic_branch_moves_what_it_leads_to(provider: LocalProvider, git_dir: Path) -> None:
    """Git moves the branch behind it; replacing the symbolic ref would leave that one behind."""
    git(git_dir, "symbolic-ref", "refs/heads/alias", "refs/heads/main")

    made = provider.commit_files(REPO, "alias", FILE, message="ours")

    assert git(git_dir, "rev-parse", "main") == git(git_dir, "rev-parse", "alias") == made.sha
    assert git(git_dir, "symbolic-ref", "refs/heads/alias") == "refs/heads/main"


# Lock files

LOCKED: dict[str, Callable[[Forge], Any]] = {
    "refs/heads/main.lock": lambda f: f.commit_changes(REPO, "main", FILE, message="ours"),
    "refs/heads/new/one.lock": lambda f: f.create_branch(REPO, "new/one", f.head(REPO, "main")),
    "refs/heads/topic.lock": lambda f: f.delete_branch(REPO, "topic"),
    "packed-refs.lock": lambda f: f.delete_branch(REPO, "topic"),
    "HEAD.lock": lambda f: f.update_repo(REPO, default_branch="topic"),
}


@pytest.mark.parametrize("lock", LOCKED)
def test_a_lock_of_another_program_is_waited_for_and_left(
    forge: Forge, git_dir: Path, monkeypatch: pytest.MonkeyPatch, lock: str
) -> None:
    """Its holder may be at work: who removes it overwrites what git is about to acknowledge."""
    forge.create_branch(REPO, "topic", forge.head(REPO, "main"))
    before = git(git_dir, "for-each-ref"), git(git_dir, "symbolic-ref", "HEAD")
    (git_dir / lock).parent.mkdir(parents=True, exist_ok=True)
    (git_dir / lock).write_text("")
    monkeypatch.setattr(refs, "LOCK_WAIT_SECONDS", 0)

    with pytest.raises(ProviderUnavailableError, match="another program holds") as caught:
        LOCKED[lock](forge)

    assert caught.value.retryable
    assert str(git_dir / lock) in caught.value.message
    assert (git_dir / lock).exists()
    assert (git(git_dir, "for-each-ref"), git(git_dir, "symbolic-ref", "HEAD")) == before
    (git_dir / lock).unlink()
    LOCKED[lock](forge)


def test_git_waits_for_our_lock(forge: Forge, git_dir: Path) -> None:
    """A lock that git does not see would let it move the ref under our comparison."""
    head = forge.head(REPO, "main")
    theirs = commit_of_git(git_dir, head)

    with Refs(git_dir, REPO)._locked("refs/heads/main"):
        assert tried(git_dir, "update-ref", "refs/heads/main", theirs, head) is None

    assert tried(git_dir, "update-ref", "refs/heads/main", theirs, head) is not None


# All at once


class Outsider(threading.Thread):
    """A git that works in a loop until it is stopped, and remembers what it acknowledged."""

    def __init__(self, work: Callable[[int], None]) -> None:
        super().__init__()
        self.stopped = threading.Event()
        self.failure: BaseException | None = None
        self.turns = 0
        self._work = work

    def run(self) -> None:
        try:
            while not self.stopped.is_set():
                self._work(self.turns)
                self.turns += 1
        except BaseException as exc:
            self.failure = exc


def test_nothing_acknowledged_is_lost_beside_a_living_git(tmp_path: Path) -> None:
    """Eight writers of ours, and git that pushes, moves, packs, deletes and collects garbage all the while."""
    forge = Forge(tmp_path / "forge")
    git_dir = forge.create_repo(REPO).git_dir
    first = forge.commit_changes(REPO, "main", [PutFile(path="README.md", content="x")], message="first")
    for name in ("pinned", "contended"):
        forge.create_branch(REPO, name, first.sha)
    forge.commit_changes(REPO, "contended", [PutFile(path="contended", content="x")], message="contended")
    forge.open_pull_request(REPO, source_branch="contended", target_branch="main", title="contended")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--bare", str(git_dir), "clone")
    pushed: list[str] = []
    branches: dict[str, str] = {}

    def push(turn: int) -> None:
        if tried(clone, "fetch", "-q", "origin", "main") is None:
            return
        made = tried(clone, *commit_on("FETCH_HEAD"))
        if made is None:
            return
        if tried(clone, "push", "-q", "origin", f"{made}:refs/heads/main") is not None:
            pushed.append(made)
        if tried(clone, "push", "-q", "origin", f"{made}:refs/heads/pushed/{turn}") is not None:
            branches[f"pushed/{turn}"] = made
        gone = f"pushed/{turn - 1}"
        if turn % 2 and gone in branches and tried(clone, "push", "-q", "origin", f":refs/heads/{gone}") is not None:
            del branches[gone]

    def move(turn: int) -> None:
        head = tried(git_dir, "rev-parse", "main")
        if head is not None:
            made = tried(git_dir, *commit_on(head))
            if made is not None and tried(git_dir, "update-ref", "refs/heads/main", made, head) is not None:
                pushed.append(made)

    def clean(turn: int) -> None:
        tried(git_dir, "pack-refs", "--all", "--prune")
        if turn % 3 == 0:
            tried(git_dir, "gc", "-q")

    outsiders = [Outsider(work) for work in (push, move, clean)]
    for outsider in outsiders:
        outsider.start()
    try:
        printed = reports([start("writer", forge.root, f"w{index}", ROUNDS, first.sha) for index in range(WRITERS)])
    finally:
        for outsider in outsiders:
            outsider.stopped.set()
        for outsider in outsiders:
            outsider.join()
    facts = [fact for lines in printed for fact in lines]

    assert [outsider.failure for outsider in outsiders] == [None, None, None]
    head = forge.head(REPO, "main")
    files = forge.read_tree(REPO, head)
    acknowledged = [fact for fact in facts if "refused" not in fact]
    assert [sha for sha in pushed if not forge.contains(REPO, sha, "main")] == []
    assert [fact for fact in acknowledged if fact["what"] in ("commit", "merge") and fact["path"] not in files] == []
    held = dict(forge.branches(REPO))
    assert {name: held.get(name) for name in branches} == branches
    assert {fact["name"] for fact in acknowledged if fact["what"] == "branch"} <= set(held)
    refused = [fact for fact in facts if fact.get("refused")]
    assert {fact["outcome"] for fact in refused} <= {"not_applied"}
    assert {fact["refused"] for fact in refused} <= {"AlreadyExistsError", "HeadMovedError", "NotMergeableError"}
    assert len(pushed) > 2
    assert len([fact for fact in acknowledged if fact["what"] in ("commit", "merge")]) > 2
    git(git_dir, "fsck", "--strict")
