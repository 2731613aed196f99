"""A stranger's proof: the contract suite, and that resolve, ensure and bootstrap work on a provider of his own."""

from __future__ import annotations

import pathlib
from typing import ClassVar

import pytest

import gitprovider
from gitprovider import GitProviderContract, HostState, Intent
from gitprovider.bootstrap import bootstrap
from gitprovider.testing import GitProviderContractTests

from .host import ToyHost
from .provider import ToyProvider
from .rig import ToyRig


class TestToyProvider(GitProviderContractTests):
    """Every case of the contract, but for one thing that the toy host cannot do yet."""

    gaps: ClassVar[dict[str, str]] = {
        "test_merge_both_sides_are_in_the_merge": "the toy host merges file by file, not line by line",
    }

    @pytest.fixture
    def rig(self) -> ToyRig:
        return ToyRig()


def test_the_provider_fits_both_protocols() -> None:
    """A type checker proves it here, without inheritance."""
    contract: GitProviderContract = ToyProvider(ToyHost())
    state: HostState = ToyProvider(ToyHost())

    assert isinstance(contract, ToyProvider)
    assert isinstance(state, ToyProvider)


def test_bootstrap_works_and_works_again(tmp_path: pathlib.Path) -> None:
    """A directory becomes a repository with a merged pull request; the second run changes nothing."""
    (tmp_path / "a.txt").write_text("a\n")
    host = ToyHost()

    bootstrap(ToyProvider(host), "toys/new", source=tmp_path, pull_request=True)
    mutations = host.mutations
    bootstrap(ToyProvider(host), "toys/new", source=tmp_path, pull_request=True)

    repo = host.repos["toys/new"]
    assert repo.commits[repo.branches["main"]].tree["a.txt"] == (b"a\n", "100644")
    assert {"main", "develop"} <= set(repo.branches)
    assert "main" in repo.rules
    assert host.mutations == mutations


def test_resolve_and_ensure_work() -> None:
    """A stored intent is judged by the toy host's state, and a state that is there is not made again."""
    host = ToyHost()
    provider = ToyProvider(host)
    provider.create_repo("toys/new", auto_init=True)
    head = provider.head("toys/new", "main")
    branch, changed = gitprovider.ensure_branch(provider, "toys/new", "develop", source="main")
    intent = Intent(
        operation="create_branch", provider="toy", repo="toys/new", steps=("create",), branch="develop", source_sha=head
    )

    again, changed_again = gitprovider.ensure_branch(provider, "toys/new", "develop", source="main")
    found = gitprovider.resolve(provider, intent)

    assert (changed, changed_again) == (True, False)
    assert branch.sha == again.sha == head
    assert found.verdict.value == "applied"
