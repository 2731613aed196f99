"""A fake of one endpoint, for tests of what stands between a client and a fake."""

from __future__ import annotations

import threading

from gitprovider.fakes.http import Request, Response


class Counter:
    """A fake with one endpoint, whose every POST takes effect."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def endpoint(self, request: Request) -> str:
        return "/counter/{name}" if request.path.startswith("/counter/") else ""

    def handle(self, request: Request) -> Response:
        if request.method == "POST":
            with self._lock:
                self.count += 1
        return Response(
            status=200,
            headers={"Content-Type": "application/json", "X-Request-Id": "1"},
            body=b'{"count": 1}',
            effect=request.method == "POST",
            fact="counter",
        )
