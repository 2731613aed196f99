"""What protects a branch on GitHub: its classic rule, read before it is tightened, and the rulesets besides it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gitprovider._remote.operation import RemoteOperation, StatusError
from gitprovider._remote.json_reader import JsonReader
from gitprovider.errors import ConflictError, PermissionDeniedError
from gitprovider.github import convert, protection
from gitprovider.github import errors as translate
from gitprovider.github.client import GitHubClient
from gitprovider.github.endpoints import BRANCH, PROTECTION, RULES
from gitprovider.models import BranchProtection


def read(op: RemoteOperation[GitHubClient], repo: str, branch: str) -> tuple[JsonReader | None, BranchProtection | None]:
    """The branch's classic rule, and what holds: that rule's demands, or where there is none the rulesets'.

    Raises:
        ConflictError: it is protected, but by no rule that can be read: by a wildcard's, which a rule of its own
            would replace.
    """
    head = convert.head(op.request("GET", BRANCH, repo=repo, branch=branch))
    if not head.protected:
        return None, None
    if head.classic_rule is not False:
        try:
            rule = JsonReader(op.request("GET", PROTECTION, repo=repo, branch=branch))
            return rule, protection.held(rule)
        except StatusError as exc:
            if translate.fact(exc.response, op) != "gh-protection-none":
                raise
    demanded = protection.from_rulesets(op.request("GET", RULES, repo=repo, branch=branch))
    if head.classic_rule or demanded == BranchProtection.nothing():
        raise ConflictError(
            f"{branch} is protected by a rule that cannot be read, such as a wildcard's",
            hint="a rule for the branch alone would replace it; look at the repository's settings",
        )
    return None, demanded


def check(wanted: BranchProtection, body: Mapping[str, Any], response: JsonReader) -> None:
    """Compare what was asked, and sent as ``body``, with what GitHub answers that it holds.

    Raises:
        PermissionDeniedError: it holds less.
    """
    if weaker := wanted.missing_from(protection.held(response)):
        raise PermissionDeniedError(f"GitHub took the rule and holds less than was asked in: {', '.join(weaker)}")
    if dropped := protection.dropped(body, response):
        raise PermissionDeniedError(
            f"GitHub took the rule without those who could push before: {', '.join(dropped)}",
            hint="they lack write access to the repository",
        )
