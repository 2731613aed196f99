"""The three providers over a forge each, with faults on the way and a record of what was sent."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import responses

from gitprovider import GitProviderError, Outcome, ProviderUnavailableError, RetryOptions, TreeEntry
from gitprovider.contract import InspectableProvider
from gitprovider.fakes.faults import Fault, FaultyHost
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.http import FakeServer, Request, Response, TransportFault
from gitprovider.fakes.mount import mount
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider
from gitprovider.local import Forge, LocalProvider
from gitprovider.local.database import RepoRecord
from tests.support.patience import PATIENCE

Kind = Literal["local", "github", "gitlab"]
KINDS: tuple[Kind, ...] = ("local", "github", "gitlab")
# Where each host's effect step is: the verb and the endpoint, as the fake's request log has them.
EFFECTS: Mapping[Kind, Mapping[str, tuple[str, str]]] = {
    "local": {
        "create_repo": ("", "create_repo"),
        "create_branch": ("", "create_branch"),
        "protect_branch": ("", "tighten"),
        "commit_files": ("", "commit_changes"),
        "open_pull_request": ("", "open_pull_request"),
        "merge_pull_request": ("", "merge"),
    },
    "github": {
        "create_repo": ("POST", r"/orgs/\{org\}/repos"),
        "create_branch": ("POST", "/git/refs"),
        "protect_branch": ("PUT", "/protection"),
        "commit_files": ("POST", "/graphql.*createCommitOnBranch"),
        "open_pull_request": ("POST", "/pulls"),
        "merge_pull_request": ("PUT", "/merge"),
    },
    "gitlab": {
        "create_repo": ("POST", r"/projects\Z"),
        "create_branch": ("POST", "/repository/branches"),
        "protect_branch": ("POST", "/protected_branches"),
        "commit_files": ("POST", "/repository/commits"),
        "open_pull_request": ("POST", "/merge_requests"),
        "merge_pull_request": ("PUT", "/merge"),
    },
}
_LOCAL_WRITES = (*(endpoint for _, endpoint in EFFECTS["local"].values()), "delete_branch")


class Host:
    """One provider and the forge behind it.

    Attributes:
        kind: which provider it is.
        forge: what the host really holds; read it, and do behind the provider's back what others do.
        provider: over the same forge.
    """

    def __init__(self, kind: Kind, forge: Forge, provider: InspectableProvider) -> None:
        self.kind = kind
        self.forge = forge
        self.provider = provider

    def arm(self, fault: Fault) -> None:
        """Inject that fault. Requests are counted from now on."""
        raise NotImplementedError

    def disarm(self) -> None:
        """No more faults."""
        raise NotImplementedError

    def forget(self) -> None:
        """Empty the record of what was sent."""
        raise NotImplementedError

    def sent(self) -> list[str]:
        """Every request for a change since then, each as text that tells it from any other."""
        raise NotImplementedError


class LocalHost(Host):
    """LocalProvider. A fault "before" ends a write before it is recorded, "after" loses its result."""

    def __init__(self, root: Path) -> None:
        local = LocalProvider(root, settle=30)
        super().__init__("local", Forge(root), local)
        self._fault: Fault | None = None
        self._writes = 0
        self._sent: list[str] = []
        for name in _LOCAL_WRITES:
            setattr(local.forge, name, self._interposed(name, getattr(local.forge, name)))

    def arm(self, fault: Fault) -> None:
        self._fault, self._writes = fault, 0

    def disarm(self) -> None:
        self._fault = None

    def forget(self) -> None:
        self._sent.clear()

    def sent(self) -> list[str]:
        return list(self._sent)

    def _interposed(self, name: str, write: Any) -> Any:
        @functools.wraps(write)
        def call(*args: Any, **kwargs: Any) -> Any:
            self._sent.append(f"{name} {args} {sorted(kwargs.items(), key=str)}")
            fault = self._fault
            self._writes += fault is not None
            if fault is None or self._writes != fault.nth:
                return write(*args, **kwargs)
            if fault.when == "after":
                write(*args, **kwargs)
            elif (note := kwargs.get("on_commit")) is not None:

                def note_and_fail(base: str | None, sha: str) -> None:
                    note(base, sha)
                    raise _lost()

                write(*args, **{**kwargs, "on_commit": note_and_fail})
            raise _lost()

        return call


def _lost() -> GitProviderError:
    return ProviderUnavailableError("the disk failed", outcome=Outcome.UNKNOWN)


class PostponingServer:
    """A fake that lets one request time out, and carries it out later."""

    def __init__(self, fake: FakeServer) -> None:
        self._fake = fake
        self._match: tuple[str, str] | None = None
        self._pending: Request | None = None

    def endpoint(self, request: Request) -> str:
        return self._fake.endpoint(request)

    def handle(self, request: Request) -> Response:
        if self._match is not None:
            method, endpoint = self._match
            if request.method == method and re.search(endpoint, self.endpoint(request)):
                self._match, self._pending = None, request
                raise TransportFault("timeout")
        return self._fake.handle(request)

    def postpone(self, method: str, endpoint: str) -> None:
        """The next request like that is not answered, and not carried out yet."""
        self._match = (method, endpoint)

    def carry_out(self) -> None:
        """Do now what was put off."""
        assert self._pending is not None
        self._fake.handle(self._pending)


class RemoteHost(Host):
    """GitHubProvider or GitLabProvider on the fake of its host.

    Attributes:
        late: puts requests off.
    """

    def __init__(self, kind: Kind, forge: Forge, provider: InspectableProvider, faulty: FaultyHost) -> None:
        super().__init__(kind, forge, provider)
        self._faulty = faulty
        assert isinstance(faulty.fake, PostponingServer)
        self.late = faulty.fake

    def arm(self, fault: Fault) -> None:
        self._faulty.script.clear()
        self._faulty.script.add(fault)

    def disarm(self) -> None:
        self._faulty.script.clear()

    def forget(self) -> None:
        self._faulty.request_log.clear()

    def sent(self) -> list[str]:
        return [
            f"{entry.method} {entry.path} {sorted(entry.query.items())} {entry.body!r}"
            for entry in self._faulty.request_log.mutations()
        ]


@contextmanager
def host(kind: Kind, root: Path) -> Iterator[Host]:
    """A host of that kind, empty."""
    if kind == "local":
        yield LocalHost(root)
        return
    forge, fake, token, url = fake_of(kind, root)
    faulty = FaultyHost(PostponingServer(fake))
    with (
        responses.RequestsMock(assert_all_requests_are_fired=False) as mocked,
        provider_of(kind, token, url) as provider,
    ):
        mount(faulty, mocked, url)
        yield RemoteHost(kind, forge, provider, faulty)


def fake_of(kind: Kind, root: Path, **knobs: Any) -> tuple[Forge, FakeServer, str, str]:
    """The fake of a remote host over a forge: both, the token that it takes, and its public URL."""
    if kind == "github":
        forge = Forge(root, combine=FakeGitHub.combine)
        github = FakeGitHub(forge, **knobs)
        return forge, github, github.token, github.base
    forge = Forge(root, combine=FakeGitLab.combine)
    gitlab = FakeGitLab(forge, **knobs)
    return forge, gitlab, gitlab.token, "https://gitlab.com"


@contextmanager
def provider_of(kind: Kind, token: str, url: str) -> Iterator[InspectableProvider]:
    """The provider for the host at ``url``. Its reads are tried again without waiting."""
    retry = RetryOptions(sleep=lambda seconds: None)
    if kind == "github":
        with GitHubProvider(token, base_url=url, retry=retry, timeout=PATIENCE) as github:
            yield github
    else:
        with GitLabProvider(url, private_token=token, retry=retry, timeout=PATIENCE) as gitlab:
            yield gitlab


# What the forge holds, read without any provider


def everything(forge: Forge) -> dict[str, Any]:
    """All that a user of the host can see: the rules as they are, and what they demand of each branch."""
    return {record.path: _seen(forge, record) for record in forge.repos()}


def _seen(forge: Forge, record: RepoRecord) -> dict[str, Any]:
    branches = forge.branches(record.path)
    return {
        "repo": (record.visibility, record.description, record.default_branch, record.archived),
        "branches": branches,
        "rules": [(rule.pattern, rule.protection) for rule in forge.rules(record.path)],
        "demands": {name: forge.protection(record.path, name) for name, _ in branches},
        "pulls": [
            (pull.number, pull.state, pull.title, pull.draft, pull.labels, pull.reviewers, pull.head_sha)
            for pull in forge.pull_requests(record.path)
        ],
    }


def effective(seen: Mapping[str, Any]) -> dict[str, Any]:
    """``everything`` without the rules themselves: what is left is what they come to."""
    return {path: {name: value for name, value in repo.items() if name != "rules"} for path, repo in seen.items()}


def given_project(forge: Forge, repo: str) -> None:
    """A repository with files on main, a branch ``change`` that is one commit ahead, and a pull request from it."""
    forge.create_repo(repo)
    first = _commit(forge, repo, None, {"README.md": b"# Widgets\n", "old.txt": b"old\n"}, "Begin")
    forge.create_branch(repo, "main", first)
    forge.create_branch(repo, "change", _commit(forge, repo, first, {"new.txt": b"new\n"}, "Change"))
    forge.create_branch(repo, "later", _commit(forge, repo, first, {"later.txt": b"later\n"}, "Later"))
    forge.open_pull_request(repo, source_branch="change", target_branch="main", title="A change")


def _commit(forge: Forge, repo: str, parent: str | None, files: Mapping[str, bytes], message: str) -> str:
    entries: dict[str, tuple[str, str] | None] = {
        path: (forge.write_blob(repo, data), "100644") for path, data in files.items()
    }
    tree = forge.write_tree(repo, parent, entries)
    return forge.write_commit(repo, tree=tree, parents=[parent] if parent else [], message=message)


def tree_of(forge: Forge, repo: str, branch: str) -> dict[str, TreeEntry]:
    return forge.read_tree(repo, forge.head(repo, branch))
