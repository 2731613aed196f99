"""The contract suite on the local forge."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gitprovider.testing import GitProviderContractTests, Rig
from tests.support.rigs import LocalRig, local_rig


@pytest.fixture(scope="class")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRig]:
    """LocalProvider on a forge in a folder."""
    with local_rig(tmp_path_factory.mktemp("forge")) as rig:
        yield rig


class TestLocalProvider(GitProviderContractTests):
    """LocalProvider holds to the contract, with no gap."""

    @pytest.fixture
    def rig(self, host: LocalRig) -> Rig:
        """One host for all cases: each makes repositories of its own."""
        return host.renewed()
