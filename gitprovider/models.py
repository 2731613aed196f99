"""The values that operations take and return. They are frozen, keyword-only, and checked when they are created.

A value that breaks its own rules raises InvalidRequestError at once and never reaches a provider. Times are aware UTC
datetimes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from gitprovider import checks
from gitprovider.checks import guarded, keep, refuse


class Visibility(StrEnum):
    """Who may see a repository. INTERNAL means every signed-in user of the instance or enterprise."""

    PUBLIC = "public"
    PRIVATE = "private"
    INTERNAL = "internal"


class PullRequestState(StrEnum):
    """The state of a pull request (GitLab: merge request)."""

    OPEN = "open"
    CLOSED = "closed"
    MERGED = "merged"


class MergeMethod(StrEnum):
    """How a pull request's commits reach the target branch."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


MAX_FILE_BYTES = 25_000_000
MAX_CALL_BYTES = 50_000_000


def _utc(argument: str, value: Any) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        refuse(argument, "must be a datetime with a time zone, or None")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        refuse(argument, "is at the end of the calendar")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repo:
    """A repository (GitLab: project).

    Attributes:
        provider: the provider's name.
        path: the full path, as the host spells it.
        id: the host's id. A rename does not change it.
        default_branch: the name of the default branch. In an empty repository that branch does not exist yet.
        web_url: the repository's web page.
        clone_url: the URL for ``git clone`` over HTTPS (local: a path).
        ssh_url: the URL for ``git clone`` over SSH, or None.
        created_at: aware UTC, or None if the host does not report it.
    """

    provider: str
    path: str
    id: str
    default_branch: str
    visibility: Visibility
    description: str
    archived: bool
    web_url: str
    clone_url: str
    ssh_url: str | None = None
    created_at: datetime | None = None

    @guarded("arguments")
    def __post_init__(self) -> None:
        for name in ("provider", "path", "id", "default_branch"):
            keep(self, **{name: checks.check_host_text(name, getattr(self, name))})
        if "/" not in self.path:
            refuse("path", "needs a namespace and a name, such as acme/widgets")
        checks.check_bool("archived", self.archived)
        keep(
            self,
            visibility=checks.check_enum("visibility", self.visibility, Visibility),
            created_at=_utc("created_at", self.created_at),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    r"""A branch and its head.

    Attributes:
        name: as the host has it, also if no caller may give such a name. What is not UTF-8 is escaped (``\xff``).
        protected: whether any protection applies; None if the host's response does not say.
    """

    name: str
    sha: str
    protected: bool | None = None

    @guarded("arguments")
    def __post_init__(self) -> None:
        keep(self, name=checks.check_host_text("name", self.name), sha=checks.check_sha("sha", self.sha))
        if self.protected is not None:
            checks.check_bool("protected", self.protected)


@dataclass(frozen=True, slots=True, kw_only=True)
class PutFile:
    """Create or replace a file.

    Attributes:
        path: relative to the repository's root, with ``/`` between its parts.
        content: bytes are written unchanged, a str as UTF-8. A path is read once, when the call is made. Line endings
            are not changed.
        executable: True sets the mode to 100755, False to 100644. None keeps the mode of an existing file and gives a
            new file 100644.
    """

    path: str
    content: bytes | str | os.PathLike[str]
    executable: bool | None = None

    @guarded("arguments")
    def __post_init__(self) -> None:
        content: Any = self.content
        match content:
            case str():
                content = str.__str__(content)
            case bytes():
                content = bytes.__getitem__(content, slice(None))
            case bytearray() | memoryview():
                content = bytes(content)
            case os.PathLike():
                pass
            case _:
                refuse("content", f"must be bytes, str or a path, not {type(content).__name__}")
        keep(self, path=checks.check_file_path("path", self.path), content=content)
        if self.executable is not None:
            checks.check_bool("executable", self.executable)
        if isinstance(content, bytes | str) and len(self.data()) > MAX_FILE_BYTES:
            refuse("content", f"of {self.path!r} is larger than {MAX_FILE_BYTES:,} bytes")

    def data(self) -> bytes:
        """Return the content as bytes. If it is a path, the file is read now.

        Raises:
            InvalidRequestError: the file cannot be read, or is too large.
        """
        if isinstance(self.content, bytes):
            return self.content
        if isinstance(self.content, str):
            try:
                return self.content.encode()
            except UnicodeEncodeError:
                refuse("content", f"of {self.path!r} contains a lone surrogate, which UTF-8 cannot encode")
        with guarded("content"):
            place = os.fspath(self.content)  # open() would take a path that is also a number for a descriptor
            try:
                with open(place, "rb") as file:
                    data = file.read(MAX_FILE_BYTES + 1)
            except OSError as exc:
                refuse("content", f"of {self.path!r} cannot be read: {exc.strerror or type(exc).__name__}")
        if len(data) > MAX_FILE_BYTES:
            refuse("content", f"of {self.path!r} is larger than {MAX_FILE_BYTES:,} bytes")
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    """Delete a file that exists."""

    path: str

    @guarded("arguments")
    def __post_init__(self) -> None:
        keep(self, path=checks.check_file_path("path", self.path))


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveFile:
    """Move a file, keeping its content and mode. ``to`` must not exist."""

    path: str
    to: str

    @guarded("arguments")
    def __post_init__(self) -> None:
        keep(self, path=checks.check_file_path("path", self.path), to=checks.check_file_path("to", self.to))
        if self.path == self.to:
            refuse("to", f"is {self.to!r}, the same as path")
        if self.to.startswith(f"{self.path}/"):
            refuse("to", f"is {self.to!r}, which is below the file to move")


FileChange = PutFile | DeleteFile | MoveFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """The author of a commit. The host decides who the committer is, often the credential's user."""

    name: str
    email: str

    @guarded("arguments")
    def __post_init__(self) -> None:
        for argument, value in (("name", self.name), ("email", self.email)):
            text = checks.check_text(argument, value, empty=False, limit=200)
            keep(self, **{argument: text})
            if set(text) & set("<>"):
                refuse(argument, "must not contain < or >: Git delimits the address with them")


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit on a branch.

    Attributes:
        parent: the first parent; None for a first commit.
        web_url: the commit's web page, or None if the host has none.
    """

    sha: str
    parent: str | None
    branch: str
    message: str
    web_url: str | None = None

    @guarded("arguments")
    def __post_init__(self) -> None:
        keep(self, sha=checks.check_sha("sha", self.sha))
        if self.parent is not None:
            keep(self, parent=checks.check_sha("parent", self.parent))


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchProtection:
    """The rules of a protected branch. Each field only adds a restriction; False, 0 and () require nothing.

    Attributes:
        require_pull_request: nobody can commit to the branch directly.
        required_approvals: how many people must approve a pull request, 0 to 6.
        required_checks: names of the status checks that must pass.
        dismiss_stale_approvals: a new commit dismisses earlier approvals.
        require_code_owner_review: owners named in CODEOWNERS must approve.
        require_linear_history: merge commits are not allowed.
        enforce_admins: the rules apply to administrators too.
        block_force_push: history cannot be rewritten.
        block_deletion: the branch cannot be deleted.
    """

    require_pull_request: bool = True
    required_approvals: int = 0
    required_checks: tuple[str, ...] = ()
    dismiss_stale_approvals: bool = False
    require_code_owner_review: bool = False
    require_linear_history: bool = False
    enforce_admins: bool = False
    block_force_push: bool = True
    block_deletion: bool = False

    @guarded("arguments")
    def __post_init__(self) -> None:
        names = checks.check_items("required_checks", self.required_checks, "names")
        keep(
            self,
            required_approvals=checks.check_int("required_approvals", self.required_approvals, least=0, most=6),
            required_checks=tuple(sorted({checks.check_host_text("required_checks", name) for name in names})),
        )
        for field in fields(self):
            if field.name not in ("required_approvals", "required_checks"):
                checks.check_bool(field.name, getattr(self, field.name))
        if not self.require_pull_request:
            for name in ("required_approvals", "dismiss_stale_approvals", "require_code_owner_review"):
                if getattr(self, name):
                    refuse(name, "needs require_pull_request=True: without a pull request there is nothing to review")

    @classmethod
    def nothing(cls) -> BranchProtection:
        """Return the protection that requires nothing. It is the neutral element of :meth:`stricter`."""
        return cls(require_pull_request=False, block_force_push=False)

    def stricter(self, other: BranchProtection) -> BranchProtection:
        """Return a protection with the stricter value of the two for each field."""
        stricter: dict[str, Any] = {
            field.name: (
                (*self.required_checks, *other.required_checks)
                if field.name == "required_checks"
                else max(getattr(self, field.name), getattr(other, field.name))
            )
            for field in fields(self)
        }
        return BranchProtection(**stricter)

    def missing_from(self, current: BranchProtection) -> tuple[str, ...]:
        """Return the names of the fields in which ``current`` is weaker than this protection."""
        return tuple(
            field.name
            for field in fields(self)
            if (
                set(self.required_checks) - set(current.required_checks)
                if field.name == "required_checks"
                else getattr(self, field.name) > getattr(current, field.name)
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """A pull request (GitLab: merge request).

    Attributes:
        number: the number shown to users (GitLab: iid).
        title: the title without GitLab's draft prefix.
        head_sha: the head of the source branch, or None if the host has not computed it yet.
        merge_commit_sha: the commit that the merge produced; None unless ``state`` is MERGED.
    """

    number: int
    state: PullRequestState
    title: str
    description: str
    source_branch: str
    target_branch: str
    head_sha: str | None
    draft: bool
    web_url: str | None = None
    created_at: datetime | None = None
    merge_commit_sha: str | None = None

    @guarded("arguments")
    def __post_init__(self) -> None:
        checks.check_bool("draft", self.draft)
        for name in ("head_sha", "merge_commit_sha"):
            if getattr(self, name) is not None:
                keep(self, **{name: checks.check_sha(name, getattr(self, name))})
        keep(
            self,
            number=checks.check_int("number", self.number, least=1),
            state=checks.check_enum("state", self.state, PullRequestState),
            created_at=_utc("created_at", self.created_at),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """The result of a merge.

    Attributes:
        sha: the commit that the merge produced, which is the target branch's head right after the merge.
        already_merged: True if the pull request was merged before this call, at the requested head.
    """

    sha: str
    already_merged: bool = False

    @guarded("arguments")
    def __post_init__(self) -> None:
        keep(self, sha=checks.check_sha("sha", self.sha))
        checks.check_bool("already_merged", self.already_merged)
