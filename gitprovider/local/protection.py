"""Protection rules: which rules cover a branch, how they combine, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gitprovider import checks
from gitprovider._core.wildcards import matches
from gitprovider.errors import NotFoundError, NotMergeableReason, PermissionDeniedError
from gitprovider.local.database import Rule, rule_record, rules_json, to_json
from gitprovider.local.refs import HEADS, PULLS
from gitprovider.local.session import Session, Sessions, strictest
from gitprovider.local.storage import install_hook
from gitprovider.models import BranchProtection, MergeMethod


class Protection(Sessions):
    """The protection rules of the forge's repositories."""

    def rules(self, path: str) -> list[Rule]:
        """Every protection rule, oldest first."""
        with self._reading(path) as session:
            return _rules(session)

    def matching_rules(self, path: str, branch: str) -> list[Rule]:
        """The rules that cover the branch, oldest first."""
        with self._reading(path) as session:
            return _matching_rules(session, branch)

    def protection(self, path: str, branch: str) -> BranchProtection | None:
        """What the rules that cover the branch demand together, or None when no rule covers it."""
        with self._reading(path) as session:
            return protection_of(session, branch)

    def put_rule(
        self, path: str, pattern: str, protection: BranchProtection, settings: Mapping[str, Any] | None = None
    ) -> Rule:
        """Make the rule of exactly this pattern, or replace it together with its settings."""
        checks.check_text("pattern", pattern, empty=False, limit=255)
        with self._writing(path) as session:
            return _put_rule(session, pattern, protection, settings or {})

    def tighten(self, path: str, branch: str, protection: BranchProtection) -> BranchProtection:
        """Protect a branch at least as much as ``protection``, under one lock, and return what holds afterwards.

        Raises:
            NotFoundError: the branch does not exist.
        """
        with self._writing(path) as session:
            session.head(branch)
            covering = _matching_rules(session, branch)
            held = protection_of(session, branch)
            if held is None or protection.missing_from(held):
                wanted = strictest(covering).stricter(protection) if covering else protection
                exact = next((rule for rule in covering if rule.pattern == branch), None)
                _put_rule(session, branch, wanted, {} if exact is None else exact.settings)
            return session.combine(_matching_rules(session, branch))

    def check_push(self, path: str, ref: str, old: str, new: str, *, quarantine: str | None = None) -> None:
        """Check one ref of a push by Git. A sha of zeros stands for a ref that is made or deleted.

        Args:
            quarantine: the folder of the pushed objects, which the repository does not have yet.

        Raises:
            PermissionDeniedError: the protection forbids it, the ref is the forge's own, or the repository is archived.
            InvalidRequestError: the contract does not allow the name of the branch.
        """
        with self._reading(path) as session:
            if session.repo.archived:
                raise PermissionDeniedError(f"{session.repo.path} is archived and therefore read-only")
            if ref.startswith(PULLS):
                raise PermissionDeniedError(f"{ref} is the forge's own", hint="push to refs/heads/")
            if ref.startswith(HEADS):
                if quarantine is not None:
                    session.git.git.odb.add_disk_alternate(quarantine)
                branch = ref.removeprefix(HEADS)
                if new.strip("0"):
                    checks.check_branch("branch", branch)  # Git takes names that no operation could return
                    refuse_push(session, branch, old=old if old.strip("0") else None, new=new)
                else:
                    refuse_deletion(session, branch)

    def delete_rule(self, path: str, pattern: str) -> None:
        """Delete the rule of exactly this pattern.

        Raises:
            NotFoundError: the rule does not exist.
        """
        with self._writing(path) as session:
            gone = session.execute("DELETE FROM rules WHERE repo_id = ? AND pattern = ?", session.repo.id, pattern)
            if not gone.rowcount:
                raise NotFoundError(f"{session.repo.path} has no rule for {pattern!r}")


def protection_of(session: Session, branch: str) -> BranchProtection | None:
    """What holds for ``branch``, or None when no rule covers it."""
    covering = _matching_rules(session, branch)
    return session.combine(covering) if covering else None


def refuse_push(session: Session, branch: str, *, old: str | None, new: str) -> None:
    """Refuse to move a branch from ``old`` to ``new`` where its protection does not allow it.

    Raises:
        PermissionDeniedError: the protection demands a pull request, a check or a linear history, or forbids
            rewriting the history.
    """
    protection = protection_of(session, branch)
    if protection is None:
        return
    if protection.require_pull_request:
        raise _denied(
            branch, "takes changes by pull request only", hint="commit to another branch and open a pull request"
        )
    if protection.block_force_push and old is not None and not session.git.contains(old, new):
        raise _denied(branch, "is protected against rewriting its history", hint="commit on top of its head")
    if missing := _missing_checks(session, protection, new):
        raise _denied(
            branch,
            f"requires checks that the commit has not passed: {', '.join(missing)}",
            hint="commit to another branch and open a pull request",
        )
    if protection.require_linear_history and any(
        len(commit.parent_ids) > 1 for commit in session.git.commits_between(old, new)
    ):
        raise _denied(branch, "takes no merge commits", hint="rebase or squash the commits")


def refuse_deletion(session: Session, branch: str) -> None:
    """Refuse to delete a branch whose protection forbids it.

    Raises:
        PermissionDeniedError: the protection blocks deletion.
    """
    protection = protection_of(session, branch)
    if protection is not None and protection.block_deletion:
        raise _denied(branch, "is protected against deletion", hint="remove the protection first")


def missing_for_merge(
    session: Session, branch: str, method: MergeMethod, *, approvals: int, head: str
) -> NotMergeableReason | None:
    """What the protection of the target branch still demands of a pull request at ``head``, or None."""
    protection = protection_of(session, branch)
    if protection is None:
        return None
    if approvals < protection.required_approvals:
        return NotMergeableReason.REVIEWS
    if _missing_checks(session, protection, head):
        return NotMergeableReason.CHECKS
    if protection.require_linear_history and method is MergeMethod.MERGE:
        return NotMergeableReason.METHOD
    return None


def _rules(session: Session, wanted: Callable[[str], bool] = bool) -> list[Rule]:
    """The rules whose pattern is wanted, oldest first. Only these are parsed."""
    rows = session.execute("SELECT * FROM rules WHERE repo_id = ? ORDER BY id", session.repo.id).fetchall()
    with session.database.parsing(f"a rule of {session.repo.path}"):
        return [rule_record(row) for row in rows if wanted(row["pattern"])]


def _matching_rules(session: Session, branch: str) -> list[Rule]:
    return _rules(session, lambda pattern: matches(pattern, branch))


def _put_rule(session: Session, pattern: str, protection: BranchProtection, settings: Mapping[str, Any]) -> Rule:
    install_hook(session.repo.git_dir)  # a forge of an earlier version has none, and the library may have moved since
    session.execute(
        "INSERT INTO rules (repo_id, pattern, protection, settings) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (repo_id, pattern) DO UPDATE SET protection = excluded.protection, settings = excluded.settings",
        session.repo.id,
        pattern,
        rules_json(protection),
        to_json(dict(settings)),
    )
    return _rules(session, lambda each: each == pattern)[0]


def _missing_checks(session: Session, protection: BranchProtection, sha: str) -> list[str]:
    states = session.checks(sha)
    return [name for name in protection.required_checks if states.get(name) != "success"]


def _denied(branch: str, problem: str, *, hint: str) -> PermissionDeniedError:
    return PermissionDeniedError(f"the branch {branch!r} {problem}", hint=hint)
