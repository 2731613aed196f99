"""bootstrap and resolve as commands."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gitprovider import Intent, Outcome, ProviderUnavailableError, Verdict
from gitprovider._core.json import envelope
from gitprovider.cli import jobs
from gitprovider.local import LocalProvider
from tests.support.command_line import Run


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "project/bin").mkdir(parents=True)
    (tmp_path / "project/README.md").write_text("# Project\n")
    (tmp_path / "project/bin/run").write_text("#!/bin/sh\n")
    (tmp_path / "project/bin/run").chmod(0o755)
    return tmp_path / "project"


def test_bootstrap_makes_the_repository(run: Run, local: LocalProvider, files: Path) -> None:
    """Files with their modes, a develop branch and a protected main, and a line for each step."""
    ran = run("bootstrap", "acme/project", "--from", str(files))

    assert ran.code == 0
    assert [line.split("\t")[:2] for line in ran.out.splitlines()] == [
        ["done", "create_repo"], ["done", "commit_files"], ["done", "create_branch"], ["done", "protect_branch"],
    ]  # fmt: skip
    tree = local.tree("acme/project", local.head("acme/project", "develop"))
    assert {path: entry.mode for path, entry in tree.items()} == {"README.md": "100644", "bin/run": "100755"}


def test_bootstrap_passes_its_options_on(run: Run, local: LocalProvider, files: Path) -> None:
    """Visibility, description, message, author and rules are what was asked."""
    run(
        "bootstrap", "acme/project", "--from", str(files), "--visibility", "public", "--description", "Nice",
        "-m", "Begin", "--author", "Ada <ada@example.org>", "--required-approvals", "1",
    )  # fmt: skip

    repo, rules = local.get_repo("acme/project"), local.protection("acme/project", "main")
    first = local.forge.read_commit("acme/project", local.head("acme/project", "main"))
    assert (repo.visibility, repo.description) == ("public", "Nice")
    assert (first.message.strip(), first.author_name) == ("Begin", "Ada")
    assert rules is not None
    assert rules.required_approvals == 1


def test_bootstrap_with_a_pull_request_merges_it(run: Run, local: LocalProvider, files: Path) -> None:
    """--pull-request brings a change in by a merge before main is protected."""
    ran = run("--json", "bootstrap", "acme/project", "--from", str(files), "--pull-request")

    assert ran.document["ok"] is True
    assert [step["status"] for step in ran.document["steps"]] == ["done"] * 8
    assert local.get_pull_request("acme/project", 1).state == "merged"


def test_bootstrap_can_be_run_again(run: Run, local: LocalProvider, files: Path) -> None:
    """The same command over a finished repository changes nothing, and says so step by step."""
    run("bootstrap", "acme/project", "--from", str(files))
    before = local.list_branches("acme/project")

    ran = run("--json", "bootstrap", "acme/project", "--from", str(files))

    assert {step["status"] for step in ran.document["steps"]} == {"already there"}
    assert local.list_branches("acme/project") == before


def test_bootstrap_takes_what_git_would_take(run: Run, local: LocalProvider, files: Path) -> None:
    """A link is left out by name, what is ignored or excluded is left out, and a credential is refused."""
    (files / ".gitignore").write_text("*.log\n")
    (files / "a.log").write_text("x")
    (files / ".env").write_text("x")
    (files / "link").symlink_to("README.md")

    refused = run("bootstrap", "acme/project", "--from", str(files), "--skip-links")
    ran = run("bootstrap", "acme/project", "--from", str(files), "--skip-links", "--exclude", "bin/", "--allow-secrets")

    assert (refused.code, ".env" in refused.err) == (2, True)
    assert "link" in ran.err
    assert sorted(local.tree("acme/project", local.head("acme/project", "main"))) == [".env", ".gitignore", "README.md"]


def test_a_plan_lists_every_file_with_its_size(run: Run, files: Path) -> None:
    """A user sees what would be committed before anything is."""
    shown = run("bootstrap", "acme/project", "--from", str(files), "--plan")
    ran = run("--json", "bootstrap", "acme/project", "--from", str(files), "--plan", "--no-ignore")

    assert "README.md: 10 bytes" in shown.out
    assert ran.document["files"] == [{"path": "README.md", "bytes": 10}, {"path": "bin/run", "bytes": 10}]


def test_a_plan_only_reads(run: Run, local: LocalProvider, files: Path) -> None:
    """--plan says what each step would do, and makes nothing."""
    ran = run("bootstrap", "acme/project", "--from", str(files), "--plan")

    assert ran.code == 0
    assert ran.out.startswith("would do\tcreate_repo\tacme/project\t")
    assert not local.forge.root.exists()


def test_a_failed_step_is_reported_with_its_envelope(run: Run, local: LocalProvider, files: Path) -> None:
    """With --json the document has every step up to the failed one, and the error as every failure has it."""
    local.create_repo("acme/project", description="Somebody else's")

    ran = run("--json", "bootstrap", "acme/project", "--from", str(files), "--description", "Mine")

    assert ran.code == 5
    assert ran.document["steps"][-1]["status"] == "failed"
    assert ran.document["steps"][-1]["error"] == ran.error
    assert ran.error["type"] == "ConflictError"


def test_a_directory_that_cannot_be_used_is_exit_code_2(run: Run, local: LocalProvider, tmp_path: Path) -> None:
    """A source that is not there, or empty, is found before anything is made."""
    (tmp_path / "empty").mkdir()

    for source in ("missing", "empty"):
        assert run("bootstrap", "acme/project", "--from", source).code == 2
    assert not local.forge.root.exists()


def lost(**known: Any) -> Intent:
    """The evidence of a create_branch whose answer was lost."""
    return Intent(operation="create_branch", provider="local", repo="acme/widgets", branch="x", **known)


def stored(path: Path, intent: Intent) -> str:
    error = ProviderUnavailableError("lost", outcome=Outcome.UNKNOWN, intent=intent)
    path.write_text(json.dumps({"error": envelope(error)}))
    return str(path)


def test_resolve_says_applied_with_the_value(run: Run, widgets: LocalProvider, tmp_path: Path) -> None:
    """What the lost call would have returned is the answer's value, and the exit code is 0."""
    head = widgets.head("acme/widgets", "main")
    widgets.create_branch("acme/widgets", "x", source=head)

    ran = run("--json", "resolve", stored(tmp_path / "e.json", lost(source_sha=head, sent_at=datetime.now(UTC))))

    assert (ran.code, ran.document["verdict"]) == (0, "applied")
    assert ran.document["value"]["sha"] == head


def test_resolve_says_conflict_with_exit_code_5(run: Run, widgets: LocalProvider, tmp_path: Path) -> None:
    """A branch of that name at another commit is not what was asked."""
    head = widgets.head("acme/widgets", "main")
    widgets.create_branch("acme/widgets", "x", source=head)

    ran = run("resolve", stored(tmp_path / "e.json", lost(source_sha="0" * 40, sent_at=datetime.now(UTC))))

    assert ran.code == 5
    assert ran.out.startswith("verdict\tconflict\n")


def test_resolve_says_undecided_with_exit_code_8(run: Run, widgets: LocalProvider, tmp_path: Path) -> None:
    """Before a lost request can no longer take effect there is no answer yet, but a time to look again."""
    intent = lost(source_sha="0" * 40, sent_at=datetime.now(UTC) + timedelta(minutes=5))

    ran = run("resolve", stored(tmp_path / "e.json", intent))

    assert ran.code == 8
    assert "check again at\t" in ran.out


def test_resolve_takes_an_intent_alone(run: Run, widgets: LocalProvider, tmp_path: Path) -> None:
    """What a service stored is enough: the intent without an envelope."""
    (tmp_path / "i.json").write_text(json.dumps(lost(source_sha="0" * 40).to_json()))

    assert run("--json", "resolve", "i.json").document["verdict"] == "not_applied"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", '"x"', "{}", '{"error": {}}', '{"error": {"outcome": "unknown", "intent": null}}',
     '{"error": {"outcome": "maybe", "intent": {"operation": "x", "provider": "local", "repo": "a/b"}}}',
     '{"operation": "create_branch"}', '{"operation": "get_repo", "provider": "local", "repo": "a/b"}'],
)  # fmt: skip
def test_resolve_refuses_what_is_no_evidence(run: Run, tmp_path: Path, text: str) -> None:
    """A file that holds no failed mutation is a usage error, not a verdict."""
    (tmp_path / "e.json").write_text(text)

    assert run("resolve", "e.json").code == 2


def test_resolve_asks_the_provider_that_the_intent_names(run: Run, tmp_path: Path) -> None:
    """Without --provider the evidence says which host to ask; here there is no token for it."""
    (tmp_path / "e.json").write_text(json.dumps({"operation": "create_repo", "provider": "github", "repo": "a/b"}))

    ran = run("resolve", "e.json")

    assert ran.code == 4
    assert "github.com" in ran.err


def test_every_verdict_has_an_exit_code() -> None:
    """A verdict that is added without thinking of scripts fails here."""
    assert set(jobs._RESOLVE_EXITS) == set(Verdict)
