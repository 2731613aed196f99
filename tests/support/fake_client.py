"""A client of a remote provider that sends nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gitprovider._remote.response import Request, Response


class FakeClient:
    """Sends nothing: it returns the pages that it was given. ``more`` is what the host says of each page."""

    def __init__(self, pages: Sequence[Sequence[object]] = (), more: Sequence[bool | None] = ()) -> None:
        self.pages = pages
        self.more = more
        self.queries: list[Mapping[str, object] | None] = []
        self.closed = False

    def send(self, request: Request) -> Response:
        self.queries.append(request.query)
        items = self.pages[len(self.queries) - 1] if self.pages else []
        return Response(status=200, endpoint=request.endpoint, data=[{"iid": item} for item in items])

    def has_next(self, response: Response) -> bool | None:
        return self.more[len(self.queries) - 1]

    def close(self) -> None:
        self.closed = True
