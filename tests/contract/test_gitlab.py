"""The contract suite on GitLab's dialect, mounted on ``responses``."""

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
from gitprovider.testing._protection import ProtectBranchCases
from tests.rigs import gitlab_rig


class TestGitLabProvider(GitProviderContractTests):
    """GitLabProvider holds to the contract on the Free tier, with no gap."""

    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[Rig]:
        """A face over a forge of its own."""
        with gitlab_rig(tmp_path / "forge") as rig:
            yield rig


class TestProtectionOnPremium(ProtectBranchCases):
    """The other tier changes a rule in place where Free needs a bridge; what comes of it is the same."""

    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[Rig]:
        """A face of the Premium tier over a forge of its own."""
        with gitlab_rig(tmp_path / "forge", tier="premium") as rig:
            yield rig


class TestMergingWhileMergeabilityIsComputed(
    MergePullRequestCases, MergeHeadCases, NotMergeableCases, DeleteSourceBranchCases
):
    """Every merge waits for three reads, and ends as it does at once."""

    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[Rig]:
        """A face that computes for three reads at each new head."""
        with gitlab_rig(tmp_path / "forge", mergeable_after=3) as rig:
            yield rig
