"""A forge in a folder of its own, with one repository whose main branch has one commit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gitprovider import PutFile
from gitprovider.local import Forge, LocalProvider
from tests.support.local_forge import REPO


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where the forge is; nothing is there yet."""
    return tmp_path / "forge"


@pytest.fixture
def now() -> Callable[[], datetime]:
    """A clock that a minute passes on between two looks."""
    moment = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)

    def tick() -> datetime:
        nonlocal moment
        moment += timedelta(minutes=1)
        return moment

    return tick


@pytest.fixture
def forge(root: Path, now: Callable[[], datetime]) -> Forge:
    """A forge with the repository ``REPO``: README.md on main."""
    forge = Forge(root, now=now)
    forge.create_repo(REPO)
    forge.commit_changes(REPO, "main", [PutFile(path="README.md", content="# Widgets\n")], message="first")
    return forge


@pytest.fixture
def provider(forge: Forge, root: Path, now: Callable[[], datetime]) -> LocalProvider:
    """LocalProvider on that forge."""
    return LocalProvider(root, now=now)


@pytest.fixture
def git_dir(forge: Forge) -> Path:
    """The repository's directory."""
    return forge.repo(REPO).git_dir
