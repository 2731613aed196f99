"""GitHub's endpoints of accounts, Apps, repositories, branches and their protection."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from gitprovider.fakes.github import protection
from gitprovider.fakes.github.answers import Refusal, page, reply
from gitprovider.fakes.github.bodies import Body, is_private, setting
from gitprovider.fakes.github.call import Call
from gitprovider.fakes.github.rules import rules_for
from gitprovider.fakes.host import Response, Routes
from gitprovider.local.database import Rule
from gitprovider.local.protection import matches
from gitprovider.models import Visibility

ROUTES = Routes()

_MAX_NAME = 100


# Accounts and Apps


@ROUTES.on("GET", "/user", docs="users/users#get-the-authenticated-user")
def _get_own_user(call: Call) -> Response:
    if call.caller.kind == "installation":
        raise Refusal("gh-app-permission")
    if call.caller.kind != "user":
        raise Refusal("gh-requires-authentication")
    return reply(call.bodies.own_user(call.fake.login, call.fake.since), "gh-own-user")


@ROUTES.on("GET", "/users/{login}", docs="users/users#get-a-user")
def _get_user(call: Call, login: str) -> Response:
    if not call.fake.knows(login):
        raise Refusal("gh-not-found")
    return reply(call.bodies.user(login, call.fake.since), "gh-user")


@ROUTES.on("GET", "/orgs/{org}", docs="orgs/orgs#get-an-organization")
def _get_org(call: Call, org: str) -> Response:
    if not call.bodies.is_org(org):
        raise Refusal("gh-not-found")
    return reply(call.bodies.organization(org, call.fake.since), "gh-org")


@ROUTES.on(
    "GET", "/orgs/{login}/installation", docs="apps/apps#get-an-organization-installation-for-the-authenticated-app"
)
@ROUTES.on("GET", "/users/{login}/installation", docs="apps/apps#get-a-user-installation-for-the-authenticated-app")
def _get_installation(call: Call, login: str) -> Response:
    app = call.fake.app_of(call.caller)
    for number, account in app.installations.items():
        if account.lower() == login.lower():
            return reply(call.bodies.installation(number, app.id, account, call.fake.since), "gh-installation")
    raise Refusal("gh-installation-missing")


@ROUTES.on(
    "POST", "/app/installations/{number}/access_tokens", docs="apps/apps#create-an-installation-access-token-for-an-app"
)
def _create_installation_token(call: Call, number: str) -> Response:
    app = call.fake.app_of(call.caller)
    if not number.isdecimal() or int(number) not in app.installations:
        raise Refusal("gh-installation-missing")
    return reply(call.fake.issue_token(app.installations[int(number)]), "gh-installation-token", status=201)


# Repositories


@ROUTES.on("POST", "/user/repos", docs="repos/repos#create-a-repository-for-the-authenticated-user")
def _create_own_repo(call: Call) -> Response:
    if call.caller.kind == "installation":
        raise Refusal("gh-app-permission")
    asked = call.fields({"name": str}, {"description": str, "private": bool, "auto_init": bool})
    # There is no ``visibility`` here: without ``private`` the repository is public.
    return _create(call, call.fake.login, asked, Visibility.PRIVATE if asked.get("private") else Visibility.PUBLIC)


@ROUTES.on("POST", "/orgs/{org}/repos", docs="repos/repos#create-an-organization-repository")
def _create_org_repo(call: Call, org: str) -> Response:
    if not call.bodies.is_org(org):
        raise Refusal("gh-no-such-org")
    optional = {"description": str, "private": bool, "visibility": str, "auto_init": bool}
    asked = call.fields({"name": str}, optional)
    word = asked.get("visibility") or ("private" if asked.get("private") else "public")
    if word == "internal" and not call.fake.is_enterprise:
        raise Refusal("gh-visibility-internal")
    if word not in {member.value for member in Visibility}:
        raise Refusal("gh-wrong-type", name="visibility", value=word, kind="a visibility")
    return _create(call, org, asked, Visibility(word))


def _create(call: Call, owner: str, asked: Body, visibility: Visibility) -> Response:
    # What a name may not hold becomes a dash, without a word.
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", asked["name"])
    if len(name) > _MAX_NAME:
        raise Refusal("gh-repo-name")
    record = call.forge.create_repo(
        f"{owner}/{name}",
        description=asked.get("description") or "",
        visibility=visibility,
        auto_init=bool(asked.get("auto_init")),
    )
    call.fake.lagging.start(("repo", record.id), call.fake.lag)
    location = {"Location": call.bodies.url(record)}
    return reply(
        call.bodies.repo(record, admin=call.fake.admin), "gh-repo-created", status=201, headers=location, effect=True
    )


@ROUTES.on("GET", "/repos/{owner}/{repo}", docs="repos/repos#get-a-repository")
def _get_repo(call: Call) -> Response:
    anonymous = call.caller.kind == "anonymous"
    return reply(call.bodies.repo(call.record, admin=call.fake.admin, anonymous=anonymous), "gh-repo")


@ROUTES.on("DELETE", "/repos/{owner}/{repo}", docs="repos/repos#delete-a-repository")
def _delete_repo(call: Call) -> Response:
    if not call.fake.admin:
        raise Refusal("gh-admin-rights")
    call.forge.delete_repo(call.path)
    return reply(None, "gh-repo-deleted", status=204, effect=True)


# Branches


@ROUTES.on("GET", "/repos/{owner}/{repo}/branches", docs="branches/branches#list-branches")
def _list_branches(call: Call) -> Response:
    rules = call.forge.rules(call.path)
    found = [_branch(call, name, sha, rules) for name, sha in call.forge.branches(call.path)]
    wanted = call.request.query.get("protected")
    if wanted in ("true", "false"):
        found = [body for body in found if body["protected"] is (wanted == "true")]
    # The links name the repository by its id, wherever the request found it.
    url = f"{call.bodies.api}/repositories/{call.record.id}/branches"
    return page(found, "gh-branches", call.request, url)


@ROUTES.on(
    "GET",
    "/repos/{owner}/{repo}/branches/{branch/}/protection",
    docs="branches/branch-protection#get-branch-protection",
)
def _get_protection(call: Call, branch: str) -> Response:
    _check_protection_access(call)
    call.forge.head(call.path, branch)
    # A wildcard's rule is not shown, though the branch counts as protected.
    if (rule := _exact_rule(call, branch)) is None:
        raise Refusal("gh-protection-none")
    return reply(_protection(call, branch, rule), "gh-protection")


@ROUTES.on(
    "PUT",
    "/repos/{owner}/{repo}/branches/{branch/}/protection",
    docs="branches/branch-protection#update-branch-protection",
)
def _put_protection(call: Call, branch: str) -> Response:
    _check_protection_access(call)
    call.forge.head(call.path, branch)
    held = _exact_rule(call, branch)
    asked = call.fields(
        {}, {"required_status_checks": dict, "required_pull_request_reviews": dict, "restrictions": dict}
    )
    org = call.bodies.is_org(call.owner)
    before = protection.kept_by(held) if held is not None else None
    kept = protection.accepted(asked, before, org=org, logins=call.fake.logins)
    linear = kept["required_linear_history"]
    if linear and not (setting(call.record, "allow_squash_merge") or setting(call.record, "allow_rebase_merge")):
        raise Refusal("gh-protection-linear")
    rule = call.forge.put_rule(call.path, branch, protection.modelled(kept), {protection.KEY: kept})
    return reply(_protection(call, branch, rule), "gh-protection-put", effect=kept != before)


@ROUTES.on(
    "DELETE",
    "/repos/{owner}/{repo}/branches/{branch/}/protection",
    docs="branches/branch-protection#delete-branch-protection",
)
def _delete_protection(call: Call, branch: str) -> Response:
    _check_protection_access(call)
    call.forge.delete_rule(call.path, branch)
    return reply(None, "gh-protection-deleted", status=204, effect=True)


@ROUTES.on("GET", "/repos/{owner}/{repo}/branches/{branch/}", docs="branches/branches#get-a-branch")
def _get_branch(call: Call, branch: str) -> Response:
    sha = call.forge.head(call.path, branch)
    short = _branch(call, branch, sha, call.forge.rules(call.path))
    links = {"self": f"{call.bodies.url(call.record)}/branches/{quote(branch)}"}
    links["html"] = f"{call.bodies.page_url(call.record)}/tree/{quote(branch)}"
    commit = call.bodies.commit(call.record, call.forge.read_commit(call.path, sha))
    return reply({**short, "commit": commit, "_links": links}, "gh-branch")


@ROUTES.on("GET", "/repos/{owner}/{repo}/rules/branches/{branch/}", docs="repos/rules#get-rules-for-a-branch")
def _list_branch_rules(call: Call, branch: str) -> Response:
    url = f"{call.bodies.api}/repositories/{call.record.id}/rules/branches/{quote(branch)}"
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


def _exact_rule(call: Call, branch: str) -> Rule | None:
    return next((rule for rule in call.forge.rules(call.path) if rule.pattern == branch), None)


def _protection(call: Call, branch: str, rule: Rule) -> Body:
    url = f"{call.bodies.url(call.record)}/branches/{quote(branch)}/protection"
    return protection.body(protection.kept_by(rule), url, call.bodies.account)


def _check_protection_access(call: Call) -> None:
    if not call.fake.admin:
        raise Refusal("gh-protection-no-admin")
    if call.fake.plan == "free" and is_private(call.record):
        raise Refusal("gh-plan")
