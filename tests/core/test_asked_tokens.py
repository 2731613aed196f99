"""A token that a function returns: who is asked, when, and what becomes of what it returned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from gitprovider import AuthenticationError, GitProviderError, Outcome, connect
from gitprovider._remote.provider import RemoteProvider
from gitprovider.fakes.http import Request, Response
from gitprovider.fakes.serve import serving
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider

KINDS = ["github", "gitlab", "gitlab-oauth"]
OWNERS = {"first-" + "a" * 20: "ada", "second-" + "b" * 20: "bob"}
FIRST, SECOND = OWNERS


class Recorder:
    """A host that knows two users and nothing else, and keeps what it was sent: the path and the token."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def handle(self, request: Request) -> Response:
        token = request.headers.get("private-token") or request.headers["authorization"].split()[-1]
        path = request.path.removeprefix("/api/v4").removeprefix("/api/v3").partition("?")[0]
        self.seen.append((path, token))
        user = path == "/user"
        body = {"login": OWNERS[token]} if user else {"message": "Not Found", "documentation_url": "https://docs"}
        headers = {"content-type": "application/json"}
        return Response(status=200 if user else 404, headers=headers, body=json.dumps(body).encode())


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Recorder, str]]:
    recorder = Recorder()
    with serving(recorder) as url:
        yield recorder, url


@pytest.fixture
def host(served: tuple[Recorder, str]) -> tuple[Recorder, str]:
    served[0].seen.clear()
    return served


def provider_of(kind: str, url: str, ask: Callable[[], Any]) -> RemoteProvider[Any]:
    if kind == "github":
        return GitHubProvider(ask, base_url=url)
    return GitLabProvider(url, private_token=ask) if kind == "gitlab" else GitLabProvider(url, oauth_token=ask)


@pytest.mark.parametrize("kind", KINDS)
def test_each_operation_asks_once_and_sends_what_it_got(kind: str, host: tuple[Recorder, str]) -> None:
    """A token that was rotated is sent until the process is restarted, or a vault is asked for every request."""
    recorder, url = host
    asked: list[str] = []

    def ask() -> str:
        asked.append(SECOND if asked else FIRST)
        return asked[-1]

    with provider_of(kind, url, ask) as provider:
        assert asked == []
        for _ in range(2):
            with suppress(GitProviderError):
                provider.create_repo("acme/widgets")
        tokens = [token for _, token in recorder.seen]
        assert asked == [FIRST, SECOND]
        assert set(tokens[: len(tokens) // 2]) == {FIRST}
        assert tokens[-1] == SECOND
        recorder.seen.clear()
        with provider.sdk() as client, suppress(Exception):
            client.get_repo("a/b") if kind == "github" else client.http_get("/projects/1")
        assert len(asked) == 3
        assert {token for _, token in recorder.seen} == {SECOND}


def test_another_token_may_be_another_user_s(host: tuple[Recorder, str]) -> None:
    """After a rotation to another account, a repository is created in the account of the first."""
    recorder, url = host
    tokens = iter([FIRST, SECOND, SECOND])

    with GitHubProvider(lambda: next(tokens), base_url=url) as provider:
        for path in ("ada/one", "ada/two", "bob/three"):
            with suppress(GitProviderError):
                provider.create_repo(path)

    assert [path for path, _ in recorder.seen if path.endswith("/repos")] == [
        "/user/repos", "/orgs/ada/repos", "/user/repos",
    ]  # fmt: skip
    assert [path for path, _ in recorder.seen].count("/user") == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("returned", [f"{FIRST} and a space", "", None, 7, OSError("the vault is sealed")])
def test_a_function_that_gives_no_token_is_told_and_nothing_is_sent(
    kind: str, returned: Any, host: tuple[Recorder, str]
) -> None:
    """A vault that is down looks like an outage of the host, or a half token is printed."""

    def ask() -> Any:
        if isinstance(returned, Exception):
            raise returned
        return returned

    recorder, url = host
    with provider_of(kind, url, ask) as provider:
        for call in (lambda: provider.create_repo("acme/x"), lambda: provider.sdk().__enter__()):
            with pytest.raises(AuthenticationError, match="the function for the token") as caught:
                call()
            assert caught.value.outcome is Outcome.NOT_APPLIED
            assert FIRST not in f"{caught.value!r} {caught.value.__cause__!r}"

    assert recorder.seen == []


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_connect_takes_a_function(kind: str, host: tuple[Recorder, str]) -> None:
    """The tokens of a service that is built by connect cannot be rotated."""
    recorder, url = host
    with connect(kind, url=url, token=lambda: FIRST, environ={}) as provider, suppress(GitProviderError):
        provider.get_repo("a/b")

    assert {token for _, token in recorder.seen} == {FIRST}
