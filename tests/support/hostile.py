"""A host on loopback that sends whatever bytes it is told to: the one that no client library wants to meet."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Heard:
    """A request, as it came.

    Attributes:
        line: the request line.
        headers: the headers, with names in lower case.
        body: the body.
    """

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def method(self) -> str:
        return self.line.partition(" ")[0]

    @property
    def target(self) -> str:
        """The path and query, or the whole URL for a proxy."""
        return self.line.split(" ")[1]


# What is sent for a request, piece by piece. An empty piece closes the connection. A script may never end: it ends
# when the client hangs up.
Script = Callable[[Heard], Iterable[bytes]]


def response(body: bytes = b"{}", *headers: str, status: str = "200 OK", kind: str = "application/json") -> bytes:
    """A response with a length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


class Ticking:
    """A clock that moves by a second each time it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@dataclass
class HostileHost:
    """The host.

    Attributes:
        address, port: where it listens.
        script: what it sends.
        heard: every request so far.
        sent: how many bytes the client's side took.
        connections: a thread for each connection; it ends when the client has closed its end.
    """

    address: str
    port: int
    script: Script
    heard: list[Heard] = field(default_factory=list)
    sent: int = 0
    connections: list[threading.Thread] = field(default_factory=list)
    _sockets: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{f'[{self.address}]' if ':' in self.address else self.address}:{self.port}"

    def all_closed(self) -> bool:
        """Whether the client has closed every connection. A connection that it keeps is waited for a long time."""
        for thread in self.connections:
            thread.join(10)
        return not any(thread.is_alive() for thread in self.connections)

    def _serve(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                self._sockets.append(client)
                thread = threading.Thread(target=self._speak, args=(client,), daemon=True)
                self.connections.append(thread)
                thread.start()

    def _speak(self, client: socket.socket) -> None:
        with client, suppress(OSError), client.makefile("rb") as stream:
            while line := stream.readline():
                headers = {}
                while (header := stream.readline().strip()) != b"":
                    name, _, value = header.decode("latin-1").partition(":")
                    headers[name.strip().lower()] = value.strip()
                body = stream.read(int(headers.get("content-length", "0")))
                heard = Heard(line.decode("latin-1").strip(), headers, body)
                self.heard.append(heard)
                for piece in self.script(heard):
                    if not piece:
                        return
                    client.sendall(piece)
                    self.sent += len(piece)


@contextmanager
def hosting(script: Script, address: str = "127.0.0.1") -> Iterator[HostileHost]:
    """A host that sends what ``script`` says, while the block runs."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as listener:
        host = HostileHost(address, listener.getsockname()[1], script)
        acceptor = threading.Thread(target=host._serve, args=(listener,))
        acceptor.start()
        try:
            yield host
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            for client in host._sockets:
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)
            for thread in host.connections:
                thread.join()
