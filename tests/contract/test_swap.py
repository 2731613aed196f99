"""Swapping the provider is one line: the same body makes the same repository, byte for byte, on every host."""

from __future__ import annotations

from pathlib import Path

from gitprovider.contract import GitProviderContract
from gitprovider.models import BranchProtection, DeleteFile, MergeMethod, MoveFile, PutFile
from gitprovider.testing import File
from tests.support.rigs import ForgeRig, github_rig, gitlab_rig, local_rig

FILES = {
    "README.md": File("# Widgets\n\nGrüße \U0001f680\n".encode()),
    "bin/run": File(b"#!/bin/sh\nexit 0\n", "100755"),
    "data/every-byte.bin": File(bytes(range(256)) * 40),
    "data/crlf.txt": File(b"one\r\ntwo\r\n"),
    "empty": File(b""),
    "gone": File(b"gone\n"),
    "with space & #1 100%.txt": File(b"x"),
}


def a_service(provider: GitProviderContract, repo: str) -> None:
    """What a backend does, and it never learns on which host."""
    made = provider.create_repo(repo, description="Widgets")
    provider.commit_files(
        repo,
        made.default_branch,
        [PutFile(path=p, content=f.content, executable=f.mode == "100755") for p, f in FILES.items()],
        message="Begin",
    )
    provider.create_branch(repo, "develop", source=made.default_branch)
    provider.commit_files(
        repo,
        "develop",
        [
            PutFile(path="README.md", content="# Widgets, improved\n"),
            PutFile(path="bin/tool", content=b"\x7fELF\0", executable=True),
            MoveFile(path="data/crlf.txt", to="text/crlf.txt"),
            DeleteFile(path="gone"),
        ],
        message="Improve",
    )
    pull = provider.open_pull_request(
        repo, source_branch="develop", target_branch=made.default_branch, title="Improve the widgets"
    )
    provider.merge_pull_request(repo, pull.number, method=MergeMethod.MERGE, expected_head=pull.head_sha)
    provider.protect_branch(repo, made.default_branch, BranchProtection())


def tree_after_a_service(rig: ForgeRig) -> str:
    """The sha of the tree that the service leaves on main: equal shas are equal bytes, paths and modes."""
    repo = rig.fresh_path()
    a_service(rig.provider, repo)
    return rig.forge.read_commit(repo, rig.forge.head(repo, "main")).tree


def test_every_host_ends_with_the_same_tree(tmp_path: Path) -> None:
    """One body on three hosts; Git's own name for the whole tree is the same."""
    with local_rig(tmp_path / "local") as rig:
        local = tree_after_a_service(rig)
        files = rig.files(rig.forge.repos()[0].path, "main")
    with github_rig(tmp_path / "github") as remote:
        github = tree_after_a_service(remote)
    with gitlab_rig(tmp_path / "gitlab") as remote:
        gitlab = tree_after_a_service(remote)

    assert github == local
    assert gitlab == local
    assert files["text/crlf.txt"] == FILES["data/crlf.txt"]
    assert files["bin/tool"] == File(b"\x7fELF\0", "100755")
    assert "gone" not in files
