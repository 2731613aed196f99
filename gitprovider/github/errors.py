"""What GitHub's refusals mean: one table, the first row that fits decides. Each row cites a fact of fakes/facts.jsonl.

What no row names keeps GitHub's own words: a 409 is a ConflictError, any other 4xx an InvalidRequestError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gitprovider._remote.errors import Row, with_hint
from gitprovider._remote.operation import Answer, RemoteOperation, StatusError, transport_error
from gitprovider.errors import (
    AlreadyExistsError,
    AuthenticationError,
    ConflictError,
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    RateLimitedError,
    RepoMovedError,
    UnexpectedResponseError,
)
from gitprovider.github import endpoints
from gitprovider.github.sdk import github

ORG_REPOS = f"POST {endpoints.ORG_REPOS}"
USER_REPOS = f"POST {endpoints.USER_REPOS}"
GET_REF = f"GET {endpoints.REF}"
CREATE_REF = f"POST {endpoints.REFS}"
MOVE_REF = f"PATCH {endpoints.OLD_REF}"
DELETE_REF = f"DELETE {endpoints.OLD_REF}"
TREES = f"POST {endpoints.TREES}"
COMMITS = f"POST {endpoints.COMMITS}"
GET_COMMIT = f"GET {endpoints.COMMIT}"
CONTENTS = f"PUT {endpoints.CONTENTS}"
PULLS = f"POST {endpoints.PULLS}"
REVIEWERS = f"POST {endpoints.REVIEWERS}"
MERGE = f"PUT {endpoints.MERGE}"
GET_PROTECTION = f"GET {endpoints.PROTECTION}"
PROTECT = f"PUT {endpoints.PROTECTION}"

# GitHub asks for at least a minute where it names no other wait.
# https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
_SECONDARY_WAIT = 60.0


def _merge(fact: str, reason: NotMergeableReason, text: str, **more: Any) -> Row:
    return Row(fact, (405, 409, 422), NotMergeableError, MERGE, text, known={"reason": reason, **more})


_UNKNOWN: dict[str, Any] = {"outcome": Outcome.UNKNOWN}
_WRITES = (403, 409, 422)
_DIRECT = with_hint("the branch is protected against direct commits; commit to another one and open a pull request")
_PLAN = "the owner's plan does not have this for private repositories; nothing was changed, least of all the visibility"
_ADMIN = with_hint("needs administration rights on the repository")
_RULES = (
    r"Repository rule violations found|creations being restricted|protected (?:branch|ref)|through a pull request"
    r"|Required status check|must not contain merge commits"
)
_HOOK = with_hint("a ruleset of the repository or organization forbids it; the message names the rule")

TABLE: tuple[Row, ...] = (
    # Limits, whatever the endpoint.
    Row("gh-too-many-requests", (429,), RateLimitedError),
    Row("gh-secondary-limit", (403,), RateLimitedError, header=("retry-after", ".")),
    Row(
        "gh-rate-limit",
        (403,),
        RateLimitedError,
        text=r"rate limit|abuse detection|temporarily blocked from content creation"
        r"|retry your request again later|wait a few minutes before you try again",
    ),
    Row("gh-too-quickly", (422,), RateLimitedError, text=r"submitted too quickly"),
    # Credentials, rights and plans.
    Row("gh-bad-credentials", (401,), AuthenticationError, known=with_hint("the token is missing, wrong or expired")),
    Row(
        "gh-sso",
        (403,),
        PermissionDeniedError,
        header=("x-github-sso", "required"),
        known=with_hint("authorize the token for the organization's single sign-on: {sso}"),
    ),
    Row(
        "gh-sso",
        (403,),
        PermissionDeniedError,
        text=r"SAML enforcement",
        known=with_hint("authorize the token for the organization's single sign-on"),
    ),
    Row(
        "gh-token-permission",
        (403,),
        PermissionDeniedError,
        text=r"not accessible by personal access token",
        known=with_hint(
            "the fine-grained token lacks {needed}, the repository is not among its own, or the organization has not "
            "approved it"
        ),
    ),
    Row(
        "gh-app-permission",
        (403,),
        PermissionDeniedError,
        text=r"not accessible by integration",
        known=with_hint("the App's installation lacks {needed}, or does not cover the repository"),
    ),
    Row("gh-plan", (403,), PermissionDeniedError, text=r"upgrade to GitHub|upgrade your plan", known=with_hint(_PLAN)),
    Row(
        "gh-archived",
        (403,),
        PermissionDeniedError,
        text=r"archived so is read-only",
        known=with_hint("the repository is archived; unarchive it first"),
    ),
    Row(
        "gh-blocked",
        (403, 451),
        PermissionDeniedError,
        text=r"access blocked",
        known=with_hint("GitHub has disabled access to the repository for legal reasons or a breach of its terms"),
    ),
    Row(
        "gh-admin-rights",
        (403,),
        PermissionDeniedError,
        text=r"admin rights|administration|must be an admin",
        known=_ADMIN,
    ),
    # A rule that forbids a name or a direct commit; 403, 409 and 422 alike, so before what else those may mean.
    Row("gh-rule-violation", _WRITES, PermissionDeniedError, MOVE_REF, _RULES, known=_DIRECT),
    Row("gh-rule-violation-contents", _WRITES, PermissionDeniedError, CONTENTS, _RULES, known=_DIRECT),
    Row("gh-rule-creation", _WRITES, PermissionDeniedError, CREATE_REF, _RULES, known=_HOOK),
    Row("gh-protected-deletion", _WRITES, PermissionDeniedError, DELETE_REF, _RULES, known=_HOOK),
    # create_repo
    Row("gh-name-exists", (422,), AlreadyExistsError, ORG_REPOS, r"already exists"),
    Row("gh-name-exists", (422,), AlreadyExistsError, USER_REPOS, r"already exists"),
    Row(
        "gh-visibility-plan",
        (422,),
        PermissionDeniedError,
        text=r"visibility can't be|upgrade your subscription",
        known=with_hint("the plan or a policy of the owner forbids this visibility; it was not made with another"),
    ),
    Row(
        "gh-no-such-org",
        (404,),
        NotFoundError,
        ORG_REPOS,
        known=with_hint(
            "no such organization, or it is not visible to this credential; in another user's account nothing can be "
            "created, and an App can create in organizations alone"
        ),
    ),
    # create_branch, and the ref reads
    Row("gh-ref-exists", (422,), AlreadyExistsError, CREATE_REF, r"Reference already exists"),
    Row("gh-object-missing", (422,), NotFoundError, CREATE_REF, r"Object does not exist"),
    Row(
        "gh-ref-update-failed",
        (422,),
        ConflictError,
        CREATE_REF,
        r"Reference update failed",
        known=with_hint("a branch is in the way whose name is a path prefix of this one, or the other way round"),
    ),
    *(
        Row(
            "gh-empty-repo",
            (409,),
            NotFoundError,
            endpoint,
            r"Git Repository is empty",
            known=with_hint("the repository has no commit yet; commit_files makes the first one"),
        )
        for endpoint in (CREATE_REF, GET_REF, GET_COMMIT)
    ),
    # commit_files
    Row("gh-contents-stale", (409, 422), HeadMovedError, CONTENTS, r"does not match|\"sha\" wasn't supplied"),
    Row("gh-tree-delete", (422,), InvalidRequestError, TREES, r"BadObjectState", known={"argument": "changes"}),
    Row("gh-not-fast-forward", (422,), HeadMovedError, MOVE_REF, r"not a fast.?forward"),
    Row("gh-ref-update-failed", (422,), ConflictError, MOVE_REF, r"Reference update failed"),
    *(
        Row("gh-ref-missing", (422,), NotFoundError, endpoint, r"Reference does not exist")
        for endpoint in (MOVE_REF, DELETE_REF)
    ),
    Row(
        "gh-tree-too-big",
        (422,),
        ProviderUnavailableError,
        text=r"request timed out",
        known=with_hint(
            "GitHub took too long over this many or this large files; commit them in smaller lots",
            outcome=Outcome.UNKNOWN,
        ),
    ),
    Row("gh-tree-lag", (422,), ProviderUnavailableError, COMMITS, r"Tree SHA does not exist"),
    # open_pull_request
    Row("gh-pull-exists", (422,), AlreadyExistsError, PULLS, r"A pull request already exists"),
    Row(
        "gh-no-commits-between",
        (422,),
        ConflictError,
        PULLS,
        r"No commits between",
        known=with_hint("the source branch has nothing that the target branch lacks"),
    ),
    Row(
        "gh-head-invalid",
        (422,),
        NotFoundError,
        PULLS,
        r"PullRequest\.head(?:_sha|_repo)?: (?:invalid|missing)|head .*(?:not found|does not exist)",
        known=with_hint("no such source branch; one that was made a moment ago may take a few seconds"),
    ),
    Row(
        "gh-base-invalid",
        (422,),
        NotFoundError,
        PULLS,
        r"PullRequest\.base(?:_sha)?: (?:invalid|missing)|base .*(?:not found|does not exist)",
        known=with_hint("no such target branch"),
    ),
    Row(
        "gh-no-drafts",
        (422,),
        PermissionDeniedError,
        PULLS,
        r"Draft pull requests are not supported",
        known=with_hint(_PLAN),
    ),
    Row(
        "gh-reviewer-refused",
        (422,),
        InvalidRequestError,
        REVIEWERS,
        known=with_hint("a reviewer must be a collaborator, and not the pull request's author", argument="reviewers"),
    ),
    # merge_pull_request; a list of rule violations may name the cause more closely than its first line
    Row("gh-head-modified", (405, 409, 422), HeadMovedError, MERGE, r"Head branch was modified"),
    _merge("gh-head-behind", NotMergeableReason.BEHIND, r"out of date|not up to date with the base"),
    _merge("gh-base-modified", NotMergeableReason.PENDING, r"Base branch was modified", transient=True),
    _merge("gh-merge-draft", NotMergeableReason.DRAFT, r"still a draft|is in draft"),
    _merge(
        "gh-merge-method",
        NotMergeableReason.METHOD,
        r"merges? (?:commits )?are not allowed|must not contain merge commits|can't be rebased",
    ),
    _merge(
        "gh-merge-review",
        NotMergeableReason.REVIEWS,
        r"approving review|changes have been requested|code owner|other than the last push",
    ),
    _merge("gh-merge-check", NotMergeableReason.CHECKS, r"status checks?\b.*(?:expected|failing|pending|failed)"),
    _merge(
        "gh-merge-policy",
        NotMergeableReason.POLICY,
        r"rule violations|merge queue|not authorized|conversation|signature|deployment|protected branch",
    ),
    _merge("gh-not-mergeable", NotMergeableReason.UNKNOWN, ""),
    # protect_branch: the body is ours alone, so its refusal is no fault of the caller's arguments
    Row("gh-protection-schema", (422,), UnexpectedResponseError, PROTECT, r"subschema|Invalid request"),
    # Both are asked once the branch was seen; a credential without administration rights is told 404.
    Row("gh-protection-none", (404,), NotFoundError, GET_PROTECTION, r"Branch not protected"),
    *(
        Row("gh-protection-no-admin", (404,), PermissionDeniedError, endpoint, r"\ANot Found\Z", known=_ADMIN)
        for endpoint in (GET_PROTECTION, PROTECT)
    ),
    # Whatever the endpoint: statuses alone.
    Row("gh-limit-used-up", (403,), RateLimitedError, header=("x-ratelimit-remaining", r"0\Z")),
    Row("gh-forbidden", (403,), PermissionDeniedError),
    Row("gh-legal", (451,), PermissionDeniedError),
    Row(
        "gh-html-404",
        (404, 410),
        UnexpectedResponseError,
        page=True,
        known=with_hint("this is no answer of GitHub's API; does base_url name the API, and not the web pages?"),
    ),
    Row("gh-branch-not-found", (404,), NotFoundError, text=r"Branch .*not found"),
    Row(
        "gh-not-found",
        (404, 410),
        NotFoundError,
        known=with_hint("it does not exist, or this credential may not see it; GitHub does not tell these apart"),
    ),
    Row(
        "gh-moved",
        range(300, 400),
        RepoMovedError,
        known=with_hint("get_repo follows to the new path; nothing was sent there"),
    ),
    Row("gh-computing", (202,), ProviderUnavailableError, known=_UNKNOWN),
    Row("gh-timeout", (408,), ProviderUnavailableError, known=_UNKNOWN),
    Row("gh-server-error", range(500, 600), ProviderUnavailableError, known=_UNKNOWN),
    Row("gh-conflict", (409,), ConflictError),
    Row("gh-invalid", range(400, 500), InvalidRequestError),
)


def translate(exc: Exception, op: RemoteOperation[Any]) -> GitProviderError:
    """The meaning of what a step raised. Its outcome is what is known had that been the effect step."""
    if isinstance(exc, StatusError):
        return refusal(exc.answer, f"{op.method} {op.endpoint}")
    if isinstance(exc, github.GithubException):  # from an auth of PyGithub's that asks for a token itself
        headers = {str(name).lower(): str(value) for name, value in (exc.headers or {}).items()}
        return refusal(Answer(status=int(exc.status), headers=headers, data=exc.data), "")
    known = transport_error(exc)
    if known is not None:
        return known
    return UnexpectedResponseError(f"PyGithub could not handle the answer: {type(exc).__name__}", **_UNKNOWN)


def refusal(answer: Answer, endpoint: str) -> GitProviderError:
    """The meaning of an answer that is not 2xx."""
    message = words(answer) or f"HTTP {answer.status}"
    known: dict[str, Any] = {"status": answer.status, "request_id": answer.request_id}
    row = _row(answer, endpoint, message)
    if row is None:
        return UnexpectedResponseError(message, **known, **_UNKNOWN)
    known |= row.known
    if "hint" in known:
        known["hint"] = known["hint"].format(
            sso=answer.headers.get("x-github-sso", "").partition("url=")[2] or "see its settings",
            needed=answer.headers.get("x-accepted-github-permissions") or "a permission",
        )
    error = row.error(message, **known)
    error.retry_after = _asked_wait(answer) if isinstance(error, RateLimitedError) else answer.retry_after
    return error


def fact(answer: Answer, op: RemoteOperation[Any]) -> str:
    """The id of the fact by which the refusal of the operation's last request is understood; ``""`` for none."""
    row = _row(answer, f"{op.method} {op.endpoint}", words(answer))
    return row.fact if row else ""


def _row(answer: Answer, endpoint: str, message: str) -> Row | None:
    return next((row for row in TABLE if row.fits(endpoint, answer, message)), None)


def is_retryable_read_error(error: Exception) -> bool:
    """Whether a read that failed so is worth another try: its cause may pass, and it was not the caller's doing."""
    return isinstance(error, GitProviderError) and error.retryable


def words(answer: Answer) -> str:
    """What GitHub said, whatever the shape it said it in: ``message``, ``error``, and every entry of ``errors``."""
    if not isinstance(answer.data, dict):
        return "" if re.match(r"\s*<", answer.text) else answer.text
    said = [answer.data.get("message"), answer.data.get("error")]
    errors = answer.data.get("errors")
    said += [_error_words(error) for error in (errors if isinstance(errors, list) else [errors])]
    return "; ".join(part for part in said if isinstance(part, str) and part)


def _error_words(error: Any) -> str | None:
    """``Repository.name: name already exists on this account``, from an entry of ``errors``."""
    if not isinstance(error, dict):
        return error if isinstance(error, str) else None
    where = ".".join(str(error[key]) for key in ("resource", "field") if error.get(key))
    what = error.get("message") or error.get("code") or ""
    return f"{where}: {what}" if where else str(what)


def _asked_wait(answer: Answer) -> float:
    """The seconds that a limit asks to wait: Retry-After; the primary limit's reset; a minute for a secondary one."""
    if answer.retry_after is not None:
        return answer.retry_after
    reset = answer.headers.get("x-ratelimit-reset", "")
    if answer.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal() and len(reset) < 15:
        return max(int(reset) - answer.date.timestamp(), 0.0) + 1.0
    return _SECONDARY_WAIT


def facts() -> Iterator[str]:
    """The ids of the facts that the table rests on."""
    return (row.fact for row in TABLE)
