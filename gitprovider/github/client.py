"""PyGithub, safely configured: each request is sent once, to one origin, with a timeout, and every status is returned.

Only PyGithub's public API is used. ``requester.requestJson`` returns the status of every response. The
``urllib3.Retry`` passed as ``retry=`` receives each response before PyGithub acts on it (adr/0006).

The modules of this package import PyGithub from here. PyGithub's ``__init__`` adds a handler to the logger "github". A
library must leave handlers to the application, so the handler is removed. PyGithub's debug log contains whole
responses, and the response with an installation token contains that token, so the log is redacted. The level that
PyGithub sets is kept: the debug log stays off until it is turned on.
"""

from __future__ import annotations

import json
import logging
import os
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from types import TracebackType
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit

import urllib3

from gitprovider._core.urls import is_loopback, parse_api_server
from gitprovider._remote.response import BodyError, Request, Response, StatusError
from gitprovider.checks import check_int, refuse
from gitprovider.options import Host
from gitprovider.redact import Redactor, printable, redact

_log = logging.getLogger("github")
_before = tuple(_log.handlers)
import github  # noqa: E402 - the handlers must be recorded first

for _handler in tuple(_log.handlers):
    if _handler not in _before:
        _log.removeHandler(_handler)

__all__ = ["PUBLIC_API", "GitHubClient", "Settings", "github", "redact_log"]

PUBLIC_API = "https://api.github.com"
_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


_redactors: weakref.WeakSet[Redactor] = weakref.WeakSet()


def redact_log(redactor: Redactor) -> None:
    """Redact PyGithub's log records with ``redactor`` too, for as long as it exists."""
    _redactors.add(redactor)


class _RedactingFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        text = redact(record.getMessage())
        for redactor in tuple(_redactors):
            text = redactor.whole(text)
        record.msg, record.args = text, ()
        return True


logging.getLogger("github.Requester").addFilter(_RedactingFilter())


class DivertedError(github.GithubException):
    """A redirect, or a 202 to a read. PyGithub would follow the redirect, and repeat the read forever."""


class SendOnce(urllib3.Retry):
    """A retry policy that repeats nothing and stops at each response that PyGithub would act on by itself."""

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """Report whether to stop at the response. A 202 to a write is an ordinary response."""
        return 300 <= status_code < 400 or (status_code == 202 and method in ("GET", "HEAD"))

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: Any = None,
        error: Exception | None = None,
        _pool: Any = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        """Raise for a response that :meth:`is_retry` stops at. urllib3 handles a failed connection.

        Raises:
            DivertedError: the response is a redirect, or a 202 to a read.
        """
        if response is None:
            return super().increment(method, url, response, error, _pool, _stacktrace)
        headers = {name.lower(): value for name, value in response.headers.items()}
        response.close()
        raise DivertedError(response.status, None, headers, "the response is a redirect or not ready")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a provider's PyGithub clients. ``url`` is the API's address without a trailing slash."""

    url: str
    timeout: int
    verify: bool | str

    @classmethod
    def checked(cls, base_url: str, *, timeout: int, verify: bool | str, allow_http: bool) -> Settings:
        """Check the settings and return them.

        Raises:
            InvalidRequestError: a setting is wrong.
        """
        check_int("timeout", timeout, least=1, most=3600)
        if not isinstance(verify, bool | str):
            refuse("verify", f"must be True, False or the path of a CA bundle, not {type(verify).__name__}")
        if isinstance(verify, str) and not os.path.exists(verify):
            refuse("verify", "is the path of a CA bundle that does not exist")
        return cls(url=_api_url(base_url, allow_http), timeout=timeout, verify=verify)

    @property
    def host(self) -> Host:
        """The entry of the table of options that applies to this address."""
        is_fake = is_loopback(urlsplit(self.url).hostname or "") and not self.url.endswith("/api/v3")
        return "github" if self.url == PUBLIC_API or is_fake else "github-enterprise"


def _api_url(base_url: str, allow_http: bool) -> str:
    """Return the API's address for ``base_url``: ``api.`` for github.com and ghe.com, ``/api/v3`` for other hosts.

    An address that begins with ``api.`` is used unchanged. So is a loopback address, such as a fake server or tunnel.
    https://docs.github.com/enterprise-server/rest/using-the-rest-api/getting-started-with-the-rest-api
    https://docs.github.com/enterprise-cloud@latest/admin/data-residency/network-details-for-ghecom
    """
    url = parse_api_server("base_url", base_url, allow_http=allow_http).url
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in ("github.com", "api.github.com") or host.endswith(".ghe.com"):
        if parts.scheme != "https" or parts.path or parts.port is not None:
            refuse("base_url", f"must be exactly https://{host}")
        return f"https://{host}" if host.startswith("api.") else f"https://api.{host}"
    if host.startswith("api.") or is_loopback(host) or parts.path.endswith("/api/v3"):
        return url
    return f"{url.removesuffix('/api')}/api/v3"


class GitHubClient:
    """One PyGithub client, for one running operation at a time."""

    def __init__(self, settings: Settings, auth: github.Auth.Auth) -> None:
        self.sdk = github.Github(
            auth=auth,
            base_url=settings.url,
            timeout=settings.timeout,
            verify=settings.verify,
            user_agent=_user_agent(),
            per_page=100,
            retry=SendOnce(total=0, read=False),
            pool_size=1,
            seconds_between_requests=None,
            seconds_between_writes=None,
        )

    def send(self, request: Request) -> Response:
        """Send one request, once, and return its 2xx response.

        Raises:
            StatusError: the status is not 2xx, or it is a 202 to a read.
            BodyError: the status is 2xx, but the body is not JSON.
            requests.RequestException: there was no response.
        """
        try:
            status, headers, text = self.sdk.requester.requestJson(
                request.method,
                request.path,
                parameters=dict(request.query or {}),
                headers=dict(_HEADERS),
                input=request.body,
            )
        except DivertedError as exc:
            raise StatusError(
                Response(
                    status=exc.status,
                    endpoint=request.endpoint,
                    path=request.path,
                    headers=exc.headers or {},
                )
            ) from exc
        response, problem = _parsed(request.endpoint, status, headers, text)
        if not 200 <= status < 300:
            self._raise(response)
        if problem:
            raise BodyError(problem, response, cut=text.lstrip()[:1] in ("{", "[", '"'))
        return response

    def resource(self, request: Request) -> str:
        """GitHub counts GraphQL apart from REST."""
        return "graphql" if request.template.endswith("/graphql") else "core"

    def has_next(self, response: Response) -> bool:
        """Report whether another page follows, by the ``Link`` header. The address in the header is never used."""
        return 'rel="next"' in response.headers.get("link", "")

    def _raise(self, response: Response) -> NoReturn:
        # PyGithub's createException fails if the body is not an object or the message is not a string.
        data = response.data
        if not isinstance(data, dict) or not isinstance(data.get("message", ""), str):
            data = {"message": printable(response.text)}
        raise StatusError(response) from self.sdk.requester.createException(
            response.status, dict(response.headers), data
        )

    def close(self) -> None:
        """Close the client's connections."""
        self.sdk.close()


def _parsed(endpoint: str, status: int, headers: Mapping[str, str], text: str) -> tuple[Response, str]:
    """Return the response with its parsed JSON, and the problem with its body, or an empty string."""
    data, problem = None, ""
    if text.strip():
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            problem = f"the response is not JSON but {headers.get('content-type', 'of no stated type')}"
    return Response(status=status, endpoint=endpoint, headers=headers, data=data, text=text), problem


@cache
def _user_agent() -> str:
    return f"gitprovider/{metadata.version('gitprovider')}"
