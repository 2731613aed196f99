"""What the tests of the forge share: Git itself as the second opinion, and a program run in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPO = "acme/widgets"
PROGRAMS = Path(__file__).parent / "programs"
# Neither the machine's nor the user's configuration of Git has a say in what the tests see.
_ENVIRONMENT = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "LC_ALL": "C"}


def git(directory: str | Path, *arguments: str) -> str:
    """The output of git in ``directory``; its failure is the test's."""
    done = subprocess.run(
        ["git", "-C", str(directory), *arguments], capture_output=True, text=True, env=_ENVIRONMENT, check=False
    )
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def start(program: str, *arguments: str | int | Path) -> subprocess.Popen[str]:
    """Start a program of tests/support/programs."""
    return subprocess.Popen(
        [sys.executable, str(PROGRAMS / f"{program}.py"), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_ENVIRONMENT,
    )


def reports(processes: Sequence[subprocess.Popen[str]]) -> list[Any]:
    """What each program printed: one JSON document a line. Each must end well, within a minute."""
    printed, failures = [], []
    for process in processes:
        out, err = process.communicate(timeout=60)
        printed.append([json.loads(line) for line in out.splitlines()])
        failures += [err] if process.returncode else []
    assert not failures, failures[0]
    return printed


def kill(process: subprocess.Popen[str]) -> list[Any]:
    """Kill a program with SIGKILL; what it had reported in whole lines until then."""
    process.send_signal(signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    whole = out[: out.rfind("\n") + 1]
    return [json.loads(line) for line in whole.splitlines()]
