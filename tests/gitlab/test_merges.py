"""merge_pull_request: waiting, methods, refusals, and what counts as merged."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gitprovider.errors import (
    ConflictError,
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    RepoMovedError,
    RetryCancelledError,
    UnexpectedResponseError,
)
from gitprovider.gitlab.merges import _COMPUTING, _REASONS
from gitprovider.models import BranchProtection, MergeMethod, MergeResult, PullRequestState
from gitprovider.retry import cancel_on
from tests.support.gitlab_world import REPO, World

Make = Callable[..., World]
MERGE, SQUASH, REBASE = MergeMethod.MERGE, MergeMethod.SQUASH, MergeMethod.REBASE
# https://docs.gitlab.com/api/merge_requests/#merge-status
DOCUMENTED = [
    "approvals_syncing",
    "checking",
    "ci_must_pass",
    "ci_still_running",
    "commits_status",
    "conflict",
    "discussions_not_resolved",
    "draft_status",
    "jira_association_missing",
    "locked_lfs_files",
    "locked_paths",
    "merge_request_blocked",
    "merge_time",
    "mergeable",
    "need_rebase",
    "not_approved",
    "not_open",
    "preparing",
    "requested_changes",
    "security_policy_pipeline_check",
    "security_policy_violations",
    "status_checks_must_pass",
    "title_regex",
    "unchecked",
]


def refused(world: World, reason: NotMergeableReason, **options: Any) -> NotMergeableError:
    number = options.pop("number", 1)
    with pytest.raises(NotMergeableError) as caught:
        world.provider().merge_pull_request(REPO, number, **options)
    assert caught.value.reason is reason
    return caught.value


def body(world: World) -> dict[str, Any]:
    [sent] = world.request_log.mutations()
    assert dict(sent.query) == {}
    data: dict[str, Any] = json.loads(sent.body)
    return data


def status(world: World, value: str) -> None:
    world.fake.merge_statuses[(REPO, 1)] = value


def shown_request(**fields: Any) -> bytes:
    """Merge request 1, as a server may show it."""
    branches = {"source_branch": "feature", "target_branch": "main"}
    return json.dumps({"iid": 1, "state": "opened", **branches, **fields}).encode()


# What is sent


@pytest.mark.pitfall("GL-MG-07")
@pytest.mark.parametrize("delete", [False, True])
@pytest.mark.parametrize("method", [MERGE, SQUASH])
def test_everything_is_sent_explicitly_in_the_body(ready: World, method: MergeMethod, delete: bool) -> None:
    """python-gitlab's merge() puts it into the query. Unsent, the project's defaults would decide."""
    head = ready.forge.head(REPO, "feature")

    ready.provider().merge_pull_request(
        REPO, 1, method=method, message="A long\n\nmessage", delete_source_branch=delete
    )

    key = "squash_commit_message" if method is SQUASH else "merge_commit_message"
    assert body(ready) == {
        "sha": head,
        "squash": method is SQUASH,
        "should_remove_source_branch": delete,
        key: "A long\n\nmessage",
    }


@pytest.mark.parametrize("option", [True, False])
def test_the_project_s_default_deletes_no_branch(ready: World, option: bool) -> None:
    """remove_source_branch_after_merge is overruled."""
    ready.settings(remove_source_branch_after_merge=option)

    ready.provider().merge_pull_request(REPO, 1)

    assert "feature" in dict(ready.forge.branches(REPO))


@pytest.mark.parametrize(
    ("method", "settings", "parents"),
    [
        (MERGE, {}, 2),
        (MERGE, {"merge_method": "rebase_merge"}, 2),
        (SQUASH, {}, 2),  # GitLab wraps a squash commit in a merge commit
        (SQUASH, {"merge_method": "ff"}, 1),
        (REBASE, {"merge_method": "ff"}, 1),
    ],
)
def test_the_result_is_the_target_s_head(
    ready: World, method: MergeMethod, settings: dict[str, str], parents: int
) -> None:
    """Whatever commits the method makes."""
    ready.settings(**settings)

    value = ready.provider().merge_pull_request(REPO, 1, method=method)

    assert value == MergeResult(sha=ready.forge.head(REPO, "main"))
    assert len(ready.forge.read_commit(REPO, value.sha).parents) == parents


# Methods


@pytest.mark.pitfall("GL-MG-08", "GL-MG-09")
@pytest.mark.parametrize(
    ("method", "settings", "flag"),
    [
        (MERGE, {"merge_method": "ff"}, False),
        (MERGE, {"squash_option": "always"}, False),
        (MERGE, {}, True),
        (MERGE, {"squash_option": "default_on"}, True),
        (REBASE, {}, False),
        (REBASE, {"merge_method": "rebase_merge"}, False),
        (REBASE, {"merge_method": "ff"}, True),
        (SQUASH, {"squash_option": "never"}, False),
    ],
)
def test_a_method_that_the_settings_contradict_is_refused_before_the_merge(
    world: World, method: MergeMethod, settings: dict[str, str], flag: bool
) -> None:
    """GitLab would merge by another, or ignore squash: false. Also by the request's own flag."""
    world.settings(**settings)
    world.pull_request(settings={"squash": flag})

    error = refused(world, NotMergeableReason.METHOD, method=method)

    assert world.mutations == []
    assert error.outcome is Outcome.NOT_APPLIED


@pytest.mark.parametrize("option", ["never", "always"])
def test_the_project_s_option_overrules_the_merge_request_s_flag(world: World, option: str) -> None:
    """never makes a flagged merge request a plain merge; always squashes one without the flag."""
    world.settings(squash_option=option)
    world.pull_request(settings={"squash": option == "never"})

    world.provider().merge_pull_request(REPO, 1, method=MERGE if option == "never" else SQUASH)

    assert world.forge.pull_request(REPO, 1).state is PullRequestState.MERGED


def test_a_message_of_a_rebase_is_refused_before_any_request(ready: World) -> None:
    """It makes no commit of its own."""
    with pytest.raises(InvalidRequestError) as caught:
        ready.provider().merge_pull_request(REPO, 1, method=REBASE, message="m")

    assert caught.value.argument == "message"
    assert ready.sent == []


# Waiting


@pytest.mark.pitfall("GL-MG-01")
@pytest.mark.parametrize("reads", [1, 2, 5])
def test_a_merge_waits_until_it_is_computed(make_world: Make, reads: int) -> None:
    """Right after it was opened nothing is known; a merge sent then would be 405."""
    world = make_world("ready", mergeable_after=reads)

    world.provider().merge_pull_request(REPO, 1)

    assert world.mutations == ["PUT /merge_requests/1/merge"]
    assert len(world.time.slept) == reads


def test_what_is_never_computed_is_pending(make_world: Make) -> None:
    """Nothing was sent, and the waits are as long as was allowed."""
    world = make_world("ready", mergeable_after=10_000)

    error = refused(world, NotMergeableReason.PENDING, timeout=20.0)

    assert (error.outcome, error.retryable) == (Outcome.NOT_APPLIED, True)
    assert sum(world.time.slept) == pytest.approx(20.0)
    assert world.mutations == []
    assert len(world.sent) < 15


def test_a_timeout_of_zero_does_not_wait(make_world: Make) -> None:
    """One read, and an answer."""
    world = make_world("ready", mergeable_after=1)

    refused(world, NotMergeableReason.PENDING, timeout=0)

    assert world.time.slept == []


def test_a_wait_that_moves_no_clock_ends_too(make_world: Make) -> None:
    """The waits are counted as well as the time."""
    world = make_world("ready", mergeable_after=10_000)
    provider = world.provider(retry=world.time.retry(max_attempts=1))
    world.time.sleep = world.time.slept.append  # type: ignore[method-assign, assignment]  # no time passes

    with pytest.raises(NotMergeableError):
        provider.merge_pull_request(REPO, 1, timeout=5.0)


def test_a_cancelled_wait_has_merged_nothing(make_world: Make) -> None:
    """Ctrl+C in another thread's hand."""
    world = make_world("ready", mergeable_after=10_000)
    event = threading.Event()
    event.set()

    with cancel_on(event), pytest.raises(RetryCancelledError) as caught:
        world.provider().merge_pull_request(REPO, 1)

    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert world.mutations == []


def test_a_head_that_moves_while_waiting_is_not_merged(make_world: Make) -> None:
    """The first read fixes the head."""
    world = make_world("ready", mergeable_after=2)
    sleep = world.time.sleep

    def push(seconds: float) -> None:
        if not world.time.slept:
            world.commit("feature", {"unseen": b"1"})
        sleep(seconds)

    retry = world.time.retry()
    object.__setattr__(retry, "sleep", push)

    with pytest.raises(HeadMovedError):
        world.provider(retry=retry).merge_pull_request(REPO, 1)

    assert world.mutations == []


# Reasons


def test_every_documented_status_has_a_place() -> None:
    """Those that are computing, those that have a reason, and mergeable."""
    assert set(DOCUMENTED) - set(_REASONS) - _COMPUTING == {"mergeable"}


@pytest.mark.pitfall("GL-MG-02")
@pytest.mark.parametrize(
    ("shown", "reason"), [(shown, reason) for shown, reason in _REASONS.items() if shown in DOCUMENTED]
)
def test_a_status_that_blocks_is_its_reason_and_nothing_is_sent(
    ready: World, shown: str, reason: NotMergeableReason
) -> None:
    """405 would be the answer to all of them."""
    status(ready, shown)

    error = refused(ready, reason, timeout=3.0)

    assert ready.mutations == []
    assert shown in error.message


def test_a_status_that_nobody_knows_is_tried(ready: World) -> None:
    """A newer GitLab's; it refuses what it does not admit, and then nobody can say why."""
    status(ready, "brand_new_check")

    error = refused(ready, NotMergeableReason.UNKNOWN)

    assert ready.mutations == ["PUT /merge_requests/1/merge"]
    assert error.status == 405


def test_a_refusal_is_explained(ready: World) -> None:
    """Mergeable when it was read, and not when it was sent; it is not sent again."""
    ready.fault("status", method="PUT", status=405, body=b'{"message": "405 Method Not Allowed"}')
    handle = ready.fake.handle

    def refuse(request: Any) -> Any:
        if request.method == "PUT":
            raise AssertionError
        if ready.request_log.mutations():
            status(ready, "not_approved")
        return handle(request)

    ready.fake.handle = refuse  # type: ignore[method-assign]  # interposed, not replaced

    error = refused(ready, NotMergeableReason.REVIEWS)

    assert (error.status, error.outcome) == (405, Outcome.NOT_APPLIED)
    assert len(ready.mutations) == 1


def test_the_words_of_an_older_failure_do_not_hide_the_reason(world: World) -> None:
    """merge_error stays on the merge request until a merge succeeds."""
    world.pull_request(settings={"merge_error": "This project requires squashing commits."})
    status(world, "not_approved")

    assert "not_approved" in refused(world, NotMergeableReason.REVIEWS).message


@pytest.mark.pitfall("GL-MG-01")
def test_a_failure_of_the_merge_itself_is_explained(ready: World) -> None:
    """422 says no more than "Branch cannot be merged"; the merge request does."""
    ready.settings(squash_option="always")
    ready.fault("status", method="GET", endpoint=r"projects/\{\w+\}$", status=200, body=b'{"merge_method": "merge"}')

    error = refused(ready, NotMergeableReason.METHOD)

    assert (error.status, len(ready.mutations)) == (422, 1)
    assert "squash" in error.message


def test_a_refusal_that_cannot_be_explained_is_the_host_s_message(ready: World) -> None:
    """A failing read says nothing new."""
    ready.fault("status", method="PUT", status=422, body=b'{"message": "Branch cannot be merged"}')
    ready.fault("status", method="GET", endpoint=r"merge_requests/\{iid\}$", nth=2, status=500)

    error = refused(ready, NotMergeableReason.UNKNOWN)

    assert "Branch cannot be merged" in error.message


@pytest.mark.pitfall("GL-MG-02", "GL-MG-06")
@pytest.mark.parametrize("number", [405, 406, 422])
def test_a_refusal_of_what_turns_out_to_be_merged_is_success(ready: World, number: int) -> None:
    """A merge that was repeated by a proxy is refused the second time."""
    ready.fault("status", method="PUT", when="after", status=number, body=b'{"message": "Branch cannot be merged"}')

    value = ready.provider().merge_pull_request(REPO, 1)

    assert value == MergeResult(sha=ready.forge.head(REPO, "main"), already_merged=True)


@pytest.mark.pitfall("GL-MG-04")
@pytest.mark.parametrize("number", [405, 409])
def test_a_refusal_because_the_head_moved_is_that(ready: World, number: int) -> None:
    """By the order of its checks GitLab may say 405 where the head has moved."""
    ready.fault("status", method="PUT", when="before", status=number, body=b'{"message": "SHA does not match HEAD"}')
    head = ready.forge.head(REPO, "feature")
    handle = ready.fake.handle

    def pushed(request: Any) -> Any:
        if ready.request_log.mutations() and ready.forge.head(REPO, "feature") == head:
            ready.commit("feature", {"unseen": b"1"})
        return handle(request)

    ready.fake.handle = pushed  # type: ignore[method-assign]  # interposed, not replaced

    with pytest.raises(HeadMovedError) as caught:
        ready.provider().merge_pull_request(REPO, 1)

    assert caught.value.expected == head
    assert caught.value.actual == ready.forge.head(REPO, "feature")


@pytest.mark.pitfall("GL-X-02")
def test_a_401_is_a_missing_right_and_not_a_bad_token(ready: World) -> None:
    """A Developer may not merge into a protected branch."""
    ready.forge.put_rule(REPO, "main", BranchProtection())
    ready.fake.role = 30

    with pytest.raises(PermissionDeniedError) as caught:
        ready.provider().merge_pull_request(REPO, 1)

    assert caught.value.status == 401
    assert "token itself is good" in (caught.value.hint or "")


@pytest.mark.pitfall("GL-X-01")
def test_a_moved_project_is_not_a_reason(ready: World) -> None:
    """405 with that text comes before any other meaning of 405."""
    text = b'{"message": "Non GET methods are not allowed for moved projects"}'
    ready.fault("status", method="PUT", status=405, body=text)

    with pytest.raises(RepoMovedError):
        ready.provider().merge_pull_request(REPO, 1)


# Accepted


@pytest.mark.pitfall("GL-MG-06")
def test_accepted_and_locked_is_waited_for(ready: World) -> None:
    """The merge is running."""
    ready.fake.locked_for = 3

    value = ready.provider().merge_pull_request(REPO, 1)

    assert value.sha == ready.forge.head(REPO, "main")
    assert len(ready.mutations) == 1


@pytest.mark.pitfall("GL-MG-05")
def test_accepted_and_not_merged_in_time_is_pending_and_unknown(ready: World) -> None:
    """200 with state opened is not merged."""
    ready.fake.auto_merges = True

    error = refused(ready, NotMergeableReason.PENDING, timeout=6.0)

    assert (error.outcome, error.retryable) == (Outcome.UNKNOWN, False)
    assert len(ready.mutations) == 1
    assert sum(ready.time.slept) == pytest.approx(6.0)


@pytest.mark.pitfall("GL-X-13")
def test_an_empty_acceptance_is_followed_by_a_read(ready: World) -> None:
    """202 with {} says nothing; the merge request does."""
    ready.fault("status", method="PUT", when="after", status=202, body=b"{}")

    value = ready.provider().merge_pull_request(REPO, 1)

    assert value.sha == ready.forge.head(REPO, "main")


@pytest.mark.pitfall("GL-MG-09")
def test_a_hidden_merge_error_is_no_success(ready: World) -> None:
    """Once GitLab answered 200, and failed in the background for want of a squash."""
    ready.settings(squash_option="always")
    ready.fake.hides_merge_errors = True
    ready.fault("status", method="GET", endpoint=r"projects/\{\w+\}$", status=200, body=b'{"merge_method": "merge"}')

    error = refused(ready, NotMergeableReason.METHOD)

    assert "squash" in error.message
    assert error.outcome is Outcome.NOT_APPLIED


@pytest.mark.parametrize(
    "fault", [{"kind": "status", "status": 404}, {"kind": "status", "status": 500}, {"kind": "reset"}, {"kind": "html"}]
)
def test_a_read_that_fails_after_the_acceptance_leaves_it_unknown(ready: World, fault: dict[str, Any]) -> None:
    """Whatever the read says: it is not the merge's answer."""
    ready.fake.locked_for = 5
    ready.fault(**fault, method="GET", endpoint=r"merge_requests/\{iid\}$", nth=2, times=None)

    error = refused(ready, NotMergeableReason.PENDING)

    assert error.outcome is Outcome.UNKNOWN
    assert ready.forge.pull_request(REPO, 1).state is PullRequestState.MERGED


def test_a_wait_that_is_cancelled_after_the_acceptance_leaves_it_unknown(ready: World) -> None:
    """The merge may yet be done."""
    ready.fake.locked_for = 5
    event = threading.Event()
    retry = ready.time.retry()
    object.__setattr__(retry, "sleep", lambda seconds: event.set())

    with cancel_on(event), pytest.raises(RetryCancelledError) as caught:
        ready.provider(retry=retry).merge_pull_request(REPO, 1)

    assert caught.value.outcome is Outcome.UNKNOWN


# The source branch


def test_a_source_branch_is_deleted_also_when_it_was_merged_before(ready: World) -> None:
    """The same call again, after the deletion was lost."""
    provider = ready.provider()
    provider.merge_pull_request(REPO, 1)

    value = provider.merge_pull_request(REPO, 1, delete_source_branch=True)

    assert value.already_merged
    assert "feature" not in dict(ready.forge.branches(REPO))
    assert provider.merge_pull_request(REPO, 1, delete_source_branch=True) == value


def test_a_source_branch_that_went_on_after_an_earlier_merge_stays(ready: World) -> None:
    """PARTIAL: merged, and the branch is where somebody else put it."""
    provider = ready.provider()
    result = provider.merge_pull_request(REPO, 1)
    late = ready.commit("feature", {"late": b"1"})

    with pytest.raises(ConflictError) as caught:
        provider.merge_pull_request(REPO, 1, delete_source_branch=True)

    assert caught.value.outcome is Outcome.PARTIAL
    assert caught.value.completed[0].value.sha == result.sha
    assert ready.forge.head(REPO, "feature") == late


def test_a_fork_s_branch_is_not_ours_to_delete(ready: World) -> None:
    """Another project's: it is not asked for, and the error says that it stays."""
    handle = ready.fake.handle

    def forked(request: Any) -> Any:
        answer = handle(request)
        if "/merge_requests/1" in request.path:
            data = json.loads(answer.body)
            data["source_project_id"] = 999
            return replace(answer, body=json.dumps(data).encode())
        return answer

    ready.fake.handle = forked  # type: ignore[method-assign]  # interposed, not replaced

    with pytest.raises(ConflictError, match="another project") as caught:
        ready.provider().merge_pull_request(REPO, 1, delete_source_branch=True)

    assert caught.value.outcome is Outcome.PARTIAL
    assert body(ready)["should_remove_source_branch"] is False


def test_a_merge_request_without_a_head_yet_is_waited_for(ready: World) -> None:
    """Just opened, GitLab has not computed its sha."""
    ready.fault(
        "status",
        method="GET",
        endpoint=r"merge_requests/\{iid\}$",
        status=200,
        body=shown_request(sha=None, detailed_merge_status="preparing"),
    )

    value = ready.provider().merge_pull_request(REPO, 1)

    assert value.sha == ready.forge.head(REPO, "main")


@pytest.mark.parametrize(
    ("merge_status", "expected"),
    [("can_be_merged", None), ("cannot_be_merged", NotMergeableReason.CONFLICT), ("unchecked", None)],
)
def test_an_old_server_s_merge_status_will_do(
    ready: World, merge_status: str, expected: NotMergeableReason | None
) -> None:
    """Before 15.6 there is no detailed one."""
    old = shown_request(sha=ready.forge.head(REPO, "feature"), merge_status=merge_status)
    ready.fault("status", method="GET", endpoint=r"merge_requests/\{iid\}$", status=200, body=old)

    if expected is not None:
        refused(ready, expected)
        return
    assert ready.provider().merge_pull_request(REPO, 1).sha == ready.forge.head(REPO, "main")


def test_an_unknown_number_is_not_found(ready: World) -> None:
    """Before anything else."""
    with pytest.raises(NotFoundError):
        ready.provider().merge_pull_request(REPO, 99)


@pytest.mark.parametrize("error", [ProviderUnavailableError, UnexpectedResponseError])
def test_a_lost_answer_is_unknown_with_its_evidence(ready: World, error: type[GitProviderError]) -> None:
    """The head that was sent, and between which branches."""
    kind = "reset" if error is ProviderUnavailableError else "shape"
    ready.fault(kind, method="PUT", when="after")

    with pytest.raises(error) as caught:
        ready.provider().merge_pull_request(REPO, 1)

    intent = caught.value.intent
    assert caught.value.outcome is Outcome.UNKNOWN
    assert intent is not None
    assert (intent.number, intent.head_sha) == (1, ready.forge.head(REPO, "feature"))
    assert (intent.source_branch, intent.target_branch, intent.method) == ("feature", "main", "merge")
