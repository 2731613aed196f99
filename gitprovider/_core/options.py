"""The table of options that each host honours. ``provider.supports``, the README's table and the tests use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from gitprovider.checks import check_int, check_text
from gitprovider.errors import InvalidRequestError, UnsupportedOptionError
from gitprovider.mutations import MUTATIONS

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

# What a host does not honour. Every other option is honoured everywhere.
_REFUSED: Mapping[str, Mapping[Host, Support]] = {
    "create_repo.visibility=internal": {
        "github": _no("github.com's API makes public and private repositories only; make it private"),
        "github-enterprise": YES,
        "gitlab": _no("gitlab.com has disabled it; make it private, or use a self-managed host, which has it"),
        "gitlab-self-managed": YES,
    },
    "protect_branch.required_approvals": {"gitlab": _no(_GITLAB_RULES)},
    "protect_branch.required_checks": {"gitlab": _no(_GITLAB_RULES)},
    "protect_branch.dismiss_stale_approvals": {"gitlab": _no(_GITLAB_RULES)},
    "protect_branch.require_code_owner_review": {
        "gitlab": _no("only GitLab's paid tiers have it, and Free drops it silently; set it on the rule by hand"),
        "local": _no("the local forge reads no CODEOWNERS; use required_approvals"),
    },
    "protect_branch.require_linear_history": {
        "gitlab": _no("GitLab has it as the project's merge method; choose fast-forward there"),
    },
    "protect_branch.block_deletion": {
        "gitlab": _no("on GitLab Maintainers may delete any protected branch but the default one, by page or API"),
    },
}

OPTIONS: Mapping[str, Mapping[Host, Support]] = {
    option: {"github": YES, "gitlab": YES, "local": YES, **_REFUSED.get(option, {})}
    for mutation in MUTATIONS
    for option in (f"{mutation.operation}.{name}" for name in mutation.optional)
}


# Why pages of a list are not read side by side on the hosts that are not GitHub. GitLab's reason is in its source:
# https://gitlab.com/gitlab-org/gitlab/-/blob/master/lib/gitlab/pagination/gitaly_keyset_pager.rb
_ONE_PAGE: Mapping[str, str] = {
    "gitlab": "GitLab reads all branches for each page, so pages side by side cost it more and save little; leave it 1",
    "local": "the local forge reads a list at once, without pages; leave it out",
}


def check_page_concurrency(value: int, host: Host) -> None:
    """Check ``page_concurrency`` for a host that reads lists one page at a time.

    Raises:
        InvalidRequestError: it is not an int from 1.
        UnsupportedOptionError: it is more than 1.
    """
    if check_int("page_concurrency", value, least=1) > 1:
        reason = _ONE_PAGE[_FAMILY.get(host, host)]
        raise UnsupportedOptionError(f"page_concurrency: {reason}", option="page_concurrency", hint=reason)


def support(option: str, host: Host) -> Support:
    """Return the entry of the table for ``option`` and ``host``.

    Raises:
        InvalidRequestError: the option does not exist.
    """
    row = OPTIONS.get(check_text("option", option))
    if row is None:
        raise InvalidRequestError(
            f"option: {option!r} is not an option; the documentation has the table", argument="option"
        )
    return row[host] if host in row else row[_FAMILY[host]]


def require(option: str, host: Host) -> None:
    """Raise UnsupportedOptionError if ``host`` cannot honour ``option``."""
    row = support(option, host)
    if not row.honoured:
        raise UnsupportedOptionError(f"{option}: {row.reason}", option=option, hint=row.reason)
