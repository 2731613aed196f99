"""The project itself: what is built, what importing it loads, the public names, and what the texts refer to."""

import ast
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import gitprovider
from gitprovider.contract import GitProviderContract
from tests.support import readme_table

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "gitprovider"

PUBLIC = [
    "AlreadyExistsError", "Answered", "AuthenticationError", "Author", "BootstrapReport", "Branch", "BranchProtection",
    "Commit", "ConflictError", "DeleteFile", "Ensured", "FileChange", "GitProviderContract",
    "GitProviderError", "HeadMovedError", "HostBudget", "HostState", "InspectableProvider", "Intent", "IntentStore",
    "InvalidRequestError",
    "Limits", "MergeMethod", "MergeResult", "MoveFile", "NotFoundError", "NotMergeableError", "NotMergeableReason",
    "Outcome", "PermissionDeniedError", "Provider", "ProviderUnavailableError", "PullRequest",
    "PullRequestState", "PutFile", "RateLimitedError", "Recovered", "Repo", "RepoMovedError", "RepoUrl", "Resolution",
    "RetryCancelledError", "RetryOptions", "Sending", "SqliteIntentStore", "Step", "Throttle", "TreeEntry",
    "UnexpectedResponseError",
    "UnsupportedOptionError", "Verdict", "Visibility", "bootstrap", "cancel_on", "connect", "connect_repo",
    "deadline", "ensure_branch", "ensure_change", "ensure_files", "ensure_merged", "ensure_protection",
    "ensure_pull_request", "ensure_repo", "optional", "parse_repo_url", "recover", "remembered", "resolve",
    "with_retry",
]  # fmt: skip
SDKS = {"github", "gitlab", "pygit2", "requests", "urllib3", "click", "rich", "pytest", "anyio", "redis"}
SLOW = {"email", "ssl", "http", "sqlite3", "asyncio", "logging"}


def loaded_by(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after ``code``."""
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}})"],
        env={name: value for name, value in os.environ.items() if not name.startswith("COV")},  # it loads much itself
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ran.stdout.split())


def test_the_public_names_are_these() -> None:
    """A name is added to the public API, or taken from it, on purpose."""
    assert gitprovider.__all__ == PUBLIC


def test_every_public_name_is_there_for_code_and_for_type_checkers() -> None:
    """The names loaded on first use are those that a type checker sees, and each one loads."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    seen = sorted(alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names)

    assert [name for name in seen if name in PUBLIC] == PUBLIC
    assert {name for name in PUBLIC if getattr(gitprovider, name, None) is None} == set()
    assert set(PUBLIC) <= set(dir(gitprovider))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    """A typing mistake is the error that Python users know."""
    with pytest.raises(AttributeError, match="has no attribute 'conect'"):
        gitprovider.conect  # noqa: B018 - the access is what is tried


@pytest.mark.parametrize("name", ["connect", "resolve", "bootstrap"])
def test_a_function_is_not_hidden_by_the_module_of_its_name(name: str) -> None:
    """Importing the submodule first does not put it in the function's place."""
    ran = subprocess.run(
        [sys.executable, "-c", f"import gitprovider.{name}; from gitprovider import {name} as f; print(callable(f))"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout == "True\n"


def test_importing_the_package_loads_no_sdk_and_next_to_nothing() -> None:
    """``import gitprovider`` costs a few milliseconds: no SDK, and none of the slow parts of the standard library."""
    loaded = loaded_by("import gitprovider")

    assert loaded & (SDKS | SLOW | {"typing", "dataclasses", "inspect"}) == set()


def test_using_every_public_name_loads_no_sdk() -> None:
    """Values, errors, retry, resolve, ensure, bootstrap and connect need the standard library alone."""
    slow = SDKS | SLOW | {"hashlib", "pathlib", "urllib", "ipaddress", "random"}
    assert loaded_by("from gitprovider import *") & slow == set()


@pytest.mark.parametrize(
    ("code", "mine", "others"),
    [
        ("connect('local', root='/nowhere')", "pygit2", {"github", "gitlab", "requests"}),
        ("connect('github', token='x' * 20)", "github", {"gitlab", "pygit2"}),
        ("connect('gitlab', private_token=None, token='x' * 20)".replace("private_token=None, ", ""), "gitlab",
         {"github", "pygit2"}),
    ],
)  # fmt: skip
def test_connecting_to_one_host_loads_that_host_s_sdk_alone(code: str, mine: str, others: set[str]) -> None:
    """A service that talks to one host pays for one SDK."""
    loaded = loaded_by(f"from gitprovider import connect; {code}")

    assert mine in loaded
    assert loaded & others == set()


def test_the_contract_has_eight_operations() -> None:
    """A ninth operation is a decision, not an addition."""
    assert [name for name in vars(GitProviderContract) if not name.startswith("_")] == [
        "get_repo", "list_branches", "create_repo", "create_branch", "protect_branch", "commit_files",
        "open_pull_request", "merge_pull_request",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel that is built from the sdist, without a network."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT], capture_output=True, check=True
    )
    return folder


def test_the_wheel_has_the_package_and_nothing_else(built: Path) -> None:
    """Every module, py.typed and the recorded facts, the licence, the entry point, and no test or scratch file."""
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entry = next(name for name in names if name.endswith("entry_points.txt"))
        assert "gitprovider = gitprovider.cli:main" in archive.read(entry).decode()

    shipped = {str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*.py")}
    shipped |= {"gitprovider/py.typed", "gitprovider/fakes/facts.jsonl", "gitprovider/fakes/github/schema.graphql"}
    assert {name for name in names if ".dist-info/" not in name} == shipped
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_sdist_has_what_a_packager_needs(built: Path) -> None:
    """The sources, the tests and what they read, the decisions, and the commands to run them."""
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {
        "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "adr/README.md",
        "gitprovider/py.typed", "tests/packaging/test_project.py", "gitprovider/fakes/facts.jsonl",
    } <= names  # fmt: skip
    assert {name for name in names if name.startswith((".venv", "demo/", ".git/")) or "__pycache__" in name} == set()


def texts() -> list[Path]:
    """Every file that is in the repository or would be with the next commit; in an unpacked sdist every file."""
    if not (ROOT / ".git").exists():
        return [path for folder in ("gitprovider", "tests", "adr") for path in (ROOT / folder).rglob("*.*")]
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    return [ROOT / name for name in listed if (ROOT / name).is_file()]


def test_the_repository_names_no_machine() -> None:
    """No path of the machine that it was written on, and nothing that lies outside of it."""
    machine = re.compile("|".join(["/" + "work/", r"\.\./" + "shared", "/" + "root/", "/" + r"home/\w"]))

    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in texts()
        if (match := machine.search(path.read_text(encoding="utf-8", errors="ignore")))
    ]
    assert found == []


def test_every_decision_is_in_the_index() -> None:
    """adr/README.md lists each file by number, title and status, and no other; tests.support.readme_table writes it."""
    index = (ROOT / "adr/README.md").read_text(encoding="utf-8")

    assert readme_table.written_index(index) == readme_table.render_index()


@pytest.mark.parametrize("path", sorted((ROOT / "adr").glob("0*.md")), ids=lambda path: path.stem)
def test_every_decision_has_all_parts(path: Path) -> None:
    """Status, date, context, options, decision, consequences, and a Confirmation that names a test which exists."""
    text = path.read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    confirmation = text.partition("## Confirmation")[2]
    named = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", confirmation)

    assert headings == ["Context", "Options considered", "Decision", "Consequences", "Confirmation"]
    assert re.search(r"^- Date: \d{4}-\d\d-\d\d$", text, re.MULTILINE)
    assert named
    for file, test in named:
        assert (ROOT / file).exists(), file
        assert not test or f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test}"


def test_the_changelog_has_the_version() -> None:
    """The version that is built has an entry."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.+)"$', project, re.MULTILINE)

    assert version
    assert f"## [{version[1]}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_noqa_and_type_ignore_has_a_code_and_a_reason() -> None:
    """A check is silenced by name and with a why, so that the next reader can judge it."""
    bare = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        if path.suffix == ".py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"#\s*noqa(?!: [A-Z]+\d+(?:, [A-Z]+\d+)* +\S)|#\s*type: ignore(?!\[[\w, -]+\] +# \S)", line)
    ]
    assert bare == []


def test_every_test_says_what_it_is_for() -> None:
    """Each test has a docstring of one sentence or a few."""
    silent = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in texts()
        if path.suffix == ".py" and path.is_relative_to(ROOT / "tests")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert silent == []
