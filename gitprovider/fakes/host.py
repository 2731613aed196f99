"""What a fake is made of: a request, a response, and a table of routes over a forge."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request as a fake sees it.

    Attributes:
        path: still percent-encoded.
        headers: names in lower case.
        scheme, host: where the request arrived; a fake leads its links back there.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    scheme: str = "https"
    host: str = "localhost"

    @classmethod
    def of(cls, method: str, url: str, headers: Mapping[str, str], body: bytes, *, scheme: str = "https") -> Request:
        """Build it from a URL, or from a request target and the scheme of the listening socket."""
        parts = urlsplit(url if "://" in url else f"{scheme}://{headers.get('Host', '')}{url}")
        return cls(
            method=method,
            path=parts.path,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers={name.lower(): value for name, value in headers.items()},
            body=body,
            scheme=parts.scheme,
            host=parts.netloc.removesuffix(":443" if parts.scheme == "https" else ":80") or "localhost",
        )

    @property
    def origin(self) -> str:
        """``scheme://host``, without the scheme's own port."""
        return f"{self.scheme}://{self.host}"

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
        fact: the id of the recorded fact that this answer follows (``gitprovider/fakes/facts.jsonl``).
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    effect: bool = False
    fact: str = ""


class Host(Protocol):
    """Anything that answers requests: a fake, or a fake behind a fault script. Many threads may call it at once."""

    def handle(self, request: Request) -> Response:
        """Answer one request.

        Raises:
            gitprovider.fakes.faults.TransportFault: no answer reaches the caller; only from behind a fault script.
        """
        ...


class FakeServer(Host, Protocol):
    """A host that can name the endpoint of a request, which the request log records and a fault script selects by."""

    def endpoint(self, request: Request) -> str:
        """The template of the route, such as ``/repos/{owner}/{repo}``, or ``""`` when there is none."""
        ...


Handler = Callable[..., Response]


class Routes:
    """A table of ``METHOD /template`` and the handlers for them. A ``{part}`` matches one percent-encoded segment."""

    def __init__(self) -> None:
        self._routes: list[tuple[str, str, re.Pattern[str], Handler]] = []
        self._docs: dict[tuple[str, str], str] = {}

    def on(self, method: str, template: str, *, docs: str = "") -> Callable[[Handler], Handler]:
        """Register a handler: it is called with the request and the decoded parts. ``{part/}`` matches slashes too.

        Args:
            docs: where the host documents the endpoint.
        """
        pattern = re.sub(
            r"\\\{(\w+)(/?)\\\}",
            lambda m: f"(?P<{m[1]}>{'.+' if m[2] else '[^/]+'})",
            re.escape(template),
        )

        def register(handler: Handler) -> Handler:
            self._routes.append((method, template, re.compile(pattern + r"\Z"), handler))
            self._docs[method, template] = docs
            return handler

        return register

    def find(self, method: str, path: str) -> tuple[str, Handler, dict[str, str]] | None:
        """The template, the handler and the decoded parts for a request, or None."""
        for verb, template, pattern, handler in self._routes:
            if verb == method and (match := pattern.match(path)):
                return template, handler, {name: unquote(part) for name, part in match.groupdict().items()}
        return None

    def docs(self, method: str, template: str) -> str:
        """Where the host documents an endpoint; ``""`` when nothing was registered about it."""
        return self._docs.get((method, template), "")

    def templates(self) -> list[tuple[str, str]]:
        """Every method and template, in the order of registration."""
        return [(method, template) for method, template, _, _ in self._routes]
