"""The contract suite on GitHub's dialect, mounted on ``responses``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gitprovider.testing import GitProviderContractTests, Rig
from tests.rigs import github_rig


class TestGitHubProvider(GitProviderContractTests):
    """GitHubProvider holds to the contract, with no gap."""

    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[Rig]:
        """A face over a forge of its own."""
        with github_rig(tmp_path / "forge") as rig:
            yield rig
