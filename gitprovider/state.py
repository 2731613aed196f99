"""HostState: the reads that looking after a failure needs; ``resolve`` and ``ensure`` stand on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from gitprovider.enums import PullRequestState
from gitprovider.models import BranchProtection, Commit, PullRequest


class TreeEntry(NamedTuple):
    """What is at a path: the object's sha, and Git's mode (``100644``, ``100755``, ``120000``, ``160000``)."""

    sha: str
    mode: str


class HostState(Protocol):
    """Reads of a host's present state. None of them is retried; each raises what the contract's reads raise."""

    @property
    def name(self) -> str:
        """The provider's name, as in errors and intents: ``github``, ``gitlab``, ``local`` or a third party's own."""
        ...

    @property
    def settle(self) -> float:
        """Seconds after which a request whose answer was lost can no longer take effect."""
        ...

    def head(self, repo: str, branch: str) -> str:
        """The sha of the branch's head.

        Raises:
            NotFoundError: no such repository or branch, or the repository is empty.
        """
        ...

    def contains(self, repo: str, sha: str, branch: str) -> bool:
        """Whether the commit ``sha`` is reachable from the branch's head. An unknown commit is not.

        Raises:
            NotFoundError: no such repository or branch.
        """
        ...

    def commit(self, repo: str, sha: str) -> Commit:
        """A commit by its sha; ``branch`` of the value is empty.

        Raises:
            NotFoundError: no such repository or commit.
        """
        ...

    def tree(self, repo: str, sha: str) -> Mapping[str, TreeEntry]:
        """Every file of a commit's tree, by path; directories are not listed.

        Raises:
            NotFoundError: no such repository or commit.
        """
        ...

    def protection(self, repo: str, branch: str) -> BranchProtection | None:
        """What holds for the branch, or None when nothing protects it.

        Raises:
            NotFoundError: no such repository or branch.
            ConflictError: it is protected and what holds cannot be read.
        """
        ...

    def find_pull_requests(
        self, repo: str, *, source_branch: str, target_branch: str, state: PullRequestState | None = None
    ) -> list[PullRequest]:
        """The pull requests between two branches of the repository, newest first; None means in any state."""
        ...

    def get_pull_request(self, repo: str, number: int) -> PullRequest:
        """A pull request by its number.

        Raises:
            NotFoundError: no such repository or pull request.
        """
        ...
