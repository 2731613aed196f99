"""The calls whose traces are pinned: each operation, its usual variants, and how it is refused.

A case stages a repository with the rig's given-verbs and makes one call. It names no host; a host that has no such case
is left out by ``worlds``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gitprovider import Author, BranchProtection, DeleteFile, FileChange, MergeMethod, MoveFile, PutFile, Visibility
from tests.support.rigs import ForgeRig

LOCAL, GITHUB, FREE, PREMIUM = "local", "github", "gitlab free", "gitlab premium"
WORLDS = (LOCAL, GITHUB, FREE, PREMIUM)
REMOTE = (GITHUB, FREE, PREMIUM)

Given = Callable[[ForgeRig], str]
Call = Callable[[ForgeRig, str], object]


def project(rig: ForgeRig) -> str:
    """Files on main, two branches that are one commit ahead, and a pull request (1) from ``change``."""
    repo = rig.given_repo({"README.md": b"# Widgets\n", "old.txt": b"old\n"})
    for branch in ("change", "later"):
        rig.given_branch(repo, branch)
        rig.given_commit(repo, branch, {f"{branch}.txt": b"new\n"}, message=f"Add {branch}")
    rig.given_pull_request(repo, source_branch="change")
    return repo


def and_then(verb: Callable[[ForgeRig, str], object]) -> Given:
    """The project, and what somebody did to it."""

    def given(rig: ForgeRig) -> str:
        repo = project(rig)
        verb(rig, repo)
        return repo

    return given


def empty(rig: ForgeRig) -> str:
    """A repository without a commit."""
    return rig.given_empty_repo()


def nowhere(rig: ForgeRig) -> str:
    """A path that nothing has."""
    return rig.fresh_path()


def protected(**rules: Any) -> Given:
    """The project, with these rules on ``later``."""
    return and_then(lambda rig, repo: rig.given_protection(repo, "later", BranchProtection(**rules)))


def branches_101(rig: ForgeRig) -> str:
    repo = rig.given_repo()
    rig.given_branches(repo, [f"b{number}" for number in range(100)])
    return repo


def moved(rig: ForgeRig) -> str:
    """The path that the project had before it was renamed."""
    repo = project(rig)
    rig.given_renamed(repo)
    return repo


def _raced(rig: ForgeRig, repo: str) -> None:
    """Somebody commits to main right before the call's own change arrives."""
    rig.on_next_mutation(lambda: rig.given_commit(repo, "main", {"theirs.txt": b"theirs\n"}))


def _begun(rig: ForgeRig) -> str:
    """An empty repository that somebody commits to right before the call's own first commit arrives."""
    repo = rig.given_empty_repo()
    theirs = [PutFile(path="theirs.txt", content="theirs\n")]
    rig.on_next_mutation(lambda: rig.forge.commit_changes(repo, "main", theirs, message="Begin", bypass=True))
    return repo


def _conflicts(rig: ForgeRig, repo: str) -> None:
    rig.given_commit(repo, "main", {"change.txt": b"another\n"})


def _goes_on(rig: ForgeRig, repo: str) -> None:
    """The source branch gets one more commit right after the merge."""
    rig.on_next_mutation(lambda: rig.given_commit(repo, "change", {"more.txt": b"more\n"}), when="after")


def commit(*changes: FileChange, branch: str = "main", **more: Any) -> Call:
    return lambda rig, repo: rig.provider.commit_files(repo, branch, changes, message="Change files", **more)


def open_(source: str = "later", **more: Any) -> Call:
    return lambda rig, repo: rig.provider.open_pull_request(
        repo, source_branch=source, target_branch="main", title="A later change", **more
    )


def merge(*, pinned: bool = False, **more: Any) -> Call:
    def call(rig: ForgeRig, repo: str) -> object:
        head = rig.branches(repo)["change"] if pinned else None
        return rig.provider.merge_pull_request(repo, 1, expected_head=head, **more)

    return call


def protect(branch: str = "later", **rules: Any) -> Call:
    return lambda rig, repo: rig.provider.protect_branch(repo, branch, BranchProtection(**rules))


def _two_repos(rig: ForgeRig, repo: str) -> None:
    rig.provider.create_repo(repo)
    rig.provider.create_repo(f"{repo}-2")


def _reviewed(rig: ForgeRig, repo: str) -> object:
    return open_(labels=["bug", "urgent"], reviewers=[rig.reviewer])(rig, repo)


def _reviewed_by_nobody(rig: ForgeRig, repo: str) -> object:
    return open_(labels=["bug"], reviewers=[str(rig.unknown_reviewer)])(rig, repo)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One call.

    Attributes:
        call: makes it.
        given: stages the repository, and returns the path that the call is given.
        worlds: where there is such a case.
        knobs: of the fake host.
        lost: whether its answers are lost as well. Not where it is long, and says no more than its short form.
    """

    call: Call
    given: Given = project
    worlds: tuple[str, ...] = WORLDS
    knobs: Mapping[str, Any] = field(default_factory=dict)
    lost: bool = True


A, B, C = (PutFile(path=name, content=f"{name}\n", executable=False) for name in ("a.txt", "b.txt", "c.txt"))
RUN = PutFile(path="run.sh", content="#!/bin/sh\n", executable=True)
BINARY = PutFile(path="logo.bin", content=b"\xff\x00")
MANY = [PutFile(path=f"many/f{number:03}", content=f"{number}\n", executable=False) for number in range(101)]
NOBODY = "0" * 39 + "1"  # a sha that names nothing
STRICT: dict[str, Any] = {"required_approvals": 2, "required_checks": ("ci", "lint"), "dismiss_stale_approvals": True}

# The words before the colon are the operation.
CASES: Mapping[str, Case] = {
    "get_repo": Case(call=lambda rig, repo: rig.provider.get_repo(repo)),
    "get_repo: of an old path": Case(given=moved, call=lambda rig, repo: rig.provider.get_repo(repo)),
    "get_repo: nothing there": Case(given=nowhere, call=lambda rig, repo: rig.provider.get_repo(repo)),
    "get_repo: bad path": Case(call=lambda rig, repo: rig.provider.get_repo("widgets")),
    "list_branches": Case(call=lambda rig, repo: rig.provider.list_branches(repo)),
    "list_branches: none": Case(given=empty, call=lambda rig, repo: rig.provider.list_branches(repo)),
    "list_branches: 101": Case(given=branches_101, lost=False, call=lambda rig, repo: rig.provider.list_branches(repo)),
    "list_branches: nothing there": Case(given=nowhere, call=lambda rig, repo: rig.provider.list_branches(repo)),
    "create_repo": Case(given=nowhere, call=lambda rig, repo: rig.provider.create_repo(repo)),
    "create_repo: public and begun": Case(
        given=nowhere,
        call=lambda rig, repo: rig.provider.create_repo(
            repo, description="All widgets", visibility=Visibility.PUBLIC, auto_init=True
        ),
    ),
    "create_repo: of the user's own": Case(
        worlds=(GITHUB,), call=lambda rig, repo: rig.provider.create_repo("octocat/gadgets")
    ),
    "create_repo: two": Case(given=nowhere, call=_two_repos),
    "create_repo: taken": Case(call=lambda rig, repo: rig.provider.create_repo(repo)),
    "create_repo: no such namespace": Case(
        worlds=REMOTE, call=lambda rig, repo: rig.provider.create_repo(f"{rig.unknown_namespace}/gadgets")
    ),
    "create_branch": Case(call=lambda rig, repo: rig.provider.create_branch(repo, "release/1", source="main")),
    "create_branch: from a sha": Case(
        call=lambda rig, repo: rig.provider.create_branch(repo, "release/1", source=rig.branches(repo)["change"])
    ),
    "create_branch: taken": Case(call=lambda rig, repo: rig.provider.create_branch(repo, "later", source="main")),
    "create_branch: no source": Case(call=lambda rig, repo: rig.provider.create_branch(repo, "new", source="none")),
    "create_branch: bad name": Case(call=lambda rig, repo: rig.provider.create_branch(repo, "a..b", source="main")),
    "protect_branch": Case(call=protect()),
    "protect_branch: the default one": Case(call=protect("main")),
    "protect_branch: tightened": Case(given=protected(require_pull_request=False), call=protect()),
    "protect_branch: strictly": Case(
        given=protected(required_checks=("docs",)), worlds=(LOCAL, GITHUB), call=protect(enforce_admins=True, **STRICT)
    ),
    "protect_branch: as it is": Case(given=protected(enforce_admins=True), call=protect()),
    "protect_branch: not there": Case(call=protect("none")),
    "commit_files": Case(call=commit(A)),
    "commit_files: pinned, by an author": Case(
        call=lambda rig, repo: commit(
            A, expected_head=rig.branches(repo)["main"], author=Author(name="Ada", email="ada@example.org")
        )(rig, repo)
    ),
    "commit_files: of each kind": Case(
        call=commit(
            PutFile(path="README.md", content="new\n"), RUN, BINARY, MoveFile(path="old.txt", to="docs/old.txt")
        )
    ),
    "commit_files: a deletion": Case(call=commit(DeleteFile(path="old.txt"), branch="later")),
    "commit_files: 101": Case(call=commit(*MANY), lost=False),
    "commit_files: nothing new": Case(call=commit(PutFile(path="old.txt", content="old\n"))),
    "commit_files: first, one": Case(given=empty, call=commit(A)),
    "commit_files: first, three": Case(given=empty, call=commit(A, B, C)),
    "commit_files: first, executable": Case(given=empty, call=commit(A, RUN)),
    "commit_files: raced": Case(given=and_then(_raced), worlds=REMOTE, call=commit(A)),
    "commit_files: first, raced": Case(given=_begun, worlds=REMOTE, call=commit(A, B)),
    "commit_files: elsewhere than expected": Case(call=commit(A, expected_head=NOBODY)),
    "commit_files: no such branch": Case(call=commit(A, branch="none")),
    "open_pull_request": Case(call=open_()),
    "open_pull_request: a draft": Case(call=open_(draft=True, description="It is later.")),
    "open_pull_request: labels and a reviewer": Case(call=_reviewed),
    "open_pull_request: two reviewers": Case(worlds=(FREE, PREMIUM), call=open_(reviewers=["reviewer", "alice"])),
    "open_pull_request: no such reviewer": Case(worlds=REMOTE, call=_reviewed_by_nobody),
    "open_pull_request: open already": Case(call=open_("change")),
    "open_pull_request: no source": Case(call=open_("none")),
    "merge_pull_request": Case(call=merge()),
    "merge_pull_request: pinned": Case(call=merge(pinned=True)),
    "merge_pull_request: and delete": Case(call=merge(delete_source_branch=True)),
    "merge_pull_request: pinned, and delete": Case(call=merge(pinned=True, delete_source_branch=True)),
    "merge_pull_request: squash": Case(call=merge(method=MergeMethod.SQUASH, message="Squash it")),
    "merge_pull_request: rebase": Case(
        given=and_then(lambda rig, repo: rig.given_merge_method(repo, MergeMethod.REBASE, allowed=True)),
        call=merge(method=MergeMethod.REBASE),
    ),
    "merge_pull_request: computed late": Case(worlds=(FREE,), knobs={"mergeable_after": 2}, call=merge()),
    "merge_pull_request: a conflict, computed late": Case(
        given=and_then(_conflicts), worlds=(GITHUB, FREE), knobs={"mergeable_after": 2}, call=merge()
    ),
    "merge_pull_request: merged before": Case(
        given=and_then(lambda rig, repo: rig.given_merged(repo, 1)), call=merge(delete_source_branch=True)
    ),
    "merge_pull_request: the source goes on": Case(
        given=and_then(_goes_on), worlds=(LOCAL, GITHUB), call=merge(pinned=True, delete_source_branch=True)
    ),
    "merge_pull_request: closed": Case(given=and_then(lambda rig, repo: rig.given_closed(repo, 1)), call=merge()),
    "merge_pull_request: at another head": Case(
        call=lambda rig, repo: rig.provider.merge_pull_request(repo, 1, expected_head=NOBODY)
    ),
    "merge_pull_request: none": Case(call=lambda rig, repo: rig.provider.merge_pull_request(repo, 7)),
}


def cases_of(world: str) -> Mapping[str, Case]:
    """The cases of one world. GitLab's tiers differ in protected branches and reviewers alone."""
    differs = ("protect_branch", "open_pull_request")
    return {
        name: case
        for name, case in CASES.items()
        if world in case.worlds and (world != PREMIUM or name.partition(":")[0] in differs)
    }
