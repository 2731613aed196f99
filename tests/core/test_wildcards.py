"""Patterns of protection rules: what they cover, and how much work that is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitprovider._core import wildcards
from gitprovider._core.wildcards import covered, matches

PATTERNS = st.text("ab*/", max_size=8)
NAMES = st.text("ab/", min_size=1, max_size=10)


def by_definition(pattern: str, name: str) -> bool:
    """The meaning of a pattern, written down without a thought for its cost."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(by_definition(pattern[1:], name[at:]) for at in range(len(name) + 1))
    return name[:1] == pattern[0] and by_definition(pattern[1:], name[1:])


@given(PATTERNS, NAMES)
def test_a_match_is_what_the_definition_says(pattern: str, name: str) -> None:
    """A matcher that is fast and wrong would protect the wrong branches."""
    assert matches(pattern, name) is by_definition(pattern, name)


@given(st.lists(PATTERNS, max_size=5), st.lists(NAMES, max_size=8, unique=True))
def test_many_names_are_covered_as_each_one_is(patterns: list[str], names: list[str]) -> None:
    """A listing would otherwise show another protection than the branch has."""
    assert covered(patterns, names) == {name for name in names if any(matches(pattern, name) for pattern in patterns)}


@pytest.mark.parametrize("shape", ["release/{}/*", "*-{}", "v*.{}", "*/{}/*", "team-{}", "*a{}*b*"])
def test_only_names_that_may_match_are_looked_at(monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    """Two hundred rules beside thousands of branches would otherwise cost a match for every pair."""
    matched: list[str] = []

    def counted(pattern: str, name: str) -> bool:
        matched.append(name)
        return matches(pattern, name)

    monkeypatch.setattr(wildcards, "matches", counted)

    names = [f"feature/{number:04}/x" for number in range(2000)]
    assert covered([shape.format(f"q{number}") for number in range(200)], names) == set()

    assert len(matched) <= 10
