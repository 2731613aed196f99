"""Calls of the six mutations, each with its ensure function and the question whether the host holds what it asks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gitprovider import (
    BranchProtection,
    DeleteFile,
    Ensured,
    GitProviderError,
    MergeMethod,
    PullRequestState,
    PutFile,
    Visibility,
    ensure_branch,
    ensure_files,
    ensure_merged,
    ensure_protection,
    ensure_pull_request,
    ensure_repo,
)
from gitprovider._core.edits import blob_sha
from gitprovider.contract import InspectableProvider
from gitprovider.ensure import Settling
from gitprovider.local import Forge
from tests.support.hosts import tree_of

REPO = "acme/widgets"


@dataclass(frozen=True)
class Call:
    """One mutation with its arguments.

    Attributes:
        name: the operation.
        do: calls it.
        ensure: calls its ensure function, with the evidence of an earlier try.
        holds: whether the forge holds what is asked.
    """

    name: str
    arguments: str
    do: Callable[[InspectableProvider], Any]
    ensure: Callable[[InspectableProvider, GitProviderError | None, Settling], Ensured[Any]]
    holds: Callable[[Forge], bool]

    def __repr__(self) -> str:
        return f"{self.name}({self.arguments})"


def create_repo(repo: str, visibility: Visibility) -> Call:
    return Call(
        "create_repo",
        f"{repo}, {visibility}",
        lambda p: p.create_repo(repo, visibility=visibility),
        lambda p, error, settling: ensure_repo(p, repo, visibility=visibility, after=error, settling=settling),
        lambda forge: any((record.path, record.visibility) == (repo, visibility) for record in forge.repos()),
    )


def create_branch(name: str, source: str) -> Call:
    return Call(
        "create_branch",
        f"{name}, {source}",
        lambda p: p.create_branch(REPO, name, source=source),
        lambda p, error, settling: ensure_branch(p, REPO, name, source=source, after=error, settling=settling),
        lambda forge: name in dict(forge.branches(REPO)),
    )


def protect_branch(branch: str, rules: BranchProtection) -> Call:
    def holds(forge: Forge) -> bool:
        held = forge.protection(REPO, branch)
        return held is not None and not rules.missing_from(held)

    return Call(
        "protect_branch",
        f"{branch}, {rules}",
        lambda p: p.protect_branch(REPO, branch, rules),
        lambda p, error, settling: ensure_protection(p, REPO, branch, rules, after=error, settling=settling),
        holds,
    )


def commit_files(branch: str, changes: Sequence[PutFile | DeleteFile], message: str) -> Call:
    def holds(forge: Forge) -> bool:
        tree = tree_of(forge, REPO, branch)
        return all(
            change.path not in tree
            if isinstance(change, DeleteFile)
            else change.path in tree and tree[change.path].sha == blob_sha(change.data())
            for change in changes
        )

    shown = [dataclasses.astuple(change) for change in changes]
    return Call(
        "commit_files",
        f"{branch}, {shown}",
        lambda p: p.commit_files(REPO, branch, changes, message=message),
        lambda p, error, settling: ensure_files(
            p, REPO, branch, changes, message=message, after=error, settling=settling
        ),
        holds,
    )


def open_pull_request(source: str, title: str) -> Call:
    asked: dict[str, Any] = {"source_branch": source, "target_branch": "main", "title": title}
    return Call(
        "open_pull_request",
        f"{source}, {title}",
        lambda p: p.open_pull_request(REPO, **asked),
        lambda p, error, settling: ensure_pull_request(p, REPO, **asked, after=error, settling=settling),
        lambda forge: any(
            pull.title == title and pull.state is not PullRequestState.CLOSED
            for pull in forge.pull_requests(REPO, source_branch=source, target_branch="main")
        ),
    )


def merge_pull_request(number: int, method: MergeMethod, delete: bool) -> Call:
    return Call(
        "merge_pull_request",
        f"{number}, {method}, {delete}",
        lambda p: p.merge_pull_request(REPO, number, method=method, delete_source_branch=delete),
        lambda p, error, settling: ensure_merged(
            p, REPO, number, method=method, delete_source_branch=delete, after=error, settling=settling
        ),
        lambda forge: forge.pull_request(REPO, number).state is PullRequestState.MERGED,
    )
