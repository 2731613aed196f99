"""A GitHub with one repository, for every test that does not bring its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from gitprovider import PutFile
from tests.support.github_hub import Hub, running, wired


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """``acme/widgets`` with a README on main."""
    with running(tmp_path / "forge") as hub:
        hub.given_repo()
        yield hub


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Hub]:
    """The same on a loopback port."""
    with wired(tmp_path / "forge") as hub:
        hub.given_repo()
        yield hub


@pytest.fixture(scope="session")
def key() -> str:
    """An App's private key."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()


@pytest.fixture
def feature(hub: Hub) -> Hub:
    """A branch with a commit of its own."""
    hub.given_branch("feature")
    hub.given_commit("feature", PutFile(path="feature.txt", content="f"))
    return hub
