"""Where the clients of the remote providers send the token: to their own host, without a proxy for this machine."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import github
import pytest
import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from urllib3 import HTTPResponse
from urllib3.util import parse_url

from gitprovider import GitProviderError, InvalidRequestError, RetryOptions
from gitprovider.github import AppInstallation, GitHubProvider
from gitprovider.gitlab import GitLabProvider
from tests.support.hostile import hosting, response

TOKEN = "t0ken-0f-the-provider"
HOSTS = ["github", "gitlab"]


def provider_for(kind: str, url: str, auth: Any = TOKEN, **options: Any) -> Any:
    """A provider that sends each request once."""
    given: dict[str, Any] = {"retry": RetryOptions(max_attempts=1)} | options
    if kind == "github":
        return GitHubProvider(auth, base_url=url, **given)
    return GitLabProvider(url, private_token=auth, **given)


def use(provider: Any, way: str) -> None:
    """Send a request by an operation or by the lent client. The host's response does not matter."""
    with suppress(GitProviderError, github.GithubException, AttributeError):
        if way == "operation":
            provider.get_repo("acme/widgets")
        else:
            with provider.sdk() as client:
                if isinstance(provider, GitHubProvider):
                    client.get_repo("acme/widgets")
                else:
                    client.http_get("/projects/1")


# Proxies

VARIABLES = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]


@pytest.fixture(scope="module")
def key() -> str:
    """An App's private key."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return made.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """A proxy that writes down what it is asked, and a way to put it into the environment."""
    with hosting(lambda heard: [response()]) as proxy:
        for name in [*VARIABLES, "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"]:
            monkeypatch.delenv(name, raising=False)

        def take(variable: str, **more: str) -> Any:
            for name, value in {variable: proxy.url, **more}.items():
                monkeypatch.setenv(name, value)
            return proxy

        yield take


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("way", ["operation", "sdk"])
@pytest.mark.parametrize("kind", HOSTS)
def test_a_request_to_this_machine_passes_no_proxy(
    proxied: Callable[..., Any], kind: str, way: str, variable: str, address: str
) -> None:
    """If this fails, a token that was meant for this machine is sent to another one in the clear."""
    if address == "::1" and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    proxy = proxied(variable, NO_PROXY="elsewhere.example")
    with hosting(lambda heard: [response()], "127.0.0.1" if address == "localhost" else address) as host:
        url = host.url.replace("127.0.0.1", "localhost") if address == "localhost" else host.url
        with provider_for(kind, url) as provider:
            use(provider, way)

    assert proxy.heard == []
    assert [TOKEN in str(heard.headers) for heard in host.heard] == [True]


def test_a_no_proxy_for_this_machine_changes_nothing(proxied: Callable[..., Any]) -> None:
    """If this fails, the usual NO_PROXY breaks what works without it."""
    proxy = proxied("http_proxy", no_proxy="localhost,127.0.0.1")
    with hosting(lambda heard: [response()]) as host, provider_for("gitlab", host.url) as provider:
        use(provider, "operation")

    assert (len(proxy.heard), len(host.heard)) == (0, 1)


@pytest.mark.parametrize("kind", HOSTS)
def test_a_request_to_another_host_takes_the_proxy(proxied: Callable[..., Any], kind: str) -> None:
    """If this fails, a host that can be reached by the company's proxy alone cannot be reached."""
    proxy = proxied("HTTP_PROXY")
    with provider_for(kind, "http://git.example.org", allow_http=True) as provider:
        use(provider, "operation")

    assert [parse_url(heard.target).host for heard in proxy.heard] == ["git.example.org"]


def test_an_app_asks_for_its_token_without_a_proxy(proxied: Callable[..., Any], key: str) -> None:
    """If this fails, the signed request for a token takes another way than the request that needs it."""
    proxy = proxied("ALL_PROXY")
    with hosting(lambda heard: [response(b'{"token": "t0ken-made-f0r-the-app"}')]) as host:
        auth = AppInstallation(1, key, installation_id=2)
        with provider_for("github", host.url, auth) as provider:
            use(provider, "operation")

    assert proxy.heard == []
    assert [heard.method for heard in host.heard] == ["POST", "GET"]


def test_a_user_token_is_renewed_without_a_proxy(proxied: Callable[..., Any]) -> None:
    """If this fails, a refresh token and a client secret are sent to the proxy."""
    proxy = proxied("http_proxy")
    auth = github.Auth.AppUserAuth(
        "client-id", "client-secret", "t0ken-that-expired", expires_at=datetime.now(UTC) - timedelta(1),
        refresh_token="refresh-t0ken", refresh_expires_at=datetime.now(UTC) + timedelta(1),
    )  # fmt: skip
    with hosting(lambda heard: [response()]) as host, provider_for("github", host.url, auth) as provider:
        use(provider, "operation")

    assert proxy.heard == []
    assert host.heard[0].target == "/login/oauth/access_token"


def test_an_auth_whose_requests_are_not_ours_is_refused_where_a_proxy_would_see_them(
    proxied: Callable[..., Any], key: str
) -> None:
    """If this fails, PyGithub's own App auth sends its signed request to the proxy."""
    proxy = proxied("HTTP_PROXY")
    auth = github.Auth.AppAuth(1, key).get_installation_auth(2)
    with (
        hosting(lambda heard: [response()]) as host,
        provider_for("github", host.url, auth) as provider,
        pytest.raises(InvalidRequestError, match="NO_PROXY") as caught,
    ):
        provider.get_repo("acme/widgets")

    assert caught.value.outcome == "not_applied"
    assert (proxy.heard, host.heard) == ([], [])


# Origins


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[requests.PreparedRequest]:
    """Every request that reaches a transport, whatever its host. Each is returned ``answer``."""
    found: list[requests.PreparedRequest] = []

    def send(
        adapter: requests.adapters.HTTPAdapter, request: requests.PreparedRequest, **kwargs: Any
    ) -> requests.Response:
        found.append(request)
        found_label = "labels" in str(request.url) or len(found) > 2
        answer = json.dumps([{"id": 1, "url": LINK[0]}] if found_label else {"id": 1, "url": LINK[0]})
        headers = {"Content-Type": "application/json", "Link": f'<{LINK[0]}>; rel="next"'}
        raw = HTTPResponse(io.BytesIO(answer.encode()), status=200, headers=headers, preload_content=False)
        return adapter.build_response(request, raw)

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", send)
    return found


LINK = [""]
BASES = [
    "https://ghe.example.org",
    "https://ghe.example.org:8443",
    "https://api.example.org",
    "https://acme.ghe.com",
    "https://github.com",
    "http://127.0.0.1:8080",
]
FOREIGN = [
    "https://evil.{host}{port}{path}",
    "http://{host}{port}{path}",
    "https://{host}:9999{path}",
    "http://{host}:80{path}",
    "https://evil.{domain}{path}",
    "http://evil.{host}:8080{path}",
    "https://{host}{port}@evil.{host}{path}",
    "https://{host}.evil.example{path}",
    "//evil.{host}{path}",
]
WAYS: dict[str, Callable[[Any], Any]] = {
    "a next page": lambda client: list(islice(client.get_repo("a/b").get_labels(), 3)),
    "an object's own url": lambda client: client.get_repo("a/b").edit(description="x"),
    "a lazy client": lambda client: list(islice(client.withLazy(True).get_repo("a/b").get_labels(), 3)),
    "a derived requester": lambda client: client.requester.withAuth(client.requester.auth).requestJsonAndCheck(
        "GET", LINK[0]
    ),
    "another version": lambda client: client.requester.withApiVersion("2026-03-10").requestJsonAndCheck("GET", LINK[0]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("base", "foreign"),
    [
        (base, foreign)
        for base in BASES
        for foreign in FOREIGN
        if base.split(":")[0] + "://{host}{port}{path}" != foreign
    ],
)
def test_a_lent_client_takes_the_token_to_no_other_origin(
    sent: list[requests.PreparedRequest], base: str, foreign: str, way: str
) -> None:
    """If this fails, a Link or a url in a response sends the token to a scheme, host or port that it chooses."""
    with provider_for("github", base) as provider, provider.sdk() as client:
        own = parse_url(client.requester.base_url)
        port = f":{own.port}" if own.port else ""
        domain = str(own.host).removeprefix("api.")
        LINK[0] = foreign.format(host=own.host, port=port, path=f"{own.path or ''}/x", domain=domain)
        with suppress(Exception):
            WAYS[way](client)

    own_hosts = {str(own.host), domain, f"uploads.{domain}"} if base in BASES[3:5] else {str(own.host)}
    assert sent or way not in ("a next page", "an object's own url", "a lazy client")
    for request in sent:
        went = parse_url(str(request.url))
        assert (went.scheme, went.port or 443) == (own.scheme, own.port or 443), request.url
        assert went.host in own_hosts, request.url
        assert went.auth is None
