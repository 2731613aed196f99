"""The six mutations, each as it is called in these tests: what must be there before, and the call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from gitprovider import BranchProtection, DeleteFile, GitProviderError, Outcome, PutFile
from tests.support.memory import Clock, Fault, MemoryProvider

REPO = "acme/widgets"
FILES = {"README.md": b"# Widgets\n", "old.txt": b"old\n"}


@dataclass(frozen=True)
class Mutation:
    name: str
    stage: Callable[[MemoryProvider], Any]
    call: Callable[[MemoryProvider], Any]


def a_repo(provider: MemoryProvider) -> None:
    provider.create_repo(REPO)


def a_commit(provider: MemoryProvider) -> str:
    a_repo(provider)
    return provider.push(REPO, "main", FILES, "Begin")


def a_change(provider: MemoryProvider) -> None:
    provider.create_branch(REPO, "change", source=a_commit(provider))
    provider.push(REPO, "change", {"new.txt": b"new\n"}, "Change")


def a_pull_request(provider: MemoryProvider) -> None:
    a_change(provider)
    open_pull_request(provider)


def open_pull_request(provider: MemoryProvider) -> Any:
    return provider.open_pull_request(REPO, source_branch="change", target_branch="main", title="A change")


CHANGES = (PutFile(path="bin/run", content="#!/bin/sh\n", executable=True), DeleteFile(path="old.txt"))
RULES = BranchProtection(required_approvals=1)

MUTATIONS = {
    mutation.name: mutation
    for mutation in (
        Mutation("create_repo", lambda p: None, lambda p: p.create_repo(REPO, description="Widgets")),
        Mutation("create_branch", a_commit, lambda p: p.create_branch(REPO, "develop", source="main")),
        Mutation("protect_branch", a_commit, lambda p: p.protect_branch(REPO, "main", RULES)),
        Mutation("commit_files", a_commit, lambda p: p.commit_files(REPO, "main", CHANGES, message="Add a program")),
        Mutation("open_pull_request", a_change, open_pull_request),
        Mutation("merge_pull_request", a_pull_request, lambda p: p.merge_pull_request(REPO, 1)),
    )
}


def staged(name: str, clock: Clock, *, knows_commit: bool = True) -> MemoryProvider:
    """A host on which the mutation can be called, and nothing is counted as sent yet."""
    provider = MemoryProvider(clock, knows_commit=knows_commit)
    MUTATIONS[name].stage(provider)
    clock.advance(3600)
    provider.sent.clear()
    return provider


def lost(provider: MemoryProvider, name: str, fault: Fault) -> GitProviderError:
    """Call the mutation with that fault, and return its error."""
    provider.faults[name] = fault
    with pytest.raises(GitProviderError) as caught:
        MUTATIONS[name].call(provider)
    assert caught.value.outcome is (Outcome.NOT_APPLIED if fault == "refused" else Outcome.UNKNOWN)
    return caught.value
