"""The service as it runs: uvicorn with two worker processes, on a socket, over each of the three providers."""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

from gitprovider.fakes.faults import FaultScript, FaultyHost, RequestLog
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.serve import serving
from gitprovider.local import Forge

ROOT = pathlib.Path(__file__).parents[3]
TOKEN = "token-of-the-service"


@dataclass(frozen=True)
class Backend:
    """What is behind the service: the forge, and for a remote host its request log and fault script."""

    environment: dict[str, str]
    forge: Forge
    request_log: RequestLog = field(default_factory=RequestLog)
    script: FaultScript = field(default_factory=FaultScript)


@contextmanager
def backend(name: str, root: pathlib.Path) -> Iterator[Backend]:
    """The host of that name. These lines are all that differs between the three."""
    if name == "local":
        forge = Forge(root / "forge")
        yield Backend({"SERVICE_PROVIDER": "local", "GITPROVIDER_ROOT": str(root / "forge")}, forge)
        return
    fake: FakeGitHub | FakeGitLab
    if name == "github":
        forge = Forge(root / "forge", combine=FakeGitHub.combine)
        fake = FakeGitHub(forge, token=TOKEN, rate_limit=1_000_000)  # an hour's 5,000 would end the load, not test it
    else:
        forge = Forge(root / "forge", combine=FakeGitLab.combine)
        fake = FakeGitLab(forge, token=TOKEN)
    request_log, script = RequestLog(), FaultScript()
    with serving(FaultyHost(fake, request_log, script)) as url:
        environment = {"SERVICE_PROVIDER": name, "GITPROVIDER_URL": url, "GITPROVIDER_TOKEN": TOKEN}
        yield Backend(environment, forge, request_log, script)


@contextmanager
def running(
    environment: dict[str, str], store: pathlib.Path, *, workers: int = 2, supervisors: list[int] | None = None
) -> Iterator[str]:
    """The service under uvicorn, and its URL. ``supervisors`` gets the process that starts the workers anew."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(256)
        port = listener.getsockname()[1]
        command = [
            *(sys.executable, "-m", "uvicorn", "--factory", "examples.service.app:from_environment"),
            *("--fd", str(listener.fileno()), "--workers", str(workers), "--log-level", "warning"),
            # A busy client may leave a connection idle for longer than the default of 5 s, and then use it again.
            *("--timeout-keep-alive", "600"),
        ]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment, "SERVICE_STORE": str(store)},
            pass_fds=[listener.fileno()],
        )
        if supervisors is not None:
            supervisors.append(process.pid)
        try:
            url = f"http://127.0.0.1:{port}"
            # The socket listens already: this waits in its queue until a worker takes it.
            httpx.get(f"{url}/openapi.json", timeout=60).raise_for_status()
            yield url
        finally:
            process.terminate()
            process.wait(30)


def kill_workers(supervisor: int) -> None:
    """End every worker process with SIGKILL."""
    for task in pathlib.Path(f"/proc/{supervisor}/task").iterdir():
        for child in (task / "children").read_text().split():
            if b"spawn_main" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(int(child), signal.SIGKILL)


@dataclass(frozen=True)
class Service:
    """The running service, a client of it, and what is behind it."""

    name: str
    url: str
    client: httpx.Client
    behind: Backend
