"""A GitHub with one repository that has one commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.local.forge import Forge
from tests.support.github_hand import Hand


@pytest.fixture
def github_with(tmp_path: Path) -> Callable[..., Hand]:
    """Build a fake with options, over a forge that has ``acme/widgets`` with a README on ``main``."""

    def build(**options: Any) -> Hand:
        forge = Forge(tmp_path / "forge", combine=FakeGitHub.combine)
        forge.create_repo("acme/widgets", auto_init=True)
        return Hand(FakeGitHub(forge, **options))

    return build


@pytest.fixture
def hub(github_with: Callable[..., Hand]) -> Hand:
    return github_with()
