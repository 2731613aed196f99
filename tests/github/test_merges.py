"""merge_pull_request on GitHub: the merge goes first, and a refusal is read up, never repeated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gitprovider import (
    BranchProtection,
    ConflictError,
    HeadMovedError,
    InvalidRequestError,
    MergeMethod,
    NotMergeableError,
    Outcome,
    ProviderUnavailableError,
    PutFile,
    RateLimitedError,
    UnexpectedResponseError,
)
from gitprovider.fakes.faults import Fault
from gitprovider.fakes.http import Request, Response
from tests.support.github_hub import REPO, Hub, refuse

PULL, MERGE = "GET /pulls/{number}", "PUT /pulls/{number}/merge"
NOT_MERGEABLE = b'{"message": "Pull Request is not mergeable", "documentation_url": "x", "status": "405"}'


def _refuse(hub: Hub, status: int = 405, body: bytes = NOT_MERGEABLE) -> None:
    hub.given_fault(Fault(kind="status", method="PUT", status=status, body=body))


def _reason(hub: Hub, number: int, **options: Any) -> tuple[str, Outcome]:
    with pytest.raises(NotMergeableError) as caught:
        hub.provider.merge_pull_request(REPO, number, **options)
    assert hub.calls().count(MERGE) == 1
    return caught.value.reason.value, caught.value.outcome


def _state(hub: Hub, **fields: Any) -> None:
    """Have every read of the pull request show these fields."""
    with hub.provider.sdk() as client:
        _, pull = client.requester.requestJsonAndCheck("GET", f"/repos/{REPO}/pulls/1")
    hub.host.request_log.clear()
    body = json.dumps(pull | fields).encode()
    hub.given_fault(Fault(kind="status", status=200, method="GET", endpoint=r"pulls/\{number\}", body=body, times=None))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"state": "closed"}, "closed"),
        ({"draft": True}, "draft"),
        ({"mergeable": None, "mergeable_state": "unknown"}, "pending"),
        ({"mergeable": False, "mergeable_state": "dirty"}, "conflict"),
        ({"mergeable": True, "mergeable_state": "dirty"}, "conflict"),
        ({"mergeable": True, "mergeable_state": "behind"}, "behind"),
        ({"mergeable": True, "mergeable_state": "blocked"}, "policy"),
        ({"mergeable": True, "mergeable_state": "clean"}, "unknown"),
        ({"mergeable": True, "mergeable_state": "a word of next year"}, "unknown"),
    ],
)
def test_words_that_say_nothing_are_explained_by_the_pull_request(
    hub: Hub, fields: dict[str, Any], reason: str
) -> None:
    """The pull request's own state names the cause."""
    pull = hub.given_pull()
    _state(hub, **fields)
    _refuse(hub)

    assert _reason(hub, 1, expected_head=pull.head_sha, timeout=0) == (reason, Outcome.NOT_APPLIED)


def test_words_that_say_why_are_believed(hub: Hub) -> None:
    """One look is still made: it may have been merged."""
    pull = hub.given_pull()
    _refuse(hub, body=b'{"message": "At least 1 approving review is required by reviewers with write access."}')

    assert _reason(hub, 1, expected_head=pull.head_sha)[0] == "reviews"
    assert hub.calls() == [MERGE, PULL]


def test_while_github_computes_only_reads_are_made(hub: Hub) -> None:
    """Once a second, up to the timeout, and the merge is not sent again."""
    pull = hub.given_pull()
    hub.fake.mergeable_after = 3
    _refuse(hub)

    reason, _ = _reason(hub, 1, expected_head=pull.head_sha, timeout=10)

    assert reason == "unknown"
    assert hub.calls() == [MERGE, *[PULL] * 4]
    assert hub.waits == [1.0, 1.0, 1.0]


def test_the_timeout_ends_the_looking(hub: Hub) -> None:
    """Still computing: PENDING, which may pass."""
    pull = hub.given_pull()
    hub.fake.mergeable_after = 100
    _refuse(hub)

    with pytest.raises(NotMergeableError) as caught:
        hub.provider.merge_pull_request(REPO, 1, expected_head=pull.head_sha, timeout=2.5)

    assert caught.value.reason == "pending"
    assert caught.value.retryable
    assert hub.waits == [1.0, 1.0, 0.5]


def test_a_merge_whose_response_was_a_refusal_is_found_to_be_done(hub: Hub) -> None:
    """Merged at that head, whoever did it: success, with the merge's commit."""
    pull = hub.given_pull()
    done = hub.forge.merge(REPO, 1, method=MergeMethod.MERGE, bypass=True)

    result = hub.provider.merge_pull_request(REPO, 1, expected_head=pull.head_sha)

    assert (result.sha, result.already_merged) == (done.merge_commit_sha, True)
    assert hub.calls() == [MERGE, PULL]


def test_a_merge_at_another_head_is_no_success(hub: Hub) -> None:
    """Merged, but not what the caller saw."""
    hub.given_pull()
    hub.forge.merge(REPO, 1, method=MergeMethod.MERGE, bypass=True)

    with pytest.raises(HeadMovedError) as caught:
        hub.provider.merge_pull_request(REPO, 1, expected_head="1" * 40)

    assert caught.value.expected == "1" * 40


@pytest.mark.parametrize("status", [405, 409, 422])
def test_a_moved_head_tells_where_it_is(hub: Hub, status: int) -> None:
    """Whatever status GitHub gives it."""
    pull = hub.given_pull()
    hub.given_commit("feature", PutFile(path="more", content="x"))
    _refuse(hub, status, b'{"message": "Head branch was modified. Review and try the merge again."}')

    with pytest.raises(HeadMovedError) as caught:
        hub.provider.merge_pull_request(REPO, 1, expected_head=pull.head_sha)

    assert (caught.value.expected, caught.value.actual) == (pull.head_sha, hub.forge.head(REPO, "feature"))


def test_a_refusal_that_cannot_be_explained_stands(hub: Hub) -> None:
    """It was refused, that much is known."""
    pull = hub.given_pull()
    _refuse(hub)
    hub.given_fault(Fault(kind="status", status=503, method="GET", times=None))

    assert _reason(hub, 1, expected_head=pull.head_sha) == ("unknown", Outcome.NOT_APPLIED)


@pytest.mark.parametrize("status", [403, 429, 503])
def test_other_failures_are_not_explained(hub: Hub, status: int) -> None:
    """They are no refusals of this merge."""
    pull = hub.given_pull()
    _refuse(hub, status, b'{"message": "API rate limit exceeded"}' if status == 403 else b'{"message": "Not now"}')

    with pytest.raises((RateLimitedError, ProviderUnavailableError)):
        hub.provider.merge_pull_request(REPO, 1, expected_head=pull.head_sha)

    assert hub.calls() == [MERGE]


@pytest.mark.parametrize(
    ("body", "kind", "outcome"),
    [
        (
            b'{"sha": null, "merged": false, "message": "Pull Request is not mergeable"}',
            NotMergeableError,
            "not_applied",
        ),
        (b"{}", UnexpectedResponseError, "unknown"),
        (b'{"merged": null}', UnexpectedResponseError, "unknown"),
        (b'{"merged": true}', UnexpectedResponseError, "unknown"),
        (b'{"merged": true, "sha": null}', UnexpectedResponseError, "unknown"),
        (b'{"merged": true, "sha": "abc"}', UnexpectedResponseError, "unknown"),
        (b'{"merged": "yes", "sha": "1111111111111111111111111111111111111111"}', UnexpectedResponseError, "unknown"),
    ],
)
def test_a_200_is_a_merge_only_if_it_says_so(hub: Hub, body: bytes, kind: type[Exception], outcome: str) -> None:
    """merged true and a sha; anything else is no success."""
    pull = hub.given_pull()
    _refuse(hub, 200, body)

    with pytest.raises(kind) as caught:
        hub.provider.merge_pull_request(REPO, 1, expected_head=pull.head_sha, timeout=0)

    assert getattr(caught.value, "outcome", None) == outcome


@pytest.mark.parametrize(
    ("message", "title", "text"),
    [("One line", "One line", ""), ("Title\n\nText\nmore", "Title", "Text\nmore"), ("Title\nText", "Title", "Text")],
)
def test_a_message_is_given_as_title_and_text(hub: Hub, message: str, title: str, text: str) -> None:
    """GitHub wants them apart."""
    pull = hub.given_pull()

    hub.provider.merge_pull_request(REPO, 1, expected_head=pull.head_sha, message=message, method=MergeMethod.SQUASH)

    assert json.loads(hub.sent[0].body) == {
        "sha": pull.head_sha,
        "merge_method": "squash",
        "commit_title": title,
        "commit_message": text,
    }


# The source branch


def test_a_branch_that_github_deleted_itself_is_gone_as_asked(hub: Hub) -> None:
    """A setting of the repository; the deletion finds nothing, and that is well."""
    pull = hub.given_pull()
    hub.forge.update_repo(REPO, settings={"delete_branch_on_merge": True})

    for head in (pull.head_sha, None):
        hub.provider.merge_pull_request(REPO, 1, expected_head=head, delete_source_branch=True)

    assert "feature" not in dict(hub.forge.branches(REPO))


@pytest.mark.parametrize("gone", [True, False])
def test_a_refused_deletion_without_a_reason_is_looked_into(hub: Hub, gone: bool) -> None:
    """GitHub has answered a branch that is gone with "Validation Failed" alone."""
    pull = hub.given_pull()
    hub.forge.update_repo(REPO, settings={"delete_branch_on_merge": gone})
    hub.given_fault(Fault(kind="status", method="DELETE", status=422, body=b'{"message": "Validation Failed"}'))

    def call() -> object:
        return hub.provider.merge_pull_request(REPO, 1, expected_head=pull.head_sha, delete_source_branch=True)

    if gone:
        call()
    else:
        with pytest.raises(InvalidRequestError, match="Validation Failed"):
            call()


def test_a_branch_with_later_commits_stays(hub: Hub) -> None:
    """Merged before, and worked on since: deleting it would lose work."""
    pull = hub.given_pull()
    hub.forge.merge(REPO, 1, method=MergeMethod.MERGE, bypass=True)
    later = hub.given_commit("feature", PutFile(path="later", content="x"))

    with pytest.raises(HeadMovedError) as caught:
        hub.provider.merge_pull_request(REPO, 1, expected_head=pull.head_sha, delete_source_branch=True)

    assert (caught.value.outcome, caught.value.actual) == (Outcome.PARTIAL, later.sha)
    assert hub.forge.head(REPO, "feature") == later.sha


@pytest.mark.parametrize("pinned", [True, False])
def test_a_commit_made_right_after_the_merge_is_not_lost(hub: Hub, pinned: bool) -> None:
    """A pull request's head is frozen by the merge; it is the branch that is looked at."""
    pull = hub.given_pull()
    handle = hub.fake.handle

    def and_then_push(request: Request) -> Response:
        answer = handle(request)
        if request.method == "PUT":
            hub.given_commit("feature", PutFile(path="late", content="x"))
        return answer

    hub.fake.handle = and_then_push  # type: ignore[method-assign]  # a colleague of the test's

    with pytest.raises(HeadMovedError) as caught:
        hub.provider.merge_pull_request(
            REPO, 1, expected_head=pull.head_sha if pinned else None, delete_source_branch=True
        )

    assert caught.value.outcome is Outcome.PARTIAL
    assert "late" in hub.forge.read_tree(REPO, hub.forge.head(REPO, "feature"))


def test_a_branch_of_another_repository_stays(hub: Hub) -> None:
    """A fork's branch is not ours to delete."""
    pull = hub.given_pull()
    with hub.provider.sdk() as client:
        _, data = client.requester.requestJsonAndCheck("GET", f"/repos/{REPO}/pulls/1")
    hub.host.request_log.clear()
    data["head"]["repo"] = None
    hub.given_fault(Fault(kind="status", status=200, method="GET", body=json.dumps(data).encode()))

    with pytest.raises(ConflictError) as caught:
        hub.provider.merge_pull_request(REPO, 1, expected_head=pull.head_sha, delete_source_branch=True)

    assert caught.value.outcome is Outcome.PARTIAL
    assert hub.calls() == [MERGE, PULL]


def test_a_protected_source_branch_stays_and_the_merge_is_told(hub: Hub) -> None:
    """PARTIAL: merged, with the result in completed."""
    pull = hub.given_pull()
    hub.given_rule(BranchProtection(block_deletion=True, enforce_admins=True), pattern="feature")

    with pytest.raises(Exception, match="protected") as caught:
        hub.provider.merge_pull_request(REPO, 1, expected_head=pull.head_sha, delete_source_branch=True)

    assert getattr(caught.value, "outcome", None) is Outcome.PARTIAL
    assert "feature" in dict(hub.forge.branches(REPO))


def test_the_prefix_of_a_ref_is_no_branch(hub: Hub) -> None:
    """A merged pull request whose branch became a directory of branches: gone, and nothing else is touched."""
    pull = hub.given_pull()
    hub.forge.merge(REPO, 1, method=MergeMethod.MERGE, bypass=True)
    hub.forge.delete_branch(REPO, "feature", bypass=True)
    hub.given_branch("feature/two")

    hub.provider.merge_pull_request(REPO, 1, expected_head=pull.head_sha, delete_source_branch=True)

    assert "feature/two" in dict(hub.forge.branches(REPO))


@pytest.mark.pitfall("GH-MG-01", "GH-MG-06")
def test_what_github_computes_does_not_stop_the_merge(hub: Hub) -> None:
    """mergeable is null, or says nothing of what is allowed: the merge itself is the question."""
    pull = hub.given_pull()
    hub.fake.mergeable_after = 100

    result = hub.provider.merge_pull_request(REPO, pull.number)

    assert result.sha == hub.forge.head(REPO, "main")


@pytest.mark.pitfall("GH-MG-02")
@pytest.mark.parametrize(
    ("text", "reason", "retryable"),
    [
        ("Base branch was modified. Review and try the merge again.", "pending", True),
        ("Squash merges are not allowed on this repository.", "method", False),
        ("At least 1 approving review is required by reviewers with write access.", "reviews", False),
        ("Pull Request is still a draft", "draft", False),
    ],
)
def test_a_405_means_what_it_says(hub: Hub, text: str, reason: str, retryable: bool) -> None:
    """A race may be repeated by the caller; a setting or a policy not."""
    pull = hub.given_pull()
    refuse(hub, 405, text, method="PUT")

    with pytest.raises(NotMergeableError) as caught:
        hub.provider.merge_pull_request(REPO, pull.number)

    assert (caught.value.reason, caught.value.retryable) == (reason, retryable)


@pytest.mark.pitfall("GH-MG-03")
def test_the_head_is_always_sent(hub: Hub) -> None:
    """The one that was expected, or the one that was read just before."""
    pull = hub.given_pull()

    hub.provider.merge_pull_request(REPO, pull.number)

    assert json.loads(hub.sent[1].body)["sha"] == pull.head_sha


@pytest.mark.pitfall("GH-MG-04")
def test_a_pull_request_that_is_merged_already_is_success(hub: Hub) -> None:
    """The second call gets a 405 from GitHub, and says already_merged."""
    pull = hub.given_pull()
    first = hub.provider.merge_pull_request(REPO, pull.number, expected_head=pull.head_sha)

    second = hub.provider.merge_pull_request(REPO, pull.number, expected_head=pull.head_sha)

    assert (second.sha, second.already_merged) == (first.sha, True)


@pytest.mark.pitfall("GH-MG-05")
def test_a_merge_queue_is_a_policy(hub: Hub) -> None:
    """There is no way around it, and none is tried."""
    pull = hub.given_pull()
    hub.forge.update_repo(REPO, settings={"rulesets": [{"pattern": "main", "rules": [{"type": "merge_queue"}]}]})

    with pytest.raises(NotMergeableError, match="merge queue") as caught:
        hub.provider.merge_pull_request(REPO, pull.number)

    assert caught.value.reason == "policy"


@pytest.mark.pitfall("GH-MG-07")
def test_no_other_method_is_tried(hub: Hub) -> None:
    """A method that the repository forbids is METHOD, once."""
    pull = hub.given_pull()
    hub.forge.update_repo(REPO, settings={"allow_merge_commit": False})

    with pytest.raises(NotMergeableError) as caught:
        hub.provider.merge_pull_request(REPO, pull.number, method=MergeMethod.MERGE)

    assert caught.value.reason == "method"
    assert len(hub.host.request_log.mutations()) == 1


@pytest.mark.pitfall("GH-MG-08")
def test_a_branch_that_is_gone_already_is_no_failure(hub: Hub) -> None:
    """GitHub deleted it first."""
    pull = hub.given_pull()
    refuse(hub, 422, "Reference does not exist", method="DELETE")

    hub.provider.merge_pull_request(REPO, pull.number, expected_head=pull.head_sha, delete_source_branch=True)


@pytest.mark.pitfall("GH-MG-09")
def test_a_200_that_did_not_merge_is_no_success(hub: Hub) -> None:
    """merged must be true."""
    pull = hub.given_pull()
    body = b'{"sha": null, "merged": false, "message": "Pull Request is not mergeable"}'
    hub.given_fault(Fault(kind="status", status=200, method="PUT", body=body))

    with pytest.raises(NotMergeableError):
        hub.provider.merge_pull_request(REPO, pull.number, expected_head=pull.head_sha)
