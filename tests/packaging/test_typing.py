"""Each provider fits the protocols by its structure: mypy and pyright check this file, and pytest that it is true."""

from __future__ import annotations

import inspect
from typing import assert_type

import pytest
from github import Github
from gitlab import Gitlab

from gitprovider import (
    BootstrapReport,
    Ensured,
    Intent,
    Provider,
    Repo,
    Resolution,
    bootstrap,
    connect,
    ensure_repo,
    resolve,
)
from gitprovider.aio import AsyncGitProvider
from gitprovider.connect import Options
from gitprovider.contract import GitProviderContract, HostState, InspectableProvider
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider
from gitprovider.local import Forge, LocalProvider
from gitprovider.testing import Rig
from tests.packaging.toyforge.provider import ToyProvider
from tests.packaging.toyforge.rig import ToyRig
from tests.support.rigs import GitHubRig, GitLabRig, LocalRig


def takes_contract(provider: GitProviderContract) -> GitProviderContract:
    return provider


def takes_state(state: HostState) -> HostState:
    return state


def takes_rig(rig: Rig) -> Rig:
    return rig


def check_local(provider: LocalProvider, rig: LocalRig) -> None:
    """Read by the type checkers alone."""
    takes_contract(provider)
    takes_state(provider)
    takes_rig(rig)


def check_github(provider: GitHubProvider, rig: GitHubRig) -> None:
    """Read by the type checkers alone."""
    takes_contract(provider)
    takes_state(provider)
    takes_rig(rig)


def check_gitlab(provider: GitLabProvider, rig: GitLabRig) -> None:
    """Read by the type checkers alone."""
    takes_contract(provider)
    takes_state(provider)
    takes_rig(rig)


def check_functions(github: GitHubProvider, gitlab: GitLabProvider, local: LocalProvider) -> None:
    """Read by the type checkers alone: what takes a provider takes ours, and what is returned has its type."""
    provider: Provider
    for provider in (github, gitlab, local):
        assert_type(ensure_repo(provider, "acme/x"), Ensured[Repo])
        assert_type(resolve(provider, Intent(operation="x", provider="x", repo="x")), Resolution)
        assert_type(bootstrap(provider, "acme/x", source="."), BootstrapReport)
    with github.sdk() as hub, gitlab.sdk() as lab, local.sdk() as forge:
        assert_type(hub, Github)
        assert_type(lab, Gitlab)
        assert_type(forge, Forge)


def check_connect(name: str) -> None:
    """Read by the type checkers alone: the name of the host decides what ``sdk()`` lends."""
    assert_type(connect(name, token="t"), Provider)
    assert_type(connect(), Provider)
    with connect("github").sdk() as hub, connect("gitlab", timeout=0.5).sdk() as lab, connect("local").sdk() as forge:
        assert_type(hub, Github)
        assert_type(lab, Gitlab)
        assert_type(forge, Forge)


def test_the_overloads_of_connect_take_what_it_takes() -> None:
    """A new argument of connect is an error for a type checker where the host is named."""
    taken = inspect.signature(connect).parameters.values()

    assert {argument.name: argument.annotation for argument in taken if argument.name != "name"} == {
        name: str(annotation.__forward_arg__) for name, annotation in Options.__annotations__.items()
    }


async def check_coroutines(provider: AsyncGitProvider) -> None:
    """Read by the type checkers alone."""
    assert_type(await provider.ensure_repo("acme/x"), Ensured[Repo])
    assert_type(await provider.run(ensure_repo, "acme/x"), Ensured[Repo])
    assert_type(await provider.head("acme/x", "main"), str)


def check_third_party(provider: ToyProvider, rig: ToyRig) -> None:
    """Read by the type checkers alone."""
    takes_contract(provider)
    takes_state(provider)
    takes_rig(rig)


def check_swap(local: LocalProvider, github: GitHubProvider, gitlab: GitLabProvider) -> list[GitProviderContract]:
    """Read by the type checkers alone: one list of them all."""
    return [local, github, gitlab]


@pytest.mark.parametrize("provider", [LocalProvider, GitHubProvider, GitLabProvider])
def test_no_provider_inherits_a_body_from_the_protocols(provider: type) -> None:
    """Ours inherit the protocols for their docstrings alone: a body of theirs does nothing and returns None."""
    protocols = {GitProviderContract, HostState, InspectableProvider}
    names = {name for protocol in protocols for name in vars(protocol) if not name.startswith("_")}

    found = {name: next(kind for kind in provider.__mro__ if name in vars(kind)) for name in names}

    assert len(names) == 17
    assert [name for name, kind in found.items() if kind in protocols] == []


def test_a_third_partys_provider_inherits_nothing() -> None:
    """The fit is structural: it needs nothing of ours in its bases."""
    assert ToyProvider.__mro__ == (ToyProvider, object)


@pytest.mark.parametrize("protocol", [GitProviderContract, HostState, Rig])
def test_the_protocols_are_not_checked_at_run_time(protocol: type) -> None:
    """isinstance would look at names alone, and say yes to any signature."""
    with pytest.raises(TypeError):
        isinstance(LocalProvider, protocol)
