"""ensure: nothing is written when it is there, contradictions are refused, what is absent is made once."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitprovider import (
    AlreadyExistsError,
    BranchProtection,
    ConflictError,
    DeleteFile,
    Ensured,
    GitProviderError,
    HeadMovedError,
    Intent,
    InvalidRequestError,
    MoveFile,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
    ProviderUnavailableError,
    PullRequestState,
    PutFile,
    RepoMovedError,
    TreeEntry,
    UnexpectedResponseError,
    UnsupportedOptionError,
    Visibility,
    ensure_branch,
    ensure_files,
    ensure_merged,
    ensure_protection,
    ensure_pull_request,
    ensure_repo,
)
from gitprovider._core.edits import blob_sha
from gitprovider.ensure import Settling, missing_files
from gitprovider.local import LocalProvider
from tests.support.memory import Clock, Fault, MemoryProvider
from tests.support.mutations import CHANGES, REPO, RULES, lost, staged

# The ensure function of each mutation, asking for what tests.support.mutations asks for.
Ensure = Callable[..., Ensured[Any]]
ENSURE: dict[str, Ensure] = {
    "create_repo": lambda p, **kw: ensure_repo(p, REPO, description="Widgets", **kw),
    "create_branch": lambda p, **kw: ensure_branch(p, REPO, "develop", source="main", **kw),
    "protect_branch": lambda p, **kw: ensure_protection(p, REPO, "main", RULES, **kw),
    "commit_files": lambda p, **kw: ensure_files(p, REPO, "main", CHANGES, message="Add a program", **kw),
    "open_pull_request": lambda p, **kw: ensure_pull_request(
        p, REPO, source_branch="change", target_branch="main", title="A change", **kw
    ),
    "merge_pull_request": lambda p, **kw: ensure_merged(p, REPO, 1, **kw),
}
every_mutation = pytest.mark.parametrize("name", ENSURE)


@every_mutation
def test_what_is_absent_is_made_once(name: str, clock: Clock) -> None:
    """The first call sends the mutation once and says that it changed something."""
    provider = staged(name, clock)

    ensured = ENSURE[name](provider)

    assert ensured.changed
    assert provider.sent == [name]


@every_mutation
def test_what_is_there_is_left_as_it_is(name: str, clock: Clock) -> None:
    """The second call sends nothing and returns what is there."""
    provider = staged(name, clock)
    made = ENSURE[name](provider)
    provider.sent.clear()

    again = ENSURE[name](provider)

    assert not again.changed
    assert provider.sent == []
    assert _comparable(again.value) == _comparable(made.value)


def _comparable(value: Any) -> Any:
    """A value without what a host adds when it is read again."""
    if hasattr(value, "already_merged"):
        return value.sha
    return dataclasses.replace(value, message=value.message.strip()) if hasattr(value, "message") else value


@every_mutation
@pytest.mark.parametrize("fault", ["before", "after", "late"])
def test_after_a_lost_answer_it_waits_and_sends_only_what_is_missing(name: str, fault: Fault, clock: Clock) -> None:
    """Given the evidence, a request that took effect, or still will, is not sent a second time."""
    provider = staged(name, clock)
    error = lost(provider, name, fault)

    ENSURE[name](provider, after=error, settling=Settling(sleep=clock.sleep, now=clock.now))

    assert provider.sent == [name] * (2 if fault == "before" else 1)
    if fault == "before":
        assert sum(clock.slept) == pytest.approx(provider.settle)


@every_mutation
def test_a_failed_mutation_is_not_repeated(name: str, clock: Clock) -> None:
    """Even an error that could be retried goes to the caller: ensure sends once."""
    provider = staged(name, clock)
    provider.faults[name] = "refused"

    with pytest.raises(ProviderUnavailableError):
        ENSURE[name](provider)

    assert provider.sent == [name]


@every_mutation
def test_evidence_of_another_call_is_refused(name: str, clock: Clock) -> None:
    """Waiting for the wrong request would prove nothing."""
    provider = staged(name, clock)
    error = lost(provider, name, "before")
    assert error.intent is not None
    other = dataclasses.replace(error.intent, repo="acme/other")

    with pytest.raises(InvalidRequestError) as caught:
        ENSURE[name](provider, after=other)

    assert caught.value.argument == "after"


@every_mutation
def test_an_error_from_before_any_request_needs_no_waiting(name: str, clock: Clock) -> None:
    """An error without an intent, such as a read's, is no reason to wait."""
    provider = staged(name, clock)

    ensured = ENSURE[name](
        provider, after=ProviderUnavailableError("503"), settling=Settling(sleep=clock.sleep, now=clock.now)
    )

    assert ensured.changed
    assert clock.slept == []


@pytest.mark.parametrize("name", ["create_repo", "create_branch", "open_pull_request"])
def test_somebody_quicker_is_looked_at_again(name: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """AlreadyExistsError means look again: what is there now decides."""
    provider = staged(name, clock)
    create = getattr(provider, name)

    def create_after_somebody_else(*args: Any, **kwargs: Any) -> Any:
        create(*args, **kwargs)
        return create(*args, **kwargs)

    monkeypatch.setattr(provider, name, create_after_somebody_else)

    ensured = ENSURE[name](provider)

    assert not ensured.changed


def test_what_exists_and_cannot_be_seen_is_an_error(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is taken by what this credential cannot see stays AlreadyExistsError."""
    provider = staged("create_repo", clock)

    def taken(*args: Any, **kwargs: Any) -> Any:
        raise AlreadyExistsError("the name is taken")

    monkeypatch.setattr(provider, "create_repo", taken)

    with pytest.raises(AlreadyExistsError):
        ensure_repo(provider, REPO)


# Contradictions


@pytest.mark.parametrize(
    ("there", "names"),
    [
        ({"visibility": Visibility.PUBLIC}, "public"),
        ({"description": "Gadgets"}, "'Gadgets'"),
        ({"archived": True}, "archived"),
    ],
)
def test_a_repository_that_is_not_as_asked_is_refused(there: dict[str, Any], names: str, clock: Clock) -> None:
    """A contradiction is a ConflictError that names what is there, and nothing is sent."""
    provider = staged("create_repo", clock)
    provider.create_repo(REPO, description="Widgets")
    provider.stored[REPO].repo = dataclasses.replace(provider.stored[REPO].repo, **there)
    provider.sent.clear()

    with pytest.raises(ConflictError, match=names):
        ensure_repo(provider, REPO, description="Widgets")

    assert provider.sent == []


def test_an_empty_description_asks_for_nothing(clock: Clock) -> None:
    """A repository that somebody described is still the one asked for."""
    provider = staged("create_repo", clock)
    provider.create_repo(REPO, description="Widgets")

    assert not ensure_repo(provider, REPO).changed


def test_a_renamed_repository_is_not_the_one_asked_for(clock: Clock) -> None:
    """A path that leads elsewhere is RepoMovedError with the new path."""
    provider = staged("create_repo", clock)
    provider.create_repo(REPO)
    provider.stored[REPO].repo = dataclasses.replace(provider.stored[REPO].repo, path="acme/gadgets")

    with pytest.raises(RepoMovedError) as caught:
        ensure_repo(provider, REPO)

    assert caught.value.moved_to == "acme/gadgets"


def test_a_repository_in_another_spelling_is_the_same(clock: Clock) -> None:
    """Hosts compare paths without regard to case, and answer with their own spelling."""
    provider = staged("create_repo", clock)
    provider.create_repo(REPO)
    provider.stored[REPO].repo = dataclasses.replace(provider.stored[REPO].repo, path="Acme/Widgets")

    assert not ensure_repo(provider, REPO).changed


def test_a_branch_at_another_commit_is_refused_and_not_moved(clock: Clock) -> None:
    """HeadMovedError names what was asked and what is there."""
    provider = staged("create_branch", clock)
    there = provider.push(REPO, "develop", {"a": b"a"}, "Something else")

    with pytest.raises(HeadMovedError) as caught:
        ensure_branch(provider, REPO, "develop", source="main")

    assert (caught.value.expected, caught.value.actual) == (provider.head(REPO, "main"), there)
    assert provider.sent == []


def test_a_branch_that_the_earlier_try_made_may_have_moved_on(clock: Clock) -> None:
    """With the evidence, a branch that somebody pushed to since counts as ensured."""
    provider = staged("create_branch", clock)
    error = lost(provider, "create_branch", "after")
    provider.push(REPO, "develop", {"a": b"a"}, "Work")

    ensured = ensure_branch(provider, REPO, "develop", source="main", after=error)

    assert not ensured.changed
    assert ensured.value.name == "develop"


def test_a_branch_can_be_asked_for_by_commit(clock: Clock) -> None:
    """A full sha, in either case, is taken as it is."""
    provider = staged("create_branch", clock)
    sha = provider.head(REPO, "main")

    made = ensure_branch(provider, REPO, "develop", source=sha.upper())
    again = ensure_branch(provider, REPO, "develop", source=sha)

    assert (made.changed, again.changed) == (True, False)


def test_stronger_protection_than_asked_is_enough(clock: Clock) -> None:
    """Rules are a floor: what demands more is left alone."""
    provider = staged("protect_branch", clock)
    provider.protect_branch(REPO, "main", BranchProtection(required_approvals=2, block_deletion=True))
    provider.sent.clear()

    ensured = ensure_protection(provider, REPO, "main", RULES)

    assert not ensured.changed
    assert ensured.value.required_approvals == 2


def test_weaker_protection_is_strengthened(clock: Clock) -> None:
    """What lacks one field is written, once."""
    provider = staged("protect_branch", clock)
    provider.protect_branch(REPO, "main", BranchProtection(block_deletion=True))

    ensured = ensure_protection(provider, REPO, "main", RULES)

    assert ensured.changed
    assert ensured.value.block_deletion
    assert ensured.value.required_approvals == 1


@pytest.mark.parametrize(("given", "names"), [({"title": "Another"}, "'A change'"), ({"draft": True}, "not a draft")])
def test_a_pull_request_that_is_not_as_asked_is_refused(given: dict[str, Any], names: str, clock: Clock) -> None:
    """One that is open with another title, or is no draft, is a ConflictError with its number."""
    provider = staged("merge_pull_request", clock)
    asked = {"source_branch": "change", "target_branch": "main", "title": "A change", **given}

    with pytest.raises(ConflictError, match=f"pull request 1 .*{names}"):
        ensure_pull_request(provider, REPO, **asked)

    assert provider.sent == []


def test_a_pull_request_merged_at_this_head_is_there(clock: Clock) -> None:
    """What was asked has been merged: nothing is opened again, whether the branch stays or is gone."""
    provider = staged("merge_pull_request", clock)
    provider.merge_pull_request(REPO, 1)

    with_branch = ENSURE["open_pull_request"](provider)
    del provider.stored[REPO].branches["change"]
    without_branch = ENSURE["open_pull_request"](provider)

    assert not with_branch.changed
    assert not without_branch.changed
    assert without_branch.value.state is PullRequestState.MERGED


def test_a_branch_with_new_work_gets_a_new_pull_request(clock: Clock) -> None:
    """A merged one does not stand for commits that came later."""
    provider = staged("merge_pull_request", clock)
    provider.merge_pull_request(REPO, 1)
    provider.push(REPO, "change", {"more": b"more"}, "More")

    ensured = ENSURE["open_pull_request"](provider)

    assert ensured.changed
    assert ensured.value.number == 2


def test_a_closed_pull_request_does_not_count(clock: Clock) -> None:
    """One that was closed without a merge is not the one asked for."""
    provider = staged("merge_pull_request", clock)
    _close(provider)

    assert ENSURE["open_pull_request"](provider).value.number == 2


def _close(provider: MemoryProvider) -> None:
    pulls = provider.stored[REPO].pulls
    pulls[0] = dataclasses.replace(pulls[0], state=PullRequestState.CLOSED)


def test_a_closed_pull_request_is_not_merged(clock: Clock) -> None:
    """NotMergeableError with reason CLOSED, before anything is sent."""
    provider = staged("merge_pull_request", clock)
    _close(provider)

    with pytest.raises(NotMergeableError) as caught:
        ensure_merged(provider, REPO, 1)

    assert caught.value.reason is NotMergeableReason.CLOSED
    assert provider.sent == []


@pytest.mark.parametrize("merged", [False, True])
def test_another_head_than_expected_is_refused(merged: bool, clock: Clock) -> None:
    """Open or merged: a pull request at another head is not what was reviewed."""
    provider = staged("merge_pull_request", clock)
    if merged:
        provider.merge_pull_request(REPO, 1)
        provider.sent.clear()

    with pytest.raises(HeadMovedError):
        ensure_merged(provider, REPO, 1, expected_head="a" * 40)

    assert provider.sent == []


def test_a_branch_that_the_merge_left_is_deleted_on_the_next_run(clock: Clock) -> None:
    """Merged, and the deletion failed: the same call finishes, without a second merge."""
    provider = staged("merge_pull_request", clock)
    provider.faults["delete source branch"] = "before"
    with pytest.raises(ProviderUnavailableError):
        ensure_merged(provider, REPO, 1, delete_source_branch=True)

    ensured = ensure_merged(provider, REPO, 1, delete_source_branch=True)

    assert ensured.changed
    assert provider.sent == ["merge_pull_request"]
    with pytest.raises(NotFoundError):
        provider.head(REPO, "change")


def test_a_branch_that_moved_on_after_the_merge_stays(clock: Clock) -> None:
    """Somebody works on: deleting the branch would lose commits, and is not asked for again."""
    provider = staged("merge_pull_request", clock)
    provider.merge_pull_request(REPO, 1)
    more = provider.push(REPO, "change", {"more": b"more"}, "More")

    ensured = ensure_merged(provider, REPO, 1, delete_source_branch=True)

    assert not ensured.changed
    assert provider.head(REPO, "change") == more


def test_a_merge_without_a_named_commit_is_an_error(clock: Clock) -> None:
    """A host that says merged and names no commit gives no result to return."""
    provider = staged("merge_pull_request", clock)
    provider.merge_pull_request(REPO, 1)
    pulls = provider.stored[REPO].pulls
    pulls[0] = dataclasses.replace(pulls[0], merge_commit_sha=None)

    with pytest.raises(UnexpectedResponseError):
        ensure_merged(provider, REPO, 1)


# Files


def test_only_what_is_missing_is_committed(clock: Clock) -> None:
    """A change that is there already is left out: deleting a file twice would be refused."""
    provider = staged("commit_files", clock)
    provider.commit_files(REPO, "main", [DeleteFile(path="old.txt")], message="Clean up")

    ensured = ENSURE["commit_files"](provider)

    assert ensured.changed
    assert set(provider.tree(REPO, ensured.value.sha)) == {"README.md", "bin/run"}


@pytest.mark.parametrize(
    ("executable", "asked", "changes"),
    [(False, True, True), (True, False, True), (True, None, False), (False, None, False), (True, True, False)],
)
def test_a_mode_is_compared_when_it_is_asked_for(
    executable: bool, asked: bool | None, changes: bool, clock: Clock
) -> None:
    """None keeps whichever mode is there; True and False are asked for."""
    provider = staged("commit_files", clock)
    provider.commit_files(REPO, "main", [PutFile(path="run", content="x", executable=executable)], message="Add")

    ensured = ensure_files(provider, REPO, "main", [PutFile(path="run", content="x", executable=asked)], message="Set")

    assert ensured.changed is changes


def test_a_moved_file_is_there_when_only_its_new_path_is(clock: Clock) -> None:
    """A move is done when the old path is empty and the new one is not."""
    provider = staged("commit_files", clock)
    move = [MoveFile(path="old.txt", to="new.txt")]

    made = ensure_files(provider, REPO, "main", move, message="Move")
    again = ensure_files(provider, REPO, "main", move, message="Move")

    assert (made.changed, again.changed) == (True, False)


def test_a_file_named_by_path_is_read_once(clock: Clock, tmp_path: Path) -> None:
    """What is compared is what is sent, even when the file changes in between."""
    provider = staged("commit_files", clock)
    file = tmp_path / "file"
    file.write_text("first")
    tree = provider.tree

    def tree_while_somebody_writes(repo: str, sha: str) -> Any:
        file.write_text("second")
        return tree(repo, sha)

    provider.tree = tree_while_somebody_writes  # type: ignore[method-assign]  # a write between look and commit

    ensured = ensure_files(provider, REPO, "main", [PutFile(path="file", content=file)], message="Add")

    assert provider.stored[REPO].commits[ensured.value.sha][2]["file"].sha == blob_sha(b"first")


def test_files_on_a_head_that_moves_are_refused(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit is pinned to the head that was looked at: another one is HeadMovedError, and not repeated."""
    provider = staged("commit_files", clock)
    tree = provider.tree

    def tree_while_somebody_pushes(repo: str, sha: str) -> Any:
        provider.push(REPO, "main", {"a": b"a"}, "Quicker")
        return tree(repo, sha)

    monkeypatch.setattr(provider, "tree", tree_while_somebody_pushes)

    with pytest.raises(HeadMovedError):
        ENSURE["commit_files"](provider)


def test_nothing_to_delete_in_an_empty_repository(clock: Clock) -> None:
    """There is no head to return: NotFoundError, as a read of the branch says."""
    provider = staged("create_repo", clock)
    provider.create_repo(REPO)

    with pytest.raises(NotFoundError):
        ensure_files(provider, REPO, "main", [DeleteFile(path="old.txt")], message="Clean up")


def test_no_changes_are_refused(clock: Clock) -> None:
    """An empty list is InvalidRequestError, before any read."""
    with pytest.raises(InvalidRequestError):
        ensure_files(MemoryProvider(clock), REPO, "main", [], message="Nothing")


def test_a_sha256_repository_is_compared_in_its_own_format(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a repository with 64-digit ids the blobs are compared by SHA-256."""
    provider = staged("commit_files", clock)
    wide = hashlib.sha256(b"blob 1\0x").hexdigest()
    monkeypatch.setattr(provider, "head", lambda repo, branch: "e" * 64)
    monkeypatch.setattr(provider, "tree", lambda repo, sha: {"file": TreeEntry(wide, "100644")})

    _, missing = missing_files(provider, REPO, "main", [PutFile(path="file", content="x")])

    assert missing == []


def test_real_git_objects_are_recognised(tmp_path: Path) -> None:
    """On a real repository: binary content, an executable and an empty file are written once, and found again."""
    provider = LocalProvider(tmp_path / "forge")
    ensure_repo(provider, REPO)
    files = [
        PutFile(path="a.bin", content=bytes(range(256))),
        PutFile(path="bin/run", content="#!/bin/sh\r\n", executable=True),
        PutFile(path="empty", content=b""),
    ]

    made = ensure_files(provider, REPO, "main", files, message="Begin")
    again = ensure_files(provider, REPO, "main", files, message="Begin")

    assert (made.changed, again.changed) == (True, False)
    assert again.value.sha == made.value.sha


def test_a_symbolic_link_at_a_path_is_the_providers_to_refuse(tmp_path: Path) -> None:
    """A link is never taken for the file asked for, whatever its blob says."""
    provider = LocalProvider(tmp_path / "forge")
    ensure_repo(provider, REPO)
    with provider.sdk() as forge:
        blob = forge.write_blob(REPO, b"target")
        tree = forge.write_tree(REPO, None, {"link": (blob, "120000")})
        forge.create_branch(REPO, "main", forge.write_commit(REPO, tree=tree, parents=[], message="Link"))

    with pytest.raises(GitProviderError):
        ensure_files(provider, REPO, "main", [PutFile(path="link", content="target")], message="File")


@pytest.mark.parametrize(
    ("name", "wrong", "argument"),
    [
        ("create_repo", {"visibility": "secret"}, "visibility"),
        ("create_repo", {"auto_init": "no"}, "auto_init"),
        ("create_branch", {"source": "a..b"}, "source"),
        ("protect_branch", {"rules": None}, "rules"),
        ("commit_files", {"message": ""}, "message"),
        ("open_pull_request", {"target_branch": "change"}, "target_branch"),
        ("open_pull_request", {"title": None}, "title"),
        ("merge_pull_request", {"expected_head": "a1b2"}, "expected_head"),
        ("merge_pull_request", {"method": "octopus"}, "method"),
    ],
)
def test_wrong_arguments_are_refused_before_any_look(name: str, wrong: dict[str, Any], argument: str) -> None:
    """A slip is named, and is no ValueError and no contradiction of the host's, whatever is there."""
    asked: dict[str, tuple[Any, dict[str, Any]]] = {
        "create_repo": (ensure_repo, {}),
        "create_branch": (ensure_branch, {"name": "develop", "source": "main"}),
        "protect_branch": (ensure_protection, {"branch": "main", "rules": RULES}),
        "commit_files": (ensure_files, {"branch": "main", "changes": CHANGES, "message": "Add a program"}),
        "open_pull_request": (
            ensure_pull_request,
            {"source_branch": "change", "target_branch": "main", "title": "A change"},
        ),
        "merge_pull_request": (ensure_merged, {"number": 1}),
    }
    ensure, right = asked[name]
    nothing_to_look_at = object()

    with pytest.raises(InvalidRequestError) as caught:
        ensure(nothing_to_look_at, REPO, **(right | wrong))

    assert caught.value.argument == argument


def test_an_error_that_was_raised_before_anything_was_noted_is_evidence_too(clock: Clock) -> None:
    """A refused option leaves an intent that names no branch yet: that is not the evidence of another call."""
    provider = staged("protect_branch", clock)
    intent = Intent(operation="protect_branch", provider=provider.name, repo=REPO)
    refused = UnsupportedOptionError("not here", option="protect_branch.required_checks", intent=intent)

    assert ensure_protection(provider, REPO, "main", RULES, after=refused).changed


def test_a_head_is_compared_without_its_spelling(clock: Clock) -> None:
    """A sha in capitals is the same commit, for a branch's source and for a merge's head."""
    provider = staged("merge_pull_request", clock)
    head = provider.head(REPO, "change")

    ensure_branch(provider, REPO, "copy", source=head.upper())

    assert not ensure_branch(provider, REPO, "copy", source=head.upper()).changed
    assert ensure_merged(provider, REPO, 1, expected_head=head.upper()).changed
