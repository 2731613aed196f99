"""LocalProvider beside the contract suite: events, evidence, the forge lent, what the machine does to it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitprovider import (
    AlreadyExistsError,
    Author,
    Branch,
    ConflictError,
    GitProviderContract,
    GitProviderError,
    HeadMovedError,
    HostState,
    Intent,
    InvalidRequestError,
    MergeMethod,
    MergeResult,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    PullRequestState,
    PutFile,
    Repo,
    Step,
    UnexpectedResponseError,
)
from gitprovider.events import Event, OperationEvent
from gitprovider.local import Forge, LocalProvider
from gitprovider.local.git import BareRepository
from gitprovider.local.refs import Refs
from tests.support.local_forge import REPO, reports, start

FILE = PutFile(path="x", content="x")


def _topic(provider: LocalProvider) -> int:
    provider.create_branch(REPO, "topic", source="main")
    provider.commit_files(REPO, "topic", [FILE], message="topic")
    return provider.open_pull_request(REPO, source_branch="topic", target_branch="main", title="Topic").number


def test_it_fits_both_protocols(provider: LocalProvider) -> None:
    """To the type checker, and with the name and settle time of a host on which nothing is lost."""
    contract: GitProviderContract = provider
    state: HostState = provider

    assert (state.name, state.settle, contract) == ("local", 0.0, provider)


def test_its_repr_and_its_loan(provider: LocalProvider, root: Path) -> None:
    """The forge is lent, and closing takes nothing away."""
    with provider as entered, entered.sdk() as forge:
        assert forge is provider.forge
        assert isinstance(forge, Forge)

    assert repr(provider) == f"LocalProvider({str(root)!r})"
    assert repr(provider.forge) == f"Forge({str(root)!r})"
    assert provider.get_repo(REPO).path == REPO


@pytest.mark.parametrize(
    ("arguments", "name"),
    [({"root": ""}, "root"), ({"root": 3}, "root"), ({"root": "x", "settle": -1}, "settle")],
)
def test_its_arguments_are_checked(arguments: dict[str, Any], name: str) -> None:
    """By name, before anything is touched."""
    with pytest.raises(InvalidRequestError) as caught:
        LocalProvider(**arguments)

    assert caught.value.argument == name


def test_what_it_supports(provider: LocalProvider) -> None:
    """The one table decides."""
    assert provider.supports("protect_branch.required_checks")
    assert not provider.supports("protect_branch.require_code_owner_review")
    with pytest.raises(InvalidRequestError):
        provider.supports("teleport")


def test_one_event_per_operation(root: Path, forge: Forge) -> None:
    """Success and failure alike; a failed mutation brings its evidence."""
    seen: list[Event] = []
    provider = LocalProvider(root, on_event=seen.append)

    provider.get_repo(REPO)
    with pytest.raises(HeadMovedError):
        provider.commit_files(REPO, "main", [FILE], message="x", expected_head="0" * 40)

    _, read, _, failed = seen
    assert isinstance(read, OperationEvent)
    assert (read.operation, read.provider, read.repo, read.error) == ("get_repo", "local", REPO, None)
    assert isinstance(failed, OperationEvent)
    assert (failed.error, failed.outcome) == ("HeadMovedError", Outcome.NOT_APPLIED)
    assert failed.intent is not None


def _cut(provider: LocalProvider, monkeypatch: pytest.MonkeyPatch, call: Callable[[], object]) -> Intent:
    """The evidence of a call whose answer was lost: its effect is there, and an error leaves it all the same."""
    seen: list[Event] = []
    provider._hooks = (seen.append,)

    def lost(exc: object, *_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("gitprovider.local.provider.Operation.done", lost)
    with pytest.raises(KeyboardInterrupt):
        call()
    _, event = seen
    assert isinstance(event, OperationEvent)
    assert event.outcome is Outcome.UNKNOWN
    assert event.intent is not None
    assert Intent.from_json(event.intent.to_json()) == event.intent
    return event.intent


def test_evidence_of_a_commit(provider: LocalProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit's sha, what it was built on, and every touched path are known before the branch moves."""
    base = provider.head(REPO, "main")

    intent = _cut(provider, monkeypatch, lambda: provider.commit_files(REPO, "main", [FILE], message="x"))

    assert (intent.branch, intent.message, intent.base_sha) == ("main", "x", base)
    assert intent.commit_sha == provider.head(REPO, "main")
    assert intent.files == {"x": tuple(provider.tree(REPO, intent.commit_sha)["x"])}


def test_evidence_of_a_merge(provider: LocalProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Number, method, head and the commit that the target was to get."""
    number = _topic(provider)
    head = provider.head(REPO, "topic")

    intent = _cut(provider, monkeypatch, lambda: provider.merge_pull_request(REPO, number, method=MergeMethod.SQUASH))

    assert (intent.number, intent.method, intent.head_sha, intent.delete_source_branch) == (1, "squash", head, False)
    assert (intent.source_branch, intent.target_branch) == ("topic", "main")
    assert intent.commit_sha == provider.head(REPO, "main")


def test_evidence_of_what_is_created(provider: LocalProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository, a branch, a protection, a pull request: what was asked for, field by field."""
    head = provider.head(REPO, "main")
    provider.create_branch(REPO, "topic", source="main")
    provider.commit_files(REPO, "topic", [FILE], message="topic")

    made = _cut(provider, monkeypatch, lambda: provider.create_repo("acme/new", description="d", auto_init=True))
    branch = _cut(provider, monkeypatch, lambda: provider.create_branch(REPO, "new", source="main"))
    rules = _cut(provider, monkeypatch, lambda: provider.protect_branch(REPO, "main"))
    pull = _cut(
        provider,
        monkeypatch,
        lambda: provider.open_pull_request(
            REPO, source_branch="topic", target_branch="main", title="t", labels=["l"], reviewers=["r"]
        ),
    )

    assert (made.visibility, made.description, made.auto_init) == ("private", "d", True)
    assert (branch.branch, branch.source_sha) == ("new", head)
    assert rules.rules is not None
    assert (rules.branch, rules.rules["require_pull_request"], rules.previous_rules) == ("main", True, None)
    assert (pull.source_branch, pull.target_branch, pull.title, pull.draft) == ("topic", "main", "t", False)
    assert (pull.labels, pull.reviewers, pull.number) == (("l",), ("r",), 1)


def test_what_exists_is_a_value(provider: LocalProvider) -> None:
    """Not the forge's own record."""
    with pytest.raises(AlreadyExistsError) as repo:
        provider.create_repo(REPO)
    with pytest.raises(AlreadyExistsError) as branch:
        provider.create_branch(REPO, "main", source="main")

    assert isinstance(repo.value.existing, Repo)
    assert branch.value.existing == Branch(name="main", sha=provider.head(REPO, "main"), protected=False)


def test_a_branch_that_moves_after_the_merge_stays(provider: LocalProvider) -> None:
    """The merge is done and said to be; what came after it is not thrown away."""
    number = _topic(provider)
    merge = provider.forge.merge

    def busy(*args: Any, **kwargs: Any) -> Any:
        merged = merge(*args, **kwargs)
        provider.forge.commit_changes(REPO, "topic", [PutFile(path="late", content="x")], message="late")
        return merged

    provider.forge.merge = busy  # type: ignore[method-assign]  # a fault is put in its place

    with pytest.raises(HeadMovedError) as caught:
        provider.merge_pull_request(REPO, number, delete_source_branch=True)

    assert caught.value.outcome is Outcome.PARTIAL
    assert caught.value.completed == (Step("merge", MergeResult(sha=provider.head(REPO, "main"))),)
    assert "late" in provider.tree(REPO, provider.head(REPO, "topic"))


def test_deleting_a_branch_that_is_gone(provider: LocalProvider) -> None:
    """Merged before and the branch deleted since: the state asked for is there."""
    number = _topic(provider)
    first = provider.merge_pull_request(REPO, number, delete_source_branch=True)

    again = provider.merge_pull_request(REPO, number, delete_source_branch=True)

    assert again == MergeResult(sha=first.sha, already_merged=True)


def test_somebody_merges_it_at_the_same_time(provider: LocalProvider) -> None:
    """Merged by another process after it was read: that is what was asked for, and no error."""
    number = _topic(provider)
    merge = provider.forge.merge

    def late(*args: Any, **kwargs: Any) -> Any:
        merge(REPO, number, method=MergeMethod.SQUASH)
        return merge(*args, **kwargs)

    provider.forge.merge = late  # type: ignore[method-assign]  # a fault is put in its place

    assert provider.merge_pull_request(REPO, number) == MergeResult(
        sha=provider.head(REPO, "main"), already_merged=True
    )


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"labels": "bug"}, "labels"),
        ({"labels": [""]}, "labels"),
        ({"reviewers": [3]}, "reviewers"),
    ],
)
def test_names_of_a_pull_request(provider: LocalProvider, given: dict[str, Any], argument: str) -> None:
    """A str is no sequence of names, and a name is not empty."""
    with pytest.raises(InvalidRequestError) as caught:
        provider.open_pull_request(REPO, source_branch="topic", target_branch="main", title="x", **given)

    assert caught.value.argument == argument


def test_arguments_of_the_wrong_kind(provider: LocalProvider) -> None:
    """An author that is none, rules that are none: refused by name."""
    author: Any = "Ada <ada@example.org>"
    rules: Any = {"required_approvals": 1}

    with pytest.raises(InvalidRequestError, match="author"):
        provider.commit_files(REPO, "main", [FILE], message="x", author=author)
    with pytest.raises(InvalidRequestError, match="rules"):
        provider.protect_branch(REPO, "main", rules)
    with pytest.raises(InvalidRequestError, match="repo"):
        provider.get_repo(None)  # type: ignore[arg-type]  # the wrong type is what is tried


@pytest.mark.parametrize(
    ("raised", "error", "before", "after"),
    [
        (PermissionError(13, "Permission denied", "/x"), PermissionDeniedError, "not_applied", "unknown"),
        (RuntimeError("a bug"), UnexpectedResponseError, "not_applied", "unknown"),
    ],
)
def test_what_nobody_foresaw(
    provider: LocalProvider, raised: Exception, error: type[GitProviderError], before: str, after: str
) -> None:
    """It leaves as the library's error, with an outcome that claims no more than is known, and is not to be retried."""

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise raised

    provider.forge.branches = fail  # type: ignore[method-assign]  # a fault is put in its place
    provider.forge.commit_changes = fail  # type: ignore[method-assign]  # a fault is put in its place

    with pytest.raises(error) as read:
        provider.list_branches(REPO)
    with pytest.raises(error) as written:
        provider.commit_files(REPO, "main", [FILE], message="x")

    assert (read.value.outcome, written.value.outcome) == (before, after)
    assert not read.value.retryable
    assert (read.value.repo, read.value.operation, type(read.value.__cause__)) == (REPO, "list_branches", type(raised))


def test_a_commit_whose_record_failed(provider: LocalProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fails while SQLite commits: nobody knows, and the error says so."""
    import sqlite3

    class Failing(sqlite3.Connection):
        def execute(self, *args: Any) -> sqlite3.Cursor:
            if args[0] == "COMMIT":
                raise sqlite3.OperationalError("disk I/O error")
            return super().execute(*args)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Failing))

    with pytest.raises(ProviderUnavailableError, match="disk I/O error") as caught:
        provider.protect_branch(REPO, "main")

    assert (caught.value.outcome, caught.value.retryable) == (Outcome.UNKNOWN, False)
    monkeypatch.undo()
    assert provider.protection(REPO, "main") is None


def test_an_author_of_a_commit(provider: LocalProvider) -> None:
    """A shared file of bytes and an author pass through as they are."""
    ada = Author(name="Ada", email="ada@example.org")

    commit = provider.commit_files(REPO, "main", [FILE], message="x", author=ada)

    assert provider.forge.read_commit(REPO, commit.sha).author_name == "Ada"


def test_a_missing_extra_is_one_line() -> None:
    """Without pygit2 the import names the extra to install."""
    code = "import sys; sys.modules['pygit2'] = None; import gitprovider; import gitprovider.local"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].endswith("pygit2 is not installed; pip install 'gitprovider[local]'")
    assert "ModuleNotFoundError" not in done.stderr


def test_a_fork_waits_for_the_forge(forge: Forge) -> None:
    """A child forked while another thread writes can write too: it inherits no lock that nobody holds."""
    (facts,) = reports([start("forked", forge.root)])

    assert facts == [{"child": 0}, {"thread": "done"}, {"files": ["README.md", "child", "thread"]}]


def test_operations_nest_and_forks_of_their_own_do_not_wait(forge: Forge) -> None:
    """A callback inside a write may read, and may fork, without waiting for its own operation."""
    (facts,) = reports([start("forked", forge.root, "nested")])

    assert facts == [{"child": 0}, {"files": ["README.md", "nested"]}]


@pytest.mark.parametrize("operation", ["commit_files", "merge_pull_request"])
def test_nothing_can_fail_between_the_move_of_a_branch_and_the_record_of_it(
    provider: LocalProvider, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """A disk that fails right after the move must not make the call look refused: nothing is read there any more."""
    number = _topic(provider)
    move = BareRepository.set_branch

    def moved_and_then_unreadable(repository: BareRepository, branch: str, sha: str, *, old: str | None) -> None:
        move(repository, branch, sha, old=old)
        monkeypatch.setattr(BareRepository, "find", _unreadable)
        monkeypatch.setattr(Refs, "get", _unreadable)

    monkeypatch.setattr(BareRepository, "set_branch", moved_and_then_unreadable)

    if operation == "commit_files":
        sha = provider.commit_files(REPO, "main", [PutFile(path="y", content="y")], message="y").sha
    else:
        sha = provider.merge_pull_request(REPO, number).sha

    monkeypatch.undo()
    assert provider.head(REPO, "main") == sha


def _unreadable(*given: object) -> None:
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize("merged_before", [False, True])
def test_the_target_of_other_pull_requests_is_not_deleted(provider: LocalProvider, merged_before: bool) -> None:
    """The deletion would close pull requests that stand on the branch, and somebody's work with them."""
    number = _topic(provider)
    source = provider.get_pull_request(REPO, number).source_branch
    stacked = []
    for name in ("second", "third"):
        provider.create_branch(REPO, name, source=source)
        provider.commit_files(REPO, name, [PutFile(path=name, content=name)], message=name)
        stacked.append(provider.open_pull_request(REPO, source_branch=name, target_branch=source, title=name).number)
    if merged_before:
        provider.merge_pull_request(REPO, number)

    with pytest.raises(ConflictError) as caught:
        provider.merge_pull_request(REPO, number, delete_source_branch=True)

    error = caught.value
    assert (error.outcome, error.failed_step) == (Outcome.PARTIAL, "delete source branch")
    assert str(stacked) in error.message
    assert error.hint is not None
    assert provider.get_pull_request(REPO, number).state is PullRequestState.MERGED
    assert [provider.get_pull_request(REPO, each).state for each in stacked] == [PullRequestState.OPEN] * 2
    for each in stacked:
        provider.forge.update_pull_request(REPO, each, state=PullRequestState.CLOSED)
    assert provider.merge_pull_request(REPO, number, delete_source_branch=True).already_merged
    assert source not in [branch.name for branch in provider.list_branches(REPO)]
