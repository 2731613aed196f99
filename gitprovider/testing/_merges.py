"""Cases for merge_pull_request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from gitprovider.errors import (
    ConflictError,
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
    Outcome,
)
from gitprovider.models import BranchProtection, MergeMethod, MergeResult, PullRequestState
from gitprovider.testing._assertions import attempt, halfway, invalid, mutations, refused
from gitprovider.testing._inputs import BAD_SHAS, EFFECTS, SHA_LIKE
from gitprovider.testing._protection import can_demand
from gitprovider.testing._pull_requests import can_draft, given_feature
from gitprovider.testing.rig import File, Rig

_METHODS = list(MergeMethod)


def _given_open(rig: Rig, source: str = "feature") -> tuple[str, int]:
    repo = given_feature(rig, source)
    return repo, rig.given_pull_request(repo, source_branch=source)


def _refused_for(rig: Rig, reason: NotMergeableReason, repo: str, number: int, **kwargs: Any) -> None:
    """Assert that the merge is refused for ``reason``, that no branch moves, and that the pull request is unchanged."""
    branches, before = rig.branches(repo), rig.pull_requests(repo)[number]
    kwargs.setdefault("timeout", 1.0)
    error = refused(NotMergeableError, rig.provider.merge_pull_request, repo, number, **kwargs)
    assert error.reason is reason, f"the reason is {error.reason.name}; it should be {reason.name}"
    assert rig.branches(repo) == branches, "a refused merge moved a branch"
    assert rig.pull_requests(repo)[number].state is before.state


def _result(error: GitProviderError) -> MergeResult:
    results = [step.value for step in error.completed if isinstance(step.value, MergeResult)]
    assert results, f"`completed` has no MergeResult: {error.completed!r}"
    return results[0]


class MergePullRequestCases:
    """merge_pull_request: the effect of a merge."""

    def test_merge_a_pull_request_is_merged_by_one_request(self, rig: Rig) -> None:
        """A merge commit of both heads becomes the target's head, and the pull request is merged."""
        repo, number = _given_open(rig)
        before = rig.branches(repo)

        with mutations(rig, at_least=1, at_most=1):
            value = rig.provider.merge_pull_request(repo, number)

        assert value == MergeResult(sha=rig.branches(repo)["main"], already_merged=False)
        assert rig.history(repo, "main")[0].parents == (before["main"], before["feature"])
        assert "feature.txt" in rig.files(repo, "main")
        assert rig.pull_requests(repo)[number].state is PullRequestState.MERGED

    def test_merge_both_sides_are_in_the_merge(self, rig: Rig) -> None:
        """The merge has the changes of the source and the target, with bytes and modes unchanged."""
        repo = rig.given_repo({"both": b"1\n2\n3\n4\n5\n6\n7\n", "gone": b"gone", "keep": b"keep\r\n"})
        rig.given_branch(repo, "feature")
        rig.given_commit(
            repo,
            "feature",
            {"both": b"one\n2\n3\n4\n5\n6\n7\n", "run": File(b"#!/bin/sh\n", "100755"), "bin": b"\0\xff", "gone": None},
        )
        rig.given_commit(repo, "main", {"both": b"1\n2\n3\n4\n5\n6\nseven\n", "theirs": b"theirs\r\n"})
        number = rig.given_pull_request(repo, source_branch="feature")

        rig.provider.merge_pull_request(repo, number)

        assert rig.files(repo, "main") == {
            "both": File(b"one\n2\n3\n4\n5\n6\nseven\n"),
            "run": File(b"#!/bin/sh\n", "100755"),
            "bin": File(b"\0\xff"),
            "keep": File(b"keep\r\n"),
            "theirs": File(b"theirs\r\n"),
        }

    def test_merge_a_squash_brings_the_changes_without_the_commits(self, rig: Rig) -> None:
        """The target has the source's files but none of its commits."""
        repo = given_feature(rig)
        rig.given_commit(repo, "feature", {"more.txt": b"more\n"}, message="More")
        rig.given_commit(repo, "main", {"theirs.txt": b"theirs\n"})
        rig.given_merge_method(repo, MergeMethod.SQUASH, allowed=True)
        number = rig.given_pull_request(repo, source_branch="feature")
        before = rig.branches(repo)

        value = rig.provider.merge_pull_request(repo, number, method=MergeMethod.SQUASH)

        history = [c.sha for c in rig.history(repo, "main")]
        assert value.sha == rig.branches(repo)["main"] == history[0]
        assert before["main"] in history, "the target's own commits are kept"
        assert before["feature"] not in history, "a squash does not add the source's commits"
        assert {"feature.txt", "more.txt", "theirs.txt"} <= set(rig.files(repo, "main"))
        assert rig.pull_requests(repo)[number].state is PullRequestState.MERGED

    def test_merge_a_rebase_makes_no_merge_commit(self, rig: Rig) -> None:
        """The source's commits follow the target's head, with one parent each."""
        repo = given_feature(rig)
        rig.given_commit(repo, "feature", {"more.txt": b"more\n"}, message="Add more")
        rig.given_merge_method(repo, MergeMethod.REBASE, allowed=True)
        number = rig.given_pull_request(repo, source_branch="feature")

        value = rig.provider.merge_pull_request(repo, number, method=MergeMethod.REBASE)

        history = rig.history(repo, "main")
        assert value.sha == rig.branches(repo)["main"]
        assert [len(c.parents) for c in history] == [1, 1, 0]
        assert [c.message for c in history[:2]] == ["Add more", "Add the feature"]
        assert {"feature.txt", "more.txt"} <= set(rig.files(repo, "main"))

    def test_merge_a_rebase_onto_a_moved_target_keeps_both(self, rig: Rig) -> None:
        """The commits are recreated on the target's head, or the reason is BEHIND if the host does not do that."""
        repo = given_feature(rig)
        theirs = rig.given_commit(repo, "main", {"theirs.txt": b"theirs\n"})
        rig.given_merge_method(repo, MergeMethod.REBASE, allowed=True)
        number = rig.given_pull_request(repo, source_branch="feature")

        result = attempt(rig.provider.merge_pull_request, repo, number, method=MergeMethod.REBASE, timeout=1.0)

        if isinstance(result, GitProviderError):
            assert isinstance(result, NotMergeableError), f"expected a rebase or BEHIND, not {result!r}"
            assert result.reason is NotMergeableReason.BEHIND
            assert rig.branches(repo)["main"] == theirs
            return
        history = rig.history(repo, "main")
        assert result.sha == history[0].sha
        assert [c.parents for c in history[:1]] == [(theirs,)]
        assert {"feature.txt", "theirs.txt"} <= set(rig.files(repo, "main"))

    @pytest.mark.parametrize("method", [MergeMethod.MERGE, MergeMethod.SQUASH])
    def test_merge_a_message_is_written(self, rig: Rig, method: MergeMethod) -> None:
        """The commit of the merge or squash has the given message."""
        repo, number = _given_open(rig)
        rig.given_merge_method(repo, method, allowed=True)
        message = "Merge the größte feature\n\nBody #1.\n\n* list"

        rig.provider.merge_pull_request(repo, number, method=method, message=message)

        assert message in [c.message for c in rig.history(repo, "main")[:2]]

    def test_merge_a_rebase_takes_no_message(self, rig: Rig) -> None:
        """A rebase makes no commit of its own, so a message is refused."""
        repo, number = _given_open(rig)

        invalid(
            rig, "message", rig.provider.merge_pull_request, repo, number, method=MergeMethod.REBASE, message="Mine"
        )

    def test_merge_another_target_than_the_default_branch(self, rig: Rig) -> None:
        """The pull request's own target moves, and the default branch stays."""
        repo = given_feature(rig)
        rig.given_branch(repo, "release/1")
        number = rig.given_pull_request(repo, source_branch="feature", target_branch="release/1")
        before = rig.branches(repo)

        value = rig.provider.merge_pull_request(repo, number)

        assert rig.branches(repo) == {**before, "release/1": value.sha}

    def test_merge_other_pull_requests_stay_open(self, rig: Rig) -> None:
        """Only the pull request with the given number is merged."""
        repo, number = _given_open(rig)
        rig.given_branch(repo, "other")
        rig.given_commit(repo, "other", {"other.txt": b"other\n"})
        other = rig.given_pull_request(repo, source_branch="other")

        rig.provider.merge_pull_request(repo, number)

        assert rig.pull_requests(repo)[other].state is PullRequestState.OPEN
        assert "other.txt" not in rig.files(repo, "main")


class MergeHeadCases:
    """merge_pull_request: the head that is merged, and pull requests that are merged already."""

    def test_merge_the_expected_head_is_honoured(self, rig: Rig) -> None:
        """A source branch at the expected head is merged. The sha may be in upper case."""
        repo, number = _given_open(rig)
        head = rig.branches(repo)["feature"]

        value = rig.provider.merge_pull_request(repo, number, expected_head=head.upper())

        assert value.sha == rig.branches(repo)["main"]

    def test_merge_another_head_than_expected_is_refused(self, rig: Rig) -> None:
        """Commits after the expected head are not merged: the target stays, and the pull request is open."""
        repo, number = _given_open(rig)
        stale = rig.branches(repo)["feature"]
        rig.given_commit(repo, "feature", {"unseen.txt": b"unseen\n"})
        before = rig.branches(repo)

        for expected in (stale, SHA_LIKE):
            refused(HeadMovedError, rig.provider.merge_pull_request, repo, number, expected_head=expected)

        assert rig.branches(repo) == before
        assert rig.pull_requests(repo)[number].state is PullRequestState.OPEN

    def test_merge_a_head_that_moves_meanwhile_is_not_merged(self, rig: Rig) -> None:
        """Without expected_head, either the head read just before is merged, or nothing is."""
        repo, number = _given_open(rig)
        before = rig.branches(repo)["main"]
        rig.on_next_mutation(lambda: rig.given_commit(repo, "feature", {"unseen.txt": b"unseen\n"}))

        refused(HeadMovedError, rig.provider.merge_pull_request, repo, number)

        assert rig.branches(repo)["main"] == before
        assert rig.pull_requests(repo)[number].state is PullRequestState.OPEN

    def test_merge_a_target_that_moves_meanwhile_loses_nothing(self, rig: Rig) -> None:
        """A concurrent commit on the target stays, whether the merge follows it or is refused."""
        repo, number = _given_open(rig)
        rig.on_next_mutation(lambda: rig.given_commit(repo, "main", {"theirs.txt": b"theirs\n"}))

        result = attempt(rig.provider.merge_pull_request, repo, number, timeout=1.0)

        merged = isinstance(result, MergeResult)
        if isinstance(result, GitProviderError):
            assert isinstance(result, ConflictError), f"expected a merge or ConflictError, not {result!r}"
            assert result.outcome is Outcome.NOT_APPLIED
        files = rig.files(repo, "main")
        assert "theirs.txt" in files, "the concurrent commit is no longer on the target"
        assert ("feature.txt" in files) == merged

    @pytest.mark.parametrize("pinned", [False, True], ids=["free", "pinned"])
    def test_merge_merged_already_is_success(self, rig: Rig, pinned: bool) -> None:
        """``already_merged`` is True, ``sha`` is the commit of the earlier merge, and no branch moves."""
        repo, number = _given_open(rig)
        head = rig.branches(repo)["feature"]
        sha = rig.given_merged(repo, number)
        rig.given_commit(repo, "main", {"later.txt": b"later\n"})
        before = rig.branches(repo)

        value = rig.provider.merge_pull_request(repo, number, expected_head=head if pinned else None)

        assert value == MergeResult(sha=sha, already_merged=True)
        assert rig.branches(repo) == before

    def test_merge_merging_twice_is_one_merge(self, rig: Rig) -> None:
        """The second call returns the result of the first."""
        repo, number = _given_open(rig)
        first = rig.provider.merge_pull_request(repo, number)

        second = rig.provider.merge_pull_request(repo, number)

        assert second == MergeResult(sha=first.sha, already_merged=True)
        assert rig.branches(repo)["main"] == first.sha

    def test_merge_merged_already_at_another_head_is_told(self, rig: Rig) -> None:
        """A pull request that was merged at another head raises HeadMovedError."""
        repo, number = _given_open(rig)
        rig.given_merged(repo, number)

        refused(HeadMovedError, rig.provider.merge_pull_request, repo, number, expected_head=SHA_LIKE)

    def test_merge_merged_already_with_the_source_gone_is_success(self, rig: Rig) -> None:
        """A merged pull request is found even if its source branch no longer exists."""
        repo, number = _given_open(rig)
        sha = rig.given_merged(repo, number)
        rig.given_no_branch(repo, "feature")

        value = rig.provider.merge_pull_request(repo, number)

        assert value == MergeResult(sha=sha, already_merged=True)


class NotMergeableCases:
    """merge_pull_request: pull requests that cannot be merged, and the reasons."""

    @pytest.mark.parametrize("method", _METHODS)
    def test_merge_a_conflict(self, rig: Rig, method: MergeMethod) -> None:
        """If both sides changed the same line, the reason is CONFLICT."""
        repo = rig.given_repo({"a.txt": b"base\n"})
        rig.given_branch(repo, "feature")
        rig.given_commit(repo, "feature", {"a.txt": b"ours\n"})
        rig.given_commit(repo, "main", {"a.txt": b"theirs\n"})
        rig.given_merge_method(repo, method, allowed=True)
        number = rig.given_pull_request(repo, source_branch="feature")

        _refused_for(rig, NotMergeableReason.CONFLICT, repo, number, method=method)

    def test_merge_a_draft(self, rig: Rig) -> None:
        """A draft is not merged, and the reason is DRAFT."""
        repo = given_feature(rig)
        if not can_draft(rig, repo):
            return
        number = rig.given_pull_request(repo, source_branch="feature", draft=True)

        _refused_for(rig, NotMergeableReason.DRAFT, repo, number)

    def test_merge_a_closed_one(self, rig: Rig) -> None:
        """A closed pull request is not reopened and merged, and the reason is CLOSED."""
        repo, number = _given_open(rig)
        rig.given_closed(repo, number)

        _refused_for(rig, NotMergeableReason.CLOSED, repo, number)

    @pytest.mark.parametrize("method", _METHODS)
    def test_merge_a_method_that_the_repository_forbids(self, rig: Rig, method: MergeMethod) -> None:
        """The pull request is not merged with another method instead."""
        repo, number = _given_open(rig)
        if not rig.given_merge_method(repo, method, allowed=False):
            pytest.skip("this host has no setting that forbids a method")

        _refused_for(rig, NotMergeableReason.METHOD, repo, number, method=method)

    def test_merge_a_merge_commit_on_a_branch_of_linear_history(self, rig: Rig) -> None:
        """A linear history does not allow a merge commit."""
        repo, number = _given_open(rig)
        if not can_demand(rig, repo, "require_linear_history"):
            return
        rules = BranchProtection(require_linear_history=True, enforce_admins=True)
        rig.given_protection(repo, "main", rules)

        _refused_for(rig, NotMergeableReason.METHOD, repo, number, method=MergeMethod.MERGE)

    def test_merge_missing_approvals(self, rig: Rig) -> None:
        """The reason is REVIEWS until the pull request is approved."""
        repo, number = _given_open(rig)
        if not can_demand(rig, repo, "required_approvals"):
            return
        rig.given_protection(repo, "main", BranchProtection(required_approvals=1, enforce_admins=True))

        _refused_for(rig, NotMergeableReason.REVIEWS, repo, number)
        rig.given_approval(repo, number)
        assert rig.provider.merge_pull_request(repo, number).sha == rig.branches(repo)["main"]

    def test_merge_an_approval_of_an_older_head(self, rig: Rig) -> None:
        """If stale approvals are dismissed, a new commit dismisses them."""
        repo, number = _given_open(rig)
        if not can_demand(rig, repo, "dismiss_stale_approvals"):
            return
        rules = BranchProtection(required_approvals=1, dismiss_stale_approvals=True, enforce_admins=True)
        rig.given_protection(repo, "main", rules)
        rig.given_approval(repo, number)
        rig.given_commit(repo, "feature", {"unseen.txt": b"unseen\n"})

        _refused_for(rig, NotMergeableReason.REVIEWS, repo, number)

    @pytest.mark.parametrize("state", ["missing", "pending", "failure"])
    def test_merge_a_check_that_has_not_passed(self, rig: Rig, state: Literal["missing", "pending", "failure"]) -> None:
        """The reason is CHECKS until the check has passed on the head."""
        repo, number = _given_open(rig)
        if not can_demand(rig, repo, "required_checks"):
            return
        rules = replace(BranchProtection.nothing(), required_checks=("build",), enforce_admins=True)
        rig.given_protection(repo, "main", rules)
        rig.given_check(repo, "feature", "another", "success")
        if state != "missing":
            rig.given_check(repo, "feature", "build", state)

        _refused_for(rig, NotMergeableReason.CHECKS, repo, number)
        rig.given_check(repo, "feature", "build", "success")
        assert rig.provider.merge_pull_request(repo, number).sha == rig.branches(repo)["main"]

    def test_merge_a_protected_target_is_merged_into(self, rig: Rig) -> None:
        """A branch that requires pull requests accepts one."""
        repo, number = _given_open(rig)
        rig.given_protection(repo, "main", BranchProtection())

        value = rig.provider.merge_pull_request(repo, number)

        assert rig.branches(repo)["main"] == value.sha

    def test_merge_an_unknown_number_is_not_found(self, rig: Rig) -> None:
        """A number belongs to one repository. Another repository's number is not found."""
        repo = rig.given_repo()
        other, number = _given_open(rig)

        refused(NotFoundError, rig.provider.merge_pull_request, repo, number)

        assert rig.pull_requests(other)[number].state is PullRequestState.OPEN

    def test_merge_wrong_arguments_are_refused_before_any_request(self, rig: Rig) -> None:
        """Each error names its argument."""
        repo, number = _given_open(rig)
        numbers: list[Any] = [0, -1, True, "1", 1.0, None, 2**63]
        wrong: list[tuple[str, Any]] = [
            *(("method", bad) for bad in ("fast-forward", "", None, 1)),
            *(("expected_head", bad) for bad in BAD_SHAS),
            *(("message", bad) for bad in ("", "  ", 3, b"bytes", "nul\0", "\udc80")),
            *(("delete_source_branch", bad) for bad in ("yes", None, 1)),
            *(("timeout", bad) for bad in (-1, float("nan"), float("inf"), "30", None, True)),
        ]

        for bad in numbers:
            invalid(rig, "number", rig.provider.merge_pull_request, repo, bad)
        for argument, bad in wrong:
            invalid(rig, argument, rig.provider.merge_pull_request, repo, number, **{argument: bad})

        assert rig.pull_requests(repo)[number].state is PullRequestState.OPEN


class DeleteSourceBranchCases:
    """merge_pull_request: delete_source_branch."""

    def test_merge_the_source_branch_stays_unless_asked(self, rig: Rig) -> None:
        """By default no branch is deleted."""
        repo, number = _given_open(rig)

        rig.provider.merge_pull_request(repo, number)

        assert set(rig.branches(repo)) == {"main", "feature"}

    @pytest.mark.parametrize("branch", ["feature", "feature/login", "a%2Fb#1", "grüße/\U0001f680", "a+b&c=d"])
    def test_merge_the_source_branch_is_deleted(self, rig: Rig, branch: str) -> None:
        """Only the source branch is deleted after the merge, whatever characters its name has."""
        repo, number = _given_open(rig, branch)
        rig.given_branches(repo, ["feature-2", "featur"])

        value = rig.provider.merge_pull_request(repo, number, delete_source_branch=True)

        assert set(rig.branches(repo)) == {"main", "feature-2", "featur"}
        assert rig.branches(repo)["main"] == value.sha

    def test_merge_a_refused_merge_deletes_nothing(self, rig: Rig) -> None:
        """If the merge is refused, the source branch is not deleted."""
        repo, number = _given_open(rig)
        rig.given_closed(repo, number)

        _refused_for(rig, NotMergeableReason.CLOSED, repo, number, delete_source_branch=True)

        assert "feature" in rig.branches(repo)

    @pytest.mark.parametrize("merged", ["by this call", "before"])
    @pytest.mark.parametrize(("source", "target"), [("stacked", "feature"), ("feature", "develop")])
    def test_merge_a_branch_that_another_pull_request_needs_is_not_deleted(
        self, rig: Rig, source: str, target: str, merged: str
    ) -> None:
        """The host would close an open pull request from or to it: the branch stays until that one is closed."""
        repo, number = _given_open(rig)
        rig.given_branch(repo, "develop")
        rig.given_branch(repo, "stacked", source="feature")
        rig.given_commit(repo, "stacked", {"stacked.txt": b"stacked\n"})
        other = rig.given_pull_request(repo, source_branch=source, target_branch=target)
        if merged == "before":
            rig.given_merged(repo, number)

        error = halfway(rig.provider.merge_pull_request, repo, number, delete_source_branch=True)

        assert isinstance(error, ConflictError)
        assert str(other) in error.message
        assert error.failed_step == "delete source branch"
        assert rig.pull_requests(repo)[number].state is PullRequestState.MERGED
        assert rig.pull_requests(repo)[other].state is PullRequestState.OPEN
        assert "feature" in rig.branches(repo)
        rig.given_closed(repo, other)
        rig.provider.merge_pull_request(repo, number, delete_source_branch=True)
        assert "feature" not in rig.branches(repo)

    def test_merge_a_branch_that_went_on_is_not_deleted(self, rig: Rig) -> None:
        """A commit made after the merge is not lost: the branch stays, and the outcome is PARTIAL."""
        repo, number = _given_open(rig)
        late: list[str] = []

        def commit_late() -> None:
            if "feature" in rig.branches(repo):  # a host that merges and deletes in one step leaves no time for it
                late.append(rig.given_commit(repo, "feature", {"late.txt": b"late\n"}))

        rig.on_next_mutation(commit_late, when="after")

        result = attempt(rig.provider.merge_pull_request, repo, number, delete_source_branch=True)

        if isinstance(result, GitProviderError):
            assert result.outcome is Outcome.PARTIAL
            assert _result(result).sha == rig.branches(repo)["main"]
        else:
            assert not late, "the branch moved after the merge, but no error was raised"
        assert rig.branches(repo).get("feature") == (late[0] if late else None)

    def test_merge_a_branch_that_may_not_be_deleted_stays(self, rig: Rig) -> None:
        """The merge is done: the outcome is PARTIAL, and ``completed`` has the MergeResult."""
        repo, number = _given_open(rig)
        if not can_demand(rig, repo, "block_deletion"):
            return
        rules = replace(BranchProtection.nothing(), block_deletion=True, enforce_admins=True)
        rig.given_protection(repo, "feature", rules)

        error = halfway(rig.provider.merge_pull_request, repo, number, delete_source_branch=True)

        assert not isinstance(error, InvalidRequestError)
        assert _result(error) == MergeResult(sha=rig.branches(repo)["main"])
        assert "feature" in rig.branches(repo)
        assert rig.pull_requests(repo)[number].state is PullRequestState.MERGED

    @pytest.mark.parametrize("cause", ["a rule", "a lost answer"])
    def test_merge_a_failed_deletion_names_its_steps(self, rig: Rig, cause: str) -> None:
        """``merge`` is completed and ``delete source branch`` failed, by the same names on every host."""
        repo, number = _given_open(rig)
        if cause == "a rule":
            if not can_demand(rig, repo, "block_deletion"):
                return
            rules = replace(BranchProtection.nothing(), block_deletion=True, enforce_admins=True)
            rig.given_protection(repo, "feature", rules)
        else:
            rig.given_merged(repo, number)
            if not rig.given_lost_answer():
                pytest.skip("nothing lies between this provider and its host that could fail")

        error = halfway(rig.provider.merge_pull_request, repo, number, delete_source_branch=True)

        assert [step.name for step in error.completed] == [EFFECTS["merge_pull_request"]]
        assert error.failed_step == "delete source branch"
