"""Values and errors as plain JSON."""

from __future__ import annotations

import inspect
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from gitprovider import (
    AlreadyExistsError,
    Branch,
    BranchProtection,
    GitProviderError,
    Intent,
    NotFoundError,
    NotMergeableReason,
    Outcome,
    ProviderUnavailableError,
    Step,
    errors,
)
from gitprovider._core.extras import MissingExtraError
from gitprovider._core.json import envelope, plain

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, GitProviderError)]


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


@pytest.mark.parametrize("kind", [*CLASSES, MissingExtraError])
def test_an_envelope_has_every_attribute(kind: type[GitProviderError]) -> None:
    """A script is not told why a pull request is not merged, where a repository is now, or which option is refused."""
    given: dict[str, Any] = {"reason": NotMergeableReason.CHECKS, "existing": Branch(name="x", sha="a" * 40)}
    own = {
        name: given.get(name, f"its {name}") for name in kind.attributes() if name not in GitProviderError.attributes()
    }

    document = json.loads(json.dumps(envelope(kind("m", **own))))

    assert {name: document[name] for name in own} == plain(own)
    assert document.keys() == {"type", "retryable", "number", *kind.attributes()}


def test_the_attributes_of_an_error_are_those_that_it_has() -> None:
    """A constructor sets an attribute under another name than its parameter's, and the envelope has it as null."""
    for kind in CLASSES:
        required: dict[str, Any] = {"reason": NotMergeableReason.DRAFT, "option": "x"}
        error = kind("m", **{name: value for name, value in required.items() if name in kind.attributes()})
        assert vars(error).keys() == {*kind.attributes()}, kind


def test_an_attribute_without_a_json_form_does_not_hide_the_error() -> None:
    """A provider of another package keeps an object of its SDK, and the failure becomes a TypeError."""
    document = envelope(AlreadyExistsError("taken", existing={"id": b"x"}))

    assert (document["message"], document["existing"]) == ("taken", "{'id': b'x'}")
