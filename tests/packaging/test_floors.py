"""What the package needs: each import is declared, and each lower bound has its reason in a decision."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "gitprovider"
DECISION = ROOT / "adr" / "0019-lower-bounds.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
# The part of the package that each extra is for.
PARTS = {"local": "local", "cli": "cli", "fakes": "fakes", "testing": "testing"} | {
    f"{name}.py": name for name in ("aio", "redis", "otel")
}


def requirements(*groups: list[str]) -> dict[str, Requirement]:
    """The requirements by name. An extra that is named in another is resolved."""
    found: dict[str, Requirement] = {}
    for requirement in map(Requirement, [text for group in groups for text in group]):
        if requirement.name == "gitprovider":
            found |= requirements(*(EXTRAS[extra] for extra in requirement.extras))
        else:
            found[canonicalize_name(requirement.name)] = requirement
    return found


def imported(path: Path) -> set[str]:
    """The top-level names of the modules that a file imports, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module).partition(".")[0])
    return names - sys.stdlib_module_names - {"gitprovider", "__future__"}


def test_what_is_imported_is_declared() -> None:
    """If this fails, a file works only as long as another package happens to need what it imports."""
    owners = packages_distributions()
    missing = set()
    for path in PACKAGE.rglob("*.py"):
        file = str(path.relative_to(PACKAGE))
        extra = PARTS.get(file.partition("/")[0])
        declared = requirements(PROJECT["dependencies"], EXTRAS[extra] if extra else [])
        for name in imported(path) - {"trio"}:  # aio imports trio only where the program runs on it
            if not {canonicalize_name(owner) for owner in owners[name]} & declared.keys():
                missing.add((file, name))

    assert missing == set()


def floors(text: str) -> dict[str, str]:
    """The rows of the decision's table: the name and the lower bound of each requirement."""
    return dict(re.findall(r"^\| `([\w-]+)` \| (\d[\w.]*) \| \S.*\|$", text, re.MULTILINE))


def test_each_lower_bound_is_the_one_that_the_decision_gives_a_reason_for() -> None:
    """If this fails, a bound was moved, or a dependency added, that nobody has looked up in the advisories."""
    bounds = {
        name: next((specifier.version for specifier in requirement.specifier if specifier.operator == ">="), "none")
        for name, requirement in requirements(PROJECT["dependencies"], *EXTRAS.values()).items()
    }

    assert {canonicalize_name(name): floor for name, floor in floors(DECISION.read_text("utf-8")).items()} == bounds


def test_a_row_without_a_reason_is_not_read() -> None:
    """If this fails, an empty reason passes for one."""
    assert floors("| `a` | 1.0 | because |\n| `b` | 2 | |\n| c | 3 | because |\n") == {"a": "1.0"}
