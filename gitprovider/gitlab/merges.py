"""Merging on GitLab: whether it can be done, by the method asked for, and whether it was done.

GitLab computes mergeability in the background, and refuses a merge with the same 405 for most causes. So the merge
request is read until it is computed, the merge is sent once, and a refusal is read up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gitprovider._core.operation import Operation
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import RemoteOperation, StatusError
from gitprovider.errors import (
    ConflictError,
    GitProviderError,
    HeadMovedError,
    NotMergeableError,
    NotMergeableReason,
    Outcome,
    RetryCancelledError,
)
from gitprovider.gitlab import convert
from gitprovider.gitlab.client import GitLabClient
from gitprovider.gitlab.endpoints import BRANCH, MERGE, MERGE_REQUEST
from gitprovider.models import MergeMethod, MergeResult
from gitprovider.retry import RetryOptions, wait

# detailed_merge_status while GitLab computes; the last two are merge_status of servers before 15.6.
_COMPUTING = frozenset(
    {
        "preparing",
        "checking",
        "unchecked",
        "approvals_syncing",
        "cannot_be_merged_recheck",
        "cannot_be_merged_rechecking",
    }
)
# https://docs.gitlab.com/api/merge_requests/#merge-status ; a value that is not here may have become mergeable.
_REASONS = {
    "conflict": NotMergeableReason.CONFLICT,
    "cannot_be_merged": NotMergeableReason.CONFLICT,
    "need_rebase": NotMergeableReason.BEHIND,
    "draft_status": NotMergeableReason.DRAFT,
    "not_open": NotMergeableReason.CLOSED,
    "not_approved": NotMergeableReason.REVIEWS,
    "requested_changes": NotMergeableReason.REVIEWS,
    "ci_must_pass": NotMergeableReason.CHECKS,
    "ci_still_running": NotMergeableReason.CHECKS,
    "status_checks_must_pass": NotMergeableReason.CHECKS,
    "security_policy_pipeline_check": NotMergeableReason.CHECKS,
    "discussions_not_resolved": NotMergeableReason.POLICY,
    "merge_request_blocked": NotMergeableReason.POLICY,
    "jira_association_missing": NotMergeableReason.POLICY,
    "security_policy_violations": NotMergeableReason.POLICY,
    "locked_paths": NotMergeableReason.POLICY,
    "locked_lfs_files": NotMergeableReason.POLICY,
    "title_regex": NotMergeableReason.POLICY,
    "merge_time": NotMergeableReason.POLICY,
    "commits_status": NotMergeableReason.UNKNOWN,
}
_METHOD_ERROR = re.compile(r"squash|fast.?forward", re.IGNORECASE)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 4.0


@dataclass(slots=True)
class Patience:
    """What is left of the time that a merge may wait. A wait counts in full, whatever the clock says."""

    retry: RetryOptions
    timeout: float
    started: float = 0.0
    waited: float = 0.0
    pause: float = _FIRST_PAUSE

    def __post_init__(self) -> None:
        self.started = self.retry.clock()

    def wait(self) -> bool:
        """Wait a little; False when no time is left.

        Raises:
            RetryCancelledError: the event of ``cancel_on`` was set.
        """
        left = self.timeout - max(self.waited, self.retry.clock() - self.started)
        if left <= 0:
            return False
        pause = min(self.pause, left)
        wait(pause, self.retry.sleep)
        self.waited += pause
        self.pause = min(self.pause * 2, _LONGEST_PAUSE)
        return True


class Merging:
    """One merge request on its way to be merged at a head that is fixed by the first read."""

    def __init__(
        self,
        op: RemoteOperation[GitLabClient],
        repo: str,
        number: int,
        *,
        method: MergeMethod,
        expected_head: str | None,
        patience: Patience,
        meaning: Callable[[Exception, Operation], GitProviderError],
        redact: Callable[[str], str],
    ) -> None:
        self._op = op
        self._repo = repo
        self._number = number
        self._method = method
        self._patience = patience
        self._meaning = meaning
        self._redact = redact
        self.head = expected_head
        self.seen: JsonReader

    def read(self) -> MergeResult | None:
        """Read the merge request; the result when it is merged at the head that was asked for.

        Raises:
            HeadMovedError: its source branch, or what was merged, is at another commit.
            NotMergeableError: it is closed.
        """
        self.seen = JsonReader(self._op.request("GET", MERGE_REQUEST, project=self._repo, iid=self._number))
        state, head = self.seen.str("state"), self.seen.str_or_none("sha")
        self.head = self.head or head
        branches = {name: self.seen.str(name) for name in ("source_branch", "target_branch")}
        self._op.note(head_sha=self.head, **branches)
        if head is not None and head != self.head:
            raise HeadMovedError("the source branch is at another commit", expected=self.head, actual=head)
        if state == "merged":
            return self.result(already_merged=True)
        if state == "closed":
            raise NotMergeableError("the merge request is closed", reason=NotMergeableReason.CLOSED)
        return None

    def result(self, *, already_merged: bool) -> MergeResult:
        """The value of a merge that is done."""
        return self.seen.build(MergeResult, sha=convert.merged_sha(self.seen), already_merged=already_merged)

    def check_method(self, project: JsonReader) -> None:
        """Refuse a method that the project's settings, or the merge request's own squash flag, contradict.

        GitLab would not refuse: it ignores ``squash: false``, and merges as the project says.

        Raises:
            NotMergeableError: METHOD.
        """
        merge_method = project.str_or_none("merge_method") or "merge"
        option = project.str_or_none("squash_option") or "default_off"
        squashes = {"always": True, "never": False}.get(option, self.seen.bool_or_none("squash") or False)
        problem = ""
        if self._method is MergeMethod.SQUASH:
            if option == "never":
                problem = "the project does not allow squashing (squash_option is never)"
        elif squashes:
            whose = "the project" if option == "always" else "the merge request's own flag"
            problem = f"{whose} demands a squash"
        elif (self._method is MergeMethod.REBASE) != (merge_method == "ff"):
            problem = f"the project's merge_method is {merge_method}"
        if problem:
            raise NotMergeableError(
                f"{problem}, which is not a {self._method.value}",
                reason=NotMergeableReason.METHOD,
                hint="GitLab merges as the project's settings say; ask for that method, or change them",
            )

    def until_computed(self) -> MergeResult | None:
        """Read until GitLab knows whether it can be merged; the result when somebody has merged it meanwhile.

        Raises:
            HeadMovedError, NotMergeableError: as :meth:`read`; PENDING when the time is up; or why it cannot be merged.
        """
        while self._is_computing():
            if not self._patience.wait():
                raise NotMergeableError(
                    f"GitLab has not computed in time whether it can be merged ({self._status()})",
                    reason=NotMergeableReason.PENDING,
                    transient=True,
                )
            if (done := self.read()) is not None:
                return done
        if (reason := _REASONS.get(self._status())) is not None:
            raise self._refusal(reason)
        return None

    def _is_computing(self) -> bool:
        return self._status() in _COMPUTING or self.seen.str("state") == "locked" or self.head is None

    def _status(self) -> str:
        return self.seen.str_or_none("detailed_merge_status") or self.seen.str_or_none("merge_status") or ""

    def _refusal(self, reason: NotMergeableReason) -> NotMergeableError:
        return NotMergeableError(self._redact(f"GitLab says {self._status()}"), reason=reason)

    def _failure(self) -> NotMergeableError | None:
        """What went wrong with a merge that was begun. Older tries leave their words too, so it is asked for last."""
        if not (said := self.seen.str_or_none("merge_error")):
            return None
        reason = NotMergeableReason.METHOD if _METHOD_ERROR.search(said) else NotMergeableReason.UNKNOWN
        return NotMergeableError(self._redact(said), reason=reason)

    def send(self, *, message: str | None, delete_source_branch: bool) -> MergeResult:
        """Send the merge, once, and read until the host says merged.

        Raises:
            NotMergeableError: accepted, and not merged in time: PENDING, with outcome UNKNOWN.
        """
        body: dict[str, Any] = {
            "sha": self.head,
            "squash": self._method is MergeMethod.SQUASH,
            # Sent either way: without it the project's own default decides.
            "should_remove_source_branch": delete_source_branch and not self._is_from_fork(),
        }
        if message is not None:
            squash = self._method is MergeMethod.SQUASH
            body["squash_commit_message" if squash else "merge_commit_message"] = message
        try:
            response = self._op.request("PUT", MERGE, project=self._repo, iid=self._number, body=body)
        except StatusError as exc:
            refused = self._meaning(exc, self._op)
            if not isinstance(refused, HeadMovedError | NotMergeableError):
                raise refused from exc
            return self._read_up(refused)
        self.seen = JsonReader(response)
        while self.seen.str_or_none("state") != "merged":
            if self.seen.str_or_none("state") == "opened" and (failed := self._failure()) is not None:
                raise failed
            self._wait_for_merge()
        return self.result(already_merged=False)

    def see_source_deleted(self, done: MergeResult) -> None:
        """Delete the source branch, where the merge did not: GitLab does it itself after one that was asked to.

        Raises:
            ConflictError: it is in another project.
            HeadMovedError: it went on after the merge.
        """
        if self._is_from_fork():
            raise ConflictError("the source branch is in another project, and stays there")
        if not done.already_merged:
            return
        branch = self.seen.str("source_branch")
        try:
            response = self._op.request("GET", BRANCH, project=self._repo, branch=branch)
            there = convert.branch(JsonReader(response)).sha
            if there != self.head:
                raise HeadMovedError("the source branch went on after the merge", expected=self.head, actual=there)
            self._op.request("DELETE", BRANCH, project=self._repo, branch=branch)
        except StatusError as exc:
            if exc.response.status != 404:
                raise

    def _is_from_fork(self) -> bool:
        source, target = self.seen.int_or_none("source_project_id"), self.seen.int_or_none("target_project_id")
        return source != target

    def _read_up(self, refused: HeadMovedError | NotMergeableError) -> MergeResult:
        """The result, where the merge request turns out to be merged at the head that was sent; else why it is not."""
        try:
            done = self.read()
        except (HeadMovedError, NotMergeableError) as known:
            error: HeadMovedError | NotMergeableError = known
        except Exception:  # a read that fails leaves the host's own word
            error = refused
        else:
            if done is not None:
                return done
            error = self._why()
        error.status, error.request_id = refused.status, refused.request_id
        raise error

    def _why(self) -> NotMergeableError:
        if (reason := _REASONS.get(self._status())) is not None:
            return self._refusal(reason)
        if self._is_computing():
            return self._refusal(NotMergeableReason.PENDING)
        return self._failure() or self._refusal(NotMergeableReason.UNKNOWN)

    def _wait_for_merge(self) -> None:
        pending = NotMergeableError(
            "GitLab accepted the merge and has not merged in time",
            reason=NotMergeableReason.PENDING,
            outcome=Outcome.UNKNOWN,
        )
        try:
            if not self._patience.wait():
                raise pending
            self.seen = JsonReader(self._op.request("GET", MERGE_REQUEST, project=self._repo, iid=self._number))
        except RetryCancelledError as cancelled:
            cancelled.outcome = Outcome.UNKNOWN
            raise
        except NotMergeableError:
            raise
        except Exception as exc:  # a read that fails says nothing about the merge
            raise pending from exc
