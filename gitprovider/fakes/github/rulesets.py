"""Rulesets: stored in a repository's settings, listed by ``rules/branches``, and enforced for everybody."""

from __future__ import annotations

from typing import Any

from gitprovider._core.wildcards import matches
from gitprovider.fakes.github.responses import Refusal
from gitprovider.local.database import RepoRecord

# The key in a repository's settings. Its value is a list: {"pattern": …, "rules": [{"type": …, "parameters": {…}}, …]}.
KEY = "rulesets"

_REASONS = {
    "pull_request": "Changes must be made through a pull request.",
    "creation": "Cannot create ref due to creations being restricted.",
    "update": "Cannot update this protected ref.",
    "deletion": "Cannot delete this protected ref.",
    "non_fast_forward": "Cannot force-push to this branch",
    "merge_queue": "Changes must be made through the merge queue",
}


def rules_for(record: RepoRecord, branch: str) -> list[dict[str, Any]]:
    """The rules for a branch, each with its ruleset."""
    return [
        {**rule, "ruleset_source_type": "Repository", "ruleset_source": record.path, "ruleset_id": number}
        for number, ruleset in enumerate(record.settings.get(KEY, ()), start=1)
        if matches(ruleset["pattern"], branch)
        for rule in ruleset["rules"]
    ]


def enforce(record: RepoRecord, branch: str, *kinds: str, fact: str = "gh-rule-violation") -> None:
    """Refuse a change that one of these kinds of rules forbids.

    Raises:
        Refusal: with ``fact``, if the branch has such a rule.
    """
    for rule in rules_for(record, branch):
        if rule["type"] in kinds:
            raise Refusal(fact, reason=_REASONS[rule["type"]])
