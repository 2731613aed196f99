"""Errors for requests that failed without a usable response: proxies, certificates, timeouts, lost connections."""

from __future__ import annotations

import re
import ssl

import requests
import urllib3

from gitprovider._core.operation import chain
from gitprovider._remote.response import BodyError, ForeignOriginError
from gitprovider.errors import (
    GitProviderError,
    InvalidRequestError,
    Outcome,
    ProviderUnavailableError,
    UnexpectedResponseError,
)

# Messages of errors raised before any byte of the request is sent: by Python's ssl, by urllib3 for a host name, and for
# an unreadable CA bundle.
_UNVERIFIED = (
    r"certificate verify failed|hostname mismatch|hostname '.*' doesn't match|no certificate or crl found"
    r"|suitable TLS CA certificate bundle"
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
    if isinstance(exc, BodyError):
        error: GitProviderError = UnexpectedResponseError(
            str(exc), status=exc.response.status, request_id=exc.response.request_id, outcome=Outcome.UNKNOWN
        )
        error.transient = exc.cut
        return error
    if says(_UNVERIFIED):
        return ProviderUnavailableError(
            "the host's certificate was refused",
            outcome=Outcome.NOT_APPLIED,
            transient=False,
            hint="pass the certificate authority's bundle as verify=PATH; never turn verification off",
        )
    if holds(requests.exceptions.SSLError, urllib3.exceptions.SSLError, ssl.SSLError):
        return _lost("the TLS connection failed")  # this may happen long after the handshake
    proxy = holds(requests.exceptions.ProxyError, urllib3.exceptions.ProxyError)
    hint = "check HTTPS_PROXY and NO_PROXY" if proxy else None
    if says("Tunnel connection failed") or holds(
        requests.exceptions.ConnectTimeout,
        urllib3.exceptions.ConnectTimeoutError,
        urllib3.exceptions.NewConnectionError,
        ConnectionRefusedError,
    ):
        where = "the proxy could not be used" if proxy else "no connection could be made to the host"
        return ProviderUnavailableError(where, outcome=Outcome.NOT_APPLIED, hint=hint)
    if proxy:  # urllib3 raises it for every connection that a proxy cut, even after the request was sent
        return _lost("the connection through the proxy was lost", hint=hint)
    if holds(TimeoutError, requests.exceptions.Timeout, urllib3.exceptions.TimeoutError):
        return _lost("the host did not respond in time")
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
