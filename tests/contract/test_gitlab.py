"""The contract suite on GitLab's dialect, mounted on ``responses``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gitprovider.testing import GitProviderContractTests, Rig
from gitprovider.testing._merges import (
    DeleteSourceBranchCases,
    MergeHeadCases,
    MergePullRequestCases,
    NotMergeableCases,
)
from gitprovider.testing._protection import ProtectBranchCases
from tests.rigs import GitLabRig, gitlab_rig


@pytest.fixture(scope="class")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitLabRig]:
    """A fake of the Free tier."""
    with gitlab_rig(tmp_path_factory.mktemp("forge")) as rig:
        yield rig


@pytest.fixture(scope="class")
def premium_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitLabRig]:
    """A fake of the Premium tier."""
    with gitlab_rig(tmp_path_factory.mktemp("forge"), tier="premium") as rig:
        yield rig


@pytest.fixture(scope="class")
def old_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitLabRig]:
    """A fake of the oldest version that is supported."""
    with gitlab_rig(tmp_path_factory.mktemp("forge"), old=True) as rig:
        yield rig


@pytest.fixture(scope="class")
def computing_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitLabRig]:
    """A fake that computes for three reads at each new head."""
    with gitlab_rig(tmp_path_factory.mktemp("forge"), mergeable_after=3) as rig:
        yield rig


class TestGitLabProvider(GitProviderContractTests):
    """GitLabProvider holds to the contract on the Free tier, with no gap."""

    @pytest.fixture
    def rig(self, host: GitLabRig) -> Rig:
        """One host for all cases: each makes repositories of its own."""
        return host.renewed()


class TestTheOldestGitLab(GitProviderContractTests):
    """GitLabProvider holds to the contract on a server whose GraphQL does not know RefType."""

    @pytest.fixture
    def rig(self, old_host: GitLabRig) -> Rig:
        """One host for all cases: each makes repositories of its own."""
        return old_host.renewed()


class TestProtectionOnPremium(ProtectBranchCases):
    """The other tier changes a rule in place where Free needs a bridge; what comes of it is the same."""

    @pytest.fixture
    def rig(self, premium_host: GitLabRig) -> Rig:
        """One host for all cases: each makes repositories of its own."""
        return premium_host.renewed()


class TestMergingWhileMergeabilityIsComputed(
    MergePullRequestCases, MergeHeadCases, NotMergeableCases, DeleteSourceBranchCases
):
    """Every merge waits for three reads, and ends as it does at once."""

    @pytest.fixture
    def rig(self, computing_host: GitLabRig) -> Rig:
        """One host for all cases: each makes repositories of its own."""
        return computing_host.renewed()
