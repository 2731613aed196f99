"""Mount a host on ``responses``: code that uses ``requests`` reaches it without a socket."""

from __future__ import annotations

import re
from http.client import IncompleteRead
from typing import NoReturn

import requests
import responses
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from gitprovider.fakes.http import Host, Request, TransportFault


def mount(host: Host, rsps: responses.RequestsMock, base_url: str) -> None:
    """Send every request below ``base_url`` to ``host``, whatever its method.

    ``https://api.github.com`` matches ``https://api.github.com:443`` as well, which is how PyGithub writes it. A
    TransportFault becomes the exception that ``requests`` raises for it, with the same chain of causes.
    """
    rsps.add(_Mounted(host, base_url))


class _Mounted(responses.CallbackResponse):
    def __init__(self, host: Host, base_url: str) -> None:
        scheme, rest = base_url.rstrip("/").split("://", 1)
        authority, slash, path = rest.partition("/")
        port = "" if ":" in authority else "(?::443)?" if scheme == "https" else "(?::80)?"
        pattern = re.compile(rf"{scheme}://{re.escape(authority)}{port}{re.escape(slash + path)}(?:[/?#]|\Z)")
        super().__init__("*", pattern, callback=self._respond, content_type=None)
        self._host = host

    def matches(self, request: requests.PreparedRequest) -> tuple[bool, str]:
        if self._url_matches(self.url, str(request.url)):
            return True, ""
        return False, "URL does not match"

    def _respond(self, request: requests.PreparedRequest) -> tuple[int, dict[str, str], bytes]:
        body = request.body or b""
        arrived = Request.of(
            str(request.method),
            str(request.url),
            {str(name): str(value) for name, value in request.headers.items()},
            body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else b"".join(body),
        )
        try:
            response = self._host.handle(arrived)
        except TransportFault as exc:
            fault = exc
        else:
            return response.status, dict(response.headers), response.body
        # Raised outside the handler: the fault must not be in the chain of the exception.
        raise _as_requests(fault, request)


def _as_requests(fault: TransportFault, request: requests.PreparedRequest) -> requests.RequestException:
    try:
        _raise_as_requests(fault, request)
    except requests.RequestException as exc:
        return exc


def _raise_as_requests(fault: TransportFault, request: requests.PreparedRequest) -> NoReturn:
    """Raise what ``requests`` raises, from within the same handlers, to get the same chain of causes."""
    try:
        _raise_as_urllib3(fault, request)
    except ReadTimeoutError as exc:
        raise requests.ReadTimeout(exc, request=request) from exc
    except ProtocolError as exc:
        if fault.kind == "cut":
            raise requests.exceptions.ChunkedEncodingError(exc, request=request) from exc
        raise requests.ConnectionError(exc, request=request) from exc
    raise AssertionError(fault.kind)


def _raise_as_urllib3(fault: TransportFault, request: requests.PreparedRequest) -> NoReturn:
    try:
        _raise_as_socket(fault)
    except TimeoutError as exc:
        pool = HTTPConnectionPool("mounted.invalid")
        raise ReadTimeoutError(pool, request.path_url, "Read timed out. (read timeout=15)") from exc
    except ConnectionResetError as exc:
        raise ProtocolError("Connection aborted.", exc) from exc
    except IncompleteRead as exc:
        raise ProtocolError(f"Connection broken: {exc!r}", exc) from exc
    raise AssertionError(fault.kind)


def _raise_as_socket(fault: TransportFault) -> NoReturn:
    if fault.kind == "timeout":
        raise TimeoutError("timed out")
    if fault.kind == "reset":
        raise ConnectionResetError(104, "Connection reset by peer")
    body = fault.response.body if fault.response is not None else b""
    raise IncompleteRead(body[: len(body) // 2], len(body) - len(body) // 2)
