"""Recorded exchanges, run through the converters and the translation: ``python -m tests.support.recordings DIR``.

``DIR`` holds ``*.jsonl`` files, one exchange a line, with ``provider``, ``endpoint`` (a key of the table in
``tests/support/<provider>_recorded.py``), ``status``, ``response_headers`` and ``response_body`` (JSON, or text).
Requests that a provider never sends are counted and left alone.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from gitprovider._remote.response import Response
from gitprovider.errors import GitProviderError

PROVIDERS = ("github", "gitlab")
# How a response of 2xx is converted, by the recording's endpoint key.
Converters = Mapping[str, Callable[[Response], Any]]


def response_of(exchange: Mapping[str, Any], endpoint: str) -> Response:
    """The exchange's response as a client returns it."""
    body = exchange["response_body"]
    text = "" if body is None else body if isinstance(body, str) else json.dumps(body)
    return Response(
        status=exchange["status"],
        endpoint=endpoint,
        headers={name.lower(): value for name, value in (exchange["response_headers"] or {}).items()},
        data=None if isinstance(body, str) else body,
        text=text,
    )


def run(exchange: Mapping[str, Any]) -> str:
    """What the library makes of an exchange, in a line; ``""`` when the provider asks for no such thing.

    Raises:
        Exception: it cannot be made anything of.
    """
    recorded = import_module(f"tests.support.{exchange['provider']}_recorded")
    key = exchange["endpoint"]
    response = response_of(exchange, recorded.ENDPOINTS.get(key, f"{exchange['method']} /other"))
    if not 200 <= response.status < 300:
        error: GitProviderError = recorded.meaning(response)
        return f"{type(error).__name__}: {error.message}"
    if key not in recorded.CONVERTERS:
        return ""
    return repr(recorded.CONVERTERS[key](response))


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
        where = f"{exchange['provider']} {exchange['endpoint']} {exchange['status']}"
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
