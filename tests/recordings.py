"""Recorded exchanges, run through the converters and the translation: ``python -m tests.recordings DIR``.

``DIR`` holds ``*.jsonl`` files, one exchange a line, with ``provider``, ``endpoint`` (a key of the table in
``tests/<provider>/recorded.py``), ``status``, ``response_headers`` and ``response_body`` (JSON, or text). What a
provider never asks for is counted and left alone.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from gitprovider._remote.operation import Answer
from gitprovider.errors import GitProviderError

PROVIDERS = ("github", "gitlab")
# How an answer of 2xx is converted, by the recording's endpoint key.
Converters = Mapping[str, Callable[[Answer], Any]]
# What an answer of another status means, asked for at "METHOD /template".
Meaning = Callable[[Answer, str], GitProviderError]


def answer_of(exchange: Mapping[str, Any]) -> Answer:
    """The exchange's answer as a transport returns it."""
    body = exchange["response_body"]
    text = "" if body is None else body if isinstance(body, str) else json.dumps(body)
    return Answer(
        status=exchange["status"],
        headers={name.lower(): value for name, value in (exchange["response_headers"] or {}).items()},
        data=None if isinstance(body, str) else body,
        text=text,
    )


def run(exchange: Mapping[str, Any]) -> str:
    """What the library makes of an exchange, in a line; ``""`` when the provider asks for no such thing.

    Raises:
        Exception: it cannot be made anything of.
    """
    recorded = import_module(f"tests.{exchange['provider']}.recorded")
    answer, key = answer_of(exchange), exchange["endpoint"]
    if not 200 <= answer.status < 300:
        error: GitProviderError = recorded.meaning(answer, recorded.ENDPOINTS.get(key, f"{exchange['method']} /other"))
        return f"{type(error).__name__}: {error.message}"
    if key not in recorded.CONVERTERS:
        return ""
    return repr(recorded.CONVERTERS[key](answer))


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
        print("usage: python -m tests.recordings DIR, a folder with *.jsonl files", file=sys.stderr)
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
