"""One pull request's merge: sent once with its head's sha, and a refusal read up, never repeated.

https://docs.github.com/rest/pulls/pulls#merge-a-pull-request
"""

from __future__ import annotations

from gitprovider._remote.operation import BodyError, RemoteOperation, StatusError
from gitprovider._remote.json_reader import JsonReader
from gitprovider.errors import ConflictError, GitProviderError, HeadMovedError, NotMergeableError, NotMergeableReason
from gitprovider.github import convert
from gitprovider.github import errors as translate
from gitprovider.github.client import GitHubClient
from gitprovider.github.endpoints import MERGE, OLD_REF, PULL, REF
from gitprovider.models import MergeMethod, MergeResult, PullRequest, PullRequestState
from gitprovider.retry import RetryOptions, wait

_POLL = 1.0  # seconds between two looks while GitHub computes whether a pull request can be merged


class Merge:
    """The requests of one ``merge_pull_request``."""

    def __init__(self, op: RemoteOperation[GitHubClient], repo: str, number: int, options: RetryOptions) -> None:
        self._op = op
        self._repo = repo
        self._number = number
        self._options = options
        self._pull: JsonReader | None = None

    def read(self) -> PullRequest:
        """The pull request as it is now."""
        response = self._op.request("GET", PULL, repo=self._repo, number=self._number)
        self._pull = JsonReader(response)
        return convert.pull_request(self._pull)

    def read_head(self) -> tuple[str, MergeResult | None]:
        """The head that the pull request is at now, and the merge, if it was merged at that."""
        pull = self.read()
        assert self._pull is not None
        head = convert.sha(self._pull.object("head"))
        if pull.merge_commit_sha is None:
            return head, None
        return head, MergeResult(sha=pull.merge_commit_sha, already_merged=True)

    def send(self, *, head: str, method: MergeMethod, message: str | None, timeout: float) -> MergeResult:
        """Merge at ``head``.

        Raises:
            HeadMovedError: the source branch is elsewhere.
            NotMergeableError: GitHub refuses; where its words do not say why, the pull request's state does.
        """
        body = {"sha": head, "merge_method": method.value}
        if message is not None:
            title, _, text = message.partition("\n")
            body |= {"commit_title": title, "commit_message": text.lstrip("\n")}
        try:
            fields = JsonReader(self._op.request("PUT", MERGE, repo=self._repo, number=self._number, body=body))
        except StatusError as exc:
            if exc.response.status not in (405, 409, 422):
                raise
            refused: GitProviderError = translate.refusal(exc.response, f"PUT {MERGE}")
            refused.__cause__ = exc.__cause__
        else:
            if fields.bool("merged"):
                return convert.merge_result(fields)
            said = fields.str_or_none("message") or "GitHub answered that it did not merge"
            refused = NotMergeableError(said, reason=NotMergeableReason.UNKNOWN, status=fields.response.status)
        return self._read_up(refused, head, timeout)

    def _read_up(self, refused: GitProviderError, head: str, timeout: float) -> MergeResult:
        """What a refusal means, seen from the pull request: perhaps that it had been merged."""
        unexplained = isinstance(refused, NotMergeableError) and refused.reason is NotMergeableReason.UNKNOWN
        try:
            pull = self._computed(timeout if unexplained else 0.0)
        except Exception:
            pull = None  # the refusal stands, if unexplained
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

    def _computed(self, timeout: float) -> PullRequest:
        """The pull request, once GitHub has computed whether it can be merged, or ``timeout`` seconds have passed."""
        until = self._options.clock() + timeout
        while True:
            pull = self.read()
            left = until - self._options.clock()
            if self._reason() is not NotMergeableReason.PENDING or left <= 0:
                return pull
            wait(min(_POLL, left), self._options.sleep)

    def _reason(self) -> NotMergeableReason:
        """Why the pull request that was read cannot be merged."""
        assert self._pull is not None
        pull = self._pull
        mergeable, state = pull.bool_or_none("mergeable"), pull.str_or_none("mergeable_state")
        if pull.str("state") == "closed":
            return NotMergeableReason.CLOSED
        if pull.bool_or_none("draft"):
            return NotMergeableReason.DRAFT
        if mergeable is None:
            return NotMergeableReason.PENDING
        if not mergeable or state == "dirty":
            return NotMergeableReason.CONFLICT
        return {"behind": NotMergeableReason.BEHIND, "blocked": NotMergeableReason.POLICY}.get(
            state or "", NotMergeableReason.UNKNOWN
        )

    def delete_source(self, head: str) -> None:
        """Delete the source branch if it is in this repository and still at ``head``; gone already is well too.

        The branch itself is asked where it is: a pull request's own head stays as it was merged.

        Raises:
            ConflictError: it is in another repository.
            HeadMovedError: it has moved on.
        """
        pull = self.read() if self._pull is None else convert.pull_request(self._pull)
        assert self._pull is not None
        if not convert.in_one_repo(self._pull):
            raise ConflictError("the source branch is in another repository, and stays")
        try:
            where = self._head_of(pull.source_branch)
            if where != head:
                raise HeadMovedError(
                    f"the source branch has moved on to {where}, and stays", expected=head, actual=where
                )
            response = self._op.request("DELETE", OLD_REF, repo=self._repo, branch=pull.source_branch)
        except StatusError as exc:
            if not self._is_gone(exc, pull.source_branch):
                raise
            return
        if response.status != 204:
            raise BodyError("the response does not say that the branch was deleted", response)

    def _is_gone(self, refused: StatusError, branch: str) -> bool:
        """Whether a refusal means that the branch does not exist: some repositories delete merged branches themselves.

        GitHub has been seen to say no more of it than "Validation Failed"; then the branch is looked for.
        """
        status, fact = refused.response.status, translate.fact(refused.response, self._op)
        if status == 404 or fact == "gh-ref-missing":
            return True
        if status != 422 or fact != "gh-invalid":
            return False
        try:
            self._head_of(branch)
        except StatusError as exc:
            return exc.response.status == 404
        return False

    def _head_of(self, branch: str) -> str:
        response = self._op.request("GET", REF, repo=self._repo, branch=branch)
        return convert.ref_sha(response)
