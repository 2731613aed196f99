"""The table that maps GitHub's refusals to errors. The first matching rule applies. Each rule cites a recorded fact.

A refusal without a rule of its own keeps GitHub's message: a 409 is a ConflictError, any other 4xx an
InvalidRequestError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

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
GET_BRANCH = f"GET {endpoints.BRANCH}"
GET_REF = f"GET {endpoints.REF}"
CREATE_REF = f"POST {endpoints.REFS}"
MOVE_REF = f"PATCH {endpoints.OLD_REF}"
DELETE_REF = f"DELETE {endpoints.OLD_REF}"
TREES = f"POST {endpoints.TREES}"
COMMITS = f"POST {endpoints.COMMITS}"
GRAPHQL = f"POST {endpoints.GRAPHQL}"
GET_COMMIT = f"GET {endpoints.COMMIT}"
CONTENTS = f"PUT {endpoints.CONTENTS}"
PULLS = f"POST {endpoints.PULLS}"
REVIEWERS = f"POST {endpoints.REVIEWERS}"
MERGE = f"PUT {endpoints.MERGE}"
GET_PROTECTION = f"GET {endpoints.PROTECTION}"
PROTECT = f"PUT {endpoints.PROTECTION}"
GET_RULES = f"GET {endpoints.RULES}"

# GitHub asks to wait at least a minute if it does not say how long.
# https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
_SECONDARY_WAIT = 60.0


def _merge(fact: str, reason: NotMergeableReason, text: str, **more: Any) -> ErrorRule:
    return ErrorRule(fact, (405, 409, 422), NotMergeableError, MERGE, text, error_kwargs={"reason": reason, **more})


# GraphQL refuses with status 200.
_FORBIDDEN = (200, 403)
_WRITES = (200, 403, 409, 422)
_DIRECT = with_hint("the branch is protected against direct commits; commit to another one and open a pull request")
_PLAN = "the owner's plan does not include this for private repositories; nothing was changed, including the visibility"
_ADMIN = with_hint("needs administration rights on the repository")
_VIOLATION = (
    r"Repository rule violations found|creations being restricted|protected (?:branch|ref)|through a pull request"
    r"|Required status check|must not contain merge commits"
)
_PULL_REQUEST_HELPS = r"protected (?:branch|ref)|through a pull request|Required status check"
_POLICY = with_hint("a policy, a quota, a hook or a setting of the host refuses it; its own words say which")
_HOOK = with_hint("a ruleset of the repository or organization forbids it; the message names the rule")

_WRONG_URL = "look at base_url=: it must name the API and not the web pages; or a proxy answers in GitHub's place"
_LIMITS = (
    ErrorRule("gh-too-many-requests", (429,), RateLimitedError),
    ErrorRule("gh-secondary-limit", (403,), RateLimitedError, header=("retry-after", ".")),
    ErrorRule("gh-limit-used-up", (403,), RateLimitedError, header=("x-ratelimit-remaining", r"0\Z")),
)
# What the application did not write: a page, an empty body, a gateway's JSON. It is no verdict, so it proves neither
# that something is absent nor that nothing was changed.
FOREIGN: tuple[ErrorRule, ...] = (
    *_LIMITS,
    ErrorRule("gh-timeout", (408,), ProviderUnavailableError, error_kwargs=UNKNOWN),
    ErrorRule(
        "gh-too-large",
        (411, 413, 414, 431),
        InvalidRequestError,
        error_kwargs=with_hint("the host or a proxy limits the size of a request"),
    ),
    ErrorRule("gh-html-404", range(400, 500), UnexpectedResponseError, error_kwargs=with_hint(_WRONG_URL, **UNKNOWN)),
)

RULES: tuple[ErrorRule, ...] = (
    # Rate limits of any endpoint.
    *_LIMITS[:2],
    ErrorRule(
        "gh-rate-limit",
        (403,),
        RateLimitedError,
        text=r"rate limit|abuse detection|temporarily blocked from content creation"
        r"|retry your request again later|wait a few minutes before you try again",
    ),
    ErrorRule("gh-too-quickly", (422,), RateLimitedError, text=r"submitted too quickly"),
    # Whatever fails while authenticating is about the credential, never about the repository.
    *(
        ErrorRule(
            "gh-installation-gone",
            range(400, 500),
            AuthenticationError,
            f"{method} {template}",
            error_kwargs=with_hint("look at the App's id, its key and its installations; it may have been uninstalled"),
        )
        for method, template in (
            ("POST", endpoints.ACCESS_TOKENS),
            ("GET", endpoints.INSTALLATION_OF_ORG),
            ("GET", endpoints.INSTALLATION_OF_USER),
        )
    ),
    # Scanners, whatever the endpoint and the status: no other branch takes the content either.
    ErrorRule(
        "gh-secret",
        _WRITES,
        PermissionDeniedError,
        text=r"secrets? (?:was |were )?detected|secret.scanning|push.protection|secret in (?:content|commit)"
        r"|cannot contain secrets",
        error_kwargs=with_hint("remove the secret from the content, or ask for a bypass of the scanner"),
    ),
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
        _FORBIDDEN,
        PermissionDeniedError,
        text=r"SAML enforcement",
        error_kwargs=with_hint("authorize the token for the organization's single sign-on"),
    ),
    ErrorRule(
        "gh-ip-allow-list",
        _FORBIDDEN,
        PermissionDeniedError,
        text=r"IP allow list",
        error_kwargs=with_hint("this machine's address must be on the IP allow list of the organization or enterprise"),
    ),
    ErrorRule(
        "gh-workflow-scope",
        _WRITES,
        PermissionDeniedError,
        text=r"without `?workflows?`? (?:scope|permission)",
        error_kwargs=with_hint("a change below .github/workflows needs the workflow scope or permission"),
    ),
    ErrorRule(
        "gh-token-permission",
        _FORBIDDEN,
        PermissionDeniedError,
        text=r"not accessible by personal access token",
        error_kwargs=with_hint(
            "the fine-grained token lacks {needed}, does not cover the repository, or is not approved by the "
            "organization"
        ),
    ),
    ErrorRule(
        "gh-app-permission",
        _FORBIDDEN,
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
        _FORBIDDEN,
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
    *(
        ErrorRule(fact, _WRITES, PermissionDeniedError, endpoint, text, error_kwargs=kwargs)
        for text, kwargs in ((_PULL_REQUEST_HELPS, _DIRECT), (_VIOLATION, _HOOK))
        for fact, endpoint in (
            ("gh-rule-violation", MOVE_REF),
            ("gh-rule-violation-contents", CONTENTS),
            ("gh-graphql-rule-violation", GRAPHQL),
        )
    ),
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
    # The commit was made a moment ago.
    ErrorRule("gh-object-missing", (422,), ProviderUnavailableError, MOVE_REF, r"Object does not exist"),
    ErrorRule(
        "gh-ref-name",
        (422,),
        InvalidRequestError,
        CREATE_REF,
        r"valid ref name|Invalid request|Validation Failed\Z",
        error_kwargs={"argument": "name"},
    ),
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
    # GraphQL, by its words. What is not a verdict in words that are known leaves the outcome unknown.
    ErrorRule(
        "gh-graphql-rate-limit",
        (200,),
        RateLimitedError,
        GRAPHQL,
        r"\ARATE_LIMIT|rate limit|submitted too quickly",
    ),
    ErrorRule(
        "gh-graphql-timeout",
        (200,),
        ProviderUnavailableError,
        GRAPHQL,
        r"Something went wrong|RESOURCE_LIMITS_EXCEEDED",
        error_kwargs=UNKNOWN,
    ),
    ErrorRule(
        "gh-graphql-schema",
        (200,),
        InvalidRequestError,
        GRAPHQL,
        r"\AField '\w{1,80}' (?:doesn't exist|doesn't accept)|\A\w{1,80} isn't a defined",
        error_kwargs={"code": "graphql-schema"},
    ),
    ErrorRule(
        "gh-graphql-stale",
        (200,),
        HeadMovedError,
        GRAPHQL,
        r"Expected branch to point to|is at [0-9a-f]{40} but expected",
    ),
    ErrorRule(
        "gh-graphql-no-branch",
        (200,),
        NotFoundError,
        GRAPHQL,
        r"Branch not found",
        error_kwargs={"code": "branch-not-found"},
    ),
    ErrorRule(
        "gh-graphql-no-file",
        (200,),
        InvalidRequestError,
        GRAPHQL,
        r"requested for deletion which does not exist",
        error_kwargs={"argument": "changes"},
    ),
    ErrorRule("gh-graphql-forbidden", (200,), PermissionDeniedError, GRAPHQL, r"\AFORBIDDEN"),
    ErrorRule("gh-graphql-not-found", (200,), NotFoundError, GRAPHQL, r"\ANOT_FOUND"),
    # open_pull_request
    ErrorRule("gh-pull-exists", (422,), AlreadyExistsError, PULLS, r"A pull request already exists"),
    ErrorRule(
        "gh-no-common-history",
        (422,),
        ConflictError,
        PULLS,
        r"no history in common",
        error_kwargs=with_hint("the branches began apart; branch from the target and bring the commits over"),
    ),
    ErrorRule(
        "gh-not-collaborator",
        (403, 422),
        PermissionDeniedError,
        PULLS,
        r"must be a collaborator",
        error_kwargs=with_hint("the credential's user must be made a collaborator of the repository"),
    ),
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
    _merge(
        "gh-merge-in-progress",
        NotMergeableReason.PENDING,
        r"merge (?:is )?already in progress|being merged",
        transient=True,
        code="in-progress",
    ),
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
    # GitHub lists the rules of a branch that does not exist, so a 404 is about the endpoint.
    ErrorRule("gh-no-rulesets", (404,), NotFoundError, GET_RULES, error_kwargs={"code": "no-rulesets"}),
    *(
        ErrorRule(
            "gh-protection-no-admin", (404,), PermissionDeniedError, endpoint, r"\ANot Found\Z", error_kwargs=_ADMIN
        )
        for endpoint in (GET_PROTECTION, PROTECT)
    ),
    # Any write: what policies, quotas, locks and plans refuse is not the fault of an argument.
    ErrorRule(
        "gh-policy",
        (409, 422),
        PermissionDeniedError,
        text=(
            r"\bpolic(?:y|ies)\b|not (?:allowed|permitted)|quota|size limit|\bexceeds\b|over .{0,40}limit|\bdisabled\b"
            r"|\bhook declined|\blocked\b|must be (?:signed|verified)|billing|suspended|rule violations"
        ),
        error_kwargs=_POLICY,
    ),
    # The body of these is this library's, so what is refused in other words is refused by a hook or a rule.
    *(
        ErrorRule("gh-hook", (422,), PermissionDeniedError, endpoint, error_kwargs=_POLICY)
        for endpoint in (CREATE_REF, MOVE_REF)
    ),
    # Any endpoint, by status only.
    _LIMITS[2],
    ErrorRule("gh-forbidden", (403,), PermissionDeniedError),
    ErrorRule("gh-legal", (402, 451), PermissionDeniedError),
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
            "it does not exist, or this credential may not see it; GitHub does not distinguish the two",
            code="not-found",
        ),
    ),
    # GitHub redirects from a moved repository to its number. Any other redirect is no word of the application.
    *(
        ErrorRule(
            fact,
            range(300, 400),
            RepoMovedError,
            header=("location", r".*/repositories/\d"),
            error_kwargs=with_hint("get_repo returns the new path; nothing was sent there"),
        )
        for fact in ("gh-moved-read", "gh-moved-write")
    ),
    ErrorRule("gh-moved", (301, 302, 303, 307, 308), RepoMovedError, error_kwargs=with_hint(_WRONG_URL, **UNKNOWN)),
    ErrorRule("gh-not-modified", range(300, 400), UnexpectedResponseError, error_kwargs=UNKNOWN),
    ErrorRule("gh-computing", (202,), ProviderUnavailableError, error_kwargs=UNKNOWN),
    ErrorRule("gh-timeout", (408,), ProviderUnavailableError, error_kwargs=UNKNOWN),
    ErrorRule("gh-server-error", range(500, 600), ProviderUnavailableError, error_kwargs=UNKNOWN),
    ErrorRule("gh-conflict", (409,), ConflictError),
    ErrorRule("gh-invalid", range(400, 500), InvalidRequestError),
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


def rules(response: Response) -> tuple[ErrorRule, ...]:
    """The table that holds for a response: by whether the application itself wrote it."""
    if not 400 <= response.status < 500:
        return RULES
    data = response.data
    if not isinstance(data, dict):
        return FOREIGN
    if response.status in (404, 410):  # absence takes more proof: a gateway has a message as well
        return RULES if "documentation_url" in data else FOREIGN
    # Some refusals have an "error" alone. Recorded: a 403 to POST …/labels in
    # https://github.com/gr2m/octokit-plugin-create-pull-request
    alone = response.status == 403 and set(data) == {"error"} and "x-github-media-type" in response.headers
    return RULES if alone or "message" in data or "errors" in data else FOREIGN


def renamed_branch(response: Response) -> tuple[str, str] | None:
    """The old and the new name, where a redirect leads from a branch to one of another name."""
    if response.endpoint != GET_BRANCH or not 300 <= response.status < 400:
        return None
    asked = response.path.rpartition("/")[2]
    there = re.search(r"/branches/([^/?#]+)\Z", response.headers.get("location", ""))
    return None if there is None or there[1] == asked else (unquote(asked), unquote(there[1]))


def denied_write(error: GitProviderError, response: Response) -> GitProviderError:
    """What a 404 to a write means after the same repository was read: the credential may not write there.

    https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api#404-not-found-for-an-existing-resource
    """
    if error.code != "not-found":
        return error
    headers = response.headers
    needed = headers.get("x-accepted-oauth-scopes") or headers.get("x-accepted-github-permissions")
    held = headers.get("x-oauth-scopes")
    hint = f"the credential lacks {needed or 'write access'}" + (
        "" if held is None else f"; it has {held or 'no scope'}"
    )
    return PermissionDeniedError(
        "GitHub hides what this credential may not write",
        status=error.status,
        request_id=error.request_id,
        hint=f"{hint}; a change below .github/workflows needs the workflow scope or permission",
    )


def refusal(response: Response) -> GitProviderError:
    """Map a response that is not 2xx to an error."""
    if (renamed := renamed_branch(response)) is not None:
        return NotFoundError(
            f"the branch {renamed[0]} was renamed to {renamed[1]}",
            status=response.status,
            request_id=response.request_id,
            hint=f"use the branch {renamed[1]}",
            code="branch-renamed",
        )
    error = map_response(rules(response), response, error_message(response) or f"HTTP {response.status}", retry_after)
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
    return (rule.fact for rule in (*FOREIGN, *RULES))
