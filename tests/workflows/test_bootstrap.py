"""bootstrap: the same call finishes the job whatever happened before, and sends nothing that is there already."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitprovider import (
    AuthenticationError,
    BootstrapReport,
    BranchProtection,
    ConflictError,
    DeleteFile,
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    PullRequestState,
    PutFile,
    RateLimitedError,
    RetryCancelledError,
    Visibility,
    bootstrap,
    cancel_on,
)
from gitprovider.bootstrap import StepEvent, StepReport, StepStart, StepStatus, StepWait, read_directory
from tests.support.bootstrapping import SENT, STEPS, a_directory
from tests.support.memory import Clock, Fault, MemoryProvider
from tests.support.mutations import REPO


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_directory(tmp_path / "source")


@pytest.fixture
def provider(clock: Clock) -> MemoryProvider:
    return MemoryProvider(clock)


def run(provider: MemoryProvider, source: Path, **options: Any) -> BootstrapReport:
    clock = provider.clock
    options.setdefault("pull_request", True)
    return bootstrap(provider, REPO, source=source, sleep=clock.sleep, clock=clock.monotonic, now=clock.now, **options)


def state(provider: MemoryProvider) -> dict[str, Any]:
    """What people see on the host: branches with their files and history's messages, protection, pull requests."""
    stored = provider.stored[REPO]
    return {
        "repo": (stored.repo.visibility, stored.repo.description),
        "trees": {name: stored.commits[sha][2] for name, sha in stored.branches.items()},
        "messages": {name: _messages(provider, sha) for name, sha in stored.branches.items()},
        "rules": stored.rules,
        "pulls": [
            (pull.number, pull.state, pull.title, pull.source_branch, pull.target_branch) for pull in stored.pulls
        ],
    }


def _messages(provider: MemoryProvider, sha: str | None) -> list[str]:
    messages = []
    while sha is not None:
        commit = provider.commit(REPO, sha)
        messages.append(commit.message)
        sha = commit.parent
    return messages


def undisturbed(source: Path) -> dict[str, Any]:
    provider = MemoryProvider(Clock())
    assert run(provider, source).ok
    return state(provider)


def statuses(report: BootstrapReport) -> dict[str, str]:
    return {step.name: step.status.value for step in report.steps}


def test_an_undisturbed_run_makes_everything_once(provider: MemoryProvider, source: Path) -> None:
    """Each step is done in order, each mutation sent once."""
    report = run(provider, source, description="Widgets")

    assert [(step.name, step.status) for step in report.steps] == [(name, StepStatus.DONE) for name in STEPS]
    assert provider.sent == SENT


def test_the_result_is_what_was_asked(provider: MemoryProvider, source: Path) -> None:
    """main has the files and the merged change, develop the files, main is protected, the change's branch is gone."""
    run(provider, source)

    seen = state(provider)
    assert set(seen["trees"]) == {"main", "develop"}
    assert set(seen["trees"]["develop"]) == {"README.md", "src/data.bin", "run"}
    assert seen["trees"]["develop"]["run"].mode == "100755"
    assert set(seen["trees"]["main"]) - set(seen["trees"]["develop"]) == {"BOOTSTRAP.md"}
    assert seen["rules"] == {"main": BranchProtection()}
    assert [pull[1] for pull in seen["pulls"]] == [PullRequestState.MERGED]


def test_a_second_run_finds_everything_there(provider: MemoryProvider, source: Path) -> None:
    """Nothing is sent the second time, and each step says so."""
    run(provider, source)
    provider.sent.clear()

    report = run(provider, source)

    assert set(statuses(report).values()) == {"already there"}
    assert list(statuses(report)) == STEPS
    assert provider.sent == []


def test_without_a_pull_request_there_is_none(provider: MemoryProvider, source: Path) -> None:
    """The short run is the repository, the files, develop and protection."""
    report = run(provider, source, pull_request=False)

    assert list(statuses(report)) == ["create_repo", "commit_files", "create_branch", "protect_branch"]
    assert state(provider)["pulls"] == []


def test_develop_can_be_left_out(provider: MemoryProvider, source: Path) -> None:
    """develop=None makes no second branch, and the page does not speak of one."""
    report = run(provider, source, develop=None)

    assert "create_branch" not in statuses(report)
    assert set(state(provider)["trees"]) == {"main"}


def test_the_change_can_be_given(provider: MemoryProvider, source: Path) -> None:
    """The pull request brings the caller's files under the caller's title, from the caller's branch."""
    report = run(
        provider,
        source,
        change=[PutFile(path="CODEOWNERS", content="* @acme/owners\n")],
        change_branch="owners",
        change_title="Name the owners",
    )

    assert report.ok
    assert "CODEOWNERS" in state(provider)["trees"]["main"]
    assert [pull[2:4] for pull in state(provider)["pulls"]] == [("Name the owners", "owners")]


class Stopped(Exception):
    """Ends a run from outside, as a kill would."""


@pytest.mark.parametrize("event_number", range(16))
def test_a_run_stopped_between_steps_is_finished_by_the_next(
    event_number: int, provider: MemoryProvider, source: Path
) -> None:
    """Stopped at any step's beginning or end, the same call ends in the state of an undisturbed run."""
    left = iter(range(event_number))

    def stop(event: StepEvent) -> None:
        if next(left, None) is None:
            raise Stopped

    with pytest.raises(Stopped):
        run(provider, source, on_step=stop)

    assert run(provider, source).ok
    assert state(provider) == undisturbed(source)
    assert sorted(provider.sent) == sorted(SENT)


class NthCall:
    """Lets a fault hit the n-th call of a mutation's effect: twice create_branch and commit_files are sent."""

    def __init__(self, provider: MemoryProvider, index: int, fault: Fault) -> None:
        self.provider, self.index, self.fault = provider, index, fault

    def __call__(self, event: StepEvent) -> None:
        if isinstance(event, StepStart) and event.name == STEPS[self.index]:
            self.provider.faults[SENT[self.index]] = self.fault


every_step = pytest.mark.parametrize("index", range(len(STEPS)), ids=STEPS)


@every_step
@pytest.mark.parametrize("fault", ["after", "late"])
def test_a_lost_answer_is_looked_up_and_nothing_is_sent_again(
    index: int, fault: Fault, provider: MemoryProvider, source: Path
) -> None:
    """A mutation that took effect, at once or late, is found by reading; the run goes on."""
    report = run(provider, source, on_step=NthCall(provider, index, fault))

    assert report.ok
    assert provider.sent == SENT
    assert state(provider) == undisturbed(source)


@every_step
def test_a_lost_request_fails_the_step_and_the_next_run_finishes(
    index: int, provider: MemoryProvider, source: Path
) -> None:
    """What may have been sent is not sent again in this run; its error is reported with its intent."""
    report = run(provider, source, on_step=NthCall(provider, index, "before"))

    failed = report.steps[-1]
    assert (failed.name, failed.status) == (STEPS[index], StepStatus.FAILED)
    assert failed.error is not None
    assert failed.error.outcome is Outcome.UNKNOWN
    assert failed.error.intent is not None
    assert provider.sent == SENT[: index + 1]

    assert run(provider, source).ok
    assert state(provider) == undisturbed(source)


@every_step
def test_a_refusal_that_may_pass_is_tried_again_and_reported(
    index: int, provider: MemoryProvider, source: Path
) -> None:
    """NOT_APPLIED and retryable: the step waits and is tried again, and the wait is told."""
    events: list[StepEvent] = []
    fault = NthCall(provider, index, "refused")

    def tell(event: StepEvent) -> None:
        events.append(event)
        fault(event)

    report = run(provider, source, on_step=tell)

    assert report.ok
    assert report.steps[index].attempts == 2
    assert [(event.name, event.attempt) for event in events if isinstance(event, StepWait)] == [(STEPS[index], 1)]


def test_an_outage_ends_the_step_within_its_time(provider: MemoryProvider, source: Path) -> None:
    """A host that stays down fails the step after 60 seconds at most."""
    provider.refusals["create_repo"] = [ProviderUnavailableError("503") for _ in range(100)]

    report = run(provider, source)

    assert isinstance(report.error, ProviderUnavailableError)
    assert report.steps[-1].attempts > 3
    assert sum(provider.clock.slept) <= 60


def test_the_wait_that_the_host_asks_for_is_honoured(provider: MemoryProvider, source: Path) -> None:
    """Retry-After wins over our own pace."""
    provider.refusals["create_repo"] = [RateLimitedError("429", retry_after=17)]

    assert run(provider, source).ok
    assert provider.clock.slept == [17]


def test_a_wait_beyond_the_time_fails_at_once(provider: MemoryProvider, source: Path) -> None:
    """A host that asks for more than the step may take is not waited for."""
    provider.refusals["create_repo"] = [RateLimitedError("429", retry_after=3600)]

    report = run(provider, source)

    assert isinstance(report.error, RateLimitedError)
    assert provider.clock.slept == []


def test_a_new_repository_that_is_not_visible_yet_is_waited_for_by_reading(
    provider: MemoryProvider, source: Path
) -> None:
    """A host that answers 404 for a new repository for a while is read until it shows it; nothing is sent again."""
    provider.lag = 40

    report = run(provider, source)

    assert report.ok
    assert provider.sent == SENT


def test_what_never_becomes_visible_fails_the_step(provider: MemoryProvider, source: Path) -> None:
    """A step whose result the host does not show in time is PARTIAL, with what was made."""
    provider.lag = 1000

    report = run(provider, source)

    assert statuses(report) == {"create_repo": "failed"}
    assert report.error is not None
    assert report.error.outcome is Outcome.PARTIAL
    assert report.error.completed[0].value.path == REPO
    assert isinstance(report.error.__cause__, NotFoundError)


def test_an_outage_right_after_a_change_is_waited_for(
    provider: MemoryProvider, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that fails while we wait to see what was made is tried again; nothing is sent again."""
    protection = provider.protection
    failures = [ProviderUnavailableError("503"), RateLimitedError("429", retry_after=5)]

    def down_for_a_while(repo: str, branch: str) -> Any:
        if provider.sent[-1] == "protect_branch" and failures:
            raise failures.pop()
        return protection(repo, branch)

    monkeypatch.setattr(provider, "protection", down_for_a_while)

    report = run(provider, source)

    assert report.ok
    assert provider.sent == SENT
    assert provider.clock.slept == [5, 2]


def test_a_change_that_the_host_does_not_show_is_an_error(
    provider: MemoryProvider, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica that keeps answering with the old state is not taken for success."""
    monkeypatch.setattr(provider, "protection", lambda repo, branch: None)

    report = run(provider, source)

    assert report.steps[-1].name == "protect_branch"
    assert "did not show the result within 60 seconds" in str(report.error)


@pytest.mark.parametrize(
    ("operation", "refusal"),
    [
        ("open_pull_request", NotFoundError("the source branch does not exist")),
        ("open_pull_request", ConflictError("there is nothing to merge")),
        ("commit_files", ConflictError("the repository is empty or unavailable")),
        ("merge_pull_request", HeadMovedError("the head was modified")),
        ("merge_pull_request", NotMergeableError("still computing", reason=NotMergeableReason.PENDING)),
    ],
)
def test_a_refusal_of_a_host_that_lags_behind_our_own_write_is_tried_again(
    operation: str, refusal: GitProviderError, provider: MemoryProvider, source: Path
) -> None:
    """Right after a creation of this run, such a refusal passes."""
    provider.refusals[operation] = [refusal]

    report = run(provider, source)

    assert report.ok
    assert max(step.attempts for step in report.steps) == 2


@pytest.mark.parametrize(
    ("operation", "refusal"),
    [
        ("create_repo", NotFoundError("no such namespace")),
        ("commit_files", PermissionDeniedError("no")),
        ("create_branch", ConflictError("a branch is in the way")),
        ("merge_pull_request", NotMergeableError("conflict", reason=NotMergeableReason.CONFLICT)),
        ("protect_branch", ConflictError("a laxer rule")),
        ("protect_branch", PermissionDeniedError("the plan has no protection")),
    ],
)
def test_a_refusal_that_will_not_pass_fails_the_step_at_once(
    operation: str, refusal: GitProviderError, provider: MemoryProvider, source: Path
) -> None:
    """What waiting does not change is reported after one try."""
    provider.refusals[operation] = [refusal]

    report = run(provider, source)

    assert report.error is refusal
    assert report.steps[-1].attempts == 1
    assert provider.clock.slept == []


def test_a_missing_branch_is_no_lag_when_nothing_was_made(provider: MemoryProvider, source: Path) -> None:
    """In a run that made nothing yet, NotFoundError is what it says."""
    provider.create_repo(REPO)
    provider.push(REPO, "main", {}, "Begin")
    provider.refusals["commit_files"] = [NotFoundError("no such branch")]

    report = run(provider, source)

    assert report.steps[-1].attempts == 1


def test_a_cancelled_wait_ends_the_run(provider: MemoryProvider, source: Path) -> None:
    """The event of cancel_on ends the wait between two tries."""
    provider.refusals["create_repo"] = [ProviderUnavailableError("503")]
    event = threading.Event()
    event.set()

    with cancel_on(event):
        report = run(provider, source)

    assert isinstance(report.error, RetryCancelledError)


def test_a_wait_for_what_was_made_can_be_cancelled_too(provider: MemoryProvider, source: Path) -> None:
    """Cancelled while the host does not show a new repository: the error says that it was made."""
    provider.lag = 40
    event = threading.Event()
    event.set()

    with cancel_on(event):
        report = run(provider, source)

    assert isinstance(report.error, RetryCancelledError)
    assert report.error.completed[0].value.path == REPO


def test_a_look_that_is_refused_after_a_change_does_not_deny_it(
    provider: MemoryProvider, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that expires between the change and the look after it: PARTIAL, with what was made."""
    protection = provider.protection

    def expired_after_sending(repo: str, branch: str) -> Any:
        if "protect_branch" in provider.sent:
            raise AuthenticationError("expired")
        return protection(repo, branch)

    monkeypatch.setattr(provider, "protection", expired_after_sending)

    error = run(provider, source).error

    assert isinstance(error, AuthenticationError)
    assert (error.outcome, error.failed_step) == (Outcome.PARTIAL, "read it back")
    assert isinstance(error.completed[0].value, BranchProtection)


def test_a_host_that_goes_down_after_a_lost_answer_leaves_the_evidence(
    provider: MemoryProvider, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the look fails too, the error is the lost mutation's, with its intent."""
    provider.faults["protect_branch"] = "after"
    protection = provider.protection

    def down_after_sending(repo: str, branch: str) -> Any:
        if "protect_branch" in provider.sent:
            raise ProviderUnavailableError("503")
        return protection(repo, branch)

    monkeypatch.setattr(provider, "protection", down_after_sending)

    report = run(provider, source)

    assert report.error is not None
    assert report.error.outcome is Outcome.UNKNOWN
    assert report.error.intent is not None


# What somebody else did


def test_a_public_repository_stops_a_private_bootstrap(provider: MemoryProvider, source: Path) -> None:
    """A contradiction fails the first step, and nothing is written."""
    provider.create_repo(REPO, visibility=Visibility.PUBLIC)
    provider.sent.clear()

    report = run(provider, source)

    assert isinstance(report.error, ConflictError)
    assert provider.sent == []


@pytest.mark.parametrize("branch", ["main", "develop"])
def test_branches_that_moved_on_are_still_there(branch: str, provider: MemoryProvider, source: Path) -> None:
    """Work on main or develop after a bootstrap does not stand in the way of another run."""
    run(provider, source)
    provider.push(REPO, branch, {"work": b"work"}, "Work")
    provider.sent.clear()

    report = run(provider, source)

    assert report.ok
    assert provider.sent == []


def test_branches_that_went_apart_are_still_there(provider: MemoryProvider, source: Path) -> None:
    """Work on both: develop still began on main."""
    run(provider, source)
    for branch in ("main", "develop", "develop"):
        provider.push(REPO, branch, {"work": branch.encode()}, f"Work on {branch}")

    assert run(provider, source).ok


def test_a_develop_that_did_not_begin_on_main_is_refused(provider: MemoryProvider, source: Path) -> None:
    """A branch of that name with a history of its own is somebody's, and is named."""
    provider.create_repo(REPO)
    provider.push(REPO, "develop", {"a": b"a"}, "Another beginning")
    provider.push(REPO, "main", {"b": b"b"}, "Begin")

    report = run(provider, source)

    assert isinstance(report.error, ConflictError)
    assert "was not branched from main" in str(report.error)


def test_a_long_history_of_its_own_is_not_read_for_ever(provider: MemoryProvider, source: Path) -> None:
    """Where a branch began is looked for over 100 commits, and then taken for elsewhere."""
    provider.create_repo(REPO)
    provider.push(REPO, "main", {"b": b"b"}, "Begin")
    for number in range(120):
        provider.push(REPO, "develop", {"a": str(number).encode()}, "Another history")

    report = run(provider, source)

    assert isinstance(report.error, ConflictError)


def test_a_new_branch_of_the_changes_name_is_left_alone(provider: MemoryProvider, source: Path) -> None:
    """After the merge, a branch that somebody made under that name is neither written to nor deleted."""
    run(provider, source)
    provider.create_branch(REPO, "bootstrap", source="main")
    work = provider.push(REPO, "bootstrap", {"work": b"work"}, "Work")
    provider.sent.clear()

    report = run(provider, source)

    assert report.ok
    assert provider.head(REPO, "bootstrap") == work
    assert provider.sent == []


def test_a_branch_that_the_merge_left_is_deleted_by_the_next_run(provider: MemoryProvider, source: Path) -> None:
    """Merged, and the deletion failed: reported as PARTIAL, and finished by the same call."""
    provider.faults["delete source branch"] = "before"

    report = run(provider, source)
    assert report.error is not None
    assert report.error.outcome is Outcome.PARTIAL

    assert run(provider, source).ok
    assert state(provider) == undisturbed(source)


# Plan


def test_a_plan_of_everything_sends_nothing(provider: MemoryProvider, source: Path) -> None:
    """On an empty host each step says what it would do."""
    report = run(provider, source, plan=True)

    assert statuses(report) == dict.fromkeys(STEPS, "would do")
    assert all(step.detail.startswith("would ") for step in report.steps)
    assert provider.sent == []


@pytest.mark.parametrize("done", range(1, len(STEPS)))
def test_a_plan_of_the_rest_tells_what_is_there(done: int, provider: MemoryProvider, source: Path) -> None:
    """After a run that was stopped, a plan says which steps are there and which remain, and changes nothing."""

    def stop(event: StepEvent) -> None:
        if isinstance(event, StepReport) and event.name == STEPS[done - 1]:
            raise Stopped

    with pytest.raises(Stopped):
        run(provider, source, on_step=stop)
    provider.sent.clear()

    report = run(provider, source, plan=True)

    assert statuses(report) == {
        name: "already there" if index < done else "would do" for index, name in enumerate(STEPS)
    }
    assert provider.sent == []


def test_a_plan_says_how_many_files_are_missing(provider: MemoryProvider, source: Path) -> None:
    """The detail of a commit counts the files that it would change."""
    run(provider, source, pull_request=False)
    (source / "new").write_text("new")

    report = run(provider, source, pull_request=False, plan=True)

    assert report.steps[1].detail == "would commit 1 of 4 files"


def test_a_plan_that_meets_a_contradiction_fails(provider: MemoryProvider, source: Path) -> None:
    """A plan finds what the run would be refused for."""
    provider.create_repo(REPO, visibility=Visibility.PUBLIC)

    report = run(provider, source, plan=True)

    assert statuses(report) == {"create_repo": "failed"}


# The report


def test_a_report_is_json(provider: MemoryProvider, source: Path) -> None:
    """Values and times are plain; a step has what is there now."""
    report = run(provider, source)

    document = json.loads(json.dumps(report.to_json()))

    assert document["ok"]
    assert [step["name"] for step in document["steps"]] == STEPS
    assert document["steps"][0]["value"]["visibility"] == "private"


def test_a_failed_step_has_its_envelope(provider: MemoryProvider, source: Path) -> None:
    """A failure in the report carries what resolve needs."""
    report = run(provider, source, on_step=NthCall(provider, 2, "before"))

    failed = json.loads(json.dumps(report.to_json()))["steps"][-1]

    assert failed["error"]["outcome"] == "unknown"
    assert failed["error"]["intent"]["operation"] == "create_branch"
    with pytest.raises(ProviderUnavailableError):
        report.raise_for_error()


def test_a_report_without_failure_raises_nothing(provider: MemoryProvider, source: Path) -> None:
    """raise_for_error is for failures only."""
    run(provider, source).raise_for_error()


# The directory


def test_a_directory_is_read_with_modes_and_without_git(tmp_path: Path) -> None:
    """Sorted paths, bytes as they are, executable bits, and no .git, be it a directory or a file."""
    folder = a_directory(tmp_path / "source")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("")
    (folder / "src" / ".git").write_text("gitdir: elsewhere")
    (folder / "empty").mkdir()

    files = read_directory(folder).files

    assert [(file.path, file.executable) for file in files] == [
        ("README.md", False),
        ("run", True),
        ("src/data.bin", False),
    ]
    assert files[2].data() == bytes(range(256))


def _link_to_a_file(folder: Path) -> None:
    (folder / "bad").symlink_to("README.md")


def _link_to_a_directory(folder: Path) -> None:
    (folder / "bad").symlink_to("src")


def _dangling_link(folder: Path) -> None:
    (folder / "src" / "bad").symlink_to("nowhere")


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "bad")


def _name_that_is_no_text(folder: Path) -> None:
    os.mkdir(os.fsencode(folder) + b"/\xff")
    (folder / os.fsdecode(b"\xff") / "bad").write_text("")


def _too_much(folder: Path) -> None:
    for name in ("bad1", "bad2", "bad3"):
        with (folder / name).open("wb") as file:
            file.truncate(20_000_000)


@pytest.mark.parametrize(
    "spoil", [_link_to_a_file, _link_to_a_directory, _dangling_link, _pipe, _name_that_is_no_text, _too_much]
)
def test_a_directory_that_cannot_be_committed_is_refused_before_any_request(
    spoil: Callable[[Path], None], provider: MemoryProvider, source: Path
) -> None:
    """Links, special files, names that are no text and too many bytes are InvalidRequestError."""
    spoil(source)

    with pytest.raises(InvalidRequestError):
        run(provider, source)

    assert provider.stored == {}


def test_a_link_is_named(source: Path) -> None:
    """The refusal says which path it is."""
    _dangling_link(source)

    with pytest.raises(InvalidRequestError, match="symbolic link 'src/bad'"):
        read_directory(source)


@pytest.mark.parametrize("missing", ["nowhere", "README.md", "src/empty"])
def test_a_source_without_files_is_refused(missing: str, source: Path) -> None:
    """What is no directory, or an empty one, is InvalidRequestError."""
    (source / "src" / "empty").mkdir()

    with pytest.raises(InvalidRequestError) as caught:
        read_directory(source / missing)

    assert caught.value.argument == "source"


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"change": [PutFile(path="README.md", content="x")]}, "change"),
        ({"change": []}, "change"),
        ({"change": "x"}, "change"),
        ({"change": [DeleteFile(path="x")]}, "change"),
        ({"change": [PutFile(path="x", content=Path("no/such/file"))]}, "content"),
        ({"change_branch": "fork:change"}, "change_branch"),
        ({"rules": {}}, "rules"),
        ({"author": "me"}, "author"),
        ({"description": 5}, "description"),
        ({"change": [PutFile(path="x", content="x")], "pull_request": False}, "change"),
        ({"change_branch": "develop"}, "change_branch"),
        ({"change_branch": "a..b"}, "change_branch"),
        ({"develop": "a b"}, "develop"),
        ({"change_title": " "}, "change_title"),
        ({"message": ""}, "message"),
        ({"within": -1}, "within"),
        ({"plan": 1}, "plan"),
        ({"visibility": "secret"}, "visibility"),
    ],
)
def test_arguments_are_checked_before_any_request(
    options: dict[str, Any], argument: str, provider: MemoryProvider, source: Path
) -> None:
    """A wrong argument is InvalidRequestError that names it, and nothing is sent."""
    with pytest.raises(InvalidRequestError) as caught:
        run(provider, source, **options)

    assert caught.value.argument == argument
    assert provider.stored == {}


def test_a_page_of_that_name_in_the_source_is_refused(provider: MemoryProvider, source: Path) -> None:
    """The change would undo what the commit brought, on every run anew."""
    (source / "BOOTSTRAP.md").write_text("mine")

    with pytest.raises(InvalidRequestError, match=r"BOOTSTRAP\.md"):
        run(provider, source)


def test_a_pull_request_that_somebody_closed_is_opened_anew(provider: MemoryProvider, source: Path) -> None:
    """A closed one does not count; its branch and change are used."""

    def stop(event: StepEvent) -> None:
        if isinstance(event, StepReport) and event.name == "open_pull_request":
            raise Stopped

    with pytest.raises(Stopped):
        run(provider, source, on_step=stop)
    pulls = provider.stored[REPO].pulls
    pulls[0] = dataclasses.replace(pulls[0], state=PullRequestState.CLOSED)

    assert run(provider, source).ok
    assert [pull.state for pull in pulls] == [PullRequestState.CLOSED, PullRequestState.MERGED]


@pytest.mark.parametrize("plan", [True, False])
def test_the_default_branch_is_no_branch_for_a_change(plan: bool, provider: MemoryProvider, source: Path) -> None:
    """Its name is the host's, so that this is found after the first steps; the change is not committed to it."""
    run(provider, source, pull_request=False)
    before = state(provider)

    report = run(provider, source, change_branch="main", plan=plan)

    assert isinstance(report.error, InvalidRequestError)
    assert report.error.argument == "change_branch"
    assert report.steps[-1].name == "create_change_branch"
    assert state(provider) == before
