"""What ``requests`` sees of a host that is served on a loopback port: real sockets, real faults."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from gitprovider.connect import connect
from gitprovider.errors import GitProviderError, Outcome
from gitprovider.fakes.faults import Fault, FaultScript, FaultyHost
from gitprovider.fakes.http import Request, Response
from gitprovider.fakes.serve import main, serving
from gitprovider.local.forge import Forge
from tests.support.counter import Counter


def test_a_served_host_answers_on_one_kept_connection() -> None:
    """Three requests of one session come from one source port, with their bodies intact."""
    ports: list[str] = []

    class Echo(Counter):
        def handle(self, request: Request) -> Response:
            return Response(status=200, body=request.body)

    with serving(FaultyHost(Echo())) as url, requests.Session() as session:
        bodies = []
        for text in ("a", "b" * 100_000, "c"):
            response = session.post(f"{url}/counter/x", data=text.encode(), timeout=5, stream=True)
            ports.append(str(response.raw.connection.sock.getsockname()) if response.raw.connection else "")
            bodies.append(response.content.decode())

    assert bodies == ["a", "b" * 100_000, "c"]
    assert len(set(ports)) == 1


def test_the_host_learns_where_the_request_arrived() -> None:
    """Scheme, host and port are those of the served URL, so that a fake can lead its links back."""
    origins: list[str] = []

    class Looking(Counter):
        def handle(self, request: Request) -> Response:
            origins.append(request.origin)
            return Response(status=204)

    with serving(Looking()) as url:
        requests.get(f"{url}/counter/a", timeout=5)

    assert origins == [url]


def test_answers_leave_at_once() -> None:
    """The connection has TCP_NODELAY: a response in two writes would otherwise wait for a delayed ACK."""
    seen: list[int] = []

    class Server(Counter):
        pass

    original: Callable[..., None] = socket.socket.setsockopt

    def watching(self: socket.socket, level: int, option: int, *rest: int) -> None:
        if (level, option) == (socket.IPPROTO_TCP, socket.TCP_NODELAY):
            seen.append(threading.get_ident())
        original(self, level, option, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "setsockopt", watching)
        with serving(Server()) as url:
            requests.get(f"{url}/counter/a", timeout=5)

    assert any(thread != threading.get_ident() for thread in seen)


def test_a_reset_resets_the_connection() -> None:
    """The client's kernel reports ECONNRESET, not an orderly end."""
    with (
        serving(FaultyHost(Counter(), script=FaultScript(Fault(kind="reset")))) as url,
        pytest.raises(requests.ConnectionError) as caught,
    ):
        requests.get(f"{url}/counter/a", timeout=5)

    assert isinstance(caught.value.args[0].args[1], ConnectionResetError)


def test_a_cut_body_ends_before_its_length() -> None:
    """The headers promise more bytes than come."""
    with (
        serving(FaultyHost(Counter(), script=FaultScript(Fault(kind="cut", when="after")))) as url,
        pytest.raises(requests.exceptions.ChunkedEncodingError),
    ):
        requests.get(f"{url}/counter/a", timeout=5)


def test_a_timeout_says_nothing_until_the_client_gives_up() -> None:
    """The client's own timeout ends the wait, and the server is free again afterwards."""
    host = FaultyHost(Counter(), script=FaultScript(Fault(kind="timeout")))
    with serving(host) as url:
        with pytest.raises(requests.ReadTimeout):
            requests.get(f"{url}/counter/a", timeout=0.2)
        response = requests.get(f"{url}/counter/a", timeout=5)

    assert response.status_code == 200


def test_a_stalled_connection_does_not_hold_up_the_end() -> None:
    """Leaving the block ends a stall and an idle kept-alive connection instead of waiting for them."""
    host = FaultyHost(Counter(), script=FaultScript(Fault(kind="timeout", endpoint="counter")))
    with serving(host) as url, requests.Session() as session:
        session.get(f"{url}/elsewhere", timeout=5)
        port = int(url.rsplit(":", 1)[1])
        stalled = socket.create_connection(("127.0.0.1", port))
        stalled.sendall(b"GET /counter/a HTTP/1.1\r\nHost: x\r\n\r\n")
        while len(host.request_log) < 2:
            threading.Event().wait(0.01)

    with stalled:
        assert stalled.recv(1) == b""


def test_concurrent_clients_get_their_own_answers() -> None:
    """Twenty threads at once each read the number that they sent."""

    class Echo(Counter):
        def handle(self, request: Request) -> Response:
            return Response(status=200, body=request.body)

    wrong: list[str] = []
    with serving(Echo()) as url:

        def work(number: int) -> None:
            with requests.Session() as session:
                for _ in range(5):
                    if session.post(url, data=str(number), timeout=10).text != str(number):
                        wrong.append(str(number))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert wrong == []


@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_the_command_serves_a_host_until_it_is_interrupted(name: str) -> None:
    """It prints the URL and the token, serves with them, and ends with 0 and no traceback on Ctrl+C."""
    command = [sys.executable, "-m", "gitprovider.fakes.serve", name, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("url: ").strip()
        token = process.stdout.readline().removeprefix("token: ").strip()
        path = "/user" if name == "github" else "/api/v4/user"
        response = requests.get(url + path, headers={"Authorization": f"Bearer {token}"}, timeout=30)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)

    assert response.status_code == 200
    assert (process.returncode, errors) == (0, "")


def test_the_command_loses_an_answer_and_prints_what_to_paste() -> None:
    """The lines to paste would lead nowhere, or a fault or an organization that was asked for would be ignored."""
    options = ["--org", "widgets-inc", "--tier", "premium", "--fault", "create_repo=lost"]
    command = [sys.executable, "-m", "gitprovider.fakes.serve", "gitlab", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip() for _ in range(6)]
        environ = dict(line.removeprefix("export ").split("=", 1) for line in lines if line.startswith("export "))
        with connect(environ["GITPROVIDER_PROVIDER"], environ=environ, settle=0) as provider:
            with pytest.raises(GitProviderError) as caught:
                provider.create_repo("widgets-inc/one")
            found = provider.get_repo("widgets-inc/one").path
        process.terminate()
        process.communicate(timeout=30)

    assert caught.value.outcome is Outcome.UNKNOWN
    assert found == "widgets-inc/one"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tier", "premium"], "one of free, pro"),
        (["--fault", "merge=lost"], "the operations are"),
        (["--fault", "merge_pull_request=200"], "=lost, =unsent or a status"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A misspelt option would be accepted and ignored."""
    with pytest.raises(SystemExit, match="2"):
        main(["github", *options])

    assert message in capsys.readouterr().err


def test_the_command_keeps_a_forge_that_it_is_given(tmp_path: Path) -> None:
    """With --root what was there is served, and with --token that one is asked for."""
    Forge(tmp_path).create_repo("acme/widgets", auto_init=True)
    command = [sys.executable, "-m", "gitprovider.fakes.serve", "github", "--root", str(tmp_path), "--token", "mine"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("url: ").strip()
        response = requests.get(f"{url}/repos/acme/widgets", headers={"Authorization": "token mine"}, timeout=30)
        process.terminate()
        process.communicate(timeout=30)

    assert response.json()["full_name"] == "acme/widgets"
    assert (tmp_path / "forge.sqlite3").exists()
