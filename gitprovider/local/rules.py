"""Protection: which rules match a branch, how they combine, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from gitprovider.errors import NotMergeableReason, PermissionDeniedError
from gitprovider.local.database import Rule
from gitprovider.local.git import BareRepository
from gitprovider.models import BranchProtection, MergeMethod

Combine = Callable[[Sequence[Rule]], BranchProtection]


def strictest(rules: Sequence[Rule]) -> BranchProtection:
    """Field by field the strictest of all rules."""
    return reduce(BranchProtection.stricter, (rule.protection for rule in rules))


def matches(pattern: str, branch: str) -> bool:
    """Whether a rule's pattern covers a branch: exactly, or with ``*`` for any run of characters, slashes included."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), branch, re.DOTALL) is not None


def refuse_push(
    protection: BranchProtection | None,
    repository: BareRepository,
    branch: str,
    *,
    old: str | None,
    new: str,
    passed: Mapping[str, str],
) -> None:
    """Refuse to move a branch from ``old`` to ``new`` where its protection does not allow it.

    Args:
        passed: the states of the checks on ``new``, by name.

    Raises:
        PermissionDeniedError: it demands a pull request, a check, or a linear history, or forbids to rewrite it.
    """
    if protection is None:
        return
    if protection.require_pull_request:
        raise _denied(
            branch, "takes changes by pull request only", hint="commit to another branch and open a pull request"
        )
    if protection.block_force_push and old is not None and not repository.contains(old, new):
        raise _denied(branch, "is protected against rewriting its history", hint="commit on top of its head")
    if missing := [name for name in protection.required_checks if passed.get(name) != "success"]:
        raise _denied(
            branch,
            f"demands checks that the commit has not passed: {', '.join(missing)}",
            hint="commit to another branch and open a pull request",
        )
    if protection.require_linear_history and any(
        len(commit.parent_ids) > 1 for commit in repository.commits_between(old, new)
    ):
        raise _denied(branch, "takes no merge commits", hint="rebase or squash what is to be pushed")


def refuse_deletion(protection: BranchProtection | None, branch: str) -> None:
    """Refuse to delete a branch whose protection forbids it.

    Raises:
        PermissionDeniedError: it does.
    """
    if protection is not None and protection.block_deletion:
        raise _denied(branch, "is protected against deletion", hint="the protection must be lifted first")


def missing_for_merge(
    protection: BranchProtection | None, method: MergeMethod, *, approvals: int, passed: Mapping[str, str]
) -> NotMergeableReason | None:
    """What the target branch's protection still demands of a pull request, or None."""
    if protection is None:
        return None
    if approvals < protection.required_approvals:
        return NotMergeableReason.REVIEWS
    if any(passed.get(name) != "success" for name in protection.required_checks):
        return NotMergeableReason.CHECKS
    if protection.require_linear_history and method is MergeMethod.MERGE:
        return NotMergeableReason.METHOD
    return None


def _denied(branch: str, problem: str, *, hint: str) -> PermissionDeniedError:
    return PermissionDeniedError(f"the branch {branch!r} {problem}", hint=hint)
