"""Fakes for the tests of an application: GitHub, GitLab and a local forge that run in the test's own process.

Install ``gitprovider[testing,fakes]``. Name this module in a ``conftest.py`` to have three fixtures of these names::

    pytest_plugins = ["gitprovider.testing.fakes"]

A test then says what goes wrong by the name of an operation::

    def test_the_merge_is_not_repeated(fake_github):
        fake_github.seed("acme/widgets", branches=["feature"])
        fake_github.lose_answer("merge_pull_request", applied=True)
        ...                                                 # call the application with fake_github.provider()
        assert len(fake_github.sent("merge_pull_request")) == 1

A fault that never struck raises AssertionError at the end: the test did not test what it says.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

from gitprovider.fakes.faults import Fault, FaultyHost, RecordedRequest
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.gitlab.access import protect_default
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.operations import HostName, carries_out, lost_answer, refusal
from gitprovider.fakes.serve import serving
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider
from gitprovider.local import Forge, LocalProvider
from gitprovider.retry import RetryOptions

_P = TypeVar("_P", GitHubProvider, GitLabProvider)

_DEFAULT_FILES: Mapping[str, str | bytes] = {"README.md": "# A repository\n"}
_JSON = "application/json; charset=utf-8"


class Fake:
    """What the three fakes have in common.

    Attributes:
        forge: the repositories, pull requests and rules, to set and to read without a provider.
    """

    def __init__(self, forge: Forge) -> None:
        self.forge = forge

    def seed(
        self, repo: str, *, files: Mapping[str, str | bytes] = _DEFAULT_FILES, branches: Sequence[str] = ()
    ) -> str:
        """Create a private repository whose default branch ``main`` has one commit. No request is counted.

        Args:
            files: path to content. A text is written in UTF-8.
            branches: further branches, at the same commit.

        Returns:
            The commit's sha.

        Raises:
            AlreadyExistsError: the repository exists.
        """
        forge = self.forge
        forge.create_repo(repo)
        blobs = {path: forge.write_blob(repo, _bytes(content)) for path, content in files.items()}
        tree = forge.write_tree(repo, None, {path: (blob, "100644") for path, blob in blobs.items()})
        sha = forge.write_commit(repo, tree=tree, parents=[], message="Initial commit")
        for name in ("main", *branches):
            forge.create_branch(repo, name, sha)
        return sha


class LocalFake(Fake):
    """LocalProvider on a forge in a folder.

    There is no connection, so no answer can be lost. Use :func:`fake_github` or :func:`fake_gitlab` to inject faults.
    """

    def provider(self, **options: Any) -> LocalProvider:
        """Return a LocalProvider with any of its options."""
        return LocalProvider(self.forge.root, **options)


class RemoteFake(Fake, Generic[_P]):
    """A fake server on a loopback port. Any client can use it by ``url`` and ``token``.

    A fault strikes the requests that carry out an operation. For a mutation, these are the requests whose effect a user
    of the host could see. Every operation that reads a repository sends the request of ``get_repo``.

    Attributes:
        url: of the server, without a trailing slash.
        token: that the server accepts.
        server: the fake server, for its own settings.
    """

    def __init__(
        self, host: HostName, server: FakeGitHub | FakeGitLab, behind: FaultyHost, url: str, stack: ExitStack
    ) -> None:
        super().__init__(server.forge)
        self.url = url
        self.token = server.token
        self.server = server
        self._host: HostName = host
        self._behind = behind
        self._stack = stack

    def provider(self, **options: Any) -> _P:
        """Return a provider on the fake with any of its options. It is closed at the end.

        Waits take no time and ``settle`` is 0, unless ``retry`` or ``settle`` is given.
        """
        given = {"retry": RetryOptions(sleep=_no_wait), "settle": 0.0, **options}
        return self._stack.enter_context(self._make(given))

    def _make(self, options: Mapping[str, Any]) -> _P:
        raise NotImplementedError

    def seed(
        self, repo: str, *, files: Mapping[str, str | bytes] = _DEFAULT_FILES, branches: Sequence[str] = ()
    ) -> str:
        """Create a repository, as :meth:`Fake.seed` does. GitLab protects its default branch."""
        sha = super().seed(repo, files=files, branches=branches)
        if isinstance(self.server, FakeGitLab):
            protect_default(self.server, repo, "main")
        return sha

    def lose_answer(self, operation: str, *, applied: bool = True, times: int = 1) -> None:
        """Reset the connection of the operation's next requests in place of an answer.

        Args:
            applied: whether the host carries out the request first.
            times: how many requests.

        Raises:
            ValueError: the contract has no operation of that name.
        """
        self._inject(lost_answer(self._host, operation, applied=applied, times=times))

    def refuse(self, operation: str, status: int, *, retry_after: int | None = None, times: int = 1) -> None:
        """Answer the operation's next requests with an HTTP status, without effect.

        Args:
            status: such as 403, 422 or 503.
            retry_after: seconds, in the header ``Retry-After``.
            times: how many requests.

        Raises:
            ValueError: the contract has no operation of that name.
        """
        self._inject(refusal(self._host, operation, status, retry_after=retry_after, times=times))

    def rate_limit(self, operation: str | None = None, *, retry_after: int = 60, times: int = 1) -> None:
        """Answer the next requests as a host does whose rate limit is reached, without effect.

        Args:
            operation: the operation whose requests are meant; None means all requests.
            retry_after: seconds, in the header ``Retry-After``.
            times: how many requests.

        Raises:
            ValueError: the contract has no operation of that name.
        """
        content_type, body = _LIMITED[self._host]
        self._inject(
            Fault(
                kind="status",
                where=None if operation is None else carries_out(self._host, operation),
                status=429,
                headers={"Content-Type": content_type, "Retry-After": str(retry_after)},
                body=body,
                times=times,
            )
        )

    def down(self) -> None:
        """Answer every request with 503, without effect, until :meth:`up`."""
        self._inject(Fault(kind="status", status=503, times=None))

    def up(self) -> None:
        """End every fault.

        Raises:
            AssertionError: a fault never struck.
        """
        self._check()
        self._behind.script.clear()

    def sent(self, operation: str) -> list[RecordedRequest]:
        """Return the requests so far that carry out the operation, also those that a fault struck.

        Raises:
            ValueError: the contract has no operation of that name.
        """
        where = carries_out(self._host, operation)
        return [entry for entry in self._behind.request_log.entries if where(entry.method, entry.endpoint, entry.body)]

    def _inject(self, fault: Fault) -> None:
        self._behind.script.add(fault)

    def _check(self) -> None:
        never = self._behind.script.unstruck()
        if never:
            raise AssertionError(
                f"{len(never)} injected fault(s) never struck, the first of kind {never[0].kind!r}:"
                " the request that it waits for was not sent"
            )


class GitHubFake(RemoteFake[GitHubProvider]):
    """A fake GitHub, and GitHubProviders on it."""

    def _make(self, options: Mapping[str, Any]) -> GitHubProvider:
        return GitHubProvider(self.token, base_url=self.url, **options)


class GitLabFake(RemoteFake[GitLabProvider]):
    """A fake GitLab, and GitLabProviders on it."""

    def _make(self, options: Mapping[str, Any]) -> GitLabProvider:
        return GitLabProvider(self.url, private_token=self.token, **options)


# The recorded answers gh-too-many-requests and gl-limit-rack.
_LIMITED: Mapping[HostName, tuple[str, bytes]] = {
    "github": (_JSON, b'{"message": "API rate limit exceeded for installation ID 1."}'),
    "gitlab": ("text/plain", b"Retry later\n"),
}


@contextmanager
def fake_github(**settings: Any) -> Iterator[GitHubFake]:
    """Serve a fake GitHub while the block runs. It has the organization ``acme``.

    Args:
        settings: of ``gitprovider.fakes.github.server.FakeGitHub``, such as ``orgs`` and ``plan``.

    Raises:
        AssertionError: at the end, if an injected fault never struck.
    """
    with _forge(FakeGitHub.combine) as forge, _serving(FakeGitHub(forge, **settings), "github", GitHubFake) as fake:
        yield fake


@contextmanager
def fake_gitlab(**settings: Any) -> Iterator[GitLabFake]:
    """Serve a fake GitLab while the block runs. It has the groups ``acme`` and ``acme/platform``.

    Args:
        settings: of ``gitprovider.fakes.gitlab.server.FakeGitLab``, such as ``groups`` and ``tier``.

    Raises:
        AssertionError: at the end, if an injected fault never struck.
    """
    with _forge(FakeGitLab.combine) as forge, _serving(FakeGitLab(forge, **settings), "gitlab", GitLabFake) as fake:
        yield fake


@contextmanager
def fake_local() -> Iterator[LocalFake]:
    """Give a forge in a temporary folder while the block runs."""
    with _forge() as forge:
        yield LocalFake(forge)


_F = TypeVar("_F", GitHubFake, GitLabFake)


@contextmanager
def _forge(combine: Any = None) -> Iterator[Forge]:
    with tempfile.TemporaryDirectory(prefix="gitprovider-") as root:
        yield Forge(Path(root), combine=combine) if combine is not None else Forge(Path(root))


@contextmanager
def _serving(server: FakeGitHub | FakeGitLab, host: HostName, kind: type[_F]) -> Iterator[_F]:
    behind = FaultyHost(server)
    with serving(behind) as url, ExitStack() as stack:
        fake = kind(host, server, behind, url, stack)
        yield fake
        # Not after an error of the block, which would be hidden.
        fake._check()


def _no_wait(seconds: float) -> None:
    """Wait no time. The wait still counts against its budget."""


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


@pytest.fixture(name="fake_github")
def _github_fixture() -> Iterator[GitHubFake]:
    with fake_github() as fake:
        yield fake


@pytest.fixture(name="fake_gitlab")
def _gitlab_fixture() -> Iterator[GitLabFake]:
    with fake_gitlab() as fake:
        yield fake


@pytest.fixture(name="fake_local")
def _local_fixture() -> Iterator[LocalFake]:
    with fake_local() as fake:
        yield fake
