"""Fixtures for GitLabProvider's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import responses

from gitprovider.gitlab import GitLabProvider
from tests.gitlab.world import World


@pytest.fixture
def rsps() -> Iterator[responses.RequestsMock]:
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


@pytest.fixture
def make_world(tmp_path: Path, rsps: responses.RequestsMock) -> Callable[..., World]:
    def make(**knobs: Any) -> World:
        return World(tmp_path / "forge", rsps, **knobs)

    return make


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """gitlab.com, tier Free."""
    return make_world()


@pytest.fixture
def provider(world: World) -> Iterator[GitLabProvider]:
    with world.provider() as provider:
        yield provider
