"""The rig: sets a host's state for the contract suite, reads it back, and counts what a provider sends."""

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
        content: the blob's bytes; the target of a symbolic link; the commit's sha of a submodule, in ASCII.
        mode: ``100644``, ``100755``, ``120000`` (symbolic link) or ``160000`` (submodule).
    """

    content: bytes
    mode: str = "100644"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitView:
    """A commit as Git stores it. ``message`` has no trailing newlines."""

    sha: str
    parents: tuple[str, ...]
    message: str
    author_name: str
    author_email: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestView:
    """A pull request as the host stores it. ``title`` does not include a draft prefix."""

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
    """Methods that set the host's state without the provider (``given_…``), read it back, and count requests.

    A rig may serve one case or many. Every repository that it creates has its own path.
    """

    @property
    def provider(self) -> GitProviderContract:
        """The provider under test. Its credential has all permissions in :attr:`namespace`."""
        ...

    @property
    def state(self) -> HostState | None:
        """The provider's HostState, or None if it has none. Its cases are then skipped."""
        ...

    @property
    def namespace(self) -> str:
        """A namespace in which the credential may create repositories."""
        ...

    @property
    def unknown_namespace(self) -> str | None:
        """A namespace that does not exist; None if the host creates a missing one."""
        ...

    @property
    def reviewer(self) -> str:
        """The name of a user whose review can be requested, other than the credential's user."""
        ...

    @property
    def unknown_reviewer(self) -> str | None:
        """The name of a user that does not exist; None if this host accepts any name."""
        ...

    def supports(self, option: str) -> bool:
        """Report whether the host honours an option of the documentation's table of options."""
        ...

    def requests_seen(self) -> int:
        """Return how many requests of any kind the provider has sent so far."""
        ...

    def mutations_seen(self) -> int:
        """Return how many requests that may change the host the provider has sent so far, including refused ones."""
        ...

    def on_next_mutation(self, action: Callable[[], object], *, when: Literal["before", "after"] = "before") -> None:
        """Call ``action`` once, immediately before or after the provider's next mutation takes effect on the host."""
        ...

    def given_failing_requests(self, count: int) -> bool:
        """Make the provider's next ``count`` requests fail as on an overloaded host (503), without effect.

        Return False if there is no connection between the provider and the host that could fail. The case is then
        skipped.
        """
        ...

    def given_lost_answer(self) -> bool:
        """Lose the response to the provider's next mutation: it takes effect, and the connection is reset.

        Return False if there is no connection between the provider and the host that could fail. The case is then
        skipped.
        """
        ...

    def fresh_path(self) -> str:
        """Return an unused full path in :attr:`namespace`."""
        ...

    def given_repo(
        self,
        files: Mapping[str, bytes | File] | None = None,
        *,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
    ) -> str:
        """Create a repository whose default branch ``main`` has one commit with these files. Return its path.

        None means a README.md. The rig chooses the commit's time and author, here and in the methods below.
        """
        ...

    def given_empty_repo(self) -> str:
        """Create a repository without commits whose default branch will be ``main``. Return its path."""
        ...

    def given_branch(self, repo: str, name: str, *, source: str | None = "main") -> str:
        """Create a branch at the head of another one. Return its sha.

        With ``source=None``, it has one commit of its own and no history in common with any other branch.
        """
        ...

    def given_branches(self, repo: str, names: Sequence[str]) -> None:
        """Create many branches at the head of ``main``."""
        ...

    def given_commit(
        self, repo: str, branch: str, files: Mapping[str, bytes | File | None], *, message: str = "change"
    ) -> str:
        """Commit to a branch, protected or not. None removes a file. Return the commit's sha."""
        ...

    def given_no_branch(self, repo: str, name: str) -> None:
        """Delete the branch."""
        ...

    def given_renamed_branch(self, repo: str, name: str, new_name: str) -> None:
        """Rename the branch as a user of the host does. The default branch stays the default branch."""
        ...

    def given_protection(self, repo: str, branch: str, rules: BranchProtection) -> None:
        """Give the branch exactly this protection. Only fields that :meth:`supports` allows are requested."""
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
        """Open a pull request. Return its number."""
        ...

    def given_closed(self, repo: str, number: int) -> None:
        """Close the pull request without merging it."""
        ...

    def given_merged(self, repo: str, number: int) -> str:
        """Merge the pull request with a merge commit as another user. Return the sha of that commit."""
        ...

    def given_approval(self, repo: str, number: int) -> None:
        """Approve the pull request as a user who may approve it."""
        ...

    def given_check(self, repo: str, branch: str, name: str, state: Literal["success", "failure", "pending"]) -> None:
        """Report a status check on the branch's head."""
        ...

    def given_merge_method(self, repo: str, method: MergeMethod, *, allowed: bool) -> bool:
        """Allow or forbid this merge method in the repository's settings.

        Return False if the host has no setting that can forbid it. The case is then skipped.
        """
        ...

    def given_revoked_credential(self) -> bool:
        """Make the credential invalid for the rest of the case. Return False if this host needs none."""
        ...

    def given_archived(self, repo: str) -> None:
        """Archive the repository, which makes it read-only."""
        ...

    def given_renamed(self, repo: str) -> str:
        """Rename the repository. Its old path redirects to the new one. Return the new path."""
        ...

    def exists(self, repo: str) -> bool:
        """Report whether a repository exists at exactly this path."""
        ...

    def branches(self, repo: str) -> dict[str, str]:
        """Return every branch and its head."""
        ...

    def files(self, repo: str, branch: str) -> dict[str, File]:
        """Return every file on a branch, by path."""
        ...

    def history(self, repo: str, branch: str) -> list[CommitView]:
        """Return every commit reachable from the branch's head, the head first."""
        ...

    def protection(self, repo: str, branch: str) -> BranchProtection | None:
        """Return the branch's protection; None if nothing protects it."""
        ...

    def pull_requests(self, repo: str) -> dict[int, PullRequestView]:
        """Return every pull request in any state, by number."""
        ...
