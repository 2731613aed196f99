"""Each provider fits the protocols by its structure: mypy checks this file, and pytest that it says what is true."""

from __future__ import annotations

import pytest

from gitprovider.contract import GitProviderContract, HostState
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider
from gitprovider.local import LocalProvider
from gitprovider.testing import Rig
from tests.rigs import GitHubRig, GitLabRig, LocalRig


def takes_contract(provider: GitProviderContract) -> GitProviderContract:
    return provider


def takes_state(state: HostState) -> HostState:
    return state


def takes_rig(rig: Rig) -> Rig:
    return rig


def check_local(provider: LocalProvider, rig: LocalRig) -> None:
    """Read by mypy alone."""
    takes_contract(provider)
    takes_state(provider)
    takes_rig(rig)


def check_github(provider: GitHubProvider, rig: GitHubRig) -> None:
    """Read by mypy alone."""
    takes_contract(provider)
    takes_state(provider)
    takes_rig(rig)


def check_gitlab(provider: GitLabProvider, rig: GitLabRig) -> None:
    """Read by mypy alone."""
    takes_contract(provider)
    takes_state(provider)
    takes_rig(rig)


def check_swap(local: LocalProvider, github: GitHubProvider, gitlab: GitLabProvider) -> list[GitProviderContract]:
    """Read by mypy alone: one list of them all."""
    return [local, github, gitlab]


@pytest.mark.parametrize("provider", [LocalProvider, GitHubProvider, GitLabProvider])
def test_no_provider_inherits_the_protocols(provider: type) -> None:
    """The fit is structural: a third party's provider needs nothing of ours in its bases."""
    assert GitProviderContract not in provider.__mro__
    assert HostState not in provider.__mro__


@pytest.mark.parametrize("protocol", [GitProviderContract, HostState, Rig])
def test_the_protocols_are_not_checked_at_run_time(protocol: type) -> None:
    """isinstance would look at names alone, and say yes to any signature."""
    with pytest.raises(TypeError):
        isinstance(LocalProvider, protocol)
