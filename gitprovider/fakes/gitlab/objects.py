"""Reads of Git objects by the names that GitLab accepts."""

from __future__ import annotations

import re
from typing import Any

import pygit2
from pygit2.enums import SortMode

from gitprovider.local.database import RepoRecord
from gitprovider.local.git import BareRepository

TAGS = "refs/tags/"


def tag_names(repository: BareRepository) -> list[str]:
    """The names of the tags, in order."""
    return sorted(name.removeprefix(TAGS) for name in repository.git.references if name.startswith(TAGS))


def resolve(repository: BareRepository, record: RepoRecord, ref: str) -> pygit2.Commit | None:
    """The commit of a branch, of ``HEAD``, of a tag, or with a sha of at least seven digits."""
    name = record.default_branch if ref == "HEAD" else ref.removeprefix("refs/heads/")
    if head := repository.head(name):
        return repository.commit(head)
    if (tag := ref.removeprefix(TAGS)) in tag_names(repository):
        target: Any = repository.git[repository.git.references[TAGS + tag].target]
        return target.peel(pygit2.Commit)  # type: ignore[no-any-return]  # pygit2 does not type it
    if not re.fullmatch(r"[0-9a-f]{7,40}", ref):
        return None
    try:
        found: Any = repository.git.revparse_single(ref)
    except (KeyError, ValueError):
        return None
    return found if isinstance(found, pygit2.Commit) else None


def last_commit(repository: BareRepository, head: pygit2.Commit, path: str) -> pygit2.Commit | None:
    """The last commit up to ``head`` that changed ``path``, or None if there is nothing at the path."""
    if repository.entry(head.tree, path) is None:
        return None
    for commit in repository.git.walk(head.id, SortMode.TOPOLOGICAL):
        if changes(repository, commit, path):
            return commit
    return None


def changes(repository: BareRepository, commit: pygit2.Commit, path: str) -> bool:
    """Whether a commit has another entry at the path than each of its parents."""
    here = repository.entry(commit.tree, path)
    before = [repository.entry(parent.tree, path) for parent in commit.parents]
    return here not in before and (here is not None or bool(before))
