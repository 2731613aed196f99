"""Random calls and faults on all three providers: sent once, outcome true, resolve right, ensure converges."""

from __future__ import annotations

import pytest

from tests.support import soak
from tests.support.hosts import KINDS, Kind

every_host = pytest.mark.parametrize("kind", KINDS)


@every_host
def test_some_sequences(kind: Kind) -> None:
    """60 sequences over the three hosts."""
    soak.run(kind, 20)


@pytest.mark.soak
@every_host
def test_many_sequences(kind: Kind) -> None:
    """2,000 sequences over the three hosts."""
    soak.run(kind, 667)
