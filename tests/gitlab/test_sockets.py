"""On sockets: faults that ``responses`` can only imitate, TLS, and a sub-path."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gitprovider import Verdict, resolve
from gitprovider.cli import exits
from gitprovider.contract import optional
from gitprovider.errors import Outcome, ProviderUnavailableError, UnexpectedResponseError
from gitprovider.fakes.faults import Fault, FaultScript, FaultyHost, RequestLog
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.serve import serving
from gitprovider.gitlab import GitLabProvider
from gitprovider.local import Forge
from gitprovider.models import PutFile
from tests.gitlab.world import TOKEN, FakeTime
from tests.tls import server_context

REPO = "acme/widgets"


class Wire:
    """A fake on a loopback port."""

    def __init__(self, root: Path, base: str = "https://gitlab.com", **knobs: Any) -> None:
        self.forge = Forge(root, combine=FakeGitLab.combine)
        self.forge.create_repo(REPO, auto_init=True)
        self.fake = FakeGitLab(self.forge, token=TOKEN, base=base, **knobs)
        self.script, self.request_log = FaultScript(), RequestLog()
        self.host = FaultyHost(self.fake, self.request_log, self.script)
        self.time = FakeTime()

    @contextmanager
    def provider(self, *, path: str = "", tls: Any = None, **options: Any) -> Iterator[GitLabProvider]:
        options = {"retry": self.time.retry(), "timeout": 15, **options}
        with (
            serving(self.host, tls=tls) as url,
            GitLabProvider(
                f"{url.replace('127.0.0.1', 'localhost') if tls else url}{path}", private_token=TOKEN, **options
            ) as provider,
        ):
            yield provider


def patience(kind: str) -> float:
    """Seconds to wait for an answer: short where none comes, and otherwise longer than a busy machine takes."""
    return 1.0 if kind == "timeout" else 15.0


@pytest.fixture
def wire(tmp_path: Path) -> Wire:
    return Wire(tmp_path / "forge")


@pytest.mark.parametrize("kind", ["reset", "cut", "timeout"])
def test_a_read_survives_what_sockets_do(wire: Wire, kind: Any) -> None:
    """A real failure, and then the answer."""
    wire.script.add(Fault(kind=kind))

    with wire.provider(timeout=patience(kind)) as provider:
        assert provider.get_repo(REPO).path == REPO

    assert len(wire.request_log) == 2


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["reset", "cut", "timeout", "html"])
def test_a_mutation_is_sent_once_whatever_sockets_do(wire: Wire, kind: Any, when: Any) -> None:
    """urllib3 and python-gitlab send nothing again by themselves."""
    wire.script.add(Fault(kind=kind, method="POST", endpoint="/commits", when=when, status=200))

    with (
        wire.provider(timeout=patience(kind)) as provider,
        pytest.raises((ProviderUnavailableError, UnexpectedResponseError)) as caught,
    ):
        provider.commit_files(REPO, "main", [PutFile(path="a", content="a")], message="m")

    assert caught.value.outcome is Outcome.UNKNOWN
    assert len(wire.request_log.mutations()) == 1


def test_a_refused_connection_has_applied_nothing(unused_port: int) -> None:
    """It never reached the host, and the same call is safe."""
    with (
        GitLabProvider(f"http://127.0.0.1:{unused_port}", private_token=TOKEN) as provider,
        pytest.raises(ProviderUnavailableError) as caught,
    ):
        provider.create_branch(REPO, "new", source="1" * 40)

    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert caught.value.retryable


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_bundle_of_one_s_own_is_trusted_and_nobody_else_s(tmp_path: Path) -> None:
    """A certificate that is refused is not tried again, and has applied nothing."""
    context, bundle = server_context(tmp_path, ["localhost"])
    wire = Wire(tmp_path / "forge")

    with wire.provider(tls=context, verify=bundle) as provider:
        assert provider.get_repo(REPO).path == REPO
    with wire.provider(tls=context) as provider, pytest.raises(ProviderUnavailableError) as caught:
        provider.get_repo(REPO)

    assert (caught.value.attempts, caught.value.retryable) == (1, False)
    assert "certificate" in caught.value.message


def test_the_certificate_is_checked_in_graphql_as_well(tmp_path: Path) -> None:
    """It passes the same session; the SDK's own GraphQL client would have another."""
    context, bundle = server_context(tmp_path, ["localhost"])
    wire = Wire(tmp_path / "forge")

    with wire.provider(tls=context, verify=bundle) as provider:
        provider.commit_files(REPO, "main", [PutFile(path="a", content="a")], message="m")

    assert wire.request_log.entries[0].path == "/api/graphql"


def test_a_host_under_a_path_is_served(tmp_path: Path) -> None:
    """GL-GR-05: all of it: reads, GraphQL, pages."""
    wire = Wire(tmp_path / "forge", base="http://127.0.0.1/gitlab")

    with wire.provider(path="/gitlab/") as provider:
        commit = provider.commit_files(REPO, "main", [PutFile(path="a", content="a")], message="m")
        branches = provider.list_branches(REPO)

    assert [(branch.name, branch.sha) for branch in branches] == [("main", commit.sha)]


@pytest.mark.parametrize("tier", ["free", "premium"])
def test_a_bootstrap_runs_through_with_mergeability_delayed(
    tmp_path: Path, tier: str, make_calls: Callable[[GitLabProvider], str]
) -> None:
    """Create, commit, protect, open and merge, on both tiers, with three reads of "checking"."""
    wire = Wire(tmp_path / "forge", tier=tier, mergeable_after=3)

    with wire.provider() as provider:
        merged = make_calls(provider)

    assert wire.forge.head("acme/fresh", "main") == merged
    held = wire.forge.protection("acme/fresh", "main")
    assert held is not None
    assert held.require_pull_request


@pytest.fixture
def make_calls() -> Callable[[GitLabProvider], str]:
    def calls(provider: GitLabProvider) -> str:
        provider.create_repo("acme/fresh")
        first = provider.commit_files("acme/fresh", "main", [PutFile(path="a", content="1")], message="first")
        provider.protect_branch("acme/fresh", "main")
        provider.create_branch("acme/fresh", "feature", source=first.sha)
        head = provider.commit_files("acme/fresh", "feature", [PutFile(path="b", content="2")], message="second")
        opened = provider.open_pull_request("acme/fresh", source_branch="feature", target_branch="main", title="t")
        return provider.merge_pull_request("acme/fresh", opened.number, expected_head=head.sha).sha

    return calls


@pytest.mark.parametrize("kind", ["html", "status"])
def test_a_404_that_is_not_gitlab_s_proves_nothing_on_a_socket(wire: Wire, kind: Any) -> None:
    """A page or the router's word would pass for a repository that does not exist."""
    wire.script.add(Fault(kind=kind, status=404, body=None if kind == "html" else b'{"error": "404 Not Found"}'))

    with wire.provider() as provider, pytest.raises(UnexpectedResponseError):
        optional(provider.get_repo, REPO)

    assert len(wire.request_log) == 1


def test_a_commit_whose_400_is_the_storage_s_is_found_on_a_socket(wire: Wire) -> None:
    """The commit was made, and NOT_APPLIED would be a lie; the command line says: look first."""
    body = b'{"message": "4:Deadline Exceeded. debug_error_string:{}"}'
    wire.script.add(Fault(kind="status", method="POST", endpoint="/commits$", status=400, body=body, when="after"))

    with wire.provider() as provider:
        with pytest.raises(ProviderUnavailableError) as caught:
            provider.commit_files(REPO, "main", [PutFile(path="a", content="a")], message="m")
        found = resolve(provider, caught.value, now=lambda: datetime.now(UTC) + timedelta(hours=1))

    assert (caught.value.outcome, found.verdict) == (Outcome.UNKNOWN, Verdict.APPLIED)
    assert exits.code_of(caught.value) == exits.UNCERTAIN
    assert len(wire.request_log.mutations()) == 1
