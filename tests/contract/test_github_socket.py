"""The contract suite on GitHub's dialect once more, over a loopback port: real connections, real bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gitprovider.testing import GitProviderContractTests, Rig
from tests.support.rigs import GitHubRig, github_socket_rig


@pytest.fixture(scope="class")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHubRig]:
    """A fake that is served."""
    with github_socket_rig(tmp_path_factory.mktemp("forge")) as rig:
        yield rig


class TestGitHubProviderOverASocket(GitProviderContractTests):
    """GitHubProvider holds to the contract on sockets too. A host of its own address is an Enterprise Server."""

    @pytest.fixture
    def rig(self, host: GitHubRig) -> Rig:
        """One host for all cases: each makes repositories of its own."""
        return host.renewed()
