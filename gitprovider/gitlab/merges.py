"""A merge on GitLab: read until mergeability is computed, sent once, and read until it is merged.

GitLab computes mergeability in the background, and refuses a merge with the same 405 for most causes. If it refuses,
the merge request is read again to explain why; the merge is never repeated.
"""

from __future__ import annotations

import re
from typing import Any

from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import RemoteOperation
from gitprovider._remote.response import Response, StatusError
from gitprovider.errors import (
    ConflictError,
    GitProviderError,
    HeadMovedError,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    RetryCancelledError,
    UnexpectedResponseError,
)
from gitprovider.gitlab import convert
from gitprovider.gitlab.client import GitLabClient
from gitprovider.gitlab.endpoints import BRANCH, COMPARE, MERGE, MERGE_REQUESTS, PROJECT
from gitprovider.gitlab.errors import RACED, refusal
from gitprovider.gitlab.refusals import check_same, is_absent, read_branch, read_merge_request, write
from gitprovider.models import Branch, MergeMethod, MergeResult
from gitprovider.mutations import MergePullRequest
from gitprovider.retry import PollDeadline, RetryOptions

# detailed_merge_status while GitLab computes. The last two are the merge_status of servers before 15.6.
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
# https://docs.gitlab.com/api/merge_requests/#merge-status ; any other value may be mergeable by now.
_REASONS = {
    "conflict": NotMergeableReason.CONFLICT,
    "broken_status": NotMergeableReason.CONFLICT,  # until 16.x
    "cannot_be_merged": NotMergeableReason.CONFLICT,
    "need_rebase": NotMergeableReason.BEHIND,
    "draft_status": NotMergeableReason.DRAFT,
    "not_open": NotMergeableReason.CLOSED,
    "not_approved": NotMergeableReason.REVIEWS,
    "requested_changes": NotMergeableReason.REVIEWS,
    "ci_must_pass": NotMergeableReason.CHECKS,
    "ci_still_running": NotMergeableReason.CHECKS,
    "external_status_checks": NotMergeableReason.CHECKS,  # until 16.x
    "status_checks_must_pass": NotMergeableReason.CHECKS,
    "security_policy_pipeline_check": NotMergeableReason.CHECKS,
    "discussions_not_resolved": NotMergeableReason.POLICY,
    "blocked_status": NotMergeableReason.POLICY,  # until 16.x
    "policies_denied": NotMergeableReason.POLICY,  # until 16.x
    "merge_request_blocked": NotMergeableReason.POLICY,
    "jira_association_missing": NotMergeableReason.POLICY,
    "security_policy_violations": NotMergeableReason.POLICY,
    "locked_paths": NotMergeableReason.POLICY,
    "locked_lfs_files": NotMergeableReason.POLICY,
    "title_regex": NotMergeableReason.POLICY,
    "title_not_matching": NotMergeableReason.POLICY,
    "merge_time": NotMergeableReason.POLICY,
    "commits_status": NotMergeableReason.UNKNOWN,
}
# What passes by itself, and not while it is waited for: a pipeline that runs, the hour from which it may be merged.
_PASSING = frozenset({"ci_still_running", "merge_time"})
# GitLab makes and keeps a merge request whose source branch is not there.
_WITHOUT_SOURCE = "commits_status"
# What GitLab writes into merge_error, besides what its storage, a hook or a rule says.
_FAILURES = (
    (r"conflict", NotMergeableReason.CONFLICT),
    (r"update your source branch|must be rebased|needs? .{0,20}rebase", NotMergeableReason.BEHIND),
    (r"squash|fast.?forward", NotMergeableReason.METHOD),
)


class MergeCall:
    """State and requests of one ``merge_pull_request`` call. The first read fixes the head where the call does not."""

    def __init__(self, op: RemoteOperation[GitLabClient], asked: MergePullRequest, retry: RetryOptions) -> None:
        self._op = op
        self._asked = asked
        self._deadline = PollDeadline(asked.timeout, sleep=retry.sleep, clock=retry.clock)
        self._head = asked.expected_head
        self._current: JsonReader
        self._target: str
        self._needing: list[int] = []  # the open merge requests that need the source branch

    def run(self) -> MergeResult:
        """Merge, unless somebody has merged it at this head."""
        op, asked = self._op, self._asked
        with op.before("read pull request"):
            done = self._read()
        if done is None:
            with op.before("read repository"):
                self._check_method(op.read(PROJECT, project=op.repo))
            with op.before("wait for mergeability"):
                done = self._wait_for_mergeability()
        if asked.delete_source_branch and not self._is_from_fork():
            with op.before("read pull requests"):
                self._needing = self._open_from_or_into(self._current.str("source_branch"))
        if done is None:
            with op.effect(asked.effect):
                done = self._send()
        op.done(asked.effect, done)
        if not done.already_merged:
            with op.after("compare"):
                self._compare()
        if asked.delete_source_branch:
            with op.after("delete source branch"):
                self._delete_source(done)
        return done

    def _get(self) -> JsonReader:
        return read_merge_request(self._op, self._asked.number)

    def _read(self) -> MergeResult | None:
        """Read the merge request; the result when it is merged at this head.

        Raises:
            HeadMovedError: its source branch, or what was merged, is at another commit.
            NotMergeableError: it is closed.
        """
        self._current = self._get()
        state, head = self._current.str("state"), self._current.str_or_none("sha")
        self._head = self._head or head
        branches = {name: self._current.str(name) for name in ("source_branch", "target_branch")}
        self._op.note(head_sha=self._head, **branches)
        self._target = branches["target_branch"]
        if head is not None and head != self._head:
            raise HeadMovedError("the source branch is at another commit", expected=self._head, actual=head)
        if state == "merged":
            return self._result(already_merged=True)
        if state == "closed":
            raise NotMergeableError("the merge request is closed", reason=NotMergeableReason.CLOSED)
        return None

    def _result(self, *, already_merged: bool) -> MergeResult:
        return self._current.build(MergeResult, sha=convert.merged_sha(self._current), already_merged=already_merged)

    def _check_method(self, project: JsonReader) -> None:
        """Refuse a method that the project's settings, or the merge request's own squash flag, contradict.

        GitLab would not refuse: it ignores ``squash: false``, and merges as the project says.

        Raises:
            NotMergeableError: METHOD.
        """
        asked = self._asked.method
        merge_method = project.str_or_none("merge_method") or "merge"
        option = project.str_or_none("squash_option") or "default_off"
        squashes = {"always": True, "never": False}.get(option, self._current.bool_or_none("squash") or False)
        problem = ""
        if asked is MergeMethod.SQUASH:
            if option == "never":
                problem = "the project does not allow squashing (squash_option is never)"
        elif squashes:
            whose = "the project" if option == "always" else "the merge request's own flag"
            problem = f"{whose} demands a squash"
        elif (asked is MergeMethod.REBASE) != (merge_method == "ff"):
            problem = f"the project's merge_method is {merge_method}"
        if problem:
            raise NotMergeableError(
                f"{problem}, which is not a {asked.value}",
                reason=NotMergeableReason.METHOD,
                hint="GitLab merges as the project's settings say; ask for that method, or change the settings",
            )

    def _wait_for_mergeability(self) -> MergeResult | None:
        """Read until GitLab has computed mergeability; the result when somebody has merged it meanwhile.

        Raises:
            HeadMovedError: as :meth:`_read`.
            NotMergeableError: it cannot be merged, or PENDING when the time is up.
        """
        while self._is_computing():
            if not self._deadline.pause():
                raise NotMergeableError(
                    f"GitLab has not computed mergeability in time ({self._status()})",
                    reason=NotMergeableReason.PENDING,
                    transient=True,
                )
            if (done := self._read()) is not None:
                return done
        if (refusal := self._known_refusal()) is not None:
            raise refusal
        return None

    def _is_computing(self) -> bool:
        status = self._status()
        if status in _COMPUTING or self._current.str("state") == "locked":
            return True
        return self._head is None and status not in _REASONS

    def _known_refusal(self) -> NotMergeableError | None:
        """Why GitLab will not merge it, where it says so; None where it may."""
        if self._current.bool_or_none("has_conflicts"):
            return self._refusal(NotMergeableReason.CONFLICT)
        reason = _REASONS.get(self._status())
        if reason is None and self._is_dated() and convert.is_draft(self._current):
            reason = NotMergeableReason.DRAFT
        return None if reason is None else self._refusal(reason)

    def _is_dated(self) -> bool:
        """Whether the server, before 15.6, gives the status that is about Git alone."""
        return self._current.str_or_none("detailed_merge_status") is None

    def _is_behind(self) -> bool:
        """Whether the target branch has commits that the source branch lacks; asked where no status tells."""
        query = {"from": self._head, "to": self._current.str("target_branch")}
        return bool(self._op.read(COMPARE, project=self._op.repo, query=query).objects("commits"))

    def _status(self) -> str:
        return self._current.str_or_none("detailed_merge_status") or self._current.str_or_none("merge_status") or ""

    def _refusal(self, reason: NotMergeableReason) -> NotMergeableError:
        status = self._status()
        hint = "the source branch may not exist, or has no commits of its own" if status == _WITHOUT_SOURCE else None
        return NotMergeableError(
            f"GitLab's merge status is {status}",
            reason=reason,
            transient=reason is NotMergeableReason.PENDING or status in _PASSING,
            hint=hint,
        )

    def _failure(self, *, attempted: bool) -> GitProviderError | None:
        """What failed in a merge that began. An earlier attempt leaves its message too, so this is asked last.

        Args:
            attempted: whether GitLab tried this merge. Then a failure of its storage may have come after the merge.
        """
        if not (message := self._current.str_or_none("merge_error")):
            return None
        reason = next((reason for words, reason in _FAILURES if re.search(words, message, re.IGNORECASE)), None)
        if reason is not None:
            return NotMergeableError(message, reason=reason)
        meant = refusal(Response(status=400, data={"message": message}))
        if isinstance(meant, ProviderUnavailableError):
            return meant if attempted else None
        policy = isinstance(meant, PermissionDeniedError | ConflictError)
        return NotMergeableError(
            message,
            reason=NotMergeableReason.POLICY if policy else NotMergeableReason.UNKNOWN,
            transient=re.search(RACED, message, re.IGNORECASE) is not None,
        )

    def _send(self) -> MergeResult:
        """Send the merge, once, and read until it is merged.

        Raises:
            NotMergeableError: PENDING with outcome UNKNOWN: accepted, and not merged in time.
        """
        asked, squash = self._asked, self._asked.method is MergeMethod.SQUASH
        body: dict[str, Any] = {
            "sha": self._head,
            "squash": squash,
            # Always sent: without it the project's default decides.
            "should_remove_source_branch": asked.delete_source_branch and not (self._needing or self._is_from_fork()),
        }
        if asked.message is not None:
            body["squash_commit_message" if squash else "merge_commit_message"] = asked.message
        try:
            response = write(
                self._op, "PUT", MERGE, there=self._get, project=self._op.repo, iid=asked.number, body=body
            )
        except StatusError as exc:
            refused = self._op.meaning(exc)
            if not isinstance(refused, HeadMovedError | NotMergeableError):
                raise
            return self._explain_refusal(refused)
        self._current = JsonReader(response)
        if "iid" in self._current:  # "{}" accepts it too
            check_same("merge request", self._current.int("iid"), asked.number)
        while self._current.str_or_none("state") != "merged":
            if self._current.str_or_none("state") == "opened" and (failed := self._failure(attempted=True)) is not None:
                raise failed
            self._wait_for_merge()
        if (head := self._current.str_or_none("sha")) not in (None, self._head):
            raise UnexpectedResponseError(
                f"GitLab says that it merged the head {head}, not {self._head}", outcome=Outcome.UNKNOWN
            )
        return self._result(already_merged=False)

    def _compare(self) -> None:
        """Compare how GitLab merged with what was asked. The settings may have changed after they were read.

        Raises:
            UnexpectedResponseError: it merged into another branch, or by another method.
        """
        check_same("target branch", self._current.str("target_branch"), self._target)
        asked, joined = self._asked.method, self._current.str_or_none("merge_commit_sha") is not None
        squashed = self._current.str_or_none("squash_commit_sha") is not None
        if asked is MergeMethod.SQUASH:
            other = self._current.bool_or_none("squash") is False
        else:
            other = squashed or ("merge_commit_sha" in self._current and joined is (asked is MergeMethod.REBASE))
        if other:
            how = f"{'with' if joined else 'without'} a merge commit and {'with' if squashed else 'without'} a squash"
            raise UnexpectedResponseError(f"GitLab merged {how}, which is not a {asked.value}")

    def _explain_refusal(self, refused: HeadMovedError | NotMergeableError) -> MergeResult:
        """Read the merge request: the result where it is merged at this head, else the reason why it is not."""
        try:
            done = self._read()
            while done is None and self._is_computing() and self._deadline.pause():  # somebody else's merge may run
                done = self._read()
        except RetryCancelledError:
            raise
        except (HeadMovedError, NotMergeableError) as found:
            error: GitProviderError = found
        except Exception:  # GitLab's own message remains
            error = refused
        else:
            if done is not None:
                return done
            try:
                error = self._reason(attempted=refused.status == 422)
            except StatusError:
                error = refused
        error.status, error.request_id = refused.status, refused.request_id
        raise error

    def _reason(self, *, attempted: bool) -> GitProviderError:
        if self._is_computing():
            return self._refusal(NotMergeableReason.PENDING)
        if (refusal := self._known_refusal()) is not None:
            return refusal
        if self._asked.method is MergeMethod.REBASE and self._is_dated() and self._is_behind():
            return self._refusal(NotMergeableReason.BEHIND)
        return self._failure(attempted=attempted) or self._refusal(NotMergeableReason.UNKNOWN)

    def _wait_for_merge(self) -> None:
        pending = NotMergeableError(
            "GitLab accepted the merge and has not merged in time",
            reason=NotMergeableReason.PENDING,
            outcome=Outcome.UNKNOWN,
        )
        try:
            if not self._deadline.pause():
                raise pending
            self._current = self._get()
        except RetryCancelledError as cancelled:
            cancelled.outcome = Outcome.UNKNOWN
            raise
        except NotMergeableError:
            raise
        except Exception as exc:  # a read that fails says nothing about the merge
            raise pending from exc

    def _delete_source(self, done: MergeResult) -> None:
        """Delete the source branch of an earlier merge. GitLab itself deletes that of a merge that was asked to.

        A read of the branch decides. GitLab deletes it in the background, and keeps a protected branch silently.

        Raises:
            ConflictError: it is in another project; other open merge requests need it, which GitLab would close; or it
                is still there when the time is up.
            HeadMovedError: it moved on after the merge.
            PermissionDeniedError: it is protected, or this credential may not delete it.
        """
        if self._is_from_fork():
            raise ConflictError("the source branch is in another project, and stays there")
        name = self._current.str("source_branch")
        if (there := self._source(name)) is None:
            return
        if self._needing:
            raise ConflictError(
                f"the source branch was not deleted: the open merge requests {self._needing} are from or into it",
                hint="merge or close them, or give them another target branch",
            )
        if done.already_merged:
            try:
                status = self._op.request("DELETE", BRANCH, project=self._op.repo, branch=name).status
                if status != 204 and self._source(name) is not None:
                    raise UnexpectedResponseError(f"GitLab returned {status}, and keeps the source branch {name!r}")
            except StatusError as exc:
                if exc.response.status != 404:
                    raise
                if self._source(name) is None:
                    return
                if not isinstance(self._op.meaning(exc), NotFoundError):
                    raise
                raise PermissionDeniedError(
                    f"GitLab does not delete the source branch {name!r}, and shows it",
                    status=404,
                    hint="the role or the token's scope is too low to delete a branch",
                ) from exc
            return
        while there is not None:
            if there.protected:
                raise PermissionDeniedError(
                    f"the source branch {name!r} is protected, and GitLab keeps it",
                    hint="a Maintainer can delete it, or take the rule away",
                )
            if not self._deadline.pause():
                raise ConflictError(f"GitLab has not deleted the source branch {name!r} in time", transient=True)
            there = self._source(name)

    def _open_from_or_into(self, branch: str) -> list[int]:
        """The numbers of the other open merge requests from or into a branch of this project."""
        found: set[int] = set()
        for side in ("source_branch", "target_branch"):
            query = {side: branch, "state": "opened"}
            for item in self._op.pages(MERGE_REQUESTS, lambda item: item, project=self._op.repo, query=query):
                ours = side == "target_branch" or item.int_or_none("source_project_id") == self._current.int_or_none(
                    "target_project_id"
                )
                if ours and item.str(side) == branch:
                    found.add(item.int("iid"))
        return sorted(found - {self._asked.number})

    def _source(self, name: str) -> Branch | None:
        """The source branch, at the merged head; None when the host says that it is gone."""
        try:
            found = read_branch(self._op, name)
        except StatusError as exc:
            if is_absent(exc, "Branch"):
                return None
            raise
        if found.sha != self._head:
            raise HeadMovedError("the source branch moved on after the merge", expected=self._head, actual=found.sha)
        return found

    def _is_from_fork(self) -> bool:
        source, target = (self._current.int_or_none(f"{side}_project_id") for side in ("source", "target"))
        return source != target
