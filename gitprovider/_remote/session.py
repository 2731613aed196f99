"""The HTTP session of both remote providers. Whatever an SDK sends, it sends through this session.

What the host returned is the session's ``last`` response, whatever the SDK makes of it afterwards.
"""

from __future__ import annotations

import http.client
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.cookiejar import DefaultCookiePolicy
from typing import Any, cast
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.utils import get_environ_proxies, select_proxy

from gitprovider._core.json import JsonLimitError, parse
from gitprovider._core.urls import is_loopback, origin
from gitprovider._remote.response import BodyError, DeadlineError, ForeignOriginError, Response
from gitprovider._remote.tls import TlsContexts
from gitprovider.checks import check_seconds, keep, refuse
from gitprovider.retry import Deadline, Limits, earliest_deadline, limited

_DAY = 86_400
_READS = ("GET", "HEAD")
_CODINGS = ("", "identity", "gzip", "x-gzip", "deflate")
_SEND_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """The settings of a provider's clients. They are checked when they are made, the certificates before.

    Attributes:
        url: the address of the host or its API, without a trailing slash.
        timeout: seconds for each wait on the host: for the connection, and for each part of a response.
        verify: as in ``requests``: True, or the path of a bundle of certificate authorities.
        limits: what is read of a response.
        tls: the TLS contexts, which all clients share.

    Raises:
        InvalidRequestError: a setting is wrong.
    """

    url: str
    timeout: float
    verify: bool | str
    limits: Limits = Limits()  # noqa: RUF009 - a frozen value
    tls: TlsContexts = field(default_factory=TlsContexts, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        keep(self, timeout=check_seconds("timeout", self.timeout, zero=False))
        if self.timeout > _DAY:
            refuse("timeout", f"is {self.timeout:g}; it is at most a day, {_DAY:,} seconds")
        if not isinstance(self.limits, Limits):
            refuse("limits", f"must be Limits, not {type(self.limits).__name__}")

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of the host. Their origins are the only ones that are sent to."""
        return (self.url,)


class OneOriginSession(requests.Session):
    """A session that sends to the host's own origins, each request once, always with a timeout and within limits.

    An origin is a scheme, a host and a port. Cookies are not kept. A request to this machine does not go through a
    proxy, because the token would leave the machine. No credential of a netrc file is added.

    Attributes:
        last: the response to the last request, or None if there was none. A session serves one running operation, so
            the response is that operation's own.

    Args:
        settings: the host's addresses, the timeout for a request that has none, the certificates and the limits.
        retry: urllib3's policy. The default sends once.
        follow_reads: follow redirects of reads to the same origins. Without it, a redirect is the response.
    """

    def __init__(
        self, settings: SessionSettings, *, retry: urllib3.Retry | None = None, follow_reads: bool = False
    ) -> None:
        super().__init__()
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        self.auth = _leave_as_it_is
        self.verify = settings.verify
        self.last: requests.Response | None = None
        self.headers["Accept-Encoding"] = "gzip, deflate"  # one of those whose decompression can be bounded
        self._origins = frozenset(map(origin, settings.urls))
        self._timeout = settings.timeout
        self._limits = settings.limits
        self._follow_reads = follow_reads
        for prefix in ("https://", "http://"):
            self.mount(prefix, LimitedAdapter(settings, retry or urllib3.Retry(0, read=False)))

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Send ``request`` if it stays on the host's origins.

        Raises:
            ForeignOriginError: it would leave them with the token.
            BodyError: the body is larger than a limit, or encoded in a way that cannot be bounded.
            DeadlineError: the time was up before the response was complete.
        """
        self.last = None
        url = request.url or ""
        if origin(url) not in self._origins:
            raise ForeignOriginError
        if kwargs.get("timeout") is None:
            kwargs["timeout"] = self._timeout
        if is_loopback(urlsplit(url).hostname or ""):
            kwargs["proxies"] = {}
        seconds = self._limits.deadline
        with limited(None if seconds is None else Deadline("limits.deadline", seconds, self._limits.clock)):
            response = super().send(request, **kwargs)
        response.encoding = response.encoding or "utf-8"  # guessing a charset costs seconds on a large body
        self.last = response
        return response

    def exchange(self, send: Callable[[], object]) -> tuple[requests.Response, Exception | None]:
        """Let an SDK send one request through the session. Return the response, and what the SDK raised after it.

        An SDK may fail on a response that it cannot read, such as a rate-limit header that is not a number. The request
        took effect all the same, so the response decides.

        Raises:
            Exception: the SDK's error, if there was no response.
        """
        self.last = None
        failure: Exception | None = None
        try:
            send()
        except Exception as exc:
            failure = exc
        received = cast("requests.Response | None", self.last)  # set by send
        if received is None:
            raise failure or requests.ConnectionError("the SDK sent nothing")
        return received, failure

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


def read_response(response: requests.Response, endpoint: str, path: str = "") -> tuple[Response, BodyError | None]:
    """Return the response with its parsed JSON, and the error that its body would be in a 2xx, or None."""
    # The body is decoded as UTF-8, which JSON is. Guessing a charset costs seconds on a large body.
    text = response.content.decode("utf-8", "replace")
    headers = _headers(response)
    data, problem, cut = None, "", False
    if text.strip():
        try:
            data = parse(text)
        except JsonLimitError as exc:
            problem = f"the response {exc}"
        except ValueError:
            problem = f"the response is not JSON but {headers.get('content-type', 'of no stated type')}"
            cut = text.lstrip()[:1] in ("{", "[", '"')
    read = Response(status=response.status_code, endpoint=endpoint, path=path, headers=headers, data=data, text=text)
    return read, BodyError(problem, read, cut=cut) if problem else None


def _headers(response: requests.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


class LimitedAdapter(HTTPAdapter):
    """An adapter whose responses have a bounded body, and whose connections keep the deadline and share TLS contexts.

    A connection has a context of its own if it verifies nothing, or has a client certificate. One through a proxy that
    is reached by TLS itself reads the bundle each time, because urllib3 verifies the proxy with the same bundle.
    """

    def __init__(self, settings: SessionSettings, retry: urllib3.Retry) -> None:
        self._limits = settings.limits
        self._tls = settings.tls
        super().__init__(max_retries=retry)

    def send(self, request: requests.PreparedRequest, stream: bool = False, **kwargs: Any) -> requests.Response:  # type: ignore[override]  # a session passes all by name
        """Send ``request``. A body that the caller streams is not bounded: it need not fit into memory."""
        response = super().send(request, stream=stream, **kwargs)
        if not stream:
            response.raw = _BoundedBody(response, self._limits.max_body)
        return response

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        """Return the pool of connections for a request: to the host or a proxy, with TLS or without."""
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        pool.ConnectionCls = _timed(pool.ConnectionCls)
        return pool

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:
        """Return what selects a pool of connections: with the shared context if there is one."""
        host, settings = super().build_connection_pool_key_attributes(request, verify, cert)
        context = self._tls.context(verify) if host["scheme"] == "https" and not cert else None
        return host, settings if context is None else settings | {"ssl_context": context}

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Set on a pool what to verify. What the shared context has already is not read again."""
        super().cert_verify(conn, url, verify, cert)  # type: ignore[no-untyped-call]  # the stubs give it no types
        if conn.conn_kw.get("ssl_context") is not None and (conn.proxy is None or conn.proxy.scheme != "https"):
            conn.ca_certs = conn.ca_cert_dir = None


class _BoundedBody:
    """The raw body of a response, which ends with an error where it exceeds the limit."""

    def __init__(self, response: requests.Response, limit: int) -> None:
        self._raw = response.raw
        self._response = Response(status=response.status_code, headers=_headers(response))
        self._limit = limit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def stream(self, amt: int, decode_content: bool = True) -> Iterator[bytes]:
        """Yield the decoded body in parts.

        Raises:
            BodyError: it is larger than the limit, or its encoding cannot be bounded.
        """
        coding = self._response.headers.get("content-encoding", "").strip().lower()
        if coding not in _CODINGS:
            raise self._refused(f"the response has the Content-Encoding {coding[:80]!r}, which was not asked for")
        size = 0
        for part in self._raw.stream(amt, decode_content=decode_content):
            size += len(part)
            if size > self._limit:
                raise self._refused(f"the body is larger than limits.max_body, {self._limit:,} bytes")
            yield part

    def _refused(self, problem: str) -> BodyError:
        # The rest of the body is on the connection, which therefore cannot be used again.
        self._raw.close()
        self._raw.release_conn()
        return BodyError(problem, self._response)


class _TimedConnection:
    """Added to a connection class of urllib3: everything that waits for the peer ends at the earliest deadline."""

    def connect(self: Any) -> None:
        limit, own = earliest_deadline(), self.timeout
        cut = limit is not None and (own is None or limit.left < own)
        if limit is not None and cut:
            if limit.left <= 0:
                raise DeadlineError(limit.name, sent=False)
            self.timeout = limit.left
        try:
            super().connect()  # type: ignore[misc]  # urllib3's
        except (DeadlineError, TimeoutError, urllib3.exceptions.ConnectTimeoutError) as exc:
            if limit is None or not (cut or isinstance(exc, DeadlineError)):
                raise
            raise DeadlineError(limit.name, sent=False) from None
        finally:
            self.timeout = own

    def send(self: Any, data: Any) -> None:
        if earliest_deadline() is None or not isinstance(data, bytes):
            super().send(data)  # type: ignore[misc]  # as above
            return
        for start in range(0, len(data), _SEND_BYTES):
            with _in_time(self.sock):
                super().send(data[start : start + _SEND_BYTES])  # type: ignore[misc]  # as above


class _TimedResponse(http.client.HTTPResponse):
    """A response whose reads, from the first byte of its head, end at the earliest deadline."""

    def __init__(self, sock: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp: Any = io.BufferedReader(_TimedReader(sock, self.fp.detach()))


class _TimedReader(io.RawIOBase):
    def __init__(self, sock: Any, raw: io.RawIOBase) -> None:
        self._sock = sock
        self._raw = raw

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def readinto(self, buffer: Any) -> int | None:
        with _in_time(self._sock):
            count: int | None = self._raw.readinto(buffer)
            return count

    def close(self) -> None:
        super().close()
        self._raw.close()


@cache
def _timed(kind: type[Any]) -> type[Any]:
    """Return ``kind``, a connection class of urllib3, with deadlines."""
    if issubclass(kind, _TimedConnection):
        return kind
    return type(f"Timed{kind.__name__}", (_TimedConnection, kind), {"response_class": _TimedResponse})


@contextmanager
def _in_time(sock: Any) -> Iterator[None]:
    """Run one call that blocks on the socket, at most until the earliest deadline.

    Raises:
        DeadlineError: the time was up.
    """
    limit = earliest_deadline()
    if limit is None or sock is None:
        yield
        return
    left, own = limit.left, sock.gettimeout()
    if left <= 0:
        raise DeadlineError(limit.name)
    if own is not None and own <= left:
        yield
        return
    sock.settimeout(left)
    try:
        yield
    except TimeoutError:
        raise DeadlineError(limit.name) from None
    finally:
        with suppress(OSError):  # the peer may have closed it
            sock.settimeout(own)
