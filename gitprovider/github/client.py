"""PyGithub, safely configured: each request is sent once, to one origin, with a timeout, and every status is returned.

Only PyGithub's public API is used. ``requester.requestJson`` returns the status of every response. The
``urllib3.Retry`` passed as ``retry=`` receives each response before PyGithub acts on it (adr/0006).

The modules of this package import PyGithub from here. PyGithub's ``__init__`` adds a handler to the logger "github". A
library must leave handlers to the application, so the handler is removed. PyGithub's debug log contains whole
responses, and the response with an installation token contains that token, so the log is redacted. The level that
PyGithub sets is kept: the debug log stays off until it is turned on.
"""

from __future__ import annotations

import logging
import math
import re
import weakref
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from types import TracebackType
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit

import requests
import urllib3

from gitprovider._core.options import Host
from gitprovider._core.urls import is_loopback, parse_api_server
from gitprovider._remote.json_body import large_body
from gitprovider._remote.response import Request, Response, StatusError
from gitprovider._remote.session import OneOriginSession, SessionSettings, read_response
from gitprovider.checks import Verify, check_verify, refuse
from gitprovider.github import graphql
from gitprovider.github.endpoints import GRAPHQL
from gitprovider.redact import Redactor, printable, redact
from gitprovider.retry import Limits

_log = logging.getLogger("github")
_before = tuple(_log.handlers)
import github  # noqa: E402 - the handlers must be recorded first
from github.GithubObject import is_undefined  # noqa: E402 - as above
from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass, Requester  # noqa: E402 - as above

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
    """A retry policy that repeats nothing and stops at each response that PyGithub would act on by itself.

    PyGithub hands it to each of its connections, so it also has the session that they send through.
    """

    session: OneOriginSession

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


class _Connection:
    """A connection of PyGithub that sends through its client's session, which ``retry`` has."""

    protocol: str
    _default_port: int

    def __init__(self, host: str, port: int | None = None, *, retry: SendOnce, **settings: Any) -> None:
        # PyGithub's own __init__ makes another session: for any origin, with cookies and proxies, and for another host
        # without the timeout and the bundle of certificate authorities.
        self.host = f"[{host}]" if ":" in host else host
        self.session: requests.Session = retry.session
        self.port = port or self._default_port
        self.timeout: int | None = None  # the session's own, which may be a part of a second
        self.verify = settings.get("verify", retry.session.verify)

    def close(self) -> None:
        """Leave the session open: PyGithub makes a connection for each request. The client closes it."""


class _Http(_Connection, HTTPRequestsConnectionClass):
    protocol = "http"
    _default_port = 80


class _Https(_Connection, HTTPSRequestsConnectionClass):
    protocol = "https"
    _default_port = 443


class OneOriginRequester(Requester):
    """PyGithub's requester with the client's session. So are the requesters that PyGithub derives from it."""

    def withAuth(self, auth: github.Auth.Auth | None) -> Requester:  # noqa: N802 - PyGithub's name
        """Return a requester with another credential."""
        return type(self)(**self.kwargs | {"auth": auth})

    def withLazy(self, lazy: Any) -> Requester:  # noqa: N802 - as above
        """Return a requester whose objects are read when they are first used, or at once."""
        return type(self)(**self.kwargs | {"lazy": self.is_lazy if is_undefined(lazy) else lazy})

    def withApiVersion(self, api_version: str | None) -> Requester:  # noqa: N802 - as above
        """Return a requester for another version of the API."""
        return type(self)(**self.kwargs | {"api_version": api_version})


# This sets them on our class alone. PyGithub's own class, which others use in the same process, keeps its own.
OneOriginRequester.injectConnectionClasses(_Http, _Https)


class OneOriginGithub(github.Github):
    """PyGithub's main class with our requester."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # PyGithub accepts no requester, so the one that it made becomes one of ours.
        self.requester.__class__ = OneOriginRequester
        OneOriginRequester.__init__(self.requester, **self.requester.kwargs)

    def withLazy(self, lazy: bool) -> github.Github:  # noqa: N802 - as above
        """Return the same client whose objects are read when they are first used, or at once."""
        return type(self)(**self.requester.kwargs | {"lazy": lazy})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(SessionSettings):
    """The settings of a provider's PyGithub clients. ``url`` is the API's address."""

    @classmethod
    def checked(
        cls, base_url: str, *, timeout: float, verify: Verify, limits: Limits = Limits(), allow_http: bool
    ) -> Settings:
        """Check the settings and return them.

        Raises:
            InvalidRequestError: a setting is wrong.
        """
        return cls(url=_api_url(base_url, allow_http), timeout=timeout, verify=check_verify(verify), limits=limits)

    @property
    def urls(self) -> tuple[str, ...]:
        """The host's addresses. github.com and ghe.com have hosts of their own for uploads and for logins.

        The upload host of ghe.com is not documented by its name. It is taken to be named like that of github.com.

        https://docs.github.com/rest/releases/assets#upload-a-release-asset
        https://docs.github.com/enterprise-cloud@latest/admin/data-residency/network-details-for-ghecom
        """
        host = urlsplit(self.url).hostname or ""
        site = host.removeprefix("api.")
        if self.is_cloud:
            return self.url, f"https://uploads.{site}", f"https://{site}"
        return (self.url,)

    @property
    def is_cloud(self) -> bool:
        """Whether GitHub runs the host: github.com or ghe.com."""
        return self.url == PUBLIC_API or (urlsplit(self.url).hostname or "").endswith(".ghe.com")

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
        retry = SendOnce(total=0, read=False)
        self._session = retry.session = OneOriginSession(settings, retry=retry)
        self.requester = OneOriginRequester(
            auth=auth,
            base_url=settings.url,
            timeout=math.ceil(settings.timeout),  # PyGithub takes whole seconds; the session has the timeout itself
            verify=settings.verify,
            user_agent=_user_agent(),
            per_page=100,
            retry=retry,
            pool_size=1,
        )

    @property
    def sdk(self) -> github.Github:
        """A PyGithub client with the same settings and the same session."""
        return OneOriginGithub(**self.requester.kwargs)

    def send(self, request: Request) -> Response:
        """Send one request, once, and return its 2xx response.

        Raises:
            StatusError: the status is not 2xx, or it is a 202 to a read, or GraphQL refused with status 200.
            BodyError: the status is 2xx, but the body is not JSON; or the body exceeds a limit.
            DeadlineError: a deadline passed.
            requests.RequestException: there was no response.
        """
        large = large_body(request.body)
        given: dict[str, Any] = {"parameters": dict(request.query or {}), "headers": dict(_HEADERS)}

        path = self.requester.graphql_url if request.template == GRAPHQL else request.path

        def send() -> None:
            if large is None:
                self.requester.requestJson(request.method, path, **given, input=request.body)
                return
            given["headers"]["Content-Type"] = "application/json"
            self.requester.requestMemoryBlobAndCheck(request.method, path, **given, file_like=large)  # type: ignore[arg-type]  # requests reads it

        try:
            received, _ = self._session.exchange(send)
        except DivertedError as exc:
            raise StatusError(
                Response(
                    status=exc.status,
                    endpoint=request.endpoint,
                    path=request.path,
                    headers=exc.headers or {},
                )
            ) from exc
        response, unusable = read_response(received, request.endpoint, request.path)
        if not 200 <= response.status < 300:
            self._raise(response)
        if unusable is not None:
            raise unusable
        if request.template == GRAPHQL and (refused := graphql.refusal(response)) is not None:
            raise StatusError(refused)
        return response

    def resource(self, request: Request) -> str:
        """GitHub counts GraphQL apart from REST."""
        return "graphql" if request.template == GRAPHQL else "core"

    def has_next(self, response: Response) -> bool:
        """Report whether another page follows, by the ``Link`` header. The address in the header is never used."""
        return 'rel="next"' in response.headers.get("link", "")

    def size(self, response: Response) -> tuple[str, int] | None:
        """Return the number of pages, by the ``Link`` header of every page but the last."""
        for link in response.headers.get("link", "").split(","):
            if 'rel="last"' in link and (page := re.search(r"[?&]page=([0-9]{1,9})\b", link)):
                return "pages", int(page[1])
        return None

    def _raise(self, response: Response) -> NoReturn:
        # PyGithub's createException fails if the body is not an object or the message is not a string.
        data = response.data
        if not isinstance(data, dict) or not isinstance(data.get("message", ""), str):
            data = {"message": printable(response.text)}
        raise StatusError(response) from self.requester.createException(response.status, dict(response.headers), data)

    def close(self) -> None:
        """Close the client's connections."""
        self._session.close()


@cache
def _user_agent() -> str:
    return f"gitprovider/{metadata.version('gitprovider')}"
