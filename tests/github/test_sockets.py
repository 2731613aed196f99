"""GitHubProvider on real sockets: what requests and urllib3 do below PyGithub."""

from __future__ import annotations

import socket

import pytest

from gitprovider import NotFoundError, ProviderUnavailableError, PutFile, RepoMovedError
from gitprovider.fakes.faults import Fault
from gitprovider.github import GitHubProvider
from tests.support.github_hub import REPO, Hub


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_on_sockets_a_redirect_goes_nowhere_either(wire: Hub, status: int) -> None:
    """The guard stands on real connections as it does on imitations."""
    wire.given_fault(Fault(kind="redirect", status=status, times=None))

    with pytest.raises(RepoMovedError):
        wire.provider.create_branch(REPO, "develop", source="0" * 40)

    assert len(wire.sent) == 1


def test_a_connection_serves_on_after_a_redirect(wire: Hub) -> None:
    """The guard leaves no connection half read."""
    wire.given_fault(Fault(kind="redirect", status=302))

    with pytest.raises(RepoMovedError):
        wire.provider.head(REPO, "main")

    assert wire.provider.head(REPO, "main") == wire.forge.head(REPO, "main")


def test_a_closed_port_is_unavailable_and_not_applied() -> None:
    """Nothing was sent: repeating is safe."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]

    with (
        GitHubProvider("token", base_url=f"http://127.0.0.1:{port}") as provider,
        pytest.raises(ProviderUnavailableError) as caught,
    ):
        provider.create_branch(REPO, "develop", source="0" * 40)

    assert caught.value.retryable


def test_a_silent_host_is_given_up_after_the_timeout(wire: Hub) -> None:
    """The answer does not come: UNKNOWN, since the request went out."""
    wire.given_fault(Fault(kind="timeout"))

    with wire.connect(timeout=1) as provider, pytest.raises(ProviderUnavailableError) as caught:
        provider.create_branch(REPO, "develop", source="0" * 40)

    assert caught.value.outcome == "unknown"


def test_a_proxy_is_taken_from_the_environment(wire: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY is asked instead of the host, as requests does."""
    monkeypatch.setenv("http_proxy", wire.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)

    with (
        wire.connect(base_url="http://ghe.example.com", allow_http=True) as provider,
        pytest.raises(NotFoundError),  # the fake has no /api/v3
    ):
        provider.get_repo(REPO)

    assert wire.sent[0].headers["host"] == "ghe.example.com"


@pytest.mark.parametrize("branch", ["a/b", "x#1", "100%", "%2e%2e", "é", "a&b=c", "a+b", "a;b", "a@b"])
def test_a_name_reaches_the_host_as_it_is(wire: Hub, branch: str) -> None:
    """Encoded once, on sockets, in a path and in a body."""
    wire.provider.create_branch(REPO, branch, source="main")
    head = wire.provider.head(REPO, branch)
    commit = wire.provider.commit_files(REPO, branch, [PutFile(path=f"{branch}.txt", content="x")], message="m")

    assert head == wire.forge.head(REPO, "main")
    assert wire.forge.head(REPO, branch) == commit.sha
