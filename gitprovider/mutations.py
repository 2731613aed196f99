"""The six mutations as values. Each is checked when it is created, so an existing value is valid.

A mutation contains every argument of a call except the repository. All checks that need no host are made here. A wrong
argument raises InvalidRequestError with the argument's name. The same value is used for the call, the intent, the
coroutine and the ``ensure_`` function.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Generic, TypeVar, cast

from gitprovider import checks
from gitprovider.checks import guarded, keep, refuse
from gitprovider.contract import GitProviderContract
from gitprovider.models import (
    MAX_CALL_BYTES,
    Author,
    Branch,
    BranchProtection,
    Commit,
    DeleteFile,
    FileChange,
    MergeMethod,
    MergeResult,
    MoveFile,
    PullRequest,
    PutFile,
    Repo,
    Visibility,
)

_T = TypeVar("_T")
# More files than any repository that can be written by one request. Only an iterable without end has more.
_MAX_CHANGES = 100_000


class Mutation(ABC, Generic[_T]):
    """Base class of the six mutations. ``_T`` is the type that the operation returns.

    Attributes:
        operation: the name of the operation in the contract.
        effect: the name of the effect step, the same on every host.
        optional: the fields that a host may be unable to honour. ``field=value`` means that value of the field only.
    """

    __slots__ = ()

    operation: ClassVar[str]
    effect: ClassVar[str]
    optional: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Return the fields of an Intent that are known before any request, without file contents and secrets."""

    def options(self) -> tuple[str, ...]:
        """Return the names in the documentation's table of options that a host must honour for this mutation."""
        return tuple(f"{self.operation}.{name}" for name in self.optional if self._requests(name))

    def _requests(self, name: str) -> bool:
        field, equals, value = name.partition("=")
        given = getattr(self, field)
        return given == value if equals else bool(given)

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of the operation."""
        return {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}

    def apply(self, provider: GitProviderContract, repo: str) -> _T:
        """Call the operation on any provider of the contract and return its result.

        Raises:
            GitProviderError: any error of the operation.
        """
        result: _T = getattr(provider, self.operation)(repo, **self.arguments())
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRepo(Mutation[Repo]):
    """Arguments of ``create_repo``."""

    operation: ClassVar[str] = "create_repo"
    effect: ClassVar[str] = "create repository"
    optional: ClassVar[tuple[str, ...]] = ("visibility=internal", "auto_init")

    description: str = ""
    visibility: Visibility = Visibility.PRIVATE
    auto_init: bool = False

    @guarded("arguments")
    def __post_init__(self) -> None:
        checks.check_bool("auto_init", self.auto_init)
        keep(
            self,
            description=checks.check_text("description", self.description),
            visibility=checks.check_enum("visibility", self.visibility, Visibility),
        )

    def record(self) -> dict[str, Any]:
        """Return all three arguments."""
        return {"visibility": self.visibility.value, "description": self.description, "auto_init": self.auto_init}


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateBranch(Mutation[Branch]):
    """Arguments of ``create_branch``. A sha in ``source`` is in lower case."""

    operation: ClassVar[str] = "create_branch"
    effect: ClassVar[str] = "create branch"

    name: str
    source: str

    @guarded("arguments")
    def __post_init__(self) -> None:
        keep(self, name=checks.check_branch("name", self.name), source=checks.check_source("source", self.source))

    @property
    def source_sha(self) -> str | None:
        """The source if it is a commit sha, or None if it is a branch name."""
        return self.source if checks.is_sha(self.source) else None

    def record(self) -> dict[str, Any]:
        """Return the branch, and the source commit if it is known."""
        return {"branch": self.name, "source_sha": self.source_sha}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectBranch(Mutation[BranchProtection]):
    """Arguments of ``protect_branch``."""

    operation: ClassVar[str] = "protect_branch"
    effect: ClassVar[str] = "protect branch"
    optional: ClassVar[tuple[str, ...]] = tuple(field.name for field in fields(BranchProtection))

    branch: str
    rules: BranchProtection = BranchProtection()  # noqa: RUF009 - a frozen value

    @guarded("arguments")
    def __post_init__(self) -> None:
        keep(self, branch=checks.check_branch("branch", self.branch))
        if not isinstance(self.rules, BranchProtection):
            refuse("rules", f"must be a BranchProtection, not {type(self.rules).__name__}")
        for name in self.rules.required_checks:
            checks.check_text("required_checks", name, empty=False, limit=255)

    def _requests(self, name: str) -> bool:
        return name in self.rules.missing_from(BranchProtection.nothing())

    def record(self) -> dict[str, Any]:
        """Return the branch and the rules."""
        return {"branch": self.branch, "rules": plain_rules(self.rules)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFiles(Mutation[Commit]):
    """Arguments of ``commit_files``. Files given by path are read when the value is created. Contents are bytes."""

    operation: ClassVar[str] = "commit_files"
    effect: ClassVar[str] = "move branch"
    optional: ClassVar[tuple[str, ...]] = ("author", "executable")

    branch: str
    changes: Sequence[FileChange]
    message: str
    author: Author | None = None
    expected_head: str | None = None

    @guarded("arguments")
    def __post_init__(self) -> None:
        if self.author is not None and not isinstance(self.author, Author):
            refuse("author", f"must be an Author or None, not {type(self.author).__name__}")
        keep(
            self,
            branch=checks.check_branch("branch", self.branch),
            message=checks.check_text("message", self.message, empty=False, multiline=True),
            expected_head=_optional_sha(self.expected_head),
            changes=_read_changes(self.changes),
        )

    @property
    def paths(self) -> list[str]:
        """Every path in the changes, in their order. A move has two."""
        return _paths(self.changes)

    @property
    def executable(self) -> bool:
        """Whether a change sets or clears an executable bit."""
        return any(isinstance(change, PutFile) and change.executable is not None for change in self.changes)

    def record(self) -> dict[str, Any]:
        """Return the branch, the message and the expected head. The provider adds the head and the files later."""
        return {"branch": self.branch, "message": self.message, "base_sha": self.expected_head}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPullRequest(Mutation[PullRequest]):
    """Arguments of ``open_pull_request``. Labels and reviewers contain each name once."""

    operation: ClassVar[str] = "open_pull_request"
    effect: ClassVar[str] = "open pull request"
    optional: ClassVar[tuple[str, ...]] = ("draft", "labels", "reviewers")

    source_branch: str
    target_branch: str
    title: str
    description: str = ""
    draft: bool = False
    labels: Sequence[str] = ()
    reviewers: Sequence[str] = ()

    @guarded("arguments")
    def __post_init__(self) -> None:
        keep(
            self,
            source_branch=checks.check_pull_request_branch("source_branch", self.source_branch),
            target_branch=checks.check_pull_request_branch("target_branch", self.target_branch),
        )
        if self.source_branch == self.target_branch:
            refuse("target_branch", "is the source branch")
        checks.check_bool("draft", self.draft)
        keep(
            self,
            title=checks.check_text("title", self.title, empty=False, limit=255),
            description=checks.check_text("description", self.description, multiline=True),
            labels=_names("labels", self.labels),
            reviewers=_names("reviewers", self.reviewers),
        )

    def record(self) -> dict[str, Any]:
        """Return everything except the description."""
        return {name: value for name, value in self.arguments().items() if name != "description"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePullRequest(Mutation[MergeResult]):
    """Arguments of ``merge_pull_request``."""

    operation: ClassVar[str] = "merge_pull_request"
    effect: ClassVar[str] = "merge"
    optional: ClassVar[tuple[str, ...]] = (*(f"method={one.value}" for one in MergeMethod), "delete_source_branch")

    number: int
    method: MergeMethod = MergeMethod.MERGE
    expected_head: str | None = None
    message: str | None = None
    delete_source_branch: bool = False
    timeout: float = 30.0

    @guarded("arguments")
    def __post_init__(self) -> None:
        keep(
            self,
            number=checks.check_int("number", self.number, least=1),
            method=checks.check_enum("method", self.method, MergeMethod),
        )
        if self.message is not None:
            keep(self, message=checks.check_text("message", self.message, empty=False, multiline=True))
            if self.method is MergeMethod.REBASE:
                refuse("message", "cannot be used with REBASE, which makes no commit of its own")
        checks.check_bool("delete_source_branch", self.delete_source_branch)
        keep(
            self,
            timeout=checks.check_seconds("timeout", self.timeout),
            expected_head=_optional_sha(self.expected_head),
        )

    def record(self) -> dict[str, Any]:
        """Return the number, the method, the head and ``delete_source_branch``."""
        return {
            "number": self.number,
            "method": self.method.value,
            "head_sha": self.expected_head,
            "delete_source_branch": self.delete_source_branch,
        }


MUTATIONS: tuple[type[Mutation[Any]], ...] = (
    CreateRepo,
    CreateBranch,
    CommitFiles,
    ProtectBranch,
    OpenPullRequest,
    MergePullRequest,
)


def plain_rules(rules: BranchProtection) -> dict[str, Any]:
    """Return a protection as JSON values, for an intent."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(rules).items()}


def _optional_sha(value: Any) -> str | None:
    return None if value is None else checks.check_sha("expected_head", value)


def _names(argument: str, value: Any) -> tuple[str, ...]:
    names = checks.check_items(argument, value, "names")
    return tuple(dict.fromkeys(checks.check_text(argument, name, empty=False, limit=255) for name in names))


def _read_changes(changes: Any) -> tuple[FileChange, ...]:
    """Check the changes as a whole and return them with every file's content as bytes."""
    read: list[FileChange] = []
    size = 0
    for change in checks.check_items("changes", changes, "PutFile, DeleteFile and MoveFile", limit=_MAX_CHANGES):
        if isinstance(change, PutFile):
            data = change.data()
            size += len(data)
            if size > MAX_CALL_BYTES:
                refuse("changes", f"are larger than {MAX_CALL_BYTES:,} bytes together; split them into several commits")
            read.append(dataclasses.replace(change, content=data))
        elif isinstance(change, DeleteFile | MoveFile):
            read.append(change)
        else:
            refuse("changes", f"must contain only PutFile, DeleteFile and MoveFile, not {type(change).__name__}")
    if not read:
        refuse("changes", "must not be empty")
    _check_paths(read)
    return tuple(read)


def _paths(changes: Sequence[FileChange]) -> list[str]:
    return [
        path
        for change in changes
        for path in ([change.path, change.to] if isinstance(change, MoveFile) else [change.path])
    ]


def _check_paths(changes: Sequence[FileChange]) -> None:
    seen: set[str] = set()
    for path in _paths(changes):
        if path in seen:
            refuse("changes", f"contain {path!r} twice")
        seen.add(path)
    made = {
        change.to if isinstance(change, MoveFile) else change.path
        for change in changes
        if not isinstance(change, DeleteFile)
    }
    for path in sorted(made):
        parts = path.split("/")
        for depth in range(1, len(parts)):
            if (above := "/".join(parts[:depth])) in made:
                refuse("changes", f"put {path!r} below the file {above!r}")
