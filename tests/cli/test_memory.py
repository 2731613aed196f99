"""What the command line remembers of a mutation that was interrupted, killed or lost, and what it finds out later."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gitprovider.cli import exits
from gitprovider.fakes.faults import Fault, FaultScript, FaultyHost, RequestLog
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.http import Request, Response
from gitprovider.fakes.serve import serving
from gitprovider.local import Forge, LocalProvider
from tests.support.command_line import Run
from tests.support.crashed import IN_FLIGHT, Killing
from tests.support.hosts import EFFECTS, given_project

REPO = "acme/widgets"
COMMAND = [sys.executable, "-c", "import sys; from gitprovider.cli import main; sys.exit(main())"]
TOKEN = "t" * 20


@contextmanager
def github(
    root: Path, name: str, point: str, kind: type[Killing] = Killing
) -> Iterator[tuple[str, Killing, RequestLog]]:
    """A fake GitHub with a project. It ends its caller at that point of the mutation."""
    forge = Forge(root, combine=FakeGitHub.combine)
    given_project(forge, REPO)
    log = RequestLog()
    killing = kind(FaultyHost(FakeGitHub(forge, token=TOKEN), log, FaultScript()), EFFECTS["github"][name], point)
    with serving(killing) as url:
        yield url, killing, log


def started(url: str, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "--provider", "github", "--url", url, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "GITPROVIDER_TOKEN": TOKEN},
    )


def run_in(killing: Killing, process: subprocess.Popen[str]) -> tuple[int, str, str]:
    killing.caller = process.pid
    killing.started.set()
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize("point", IN_FLIGHT)
def test_a_killed_merge_is_found_out(point: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `kill -9` nobody would know whether the merge took effect."""
    monkeypatch.setenv("GITPROVIDER_TOKEN", TOKEN)
    with github(tmp_path / "hub", "merge_pull_request", point) as (url, killing, log):
        code, _, _ = run_in(killing, started(url, "merge-pull-request", REPO, "1"))
        assert code == -signal.SIGKILL
        killing.acted.wait(60)
        listed = run("--json", "--provider", "github", "--url", url, "recover")
        (name,) = [one["id"] for one in listed.document]
        sent = len(log.mutations())

        applied = point != "lost"
        early = run("--json", "resolve", name, "--url", url)
        assert early.document["verdict"] == ("applied" if applied else "undecided")
        assert early.code == (exits.OK if applied else exits.UNCERTAIN)
        assert len(log.mutations()) == sent


def test_a_lost_response_prints_the_ready_command(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message would tell a command that cannot be run as it is."""
    monkeypatch.setenv("GITPROVIDER_TOKEN", TOKEN)
    script = FaultScript(Fault(kind="reset", method="PUT", endpoint="/merge", when="after"))
    forge = Forge(tmp_path / "hub", combine=FakeGitHub.combine)
    given_project(forge, REPO)
    with serving(FaultyHost(FakeGitHub(forge, token=TOKEN), RequestLog(), script)) as url:
        lost = run("--provider", "github", "--url", url, "merge-pull-request", REPO, "1")
        (command,) = re.findall(r"`(gitprovider resolve \S+ --wait [^`]*)`", lost.err)
        found = run(*shlex.split(command)[1:])
        again = run(*shlex.split(command)[1:], "--json")
        recover = ("--json", "--provider", "github", "--url", url, "recover")
        listed = [run(*recover, *option).document for option in ((), ("--forget",), ())]

    assert (lost.code, found.code, again.code) == (exits.UNCERTAIN, exits.OK, exits.OK)
    assert found.out.startswith("verdict\tapplied\n")
    assert [len(one) for one in listed] == [1, 1, 0]


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, exits.TERMINATED), (signal.SIGINT, exits.INTERRUPTED)])
def test_an_interrupted_mutation_prints_the_ready_command(signum: int, code: int, tmp_path: Path, run: Run) -> None:
    """A deployment that stops a job would leave a mutation that nobody can ask about."""
    kind = type("Signalling", (Waiting,), {"signum": signum})
    with github(tmp_path / "hub", "create_branch", "after", kind) as (url, killing, _):
        process = started(url, "--json", "create-branch", REPO, "topic", "--source", "main")
        ended = run_in(killing, process)
        killing.released.set()  # type: ignore[attr-defined] # what the test needs to reach

    document = json.loads(ended[1])
    assert ended[0] == code, ended
    assert document["error"]["outcome"] == "unknown"
    assert document["resolve"].startswith("gitprovider resolve github-")
    assert document["resolve"].endswith(f" --wait --provider github --url {url}")


class Waiting(Killing):
    """A host that signals its caller after the effect, and does not respond until it is released."""

    signum = signal.SIGTERM

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.released = threading.Event()

    def handle(self, request: Request) -> Response:
        method, endpoint = self._effect
        response = self._inner.handle(request)
        if request.method == method and re.search(endpoint, self._inner.fake.endpoint(request)):
            self.started.wait()
            os.kill(self.caller, self.signum)
            self.released.wait(60)
        return response


@pytest.mark.parametrize(
    "name", ["create_repo", "commit_files", "create_branch", "open_pull_request", "merge_pull_request"]
)
def test_a_bootstrap_killed_in_flight_ends_with_each_effect_once(
    name: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill at the moment at which a response is lost, the same command would do a step twice."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a").write_text("a\n")
    monkeypatch.setenv("GITPROVIDER_TOKEN", TOKEN)
    asked = ("bootstrap", "acme/new", "--from", str(tmp_path / "files"), "--pull-request")
    came = []
    for point in ("never", "after"):
        log = RequestLog()
        faulty = FaultyHost(
            FakeGitHub(Forge(tmp_path / point, combine=FakeGitHub.combine), token=TOKEN), log, FaultScript()
        )
        effect = ("PUT", "/contents/") if name == "commit_files" else EFFECTS["github"][name]
        killing = Killing(faulty, effect, point)
        with serving(killing) as url:
            code, _, err = run_in(killing, started(url, *asked))
            assert code == (0 if point == "never" else -signal.SIGKILL), err
            again = run("--json", "--provider", "github", "--url", url, *asked)
        assert again.code == 0, again.out
        came.append(sorted((entry.method, entry.endpoint) for entry in log.entries if entry.effect))

    assert came[0] == came[1]


def test_a_mutation_is_not_sent_if_it_cannot_be_remembered(
    run: Run, widgets: LocalProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill would then be forgotten."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))

    ran = run("--json", "create-branch", REPO, "topic", "--source", "main")

    assert (ran.code, ran.error["outcome"]) == (exits.UNAVAILABLE, "not_applied")
    assert "intent store" in ran.error["message"]
    assert [branch.name for branch in widgets.list_branches(REPO)] == ["main"]
    assert run("list-branches", REPO).code == 0


def test_a_mutation_that_is_known_leaves_nothing(run: Run, widgets: LocalProvider, tmp_path: Path) -> None:
    """`gitprovider recover` would list what nobody needs to ask about."""
    assert run("create-branch", REPO, "topic", "--source", "main").code == 0
    assert run("create-branch", REPO, "topic", "--source", "main").code == exits.CONFLICT

    listed = run("--json", "recover")

    assert (listed.code, listed.document) == (0, [])
    (state,) = (tmp_path / "state" / "gitprovider").glob("*.sqlite3")
    assert state.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "name", ["nothing", "local-00000000-", "local-00000000-x", "../../etc/passwd", "missing/file.json"]
)
def test_a_name_that_nobody_knows_is_a_usage_error(run: Run, name: str, tmp_path: Path) -> None:
    """A mistyped id would be an answer, or leave a file behind."""
    assert run("resolve", name).code == exits.USAGE
    assert not (tmp_path / "state").exists()
