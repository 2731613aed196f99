"""What resolve says of each mutation, for each thing that may have become of it."""

from __future__ import annotations

import dataclasses
import json
import pickle
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from gitprovider import (
    BranchProtection,
    Commit,
    GitProviderError,
    Intent,
    InvalidRequestError,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    PullRequestState,
    PutFile,
    Resolution,
    RetryCancelledError,
    Verdict,
    Visibility,
    cancel_on,
    resolve,
)
from tests.support.memory import LATE, Clock, MemoryProvider
from tests.support.mutations import CHANGES, MUTATIONS, REPO, lost, staged

every_mutation = pytest.mark.parametrize("name", MUTATIONS)


def look(provider: MemoryProvider, evidence: GitProviderError | Intent, *, wait: bool = False) -> Resolution:
    return resolve(provider, evidence, wait=wait, sleep=provider.clock.sleep, now=provider.clock.now)


def intent_of(error: GitProviderError) -> Intent:
    assert error.intent is not None
    return error.intent


@every_mutation
def test_a_lost_answer_is_applied_with_the_value_of_the_call(name: str, clock: Clock) -> None:
    """A mutation whose answer was lost is APPLIED at once, and the value is what the call would have returned."""
    undisturbed = MUTATIONS[name].call(staged(name, Clock()))
    provider = staged(name, clock)
    error = lost(provider, name, "after")

    resolution = look(provider, error)

    assert resolution.verdict is Verdict.APPLIED
    if isinstance(undisturbed, Commit):
        undisturbed = dataclasses.replace(undisturbed, message=undisturbed.message + "\n")
    assert resolution.value == undisturbed


@every_mutation
def test_a_lost_request_is_not_applied_once_it_has_settled(name: str, clock: Clock) -> None:
    """A look made exactly the settle time after sending may say NOT_APPLIED."""
    provider = staged(name, clock)
    error = lost(provider, name, "before")
    clock.advance(provider.settle)

    assert look(provider, error).verdict is Verdict.NOT_APPLIED


@every_mutation
def test_a_lost_request_is_undecided_until_it_has_settled(name: str, clock: Clock) -> None:
    """A look made a moment too early says UNDECIDED, and when to look again."""
    provider = staged(name, clock)
    error = lost(provider, name, "before")
    sent_at = clock.now()
    clock.advance(provider.settle - 0.001)

    resolution = look(provider, error)

    assert resolution.verdict is Verdict.UNDECIDED
    assert resolution.look_again_at == sent_at + timedelta(seconds=provider.settle)


def test_a_request_settles_from_when_its_answer_was_given_up(clock: Clock) -> None:
    """A body that took longer to send than the host takes to settle is no reason to say "it did not happen" at once."""
    provider = staged("commit_files", clock)
    intent = intent_of(lost(provider, "commit_files", "before"))
    clock.advance(2 * provider.settle)
    given_up = dataclasses.replace(intent, lost_at=clock.now())

    resolution = look(provider, given_up)

    assert resolution.verdict is Verdict.UNDECIDED
    assert resolution.look_again_at == clock.now() + timedelta(seconds=provider.settle)


@every_mutation
def test_a_request_that_the_host_finishes_late_is_undecided_and_then_applied(name: str, clock: Clock) -> None:
    """A host that carries out a timed-out request two seconds later is not said to have done nothing."""
    provider = staged(name, clock)
    error = lost(provider, name, "late")

    before = look(provider, error)
    clock.advance(LATE)
    after = look(provider, error)

    assert (before.verdict, after.verdict) == (Verdict.UNDECIDED, Verdict.APPLIED)


@every_mutation
def test_waiting_looks_until_the_settle_time_and_no_longer(name: str, clock: Clock) -> None:
    """wait=True ends in NOT_APPLIED when the settle time has passed, having slept exactly that."""
    provider = staged(name, clock)
    error = lost(provider, name, "before")

    resolution = look(provider, error, wait=True)

    assert resolution.verdict is Verdict.NOT_APPLIED
    assert sum(clock.slept) == pytest.approx(provider.settle)


@every_mutation
def test_waiting_ends_as_soon_as_the_effect_is_seen(name: str, clock: Clock) -> None:
    """wait=True looks in between, and does not sleep through the settle time."""
    provider = staged(name, clock)
    error = lost(provider, name, "late")

    resolution = look(provider, error, wait=True)

    assert resolution.verdict is Verdict.APPLIED
    assert sum(clock.slept) < 4


@every_mutation
def test_a_refused_request_is_not_applied_without_a_look(name: str, clock: Clock) -> None:
    """What the host refused needs neither a read nor the settle time."""
    provider = staged(name, clock)
    error = lost(provider, name, "refused")
    provider.stored.clear()  # any read would fail

    assert look(provider, error).verdict is Verdict.NOT_APPLIED


@every_mutation
def test_a_stored_intent_is_evidence_enough(name: str, clock: Clock) -> None:
    """The intent survives JSON, and a new process finds out the same from it."""
    provider = staged(name, clock)
    error = lost(provider, name, "after")
    stored = json.dumps(intent_of(error).to_json())

    resolution = look(provider, Intent.from_json(json.loads(stored)))

    assert resolution == look(provider, error)
    assert resolution.verdict is Verdict.APPLIED


@every_mutation
def test_an_intent_that_was_never_sent_is_not_applied(name: str, clock: Clock) -> None:
    """Without a time of sending there is nothing to wait for and nothing to look at."""
    provider = staged(name, clock)
    never_sent = dataclasses.replace(intent_of(lost(provider, name, "before")), sent_at=None)

    assert look(provider, never_sent).verdict is Verdict.NOT_APPLIED


@every_mutation
def test_a_lost_answer_without_times_settles_from_the_first_look(name: str, clock: Clock) -> None:
    """A provider that notes no times and says UNKNOWN is believed: nobody is told to repeat what may be running."""
    provider = staged(name, clock)
    error = lost(provider, name, "before")
    error.intent = dataclasses.replace(intent_of(error), sent_at=None, lost_at=None)
    began = clock.now()

    assert look(provider, error).verdict is Verdict.UNDECIDED
    assert look(provider, error, wait=True).verdict is Verdict.NOT_APPLIED
    assert (clock.now() - began).total_seconds() == provider.settle


@every_mutation
def test_resolve_sends_nothing(name: str, clock: Clock) -> None:
    """Looking and waiting send no mutation."""
    provider = staged(name, clock)
    error = lost(provider, name, "before")

    look(provider, error, wait=True)

    assert provider.sent == [name]


@every_mutation
def test_a_resolution_pickles_and_is_json(name: str, clock: Clock) -> None:
    """A resolution can be sent to another process, and printed."""
    provider = staged(name, clock)
    resolution = look(provider, lost(provider, name, "after"))

    assert pickle.loads(pickle.dumps(resolution)) == resolution
    assert json.loads(json.dumps(resolution.to_json()))["verdict"] == "applied"


def _taken_by_a_public_one(provider: MemoryProvider) -> None:
    provider.create_repo(REPO, description="Widgets", visibility=Visibility.PUBLIC)


def _taken_long_ago(provider: MemoryProvider) -> None:
    provider.create_repo(REPO, description="Widgets")
    stored = provider.stored[REPO]
    assert stored.repo.created_at is not None
    stored.repo = dataclasses.replace(stored.repo, created_at=stored.repo.created_at - timedelta(days=1))


def _renamed(provider: MemoryProvider) -> None:
    provider.create_repo(REPO, description="Widgets")
    stored = provider.stored[REPO]
    stored.repo = dataclasses.replace(stored.repo, path="acme/gadgets")


def _branch_elsewhere(provider: MemoryProvider) -> None:
    provider.push(REPO, "develop", {"a": b"a"}, "Something else")


def _weaker_than_asked(provider: MemoryProvider) -> None:
    provider.protect_branch(REPO, "main", BranchProtection())


def _moved(provider: MemoryProvider) -> None:
    provider.push(REPO, "main", {"a": b"a"}, "Something else")


def _gone(provider: MemoryProvider) -> None:
    del provider.stored[REPO].branches["main"]


def _another_one_open(provider: MemoryProvider) -> None:
    provider.open_pull_request(REPO, source_branch="change", target_branch="main", title="Another")


def _closed(provider: MemoryProvider) -> None:
    pulls = provider.stored[REPO].pulls
    pulls[0] = dataclasses.replace(pulls[0], state=PullRequestState.CLOSED)


def _head_moved(provider: MemoryProvider) -> None:
    provider.push(REPO, "change", {"a": b"a"}, "One more")


def _merged_at_another_head(provider: MemoryProvider) -> None:
    _head_moved(provider)
    provider.merge_pull_request(REPO, 1)


@pytest.mark.parametrize(
    ("name", "meanwhile", "names"),
    [
        ("create_repo", _taken_by_a_public_one, "'public'"),
        ("create_repo", _taken_long_ago, "2025-12-31"),
        ("create_repo", _renamed, "acme/gadgets"),
        ("create_branch", _branch_elsewhere, "is at"),
        ("protect_branch", _weaker_than_asked, "required_approvals"),
        ("protect_branch", _gone, "no branch main"),
        ("commit_files", _moved, "is at"),
        ("commit_files", _gone, "no longer exists"),
        ("open_pull_request", _another_one_open, "'Another'"),
        ("merge_pull_request", _closed, "closed"),
        ("merge_pull_request", _head_moved, "its head is now"),
        ("merge_pull_request", _merged_at_another_head, "merged at the head"),
    ],
)
def test_another_change_is_a_conflict_that_names_it(
    name: str, meanwhile: Callable[[MemoryProvider], None], names: str, clock: Clock
) -> None:
    """A host that changed in another way is CONFLICT, and the detail says what is there."""
    provider = staged(name, clock)
    error = lost(provider, name, "before")
    meanwhile(provider)
    clock.advance(provider.settle)

    resolution = look(provider, error)

    assert resolution.verdict is Verdict.CONFLICT
    assert names in resolution.detail


def _two_on(provider: MemoryProvider, branch: str) -> None:
    provider.push(REPO, branch, {"a": b"a"}, "One more")
    provider.push(REPO, branch, {"b": b"b"}, "And another")


@pytest.mark.parametrize(
    ("name", "meanwhile"),
    [
        ("create_branch", lambda provider: _two_on(provider, "develop")),
        ("commit_files", lambda provider: _two_on(provider, "main")),
        ("protect_branch", lambda p: p.protect_branch(REPO, "main", BranchProtection(block_deletion=True))),
        ("open_pull_request", lambda p: p.merge_pull_request(REPO, 1)),
        ("merge_pull_request", lambda provider: _two_on(provider, "main")),
    ],
)
def test_what_was_applied_stays_applied_when_others_go_on(
    name: str, meanwhile: Callable[[MemoryProvider], Any], clock: Clock
) -> None:
    """Later work of others on top does not hide that the mutation took effect."""
    provider = staged(name, clock)
    error = lost(provider, name, "after")
    meanwhile(provider)

    assert look(provider, error).verdict is Verdict.APPLIED


# Commits whose sha nobody knew before the branch moved, as on GitLab


def commit_lost(provider: MemoryProvider, fault: Any = "before") -> GitProviderError:
    return lost(provider, "commit_files", fault)


def test_an_unknown_commit_is_found_below_later_ones(clock: Clock) -> None:
    """A commit is recognised by message, blobs and modes, from the head back to where it was built on."""
    provider = staged("commit_files", clock, knows_commit=False)
    error = commit_lost(provider, "after")
    made = provider.head(REPO, "main")
    _two_on(provider, "main")

    resolution = look(provider, error)

    assert resolution.verdict is Verdict.APPLIED
    assert resolution.value.sha == made


def test_a_commit_of_the_same_message_with_other_files_is_not_ours(clock: Clock) -> None:
    """The message alone is no proof: somebody may have used the same words."""
    provider = staged("commit_files", clock, knows_commit=False)
    error = commit_lost(provider)
    provider.push(REPO, "main", {"bin/run": b"something else\n"}, "Add a program")
    clock.advance(provider.settle)

    assert look(provider, error).verdict is Verdict.CONFLICT


def test_a_commit_with_another_mode_is_not_ours(clock: Clock) -> None:
    """The same content without the executable bit is another commit."""
    provider = staged("commit_files", clock, knows_commit=False)
    error = commit_lost(provider)
    provider.commit_files(
        REPO,
        "main",
        [dataclasses.replace(CHANGES[0], executable=False), CHANGES[1]],
        message="Add a program",
    )
    clock.advance(provider.settle)

    assert look(provider, error).verdict is Verdict.CONFLICT


def test_the_oldest_of_two_equal_commits_is_the_value(clock: Clock) -> None:
    """A repetition by somebody else, later, is not taken for the commit that was lost."""
    provider = staged("commit_files", clock, knows_commit=False)
    error = commit_lost(provider, "after")
    made = provider.head(REPO, "main")
    provider.push(REPO, "main", {}, "Add a program")

    assert look(provider, error).value.sha == made


def test_an_unknown_commit_may_still_land_on_a_head_that_moved(clock: Clock) -> None:
    """Without a compare-and-set a moved head excludes nothing until the request has settled."""
    provider = staged("commit_files", clock, knows_commit=False)
    error = commit_lost(provider)
    _moved(provider)

    early = look(provider, error)
    clock.advance(provider.settle)
    late = look(provider, error)

    assert (early.verdict, late.verdict) == (Verdict.UNDECIDED, Verdict.CONFLICT)


def test_a_known_commit_cannot_land_on_a_head_that_moved(clock: Clock) -> None:
    """With a compare-and-set a moved head decides at once."""
    provider = staged("commit_files", clock)
    error = commit_lost(provider)
    _moved(provider)

    assert look(provider, error).verdict is Verdict.CONFLICT


def test_files_as_asked_without_their_commit_are_for_a_person(clock: Clock) -> None:
    """When the files came in by other commits no read can tell whose they are."""
    provider = staged("commit_files", clock, knows_commit=False)
    error = commit_lost(provider)
    provider.commit_files(REPO, "main", [CHANGES[0]], message="By parts")
    provider.commit_files(REPO, "main", [CHANGES[1]], message="The rest")
    clock.advance(provider.settle)

    resolution = look(provider, error)

    assert resolution.verdict is Verdict.UNDECIDED
    assert resolution.look_again_at is None


@pytest.mark.parametrize(("commits", "verdict"), [(100, Verdict.CONFLICT), (101, Verdict.UNDECIDED)])
def test_the_walk_for_an_unknown_commit_is_bounded(commits: int, verdict: Verdict, clock: Clock) -> None:
    """A branch that moved on by more commits than are looked at is left to a person, not read for ever."""
    provider = staged("commit_files", clock, knows_commit=False)
    error = commit_lost(provider)
    for number in range(commits):
        provider.push(REPO, "main", {"n": str(number).encode()}, f"Number {number}")
    clock.advance(provider.settle)

    assert look(provider, error).verdict is verdict


def test_an_unknown_commit_without_its_files_is_for_a_person(clock: Clock) -> None:
    """A record that names neither the commit nor its files leaves nothing to recognise it by."""
    provider = staged("commit_files", clock, knows_commit=False)
    intent = dataclasses.replace(intent_of(commit_lost(provider, "after")), files={})

    resolution = look(provider, intent)

    assert resolution.verdict is Verdict.UNDECIDED
    assert "history of main" in resolution.detail


def test_a_rewritten_history_is_a_conflict(clock: Clock) -> None:
    """A branch whose history does not contain the commit that was built on was forced to somewhere else."""
    provider = staged("commit_files", clock, knows_commit=False)
    error = commit_lost(provider)
    del provider.stored[REPO].branches["main"]
    provider.push(REPO, "main", {"a": b"a"}, "Another beginning")
    clock.advance(provider.settle)

    resolution = look(provider, error)

    assert resolution.verdict is Verdict.CONFLICT
    assert "history does not contain" in resolution.detail


@pytest.mark.parametrize("knows_commit", [True, False])
@pytest.mark.parametrize(("fault", "verdict"), [("before", Verdict.NOT_APPLIED), ("after", Verdict.APPLIED)])
def test_a_first_commit_is_looked_up_in_an_empty_repository(
    knows_commit: bool, fault: Any, verdict: Verdict, clock: Clock
) -> None:
    """A commit without a parent is found, and its absence seen."""
    provider = MemoryProvider(clock, knows_commit=knows_commit)
    provider.create_repo(REPO)
    provider.faults["commit_files"] = fault
    with pytest.raises(ProviderUnavailableError) as caught:
        provider.commit_files(REPO, "main", [CHANGES[0]], message="Begin")
    clock.advance(provider.settle)

    assert look(provider, caught.value).verdict is verdict


def test_a_first_commit_of_some_of_the_files_is_a_conflict(clock: Clock) -> None:
    """A host that takes one file first may end there: neither all of it nor nothing, and the detail counts."""
    provider = MemoryProvider(clock, knows_commit=False)
    provider.create_repo(REPO)
    files = [PutFile(path="a", content="a"), PutFile(path="b", content="b")]
    provider.faults["commit_files"] = "before"
    with pytest.raises(ProviderUnavailableError) as caught:
        provider.commit_files(REPO, "main", files, message="Begin")
    provider.push(REPO, "main", {"a": b"a"}, "Begin")
    clock.advance(provider.settle)

    resolution = look(provider, caught.value)

    assert resolution.verdict is Verdict.CONFLICT
    assert "1 of 2 requested files" in resolution.detail


@every_mutation
def test_an_acknowledged_step_without_the_rest_is_a_conflict(name: str, clock: Clock) -> None:
    """Where the host acknowledged a step, NOT_APPLIED would be untrue though nothing of the effect is seen."""
    provider = staged(name, clock)
    intent = dataclasses.replace(intent_of(lost(provider, name, "before")), steps=("a bridge",))
    clock.advance(provider.settle)

    resolution = look(provider, intent)

    assert resolution.verdict is Verdict.CONFLICT
    assert "a bridge" in resolution.detail


# Pull requests


def test_a_pull_request_of_that_title_from_before_is_in_the_way(clock: Clock) -> None:
    """One that was open long before the request was sent is not what the request made."""
    provider = staged("merge_pull_request", clock)
    provider.faults["open_pull_request"] = "before"
    error = lost(provider, "open_pull_request", "before")
    clock.advance(provider.settle)

    resolution = look(provider, error)

    assert resolution.verdict is Verdict.CONFLICT
    assert "was opened before the request" in resolution.detail


def test_a_closed_one_from_before_is_not_in_the_way(clock: Clock) -> None:
    """A pull request that was closed long ago neither is the one asked for nor prevents it."""
    provider = staged("merge_pull_request", clock)
    _closed(provider)
    error = lost(provider, "open_pull_request", "before")
    clock.advance(provider.settle)

    assert look(provider, error).verdict is Verdict.NOT_APPLIED


def test_the_hosts_clock_may_be_behind_ours(clock: Clock) -> None:
    """What the host dates a few seconds before the request was sent is still what the request made."""
    provider = staged("open_pull_request", clock)
    error = lost(provider, "open_pull_request", "after")
    ahead = dataclasses.replace(intent_of(error), sent_at=clock.now() + timedelta(seconds=30))

    assert look(provider, ahead).verdict is Verdict.APPLIED


def test_a_pull_request_without_a_date_is_for_a_person(clock: Clock) -> None:
    """A host that does not say when it was opened leaves open whose it is."""
    provider = staged("open_pull_request", clock)
    error = lost(provider, "open_pull_request", "after")
    pulls = provider.stored[REPO].pulls
    pulls[0] = dataclasses.replace(pulls[0], created_at=None)

    resolution = look(provider, error)

    assert resolution.verdict is Verdict.UNDECIDED
    assert "pull request 1" in resolution.detail


def test_a_repository_without_a_date_is_for_a_person(clock: Clock) -> None:
    """A host that does not say since when a repository exists leaves open who made it."""
    provider = staged("create_repo", clock)
    error = lost(provider, "create_repo", "after")
    stored = provider.stored[REPO]
    stored.repo = dataclasses.replace(stored.repo, created_at=None)

    assert look(provider, error).verdict is Verdict.UNDECIDED


def test_a_pull_request_whose_labels_failed_is_applied_and_says_what_remains(clock: Clock) -> None:
    """PARTIAL: the pull request is there; the detail names what this look cannot show."""
    provider = staged("open_pull_request", clock)
    provider.faults["add labels"] = "before"
    with pytest.raises(ProviderUnavailableError) as caught:
        provider.open_pull_request(
            REPO, source_branch="change", target_branch="main", title="A change", labels=["urgent"]
        )
    assert caught.value.outcome is Outcome.PARTIAL

    resolution = look(provider, caught.value)

    assert resolution.verdict is Verdict.APPLIED
    assert resolution.value.number == 1
    assert "labels" in resolution.detail


def test_a_merge_whose_branch_stayed_is_applied_and_says_so(clock: Clock) -> None:
    """PARTIAL: merged; the detail names the branch that was to be deleted."""
    provider = staged("merge_pull_request", clock)
    provider.faults["delete source branch"] = "before"
    with pytest.raises(ProviderUnavailableError) as caught:
        provider.merge_pull_request(REPO, 1, delete_source_branch=True)

    resolution = look(provider, caught.value)

    assert resolution.verdict is Verdict.APPLIED
    assert "change still exists" in resolution.detail


def test_a_merge_without_a_named_commit_is_applied_without_a_value(clock: Clock) -> None:
    """A host that does not name the merge's commit still proves that it is merged."""
    provider = staged("merge_pull_request", clock)
    error = lost(provider, "merge_pull_request", "after")
    pulls = provider.stored[REPO].pulls
    pulls[0] = dataclasses.replace(pulls[0], merge_commit_sha=None)

    resolution = look(provider, error)

    assert (resolution.verdict, resolution.value) == (Verdict.APPLIED, None)


# Protection


def test_a_protection_half_way_is_undecided_until_it_has_settled(clock: Clock) -> None:
    """A rule that is being made anew may look weaker for a moment; later it is a conflict."""
    provider = staged("protect_branch", clock)
    error = lost(provider, "protect_branch", "before")
    _weaker_than_asked(provider)

    early = look(provider, error)
    clock.advance(provider.settle)
    late = look(provider, error)

    assert (early.verdict, late.verdict) == (Verdict.UNDECIDED, Verdict.CONFLICT)


def test_no_rule_and_a_rule_that_demands_nothing_are_the_same(clock: Clock) -> None:
    """A host may say either of an unprotected branch, before the request and after it."""
    provider = staged("protect_branch", clock)
    error = lost(provider, "protect_branch", "before")
    nothing = dataclasses.replace(intent_of(error), previous_rules=dataclasses.asdict(BranchProtection.nothing()))
    clock.advance(provider.settle)

    assert look(provider, nothing).verdict is Verdict.NOT_APPLIED


def test_a_protection_that_vanished_is_a_conflict(clock: Clock) -> None:
    """Nothing protects a branch that was protected before: neither what was asked nor what was there."""
    provider = staged("protect_branch", clock)
    provider.protect_branch(REPO, "main", BranchProtection())
    error = lost(provider, "protect_branch", "before")
    provider.stored[REPO].rules.clear()
    clock.advance(provider.settle)

    assert look(provider, error).verdict is Verdict.CONFLICT


# What is no evidence, and what fails


def test_a_repository_that_cannot_be_seen_says_nothing_of_its_branches(clock: Clock) -> None:
    """A 404 of the repository is not taken for the absence of the branch."""
    provider = staged("create_branch", clock)
    error = lost(provider, "create_branch", "before")
    provider.stored.clear()
    clock.advance(provider.settle)

    with pytest.raises(NotFoundError):
        look(provider, error)


def test_a_read_that_fails_is_raised(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage during the look is an error of the look, never a verdict."""
    provider = staged("create_branch", clock)
    error = lost(provider, "create_branch", "before")

    def down(repo: str, branch: str) -> str:
        raise ProviderUnavailableError("503")

    monkeypatch.setattr(provider, "head", down)

    with pytest.raises(ProviderUnavailableError):
        look(provider, error, wait=True)


def test_the_wait_can_be_cancelled(clock: Clock) -> None:
    """The event of cancel_on ends the wait."""
    provider = staged("create_branch", clock)
    error = lost(provider, "create_branch", "before")
    event = threading.Event()
    event.set()

    with cancel_on(event), pytest.raises(RetryCancelledError):
        look(provider, error, wait=True)


def test_a_read_is_no_mutation(clock: Clock) -> None:
    """An error of a read whose outcome is known needs no look; an intent of a read is refused."""
    provider = staged("create_branch", clock)

    assert look(provider, PermissionDeniedError("no")).verdict is Verdict.NOT_APPLIED
    with pytest.raises(InvalidRequestError, match="not a mutation"):
        look(provider, Intent(operation="get_repo", provider="memory", repo=REPO))


def test_evidence_of_another_host_is_refused(clock: Clock) -> None:
    """A look at the wrong host would find nothing and say so."""
    provider = staged("create_branch", clock)
    elsewhere = dataclasses.replace(intent_of(lost(provider, "create_branch", "before")), provider="github")

    with pytest.raises(InvalidRequestError, match="github"):
        look(provider, elsewhere)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("create_branch", "source_sha"),
        ("protect_branch", "rules"),
        ("commit_files", "branch"),
        ("open_pull_request", "title"),
        ("merge_pull_request", "number"),
    ],
)
def test_evidence_that_lacks_what_a_look_needs_is_refused(name: str, field: str, clock: Clock) -> None:
    """A record without it is an InvalidRequestError that names the field."""
    provider = staged(name, clock)
    record = intent_of(lost(provider, name, "before")).to_json()
    del record[field]

    with pytest.raises(InvalidRequestError, match=field):
        look(provider, Intent.from_json(record))


def test_a_stored_protection_that_is_none_is_refused(clock: Clock) -> None:
    """A record that was edited by hand is an InvalidRequestError, not a TypeError."""
    provider = staged("protect_branch", clock)
    record = intent_of(lost(provider, "protect_branch", "before")).to_json()
    record["rules"]["unheard_of"] = True

    with pytest.raises(InvalidRequestError, match="unheard_of"):
        look(provider, Intent.from_json(record))


def test_something_else_than_evidence_is_refused(clock: Clock) -> None:
    """A lost error without an intent, or no error at all, names the argument."""
    provider = staged("create_branch", clock)
    for evidence in (ProviderUnavailableError("lost", outcome=Outcome.UNKNOWN), "an error"):
        with pytest.raises(InvalidRequestError) as caught:
            look(provider, evidence)  # type: ignore[arg-type]  # the point of the test
        assert caught.value.argument == "error_or_intent"
