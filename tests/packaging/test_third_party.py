"""A stranger installs the wheel with ``[testing]``, has nothing else of ours, and proves a provider of his own."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).parents[2]
TOY = pathlib.Path(__file__).parent / "toyforge"


def run(*command: str | pathlib.Path, cwd: pathlib.Path) -> str:
    """The command's output; its failure fails the test with all that it said."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**environment, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_provider_of_ones_own_is_proved_with_the_installed_suite(tmp_path: pathlib.Path) -> None:
    """The wheel holds the suite, its extra installs what the suite needs, and no file of this checkout is used."""
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    venv.create(tmp_path / "clean")
    python = tmp_path / "clean" / "bin" / "python"
    # Most of the installed modules are never imported: compiling them takes longer than the suite.
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--no-compile", "--quiet", f"{wheel}[testing]", cwd=tmp_path)
    work = tmp_path / "work"
    shutil.copytree(TOY, work / "toyforge", ignore=shutil.ignore_patterns("__pycache__"))

    where = run(python, "-c", "import gitprovider; print(gitprovider.__file__)", cwd=work)
    said = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "toyforge", cwd=work)

    assert str(tmp_path / "clean") in where
    assert re.search(r"\b[1-9]\d* passed", said)
