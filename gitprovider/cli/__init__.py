"""The command line. Importing this module loads neither click nor rich, so a missing extra gives a one-line error."""

from __future__ import annotations

import sys
from collections.abc import Sequence

BROKEN = 1
MISSING_EXTRA = 2
INTERRUPTED = 130


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. ``args`` defaults to the arguments of the process."""
    try:
        try:
            from gitprovider.cli.entry import run
        except ModuleNotFoundError as exc:
            package = (exc.name or "").partition(".")[0]
            if package not in ("click", "rich"):
                sys.stderr.write(f"gitprovider: this installation is incomplete: {exc}\n")
                return BROKEN
            sys.stderr.write(
                f"gitprovider: the command line needs {package}, which is not installed\n"
                "hint: pip install 'gitprovider[cli]'\n"
            )
            return MISSING_EXTRA
        return run(sys.argv[1:] if args is None else list(args))
    except KeyboardInterrupt:
        return INTERRUPTED
