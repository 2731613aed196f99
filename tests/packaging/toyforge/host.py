"""The toy host: repositories, commits, pull requests and rules as plain objects. It knows nothing of providers."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from gitprovider import Author, BranchProtection, Outcome, ProviderUnavailableError, PullRequestState, Visibility

# A file is its content and its mode; a tree is every file by its path.
Blob = tuple[bytes, str]
Tree = Mapping[str, Blob]
TOY = Author(name="Toy Forge", email="toy@example.org")


@dataclass(frozen=True, kw_only=True)
class ToyCommit:
    sha: str
    tree: Tree
    parents: tuple[str, ...]
    message: str
    author: Author


@dataclass(kw_only=True)
class ToyPull:
    number: int
    source: str
    target: str
    title: str
    description: str
    draft: bool
    labels: tuple[str, ...]
    reviewers: tuple[str, ...]
    head: str
    state: PullRequestState = PullRequestState.OPEN
    merged_as: str | None = None
    approvals: set[str] = field(default_factory=set)
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(kw_only=True)
class ToyRepo:
    id: int
    path: str
    description: str = ""
    visibility: Visibility = Visibility.PRIVATE
    archived: bool = False
    default_branch: str = "main"
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    branches: dict[str, str] = field(default_factory=dict)
    commits: dict[str, ToyCommit] = field(default_factory=dict)
    pulls: dict[int, ToyPull] = field(default_factory=dict)
    rules: dict[str, BranchProtection] = field(default_factory=dict)
    checks: dict[tuple[str, str], str] = field(default_factory=dict)

    def write(self, tree: Tree, parents: tuple[str, ...], message: str, author: Author = TOY) -> ToyCommit:
        """Make a commit; no branch moves."""
        serial = len(self.commits)
        sha = hashlib.sha256(repr((self.id, serial, parents, message)).encode()).hexdigest()[:40]
        self.commits[sha] = ToyCommit(sha=sha, tree=dict(tree), parents=parents, message=message, author=author)
        return self.commits[sha]

    def move(self, branch: str, sha: str) -> None:
        """Point a branch at a commit; open pull requests from it follow."""
        self.branches[branch] = sha
        for pull in self.pulls.values():
            if pull.state is PullRequestState.OPEN and pull.source == branch and pull.head != sha:
                pull.head = sha
                if self.rules.get(pull.target, BranchProtection.nothing()).dismiss_stale_approvals:
                    pull.approvals.clear()

    def ancestors(self, sha: str) -> list[str]:
        """The commit and everything that it reaches, nearest first."""
        seen: dict[str, None] = {}
        queue = [sha]
        while queue:
            here = queue.pop(0)
            if here not in seen:
                seen[here] = None
                queue += self.commits[here].parents
        return list(seen)

    def base(self, ours: str, theirs: str) -> str:
        """The nearest commit that both reach."""
        reached = set(self.ancestors(ours))
        return next(sha for sha in self.ancestors(theirs) if sha in reached)

    def merged(self, base: str, ours: str, theirs: str) -> Tree | None:
        """A three-way merge, file by file; None when both sides changed a file differently."""
        trees = [self.commits[sha].tree for sha in (base, ours, theirs)]
        result: dict[str, Blob] = {}
        for path in set().union(*trees):
            was, mine, other = (tree.get(path) for tree in trees)
            if mine != other and was not in (mine, other):
                return None
            keep = other if mine == was else mine
            if keep is not None:
                result[path] = keep
        return result


class ToyHost:
    """All repositories, a count of what was asked of them, and the ways in which a request can fail."""

    def __init__(self) -> None:
        self.repos: dict[str, ToyRepo] = {}
        self.moved: dict[str, str] = {}
        self.requests = 0
        self.mutations = 0
        self.failing = 0
        self.losing = False
        self.due: dict[str, Callable[[], object]] = {}
        self._ids = itertools.count(1)

    def create(self, path: str, description: str = "", visibility: Visibility = Visibility.PRIVATE) -> ToyRepo:
        self.repos[path] = ToyRepo(id=next(self._ids), path=path, description=description, visibility=visibility)
        return self.repos[path]

    def request(self, outcome: Outcome = Outcome.NOT_APPLIED) -> None:
        """Every request is counted, and fails while the host is overloaded."""
        self.requests += 1
        if self.failing:
            self.failing -= 1
            raise ProviderUnavailableError("the host is overloaded", status=503, outcome=outcome)

    @contextmanager
    def mutation(self) -> Iterator[None]:
        """Around every request that may change something: what is due happens, and its answer may be lost."""
        self.mutations += 1
        self.request(Outcome.UNKNOWN)
        self.due.pop("before", lambda: None)()
        yield
        self.due.pop("after", lambda: None)()
        if self.losing:
            self.losing = False
            raise ProviderUnavailableError("the connection was reset", outcome=Outcome.UNKNOWN)
