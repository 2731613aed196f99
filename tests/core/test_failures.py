"""Failures of the environment: proxies, names, ports and certificates, on both remote hosts without a network."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gitprovider import GitProviderError, Outcome, ProviderUnavailableError, RetryOptions
from gitprovider.connect import Provider
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider
from tests.tls import server_context

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
