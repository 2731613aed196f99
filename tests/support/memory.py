"""A host in memory whose answers can be lost, and which can lag: the contract and HostState, nothing else."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeVar

from gitprovider._core.edits import blob_sha
from gitprovider._core.operation import Operation
from gitprovider.contract import TreeEntry
from gitprovider.errors import (
    AlreadyExistsError,
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    UnexpectedResponseError,
)
from gitprovider.models import (
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
    PullRequestState,
    Repo,
    Visibility,
)
from gitprovider.mutations import CommitFiles, OpenPullRequest

_T = TypeVar("_T")

# before: the request is lost on its way.  after: its answer is.  late: the host carries it out 2 seconds later.
# refused: the host says no, and that it may be tried again.
Fault = Literal["before", "after", "late", "refused"]
LATE = 2.0


class Clock:
    """Time that passes only when somebody sleeps; what was put off until then is carried out on the way."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)
        self.slept: list[float] = []
        self._later: list[tuple[datetime, Callable[[], object]]] = []

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)
        due = [entry for entry in self._later if entry[0] <= self.time]
        self._later = [entry for entry in self._later if entry[0] > self.time]
        for _, action in due:
            with suppress(GitProviderError):  # a late request may be refused; nobody hears of it
                action()

    def later(self, seconds: float, action: Callable[[], object]) -> None:
        self._later.append((self.time + timedelta(seconds=seconds), action))


@dataclass
class Stored:
    """A repository of the host: its branches are names of commits, and a commit is its value and its tree."""

    repo: Repo
    branches: dict[str, str] = field(default_factory=dict)
    commits: dict[str, tuple[tuple[str, ...], str, dict[str, TreeEntry]]] = field(default_factory=dict)
    rules: dict[str, BranchProtection] = field(default_factory=dict)
    pulls: list[PullRequest] = field(default_factory=list)


class MemoryProvider:
    """See GitProviderContract and HostState.

    Attributes:
        faults: what is to happen to the next effect step of an operation, by its name.
        refusals: the errors with which the host refuses the next effect steps of an operation, by its name.
        sent: the effect steps that were sent, in order.
        knows_commit: whether the commit's sha is in the evidence before the branch moves; GitLab's is not.
        lag: seconds for which a new repository is answered 404, for reads and writes alike.
    """

    name = "memory"

    def __init__(self, clock: Clock, *, settle: float = 30.0, knows_commit: bool = True) -> None:
        self.clock = clock
        self.settle = settle
        self.knows_commit = knows_commit
        self.faults: dict[str, Fault] = {}
        self.refusals: dict[str, list[GitProviderError]] = {}
        self.sent: list[str] = []
        self.stored: dict[str, Stored] = {}
        self.lag = 0.0
        self._hidden_until = clock.now()

    # The contract

    def get_repo(self, repo: str) -> Repo:
        return self._stored(repo).repo

    def list_branches(self, repo: str) -> list[Branch]:
        stored = self._stored(repo)
        return [
            Branch(name=name, sha=sha, protected=name in stored.rules) for name, sha in sorted(stored.branches.items())
        ]

    def create_repo(
        self,
        repo: str,
        *,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
        auto_init: bool = False,
    ) -> Repo:
        def apply() -> Repo:
            if repo in self.stored:
                raise AlreadyExistsError("the name is taken", existing=self.stored[repo].repo)
            made = Repo(
                provider=self.name,
                path=repo,
                id=str(len(self.stored) + 1),
                default_branch="main",
                visibility=visibility,
                description=description,
                archived=False,
                web_url=f"https://memory.example/{repo}",
                clone_url=f"https://memory.example/{repo}.git",
                created_at=self.clock.now(),
            )
            self.stored[repo] = Stored(made)
            self._hidden_until = self.clock.now() + timedelta(seconds=self.lag)
            return made

        with self._operation("create_repo", repo) as op:
            op.note(visibility=visibility.value, description=description, auto_init=auto_init)
            return self._effect(op, apply)

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        def apply() -> Branch:
            stored = self._stored(repo)
            if name in stored.branches:
                raise AlreadyExistsError("it exists", existing=Branch(name=name, sha=stored.branches[name]))
            if sha not in stored.commits:
                raise NotFoundError("no such commit")
            stored.branches[name] = sha
            return Branch(name=name, sha=sha)

        with self._operation("create_branch", repo) as op:
            with op.before("read the source"):
                sha = self._stored(repo).branches.get(source, source)
            op.note(branch=name, source_sha=sha)
            return self._effect(op, apply)

    def protect_branch(self, repo: str, branch: str, rules: BranchProtection = BranchProtection()) -> BranchProtection:
        def apply() -> BranchProtection:
            self._stored(repo).rules[branch] = stricter
            return stricter

        with self._operation("protect_branch", repo) as op:
            with op.before("read what holds"):
                held = self.protection(repo, branch)
            stricter = rules.stricter(held or BranchProtection.nothing())
            op.note(branch=branch, rules=rules, previous_rules=held)
            return self._effect(op, apply)

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
        def apply() -> Commit:
            moved_to = self._stored(repo).branches.get(branch)
            if moved_to != head:
                raise HeadMovedError("the branch moved", expected=head, actual=moved_to)
            if branch in self._stored(repo).rules:
                raise PermissionDeniedError("the branch is protected")
            self._stored(repo).commits[sha] = commit
            self._stored(repo).branches[branch] = sha
            return Commit(sha=sha, parent=head, branch=branch, message=message)

        changes = CommitFiles(branch=branch, changes=changes, message=message).changes
        with self._operation("commit_files", repo) as op:
            with op.before("build the commit"):
                stored = self._stored(repo)
                head = stored.branches.get(branch)
                if head is None and stored.branches:
                    raise NotFoundError(f"there is no branch {branch}")
                if expected_head is not None and head != expected_head:
                    raise HeadMovedError("the branch moved", expected=expected_head, actual=head)
                before = stored.commits[head][2] if head else {}
                tree = _changed(before, changes)
                if head and tree == before:
                    return dataclasses.replace(self.commit(repo, head), branch=branch)
                commit = ((head,) if head else (), message, tree)
                sha = _sha(commit)
            touched = {path for path in {*before, *tree} if before.get(path) != tree.get(path)}
            op.note(
                branch=branch,
                base_sha=head,
                message=message,
                files={path: tuple(tree[path]) if path in tree else None for path in touched},
                commit_sha=sha if self.knows_commit else None,
            )
            return self._effect(op, apply)

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
        def apply() -> PullRequest:
            stored = self._stored(repo)
            for pull in self.find_pull_requests(
                repo, source_branch=source_branch, target_branch=target_branch, state=PullRequestState.OPEN
            ):
                raise AlreadyExistsError("one is open", existing=pull)
            made = PullRequest(
                number=len(stored.pulls) + 1,
                state=PullRequestState.OPEN,
                title=title,
                description=description,
                source_branch=source_branch,
                target_branch=target_branch,
                head_sha=self.head(repo, source_branch),
                draft=draft,
                created_at=self.clock.now(),
            )
            stored.pulls.append(made)
            return made

        with self._operation("open_pull_request", repo) as op:
            op.note(
                source_branch=source_branch,
                target_branch=target_branch,
                title=title,
                draft=draft,
                labels=tuple(labels),
                reviewers=tuple(reviewers),
            )
            made = self._effect(op, apply)
            op.note(number=made.number)
            op.done(OpenPullRequest.effect, made)
            with op.after("add labels"):
                if self.faults.pop("add labels", None):
                    raise ProviderUnavailableError("503 for the labels")
            return made

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
        def apply() -> MergeResult:
            now = self.get_pull_request(repo, number)
            if now.head_sha != head or now.state is not PullRequestState.OPEN:
                raise HeadMovedError("the head moved", expected=head, actual=now.head_sha)
            stored = self._stored(repo)
            target = stored.branches[now.target_branch]
            tree = {**stored.commits[target][2], **stored.commits[str(head)][2]}
            commit = ((target, str(head)), message or f"Merge pull request {number}", tree)
            sha = _sha(commit)
            stored.commits[sha] = commit
            stored.branches[now.target_branch] = sha
            stored.pulls[number - 1] = dataclasses.replace(now, state=PullRequestState.MERGED, merge_commit_sha=sha)
            return MergeResult(sha=sha)

        with self._operation("merge_pull_request", repo) as op:
            with op.before("read the pull request"):
                pull = self.get_pull_request(repo, number)
                head = expected_head or pull.head_sha
                if pull.state is PullRequestState.CLOSED:
                    raise NotMergeableError("it is closed", reason=NotMergeableReason.CLOSED)
            op.note(
                number=number,
                head_sha=head,
                method=method.value,
                delete_source_branch=delete_source_branch,
                source_branch=pull.source_branch,
                target_branch=pull.target_branch,
            )
            if pull.state is PullRequestState.MERGED and pull.merge_commit_sha:
                result = MergeResult(sha=pull.merge_commit_sha, already_merged=True)
            else:
                result = self._effect(op, apply)
            op.done("merge", result)
            if delete_source_branch:
                with op.after("delete source branch"):
                    if self.faults.pop("delete source branch", None):
                        raise ProviderUnavailableError("503 for the branch")
                    self._stored(repo).branches.pop(pull.source_branch, None)
            return result

    # HostState

    def head(self, repo: str, branch: str) -> str:
        try:
            return self._stored(repo).branches[branch]
        except KeyError:
            raise NotFoundError(f"there is no branch {branch}") from None

    def contains(self, repo: str, sha: str, branch: str) -> bool:
        stored, at = self._stored(repo), [self.head(repo, branch)]
        while at:
            if (one := at.pop()) == sha:
                return True
            at += stored.commits[one][0]
        return False

    def commit(self, repo: str, sha: str) -> Commit:
        if sha not in self._stored(repo).commits:
            raise NotFoundError(f"there is no commit {sha}")
        parents, message, _ = self._stored(repo).commits[sha]
        return Commit(sha=sha, parent=parents[0] if parents else None, branch="", message=message + "\n")

    def tree(self, repo: str, sha: str) -> Mapping[str, TreeEntry]:
        return self._stored(repo).commits[sha][2]

    def protection(self, repo: str, branch: str) -> BranchProtection | None:
        self.head(repo, branch)
        return self._stored(repo).rules.get(branch)

    def find_pull_requests(
        self, repo: str, *, source_branch: str, target_branch: str, state: PullRequestState | None = None
    ) -> list[PullRequest]:
        found = [self.get_pull_request(repo, pull.number) for pull in reversed(self._stored(repo).pulls)]
        return [
            pull
            for pull in found
            if (pull.source_branch, pull.target_branch) == (source_branch, target_branch)
            and state in (None, pull.state)
        ]

    def get_pull_request(self, repo: str, number: int) -> PullRequest:
        stored = self._stored(repo)
        if not 1 <= number <= len(stored.pulls):
            raise NotFoundError(f"there is no pull request {number}")
        pull = stored.pulls[number - 1]
        if pull.state is PullRequestState.OPEN:
            pull = dataclasses.replace(pull, head_sha=stored.branches.get(pull.source_branch, pull.head_sha))
        return pull

    # What a test does behind the provider's back

    def push(self, repo: str, branch: str, files: Mapping[str, bytes], message: str, *parents: str) -> str:
        """Put a commit on a branch, as somebody else would; ``parents`` after the first are what it merges."""
        stored = self._stored(repo)
        head = stored.branches.get(branch)
        tree = dict(stored.commits[head][2]) if head else {}
        tree |= {path: TreeEntry(blob_sha(data), "100644") for path, data in files.items()}
        commit = ((*((head,) if head else ()), *parents), message, tree)
        sha = _sha(commit)
        stored.commits[sha] = commit
        stored.branches[branch] = sha
        return sha

    def _stored(self, repo: str) -> Stored:
        if repo not in self.stored or self.clock.now() < self._hidden_until:
            raise NotFoundError(f"there is no repository {repo}")
        return self.stored[repo]

    @contextmanager
    def _operation(self, name: str, repo: str) -> Iterator[Operation]:
        with Operation(
            name,
            repo,
            provider=self.name,
            host="memory.example",
            translate=_translate,
            mutation=True,
            now=self.clock.now,
        ) as op:
            yield op

    def _effect(self, op: Operation, apply: Callable[[], _T]) -> _T:
        with op.effect(op.name):
            self.sent.append(op.name)
            fault = self.faults.pop(op.name, None)
            if refusals := self.refusals.get(op.name):
                raise refusals.pop(0)
            if fault is None:
                return apply()
            if fault == "refused":
                raise ProviderUnavailableError("connection refused")
            if fault == "after":
                apply()
            if fault == "late":
                self.clock.later(LATE, apply)
            raise ProviderUnavailableError("the connection was lost", outcome=Outcome.UNKNOWN)


def _translate(exc: Exception) -> GitProviderError:
    return UnexpectedResponseError(f"{type(exc).__name__}: {exc}")


def _changed(tree: Mapping[str, TreeEntry], changes: Sequence[FileChange]) -> dict[str, TreeEntry]:
    changed = dict(tree)
    for change in changes:
        match change:
            case DeleteFile(path=path):
                if changed.pop(path, None) is None:
                    raise InvalidRequestError(f"there is no {path}")
            case MoveFile(path=path, to=to):
                if path not in changed or to in changed:
                    raise InvalidRequestError(f"cannot move {path}")
                changed[to] = changed.pop(path)
            case _:
                kept = changed[change.path].mode if change.path in changed else "100644"
                mode = {True: "100755", False: "100644", None: kept}[change.executable]
                changed[change.path] = TreeEntry(blob_sha(change.data()), mode)
    return changed


def _sha(commit: object) -> str:
    return hashlib.sha1(repr(commit).encode()).hexdigest()
