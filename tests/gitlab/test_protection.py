"""protect_branch: several rules at once, both tiers, and the bridge, of which every step leaves at least what held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.response import Response
from gitprovider.errors import (
    ConflictError,
    GitProviderError,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    UnsupportedOptionError,
)
from gitprovider.fakes.gitlab.server import GroupRule
from gitprovider.gitlab import GitLabProvider
from gitprovider.gitlab import protection as rules_of
from gitprovider.gitlab.protection import Level, Rule, changed_rule, choose_bridge, evaluate
from gitprovider.models import BranchProtection
from tests.support.gitlab_world import REPO, World

Make = Callable[..., World]
MAINTAINERS = BranchProtection(require_pull_request=False)  # GitLab's own default: Maintainers push, nobody forces
NO_ONE, PUSHERS = Level(1, 0, True), Level(2, 40, True)


def rule(name: str = "main", *, push: tuple[Level, ...] = (PUSHERS,), force: bool = False, **known: Any) -> Rule:
    known = {"merge": (Level(3, 40, True),), "code_owners": False, "inherited": False, **known}
    return Rule(name=name, push=push, allow_force_push=force, **known)


def held(world: World, branch: str = "main") -> BranchProtection:
    return world.forge.protection(REPO, branch) or BranchProtection.nothing()


def names(world: World) -> set[str]:
    return {rule.pattern for rule in world.forge.rules(REPO)}


# What several rules come to


@pytest.mark.parametrize(
    ("pattern", "branch", "matches"),
    [
        ("main", "main", True),
        ("main", "mainly", False),
        ("mai*n", "main", True),
        ("mai*n", "maintain", True),
        ("*", "feature/x", True),
        ("release/*", "release/1/2", True),
        ("release/*", "release", False),
        ("*-stable", "1.0-stable", True),
        ("a.b", "axb", False),
        ("a*b*c", "a-b-b-c", True),
        ("[a]*", "[a]x", True),
    ],
)
def test_a_star_is_any_run_of_characters_and_nothing_else_is_special(pattern: str, branch: str, matches: bool) -> None:
    """Also an empty run, and one with slashes."""
    assert rule(pattern).matches(branch) is matches


@pytest.mark.parametrize(
    ("listed", "pull_request", "force"),
    [
        ([rule(push=(NO_ONE,))], True, True),
        ([rule(push=(PUSHERS,))], False, True),
        ([rule(push=(NO_ONE,)), rule("m*", push=(PUSHERS,))], False, True),
        ([rule(push=(NO_ONE,)), rule("m*", push=(NO_ONE,), force=True)], True, False),
        ([rule(push=(NO_ONE, PUSHERS))], False, True),
        ([rule(push=())], True, True),
    ],
)
def test_of_several_rules_the_most_permissive_holds(listed: list[Rule], pull_request: bool, force: bool) -> None:
    """One entry of one rule that lets somebody in is enough."""
    value = evaluate(listed)

    assert value is not None
    assert (value.require_pull_request, value.block_force_push) == (pull_request, force)


@pytest.mark.pitfall("GL-PB-07")
def test_a_user_s_entry_is_no_role() -> None:
    """Granted to a user, it shows a role's number as well, even that of nobody."""
    shown = {
        "name": "main",
        "push_access_levels": [{"id": 5, "access_level": 0, "user_id": 46, "group_id": None}],
        "merge_access_levels": [{"id": 6, "access_level": 40}],
        "allow_force_push": False,
    }

    read = rules_of.rule(JsonReader(Response(status=200, data=shown)))

    assert read.push[0].grants
    value = evaluate([read])
    assert value is not None
    assert not value.require_pull_request


def test_code_owners_are_required_when_one_rule_asks_for_them() -> None:
    """The reverse of every other setting."""
    value = evaluate([rule(push=(NO_ONE,)), rule("m*", push=(NO_ONE,), code_owners=True)])

    assert value is not None
    assert value.require_code_owner_review


# What is not possible


@pytest.mark.parametrize(
    "field",
    [
        "required_approvals",
        "required_checks",
        "dismiss_stale_approvals",
        "require_code_owner_review",
        "require_linear_history",
        "block_deletion",
    ],
)
def test_what_gitlab_does_not_keep_on_a_rule_is_refused_before_any_request(world: World, field: str) -> None:
    """Free would drop it with 200."""
    value: Any = {"required_approvals": 1, "required_checks": ("ci",)}.get(field, True)

    with pytest.raises(UnsupportedOptionError) as caught:
        world.provider().protect_branch(REPO, "main", BranchProtection(**{field: value}))

    assert caught.value.option == f"protect_branch.{field}"
    assert world.sent == []


@pytest.mark.parametrize("pattern", ["*", "ma*", "*n"])
def test_a_wider_laxer_rule_is_a_conflict_before_any_write(world: World, pattern: str) -> None:
    """Whatever the branch's own rule says, the laxer one would win."""
    world.forge.put_rule(REPO, pattern, MAINTAINERS)

    with pytest.raises(ConflictError, match="laxer") as caught:
        world.provider().protect_branch(REPO, "main")

    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert world.mutations == []


def test_a_group_s_laxer_rule_is_a_conflict_before_any_write(world: World) -> None:
    """No project can change it."""
    world.fake.group_rules.append(GroupRule(group="acme", name="main"))

    with pytest.raises(ConflictError, match="group"):
        world.provider().protect_branch(REPO, "main")

    assert world.mutations == []


def test_a_wider_rule_that_is_strict_enough_is_enough(world: World) -> None:
    """A rule of its own could only make the branch laxer."""
    world.forge.put_rule(REPO, "*", BranchProtection())

    value = world.provider().protect_branch(REPO, "main")

    assert value.require_pull_request
    assert world.mutations == []
    assert names(world) == {"*"}


def test_a_missing_branch_gets_no_rule(world: World) -> None:
    """GitLab would take one."""
    with pytest.raises(NotFoundError):
        world.provider().protect_branch(REPO, "missing")

    assert world.mutations == []


def test_a_role_that_is_too_low_is_told(world: World) -> None:
    """Rules are for Maintainers."""
    world.fake.role = 30

    with pytest.raises(PermissionDeniedError):
        world.provider().protect_branch(REPO, "main")

    assert names(world) == set()


# The default branch, which GitLab protects by itself


@pytest.mark.pitfall("GL-CR-06", "GL-PB-01", "GL-PB-02")
@pytest.mark.parametrize("tier", ["free", "premium"])
@pytest.mark.parametrize("after", [0, 2, 3, 4])
def test_gitlab_s_own_protection_of_a_new_default_branch_is_tightened(make_world: Make, tier: str, after: int) -> None:
    """Whether it was there, comes between the list and the write, or after it."""
    world = make_world(tier=tier)
    world.fake.default_protection_after = after
    provider = world.provider()
    provider.create_repo("acme/fresh", auto_init=True)

    value = provider.protect_branch("acme/fresh", "main")

    assert value.require_pull_request
    held_now = world.forge.protection("acme/fresh", "main")
    assert held_now is not None
    assert held_now.require_pull_request


# Premium: in place


@pytest.mark.parametrize("free", [False, True])
def test_who_may_merge_is_kept(make_world: Make, free: bool) -> None:
    """Only what was asked for changes."""
    world = make_world(tier="free" if free else "premium")
    world.forge.put_rule(REPO, "main", MAINTAINERS)
    before = rules_of.rule(JsonReader(Response(status=200, data=_shown(world))))

    world.provider().protect_branch(REPO, "main")

    after = rules_of.rule(JsonReader(Response(status=200, data=_shown(world))))
    assert [level.access_level for level in after.merge] == [level.access_level for level in before.merge]
    assert [level.access_level for level in after.push] == [0]


def _shown(world: World) -> Any:
    with world.provider().sdk() as client:
        return client.projects.get(REPO).protectedbranches.get("main").attributes


@pytest.mark.pitfall("GL-PB-05")
def test_a_change_in_place_names_every_entry() -> None:
    """An entry without an id would be added; a user's entry would keep its user."""
    body = changed_rule(rule(push=(Level(7, 40, False), Level(8, 30, True), Level(9, 60, True))), BranchProtection())

    assert body == {
        "allowed_to_push": [{"id": 8, "access_level": 0}, {"id": 7, "_destroy": True}, {"id": 9, "_destroy": True}]
    }


def test_force_pushes_alone_are_changed_in_place_on_any_tier(world: World) -> None:
    """Free reads that key of the change, so that no bridge is needed."""
    world.forge.put_rule(REPO, "main", BranchProtection(block_force_push=False))

    value = world.provider().protect_branch(REPO, "main")

    assert value.block_force_push
    assert world.mutations == ["PATCH /protected_branches/main"]


# Free: the bridge


@pytest.fixture
def weak(world: World) -> World:
    """Tier Free, and the rule that GitLab makes for a default branch."""
    world.forge.put_rule(REPO, "main", MAINTAINERS)
    return world


def test_the_bridge_holds_and_goes(weak: World) -> None:
    """Afterwards there is one rule, of the branch's own name, as strict as was asked."""
    value = weak.provider().protect_branch(REPO, "main")

    assert value == held(weak)
    assert value.require_pull_request
    assert names(weak) == {"main"}


@pytest.mark.parametrize("step", range(4))
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["status", "reset"])
def test_a_failure_in_between_leaves_at_least_what_held(weak: World, step: int, when: str, kind: str) -> None:
    """Whichever step of the bridge fails, and whether or not the host had done it."""
    method, nth = [("POST", 1), ("DELETE", 1), ("POST", 2), ("DELETE", 2)][step]
    weak.fault(kind, method=method, endpoint="/protected_branches", nth=nth, when=when)
    before = held(weak)

    with pytest.raises(ProviderUnavailableError) as caught:
        weak.provider().protect_branch(REPO, "main")

    assert before.missing_from(held(weak)) == ()
    assert len(caught.value.completed) == step
    assert caught.value.outcome is (Outcome.PARTIAL if step else Outcome.UNKNOWN)
    assert len(weak.mutations) == step + 2  # the change in place that changed nothing, and the steps up to this one


@pytest.mark.parametrize("step", range(4))
@pytest.mark.parametrize("when", ["before", "after"])
def test_the_same_call_again_finishes_what_failed(weak: World, step: int, when: str) -> None:
    """What an earlier call left is no obstacle, and what holds in the end is what was asked."""
    method, nth = [("POST", 1), ("DELETE", 1), ("POST", 2), ("DELETE", 2)][step]
    weak.fault("reset", method=method, endpoint="/protected_branches", nth=nth, when=when)
    with pytest.raises(GitProviderError):
        weak.provider().protect_branch(REPO, "main")

    value = weak.provider().protect_branch(REPO, "main")

    assert value.require_pull_request
    assert BranchProtection().missing_from(held(weak)) == ()


def test_a_branch_is_never_laxer_while_the_bridge_is_used(weak: World) -> None:
    """Looked at after every single request."""
    seen = []
    handle = weak.fake.handle

    def watching(request: Any) -> Any:
        answer = handle(request)
        seen.append(MAINTAINERS.missing_from(held(weak)))
        return answer

    weak.fake.handle = watching  # type: ignore[method-assign]  # watched, not replaced
    weak.provider().protect_branch(REPO, "main")

    assert seen == [()] * 8


def test_a_bridge_that_would_match_another_branch_is_not_made(weak: World) -> None:
    """`mai*n` also matches mai-n, and `ma*in` ma-in: nothing is changed."""
    weak.branch("mai-n")
    weak.branch("ma-in")

    with pytest.raises(ConflictError, match="other branches") as caught:
        weak.provider().protect_branch(REPO, "main")

    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert names(weak) == {"main"}
    assert held(weak) == MAINTAINERS


def test_another_bridge_is_taken_where_the_first_would_match_more(weak: World) -> None:
    """`mai*n` matches mai-n; `ma*in` matches this branch alone."""
    weak.branch("mai-n")

    weak.provider().protect_branch(REPO, "main")

    assert "DELETE /protected_branches/ma*in" in weak.mutations
    assert names(weak) == {"main"}


def test_a_bridge_spares_a_branch_that_only_a_rule_names() -> None:
    """Such a branch may be made while the bridge stands, and its rule would be loosened or tightened by it."""
    assert choose_bridge("main", ["main"], [rule("main"), rule("maiXn")]) == "ma*in"


@pytest.mark.parametrize("branch", ["m", "release/1.0", "grüße"])
def test_a_bridge_is_found_for_any_name(world: World, branch: str) -> None:
    """One character, slashes, any script."""
    world.branch(branch)
    world.forge.put_rule(REPO, branch, MAINTAINERS)

    world.provider().protect_branch(REPO, branch)

    assert held(world, branch).require_pull_request
    assert names(world) == {branch}


def test_a_rule_that_could_not_be_made_anew_is_left_alone(world: World) -> None:
    """Who may merge by name is written by the paid tiers alone, and would be lost."""
    merge = [
        {"id": 71, "access_level": 40, "deploy_key_id": None, "user_id": 46, "group_id": None},
        {"id": 72, "access_level": 40, "deploy_key_id": None, "user_id": None, "group_id": None},
    ]
    world.forge.put_rule(REPO, "main", MAINTAINERS, {"merge": merge})

    with pytest.raises(ConflictError, match="who may merge"):
        world.provider().protect_branch(REPO, "main")

    assert names(world) == {"main"}
    assert held(world) == MAINTAINERS


@pytest.mark.pitfall("GL-PB-04")
def test_a_server_without_the_change_takes_the_bridge(weak: World) -> None:
    """Before 15.6 there is no such endpoint."""
    weak.fake.has_patch = False

    value = weak.provider().protect_branch(REPO, "main")

    assert value.require_pull_request
    assert names(weak) == {"main"}


@pytest.mark.pitfall("GL-PB-03")
def test_a_rule_that_is_gone_already_is_dropped(weak: World) -> None:
    """404 on the way down is where it was to be."""
    weak.fault("status", method="DELETE", nth=1, when="after", status=404, body=b'{"message": "404 Not found"}')

    value = weak.provider().protect_branch(REPO, "main")

    assert value.require_pull_request


def test_an_answer_that_is_weaker_than_asked_is_an_error(world: World) -> None:
    """What the host says that holds is compared with what was asked."""
    shown = (
        b'{"id": 1, "name": "main", "push_access_levels": [{"id": 1, "access_level": 40}],'
        b' "merge_access_levels": [{"id": 2, "access_level": 40}], "allow_force_push": false}'
    )
    world.fault("status", method="POST", endpoint="/protected_branches", when="after", status=201, body=shown)

    with pytest.raises(PermissionDeniedError, match="holds less") as caught:
        world.provider().protect_branch(REPO, "main")

    assert caught.value.outcome is Outcome.PARTIAL


def test_what_is_asked_for_is_no_more_than_that(world: World) -> None:
    """No force pushes: whoever could push still can, and merge."""
    world.provider().protect_branch(REPO, "main", BranchProtection(require_pull_request=False))

    read = rules_of.rule(JsonReader(Response(status=200, data=_shown(world))))
    assert [level.access_level for level in (*read.push, *read.merge)] == [30, 30]
    assert not read.allow_force_push


def test_protection_reads_all_rules_together(world: World, provider: GitLabProvider) -> None:
    """HostState: what holds, None where nothing does, and no branch is not found."""
    assert provider.protection(REPO, "main") is None
    world.forge.put_rule(REPO, "main", BranchProtection())
    assert provider.protection(REPO, "main") == BranchProtection(enforce_admins=True)
    world.forge.put_rule(REPO, "m*", MAINTAINERS)
    assert provider.protection(REPO, "main") == BranchProtection(require_pull_request=False)
    with pytest.raises(NotFoundError):
        provider.protection(REPO, "missing")


@pytest.mark.parametrize("tier", ["free", "premium"])
@pytest.mark.parametrize("closed", [True, False])
def test_administrators_are_bound_where_no_one_may_push_and_only_there(
    make_world: Make, tier: str, closed: bool
) -> None:
    """ "No one" binds administrators too; any other level lets them push. The host and the provider say the same."""
    world = make_world(tier=tier)
    provider = world.provider()

    now = provider.protect_branch(REPO, "main", BranchProtection(require_pull_request=closed))

    assert now.enforce_admins is closed
    assert held(world) == provider.protection(REPO, "main") == now


def test_binding_administrators_alone_is_not_to_be_had(world: World) -> None:
    """Letting people push and binding administrators is no level of GitLab's; it is refused before any request."""
    rules = BranchProtection(require_pull_request=False, enforce_admins=True)

    with pytest.raises(UnsupportedOptionError) as caught:
        world.provider().protect_branch(REPO, "main", rules)

    assert caught.value.option == "protect_branch.enforce_admins"
    assert world.sent == []
