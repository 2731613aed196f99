"""Random mutants of one module against the tests of that module: ``make mutants MODULE=gitprovider/_core/edits.py``.

cosmic-ray makes the mutants, in a copy of the checkout. Each survivor is printed with its difference: either a test is
missing, or the mutant means the same as the code.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

ROOT = Path(__file__).parents[2]
CONFIG = """\
[cosmic-ray]
module-path = "{module}"
timeout = {timeout}
excluded-modules = []
test-command = "{command}"

[cosmic-ray.distributor]
name = "local"
"""


def tests_of(module: str) -> list[str]:
    """The tests that are to catch a mutant of ``module``, by its folder."""
    folder = Path(module).parent.name
    known = {"_core": ["tests/core"], "_remote": ["tests/core", "tests/github", "tests/gitlab"]}
    if (ROOT / "tests" / folder).is_dir():
        return [f"tests/{folder}"]
    return known.get(folder, ["tests/core", "tests/workflows"])


def survivors(module: str, tests: list[str], *, count: int, seed: int, timeout: float) -> tuple[int, list[str]]:
    """How many mutants ran, and the differences of those that no test caught."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines():
            if (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, copy / name)
        command = f"{sys.executable} -m pytest -x -q -p no:cacheprovider {' '.join(tests)}"
        (copy / "mutants.toml").write_text(CONFIG.format(module=module, timeout=timeout, command=command))
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}

        def cosmic_ray(*words: str) -> None:
            subprocess.run([sys.executable, "-m", "cosmic_ray.cli", *words], cwd=copy, env=environment, check=True)

        print(f"{module} against {' '.join(tests)}: first without a mutant", flush=True)
        cosmic_ray("baseline", "mutants.toml")
        session = str(copy / "session.sqlite")
        cosmic_ray("init", "mutants.toml", session)
        with use_db(session, WorkDB.Mode.open) as database:
            everything = list(database.work_items)
            items = [item for item in everything if not _is_of_a_type(item)]
            kept = {item.job_id for item in random.Random(seed).sample(items, min(count, len(items)))}
            for item in everything:
                if item.job_id not in kept:
                    skipped = WorkResult(worker_outcome=WorkerOutcome.SKIPPED, output="not in the sample")
                    database.set_result(item.job_id, skipped)
        print(f"{len(kept)} of {len(items)} mutants, seed {seed}", flush=True)
        cosmic_ray("exec", "mutants.toml", session)
        with use_db(session, WorkDB.Mode.open) as database:
            results = [result for job, result in database.results if job in kept]
        return len(kept), [str(result.diff) for result in results if result.test_outcome is TestOutcome.SURVIVED]


def _is_of_a_type(item: WorkItem) -> bool:
    """Whether the mutant may change an annotation, which no test runs: ``str | None`` is the common use of ``|``."""
    return any("BinaryOperator_BitOr" in mutation.operator_name for mutation in item.mutations)


def main() -> int:
    """Print each survivor; the exit code is 1 if there is one."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("module", help="such as gitprovider/_core/edits.py")
    parser.add_argument("tests", nargs="*", help="test files or folders; by default those of the module's folder")
    parser.add_argument("--count", type=int, default=20, help="how many mutants (20)")
    parser.add_argument("--seed", type=int, default=None, help="of the sample; by default another one each time")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for the tests of one mutant (300)")
    asked = parser.parse_args()
    if not (ROOT / asked.module).is_file():
        parser.error(f"{asked.module} is not a file of this checkout")
    seed = random.randrange(10**6) if asked.seed is None else asked.seed
    ran, left = survivors(
        asked.module, asked.tests or tests_of(asked.module), count=asked.count, seed=seed, timeout=asked.timeout
    )
    for diff in left:
        print(f"\nSURVIVED\n{diff}")
    print(f"\n{ran} mutants, {len(left)} survived")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
