"""GitLab's protected branches as a BranchProtection, and what to send to make one stricter.

Of several rules that match a branch the most permissive wins, for pushing, merging and force-pushing; approval by code
owners is the reverse: it is required when any rule asks for it
(https://docs.gitlab.com/user/project/repository/branches/protected/).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gitprovider._remote.json_reader import JsonReader
from gitprovider.errors import ConflictError, UnsupportedOptionError
from gitprovider.models import BranchProtection

NO_ONE = 0
DEVELOPER = 30
# Roles alone have these as null: a level granted to a user, a group or a deploy key shows a role's number as well.
_GRANTEES = ("user_id", "group_id", "deploy_key_id", "member_role_id")


@dataclass(frozen=True, slots=True)
class Level:
    """One entry of a rule's list of who may push or merge.

    Attributes:
        id: the entry's own id, by which the paid tiers change it; None where the server does not give it.
        access_level: 0 no one, 30 Developers, 40 Maintainers, 60 administrators.
        role: whether it names a role; False for a user, a group or a deploy key.
    """

    id: int | None
    access_level: int | None
    role: bool

    @property
    def grants(self) -> bool:
        """Whether it lets anybody in."""
        return not self.role or self.access_level != NO_ONE


@dataclass(frozen=True, slots=True)
class Rule:
    """A protected branch rule of the project, or of a group above it (``inherited``)."""

    name: str
    push: tuple[Level, ...]
    merge: tuple[Level, ...]
    allow_force_push: bool
    code_owners: bool
    inherited: bool

    def matches(self, branch: str) -> bool:
        """Whether it applies to ``branch``: ``*`` stands for any run of characters, also an empty one."""
        pattern = ".*".join(re.escape(part) for part in self.name.split("*"))
        return re.fullmatch(pattern, branch, re.DOTALL) is not None


def rule(data: JsonReader) -> Rule:
    """A protected branch (https://docs.gitlab.com/api/protected_branches/)."""
    return Rule(
        name=data.str("name"),
        push=_levels(data, "push_access_levels"),
        merge=_levels(data, "merge_access_levels"),
        allow_force_push=data.bool_or_none("allow_force_push") or False,
        code_owners=data.bool_or_none("code_owner_approval_required") or False,
        inherited=data.bool_or_none("inherited") or False,
    )


def _levels(data: JsonReader, name: str) -> tuple[Level, ...]:
    return tuple(
        Level(
            id=item.int_or_none("id"),
            access_level=item.int_or_none("access_level"),
            role=all(item.int_or_none(grantee) is None for grantee in _GRANTEES),
        )
        for item in data.items(name)
    )


def evaluate(matching: Iterable[Rule]) -> BranchProtection | None:
    """What holds for a branch that these rules match; None when there are none."""
    matching = list(matching)
    if not matching:
        return None
    closed = not any(level.grants for rule in matching for level in rule.push)
    return BranchProtection(
        require_pull_request=closed,
        # Ignored by GitLab unless pull requests are required, and refused by the value.
        require_code_owner_review=closed and any(rule.code_owners for rule in matching),
        block_force_push=not any(rule.allow_force_push for rule in matching),
        enforce_admins=closed,  # "No one" binds everybody, since 16.0 administrators too; a lower level lets them push
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about a branch, decided from its rules before anything is written.

    Attributes:
        exact: the project's own rule of the branch's name, or None.
        others: the other rules that match it, which this call may not change.
        listed: all rules.
        held: what holds now.
        wanted: the stricter of that and what was asked.
    """

    branch: str
    exact: Rule | None
    others: tuple[Rule, ...]
    listed: tuple[Rule, ...]
    held: BranchProtection
    wanted: BranchProtection

    @property
    def done(self) -> bool:
        """Whether what holds is enough, and there is nothing to write."""
        return not self.wanted.missing_from(self.held)

    def resulting(self, exact: Rule) -> BranchProtection:
        """What holds once the branch's own rule is ``exact``."""
        return evaluate((exact, *self.others)) or BranchProtection.nothing()


def check_asked(rules: BranchProtection) -> None:
    """Refuse what a rule cannot express: on GitLab administrators are bound by letting no one push, and only so.

    Raises:
        UnsupportedOptionError: enforce_admins without require_pull_request.
    """
    if rules.enforce_admins and not rules.require_pull_request:
        reason = "on GitLab administrators are bound where no one may push; ask for require_pull_request as well"
        option = "protect_branch.enforce_admins"
        raise UnsupportedOptionError(f"{option}: {reason}", option=option, hint=reason)


def plan(branch: str, asked: BranchProtection, listed: Sequence[Rule]) -> Plan:
    """Decide what is to be done.

    Raises:
        ConflictError: another rule, a wildcard or a group's, makes the branch laxer than asked whatever its own says.
    """
    matching = [rule for rule in listed if rule.matches(branch)]
    exact = next((rule for rule in matching if rule.name == branch and not rule.inherited), None)
    others = tuple(rule for rule in matching if rule is not exact)
    held = evaluate(matching) or BranchProtection.nothing()
    wanted = held.stricter(asked)
    for rule in others:
        if lax := wanted.missing_from(evaluate([rule]) or BranchProtection.nothing()):
            whose = "a group above the project" if rule.inherited else "the project"
            raise ConflictError(
                f"the rule {rule.name!r} of {whose} matches the branch too and is laxer ({', '.join(lax)}); "
                "GitLab lets the most permissive of several rules win",
                hint="make that rule stricter, or narrower, and try again",
            )
    return Plan(branch=branch, exact=exact, others=others, listed=tuple(listed), held=held, wanted=wanted)


def new_rule(name: str, wanted: BranchProtection, like: Rule | None = None) -> dict[str, Any]:
    """The body that makes a rule which asks for ``wanted`` and nothing more, keeping who may merge by ``like``."""
    push = NO_ONE if wanted.require_pull_request else _only_role(like.push) if like else DEVELOPER
    return {
        "name": name,
        "push_access_level": push,
        "merge_access_level": _only_role(like.merge) if like else DEVELOPER,
        "allow_force_push": not wanted.block_force_push,
    }


def changed_rule(current: Rule, wanted: BranchProtection) -> dict[str, Any]:
    """The body that tightens a rule in place. The levels are read by the paid tiers alone; others drop them."""
    body: dict[str, Any] = {}
    if current.allow_force_push and wanted.block_force_push:
        body["allow_force_push"] = False
    if wanted.require_pull_request and any(level.grants for level in current.push):
        kept = next((level for level in current.push if level.role and level.id is not None), None)
        body["allowed_to_push"] = [
            {"access_level": NO_ONE} if kept is None else {"id": kept.id, "access_level": NO_ONE},
            *({"id": level.id, "_destroy": True} for level in current.push if level is not kept),
        ]
    return body


def check_can_be_made_anew(current: Rule) -> None:
    """Refuse to drop a rule that could not be made anew as it was.

    Raises:
        ConflictError: it holds what only the paid tiers can write, or what this library does not model.
    """
    if current.code_owners or len(current.merge) != 1 or not current.merge[0].role:
        raise ConflictError(
            f"the rule {current.name!r} cannot be changed in place here, and cannot be made anew without losing who "
            "may merge or the approval of code owners",
            hint="set 'Allowed to push and merge' of the rule to 'No one' by hand",
        )


def bridges(branch: str) -> tuple[str, ...]:
    """Wildcard names that match ``branch`` and little else, the narrowest first."""
    return (f"{branch[:-1]}*{branch[-1]}", f"{branch}*")


def choose_bridge(branch: str, names: Iterable[str], listed: Sequence[Rule]) -> str:
    """A wildcard that matches ``branch`` alone: none of the other ``names``, and no branch that another rule names.

    Raises:
        ConflictError: there is none.
    """
    taken = {*names, *(rule.name for rule in listed if "*" not in rule.name)} - {branch}
    for name in bridges(branch):
        pattern = Rule(name, (), (), False, False, False)
        if not any(pattern.matches(other) for other in taken):
            return name
    raise ConflictError(
        f"the rule {branch!r} cannot be changed in place here, and a rule to stand in for it while it is made anew "
        "would match other branches too",
        hint="set 'Allowed to push and merge' of the rule to 'No one' by hand",
    )


def _only_role(levels: tuple[Level, ...]) -> int:
    level = levels[0].access_level if levels else None
    return DEVELOPER if level is None else level
