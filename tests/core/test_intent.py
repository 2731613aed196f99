"""The evidence of a mutation: plain, storable, and strict about what it reads back."""

import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest

from gitprovider.intent import Intent

FULL = Intent(
    operation="commit_files",
    provider="gitlab",
    repo="acme/widgets",
    sent_at=datetime(2026, 5, 1, 12, 0, 0, 250, tzinfo=UTC),
    lost_at=datetime(2026, 5, 1, 12, 1, tzinfo=UTC),
    steps=("create commit",),
    branch="main",
    base_sha="a" * 40,
    files={"a.txt": ("b" * 40, "100644"), "gone": None},
    message="Add a",
    rules={"required_checks": ["ci"], "required_approvals": 1},
    auto_init=False,
    draft=True,
    labels=("x",),
)


def test_an_intent_survives_json_and_pickle() -> None:
    """A service stores it, restarts, and asks with the same record."""
    stored = json.dumps(FULL.to_json())

    assert Intent.from_json(json.loads(stored)) == FULL
    assert pickle.loads(pickle.dumps(FULL)) == FULL


def test_json_leaves_out_what_is_empty_and_keeps_false() -> None:
    """An envelope stays short, and False is an answer, not an absence."""
    record = FULL.to_json()

    assert record["auto_init"] is False
    assert "title" not in record
    assert "reviewers" not in record


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"operation": "x", "provider": "y"},
        {"operation": "x", "provider": "y", "repo": 3},
        {"operation": "x", "provider": "y", "repo": "a/b", "surprise": 1},
        {"operation": "x", "provider": "y", "repo": "a/b", "sent_at": "yesterday"},
        {"operation": "x", "provider": "y", "repo": "a/b", "sent_at": "2026-05-01T12:00:00"},
        {"operation": "x", "provider": "y", "repo": "a/b", "sent_at": 5},
        {"operation": "x", "provider": "y", "repo": "a/b", "lost_at": "2026-05-01T12:00:00"},
        {"operation": "x", "provider": "y", "repo": "a/b", "files": ["a"]},
        {"operation": "x", "provider": "y", "repo": "a/b", "files": {"a": 3}},
        {"operation": "x", "provider": "y", "repo": "a/b", "rules": ["a"]},
        {"operation": "x", "provider": "y", "repo": "a/b", "number": "7"},
        {"operation": "x", "provider": "y", "repo": "a/b", "message": 7},
        {"operation": "x", "provider": "y", "repo": "a/b", "draft": "no"},
        {"operation": "x", "provider": "y", "repo": "a/b", "labels": "bug"},
    ],
)
def test_what_is_no_intent_is_refused(record: dict[str, Any]) -> None:
    """A wrong file given to ``resolve`` is one clear error, never a look at the wrong thing."""
    with pytest.raises(ValueError, match="not an intent"):
        Intent.from_json(record)
