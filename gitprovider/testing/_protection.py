"""Cases for protect_branch."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from gitprovider.errors import NotFoundError, PermissionDeniedError
from gitprovider.models import BranchProtection, PutFile
from gitprovider.testing._assertions import invalid, refused, unsupported
from gitprovider.testing._inputs import BAD_BRANCHES, SHA_LIKE
from gitprovider.testing.rig import Rig

# Each field alone, with the value that the cases need. Fields that need a pull request require one.
ASKING: dict[str, BranchProtection] = {
    "require_pull_request": BranchProtection(block_force_push=False),
    "required_approvals": BranchProtection(required_approvals=2, block_force_push=False),
    "required_checks": replace(BranchProtection.nothing(), required_checks=("build", "lint: ünï / 1")),
    "dismiss_stale_approvals": BranchProtection(dismiss_stale_approvals=True, block_force_push=False),
    "require_code_owner_review": BranchProtection(require_code_owner_review=True, block_force_push=False),
    "require_linear_history": replace(BranchProtection.nothing(), require_linear_history=True),
    "enforce_admins": BranchProtection(enforce_admins=True, block_force_push=False),
    "block_force_push": replace(BranchProtection.nothing(), block_force_push=True),
    "block_deletion": replace(BranchProtection.nothing(), block_deletion=True),
}
_FIELDS = [field.name for field in fields(BranchProtection)]


def _option(field: str) -> str:
    return f"protect_branch.{field}"


def can_demand(rig: Rig, repo: str, field: str) -> bool:
    """Report whether the host has this rule. If not, assert that a request for it is refused and not dropped."""
    if rig.supports(_option(field)):
        return True
    before = rig.protection(repo, "main")
    unsupported(rig, _option(field), rig.provider.protect_branch, repo, "main", ASKING[field])
    assert rig.protection(repo, "main") == before
    return False


def _current(rig: Rig, repo: str, branch: str) -> BranchProtection:
    current = rig.protection(repo, branch)
    assert current is not None, f"nothing protects {branch!r} on the host"
    return current


def _at_least(current: BranchProtection, asked: BranchProtection) -> None:
    weaker = asked.missing_from(current)
    assert not weaker, f"{', '.join(weaker)}: the protection is weaker than the minimum; {current!r}"


class ProtectBranchCases:
    """protect_branch."""

    def test_protect_branch_a_branch_is_protected(self, rig: Rig) -> None:
        """The branch has the default rules afterwards, and the value is its protection on the host."""
        repo = rig.given_repo()

        value = rig.provider.protect_branch(repo, "main")

        current = _current(rig, repo, "main")
        _at_least(current, BranchProtection())
        assert value == current

    @pytest.mark.parametrize("field", _FIELDS)
    def test_protect_branch_each_rule_is_set_or_refused(self, rig: Rig, field: str) -> None:
        """A rule that the host has is set. A rule that it does not have is refused, never dropped."""
        repo = rig.given_repo()
        rules = ASKING[field]
        if not can_demand(rig, repo, field):
            return

        value = rig.provider.protect_branch(repo, "main", rules)

        _at_least(value, rules)
        _at_least(_current(rig, repo, "main"), rules)

    @pytest.mark.parametrize("field", _FIELDS)
    def test_protect_branch_what_holds_is_never_weakened(self, rig: Rig, field: str) -> None:
        """False, 0 and () require nothing: an existing rule is kept."""
        repo = rig.given_repo()
        if not can_demand(rig, repo, field):
            return
        before = ASKING[field]
        rig.given_protection(repo, "main", before)

        value = rig.provider.protect_branch(repo, "main", BranchProtection.nothing())

        _at_least(value, before)
        _at_least(_current(rig, repo, "main"), before)

    @pytest.mark.parametrize("field", _FIELDS)
    def test_protect_branch_rules_are_added_to_what_holds(self, rig: Rig, field: str) -> None:
        """Each field is set to the stricter of the existing and the requested value."""
        repo = rig.given_repo()
        if not can_demand(rig, repo, field):
            return
        before = ASKING[field]
        rig.given_protection(repo, "main", before)

        value = rig.provider.protect_branch(repo, "main", BranchProtection())

        _at_least(value, before.stricter(BranchProtection()))
        _at_least(_current(rig, repo, "main"), before.stricter(BranchProtection()))

    def test_protect_branch_the_greater_number_of_approvals_holds(self, rig: Rig) -> None:
        """The stricter number wins, whether it is the newer or the older one."""
        repo = rig.given_repo()
        if not can_demand(rig, repo, "required_approvals"):
            return

        for asked, expected in ((2, 2), (1, 2), (3, 3)):
            value = rig.provider.protect_branch(repo, "main", BranchProtection(required_approvals=asked))
            assert value.required_approvals == expected
            assert _current(rig, repo, "main").required_approvals == expected

    def test_protect_branch_required_checks_are_a_union(self, rig: Rig) -> None:
        """Requested checks are added to the existing ones."""
        repo = rig.given_repo()
        if not can_demand(rig, repo, "required_checks"):
            return
        rig.provider.protect_branch(repo, "main", BranchProtection(required_checks=("lint",)))

        value = rig.provider.protect_branch(repo, "main", BranchProtection(required_checks=("build",)))

        assert value.required_checks == ("build", "lint")
        assert _current(rig, repo, "main").required_checks == ("build", "lint")

    def test_protect_branch_protecting_twice_changes_nothing(self, rig: Rig) -> None:
        """A second call with the same rules does not change the protection."""
        repo = rig.given_repo()
        first = rig.provider.protect_branch(repo, "main")

        second = rig.provider.protect_branch(repo, "main")

        assert second == first
        assert _current(rig, repo, "main") == first

    @pytest.mark.parametrize("branch", ["release/1.0", "a%2Fb#1", "grüße/\U0001f680", "a+b&c=d"])
    def test_protect_branch_any_branch_can_be_protected(self, rig: Rig, branch: str) -> None:
        """A name with special characters protects exactly that branch."""
        repo = rig.given_repo()
        rig.given_branch(repo, branch)

        rig.provider.protect_branch(repo, branch)

        _at_least(_current(rig, repo, branch), BranchProtection())

    def test_protect_branch_other_branches_stay_as_they_are(self, rig: Rig) -> None:
        """Branches with similar names are not protected."""
        repo = rig.given_repo()
        others = ["release-1", "releas", "x/release", "release.x"]
        rig.given_branches(repo, ["release", *others])

        rig.provider.protect_branch(repo, "release")

        assert [name for name in others if rig.protection(repo, name) is not None] == []

    def test_protect_branch_protection_moves_no_branch(self, rig: Rig) -> None:
        """No head moves."""
        repo = rig.given_repo()
        before = rig.branches(repo)

        rig.provider.protect_branch(repo, "main")

        assert rig.branches(repo) == before

    def test_protect_branch_an_unknown_branch_is_not_found(self, rig: Rig) -> None:
        """The branch must exist, and no rule is left behind for a missing one."""
        repo = rig.given_repo()
        rig.given_branch(repo, "release-1")

        refused(NotFoundError, rig.provider.protect_branch, repo, "release")

        assert [name for name in rig.branches(repo) if name != "main" and rig.protection(repo, name)] == []

    def test_protect_branch_an_empty_repository_has_no_branch_to_protect(self, rig: Rig) -> None:
        """The default branch of an empty repository does not exist yet."""
        refused(NotFoundError, rig.provider.protect_branch, rig.given_empty_repo(), "main")

    def test_protect_branch_wrong_arguments_are_refused_before_any_request(self, rig: Rig) -> None:
        """A pattern is not a branch name, and rules must be a BranchProtection."""
        repo = rig.given_repo()
        wrong: list[Any] = [None, {}, {"require_pull_request": True}, True, "strict", ()]

        for bad in (*BAD_BRANCHES, SHA_LIKE, "release/*"):
            invalid(rig, "branch", rig.provider.protect_branch, repo, bad)
        for bad in wrong:
            invalid(rig, "rules", rig.provider.protect_branch, repo, "main", bad)

    def test_protect_branch_a_direct_commit_is_refused_from_then_on(self, rig: Rig) -> None:
        """A branch that requires pull requests refuses a direct commit and does not move."""
        repo = rig.given_repo()
        rules = BranchProtection(enforce_admins=rig.supports(_option("enforce_admins")))
        rig.provider.protect_branch(repo, "main", rules)
        before = rig.branches(repo)

        refused(
            PermissionDeniedError,
            rig.provider.commit_files,
            repo,
            "main",
            [PutFile(path="a.txt", content="a")],
            message="Add a.txt",
        )

        assert rig.branches(repo) == before
