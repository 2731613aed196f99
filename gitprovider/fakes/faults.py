"""A log of the requests to a fake server, and a script of injected faults."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import unquote

from gitprovider.fakes.http import FakeServer, Request, Response, TransportFault

FaultKind = Literal["status", "reset", "timeout", "cut", "html", "shape", "redirect", "delay"]

# Whether a request is meant: by its method, the template of its endpoint, and its body.
Where = Callable[[str, str, bytes], bool]

_TRANSPORT = ("reset", "timeout", "cut")
_JSON = "application/json; charset=utf-8"
_HTML = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Sign in to continue</h1></body></html>\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """One request in the request log.

    Attributes:
        path: decoded.
        endpoint: the template of the route; ``""`` if no route matches.
        status: of the response that the caller got; None if it got no complete response.
        effect: True if a user of the host could see that something changed, even if the caller was told otherwise.
        fault: the kind of the injected fault, or None.
        fact: the recorded fact that the response follows; ``""`` if a fault made the response.
        headers: of the request, names in lower case.
        body: of the request.
    """

    method: str
    path: str
    query: Mapping[str, str]
    endpoint: str
    status: int | None
    effect: bool
    fault: str | None
    fact: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_mutation(self) -> bool:
        """Whether the request asks for a change: every method does but GET, HEAD, and POST of a GraphQL query."""
        if self.method in ("GET", "HEAD"):
            return False
        return not (self.path.endswith("/graphql") and _is_query(self.body))


def _is_query(body: bytes) -> bool:
    try:
        document = json.loads(body)["query"]
    except (ValueError, KeyError, TypeError):
        return False
    return isinstance(document, str) and not re.search(r"(?:\A|[\s}])mutation\b\s{0,99}\w{0,99}\s{0,99}[({@]", document)


class RequestLog:
    """The recorded requests in the order of their responses. Safe to use from many threads."""

    def __init__(self) -> None:
        self._entries: list[RecordedRequest] = []
        self._lock = threading.Lock()

    @property
    def entries(self) -> list[RecordedRequest]:
        """A copy of the entries so far."""
        with self._lock:
            return list(self._entries)

    def record(self, entry: RecordedRequest) -> None:
        """Append an entry."""
        with self._lock:
            self._entries.append(entry)

    def mutations(self) -> list[RecordedRequest]:
        """The requests that asked for a change, whether or not they took effect."""
        return [entry for entry in self.entries if entry.is_mutation]

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong, and on which requests.

    Attributes:
        kind: ``status``: a different status, with ``headers`` and ``body``. ``reset``: the connection is reset.
            ``timeout``: no response until the client gives up. ``cut``: the connection closes inside the body.
            ``html``: an HTML page in place of JSON. ``shape``: JSON of a different shape. ``redirect``: a redirect to
            the Location in ``headers``. ``delay``: the real response, ``delay`` seconds later.
        method: the HTTP method to match; None matches any.
        endpoint: a regular expression that is searched in the endpoint's template; ``""`` matches any.
        where: called with the method, the endpoint's template and the body; None matches any request.
        nth: the first matching request to inject the fault into, counted from 1.
        times: how many matching requests in a row get the fault; None means all that follow.
        when: ``before``: the fake server never sees the request. ``after``: it handles the request, and the response
            is lost.
        status: of the response. The default is 500 for ``status``, 307 for ``redirect``, and otherwise the status of
            the real response, or 200.
        headers, body: of the response, for the kinds that have one. ``body=None`` takes a default for the kind.
        delay: seconds, for ``delay``.
    """

    kind: FaultKind
    method: str | None = None
    endpoint: str = ""
    where: Where | None = None
    nth: int = 1
    times: int | None = 1
    when: Literal["before", "after"] = "before"
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    delay: float = 0.0

    def __post_init__(self) -> None:
        if self.nth < 1 or (self.times is not None and self.times < 1):
            raise ValueError("nth and times count from 1")

    def matches(self, method: str, endpoint: str, body: bytes) -> bool:
        """Whether the fault counts a request."""
        return (
            self.method in (None, method)
            and re.search(self.endpoint, endpoint) is not None
            and (self.where is None or self.where(method, endpoint, body))
        )


class FaultScript:
    """An ordered list of faults. The first fault that is due is injected; every fault counts each of its matches."""

    def __init__(self, *faults: Fault) -> None:
        self._lock = threading.Lock()
        self._seen: list[tuple[Fault, int]] = []
        self._struck: set[int] = set()
        self.add(*faults)

    def add(self, *faults: Fault) -> None:
        """Append faults. Each starts to count now."""
        with self._lock:
            self._seen += [(fault, 0) for fault in faults]

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._seen.clear()
            self._struck.clear()

    def unstruck(self) -> list[Fault]:
        """The faults that were not injected into any request yet, in their order."""
        with self._lock:
            return [fault for index, (fault, _) in enumerate(self._seen) if index not in self._struck]

    def next_fault(self, method: str, endpoint: str, body: bytes) -> Fault | None:
        """Count one request, and return the fault that is due for it, if any."""
        due: Fault | None = None
        with self._lock:
            for index, (fault, seen) in enumerate(self._seen):
                if not fault.matches(method, endpoint, body):
                    continue
                seen += 1
                self._seen[index] = (fault, seen)
                if due is None and seen >= fault.nth and (fault.times is None or seen < fault.nth + fault.times):
                    due = fault
                    self._struck.add(index)
        return due


class FaultyHost:
    """A fake server behind a fault script, with a request log. It is a host itself. Safe to call from many threads."""

    def __init__(
        self,
        fake: FakeServer,
        request_log: RequestLog | None = None,
        script: FaultScript | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.fake = fake
        self.request_log = request_log if request_log is not None else RequestLog()
        self.script = script if script is not None else FaultScript()
        self._sleep = sleep

    def handle(self, request: Request) -> Response:
        """Handle one request, or inject the fault that is due.

        Raises:
            TransportFault: the caller gets no complete response.
        """
        endpoint = self.fake.endpoint(request)
        fault = self.script.next_fault(request.method, endpoint, request.body)
        delay = fault if fault is not None and fault.kind == "delay" else None
        if delay is not None and delay.when == "before":
            self._sleep(delay.delay)
        runs = fault is None or fault is delay or fault.when == "after"
        real = self.fake.handle(request) if runs else None
        response = real if fault is None or fault is delay else _altered(fault, real)
        self.request_log.record(
            RecordedRequest(
                method=request.method,
                path=unquote(request.path),
                query=request.query,
                endpoint=endpoint,
                status=response.status if response is not None else None,
                effect=real is not None and real.effect,
                fault=fault.kind if fault is not None else None,
                fact=response.fact if response is not None else "",
                headers=request.headers,
                body=request.body,
            )
        )
        if response is None:
            assert fault is not None
            raise TransportFault(fault.kind, _cut_response(fault, real) if fault.kind == "cut" else None)
        if delay is not None and delay.when == "after":
            self._sleep(delay.delay)
        return response


def _altered(fault: Fault, real: Response | None) -> Response | None:
    """The response that a fault puts in place of the real one; None if none reaches the caller."""
    if fault.kind in _TRANSPORT:
        return None
    base = real if real is not None else Response(status=200)
    kept = {k: v for k, v in base.headers.items() if k.lower() not in ("content-type", "content-length", "link")}
    kind, status = _JSON, base.status
    if fault.kind == "html":
        kind, body = "text/html; charset=utf-8", _HTML
    elif fault.kind == "shape":
        body = _other_shape(base.body)
    elif fault.kind == "redirect":
        body, status = b'{"message": "Moved Permanently"}', 307
        kept.setdefault("Location", "https://elsewhere.invalid/")
    else:
        body, status = b'{"message": "Server Error"}', 500
    return replace(
        base,
        status=fault.status if fault.status is not None else status,
        headers={**kept, "Content-Type": kind, **fault.headers},
        body=fault.body if fault.body is not None else body,
        fact="",
    )


def _other_shape(body: bytes) -> bytes:
    """JSON of a different shape: an object in place of a list, and a list in place of anything else."""
    return b'{"unexpected": true}' if body.lstrip().startswith(b"[") else b'["unexpected"]'


def _cut_response(fault: Fault, real: Response | None) -> Response:
    base = real if real is not None else Response(status=200)
    body = fault.body if fault.body is not None else base.body or b'{"message": "this answer breaks off here"}'
    headers = {"Content-Type": _JSON, **base.headers, **fault.headers}
    return replace(base, status=fault.status or base.status, headers=headers, body=body, fact="")
