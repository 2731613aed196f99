"""A clock that the tests move."""

from __future__ import annotations

import pytest

from tests.resolve.memory import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()
