"""Each provider fits the protocols by its structure: mypy checks this file, and pytest that it says what is true."""

from __future__ import annotations

from gitprovider.contract import GitProviderContract
from gitprovider.local import LocalProvider
from gitprovider.state import HostState
from gitprovider.testing import Rig
from tests.rigs import LocalRig


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


def test_no_provider_inherits_the_protocols() -> None:
    """The fit is structural: a third party's provider needs nothing of ours in its bases."""
    assert GitProviderContract not in LocalProvider.__mro__
    assert HostState not in LocalProvider.__mro__
