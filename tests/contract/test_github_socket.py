"""The contract suite on GitHub's dialect once more, over a loopback port: real connections, real bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gitprovider.testing import GitProviderContractTests, Rig
from tests.rigs import GitHubRig, github_socket_rig


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHubRig]:
    """One served face for all cases: each makes repositories of its own."""
    with github_socket_rig(tmp_path_factory.mktemp("served") / "forge") as rig:
        yield rig


class TestGitHubProviderOverASocket(GitProviderContractTests):
    """GitHubProvider holds to the contract on sockets too. A host of its own address is an Enterprise Server."""

    @pytest.fixture
    def rig(self, served: GitHubRig) -> Iterator[Rig]:
        """The face with a good credential and nothing due."""
        token = served.face.token
        yield served
        served.face.token = token
