"""The rig: how the contract suite sets a host's state, reads it back, and counts what a provider sends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from gitprovider.contract import GitProviderContract, HostState
from gitprovider.models import BranchProtection, MergeMethod, PullRequestState, Visibility


@dataclass(frozen=True, slots=True)
class File:
    """A file as Git stores it.

    Attributes:
        content: the blob's bytes; for a symbolic link its target, for a submodule the commit's sha in ASCII.
        mode: ``100644``, ``100755``, ``120000`` (symbolic link) or ``160000`` (submodule).
    """

    content: bytes
    mode: str = "100644"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitView:
    """A commit as Git stores it. ``message`` is without its trailing line ends."""

    sha: str
    parents: tuple[str, ...]
    message: str
    author_name: str
    author_email: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestView:
    """A pull request as the host has it. ``title`` is without a prefix by which the host marks a draft."""

    number: int
    state: PullRequestState
    title: str
    description: str
    source_branch: str
    target_branch: str
    draft: bool
    labels: frozenset[str]
    reviewers: frozenset[str]


class Rig(Protocol):
    """Given-verbs that set the host's state without the provider, verbs that read it back, and two counters.

    A rig may serve one case or many: every repository that it makes has a path of its own.
    """

    @property
    def provider(self) -> GitProviderContract:
        """The provider under test, with a credential that may do everything in :attr:`namespace`."""
        ...

    @property
    def state(self) -> HostState | None:
        """The provider's reads of the host's state, or None when it has none: their cases are then skipped."""
        ...

    @property
    def namespace(self) -> str:
        """A namespace in which the credential may create repositories."""
        ...

    @property
    def unknown_namespace(self) -> str | None:
        """A namespace that the host does not know; None when this host makes a missing one."""
        ...

    @property
    def reviewer(self) -> str:
        """A user name whose review may be requested; not the credential's own."""
        ...

    @property
    def unknown_reviewer(self) -> str | None:
        """A user name that the host does not know; None when this host asks for no account."""
        ...

    def supports(self, option: str) -> bool:
        """Whether the host honours an option of ``gitprovider.options.OPTIONS``."""
        ...

    def requests_seen(self) -> int:
        """How many requests of any kind the provider has sent so far."""
        ...

    def mutations_seen(self) -> int:
        """How many requests that may change the host it has sent so far, refused ones included."""
        ...

    def on_next_mutation(self, action: Callable[[], object], *, when: Literal["before", "after"] = "before") -> None:
        """Call ``action`` once, right before or after the provider's next mutation takes effect on the host."""
        ...

    def given_failing_requests(self, count: int) -> bool:
        """The provider's next ``count`` requests fail as on an overloaded host (503), and have no effect.

        False when nothing lies between provider and host that could fail; so with :meth:`given_lost_answer`.
        """
        ...

    def given_lost_answer(self) -> bool:
        """The provider's next mutation takes effect on the host, and its answer is lost: the connection is reset."""
        ...

    def fresh_path(self) -> str:
        """A full path in :attr:`namespace` that nothing has."""
        ...

    def given_repo(
        self,
        files: Mapping[str, bytes | File] | None = None,
        *,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
    ) -> str:
        """A repository whose default branch ``main`` has one commit with these files; its path.

        None means a README.md. The commit's time and author are the rig's choice; so they are everywhere below.
        """
        ...

    def given_empty_repo(self) -> str:
        """A repository without a commit, whose default branch will be ``main``; its path."""
        ...

    def given_branch(self, repo: str, name: str, *, source: str = "main") -> str:
        """A branch at the head of another one; its sha."""
        ...

    def given_branches(self, repo: str, names: Sequence[str]) -> None:
        """Many branches at the head of ``main``."""
        ...

    def given_commit(
        self, repo: str, branch: str, files: Mapping[str, bytes | File | None], *, message: str = "change"
    ) -> str:
        """One more commit on a branch, protected or not, that sets files or (None) removes them; its sha."""
        ...

    def given_no_branch(self, repo: str, name: str) -> None:
        """The branch is gone."""
        ...

    def given_protection(self, repo: str, branch: str, rules: BranchProtection) -> None:
        """The branch has exactly this protection. Only fields that :meth:`supports` admits are asked for."""
        ...

    def given_pull_request(
        self,
        repo: str,
        *,
        source_branch: str,
        target_branch: str = "main",
        title: str = "A change",
        draft: bool = False,
    ) -> int:
        """An open pull request; its number."""
        ...

    def given_closed(self, repo: str, number: int) -> None:
        """The pull request was closed without a merge."""
        ...

    def given_merged(self, repo: str, number: int) -> str:
        """The pull request was merged with a merge commit, by somebody else; the sha of that commit."""
        ...

    def given_approval(self, repo: str, number: int) -> None:
        """Somebody who may approve has approved the pull request."""
        ...

    def given_check(self, repo: str, branch: str, name: str, state: Literal["success", "failure", "pending"]) -> None:
        """A status check reported on the branch's head."""
        ...

    def given_merge_method(self, repo: str, method: MergeMethod, *, allowed: bool) -> bool:
        """The repository's settings admit, or do not admit, merging by this method.

        False when the host has no settings that could forbid it; the case is then skipped.
        """
        ...

    def given_revoked_credential(self) -> bool:
        """The credential is no longer good, for the rest of the case. False when this host asks for none."""
        ...

    def given_archived(self, repo: str) -> None:
        """The repository is archived: read-only."""
        ...

    def given_renamed(self, repo: str) -> str:
        """The repository has another path now, and the old one leads there; the new path."""
        ...

    def exists(self, repo: str) -> bool:
        """Whether there is a repository at this very path."""
        ...

    def branches(self, repo: str) -> dict[str, str]:
        """Every branch and its head."""
        ...

    def files(self, repo: str, branch: str) -> dict[str, File]:
        """Every file on a branch, by path."""
        ...

    def history(self, repo: str, branch: str) -> list[CommitView]:
        """Every commit reachable from the branch's head; the head first."""
        ...

    def protection(self, repo: str, branch: str) -> BranchProtection | None:
        """What holds for the branch; None when nothing does."""
        ...

    def pull_requests(self, repo: str) -> dict[int, PullRequestView]:
        """Every pull request in any state, by number."""
        ...
