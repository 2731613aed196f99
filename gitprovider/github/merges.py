"""Merge a pull request on GitHub with a single request pinned to the head sha.

If GitHub refuses, the pull request is read again to explain why. The merge is never repeated.
https://docs.github.com/rest/pulls/pulls#merge-a-pull-request
"""

from __future__ import annotations

from contextlib import suppress

from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import RemoteOperation
from gitprovider._remote.response import BodyError, StatusError
from gitprovider.errors import (
    ConflictError,
    GitProviderError,
    HeadMovedError,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
)
from gitprovider.github import convert
from gitprovider.github.client import GitHubClient
from gitprovider.github.endpoints import MERGE, OLD_REF, PULL, PULLS, REF
from gitprovider.models import MergeResult, PullRequest, PullRequestState
from gitprovider.mutations import MergePullRequest
from gitprovider.retry import PollDeadline, RetryOptions

_POLL_SECONDS = 1.0  # between two reads while GitHub computes whether a pull request can be merged


class MergeCall:
    """State and requests of one ``merge_pull_request`` call."""

    def __init__(self, op: RemoteOperation[GitHubClient], asked: MergePullRequest, options: RetryOptions) -> None:
        self._op = op
        self._asked = asked
        self._options = options
        self._pull: JsonReader | None = None  # the last read of the pull request

    def run(self) -> MergeResult:
        """Merge at the expected head, or at the head read just before. GitHub decides whether it can be merged."""
        op, asked = self._op, self._asked
        result = None
        if (head := asked.expected_head) is None:
            with op.before("read pull request"):
                head, result = self._read_head()
        op.note(head_sha=head)
        if result is None:
            with op.effect(asked.effect):
                result = self._send(head)
        op.done(asked.effect, result)
        if asked.delete_source_branch:
            with op.after("delete source branch"):
                self._delete_source(head)
        return result

    def _read(self) -> PullRequest:
        self._pull = self._op.read(PULL, repo=self._op.repo, number=self._asked.number)
        return convert.pull_request(self._pull)

    def _read_head(self) -> tuple[str, MergeResult | None]:
        """Return the pull request's current head, and the result of the merge if it is merged."""
        pull = self._read()
        assert self._pull is not None
        head = convert.sha(self._pull.object("head"))
        if pull.merge_commit_sha is None:
            return head, None
        return head, MergeResult(sha=pull.merge_commit_sha, already_merged=True)

    def _send(self, head: str) -> MergeResult:
        """Send the merge request.

        Raises:
            HeadMovedError: the source branch is at another commit.
            NotMergeableError: GitHub refuses. If its message does not say why, the pull request's state does.
        """
        body = {"sha": head, "merge_method": self._asked.method.value}
        if self._asked.message is not None:
            title, _, text = self._asked.message.partition("\n")
            body |= {"commit_title": title, "commit_message": text.lstrip("\n")}
        try:
            response = self._op.request("PUT", MERGE, repo=self._op.repo, number=self._asked.number, body=body)
        except StatusError as exc:
            if exc.response.status not in (405, 409, 422):
                raise self._op.refused(exc, self._read) from exc
            refused = self._op.meaning(exc)
            refused.__cause__ = exc.__cause__
        else:
            fields = JsonReader(response)
            if fields.bool("merged"):
                return convert.merge_result(fields)
            message = fields.str_or_none("message") or "GitHub returned that it did not merge"
            refused = NotMergeableError(message, reason=NotMergeableReason.UNKNOWN, status=response.status)
        return self._explain_refusal(refused, head)

    def _explain_refusal(self, refused: GitProviderError, head: str) -> MergeResult:
        """Read the pull request to explain a refusal. Return the merge if it is merged already, otherwise raise."""
        if refused.code == "in-progress":
            return self._await_merge(refused, head)
        unexplained = isinstance(refused, NotMergeableError) and refused.reason is NotMergeableReason.UNKNOWN
        try:
            pull = self._read_computed(self._asked.timeout if unexplained else 0.0)
        except Exception:
            pull = None  # the refusal is raised without an explanation
        if pull is None:
            raise refused
        if pull.head_sha != head:
            raise HeadMovedError(
                f"the source branch is at {pull.head_sha}, not at {head}",
                expected=head,
                actual=pull.head_sha,
                status=refused.status,
                request_id=refused.request_id,
            )
        if pull.state is PullRequestState.MERGED and pull.merge_commit_sha is not None:
            return MergeResult(sha=pull.merge_commit_sha, already_merged=True)
        if isinstance(refused, NotMergeableError) and unexplained:
            refused.reason = self._reason()
            refused.transient = refused.reason is NotMergeableReason.PENDING
        raise refused

    def _await_merge(self, refused: GitProviderError, head: str) -> MergeResult:
        """Read until the merge that is already running is done at ``head``, or raise when the time is up."""
        deadline = self._deadline(self._asked.timeout)
        while True:
            with suppress(StatusError, BodyError):
                pull = self._read()
                if pull.head_sha == head and pull.merge_commit_sha is not None:
                    return MergeResult(sha=pull.merge_commit_sha, already_merged=True)
            if not deadline.pause():
                raise refused

    def _deadline(self, timeout: float) -> PollDeadline:
        return PollDeadline(
            timeout, sleep=self._options.sleep, clock=self._options.clock, first=_POLL_SECONDS, longest=_POLL_SECONDS
        )

    def _read_computed(self, timeout: float) -> PullRequest:
        """Read the pull request until GitHub has computed whether it can be merged, or for ``timeout`` seconds."""
        deadline = self._deadline(timeout)
        while True:
            pull = self._read()
            if self._reason() is not NotMergeableReason.PENDING or not deadline.pause():
                return pull

    def _reason(self) -> NotMergeableReason:
        """Return why the pull request cannot be merged, by its last read."""
        assert self._pull is not None
        mergeable, state = self._pull.bool_or_none("mergeable"), self._pull.str_or_none("mergeable_state")
        if self._pull.str("state") == "closed":
            return NotMergeableReason.CLOSED
        if self._pull.bool_or_none("draft"):
            return NotMergeableReason.DRAFT
        if mergeable is None:
            return NotMergeableReason.PENDING
        if not mergeable or state == "dirty":
            return NotMergeableReason.CONFLICT
        return {"behind": NotMergeableReason.BEHIND, "blocked": NotMergeableReason.POLICY}.get(
            state or "", NotMergeableReason.UNKNOWN
        )

    def _delete_source(self, head: str) -> None:
        """Delete the source branch if it is in this repository and still at ``head``. A missing branch is a success.

        The branch itself is read, because a merged pull request keeps the head that was merged.

        Raises:
            ConflictError: the branch is in another repository.
            HeadMovedError: the branch has moved.
        """
        pull = self._read() if self._pull is None else convert.pull_request(self._pull)
        assert self._pull is not None
        if not convert.in_one_repo(self._pull):
            raise ConflictError("the source branch is in another repository and was not deleted")
        branch = pull.source_branch
        if (current := self._head_or_none(branch)) is None:
            return
        if current != head:
            raise HeadMovedError(
                f"the source branch has moved to {current} and was not deleted", expected=head, actual=current
            )
        self._refuse_targeted(branch)
        try:
            response = self._op.request("DELETE", OLD_REF, repo=self._op.repo, branch=branch)
        except StatusError as exc:
            # Some repositories delete merged branches themselves. GitHub's own word for that, or a read, proves it.
            gone = self._op.meaning(exc).code == "branch-not-found"
            if not gone and (exc.response.status not in (404, 422) or self._head_or_none(branch) is not None):
                raise
            return
        if response.status != 204:
            raise BodyError("the response does not say that the branch was deleted", response)

    def _refuse_targeted(self, branch: str) -> None:
        """Refuse to delete a branch that open pull requests target, because GitHub would close them.

        Raises:
            ConflictError: the branch has such pull requests. The message names them.
        """
        query = {"base": branch, "state": "open"}
        listed = self._op.pages(PULLS, convert.pull_request, repo=self._op.repo, query=query)
        if numbers := [pull.number for pull in listed if pull.target_branch == branch]:
            raise ConflictError(
                f"the source branch was not deleted: it is the target of the open pull requests {numbers}",
                hint="merge or close them, or give them another target branch",
            )

    def _head_or_none(self, branch: str) -> str | None:
        """Read a branch's head. Return None if GitHub itself says that there is no such branch."""
        try:
            return self._head_of(branch)
        except StatusError as exc:
            if not isinstance(self._op.meaning(exc), NotFoundError):
                raise
            return None

    def _head_of(self, branch: str) -> str:
        return convert.ref_sha(self._op.read(REF, repo=self._op.repo, branch=branch))
