"""The contract suite on the local forge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gitprovider.local import LocalProvider
from gitprovider.testing import GitProviderContractTests, Rig
from tests.rigs import LocalRig


class TestLocalProvider(GitProviderContractTests):
    """LocalProvider holds to the contract, with no gap."""

    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[Rig]:
        """A forge in a folder of its own."""
        with LocalProvider(tmp_path / "forge") as provider:
            yield LocalRig(tmp_path / "forge", provider)
