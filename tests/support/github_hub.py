"""A GitHub for one test: the fake over a forge, behind a fault script, mounted on ``responses``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import responses

from gitprovider import Branch, BranchProtection, Commit, DeleteFile, PutFile, RetryOptions
from gitprovider.fakes.faults import Fault, FaultyHost, RecordedRequest
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.mount import mount
from gitprovider.fakes.serve import serving
from gitprovider.github import GitHubProvider
from gitprovider.local.database import PullRecord
from gitprovider.local.forge import Forge
from tests.support.patience import PATIENCE

REPO = "acme/widgets"
# A sha that names nothing.
ABSENT = "0" * 39 + "1"


class Hub:
    """The host, its request log and script, and a provider for it. ``waits`` are the seconds that reads waited."""

    def __init__(self, root: Path, **knobs: Any) -> None:
        self.forge = Forge(root, combine=FakeGitHub.combine)
        self.fake = FakeGitHub(self.forge, **knobs)
        self.host = FaultyHost(self.fake, sleep=lambda seconds: None)
        self.waits: list[float] = []
        self.clock = 0.0
        self.url = self.fake.base
        self.provider = self.connect()

    def connect(self, auth: Any = None, **options: Any) -> GitHubProvider:
        """A further provider for the same host. It commits with the Git data API; a test of GraphQL asks for that."""
        retry = RetryOptions(sleep=self.sleep, clock=lambda: self.clock)
        given: dict[str, Any] = {"base_url": self.url, "retry": retry, "timeout": PATIENCE, "commit_api": "git-data"}
        return GitHubProvider(auth or self.fake.token, **(given | options))

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock += seconds

    # Given

    def given_repo(self, path: str = REPO, **files: str) -> Commit:
        """A repository whose main branch has ``files``; ``__`` in a name is a dot."""
        self.forge.create_repo(path)
        changes = [PutFile(path=name.replace("__", "."), content=text) for name, text in files.items()]
        return self.given_commit("main", *(changes or [PutFile(path="README.md", content="hello\n")]), repo=path)

    def given_commit(self, branch: str, *changes: PutFile | DeleteFile, repo: str = REPO) -> Commit:
        made = self.forge.commit_changes(repo, branch, changes, message="given", bypass=True)
        return Commit(sha=made.sha, parent=None, branch=branch, message="given")

    def given_branch(self, name: str, repo: str = REPO) -> Branch:
        sha = self.forge.head(repo, "main")
        self.forge.create_branch(repo, name, sha)
        return Branch(name=name, sha=sha)

    def given_pull(self, source: str = "feature", repo: str = REPO, **more: Any) -> PullRecord:
        """An open pull request of one commit on a branch of its own."""
        self.given_branch(source, repo)
        self.given_commit(source, PutFile(path=f"{source}.txt", content=source), repo=repo)
        return self.forge.open_pull_request(repo, source_branch=source, target_branch="main", title=source, **more)

    def given_rule(self, rules: BranchProtection, pattern: str = "main", repo: str = REPO) -> None:
        self.forge.put_rule(repo, pattern, rules)

    def given_fault(self, *faults: Fault) -> None:
        self.host.script.add(*faults)

    # Seen

    @property
    def sent(self) -> list[RecordedRequest]:
        """Every request so far."""
        return self.host.request_log.entries

    def calls(self) -> list[str]:
        """Every request so far, as ``METHOD /template`` with the repository's part left out."""
        return [f"{e.method} {e.endpoint.replace('/repos/{owner}/{repo}', '') or '/'}" for e in self.sent]

    def state(self) -> Any:
        """All that a user of the host can see."""
        return {
            repo.path: (
                repo.id,
                repo.visibility,
                self.forge.branches(repo.path),
                [(rule.pattern, rule.protection, rule.settings) for rule in self.forge.rules(repo.path)],
                [
                    (pull.number, pull.state, pull.title, pull.labels, pull.reviewers, pull.merge_commit_sha)
                    for pull in self.forge.pull_requests(repo.path)
                ],
            )
            for repo in self.forge.repos()
        }


@contextmanager
def mounted(host: Any, url: str) -> Iterator[None]:
    """``host`` answers below ``url`` while the block runs, and nothing else is reached."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as rsps:
        mount(host, rsps, url)
        yield


@contextmanager
def running(root: Path, *, like: Path | None = None, **knobs: Any) -> Iterator[Hub]:
    """A hub, over a copy of the forge in ``like`` where that is given."""
    if like is not None:
        shutil.copytree(like, root)
    hub = Hub(root, **knobs)
    with mounted(hub.host, hub.url), hub.provider:
        yield hub


@contextmanager
def wired(root: Path, **knobs: Any) -> Iterator[Hub]:
    """A hub on a loopback port: real connections, real bytes."""
    hub = Hub(root, **knobs)
    with serving(hub.host) as hub.url, hub.connect() as hub.provider:
        yield hub


def refuse(hub: Hub, status: int, message: str, *, method: str | None = None, endpoint: str = "", **more: Any) -> None:
    """The next matching request is refused with these words, or ``errors``."""
    headers = more.pop("headers", {})
    body = json.dumps({"message": message, "documentation_url": "https://docs.github.com/rest", **more}).encode()
    hub.given_fault(Fault(kind="status", status=status, method=method, endpoint=endpoint, headers=headers, body=body))


def create(hub: Hub, name: str = "develop") -> Any:
    return hub.provider.create_branch(REPO, name, source="main")


def commit(hub: Hub, branch: str = "main", repo: str = REPO) -> Any:
    return hub.provider.commit_files(repo, branch, [PutFile(path="new.txt", content="new")], message="m")


def open_pull(hub: Hub, **more: Any) -> Any:
    return hub.provider.open_pull_request(REPO, source_branch="feature", target_branch="main", title="t", **more)
