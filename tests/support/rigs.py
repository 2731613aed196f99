"""Rigs over the local forge: the same given-verbs for LocalProvider and for both fakes."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import pygit2
import responses
from pygit2.enums import SortMode

from gitprovider.contract import GitProviderContract, HostState
from gitprovider.fakes.faults import Fault, FaultScript, FaultyHost, RequestLog
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.gitlab.access import protect_default
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.http import FakeServer, Request, Response
from gitprovider.fakes.mount import mount
from gitprovider.fakes.serve import serving
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider
from gitprovider.local import Forge, LocalProvider
from gitprovider.models import BranchProtection, MergeMethod, PullRequestState, Visibility
from gitprovider.retry import RetryOptions
from gitprovider.testing import CommitView, File, PullRequestView
from tests.support.patience import PATIENCE

NAMESPACE = "acme"
# A wait counts against its budget, and takes no time.
AT_ONCE = RetryOptions(sleep=lambda seconds: None)
# Requests that are no GET and yet change nothing that a user of the host could see.
_UNSEEN = r"(/git/(blobs|trees|commits)|/graphql)\Z"
When = Literal["before", "after"]
# The forge's methods that a user of the host can see the effect of. Objects that no branch names are not among them.
_WRITES = (
    "create_repo",
    "rename_repo",
    "update_repo",
    "delete_repo",
    "create_branch",
    "move_branch",
    "delete_branch",
    "commit_changes",
    "put_rule",
    "tighten",
    "delete_rule",
    "open_pull_request",
    "update_pull_request",
    "merge",
)


class AnyProvider(GitProviderContract, HostState, Protocol):
    """What all three providers are."""

    def supports(self, option: str) -> bool: ...


class Interposer:
    """An action that is due once, around the next mutation."""

    def __init__(self) -> None:
        self._due: tuple[Callable[[], object], When] | None = None

    def disarm(self) -> None:
        self._due = None

    def arm(self, action: Callable[[], object], when: When) -> None:
        self._due = (action, when)

    def run(self, when: When) -> None:
        if self._due is not None and self._due[1] == when:
            action, self._due = self._due[0], None
            action()


class ForgeRig:
    """A provider over a forge, and the forge itself to set and read the state by."""

    unknown_namespace: str | None = None
    reviewer = "reviewer"  # a user of both fakes
    unknown_reviewer: str | None = None
    namespace = NAMESPACE

    provider: AnyProvider

    def __init__(self, forge: Forge) -> None:
        self.forge = forge
        self.interposer = Interposer()
        self._numbers = itertools.count(1)

    def renewed(self) -> Self:
        """The rig for another case: nothing is due, and whatever a case may do to the host's doors is undone."""
        self.interposer.disarm()
        return self

    @property
    def state(self) -> HostState:
        return self.provider

    def supports(self, option: str) -> bool:
        return self.provider.supports(option)

    def on_next_mutation(self, action: Callable[[], object], *, when: When = "before") -> None:
        self.interposer.arm(action, when)

    def fresh_path(self) -> str:
        return f"{NAMESPACE}/widgets-{next(self._numbers):05}"

    # given

    def given_repo(
        self,
        files: Mapping[str, bytes | File] | None = None,
        *,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
    ) -> str:
        path = self.fresh_path()
        self.forge.create_repo(path, description=description, visibility=visibility)
        given = {"README.md": b"# Widgets\n"} if files is None else files
        self.forge.create_branch(path, "main", self._commit(path, None, given, "Initial commit"))
        return path

    def given_empty_repo(self) -> str:
        path = self.fresh_path()
        self.forge.create_repo(path)
        return path

    def given_branch(self, repo: str, name: str, *, source: str | None = "main") -> str:
        own = {"own.txt": b"own\n"}
        sha = self._commit(repo, None, own, "Begin") if source is None else self.forge.head(repo, source)
        self.forge.create_branch(repo, name, sha)
        return sha

    def given_branches(self, repo: str, names: Sequence[str]) -> None:
        head = pygit2.Oid(hex=self.forge.head(repo, "main"))
        git = self._git(repo)
        for name in names:
            git.references.create(f"refs/heads/{name}", head)

    def given_commit(
        self, repo: str, branch: str, files: Mapping[str, bytes | File | None], *, message: str = "change"
    ) -> str:
        head = self.forge.head(repo, branch)
        sha = self._commit(repo, head, files, message)
        self.forge.move_branch(repo, branch, sha, expected=head, bypass=True)
        return sha

    def _commit(self, repo: str, head: str | None, files: Mapping[str, bytes | File | None], message: str) -> str:
        entries: dict[str, tuple[str, str] | None] = {}
        git = self._git(repo)
        for path, given in files.items():
            if given is None:
                entries[path] = None
                continue
            file = given if isinstance(given, File) else File(given)
            module = file.mode == "160000"
            entries[path] = (file.content.decode() if module else str(git.create_blob(file.content)), file.mode)
        tree = self.forge.write_tree(repo, head, entries)
        return self.forge.write_commit(repo, tree=tree, parents=[head] if head else [], message=message)

    def given_no_branch(self, repo: str, name: str) -> None:
        self.forge.delete_branch(repo, name, bypass=True)

    def given_renamed_branch(self, repo: str, name: str, new_name: str) -> None:
        self.forge.create_branch(repo, new_name, self.forge.head(repo, name))
        if self.forge.repo(repo).default_branch == name:
            self.forge.update_repo(repo, default_branch=new_name)
        self.given_no_branch(repo, name)

    def given_protection(self, repo: str, branch: str, rules: BranchProtection) -> None:
        self.forge.put_rule(repo, branch, rules)

    def given_pull_request(
        self,
        repo: str,
        *,
        source_branch: str,
        target_branch: str = "main",
        title: str = "A change",
        draft: bool = False,
    ) -> int:
        return self.forge.open_pull_request(
            repo, source_branch=source_branch, target_branch=target_branch, title=title, draft=draft
        ).number

    def given_closed(self, repo: str, number: int) -> None:
        self.forge.update_pull_request(repo, number, state=PullRequestState.CLOSED)

    def given_merged(self, repo: str, number: int) -> str:
        merged = self.forge.merge(repo, number, method=MergeMethod.MERGE, bypass=True)
        assert merged.merge_commit_sha is not None
        return merged.merge_commit_sha

    def given_approval(self, repo: str, number: int) -> None:
        self.forge.approve(repo, number)

    def given_check(self, repo: str, branch: str, name: str, state: Literal["success", "failure", "pending"]) -> None:
        self.forge.set_check(repo, branch, name, state)

    def given_merge_method(self, repo: str, method: MergeMethod, *, allowed: bool) -> bool:
        return allowed

    def given_failing_requests(self, count: int) -> bool:
        return False

    def given_lost_answer(self) -> bool:
        return False

    def given_revoked_credential(self) -> bool:
        return False

    def given_archived(self, repo: str) -> None:
        self.forge.update_repo(repo, archived=True)

    def given_renamed(self, repo: str) -> str:
        return self.forge.rename_repo(repo, self.fresh_path()).path

    # read

    def exists(self, repo: str) -> bool:
        return repo in {record.path for record in self.forge.repos()}

    def branches(self, repo: str) -> dict[str, str]:
        return dict(self.forge.branches(repo))

    def files(self, repo: str, branch: str) -> dict[str, File]:
        git = self._git(repo)
        tree = git[pygit2.Oid(hex=self.forge.head(repo, branch))].peel(pygit2.Tree)
        return dict(self._files(git, tree, ""))

    def _files(self, git: pygit2.Repository, tree: Any, prefix: str) -> Iterator[tuple[str, File]]:
        for entry in tree:
            path = prefix + entry.name
            mode = f"{entry.filemode:06o}"
            if mode == "040000":
                yield from self._files(git, git[entry.id], path + "/")
            else:
                blob: Any = None if mode == "160000" else git[entry.id]
                yield path, File(str(entry.id).encode() if blob is None else blob.data, mode)

    def history(self, repo: str, branch: str) -> list[CommitView]:
        head = pygit2.Oid(hex=self.forge.head(repo, branch))
        return [
            CommitView(
                sha=str(commit.id),
                parents=tuple(str(parent) for parent in commit.parent_ids),
                message=commit.message.rstrip("\n"),
                author_name=commit.author.name,
                author_email=commit.author.email,
            )
            for commit in self._git(repo).walk(head, SortMode.TOPOLOGICAL)
        ]

    def protection(self, repo: str, branch: str) -> BranchProtection | None:
        return self.forge.protection(repo, branch)

    def pull_requests(self, repo: str) -> dict[int, PullRequestView]:
        return {
            record.number: PullRequestView(
                number=record.number,
                state=record.state,
                title=record.title,
                description=record.description,
                source_branch=record.source_branch,
                target_branch=record.target_branch,
                draft=record.draft,
                labels=frozenset(record.labels),
                reviewers=frozenset(record.reviewers),
            )
            for record in self.forge.pull_requests(repo)
        }

    def _git(self, repo: str) -> pygit2.Repository:
        return pygit2.Repository(str(self.forge.repo(repo).git_dir))


class ForgeSpy:
    """Stands where a provider has its forge, and counts what the provider asks of it: its requests, as it were."""

    def __init__(self, forge: Forge, interposer: Interposer) -> None:
        self.requests = 0
        self.mutations = 0
        self._forge = forge
        self._interposer = interposer

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._forge, name)
        if not callable(member):
            return member

        @functools.wraps(member)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.requests += 1
            if name not in _WRITES:
                return member(*args, **kwargs)
            self.mutations += 1
            self._interposer.run("before")
            result = member(*args, **kwargs)
            self._interposer.run("after")
            return result

        return counted


class LocalRig(ForgeRig):
    """LocalProvider on a forge in a folder."""

    def __init__(self, root: Path, provider: LocalProvider) -> None:
        super().__init__(Forge(root))
        self.provider = provider
        self.spy = ForgeSpy(provider.forge, self.interposer)
        provider.forge = self.spy  # type: ignore[assignment]  # it answers as the forge does

    def requests_seen(self) -> int:
        return self.spy.requests

    def mutations_seen(self) -> int:
        return self.spy.mutations


class InterposedServer:
    """A fake with the interposer around each request that a user of the host could see the effect of."""

    def __init__(self, fake: FakeServer, interposer: Interposer) -> None:
        self.fake = fake
        self._interposer = interposer

    def endpoint(self, request: Request) -> str:
        return self.fake.endpoint(request)

    def handle(self, request: Request) -> Response:
        if request.method in ("GET", "HEAD") or re.search(_UNSEEN, self.fake.endpoint(request)):
            return self.fake.handle(request)
        self._interposer.run("before")
        answer = self.fake.handle(request)
        self._interposer.run("after")
        return answer


class RemoteRig(ForgeRig):
    """A remote provider on a fake, with a request log between them."""

    unknown_namespace = "nobody-has-this"
    unknown_reviewer = "nobody-is-this"
    fake: FakeGitHub | FakeGitLab

    def given_revoked_credential(self) -> bool:
        self.fake.token = "another"
        return True

    def __init__(self, forge: Forge, fake: FakeGitHub | FakeGitLab) -> None:
        super().__init__(forge)
        self.fake = fake
        self._token = fake.token
        self.server = InterposedServer(fake, self.interposer)
        self.host = FaultyHost(self.server, RequestLog(), FaultScript())

    def given_failing_requests(self, count: int) -> bool:
        self.host.script.add(Fault(kind="status", status=503, times=count))
        return True

    def given_lost_answer(self) -> bool:
        seen_by_users = rf"\A(?!.*{_UNSEEN})"
        self.host.script.add(
            *(
                Fault(kind="reset", when="after", method=method, endpoint=seen_by_users)
                for method in ("POST", "PUT", "PATCH", "DELETE")
            )
        )
        return True

    def renewed(self) -> Self:
        self.host.script.clear()
        self.fake.token = self._token
        self.host.request_log.clear()
        return super().renewed()

    def requests_seen(self) -> int:
        return len(self.host.request_log)

    def mutations_seen(self) -> int:
        return len(self.host.request_log.mutations())


class GitHubRig(RemoteRig):
    """GitHubProvider on the GitHub fake."""

    fake: FakeGitHub

    def __init__(self, root: Path, **knobs: Any) -> None:
        forge = Forge(root, combine=FakeGitHub.combine)
        super().__init__(forge, FakeGitHub(forge, **knobs))

    def given_merge_method(self, repo: str, method: MergeMethod, *, allowed: bool) -> bool:
        name = {"merge": "allow_merge_commit", "squash": "allow_squash_merge", "rebase": "allow_rebase_merge"}
        self.forge.update_repo(repo, settings={name[method.value]: allowed})
        return True

    def given_renamed_branch(self, repo: str, name: str, new_name: str) -> None:
        super().given_renamed_branch(repo, name, new_name)
        self.forge.update_repo(repo, settings={"renamed_branches": {name: new_name}})


class GitLabRig(RemoteRig):
    """GitLabProvider on the GitLab fake. Default branches are protected as GitLab protects them by itself."""

    fake: FakeGitLab

    def __init__(self, root: Path, **knobs: Any) -> None:
        forge = Forge(root, combine=FakeGitLab.combine)
        super().__init__(forge, FakeGitLab(forge, **knobs))

    def given_repo(
        self,
        files: Mapping[str, bytes | File] | None = None,
        *,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
    ) -> str:
        path = super().given_repo(files, description=description, visibility=visibility)
        protect_default(self.fake, path, "main")
        return path

    def given_renamed_branch(self, repo: str, name: str, new_name: str) -> None:
        super().given_renamed_branch(repo, name, new_name)
        if self.forge.repo(repo).default_branch == new_name:
            protect_default(self.fake, repo, new_name)

    def given_merge_method(self, repo: str, method: MergeMethod, *, allowed: bool) -> bool:
        fast_forward = allowed == (method is MergeMethod.REBASE)
        option = "never" if method is MergeMethod.SQUASH and not allowed else "default_off"
        settings = {"merge_method": "ff" if fast_forward else "merge", "squash_option": option}
        self.forge.update_repo(repo, settings=settings)
        return True


@contextmanager
def local_rig(root: Path, *, kind: type[LocalProvider] = LocalProvider) -> Iterator[LocalRig]:
    """LocalProvider on a forge in ``root``."""
    with kind(root) as provider:
        yield LocalRig(root, provider)


@contextmanager
def github_rig(
    root: Path,
    *,
    kind: type[GitHubProvider] = GitHubProvider,
    retry: RetryOptions = AT_ONCE,
    commit_api: Literal["auto", "git-data"] = "git-data",
    **knobs: Any,
) -> Iterator[GitHubRig]:
    """GitHubProvider on its fake, mounted on ``responses``."""
    rig = GitHubRig(root, **knobs)
    with (
        mounted(rig.host, rig.fake.base),
        kind(rig.fake.token, base_url=rig.fake.base, retry=retry, commit_api=commit_api) as rig.provider,
    ):
        yield rig


@contextmanager
def github_socket_rig(root: Path, **knobs: Any) -> Iterator[GitHubRig]:
    """GitHubProvider on its fake, over a loopback port."""
    rig = GitHubRig(root, **knobs)
    with (
        serving(rig.host) as url,
        GitHubProvider(rig.fake.token, base_url=url, retry=AT_ONCE, timeout=PATIENCE) as rig.provider,
    ):
        yield rig


@contextmanager
def gitlab_rig(root: Path, **knobs: Any) -> Iterator[GitLabRig]:
    """GitLabProvider on its fake, mounted on ``responses``."""
    rig = GitLabRig(root, **knobs)
    url = "https://gitlab.com"
    with mounted(rig.host, url), GitLabProvider(url, private_token=rig.fake.token, retry=AT_ONCE) as rig.provider:
        yield rig


@contextmanager
def mounted(host: FaultyHost, url: str) -> Iterator[None]:
    """``host`` answers below ``url`` while the block runs, and nothing else is reached."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as rsps:
        mount(host, rsps, url)
        yield
