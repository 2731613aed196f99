"""The table of options: complete, explained, and obeyed before any request."""

from dataclasses import fields, replace
from typing import Any, get_args

import pytest

from gitprovider._core.options import OPTIONS, Host, require, support
from gitprovider.errors import InvalidRequestError, UnsupportedOptionError
from gitprovider.models import BranchProtection, Visibility
from gitprovider.mutations import CreateRepo, Mutation, ProtectBranch

HOSTS: tuple[Host, ...] = get_args(Host)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("host", HOSTS)
def test_every_option_has_an_answer_for_every_host(option: str, host: Host) -> None:
    """A refusal says why and what to do instead."""
    row = support(option, host)

    assert row.honoured or len(row.reason) > 20


@pytest.mark.parametrize("field", [field.name for field in fields(BranchProtection)])
@pytest.mark.parametrize("host", HOSTS)
def test_a_rule_is_checked_exactly_when_it_asks_for_something(field: str, host: Host) -> None:
    """Every field of BranchProtection has a row; the neutral value of a field is never refused."""
    asked: dict[str, Any] = {"required_approvals": 1, "required_checks": ("ci",)}
    neutral = replace(BranchProtection.nothing(), require_pull_request=True)
    rules = replace(neutral, **{field: asked.get(field, True)})

    _require(ProtectBranch(branch="main", rules=neutral), host)
    if support(f"protect_branch.{field}", host).honoured:
        _require(ProtectBranch(branch="main", rules=rules), host)
        return
    with pytest.raises(UnsupportedOptionError) as caught:
        _require(ProtectBranch(branch="main", rules=rules), host)
    assert caught.value.option == f"protect_branch.{field}"
    assert caught.value.hint


def test_internal_visibility_is_a_matter_of_the_instance() -> None:
    """The public hosts have disabled it; self-managed ones have it."""
    for host in ("github", "gitlab"):
        with pytest.raises(UnsupportedOptionError):
            _require(CreateRepo(visibility=Visibility.INTERNAL), host)
    _require(CreateRepo(visibility=Visibility.INTERNAL), "gitlab-self-managed")
    _require(CreateRepo(visibility=Visibility.INTERNAL), "github-enterprise")
    _require(CreateRepo(visibility=Visibility.PRIVATE), "gitlab")


def test_an_unknown_option_is_refused() -> None:
    """A misspelt name must not read as unsupported, nor as supported."""
    with pytest.raises(InvalidRequestError):
        require("protect_branch.require_pull_requests", "github")


def _require(asked: Mutation[Any], host: Host) -> None:
    for option in asked.options():
        require(option, host)
