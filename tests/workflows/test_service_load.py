"""The long load: `make soak`."""

from __future__ import annotations

import asyncio
import pathlib

import pytest

from tests.support.service.load import load, sent_twice
from tests.support.service.running import backend, running


@pytest.mark.soak
@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_a_long_load(tmp_path: pathlib.Path, name: str) -> None:
    """50 clients, 400 requests each, 20,000 on each fake: nothing twice, nothing lost, nobody else's."""
    with backend(name, tmp_path) as behind, running(behind.environment, tmp_path / "lost") as url:
        assert asyncio.run(load(url, 400)) == []
        assert sent_twice(behind) == []
