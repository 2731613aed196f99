"""PyGithub, safely configured: each request sent once, to one origin, with a timeout always, and no status lost.

Only PyGithub's public API is used: ``requester.requestJson`` returns the status of every response, and the
``urllib3.Retry`` that is given as ``retry=`` sees each response before PyGithub acts on it (adr/0006).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from types import TracebackType
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit

import urllib3

from gitprovider._remote.operation import Response, BodyError, StatusError, is_loopback, normal_origin
from gitprovider.checks import check_int, refuse
from gitprovider.github.sdk import github
from gitprovider.options import Host
from gitprovider.redact import printable

PUBLIC_API = "https://api.github.com"
_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


class DivertedError(github.GithubException):
    """An response that leads elsewhere: a redirect, or a 202 to a read, which PyGithub would follow or repeat forever."""


class SendOnce(urllib3.Retry):
    """Repeats nothing, and stops at every response that PyGithub would act on by itself."""

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """Whether the response is one to stop at. A 202 to a write is an response like any other."""
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
        """Stop at a diverted response; a failed connection is urllib3's to report.

        Raises:
            DivertedError: it is one.
        """
        if response is None:
            return super().increment(method, url, response, error, _pool, _stacktrace)
        headers = {name.lower(): value for name, value in response.headers.items()}
        response.close()
        raise DivertedError(response.status, None, headers, "the response leads elsewhere")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What every PyGithub client of a provider is built with. ``url`` is the API's, without a trailing slash."""

    url: str
    timeout: int
    verify: bool | str

    @classmethod
    def checked(cls, base_url: str, *, timeout: int, verify: bool | str, allow_http: bool) -> Settings:
        """The settings, checked before any request.

        Raises:
            InvalidRequestError: one of them is wrong.
        """
        check_int("timeout", timeout, least=1, most=3600)
        if not isinstance(verify, bool | str):
            refuse("verify", f"must be True, False or the path of a CA bundle, not {type(verify).__name__}")
        if isinstance(verify, str) and not os.path.exists(verify):
            refuse("verify", "names a CA bundle that does not exist")
        return cls(url=_api_url(base_url, allow_http), timeout=timeout, verify=verify)

    @property
    def host(self) -> Host:
        """The column of the table of options that holds for this address."""
        stand_in = is_loopback(urlsplit(self.url).hostname or "") and not self.url.endswith("/api/v3")
        return "github" if self.url == PUBLIC_API or stand_in else "github-enterprise"


def _api_url(base_url: str, allow_http: bool) -> str:
    """Where the API of the host at ``base_url`` is: github.com's and ghe.com's at ``api.``, others' below /api/v3.

    An address that begins with ``api.``, and one on this machine, which is a stand-in for github.com or a tunnel, is
    taken as it is.
    https://docs.github.com/enterprise-server/rest/using-the-rest-api/getting-started-with-the-rest-api
    https://docs.github.com/enterprise-cloud@latest/admin/data-residency/network-details-for-ghecom
    """
    url = normal_origin(base_url, "base_url", allow_http=allow_http)
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in ("github.com", "api.github.com") or host.endswith(".ghe.com"):
        if parts.scheme != "https" or parts.path or parts.port is not None:
            refuse("base_url", f"must be https://{host} alone")
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

    def send(self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None) -> Response:
        """Send one request, once. ``path`` is below the API's address.

        Raises:
            StatusError: any status but 2xx, and a 202 to a read.
            BodyError: 2xx with a body that is not JSON.
            requests.RequestException: no response.
        """
        try:
            status, headers, text = self.sdk.requester.requestJson(
                method, path, parameters=dict(query or {}), headers=dict(_HEADERS), input=body
            )
        except DivertedError as exc:
            raise StatusError(Response(status=exc.status, headers=exc.headers or {})) from exc
        response, problem = _parsed(status, headers, text)
        if not 200 <= status < 300:
            self._raise(response)
        if problem:
            raise BodyError(problem, response, cut=text.lstrip()[:1] in ("{", "[", '"'))
        return response

    def _raise(self, response: Response) -> NoReturn:
        # PyGithub's own classification dies of a body that is no object, or of a message that is no string.
        data = response.data
        if not isinstance(data, dict) or not isinstance(data.get("message", ""), str):
            data = {"message": printable(response.text)}
        raise StatusError(response) from self.sdk.requester.createException(response.status, dict(response.headers), data)

    def close(self) -> None:
        """Close the client's connections."""
        self.sdk.close()


def _parsed(status: int, headers: Mapping[str, str], text: str) -> tuple[Response, str]:
    """The response with its JSON, and what is wrong with its body, if anything is."""
    data, problem = None, ""
    if text.strip():
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            problem = f"the response is not JSON but {headers.get('content-type', 'of no stated type')}"
    return Response(status=status, headers=headers, data=data, text=text), problem


@cache
def _user_agent() -> str:
    return f"gitprovider/{metadata.version('gitprovider')}"
