"""What a hostile host or a careless caller can do to the clients of the remote providers."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import github
import gitlab
import pytest
import requests
from github import Auth

from gitprovider.errors import GitProviderError, InvalidRequestError
from gitprovider.github.provider import GitHubProvider
from gitprovider.gitlab.provider import GitLabProvider
from gitprovider.retry import RetryOptions
from tests.support.hostile import Heard, hosting, response

HOSTS = ["github", "gitlab"]
SDK_ERRORS = (github.GithubException, gitlab.GitlabError, AttributeError, GitProviderError)


def provider_for(kind: str, url: str) -> Any:
    retry = RetryOptions(max_attempts=1)
    if kind == "github":
        return GitHubProvider("t0ken-t0ken", base_url=url, retry=retry)
    return GitLabProvider(url, private_token="t0ken-t0ken", retry=retry)


def read(client: Any) -> Any:
    """One read with a client of an SDK."""
    if isinstance(client, github.Github):
        return client.requester.requestJson("GET", "/version")
    return client.http_get("/version")


@pytest.mark.parametrize("status", ["200 OK", "302 Found", "404 Not Found"])
@pytest.mark.parametrize("kind", HOSTS)
def test_a_cookie_of_a_host_is_not_sent_back(kind: str, status: str) -> None:
    """If this fails, a host makes a client carry and grow state from one request to the next."""
    numbers = count()

    def script(heard: Heard) -> Iterator[bytes]:
        number = next(numbers)
        cookies = [f"Set-Cookie: c{number}=x; Path=/", f"Set-Cookie: d{number}=y; Max-Age=999999"]
        yield response(b"{}", *cookies, f"Location: /api/v4/elsewhere/{number}", status=status)

    with hosting(script) as host, provider_for(kind, host.url) as provider:
        for _ in range(3):
            with pytest.raises(GitProviderError):
                provider.get_repo("acme/widgets")
        with provider.sdk() as client:
            for _ in range(3):
                with suppress(*SDK_ERRORS, requests.TooManyRedirects):
                    read(client)

    assert len(host.heard) >= 6
    assert [heard.headers.get("cookie") for heard in host.heard] == [None] * len(host.heard)


@pytest.fixture(scope="module")
def _no_collector() -> Iterator[None]:
    """No garbage is collected. For the whole module: a collection visits what all tests of the suite hold."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()  # here, and not in the middle of another test


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("body", [b"{}", b"<html>", b'{"message": "no"}'])
@pytest.mark.parametrize("status", ["200 OK", "404 Not Found", "500 Oh"])
@pytest.mark.parametrize("kind", HOSTS)
def test_closing_a_provider_closes_its_connections(kind: str, status: str, body: bytes) -> None:
    """If this fails, the garbage collector closes them, some day, and a service runs out of sockets."""
    kept: list[Any] = []
    with hosting(lambda heard: [response(body, status=status)]) as host:
        with provider_for(kind, host.url) as provider:
            kept.append(provider)
            for _ in range(2):
                with pytest.raises(GitProviderError) as caught:
                    provider.get_repo("acme/widgets")
                kept.append(caught.value)
            with provider.sdk() as client:
                kept.append(client)
                try:
                    kept.append(read(client))
                except SDK_ERRORS as error:
                    kept.append(error)

        assert len(host.connections) >= 1
        assert host.all_closed()


@pytest.mark.parametrize("value", ["false", "true", 0, 1, None])
def test_allow_http_is_a_bool(value: Any) -> None:
    """If this fails, a truthy string lets the token travel in the clear."""
    with pytest.raises(InvalidRequestError, match="allow_http"):
        GitHubProvider(Auth.Token("t0ken-t0ken"), base_url="http://host.example", allow_http=value)
    with pytest.raises(InvalidRequestError, match="allow_http"):
        GitLabProvider("http://host.example", private_token="t0ken-t0ken", allow_http=value)
