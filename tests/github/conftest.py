"""A GitHub with one repository, for every test that does not bring its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

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
