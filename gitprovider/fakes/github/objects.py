"""Reads of Git objects that only GitHub's responses need: trees, comparisons and file changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pygit2
from pygit2.enums import DeltaStatus, FileMode

from gitprovider.checks import is_sha
from gitprovider.local.database import RepoRecord
from gitprovider.local.git import BareRepository, opened

_STATUS = {
    DeltaStatus.ADDED: "added",
    DeltaStatus.DELETED: "removed",
    DeltaStatus.MODIFIED: "modified",
    DeltaStatus.RENAMED: "renamed",
    DeltaStatus.TYPECHANGE: "changed",
}


@dataclass(frozen=True, slots=True)
class Item:
    """An entry of a tree. ``size`` is a blob's size in bytes."""

    path: str
    mode: str
    kind: str
    sha: str
    size: int | None


@dataclass(frozen=True, slots=True)
class Change:
    """A file that differs between two trees."""

    sha: str
    path: str
    status: str
    additions: int
    deletions: int
    previous: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A head compared to a base.

    Attributes:
        behind: how many commits only the base has.
        commits: the commits that only the head has, oldest first.
    """

    merge_base: str
    behind: int
    commits: tuple[str, ...]


def is_empty(record: RepoRecord) -> bool:
    """Whether the repository has no branch."""
    with opened(record.git_dir, record.path) as repository:
        # The default branch is read first: listing thousands of refs takes much longer.
        return repository.head(record.default_branch) is None and not repository.has_branches()


def tree_of(record: RepoRecord, name: str) -> str | None:
    """The sha of the tree of a branch, a commit or a tag, or of a tree itself; None if there is none."""
    with opened(record.git_dir, record.path) as repository:
        found = repository.find(repository.head(name) or name) if repository.head(name) or is_sha(name) else None
        tree = found.peel(pygit2.Tree) if isinstance(found, pygit2.Commit | pygit2.Tag | pygit2.Tree) else None
        return str(tree.id) if tree is not None else None


def is_kind(record: RepoRecord, sha: object, kind: str) -> bool:
    """Whether ``sha`` is the full sha of a ``blob``, ``tree`` or ``commit``."""
    if not isinstance(sha, str) or not is_sha(sha):
        return False
    with opened(record.git_dir, record.path) as repository:
        found = repository.find(sha)
        return found is not None and found.type_str == kind


def items(record: RepoRecord, tree: str, *, recursive: bool) -> list[Item]:
    """The entries of a tree in Git's order, each directory before its entries."""
    with opened(record.git_dir, record.path) as repository:
        return list(_walk(repository, repository.own(pygit2.Oid(hex=tree)), "", recursive))


def compare(record: RepoRecord, base: str, head: str) -> Comparison | None:
    """Compare two commits. Return None if they have no common ancestor."""
    with opened(record.git_dir, record.path) as repository:
        merge_base = repository.merge_base(base, head)
        if merge_base is None:
            return None
        ahead = tuple(str(commit.id) for commit in repository.commits_between(base, head))
        return Comparison(merge_base, len(repository.commits_between(head, base)), ahead)


def changes(record: RepoRecord, old: str | None, new: str) -> list[Change]:
    """The files that differ between two commits. None stands for the empty tree."""
    with opened(record.git_dir, record.path) as repository:
        after = repository.own(pygit2.Oid(hex=new)).peel(pygit2.Tree)
        if old is None:
            diff = after.diff_to_tree(swap=True)
        else:
            diff = repository.own(pygit2.Oid(hex=old)).peel(pygit2.Tree).diff_to_tree(after)
        diff.find_similar()
        return [_change(patch) for patch in diff if patch is not None]


def _change(patch: Any) -> Change:
    delta = patch.delta
    _, additions, deletions = patch.line_stats
    gone = delta.status == DeltaStatus.DELETED
    side = delta.old_file if gone else delta.new_file
    renamed = delta.status == DeltaStatus.RENAMED
    return Change(
        sha=str(side.id),
        path=side.path,
        status=_STATUS.get(delta.status, "changed"),
        additions=additions,
        deletions=deletions,
        previous=delta.old_file.path if renamed else None,
    )


def _walk(repository: BareRepository, tree: Any, prefix: str, recursive: bool) -> Iterator[Item]:
    for entry in tree:
        path = prefix + entry.raw_name.decode(errors="replace")
        # The commit of a submodule is not in this repository, and is not loaded.
        below = repository.own(entry.id) if entry.filemode != FileMode.COMMIT else None
        size = below.size if isinstance(below, pygit2.Blob) else None
        yield Item(path, f"{int(entry.filemode):06o}", entry.type_str, str(entry.id), size)
        if recursive and isinstance(below, pygit2.Tree):
            yield from _walk(repository, below, f"{path}/", recursive)
