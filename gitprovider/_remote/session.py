"""The HTTP session of both remote providers. Whatever an SDK sends, it sends through this session."""

from __future__ import annotations

from collections.abc import Collection
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.utils import get_environ_proxies, select_proxy

from gitprovider._core.urls import is_loopback, origin
from gitprovider._remote.response import ForeignOriginError

_READS = ("GET", "HEAD")


class OneOriginSession(requests.Session):
    """A session that sends to the host's own origins, each request once, and always with a timeout.

    An origin is a scheme, a host and a port. Cookies are not kept. A request to this machine does not go through a
    proxy, because the token would leave the machine. No credential of a netrc file is added.

    Args:
        urls: the addresses of the host. Their origins are the only ones that are sent to.
        timeout: seconds, for a request that has none.
        retry: urllib3's policy. The default sends once.
        follow_reads: follow redirects of reads to the same origins. Without it, a redirect is the response.
    """

    def __init__(
        self,
        urls: Collection[str],
        *,
        timeout: float,
        retry: urllib3.Retry | None = None,
        follow_reads: bool = False,
    ) -> None:
        super().__init__()
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        self.auth = _leave_as_it_is
        self._origins = frozenset(map(origin, urls))
        self._timeout = timeout
        self._follow_reads = follow_reads
        for prefix in ("https://", "http://"):
            self.mount(prefix, HTTPAdapter(max_retries=retry or urllib3.Retry(0, read=False)))

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Send ``request`` if it stays on the host's origins.

        Raises:
            ForeignOriginError: it would leave them with the token.
        """
        url = request.url or ""
        if origin(url) not in self._origins:
            raise ForeignOriginError
        if kwargs.get("timeout") is None:
            kwargs["timeout"] = self._timeout
        if is_loopback(urlsplit(url).hostname or ""):
            kwargs["proxies"] = {}
        return super().send(request, **kwargs)

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Return where ``resp`` redirects to. None means that it is not followed."""
        if not self._follow_reads or resp.request.method not in _READS:
            return None
        return super().get_redirect_target(resp)

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        """Keep the credential, because a redirect stays on the host's origins, and drop the cookies of the redirect."""
        prepared_request.headers.pop("Cookie", None)

    def close(self) -> None:
        """Close every idle connection. ``requests`` leaves them to the garbage collector."""
        for adapter in self.adapters.values():
            if isinstance(adapter, HTTPAdapter):
                for manager in (adapter.poolmanager, *adapter.proxy_manager.values()):
                    for key in manager.pools.keys():  # noqa: SIM118 - urllib3's container cannot be iterated
                        if (pool := manager.pools.get(key)) is not None:
                            pool.close()
        super().close()


def through_proxy(url: str) -> bool:
    """Report whether the environment has a proxy for ``url`` although it is on this machine."""
    return is_loopback(urlsplit(url).hostname or "") and select_proxy(url, get_environ_proxies(url)) is not None


def _leave_as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Add no credential. A session without an ``auth`` looks for one in a netrc file."""
    return request
