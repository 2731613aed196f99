"""A process that is killed around its effect, and restarted with the same key: each effect is carried out once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.crashed import IN_FLIGHT, Point, crash, race
from tests.support.hosts import KINDS, Kind
from tests.support.keyed import ENSURE

# Lines of the call from the moment that its intent is complete. Each mutation has others, and all are in the soak.
SPREAD = (3, 110, 260, 430)


def lines(kind: Kind, name: str) -> list[int]:
    shift = 7 * (KINDS.index(kind) * len(ENSURE) + list(ENSURE).index(name))
    return [line + shift % 90 for line in SPREAD]


@pytest.mark.parametrize("name", ENSURE)
@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_and_a_restart_carry_an_effect_out_once(kind: Kind, name: str, tmp_path: Path) -> None:
    """A restarted worker would send an effect again, or never."""
    points: list[Point] = [*lines(kind, name), *IN_FLIGHT]

    came = {point: crash(kind, name, point, tmp_path / str(point)) for point in points}

    assert {point: (one.effects, one.unresolved) for point, one in came.items()} == dict.fromkeys(points, (1, 0))
    assert [came[point].killed for point in IN_FLIGHT] == [True] * 3
    assert {point: one.restarted.changed for point, one in came.items() if point in IN_FLIGHT} == {
        "lost": True,
        "before": kind == "local",  # there the process itself is the host
        "after": False,
    }


@pytest.mark.soak
@pytest.mark.parametrize("name", ENSURE)
@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_at_any_line_leaves_one_effect(kind: Kind, name: str, tmp_path: Path) -> None:
    """There would be a line at which a kill forgets the mutation."""
    last = crash(kind, name, 0, tmp_path / "0").lines

    came = {line: crash(kind, name, line, tmp_path / str(line)) for line in range(1, last + 1)}

    assert {
        line: (one.effects, one.unresolved) for line, one in came.items() if one.effects != 1 or one.unresolved
    } == {}


@pytest.mark.parametrize("name", ENSURE)
@pytest.mark.parametrize("kind", KINDS)
def test_of_two_processes_with_one_key_one_sends(kind: Kind, name: str, tmp_path: Path) -> None:
    """Two workers that got the same job would both send it."""
    ends, effects = race(kind, name, tmp_path)

    assert effects == 1
    assert "changed True" in ends
    assert [end for end in ends if end not in ("changed True", "changed False", "ConflictError not_applied")] == []
