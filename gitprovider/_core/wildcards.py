"""Branch names and the patterns of protection rules. ``*`` is any run of characters, slashes included.

Patterns come from a host, so a match takes time in proportion to the text. A regular expression would not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def matches(pattern: str, name: str) -> bool:
    """Whether a rule's pattern covers a branch. Every character but ``*`` stands for itself."""
    first, *between = pattern.split("*")
    if not between:
        return pattern == name
    last = between.pop()
    end = len(name) - len(last)
    if end < len(first) or not (name.startswith(first) and name.endswith(last)):
        return False
    at = len(first)
    for part in between:  # the first place of each part leaves most room for the next
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def covered(patterns: Iterable[str], names: Sequence[str]) -> set[str]:
    """The names that at least one of the patterns covers.

    All names are searched at once for the longest literal part of a pattern. Only names that have it are matched.
    """
    patterns = set(patterns)
    found = patterns.intersection(names)
    text = "\0".join(("", *names, ""))  # a name has no NUL, so one marks where each begins and ends
    for pattern in patterns:
        if "*" not in pattern:
            continue
        part = max(f"\0{pattern}\0".split("*"), key=len)
        at = text.find(part)
        while 0 <= at < len(text) - 1:
            begin = text.rfind("\0", 0, at + 1) + 1
            end = text.find("\0", begin)
            name = text[begin:end]
            if name not in found and matches(pattern, name):
                found.add(name)
            at = text.find(part, end)
    return found
