"""The recorded facts of the hosts, and whether a response is as its fact says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import gitprovider.fakes
from gitprovider.fakes.http import Response

_TEXT = Path(gitprovider.fakes.__file__).with_name("facts.jsonl").read_text(encoding="utf-8")
LINES = [json.loads(line) for line in _TEXT.splitlines()]
FACTS = {fact["id"]: fact for fact in LINES}

_TYPES = {"str": str, "int": int, "bool": bool, "array": list, "object": dict}


def check(response: Response) -> None:
    """Compare status, headers, and text or shape with those of the fact that the response cites."""
    if response.status == 501:  # a gap of the fake, which follows no host
        assert response.fact == ""
        return
    fact = FACTS[response.fact]
    assert response.status == fact["status"], response.fact
    for name, example in fact["headers"].items():
        if name != "Link":  # a single page has none
            assert name in response.headers, (response.fact, name)
        if name == "Content-Type":
            assert response.headers[name] == example, response.fact
    data = json.loads(response.body) if response.body else None
    if "text" in fact:
        message = data["message"] if isinstance(data, dict) else ""
        assert re.fullmatch(_pattern(fact["text"]), message, re.DOTALL), (response.fact, message)
    if "errors" in fact:
        assert isinstance(data, dict)
        assert [_keys(error) for error in data["errors"]] == [_keys(error) for error in fact["errors"]], response.fact
    if "shape" in fact:
        _compare(data, fact["shape"], response.fact)


def _keys(error: dict[str, str] | str) -> list[str]:
    return sorted(error) if isinstance(error, dict) else [error]


def _pattern(text: str) -> str:
    return re.sub(r"\\\{\w+\\\}", ".*", re.escape(text))


def _compare(value: Any, shape: Any, where: str) -> None:
    if isinstance(shape, list):
        assert isinstance(value, list), where
        for item in value:
            _compare(item, shape[0], where)
    elif isinstance(shape, dict):
        assert isinstance(value, dict), where
        for name, kind in shape.items():
            assert name in value, f"{where}: {name}"
            _compare(value[name], kind, f"{where}: {name}")
    elif shape.endswith("?"):
        assert value is None or type(value) is _TYPES[shape[:-1]], where
    else:
        assert type(value) is _TYPES[shape], where
