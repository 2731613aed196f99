"""Failures of the environment: proxies, names, ports and certificates, on both remote hosts without a network."""

from __future__ import annotations

import http.client
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
import urllib3

from gitprovider import (
    GitProviderError,
    Outcome,
    ProviderUnavailableError,
    RetryOptions,
    UnexpectedResponseError,
)
from gitprovider._remote.failures import transport_error
from gitprovider._remote.response import BodyError, ForeignOriginError, Response
from gitprovider.connect import Provider
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider
from tests.support.tls import server_context

TOKEN = "glpat-0123456789abcdefghij"
PASSWORD = "correct-horse"
ONCE = RetryOptions(max_attempts=1)
SHA = "1" * 40


def github(url: str, **options: Any) -> Provider:
    return GitHubProvider(TOKEN, base_url=url, retry=ONCE, **options)


def gitlab(url: str, **options: Any) -> Provider:
    return GitLabProvider(url, private_token=TOKEN, retry=ONCE, **options)


PROVIDERS = [pytest.param(github, id="github"), pytest.param(gitlab, id="gitlab")]
CALLS: list[Any] = [
    pytest.param(lambda provider: provider.get_repo("acme/x"), id="read"),
    pytest.param(lambda provider: provider.create_branch("acme/x", "new", source=SHA), id="mutation"),
]


class Environment(NamedTuple):
    """One fault of the environment, and what the error must say.

    Attributes:
        variables: what is set.
        url: the host that is asked.
        names: what message and hint together must name.
        passes: whether it may pass by itself.
    """

    variables: dict[str, str]
    url: str
    names: tuple[str, ...]
    passes: bool


HOST = "https://git.example.invalid"
FAULTS = {
    "socks-without-package": Environment(
        {"ALL_PROXY": f"socks5://me:{PASSWORD}@127.0.0.1:1"}, HOST, ("ALL_PROXY", "requests[socks]"), False
    ),
    "socks5h-without-package": Environment(
        {"https_proxy": f"socks5h://me:{PASSWORD}@127.0.0.1:1"}, HOST, ("https_proxy", "requests[socks]"), False
    ),
    "proxy-without-host": Environment({"HTTPS_PROXY": "http://"}, HOST, ("HTTPS_PROXY",), False),
    "proxy-port-too-large": Environment(
        {"HTTPS_PROXY": f"http://me:{PASSWORD}@proxy:99999"}, HOST, ("HTTPS_PROXY",), False
    ),
    "proxy-port-is-a-word": Environment(
        {"HTTPS_PROXY": f"http://me:{PASSWORD}@proxy:port"}, HOST, ("HTTPS_PROXY",), False
    ),
    "proxy-of-unknown-scheme": Environment(
        {"HTTPS_PROXY": f"gopher://me:{PASSWORD}@proxy:70"}, HOST, ("HTTPS_PROXY",), False
    ),
    "proxy-refuses": Environment(
        {"HTTPS_PROXY": f"http://me:{PASSWORD}@127.0.0.1:1"}, HOST, ("HTTPS_PROXY", "127.0.0.1:1", "refused"), True
    ),
    "host-not-found": Environment({}, HOST, ("git.example.invalid:443", "name"), True),
    "port-refused": Environment({}, "https://127.0.0.1:1", ("127.0.0.1:1", "refused"), True),
}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def failure(provider: Provider, call: Callable[[Provider], object]) -> GitProviderError:
    with provider, pytest.raises(GitProviderError) as caught:
        call(provider)
    return caught.value


POOL = urllib3.HTTPConnectionPool("host.example")


CONNECTION = urllib3.connection.HTTPConnection("host.example")


REFUSED = urllib3.exceptions.NewConnectionError(CONNECTION, "refused")


UNRESOLVED = urllib3.exceptions.NameResolutionError("host.example", CONNECTION, socket.gaierror(8, "unknown"))


RESET = urllib3.exceptions.ProtocolError("aborted", ConnectionResetError(104))


CLOSED = urllib3.exceptions.ProtocolError("aborted", http.client.RemoteDisconnected("closed"))


NO_TUNNEL = OSError("Tunnel connection failed: 502 Bad Gateway")


REQUESTS_ERRORS = [
    kind
    for kind in vars(requests.exceptions).values()
    if isinstance(kind, type) and issubclass(kind, requests.RequestException)
]


def max_retries(reason: Exception) -> urllib3.exceptions.MaxRetryError:
    return urllib3.exceptions.MaxRetryError(POOL, "/", reason)


def through_proxy(failure: Exception) -> urllib3.exceptions.ProxyError:
    return urllib3.exceptions.ProxyError("Unable to connect to proxy", failure)


def certificate_refused() -> requests.exceptions.SSLError:
    inner = ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed certificate")
    return requests.exceptions.SSLError(max_retries(urllib3.exceptions.SSLError(inner)))


@pytest.mark.parametrize("make", PROVIDERS)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_of_the_environment_names_what_to_look_at(
    make: Callable[..., Provider],
    call: Callable[[Provider], object],
    fault: Environment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The caller's arguments would be blamed, or nobody could tell which variable, host or port is wrong."""
    for name, value in fault.variables.items():
        monkeypatch.setenv(name, value)

    error = failure(make(fault.url), call)

    assert type(error) is ProviderUnavailableError
    assert (error.outcome, error.transient) == (Outcome.NOT_APPLIED, fault.passes)
    shown = f"{error.message} | {error.hint}"
    assert [name for name in fault.names if name not in shown] == []
    assert PASSWORD not in shown + repr(error) + repr(vars(error))


@contextmanager
def tls_server(context: ssl.SSLContext) -> Iterator[int]:
    """A server on loopback that offers its certificate to whoever connects, and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection, suppress(OSError):
                        context.wrap_socket(connection, server_side=True).close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)


CERTIFICATES = {
    "expired": (["localhost"], timedelta(days=-1), True, "expired", False),
    "another-name": (["other.example.org"], timedelta(days=1), True, "localhost", False),
    "unknown-issuer": (["localhost"], timedelta(days=1), False, "issuer", True),
}


@pytest.mark.parametrize("make", PROVIDERS)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("names", "valid_for", "trusted", "reason", "bundle_helps"), CERTIFICATES.values(), ids=CERTIFICATES
)
def test_a_refused_certificate_says_why_and_offers_a_bundle_only_where_that_helps(
    make: Callable[..., Provider],
    call: Callable[[Provider], object],
    names: list[str],
    valid_for: timedelta,
    trusted: bool,
    reason: str,
    bundle_helps: bool,
    tmp_path: Path,
) -> None:
    """A caller whose certificate has expired would look for a bundle that does not help."""
    context, bundle = server_context(tmp_path, names, valid_for=valid_for)
    with tls_server(context) as port:
        error = failure(make(f"https://localhost:{port}", verify=bundle if trusted else True), call)

    assert type(error) is ProviderUnavailableError
    assert (error.outcome, error.transient) == (Outcome.NOT_APPLIED, False)
    assert reason in error.message
    assert f"localhost:{port}" in error.message
    assert ("REQUESTS_CA_BUNDLE" in str(error.hint)) is bundle_helps


@pytest.mark.parametrize("make", PROVIDERS)
def test_a_bundle_that_cannot_be_read_is_named_by_its_variable(
    make: Callable[..., Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistyped REQUESTS_CA_BUNDLE would read as a fault of the host."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nonexistent/bundle.pem")

    error = failure(make("https://localhost:1"), lambda provider: provider.get_repo("acme/x"))

    assert type(error) is ProviderUnavailableError
    assert "REQUESTS_CA_BUNDLE" in str(error.hint)


@pytest.mark.parametrize(
    ("exc", "outcome", "transient"),
    [
        (requests.ConnectionError(max_retries(REFUSED)), "not_applied", True),
        (requests.ConnectionError(max_retries(UNRESOLVED)), "not_applied", True),
        (requests.ConnectTimeout("connect timed out"), "not_applied", True),
        (certificate_refused(), "not_applied", False),
        (requests.exceptions.SSLError("_ssl.c:989: The handshake operation timed out"), "unknown", True),
        (requests.exceptions.SSLError("EOF occurred in violation of protocol"), "unknown", True),
        (requests.exceptions.SSLError("[SSL: DECRYPTION_FAILED_OR_BAD_RECORD_MAC] decryption failed"), "unknown", True),
        (requests.exceptions.SSLError("url: /repos/acme/certificates (Caused by [SSL] record layer)"), "unknown", True),
        (OSError("Could not find a suitable TLS CA certificate bundle, invalid path: x"), "not_applied", False),
        (requests.exceptions.ProxyError(max_retries(through_proxy(REFUSED))), "not_applied", True),
        (requests.exceptions.ProxyError(max_retries(through_proxy(NO_TUNNEL))), "not_applied", True),
        (
            requests.exceptions.ProxyError(max_retries(through_proxy(http.client.RemoteDisconnected("closed")))),
            "unknown",
            True,
        ),
        (requests.ReadTimeout("read timed out"), "unknown", True),
        (requests.ConnectionError(RESET), "unknown", True),
        (requests.ConnectionError(CLOSED), "unknown", True),
        (requests.exceptions.ChunkedEncodingError(urllib3.exceptions.IncompleteRead(3, 5)), "unknown", True),
        (requests.exceptions.ContentDecodingError("gzip"), "unknown", True),
        (TimeoutError("timed out"), "unknown", True),
        (EOFError(), "unknown", True),
    ],
)
def test_a_lost_request_is_told_from_one_that_never_left(exc: Exception, outcome: str, transient: bool) -> None:
    """DNS, refusal and certificates mean that nothing was sent; whatever comes later may have taken effect."""
    error = transport_error(exc)

    assert isinstance(error, ProviderUnavailableError)
    assert (error.outcome, error.transient) == (Outcome(outcome), transient)


@pytest.mark.parametrize("reset", [False, True])
def test_a_proxy_that_hangs_up_after_the_request_may_have_passed_it_on(reset: bool) -> None:
    """urllib3 calls that a ProxyError, "unable to connect", although the proxy has the whole request."""
    with socket.create_server(("127.0.0.1", 0)) as server, requests.Session() as session:

        def take_and_hang_up() -> None:
            taken, _ = server.accept()
            with taken:
                taken.recv(65536)
                if reset:
                    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        proxy = threading.Thread(target=take_and_hang_up)
        proxy.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(requests.exceptions.ProxyError) as caught:
            session.post("http://git.example.test/repos", proxies={"http": url}, timeout=5)
        proxy.join()

    error = transport_error(caught.value)
    assert error is not None
    assert error.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("kind", REQUESTS_ERRORS, ids=lambda kind: kind.__name__)
def test_every_exception_of_requests_is_translated(kind: type[Exception]) -> None:
    """A new class in requests fails here rather than in a user's log."""
    exc = kind("x", "y", 0) if issubclass(kind, requests.exceptions.JSONDecodeError) else kind("x")

    assert isinstance(transport_error(exc), GitProviderError)


def test_an_exception_of_nobody_is_not_claimed() -> None:
    """What is no failure of a transport is left to the provider's own table."""
    assert transport_error(KeyError("x")) is None


def test_a_request_to_another_origin_is_not_applied() -> None:
    """It was not sent, and the error says so, also when requests wrapped it."""
    error = transport_error(requests.ConnectionError(ForeignOriginError()))

    assert isinstance(error, UnexpectedResponseError)
    assert error.outcome is Outcome.NOT_APPLIED


@pytest.mark.parametrize("cut", [True, False])
def test_a_body_that_is_not_what_was_asked_for(cut: bool) -> None:
    """The outcome is unknown; only JSON that was cut off is worth another try of a read."""
    error = transport_error(BodyError("no JSON", Response(status=200, headers={"x-request-id": "r1"}), cut=cut))

    assert isinstance(error, UnexpectedResponseError)
    assert (error.outcome, error.transient, error.status, error.request_id) == (Outcome.UNKNOWN, cut, 200, "r1")
