"""The contract suite on GitHub's dialect, mounted on ``responses``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gitprovider.testing import GitProviderContractTests, Rig
from gitprovider.testing._merges import (
    DeleteSourceBranchCases,
    MergeHeadCases,
    MergePullRequestCases,
    NotMergeableCases,
)
from tests.rigs import github_rig


class TestGitHubProvider(GitProviderContractTests):
    """GitHubProvider holds to the contract, with no gap."""

    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[Rig]:
        """A face over a forge of its own."""
        with github_rig(tmp_path / "forge") as rig:
            yield rig


class TestMergingWhileMergeabilityIsComputed(
    MergePullRequestCases, MergeHeadCases, NotMergeableCases, DeleteSourceBranchCases
):
    """A refusal is read up although GitHub does not know its reason at first, and no merge is sent twice."""

    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[Rig]:
        """A face that computes for three reads at each new head and base."""
        with github_rig(tmp_path / "forge", mergeable_after=3) as rig:
            yield rig
