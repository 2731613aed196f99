"""The catalogue of known pitfalls, against the cases that are marked with their ids."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path

from gitprovider import fakes

TESTS = Path(__file__).parents[1]
ENTRIES = [json.loads(line) for line in (TESTS / "pitfalls.jsonl").read_text(encoding="utf-8").splitlines()]
IDS = {entry["id"] for entry in ENTRIES}


def marked_in(path: Path) -> list[str]:
    """The ids of every ``pytest.mark.pitfall`` in a file."""
    return [
        argument.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.pitfall"
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def marked(*folders: str) -> set[str]:
    """The ids of every case in these folders."""
    return {id_ for folder in folders for path in (TESTS / folder).rglob("test_*.py") for id_ in marked_in(path)}


def test_an_entry_is_an_id_a_host_and_a_sentence() -> None:
    """Each id stands once, and begins with its host's letters."""
    letters = {"github": "GH", "gitlab": "GL"}

    assert [id_ for id_, count in Counter(entry["id"] for entry in ENTRIES).items() if count > 1] == []
    for entry in ENTRIES:
        assert entry.keys() == {"id", "host", "pitfall"}
        assert re.fullmatch(rf"{letters[entry['host']]}-[A-Z]+-\d\d", entry["id"]), entry
        assert re.fullmatch(r"[`A-Za-z].+\.", entry["pitfall"]), entry


def test_every_pitfall_has_a_case_on_its_provider() -> None:
    """A fake that behaves like the host proves nothing about the provider."""
    by_host = {host: {entry["id"] for entry in ENTRIES if entry["host"] == host} for host in ("github", "gitlab")}

    assert marked("github") == by_host["github"]
    assert marked("gitlab") == by_host["gitlab"]


def test_every_marker_and_every_fact_leads_to_an_entry() -> None:
    """An id that is not in the catalogue tells its reader nothing."""
    facts = (Path(fakes.__file__).parent / "facts.jsonl").read_text(encoding="utf-8").splitlines()

    assert marked(".") <= IDS
    assert {fact["pitfall"] for fact in map(json.loads, facts) if fact.get("pitfall")} <= IDS
