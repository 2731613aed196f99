"""The GitHub fake, by hand: pull requests, labels, reviewers and merges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gitprovider.fakes.github.rulesets import KEY as RULESETS
from gitprovider.models import BranchProtection
from tests.support.github_hand import ORIGIN, PROTECTION, Hand

REPO = "acme/widgets"
R = f"/repos/{REPO}"
Build = Callable[..., Hand]


def topic(hub: Hand, name: str = "topic", files: dict[str, str | None] | None = None) -> str:
    """Make a branch with one commit, and return its head."""
    hub.branch(REPO, name, hub.head(REPO, "main"))
    return hub.commit(REPO, name, files or {f"{name}.txt": "new\n"})


def test_opening_a_pull_request_takes_effect_once(hub: Hand) -> None:
    """201 with null mergeability; the same again is 422 with the reason in errors."""
    head = topic(hub)
    body = {"title": "Add it", "head": "topic", "base": "main", "body": "Why", "draft": True}

    made = hub.send("POST", f"{R}/pulls", body)
    created = hub.last
    again = hub.send("POST", f"{R}/pulls", body)

    assert (made["number"], made["state"], made["draft"], made["body"]) == (1, "open", True, "Why")
    assert (made["head"]["ref"], made["head"]["sha"], made["base"]["ref"]) == ("topic", head, "main")
    assert (made["mergeable"], made["merge_commit_sha"], made["merged"]) == (None, None, False)
    assert (created.effect, created.headers["Location"]) == (True, f"{ORIGIN}{R}/pulls/1")
    assert (hub.last.status, hub.last.effect) == (422, False)
    assert again["errors"][0]["message"] == "A pull request already exists for acme:topic."


@pytest.mark.parametrize(
    ("head", "base", "error"),
    [
        ("nope", "main", {"field": "head", "code": "invalid"}),
        ("stranger:topic", "main", {"field": "head", "code": "invalid"}),
        ("topic", "nope", {"field": "base", "code": "invalid"}),
        ("same", "main", {"message": "No commits between main and same"}),
        ("main", "main", {"message": "No commits between main and main"}),
        ("acme:same", "main", {"message": "No commits between main and same"}),
    ],
)
def test_a_pull_request_that_cannot_be_is_refused(hub: Hand, head: str, base: str, error: dict[str, str]) -> None:
    """Each cause has its entry in errors."""
    topic(hub)
    hub.branch(REPO, "same", hub.head(REPO, "main"))

    response = hub.send("POST", f"{R}/pulls", {"title": "t", "head": head, "base": base})

    assert (hub.last.status, response["message"]) == (422, "Validation Failed")
    assert error.items() <= response["errors"][0].items()


def test_drafts_need_a_plan(github_with: Build) -> None:
    """In a private repository on the free plan they are refused; plain ones are not."""
    hub = github_with(plan="free")
    topic(hub)
    body = {"title": "t", "head": "topic", "base": "main"}

    assert hub.refused("POST", f"{R}/pulls", {**body, "draft": True})[1].startswith("Draft pull requests are not")
    assert hub.send("POST", f"{R}/pulls", body)["draft"] is False


def test_the_list_is_filtered_by_state_base_and_owned_head(hub: Hand) -> None:
    """A head without its owner filters nothing, as on GitHub."""
    topic(hub, "one")
    topic(hub, "two")
    first, second = hub.pull(REPO, "one"), hub.pull(REPO, "two")
    hub.send("PUT", f"{R}/pulls/{second}/merge", {})

    def numbers(query: str) -> list[int]:
        return [pull["number"] for pull in hub.get(f"{R}/pulls?{query}")]

    assert numbers("") == [first]
    assert numbers("state=all") == [second, first]
    assert numbers("state=all&direction=asc") == [first, second]
    assert numbers("state=closed") == [second]
    assert numbers("state=all&head=acme:one") == [first]
    assert numbers("state=all&head=other:one") == []
    assert numbers("state=all&head=one") == [second, first]
    assert numbers("state=all&base=nope") == []


def test_mergeability_is_null_for_as_many_reads_as_asked(github_with: Build) -> None:
    """At a new head it is computed anew; the trial merge's sha is on no branch."""
    hub = github_with(mergeable_after=2)
    topic(hub)
    number = hub.pull(REPO, "topic")

    first = [hub.get(f"{R}/pulls/{number}")["mergeable"] for _ in range(3)]
    hub.commit(REPO, "topic", {"more.txt": "x"})
    again = [hub.get(f"{R}/pulls/{number}") for _ in range(3)]

    assert first == [None, None, True]
    assert [pull["mergeable_state"] for pull in again] == ["unknown", "unknown", "clean"]
    assert again[-1]["merge_commit_sha"] is not None
    assert hub.refused("GET", f"{R}/git/commits/{again[-1]['merge_commit_sha']}")[0] == 404


def test_a_pull_request_tells_its_size(hub: Hand) -> None:
    """Commits, files and lines are those between the merge base and the head."""
    topic(hub, files={"a.txt": "1\n2\n", "README.md": None})
    hub.commit(REPO, "topic", {"b.txt": "3\n"})

    pull = hub.get(f"{R}/pulls/{hub.pull(REPO, 'topic')}")

    assert (pull["commits"], pull["changed_files"], pull["additions"]) == (2, 3, 3)


def test_labels_are_made_silently_and_added_once(hub: Hand) -> None:
    """The response lists all of them; adding the same again has no effect."""
    topic(hub)
    number = hub.pull(REPO, "topic")

    hub.send("POST", f"{R}/issues/{number}/labels", {"labels": ["bug"]})
    added = hub.last.effect
    both = hub.send("POST", f"{R}/issues/{number}/labels", ["bug", "new"])
    hub.send("POST", f"{R}/issues/{number}/labels", {"labels": ["new"]})

    assert added
    assert [(label["name"], label["color"]) for label in both] == [("bug", "ededed"), ("new", "ededed")]
    assert not hub.last.effect
    assert [label["name"] for label in hub.get(f"{R}/pulls/{number}")["labels"]] == ["bug", "new"]
    assert hub.refused("POST", f"{R}/issues/99/labels", {"labels": ["x"]})[0] == 404


def test_reviewers_are_collaborators_other_than_the_author(hub: Hand) -> None:
    """The author and a stranger are refused, with their words, and nobody is asked."""
    topic(hub)
    number = hub.pull(REPO, "topic")
    url = f"{R}/pulls/{number}/requested_reviewers"

    author = hub.refused("POST", url, {"reviewers": ["octocat"]})
    stranger = hub.refused("POST", url, {"reviewers": ["hubot", "stranger"]})
    nobody = hub.get(f"{R}/pulls/{number}")["requested_reviewers"]
    asked = hub.send("POST", url, {"reviewers": ["hubot"]})

    assert author == (422, "Review cannot be requested from pull request author.")
    assert stranger[1].startswith("Reviews may only be requested from collaborators.")
    assert nobody == []
    assert [user["login"] for user in asked["requested_reviewers"]] == ["hubot"]


@pytest.mark.parametrize(("method", "parents"), [("merge", 2), ("squash", 1), ("rebase", 1)])
def test_a_merge_moves_the_base_to_the_commit_that_it_names(hub: Hand, method: str, parents: int) -> None:
    """200 with merged and the sha, which is the base's new head; afterwards it is closed and merged."""
    head = topic(hub)
    hub.commit(REPO, "main", {"other.txt": "x"})
    number = hub.pull(REPO, "topic")

    done = hub.send("PUT", f"{R}/pulls/{number}/merge", {"sha": head, "merge_method": method})
    effect = hub.last.effect

    pull = hub.get(f"{R}/pulls/{number}")
    assert (done["merged"], done["sha"], effect) == (True, hub.head(REPO, "main"), True)
    assert len(hub.get(f"{R}/git/commits/{done['sha']}")["parents"]) == parents
    assert (pull["state"], pull["merged"], pull["merge_commit_sha"]) == ("closed", True, done["sha"])
    assert (pull["mergeable"], pull["merged_by"]["login"]) == (None, "octocat")


@pytest.mark.parametrize(
    ("method", "body", "message"),
    [
        ("merge", {}, "Merge pull request #1 from acme/topic\n\nAdd it"),
        ("squash", {}, "Add it (#1)"),
        ("merge", {"commit_title": "T", "commit_message": "M"}, "T\n\nM"),
        ("squash", {"commit_title": "T", "commit_message": ""}, "T"),
    ],
)
def test_a_merge_has_the_message_that_was_sent(hub: Hand, method: str, body: dict[str, str], message: str) -> None:
    """Title and message are GitHub's own unless given."""
    topic(hub)
    number = hub.pull(REPO, "topic")

    done = hub.send("PUT", f"{R}/pulls/{number}/merge", {"merge_method": method, **body})

    assert hub.get(f"{R}/git/commits/{done['sha']}")["message"] == message


def test_a_moved_head_is_refused_by_its_sha_only(hub: Hand) -> None:
    """With another sha it is 409; without one whatever is there is merged."""
    old = topic(hub)
    number = hub.pull(REPO, "topic")
    hub.commit(REPO, "topic", {"late.txt": "x"})

    refused = hub.refused("PUT", f"{R}/pulls/{number}/merge", {"sha": old})
    done = hub.send("PUT", f"{R}/pulls/{number}/merge", {})

    assert refused == (409, "Head branch was modified. Review and try the merge again.")
    assert done["merged"] is True


def test_a_second_merge_is_refused_like_any_other(hub: Hand) -> None:
    """What is merged, closed or in conflict all has one sentence."""
    topic(hub, "one", {"README.md": "one\n"})
    topic(hub, "two", {"README.md": "two\n"})
    first, second = hub.pull(REPO, "one"), hub.pull(REPO, "two")
    hub.send("PUT", f"{R}/pulls/{first}/merge", {})

    again = hub.refused("PUT", f"{R}/pulls/{first}/merge", {})
    conflict = hub.refused("PUT", f"{R}/pulls/{second}/merge", {})

    assert again == conflict == (405, "Pull Request is not mergeable")
    pull = hub.get(f"{R}/pulls/{second}")
    assert (pull["mergeable"], pull["mergeable_state"]) == (False, "dirty")
    assert hub.refused("PUT", f"{R}/pulls/99/merge", {})[0] == 404


def test_a_draft_is_not_merged(hub: Hand) -> None:
    """405 with the reason."""
    topic(hub)
    number = hub.pull(REPO, "topic", draft=True)

    assert hub.refused("PUT", f"{R}/pulls/{number}/merge", {}) == (405, "Pull Request is still a draft")
    assert hub.get(f"{R}/pulls/{number}")["mergeable_state"] == "draft"


@pytest.mark.parametrize(
    ("setting", "method", "message"),
    [
        ("allow_merge_commit", "merge", "Merge commits are not allowed on this repository."),
        ("allow_squash_merge", "squash", "Squash merges are not allowed on this repository."),
        ("allow_rebase_merge", "rebase", "Rebase merges are not allowed on this repository."),
    ],
)
def test_a_method_that_the_repository_forbids_is_refused(hub: Hand, setting: str, method: str, message: str) -> None:
    """405 with the method's name."""
    topic(hub)
    number = hub.pull(REPO, "topic")
    hub.fake.forge.update_repo(REPO, settings={setting: False})

    assert hub.refused("PUT", f"{R}/pulls/{number}/merge", {"merge_method": method}) == (405, message)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            BranchProtection(required_approvals=1, enforce_admins=True),
            "At least 1 approving review is required by reviewers with write access.",
        ),
        (
            BranchProtection(required_approvals=2, enforce_admins=True),
            "At least 2 approving reviews are required by reviewers with write access.",
        ),
        (BranchProtection(required_checks=("ci",), enforce_admins=True), 'Required status check "ci" is expected.'),
        (
            BranchProtection(require_linear_history=True, enforce_admins=True),
            "This branch must not contain merge commits.",
        ),
    ],
)
def test_protection_refuses_a_merge_with_its_reason(hub: Hand, rule: BranchProtection, message: str) -> None:
    """405, and the pull request reads as blocked."""
    topic(hub)
    number = hub.pull(REPO, "topic")
    hub.fake.forge.put_rule(REPO, "main", rule)

    assert hub.refused("PUT", f"{R}/pulls/{number}/merge", {"merge_method": "merge"}) == (405, message)
    assert hub.get(f"{R}/pulls/{number}")["mergeable_state"] == "blocked"


def test_approvals_and_checks_let_a_merge_through(hub: Hand) -> None:
    """A failing check is named as such, then the same request is taken."""
    topic(hub)
    number = hub.pull(REPO, "topic")
    rule = BranchProtection(required_approvals=1, required_checks=("ci",), enforce_admins=True)
    hub.fake.forge.put_rule(REPO, "main", rule)
    hub.fake.forge.approve(REPO, number)
    hub.fake.forge.set_check(REPO, "topic", "ci", "failure")

    failing = hub.refused("PUT", f"{R}/pulls/{number}/merge", {})
    hub.fake.forge.set_check(REPO, "topic", "ci", "success")
    done = hub.send("PUT", f"{R}/pulls/{number}/merge", {})

    assert failing == (405, 'Required status check "ci" is failing.')
    assert done["merged"] is True


def test_administrators_merge_past_protection(hub: Hand) -> None:
    """Unless it is enforced for them, their merge is taken."""
    topic(hub)
    number = hub.pull(REPO, "topic")
    hub.fake.forge.put_rule(REPO, "main", BranchProtection(required_approvals=1))

    assert hub.send("PUT", f"{R}/pulls/{number}/merge", {})["merged"] is True


def test_strict_checks_want_the_head_up_to_date(hub: Hand) -> None:
    """A head that lacks commits of the base is 409 "out of date"; it is told before the missing check."""
    topic(hub)
    number = hub.pull(REPO, "topic")
    hub.commit(REPO, "main", {"other.txt": "x"})
    body: dict[str, Any] = {
        **PROTECTION,
        "enforce_admins": True,
        "required_status_checks": {"strict": True, "checks": [{"context": "ci"}]},
    }
    hub.send("PUT", f"{R}/branches/main/protection", body)

    refused = hub.refused("PUT", f"{R}/pulls/{number}/merge", {})

    assert refused == (409, "Head branch is out of date. Review and try the merge again.")


def test_a_merge_queue_and_a_locked_branch_refuse_everybody(hub: Hand) -> None:
    """Rulesets have their own words."""
    topic(hub)
    number = hub.pull(REPO, "topic")

    def rules(kind: str) -> None:
        hub.fake.forge.update_repo(REPO, settings={RULESETS: [{"pattern": "main", "rules": [{"type": kind}]}]})

    rules("merge_queue")
    queued = hub.refused("PUT", f"{R}/pulls/{number}/merge", {})
    rules("update")
    locked = hub.refused("PUT", f"{R}/pulls/{number}/merge", {})

    assert queued == (405, "Repository rule violations found\n\nChanges must be made through the merge queue")
    assert locked[1].startswith("Repository rule violations found")


def test_the_head_is_deleted_where_the_repository_says_so(hub: Hand) -> None:
    """The setting deletes it with the merge, and a later DELETE finds nothing."""
    topic(hub)
    number = hub.pull(REPO, "topic")
    hub.fake.forge.update_repo(REPO, settings={"delete_branch_on_merge": True})

    hub.send("PUT", f"{R}/pulls/{number}/merge", {})

    assert hub.refused("DELETE", f"{R}/git/refs/heads/topic") == (422, "Reference does not exist")
    assert hub.get(f"{R}/pulls/{number}")["merged"] is True


def test_deleting_the_head_closes_the_pull_request(hub: Hand) -> None:
    """It is closed, not merged, and cannot be merged."""
    topic(hub)
    number = hub.pull(REPO, "topic")

    hub.send("DELETE", f"{R}/git/refs/heads/topic")

    pull = hub.get(f"{R}/pulls/{number}")
    assert (pull["state"], pull["merged"]) == ("closed", False)
    assert hub.refused("PUT", f"{R}/pulls/{number}/merge", {}) == (405, "Pull Request is not mergeable")
