"""Parameters in queries and forms: https://docs.gitlab.com/api/rest/#request-payload ."""

from __future__ import annotations

import re
from collections.abc import Iterable
from email import message_from_bytes
from typing import Any
from urllib.parse import parse_qsl

URLENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"

_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)\Z")


def read_form(content_type: str, body: bytes) -> list[tuple[str, str]] | None:
    """The names and values of a form's fields, in their order, or None if the body is no form.

    Raises:
        ValueError: a value is not UTF-8.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == URLENCODED:
        return parse_qsl(body.decode(), keep_blank_values=True, errors="strict")
    if kind == MULTIPART:
        form = message_from_bytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
        return [_field(part) for part in form.walk() if not part.is_multipart()]
    return None


def _field(part: Any) -> tuple[str, str]:
    name = part.get_param("name", header="content-disposition")
    if not isinstance(name, str):
        raise ValueError("a part has no name")
    return name, part.get_payload(decode=True).decode()


def nested(fields: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Build lists from ``name[]`` and objects from ``name[key]``, as Rack does.

    In ``name[][key]``, a key that the last object has already starts the next object.

    Raises:
        ValueError: one name is used for a value, a list and an object, or for two of them.
    """
    top: dict[str, Any] = {}
    for name, value in fields:
        match = _NAME.match(name)
        keys = [match[1], *re.findall(r"\[([^\[\]]*)\]", match[2])] if match else [name]
        _put(top, keys, value)
    return top


def _put(place: dict[str, Any], keys: list[str], value: str) -> None:
    key, rest = keys[0], keys[1:]
    if not rest:
        _expect(place.get(key, ""), str)
        place[key] = value
    elif rest[0]:
        _put(_expect(place.setdefault(key, {}), dict), rest, value)
    else:
        items, below = _expect(place.setdefault(key, []), list), rest[1:]
        if not below:
            items.append(value)
            return
        if not items or not isinstance(items[-1], dict) or _has(items[-1], below):
            items.append({})
        _put(items[-1], below, value)


def _expect(found: Any, kind: type) -> Any:
    if not isinstance(found, kind):
        raise ValueError(f"expected {kind.__name__}")
    return found


def _has(place: Any, keys: list[str]) -> bool:
    for key in keys:
        if not key or not isinstance(place, dict) or key not in place:
            return False
        place = place[key]
    return True
