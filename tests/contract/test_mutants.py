"""The suite bites: each mutant fails every case that is named for it. The true providers pass all cases elsewhere."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gitprovider import testing
from gitprovider._core.edits import EXECUTABLE, PLAIN
from gitprovider.contract import GitProviderContract
from gitprovider.errors import GitProviderError
from gitprovider.github import GitHubProvider
from gitprovider.local import LocalProvider
from gitprovider.testing import GitProviderContractTests, Rig
from tests.support import mutants
from tests.support.mutants import CASES, REMOTE_CASES
from tests.support.rigs import github_rig, local_rig


def calls_of(case: Any) -> Iterator[dict[str, Any]]:
    """The arguments of every call that pytest would make of a case, fixtures aside."""
    axes: list[list[dict[str, Any]]] = []
    for mark in getattr(case, "pytestmark", ()):
        assert mark.name == "parametrize", f"{case.__name__} has a mark that this runner does not know: {mark.name}"
        names, rows = mark.args
        names = [names] if isinstance(names, str) else list(names)
        axes.append([dict(zip(names, _values(row, len(names)), strict=True)) for row in rows])
    for choice in itertools.product(*axes):
        yield {name: value for chosen in choice for name, value in chosen.items()}


def _values(row: Any, count: int) -> tuple[Any, ...]:
    if hasattr(row, "marks"):  # pytest.param
        return tuple(row.values)
    return (row,) if count == 1 else tuple(row)


def fails(name: str, root: Path, opened: Callable[[Path], AbstractContextManager[Rig]]) -> bool:
    """Whether a case, in at least one of its calls, finds out the provider of the rig that ``opened`` opens."""
    case = getattr(GitProviderContractTests, name)
    for number, arguments in enumerate(calls_of(case)):
        folder = root / f"{name}-{number}"
        folder.mkdir(parents=True)
        if "tmp_path" in inspect.signature(case).parameters:
            arguments["tmp_path"] = folder
        with opened(folder / "forge") as rig:
            try:
                case(GitProviderContractTests(), rig=rig, **arguments)
            except (AssertionError, pytest.fail.Exception, GitProviderError):
                return True
            except pytest.skip.Exception:
                continue
    return False


@pytest.mark.parametrize("mutant", CASES, ids=lambda mutant: mutant.__name__)
def test_a_mutant_is_found_out(mutant: type[LocalProvider], tmp_path: Path) -> None:
    """Each case that is named for a mutant fails on it."""
    missed = [name for name in CASES[mutant] if not fails(name, tmp_path, partial(local_rig, kind=mutant))]

    assert missed == [], f"{mutant.__name__} ({mutant.__doc__}) passes {missed}"


@pytest.mark.parametrize("mutant", REMOTE_CASES, ids=lambda mutant: mutant.__name__)
def test_a_remote_mutant_is_found_out(mutant: type[GitHubProvider], tmp_path: Path) -> None:
    """The same for what only a host at a distance can show."""
    missed = [name for name in REMOTE_CASES[mutant] if not fails(name, tmp_path, partial(github_rig, kind=mutant))]

    assert missed == [], f"{mutant.__name__} ({mutant.__doc__}) passes {missed}"


def test_there_are_mutants_for_every_operation() -> None:
    """No operation goes without: at least forty mutants, and each of the eight is redefined by some."""
    operations = {
        "get_repo",
        "list_branches",
        "create_repo",
        "create_branch",
        "protect_branch",
        "commit_files",
        "open_pull_request",
        "merge_pull_request",
    }
    redefined = {name for mutant in CASES for kind in mutant.__mro__[:2] for name in vars(kind)}

    assert len(CASES) >= 40
    assert operations <= redefined


def literals(node: ast.AST) -> set[str]:
    """The texts of two characters and more in some code, without docstrings and decorators."""
    left_out: set[int] = set()
    for child in ast.walk(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            if ast.get_docstring(child) is not None:
                left_out.add(id(child.body[0].value))  # type: ignore[attr-defined]  # a docstring is an expression
            left_out |= {id(part) for decorator in child.decorator_list for part in ast.walk(decorator)}
    return {
        child.value
        for child in ast.walk(node)
        if isinstance(child, ast.Constant) and isinstance(child.value, str) and len(child.value) > 1
        if id(child) not in left_out
    }


def test_a_mutant_knows_no_literal_of_a_case() -> None:
    """A branch, a path or a message of one case would make the mutant wrong there and nowhere else."""
    cases = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(testing.__file__).parent.glob("_*.py")]
    operations = [name for name in vars(GitProviderContract) if not name.startswith("_")]
    parameters = {
        name for each in operations for name in inspect.signature(getattr(GitProviderContract, each)).parameters
    }
    of_everybody = {*operations, *parameters, "path", PLAIN, EXECUTABLE}

    known = set().union(*map(literals, cases)) - of_everybody
    mutants_code = ast.parse(Path(mutants.__file__).read_text(encoding="utf-8"))

    assert {
        node.name: found
        for node in mutants_code.body
        if isinstance(node, ast.ClassDef) and (found := literals(node) & known)
    } == {}
