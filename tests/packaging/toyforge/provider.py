"""The toy provider: GitProviderContract and HostState on the toy host, with the library's public names alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from gitprovider import (
    AlreadyExistsError,
    Author,
    Branch,
    BranchProtection,
    Commit,
    ConflictError,
    DeleteFile,
    FileChange,
    GitProviderError,
    HeadMovedError,
    Intent,
    InvalidRequestError,
    MergeMethod,
    MergeResult,
    MoveFile,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    PullRequest,
    PullRequestState,
    PutFile,
    Repo,
    RepoMovedError,
    RetryOptions,
    Step,
    TreeEntry,
    UnsupportedOptionError,
    Visibility,
    checks,
    with_retry,
)
from gitprovider.mutations import (
    CommitFiles,
    CreateBranch,
    CreateRepo,
    MergePullRequest,
    OpenPullRequest,
    ProtectBranch,
    plain_rules,
)

from .host import TOY, Blob, ToyCommit, ToyHost, ToyPull, ToyRepo, Tree

UNSUPPORTED = {"protect_branch.require_code_owner_review"}
FILES = ("100644", "100755")


class ToyProvider:
    """Everything in memory, behind requests that can fail. Reads are retried, and nothing else is."""

    name = "toy"
    settle = 0.0

    def __init__(self, host: ToyHost, *, retry: RetryOptions = RetryOptions()) -> None:
        self.host = host
        self._retry = retry

    def supports(self, option: str) -> bool:
        return option not in UNSUPPORTED

    # GitProviderContract

    def get_repo(self, repo: str) -> Repo:
        with self._call("get_repo", repo):
            checks.check_repo_path(repo)
            with_retry(self.host.request, self._retry, should_retry=_may_pass)
            return _repo(self._at(self.host.moved.get(repo, repo)))

    def list_branches(self, repo: str) -> list[Branch]:
        with self._call("list_branches", repo):
            found = with_retry(lambda: self._read(repo), self._retry, should_retry=_may_pass)
            return [_branch(found, name) for name in sorted(found.branches)]

    def create_repo(
        self,
        repo: str,
        *,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
        auto_init: bool = False,
    ) -> Repo:
        with self._call("create_repo", repo, mutation=True) as call:
            checks.check_repo_path(repo)
            asked = CreateRepo(description=description, visibility=visibility, auto_init=auto_init)
            call.note(**asked.record())
            with call.sent(asked.effect, self.host):
                if repo in self.host.repos:
                    raise AlreadyExistsError("the path is taken", existing=_repo(self.host.repos[repo]))
                self.host.moved.pop(repo, None)
                made = self.host.create(repo, asked.description, asked.visibility)
                if asked.auto_init:
                    made.move("main", made.write({"README.md": (b"# Toy\n", "100644")}, (), "Initial commit").sha)
            return _repo(made)

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        with self._call("create_branch", repo, mutation=True) as call:
            asked = CreateBranch(name=name, source=source)
            found = self._read(repo)
            sha = asked.source if asked.source in found.commits else _head(found, asked.source)
            call.note(branch=name, source_sha=sha)
            with call.sent(asked.effect, self.host):
                if name in found.branches:
                    raise AlreadyExistsError("the branch exists", existing=_branch(found, name))
                if any(one.startswith(f"{other}/") for b in found.branches for one, other in ((name, b), (b, name))):
                    raise ConflictError("a branch is in the way whose name is a prefix")
                _writable(found)
                found.move(name, sha)
            return _branch(found, name)

    def protect_branch(self, repo: str, branch: str, rules: BranchProtection = BranchProtection()) -> BranchProtection:
        with self._call("protect_branch", repo, mutation=True) as call:
            asked = ProtectBranch(branch=branch, rules=rules)
            if rules.require_code_owner_review:
                option = "protect_branch.require_code_owner_review"
                raise UnsupportedOptionError("the toy host reads no CODEOWNERS", option=option)
            found = self._read(repo)
            _head(found, branch)
            held = found.rules.get(branch)
            call.note(**asked.record(), previous_rules=plain_rules(held) if held else None)
            with call.sent(asked.effect, self.host):
                found.rules[branch] = rules.stricter(held or BranchProtection.nothing())
            return found.rules[branch]

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
        with self._call("commit_files", repo, mutation=True) as call:
            asked = CommitFiles(
                branch=branch, changes=changes, message=message, author=author, expected_head=expected_head
            )
            found = self._read(repo)
            base = _committable(found, branch, asked.changes)
            if asked.expected_head not in (None, base):
                raise HeadMovedError("the branch is at another commit", expected=asked.expected_head, actual=base)
            before = found.commits[base].tree if base else {}
            tree = _changed(before, asked.changes)
            if base and tree == before:
                return _commit(found.commits[base], branch)
            touched = {path for path in {*before, *tree} if before.get(path) != tree.get(path)}
            files = {path: tuple(_entry(tree[path])) if path in tree else None for path in touched}
            call.note(branch=branch, message=message, base_sha=base, files=files)
            with call.sent(asked.effect, self.host):
                if (now := found.branches.get(branch)) != base:
                    raise HeadMovedError("the branch moved meanwhile", expected=base, actual=now)
                _writable(found)
                if found.rules.get(branch, BranchProtection.nothing()).require_pull_request:
                    raise PermissionDeniedError("the branch is protected", hint="open a pull request")
                made = found.write(tree, (base,) if base else (), message, author or TOY)
                call.note(commit_sha=made.sha)
                found.move(branch, made.sha)
            return _commit(made, branch)

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
        with self._call("open_pull_request", repo, mutation=True) as call:
            asked = OpenPullRequest(
                source_branch=source_branch,
                target_branch=target_branch,
                title=title,
                description=description,
                draft=draft,
                labels=labels,
                reviewers=reviewers,
            )
            call.note(**asked.record())
            found = self._read(repo)
            head, target = _head(found, source_branch), _head(found, target_branch)
            with call.sent(asked.effect, self.host):
                for pull in found.pulls.values():
                    same = (pull.source, pull.target) == (source_branch, target_branch)
                    if same and pull.state is PullRequestState.OPEN:
                        raise AlreadyExistsError("one is open", existing=_pull(pull))
                if head in found.ancestors(target):
                    raise ConflictError("there are no commits between the branches")
                if not set(found.ancestors(head)) & set(found.ancestors(target)):
                    raise ConflictError("the branches have no history in common")
                _writable(found)
                made = ToyPull(
                    number=len(found.pulls) + 1,
                    source=source_branch,
                    target=target_branch,
                    title=title,
                    description=description,
                    draft=draft,
                    labels=tuple(asked.labels),
                    reviewers=tuple(asked.reviewers),
                    head=head,
                )
                found.pulls[made.number] = made
            return _pull(made)

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
        with self._call("merge_pull_request", repo, mutation=True) as call:
            asked = MergePullRequest(
                number=number,
                method=method,
                expected_head=expected_head,
                message=message,
                delete_source_branch=delete_source_branch,
                timeout=timeout,
            )
            found = self._read(repo)
            pull = self._pull_at(found, number)
            head = asked.expected_head or pull.head
            call.note(**asked.record() | {"head_sha": head})
            call.note(source_branch=pull.source, target_branch=pull.target)
            already = pull.state is PullRequestState.MERGED and pull.head == head
            if not already:
                with call.sent(asked.effect, self.host):
                    _merge(found, pull, head, asked.method, message)
            result = MergeResult(sha=str(pull.merged_as), already_merged=already)
            call.done(asked.effect, result)
            if delete_source_branch:
                with call.step("delete source branch"):
                    self._delete_source(found, pull)
            return result

    def _delete_source(self, found: ToyRepo, pull: ToyPull) -> None:
        if pull.source not in found.branches:
            return
        if found.rules.get(pull.source, BranchProtection.nothing()).block_deletion:
            raise PermissionDeniedError("the source branch may not be deleted")
        others = [each for each in found.pulls.values() if each.state is PullRequestState.OPEN]
        if needing := [each.number for each in others if pull.source in (each.source, each.target)]:
            raise ConflictError(f"the open pull requests {needing} need the source branch")
        with self.host.mutation():
            if found.branches[pull.source] != pull.head:
                raise HeadMovedError("the source branch went on", expected=pull.head)
            del found.branches[pull.source]

    # HostState

    def head(self, repo: str, branch: str) -> str:
        with self._call("head", repo):
            return _head(self._read(repo), branch)

    def contains(self, repo: str, sha: str, branch: str) -> bool:
        with self._call("contains", repo):
            found = self._read(repo)
            return sha in found.ancestors(_head(found, branch))

    def commit(self, repo: str, sha: str) -> Commit:
        with self._call("commit", repo):
            return _commit(self._commit_at(repo, sha), "")

    def tree(self, repo: str, sha: str) -> Mapping[str, TreeEntry]:
        with self._call("tree", repo):
            return {path: _entry(blob) for path, blob in self._commit_at(repo, sha).tree.items()}

    def protection(self, repo: str, branch: str) -> BranchProtection | None:
        with self._call("protection", repo):
            found = self._read(repo)
            _head(found, branch)
            return found.rules.get(branch)

    def find_pull_requests(
        self, repo: str, *, source_branch: str, target_branch: str, state: PullRequestState | None = None
    ) -> list[PullRequest]:
        with self._call("find_pull_requests", repo):
            return [
                _pull(pull)
                for pull in reversed(self._read(repo).pulls.values())
                if (pull.source, pull.target) == (source_branch, target_branch) and state in (None, pull.state)
            ]

    def get_pull_request(self, repo: str, number: int) -> PullRequest:
        with self._call("get_pull_request", repo):
            return _pull(self._pull_at(self._read(repo), number))

    # what all calls share

    @contextmanager
    def _call(self, operation: str, repo: str, *, mutation: bool = False) -> Iterator[_Call]:
        call = _Call(operation, repo if isinstance(repo, str) else "", mutation)
        try:
            yield call
        except GitProviderError as error:
            error.provider, error.operation, error.repo = self.name, operation, call.repo
            error.completed, error.failed_step = call.completed, call.running
            error.outcome = Outcome.PARTIAL if call.completed else error.outcome
            error.intent = call.intent()
            raise

    def _read(self, repo: str) -> ToyRepo:
        checks.check_repo_path(repo)
        self.host.request()
        if repo in self.host.moved:
            raise RepoMovedError("the repository moved", moved_to=self.host.moved[repo])
        return self._at(repo)

    def _at(self, repo: str) -> ToyRepo:
        if repo not in self.host.repos:
            raise NotFoundError("no such repository")
        return self.host.repos[repo]

    def _commit_at(self, repo: str, sha: str) -> ToyCommit:
        found = self._read(repo)
        if sha not in found.commits:
            raise NotFoundError("no such commit")
        return found.commits[sha]

    def _pull_at(self, found: ToyRepo, number: int) -> ToyPull:
        if number not in found.pulls:
            raise NotFoundError("no such pull request")
        return found.pulls[number]


class _Call:
    """One running call: what is known of it for its error."""

    def __init__(self, operation: str, repo: str, mutation: bool) -> None:
        self.repo = repo
        self.completed: tuple[Step, ...] = ()
        self.running: str | None = None
        self._operation = operation
        self._known: dict[str, Any] | None = {} if mutation else None

    def note(self, **known: Any) -> None:
        if self._known is not None:
            self._known |= known

    def done(self, step: str, value: Any) -> None:
        self.completed = (*self.completed, Step(step, value))

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self.running = name
        yield

    @contextmanager
    def sent(self, effect: str, host: ToyHost) -> Iterator[None]:
        self.note(sent_at=datetime.now(UTC))
        with self.step(effect), host.mutation():
            yield

    def intent(self) -> Intent | None:
        if self._known is None:
            return None
        steps = tuple(step.name for step in self.completed)
        return Intent(operation=self._operation, provider=ToyProvider.name, repo=self.repo, steps=steps, **self._known)


def _may_pass(error: Exception) -> bool:
    return isinstance(error, ProviderUnavailableError)


def _repo(repo: ToyRepo) -> Repo:
    return Repo(
        provider=ToyProvider.name,
        path=repo.path,
        id=str(repo.id),
        default_branch=repo.default_branch,
        visibility=repo.visibility,
        description=repo.description,
        archived=repo.archived,
        web_url=f"toy:{repo.path}",
        clone_url=f"toy:{repo.path}",
        created_at=repo.created_at,
    )


def _branch(repo: ToyRepo, name: str) -> Branch:
    return Branch(name=name, sha=repo.branches[name], protected=name in repo.rules)


def _commit(commit: ToyCommit, branch: str) -> Commit:
    parent = commit.parents[0] if commit.parents else None
    return Commit(sha=commit.sha, parent=parent, branch=branch, message=commit.message)


def _pull(pull: ToyPull) -> PullRequest:
    return PullRequest(
        number=pull.number,
        state=pull.state,
        title=pull.title,
        description=pull.description,
        source_branch=pull.source,
        target_branch=pull.target,
        head_sha=pull.head,
        draft=pull.draft,
        created_at=pull.created_at,
        merge_commit_sha=pull.merged_as,
    )


def _entry(blob: Blob) -> TreeEntry:
    content, mode = blob
    data = b"blob %d\0" % len(content) + content
    return TreeEntry(hashlib.sha1(data, usedforsecurity=False).hexdigest(), mode)


def _head(repo: ToyRepo, branch: str) -> str:
    if branch not in repo.branches:
        raise NotFoundError("no such branch")
    return repo.branches[branch]


def _writable(repo: ToyRepo) -> None:
    if repo.archived:
        raise PermissionDeniedError("the repository is archived")


def _committable(repo: ToyRepo, branch: str, changes: Sequence[FileChange]) -> str | None:
    """The head to build on; None in an empty repository."""
    if repo.branches:
        return _head(repo, branch)
    if branch != repo.default_branch:
        raise InvalidRequestError("branch: the first commit goes to main", argument="branch")
    if not all(isinstance(change, PutFile) for change in changes):
        raise InvalidRequestError("changes: an empty repository takes PutFile alone", argument="changes")
    return None


def _changed(before: Tree, changes: Sequence[FileChange]) -> Tree:
    """The tree after the changes.

    Raises:
        InvalidRequestError: they do not fit the tree.
    """
    tree = dict(before)
    for change in changes:
        was = before.get(change.path)
        if was is not None and was[1] not in FILES:
            raise InvalidRequestError(f"{change.path!r} is a symbolic link or submodule", argument="changes")
        if was is None and not isinstance(change, PutFile):
            raise InvalidRequestError(f"{change.path!r} is not there", argument="changes")
        match change:
            case PutFile(path=path, executable=executable):
                mode = (was[1] if was else FILES[0]) if executable is None else FILES[executable]
                tree[path] = (change.data(), mode)
            case DeleteFile(path=path):
                del tree[path]
            case MoveFile(path=path, to=to):
                if any(f"{there}/".startswith(f"{to}/") for there in before):
                    raise InvalidRequestError(f"{to!r} is there already", argument="changes")
                tree[to] = tree.pop(path)
    for path in tree:
        parts = path.split("/")
        if any("/".join(parts[:depth]) in tree for depth in range(1, len(parts))):
            raise InvalidRequestError(f"{path!r} is below a file", argument="changes")
    return tree


def _merge(repo: ToyRepo, pull: ToyPull, head: str, method: MergeMethod, message: str | None) -> None:
    """Merge, or raise; nothing moves unless all of it does."""
    if pull.head != head:
        raise HeadMovedError("the source branch is at another commit", expected=head, actual=pull.head)
    rules = repo.rules.get(pull.target, BranchProtection.nothing())
    if reason := _refusal(repo, pull, rules, method):
        raise NotMergeableError(f"not mergeable: {reason}", reason=reason)
    _writable(repo)
    target = _head(repo, pull.target)
    merged = repo.merged(repo.base(target, head), target, head)
    if merged is None:
        raise NotMergeableError("both sides changed a file", reason=NotMergeableReason.CONFLICT)
    match method:
        case MergeMethod.MERGE:
            made = repo.write(merged, (target, head), message or f"Merge {pull.source}").sha
        case MergeMethod.SQUASH:
            made = repo.write(merged, (target,), message or pull.title).sha
        case MergeMethod.REBASE:
            made = _rebased(repo, target, head)
    repo.move(pull.target, made)
    pull.state, pull.merged_as = PullRequestState.MERGED, made


def _refusal(repo: ToyRepo, pull: ToyPull, rules: BranchProtection, method: MergeMethod) -> NotMergeableReason | None:
    if pull.state is not PullRequestState.OPEN or pull.source not in repo.branches:
        return NotMergeableReason.CLOSED
    if pull.draft:
        return NotMergeableReason.DRAFT
    if rules.require_linear_history and method is MergeMethod.MERGE:
        return NotMergeableReason.METHOD
    if len(pull.approvals) < rules.required_approvals:
        return NotMergeableReason.REVIEWS
    if any(repo.checks.get((pull.head, name)) != "success" for name in rules.required_checks):
        return NotMergeableReason.CHECKS
    return None


def _rebased(repo: ToyRepo, target: str, head: str) -> str:
    reached = set(repo.ancestors(target))
    tip = target
    for sha in reversed([sha for sha in repo.ancestors(head) if sha not in reached]):
        commit = repo.commits[sha]
        if commit.parents == (tip,):
            tip = sha
            continue
        tree = repo.merged(commit.parents[0], tip, sha)
        if tree is None:
            raise NotMergeableError("both sides changed a file", reason=NotMergeableReason.CONFLICT)
        tip = repo.write(tree, (tip,), commit.message, commit.author).sha
    return tip
