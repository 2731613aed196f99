"""Endpoints for protected branches: https://docs.gitlab.com/api/protected_branches/ ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gitprovider.errors import NotFoundError
from gitprovider.fakes.gitlab import access, responses
from gitprovider.fakes.gitlab.call import Call, chosen, truth
from gitprovider.fakes.gitlab.responses import Refusal, reply
from gitprovider.fakes.gitlab.state import ADMINISTRATORS, DEVELOPERS, MAINTAINERS, NO_ONE, GroupRule, State
from gitprovider.fakes.http import Response
from gitprovider.local.database import RepoRecord, Rule
from gitprovider.models import BranchProtection

_LEVELS = {
    NO_ONE: "No one",
    DEVELOPERS: "Developers + Maintainers",
    MAINTAINERS: "Maintainers",
    ADMINISTRATORS: "Administrators",
}


# Bodies


def _code_owners(rule: Rule) -> bool:
    return bool(rule.settings.get("code_owner", rule.protection.require_code_owner_review))


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


def _shown(state: State, rule: Rule) -> dict[str, Any]:
    entries = access.levels(rule)
    body: dict[str, Any] = {
        "id": rule.id,
        "name": rule.pattern,
        "push_access_levels": [_shown_entry(one, "push", premium=state.premium) for one in entries["push"]],
        "merge_access_levels": [_shown_entry(one, "merge", premium=state.premium) for one in entries["merge"]],
        "allow_force_push": not rule.protection.block_force_push,
    }
    if state.premium:
        body["unprotect_access_levels"] = [_shown_entry(one, "unprotect", premium=True) for one in entries["unprotect"]]
        body["code_owner_approval_required"] = _code_owners(rule)
        body["inherited"] = False
    return body


def _shown_group(index: int, rule: GroupRule) -> dict[str, Any]:
    number = 900_000 + index * 10
    push, merge = (
        _shown_entry(access.entry(number + i, access_level=level), place, premium=True)
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


# Endpoints


def list_rules(call: Call, project: str) -> Response:
    """The project's own rules, then the rules of its groups."""
    call.only("search")
    record = _readable(call, project)
    shown = [_shown(call.state, rule) for rule in call.forge.rules(record.path)]
    shown += [_shown_group(i, rule) for i, rule in enumerate(access.group_rules(call.state, record.path))]
    wanted = call.text("search")
    return call.page([one for one in shown if wanted in one["name"]], "gl-rules", id=record.id)


def get_rule(call: Call, project: str, name: str) -> Response:
    """One of the project's own rules, by its exact name."""
    return reply(_shown(call.state, _found(call, _readable(call, project).path, name)), "gl-rule")


def _readable(call: Call, project: str) -> RepoRecord:
    """The project, if its rules may be read: only with a token, even if the project is public."""
    record = call.project(project)
    if not call.state.acting:
        raise responses.forbidden("gl-forbidden")
    return record


def _found(call: Call, path: str, name: str) -> Rule:
    for rule in call.forge.rules(path):
        if rule.pattern == name:
            return rule
    raise responses.record_missing("gl-rule-missing")


def create_rule(call: Call, project: str) -> Response:
    """Protect a branch or a wildcard. A name that is already protected gets 409."""
    record = call.writable(project, MAINTAINERS)
    [name] = call.require("name")
    if any(rule.pattern == name for rule in call.forge.rules(record.path)):
        raise Refusal(409, f"Protected branch '{name}' already exists", "gl-protected-exists")
    settings = {place: _created(call, place) for place in ("push", "merge")}
    settings["unprotect"] = _created(call, "unprotect") if call.state.premium else []
    force, owners = bool(call.flag("allow_force_push")), bool(_asked_owners(call))
    rule = _put(call, record.path, name, settings, BranchProtection.nothing(), force=force, owners=owners)
    return reply(_shown(call.state, rule), "gl-rule-created", status=201, effect=True)


def _created(call: Call, place: str) -> list[dict[str, Any]]:
    level = call.choice(f"{place}_access_level", tuple(_LEVELS))
    asked = _granular(call, place)
    if asked:
        return [access.fresh_entry(call.state, **one) for one in asked]
    return [access.fresh_entry(call.state, access_level=level)] if place != "unprotect" or level is not None else []


def _granular(call: Call, place: str) -> list[Mapping[str, Any]]:
    """``allowed_to_push`` and similar parameters. The free tier accepts deploy keys only, and drops other entries."""
    asked = call.params.get(f"allowed_to_{place}") or []
    if not isinstance(asked, list) or not all(isinstance(one, dict) for one in asked):
        raise responses.invalid(f"allowed_to_{place} is invalid")
    asked = [_typed(f"allowed_to_{place}[{index}]", one) for index, one in enumerate(asked)]
    if call.state.premium:
        return asked
    return [one for one in asked if place == "push" and one.get("deploy_key_id") is not None]


def _typed(name: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with its level, ids and ``_destroy`` as numbers and a boolean: a form has them as text."""
    entry = dict(asked)
    for key in entry.keys() & {"id", "user_id", "group_id", "deploy_key_id"}:
        if isinstance(entry[key], str):
            if not entry[key].isdecimal():
                raise responses.invalid(f"{name}[{key}] is invalid")
            entry[key] = int(entry[key])
    if "access_level" in entry:
        entry["access_level"] = chosen(f"{name}[access_level]", entry["access_level"], tuple(_LEVELS))
    if "_destroy" in entry:
        entry["_destroy"] = truth(f"{name}[_destroy]", entry["_destroy"])
    return entry


def _asked_owners(call: Call) -> bool | None:
    return call.flag("code_owner_approval_required") if call.state.premium else None


def update_rule(call: Call, project: str, name: str) -> Response:
    """Change a rule. The free tier changes ``allow_force_push`` only: it drops access levels and returns 200."""
    record = call.writable(project, MAINTAINERS)
    if not call.state.has_patch:
        raise Refusal(404, {"error": "404 Not Found"}, "gl-rule-patch-missing")
    rule = _found(call, record.path, name)
    settings = {place: _changed(call, place, entries) for place, entries in access.levels(rule).items()}
    force, owners = call.flag("allow_force_push"), _asked_owners(call)
    force = not rule.protection.block_force_push if force is None else force
    owners = _code_owners(rule) if owners is None else owners
    changed = _put(call, record.path, name, settings, rule.protection, force=force, owners=owners)
    effect = _shown(call.state, changed) != _shown(call.state, rule)
    fact = "gl-rule-patched" if call.state.premium else "gl-rule-patch-free"
    return reply(_shown(call.state, changed), fact, effect=effect)


def _changed(call: Call, place: str, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = {one["id"]: dict(one) for one in entries}
    for asked in _granular(call, place):
        number = asked.get("id")
        if number is None:
            fresh = access.fresh_entry(call.state, **asked)
            kept[fresh["id"]] = fresh
        elif number not in kept:
            raise responses.record_missing("gl-rule-missing")
        elif asked.get("_destroy"):
            del kept[number]
        else:
            kept[number] |= {k: v for k, v in asked.items() if k != "_destroy"}
    roles = [one["access_level"] for one in kept.values() if not access.is_special(one)]
    if len(set(roles)) < len(roles):
        text = f"{access.PLACES[place]} access levels access level has already been taken"
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
    """Store the rule. Approvals and checks, which have no access level, stay."""
    closed = not access.is_open(settings["push"])
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
    """Delete a rule."""
    record = call.writable(project, MAINTAINERS)
    try:
        call.forge.delete_rule(record.path, name)
    except NotFoundError:
        raise responses.record_missing("gl-rule-missing") from None
    return reply(None, "gl-rule-deleted", status=204, effect=True)
