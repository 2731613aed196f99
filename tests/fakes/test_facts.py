"""The recorded facts are well formed, and the code cites each of them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import gitprovider
from gitprovider.fakes.github.responses import REFUSALS
from tests.support.facts import FACTS, LINES

_SOURCE = Path(gitprovider.__file__).parent


def cited(prefix: str, *folders: str) -> set[str]:
    """The facts that the package's source names in quotes."""
    texts = [path.read_text(encoding="utf-8") for folder in folders for path in (_SOURCE / folder).rglob("*.py")]
    return {fact for text in texts for fact in re.findall(rf'"({prefix}-[a-z0-9-]+)"', text)}


def test_no_fact_is_written_twice() -> None:
    """An id names one line."""
    assert [fact for fact, count in Counter(fact["id"] for fact in LINES).items() if count > 1] == []


def test_facts_have_their_fields() -> None:
    """Where, what status, what headers, what body, which pitfall, and where it is documented or was seen."""
    fields = {"id", "host", "endpoint", "status", "headers", "pitfall", "source"}

    incomplete = [
        fact["id"]
        for fact in LINES
        if not fields <= fact.keys()
        or ("text" in fact) == ("shape" in fact)
        or fact["host"] not in ("github", "gitlab")
        or not fact["source"].startswith("https://")
    ]

    assert incomplete == []


@pytest.mark.parametrize(("host", "prefix"), [("github", "gh"), ("gitlab", "gl")])
def test_every_fact_is_cited_and_every_citation_is_a_fact(host: str, prefix: str) -> None:
    """The fake or a rule of the error-mapping table cites it."""
    known = {name for name, fact in FACTS.items() if fact["host"] == host}

    assert cited(prefix, f"fakes/{host}", host) ^ known == set()


def test_a_refusal_has_the_words_of_its_fact() -> None:
    """Status, message and errors are those that were recorded."""
    recorded = {name: (FACTS[name]["status"], FACTS[name]["text"], FACTS[name].get("errors", [])) for name in REFUSALS}

    assert {name: (w.status, w.message, list(w.errors)) for name, w in REFUSALS.items()} == recorded
