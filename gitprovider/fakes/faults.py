"""A request log of every request that a fake answered, and a script of faults that strike on the way."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import unquote

from gitprovider.fakes.host import FakeServer, Request, Response

FaultKind = Literal["status", "reset", "timeout", "cut", "html", "shape", "redirect", "delay"]
_TRANSPORT = ("reset", "timeout", "cut")

_HTML = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Sign in to continue</h1></body></html>\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """One request, as the request log keeps it.

    Attributes:
        path: decoded.
        endpoint: the fake's template of the route; ``""`` when it has none.
        status: what the caller was answered; None when no whole answer reached it.
        effect: True when a user of the host could see that something changed, whatever the caller was told.
        fault: the kind of the fault that struck, or None.
        fact: the recorded fact that the answer follows; ``""`` when a fault made the answer.
        headers: the request's, names in lower case.
        body: the request's.
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
        """Whether it asked for a change: any verb but GET and HEAD, save for the POST of a GraphQL query."""
        if self.method in ("GET", "HEAD"):
            return False
        return not (self.path.endswith("/graphql") and _reads_only(self.body))


def _reads_only(body: bytes) -> bool:
    try:
        document = json.loads(body)["query"]
    except (ValueError, KeyError, TypeError):
        return False
    return isinstance(document, str) and not re.search(r"(?:\A|[\s}])mutation\b\s*\w*\s*[({@]", document)


class RequestLog:
    """Every request in the order of its answer. Many threads may write and read it."""

    def __init__(self) -> None:
        self._entries: list[RecordedRequest] = []
        self._lock = threading.Lock()

    @property
    def entries(self) -> list[RecordedRequest]:
        """A copy of what is recorded so far."""
        with self._lock:
            return list(self._entries)

    def record(self, entry: RecordedRequest) -> None:
        """Add one."""
        with self._lock:
            self._entries.append(entry)

    def mutations(self) -> list[RecordedRequest]:
        """The entries that asked for a change, whether or not they took effect."""
        return [entry for entry in self.entries if entry.is_mutation]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong, and on which requests.

    Attributes:
        kind: ``status``: another status, with ``headers`` and ``body``. ``reset``: the connection is reset.
            ``timeout``: no answer until the client gives up. ``cut``: the connection is closed inside the body.
            ``html``: a page where JSON belongs. ``shape``: JSON of another shape. ``redirect``: to ``headers``'s
            Location. ``delay``: the real answer, ``delay`` seconds later.
        method: strikes on this verb only; None means on any.
        endpoint: strikes where this regular expression is found in the endpoint's template; ``""`` means anywhere.
        nth: strikes first on the nth request that matches, counted from 1.
        times: and on how many of them in a row; None means on all that follow.
        when: ``before``: the fake never sees the request. ``after``: it has done its work, and the answer is lost.
        status: of the answer: by default 500 (``status``), 307 (``redirect``), otherwise what the fake answered, or
            200.
        headers, body: of the answer, where the kind has one. ``body=None`` takes one that suits the kind.
        delay: seconds, for ``delay``.
    """

    kind: FaultKind
    method: str | None = None
    endpoint: str = ""
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

    def matches(self, method: str, endpoint: str) -> bool:
        """Whether a request is one of those that it counts."""
        return self.method in (None, method) and re.search(self.endpoint, endpoint) is not None


class FaultScript:
    """Faults in the order in which they are asked: the first that is due strikes, and every match counts for each."""

    def __init__(self, *faults: Fault) -> None:
        self._lock = threading.Lock()
        self._seen: list[tuple[Fault, int]] = []
        self.add(*faults)

    def add(self, *faults: Fault) -> None:
        """Append faults; each begins to count now."""
        with self._lock:
            self._seen += [(fault, 0) for fault in faults]

    def clear(self) -> None:
        """Drop every fault."""
        with self._lock:
            self._seen.clear()

    def next_fault(self, method: str, endpoint: str) -> Fault | None:
        """Count one request, and return the fault that is due for it."""
        due: Fault | None = None
        with self._lock:
            for index, (fault, seen) in enumerate(self._seen):
                if not fault.matches(method, endpoint):
                    continue
                seen += 1
                self._seen[index] = (fault, seen)
                if due is None and seen >= fault.nth and (fault.times is None or seen < fault.nth + fault.times):
                    due = fault
        return due


class TransportFault(Exception):
    """No whole answer reaches the caller. A mount or a server makes it happen.

    Attributes:
        kind: ``reset``, ``timeout`` or ``cut``.
        response: for ``cut``, the answer whose body breaks off.
    """

    def __init__(self, kind: FaultKind, response: Response | None = None) -> None:
        super().__init__(kind)
        self.kind = kind
        self.response = response


class FaultyHost:
    """A fake behind a fault script, with a request log. It is a host itself, and safe to call from many threads."""

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
        """Answer one request, or let the fault that is due strike.

        Raises:
            TransportFault: no whole answer reaches the caller.
        """
        endpoint = self.fake.endpoint(request)
        fault = self.script.next_fault(request.method, endpoint)
        real: Response | None = None
        if fault is None or fault.when == "after" or fault.kind == "delay":
            if fault is not None and fault.kind == "delay" and fault.when == "before":
                self._sleep(fault.delay)
            real = self.fake.handle(request)
        answer = real if fault is None else self._struck(fault, real)
        self._record(request, endpoint, answer, fault, real)
        if answer is None:
            assert fault is not None
            raise TransportFault(fault.kind, _cut_answer(fault, real) if fault.kind == "cut" else None)
        if fault is not None and fault.kind == "delay" and fault.when == "after":
            self._sleep(fault.delay)
        return answer

    def _struck(self, fault: Fault, real: Response | None) -> Response | None:
        if fault.kind in _TRANSPORT:
            return None
        if fault.kind == "delay":
            return real
        return _altered(fault, real)

    def _record(
        self, request: Request, endpoint: str, answer: Response | None, fault: Fault | None, real: Response | None
    ) -> None:
        self.request_log.record(
            RecordedRequest(
                method=request.method,
                path=unquote(request.path),
                query=request.query,
                endpoint=endpoint,
                status=answer.status if answer is not None else None,
                effect=real is not None and real.effect,
                fault=fault.kind if fault is not None else None,
                fact=answer.fact if answer is not None else "",
                headers=request.headers,
                body=request.body,
            )
        )


def _altered(fault: Fault, real: Response | None) -> Response:
    """The answer that a fault puts in the place of the fake's own."""
    base = real if real is not None else Response(status=200)
    kept = {k: v for k, v in base.headers.items() if k.lower() not in ("content-type", "content-length", "link")}
    if fault.kind == "html":
        kind, body, status = "text/html; charset=utf-8", _HTML, base.status
    elif fault.kind == "shape":
        kind, body, status = "application/json; charset=utf-8", _other_shape(base.body), base.status
    elif fault.kind == "redirect":
        kind, body, status = "application/json; charset=utf-8", b'{"message": "Moved Permanently"}', 307
        kept.setdefault("Location", "https://elsewhere.invalid/")
    else:
        kind, body, status = "application/json; charset=utf-8", b'{"message": "Server Error"}', 500
    return replace(
        base,
        status=fault.status if fault.status is not None else status,
        headers={**kept, "Content-Type": kind, **fault.headers},
        body=fault.body if fault.body is not None else body,
        fact="",
    )


def _other_shape(body: bytes) -> bytes:
    """JSON that is not what belongs there: an object for a list, a list for anything else."""
    return b'{"unexpected": true}' if body.lstrip().startswith(b"[") else b'["unexpected"]'


def _cut_answer(fault: Fault, real: Response | None) -> Response:
    base = real if real is not None else Response(status=200)
    body = fault.body if fault.body is not None else base.body or b'{"message": "this answer breaks off here"}'
    headers = {"Content-Type": "application/json; charset=utf-8", **base.headers, **fault.headers}
    return replace(base, status=fault.status or base.status, headers=headers, body=body, fact="")
