"""python-gitlab, safely configured: each request is sent once, to one origin, with a timeout, and no header is lost.

By itself python-gitlab sends any request again on 429, up to ten times, whatever its verb, and with
``retry_transient_errors`` also on 5xx and timeouts (adr/0003). All its managers send through ``Gitlab.http_request``,
which is where that is turned off.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any, BinaryIO, cast

import gitlab
import requests

from gitprovider._core.options import Host
from gitprovider._core.urls import parse_api_server
from gitprovider._remote.json_body import large_body
from gitprovider._remote.response import Request, Response, StatusError
from gitprovider._remote.session import OneOriginSession, SessionSettings, read_response
from gitprovider.checks import Verify, check_bool, check_verify
from gitprovider.gitlab.auth import Credential
from gitprovider.gitlab.endpoints import GRAPHQL
from gitprovider.retry import Limits, parse_retry_after, seconds_left

PUBLIC = "https://gitlab.com"


class GitLabSession(OneOriginSession):
    """The session of a python-gitlab client. With ``obey_rate_limit`` python-gitlab can read what a 429 asks for.

    Attributes:
        header: the header of a token that changes, which python-gitlab does not have; None for any other.
    """

    def __init__(self, settings: Settings, *, follow_reads: bool = False) -> None:
        super().__init__(settings, follow_reads=follow_reads)
        self._obey_rate_limit = settings.obey_rate_limit
        self.header: tuple[str, str] | None = None

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Send ``request`` as any session does."""
        if self.header is not None:
            request.headers[self.header[0]] = self.header[1]
        response = super().send(request, **kwargs)
        if self._obey_rate_limit and response.status_code == 429:
            _make_readable(response)
        return response


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
        """Send one request as python-gitlab does. Repeat it only with ``obey_rate_limit``, without a deadline."""
        repeat = self._obey_rate_limit and seconds_left() is None  # python-gitlab's own sleeps know no deadline
        return super().http_request(
            verb,
            path,
            query_data=query_data,
            post_data=post_data,
            raw=raw,
            streamed=streamed,
            files=files,
            timeout=timeout,
            obey_rate_limit=repeat,
            retry_transient_errors=False,
            max_retries=10 if repeat else 0,
            extra_headers=extra_headers,
            **kwargs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(SessionSettings):
    """What every python-gitlab client of a provider is built with. ``url`` is the host's."""

    obey_rate_limit: bool

    @classmethod
    def checked(
        cls,
        url: str,
        *,
        timeout: float,
        verify: Verify,
        limits: Limits = Limits(),
        obey_rate_limit: bool,
        allow_http: bool,
    ) -> Settings:
        """The settings, checked before any request.

        Raises:
            InvalidRequestError: one of them is wrong.
        """
        return cls(
            # python-gitlab appends the API's path to the host's own.
            url=parse_api_server("url", url, allow_http=allow_http).url.removesuffix("/api/v4"),
            timeout=timeout,
            verify=check_verify(verify),
            limits=limits,
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
        self._session = GitLabSession(settings, follow_reads=follow_reads)
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

    def authenticate(self, header: tuple[str, str]) -> None:
        """Send the header of a token with each request from now on."""
        self._session.header = header

    def send(self, request: Request) -> Response:
        """Send one request, once. Its path is below ``/api/v4``, or it is GraphQL's.

        Raises:
            StatusError: any status but 2xx.
            BodyError: 2xx with a body that is not JSON; or the body exceeds a limit.
            DeadlineError: a deadline passed.
            requests.RequestException: there was no response.
        """
        large = large_body(request.body)
        received, failure = self._session.exchange(
            lambda: self.sdk.http_request(
                request.method.lower(),
                self._graphql if request.template == GRAPHQL else request.path,
                query_data=dict(request.query or {}),
                post_data=cast("BinaryIO", large) or request.body,  # requests takes it
                raw=large is not None,
                extra_headers=None if large is None else {"Content-type": "application/json"},
            )
        )
        response, unusable = read_response(received, request.endpoint)
        if not 200 <= response.status < 300:
            raise StatusError(response) from failure
        if unusable is not None:
            raise unusable
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

    def size(self, response: Response) -> tuple[str, int] | None:
        """Return the number of items. GitLab leaves it out of lists of more than 10,000."""
        total = response.headers.get("x-total", "")
        return ("items", int(total)) if re.fullmatch("[0-9]{1,15}", total) else None

    def close(self) -> None:
        """Close the client's connections."""
        self._session.close()


@cache
def _user_agent() -> str:
    return f"gitprovider/{metadata.version('gitprovider')} {gitlab.const.USER_AGENT}"
