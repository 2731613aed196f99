"""Values and errors as plain JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from gitprovider import Branch, BranchProtection, Intent, NotFoundError, Outcome, ProviderUnavailableError, Step
from gitprovider._core.json import envelope, plain


def test_values_become_plain() -> None:
    """Dataclasses, enums, times, tuples and mappings have a JSON form."""
    value = {
        "when": datetime(2026, 1, 1, tzinfo=UTC),
        "rules": BranchProtection(required_checks=("ci",)),
        "outcome": Outcome.PARTIAL,
        "nothing": None,
    }

    document = json.loads(json.dumps(plain(value)))

    assert document["when"] == "2026-01-01T00:00:00+00:00"
    assert document["rules"]["required_checks"] == ["ci"]
    assert (document["outcome"], document["nothing"]) == ("partial", None)


def test_what_has_no_json_form_is_an_error() -> None:
    """Bytes are not guessed at."""
    with pytest.raises(TypeError, match="bytes"):
        plain({"content": b"x"})


def test_an_envelope_carries_what_resolve_needs() -> None:
    """The intent comes back from an envelope that went through JSON."""
    intent = Intent(operation="create_branch", provider="github", repo="acme/widgets", branch="x", source_sha="a" * 40)
    error = ProviderUnavailableError(
        "lost",
        outcome=Outcome.PARTIAL,
        completed=(Step("create", Branch(name="x", sha="a" * 40)),),
        intent=intent,
        retry_after=3.5,
    )

    document = json.loads(json.dumps(envelope(error)))

    assert Intent.from_json(document["intent"]) == intent
    assert document["completed"][0]["value"]["name"] == "x"
    assert (document["type"], document["retry_after"]) == ("ProviderUnavailableError", 3.5)


def test_an_envelope_of_a_read_has_no_intent() -> None:
    """There is nothing to resolve."""
    assert envelope(NotFoundError("no such repository", status=404))["intent"] is None
