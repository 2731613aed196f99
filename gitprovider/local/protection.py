"""Protection rules of the forge's repositories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gitprovider import checks
from gitprovider.errors import NotFoundError
from gitprovider.local.database import Rule, rules_json, to_json
from gitprovider.local.rules import strictest
from gitprovider.local.session import Session, Sessions
from gitprovider.models import BranchProtection


class Protection(Sessions):
    """The protection rules of the forge's repositories."""

    def rules(self, path: str) -> list[Rule]:
        """Every protection rule, oldest first."""
        with self._reading(path) as session:
            return session.rules()

    def matching_rules(self, path: str, branch: str) -> list[Rule]:
        """The rules whose pattern covers the branch, oldest first."""
        with self._reading(path) as session:
            return session.matching_rules(branch)

    def put_rule(
        self, path: str, pattern: str, protection: BranchProtection, settings: Mapping[str, Any] | None = None
    ) -> Rule:
        """Make the rule of exactly this pattern, or replace it, its settings included."""
        checks.check_text("pattern", pattern, empty=False, limit=255)
        with self._writing(path) as session:
            return _put_rule(session, pattern, protection, settings or {})

    def tighten(self, path: str, branch: str, protection: BranchProtection) -> BranchProtection:
        """Protect a branch at least as much as ``protection``, under one lock, and return what holds then.

        Raises:
            NotFoundError: no such branch.
        """
        with self._writing(path) as session:
            session.head(branch)
            covering = session.matching_rules(branch)
            wanted = strictest(covering).stricter(protection) if covering else protection
            held = self._combine(covering) if covering else None
            if held is None or protection.missing_from(held):
                exact = next((rule for rule in covering if rule.pattern == branch), None)
                _put_rule(session, branch, wanted, {} if exact is None else exact.settings)
            return self._combine(session.matching_rules(branch))

    def delete_rule(self, path: str, pattern: str) -> None:
        """Delete the rule of exactly this pattern.

        Raises:
            NotFoundError: there is none.
        """
        with self._writing(path) as session:
            gone = session.write("DELETE FROM rules WHERE repo_id = ? AND pattern = ?", session.repo.id, pattern)
            if not gone.rowcount:
                raise NotFoundError(f"{session.repo.path} has no rule for {pattern!r}")

    def protection(self, path: str, branch: str) -> BranchProtection | None:
        """What the rules that cover the branch demand together, or None when none does."""
        with self._reading(path) as session:
            return session.protection(branch)


def _put_rule(session: Session, pattern: str, protection: BranchProtection, settings: Mapping[str, Any]) -> Rule:
    session.write(
        "INSERT INTO rules (repo_id, pattern, protection, settings) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (repo_id, pattern) DO UPDATE SET protection = excluded.protection, settings = excluded.settings",
        session.repo.id,
        pattern,
        rules_json(protection),
        to_json(dict(settings)),
    )
    return next(rule for rule in session.rules() if rule.pattern == pattern)
