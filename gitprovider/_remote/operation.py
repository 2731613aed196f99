"""What both remote providers share about requests: sending, faults, origins, pages, and a pool of clients."""

from __future__ import annotations

import os
import re
import ssl
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote, urlsplit

import requests
import urllib3

from gitprovider._core.operation import Operation, chain
from gitprovider.errors import (
    GitProviderError,
    InvalidRequestError,
    Outcome,
    ProviderUnavailableError,
    UnexpectedResponseError,
)
from gitprovider.events import RequestEvent, emit
from gitprovider.redact import Redactor
from gitprovider.retry import parse_retry_after

PAGE_SIZE = 100
_T = TypeVar("_T")
# Said before a byte of the request is sent: by Python's ssl, by urllib3 of a name, and of a bundle that cannot be read.
_UNVERIFIED = (
    r"certificate verify failed|hostname mismatch|hostname '.*' doesn't match|no certificate or crl found"
    r"|suitable TLS CA certificate bundle"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A host's answer. ``data`` is the parsed JSON body, None for an empty one; header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    data: Any = None
    text: str = ""

    @property
    def request_id(self) -> str | None:
        return self.headers.get("x-github-request-id") or self.headers.get("x-request-id")

    @property
    def retry_after(self) -> float | None:
        """Seconds that ``Retry-After`` asks for, an HTTP-date being read against the answer's own ``Date``."""
        return parse_retry_after(self.headers.get("retry-after"), date=self.headers.get("date"))

    @property
    def date(self) -> datetime:
        """When the host answered, by its own clock; the present time where it does not say."""
        from email.utils import parsedate_to_datetime  # costs milliseconds, and few answers are asked

        try:
            date = parsedate_to_datetime(self.headers["date"])
        except (KeyError, ValueError, OverflowError):
            return datetime.now(UTC)
        return date if date.tzinfo else date.replace(tzinfo=UTC)


class StatusError(Exception):
    """The host answered with a status that is not 2xx. A transport raises it; a translate table gives it a meaning."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"HTTP {answer.status}")
        self.answer = answer


class BodyError(Exception):
    """A 2xx answer whose body is not what was asked for. ``cut`` is True for JSON that ends too early."""

    def __init__(self, problem: str, answer: Answer, *, cut: bool = False) -> None:
        super().__init__(problem)
        self.answer = answer
        self.cut = cut


class ForeignOriginError(Exception):
    """A request was about to leave the configured origin. It was not sent."""


class Client(Protocol):
    """One safely configured SDK client, used by one running operation at a time."""

    def send(self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None) -> Answer:
        """Send one request, once, and return a 2xx answer with its JSON.

        Raises:
            StatusError: any other status.
            BodyError: 2xx with a body that is not JSON.
            requests.RequestException: no answer.
        """
        ...


_C = TypeVar("_C", bound=Client)


class RemoteOperation(Operation, Generic[_C]):
    """An operation that has borrowed a client. Every request of a remote provider passes through :meth:`request`.

    Attributes:
        client: the borrowed client.
        method, endpoint: the verb and the path's template of the last request.
        find_existing: reads what has the name that this operation wants, for ``AlreadyExistsError.existing``.
    """

    def __init__(
        self,
        name: str,
        repo: str,
        *,
        client: _C,
        authenticate: Callable[[RemoteOperation[_C]], None],
        redact: Callable[[str], str] = Redactor(),
        **known: Any,
    ) -> None:
        super().__init__(name, repo, **known)
        self.client = client
        self.method = ""
        self.endpoint = ""
        self.find_existing: Callable[[], Any] | None = None
        self._authenticate = authenticate
        self._redact = redact

    @contextmanager
    def arguments(self) -> Iterator[None]:
        """The step that checks the arguments. Unlike every other, it does not see to the credential first."""
        with super().before("check arguments"):
            yield

    @contextmanager
    def before(self, step: str) -> Iterator[None]:
        """A step that leaves nothing a user of the host can see; the credential is renewed in it if need be."""
        with super().before(step):
            self._authenticate(self)
            yield

    @contextmanager
    def effect(self, step: str) -> Iterator[None]:
        """The effect step. The credential is renewed before it, so that a failure of that is NOT_APPLIED."""
        with super().before("authenticate"):
            self._authenticate(self)
        with super().effect(step):
            yield

    def _finished(self, exc: Exception, step: str, effect: bool) -> GitProviderError:
        # Redaction is here and nowhere else: a table's error and one that a provider raises itself both pass.
        error = super()._finished(exc, step, effect)
        error.message = self._redact(error.message)
        error.args = (error.message,)
        error.hint = None if error.hint is None else self._redact(error.hint)
        scrub(exc, self._redact)
        return error

    def request(
        self,
        method: str,
        template: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        **parts: str | int,
    ) -> Answer:
        """Send one request to ``template``, whose ``{parts}`` are percent-encoded, and report it to the hook."""
        self.method, self.endpoint = method, template
        self.requests += 1
        path = fill(template, parts)
        started = self.clock()
        answer: Answer | None = None
        try:
            answer = self.client.send(method, path, query=query, body=body)
            return answer
        except (StatusError, BodyError) as exc:
            answer = exc.answer
            raise
        finally:
            if self.hook is not None:
                emit(self.hook, self._request_event(answer, self.clock() - started))

    def _request_event(self, answer: Answer | None, duration: float) -> RequestEvent:
        headers = answer.headers if answer else {}
        left = headers.get("x-ratelimit-remaining") or headers.get("ratelimit-remaining")
        return RequestEvent(
            operation=self.name,
            provider=self.provider,
            host=self.host,
            repo=self.repo,
            method=self.method,
            endpoint=self.endpoint.replace("/}", "}"),
            status=answer.status if answer else None,
            attempt=self.attempt,
            duration=duration,
            rate_limit_remaining=int(left) if left and left.isdecimal() and len(left) < 15 else None,
            request_id=answer.request_id if answer else None,
        )


def fill(template: str, parts: Mapping[str, str | int]) -> str:
    """``template`` with each ``{part}`` percent-encoded; ``{part/}`` keeps the slashes inside the part."""

    def encoded(match: re.Match[str]) -> str:
        return quote(str(parts[match["name"]]), safe="/" if match["keep"] else "")

    return re.sub(r"\{(?P<name>\w+)(?P<keep>/?)\}", encoded, template)


def transport_error(exc: BaseException) -> GitProviderError | None:
    """What a failure without a usable answer means, or None when ``exc`` is no such failure.

    The outcome is what is known had this been the effect step: a request that certainly never reached the host is
    NOT_APPLIED, every other is UNKNOWN.
    """
    links = list(chain(exc))

    def holds(*kinds: type[BaseException]) -> bool:
        return any(isinstance(link, kinds) for link in links)

    def says(text: str) -> bool:
        return any(isinstance(link, OSError) and re.search(text, str(link), re.IGNORECASE) for link in links)

    if holds(ForeignOriginError):
        return UnexpectedResponseError(
            "the request would have left the configured origin and was not sent", outcome=Outcome.NOT_APPLIED
        )
    if isinstance(exc, BodyError):
        error: GitProviderError = UnexpectedResponseError(
            str(exc), status=exc.answer.status, request_id=exc.answer.request_id, outcome=Outcome.UNKNOWN
        )
        error.transient = exc.cut
        return error
    if says(_UNVERIFIED):
        return ProviderUnavailableError(
            "the host's certificate was refused",
            outcome=Outcome.NOT_APPLIED,
            transient=False,
            hint="give the certificate authority's bundle as verify=PATH; never turn verification off",
        )
    if holds(requests.exceptions.SSLError, urllib3.exceptions.SSLError, ssl.SSLError):
        return _lost("the TLS connection failed")  # which it may do long after the handshake
    proxy = holds(requests.exceptions.ProxyError, urllib3.exceptions.ProxyError)
    hint = "look at HTTPS_PROXY and NO_PROXY" if proxy else None
    if says("Tunnel connection failed") or holds(
        requests.exceptions.ConnectTimeout,
        urllib3.exceptions.ConnectTimeoutError,
        urllib3.exceptions.NewConnectionError,
        ConnectionRefusedError,
    ):
        where = "the proxy could not be used" if proxy else "no connection could be made to the host"
        return ProviderUnavailableError(where, outcome=Outcome.NOT_APPLIED, hint=hint)
    if proxy:  # urllib3's word for every connection that a proxy cut, also after the request was sent
        return _lost("the connection through the proxy was lost", hint=hint)
    if holds(TimeoutError, requests.exceptions.Timeout, urllib3.exceptions.TimeoutError):
        return _lost("the host did not answer in time")
    if isinstance(
        exc,
        requests.exceptions.InvalidURL
        | requests.exceptions.MissingSchema
        | requests.exceptions.InvalidSchema
        | requests.exceptions.InvalidHeader
        | requests.exceptions.InvalidProxyURL
        | requests.exceptions.URLRequired,
    ):
        return InvalidRequestError("the request could not be built", outcome=Outcome.NOT_APPLIED)
    if isinstance(exc, requests.exceptions.RequestException | urllib3.exceptions.HTTPError | OSError | EOFError):
        return _lost("the connection to the host was lost")
    return None


def _lost(message: str, hint: str | None = None) -> ProviderUnavailableError:
    return ProviderUnavailableError(message, outcome=Outcome.UNKNOWN, hint=hint)


def scrub(exc: BaseException, redact: Callable[[str], str]) -> None:
    """Redact every text that ``exc`` and its chain hold, and empty the answers that they carry."""
    for link in chain(exc):
        link.args = tuple(_scrubbed(arg, redact) for arg in link.args)
        if not isinstance(link, GitProviderError):  # whose values are ours, and whose texts are redacted
            for name, value in list(vars(link).items()):
                vars(link)[name] = _scrubbed(value, redact)


def _scrubbed(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, bytes):
        return redact(value.decode("utf-8", "replace")).encode()
    if isinstance(value, dict):
        return {_scrubbed(key, redact): _scrubbed(item, redact) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_scrubbed(item, redact) for item in value]
        return items if isinstance(value, list) else tuple(items)  # a named tuple's class takes its items one by one
    if isinstance(value, Answer):
        return Answer(status=value.status)
    return value


def normal_origin(url: str, argument: str, *, allow_http: bool = False) -> str:
    """``url`` without a trailing slash, checked: https, or http to loopback; no credentials, query or fragment.

    Raises:
        InvalidRequestError: it is anything else. The url is not echoed when it holds credentials.
    """
    if not isinstance(url, str):
        raise InvalidRequestError(f"{argument}: must be a str, not {type(url).__name__}", argument=argument)
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidRequestError(f"{argument}: is not a URL", argument=argument) from None
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise InvalidRequestError(
            f"{argument}: holds credentials; give the token as an argument of its own", argument=argument
        )
    if not host or parts.scheme not in ("https", "http") or parts.query or parts.fragment or "\\" in url:
        raise InvalidRequestError(
            f"{argument}: must be an http(s) URL without query and fragment, such as https://git.example.org",
            argument=argument,
        )
    if parts.scheme == "http" and not allow_http and not is_loopback(host):
        raise InvalidRequestError(
            f"{argument}: http would send the token in the clear; use https (http is allowed to loopback only)",
            argument=argument,
        )
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            raise InvalidRequestError(f"{argument}: the host's name is not valid", argument=argument) from None
    shown = f"[{host}]" if ":" in host else host
    default = {"https": 443, "http": 80}[parts.scheme]
    netloc = shown if port in (None, default) else f"{shown}:{port}"
    return f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}"


def is_loopback(host: str) -> bool:
    """Whether ``host`` is this machine by name or number; a name that only resolves to it is not."""
    return host in ("localhost", "::1") or bool(re.fullmatch(r"127(\.\d{1,3}){3}", host))


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of ``url``, comparable."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or {"https": 443, "http": 80}.get(parts.scheme)


def host_of(url: str) -> str:
    """The host's name, with a port that is not the scheme's own."""
    return urlsplit(url).netloc


class ClientPool(Generic[_C]):
    """Clients for one provider: one a running operation, and none shared across a fork.

    PyGithub's and requests' connections are not safe to share: measured, one client in two threads can answer one
    caller with the other's data, and a socket inherited by a fork is written to by both processes.
    """

    def __init__(self, make: Callable[[], _C], close: Callable[[_C], None]) -> None:
        self._make = make
        self._close = close
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._idle: list[_C] = []
        self._closed = False
        os.register_at_fork(after_in_child=_WeakReset(self))

    @contextmanager
    def client(self) -> Iterator[_C]:
        """Lend a client to the calling operation."""
        client = self._take()
        try:
            yield client
        finally:
            self._give(client)

    def check_open(self) -> None:
        """Refuse when the pool was closed.

        Raises:
            InvalidRequestError: it was.
        """
        if self._closed:
            raise InvalidRequestError("this provider was closed; build a new one")

    def close(self) -> None:
        """Close the idle clients; those that are lent are closed when they come back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for client in idle:
            self._close(client)

    def _take(self) -> _C:
        with self._lock:
            self.check_open()
            if self._pid != os.getpid():  # a fork that did not run our hook
                self._reset()
            if self._idle:
                return self._idle.pop()
        return self._make()

    def _give(self, client: _C) -> None:
        with self._lock:
            if not self._closed and self._pid == os.getpid():
                self._idle.append(client)
                return
        if self._pid == os.getpid():
            self._close(client)

    def _reset(self) -> None:
        # The parent still uses these sockets: they are dropped, not closed.
        self._idle = []
        self._pid = os.getpid()


class _WeakReset:
    """A fork hook that does not keep its pool alive, and gives the child a lock that nobody holds."""

    def __init__(self, pool: ClientPool[Any]) -> None:
        self._pool = weakref.ref(pool)

    def __call__(self) -> None:
        pool = self._pool()
        if pool is not None:
            pool._lock = threading.Lock()
            pool._reset()


def read_pages(read: Callable[[int], tuple[Sequence[_T], bool | None]], *, size: int = PAGE_SIZE) -> list[_T]:
    """Read pages 1, 2, … and return their items in order.

    ``read(page)`` gives a page's items and whether the host says that more follow; None where it does not say, and
    then a full page is taken to be followed by another.

    Raises:
        UnexpectedResponseError: a short page which the host says is not the last, so that the result would have a hole;
            or the page before once more, from a host that does not look at the number, so that it would have no end.
    """
    items: list[_T] = []
    before: Sequence[_T] = []
    page = 1
    while True:
        batch, more = read(page)
        if batch and batch == before:
            raise UnexpectedResponseError(f"page {page} is the page before it once more: the list would have no end")
        before = batch
        items += batch
        if more is None:
            more = len(batch) >= size
        if not more:
            return items
        if len(batch) < size:
            raise UnexpectedResponseError(
                f"page {page} has {len(batch)} items of {size}, and more are said to follow: the list would have a hole"
            )
        page += 1
