"""What it costs to import the package and look up every public name, in processor time.

``python benchmarks/import_time.py`` starts fresh interpreters that load the package, and others that load only the four
standard modules that every typed library of dataclasses loads. It compares the medians. Milliseconds depend on the
machine and its load. The ratio hardly does, so the ratio decides. An argument names another checkout to measure:
``python benchmarks/import_time.py ../before``.
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path

BAR = 2.15
RUNS = 20
WARM_UP = 2  # write the bytecode and fill the disk's cache
PACKAGE = "import gitprovider\nfor name in gitprovider.__all__:\n    getattr(gitprovider, name)"
BARE = "import dataclasses, enum, re, typing"
NOTHING = "pass"


def processor_time(code: str, root: Path) -> float:
    """Milliseconds of user and system time of a fresh interpreter that runs ``code`` with ``root`` on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # -P keeps the working directory off the path, where it would come before root.
    command = [sys.executable, "-P", "-c", code]
    process = os.posix_spawn(sys.executable, command, {**environment, "PYTHONPATH": str(root)})
    _, status, usage = os.wait4(process, 0)
    if status:
        raise SystemExit(f"the interpreter ended with {os.waitstatus_to_exitcode(status)}")
    return (usage.ru_utime + usage.ru_stime) * 1000


def measure(root: Path) -> dict[str, float]:
    """The median of each program. They take turns, so that a load that comes and goes meets all of them."""
    times: dict[str, list[float]] = {PACKAGE: [], BARE: [], NOTHING: []}
    for run in range(WARM_UP + RUNS):
        for code, measured in times.items():
            took = processor_time(code, root)
            if run >= WARM_UP:
                measured.append(took)
    return {code: statistics.median(measured) for code, measured in times.items()}


def main(arguments: list[str]) -> int:
    """Measure this checkout or the one named; fail beyond the bar."""
    root = Path(arguments[0]) if arguments else Path(__file__).parent.parent
    medians = measure(root.resolve())
    ratio = medians[PACKAGE] / medians[BARE]
    print(f"an interpreter that does nothing: {medians[NOTHING]:.1f} ms")
    print(f"{BARE}: {medians[BARE]:.1f} ms")
    print(f"every public name of gitprovider: {medians[PACKAGE]:.1f} ms, {ratio:.2f} times; at most {BAR}")
    return 0 if ratio <= BAR else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
