"""What GitLab's refusals mean: two tables of rules. The first rule that matches decides, and cites a recorded fact.

``RULES`` is for what the application says, which is a JSON object with ``message``, ``error`` or ``errors``.
``FOREIGN`` is for everything else below 500: a page, an empty body, a gateway's JSON, the router. It is not a verdict.
It proves neither that something is absent nor that nothing was changed.

A refusal that no rule names keeps GitLab's own message, and its status alone decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import gitlab

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
    PermissionDeniedError,
    ProviderUnavailableError,
    RateLimitedError,
    RepoMovedError,
    UnexpectedResponseError,
)
from gitprovider.gitlab import endpoints

BRANCHES = f"POST {endpoints.BRANCHES}"
COMMITS = f"POST {endpoints.COMMITS}"
PROJECTS = f"POST {endpoints.PROJECTS}"
PROTECT = f"POST {endpoints.RULES}"
MERGE_REQUESTS = f"POST {endpoints.MERGE_REQUESTS}"
MERGE = f"PUT {endpoints.MERGE}"
NAMESPACE = f"GET {endpoints.NAMESPACE}"


class GraphQLError(Exception):
    """A GraphQL response with status 200 that holds ``errors``."""

    def __init__(self, response: Response, kind: str, message: str) -> None:
        super().__init__(message)
        self.response = response
        self.kind = kind

    @property
    def is_of_the_schema(self) -> bool:
        """Whether the server does not know a type, a field or an argument of the query: it is older than that."""
        return self.kind in _SCHEMA_KINDS or re.search(_SCHEMA_WORDS, str(self), re.IGNORECASE) is not None


# https://graphql-ruby.org/ : the codes of its static validation, which old versions leave out.
_SCHEMA_KINDS = frozenset({"UNDEFINEDFIELD", "UNDEFINEDTYPE", "ARGUMENTNOTACCEPTED", "VARIABLEREQUIRESVALIDTYPE"})
_SCHEMA_WORDS = r"isn't a (defined|valid) (input )?type|doesn't (accept argument|exist on type)|no such type"


_TAKEN = (400, 409, 422)
_REFUSED = (400, 409, 422)
_PUSH_RULE = r"does not follow the pattern|is not a member of team|push rule|prohibited by|is not a GitLab user"

# GitLab relays a failure of its storage as "4:Deadline Exceeded", alone or behind "Failed to create branch 'x': ". The
# number is a gRPC status code.
_GRPC = r"(?:\A|[:;] |\bbranch )(?:{codes}):(?=\s*[A-Za-z])"
_LOST = (
    _GRPC.format(codes="1|2|4|8|10|13|14|15")
    + r"|deadline exceeded|context canceled|GRPC::(?:Unavailable|Internal|Aborted|Unknown|Cancelled|DataLoss)"
)

# The application's own words for absence. A gateway has others, and so has the router.
_ABSENT = re.compile(r"404 (?:[A-Z][\w ]* Not Found|Not found)")
# What only a look can tell: somebody else may have moved or made the branch at the same moment.
RACED = r"could not update|please refresh|cannot lock ref|reference already exists"

REPOSITORY_OFF = "the repository is turned off in the project's settings, or this credential may not read it"
_WRONG_URL = (
    "look at url=: it lacks the path that GitLab lives under, or a proxy answers in GitLab's place or decodes %2F"
)

# What is not the application's word. Only what stands before the application by design is certain.
FOREIGN: tuple[ErrorRule, ...] = (
    ErrorRule("gl-request-timeout", (408,), ProviderUnavailableError, error_kwargs=UNKNOWN),
    ErrorRule("gl-limit-rack", (429,), RateLimitedError),
    ErrorRule("gl-malformed-text", (400,), InvalidRequestError, text=r"\ABad Request\Z"),
    ErrorRule(
        "gl-ip-block",
        (403,),
        PermissionDeniedError,
        text=r"\AForbidden\Z",
        error_kwargs=with_hint("GitLab has blocked this address for a while, after too many failed sign-ins"),
    ),
    ErrorRule(
        "gl-uri-too-large",
        (411, 413, 414, 431),
        InvalidRequestError,
        error_kwargs=with_hint("the host or a proxy limits the size of a request"),
    ),
    ErrorRule("gl-unauthorized", (401, 407), AuthenticationError, error_kwargs=with_hint(_WRONG_URL, **UNKNOWN)),
    ErrorRule(
        "gl-route-missing",
        (404, 405),
        UnexpectedResponseError,
        text=r"^(?-i:404 Not Found|405 Not Allowed)$",
        error_kwargs=with_hint(f"{_WRONG_URL}; or the server is too old", code="route-missing", **UNKNOWN),
    ),
    ErrorRule(
        "gl-page-missing", range(400, 500), UnexpectedResponseError, error_kwargs=with_hint(_WRONG_URL, **UNKNOWN)
    ),
)

RULES: tuple[ErrorRule, ...] = (
    # Any endpoint: a moved project, and what a proxy or a limiter returns.
    ErrorRule(
        "gl-moved-write",
        (405,),
        RepoMovedError,
        text=r"moved projects",
        error_kwargs=with_hint("read it to learn its new path"),
    ),
    ErrorRule(
        "gl-moved-read",
        range(300, 400),
        RepoMovedError,
        error_kwargs=with_hint(
            "the project has another path now, or the url of this provider has (http for https, a sub-path)",
            **UNKNOWN,  # GitLab redirects reads only: whoever redirects a write is not the application
        ),
    ),
    ErrorRule("gl-request-timeout", (408,), ProviderUnavailableError, error_kwargs=UNKNOWN),
    ErrorRule("gl-limit-application", (429,), RateLimitedError, text=r"requested too many times"),
    ErrorRule("gl-limit-rack", (429,), RateLimitedError),
    ErrorRule(
        "gl-storage-lost",
        range(400, 500),
        ProviderUnavailableError,
        text=_LOST,
        error_kwargs=with_hint("GitLab's storage failed or was too slow; the change may have been made", **UNKNOWN),
    ),
    # Credentials and rights.
    ErrorRule(
        "gl-token-revoked",
        (401,),
        AuthenticationError,
        text=r"invalid_token|revoked|expired",
        error_kwargs=with_hint("make a new token; the scope api is needed"),
    ),
    ErrorRule(
        "gl-merge-unauthorized",
        (401,),
        PermissionDeniedError,
        endpoint=MERGE,
        error_kwargs=with_hint(
            "GitLab returns 401 to a user who may not merge into the target branch; the token itself is good"
        ),
    ),
    ErrorRule(
        "gl-unauthorized", (401,), AuthenticationError, error_kwargs=with_hint("the token must have the scope api")
    ),
    ErrorRule(
        "gl-insufficient-scope",
        (403,),
        PermissionDeniedError,
        text=r"insufficient_scope",
        error_kwargs=with_hint("the token needs the scope api"),
    ),
    ErrorRule(
        "gl-push-denied",
        (400, 403),
        PermissionDeniedError,
        text=r"not allowed to push into this branch|only .{0,300} allowed to push|protected branch",
        endpoint=COMMITS,
        error_kwargs=with_hint(
            "the branch is protected against direct commits; commit to another one and open a pull request"
        ),
    ),
    ErrorRule(
        "gl-protected-name",
        (400, 403),
        PermissionDeniedError,
        text=r"create protected branches|protected branch",
        endpoint=BRANCHES,
        error_kwargs=with_hint("a protected branch rule covers this name, perhaps by a wildcard"),
    ),
    ErrorRule(
        "gl-forbidden",
        (403,),
        PermissionDeniedError,
        error_kwargs=with_hint(
            "the role is too low, the project is archived, or the feature is turned off in its settings"
        ),
    ),
    # create_repo
    ErrorRule(
        "gl-project-pending-deletion",
        _TAKEN,
        AlreadyExistsError,
        endpoint=PROJECTS,
        text=r"still being deleted",
        error_kwargs=with_hint("a deleted project holds the path until GitLab has removed it; try again later"),
    ),
    ErrorRule("gl-project-taken", _TAKEN, AlreadyExistsError, endpoint=PROJECTS, text=r"has already been taken"),
    ErrorRule(
        "gl-project-failed",
        (400,),
        ProviderUnavailableError,
        endpoint=PROJECTS,
        text=r"Failed to create repository",
        error_kwargs=with_hint(
            "GitLab could not make the repository on disk, and may have left the project", **UNKNOWN
        ),
    ),
    ErrorRule(
        "gl-namespace-invalid",
        (400, 403),
        PermissionDeniedError,
        endpoint=PROJECTS,
        text=r"namespace.{0,300}(is not valid|not allowed)",
        error_kwargs=with_hint("the namespace exists, and this credential may not create projects in it"),
    ),
    ErrorRule(
        "gl-visibility-restricted",
        (400,),
        PermissionDeniedError,
        endpoint=PROJECTS,
        text=r"visibility.?level",
        error_kwargs=with_hint("the instance or the parent group restricts the visibility"),
    ),
    ErrorRule(
        "gl-project-limit",
        (400, 403),
        PermissionDeniedError,
        endpoint=PROJECTS,
        text=r"project limit|limit.?reached",
        error_kwargs=with_hint("the user's limit of projects is reached"),
    ),
    # create_branch
    ErrorRule("gl-branch-exists", _TAKEN, AlreadyExistsError, endpoint=BRANCHES, text=r"already exists"),
    ErrorRule(
        "gl-branch-prefix",
        (400,),
        ConflictError,
        endpoint=BRANCHES,
        text=r"existing branch hierarchy|(directory|reference) conflict|exists; cannot create|non-empty directory",
        error_kwargs=with_hint("a branch is in the way whose name is a path prefix"),
    ),
    ErrorRule(
        "gl-branch-ref",
        (400,),
        NotFoundError,
        endpoint=BRANCHES,
        text=r"invalid reference name|ref is missing",
        error_kwargs={"code": "source-not-found"},
    ),
    # The branch is read to explain it.
    ErrorRule(
        "gl-branch-raced",
        _TAKEN,
        ConflictError,
        endpoint=BRANCHES,
        text=RACED,
        error_kwargs={"code": "raced", "transient": True, **UNKNOWN},
    ),
    # commit_files
    ErrorRule(
        "gl-commit-no-branch",
        (400,),
        NotFoundError,
        endpoint=COMMITS,
        text=r"only create or edit files when you are on a branch",
    ),
    # The branch is read to explain these two.
    ErrorRule(
        "gl-commit-moved",
        (400, 409),
        HeadMovedError,
        endpoint=COMMITS,
        text=RACED,
        error_kwargs=with_hint("the branch moved after its head was read; read it again and decide", code="raced"),
    ),
    ErrorRule(
        "gl-commit-file-changed",
        (400, 409),
        HeadMovedError,
        endpoint=COMMITS,
        text=(
            r"file with this name (already exists|doesn't exist)|has changed since you started editing"
            r"|file with the name .{0,300} already exists"
        ),
        error_kwargs=with_hint("the branch moved after its head was read; read it again and decide"),
    ),
    ErrorRule(
        "gl-commit-path",
        (400,),
        InvalidRequestError,
        endpoint=COMMITS,
        text=(
            r"directory with this name|directory traversal|invalid path|file path|base64|no files to chmod"
            r"|\b(is|are) (missing|empty|invalid)\b|valid value|^400 Bad request|can't be blank"
        ),
        error_kwargs={"argument": "changes"},
    ),
    # open_pull_request
    ErrorRule(
        "gl-mr-exists", (409,), AlreadyExistsError, endpoint=MERGE_REQUESTS, text=r"open merge request already exists"
    ),
    ErrorRule(
        "gl-mr-source-missing",
        (400, 404, 422),
        NotFoundError,
        endpoint=MERGE_REQUESTS,
        text=r"source.branch.{0,300}does not exist",
        error_kwargs={"code": "source-branch-not-found"},
    ),
    ErrorRule(
        "gl-mr-target-missing",
        (400, 404, 422),
        NotFoundError,
        endpoint=MERGE_REQUESTS,
        text=r"target.branch.{0,300}does not exist",
    ),
    # merge_pull_request: the host step reads the reason from the merge request.
    ErrorRule("gl-merge-sha", (409,), HeadMovedError, endpoint=MERGE, text=r"sha does not match"),
    ErrorRule(
        "gl-merge-refused",
        (400, 405, 406, 409, 422),
        NotMergeableError,
        endpoint=MERGE,
        error_kwargs={"reason": NotMergeableReason.UNKNOWN},
    ),
    # protect_branch: GitLab also returns 422 and 500 with the same text.
    ErrorRule("gl-protected-exists", (409, 422, 500), AlreadyExistsError, endpoint=PROTECT, text=r"already exists"),
    # Any write: what locks, rules, hooks and quotas refuse is not the fault of an argument.
    ErrorRule(
        "gl-read-only",
        _REFUSED,
        ProviderUnavailableError,
        text=r"read.only|temporarily|maintenance|try again later",
        error_kwargs=with_hint("it is so for a while: a move of the storage, or maintenance"),
    ),
    ErrorRule(
        "gl-locked",
        _REFUSED,
        ConflictError,
        text=r"\block(ed)?\b.{0,300} by|\bis locked\b",
        error_kwargs=with_hint("whoever holds the lock must release it, or the change must leave the path alone"),
    ),
    ErrorRule(
        "gl-secret",
        _REFUSED,
        PermissionDeniedError,
        text=r"secret|push blocked|leaked|credential",
        error_kwargs=with_hint("remove the secret from the change, or ask an administrator for an exclusion"),
    ),
    ErrorRule(
        "gl-quota",
        _REFUSED,
        PermissionDeniedError,
        text=r"exceed|size limit|storage limit|quota|over .{0,99}limit|too (large|big)|larger than|maximum .{0,99}size",
        error_kwargs=with_hint("a quota of the project, the group or the instance is reached; its owner can raise it"),
    ),
    ErrorRule(
        "gl-unsigned",
        _REFUSED,
        PermissionDeniedError,
        text=r"must be signed|unsigned|not verified|unverified|reject.{0,300} (signed|commit)",
        error_kwargs=with_hint(
            "a push rule of the project demands it; it can be met with Git, or be changed by a Maintainer"
        ),
    ),
    ErrorRule(
        "gl-push-rule",
        _REFUSED,
        PermissionDeniedError,
        text=_PUSH_RULE,
        error_kwargs=with_hint("a push rule of the project, the group or the instance refuses it; see which it names"),
    ),
    ErrorRule(
        "gl-hook",
        _REFUSED,
        PermissionDeniedError,
        text=(
            r"\bhook\b|GL-HOOK-ERR|\AGitLab: |\bpolic|prohibited|forbidden by|not (allowed|permitted)"
            r"|(cannot|can't|may not) push|denied|restricted|\bplan\b|licen[sc]e"
        ),
        error_kwargs=with_hint("a hook, a policy or a plan of the host refuses it; its own words say which"),
    ),
    # The codes of gRPC that are verdicts.
    *(
        ErrorRule(
            fact,
            range(400, 500),
            kind,
            text=_GRPC.format(codes=codes),
            error_kwargs=with_hint("GitLab's storage refused it"),
        )
        for fact, codes, kind in (
            ("gl-storage-invalid", "3|11", InvalidRequestError),
            ("gl-storage-missing", "5", NotFoundError),
            ("gl-storage-exists", "6", AlreadyExistsError),
            ("gl-storage-denied", "7", PermissionDeniedError),
            ("gl-storage-state", "9", ConflictError),
            ("gl-storage-unauthenticated", "16", AuthenticationError),
        )
    ),
    ErrorRule(
        "gl-branch-name-invalid",
        (400,),
        InvalidRequestError,
        endpoint=BRANCHES,
        text=r"branch name is invalid|\b(is|are) (missing|empty|invalid)\b|valid value|^400 Bad request",
        error_kwargs={"argument": "name"},
    ),
    # Free text of these two is a rule's or a hook's.
    *(
        ErrorRule(
            "gl-hook",
            (400,),
            PermissionDeniedError,
            endpoint=endpoint,
            error_kwargs=with_hint("a rule or a hook of the host refuses it; its own words say which"),
        )
        for endpoint in (BRANCHES, COMMITS)
    ),
    # The status alone decides the rest.
    ErrorRule(
        "gl-repository-off",
        (404,),
        PermissionDeniedError,
        text=r"^404 Repository Not Found$",
        error_kwargs=with_hint(REPOSITORY_OFF, code="repository-off"),
    ),
    ErrorRule(
        "gl-namespace-missing",
        (404,),
        NotFoundError,
        endpoint=NAMESPACE,
        error_kwargs=with_hint("there is no such group or user, or this credential is no member of it"),
    ),
    ErrorRule(
        "gl-project-missing",
        (404,),
        NotFoundError,
        text=r"project not found",
        error_kwargs=with_hint("there is no such project, or this credential may not see it"),
    ),
    ErrorRule("gl-not-found", (404, 410), NotFoundError),
    ErrorRule("gl-conflict", (409,), ConflictError),
    ErrorRule(
        "gl-server-error", (500, 502, 503, 504, *range(520, 531)), ProviderUnavailableError, error_kwargs=UNKNOWN
    ),
    # 501 and the others do not pass by themselves.
    ErrorRule(
        "gl-not-implemented", range(500, 600), ProviderUnavailableError, error_kwargs={**UNKNOWN, "transient": False}
    ),
    ErrorRule("gl-bad-request", range(400, 500), InvalidRequestError),
)


def translate(exc: Exception) -> GitProviderError:
    """The meaning of what a step raised. Its outcome is what is known had that been the effect step."""
    if isinstance(exc, GraphQLError):
        return _graphql(exc)
    if isinstance(exc, StatusError):
        return refusal(exc.response)
    if (error := transport_error(exc)) is not None:
        return error
    if isinstance(exc, gitlab.GitlabError):
        return _sdk(exc)
    return UnexpectedResponseError(f"python-gitlab could not handle the response: {type(exc).__name__}", **UNKNOWN)


def refusal(response: Response) -> GitProviderError:
    """The meaning of a response that is not 2xx."""
    return map_response(rules(response), response, error_message(response), retry_after)


def rules(response: Response) -> tuple[ErrorRule, ...]:
    """The table that holds for a response: by whether the application itself wrote it."""
    if not 400 <= response.status < 500:
        return RULES
    data = response.data
    said = isinstance(data, dict) and any(data.get(key) for key in ("message", "error", "errors"))
    if response.status == 404:
        said = said and _is_absence(data.get("message"))
    elif response.status == 405:
        said = said and "message" in data
    return RULES if said else FOREIGN


def _is_absence(message: Any) -> bool:
    """Whether a 404's message is GitLab's own. That of a missing branch may be a model's, by the name of the field."""
    if isinstance(message, dict):
        return not message.keys() - {"source_branch", "target_branch"}
    return (
        isinstance(message, str)
        and (_ABSENT.fullmatch(message) or re.match(_GRPC.format(codes=r"\d+"), message)) is not None
    )


def is_retryable_read_error(error: Exception, *, obey_rate_limit: bool = False) -> bool:
    """Whether a failed read is worth another attempt. With ``obey_rate_limit`` python-gitlab has repeated a 429."""
    if not isinstance(error, GitProviderError):
        return False
    return error.retryable and not (obey_rate_limit and isinstance(error, RateLimitedError))


def error_message(response: Response) -> str:
    """GitLab's message as one line, whether ``message`` is a string, a list, an object of lists, or a page."""
    lines = list(_lines(response.data)) if isinstance(response.data, dict) else []
    if lines:
        return "; ".join(dict.fromkeys(lines))
    text = response.text.strip()
    if not text:
        return f"the host returned {response.status} without a message"
    if text.startswith("<") or "html" in response.headers.get("content-type", ""):
        # A proxy's page is not GitLab's message, and may hold the text of a rule by chance.
        return f"the host returned {response.status} with a page instead of JSON"
    return text[:300]


def _lines(data: dict[str, Any]) -> Iterator[str]:
    if "message" in data:
        yield from _flat(data["message"])
    elif isinstance(data.get("error"), str) and "error_description" in data:
        yield f"{data['error']}: {data['error_description']}"
    elif "error" in data:
        yield from _flat(data["error"])
    else:
        yield from _flat(data.get("errors", ()))


def _flat(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            # Rails names a message that belongs to no field `base` or `error`.
            yield from _flat(inner, name if key in ("base", "error", "message") else f"{name}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _flat(inner, name)
    elif value is not None and str(value).strip():
        yield f"{name} {value}" if name else str(value)


def retry_after(response: Response) -> float | None:
    """The seconds that GitLab asks to wait: ``Retry-After``, or the reset of a limit that is used up.

    ``RateLimit-Reset`` (seconds since 1970, read against the response's Date) counts only when ``RateLimit-Remaining``
    is 0. When the application's own limit refuses, these headers are of another limiter, which has plenty left.
    """
    if (asked := response.retry_after) is not None:
        return asked
    reset = response.headers.get("ratelimit-reset", "")
    if response.headers.get("ratelimit-remaining") != "0" or not reset.isdecimal() or len(reset) >= 15:
        return None
    return max(int(reset) - response.date.timestamp(), 0.0)


def facts() -> Iterator[str]:
    """The ids of the facts that the rules rest on."""
    return (rule.fact for rule in (*FOREIGN, *RULES))


def _graphql(exc: GraphQLError) -> GitProviderError:
    known: dict[str, Any] = {"status": exc.response.status, "request_id": exc.response.request_id}
    message = str(exc)
    match exc.kind:
        case "":  # an untyped error is GitLab's own failure
            return ProviderUnavailableError(message, **UNKNOWN, **known)
        case "RATE_LIMITED":
            return RateLimitedError(message, retry_after=retry_after(exc.response), **known)
        case "NOT_FOUND":
            return NotFoundError(message, **known)
        case "FORBIDDEN":
            return PermissionDeniedError(message, **known)
    # A query of ours is at fault, or the server's age: never an argument of the caller's.
    return UnexpectedResponseError(message, **UNKNOWN, **known)


def _sdk(exc: gitlab.GitlabError) -> GitProviderError:
    """The meaning of python-gitlab's error where the response is not known."""
    if isinstance(exc, gitlab.RedirectError):
        return RepoMovedError("the host redirected a write", hint="read the project to learn its new path")
    if exc.response_code is None:
        return UnexpectedResponseError(str(exc), **UNKNOWN)
    body = exc.response_body or b""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body)
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    return refusal(Response(status=exc.response_code, data=data, text=text or str(exc.error_message)))
