"""The shape of the package and of its tests: what a stranger sees, and where a signature stands."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from gitprovider import ensure
from gitprovider.contract import GitProviderContract

PACKAGE = Path(__file__).parents[2] / "gitprovider"
TESTS = Path(__file__).parents[1]
OF_PYTHON = {"__init__.py", "__main__.py"}  # names that Python gives: nobody imports them
OPERATIONS = tuple(name for name in vars(GitProviderContract) if not name.startswith("_"))
# The ensure function of each mutation.
ENSURE = {
    "ensure_repo": "create_repo",
    "ensure_branch": "create_branch",
    "ensure_protection": "protect_branch",
    "ensure_files": "commit_files",
    "ensure_pull_request": "open_pull_request",
    "ensure_merged": "merge_pull_request",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def parameters(node: Function) -> tuple[str, ...]:
    """The names of a function's parameters."""
    return tuple(arg.arg for arg in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs])


def methods() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Every method of the package: its file, its name and its parameters."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for kind in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(kind, ast.ClassDef):
                for node in kind.body:
                    if isinstance(node, Function):
                        yield str(path.relative_to(PACKAGE)), node.name, parameters(node)


def test_the_top_shows_few_modules_and_folders() -> None:
    """Sixteen modules and eight folders at most; more is a drawer that nobody can find anything in."""
    modules = [path.name for path in PACKAGE.glob("*.py") if path.name not in OF_PYTHON]
    folders = [path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))]

    assert len(modules) <= 16, modules
    assert len(folders) <= 8, folders


def test_no_module_at_the_top_is_private() -> None:
    """What users do not import is in a folder."""
    assert {path.name for path in PACKAGE.glob("_*.py")} == OF_PYTHON


def test_a_signature_stands_in_the_contract_the_base_class_and_the_coroutines() -> None:
    """A host has hooks, which take the mutation as a value. (The forge's own methods take a ``path``.)"""
    found: dict[str, list[tuple[str, tuple[str, ...]]]] = {name: [] for name in OPERATIONS}
    for file, name, given in methods():
        if name in found and "repo" in given:
            found[name].append((file, given))

    for name, places in found.items():
        assert sorted(file for file, _ in places) == ["_core/provider.py", "aio.py", "contract.py"], name
        assert len({given for _, given in places}) == 1, name


def test_each_mutation_has_an_ensure_function() -> None:
    """The fourth place of its signature. The head that a commit is built on is the one that ``ensure_files`` reads."""
    for name, operation in ENSURE.items():
        asked = {*inspect.signature(getattr(GitProviderContract, operation)).parameters} - {"self", "expected_head"}
        given = {*inspect.signature(getattr(ensure, name)).parameters}
        if operation != "commit_files":
            given -= {"expected_head"}

        assert given == {*asked, "provider", "after", "key", "settling"}, name


def test_no_test_imports_another() -> None:
    """What two of them need is a helper, and helpers are in ``tests/support``."""
    wrong = []
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            parts = {part for name in [module, *names] for part in name.split(".")}
            if any(part.startswith("test_") or part == "conftest" for part in parts):
                wrong.append(f"{path.relative_to(TESTS)}: {ast.unparse(node)}")

    assert wrong == []


def test_a_helper_is_in_support() -> None:
    """Beside the tests are only what pytest reads, the pins' observer, and a third party's package."""
    kept = ("support", "pins", "live", "packaging/toyforge")
    beside = [
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("*.py")
        if not path.name.startswith("test_")
        and path.name not in ("__init__.py", "conftest.py")
        and not str(path.relative_to(TESTS)).startswith(kept)
    ]

    assert beside == []


def test_the_tests_have_a_folder_for_each_part() -> None:
    """And nothing lies beside the folders but the catalogue of pitfalls and the fixtures of all tests."""
    assert {path.name for path in TESTS.iterdir() if path.name != "__pycache__"} == {
        "__init__.py", "conftest.py", "pitfalls.jsonl", "contract", "core", "github", "gitlab", "local", "workflows",
        "cli", "fakes", "packaging", "pins", "live", "support",
    }  # fmt: skip
