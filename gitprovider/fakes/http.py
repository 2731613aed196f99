"""HTTP as the fake servers see it: requests, responses, routes, and what a server has to implement."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request.

    Attributes:
        path: percent-encoded.
        fields: the parameters of the query in their order, with repeated names.
        headers: names in lower case.
        scheme, host: where the request arrived. A fake server builds its links from them.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    scheme: str = "https"
    host: str = "localhost"

    @classmethod
    def of(cls, method: str, url: str, headers: Mapping[str, str], body: bytes, *, scheme: str = "https") -> Request:
        """Build a request from a URL, or from a request target and the scheme of the listening socket."""
        lowered = {name.lower(): value for name, value in headers.items()}
        parts = urlsplit(url if "://" in url else f"{scheme}://{lowered.get('host', '')}{url}")
        fields = tuple(parse_qsl(parts.query, keep_blank_values=True))
        return cls(
            method=method,
            path=parts.path,
            query=_query(fields),
            fields=fields,
            headers=lowered,
            body=body,
            scheme=parts.scheme,
            host=parts.netloc.removesuffix(":443" if parts.scheme == "https" else ":80") or "localhost",
        )

    @property
    def origin(self) -> str:
        """``scheme://host``, without the scheme's default port."""
        return f"{self.scheme}://{self.host}"

    def json(self) -> Any:
        """The body as JSON. An empty body is an empty object.

        Raises:
            ValueError: the body is not JSON.
        """
        return json.loads(self.body) if self.body else {}


def _query(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The parameters of a query by name. The items of a list, ``name[]``, are separated by commas."""
    query: dict[str, str] = {}
    for name, value in fields:
        query[name] = f"{query[name]},{value}" if name.endswith("[]") and name in query else value
    return query


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One HTTP response.

    Attributes:
        effect: True if a user of the host could see that something changed.
        fact: the id of the recorded fact that the response follows (``gitprovider/fakes/facts.jsonl``).
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    effect: bool = False
    fact: str = ""


def json_response(
    data: Any,
    fact: str,
    *,
    content_type: str = "application/json",
    compact: bool = False,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    effect: bool = False,
) -> Response:
    """Build a JSON response. ``data=None`` gives a response without a body."""
    if data is None:
        return Response(status=status, headers=dict(headers or {}), effect=effect, fact=fact)
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":") if compact else None).encode()
    given = {"Content-Type": content_type, **(headers or {})}
    return Response(status=status, headers=given, body=body, effect=effect, fact=fact)


def not_modelled(fake: str, request: Request) -> Response:
    """501 for an endpoint that the host has and the fake server does not. No host says this, so it cites no fact."""
    return json_response({"message": f"{fake} does not model {request.method} {request.path}"}, "", status=501)


def link_header(url: str, query: Mapping[str, Any], pages: Mapping[str, object], **more: object) -> str:
    """Build a Link header. ``pages`` maps each relation to its page number; falsy numbers are left out."""
    return ", ".join(
        f'<{url}?{urlencode({**query, "page": number, **more})}>; rel="{name}"'
        for name, number in pages.items()
        if number
    )


class TransportFault(Exception):
    """The caller gets no complete response. ``mount`` and ``serve`` turn this into a broken connection.

    Attributes:
        kind: ``reset``, ``timeout`` or ``cut``.
        response: for ``cut``, the response whose body breaks off.
    """

    def __init__(self, kind: str, response: Response | None = None) -> None:
        super().__init__(kind)
        self.kind = kind
        self.response = response


class Host(Protocol):
    """Anything that handles requests: a fake server, or one behind a fault script. Many threads may call it at once."""

    def handle(self, request: Request) -> Response:
        """Handle one request.

        Raises:
            TransportFault: no response reaches the caller. Only a fault script raises it.
        """
        ...


class FakeServer(Host, Protocol):
    """A host that names the endpoint of a request. The request log records it, and faults select requests by it."""

    def endpoint(self, request: Request) -> str:
        """The route's template, such as ``/repos/{owner}/{repo}``, or ``""`` if no route matches."""
        ...


Handler = Callable[..., Response]


class Route(NamedTuple):
    """One endpoint. A ``{part}`` matches one percent-encoded segment; a ``{part/}`` matches slashes too.

    Attributes:
        handler: called with the call and the decoded parts.
        docs: where the host documents the endpoint.
    """

    method: str
    template: str
    handler: Handler
    docs: str = ""


class Routes:
    """A table of routes. The first that matches a request handles it."""

    def __init__(self, *table: Route) -> None:
        self.table = table
        self._patterns = [_pattern(route.template) for route in table]

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """The route for a request and the decoded parts of its path, or None."""
        for route, pattern in zip(self.table, self._patterns, strict=True):
            if route.method == method and (match := pattern.match(path)):
                return route, {name: unquote(part) for name, part in match.groupdict().items()}
        return None


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.sub(
        r"\\\{(\w+)(/?)\\\}",
        lambda m: f"(?P<{m[1]}>{'.+' if m[2] else '[^/]+'})",
        re.escape(template),
    )
    return re.compile(parts + r"\Z")
