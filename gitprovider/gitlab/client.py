"""python-gitlab, safely configured: each request is sent once, to one origin, with a timeout, and no header is lost.

By itself python-gitlab sends any request again on 429, up to ten times, whatever its verb, and with
``retry_transient_errors`` also on 5xx and timeouts (adr/0003). All its managers send through ``Gitlab.http_request``,
which is where that is turned off.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from functools import cache
from http.cookiejar import DefaultCookiePolicy
from importlib import metadata
from typing import Any, BinaryIO

import gitlab
import requests

from gitprovider._core.urls import origin, parse_api_server
from gitprovider._remote.response import BodyError, ForeignOriginError, Request, Response, StatusError
from gitprovider.checks import check_bool, check_seconds, refuse
from gitprovider.gitlab.auth import Credential
from gitprovider.gitlab.endpoints import GRAPHQL
from gitprovider.options import Host
from gitprovider.retry import parse_retry_after

PUBLIC = "https://gitlab.com"
_READS = ("GET", "HEAD")


class OneOriginSession(requests.Session):
    """A session that sends to one origin, always with a timeout. It follows the redirects of reads, or none.

    python-gitlab's exceptions carry no headers. ``last`` is the response that they stand for. A session serves one
    running operation, so the response is that operation's own.
    """

    def __init__(self, settings: Settings, *, follow_reads: bool = False) -> None:
        super().__init__()
        self.last: requests.Response | None = None
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))  # a host's cookies are not kept
        self._origin = origin(settings.url)
        self._timeout = settings.timeout
        self._follow_reads = follow_reads
        self._obey_rate_limit = settings.obey_rate_limit

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Send ``request`` if it stays on the origin.

        Raises:
            ForeignOriginError: it would leave it, and python-gitlab's PRIVATE-TOKEN would travel with it.
        """
        self.last = None
        if origin(request.url or "") != self._origin:
            raise ForeignOriginError
        if kwargs.get("timeout") is None:
            kwargs["timeout"] = self._timeout
        response = super().send(request, **kwargs)
        if self._obey_rate_limit and response.status_code == 429:
            _make_readable(response)
        self.last = response
        return response

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Where ``resp`` redirects to; None does not follow it, and the 3xx is the response."""
        if not self._follow_reads or resp.request.method not in _READS:
            return None
        return super().get_redirect_target(resp)

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        """Keep the credential as it is. A redirect stays on the origin, and a netrc entry is never added."""


def _make_readable(response: requests.Response) -> None:
    # python-gitlab calls int() on these headers. An HTTP-date or a decimal would raise a ValueError.
    asked = parse_retry_after(response.headers.get("Retry-After"), date=response.headers.get("Date"))
    response.headers.pop("Retry-After", None)
    if asked is not None:
        response.headers["Retry-After"] = str(math.ceil(asked))
    if not response.headers.get("RateLimit-Reset", "0").isdecimal():
        del response.headers["RateLimit-Reset"]


class OnceGitlab(gitlab.Gitlab):
    """``gitlab.Gitlab`` that sends every request once. With ``obey_rate_limit`` python-gitlab repeats it on 429.

    The client decides, not the call: what a caller of a manager passes as ``obey_rate_limit``, ``max_retries`` or
    ``retry_transient_errors`` is overruled.
    """

    def __init__(self, url: str, *, obey_rate_limit: bool, **settings: Any) -> None:
        super().__init__(url, **settings)
        self._obey_rate_limit = obey_rate_limit

    def http_request(
        self,
        verb: str,
        path: str,
        query_data: dict[str, Any] | None = None,
        post_data: dict[str, Any] | bytes | BinaryIO | None = None,
        raw: bool = False,
        streamed: bool = False,
        files: dict[str, Any] | None = None,
        timeout: float | None = None,
        obey_rate_limit: bool = False,
        retry_transient_errors: bool | None = False,
        max_retries: int = 0,
        extra_headers: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> requests.Response:
        """Send one request as python-gitlab does, and repeat it only with ``obey_rate_limit``."""
        return super().http_request(
            verb,
            path,
            query_data=query_data,
            post_data=post_data,
            raw=raw,
            streamed=streamed,
            files=files,
            timeout=timeout,
            obey_rate_limit=self._obey_rate_limit,
            retry_transient_errors=False,
            max_retries=10 if self._obey_rate_limit else 0,
            extra_headers=extra_headers,
            **kwargs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What every python-gitlab client of a provider is built with. ``url`` is the host's, without a trailing slash."""

    url: str
    timeout: float
    verify: bool | str
    obey_rate_limit: bool

    @classmethod
    def checked(
        cls, url: str, *, timeout: float, verify: bool | str, obey_rate_limit: bool, allow_http: bool
    ) -> Settings:
        """The settings, checked before any request.

        Raises:
            InvalidRequestError: one of them is wrong.
        """
        if not isinstance(verify, bool | str):
            refuse("verify", f"must be True, False or the path of a CA bundle, not {type(verify).__name__}")
        if isinstance(verify, str) and not os.path.exists(verify):
            refuse("verify", "names a CA bundle that does not exist")
        return cls(
            # python-gitlab appends the API's path to the host's own.
            url=parse_api_server("url", url, allow_http=allow_http).url.removesuffix("/api/v4"),
            timeout=check_seconds("timeout", timeout, zero=False),
            verify=verify,
            obey_rate_limit=check_bool("obey_rate_limit", obey_rate_limit),
        )

    @property
    def host(self) -> Host:
        """The column of the table of options that holds for this address."""
        return "gitlab" if self.url == PUBLIC else "gitlab-self-managed"


class GitLabClient:
    """One python-gitlab client with its own session, for one running operation at a time."""

    def __init__(self, settings: Settings, credential: Credential, *, follow_reads: bool = False) -> None:
        self._graphql = f"{settings.url}{GRAPHQL}"
        self._session = OneOriginSession(settings, follow_reads=follow_reads)
        self.sdk = OnceGitlab(
            settings.url,
            obey_rate_limit=settings.obey_rate_limit,
            timeout=settings.timeout,
            ssl_verify=settings.verify,
            user_agent=_user_agent(),
            keep_base_url=True,
            session=self._session,
            **credential.keywords(),
        )

    def send(self, request: Request) -> Response:
        """Send one request, once. Its path is below ``/api/v4``, or it is GraphQL's.

        Raises:
            StatusError: any status but 2xx.
            BodyError: 2xx with a body that is not JSON.
            requests.RequestException: there was no response.
        """
        try:
            sent = self.sdk.http_request(
                request.method.lower(),
                self._graphql if request.template == GRAPHQL else request.path,
                query_data=dict(request.query or {}),
                post_data=request.body,
            )
        except gitlab.GitlabError as exc:
            if self._session.last is None:
                raise
            raise StatusError(_parsed(self._session.last, request.endpoint)) from exc
        response = _parsed(sent, request.endpoint)
        body = response.text.strip()
        if response.data is None and body not in ("", "null"):
            kind = response.headers.get("content-type", "of no stated type")
            raise BodyError(f"the response is not JSON but {kind}", response, cut=body[0] in '{["')
        return response

    def resource(self, request: Request) -> str:
        """GitLab's headers name no resource."""
        return "api"

    def has_next(self, response: Response) -> bool | None:
        """Whether another page follows; None where GitLab does not say. A link is a hint, never an address."""
        if (following := response.headers.get("x-next-page")) is not None:
            return bool(following.strip())
        link = response.headers.get("link")
        return None if link is None else 'rel="next"' in link

    def close(self) -> None:
        """Close the client's connections."""
        self._session.close()


def _parsed(response: requests.Response, endpoint: str) -> Response:
    # The body is decoded as UTF-8, which JSON is. Guessing a charset costs seconds on a large body.
    text = response.content.decode("utf-8", "replace")
    try:
        data = json.loads(text) if text.strip() else None
    except (ValueError, RecursionError):
        data = None
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Response(status=response.status_code, endpoint=endpoint, headers=headers, data=data, text=text)


@cache
def _user_agent() -> str:
    return f"gitprovider/{metadata.version('gitprovider')} {gitlab.const.USER_AGENT}"
