"""Recorded exchanges, run through the providers: ``python -m tests.support.recordings DIR``.

``DIR`` holds ``*.jsonl`` files, one exchange a line, with ``provider``, ``method``, ``path``, ``status``,
``response_headers`` and ``response_body`` (JSON, or text). A provider sends the request of each exchange, the recorded
response goes through the client and the error mapping as a live one does, and the converter of its endpoint reads it
(``tests/support/<provider>_recorded.py``). Requests that a provider never sends are counted and left alone.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import responses

from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.response import Response
from gitprovider.errors import GitProviderError
from gitprovider.fakes import http
from gitprovider.fakes.mount import mount

PROVIDERS = ("github", "gitlab")
# How a response of 2xx is read, by the request's endpoint.
Converters = Mapping[str, Callable[[Response], Any]]
# What is no longer so once the body has been decoded.
_CODED = ("content-encoding", "content-length", "transfer-encoding")


def one(converter: Callable[[JsonReader], Any]) -> Callable[[Response], Any]:
    """Read an object."""
    return lambda response: converter(JsonReader(response))


def each(converter: Callable[[JsonReader], Any]) -> Callable[[Response], Any]:
    """Read a list of objects."""
    return lambda response: [converter(item) for item in JsonReader.each(response)]


def templates(endpoints: ModuleType) -> dict[str, str]:
    """The templates of a provider's table of endpoints, by their names."""
    return {name: value for name, value in vars(endpoints).items() if name.isupper()}


class Recorded:
    """A host that returns one recorded response, and afterwards a page of no application."""

    def __init__(self, exchange: Mapping[str, Any]) -> None:
        body = exchange["response_body"]
        text = "" if body is None else body if isinstance(body, str) else json.dumps(body)
        kept = {k: v for k, v in (exchange["response_headers"] or {}).items() if k.lower() not in _CODED}
        self._due = [http.Response(status=exchange["status"], headers=kept, body=text.encode())]

    def endpoint(self, request: http.Request) -> str:
        return ""

    def handle(self, request: http.Request) -> http.Response:
        return self._due.pop() if self._due else http.Response(status=404, body=b"<html>")


def run(exchange: Mapping[str, Any]) -> str:
    """What the library makes of an exchange, in a line; ``""`` when the provider sends no such request.

    Raises:
        Exception: it cannot be made anything of.
    """
    recorded = import_module(f"tests.support.{exchange['provider']}_recorded")
    template, parts = _template(recorded.CONVERTERS, exchange["method"], exchange["path"].removeprefix(recorded.PREFIX))
    converter = recorded.CONVERTERS.get(f"{exchange['method']} {template}")
    done = 200 <= exchange["status"] < 300
    if done and converter is None:
        return ""
    with responses.RequestsMock() as mocked, recorded.provider() as provider:
        mount(Recorded(exchange), mocked, recorded.URL)
        try:
            with provider._operation("recorded", "acme/any") as op, op.before("send"):
                return repr(converter(op.request(exchange["method"], template, **parts)))
        except GitProviderError as error:
            if done:
                raise
            return f"{type(error).__name__}: {error.message}"


def _template(converters: Converters, method: str, path: str) -> tuple[str, dict[str, str]]:
    """The template of the endpoint that a request is sent to, and its parts. A path that fits none is its own."""
    for endpoint in converters:
        known, _, template = endpoint.partition(" ")
        if known == method and (found := re.fullmatch(_pattern(template), path)):
            return template, {name: unquote(value) for name, value in found.groupdict().items()}
    return re.sub(r"[{}]", "", unquote(path)), {}


def _pattern(template: str) -> str:
    def part(match: re.Match[str]) -> str:
        return f"(?P<{match[1]}>{'[^/]+/[^/]+' if match[1] == 'repo' else '.+' if match[2] else '[^/]+?'})"

    return re.sub(r"\\\{(\w+)(/?)\\\}", part, re.escape(template))


def exchanges(folder: Path) -> Iterator[dict[str, Any]]:
    """Every recorded exchange in the folder's files."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            exchange = json.loads(line)
            if exchange["provider"] in PROVIDERS:
                yield exchange


def main(arguments: list[str]) -> int:
    """Run every exchange, print what becomes of it, and fail if one cannot be understood."""
    if len(arguments) != 1 or not arguments[0] or not Path(arguments[0]).is_dir():
        print("usage: python -m tests.support.recordings DIR, a folder with *.jsonl files", file=sys.stderr)
        return 2
    counts: Counter[str] = Counter()
    for exchange in exchanges(Path(arguments[0])):
        where = f"{exchange['provider']} {exchange['method']} {exchange['path']} {exchange['status']}"
        try:
            made = run(exchange)
        except Exception as exc:
            counts["failed"] += 1
            print(f"FAILED {where}: {type(exc).__name__}: {exc}")
            continue
        counts["understood" if made else "not asked for"] += 1
        print(f"{where}: {made[:150] or 'not asked for'}")
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "no exchange found")
    return 1 if counts["failed"] or not counts["understood"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
