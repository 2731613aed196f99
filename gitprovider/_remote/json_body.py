"""The JSON body of a large request, encoded while it is sent. ``json.dumps`` holds three copies of it at its peak."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

_SLICE = 48 * 1024  # characters of a text, or bytes of a content, that are encoded at a time; a multiple of three
_LARGE = 1024 * 1024  # characters beyond which a body is sent in parts


class Base64(NamedTuple):
    """A large content, which is encoded while the body with it is sent."""

    data: bytes


def base64_of(data: bytes) -> str | Base64:
    """Return the content for a body that takes base64."""
    return Base64(data) if len(data) > _LARGE else base64.b64encode(data).decode()


class JsonBody:
    """A body for ``requests``, which takes its length and then its parts. Each reading of it gives the same bytes."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self._length = sum(map(len, _parts(value)))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        return _parts(self._value)


def large_body(value: Any) -> JsonBody | None:
    """Return the body to send for a large value. None stands for one that the SDK encodes as well."""
    return JsonBody(value) if _characters(value) > _LARGE else None


def _characters(value: Any) -> int:
    if isinstance(value, Base64):
        return len(value.data)
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_characters, value.values()))
    return sum(map(_characters, value)) if isinstance(value, list | tuple) else 0


def _parts(value: Any) -> Iterator[bytes]:
    if isinstance(value, str):
        yield b'"'
        for start in range(0, len(value), _SLICE):
            yield json.dumps(value[start : start + _SLICE])[1:-1].encode()
        yield b'"'
    elif isinstance(value, Base64):
        yield b'"'
        for start in range(0, len(value.data), _SLICE):
            yield base64.b64encode(value.data[start : start + _SLICE])
        yield b'"'
    elif isinstance(value, dict):
        for number, (key, item) in enumerate(value.items()):
            yield f"{', ' if number else '{'}{json.dumps(key)}: ".encode()
            yield from _parts(item)
        yield b"}" if value else b"{}"
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield b", " if number else b"["
            yield from _parts(item)
        yield b"]" if value else b"[]"
    else:
        yield json.dumps(value).encode()
