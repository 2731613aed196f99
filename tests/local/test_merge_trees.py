"""The merge of trees looks only at what differs, and comes to what libgit2 comes to when it looks at everything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pygit2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitprovider import MergeMethod, NotMergeableError, PutFile
from gitprovider.local import Forge
from gitprovider.local.git import BareRepository
from gitprovider.local.merges import merge_trees
from tests.support.local_forge import REPO, git

PATHS = ["a", "b", "d/a", "d/b", "d/e/a", "d/e/b", "f/a", "f", "d/e"]
LINES = st.lists(st.sampled_from(["one\n", "two\n", "three\n", "four\n"]), min_size=1, max_size=6).map("".join)
FILES = st.dictionaries(st.sampled_from(PATHS), st.tuples(LINES, st.booleans()), max_size=8)


@st.composite
def sides(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A base, and two trees that differ from it in places."""
    base = draw(FILES)
    return base, {**base, **draw(FILES)}, {**{k: v for k, v in base.items() if draw(st.booleans())}, **draw(FILES)}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> BareRepository:
    folder = tmp_path_factory.mktemp("git")
    pygit2.init_repository(str(folder), bare=True)
    return BareRepository(folder, REPO)


def written(repository: BareRepository, files: dict[str, tuple[str, bool]]) -> pygit2.Oid:
    """The tree of these files. A file gives way to a directory of its name."""
    nested: dict[str, Any] = {}
    for path in sorted(files, key=lambda path: path.count("/")):
        *folders, name = path.split("/")
        node = nested
        for folder in folders:
            if not isinstance(node.get(folder), dict):
                node[folder] = {}
            node = node[folder]
        node[name] = files[path]

    def tree(node: dict[str, Any]) -> pygit2.Oid:
        builder = repository.git.TreeBuilder()
        for name, held in node.items():
            if isinstance(held, dict):
                builder.insert(name, tree(held), pygit2.enums.FileMode.TREE)
            else:
                mode = pygit2.enums.FileMode.BLOB_EXECUTABLE if held[1] else pygit2.enums.FileMode.BLOB
                builder.insert(name, repository.git.create_blob(held[0].encode()), mode)
        made: pygit2.Oid = builder.write()
        return made

    return tree(nested)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sides())
def test_the_merge_is_that_of_whole_trees(repository: BareRepository, three: tuple[Any, Any, Any]) -> None:
    """Setting the common part aside must not change a file, a mode, a rename or a conflict."""
    base, ours, theirs = trees = [written(repository, files) for files in three]
    whole = repository.git.merge_trees(base, ours, theirs)

    if whole.conflicts is not None:
        with pytest.raises(NotMergeableError):
            merge_trees(repository, *trees)
    else:
        assert merge_trees(repository, *trees) == whole.write_tree(repository.git)


def test_a_name_that_is_not_utf8_is_merged_too(repository: BareRepository) -> None:
    """Git takes such names, so a push may bring one."""
    blobs = {name: repository.git.create_blob(name.encode()) for name in ("a", "b", "c")}

    def tree(**files: str) -> pygit2.Oid:
        lines = [f"100644 blob {blobs[held]}\t".encode() + os.fsencode(name) for name, held in files.items()]
        done = subprocess.run(
            ["git", "-C", repository.git.path, "mktree"], input=b"\n".join(lines), capture_output=True, check=True
        )
        return pygit2.Oid(hex=done.stdout.decode().strip())

    trees = [tree(**{"\udce9": "a", **more}) for more in ({}, {"x": "b"}, {"y": "c"})]

    assert merge_trees(repository, *trees) == tree(**{"\udce9": "a", "x": "b", "y": "c"})


@pytest.mark.parametrize("method", list(MergeMethod))
def test_files_that_nobody_changed_are_not_merged(
    forge: Forge, monkeypatch: pytest.MonkeyPatch, method: MergeMethod
) -> None:
    """A merge of one file in a repository of fifty thousand would take seconds."""
    many = [PutFile(path=f"d{number % 7}/e{number % 5}/{number}", content=str(number)) for number in range(300)]
    forge.commit_changes(REPO, "main", many, message="many")
    forge.create_branch(REPO, "topic", forge.head(REPO, "main"))
    forge.commit_changes(REPO, "topic", [PutFile(path="d1/e1/new", content="x")], message="topic")
    forge.commit_changes(REPO, "main", [PutFile(path="d2/e2/new", content="x")], message="main")
    number = forge.open_pull_request(REPO, source_branch="topic", target_branch="main", title="x").number
    merged: list[int] = []
    merge = pygit2.Repository.merge_trees

    def counted(self: pygit2.Repository, *trees: Any) -> pygit2.Index:
        index = merge(self, *trees)
        merged.append(len(index))
        return index

    monkeypatch.setattr(pygit2.Repository, "merge_trees", counted)
    assert forge.mergeability(REPO, number, method=method) is None
    forge.merge(REPO, number, method=method)

    assert merged
    assert max(merged) <= 2
    assert len(forge.read_tree(REPO, forge.head(REPO, "main"))) == 303


def test_branches_that_merged_each_other(forge: Forge, git_dir: Path, tmp_path: Path) -> None:
    """With several best common ancestors, Git merges these first; one alone would show a conflict that is none."""
    lines = [f"{number}\n" for number in range(12)]

    def commit(branch: str, **changed: str) -> None:
        for at, text in changed.items():
            lines_of[branch][int(at[1:])] = text + "\n"
        forge.commit_changes(REPO, branch, [PutFile(path="f", content="".join(lines_of[branch]))], message=branch)

    lines_of = {"main": list(lines), "topic": list(lines)}
    commit("main")
    forge.create_branch(REPO, "topic", forge.head(REPO, "main"))
    commit("main", l0="ours")
    commit("topic", l11="theirs")
    heads = {name: forge.head(REPO, name) for name in ("main", "topic")}
    for target, source in (("main", "topic"), ("topic", "main")):
        lines_of[target][0], lines_of[target][11] = "ours\n", "theirs\n"
        tree = forge.write_tree(
            REPO,
            heads[target],
            {"f": (forge.write_blob(REPO, "".join(lines_of[target]).encode()), "100644")},
        )
        made = forge.write_commit(REPO, tree=tree, parents=[heads[target], heads[source]], message="criss-cross")
        forge.move_branch(REPO, target, made, expected=heads[target])
    commit("main", l0="ours again")
    commit("topic", l11="theirs again")
    number = forge.open_pull_request(REPO, source_branch="topic", target_branch="main", title="x").number

    forge.merge(REPO, number, method=MergeMethod.MERGE)

    shown = git(git_dir, "show", "main:f").splitlines()
    assert (shown[0], shown[11]) == ("ours again", "theirs again")
