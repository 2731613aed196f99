"""Protected branches on the GitLab fake: https://docs.gitlab.com/api/protected_branches/ .

A rule's access levels are kept as GitLab shows them, in the settings of the forge's rule; the forge's protection is
what follows from them. A rule that was put without settings gets the levels that mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from gitprovider.errors import NotFoundError
from gitprovider.fakes.gitlab import answers
from gitprovider.fakes.gitlab.answers import Refusal, reply
from gitprovider.fakes.gitlab.call import MAINTAINER, Call
from gitprovider.fakes.host import Response
from gitprovider.local.database import Rule
from gitprovider.local.protection import matches
from gitprovider.models import BranchProtection

if TYPE_CHECKING:
    from gitprovider.fakes.gitlab.server import FakeGitLab

Place = Literal["push", "merge"]

NO_ONE, DEVELOPERS, MAINTAINERS, ADMINISTRATORS = 0, 30, 40, 60
_LEVELS = {
    NO_ONE: "No one",
    DEVELOPERS: "Developers + Maintainers",
    MAINTAINERS: "Maintainers",
    ADMINISTRATORS: "Administrators",
}
_PLACES = {"push": "Push", "merge": "Merge", "unprotect": "Unprotect"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRule:
    """A rule that a group lays down for every project below it. Projects see it in their list, and cannot change it."""

    group: str
    name: str
    push_access_level: int = MAINTAINERS
    merge_access_level: int = MAINTAINERS
    allow_force_push: bool = False


def most_permissive(rules: Sequence[Rule]) -> BranchProtection:
    """What holds for a branch under several rules of GitLab's: in each field the laxest, for that is who gets in.

    A code owner's approval is the reverse: it is needed as soon as one rule asks for it.
    """
    held = [rule.protection for rule in rules]
    laxest = {field.name: min(getattr(one, field.name) for one in held) for field in fields(BranchProtection)}
    laxest["required_checks"] = tuple(set.intersection(*(set(one.required_checks) for one in held)))
    laxest["require_code_owner_review"] = laxest["require_pull_request"] and any(
        one.require_code_owner_review for one in held
    )
    if not laxest["require_pull_request"]:
        laxest |= {"required_approvals": 0, "dismiss_stale_approvals": False}
    return BranchProtection(**laxest)


# what a rule says


def entry(number: int, **known: Any) -> dict[str, Any]:
    """One entry of a list of access levels. A user's or group's entry carries an access level too."""
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
    made = {"push": [entry(rule.id * 10 + 1, access_level=push)], "merge": [entry(rule.id * 10 + 2)], "unprotect": []}
    return {place: rule.settings.get(place, made[place]) for place in _PLACES}


def _owners(rule: Rule) -> bool:
    return bool(rule.settings.get("code_owner", rule.protection.require_code_owner_review))


def is_open(entries: Sequence[Mapping[str, Any]]) -> bool:
    """Whether anybody at all is let in."""
    return any(one["access_level"] != NO_ONE or _is_special(one) for one in entries)


def _is_special(one: Mapping[str, Any]) -> bool:
    return any(one[key] is not None for key in ("user_id", "group_id", "deploy_key_id"))


def _lets_in(fake: FakeGitLab, entries: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the token's user is let in. Nobody else's deploy key or group is its own."""
    for one in entries:
        if _is_special(one):
            if one["user_id"] == fake.users[fake.username]:
                return True
        elif one["access_level"] != NO_ONE and fake.role >= one["access_level"]:
            return True
    return False


def _group_rules(fake: FakeGitLab, path: str) -> list[GroupRule]:
    return [rule for rule in fake.group_rules if path.startswith(f"{rule.group}/")]


class Guard:
    """The rules over one project's branches, its own and its groups', read once."""

    def __init__(self, fake: FakeGitLab, path: str) -> None:
        self._fake = fake
        self._rules: list[tuple[str, dict[str, list[dict[str, Any]]]]] = [
            (rule.pattern, levels(rule)) for rule in fake.forge.rules(path)
        ]
        self._rules += [
            (
                rule.name,
                {
                    "push": [entry(0, access_level=rule.push_access_level)],
                    "merge": [entry(0, access_level=rule.merge_access_level)],
                },
            )
            for rule in _group_rules(fake, path)
        ]

    def covers(self, branch: str) -> bool:
        """Whether any rule matches the branch."""
        return any(matches(pattern, branch) for pattern, _ in self._rules)

    def may(self, place: Place, branch: str) -> bool:
        """Whether the token's user may push or merge: one matching rule that lets it in is enough."""
        ways = [held[place] for pattern, held in self._rules if matches(pattern, branch)]
        return any(_lets_in(self._fake, way) for way in ways) if ways else self._fake.role >= DEVELOPERS

    def may_update(self, branch: str) -> bool:
        """Whether a merge request into the branch may be merged: by whoever may push, or may merge."""
        return self.may("push", branch) or self.may("merge", branch)


def protect_default(fake: FakeGitLab, path: str, branch: str) -> None:
    """What GitLab does by itself when a project gets its default branch: fully protected, unless a rule covers it."""
    if not Guard(fake, path).covers(branch):
        protection = BranchProtection(require_pull_request=False)
        fake.forge.put_rule(path, branch, protection, {"push": [_fresh(fake)], "merge": [_fresh(fake)]})


def _fresh(fake: FakeGitLab, **known: Any) -> dict[str, Any]:
    return entry(fake.next_id(), **known)


# bodies


def _shown_entry(one: Mapping[str, Any], place: str, *, premium: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": one["id"],
        "access_level": one["access_level"],
        "access_level_description": _LEVELS.get(one["access_level"], "Maintainers"),
    }
    if place == "push":
        shown["deploy_key_id"] = one["deploy_key_id"]
    if premium:
        shown |= {"user_id": one["user_id"], "group_id": one["group_id"]}
    for key, name in (("user_id", "User"), ("group_id", "Group"), ("deploy_key_id", "Deploy key")):
        if one[key] is not None:
            shown["access_level_description"] = f"{name} {one[key]}"
    return shown


def _shown(fake: FakeGitLab, rule: Rule) -> dict[str, Any]:
    held = levels(rule)
    body: dict[str, Any] = {
        "id": rule.id,
        "name": rule.pattern,
        "push_access_levels": [_shown_entry(one, "push", premium=fake.premium) for one in held["push"]],
        "merge_access_levels": [_shown_entry(one, "merge", premium=fake.premium) for one in held["merge"]],
        "allow_force_push": not rule.protection.block_force_push,
    }
    if fake.premium:
        body["unprotect_access_levels"] = [_shown_entry(one, "unprotect", premium=True) for one in held["unprotect"]]
        body["code_owner_approval_required"] = _owners(rule)
        body["inherited"] = False
    return body


def _shown_group(index: int, rule: GroupRule) -> dict[str, Any]:
    number = 900_000 + index * 10
    push, merge = (
        _shown_entry(entry(number + i, access_level=level), place, premium=True)
        for i, (place, level) in enumerate((("push", rule.push_access_level), ("merge", rule.merge_access_level)), 1)
    )
    return {
        "id": number,
        "name": rule.name,
        "push_access_levels": [push],
        "merge_access_levels": [merge],
        "allow_force_push": rule.allow_force_push,
        "unprotect_access_levels": [],
        "code_owner_approval_required": False,
        "inherited": True,
    }


# endpoints


def list_rules(call: Call, project: str) -> Response:
    """The project's own rules, then those of its groups."""
    record = call.project(project)
    shown = [_shown(call.fake, rule) for rule in call.forge.rules(record.path)]
    shown += [_shown_group(i, rule) for i, rule in enumerate(_group_rules(call.fake, record.path))]
    wanted = call.text("search")
    return call.page([one for one in shown if wanted in one["name"]], "gl-rules", id=record.id)


def get_rule(call: Call, project: str, name: str) -> Response:
    """One rule of the project's own, by its exact name."""
    return reply(_shown(call.fake, _found(call, call.project(project).path, name)), "gl-rule")


def _found(call: Call, path: str, name: str) -> Rule:
    for rule in call.forge.rules(path):
        if rule.pattern == name:
            return rule
    raise answers.record_missing("gl-rule-missing")


def create_rule(call: Call, project: str) -> Response:
    """Protect a branch or a wildcard; a name that is protected already is 409."""
    record = call.writable(project, MAINTAINER)
    [name] = call.need("name")
    if any(rule.pattern == name for rule in call.forge.rules(record.path)):
        raise Refusal(409, f"Protected branch '{name}' already exists", "gl-protected-exists")
    settings = {place: _created(call, place) for place in ("push", "merge")}
    settings["unprotect"] = _created(call, "unprotect") if call.fake.premium else []
    force, owners = bool(call.flag("allow_force_push")), bool(_asked_owners(call))
    rule = _put(call, record.path, name, settings, BranchProtection.nothing(), force=force, owners=owners)
    return reply(_shown(call.fake, rule), "gl-rule-created", status=201, effect=True)


def _created(call: Call, place: str) -> list[dict[str, Any]]:
    level = call.choice(f"{place}_access_level", tuple(_LEVELS))
    asked = _granular(call, place)
    if asked:
        return [_fresh(call.fake, **one) for one in asked]
    return [_fresh(call.fake, access_level=level)] if place != "unprotect" or level is not None else []


def _granular(call: Call, place: str) -> list[Mapping[str, Any]]:
    """``allowed_to_push`` and its like. The free tier declares it for deploy keys alone, and drops the rest."""
    asked = call.params.get(f"allowed_to_{place}") or []
    if not isinstance(asked, list) or not all(isinstance(one, dict) for one in asked):
        raise answers.invalid(f"allowed_to_{place} is invalid")
    for index, one in enumerate(asked):
        if one.get("access_level") not in (None, *_LEVELS):
            raise answers.invalid(f"allowed_to_{place}[{index}][access_level] does not have a valid value")
    if call.fake.premium:
        return asked
    return [one for one in asked if place == "push" and one.get("deploy_key_id") is not None]


def _asked_owners(call: Call) -> bool | None:
    return call.flag("code_owner_approval_required") if call.fake.premium else None


def update_rule(call: Call, project: str, name: str) -> Response:
    """Change a rule in place. On the free tier that is ``allow_force_push`` alone: levels are dropped, with 200."""
    record = call.writable(project, MAINTAINER)
    if not call.fake.has_patch:
        raise Refusal(404, {"error": "404 Not Found"}, "gl-rule-patch-missing")
    rule = _found(call, record.path, name)
    settings = {place: _changed(call, place, entries) for place, entries in levels(rule).items()}
    force, owners = call.flag("allow_force_push"), _asked_owners(call)
    force = not rule.protection.block_force_push if force is None else force
    owners = _owners(rule) if owners is None else owners
    changed = _put(call, record.path, name, settings, rule.protection, force=force, owners=owners)
    effect = _shown(call.fake, changed) != _shown(call.fake, rule)
    fact = "gl-rule-patched" if call.fake.premium else "gl-rule-patch-free"
    return reply(_shown(call.fake, changed), fact, effect=effect)


def _changed(call: Call, place: str, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = {one["id"]: dict(one) for one in entries}
    for asked in _granular(call, place):
        number = asked.get("id")
        if number is None:
            fresh = _fresh(call.fake, **asked)
            kept[fresh["id"]] = fresh
        elif number not in kept:
            raise answers.record_missing("gl-rule-missing")
        elif asked.get("_destroy"):
            del kept[number]
        else:
            kept[number] |= {k: v for k, v in asked.items() if k != "_destroy"}
    roles = [one["access_level"] for one in kept.values() if not _is_special(one)]
    if len(set(roles)) < len(roles):
        text = f"{_PLACES[place]} access levels access level has already been taken"
        raise Refusal(422, [text], "gl-rule-level-taken")
    return list(kept.values())


def _put(
    call: Call,
    path: str,
    name: str,
    settings: Mapping[str, Any],
    before: BranchProtection,
    *,
    force: bool,
    owners: bool,
) -> Rule:
    """Put the rule; what the forge holds of it besides the levels (approvals, checks) stays."""
    closed = not is_open(settings["push"])
    kept = before if closed else replace(before, required_approvals=0, dismiss_stale_approvals=False)
    protection = replace(
        kept,
        require_pull_request=closed,
        enforce_admins=closed,
        block_force_push=not force,
        require_code_owner_review=closed and owners,
    )
    return call.forge.put_rule(path, name, protection, {**settings, "code_owner": owners})


def delete_rule(call: Call, project: str, name: str) -> Response:
    """Unprotect: the rule is gone, and with it everything that it asked for."""
    record = call.writable(project, MAINTAINER)
    try:
        call.forge.delete_rule(record.path, name)
    except NotFoundError:
        raise answers.record_missing("gl-rule-missing") from None
    return reply(None, "gl-rule-deleted", status=204, effect=True)
