"""Reads JSON that a host sent, and writes values and errors as plain JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any

from gitprovider.errors import GitProviderError
from gitprovider.redact import readable

# A host's own JSON has some ten levels. Code that walks a value may recurse this deep, and SDKs do.
MAX_DEPTH = 100
# GitHub's largest tree has 700,000. An empty list takes 3 bytes of JSON and 80 of memory.
MAX_VALUES = 4_000_000


class JsonLimitError(ValueError):
    """JSON that is too deep or has too many values. The message is the end of a sentence."""


def parse(text: str) -> Any:
    """Parse JSON that somebody else wrote.

    Raises:
        JsonLimitError: it is nested deeper than MAX_DEPTH, or has more than MAX_VALUES values.
        ValueError: it is not JSON.
    """
    containers = text.count("[") + text.count("{")
    if containers + text.count(",") > MAX_VALUES:
        raise JsonLimitError(f"has more than {MAX_VALUES:,} values")
    try:
        data = json.loads(text)
    except RecursionError:
        raise JsonLimitError(f"is nested deeper than {MAX_DEPTH} levels") from None
    level = [data] if containers > MAX_DEPTH else []
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return data
    raise JsonLimitError(f"is nested deeper than {MAX_DEPTH} levels")


def plain(value: Any) -> Any:
    """Return ``value`` as JSON values: dataclasses as objects, times in ISO 8601, enums by value, tuples as arrays.

    Raises:
        TypeError: a part of the value has no JSON form, such as bytes.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")


def envelope(error: GitProviderError) -> dict[str, Any]:
    """Return the class and every attribute of an error as JSON values. ``Intent.from_json`` reads that of ``intent``.

    The names are those that the constructors of the error's classes take, and ``retryable`` and ``number``. What has no
    JSON form, as a provider of another package may keep it, is the text of its repr.
    """
    attributes = {name: _told(getattr(error, name, None)) for name in error.attributes() if name != "intent"}
    return {
        "type": type(error).__name__,
        **attributes,
        "retryable": error.retryable,
        "number": error.number,
        "intent": None if error.intent is None else error.intent.to_json(),
    }


def _told(value: Any) -> Any:
    try:
        return plain(value)
    except TypeError:
        return readable(repr(value))
