"""A proxy on loopback that breaks one exchange at a given byte of its request or of its answer."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

# A position in a message, given the whole message.
Position = Callable[[bytes], int]


def _head(message: bytes) -> int:
    return message.index(b"\r\n\r\n") + 4


def _first_line(message: bytes) -> int:
    return message.index(b"\r\n") + 2


POSITIONS: Mapping[str, Position] = {
    "before the first byte": lambda message: 0,
    "in the first line": lambda message: _first_line(message) // 2,
    "after the first line": _first_line,
    "in the headers": lambda message: (_first_line(message) + _head(message)) // 2,
    "before the empty line": lambda message: _head(message) - 2,
    "after the headers": _head,
    "in the body": lambda message: (_head(message) + len(message)) // 2,
    "before the last byte": lambda message: len(message) - 1,
    "after the last byte": len,
}


@dataclass(frozen=True)
class Cut:
    """Where the first exchange breaks whose request line begins with ``method`` and whose path has ``endpoint``.

    Attributes:
        body: what the request has in it, besides.
    """

    method: str
    endpoint: str
    side: Literal["request", "answer"]
    position: Position
    body: bytes = b""


@dataclass
class Proxy:
    """The proxy: arm it, and look at ``cuts`` for how often it cut.

    Attributes:
        url: where it listens.
        cut: the next cut, once; None lets everything pass.
        cuts: how many cuts it made.
    """

    url: str
    upstream: tuple[str, int]
    cut: Cut | None = None
    cuts: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def due(self, request: bytes) -> Cut | None:
        """The cut that this request is to suffer."""
        line = request[: request.index(b"\r\n")].decode()
        with self._lock:
            cut = self.cut
            if cut is None or not line.startswith(cut.method + " ") or cut.endpoint not in line.split(" ")[1]:
                return None
            if cut.body not in request:
                return None
            self.cut = None
            self.cuts += 1
            return cut


@contextmanager
def proxying(upstream: str) -> Iterator[Proxy]:
    """A proxy in front of ``upstream`` while the block runs."""
    parts = urlsplit(upstream)
    assert parts.hostname is not None
    assert parts.port is not None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = Proxy(f"http://127.0.0.1:{listener.getsockname()[1]}", (parts.hostname, parts.port))
        connections: list[tuple[socket.socket, threading.Thread]] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    thread = threading.Thread(target=_relay, args=(proxy, client))
                    connections.append((client, thread))
                    thread.start()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield proxy
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            for client, thread in connections:
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)
                thread.join()


def _relay(proxy: Proxy, client: socket.socket) -> None:
    """Pass the exchanges of one connection on, one after another, until one breaks or either side hangs up."""
    with client, socket.create_connection(proxy.upstream) as server, suppress(OSError):
        while request := _message(client):
            cut = proxy.due(request)
            if cut is not None and cut.side == "request":
                server.sendall(request[: cut.position(request)])
                server.shutdown(socket.SHUT_WR)
                _message(server)  # whatever it says, nobody hears
                _reset(client)
                return
            server.sendall(request)
            answer = _message(server)
            if cut is not None:
                client.sendall(answer[: cut.position(answer)])
                return
            client.sendall(answer)


def _message(peer: socket.socket) -> bytes:
    """One whole message; what came of it when the peer hung up in the middle, b"" when it had nothing to say."""
    message = b""
    while b"\r\n\r\n" not in message:
        if not (part := peer.recv(65536)):
            return message
        message += part
    head = message[: _head(message)].lower()
    length = 0
    for line in head.split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    while len(message) < len(head) + length:
        if not (part := peer.recv(65536)):
            break
        message += part
    return message


def _reset(peer: socket.socket) -> None:
    # With a linger time of zero, close sends RST instead of FIN.
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
