"""The table of options that each host honours. ``provider.supports``, the README's table and the tests use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from gitprovider.checks import check_text
from gitprovider.errors import InvalidRequestError, UnsupportedOptionError
from gitprovider.models import BranchProtection, Visibility

Host = Literal["github", "github-enterprise", "gitlab", "gitlab-self-managed", "local"]

# A host without its own entry in a row has the entry of its family.
_FAMILY: Mapping[Host, Host] = {"github-enterprise": "github", "gitlab-self-managed": "gitlab"}


class Support(NamedTuple):
    """Whether a host honours an option. If not, ``reason`` says why and what to do instead."""

    honoured: bool
    reason: str = ""


YES = Support(True)


def _no(reason: str) -> Support:
    return Support(False, reason)


_GITLAB_RULES = "GitLab keeps this as a project setting or approval rule, not on a protected branch; set it there"

OPTIONS: Mapping[str, Mapping[Host, Support]] = {
    "create_repo.visibility=internal": {
        "github": _no("github.com's API makes public and private repositories only; make it private"),
        "github-enterprise": YES,
        "gitlab": _no("gitlab.com has disabled it; make it private, or use a self-managed host, which has it"),
        "gitlab-self-managed": YES,
        "local": YES,
    },
    "create_repo.auto_init": {"github": YES, "gitlab": YES, "local": YES},
    "commit_files.author": {"github": YES, "gitlab": YES, "local": YES},
    "commit_files.executable": {"github": YES, "gitlab": YES, "local": YES},
    "protect_branch.require_pull_request": {"github": YES, "gitlab": YES, "local": YES},
    "protect_branch.required_approvals": {"github": YES, "gitlab": _no(_GITLAB_RULES), "local": YES},
    "protect_branch.required_checks": {"github": YES, "gitlab": _no(_GITLAB_RULES), "local": YES},
    "protect_branch.dismiss_stale_approvals": {"github": YES, "gitlab": _no(_GITLAB_RULES), "local": YES},
    "protect_branch.require_code_owner_review": {
        "github": YES,
        "gitlab": _no("only GitLab's paid tiers have it, and Free drops it silently; set it on the rule by hand"),
        "local": _no("the local forge reads no CODEOWNERS; use required_approvals"),
    },
    "protect_branch.require_linear_history": {
        "github": YES,
        "gitlab": _no("GitLab has it as the project's merge method; choose fast-forward there"),
        "local": YES,
    },
    "protect_branch.enforce_admins": {"github": YES, "gitlab": YES, "local": YES},
    "protect_branch.block_force_push": {"github": YES, "gitlab": YES, "local": YES},
    "protect_branch.block_deletion": {
        "github": YES,
        "gitlab": _no("on GitLab Maintainers may delete any protected branch but the default one, by page or API"),
        "local": YES,
    },
    "open_pull_request.draft": {"github": YES, "gitlab": YES, "local": YES},
    "open_pull_request.labels": {"github": YES, "gitlab": YES, "local": YES},
    "open_pull_request.reviewers": {"github": YES, "gitlab": YES, "local": YES},
    "merge_pull_request.method=merge": {"github": YES, "gitlab": YES, "local": YES},
    "merge_pull_request.method=squash": {"github": YES, "gitlab": YES, "local": YES},
    "merge_pull_request.method=rebase": {"github": YES, "gitlab": YES, "local": YES},
    "merge_pull_request.delete_source_branch": {"github": YES, "gitlab": YES, "local": YES},
}


def support(option: str, host: Host) -> Support:
    """Return the entry of the table for ``option`` and ``host``.

    Raises:
        InvalidRequestError: the option does not exist.
    """
    row = OPTIONS.get(check_text("option", option))
    if row is None:
        raise InvalidRequestError(
            f"option: {option!r} is not an option; see gitprovider.options.OPTIONS", argument="option"
        )
    return row[host] if host in row else row[_FAMILY[host]]


def require(option: str, host: Host) -> None:
    """Raise UnsupportedOptionError if ``host`` cannot honour ``option``."""
    row = support(option, host)
    if not row.honoured:
        raise UnsupportedOptionError(f"{option}: {row.reason}", option=option, hint=row.reason)


def require_rules(rules: BranchProtection, host: Host) -> None:
    """Raise UnsupportedOptionError if ``host`` cannot honour a field of ``rules`` that requires something."""
    for name in rules.missing_from(BranchProtection.nothing()):
        require(f"protect_branch.{name}", host)


def require_visibility(visibility: Visibility, host: Host) -> None:
    """Raise UnsupportedOptionError if ``host`` cannot honour ``visibility``. Every host has PUBLIC and PRIVATE."""
    if visibility is Visibility.INTERNAL:
        require("create_repo.visibility=internal", host)
