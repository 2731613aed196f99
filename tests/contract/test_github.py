"""The contract suite on GitHub's dialect, mounted on ``responses``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gitprovider.testing import GitProviderContractTests, Rig
from gitprovider.testing._commits import (
    CommitFilesCases,
    CommitFilesHeadCases,
    CommitFilesRefusedCases,
    FirstCommitCases,
)
from gitprovider.testing._merges import (
    DeleteSourceBranchCases,
    MergeHeadCases,
    MergePullRequestCases,
    NotMergeableCases,
)
from tests.support.rigs import GitHubRig, github_rig


@pytest.fixture(scope="class")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHubRig]:
    """A fake that answers at once."""
    with github_rig(tmp_path_factory.mktemp("forge")) as rig:
        yield rig


@pytest.fixture(scope="class")
def old_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHubRig]:
    """A fake of the oldest Enterprise Server that is supported."""
    base = "https://github.acme.example/api/v3"
    with github_rig(tmp_path_factory.mktemp("forge"), old=True, base=base) as rig:
        yield rig


@pytest.fixture(scope="class")
def computing_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHubRig]:
    """A fake that computes for three reads at each new head and base."""
    with github_rig(tmp_path_factory.mktemp("forge"), mergeable_after=3) as rig:
        yield rig


class TestGitHubProvider(GitProviderContractTests):
    """GitHubProvider holds to the contract, with no gap."""

    @pytest.fixture
    def rig(self, host: GitHubRig) -> Rig:
        """One host for all cases: each makes repositories of its own."""
        return host.renewed()


@pytest.fixture(scope="class")
def graphql_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHubRig]:
    """A fake with GraphQL in front of it, and a provider that commits with it."""
    with github_rig(tmp_path_factory.mktemp("forge"), commit_api="auto") as rig:
        yield rig


class TestCommitsByGraphQL(CommitFilesCases, CommitFilesHeadCases, CommitFilesRefusedCases, FirstCommitCases):
    """GitHubProvider commits as the contract says with commit_api="auto"."""

    @pytest.fixture
    def rig(self, graphql_host: GitHubRig) -> Rig:
        """One host for all cases: each makes repositories of its own."""
        return graphql_host.renewed()


class TestTheOldestEnterpriseServer(GitProviderContractTests):
    """GitHubProvider holds to the contract on Enterprise Server 3.9, which has no rulesets."""

    @pytest.fixture
    def rig(self, old_host: GitHubRig) -> Rig:
        """One host for all cases: each makes repositories of its own."""
        return old_host.renewed()


class TestMergingWhileMergeabilityIsComputed(
    MergePullRequestCases, MergeHeadCases, NotMergeableCases, DeleteSourceBranchCases
):
    """A refusal is read up although GitHub does not know its reason at first, and no merge is sent twice."""

    @pytest.fixture
    def rig(self, computing_host: GitHubRig) -> Rig:
        """One host for all cases: each makes repositories of its own."""
        return computing_host.renewed()
