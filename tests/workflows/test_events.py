"""What a hook sees of the remote providers: every request and operation, and nothing that is secret or private."""

from __future__ import annotations

import dataclasses
import logging
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import gitprovider._remote.operation
from gitprovider import BranchProtection, GitProviderError, PutFile, RetryOptions
from gitprovider.events import Event, OperationEvent, RequestEvent, RetryEvent, log_events
from gitprovider.fakes.faults import Fault
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider
from tests.support.rigs import GitHubRig, GitLabRig, RemoteRig, mounted

CONTENT = "the-content-of-a-file"
QUICK = RetryOptions(sleep=lambda seconds: None)
Made = tuple[Any, RemoteRig]


@pytest.fixture(params=["github", "gitlab"])
def made(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Callable[..., Made]]:
    """``made(on_event=…)`` is a provider on its fake."""
    rig: RemoteRig = GitHubRig(tmp_path) if request.param == "github" else GitLabRig(tmp_path)
    url = "https://api.github.com" if request.param == "github" else "https://gitlab.com"

    def make(**options: Any) -> Made:
        token = rig.fake.token
        if request.param == "github":
            return GitHubProvider(token, retry=QUICK, **options), rig
        return GitLabProvider(url, private_token=token, retry=QUICK, **options), rig

    with mounted(rig.host, url):
        yield make


def work(provider: Any, repo: str) -> None:
    """One call of each kind, one of them refused."""
    provider.create_repo(repo, description="a-private-description")
    provider.commit_files(repo, "main", [PutFile(path="a.txt", content=CONTENT)], message="a-private-message")
    provider.create_branch(repo, "develop", source="main")
    provider.list_branches(repo)
    provider.protect_branch(repo, "main", BranchProtection())
    with pytest.raises(GitProviderError):
        provider.get_repo(f"{repo}-none")


def test_every_request_and_operation_is_one_event(made: Callable[..., Made]) -> None:
    """The events tell the same story as the host's own request log, request by request."""
    events: list[Event] = []
    provider, rig = made(on_event=events.append)

    work(provider, rig.fresh_path())

    seen = [(event.method, event.status) for event in events if isinstance(event, RequestEvent)]
    assert seen == [(entry.method, entry.status) for entry in rig.host.request_log.entries]
    operations = [event for event in events if isinstance(event, OperationEvent)]
    assert [(event.operation, event.error) for event in operations] == [
        ("create_repo", None),
        ("commit_files", None),
        ("create_branch", None),
        ("list_branches", None),
        ("protect_branch", None),
        ("get_repo", "NotFoundError"),
    ]
    assert sum(event.requests for event in operations) == len(seen)


def test_an_endpoint_is_a_template(made: Callable[..., Made]) -> None:
    """Metrics are kept by endpoint: a repository's or branch's name in it would make one series each."""
    events: list[Event] = []
    provider, rig = made(on_event=events.append)
    repo = rig.fresh_path()

    work(provider, repo)

    for event in events:
        if isinstance(event, RequestEvent):
            assert event.endpoint.startswith("/")
            assert "?" not in event.endpoint
            assert repo.rpartition("/")[2] not in event.endpoint
            assert event.host == provider_host(rig)


def provider_host(rig: RemoteRig) -> str:
    return "api.github.com" if isinstance(rig, GitHubRig) else "gitlab.com"


def test_no_event_and_no_log_line_holds_a_secret(made: Callable[..., Made], caplog: pytest.LogCaptureFixture) -> None:
    """Neither the token nor a body, query or content is in any event, nor in what logging makes of it."""
    caplog.set_level(logging.DEBUG)
    events: list[Event] = []
    log = log_events(logging.getLogger("tests.events"))

    def hook(event: Event) -> None:
        events.append(event)
        log(event)

    provider, rig = made(on_event=hook)
    work(provider, rig.fresh_path())
    told = repr([dataclasses.asdict(event) for event in events])
    told += repr([vars(record) for record in caplog.records])

    for secret in (rig.fake.token, CONTENT, "a-private-description", "a-private-message", "per_page"):
        assert secret not in told


def test_a_retried_read_tells_each_attempt(made: Callable[..., Made]) -> None:
    """A try that failed, the wait before the next one, and the number of each attempt."""
    events: list[Event] = []
    provider, rig = made(on_event=events.append)
    repo = rig.given_repo()
    rig.host.script.add(Fault(kind="status", method="GET", status=503, times=2))

    provider.get_repo(repo)

    told = [(type(event).__name__, event.attempt) for event in events if isinstance(event, RequestEvent | RetryEvent)]
    assert told == [("RequestEvent", 1), ("RetryEvent", 1), ("RequestEvent", 2), ("RetryEvent", 2), ("RequestEvent", 3)]


def test_a_hook_that_raises_breaks_nothing(made: Callable[..., Made]) -> None:
    """Whatever a metrics backend does, the repository is made, and once."""

    def broken(event: Event) -> None:
        raise RuntimeError("the backend is down")

    provider, rig = made(on_event=broken)
    repo = rig.fresh_path()

    provider.create_repo(repo)

    assert rig.exists(repo)
    assert len(rig.host.request_log.mutations()) == 1


def test_without_a_hook_no_event_is_made(made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch) -> None:
    """Off means off: not even the object is built."""

    def never(**fields: Any) -> None:
        raise AssertionError("an event was built for nobody")

    provider, rig = made()
    for module in (gitprovider._remote.operation, gitprovider._core.operation, gitprovider._remote.provider):
        for name in ("RequestEvent", "OperationEvent", "RetryEvent"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, never)

    work(provider, rig.fresh_path())
