"""Protection: which rules match, how they combine, and what they refuse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gitprovider import (
    BranchProtection,
    ConflictError,
    HeadMovedError,
    InvalidRequestError,
    MergeMethod,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
    PermissionDeniedError,
    PutFile,
)
from gitprovider._core.wildcards import matches
from gitprovider.local import Forge, LocalProvider, Rule
from tests.support.local_forge import REPO

NOTHING = BranchProtection.nothing()
FILE = [PutFile(path="x", content="x")]


def _topic(forge: Forge) -> int:
    forge.create_branch(REPO, "topic", forge.head(REPO, "main"))
    forge.commit_changes(REPO, "topic", FILE, message="topic")
    return forge.open_pull_request(REPO, source_branch="topic", target_branch="main", title="x").number


@pytest.mark.parametrize(
    ("pattern", "branch", "expected"),
    [
        ("main", "main", True),
        ("main", "maine", False),
        ("ma*n", "main", True),
        ("ma*n", "man", True),
        ("*", "feature/login", True),
        ("release/*", "release/1/2", True),
        ("release/*", "release", False),
        ("*-stable", "1.0-stable", True),
        ("a.c", "abc", False),
        ("[ab]", "a", False),
        ("Main", "main", False),
    ],
)
def test_matches(pattern: str, branch: str, expected: bool) -> None:
    """``*`` is any run of characters, slashes included; every other character is itself."""
    assert matches(pattern, branch) is expected


def test_the_strictest_of_all_matching_rules_holds(forge: Forge) -> None:
    """Field by field, over exact and wildcard rules; a rule that does not match has no say."""
    forge.put_rule(REPO, "main", BranchProtection(required_checks=("b",)))
    forge.put_rule(REPO, "ma*", BranchProtection(required_approvals=2, required_checks=("a",)))
    forge.put_rule(REPO, "release/*", BranchProtection(block_deletion=True))

    assert forge.protection(REPO, "main") == BranchProtection(required_approvals=2, required_checks=("a", "b"))
    assert [rule.pattern for rule in forge.matching_rules(REPO, "main")] == ["main", "ma*"]
    assert forge.protection(REPO, "other") is None


def test_another_combination(root: Path, forge: Forge) -> None:
    """A fake may let the last rule win, and reads and refusals alike go by it."""

    def last(rules: Sequence[Rule]) -> BranchProtection:
        return rules[-1].protection

    lenient = Forge(root, combine=last)
    forge.put_rule(REPO, "main", BranchProtection())
    forge.put_rule(REPO, "*", NOTHING)

    assert lenient.protection(REPO, "main") == NOTHING
    lenient.commit_changes(REPO, "main", FILE, message="x")
    with pytest.raises(PermissionDeniedError):
        forge.commit_changes(REPO, "main", [PutFile(path="y", content="y")], message="y")


def test_a_rule_is_replaced_and_deleted_by_its_exact_pattern(forge: Forge) -> None:
    """It keeps its id when it is replaced; a pattern that merely matches is another rule."""
    made = forge.put_rule(REPO, "main", BranchProtection(), {"push": 40})

    replaced = forge.put_rule(REPO, "main", NOTHING)

    assert (replaced.id, replaced.settings, made.settings) == (made.id, {}, {"push": 40})
    with pytest.raises(NotFoundError):
        forge.delete_rule(REPO, "ma*")
    forge.delete_rule(REPO, "main")
    assert forge.rules(REPO) == []


def test_a_rule_needs_a_pattern(forge: Forge) -> None:
    """An empty pattern is refused by name."""
    with pytest.raises(InvalidRequestError) as caught:
        forge.put_rule(REPO, "", NOTHING)

    assert caught.value.argument == "pattern"


def test_tightening_keeps_what_other_rules_and_fakes_have(forge: Forge) -> None:
    """The exact rule becomes the stricter of what held and what is asked; its settings stay."""
    forge.put_rule(REPO, "main", BranchProtection(required_approvals=1), {"push": 40})
    forge.put_rule(REPO, "*", BranchProtection(block_deletion=True))

    held = forge.tighten(REPO, "main", BranchProtection(required_checks=("ci",)))

    assert held == BranchProtection(required_approvals=1, required_checks=("ci",), block_deletion=True)
    exact = forge.matching_rules(REPO, "main")[0]
    assert (exact.pattern, exact.settings) == ("main", {"push": 40})


def test_tightening_writes_nothing_where_nothing_is_missing(forge: Forge) -> None:
    """What a wildcard demands already needs no rule of the branch's own."""
    forge.put_rule(REPO, "*", BranchProtection(required_approvals=2))

    assert forge.tighten(REPO, "main", BranchProtection(required_approvals=1)).required_approvals == 2
    assert [rule.pattern for rule in forge.rules(REPO)] == ["*"]


def test_a_branch_that_requires_pull_requests_takes_no_commit(forge: Forge) -> None:
    """Neither by commit nor by moving it; the hint says what to do, and a bypass goes through."""
    head = forge.head(REPO, "main")
    forge.put_rule(REPO, "main", BranchProtection())
    new = forge.write_commit(REPO, tree=forge.read_commit(REPO, head).tree, parents=[head], message="new")

    with pytest.raises(PermissionDeniedError) as committed:
        forge.commit_changes(REPO, "main", FILE, message="x")
    with pytest.raises(PermissionDeniedError):
        forge.move_branch(REPO, "main", new, expected=head)

    assert "open a pull request" in str(committed.value.hint)
    assert forge.head(REPO, "main") == head
    forge.move_branch(REPO, "main", new, expected=head, bypass=True)
    assert forge.commit_changes(REPO, "main", FILE, message="x", bypass=True).parents == (new,)


def test_history_is_rewritten_only_by_force_and_where_nothing_forbids_it(forge: Forge) -> None:
    """Without force it is HeadMovedError, under the rule PermissionDeniedError."""
    first = forge.head(REPO, "main")
    second = forge.commit_changes(REPO, "main", FILE, message="second").sha

    with pytest.raises(HeadMovedError):
        forge.move_branch(REPO, "main", first, expected=None)
    forge.put_rule(REPO, "main", BranchProtection(require_pull_request=False))
    with pytest.raises(PermissionDeniedError):
        forge.move_branch(REPO, "main", first, expected=second, force=True)
    assert forge.head(REPO, "main") == second

    forge.delete_rule(REPO, "main")
    forge.move_branch(REPO, "main", first, expected=second, force=True)
    assert forge.head(REPO, "main") == first


def test_a_move_compares_and_sets(forge: Forge) -> None:
    """From another head than expected nothing moves."""
    head = forge.head(REPO, "main")
    new = forge.write_commit(REPO, tree=forge.read_commit(REPO, head).tree, parents=[head], message="new")

    with pytest.raises(HeadMovedError) as caught:
        forge.move_branch(REPO, "main", new, expected=new)

    assert (caught.value.expected, caught.value.actual) == (new, head)


def test_deletion(forge: Forge) -> None:
    """Blocked by the rule, by the head expected, and always for the default branch."""
    head = forge.head(REPO, "main")
    forge.create_branch(REPO, "topic", head)
    forge.put_rule(REPO, "topic", BranchProtection(require_pull_request=False, block_deletion=True))

    with pytest.raises(PermissionDeniedError):
        forge.delete_branch(REPO, "topic")
    with pytest.raises(HeadMovedError):
        forge.delete_branch(REPO, "topic", expected="0" * 40, bypass=True)
    with pytest.raises(ConflictError):
        forge.delete_branch(REPO, "main", bypass=True)

    forge.delete_branch(REPO, "topic", expected=head, bypass=True)
    assert [name for name, _ in forge.branches(REPO)] == ["main"]


def test_required_checks_bind_direct_commits(forge: Forge) -> None:
    """A commit nobody has checked yet is refused; one that has passed may be moved to."""
    head = forge.head(REPO, "main")
    forge.put_rule(REPO, "main", BranchProtection(require_pull_request=False, required_checks=("ci",)))
    new = forge.write_commit(REPO, tree=forge.read_commit(REPO, head).tree, parents=[head], message="new")

    with pytest.raises(PermissionDeniedError, match="ci"):
        forge.commit_changes(REPO, "main", FILE, message="x")
    forge.set_check(REPO, new, "ci", "success")
    forge.move_branch(REPO, "main", new, expected=head)

    assert forge.head(REPO, "main") == new


def test_linear_history_takes_no_merge_commit(forge: Forge) -> None:
    """Neither pushed nor by pull request; a squash goes through."""
    number = _topic(forge)
    head, topic = forge.head(REPO, "main"), forge.head(REPO, "topic")
    rules = BranchProtection(require_pull_request=False, require_linear_history=True)
    forge.put_rule(REPO, "main", rules)
    merge = forge.write_commit(REPO, tree=forge.read_commit(REPO, topic).tree, parents=[head, topic], message="merge")

    with pytest.raises(PermissionDeniedError, match="merge commits"):
        forge.move_branch(REPO, "main", merge, expected=head)
    assert forge.mergeability(REPO, number) is NotMergeableReason.METHOD
    forge.move_branch(REPO, "main", topic, expected=head)
    assert forge.mergeability(REPO, number, method=MergeMethod.SQUASH) is None


def test_approvals(forge: Forge) -> None:
    """Distinct people count, each once."""
    number = _topic(forge)
    forge.put_rule(REPO, "main", BranchProtection(required_approvals=2))

    for user in ("ada", "ada"):
        forge.approve(REPO, number, user)
    assert forge.mergeability(REPO, number) is NotMergeableReason.REVIEWS
    with pytest.raises(NotMergeableError, match="approvals"):
        forge.merge(REPO, number, method=MergeMethod.MERGE)
    forge.approve(REPO, number, "bob")

    assert forge.pull_request(REPO, number).approvals == ("ada", "bob")
    assert forge.mergeability(REPO, number) is None


@pytest.mark.parametrize("dismiss", [True, False])
def test_stale_approvals(forge: Forge, dismiss: bool) -> None:
    """A new commit takes approvals away where the target's protection says so, and only there."""
    number = _topic(forge)
    forge.put_rule(REPO, "main", BranchProtection(required_approvals=1, dismiss_stale_approvals=dismiss))
    forge.approve(REPO, number, "ada")

    forge.commit_changes(REPO, "topic", [PutFile(path="y", content="y")], message="more")

    assert forge.pull_request(REPO, number).approvals == (() if dismiss else ("ada",))
    assert forge.mergeability(REPO, number) is (NotMergeableReason.REVIEWS if dismiss else None)
    forge.approve(REPO, number, "ada")
    assert forge.mergeability(REPO, number) is None


def test_checks(forge: Forge) -> None:
    """All of them on the head that is to be merged, and each must have passed."""
    number = _topic(forge)
    forge.put_rule(REPO, "main", BranchProtection(required_checks=("build", "test")))

    forge.set_check(REPO, "topic", "build", "success")
    for state in ("pending", "failure"):
        forge.set_check(REPO, "topic", "test", state)
        assert forge.mergeability(REPO, number) is NotMergeableReason.CHECKS
    forge.set_check(REPO, "topic", "test", "success")
    assert forge.checks(REPO, forge.head(REPO, "topic")) == {"build": "success", "test": "success"}
    assert forge.mergeability(REPO, number) is None

    forge.commit_changes(REPO, "topic", [PutFile(path="y", content="y")], message="more")
    assert forge.mergeability(REPO, number) is NotMergeableReason.CHECKS
    assert forge.mergeability(REPO, number, bypass=True) is None


def test_a_check_needs_a_commit_and_a_known_state(forge: Forge) -> None:
    """Nothing is recorded for what is not there."""
    with pytest.raises(NotFoundError):
        forge.set_check(REPO, "absent", "ci", "success")
    with pytest.raises(NotFoundError):
        forge.set_check(REPO, "0" * 40, "ci", "success")
    with pytest.raises(InvalidRequestError):
        forge.set_check(REPO, "main", "ci", "green")


def test_protecting_at_the_same_time_loses_nothing(provider: LocalProvider) -> None:
    """What another process asked for between the read and the write still holds afterwards."""
    tighten, asked = provider.forge.tighten, BranchProtection(required_approvals=2)

    def interrupted(path: str, branch: str, protection: BranchProtection) -> BranchProtection:
        tighten(path, branch, asked)
        return tighten(path, branch, protection)

    provider.forge.tighten = interrupted  # type: ignore[method-assign]  # a fault is put in its place

    held = provider.protect_branch(REPO, "main", BranchProtection(block_deletion=True))

    assert held == BranchProtection(required_approvals=2, block_deletion=True)
