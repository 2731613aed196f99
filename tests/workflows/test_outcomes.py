"""The table of outcomes in the decision on them is what the hosts give."""

from __future__ import annotations

import pytest

from tests.support import outcomes
from tests.support.hosts import KINDS, Kind


@pytest.mark.parametrize("kind", KINDS)
def test_the_written_table_is_what_the_host_gives(kind: Kind) -> None:
    """Each fault at each effect step: the outcome, and what resolve finds, which always agrees with the forge."""
    assert outcomes.table(kind, each=False) == outcomes.written(kind)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_of_a_row_leads_to_the_same(kind: Kind) -> None:
    """As above, for every status and header that a row stands for."""
    assert outcomes.table(kind) == outcomes.written(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_undecided_that_a_read_can_decide(kind: Kind) -> None:
    """After settling, each cell says applied or not applied."""
    assert "undecided" not in outcomes.written(kind)
    assert "conflict" not in outcomes.written(kind)
