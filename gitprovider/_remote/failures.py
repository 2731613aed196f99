"""Errors for requests that failed without a usable response: proxies, certificates, names, timeouts, lost connections.

If the environment is at fault, the error names the host, the port, the reason, and the variable to check. It never
contains the value of a variable, because a proxy's URL may contain a password.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Sequence

import requests
import urllib3

from gitprovider._core.operation import chain
from gitprovider._remote.response import BodyError, DeadlineError, ForeignOriginError
from gitprovider.errors import (
    GitProviderError,
    InvalidRequestError,
    Outcome,
    ProviderUnavailableError,
    UnexpectedResponseError,
)

_PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_BUNDLE_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
# Messages of errors raised before any byte of the request is sent: by Python's ssl, and by urllib3 for a host name.
_UNVERIFIED = r"certificate verify failed|hostname mismatch|hostname '.{0,300}' doesn't match"
# Reasons that another bundle of certificate authorities can fix.
_UNKNOWN_ISSUER = r"issuer certificate|self[- ]signed|unable to verify the first certificate"
# Messages of requests and Python's ssl for a bundle that cannot be read.
_UNREADABLE_BUNDLE = r"no certificate or crl found|suitable TLS CA certificate bundle"
# Raised by requests and urllib3 for a proxy URL that they cannot use. This library checks its own URLs before.
_UNUSABLE_PROXY = (
    requests.exceptions.InvalidProxyURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.InvalidURL,
    requests.exceptions.MissingSchema,
    urllib3.exceptions.LocationParseError,
    urllib3.exceptions.ProxySchemeUnknown,
)
_NEVER_CONNECTED = (
    requests.exceptions.ConnectTimeout,
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.NewConnectionError,
    ConnectionRefusedError,
)


def transport_error(exc: BaseException) -> GitProviderError | None:
    """Return the error for a failure without a usable response, or None if ``exc`` is not such a failure.

    The outcome assumes that this was the effect step. It is NOT_APPLIED for a request that certainly never reached the
    host, and UNKNOWN otherwise.
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
    if isinstance(exc, DeadlineError):
        return ProviderUnavailableError(str(exc), outcome=Outcome.UNKNOWN if exc.sent else Outcome.NOT_APPLIED)
    if isinstance(exc, BodyError):
        error: GitProviderError = UnexpectedResponseError(
            str(exc), status=exc.response.status, request_id=exc.response.request_id, outcome=Outcome.UNKNOWN
        )
        error.transient = exc.cut
        return error
    if says(_UNREADABLE_BUNDLE):
        return _unsent(
            "the bundle of certificate authorities cannot be read",
            hint=f"check verify={_set_variables(_BUNDLE_VARIABLES)}",
        )
    if says(_UNVERIFIED):
        return _refused_certificate(links)
    if holds(requests.exceptions.SSLError, urllib3.exceptions.SSLError, ssl.SSLError):
        return _lost("the TLS connection failed")  # this may happen long after the handshake
    if holds(*_UNUSABLE_PROXY):
        return _unsent(
            "the proxy in the environment cannot be used: its URL is malformed, or its scheme needs another package",
            hint=f"check{_set_variables(_PROXY_VARIABLES)}; a socks proxy needs: pip install 'requests[socks]'",
        )
    proxy = holds(requests.exceptions.ProxyError, urllib3.exceptions.ProxyError)
    hint = f"check{_set_variables(_PROXY_VARIABLES)} and NO_PROXY" if proxy else None
    if says("Tunnel connection failed") or holds(*_NEVER_CONNECTED):
        what = "the proxy" if proxy else "the host"
        return ProviderUnavailableError(
            f"no connection could be made to {what}{_peer(links)}: {_reason(links)}",
            outcome=Outcome.NOT_APPLIED,
            hint=hint or "check the host's name and port, and the network",
        )
    if proxy:  # urllib3 raises it for every connection that a proxy cut, even after the request was sent
        return _lost("the connection through the proxy was lost", hint=hint)
    if holds(TimeoutError, requests.exceptions.Timeout, urllib3.exceptions.TimeoutError):
        return _lost("the host did not respond in time")
    if isinstance(exc, requests.exceptions.InvalidHeader | requests.exceptions.URLRequired):
        return InvalidRequestError("the request could not be built", outcome=Outcome.NOT_APPLIED)
    if isinstance(exc, requests.exceptions.RequestException | urllib3.exceptions.HTTPError | OSError | EOFError):
        return _lost("the connection to the host was lost")
    return None


def _lost(message: str, hint: str | None = None) -> ProviderUnavailableError:
    return ProviderUnavailableError(message, outcome=Outcome.UNKNOWN, hint=hint)


def _unsent(message: str, hint: str) -> ProviderUnavailableError:
    """Return the error for a failure of the environment. Nothing was sent, and another attempt does not help."""
    return ProviderUnavailableError(message, outcome=Outcome.NOT_APPLIED, transient=False, hint=hint)


def _refused_certificate(links: Sequence[BaseException]) -> ProviderUnavailableError:
    # OpenSSL sets the message; an error that somebody else built has none.
    reasons = [getattr(link, "verify_message", "") for link in links]
    reason = next((reason for reason in reasons if reason), "it is not valid for this name")
    hint = "renew the host's certificate, or use a url with the name in the certificate"
    if re.search(_UNKNOWN_ISSUER, reason, re.IGNORECASE):
        hint = (
            "pass the certificate authority's bundle as verify=PATH or in REQUESTS_CA_BUNDLE; "
            "never turn verification off"
        )
    return _unsent(f"the certificate of the host{_peer(links)} was refused: {reason}", hint=hint)


def _set_variables(names: Sequence[str]) -> str:
    """Return the names of the variables that are set, or all names if none is, as the end of a hint."""
    return " " + ", ".join([name for name in names if os.environ.get(name)] or names)


def _peer(links: Sequence[BaseException]) -> str:
    """Return `` name:port`` of the host or proxy that the connection was made to, or an empty string if not known."""
    found = ""
    for link in links:
        connection = vars(link).get("conn") or vars(link).get("pool")
        host, port = getattr(connection, "host", None), getattr(connection, "port", None)
        if host and (not found or "conn" in vars(link)):  # a connection is more specific than its pool
            found = f" {host}:{port}" if port else f" {host}"
    return found


def _reason(links: Sequence[BaseException]) -> str:
    if any(isinstance(link, socket.gaierror) for link in links):
        return "its name cannot be resolved"
    for link in links:
        if isinstance(link, OSError) and link.errno is not None and link.strerror:
            return link.strerror
        if tunnel := re.search(r"Tunnel connection failed: (\d{3}[^'\")]{0,80})", str(link)):
            return f"the proxy returned {tunnel[1]}"
    return "it did not respond in time"
