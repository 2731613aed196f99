"""Endpoints for accounts, Apps, repositories and branches."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from gitprovider._core.wildcards import matches
from gitprovider.fakes.github import protection
from gitprovider.fakes.github.bodies import Body
from gitprovider.fakes.github.call import Call
from gitprovider.fakes.github.responses import Refusal, page, reply
from gitprovider.fakes.github.rulesets import rules_for
from gitprovider.fakes.http import Response
from gitprovider.local.database import Rule
from gitprovider.models import Visibility

_MAX_NAME = 100


# Accounts and Apps


def get_own_user(call: Call) -> Response:
    """The user that the token belongs to."""
    if call.caller.kind == "installation":
        raise Refusal("gh-app-permission")
    if call.caller.kind != "user":
        raise Refusal("gh-requires-authentication")
    return reply(call.bodies.own_user(call.state.login, call.state.since), "gh-own-user")


def get_user(call: Call, login: str) -> Response:
    """A user or organization."""
    if not call.state.knows(login):
        raise Refusal("gh-not-found")
    return reply(call.bodies.user(login, call.state.since), "gh-user")


def get_org(call: Call, org: str) -> Response:
    """An organization."""
    if not call.bodies.is_org(org):
        raise Refusal("gh-not-found")
    return reply(call.bodies.organization(org, call.state.since), "gh-org")


def get_installation(call: Call, login: str) -> Response:
    """The App's installation on an account."""
    app = call.app
    for number, account in app.installations.items():
        if account.lower() == login.lower():
            return reply(call.bodies.installation(number, app.id, account, call.state.since), "gh-installation")
    raise Refusal("gh-installation-missing")


def create_installation_token(call: Call, number: str) -> Response:
    """A token for an installation of the App."""
    app = call.app
    if not number.isdecimal() or int(number) not in app.installations:
        raise Refusal("gh-installation-missing")
    return reply(call.state.issue_token(app.installations[int(number)]), "gh-installation-token", status=201)


# Repositories


def create_own_repo(call: Call) -> Response:
    """Create a repository of the user. There is no ``visibility``: it is public unless ``private`` is set."""
    if call.caller.kind == "installation":
        raise Refusal("gh-app-permission")
    asked = call.fields({"name": str}, {"description": str, "private": bool, "auto_init": bool})
    return _create(call, call.state.login, asked, Visibility.PRIVATE if asked.get("private") else Visibility.PUBLIC)


def create_org_repo(call: Call, org: str) -> Response:
    """Create a repository of an organization."""
    if not call.bodies.is_org(org):
        raise Refusal("gh-no-such-org")
    optional = {"description": str, "private": bool, "visibility": str, "auto_init": bool}
    asked = call.fields({"name": str}, optional)
    word = asked.get("visibility") or ("private" if asked.get("private") else "public")
    if word == "internal" and not call.state.is_enterprise:
        raise Refusal("gh-visibility-internal")
    if word not in {member.value for member in Visibility}:
        raise Refusal("gh-wrong-type", name="visibility", value=word, kind="a visibility")
    return _create(call, org, asked, Visibility(word))


def _create(call: Call, owner: str, asked: Body, visibility: Visibility) -> Response:
    # Characters that a name may not have become a dash, without an error.
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", asked["name"])
    if len(name) > _MAX_NAME:
        raise Refusal("gh-repo-name")
    record = call.forge.create_repo(
        f"{owner}/{name}",
        description=asked.get("description") or "",
        visibility=visibility,
        auto_init=bool(asked.get("auto_init")),
    )
    call.state.stale_reads.start(("repo", record.id), call.state.lag)
    body = call.bodies.repo(record, admin=call.state.admin)
    return reply(body, "gh-repo-created", status=201, headers={"Location": body["url"]}, effect=True)


def get_repo(call: Call) -> Response:
    """A repository."""
    anonymous = call.caller.kind == "anonymous"
    return reply(call.bodies.repo(call.record, admin=call.state.admin, anonymous=anonymous), "gh-repo")


def delete_repo(call: Call) -> Response:
    """Delete a repository."""
    if not call.state.admin:
        raise Refusal("gh-admin-rights")
    call.forge.delete_repo(call.path)
    return reply(None, "gh-repo-deleted", status=204, effect=True)


# Branches


def list_branches(call: Call) -> Response:
    """The branches. The links name the repository by its id."""
    rules = call.forge.rules(call.path)
    found = [_branch(call, name, sha, rules) for name, sha in call.forge.branches(call.path)]
    wanted = call.request.query.get("protected")
    if wanted in ("true", "false"):
        found = [body for body in found if body["protected"] is (wanted == "true")]
    return page(found, "gh-branches", call.request, f"{call.by_id}/branches")


def get_branch(call: Call, branch: str) -> Response:
    """A branch with its head."""
    sha = call.forge.head(call.path, branch)
    short = _branch(call, branch, sha, call.forge.rules(call.path))
    links = {"self": f"{call.bodies.url(call.record)}/branches/{quote(branch)}"}
    links["html"] = f"{call.bodies.page_url(call.record)}/tree/{quote(branch)}"
    commit = call.bodies.commit(call.record, call.forge.read_commit(call.path, sha))
    return reply({**short, "commit": commit, "_links": links}, "gh-branch")


def list_branch_rules(call: Call, branch: str) -> Response:
    """The rulesets' rules for a branch."""
    if call.state.old:
        raise Refusal("gh-no-rulesets")
    url = f"{call.by_id}/rules/branches/{quote(branch)}"
    return page(rules_for(call.record, branch), "gh-branch-rules", call.request, url)


def _branch(call: Call, name: str, sha: str, rules: list[Rule]) -> Body:
    matching = [rule for rule in rules if matches(rule.pattern, name)]
    url = f"{call.bodies.url(call.record)}/branches/{quote(name)}/protection"
    return {
        "name": name,
        "commit": {"sha": sha, "url": f"{call.bodies.url(call.record)}/commits/{sha}"},
        "protected": bool(matching) or bool(rules_for(call.record, name)),
        "protection": _summary(matching),
        "protection_url": url,
    }


def _summary(rules: list[Rule]) -> Body:
    if not rules:
        off = {"enforcement_level": "off", "contexts": [], "checks": []}
        return {"enabled": False, "required_status_checks": off}
    kept = protection.kept_by(protection.applying(rules))
    checks: list[dict[str, Any]] = (kept["required_status_checks"] or {"checks": []})["checks"]
    level = "off" if not checks else "everyone" if kept["enforce_admins"] else "non_admins"
    contexts = [check["context"] for check in checks]
    return {
        "enabled": True,
        "required_status_checks": {"enforcement_level": level, "contexts": contexts, "checks": checks},
    }
