"""The table that maps GitHub's refusals to errors. The first matching rule applies. Each rule cites a recorded fact.

A refusal without a rule of its own keeps GitHub's message: a 409 is a ConflictError, any other 4xx an
InvalidRequestError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gitprovider._remote.errors import UNKNOWN, ErrorRule, map_response, with_hint
from gitprovider._remote.failures import transport_error
from gitprovider._remote.response import Response, StatusError
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
from gitprovider.github.client import github

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

# GitHub asks to wait at least a minute if it does not say how long.
# https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
_SECONDARY_WAIT = 60.0


def _merge(fact: str, reason: NotMergeableReason, text: str, **more: Any) -> ErrorRule:
    return ErrorRule(fact, (405, 409, 422), NotMergeableError, MERGE, text, error_kwargs={"reason": reason, **more})


_WRITES = (403, 409, 422)
_DIRECT = with_hint("the branch is protected against direct commits; commit to another one and open a pull request")
_PLAN = "the owner's plan does not include this for private repositories; nothing was changed, including the visibility"
_ADMIN = with_hint("needs administration rights on the repository")
_VIOLATION = (
    r"Repository rule violations found|creations being restricted|protected (?:branch|ref)|through a pull request"
    r"|Required status check|must not contain merge commits"
)
_HOOK = with_hint("a ruleset of the repository or organization forbids it; the message names the rule")

RULES: tuple[ErrorRule, ...] = (
    # Rate limits of any endpoint.
    ErrorRule("gh-too-many-requests", (429,), RateLimitedError),
    ErrorRule("gh-secondary-limit", (403,), RateLimitedError, header=("retry-after", ".")),
    ErrorRule(
        "gh-rate-limit",
        (403,),
        RateLimitedError,
        text=r"rate limit|abuse detection|temporarily blocked from content creation"
        r"|retry your request again later|wait a few minutes before you try again",
    ),
    ErrorRule("gh-too-quickly", (422,), RateLimitedError, text=r"submitted too quickly"),
    # Credentials, rights and plans.
    ErrorRule(
        "gh-bad-credentials",
        (401,),
        AuthenticationError,
        error_kwargs=with_hint("the token is missing, wrong or expired"),
    ),
    ErrorRule(
        "gh-sso",
        (403,),
        PermissionDeniedError,
        header=("x-github-sso", "required"),
        error_kwargs=with_hint("authorize the token for the organization's single sign-on: {sso}"),
    ),
    ErrorRule(
        "gh-sso",
        (403,),
        PermissionDeniedError,
        text=r"SAML enforcement",
        error_kwargs=with_hint("authorize the token for the organization's single sign-on"),
    ),
    ErrorRule(
        "gh-token-permission",
        (403,),
        PermissionDeniedError,
        text=r"not accessible by personal access token",
        error_kwargs=with_hint(
            "the fine-grained token lacks {needed}, does not cover the repository, or is not approved by the "
            "organization"
        ),
    ),
    ErrorRule(
        "gh-app-permission",
        (403,),
        PermissionDeniedError,
        text=r"not accessible by integration",
        error_kwargs=with_hint(
            "the App's installation lacks {needed}, or does not cover the repository", code="app-permission"
        ),
    ),
    ErrorRule(
        "gh-plan",
        (403,),
        PermissionDeniedError,
        text=r"upgrade to GitHub|upgrade your plan",
        error_kwargs=with_hint(_PLAN),
    ),
    ErrorRule(
        "gh-archived",
        (403,),
        PermissionDeniedError,
        text=r"archived so is read-only",
        error_kwargs=with_hint("the repository is archived; unarchive it first"),
    ),
    ErrorRule(
        "gh-blocked",
        (403, 451),
        PermissionDeniedError,
        text=r"access blocked",
        error_kwargs=with_hint("GitHub disabled access to the repository for legal reasons or a breach of its terms"),
    ),
    ErrorRule(
        "gh-admin-rights",
        (403,),
        PermissionDeniedError,
        text=r"admin rights|administration|must be an admin",
        error_kwargs=_ADMIN,
    ),
    # A ruleset forbids a name or a direct commit. GitHub returns 403, 409 or 422, so these come before other rules for
    # those statuses.
    ErrorRule("gh-rule-violation", _WRITES, PermissionDeniedError, MOVE_REF, _VIOLATION, error_kwargs=_DIRECT),
    ErrorRule("gh-rule-violation-contents", _WRITES, PermissionDeniedError, CONTENTS, _VIOLATION, error_kwargs=_DIRECT),
    ErrorRule("gh-rule-creation", _WRITES, PermissionDeniedError, CREATE_REF, _VIOLATION, error_kwargs=_HOOK),
    ErrorRule("gh-protected-deletion", _WRITES, PermissionDeniedError, DELETE_REF, _VIOLATION, error_kwargs=_HOOK),
    # create_repo
    ErrorRule("gh-name-exists", (422,), AlreadyExistsError, ORG_REPOS, r"already exists"),
    ErrorRule("gh-name-exists", (422,), AlreadyExistsError, USER_REPOS, r"already exists"),
    ErrorRule(
        "gh-visibility-plan",
        (422,),
        PermissionDeniedError,
        text=r"visibility can't be|upgrade your subscription",
        error_kwargs=with_hint("the plan or a policy of the owner forbids this visibility; no repository was created"),
    ),
    ErrorRule(
        "gh-no-such-org",
        (404,),
        NotFoundError,
        ORG_REPOS,
        error_kwargs=with_hint(
            "the organization does not exist or is not visible to this credential; a repository cannot be created in "
            "another user's account, and an App can create repositories only in organizations"
        ),
    ),
    # create_branch, and the ref reads
    ErrorRule("gh-ref-exists", (422,), AlreadyExistsError, CREATE_REF, r"Reference already exists"),
    ErrorRule("gh-object-missing", (422,), NotFoundError, CREATE_REF, r"Object does not exist"),
    ErrorRule(
        "gh-ref-update-failed",
        (422,),
        ConflictError,
        CREATE_REF,
        r"Reference update failed",
        error_kwargs=with_hint("a branch exists whose name is a path prefix of this name, or the other way round"),
    ),
    *(
        ErrorRule(
            "gh-empty-repo",
            (409,),
            NotFoundError,
            endpoint,
            r"Git Repository is empty",
            error_kwargs=with_hint(
                "the repository has no commit yet; make the first one with commit_files", code="repository-empty"
            ),
        )
        for endpoint in (CREATE_REF, GET_REF, GET_COMMIT)
    ),
    # commit_files
    ErrorRule("gh-contents-stale", (409, 422), HeadMovedError, CONTENTS, r"does not match|\"sha\" wasn't supplied"),
    ErrorRule(
        "gh-tree-delete", (422,), InvalidRequestError, TREES, r"BadObjectState", error_kwargs={"argument": "changes"}
    ),
    ErrorRule("gh-not-fast-forward", (422,), HeadMovedError, MOVE_REF, r"not a fast.?forward"),
    ErrorRule("gh-ref-update-failed", (422,), ConflictError, MOVE_REF, r"Reference update failed"),
    *(
        ErrorRule(
            "gh-ref-missing",
            (422,),
            NotFoundError,
            endpoint,
            r"Reference does not exist",
            error_kwargs={"code": "branch-not-found"},
        )
        for endpoint in (MOVE_REF, DELETE_REF)
    ),
    ErrorRule(
        "gh-tree-too-big",
        (422,),
        ProviderUnavailableError,
        text=r"request timed out",
        error_kwargs=with_hint(
            "GitHub took too long for so many or such large files; commit them in smaller batches",
            outcome=Outcome.UNKNOWN,
        ),
    ),
    ErrorRule("gh-tree-lag", (422,), ProviderUnavailableError, COMMITS, r"Tree SHA does not exist"),
    # open_pull_request
    ErrorRule("gh-pull-exists", (422,), AlreadyExistsError, PULLS, r"A pull request already exists"),
    ErrorRule(
        "gh-no-commits-between",
        (422,),
        ConflictError,
        PULLS,
        r"No commits between",
        error_kwargs=with_hint("the source branch has no commits that the target branch lacks"),
    ),
    ErrorRule(
        "gh-head-invalid",
        (422,),
        NotFoundError,
        PULLS,
        r"PullRequest\.head(?:_sha|_repo)?: (?:invalid|missing)|head .{0,300}(?:not found|does not exist)",
        error_kwargs=with_hint("no such source branch; a new branch may need a few seconds to become visible"),
    ),
    ErrorRule(
        "gh-base-invalid",
        (422,),
        NotFoundError,
        PULLS,
        r"PullRequest\.base(?:_sha)?: (?:invalid|missing)|base .{0,300}(?:not found|does not exist)",
        error_kwargs=with_hint("no such target branch"),
    ),
    ErrorRule(
        "gh-no-drafts",
        (422,),
        PermissionDeniedError,
        PULLS,
        r"Draft pull requests are not supported",
        error_kwargs=with_hint(_PLAN),
    ),
    ErrorRule(
        "gh-reviewer-refused",
        (422,),
        InvalidRequestError,
        REVIEWERS,
        error_kwargs=with_hint(
            "a reviewer must be a collaborator and not the pull request's author", argument="reviewers"
        ),
    ),
    # merge_pull_request; the entries of a list of rule violations may be more specific than its first line
    ErrorRule("gh-head-modified", (405, 409, 422), HeadMovedError, MERGE, r"Head branch was modified"),
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
    _merge("gh-merge-check", NotMergeableReason.CHECKS, r"status checks?\b.{0,300}(?:expected|failing|pending|failed)"),
    _merge(
        "gh-merge-policy",
        NotMergeableReason.POLICY,
        r"rule violations|merge queue|not authorized|conversation|signature|deployment|protected branch",
    ),
    _merge("gh-not-mergeable", NotMergeableReason.UNKNOWN, ""),
    # protect_branch: this library builds the body, so a refused body is not the fault of the caller's arguments
    ErrorRule("gh-protection-schema", (422,), UnexpectedResponseError, PROTECT, r"subschema|Invalid request"),
    # Both requests come after the branch was read. GitHub returns 404 to a credential without administration rights.
    ErrorRule(
        "gh-protection-none",
        (404,),
        NotFoundError,
        GET_PROTECTION,
        r"Branch not protected",
        error_kwargs={"code": "not-protected"},
    ),
    *(
        ErrorRule(
            "gh-protection-no-admin", (404,), PermissionDeniedError, endpoint, r"\ANot Found\Z", error_kwargs=_ADMIN
        )
        for endpoint in (GET_PROTECTION, PROTECT)
    ),
    # Any endpoint, by status only.
    ErrorRule("gh-limit-used-up", (403,), RateLimitedError, header=("x-ratelimit-remaining", r"0\Z")),
    ErrorRule("gh-forbidden", (403,), PermissionDeniedError),
    ErrorRule("gh-legal", (451,), PermissionDeniedError),
    ErrorRule(
        "gh-html-404",
        (404, 410),
        UnexpectedResponseError,
        non_json=True,
        error_kwargs=with_hint(
            "the response is not from GitHub's API; check that base_url is the API's address and not the web site's"
        ),
    ),
    ErrorRule(
        "gh-branch-not-found",
        (404,),
        NotFoundError,
        text=r"Branch .{0,300}not found",
        error_kwargs={"code": "branch-not-found"},
    ),
    ErrorRule(
        "gh-not-found",
        (404, 410),
        NotFoundError,
        error_kwargs=with_hint(
            "it does not exist, or this credential may not see it; GitHub does not distinguish the two"
        ),
    ),
    ErrorRule(
        "gh-moved",
        range(300, 400),
        RepoMovedError,
        error_kwargs=with_hint("get_repo returns the new path; nothing was sent there"),
    ),
    ErrorRule("gh-computing", (202,), ProviderUnavailableError, error_kwargs=UNKNOWN),
    ErrorRule("gh-timeout", (408,), ProviderUnavailableError, error_kwargs=UNKNOWN),
    ErrorRule("gh-server-error", range(500, 600), ProviderUnavailableError, error_kwargs=UNKNOWN),
    ErrorRule("gh-conflict", (409,), ConflictError),
    ErrorRule("gh-invalid", range(400, 500), InvalidRequestError, error_kwargs={"code": "unexplained"}),
)


def translate(exc: Exception) -> GitProviderError:
    """Map an exception of a step to an error. The error's outcome assumes that this was the effect step."""
    if isinstance(exc, StatusError):
        return refusal(exc.response)
    if isinstance(exc, github.GithubException):  # from a PyGithub auth that requests a token itself
        headers = {str(name).lower(): str(value) for name, value in (exc.headers or {}).items()}
        return refusal(Response(status=int(exc.status), headers=headers, data=exc.data))
    if (error := transport_error(exc)) is not None:
        return error
    return UnexpectedResponseError(f"PyGithub could not handle the response: {type(exc).__name__}", **UNKNOWN)


def refusal(response: Response) -> GitProviderError:
    """Map a response that is not 2xx to an error."""
    error = map_response(RULES, response, error_message(response) or f"HTTP {response.status}", retry_after)
    if not isinstance(error, RateLimitedError):
        error.retry_after = response.retry_after
    elif error.retry_after is None:
        error.retry_after = _SECONDARY_WAIT
    if error.hint is not None:
        error.hint = error.hint.format(
            sso=response.headers.get("x-github-sso", "").partition("url=")[2] or "see its settings",
            needed=response.headers.get("x-accepted-github-permissions") or "a permission",
        )
    return error


def is_retryable_read_error(error: Exception) -> bool:
    """Report whether a failed read is worth another attempt: its cause is transient."""
    return isinstance(error, GitProviderError) and error.retryable


def error_message(response: Response) -> str:
    """Return GitHub's message, which is built from ``message``, ``error`` and every entry of ``errors``."""
    if not isinstance(response.data, dict):
        return "" if re.match(r"\s*<", response.text) else response.text
    parts = [response.data.get("message"), response.data.get("error")]
    errors = response.data.get("errors")
    parts += [_entry_message(error) for error in (errors if isinstance(errors, list) else [errors])]
    return "; ".join(part for part in parts if isinstance(part, str) and part)


def _entry_message(error: Any) -> str | None:
    """Return the text of an entry of ``errors``, such as ``Repository.name: name already exists on this account``."""
    if not isinstance(error, dict):
        return error if isinstance(error, str) else None
    where = ".".join(str(error[key]) for key in ("resource", "field") if error.get(key))
    what = error.get("message") or error.get("code") or ""
    return f"{where}: {what}" if where else str(what)


def retry_after(response: Response) -> float | None:
    """Return the seconds that GitHub asks to wait, by ``Retry-After`` or by the reset time of an exhausted limit."""
    if response.retry_after is not None:
        return response.retry_after
    reset = response.headers.get("x-ratelimit-reset", "")
    if response.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal() and len(reset) < 15:
        return max(int(reset) - response.date.timestamp(), 0.0) + 1.0
    return None


def facts() -> Iterator[str]:
    """Return the ids of the facts that the rules cite."""
    return (rule.fact for rule in RULES)
