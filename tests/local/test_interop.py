"""Repositories are plain bare ones: Git itself clones, reads and pushes to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitprovider import Author, DeleteFile, MergeMethod, MoveFile, PutFile
from gitprovider.errors import NotFoundError
from gitprovider.local import Forge, LocalProvider, locate
from tests.support.local_forge import REPO, git


def test_clone(provider: LocalProvider, tmp_path: Path) -> None:
    """A clone of clone_url is on the default branch, and has the bytes and modes that were committed."""
    provider.commit_files(
        REPO,
        "main",
        [
            PutFile(path="bin/run", content="#!/bin/sh\r\n", executable=True),
            PutFile(path="data.bin", content=bytes(range(256))),
        ],
        message="more",
    )

    git(tmp_path, "clone", "-q", provider.get_repo(REPO).clone_url, "clone")

    clone = tmp_path / "clone"
    assert git(clone, "branch", "--show-current") == "main"
    assert (clone / "bin/run").read_bytes() == b"#!/bin/sh\r\n"
    assert (clone / "bin/run").stat().st_mode & 0o111 == 0o111
    assert (clone / "data.bin").read_bytes() == bytes(range(256))
    assert git(clone, "status", "--porcelain") == ""


def test_clone_of_an_empty_repository(provider: LocalProvider, tmp_path: Path) -> None:
    """An empty repository clones, and its first commit would go to the default branch."""
    repo = provider.create_repo("acme/empty")

    git(tmp_path, "clone", "-q", repo.clone_url, "clone")

    assert git(tmp_path / "clone", "symbolic-ref", "HEAD") == "refs/heads/main"


def test_log_shows_who_and_when(forge: Forge, git_dir: Path) -> None:
    """Author, committer, message and time are what Git shows; times are the forge's clock, in UTC."""
    author = Author(name="Ada Lovelace", email="ada@example.org")
    forge.commit_changes(REPO, "main", [PutFile(path="x", content="x")], message="Über\n\nbody", author=author)

    shown = git(git_dir, "log", "-1", "--format=%an|%ae|%cn|%ce|%aI|%B", "main").splitlines()

    assert shown == [
        "Ada Lovelace|ada@example.org|gitprovider|forge@gitprovider.invalid|2024-05-01T12:03:00+00:00|Über",
        "",
        "body",
    ]


def test_the_same_calls_make_the_same_commits(forge: Forge, git_dir: Path) -> None:
    """With an injected clock nothing else decides a sha: not the machine, not the user's configuration of Git."""
    assert git(git_dir, "rev-parse", "main") == "87e0316b1f946e1231319c324d374efac6472b62"


def test_graph_of_a_merge(forge: Forge, git_dir: Path) -> None:
    """A merge commit has the target's head first and the source's head second."""
    forge.create_branch(REPO, "topic", forge.head(REPO, "main"))
    forge.commit_changes(REPO, "topic", [PutFile(path="t", content="t")], message="topic")
    forge.commit_changes(REPO, "main", [PutFile(path="m", content="m")], message="main")
    forge.open_pull_request(REPO, source_branch="topic", target_branch="main", title="Topic")

    forge.merge(REPO, 1, method=MergeMethod.MERGE)

    assert git(git_dir, "log", "--graph", "--format=%s", "main").splitlines() == [
        "*   Merge pull request #1 from topic",
        "|\\  ",
        "| * topic",
        "* | main",
        "|/  ",
        "* first",
    ]


def test_rename_is_seen_by_git(forge: Forge, git_dir: Path) -> None:
    """A move keeps the blob and the mode, so that Git sees a rename."""
    forge.commit_changes(REPO, "main", [PutFile(path="a/run", content="x\n" * 50, executable=True)], message="a")

    forge.commit_changes(
        REPO, "main", [MoveFile(path="a/run", to="b/c/run"), DeleteFile(path="README.md")], message="b"
    )

    shown = git(git_dir, "show", "-M", "--summary", "--format=", "main").splitlines()
    assert shown == ["delete mode 100644 README.md", " rename {a => b/c}/run (100%)"]
    assert git(git_dir, "ls-tree", "-r", "main").split()[0] == "100755"


def test_a_push_by_git_is_seen(forge: Forge, git_dir: Path, tmp_path: Path) -> None:
    """What somebody pushes with Git, the forge reads, packed refs included."""
    git(tmp_path, "clone", "-q", str(git_dir), "clone")
    clone = tmp_path / "clone"
    git(clone, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "pushed")
    git(clone, "push", "-q", "origin", "main", "main:side")
    git(git_dir, "pack-refs", "--all")
    git(git_dir, "gc", "-q")

    assert [name for name, _ in forge.branches(REPO)] == ["main", "side"]
    assert forge.read_commit(REPO, forge.head(REPO, "main")).message == "pushed\n"
    forge.commit_changes(REPO, "main", [PutFile(path="x", content="x")], message="on top")
    forge.delete_branch(REPO, "side")
    assert git(git_dir, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    git(git_dir, "fsck", "--strict")


def test_the_merged_commits_outlive_their_branch(forge: Forge, git_dir: Path) -> None:
    """Squashed away and the branch deleted: gc keeps the merged commits, since the pull request names them."""
    forge.create_branch(REPO, "topic", forge.head(REPO, "main"))
    head = forge.commit_changes(REPO, "topic", [PutFile(path="t", content="t")], message="topic").sha
    forge.open_pull_request(REPO, source_branch="topic", target_branch="main", title="Topic")
    forge.merge(REPO, 1, method=MergeMethod.SQUASH)
    forge.delete_branch(REPO, "topic")

    git(git_dir, "gc", "-q", "--prune=now")

    assert forge.read_commit(REPO, head).message == "topic"


def test_locate(provider: LocalProvider, tmp_path: Path) -> None:
    """A repository's directory leads to its forge and its path, renamed or not."""
    directory = provider.get_repo(REPO).clone_url
    provider.forge.rename_repo(REPO, "acme/gadgets")

    assert locate(directory) == (provider.forge.root, "acme/gadgets")
    for other in (tmp_path, Path(directory) / "objects"):
        with pytest.raises(NotFoundError):
            locate(other)
