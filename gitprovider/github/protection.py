"""Branch protection on GitHub. The classic rule is read and tightened. Rulesets are only read.

PUT replaces the whole rule: a setting that is not sent is lost, except that `enforce_admins: null` keeps its value.
Therefore every key is sent with an explicit value, and settings that the contract does not model are copied from the
current rule. A rule with a setting that PUT cannot express is not touched. What GitHub says to hold afterwards, written
as a PUT again, is compared with what was sent. The body of PUT differs from the response of GET.
https://docs.github.com/rest/branches/branch-protection#update-branch-protection
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import RemoteOperation
from gitprovider._remote.response import BodyError, StatusError
from gitprovider.errors import ConflictError, PermissionDeniedError
from gitprovider.github import convert
from gitprovider.github.client import GitHubClient
from gitprovider.github.endpoints import BRANCH, PROTECTION, RULES, SIGNATURES
from gitprovider.models import BranchProtection
from gitprovider.mutations import ProtectBranch

ANY_APP = -1
_MOST_APPROVALS = 6
_ACTORS = (("users", "login"), ("teams", "slug"), ("apps", "slug"))
_SIGNATURES = "required_signatures"
_KEPT = ("block_creations", "required_conversation_resolution", "lock_branch", "allow_fork_syncing")
_LISTS = ("dismissal_restrictions", "bypass_pull_request_allowances")
# All settings of a rule that this module copies into the body of PUT, by the object that has them.
_KNOWN = {
    "": {
        "required_status_checks",
        "enforce_admins",
        "required_pull_request_reviews",
        "restrictions",
        "required_linear_history",
        "allow_force_pushes",
        "allow_deletions",
        *_KEPT,
        _SIGNATURES,
        "enabled",  # GET may say of the whole rule that it is enabled
    },
    "required_status_checks": {"strict", "contexts", "checks"},
    "required_pull_request_reviews": {
        "dismiss_stale_reviews",
        "require_code_owner_reviews",
        "required_approving_review_count",
        "require_last_push_approval",
        *_LISTS,
    },
    "restrictions": {kind for kind, _ in _ACTORS},
}


class ProtectionCall:
    """State and requests of one ``protect_branch`` call."""

    def __init__(self, op: RemoteOperation[GitHubClient], asked: ProtectBranch) -> None:
        self._op = op
        self._asked = asked

    def run(self) -> BranchProtection:
        """Set the branch's classic rule to the stricter of the current and the requested rules."""
        op, asked = self._op, self._asked
        with op.before("read protection"):
            rule, current = read_protection(op, asked.branch)
            if rule is not None and (foreign := list(_unknown(rule))):
                raise ConflictError(
                    f"the rule of {asked.branch} has settings that would be lost: {', '.join(foreign)}",
                    hint="GitHub replaces a rule as a whole; change this one in the repository's settings",
                )
            wanted = asked.rules if rule is None else asked.rules.stricter(demands(rule))
            body = put_body(wanted, rule)
            op.note(previous_rules=current)
        with op.effect(asked.effect):
            response = JsonReader(op.request("PUT", PROTECTION, repo=op.repo, branch=asked.branch, body=body))
            now = demands(response)
            op.done(asked.effect, now)
        if rule is not None and _enabled(rule, _SIGNATURES) and not _enabled(response, _SIGNATURES):
            # PUT cannot set it, and the rule that was read may be a wildcard's, which the new rule replaces.
            with op.after("keep signatures"):
                kept = op.request("POST", SIGNATURES, repo=op.repo, branch=asked.branch)
                if not JsonReader(kept).bool("enabled"):
                    raise BodyError("GitHub does not require signatures as the rule did before", kept)
                op.done("keep signatures", True)
        with op.after("compare"):
            if weaker := wanted.missing_from(now):
                raise PermissionDeniedError(
                    f"GitHub accepted the rule but protects less than requested: {', '.join(weaker)}"
                )
            if gone := list(lost(body, put_body(now, response))):
                raise PermissionDeniedError(
                    f"GitHub accepted the rule without what held before: {', '.join(gone)}",
                    hint="users, teams and apps without write access to the repository are dropped; the repository's "
                    "settings show the rest",
                )
        return now


def read_protection(
    op: RemoteOperation[GitHubClient], branch: str
) -> tuple[JsonReader | None, BranchProtection | None]:
    """Return the branch's classic rule and its protection. Without a classic rule, the rulesets give the protection.

    Raises:
        ConflictError: the branch is protected by a rule that cannot be read, such as a wildcard rule. A rule for the
            branch itself would replace it.
    """
    head = convert.head(op.read(BRANCH, repo=op.repo, branch=branch))
    if not head.protected:
        return None, None
    if head.classic_rule is not False:
        try:
            rule = op.read(PROTECTION, repo=op.repo, branch=branch)
            return rule, demands(rule)
        except StatusError as exc:
            if op.meaning(exc).code != "not-protected":
                raise
    protection = from_rulesets(_rulesets(op, branch))
    if head.classic_rule or protection == BranchProtection.nothing():
        raise ConflictError(
            f"{branch} is protected by a rule that cannot be read, such as a wildcard rule",
            hint="a rule for this branch would replace it; check the repository's settings",
        )
    return None, protection


def _rulesets(op: RemoteOperation[GitHubClient], branch: str) -> list[JsonReader]:
    """Return the rules of the rulesets for a branch. A server before Enterprise Server 3.10 has no rulesets."""
    try:
        return op.pages(RULES, lambda rule: rule, repo=op.repo, branch=branch)
    except StatusError as exc:
        if op.meaning(exc).code != "no-rulesets":
            raise
        return []


def _unknown(rule: JsonReader) -> Iterator[str]:
    """Yield the settings of a rule that are on and that the body of PUT cannot express."""
    for where, known in _KNOWN.items():
        fields = rule.object_or_none(where) if where else rule
        if fields is not None:
            yield from (f"{where}.{name}".lstrip(".") for name in sorted(fields.settings() - known))


def demands(fields: JsonReader) -> BranchProtection:
    """Convert a ``branch-protection``. A missing object means that the setting is off."""
    reviews = fields.object_or_none("required_pull_request_reviews")
    values: dict[str, Any] = {"require_pull_request": reviews is not None}
    if reviews is not None:
        values |= {
            "required_approvals": min(reviews.int_or_none("required_approving_review_count") or 0, _MOST_APPROVALS),
            "dismiss_stale_approvals": reviews.bool_or_none("dismiss_stale_reviews") or False,
            "require_code_owner_review": reviews.bool_or_none("require_code_owner_reviews") or False,
        }
    return fields.build(
        BranchProtection,
        **values,
        required_checks=tuple(check["context"] for check in _checks(fields)),
        require_linear_history=_enabled(fields, "required_linear_history"),
        enforce_admins=_enabled(fields, "enforce_admins"),
        block_force_push=not _enabled(fields, "allow_force_pushes"),
        block_deletion=not _enabled(fields, "allow_deletions"),
    )


def put_body(rules: BranchProtection, before: JsonReader | None) -> dict[str, Any]:
    """Return the body of the PUT that sets ``rules``. ``before`` is the current rule, or None if there is none."""
    return {
        "required_status_checks": _put_checks(rules, before),
        "enforce_admins": rules.enforce_admins,
        "required_pull_request_reviews": _put_reviews(rules, before),
        "restrictions": _put_actors(before.object_or_none("restrictions")) if before else None,
        "required_linear_history": rules.require_linear_history,
        "allow_force_pushes": not rules.block_force_push,
        "allow_deletions": not rules.block_deletion,
        **{name: before is not None and _enabled(before, name) for name in _KEPT},
    }


def lost(sent: Any, holds: Any, where: str = "") -> Iterator[str]:
    """Yield what one body of PUT sets and another does not, where the other is weaker or names fewer."""
    if isinstance(sent, dict):
        if holds is None and where.endswith("restrictions"):  # nobody may push, and everybody may
            yield where
        for name, value in sent.items():
            yield from lost(value, (holds or {}).get(name), f"{where}.{name}".lstrip("."))
    elif isinstance(sent, list):
        for item in sent:
            if not any(other == item or _same_check(item, other) for other in holds or []):
                yield f"{where} {item['context'] if isinstance(item, dict) else item}"
    elif isinstance(sent, bool) and where.startswith("allow_"):
        if holds != sent and (holds or where in _KEPT):
            yield where
    elif sent and sent > (holds or 0):
        yield where


def _same_check(sent: Any, holds: Any) -> bool:
    return isinstance(sent, dict) and sent == {"context": holds["context"], "app_id": ANY_APP}


def from_rulesets(rules: Iterable[JsonReader]) -> BranchProtection:
    """Convert the rules of ``GET /repos/{owner}/{repo}/rules/branches/{branch}`` to one protection."""
    protection = BranchProtection.nothing()
    for rule in rules:
        protection = protection.stricter(_ruleset_rule(rule))
    return protection


def _ruleset_rule(rule: JsonReader) -> BranchProtection:
    demands: dict[str, Any] = {"require_pull_request": False, "block_force_push": False}
    kind, given = rule.str("type"), rule.object_or_none("parameters")
    match kind:
        case "pull_request":
            demands["require_pull_request"] = True
            if given is not None:
                demands["required_approvals"] = min(
                    given.int_or_none("required_approving_review_count") or 0, _MOST_APPROVALS
                )
                demands["dismiss_stale_approvals"] = given.bool_or_none("dismiss_stale_reviews_on_push") or False
                demands["require_code_owner_review"] = given.bool_or_none("require_code_owner_review") or False
        case "required_status_checks" if given is not None:
            demands["required_checks"] = tuple(
                check.str("context") for check in given.objects("required_status_checks")
            )
        case "required_linear_history":
            demands["require_linear_history"] = True
        case "non_fast_forward":
            demands["block_force_push"] = True
        case "deletion":
            demands["block_deletion"] = True
    return rule.build(BranchProtection, **demands)


def _enabled(fields: JsonReader, name: str) -> bool:
    setting = fields.object_or_none(name)
    return setting is not None and setting.bool("enabled")


def _checks(fields: JsonReader) -> list[dict[str, Any]]:
    """Return the required checks as PUT accepts them. Older servers return only ``contexts`` and no ``checks``."""
    required = fields.object_or_none("required_status_checks")
    if required is None:
        return []
    checks = {
        check.str("context"): check.int_or_none("app_id")
        for check in (required.objects("checks") if "checks" in required else [])
    }
    for context in required.strs("contexts") if "contexts" in required else []:
        checks.setdefault(context, None)
    # In PUT, a missing `app_id` means "the app that set the check last". In GET, null means any app.
    return [{"context": name, "app_id": ANY_APP if app is None else app} for name, app in checks.items()]


def _put_checks(rules: BranchProtection, before: JsonReader | None) -> dict[str, Any] | None:
    required = before.object_or_none("required_status_checks") if before else None
    if required is None and not rules.required_checks:
        return None
    kept = _checks(before) if before else []
    names = {check["context"] for check in kept}
    added = [{"context": name, "app_id": ANY_APP} for name in rules.required_checks if name not in names]
    return {"strict": (required.bool_or_none("strict") or False) if required else False, "checks": kept + added}


def _put_reviews(rules: BranchProtection, before: JsonReader | None) -> dict[str, Any] | None:
    if not rules.require_pull_request:
        return None
    reviews = before.object_or_none("required_pull_request_reviews") if before else None
    body: dict[str, Any] = {
        "dismiss_stale_reviews": rules.dismiss_stale_approvals,
        "require_code_owner_reviews": rules.require_code_owner_review,
        "required_approving_review_count": rules.required_approvals,
        "require_last_push_approval": bool(reviews and reviews.bool_or_none("require_last_push_approval")),
    }
    for name in _LISTS:
        actors = _put_actors(reviews.object_or_none(name)) if reviews else None
        if actors is not None:
            body[name] = actors
    return body


def _put_actors(actors: JsonReader | None) -> dict[str, list[str]] | None:
    """Convert users, teams and apps from the objects of GET to the names that PUT accepts."""
    if actors is None:
        return None
    return {
        kind: [actor.str(name) for actor in actors.objects(kind)] if kind in actors else [] for kind, name in _ACTORS
    }
