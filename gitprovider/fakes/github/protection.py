"""Classic branch protection: its endpoints, and how a rule of the forge stores a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gitprovider.fakes.github.bodies import Bodies, Body, is_private, setting
from gitprovider.fakes.github.call import Call
from gitprovider.fakes.github.responses import Refusal, not_supplied, reply, typed
from gitprovider.fakes.http import Response
from gitprovider.local.database import Rule
from gitprovider.local.protection import matches
from gitprovider.models import BranchProtection

# The keys of a rule's settings: the complete request, and whether commits must be signed, which no request can set.
_KEY = "github"
_SIGNATURES = "signatures"
_REQUIRED = ("required_status_checks", "enforce_admins", "required_pull_request_reviews", "restrictions")
_FLAGS = (
    "required_linear_history",
    "allow_force_pushes",
    "allow_deletions",
    "block_creations",
    "required_conversation_resolution",
    "lock_branch",
    "allow_fork_syncing",
)
_REVIEW_FLAGS = ("dismiss_stale_reviews", "require_code_owner_reviews", "require_last_push_approval")

Request = Mapping[str, Any]


def one_rule_applies(rules: Sequence[Rule]) -> BranchProtection:
    """The protection of a branch: its exact rule comes before wildcards, and older wildcards before newer ones."""
    return applying(rules).protection


def applying(rules: Sequence[Rule]) -> Rule:
    """The one rule that applies to a branch, of those that match it."""
    return min(rules, key=lambda rule: ("*" in rule.pattern, rule.id))


def _accepted(body: Request, current: Request | None, *, org: bool, logins: frozenset[str]) -> dict[str, Any]:
    """The request with every key filled in.

    Args:
        current: what the branch's rule stores so far.
        org: whether an organization owns the repository.
        logins: who may be named. GitHub drops others without an error.

    Raises:
        Refusal: a required key is absent, or a value is not allowed.
    """
    if absent := [name for name in _REQUIRED if name not in body]:
        raise not_supplied("gh-protection-schema", absent)
    people = _people(logins)
    reviews, checks = body["required_pull_request_reviews"], body["required_status_checks"]
    if body["restrictions"] is not None and not org:
        raise Refusal("gh-protection-restrictions")
    admins = body["enforce_admins"]
    return {
        "required_status_checks": None if checks is None else _checks(checks),
        # null does not turn it off: the current value stays.
        "enforce_admins": bool((current or {}).get("enforce_admins")) if admins is None else bool(admins),
        "required_pull_request_reviews": None if reviews is None else _reviews(reviews, people),
        "restrictions": None if body["restrictions"] is None else people(body["restrictions"]),
        **{name: bool(body.get(name)) for name in _FLAGS},
    }


def _checks(asked: Request) -> dict[str, Any]:
    checks = asked.get("checks")
    if checks is None:
        checks = [{"context": context} for context in typed("contexts", asked.get("contexts") or [], list)]
    # -1 means any app; the response has null for it. GitHub picks an app that is left out. The fake server has none.
    return {
        "strict": bool(asked.get("strict")),
        "checks": [
            {
                "context": typed("context", typed("checks", check, dict).get("context"), str),
                "app_id": check.get("app_id") if check.get("app_id") != -1 else None,
            }
            for check in typed("checks", checks, list)
        ],
    }


def _reviews(asked: Request, people: Callable[[Request], dict[str, list[str]]]) -> dict[str, Any]:
    count = asked.get("required_approving_review_count", 1)
    if not 0 <= typed("required_approving_review_count", count, int) <= 6:
        raise Refusal("gh-protection-approvals", value=count)
    return {
        **{name: bool(asked.get(name)) for name in _REVIEW_FLAGS},
        "required_approving_review_count": count,
        **{
            name: people(asked[name])
            for name in ("dismissal_restrictions", "bypass_pull_request_allowances")
            if asked.get(name)
        },
    }


def _people(logins: frozenset[str]) -> Callable[[Request], dict[str, list[str]]]:
    def known(named: Request) -> dict[str, list[str]]:
        def listed(kind: str) -> list[str]:
            return [typed(kind, one, str) for one in typed(kind, named.get(kind) or [], list)]

        typed("restrictions", named, dict)
        return {
            "users": [login for login in listed("users") if login in logins],
            "teams": listed("teams"),
            "apps": listed("apps"),
        }

    return known


def _modelled(kept: Request) -> BranchProtection:
    """The library's model of a request."""
    reviews, checks = kept["required_pull_request_reviews"], kept["required_status_checks"]
    return BranchProtection(
        require_pull_request=reviews is not None,
        required_approvals=reviews["required_approving_review_count"] if reviews else 0,
        required_checks=tuple(check["context"] for check in checks["checks"]) if checks else (),
        dismiss_stale_approvals=bool(reviews and reviews["dismiss_stale_reviews"]),
        require_code_owner_review=bool(reviews and reviews["require_code_owner_reviews"]),
        require_linear_history=kept["required_linear_history"],
        enforce_admins=kept["enforce_admins"],
        block_force_push=not kept["allow_force_pushes"],
        block_deletion=not kept["allow_deletions"],
    )


def kept_by(rule: Rule) -> dict[str, Any]:
    """The request that a rule stores. For a rule that was made elsewhere, it follows from its protection."""
    if _KEY in rule.settings:
        kept: dict[str, Any] = rule.settings[_KEY]
        return kept
    protection = rule.protection
    reviews = {
        "dismiss_stale_reviews": protection.dismiss_stale_approvals,
        "require_code_owner_reviews": protection.require_code_owner_review,
        "require_last_push_approval": False,
        "required_approving_review_count": protection.required_approvals,
    }
    checks = {"strict": False, "checks": [{"context": name, "app_id": None} for name in protection.required_checks]}
    return {
        "required_status_checks": checks if protection.required_checks else None,
        "enforce_admins": protection.enforce_admins,
        "required_pull_request_reviews": reviews if protection.require_pull_request else None,
        "restrictions": None,
        **dict.fromkeys(_FLAGS, False),
        "required_linear_history": protection.require_linear_history,
        "allow_force_pushes": not protection.block_force_push,
        "allow_deletions": not protection.block_deletion,
    }


def _body(rule: Rule, url: str, bodies: Bodies) -> dict[str, Any]:
    """GitHub's body: features that are off are absent, and each flag is ``{"enabled": …}``.

    Args:
        url: of the branch's protection.
    """
    kept = kept_by(rule)
    shown: dict[str, Any] = {
        "url": url,
        "required_signatures": _signatures(rule, url),
        "enforce_admins": {"url": f"{url}/enforce_admins", "enabled": kept["enforce_admins"]},
        **{name: {"enabled": kept[name]} for name in _FLAGS},
    }
    if (checks := kept["required_status_checks"]) is not None:
        at = f"{url}/required_status_checks"
        contexts = [check["context"] for check in checks["checks"]]
        shown["required_status_checks"] = {"url": at, **checks, "contexts": contexts, "contexts_url": f"{at}/contexts"}
    if (reviews := kept["required_pull_request_reviews"]) is not None:
        at = f"{url}/required_pull_request_reviews"
        body = {"url": at, **reviews}
        if "dismissal_restrictions" in reviews:
            at = f"{url}/dismissal_restrictions"
            body["dismissal_restrictions"] = _shown(reviews["dismissal_restrictions"], at, bodies, urls=True)
        if "bypass_pull_request_allowances" in reviews:
            body["bypass_pull_request_allowances"] = _shown(
                reviews["bypass_pull_request_allowances"], at, bodies, urls=False
            )
        shown["required_pull_request_reviews"] = body
    if kept["restrictions"] is not None:
        shown["restrictions"] = _shown(kept["restrictions"], f"{url}/restrictions", bodies, urls=True)
    return shown


def _signatures(rule: Rule, url: str) -> dict[str, Any]:
    return {"url": f"{url}/required_signatures", "enabled": bool(rule.settings.get(_SIGNATURES))}


def _shown(named: Request, url: str, bodies: Bodies, *, urls: bool) -> dict[str, Any]:
    links = {"url": url, **{f"{kind}_url": f"{url}/{kind}" for kind in ("users", "teams")}} if urls else {}
    if urls and url.endswith("/restrictions"):
        links["apps_url"] = f"{url}/apps"
    return {
        **links,
        "users": [bodies.account(login) for login in named["users"]],
        "teams": [bodies.team(slug) for slug in named["teams"]],
        "apps": [bodies.app(slug) for slug in named["apps"]],
    }


# Endpoints


def get_protection(call: Call, branch: str) -> Response:
    """The protection of a branch."""
    _check_protection_access(call)
    call.forge.head(call.path, branch)
    rule = _exact_rule(call, branch)
    if rule is None and call.state.shows_wildcards:
        covering = [rule for rule in call.forge.rules(call.path) if matches(rule.pattern, branch)]
        rule = applying(covering) if covering else None
    if rule is None:
        raise Refusal("gh-protection-none")
    return reply(_protection(call, branch, rule), "gh-protection")


def put_protection(call: Call, branch: str) -> Response:
    """Replace the protection of a branch."""
    _check_protection_access(call)
    call.forge.head(call.path, branch)
    current = _exact_rule(call, branch)
    objects = ("required_status_checks", "required_pull_request_reviews", "restrictions")
    asked = call.fields({}, dict.fromkeys(objects, dict))
    org = call.bodies.is_org(call.owner)
    before = kept_by(current) if current is not None else None
    kept = _accepted(asked, before, org=org, logins=call.state.logins)
    linear = kept["required_linear_history"]
    if linear and not (setting(call.record, "allow_squash_merge") or setting(call.record, "allow_rebase_merge")):
        raise Refusal("gh-protection-linear")
    signed = current is not None and bool(current.settings.get(_SIGNATURES))
    rule = call.forge.put_rule(call.path, branch, _modelled(kept), {_KEY: kept, _SIGNATURES: signed})
    return reply(_protection(call, branch, rule), "gh-protection-put", effect=kept != before)


def require_signatures(call: Call, branch: str) -> Response:
    """Require signed commits on a branch that has a rule of its own."""
    _check_protection_access(call)
    call.forge.head(call.path, branch)
    if (rule := _exact_rule(call, branch)) is None:
        raise Refusal("gh-protection-none")
    effect = not rule.settings.get(_SIGNATURES)
    rule = call.forge.put_rule(call.path, branch, rule.protection, {**rule.settings, _SIGNATURES: True})
    return reply(_signatures(rule, _url(call, branch)), "gh-signatures", effect=effect)


def delete_protection(call: Call, branch: str) -> Response:
    """Delete the protection of a branch."""
    _check_protection_access(call)
    call.forge.delete_rule(call.path, branch)
    return reply(None, "gh-protection-deleted", status=204, effect=True)


def _exact_rule(call: Call, branch: str) -> Rule | None:
    return next((rule for rule in call.forge.rules(call.path) if rule.pattern == branch), None)


def _protection(call: Call, branch: str, rule: Rule) -> Body:
    return _body(rule, _url(call, branch), call.bodies)


def _url(call: Call, branch: str) -> str:
    return f"{call.bodies.url(call.record)}/branches/{quote(branch)}/protection"


def _check_protection_access(call: Call) -> None:
    if not call.state.admin:
        raise Refusal("gh-protection-no-admin")
    if call.state.plan == "free" and is_private(call.record):
        raise Refusal("gh-plan")
