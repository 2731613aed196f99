"""The same commands on GitHub's and GitLab's dialects, over sockets: the swap is one option."""

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gitprovider import Intent
from gitprovider.fakes.faults import Fault, FaultScript, FaultyHost, RequestLog
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.http import Host, Request, Response
from gitprovider.fakes.serve import serving
from gitprovider.local import Forge, LocalProvider
from tests.support.command_line import Run

TOKEN = "t0ken-" + "x" * 30
HOSTS = ["github", "gitlab-free", "gitlab-premium"]


@contextmanager
def served(host: str, forge: Forge, script: FaultScript | None = None) -> Iterator[tuple[list[str], RequestLog]]:
    """A fake over a forge on a loopback port: the options that lead there, and what it was sent."""
    fake: Any
    if host == "github":
        fake = FakeGitHub(forge, token=TOKEN, lag=1, ref_lag=1, mergeable_after=3)
    else:
        tier: Any = host.partition("-")[2]
        fake = FakeGitLab(forge, token=TOKEN, tier=tier, mergeable_after=3)
        fake.branch_lag = 1
    request_log = RequestLog()
    with serving(FaultyHost(fake, request_log, script or FaultScript())) as url:
        yield ["--provider", host.partition("-")[0], "--url", url], request_log


def forge_for(host: str, root: Path) -> Forge:
    return Forge(root, combine=FakeGitHub.combine if host == "github" else FakeGitLab.combine)


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITPROVIDER_TOKEN", TOKEN)
    monkeypatch.delenv("GITPROVIDER_ROOT")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hosts' lag is counted in reads here, so that a wait need not take time."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)


@pytest.mark.parametrize("host", HOSTS)
def test_bootstrap_ends_in_the_same_tree_on_every_host(run: Run, tmp_path: Path, host: str) -> None:
    """With a host that lags behind its own writes, a pull request and protection: the tree is the local forge's."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project/logo").write_bytes(b"\x89PNG\r\n\x00\xff")
    (tmp_path / "project/run").write_bytes(b"#!/bin/sh\n")
    (tmp_path / "project/run").chmod(0o755)
    command = ["--json", "bootstrap", "acme/widgets", "--from", "project", "--pull-request"]

    here = run("--root", str(tmp_path / "local"), *command)
    with served(host, forge_for(host, tmp_path / "served")) as (options, request_log):
        there = run(*options, *command)

    assert here.document["ok"]
    assert there.code == 0, there.out + there.err
    with LocalProvider(tmp_path / "local") as local, LocalProvider(tmp_path / "served") as remote:
        for branch in ("main", "develop"):
            mine = local.tree("acme/widgets", local.head("acme/widgets", branch))
            assert remote.tree("acme/widgets", remote.head("acme/widgets", branch)) == mine
        assert remote.get_pull_request("acme/widgets", 1).state == "merged"
        rules = remote.protection("acme/widgets", "main")
        assert rules is not None
        assert rules.require_pull_request
    took_effect = [(entry.method, entry.path, entry.body) for entry in request_log.mutations() if entry.effect]
    assert len(took_effect) == len(set(took_effect))
    assert [step["status"] for step in there.document["steps"]] == ["done"] * 8


@pytest.mark.parametrize("host", HOSTS)
def test_bootstrap_again_sends_no_mutation(run: Run, tmp_path: Path, host: str) -> None:
    """Over a finished repository the command only reads."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project/f").write_text("x\n")
    with served(host, forge_for(host, tmp_path / "served")) as (options, request_log):
        command = [*options, "--json", "bootstrap", "acme/widgets", "--from", "project", "--pull-request"]
        assert run(*command).code == 0
        request_log.clear()

        again = run(*command)

        assert {step["status"] for step in again.document["steps"]} == {"already there"}
        assert request_log.mutations() == []


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize("host", ["github", "gitlab-free"])
def test_retries_is_the_number_of_further_tries(run: Run, tmp_path: Path, host: str, retries: int) -> None:
    """--retries N on a host that is down for good: one try and N more, and the envelope says how many."""
    script = FaultScript()
    script.add(Fault(kind="status", status=503, times=None))
    with served(host, forge_for(host, tmp_path), script) as (options, request_log):
        ran = run(*options, "--json", "--retries", str(retries), "get-repo", "acme/widgets")

    assert (ran.code, ran.error["attempts"], len(request_log.entries)) == (7, retries + 1, retries + 1)


@pytest.mark.parametrize("host", ["github", "gitlab-free"])
def test_a_lost_answer_is_resolved_from_the_printed_envelope(run: Run, tmp_path: Path, host: str) -> None:
    """create-branch whose answer is lost exits 8; resolve with the printed envelope says that it was applied."""
    forge = forge_for(host, tmp_path / "served")
    forge.create_repo("acme/widgets", auto_init=True)
    script = FaultScript()
    script.add(Fault(kind="reset", method="POST", when="after"))
    with served(host, forge, script) as (options, request_log):
        lost = run(
            *options, "--json", "create-branch", "acme/widgets", "x", "--source", forge.head("acme/widgets", "main")
        )
        (tmp_path / "lost.json").write_text(lost.out)
        found = run(*options[2:], "--json", "resolve", "lost.json", "--wait")

        assert (lost.code, lost.error["outcome"]) == (8, "unknown")
        assert (found.code, found.document["verdict"], found.document["value"]["name"]) == (0, "applied", "x")
        assert len([entry for entry in request_log.mutations() if entry.method == "POST"]) == 1


def _said(status: int, text: str, **more: Any) -> Fault:
    """A refusal in the words of the application, to the creation of a branch."""
    body = json.dumps({"message": text, "documentation_url": "https://docs.github.com/rest"}).encode()
    return Fault(kind="status", status=status, method="POST", endpoint=r"(refs|branches)$", body=body, **more)


SSO = {"Location": "https://sso.example/login"}
# What a host or a gateway says to the creation of a branch, and the exit code of the command.
ENDINGS = {
    "github-404 page": ("github", Fault(kind="html", status=404, method="POST", when="after"), 8),
    "github-redirect": ("github", Fault(kind="redirect", status=302, headers=SSO, method="POST", when="after"), 8),
    "github-lost": ("github", Fault(kind="status", status=503, method="POST", when="after"), 8),
    "github-hidden": ("github", _said(404, "Not Found"), 4),
    "github-hook": ("github", _said(422, "a hook of ours says no"), 4),
    "github-allow list": ("github", _said(403, "the `acme` organization has an IP allow list enabled"), 4),
    "github-taken": ("github", _said(422, "Reference already exists"), 5),
    "github-prefix": ("github", _said(422, "Reference update failed"), 5),
    "github-limit": ("github", _said(429, "Too many requests"), 6),
    "gitlab-404 page": ("gitlab-free", Fault(kind="html", status=404, method="POST", when="after"), 8),
    "gitlab-redirect": ("gitlab-free", Fault(kind="redirect", status=302, headers=SSO, method="POST", when="after"), 8),
    "gitlab-storage": ("gitlab-free", _said(400, "4:Deadline Exceeded", when="after"), 8),
    "gitlab-hook": ("gitlab-free", _said(400, "pre-receive hook declined"), 4),
    "gitlab-right": ("gitlab-free", _said(403, "403 Forbidden"), 4),
    "gitlab-limit": ("gitlab-free", _said(429, "429 Too Many Requests"), 6),
}


@pytest.mark.parametrize(("host", "fault", "code"), ENDINGS.values(), ids=ENDINGS)
def test_a_command_ends_with_the_code_of_what_the_host_said(
    run: Run, tmp_path: Path, host: str, fault: Fault, code: int
) -> None:
    """A script would repeat what was done, or give up on what was not; resolve tells it which, over the same socket."""
    forge = forge_for(host, tmp_path / "served")
    forge.create_repo("acme/widgets", auto_init=True)
    script = FaultScript()
    script.add(fault)
    with served(host, forge, script) as (options, request_log):
        head = forge.head("acme/widgets", "main")
        ended = run(*options, "--json", "create-branch", "acme/widgets", "x", "--source", head)
        assert ended.code == code
        assert ended.error["outcome"] == ("unknown" if code == 8 else "not_applied")
        (tmp_path / "ended.json").write_text(ended.out)
        found = run(*options[2:], "--json", "resolve", "ended.json", "--wait")
        assert (found.code, found.document["verdict"]) == ((0, "applied") if code == 8 else (9, "not_applied"))
        assert len([entry for entry in request_log.mutations() if entry.method == "POST"]) == 1


@pytest.mark.parametrize("host", ["github", "gitlab-free"])
def test_bootstrap_makes_nothing_on_the_word_of_a_gateway(run: Run, tmp_path: Path, host: str) -> None:
    """ensure_repo would make the repository a second time, or call it missing."""
    forge = forge_for(host, tmp_path / "served")
    forge.create_repo("acme/widgets", auto_init=True)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a").write_text("a")
    script = FaultScript()
    script.add(Fault(kind="html", status=404, times=None))
    with served(host, forge, script) as (options, request_log):
        ended = run(*options, "--json", "bootstrap", "acme/widgets", "--from", str(tmp_path / "files"))

        assert ended.code == 7
        assert request_log.mutations() == []


@pytest.mark.parametrize("host", ["github", "gitlab-free"])
def test_a_url_leads_to_the_host_and_so_does_the_printed_command(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """A mutation by URL whose answer is lost prints a command that asks another host."""
    forge = forge_for(host, tmp_path / "served")
    forge.create_repo("acme/widgets", auto_init=True)
    script = FaultScript()
    script.add(Fault(kind="reset", method="POST", when="after"))
    monkeypatch.delenv("GITPROVIDER_PROVIDER")
    with served(host, forge, script) as ((_, kind, _, url), _):
        lost = run(
            "--provider", kind, "--url", url, "create-branch", f"{url}/acme/widgets.git", "x", "--source", "main"
        )
        command = lost.err.partition("next: `gitprovider ")[2].partition("`")[0]
        monkeypatch.delenv("GITPROVIDER_TOKEN")
        monkeypatch.setenv("GH_HOST" if host == "github" else "GITLAB_HOST", url)
        monkeypatch.setenv("GITHUB_TOKEN" if host == "github" else "GITLAB_TOKEN", TOKEN)
        found = run(*command.split())
        seen = run("--json", "get-repo", f"{url}/acme/widgets")

    assert (lost.code, found.code) == (8, 0), lost.err + found.err
    assert "verdict\tapplied" in found.out
    assert seen.document["path"] == "acme/widgets"


@pytest.mark.parametrize("host", ["github", "gitlab-free"])
def test_debug_shows_each_request_and_no_secret(run: Run, tmp_path: Path, host: str) -> None:
    """Whoever asks the host's support cannot name the request, or pastes a token or a body with it."""
    with served(host, forge_for(host, tmp_path)) as (options, request_log):
        ran = run(*options, "--debug", "create-repo", "acme/widgets", "--description", "a body's text")

    shown = [line for line in ran.err.splitlines() if line.startswith("debug: ")]
    sent = [(entry.method, entry.path.partition("?")[0]) for entry in request_log.entries]
    assert ran.code == 0
    assert [tuple(line.split()[1:3]) for line in shown[:-1]] == [
        (method, path.removeprefix("/api/v4").removeprefix("/api/v3")) for method, path in sent
    ]
    assert all(re.fullmatch(r"debug: [A-Z]+ /\S+ 20\d( request \S+)? \d+\.\d{3} s", line) for line in shown[:-1])
    assert re.fullmatch(r"debug: create_repo acme/widgets done \d+\.\d{3} s", shown[-1])
    assert TOKEN not in ran.err
    assert "a body's text" not in ran.err


def test_a_wrong_token_is_exit_code_4_and_not_printed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host's refusal of the token, in words and as an envelope, without the token."""
    monkeypatch.setenv("GITPROVIDER_TOKEN", "wrong-" + "y" * 30)
    with served("github", forge_for("github", tmp_path)) as (options, _):
        plain, ran = run(*options, "get-repo", "a/b"), run(*options, "--json", "get-repo", "a/b")

    assert (plain.code, ran.code, ran.error["status"]) == (4, 4, 401)
    assert "yyyy" not in plain.err + ran.out


def test_ctrl_c_while_a_mutation_is_in_flight_says_that_its_outcome_is_unknown(tmp_path: Path) -> None:
    """The process ends at once with 130, and its document carries the intent with which resolve can be asked."""
    arrived, over = threading.Event(), threading.Event()

    class Silent:
        def handle(self, request: Request) -> Response:
            arrived.set()
            over.wait(60)
            return Response(status=500)

    host: Host = Silent()
    with serving(host) as url:
        running = subprocess.Popen(
            [sys.executable, "-c", "import sys; from gitprovider.cli import main; sys.exit(main())", "--provider",
             "github", "--url", url, "--json", "create-branch", "acme/widgets", "x", "--source", "a" * 40],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert arrived.wait(60)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
        over.set()

    error = json.loads(out)["error"]
    assert running.returncode == 130
    assert err == "error: github create_branch acme/widgets: interrupted (outcome unknown: do not repeat)\n"
    assert (error["type"], error["outcome"]) == ("Interrupted", "unknown")
    assert Intent.from_json(error["intent"]).sent_at is not None
