"""Serve a fake server on a loopback port, with real sockets and real faults.

``python -m gitprovider.fakes.serve github --port 0`` prints the URL and the token, and the
``export`` lines that lead the command line and ``connect`` to it. Ctrl+C ends it.
"""

from __future__ import annotations

import argparse
import re
import select
import shlex
import signal
import socket
import socketserver
import ssl
import struct
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from io import BufferedIOBase
from types import FrameType
from typing import Any

from gitprovider.fakes.faults import Fault, FaultScript, FaultyHost
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.http import Host, Request, Response, TransportFault
from gitprovider.fakes.operations import HostName, lost_answer, refusal
from gitprovider.local.forge import Forge

STALL = 60.0  # seconds after which a "timeout" ends if the client does not give up


@contextmanager
def serving(host: Host, *, port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve ``host`` on 127.0.0.1 while the block runs, and yield the URL without a trailing slash.

    Args:
        host: a fake server, or a FaultyHost, whose transport faults happen on the socket.
        port: 0 takes a free port.
        tls: the server's TLS context. The URL is https if it is given.
    """
    with _Server(host, port, tls) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"{server.scheme}://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            server.hang_up()
            thread.join()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    request_queue_size = 256
    # The end of the block joins the thread of every connection: none outlives the host.
    daemon_threads = False
    block_on_close = True

    def __init__(self, host: Host, port: int, tls: ssl.SSLContext | None) -> None:
        self.host = host
        self.scheme = "https" if tls else "http"
        self.stopping = threading.Event()
        self._tls = tls
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Connection)

    def finish_request(self, request: Any, client_address: Any) -> None:
        connection: socket.socket = request
        if self._tls is not None:
            connection = self._tls.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        with self._lock:
            self._open.add(connection)
        try:
            if isinstance(connection, ssl.SSLSocket):
                # In the connection's own thread: a client that never finishes its handshake does not block others.
                connection.do_handshake()
            if not self.stopping.is_set():
                super().finish_request(connection, client_address)
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Clients are expected to hang up. Anything else is an error in the fake server and must be visible.
        if not isinstance(sys.exception(), ConnectionError | TimeoutError | ssl.SSLError):
            super().handle_error(request, client_address)

    def hang_up(self) -> None:
        """Close every kept-alive connection and end every stall."""
        self.stopping.set()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    # Not SSLSocket.shutdown, which would take the TLS object from under the thread that reads.
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)


class _Lines:
    """Reads lines and keeps the last one. A truncated head ends with b"", not with an empty line."""

    def __init__(self, stream: BufferedIOBase) -> None:
        self.stream = stream
        self.last = b"?"

    def readline(self, limit: int = -1) -> bytes:
        self.last = self.stream.readline(limit)
        return self.last


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one write per response; with TCP_NODELAY, no response waits for a delayed ACK
    disable_nagle_algorithm = True
    server: _Server

    def parse_request(self) -> bool:
        """Read the head of a request. A head without its empty line is not a request, and ends the connection."""
        lines = _Lines(self.rfile)
        self.rfile = lines  # type: ignore[assignment]  # only readline is called on it meanwhile
        try:
            return super().parse_request() and lines.last in (b"\r\n", b"\n")
        finally:
            self.rfile = lines.stream

    def _serve(self) -> None:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            self.close_connection = True
            self._send(Response(status=411))
            return
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:
            self.close_connection = True  # servers do not act on half a request
            return
        request = Request.of(self.command, self.path, dict(self.headers.items()), body, scheme=self.server.scheme)
        try:
            self._send(self.server.host.handle(request))
        except TransportFault as fault:
            self.close_connection = True
            self._break(fault)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - the names that http.server requires

    def _send(self, response: Response, *, cut: bool = False) -> None:
        self.send_response_only(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        present = {name.lower() for name in response.headers}
        if "date" not in present:
            self.send_header("Date", formatdate(usegmt=True))
        if response.status >= 200 and response.status not in (204, 304) and "content-length" not in present:
            self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body[: len(response.body) // 2] if cut else response.body)
        self.wfile.flush()

    def _break(self, fault: TransportFault) -> None:
        if fault.kind == "cut":
            self._send(fault.response or Response(status=200, body=b"{}"), cut=True)
        elif fault.kind == "timeout":
            self._stall()
        else:
            # With a linger time of zero, close sends RST instead of FIN.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def _stall(self) -> None:
        """Send nothing until the client hangs up, the server stops, or STALL seconds have passed."""
        poller = select.poll()
        poller.register(self.connection, select.POLLIN)
        poller.poll(STALL * 1000)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that http.server gives it
        """Write nothing: the request log has every request."""


_FAKES: Mapping[str, type[FakeGitHub] | type[FakeGitLab]] = {"github": FakeGitHub, "gitlab": FakeGitLab}
# What each host calls its organizations and its tiers.
_ORGS = {"github": "orgs", "gitlab": "groups"}
_TIERS = {"github": ("plan", ("free", "pro")), "gitlab": ("tier", ("free", "premium"))}


def _settings(given: argparse.Namespace) -> dict[str, Any]:
    """The settings of the fake server that the arguments ask for.

    Raises:
        ValueError: the host has no such tier.
    """
    settings: dict[str, Any] = {"token": given.token} if given.token else {}
    if given.org:
        settings[_ORGS[given.host]] = tuple(given.org)
    if given.tier:
        name, tiers = _TIERS[given.host]
        if given.tier not in tiers:
            raise ValueError(f"--tier of {given.host} is one of {', '.join(tiers)}")
        settings[name] = given.tier
    return settings


def _fault(host: HostName, text: str) -> Fault:
    """The fault that ``OPERATION=WHAT`` names.

    Raises:
        ValueError: the text names none.
    """
    operation, _, what = text.partition("=")
    if what in ("lost", "unsent"):
        return lost_answer(host, operation, applied=what == "lost")
    if re.fullmatch("[45][0-9][0-9]", what):
        return refusal(host, operation, int(what))
    raise ValueError(f"--fault {text}: after the operation comes =lost, =unsent or a status such as =503")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one fake server until Ctrl+C or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m gitprovider.fakes.serve", description=main.__doc__)
    parser.add_argument("host", choices=sorted(_FAKES))
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--root", help="the forge's directory; the default is a temporary one, removed at the end")
    parser.add_argument("--token", help="the token to accept; the default is the fake server's own")
    parser.add_argument("--org", action="append", help="an organization or group that exists, in place of acme")
    parser.add_argument("--tier", help="github: free or pro; gitlab: free or premium")
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="OPERATION=WHAT",
        help="what goes wrong once: the operation's answer is lost after its effect (=lost), its request is lost"
        " without effect (=unsent), or it is refused with a status (=503)",
    )
    given = parser.parse_args(arguments)
    try:
        settings = _settings(given)
        script = FaultScript(*(_fault(given.host, text) for text in given.fault))
    except ValueError as exc:
        parser.error(str(exc))

    stopped = threading.Event()

    def stop(signum: int, frame: FrameType | None) -> None:
        stopped.set()

    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, stop)
    with ExitStack() as stack:
        root = given.root or stack.enter_context(tempfile.TemporaryDirectory(prefix="gitprovider-"))
        fake_type = _FAKES[given.host]
        fake = fake_type(Forge(root, combine=fake_type.combine), **settings)
        # The request log grows without end, so it is kept only where there is a fault.
        host = FaultyHost(fake, script=script) if given.fault else fake
        url = stack.enter_context(serving(host, port=given.port))
        sys.stdout.write(f"url: {url}\ntoken: {fake.token}\n\n")
        sys.stdout.write(f"export GITPROVIDER_PROVIDER={given.host}\nexport GITPROVIDER_URL={url}\n")
        sys.stdout.write(f"export GITPROVIDER_TOKEN={shlex.quote(fake.token)}\n")
        sys.stdout.flush()
        stopped.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
