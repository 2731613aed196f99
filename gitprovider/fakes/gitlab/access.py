"""Access levels: who may push to a branch and merge into it, and how several rules combine.

A rule of the forge stores its access levels in its settings. Its protection follows from them. For a rule without
settings, the access levels follow from its protection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

from gitprovider._core.wildcards import matches
from gitprovider.fakes.gitlab.state import DEVELOPERS, MAINTAINERS, NO_ONE, GroupRule, State
from gitprovider.local.database import RepoRecord, Rule
from gitprovider.models import BranchProtection

PLACES = {"push": "Push", "merge": "Merge", "unprotect": "Unprotect"}


def most_permissive(rules: Sequence[Rule]) -> BranchProtection:
    """Combine the rules that match a branch: for each field, the most permissive rule applies.

    Code owner approval is the exception: it is required if any rule requires it.
    """
    protections = [rule.protection for rule in rules]
    laxest = {field.name: min(getattr(one, field.name) for one in protections) for field in fields(BranchProtection)}
    laxest["required_checks"] = tuple(set.intersection(*(set(one.required_checks) for one in protections)))
    laxest["require_code_owner_review"] = laxest["require_pull_request"] and any(
        one.require_code_owner_review for one in protections
    )
    if not laxest["require_pull_request"]:
        laxest |= {"required_approvals": 0, "dismiss_stale_approvals": False}
    return BranchProtection(**laxest)


def entry(number: int, **known: Any) -> dict[str, Any]:
    """One entry in a list of access levels. The entry of a user or group has an access level as well."""
    level = known.get("access_level")
    return {
        "id": number,
        "access_level": MAINTAINERS if level is None else level,
        "deploy_key_id": known.get("deploy_key_id"),
        "user_id": known.get("user_id"),
        "group_id": known.get("group_id"),
    }


def levels(rule: Rule) -> dict[str, list[dict[str, Any]]]:
    """The access levels of a rule, by place."""
    push = NO_ONE if rule.protection.require_pull_request else MAINTAINERS
    defaults = {
        "push": [entry(rule.id * 10 + 1, access_level=push)],
        "merge": [entry(rule.id * 10 + 2)],
        "unprotect": [],
    }
    return {place: rule.settings.get(place, defaults[place]) for place in PLACES}


def is_open(entries: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the entries admit anybody."""
    return any(one["access_level"] != NO_ONE or is_special(one) for one in entries)


def is_special(one: Mapping[str, Any]) -> bool:
    """Whether an entry is for a user, a group or a deploy key."""
    return any(one[key] is not None for key in ("user_id", "group_id", "deploy_key_id"))


def _admits(state: State, entries: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the entries admit the token's user. It has no deploy key and is in no such group."""
    if not state.acting:
        return False
    for one in entries:
        if is_special(one):
            if one["user_id"] == state.users.get(state.acting):
                return True
        elif one["access_level"] != NO_ONE and state.role >= one["access_level"]:
            return True
    return False


def group_rules(state: State, path: str) -> list[GroupRule]:
    """The rules of the groups above a project."""
    return [rule for rule in state.group_rules if path.startswith(f"{rule.group}/")]


class Guard:
    """The rules for the branches of one project: its own and those of its groups. They are read once."""

    def __init__(self, state: State, path: str) -> None:
        self._state = state
        self._rules: list[tuple[str, dict[str, list[dict[str, Any]]]]] = [
            (rule.pattern, levels(rule)) for rule in state.forge.rules(path)
        ]
        self._rules += [
            (
                rule.name,
                {
                    "push": [entry(0, access_level=rule.push_access_level)],
                    "merge": [entry(0, access_level=rule.merge_access_level)],
                },
            )
            for rule in group_rules(state, path)
        ]

    def covers(self, branch: str) -> bool:
        """Whether any rule matches the branch."""
        return any(matches(pattern, branch) for pattern, _ in self._rules)

    def may(self, place: Literal["push", "merge"], branch: str) -> bool:
        """Whether the token's user may push or merge: one matching rule that admits it suffices."""
        found = [entries[place] for pattern, entries in self._rules if matches(pattern, branch)]
        return any(_admits(self._state, entries) for entries in found) if found else self._is_developer()

    def _is_developer(self) -> bool:
        return bool(self._state.acting) and self._state.role >= DEVELOPERS

    def may_update(self, branch: str) -> bool:
        """Whether the token's user may merge a merge request into the branch, as it may if it may push."""
        return self.may("push", branch) or self.may("merge", branch)


def protect_default(state: State, path: str, branch: str) -> None:
    """Protect a new default branch fully, unless a rule covers it. GitLab does this by itself."""
    if not Guard(state, path).covers(branch):
        protection = BranchProtection(require_pull_request=False)
        state.forge.put_rule(path, branch, protection, {"push": [fresh_entry(state)], "merge": [fresh_entry(state)]})


def fresh_entry(state: State, **known: Any) -> dict[str, Any]:
    """An entry with a new number."""
    return entry(state.next_id(), **known)


def branch_made(state: State, record: RepoRecord, branch: str) -> None:
    """Note that a branch was made: reads may not find it yet, and GitLab may protect it as the default branch."""
    if state.branch_lag:
        state.stale_reads.start((record.id, branch), state.branch_lag)
    if branch == record.default_branch and state.protects_default:
        state.unprotected.append((state.request_count + state.default_protection_after, record.path, branch))
        protect_due(state)


def protect_due(state: State) -> None:
    """Protect the default branches whose time has come."""
    for due in [one for one in state.unprotected if one[0] <= state.request_count]:
        state.unprotected.remove(due)
        protect_default(state, due[1], due[2])
