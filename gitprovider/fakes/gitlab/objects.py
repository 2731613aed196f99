"""Reads of Git objects by the names that GitLab accepts."""

from __future__ import annotations

import re
from typing import Any

import pygit2
from pygit2.enums import SortMode

from gitprovider.local.database import RepoRecord
from gitprovider.local.git import BareRepository


def resolve(repository: BareRepository, record: RepoRecord, ref: str) -> pygit2.Commit | None:
    """The commit of a branch, of ``HEAD``, or with a sha of at least seven digits."""
    name = record.default_branch if ref == "HEAD" else ref.removeprefix("refs/heads/")
    if head := repository.head(name):
        return repository.commit(head)
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
        here = repository.entry(commit.tree, path)
        if all(repository.entry(parent.tree, path) != here for parent in commit.parents):
            return commit
    return None
