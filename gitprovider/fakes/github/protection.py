"""Classic branch protection: GitHub's request, what a rule of the forge keeps of it, and GitHub's answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gitprovider.fakes.github.answers import Refusal, typed
from gitprovider.local.database import Rule
from gitprovider.models import BranchProtection

# In a rule's settings the request stands under this key, every part of it spelled out.
KEY = "github"
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
    """What holds for a branch: a rule of just its name beats every wildcard, and the oldest wildcard the others."""
    return applying(rules).protection


def applying(rules: Sequence[Rule]) -> Rule:
    """The one rule of those that match a branch which applies to it."""
    return min(rules, key=lambda rule: ("*" in rule.pattern, rule.id))


def accepted(body: Request, held: Request | None, *, org: bool, logins: frozenset[str]) -> dict[str, Any]:
    """The request with every key spelled out, or GitHub's refusal of it.

    Args:
        held: what the branch's rule keeps so far.
        org: whether an organization owns the repository.
        logins: who may be named; others are dropped without a word, as GitHub does.

    Raises:
        Refusal: a required key is absent, or a value is not allowed.
    """
    if absent := [name for name in _REQUIRED if name not in body]:
        names = ", ".join(f'"{name}"' for name in absent)
        raise Refusal("gh-protection-schema", names=names, verb="wasn't" if len(absent) == 1 else "weren't")
    people = _people(logins)
    reviews, checks = body["required_pull_request_reviews"], body["required_status_checks"]
    if body["restrictions"] is not None and not org:
        raise Refusal("gh-protection-restrictions")
    admins = body["enforce_admins"]
    return {
        "required_status_checks": None if checks is None else _checks(checks),
        # null is no request to turn it off: what held goes on holding.
        "enforce_admins": bool((held or {}).get("enforce_admins")) if admins is None else bool(admins),
        "required_pull_request_reviews": None if reviews is None else _reviews(reviews, people),
        "restrictions": None if body["restrictions"] is None else people(body["restrictions"]),
        **{name: bool(body.get(name)) for name in _FLAGS},
    }


def _checks(asked: Request) -> dict[str, Any]:
    checks = asked.get("checks")
    if checks is None:
        checks = [{"context": context} for context in typed("contexts", asked.get("contexts") or [], list)]
    # -1 stands for any app, which the answer writes as null; an app left out is one that GitHub picks, and the fake
    # knows of none that has reported a check.
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


def modelled(kept: Request) -> BranchProtection:
    """What a request demands, in the library's words."""
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
    """What a rule keeps; of one that was not made through this fake, what its protection comes to."""
    if KEY in rule.settings:
        kept: dict[str, Any] = rule.settings[KEY]
        return kept
    held = rule.protection
    reviews = {
        "dismiss_stale_reviews": held.dismiss_stale_approvals,
        "require_code_owner_reviews": held.require_code_owner_review,
        "require_last_push_approval": False,
        "required_approving_review_count": held.required_approvals,
    }
    checks = {"strict": False, "checks": [{"context": name, "app_id": None} for name in held.required_checks]}
    return {
        "required_status_checks": checks if held.required_checks else None,
        "enforce_admins": held.enforce_admins,
        "required_pull_request_reviews": reviews if held.require_pull_request else None,
        "restrictions": None,
        **dict.fromkeys(_FLAGS, False),
        "required_linear_history": held.require_linear_history,
        "allow_force_pushes": not held.block_force_push,
        "allow_deletions": not held.block_deletion,
    }


def body(kept: Request, url: str, account: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """GitHub's answer: what is off is absent, and each flag is ``{"enabled": …}``.

    Args:
        url: of the branch's protection.
        account: the body of a user.
    """
    answer: dict[str, Any] = {
        "url": url,
        "required_signatures": {"url": f"{url}/required_signatures", "enabled": False},
        "enforce_admins": {"url": f"{url}/enforce_admins", "enabled": kept["enforce_admins"]},
        **{name: {"enabled": kept[name]} for name in _FLAGS},
    }
    if (checks := kept["required_status_checks"]) is not None:
        at = f"{url}/required_status_checks"
        contexts = [check["context"] for check in checks["checks"]]
        answer["required_status_checks"] = {"url": at, **checks, "contexts": contexts, "contexts_url": f"{at}/contexts"}
    if (reviews := kept["required_pull_request_reviews"]) is not None:
        at = f"{url}/required_pull_request_reviews"
        shown = {"url": at, **reviews}
        if "dismissal_restrictions" in reviews:
            at = f"{url}/dismissal_restrictions"
            shown["dismissal_restrictions"] = _shown(reviews["dismissal_restrictions"], at, account, urls=True)
        if "bypass_pull_request_allowances" in reviews:
            shown["bypass_pull_request_allowances"] = _shown(
                reviews["bypass_pull_request_allowances"], at, account, urls=False
            )
        answer["required_pull_request_reviews"] = shown
    if kept["restrictions"] is not None:
        answer["restrictions"] = _shown(kept["restrictions"], f"{url}/restrictions", account, urls=True)
    return answer


def _shown(named: Request, url: str, account: Callable[[str], dict[str, Any]], *, urls: bool) -> dict[str, Any]:
    links = {"url": url, **{f"{kind}_url": f"{url}/{kind}" for kind in ("users", "teams")}} if urls else {}
    if urls and url.endswith("/restrictions"):
        links["apps_url"] = f"{url}/apps"
    # Teams and apps are kept by their slugs; the fake has none to show.
    return {**links, "users": [account(login) for login in named["users"]], "teams": [], "apps": []}
