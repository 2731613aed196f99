"""The GitLab fake: protected branches on both tiers, and how several rules add up."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from gitprovider.fakes.gitlab.server import FakeGitLab, GroupRule
from gitprovider.local.database import Rule
from gitprovider.models import BranchProtection
from tests.support.gitlab_hand import REPO, Hand, Said, a_hand

FEATURE = {"action": "create", "file_path": "x", "content": "x"}


@pytest.fixture
def free(tmp_path: pathlib.Path) -> Hand:
    hand = a_hand(tmp_path)
    hand.given_repo()
    return hand


@pytest.fixture
def premium(tmp_path: pathlib.Path) -> Hand:
    hand = a_hand(tmp_path, tier="premium")
    hand.given_repo()
    return hand


def _protect(hand: Hand, name: str = "main", **levels: Any) -> Said:
    return hand.repo("POST", "/protected_branches", {"name": name, **levels})


def _roles(response: Said | dict[str, Any], place: str = "push") -> list[int]:
    data = response.data if isinstance(response, Said) else response
    return [one["access_level"] for one in data[f"{place}_access_levels"]]


def _can_push(hand: Hand, branch: str = "main") -> bool:
    body = {
        "branch": branch,
        "commit_message": "m",
        "actions": [FEATURE | {"file_path": f"f{len(hand.host.request_log)}"}],
    }
    return hand.repo("POST", "/repository/commits", body).status == 201


# one rule


def test_a_rule_lets_maintainers_in_unless_told_otherwise(free: Hand) -> None:
    """40 and 40, without force push; the free tier shows no users, groups or code owners."""
    response = _protect(free)

    assert (response.status, response.effect) == (201, True)
    assert (_roles(response), _roles(response, "merge"), response.data["allow_force_push"]) == ([40], [40], False)
    assert set(response.data) == {"id", "name", "push_access_levels", "merge_access_levels", "allow_force_push"}
    assert "user_id" not in response.data["push_access_levels"][0]
    assert free.repo("GET", "/protected_branches/main").data == response.data
    assert free.repo("GET", "/protected_branches").data == [response.data]


def test_the_paid_tier_shows_more_of_a_rule(premium: Hand) -> None:
    """A reader that wants these keys must not miss them on the free tier."""
    response = _protect(premium, code_owner_approval_required=True, unprotect_access_level=40)

    assert response.data["code_owner_approval_required"] is True
    assert response.data["inherited"] is False
    assert _roles(response, "unprotect") == [40]
    assert response.data["push_access_levels"][0]["user_id"] is None


@pytest.mark.pitfall("GL-PB-01")
def test_a_name_that_is_protected_already_is_409(free: Hand) -> None:
    """And the levels that were asked for are not there."""
    _protect(free)

    response = _protect(free, push_access_level=0)

    assert (response.status, response.message) == (409, "Protected branch 'main' already exists")
    assert _roles(free.repo("GET", "/protected_branches/main")) == [40]


def test_a_level_that_does_not_exist_is_400(free: Hand) -> None:
    """20 is a role, and none that may be let in."""
    response = _protect(free, push_access_level=20)

    assert (response.status, response.data["error"]) == (400, "push_access_level does not have a valid value")


@pytest.mark.pitfall("GL-PB-03")
def test_a_rule_that_is_not_there_is_404(free: Hand) -> None:
    """Reading, changing and deleting alike; a wildcard that covers the name does not count."""
    _protect(free, "mai*")

    returned = [free.repo(method, "/protected_branches/main", {}) for method in ("GET", "PATCH", "DELETE")]

    assert {(response.status, response.message) for response in returned} == {(404, "404 Not found")}


def test_a_rule_is_deleted(free: Hand) -> None:
    """Nothing is left of it."""
    _protect(free, push_access_level=0)

    response = free.repo("DELETE", "/protected_branches/main")

    assert (response.status, response.data, response.effect) == (204, None, True)
    assert free.repo("GET", "/protected_branches").data == []
    assert _can_push(free)


def test_a_developer_may_not_protect(free: Hand) -> None:
    """Rules are for Maintainers."""
    free.fake.role = 30

    assert _protect(free).status == 403


@pytest.mark.parametrize(("push", "role", "allowed"), [(0, 50, False), (30, 30, True), (40, 30, False), (40, 40, True)])
def test_a_push_level_is_the_least_role_and_0_is_nobody(free: Hand, push: int, role: int, allowed: bool) -> None:
    """No one means the owners too."""
    _protect(free, push_access_level=push)
    free.fake.role = role

    assert _can_push(free) is allowed


# changing in place


@pytest.mark.pitfall("GL-PB-05")
def test_the_free_tier_answers_200_to_levels_and_changes_nothing(free: Hand) -> None:
    """Whoever does not compare the response believes that the branch is closed."""
    made = _protect(free)
    entry = made.data["push_access_levels"][0]["id"]

    response = free.repo(
        "PATCH",
        "/protected_branches/main",
        {"push_access_level": 0, "allowed_to_push": [{"id": entry, "access_level": 0}]},
    )

    assert (response.status, response.effect, response.fact) == (200, False, "gl-rule-patch-free")
    assert response.data == made.data


def test_the_free_tier_changes_force_pushing_in_place(free: Hand) -> None:
    """That key alone is declared there."""
    _protect(free, allow_force_push=True)

    response = free.repo("PATCH", "/protected_branches/main", {"allow_force_push": False})

    assert (response.status, response.effect, response.data["allow_force_push"]) == (200, True, False)


@pytest.mark.pitfall("GL-PB-04")
def test_a_server_may_lack_the_endpoint(free: Hand) -> None:
    """The router's 404, not the rule's."""
    _protect(free)
    free.fake.has_patch = False

    assert free.repo("PATCH", "/protected_branches/main", {}).data == {"error": "404 Not Found"}


def test_the_paid_tier_changes_a_level_by_its_id(premium: Hand) -> None:
    """An entry with an id is changed, one without is added, _destroy takes away."""
    made = _protect(premium, allowed_to_push=[{"access_level": 40}, {"user_id": 46}, {"deploy_key_id": 7}])
    role, user, deploy = made.data["push_access_levels"]

    response = premium.repo(
        "PATCH",
        "/protected_branches/main",
        {
            "allowed_to_push": [
                {"id": role["id"], "access_level": 0},
                {"id": user["id"], "_destroy": True},
                {"id": deploy["id"], "_destroy": True},
            ]
        },
    )

    assert (response.status, response.effect, _roles(response)) == (200, True, [0])
    assert response.data["push_access_levels"][0]["access_level_description"] == "No one"
    assert response.data["id"] == made.data["id"]
    assert not _can_push(premium)


def test_an_entry_without_its_id_adds_a_level(premium: Hand) -> None:
    """What held before still lets people in."""
    _protect(premium)

    added = premium.repo("PATCH", "/protected_branches/main", {"allowed_to_push": [{"access_level": 0}]})
    again = premium.repo("PATCH", "/protected_branches/main", {"allowed_to_push": [{"access_level": 40}]})

    assert _roles(added) == [40, 0]
    assert _can_push(premium)
    assert (again.status, again.message) == (422, ["Push access levels access level has already been taken"])


@pytest.mark.pitfall("GL-PB-07")
def test_a_user_s_entry_shows_a_role_as_well(premium: Hand) -> None:
    """40 beside a user is no Maintainers; the token's own user is let in by its number."""
    other = _protect(premium, allowed_to_push=[{"user_id": 46}])

    assert other.data["push_access_levels"][0] | {"id": 0} == {
        "id": 0,
        "access_level": 40,
        "access_level_description": "User 46",
        "deploy_key_id": None,
        "user_id": 46,
        "group_id": None,
    }
    assert not _can_push(premium)
    premium.repo("PATCH", "/protected_branches/main", {"allowed_to_push": [{"user_id": 1}]})
    assert _can_push(premium)


def test_the_free_tier_knows_deploy_keys_alone(free: Hand) -> None:
    """A user in allowed_to_push is dropped, and the default level takes its place."""
    response = _protect(free, allowed_to_push=[{"user_id": 46}, {"deploy_key_id": 7, "access_level": 40}])

    [entry] = response.data["push_access_levels"]
    assert (entry["deploy_key_id"], entry["access_level_description"]) == (7, "Deploy key 7")


# several rules


def test_the_most_permissive_rule_wins(free: Hand) -> None:
    """A wildcard opens what the branch's own rule closes."""
    _protect(free, push_access_level=0)
    assert not _can_push(free)

    _protect(free, "m*")

    assert _can_push(free)


def test_a_group_s_rule_counts_and_cannot_be_changed(premium: Hand) -> None:
    """It stands in the list alone."""
    _protect(premium, push_access_level=0)
    premium.fake.group_rules = [GroupRule(group="acme", name="main"), GroupRule(group="other", name="*")]

    listed = premium.repo("GET", "/protected_branches").data

    assert [(rule["name"], rule["inherited"]) for rule in listed] == [("main", False), ("main", True)]
    assert _can_push(premium)
    premium.repo("DELETE", "/protected_branches/main")
    assert premium.repo("GET", "/protected_branches/main").status == 404
    assert premium.repo("GET", "/repository/branches/main").data["protected"] is True


def _rule(number: int, **protection: Any) -> Rule:
    return Rule(id=number, pattern="*", protection=BranchProtection(**protection), settings={})


def test_rules_add_up_to_the_laxest_of_each_field() -> None:
    """The reverse of GitHub; but one rule that asks for code owners is enough, where merge requests are needed."""
    strict = _rule(1, required_approvals=2, required_checks=("a", "b"), require_code_owner_review=True)
    lax = _rule(2, required_checks=("b", "c"), block_force_push=False)
    unlocked = _rule(3, require_pull_request=False)

    both, all_three = FakeGitLab.combine([strict, lax]), FakeGitLab.combine([strict, lax, unlocked])

    assert both == BranchProtection(
        required_approvals=0, required_checks=("b",), require_code_owner_review=True, block_force_push=False
    )
    assert all_three == BranchProtection.nothing()


def test_one_rule_is_what_it_says() -> None:
    """The combination of one is that one."""
    rule = _rule(1, required_approvals=2, block_deletion=True)

    assert FakeGitLab.combine([rule]) == rule.protection


# the forge's rules and the fake's are the same


def test_a_rule_put_on_the_forge_has_levels_that_mean_the_same(free: Hand) -> None:
    """A test that protects a branch beneath the fake finds it protected through the fake."""
    free.forge.put_rule(REPO, "main", BranchProtection(required_approvals=1))

    response = free.repo("GET", "/protected_branches/main")

    assert (_roles(response), _roles(response, "merge")) == ([0], [40])
    assert not _can_push(free)


def test_a_rule_made_through_the_fake_protects_on_the_forge(free: Hand) -> None:
    """And what the forge holds besides the levels outlives a change of them."""
    _protect(free, push_access_level=0)
    assert free.forge.protection(REPO, "main") == BranchProtection(enforce_admins=True)
    free.forge.put_rule(REPO, "main", BranchProtection(required_approvals=1), {})

    free.repo("PATCH", "/protected_branches/main", {"allow_force_push": True})

    held = free.forge.protection(REPO, "main")
    assert held is not None
    assert (held.required_approvals, held.require_pull_request, held.block_force_push) == (1, True, False)


# the default branch


@pytest.mark.pitfall("GL-CR-06", "GL-PB-02")
@pytest.mark.parametrize("later", [0, 2])
def test_gitlab_protects_a_new_default_branch_by_itself(tmp_path: pathlib.Path, later: int) -> None:
    """At once, or some requests later."""
    hand = a_hand(tmp_path)
    hand.fake.default_protection_after = later
    hand.send("POST", "/projects", {"name": "widgets", "initialize_with_readme": True})

    seen = [len(hand.send("GET", "/projects/tanuki%2Fwidgets/protected_branches").data) for _ in range(3)]

    assert seen == ([1, 1, 1] if later == 0 else [0, 1, 1])


@pytest.mark.pitfall("GL-PB-02")
def test_a_rule_that_was_faster_stays(tmp_path: pathlib.Path) -> None:
    """GitLab looks whether the branch is protected before it protects it."""
    hand = a_hand(tmp_path)
    hand.fake.default_protection_after = 2
    hand.send("POST", "/projects", {"name": "widgets", "initialize_with_readme": True})

    place = "/projects/tanuki%2Fwidgets/protected_branches"
    hand.send("POST", place, {"name": "main", "push_access_level": 0})
    hand.send("GET", place)

    [rule] = hand.send("GET", place).data
    assert _roles(rule) == [0]


@pytest.mark.pitfall("GL-CR-06")
def test_protection_of_default_branches_may_be_off(tmp_path: pathlib.Path) -> None:
    """An instance's or a group's setting."""
    hand = a_hand(tmp_path)
    hand.fake.protects_default = False
    hand.send("POST", "/projects", {"name": "widgets", "initialize_with_readme": True})

    assert hand.send("GET", "/projects/tanuki%2Fwidgets/protected_branches").data == []
