"""The contract's docstrings are the specification, and whoever hovers over an operation sees them."""

from __future__ import annotations

import inspect

import pytest

from gitprovider._core.provider import Provider
from gitprovider.aio import AsyncGitProvider
from gitprovider.contract import GitProviderContract, HostState
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider
from gitprovider.local import LocalProvider

OPERATIONS = [name for name in vars(GitProviderContract) if not name.startswith("_")]
READS = [name for name, member in vars(HostState).items() if not name.startswith("_") and inspect.isfunction(member)]
OURS = [Provider, GitHubProvider, GitLabProvider, LocalProvider]


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_says_what_it_takes_and_raises(name: str) -> None:
    """In the sections that readers know."""
    text = inspect.getdoc(getattr(GitProviderContract, name))

    assert text
    assert "\nArgs:\n" in text
    assert "\nRaises:\n" in text


@pytest.mark.parametrize("provider", [*OURS, AsyncGitProvider])
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_has_the_text_of_the_contract(name: str, provider: type) -> None:
    """Also on the class of one host, and on the coroutines."""
    assert inspect.getdoc(getattr(provider, name)) == inspect.getdoc(getattr(GitProviderContract, name))


@pytest.mark.parametrize("provider", OURS)
@pytest.mark.parametrize("name", READS)
def test_a_read_of_the_state_has_the_text_of_host_state(name: str, provider: type) -> None:
    """What ``resolve`` and ``ensure`` stand on is specified as well."""
    text = inspect.getdoc(getattr(HostState, name))

    assert text
    assert inspect.getdoc(getattr(provider, name)) == text


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_signature_is_that_of_the_contract(name: str) -> None:
    """The same parameters, annotations and defaults; a coroutine differs in being one."""
    asked = inspect.signature(getattr(GitProviderContract, name))

    assert inspect.signature(getattr(Provider, name)) == asked
    assert inspect.signature(getattr(AsyncGitProvider, name)) == asked
