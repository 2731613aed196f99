"""LocalProvider: the contract on a forge in a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, ClassVar, Self

from gitprovider import checks, options
from gitprovider import mutations as arguments
from gitprovider._core.edits import touched_paths
from gitprovider._core.operation import Operation
from gitprovider.contract import TreeEntry, optional
from gitprovider.errors import AlreadyExistsError, NotMergeableError, RepoMovedError
from gitprovider.events import Hook
from gitprovider.local.database import PullRecord, RepoRecord
from gitprovider.local.errors import translate
from gitprovider.local.forge import Forge
from gitprovider.local.git import CommitRecord
from gitprovider.local.rules import matches
from gitprovider.local.session import utc_now
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


class LocalProvider:
    """The contract on a forge in a folder: no token, no network, no server. See GitProviderContract.

    Any number of processes may work in one folder at a time. What a remote host answers late or loses cannot happen
    here, so that an error's outcome is UNKNOWN only where the disk failed while a change was being recorded.

    Args:
        root: the forge's folder; made by the first write.
        timeout: seconds to wait for one's turn to write, while others do; None is a minute.
        on_event: told of every operation.
        settle: seconds after which a lost call can no longer take effect; nothing is lost here.
        now: the clock of commits and records, as aware datetimes.

    Attributes:
        name: ``local``.
        forge: the forge itself; ``forge.approve`` and ``forge.set_check`` play the people and the CI.
    """

    name: ClassVar[str] = "local"

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        timeout: float | None = None,
        on_event: Hook | None = None,
        settle: float = 0.0,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        if not isinstance(root, str | os.PathLike):
            checks.refuse("root", f"must be a path, not {type(root).__name__}")
        checks.check_text("root", os.fspath(root), empty=False)
        self.settle = checks.check_seconds("settle", settle)
        lock_wait = None if timeout is None else checks.check_seconds("timeout", timeout)
        self.forge = Forge(root, now=now, lock_wait=lock_wait)
        self._on_event = on_event
        self._now = now

    def __repr__(self) -> str:
        return f"LocalProvider({str(self.forge.root)!r})"

    def supports(self, option: str) -> bool:
        """Whether the local forge honours an option of ``gitprovider.options.OPTIONS``.

        Raises:
            InvalidRequestError: there is no such option.
        """
        return options.support(option, "local").honoured

    @contextmanager
    def sdk(self) -> Iterator[Forge]:
        """Lend the forge, for what the contract does not cover."""
        yield self.forge

    def close(self) -> None:
        """Nothing is kept open between two calls; a closed provider goes on working."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # GitProviderContract

    def get_repo(self, repo: str) -> Repo:
        """See GitProviderContract."""
        with self._operation("get_repo", repo) as op:
            with op.before("check arguments"):
                checks.check_repo_path(repo)
            with op.before("read repository"):
                try:
                    return self._repo(self.forge.repo(repo))
                except RepoMovedError as moved:
                    return self._repo(self.forge.repo(str(moved.moved_to)))

    def list_branches(self, repo: str) -> list[Branch]:
        """See GitProviderContract."""
        with self._operation("list_branches", repo) as op:
            with op.before("check arguments"):
                checks.check_repo_path(repo)
            with op.before("list branches"):
                patterns = [rule.pattern for rule in self.forge.rules(repo)]
                return [
                    Branch(name=name, sha=sha, protected=any(matches(pattern, name) for pattern in patterns))
                    for name, sha in self.forge.branches(repo)
                ]

    def create_repo(
        self,
        repo: str,
        *,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
        auto_init: bool = False,
    ) -> Repo:
        """See GitProviderContract."""
        with self._operation("create_repo", repo, mutation=True) as op:
            with op.before("check arguments"):
                visibility = arguments.create_repo(
                    repo, description=description, visibility=visibility, auto_init=auto_init
                )
                options.require_visibility(visibility, "local")
                op.note(visibility=visibility.value, description=description, auto_init=auto_init)
            with op.effect("create repository"), _existing(self._repo):
                made = self.forge.create_repo(repo, description=description, visibility=visibility, auto_init=auto_init)
                op.done("create repository", self._repo(made))
            return self._repo(made)

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        """See GitProviderContract."""
        with self._operation("create_branch", repo, mutation=True) as op:
            with op.before("check arguments"):
                source = arguments.create_branch(repo, name, source=source)
                op.note(branch=name)
            with op.before("read source"):
                sha = source if checks.is_sha(source) else self.forge.head(repo, source)
                made = self._branch(repo, name, sha)
                op.note(source_sha=sha)
            with op.effect("create branch"), _existing(lambda held: self._branch(repo, *held)):
                self.forge.create_branch(repo, name, sha)
                op.done("create branch", made)
            return made

    def protect_branch(self, repo: str, branch: str, rules: BranchProtection = BranchProtection()) -> BranchProtection:
        """See GitProviderContract."""
        with self._operation("protect_branch", repo, mutation=True) as op:
            with op.before("check arguments"):
                arguments.protect_branch(repo, branch, rules)
                options.require_rules(rules, "local")
                op.note(branch=branch, rules=rules)
            with op.before("read protection"):
                op.note(previous_rules=self.forge.protection(repo, branch))
            with op.effect("protect branch"):
                held = self.forge.tighten(repo, branch, rules)
                op.done("protect branch", held)
            return held

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
        """See GitProviderContract."""
        with self._operation("commit_files", repo, mutation=True) as op:
            with op.before("check arguments"):
                read, expected_head = arguments.commit_files(
                    repo, branch, changes, message=message, author=author, expected_head=expected_head
                )
                op.note(branch=branch, message=message)

            def note_commit(base: str | None, sha: str) -> None:
                entries = self.forge.read_entries(repo, sha, touched_paths(read))
                files = {path: None if entry is None else tuple(entry) for path, entry in entries.items()}
                op.note(base_sha=base, commit_sha=sha, files=files)

            with op.effect("move branch"):
                made = self.forge.commit_changes(
                    repo,
                    branch,
                    read,
                    message=message,
                    author=author,
                    expected_head=expected_head,
                    on_commit=note_commit,
                )
                op.done("move branch", _commit(made, branch))
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
        """See GitProviderContract."""
        with self._operation("open_pull_request", repo, mutation=True) as op:
            with op.before("check arguments"):
                labels, reviewers = arguments.open_pull_request(
                    repo,
                    source_branch=source_branch,
                    target_branch=target_branch,
                    title=title,
                    description=description,
                    draft=draft,
                    labels=labels,
                    reviewers=reviewers,
                )
                op.note(source_branch=source_branch, target_branch=target_branch, title=title, draft=draft)
                op.note(labels=labels, reviewers=reviewers)
            with op.effect("open pull request"), _existing(_pull_request):
                made = self.forge.open_pull_request(
                    repo,
                    source_branch=source_branch,
                    target_branch=target_branch,
                    title=title,
                    description=description,
                    draft=draft,
                    labels=labels,
                    reviewers=reviewers,
                )
                op.note(number=made.number, head_sha=made.head_sha)
                op.done("open pull request", _pull_request(made))
            return _pull_request(made)

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
        """See GitProviderContract. Whether it can be merged is known at once, so that ``timeout`` has nothing to do."""
        with self._operation("merge_pull_request", repo, mutation=True) as op:
            with op.before("check arguments"):
                method, expected_head = arguments.merge_pull_request(
                    repo,
                    number,
                    method=method,
                    expected_head=expected_head,
                    message=message,
                    delete_source_branch=delete_source_branch,
                    timeout=timeout,
                )
                op.note(number=number, method=method.value, delete_source_branch=delete_source_branch)
            with op.before("read pull request"):
                pull = self.forge.pull_request(repo, number)
                head = expected_head or pull.head_sha
                op.note(source_branch=pull.source_branch, target_branch=pull.target_branch, head_sha=head)
            merged_before = _is_merged(pull, head)
            if not merged_before:
                with op.effect("merge"):
                    try:
                        pull = self.forge.merge(
                            repo,
                            number,
                            method=method,
                            expected_head=head,
                            message=message,
                            on_commit=lambda base, sha: op.note(base_sha=base, commit_sha=sha),
                        )
                    except NotMergeableError:
                        # Another process may have merged it since it was read.
                        pull = self.forge.pull_request(repo, number)
                        merged_before = _is_merged(pull, head)
                        if not merged_before:
                            raise
            result = MergeResult(sha=str(pull.merge_commit_sha), already_merged=merged_before)
            op.done("merge", result)
            if delete_source_branch:
                with op.after("delete source branch"):
                    self._delete_merged(repo, pull)
            return result

    # HostState

    def head(self, repo: str, branch: str) -> str:
        """See HostState."""
        with self._reading("head", repo, branch=branch):
            return self.forge.head(repo, branch)

    def contains(self, repo: str, sha: str, branch: str) -> bool:
        """See HostState."""
        with self._reading("contains", repo, branch=branch, sha=sha):
            return self.forge.contains(repo, sha.lower(), branch)

    def commit(self, repo: str, sha: str) -> Commit:
        """See HostState."""
        with self._reading("commit", repo, sha=sha):
            return _commit(self.forge.read_commit(repo, sha.lower()), "")

    def tree(self, repo: str, sha: str) -> dict[str, TreeEntry]:
        """See HostState."""
        with self._reading("tree", repo, sha=sha):
            commit = self.forge.read_commit(repo, sha.lower())
            return self.forge.read_tree(repo, commit.tree)

    def protection(self, repo: str, branch: str) -> BranchProtection | None:
        """See HostState."""
        with self._reading("protection", repo, branch=branch):
            self.forge.head(repo, branch)
            return self.forge.protection(repo, branch)

    def find_pull_requests(
        self, repo: str, *, source_branch: str, target_branch: str, state: PullRequestState | None = None
    ) -> list[PullRequest]:
        """See HostState."""
        with self._reading("find_pull_requests", repo, source_branch=source_branch, target_branch=target_branch):
            wanted = None if state is None else checks.check_enum("state", state, PullRequestState)
            found = self.forge.pull_requests(
                repo, source_branch=source_branch, target_branch=target_branch, state=wanted
            )
            return [_pull_request(pull) for pull in found]

    def get_pull_request(self, repo: str, number: int) -> PullRequest:
        """See HostState."""
        with self._reading("get_pull_request", repo):
            return _pull_request(self.forge.pull_request(repo, checks.check_int("number", number, least=1)))

    # What the operations share

    def _operation(self, name: str, repo: str, *, mutation: bool = False) -> Operation:
        return Operation(
            name,
            repo if isinstance(repo, str) else "",
            provider=self.name,
            host="localhost",
            translate=translate,
            mutation=mutation,
            hook=self._on_event,
            now=self._now,
        )

    @contextmanager
    def _reading(self, name: str, repo: str, **given: str) -> Iterator[None]:
        """One read: ``given`` are its arguments besides the path, a sha or names of branches."""
        with self._operation(name, repo) as op:
            with op.before("check arguments"):
                checks.check_repo_path(repo)
                for argument, value in given.items():
                    (checks.check_sha if argument == "sha" else checks.check_branch)(argument, value)
            with op.before("read"):
                yield

    def _repo(self, record: RepoRecord) -> Repo:
        return Repo(
            provider=self.name,
            path=record.path,
            id=str(record.id),
            default_branch=record.default_branch,
            visibility=record.visibility,
            description=record.description,
            archived=record.archived,
            web_url=record.git_dir.as_uri(),
            clone_url=str(record.git_dir),
            created_at=record.created_at,
        )

    def _branch(self, repo: str, name: str, sha: str) -> Branch:
        return Branch(name=name, sha=sha, protected=self.forge.protection(repo, name) is not None)

    def _delete_merged(self, repo: str, pull: PullRecord) -> None:
        # A branch that is gone already is where it was to be.
        if optional(self.forge.head, repo, pull.source_branch) is not None:
            self.forge.delete_branch(repo, pull.source_branch, expected=pull.head_sha)


@contextmanager
def _existing(value_of: Callable[[Any], Any]) -> Iterator[None]:
    """What has the name already leaves as a value of the contract, not as the forge's record."""
    try:
        yield
    except AlreadyExistsError as error:
        error.existing = value_of(error.existing)
        raise


def _is_merged(pull: PullRecord, head: str) -> bool:
    return pull.state is PullRequestState.MERGED and pull.head_sha == head


def _commit(record: CommitRecord, branch: str) -> Commit:
    return Commit(
        sha=record.sha,
        parent=record.parents[0] if record.parents else None,
        branch=branch,
        message=record.message,
    )


def _pull_request(record: PullRecord) -> PullRequest:
    return PullRequest(
        number=record.number,
        state=record.state,
        title=record.title,
        description=record.description,
        source_branch=record.source_branch,
        target_branch=record.target_branch,
        head_sha=record.head_sha,
        draft=record.draft,
        created_at=record.created_at,
        merge_commit_sha=record.merge_commit_sha,
    )
