"""Who imports whom, imports for type checkers included: no circle, and no arrow upwards."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "gitprovider"


@cache
def modules() -> Mapping[str, Path]:
    """Every module of the package, by its dotted name; a package stands for its ``__init__``."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported_by(name: str) -> Iterator[str]:
    """The modules of the package that a module imports anywhere: at its top, in a function, or for type checkers."""
    path = modules()[name]
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, node.module or ""]).rstrip(".")
            for alias in node.names:
                for target in (f"{base}.{alias.name}", base):
                    if target in modules():
                        yield target
                        break


@cache
def graph() -> Mapping[str, frozenset[str]]:
    """What each module imports. The package's own ``__init__`` names everything for type checkers, and is left out."""
    return {name: frozenset(imported_by(name)) - {"gitprovider", name} for name in modules() if name != "gitprovider"}


@cache
def layers() -> tuple[frozenset[str], ...]:
    """The layers that pyproject.toml has for import-linter, the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = [each for each in settings["contracts"] if each.get("containers") == ["gitprovider"]]
    return tuple(frozenset(name.strip() for name in layer.split("|")) for layer in contract["layers"])


def layer_of(module: str) -> int:
    """The number of a module's layer, from the highest."""
    top = module.split(".")[1]
    return next(number for number, names in enumerate(layers()) if top in names)


def test_the_graph_is_read() -> None:
    """A graph without arrows would prove anything."""
    assert sum(map(len, graph().values())) > 300
    assert "gitprovider.checks" in graph()["gitprovider._core.urls"]  # from gitprovider import checks
    assert "gitprovider._core.provider" in graph()["gitprovider.connect"]
    assert "gitprovider.local.forge" in graph()["gitprovider.fakes.github.call"]


def test_no_module_imports_itself_by_a_circle() -> None:
    """Not even for a type: two modules that know each other are one module in two files."""
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as circle:
        pytest.fail(" -> ".join(reversed(circle.args[1])))


def test_no_module_imports_from_a_layer_above_or_beside_its_own() -> None:
    """As import-linter has it, and for imports under TYPE_CHECKING and in functions as well."""
    wrong = [
        f"{name} -> {target}"
        for name, targets in graph().items()
        for target in sorted(targets)
        if name.split(".")[1] != target.split(".")[1] and layer_of(target) <= layer_of(name)
    ]

    assert wrong == []


def test_every_module_is_in_a_layer() -> None:
    """A module that is in none could import anything."""
    tops = {name.split(".")[1] for name in graph()}

    assert {name for layer in layers() for name in layer} == tops
