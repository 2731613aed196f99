"""GitLab's protected branches: rules as a BranchProtection, and a branch protected by a rule of its own.

Of several rules that match a branch the most permissive wins, for pushing, merging and force-pushing. Approval by code
owners is the reverse: it is required when any rule asks for it
(https://docs.gitlab.com/user/project/repository/branches/protected/).

On the Free tier GitLab returns 200 to a change of a rule's access levels and changes nothing. There the rule is made
anew while a second rule, the bridge, holds: a wildcard that matches this branch alone. The steps are: make the bridge,
drop the old rule, make the new rule, drop the bridge. After each of them the branch is at least as protected as before.
A call that ends in between leaves the bridge. The next one knows it by its name, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gitprovider._core.wildcards import matches
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import RemoteOperation
from gitprovider._remote.response import StatusError
from gitprovider.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
    UnexpectedResponseError,
    UnsupportedOptionError,
)
from gitprovider.gitlab.client import GitLabClient
from gitprovider.gitlab.endpoints import BRANCHES, RULE, RULES
from gitprovider.gitlab.refusals import check_same, read_branch, write
from gitprovider.models import BranchProtection
from gitprovider.mutations import ProtectBranch

NO_ONE = 0
DEVELOPER = 30
# All null for a role. A level that is granted to a user, a group or a deploy key shows a role's number as well.
_GRANTEES = ("user_id", "group_id", "deploy_key_id", "member_role_id")


class ProtectionCall:
    """State and requests of one ``protect_branch`` call."""

    def __init__(self, op: RemoteOperation[GitLabClient], asked: ProtectBranch) -> None:
        self._op = op
        self._asked = asked
        self._plan: Plan

    def run(self) -> BranchProtection:
        """Do what is missing, and return what holds."""
        self._read_plan()
        with self._op.before("read protection"):  # a rule can be there, or be made, for a branch that is not
            read_branch(self._op, self._asked.branch)
        if self._plan.exact is None and not self._plan.done:
            try:
                return self._create()
            except AlreadyExistsError:
                # GitLab itself protects a new project's default branch, moments after it was made.
                self._read_plan()
                if self._plan.exact is None:
                    raise
        if self._plan.exact is None or self._plan.done:
            if self._plan.bridge is not None:
                with self._op.effect("drop bridge"):
                    self._drop_bridge(self._plan.bridge)
            return self._plan.held
        return self._change(self._plan.exact)

    def _read_plan(self) -> None:
        with self._op.before("read protection"):
            self._plan = plan(self._asked.branch, self._asked.rules, _read_rules(self._op))
        self._op.note(previous_rules=self._plan.held)

    def _create(self) -> BranchProtection:
        with self._op.effect(self._asked.effect):
            # An earlier call may have dropped the old rule: what it kept of that, its bridge holds.
            made = self._post(new_rule(self._asked.branch, self._plan.wanted, like=self._plan.bridge))
            held = self._plan.resulting(made)
            self._op.done(self._asked.effect, held)
        self._compare(held)
        if self._plan.bridge is not None:
            with self._op.after("drop bridge"):
                self._drop_bridge(self._plan.bridge)
        return held

    def _drop_bridge(self, bridge: Rule) -> None:
        self._delete(bridge.name)
        self._op.done("drop bridge", bridge.name)

    def _change(self, exact: Rule) -> BranchProtection:
        changed = self._patch(exact)
        if self._plan.wanted.missing_from(self._plan.resulting(changed)):
            return self._make_anew(changed)
        if self._plan.bridge is not None:
            with self._op.after("drop bridge"):
                self._drop_bridge(self._plan.bridge)
        with self._op.before("read protection"):
            listed = _read_rules(self._op)
        return self._compare(evaluate(rule for rule in listed if rule.matches(self._asked.branch)))

    def _patch(self, exact: Rule) -> Rule:
        """The rule after a change in place: as it was, where this server or tier cannot change it."""
        branch = self._asked.branch
        with self._op.effect(self._asked.effect):
            try:
                response = self._op.request(
                    "PATCH", RULE, project=self._op.repo, name=branch, body=changed_rule(exact, self._plan.wanted)
                )
            except StatusError as exc:
                if self._op.meaning(exc).code != "route-missing":
                    raise
                # A server before 15.6 has no such endpoint. Whether it was one, the rule itself tells.
                changed = next(one for one in _read_rules(self._op) if one.name == branch and not one.inherited)
            else:
                changed = self._checked(rule(JsonReader(response)), branch)
            if changed != exact:
                self._op.done(self._asked.effect, self._plan.resulting(changed))
        return changed

    def _make_anew(self, exact: Rule) -> BranchProtection:
        op, branch = self._op, self._asked.branch
        with op.before("read protection"):
            check_can_be_made_anew(exact)
            left = self._plan.bridge
            bridge = left.name if left else choose_bridge(branch, self._similar_branches(), self._plan.listed)
        if left is not None and self._plan.wanted.missing_from(evaluate([left]) or BranchProtection.nothing()):
            with op.effect("drop bridge"):  # one of an earlier call that asked for less
                self._drop_bridge(left)
            left = None
        if left is None:
            self._make_bridge(bridge, exact)
        with op.effect("drop old rule"):
            self._delete(branch)
            op.done("drop old rule", branch)
        with op.after(self._asked.effect):
            op.sending()
            made = self._post(new_rule(branch, self._plan.wanted, like=exact))
            op.done(self._asked.effect, self._plan.resulting(made))
        with op.after("drop bridge"):
            self._delete(bridge)
            op.done("drop bridge", bridge)
        return self._compare(self._plan.resulting(made))

    def _make_bridge(self, bridge: str, exact: Rule) -> None:
        with self._op.effect("make bridge"):
            made = self._post(new_rule(bridge, self._plan.wanted, like=exact))
            self._op.done("make bridge", bridge)
        self._compare(evaluate([made]))

    def _similar_branches(self) -> list[str]:
        """The names of the branches that a bridge for this one could match."""
        # GitLab searches for a part of the name: that finds more than is needed and never less.
        part = self._asked.branch[: len(self._asked.branch) // 2] or self._asked.branch
        return self._op.pages(BRANCHES, lambda item: item.str("name"), query={"search": part}, project=self._op.repo)

    def _post(self, body: dict[str, Any]) -> Rule:
        made = rule(JsonReader(write(self._op, "POST", RULES, project=self._op.repo, body=body)))
        return self._checked(made, body["name"])

    def _checked(self, acknowledged: Rule, name: str) -> Rule:
        check_same("rule", acknowledged.name, name)
        return acknowledged

    def _delete(self, name: str) -> None:
        """Delete a rule. After a 404, or a success without the usual 204, the rules are read and decide."""
        try:
            status = self._op.request("DELETE", RULE, project=self._op.repo, name=name).status
            if status != 204 and self._is_listed(name):
                raise UnexpectedResponseError(
                    f"the rule {name!r} is still there: GitLab returned {status}", outcome=Outcome.UNKNOWN
                )
        except StatusError as exc:
            if exc.response.status != 404:
                raise
            refused = self._op.meaning(exc)
            if not self._is_listed(name):
                return
            message = f"the rule {name!r} is still there: {refused.message}"
            if isinstance(refused, NotFoundError):
                refused = PermissionDeniedError(message, status=404, hint="the role is too low to delete the rule")
            refused.message, refused.args = message, (message,)
            raise refused from exc

    def _is_listed(self, name: str) -> bool:
        return any(one.name == name and not one.inherited for one in _read_rules(self._op))

    def _compare(self, held: BranchProtection | None) -> BranchProtection:
        held = held or BranchProtection.nothing()
        with self._op.after("compare"):
            if lacking := self._plan.wanted.missing_from(held):
                raise PermissionDeniedError(
                    f"GitLab accepted the rule, and holds less than was asked: {', '.join(lacking)}",
                    hint="the plan, or a setting of the instance, may forbid it",
                )
        return held


def read_protection(op: RemoteOperation[GitLabClient], branch: str) -> BranchProtection | None:
    """What holds for a branch that exists, by all rules that match it; None when there are none.

    Raises:
        ConflictError: code ``unfinished``: a call of ``protect_branch`` ended in between, and left its bridge.
    """
    read_branch(op, branch)
    matching = [rule for rule in _read_rules(op) if rule.matches(branch)]
    if (bridge := left_bridge(branch, matching)) is not None:
        raise ConflictError(
            f"the rule {bridge.name!r} is there, a bridge that an unfinished protect_branch of {branch!r} left",
            code="unfinished",
            hint="the same protect_branch finishes it and takes the bridge away",
        )
    return evaluate(matching)


def _read_rules(op: RemoteOperation[GitLabClient]) -> list[Rule]:
    """Every rule of the project and of the groups above it."""
    return op.pages(RULES, rule, project=op.repo)


@dataclass(frozen=True, slots=True)
class Level:
    """One entry of a rule's list of who may push or merge.

    Attributes:
        id: the entry's own id, by which the paid tiers change it; None where the server does not say.
        access_level: 0 no one, 30 Developers, 40 Maintainers, 60 administrators.
        role: whether it names a role; False for a user, a group or a deploy key.
    """

    id: int | None
    access_level: int | None
    role: bool

    @property
    def grants(self) -> bool:
        """Whether it allows anybody to push or merge."""
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
        """Whether it applies to ``branch``. ``*`` is any run of characters, also an empty one."""
        return matches(self.name, branch)


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
        for item in data.objects(name)
    )


def evaluate(matching: Iterable[Rule]) -> BranchProtection | None:
    """What holds for a branch that these rules match; None when there are none."""
    matching = list(matching)
    if not matching:
        return None
    closed = not any(level.grants for rule in matching for level in rule.push)
    return BranchProtection(
        require_pull_request=closed,
        # GitLab ignores it unless pull requests are required, and the value refuses it.
        require_code_owner_review=closed and any(rule.code_owners for rule in matching),
        block_force_push=not any(rule.allow_force_push for rule in matching),
        enforce_admins=closed,  # "No one" binds everybody, since 16.0 also administrators; another level lets them push
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about a branch, decided from its rules before anything is written.

    Attributes:
        exact: the project's own rule of the branch's name, or None.
        others: the other rules that match it, which this call may not change, without the bridge.
        bridge: the one of them that an unfinished call left; this call takes it away.
        listed: all rules.
        held: what holds now.
        wanted: the stricter of that and what was asked.
    """

    branch: str
    exact: Rule | None
    others: tuple[Rule, ...]
    bridge: Rule | None
    listed: tuple[Rule, ...]
    held: BranchProtection
    wanted: BranchProtection

    @property
    def done(self) -> bool:
        """Whether what holds is enough."""
        return not self.wanted.missing_from(self.held)

    def resulting(self, exact: Rule) -> BranchProtection:
        """What holds once the branch's own rule is ``exact``."""
        return evaluate((exact, *self.others)) or BranchProtection.nothing()


def check_asked(rules: BranchProtection) -> None:
    """Refuse what a rule cannot express. On GitLab administrators are bound only where no one may push.

    Raises:
        UnsupportedOptionError: enforce_admins without require_pull_request.
    """
    if rules.enforce_admins and not rules.require_pull_request:
        reason = "on GitLab administrators are bound only where no one may push; ask for require_pull_request as well"
        option = "protect_branch.enforce_admins"
        raise UnsupportedOptionError(f"{option}: {reason}", option=option, hint=reason)


def plan(branch: str, asked: BranchProtection, listed: Sequence[Rule]) -> Plan:
    """Decide what to do.

    Raises:
        ConflictError: another rule, a wildcard or a group's, makes the branch laxer than asked, whatever its own says.
    """
    matching = [rule for rule in listed if rule.matches(branch)]
    exact = next((rule for rule in matching if rule.name == branch and not rule.inherited), None)
    bridge = left_bridge(branch, matching)
    others = tuple(rule for rule in matching if rule is not exact and rule is not bridge)
    # Without a rule of its own the branch is held by the bridge alone, and that is what must hold without it.
    floor = evaluate(matching) if exact is None else evaluate((exact, *others))
    held = floor or BranchProtection.nothing()
    wanted = held.stricter(asked)
    for rule in others:
        if lax := wanted.missing_from(evaluate([rule]) or BranchProtection.nothing()):
            whose = "a group above the project" if rule.inherited else "the project"
            raise ConflictError(
                f"the rule {rule.name!r} of {whose} matches the branch too and is laxer ({', '.join(lax)}); "
                "GitLab lets the most permissive of several rules win",
                hint="make that rule stricter, or narrower, and try again",
            )
    # With the bridge, and no rule of its own, nothing is done yet.
    if bridge is not None and exact is None:
        held = evaluate(others) or BranchProtection.nothing()
    return Plan(
        branch=branch, exact=exact, others=others, bridge=bridge, listed=tuple(listed), held=held, wanted=wanted
    )


def new_rule(name: str, wanted: BranchProtection, like: Rule | None = None) -> dict[str, Any]:
    """The body that makes a rule as strict as ``wanted`` and no stricter. Who may merge is kept from ``like``."""
    push = NO_ONE if wanted.require_pull_request else _only_role(like.push) if like else DEVELOPER
    return {
        "name": name,
        "push_access_level": push,
        "merge_access_level": _only_role(like.merge) if like else DEVELOPER,
        "allow_force_push": not wanted.block_force_push,
    }


def changed_rule(current: Rule, wanted: BranchProtection) -> dict[str, Any]:
    """The body that makes a rule stricter in place. Only the paid tiers read the levels; Free drops them."""
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
        ConflictError: the rule holds what only the paid tiers can write, or what this library does not model.
    """
    if current.code_owners or len(current.merge) != 1 or not current.merge[0].role:
        raise ConflictError(
            f"the rule {current.name!r} cannot be changed in place here, and cannot be made anew without losing who "
            "may merge or the approval of code owners",
            hint="set 'Allowed to push and merge' of the rule to 'No one' by hand",
        )


def bridge_names(branch: str) -> list[str]:
    """The names that a bridge for ``branch`` may have, the preferred one first.

    A star stands inside the name, where nobody else puts one. Therefore a bridge that was left is known by its name.
    """
    places = dict.fromkeys((len(branch) - 1, len(branch) // 2))
    return [f"{branch[:place]}*{branch[place:]}" for place in places if place > 0] or [f"*{branch}"]


def left_bridge(branch: str, rules: Iterable[Rule]) -> Rule | None:
    """The bridge among ``rules`` that an unfinished call left, or None."""
    names = bridge_names(branch)
    return next((rule for rule in rules if rule.name in names and not rule.inherited), None)


def choose_bridge(branch: str, names: Iterable[str], listed: Sequence[Rule]) -> str:
    """A wildcard that matches ``branch``, none of the other ``names``, and no branch that another rule names.

    Raises:
        ConflictError: there is none.
    """
    taken = {*names, *(rule.name for rule in listed if "*" not in rule.name)} - {branch}
    for name in bridge_names(branch):
        pattern = Rule(name, (), (), False, False, False)
        if not any(pattern.matches(other) for other in taken):
            return name
    raise ConflictError(
        f"the rule {branch!r} cannot be changed in place here, and a bridge that holds while it is made anew would "
        "match other branches too",
        hint="set 'Allowed to push and merge' of the rule to 'No one' by hand",
    )


def _only_role(levels: tuple[Level, ...]) -> int:
    level = levels[0].access_level if levels else None
    return DEVELOPER if level is None else level
