"""README and documentation: the examples run, the tables are the code's, and what they point to is there."""

import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import gitprovider
from gitprovider import PutFile, RetryOptions
from gitprovider.cli import exits
from gitprovider.cli.entry import cli
from gitprovider.contract import GitProviderContract
from gitprovider.local import LocalProvider
from tests.support import readme_table
from tests.support.rigs import RemoteRig, github_rig, gitlab_rig

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
TEXTS = "\n".join(PAGES.values())
HOSTS = PAGES["docs/explanation/hosts.md"]
OUTCOMES = PAGES["docs/explanation/outcomes.md"]
RETRY = PAGES["docs/explanation/retry.md"]
COMMANDS = PAGES["docs/howto/command-line.md"]
# A block of Python, the comment before it, and the output that the page states after it.
_BLOCK = re.compile(
    r"(?:<!-- (?P<note>[^\n]*) -->\n)?```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<output>.*?)```)?", re.DOTALL
)
_SETUP = re.compile(r"<!-- setup\n(.*?)-->", re.DOTALL)


def example(name: str) -> str:
    """The Python block below the mark of that name."""
    found = re.search(rf"<!-- example: {name} -->\n```python\n(.*?)```", TEXTS, re.DOTALL)
    assert found, name
    return found[1]


def executed(name: str, **given: Any) -> dict[str, Any]:
    exec(compile(example(name), f"example: {name}", "exec"), given)
    return given


def stated(name: str) -> str:
    """What the README says that the example prints."""
    return README.partition(f"<!-- output: {name} -->\n```text\n")[2].partition("```")[0]


def test_the_ten_lines_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The first example makes what it says: files, a merge, and a protected main; and it is ten lines."""
    monkeypatch.chdir(tmp_path)

    executed("ten lines")

    assert len([line for line in example("ten lines").splitlines() if line]) <= 10
    with LocalProvider("forge") as provider:
        head = provider.head("acme/hello", "main")
        rules = provider.protection("acme/hello", "main")
        assert provider.tree("acme/hello", head)["run"].mode == "100755"
        assert [branch.name for branch in provider.list_branches("acme/hello")] == ["main"]
    assert capsys.readouterr().out == stated("ten lines")
    assert rules is not None
    assert rules.block_force_push


@pytest.mark.parametrize("opened", [github_rig, gitlab_rig])
def test_the_ten_lines_run_on_each_remote_host(
    opened: Callable[[Path], AbstractContextManager[RemoteRig]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The first example uses nothing that one of the remote hosts cannot honour."""
    with opened(tmp_path) as rig:
        monkeypatch.setattr(gitprovider, "connect", lambda *_args, **_options: rig.provider)

        executed("ten lines")

        assert capsys.readouterr().out == stated("ten lines")
        assert rig.protection("acme/hello", "main") is not None


@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if _BLOCK.search(text) and page != "README.md"])
def test_the_examples_of_a_page_run_and_print_what_it_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the first to the last, in one namespace and an empty folder, as a reader pastes them."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    setup = _SETUP.search(PAGES[page])
    exec(setup[1] if setup else "", namespace)
    for block in _BLOCK.finditer(PAGES[page]):
        if block["note"] and block["note"].startswith(("not run: ", "example: ")):  # an example has a test of its own
            continue
        line = PAGES[page].count("\n", 0, block.start("code"))

        exec(compile("\n" * line + block["code"], page, "exec"), namespace)

        printed = capsys.readouterr().out
        assert printed == (block["output"] or ""), f"{page}, line {line}"
    if close := getattr(namespace.get("provider"), "close", None):
        close()


def test_every_named_example_has_a_test() -> None:
    """An example that neither the page's run nor a test of its own executes rots."""
    named = re.findall(r"<!-- example: (.+?) -->", TEXTS)
    source = Path(__file__).read_text(encoding="utf-8")

    assert named
    assert [name for name in named if f'"{name}"' not in source] == []


def test_the_example_for_a_failed_mutation_finds_out(tmp_path: Path) -> None:
    """When the answer is lost and the branch was made, the example ends with the branch."""
    with LocalProvider(tmp_path) as provider:
        provider.create_repo("acme/hello")
        head = provider.commit_files("acme/hello", "main", [PutFile(path="f", content="x")], message="m").sha

        ran = executed("when a mutation fails", provider=AnswerLost(provider))

        assert ran["branch"].sha == head
        assert provider.head("acme/hello", "release") == head


class AnswerLost:
    """A provider whose create_branch is done, and whose answer is lost."""

    def __init__(self, provider: LocalProvider) -> None:
        self._provider = provider

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    def create_branch(self, repo: str, name: str, *, source: str) -> Any:
        from datetime import UTC, datetime

        from gitprovider import Intent, Outcome, ProviderUnavailableError

        made = self._provider.create_branch(repo, name, source=source)
        intent = Intent(
            operation="create_branch", provider="local", repo=repo, branch=name, source_sha=made.sha,
            sent_at=datetime.now(UTC),
        )  # fmt: skip
        raise ProviderUnavailableError("lost", outcome=Outcome.UNKNOWN, intent=intent)


def test_the_injection_example_serves(tmp_path: Path) -> None:
    """The FastAPI example answers with the branches of the provider that a test swaps in."""
    ran = executed("injection")
    with LocalProvider(tmp_path) as provider:
        provider.create_repo("acme/hello", auto_init=True)
        ran["app"].dependency_overrides[ran["projects"]] = lambda: ran["Projects"](provider)
        with TestClient(ran["app"]) as client:
            assert client.get("/branches/acme/hello").json() == ["main"]


def test_the_suite_example_runs_the_suite(tmp_path: Path) -> None:
    """The third party's test file, with a rig under the name that it imports, collects and passes the cases."""
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package/__init__.py").touch()
    (tmp_path / "my_package/rig.py").write_text(
        "from contextlib import contextmanager\n"
        "from gitprovider.local import LocalProvider\n"
        "from tests.support.rigs import LocalRig\n"
        "@contextmanager\n"
        "def MyRig(folder):\n"
        "    yield LocalRig(folder, LocalProvider(folder))\n"
    )
    (tmp_path / "test_my_provider.py").write_text(example("a provider of your own"))

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, "-k", "get_repo",
         "--import-mode=importlib", "test_my_provider.py"],
        cwd=tmp_path, env={"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"\d+ passed", ran.stdout)


def test_the_suite_takes_a_third_party_25_lines() -> None:
    """What a provider's author has to write besides the rig stays short."""
    assert len(example("a provider of your own").splitlines()) <= 25


def test_the_table_of_options_is_the_code_s() -> None:
    """Every option and host, generated; ``python -m tests.support.readme_table`` writes it anew."""
    assert readme_table.written(HOSTS) == readme_table.render()


def test_the_table_of_operations_is_the_contract_s() -> None:
    """Each operation is there, and nothing else."""
    rows = re.findall(r"^\| `(\w+)\(repo", OUTCOMES, re.MULTILINE)

    assert rows == [name for name in vars(GitProviderContract) if not name.startswith("_")]


def test_the_retry_table_has_the_defaults() -> None:
    """The numbers on the page are those of RetryOptions."""
    defaults = RetryOptions()

    assert f"| tries | {defaults.max_attempts};" in RETRY
    assert f"min({defaults.max_delay:.0f} s, {defaults.base_delay} s · 2ⁿ⁻¹)" in RETRY
    assert f"of more than {defaults.max_retry_after:.0f} s" in RETRY
    assert f"at most {defaults.max_total_wait:.0f} s" in RETRY


def test_the_exit_codes_are_the_code_s() -> None:
    """Every exit code of the command line is in the table."""
    codes = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    section = COMMANDS.partition("| exit code | meaning |")[2].partition("\n\n")[0]
    told = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", section, re.MULTILINE) for code in row.split(",")}

    assert told == codes


def test_every_command_that_is_shown_exists() -> None:
    """`gitprovider …` on a page names commands of the program."""
    shown = re.findall(r"gitprovider (?:--\S+ (?:gitlab )?)*([a-z]+-?[a-z-]*)(?= (?:acme|failed|\S+\.json))", TEXTS)

    assert shown
    assert set(shown) <= set(cli.commands)


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_points_to_exists(page: str) -> None:
    """Links and paths lead somewhere."""
    text = PAGES[page]
    linked = re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", text)
    named = re.findall(r"`((?:tests|examples)/[\w/.]+)`", text)

    assert [path for path in linked if not (ROOT / page).parent.joinpath(path).exists()] == []
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_readme_is_short() -> None:
    """At most 120 lines, so that somebody reads it."""
    assert len(README.splitlines()) <= 120


def test_every_make_target_that_the_readme_names_exists() -> None:
    """`make …` in the README, and in CONTRIBUTING, is a target, and every target says what it is for."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.* ## .", makefile, re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    texts = TEXTS + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^    )make ([a-z-]+)", texts, re.MULTILINE))

    assert phony
    assert named
    assert targets == set(phony[1].split())
    assert named <= targets
