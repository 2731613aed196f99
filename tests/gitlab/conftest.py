"""Fixtures for GitLabProvider's tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import responses

from gitprovider.gitlab import GitLabProvider
from tests.support.gitlab_world import World


@pytest.fixture
def rsps() -> Iterator[responses.RequestsMock]:
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Forges made once, to be copied: one with the project alone, one where every operation has something to do."""
    root = tmp_path_factory.mktemp("templates")
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        World(root / "plain", mock)
        ready = World(root / "ready", mock)
        ready.pull_request()
        ready.feature("other")
    return {"plain": root / "plain", "ready": root / "ready"}


@pytest.fixture
def make_world(tmp_path: Path, rsps: responses.RequestsMock, templates: dict[str, Path]) -> Callable[..., World]:
    def make(template: str = "plain", **knobs: Any) -> World:
        shutil.copytree(templates[template], tmp_path / "forge")
        return World(tmp_path / "forge", rsps, **knobs)

    return make


@pytest.fixture
def ready(make_world: Callable[..., World]) -> World:
    """A world in which every operation has something to do: merge request 1, and a branch ``other`` without one."""
    return make_world("ready")


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """gitlab.com, tier Free."""
    return make_world()


@pytest.fixture
def provider(world: World) -> Iterator[GitLabProvider]:
    with world.provider() as provider:
        yield provider
