"""The GitLab fake: merge requests, from opening to merging."""

from __future__ import annotations

import pathlib
from datetime import UTC, datetime
from typing import Any

import pytest

from gitprovider.models import BranchProtection, PullRequestState
from tests.support.gitlab_hand import REPO, Hand, Said, a_hand


@pytest.fixture
def hand(tmp_path: pathlib.Path) -> Hand:
    hand = a_hand(tmp_path)
    hand.given_repo()
    return hand


def _open(hand: Hand, source: str = "feature", **more: Any) -> Said:
    body = {"source_branch": source, "target_branch": "main", "title": "A change", **more}
    return hand.repo("POST", "/merge_requests", body)


def _read(hand: Hand, iid: int) -> Any:
    return hand.repo("GET", f"/merge_requests/{iid}").data


def _merge(hand: Hand, iid: int, **body: Any) -> Said:
    return hand.repo("PUT", f"/merge_requests/{iid}/merge", body)


def _parents(hand: Hand, sha: str) -> tuple[str, ...]:
    return hand.forge.read_commit(REPO, sha).parents


# opening


@pytest.mark.pitfall("GL-PR-07")
def test_a_merge_request_is_open_and_being_checked(hand: Hand) -> None:
    """There is no draft in the request, and reviewers are numbers."""
    head = hand.given_feature()

    response = _open(hand, labels="one,two", description="text", reviewer_ids=[46])

    assert (response.status, response.effect) == (201, True)
    told = {name: response.data[name] for name in ("iid", "state", "draft", "sha", "labels", "merge_status")}
    assert told == {
        "iid": 1,
        "state": "opened",
        "draft": False,
        "sha": head,
        "labels": ["one", "two"],
        "merge_status": "checking",
    }
    assert [user["username"] for user in response.data["reviewers"]] == ["alice"]
    assert response.data["references"]["full"] == f"{REPO}!1"


def test_the_recorded_keys_of_a_merge_request_are_there(hand: Hand) -> None:
    """The keys that hosts were recorded to send, for readers that look at more than the provider does."""
    hand.given_feature()

    assert set(_open(hand).data) >= {
        "assignee", "assignees", "author", "blocking_discussions_resolved", "changes_count", "closed_at", "closed_by",
        "created_at", "description", "diff_refs", "discussion_locked", "downvotes", "force_remove_source_branch",
        "has_conflicts", "head_pipeline", "id", "iid", "labels", "merge_commit_sha", "merge_error", "merge_status",
        "merge_when_pipeline_succeeds", "merged_at", "merged_by", "milestone", "pipeline", "project_id", "reference",
        "references", "reviewers", "sha", "should_remove_source_branch", "source_branch", "source_project_id",
        "squash", "squash_commit_sha", "state", "subscribed", "target_branch", "target_project_id",
        "task_completion_status", "time_stats", "title", "updated_at", "upvotes", "user", "user_notes_count",
        "web_url", "work_in_progress",
    }  # fmt: skip


@pytest.mark.parametrize("title", ["Draft: x", "[Draft] x", "(draft) x", "draft:x"])
def test_a_title_makes_a_draft(hand: Hand, title: str) -> None:
    """Also when nobody asked for one; the title keeps its prefix."""
    hand.given_feature()

    response = _open(hand, title=title)

    assert (response.data["draft"], response.data["work_in_progress"], response.data["title"]) == (True, True, title)
    assert _read(hand, 1)["detailed_merge_status"] == "draft_status"
    assert _merge(hand, 1).status == 405


def test_a_draft_becomes_ready_by_its_title(hand: Hand) -> None:
    """That is the only way to say it over REST."""
    iid = hand.given_merge_request(title="Draft: x")

    response = hand.repo("PUT", f"/merge_requests/{iid}", {"title": "x"})

    assert (response.data["draft"], response.data["title"]) == (False, "x")


def test_quick_actions_are_executed_and_taken_out(hand: Hand) -> None:
    """A line of the description is a command; in a code block it is text."""
    hand.given_feature()
    commands = '/label ~"two words" ~one\n/draft\n/assign_reviewer @alice'
    text = f"before\n{commands}\n```\n/close\n```\n/tmp/file is a path\nafter"

    response = _open(hand, description=text, labels="zero")

    assert response.data["description"] == "before\n```\n/close\n```\n/tmp/file is a path\nafter"
    assert response.data["labels"] == ["zero", "two words", "one"]
    assert (response.data["draft"], response.data["state"], response.data["title"]) == (
        True,
        "opened",
        "Draft: A change",
    )
    assert [user["username"] for user in response.data["reviewers"]] == ["alice"]


def test_a_quick_action_can_close_what_was_just_opened(hand: Hand) -> None:
    """And lead it elsewhere, under another title."""
    hand.given_feature()
    hand.forge.create_branch(REPO, "next", hand.forge.head(REPO, "main"))

    response = _open(hand, description="/close\n/target_branch next\n/title Better\n/ready")

    assert (response.status, response.data["state"]) == (201, "closed")
    assert (response.data["target_branch"], response.data["title"], response.data["description"]) == (
        "next",
        "Better",
        "",
    )


@pytest.mark.parametrize(("tier", "kept"), [("free", ["bob"]), ("premium", ["bob", "alice"])])
def test_the_free_tier_keeps_one_reviewer(tmp_path: pathlib.Path, tier: str, kept: list[str]) -> None:
    """Those who may not read the project are dropped, without a word, on every tier."""
    hand = a_hand(tmp_path, tier=tier, users={"stranger": 99})
    hand.given_repo()
    hand.given_feature()
    hand.fake.outsiders = {"stranger"}

    response = _open(hand, reviewer_ids=[99, 47, 46, 12345])

    assert response.status == 201
    assert [user["username"] for user in response.data["reviewers"]] == kept


@pytest.mark.pitfall("GL-PR-01")
def test_a_second_merge_request_of_the_same_branches_is_409(hand: Hand) -> None:
    """The message is a list, and holds the number."""
    iid = hand.given_merge_request()

    response = _open(hand)

    assert (response.status, response.effect) == (409, False)
    assert response.message == [f"Another open merge request already exists for this source branch: !{iid}"]


@pytest.mark.parametrize(
    ("source", "target", "status", "message"),
    [
        ("nope", "main", 400, {"source_branch": ["does not exist"]}),
        ("main", "nope", 400, {"target_branch": ["does not exist"]}),
        ("main", "main", 422, ["You can't use same project/branch for source and target"]),
    ],
)
def test_branches_that_cannot_be_are_told_in_three_shapes(
    hand: Hand, source: str, target: str, status: int, message: Any
) -> None:
    """A dict of lists, or a list."""
    response = _open(hand, source, target_branch=target)

    assert (response.status, response.message) == (status, message)


@pytest.mark.pitfall("GL-PR-04")
def test_a_branch_that_was_just_made_may_not_exist_yet(hand: Hand) -> None:
    """A hard 400 for some seconds."""
    hand.fake.branch_lag = 1
    hand.repo("POST", "/repository/branches", {"branch": "feature", "ref": "main"})

    assert [_open(hand).status for _ in range(2)] == [400, 201]


def test_a_new_merge_request_may_come_without_its_sha(hand: Hand) -> None:
    """It is there at the next read."""
    head = hand.given_feature()
    hand.fake.late_sha = True

    assert _open(hand).data["sha"] is None
    assert _read(hand, 1)["sha"] == head


def test_a_merge_request_of_nothing_is_opened(hand: Hand) -> None:
    """GitLab has no objection until it is merged."""
    hand.forge.create_branch(REPO, "same", hand.forge.head(REPO, "main"))

    response = _open(hand, "same")

    assert response.status == 201
    assert _read(hand, 1)["detailed_merge_status"] == "commits_status"


# reading and changing


@pytest.mark.pitfall("GL-MG-01")
def test_mergeability_is_computed_while_it_is_read(hand: Hand) -> None:
    """Checking for the first reads, and until then a merge is refused; a moved head starts anew."""
    hand.fake.mergeable_after = 2
    iid = hand.given_merge_request()

    before = [_read(hand, iid)["detailed_merge_status"], _merge(hand, iid).status]
    after = [_read(hand, iid)["detailed_merge_status"] for _ in range(2)]
    hand.given_commit("feature", {"more": b"m"})
    anew = _read(hand, iid)

    assert before == ["checking", 405]
    assert after == ["checking", "mergeable"]
    assert (anew["detailed_merge_status"], anew["merge_status"]) == ("checking", "checking")


def test_lists_are_filtered_and_newest_first(hand: Hand) -> None:
    """By branches and by state."""
    first, second = hand.given_merge_request("a"), hand.given_merge_request("b")
    hand.repo("PUT", f"/merge_requests/{first}", {"state_event": "close"})

    def listed(**query: str) -> list[int]:
        return [one["iid"] for one in hand.repo("GET", "/merge_requests", query=query).data]

    assert listed() == listed(order_by="created_at", sort="desc") == [second, first]
    assert listed(sort="asc") == [first, second]
    assert listed(state="opened") == [second]
    assert listed(source_branch="a", target_branch="main", state="closed") == [first]
    assert listed(target_branch="other") == []
    assert hand.repo("GET", "/merge_requests", query={"state": "open"}).status == 400


@pytest.mark.parametrize("iid", ["7", "100000000000000000000", "x"])
def test_an_unknown_merge_request_is_404(hand: Hand, iid: str) -> None:
    """In the words of a record that was not found."""
    response = hand.repo("GET", f"/merge_requests/{iid}")

    assert (response.status, response.message) == (404, "404 Not found")


def test_a_merge_request_is_changed(hand: Hand) -> None:
    """Labels are set, added and removed; a closed one is opened again."""
    iid = hand.given_merge_request(labels="a,b")
    place = f"/merge_requests/{iid}"

    labels = hand.repo("PUT", place, {"add_labels": "c", "remove_labels": ["a"]}).data["labels"]
    only = hand.repo("PUT", place, {"labels": "z", "description": "new\n/label ~y", "reviewer_ids": [46]}).data
    closed = hand.repo("PUT", place, {"state_event": "close"}).data["state"]
    opened = hand.repo("PUT", place, {"state_event": "reopen", "squash": True}).data
    nothing = hand.repo("PUT", place, {})

    assert labels == ["b", "c"]
    assert (only["labels"], only["description"]) == (["z", "y"], "new")
    assert [user["username"] for user in only["reviewers"]] == ["alice"]
    assert (closed, opened["state"], opened["squash"]) == ("closed", "opened", True)
    assert (nothing.status, nothing.effect) == (400, False)


# what forbids a merge


def test_a_conflict_forbids_a_merge(hand: Hand) -> None:
    """The old status says so too."""
    iid = hand.given_merge_request()
    hand.given_commit("main", {"feature.txt": b"other\n"})

    shown = _read(hand, iid)
    response = _merge(hand, iid)

    assert (shown["detailed_merge_status"], shown["merge_status"]) == ("conflict", "cannot_be_merged")
    assert shown["has_conflicts"] is True
    assert (response.status, response.message, response.effect) == (405, "405 Method Not Allowed", False)


@pytest.mark.pitfall("GL-MG-02")
@pytest.mark.parametrize(
    ("rules", "status"),
    [
        (BranchProtection(required_approvals=1), "not_approved"),
        (BranchProtection(required_checks=("ci",)), "ci_must_pass"),
    ],
)
def test_approvals_and_checks_forbid_a_merge(hand: Hand, rules: BranchProtection, status: str) -> None:
    """405 has one text for every cause; the merge request tells which."""
    hand.forge.put_rule(REPO, "main", rules)
    iid = hand.given_merge_request()

    shown, refused = _read(hand, iid)["detailed_merge_status"], _merge(hand, iid).status
    hand.repo("POST", f"/merge_requests/{iid}/approve")
    hand.forge.set_check(REPO, "feature", "ci", "success")

    assert (shown, refused) == (status, 405)
    assert _merge(hand, iid).data["state"] == "merged"


def test_what_the_forge_does_not_have_can_be_shown(hand: Hand) -> None:
    """Discussions, locked files, tickets: whatever a test needs."""
    iid = hand.given_merge_request()
    hand.fake.merge_statuses[REPO, iid] = "discussions_not_resolved"

    shown = _read(hand, iid)

    assert (shown["detailed_merge_status"], shown["blocking_discussions_resolved"]) == (
        "discussions_not_resolved",
        False,
    )
    assert _merge(hand, iid).status == 405


@pytest.mark.pitfall("GL-MG-02")
def test_a_closed_and_a_merged_one_cannot_be_merged(hand: Hand) -> None:
    """Both are 405 and not_open."""
    closed, merged = hand.given_merge_request("a"), hand.given_merge_request("b")
    hand.repo("PUT", f"/merge_requests/{closed}", {"state_event": "close"})
    _merge(hand, merged)

    assert [_merge(hand, iid).status for iid in (closed, merged)] == [405, 405]
    assert [_read(hand, iid)["detailed_merge_status"] for iid in (closed, merged)] == ["not_open", "not_open"]


def test_a_source_branch_that_is_gone_closes_its_merge_request(hand: Hand) -> None:
    """Deleting it through the API does that."""
    iid = hand.given_merge_request()
    hand.repo("DELETE", "/repository/branches/feature")

    assert _read(hand, iid)["state"] == "closed"


@pytest.mark.pitfall("GL-X-02")
def test_who_may_neither_push_nor_merge_is_401(hand: Hand) -> None:
    """The token is good, the role is not; and that is looked at before the sha."""
    iid = hand.given_merge_request()
    hand.repo("POST", "/protected_branches", {"name": "main"})
    hand.fake.role = 30

    response = _merge(hand, iid, sha="0" * 40)

    assert (response.status, response.message, response.fact) == (401, "401 Unauthorized", "gl-merge-unauthorized")


def test_where_nobody_may_push_who_may_merge_still_merges(hand: Hand) -> None:
    """Merge requests only: that is what push level 0 means."""
    iid = hand.given_merge_request()
    hand.repo("POST", "/protected_branches", {"name": "main", "push_access_level": 0})

    assert _merge(hand, iid).data["state"] == "merged"


@pytest.mark.pitfall("GL-MG-04")
def test_another_head_than_the_sha_is_409_before_mergeability(hand: Hand) -> None:
    """In the newest order the sha is looked at before the draft."""
    iid = hand.given_merge_request(title="Draft: x")
    head = hand.forge.head(REPO, "feature")

    response = _merge(hand, iid, sha="1" * 40)

    assert (response.status, response.message) == (409, f"SHA does not match HEAD of source branch: {head}")


def test_a_group_may_demand_the_sha(hand: Hand) -> None:
    """400, before anything else."""
    iid = hand.given_merge_request()
    hand.fake.requires_sha = True

    refused, merged = _merge(hand, iid), _merge(hand, iid, sha=hand.forge.head(REPO, "feature"))

    assert (refused.status, refused.message) == (400, "SHA must be provided when merging")
    assert merged.data["state"] == "merged"


def test_the_squash_flag_is_kept_though_the_merge_is_refused(hand: Hand) -> None:
    """The newest code saves it before it looks at mergeability."""
    iid = hand.given_merge_request(title="Draft: x")

    response = _merge(hand, iid, squash=True)

    assert (response.status, response.effect) == (405, True)
    assert _read(hand, iid)["squash"] is True


# merging


def test_a_merge_makes_a_merge_commit(hand: Hand) -> None:
    """Its sha is the target's head, its message the caller's."""
    base, iid = hand.forge.head(REPO, "main"), hand.given_merge_request()
    head = hand.forge.head(REPO, "feature")

    response = _merge(hand, iid, sha=head, merge_commit_message="Merged by hand")

    sha = response.data["merge_commit_sha"]
    assert (response.status, response.effect, response.data["state"], response.data["sha"]) == (
        200,
        True,
        "merged",
        head,
    )
    assert (hand.forge.head(REPO, "main"), _parents(hand, sha)) == (sha, (base, head))
    assert hand.forge.read_commit(REPO, sha).message == "Merged by hand"
    assert response.data["squash_commit_sha"] is None
    assert hand.forge.pull_request(REPO, iid).state is PullRequestState.MERGED


def test_a_squash_in_a_merge_commit_project_makes_two_commits(hand: Hand) -> None:
    """The squashed one, and a merge of it; each with its own message."""
    base, iid = hand.forge.head(REPO, "main"), hand.given_merge_request()
    head = hand.given_commit("feature", {"more": b"m"})

    response = _merge(hand, iid, squash=True, squash_commit_message="All at once")

    squashed, merged = response.data["squash_commit_sha"], response.data["merge_commit_sha"]
    assert hand.forge.head(REPO, "main") == merged
    assert _parents(hand, merged) == (base, squashed)
    assert _parents(hand, squashed) == (base,)
    assert hand.forge.read_commit(REPO, squashed).message == "All at once"
    assert not hand.forge.contains(REPO, head, "main")
    assert _read(hand, iid)["merge_commit_sha"] == merged


def test_squash_false_is_ignored(hand: Hand) -> None:
    """A merge request whose flag is set squashes silently."""
    iid = hand.given_merge_request(squash=True)

    response = _merge(hand, iid, squash=False)

    assert response.data["squash_commit_sha"] is not None


@pytest.mark.pitfall("GL-MG-08")
def test_squash_is_not_done_where_the_project_never_squashes(hand: Hand) -> None:
    """The request gets 200 and has no effect."""
    hand.repo("PUT", "", {"squash_option": "never"})
    iid = hand.given_merge_request()

    response = _merge(hand, iid, squash=True)

    assert (response.data["state"], response.data["squash_commit_sha"]) == ("merged", None)
    assert (response.data["squash"], response.data["squash_on_merge"]) == (True, False)


@pytest.mark.pitfall("GL-MG-09")
def test_a_project_that_always_squashes_refuses_a_plain_merge(hand: Hand) -> None:
    """422, and merge_error says why."""
    iid = hand.given_merge_request()
    hand.repo("PUT", "", {"squash_option": "always"})
    base = hand.forge.head(REPO, "main")

    response = _merge(hand, iid)

    assert (response.status, response.message) == (422, "Branch cannot be merged")
    assert "requires squashing" in _read(hand, iid)["merge_error"]
    assert hand.forge.head(REPO, "main") == base
    assert _merge(hand, iid, squash=True).data["squash_commit_sha"] is not None


@pytest.mark.pitfall("GL-MG-09")
def test_an_older_server_hides_that_a_merge_failed(hand: Hand) -> None:
    """200, and an open merge request with a merge_error."""
    iid = hand.given_merge_request()
    hand.repo("PUT", "", {"squash_option": "always"})
    hand.fake.hides_merge_errors = True

    response = _merge(hand, iid)

    assert (response.status, response.data["state"], response.data["merge_commit_sha"]) == (200, "opened", None)
    assert "requires squashing" in response.data["merge_error"]


@pytest.mark.pitfall("GL-MG-08")
@pytest.mark.parametrize("method", ["ff", "rebase_merge"])
def test_a_linear_project_wants_a_rebased_branch(hand: Hand, method: str) -> None:
    """Need_rebase as soon as the target has moved on."""
    hand.repo("PUT", "", {"merge_method": method})
    iid = hand.given_merge_request()
    hand.given_commit("main", {"other": b"o"})

    assert _read(hand, iid)["detailed_merge_status"] == "need_rebase"
    assert _merge(hand, iid).status == 405


def test_a_fast_forward_makes_no_commit(hand: Hand) -> None:
    """The target's head is then the merge request's own, and no merge commit is named."""
    hand.repo("PUT", "", {"merge_method": "ff"})
    iid = hand.given_merge_request()
    head = hand.forge.head(REPO, "feature")

    response = _merge(hand, iid)

    assert (response.data["state"], response.data["sha"]) == ("merged", head)
    assert (response.data["merge_commit_sha"], response.data["squash_commit_sha"]) == (None, None)
    assert hand.forge.head(REPO, "main") == head


def test_a_squash_in_a_fast_forward_project_makes_one_commit(hand: Hand) -> None:
    """It is the squashed one that the target gets."""
    hand.repo("PUT", "", {"merge_method": "ff"})
    base, iid = hand.forge.head(REPO, "main"), hand.given_merge_request()

    response = _merge(hand, iid, squash=True)

    squashed = response.data["squash_commit_sha"]
    assert (response.data["merge_commit_sha"], hand.forge.head(REPO, "main")) == (None, squashed)
    assert _parents(hand, squashed) == (base,)


@pytest.mark.parametrize(
    ("project", "opened", "asked", "gone"),
    [
        (True, {}, {}, True),
        (True, {}, {"should_remove_source_branch": False}, False),
        (False, {}, {}, False),
        (False, {}, {"should_remove_source_branch": True}, True),
        (True, {"remove_source_branch": False}, {}, False),
        (False, {"remove_source_branch": True}, {}, True),
    ],
)
def test_the_source_branch_goes_by_what_was_said_last(
    hand: Hand, project: bool, opened: dict[str, Any], asked: dict[str, Any], gone: bool
) -> None:
    """Unsent, the project's setting decides: a branch goes that nobody asked to delete."""
    hand.repo("PUT", "", {"remove_source_branch_after_merge": project})
    iid = hand.given_merge_request(**opened)

    _merge(hand, iid, **asked)

    assert ("feature" not in dict(hand.forge.branches(REPO))) is gone


def test_a_protected_source_branch_stays_without_a_word(hand: Hand) -> None:
    """200 and merged, though its deletion was asked for."""
    iid = hand.given_merge_request()
    hand.repo("POST", "/protected_branches", {"name": "feature"})

    response = _merge(hand, iid, should_remove_source_branch=True)

    assert response.data["state"] == "merged"
    assert "feature" in dict(hand.forge.branches(REPO))


@pytest.mark.pitfall("GL-MG-06")
def test_a_merge_may_still_be_running_when_it_is_answered(hand: Hand) -> None:
    """Locked, for some reads more."""
    hand.fake.locked_for = 2
    iid = hand.given_merge_request()

    response = _merge(hand, iid)

    assert (response.status, response.data["state"], response.data["merge_commit_sha"]) == (200, "locked", None)
    assert [_read(hand, iid)["state"] for _ in range(3)] == ["locked", "locked", "merged"]


@pytest.mark.pitfall("GL-MG-05")
def test_a_merge_may_only_be_set_to_happen_later(hand: Hand) -> None:
    """200, and nothing is merged."""
    hand.forge.put_rule(REPO, "main", BranchProtection(required_checks=("ci",)))
    iid = hand.given_merge_request()
    base = hand.forge.head(REPO, "main")

    response = _merge(hand, iid, merge_when_pipeline_succeeds=True)

    assert (response.status, response.data["state"], response.data["merge_when_pipeline_succeeds"]) == (
        200,
        "opened",
        True,
    )
    assert response.data["detailed_merge_status"] == "ci_still_running"
    assert hand.forge.head(REPO, "main") == base


def test_a_merge_may_be_put_off_though_nobody_asked(hand: Hand) -> None:
    """A project with merge trains returns this."""
    hand.fake.auto_merges = True
    iid = hand.given_merge_request()

    response = _merge(hand, iid)

    assert (response.status, response.data["state"], response.data["merge_when_pipeline_succeeds"]) == (
        200,
        "opened",
        True,
    )


def test_auto_merge_merges_at_once_when_nothing_is_awaited(hand: Hand) -> None:
    """Without a pipeline there is nothing to wait for."""
    iid = hand.given_merge_request()

    assert _merge(hand, iid, auto_merge=True).data["state"] == "merged"


def test_the_request_log_tells_what_took_effect(hand: Hand) -> None:
    """Reads and refusals did not; opening and merging did."""
    hand.given_feature()
    _open(hand)
    _open(hand)
    _read(hand, 1)
    _merge(hand, 1)
    _merge(hand, 1)

    told = [(entry.method, entry.status, entry.effect) for entry in hand.host.request_log.entries]
    assert told == [
        ("POST", 201, True),
        ("POST", 409, False),
        ("GET", 200, False),
        ("PUT", 200, True),
        ("PUT", 405, False),
    ]


# pipelines and approvals by others


def test_a_status_turns_a_required_pipeline_green(hand: Hand) -> None:
    """If it fails, a client's CI can never make a merge request mergeable, or a red pipeline is merged."""
    iid = hand.given_merge_request()
    hand.repo("PUT", "", {"only_allow_merge_if_pipeline_succeeds": True})
    sha, seen = hand.forge.head(REPO, "feature"), [_read(hand, iid)["detailed_merge_status"]]

    for state in ("pending", "running", "failed", "success"):
        made = hand.repo("POST", f"/statuses/{sha}", {"state": state, "name": "ci", "target_url": "https://ci.example"})
        assert (made.status, made.data["status"], made.data["ref"]) == (201, state, "feature")
        seen.append(_read(hand, iid)["detailed_merge_status"])

    assert seen == ["ci_must_pass", "ci_still_running", "ci_still_running", "ci_must_pass", "mergeable"]
    assert _read(hand, iid)["head_pipeline"]["status"] == "success"
    listed = hand.repo("GET", f"/repository/commits/{sha}/statuses")
    assert [(one["name"], one["status"]) for one in listed.data] == [("ci", "success")]
    assert len(hand.repo("GET", f"/repository/commits/{sha}/statuses", query={"all": "true"}).data) == 2
    assert _merge(hand, iid).data["state"] == "merged"


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ("pending", "pending", 400),
        ("running", "running", 400),
        ("running", "pending", 400),
        ("success", "pending", 201),
    ],
)
def test_a_status_does_not_go_back(hand: Hand, before: str, after: str, status: int) -> None:
    """If it fails, the refusal that every CI for GitLab has met is not met here."""
    sha = hand.forge.head(REPO, "main")
    hand.repo("POST", f"/statuses/{sha}", {"state": before})

    assert hand.repo("POST", f"/statuses/{sha}", {"state": after}).status == status


@pytest.mark.parametrize(
    ("sha", "body", "status", "fact"),
    [
        ("f" * 40, {"state": "success"}, 404, "gl-commit-missing"),
        ("main", {"state": "green"}, 400, "gl-param-invalid"),
        ("main", {}, 400, "gl-param-missing"),
        ("main", {"state": "success", "coverage": "much"}, 400, "gl-param-invalid"),
    ],
)
def test_a_status_that_means_nothing_is_refused(
    hand: Hand, sha: str, body: dict[str, Any], status: int, fact: str
) -> None:
    """If it fails, a misspelt state passes for another one."""
    refused = hand.repo("POST", f"/statuses/{sha}", body)

    assert (refused.status, refused.fact) == (status, fact)


def test_another_user_approves_with_a_token_of_its_own(hand: Hand) -> None:
    """If it fails, a required review can be given by nobody, or twice by one user."""
    iid = hand.given_merge_request()
    hand.forge.put_rule(REPO, "main", BranchProtection(required_approvals=2))
    place, reviewer = f"/merge_requests/{iid}", {"PRIVATE-TOKEN": "glpat-reviewer"}

    mine, again = (hand.repo("POST", f"{place}/approve") for _ in range(2))
    stale = hand.repo("POST", f"{place}/approve", {"sha": "f" * 40}, headers=reviewer)
    theirs = hand.repo("POST", f"{place}/approve", {"sha": hand.forge.head(REPO, "feature")}, headers=reviewer)

    assert (mine.data["approved"], mine.data["approvals_left"]) == (False, 1)
    assert (again.status, stale.status) == (401, 409)
    assert (theirs.data["approved"], theirs.data["user_has_approved"]) == (True, True)
    who = [one["user"]["username"] for one in hand.repo("GET", f"{place}/approvals").data["approved_by"]]
    assert who == ["reviewer", "tanuki"]
    assert _read(hand, iid)["author"]["username"] == "tanuki"
    merged = hand.repo("PUT", f"{place}/merge", headers=reviewer)
    assert (merged.data["state"], merged.data["merge_user"]["username"]) == ("merged", "reviewer")


# edits


def test_the_list_is_ordered_by_the_last_change(hand: Hand) -> None:
    """If it fails, a client that looks for what changed misses it."""
    times = iter(range(100))
    hand.fake.now = lambda: datetime(2099, 1, 1, 0, 0, next(times) % 60, tzinfo=UTC)
    first, second = hand.given_merge_request("a", labels="x"), hand.given_merge_request("b")
    hand.repo("PUT", f"/merge_requests/{second}", {"title": "Second"})
    hand.repo("PUT", f"/merge_requests/{first}", {"title": "First"})

    def listed(**query: str) -> list[int]:
        return [one["iid"] for one in hand.repo("GET", "/merge_requests", query=query).data]

    assert listed(order_by="updated_at") == listed(order_by="title", sort="asc") == [first, second]
    assert listed() == [second, first]
    assert listed(labels="x") == listed(search="FIRST") == listed(**{"iids[]": str(first)}) == [first]


def test_an_event_that_does_not_apply_changes_nothing(hand: Hand) -> None:
    """If it fails, closing twice is an error, or reopening makes two merge requests of one branch."""
    closed, merged = hand.given_merge_request("a"), hand.given_merge_request("b")
    hand.repo("PUT", f"/merge_requests/{merged}/merge")
    place, body = f"/merge_requests/{closed}", {"source_branch": "a", "target_branch": "main", "title": "Again"}

    twice = [hand.repo("PUT", place, {"state_event": "close"}).data["state"] for _ in range(2)]
    kept = [hand.repo("PUT", f"/merge_requests/{merged}", {"state_event": one}) for one in ("close", "reopen")]
    hand.repo("POST", "/merge_requests", body)
    second = hand.repo("PUT", place, {"state_event": "reopen"})

    assert twice == ["closed", "closed"]
    assert [(one.status, one.data["state"]) for one in kept] == [(200, "merged"), (200, "merged")]
    assert (second.status, second.fact, _read(hand, closed)["closed_by"]["username"]) == (409, "gl-mr-exists", "tanuki")
