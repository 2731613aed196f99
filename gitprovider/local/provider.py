"""LocalProvider: the contract on a forge in a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from gitprovider import checks
from gitprovider._core.claims import IntentStore
from gitprovider._core.operation import BeforeEffect, Operation
from gitprovider._core.options import Host
from gitprovider._core.provider import Provider
from gitprovider._core.wildcards import covered
from gitprovider.contract import TreeEntry, optional
from gitprovider.errors import AlreadyExistsError, NotMergeableError, RepoMovedError
from gitprovider.events import Hook, check_hooks
from gitprovider.local import convert
from gitprovider.local.database import PullRecord
from gitprovider.local.errors import translate
from gitprovider.local.forge import Forge
from gitprovider.local.session import utc_now
from gitprovider.models import (
    Branch,
    BranchProtection,
    Commit,
    MergeResult,
    PullRequest,
    PullRequestState,
    Repo,
)
from gitprovider.mutations import (
    CommitFiles,
    CreateBranch,
    CreateRepo,
    MergePullRequest,
    OpenPullRequest,
    ProtectBranch,
)


class LocalProvider(Provider):
    """The contract on a forge in a folder: no token, no network, no server.

    The user who made a folder may use it in any number of processes at the same time, with Git beside them. No response
    can be late or lost, so an error's outcome is UNKNOWN only where the disk failed while a change was being recorded.
    Nothing stays open between two calls, so a closed provider can still be used.

    Args:
        root: the forge's folder. The first write makes it.
        timeout: seconds that a write waits for other writers; None is a minute.
        on_event: a hook, or several, called with every start and end of an operation.
        settle: seconds after which a lost call can no longer take effect. Nothing is lost here.
        now: the clock of commits and records. It returns aware datetimes.
        before_effect: called with the complete intent just before each effect of a mutation is sent. If it raises,
            nothing is sent, and its error is the cause of the error that is raised.
        intents: the store that the ``key`` of an ``ensure_`` function is looked up in.

    Attributes:
        name: ``local``.
        forge: the forge. ``forge.approve`` and ``forge.set_check`` act as reviewers and as the CI.
    """

    name: str = "local"
    _host: Host = "local"

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        timeout: float | None = None,
        on_event: Hook | Sequence[Hook] | None = None,
        settle: float = 0.0,
        now: Callable[[], datetime] = utc_now,
        before_effect: BeforeEffect | None = None,
        intents: IntentStore | None = None,
    ) -> None:
        root = checks.check_path("root", root)
        self.settle = checks.check_seconds("settle", settle)
        lock_wait = None if timeout is None else checks.check_seconds("timeout", timeout)
        self.forge = Forge(root, now=now, lock_wait=lock_wait)
        self._hooks = check_hooks(on_event)
        self._now = now
        self._remember(before_effect, intents)

    def __repr__(self) -> str:
        return f"LocalProvider({str(getattr(getattr(self, 'forge', None), 'root', ''))!r})"

    @contextmanager
    def sdk(self) -> Iterator[Forge]:
        """Lend the forge, for what the contract does not cover."""
        yield self.forge

    def _operation(self, name: str, repo: str, *, mutation: bool = False) -> Operation:
        return Operation(
            name,
            repo,
            provider=self.name,
            host="localhost",
            translate=translate,
            mutation=mutation,
            hooks=self._hooks,
            before_effect=self._before_effect,
            now=self._now,
        )

    # The hooks of GitProviderContract

    def _get_repo(self, op: Operation) -> Repo:
        with op.before("read repository"):
            try:
                return convert.repo(self.forge.repo(op.repo))
            except RepoMovedError as moved:
                return convert.repo(self.forge.repo(str(moved.moved_to)))

    def _list_branches(self, op: Operation) -> list[Branch]:
        with op.before("list branches"):
            branches = self.forge.branches(op.repo)
            protected = covered((rule.pattern for rule in self.forge.rules(op.repo)), [name for name, _ in branches])
            return [Branch(name=name, sha=sha, protected=name in protected) for name, sha in branches]

    def _create_repo(self, op: Operation, asked: CreateRepo) -> Repo:
        with op.effect(asked.effect), _existing_as(convert.repo):
            made = convert.repo(self.forge.create_repo(op.repo, **asked.arguments()))
            op.done(asked.effect, made)
        return made

    def _create_branch(self, op: Operation, asked: CreateBranch) -> Branch:
        with op.before("read source"):
            sha = asked.source_sha or self.forge.head(op.repo, asked.source)
            made = self._branch(op.repo, asked.name, sha)
            op.note(source_sha=sha)
        with op.effect(asked.effect), _existing_as(lambda held: self._branch(op.repo, *held)):
            self.forge.create_branch(op.repo, asked.name, sha)
            op.done(asked.effect, made)
        return made

    def _protect_branch(self, op: Operation, asked: ProtectBranch) -> BranchProtection:
        with op.before("read protection"):
            op.note(previous_rules=self.forge.protection(op.repo, asked.branch))
        with op.effect(asked.effect):
            held = self.forge.tighten(op.repo, asked.branch, asked.rules)
            op.done(asked.effect, held)
        return held

    def _commit_files(self, op: Operation, asked: CommitFiles) -> Commit:
        def on_commit(base: str | None, sha: str) -> None:
            op.note(base_sha=base, commit_sha=sha)
            op.sending()

        with op.effect(asked.effect, complete=False):  # the commit's sha is known just before the branch moves
            made = self.forge.commit_changes(
                op.repo, **asked.arguments(), on_plan=lambda edits: op.note(files=edits.files), on_commit=on_commit
            )
            commit = convert.commit(made, asked.branch)
            op.done(asked.effect, commit)
        return commit

    def _open_pull_request(self, op: Operation, asked: OpenPullRequest) -> PullRequest:
        with op.effect(asked.effect), _existing_as(convert.pull_request):
            made = self.forge.open_pull_request(op.repo, **asked.arguments())
            pull = convert.pull_request(made)
            op.note(number=made.number, head_sha=made.head_sha)
            op.done(asked.effect, pull)
        return pull

    def _merge_pull_request(self, op: Operation, asked: MergePullRequest) -> MergeResult:
        """Merge at once. The forge needs no time to compute mergeability, so ``timeout`` has no use here."""
        with op.before("read pull request"):
            pull = self.forge.pull_request(op.repo, asked.number)
            head = asked.expected_head or pull.head_sha
            op.note(source_branch=pull.source_branch, target_branch=pull.target_branch, head_sha=head)
        already_merged = _is_merged(pull, head)
        if not already_merged:
            with op.effect(asked.effect):
                try:
                    pull = self.forge.merge(
                        op.repo,
                        asked.number,
                        method=asked.method,
                        expected_head=head,
                        message=asked.message,
                        on_commit=lambda base, sha: op.note(base_sha=base, commit_sha=sha),
                    )
                except NotMergeableError:
                    # Another process may have merged it after the read.
                    pull = self.forge.pull_request(op.repo, asked.number)
                    already_merged = _is_merged(pull, head)
                    if not already_merged:
                        raise
        result = MergeResult(sha=str(pull.merge_commit_sha), already_merged=already_merged)
        op.done(asked.effect, result)
        if asked.delete_source_branch:
            with op.after("delete source branch"):
                # A branch that is already gone is in the desired state.
                if optional(self.forge.head, op.repo, pull.source_branch) is not None:
                    self.forge.delete_branch(op.repo, pull.source_branch, expected=pull.head_sha, refuse_needed=True)
        return result

    # The hooks of HostState

    def _head(self, op: Operation, branch: str) -> str:
        return self.forge.head(op.repo, branch)

    def _contains(self, op: Operation, sha: str, branch: str) -> bool:
        return self.forge.contains(op.repo, sha, branch)

    def _commit(self, op: Operation, sha: str) -> Commit:
        return convert.commit(self.forge.read_commit(op.repo, sha))

    def _tree(self, op: Operation, sha: str) -> dict[str, TreeEntry]:
        return self.forge.read_tree(op.repo, self.forge.read_commit(op.repo, sha).tree)

    def _protection(self, op: Operation, branch: str) -> BranchProtection | None:
        self.forge.head(op.repo, branch)
        return self.forge.protection(op.repo, branch)

    def _find_pull_requests(
        self, op: Operation, source: str, target: str, state: PullRequestState | None
    ) -> list[PullRequest]:
        found = self.forge.pull_requests(op.repo, source_branch=source, target_branch=target, state=state)
        return [convert.pull_request(pull) for pull in found]

    def _get_pull_request(self, op: Operation, number: int) -> PullRequest:
        return convert.pull_request(self.forge.pull_request(op.repo, number))

    def _branch(self, repo: str, name: str, sha: str) -> Branch:
        return Branch(name=name, sha=sha, protected=self.forge.protection(repo, name) is not None)


@contextmanager
def _existing_as(value_of: Callable[[Any], Any]) -> Iterator[None]:
    """Turn the record in ``AlreadyExistsError.existing`` into a value of the contract."""
    try:
        yield
    except AlreadyExistsError as error:
        error.existing = value_of(error.existing)
        raise


def _is_merged(pull: PullRecord, head: str) -> bool:
    return pull.state is PullRequestState.MERGED and pull.head_sha == head
