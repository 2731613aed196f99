"""A host that sends whatever bytes a test says, on a loopback socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from gitprovider import RetryOptions
from gitprovider.contract import InspectableProvider
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider
from gitprovider.limits import Limits

REMOTE = ("github", "gitlab")
TOKEN = "t0ken-0123456789"


class RawHost:
    """Sends to each request the bytes of ``respond(request)``, until they end or the client closes the connection.

    Attributes:
        requests: the first line of each request.
        sent: how many bytes the client's side took.
    """

    def __init__(self, respond: Callable[[str], Iterable[bytes]]) -> None:
        self._respond = respond
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests: list[str] = []
        self.sent = 0
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                with connection, suppress(OSError):
                    self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as lines:
            while first := lines.readline().decode().strip():
                length = 0
                while (line := lines.readline().strip().lower()) != b"":
                    if line.startswith(b"content-length:"):
                        length = int(line.partition(b":")[2])
                lines.read(length)
                self.requests.append(first)
                for part in self._respond(first):
                    connection.sendall(part)
                    self.sent += len(part)

    def close(self) -> None:
        for opened in (self._listener, *self._open):
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
            opened.close()
        self._thread.join()


@contextmanager
def raw_host(respond: Callable[[str], Iterable[bytes]]) -> Iterator[RawHost]:
    host = RawHost(respond)
    try:
        yield host
    finally:
        host.close()


@contextmanager
def connected(
    kind: str, url: str, limits: Limits | None = None, retry: RetryOptions | None = None
) -> Iterator[InspectableProvider]:
    """A provider of that kind for the host at ``url``. Its reads are tried once unless ``retry`` says otherwise."""
    limits, retry = limits or Limits(), retry or RetryOptions(max_attempts=1)
    if kind == "github":
        with GitHubProvider(TOKEN, base_url=url, limits=limits, retry=retry) as github:
            yield github
    else:
        with GitLabProvider(url, private_token=TOKEN, limits=limits, retry=retry) as gitlab:
            yield gitlab


def head(*headers: str, status: int = 200) -> bytes:
    """The head of a response."""
    return "\r\n".join([f"HTTP/1.1 {status} Any", "Content-Type: application/json", *headers, "", ""]).encode()


def whole(body: bytes, *headers: str, status: int = 200) -> bytes:
    """A complete response."""
    return head(f"Content-Length: {len(body)}", *headers, status=status) + body
