"""A client of a remote provider that sends nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gitprovider._remote.response import Request, Response


class FakeClient:
    """Sends nothing: it returns the pages that it was given. ``more`` and ``sizes`` are what the host says of each."""

    def __init__(
        self,
        pages: Sequence[Sequence[object]] = (),
        more: Sequence[bool | None] = (),
        sizes: Sequence[tuple[str, int] | None] = (),
    ) -> None:
        self.pages = pages
        self.more = more
        self.sizes = sizes
        self.queries: list[Mapping[str, object] | None] = []
        self.closed = False

    def send(self, request: Request) -> Response:
        self.queries.append(request.query)
        items = self.pages[len(self.queries) - 1] if self.pages else []
        return Response(status=200, endpoint=request.endpoint, data=[{"iid": item} for item in items])

    def has_next(self, response: Response) -> bool | None:
        return self.more[len(self.queries) - 1]

    def size(self, response: Response) -> tuple[str, int] | None:
        return self.sizes[len(self.queries) - 1] if self.sizes else None

    def close(self) -> None:
        self.closed = True
