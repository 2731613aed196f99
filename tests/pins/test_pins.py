"""What may not change while the code is rearranged: the goldens, against what the providers do now.

``tests/pins/observe.py`` says what each golden holds, and how one is written anew where a change is meant.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from gitprovider import Intent
from tests.pins.cases import WORLDS
from tests.pins.observe import GOLDENS, golden, observed, suite

# World by world, since a world is observed once for all of its goldens.
PINNED = [(world, name) for world in WORLDS for name, (_, worlds) in GOLDENS.items() if world in worlds]
RECORDS = golden("records-0.1.0")


def reread(record: Mapping[str, Any]) -> Any:
    """What a record is after a service has read it and stored it again."""
    return json.loads(json.dumps(Intent.from_json(record).to_json()))


def changed(written: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Per name what the golden has and what is there now, where they differ."""
    return {
        name: (written.get(name), now.get(name)) for name in {**written, **now} if written.get(name) != now.get(name)
    }


@pytest.mark.parametrize(("world", "name"), PINNED)
def test_a_world_does_what_is_written(world: str, name: str) -> None:
    """Requests, outcomes, steps and evidence of each call are those of the golden."""
    kind, worlds = GOLDENS[name]
    written = golden(name)

    assert list(written) == list(worlds)
    assert changed(written[world], observed(world)[kind]) == {}


def test_the_contract_s_cases_are_those_that_are_written() -> None:
    """A case that is lost or renamed turns no build red by itself, and breaks a third party's gaps."""
    assert changed(golden("suite")["cases"], suite()["cases"]) == {}


@pytest.mark.parametrize("world", WORLDS)
def test_the_written_evidence_is_read(world: str) -> None:
    """What a provider notes now survives being stored, in each of its kinds."""
    records = golden("intents")[world]

    assert changed(records, {name: reread(record) for name, record in records.items()}) == {}


def test_the_evidence_of_0_1_0_is_read() -> None:
    """A service may have stored it before it took the later version, and asks with it afterwards."""
    records = RECORDS["kept"]

    assert changed(records, {name: reread(record) for name, record in records.items()}) == {}


@pytest.mark.parametrize("shape", RECORDS["read"])
def test_other_shapes_that_0_1_0_reads_are_read(shape: str) -> None:
    """A service may store a record by its own means: with nulls, empty lists, or another notation of a time."""
    case = RECORDS["read"][shape]

    assert reread(case["record"]) == case["reads as"]
