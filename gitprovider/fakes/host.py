"""What a face is made of: a request, a response, and a table of routes over a forge."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request as a face sees it. Header names are in lower case; ``path`` is still percent-encoded."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    host: str = "localhost"

    @classmethod
    def of(cls, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Request:
        """Build it from a URL or a request target."""
        parts = urlsplit(url)
        return cls(
            method=method,
            path=parts.path,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers={name.lower(): value for name, value in headers.items()},
            body=body,
            host=parts.netloc or next((v for k, v in headers.items() if k.lower() == "host"), "localhost"),
        )

    def json(self) -> Any:
        """The body as JSON; an empty body is an empty object.

        Raises:
            ValueError: it is no JSON.
        """
        return json.loads(self.body) if self.body else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One HTTP response.

    Attributes:
        effect: True when a user of the host could see that something changed.
        fact: the id of the recorded fact that this answer follows (``tests/hosts/facts.jsonl``).
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    effect: bool = False
    fact: str = ""


class Host(Protocol):
    """Anything that answers requests: a face, or a face behind a fault script."""

    def handle(self, request: Request) -> Response:
        """Answer one request."""
        ...


Handler = Callable[..., Response]


class Routes:
    """A table of ``METHOD /template`` and the handlers for them. A ``{part}`` matches one percent-encoded segment."""

    def __init__(self) -> None:
        self._routes: list[tuple[str, str, re.Pattern[str], Handler]] = []

    def on(self, method: str, template: str) -> Callable[[Handler], Handler]:
        """Register a handler: it is called with the request and the decoded parts. ``{part/}`` matches slashes too."""
        pattern = re.sub(
            r"\\\{(\w+)(/?)\\\}",
            lambda m: f"(?P<{m[1]}>{'.+' if m[2] else '[^/]+'})",
            re.escape(template),
        )

        def register(handler: Handler) -> Handler:
            self._routes.append((method, template, re.compile(pattern + r"\Z"), handler))
            return handler

        return register

    def find(self, method: str, path: str) -> tuple[str, Handler, dict[str, str]] | None:
        """The template, the handler and the decoded parts for a request, or None."""
        for verb, template, pattern, handler in self._routes:
            if verb == method and (match := pattern.match(path)):
                return template, handler, {name: unquote(part) for name, part in match.groupdict().items()}
        return None

    def templates(self) -> list[tuple[str, str]]:
        """Every method and template, in the order of registration."""
        return [(method, template) for method, template, _, _ in self._routes]
