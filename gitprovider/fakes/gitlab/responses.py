"""GitLab's responses: refusals, pages, and ready-made responses of proxies in front of GitLab."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from gitprovider.errors import (
    AlreadyExistsError,
    ConflictError,
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    NotMergeableError,
    PermissionDeniedError,
)
from gitprovider.fakes.http import Response, json_response, link_header

DEFAULT_PER_PAGE = 20
MAX_PER_PAGE = 100

reply = json_response

_T = TypeVar("_T")


class Refusal(Exception):
    """A response that is not 2xx. A handler raises it.

    Attributes:
        data: the JSON body. A str or list is wrapped in ``{"message": ...}``, as GitLab does.
        fact: the id of its recorded fact.
        effect: True if GitLab refuses after it has changed something.
    """

    def __init__(
        self,
        status: int,
        data: Any,
        fact: str,
        *,
        headers: Mapping[str, str] | None = None,
        effect: bool = False,
    ) -> None:
        super().__init__(f"{status} {data}")
        self.status = status
        self.data = {"message": data} if isinstance(data, str | list) else data
        self.fact = fact
        self.headers = headers or {}
        self.effect = effect

    def response(self) -> Response:
        """The refusal as a response."""
        return reply(self.data, self.fact, status=self.status, headers=self.headers, effect=self.effect)


def missing(what: str, fact: str) -> Refusal:
    """404 with the text ``404 Branch Not Found``."""
    return Refusal(404, f"404 {what} Not Found", fact)


def record_missing(fact: str) -> Refusal:
    """404 with the text that GitLab has for other records."""
    return Refusal(404, "404 Not found", fact)


def forbidden(fact: str, reason: str = "") -> Refusal:
    """403, with or without a reason."""
    return Refusal(403, f"403 Forbidden - {reason}" if reason else "403 Forbidden", fact)


def invalid(problem: str, fact: str = "gl-param-invalid") -> Refusal:
    """400 of the parameter check. Its key is ``error``."""
    return Refusal(400, {"error": problem}, fact)


def unmodelled(what: str) -> Refusal:
    """501: GitLab has it and the fake does not. It cites no fact."""
    return Refusal(501, f"FakeGitLab does not model {what}", "")


# The refusals that errors of the forge become. A handler's own checks come first: these are for a concurrent change, or
# for a name that Git refuses. The first matching class decides.
_FORGE: tuple[tuple[type[GitProviderError], int, str, str], ...] = (
    (HeadMovedError, 400, "Could not update the branch. Please refresh and try again.", "gl-commit-moved"),
    (NotMergeableError, 405, "405 Method Not Allowed", "gl-merge-refused"),
    (AlreadyExistsError, 400, "Branch already exists", "gl-branch-exists"),
    (NotFoundError, 404, "404 Not found", "gl-not-found"),
    (PermissionDeniedError, 403, "403 Forbidden", "gl-forbidden"),
    (InvalidRequestError, 400, "400 Bad request", "gl-bad-request"),
    (ConflictError, 409, "409 Conflict", "gl-conflict"),
)


def of_forge(error: GitProviderError) -> Refusal:
    """The refusal that an error of the forge becomes."""
    for kind, status, text, fact in _FORGE:
        if isinstance(error, kind):
            return Refusal(status, text, fact)
    raise error


def page(
    items: Sequence[_T],
    fact: str,
    *,
    show: Callable[[_T], Any],
    url: str,
    params: Mapping[str, Any],
    keys: Mapping[str, Any],
    totals: bool,
) -> Response:
    """One page of ``items``, with GitLab's page headers.

    Args:
        show: builds the body of an item. It is called only for the items of the page.
        url: of the collection; the links lead to it.
        params: of the request; ``page`` and ``per_page`` are read from them.
        keys: more parameters of the links.
        totals: False omits the totals and the link to the last page, as GitLab does for large collections.
    """
    number, size = _positive(params, "page", 1), min(_positive(params, "per_page", DEFAULT_PER_PAGE), MAX_PER_PAGE)
    last = max(1, -(-len(items) // size))
    headers = {
        "X-Page": str(number),
        "X-Per-Page": str(size),
        "X-Prev-Page": str(number - 1) if 1 < number <= last else "",
        "X-Next-Page": str(number + 1) if number < last else "",
    }
    pages = {"prev": headers["X-Prev-Page"], "next": headers["X-Next-Page"], "first": "1"}
    if totals:
        headers |= {"X-Total": str(len(items)), "X-Total-Pages": str(last)}
        pages["last"] = str(last)
    headers["Link"] = link_header(url, keys, pages, per_page=size)
    return reply([show(item) for item in items[(number - 1) * size : number * size]], fact, headers=headers)


def _positive(params: Mapping[str, Any], name: str, default: int) -> int:
    text = str(params.get(name, default))
    if not text.isdecimal():
        raise invalid(f"{name} is invalid")
    if int(text) == 0:
        raise invalid(
            f"{name} has a value not allowed" if name == "per_page" else f"{name} does not have a valid value"
        )
    return int(text)


# Responses of proxies in front of GitLab, and of a GitLab that fails. They are for injected faults.

APPLICATION_LIMIT = reply(
    {"message": {"error": "This endpoint has been requested too many times. Try again later."}},
    "gl-limit-application",
    status=429,
    headers={
        "Retry-After": "60",
        # These headers belong to the other limiter, and say nothing about this refusal.
        "RateLimit-Limit": "2000",
        "RateLimit-Remaining": "1873",
        "RateLimit-Observed": "127",
        "RateLimit-Reset": "4102444800",
    },
)

RACK_ATTACK = Response(
    status=429,
    headers={
        "Content-Type": "text/plain",
        "Retry-After": "42",
        "RateLimit-Name": "throttle_authenticated_api",
        "RateLimit-Limit": "2000",
        "RateLimit-Observed": "2001",
        "RateLimit-Remaining": "0",
        "RateLimit-Reset": "1700000042",
        "RateLimit-ResetTime": "Tue, 14 Nov 2023 22:14:02 GMT",
    },
    body=b"Retry later\n",
    fact="gl-limit-rack",
)

IP_BLOCK = Response(status=403, headers={"Content-Type": "text/plain"}, body=b"Forbidden\n", fact="gl-ip-block")

FOREIGN_PAGE = Response(
    status=404,
    headers={"Content-Type": "text/html; charset=utf-8"},
    body=b"<!DOCTYPE html>\n<html><head><title>Not Found</title></head><body><h1>404</h1></body></html>\n",
    fact="gl-page-missing",
)

MALFORMED_TEXT = Response(
    status=400, headers={"Content-Type": "text/plain"}, body=b"Bad Request", fact="gl-malformed-text"
)

BAD_GATEWAY = Response(
    status=502,
    headers={"Content-Type": "text/html; charset=utf-8"},
    body=b"<!DOCTYPE html>\n<html>\n<head><title>GitLab is not responding (502)</title></head>\n"
    b"<body><h1>502</h1><h3>Whoops, GitLab is taking too much time to respond.</h3></body>\n</html>\n",
    fact="gl-bad-gateway",
)

SERVER_ERROR = reply({"message": "500 Internal Server Error"}, "gl-server-error", status=500)

SIGN_IN_PAGE = Response(
    status=200,
    headers={"Content-Type": "text/html; charset=utf-8"},
    body=b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Sign in with SSO</body></html>\n",
    fact="gl-sign-in-page",
)

REPOSITORY_NOT_CREATED = reply(
    {
        "message": {
            "base": ["Failed to create repository via gitlab-shell", "Failed to create repository"],
            "limit_reached": [],
        }
    },
    "gl-project-failed",
    status=400,
)

EMPTY_ACCEPTED = reply({}, "gl-merge-empty", status=202)

URI_TOO_LARGE = Response(
    status=414,
    headers={"Content-Type": "text/html"},
    body=b"<html><head><title>414 Request-URI Too Large</title></head></html>\n",
    fact="gl-uri-too-large",
)
