"""The service as it runs: uvicorn with two worker processes, on a socket, over each of the three providers."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import httpx
import pytest

from gitprovider.fakes.faults import FaultScript, FaultyHost, Journal
from gitprovider.fakes.github_face import GitHubFace
from gitprovider.fakes.gitlab_face import GitLabFace
from gitprovider.fakes.serve import serving
from gitprovider.local import Forge

ROOT = pathlib.Path(__file__).parents[2]
TOKEN = "token-of-the-service"


@dataclass(frozen=True)
class Backend:
    """What is behind the service: the forge, and for a remote host its journal and fault script."""

    environment: dict[str, str]
    forge: Forge
    journal: Journal = field(default_factory=Journal)
    script: FaultScript = field(default_factory=FaultScript)


@contextmanager
def backend(name: str, root: pathlib.Path) -> Iterator[Backend]:
    """The host of that name. These lines are all that differs between the three."""
    forge = Forge(root / "forge")
    if name == "local":
        yield Backend({"SERVICE_PROVIDER": "local", "GITPROVIDER_ROOT": str(root / "forge")}, forge)
        return
    journal, script = Journal(), FaultScript()
    face = GitHubFace(forge, token=TOKEN) if name == "github" else GitLabFace(forge, token=TOKEN)
    with serving(FaultyHost(face, journal, script)) as url:
        environment = {"SERVICE_PROVIDER": name, "GITPROVIDER_URL": url, "GITPROVIDER_TOKEN": TOKEN}
        yield Backend(environment, forge, journal, script)


@contextmanager
def running(environment: dict[str, str], store: pathlib.Path, *, workers: int = 2) -> Iterator[str]:
    """The service under uvicorn, and its URL."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(256)
        port = listener.getsockname()[1]
        command = [sys.executable, "-m", "uvicorn", "--factory", "tests.service.app:from_environment", "--fd",
                   str(listener.fileno()), "--workers", str(workers), "--log-level", "warning"]  # fmt: skip
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment, "SERVICE_STORE": str(store)},
            pass_fds=[listener.fileno()],
        )
        try:
            url = f"http://127.0.0.1:{port}"
            # The socket listens already: this waits in its queue until a worker takes it.
            httpx.get(f"{url}/openapi.json", timeout=60).raise_for_status()
            yield url
        finally:
            process.terminate()
            process.wait(30)


Service = Callable[[str], "tuple[httpx.Client, Backend]"]


@pytest.fixture
def service(tmp_path: pathlib.Path) -> Iterator[Service]:
    """``service("github")`` starts the service over that host, and gives a client and what is behind it."""
    with ExitStack() as stack:

        def start(name: str) -> tuple[httpx.Client, Backend]:
            behind = stack.enter_context(backend(name, tmp_path))
            url = stack.enter_context(running({**behind.environment, "SERVICE_SETTLE": "0.001"}, tmp_path / "lost"))
            return stack.enter_context(httpx.Client(base_url=url, timeout=60)), behind

        yield start
