"""The suite itself: what a subclass may do, how a gap counts, what a failure says, and what a stranger needs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gitprovider import testing
from gitprovider.testing import GitProviderContractTests
from gitprovider.testing.suite import case_names

# The fakes beside the suite are of hosts.
SOURCES = sorted(path for path in Path(testing.__file__).parent.glob("*.py") if path.name != "fakes.py")

# Two cases of the suite, on a rig that holds to one of them; run by a pytest of its own.
THIRD_PARTY = """
import pytest
from gitprovider.errors import NotFoundError
from gitprovider.testing import GitProviderContractTests


class Provider:
    def list_branches(self, repo):
        return ["a branch too many"] if repo == "acme/empty" else []


class Rig:
    provider = Provider()
    def given_empty_repo(self): return "acme/empty"
    def given_repo(self): return "acme/widgets"
    def mutations_seen(self): return 0


class TestThirdParty(GitProviderContractTests):
    gaps = {GAPS}

    @pytest.fixture
    def rig(self):
        return Rig()
"""


def run(tmp_path: Path, gaps: dict[str, str], *cases: str) -> subprocess.CompletedProcess[str]:
    """Run cases of the suite as a third party does: a file, a rig, and pytest from the command line."""
    (tmp_path / "test_third_party.py").write_text(THIRD_PARTY.replace("{GAPS}", repr(gaps)))
    chosen = [f"test_third_party.py::TestThirdParty::{case}" for case in cases]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--tb=short", *chosen],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_case_hides_another() -> None:
    """Two mixins that name a case alike would silently lose one of the two."""
    defined = [
        name
        for source in SOURCES
        for name in re.findall(r"^    def (test_\w+)\(", source.read_text(encoding="utf-8"), flags=re.MULTILINE)
    ]

    assert sorted(defined) == sorted(case_names())


def test_the_gap_that_the_documentation_shows_is_a_case() -> None:
    """The example of how to declare a gap would otherwise be a TypeError for who copies it."""
    shown = re.findall(r"\btest_\w+(?=\[rebase\])", f"{testing.__doc__} {GitProviderContractTests.__doc__}")

    assert len(shown) == 2
    assert set(shown) <= set(case_names())


def test_the_suite_names_no_host() -> None:
    """What holds on one host only is no part of the contract."""
    for source in SOURCES:
        text = source.read_text(encoding="utf-8")
        assert not re.search(r"(?<!\.)github|gitlab|localprovider", text, re.IGNORECASE), source


def test_the_suite_stands_on_the_library_and_pytest_alone() -> None:
    """A stranger has no tests/, no responses and no hypothesis."""
    imported = {
        name.split(".")[0]
        for source in SOURCES
        for name in re.findall(r"^(?:from|import) ([\w.]+)", source.read_text(encoding="utf-8"), flags=re.MULTILINE)
    }

    assert imported - set(sys.stdlib_module_names) == {"gitprovider", "pytest"}


def test_a_case_cannot_be_redefined() -> None:
    """Not in the subclass itself."""
    with pytest.raises(TypeError, match="test_get_repo_a_repository_is_read redefines"):
        type("TestMine", (GitProviderContractTests,), {"test_get_repo_a_repository_is_read": lambda self, rig: None})


def test_a_case_cannot_be_hidden_by_a_mixin() -> None:
    """Nor in a class that comes first."""
    mixin = type("Mixin", (), {"test_get_repo_a_repository_is_read": None})

    with pytest.raises(TypeError, match="test_get_repo_a_repository_is_read redefines"):
        type("TestMine", (mixin, GitProviderContractTests), {})


def test_a_subclass_may_add_cases_of_its_own() -> None:
    """A further name is in nobody's way."""
    mine = type("TestMine", (GitProviderContractTests,), {"test_something_else": lambda self, rig: None})

    assert issubclass(mine, GitProviderContractTests)


@pytest.mark.parametrize(
    ("gaps", "problem"),
    [
        ({"test_no_such_case": "because"}, "is not a case"),
        ({"test_get_repo_a_repository_is_read": "  "}, "needs a reason"),
        ({"test_get_repo_a_repository_is_read": None}, "needs a reason"),
    ],
)
def test_a_gap_names_a_case_and_gives_a_reason(gaps: dict[str, str], problem: str) -> None:
    """A typing mistake would otherwise leave a gap that nobody sees."""
    with pytest.raises(TypeError, match=problem):
        type("TestMine", (GitProviderContractTests,), {"gaps": gaps})


def test_a_failure_says_what_was_compared(tmp_path: Path) -> None:
    """The asserts of the suite are rewritten: the value that came is in the report."""
    ran = run(tmp_path, {}, "test_list_branches_an_empty_repository_has_no_branch")

    assert ran.returncode == 1
    assert "['a branch too many'] == []" in ran.stdout


def test_a_gap_is_a_strict_expected_failure(tmp_path: Path) -> None:
    """A declared gap that fails is expected, with its reason; one that passes is an error; others are unaffected."""
    failing, passing = (
        "test_list_branches_an_empty_repository_has_no_branch",
        "test_list_branches_listing_changes_nothing",
    )

    expected = run(tmp_path, {failing: "the host lists too much"}, failing, passing)
    outdated = run(tmp_path, {passing: "no longer true"}, passing)

    assert expected.returncode == 0, expected.stdout
    assert "1 passed, 1 xfailed" in expected.stdout
    assert "the host lists too much" in expected.stdout
    assert outdated.returncode == 1
    assert "[XPASS(strict)] no longer true" in outdated.stdout


def test_a_gap_may_be_one_parameter_of_a_case(tmp_path: Path) -> None:
    """``case[parameter]`` excuses that one alone."""
    case = "test_list_branches_every_page_is_read"

    ran = run(tmp_path, {f"{case}[99]": "no such verb on this rig"}, f"{case}[99]", f"{case}[100]")

    assert "1 failed, 1 xfailed" in ran.stdout


def test_every_case_says_what_it_is_about() -> None:
    """One sentence a case: a report by name and sentence is readable without the source."""
    assert [name for name in case_names() if not getattr(GitProviderContractTests, name).__doc__] == []


def test_a_missing_pytest_is_one_line_that_names_the_extra() -> None:
    """And no traceback of an import that nobody knows."""
    code = "import sys; sys.modules['pytest'] = None\nimport gitprovider.testing"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert ran.returncode == 1
    assert "pip install 'gitprovider[testing]'" in ran.stderr.strip().splitlines()[-1]


def test_collecting_another_project_does_not_load_the_suite() -> None:
    """There is no pytest entry point: only who imports the suite has it."""
    entry_points = __import__("importlib.metadata").metadata.entry_points(group="pytest11")

    assert not [point for point in entry_points if point.value.startswith("gitprovider")]
