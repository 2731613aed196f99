"""The base class of the three providers. It defines the order of steps that every operation has in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from gitprovider import checks
from gitprovider._core.claims import IntentStore, check_store
from gitprovider._core.operation import BeforeEffect
from gitprovider._core.options import Host, require, support
from gitprovider.contract import InspectableProvider, TreeEntry
from gitprovider.models import (
    Author,
    Branch,
    BranchProtection,
    Commit,
    FileChange,
    MergeMethod,
    MergeResult,
    PullRequest,
    PullRequestState,
    Repo,
    Visibility,
)
from gitprovider.mutations import (
    CommitFiles,
    CreateBranch,
    CreateRepo,
    MergePullRequest,
    Mutation,
    OpenPullRequest,
    ProtectBranch,
)
from gitprovider.retry import check_cancelled

_T = TypeVar("_T")


class Provider(InspectableProvider):
    """Base class of GitHubProvider, GitLabProvider and LocalProvider.

    Each public method runs in the same order: check the path and the arguments, check the options, begin the intent,
    call the host's hook. A hook has the name of the operation with a leading underscore. It does only the work that is
    specific to the host.

    The operations inherit the docstrings of :class:`gitprovider.GitProviderContract` and
    :class:`gitprovider.HostState`, which are the specification. Editors and ``help()`` show them here.

    Attributes:
        name: the provider's name, as in errors and intents.
        settle: seconds after which a request whose response was lost can no longer take effect.
        intents: the store that the ``key`` of an ``ensure_`` function is looked up in, or None.
    """

    name: str = ""  # pyright: ignore[reportIncompatibleMethodOverride]  # an attribute fits a property that is read
    settle: float = 0.0  # pyright: ignore[reportIncompatibleMethodOverride]  # as above
    intents: IntentStore | None = None
    _host: Host
    _before_effect: BeforeEffect | None = None

    # GitProviderContract

    def get_repo(self, repo: str) -> Repo:
        with self._operation("get_repo", repo) as op:
            with op.arguments():
                self._check_path(repo)
            return self._get_repo(op)

    def list_branches(self, repo: str) -> list[Branch]:
        with self._operation("list_branches", repo) as op:
            with op.arguments():
                self._check_path(repo)
            found = {branch.name: branch for branch in self._list_branches(op)}
            return [found[name] for name in sorted(found)]

    def create_repo(
        self, repo: str, *, description: str = "", visibility: Visibility = Visibility.PRIVATE, auto_init: bool = False
    ) -> Repo:
        return self._mutate(
            repo, partial(CreateRepo, description=description, visibility=visibility, auto_init=auto_init)
        )

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        return self._mutate(repo, partial(CreateBranch, name=name, source=source))

    def protect_branch(self, repo: str, branch: str, rules: BranchProtection = BranchProtection()) -> BranchProtection:
        return self._mutate(repo, partial(ProtectBranch, branch=branch, rules=rules))

    def commit_files(
        self,
        repo: str,
        branch: str,
        changes: Sequence[FileChange],
        *,
        message: str,
        author: Author | None = None,
        expected_head: str | None = None,
    ) -> Commit:
        return self._mutate(
            repo,
            partial(
                CommitFiles, branch=branch, changes=changes, message=message, author=author, expected_head=expected_head
            ),
        )

    def open_pull_request(
        self,
        repo: str,
        *,
        source_branch: str,
        target_branch: str,
        title: str,
        description: str = "",
        draft: bool = False,
        labels: Sequence[str] = (),
        reviewers: Sequence[str] = (),
    ) -> PullRequest:
        return self._mutate(
            repo,
            partial(
                OpenPullRequest,
                source_branch=source_branch,
                target_branch=target_branch,
                title=title,
                description=description,
                draft=draft,
                labels=labels,
                reviewers=reviewers,
            ),
        )

    def merge_pull_request(
        self,
        repo: str,
        number: int,
        *,
        method: MergeMethod = MergeMethod.MERGE,
        expected_head: str | None = None,
        message: str | None = None,
        delete_source_branch: bool = False,
        timeout: float = 30.0,
    ) -> MergeResult:
        return self._mutate(
            repo,
            partial(
                MergePullRequest,
                number=number,
                method=method,
                expected_head=expected_head,
                message=message,
                delete_source_branch=delete_source_branch,
                timeout=timeout,
            ),
        )

    # HostState

    def head(self, repo: str, branch: str) -> str:
        return self._read("head", repo, self._head, branch=branch)

    def contains(self, repo: str, sha: str, branch: str) -> bool:
        return self._read("contains", repo, self._contains, sha=sha, branch=branch)

    def commit(self, repo: str, sha: str) -> Commit:
        return self._read("commit", repo, self._commit, sha=sha)

    def tree(self, repo: str, sha: str) -> dict[str, TreeEntry]:
        return self._read("tree", repo, self._tree, sha=sha)

    def protection(self, repo: str, branch: str) -> BranchProtection | None:
        return self._read("protection", repo, self._protection, branch=branch)

    def find_pull_requests(
        self, repo: str, *, source_branch: str, target_branch: str, state: PullRequestState | None = None
    ) -> list[PullRequest]:
        def read(op: Any, source: str, target: str) -> list[PullRequest]:
            wanted = None if state is None else checks.check_enum("state", state, PullRequestState)
            return self._find_pull_requests(op, source, target, wanted)

        return self._read("find_pull_requests", repo, read, source_branch=source_branch, target_branch=target_branch)

    def get_pull_request(self, repo: str, number: int) -> PullRequest:
        def read(op: Any) -> PullRequest:
            return self._get_pull_request(op, checks.check_int("number", number, least=1))

        return self._read("get_pull_request", repo, read)

    # The rest of a provider

    def supports(self, option: str) -> bool:
        """Report whether this host honours an option of the documentation's table of options.

        Raises:
            InvalidRequestError: the option does not exist.
        """
        return support(option, self._host).honoured

    def check(self, repo: str, asked: Mutation[Any]) -> None:
        """Check that this host can carry out the mutation as requested. No request is sent.

        Raises:
            InvalidRequestError: this host does not accept the path or an argument.
            UnsupportedOptionError: the host cannot honour an option.
        """
        if not issubclass(type(asked), Mutation):
            checks.refuse("asked", f"must be a mutation, not {type(asked).__name__}")
        self._check_path(repo)
        self._check(repo, asked)
        for option in asked.options():
            require(option, self._host)

    @abstractmethod
    def sdk(self) -> AbstractContextManager[Any]:
        """Lend the object that the provider is built on: a ``github.Github``, ``gitlab.Gitlab`` or the local forge."""

    def close(self) -> None:
        """Close all connections. A closed provider refuses further calls."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # The order of an operation

    def _remember(self, before_effect: BeforeEffect | None, intents: IntentStore | None) -> None:
        """Keep what is told of an effect before it is sent."""
        if before_effect is not None and not callable(before_effect):
            checks.refuse("before_effect", f"must be a function, not {type(before_effect).__name__}")
        self._before_effect = before_effect
        self.intents = None if intents is None else check_store("intents", intents)

    def _mutate(self, repo: str, asking: Callable[[], Mutation[_T]]) -> _T:
        """Create the mutation, check its options, begin the intent, and call the hook.

        Args:
            asking: a partial of the mutation's class. It is called inside the operation, so a wrong argument becomes an
                error of the operation.
        """
        operation: str = cast(Any, asking).func.operation
        with self._operation(operation, repo, mutation=True) as op:
            with op.arguments():
                check_cancelled()
                self._check_path(repo)
                asked = asking()
                self.check(repo, asked)
                op.note(**asked.record())
            result: _T = getattr(self, f"_{operation}")(op, asked)
            return result

    def _read(self, name: str, repo: str, read: Callable[..., _T], **given: str) -> _T:
        """Run a read of HostState. ``given`` has its arguments besides the path: a sha or branch names.

        ``read`` gets the operation, and each argument as its check returns it.

        This is not a context manager. The frame of one around the operation would still run when the operation clears
        the frames of an error, and its locals lead to the SDK's.
        """
        with self._operation(name, repo) as op:
            with op.arguments():
                self._check_path(repo)
                values = [
                    (checks.check_sha if argument == "sha" else checks.check_branch)(argument, value)
                    for argument, value in given.items()
                ]
            with op.before("read"):
                return read(op, *values)

    @abstractmethod
    def _operation(self, name: str, repo: str, *, mutation: bool = False) -> AbstractContextManager[Any]:
        """Start the operation in whose steps the hooks run."""

    # Checks of one host, made before any request, besides those that all hosts share

    def _check_path(self, repo: str) -> None:
        checks.check_repo_path(repo)

    def _check(self, repo: str, asked: Mutation[Any]) -> None:
        """Refuse arguments that this host would silently change. By default there are none."""

    # The hooks

    @abstractmethod
    def _get_repo(self, op: Any) -> Repo: ...

    @abstractmethod
    def _list_branches(self, op: Any) -> list[Branch]: ...

    @abstractmethod
    def _create_repo(self, op: Any, asked: CreateRepo) -> Repo: ...

    @abstractmethod
    def _create_branch(self, op: Any, asked: CreateBranch) -> Branch: ...

    @abstractmethod
    def _protect_branch(self, op: Any, asked: ProtectBranch) -> BranchProtection: ...

    @abstractmethod
    def _commit_files(self, op: Any, asked: CommitFiles) -> Commit: ...

    @abstractmethod
    def _open_pull_request(self, op: Any, asked: OpenPullRequest) -> PullRequest: ...

    @abstractmethod
    def _merge_pull_request(self, op: Any, asked: MergePullRequest) -> MergeResult: ...

    @abstractmethod
    def _head(self, op: Any, branch: str) -> str: ...

    @abstractmethod
    def _contains(self, op: Any, sha: str, branch: str) -> bool: ...

    @abstractmethod
    def _commit(self, op: Any, sha: str) -> Commit: ...

    @abstractmethod
    def _tree(self, op: Any, sha: str) -> dict[str, TreeEntry]: ...

    @abstractmethod
    def _protection(self, op: Any, branch: str) -> BranchProtection | None: ...

    @abstractmethod
    def _find_pull_requests(
        self, op: Any, source: str, target: str, state: PullRequestState | None
    ) -> list[PullRequest]: ...

    @abstractmethod
    def _get_pull_request(self, op: Any, number: int) -> PullRequest: ...
