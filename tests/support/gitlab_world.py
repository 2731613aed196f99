"""A GitLab to test against: a fake server with a request log and injected faults, and providers on a fake clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import responses

from gitprovider.errors import GitProviderError
from gitprovider.fakes.faults import Fault, FaultScript, FaultyHost, RecordedRequest, RequestLog
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.mount import mount
from gitprovider.gitlab import GitLabProvider
from gitprovider.local import Forge
from gitprovider.models import MergeMethod
from gitprovider.retry import RetryOptions
from tests.support.patience import PATIENCE

URL = "https://gitlab.com"
TOKEN = "glpat-0123456789abcdefghij"
REPO = "acme/platform/widgets"


class FakeTime:
    """A clock that sleeping moves, and what was slept."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now

    def retry(self, **options: Any) -> RetryOptions:
        return RetryOptions(sleep=self.sleep, clock=self.clock, random=lambda low, high: high, **options)


class World:
    """A fake at ``url`` with a project, whose default branch ``main`` has a README.md."""

    def __init__(self, root: Path, rsps: responses.RequestsMock, *, url: str = URL, **knobs: Any) -> None:
        made_before = root.exists()
        self.forge = Forge(root, combine=FakeGitLab.combine)
        self.fake = FakeGitLab(self.forge, token=TOKEN, base=url, **knobs)
        self.script = FaultScript()
        self.request_log = RequestLog()
        self.host = FaultyHost(self.fake, self.request_log, self.script)
        self.time = FakeTime()
        self.url = url
        mount(self.host, rsps, url)
        if not made_before:
            self.forge.create_repo(REPO)
            self.commit("main", {"README.md": b"# Widgets\n"}, "Initial commit")
        self.head = self.forge.head(REPO, "main")

    def provider(self, **options: Any) -> GitLabProvider:
        given: dict[str, Any] = {"retry": self.time.retry(), "timeout": PATIENCE} | options
        return GitLabProvider(self.url, private_token=TOKEN, **given)

    def commit(
        self,
        branch: str,
        files: Mapping[str, bytes | tuple[str, str] | None],
        message: str = "change",
        repo: str = REPO,
    ) -> str:
        """One more commit on a branch, by somebody else; a tuple is an object's sha and its mode."""
        heads = dict(self.forge.branches(repo))
        entries = {
            path: (self.forge.write_blob(repo, given), "100644") if isinstance(given, bytes) else given
            for path, given in files.items()
        }
        head = heads.get(branch)
        tree = self.forge.write_tree(repo, head, entries)
        sha = self.forge.write_commit(repo, tree=tree, parents=[head] if head else [], message=message)
        if head is None:
            self.forge.create_branch(repo, branch, sha)
        else:
            self.forge.move_branch(repo, branch, sha, expected=head, bypass=True)
        return sha

    def branch(self, name: str, source: str = "main") -> str:
        sha = self.forge.head(REPO, source)
        self.forge.create_branch(REPO, name, sha)
        return sha

    def feature(self, name: str = "feature") -> str:
        """A branch that is one commit ahead of main."""
        self.branch(name)
        return self.commit(name, {f"{name}.txt": b"new\n"}, f"Add {name}")

    def pull_request(self, source: str = "feature", **options: Any) -> int:
        """An open merge request from a branch that is one commit ahead."""
        self.feature(source)
        options.setdefault("title", "A change")
        return self.forge.open_pull_request(REPO, source_branch=source, target_branch="main", **options).number

    def settings(self, **settings: Any) -> None:
        self.forge.update_repo(REPO, settings=settings)

    def method(self, method: MergeMethod) -> None:
        self.settings(merge_method="ff" if method is MergeMethod.REBASE else "merge")

    def fault(self, kind: Any, **known: Any) -> None:
        self.script.add(Fault(kind=kind, **known))

    def snapshot(self) -> object:
        """Everything of the host that a mutation could have changed and a user could see."""
        repos = self.forge.repos()
        pulls = [self.forge.pull_requests(repo.path) for repo in repos]
        return repos, [(self.forge.branches(repo.path), self.forge.rules(repo.path)) for repo in repos], pulls

    @property
    def sent(self) -> list[str]:
        """What was requested so far: verb, and path below the API with the project's name left out."""
        return [shown(entry) for entry in self.request_log.entries]

    @property
    def mutations(self) -> list[str]:
        return [shown(entry) for entry in self.request_log.mutations()]


def shown(entry: RecordedRequest) -> str:
    path = entry.path.partition("/api/v4")[2] or entry.path.partition("/api")[2]
    return f"{entry.method} {path.replace('/projects/' + REPO, '')}".rstrip()


def failed(error: type[GitProviderError], call: Callable[[], object]) -> GitProviderError:
    with pytest.raises(error) as caught:
        call()
    return caught.value
