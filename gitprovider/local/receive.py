"""The pre-receive hook of the forge's repositories: a push by Git obeys the protection of branches, as commits do.

Git runs it with the repository as the working directory. Each line of the input has the old sha, the new sha and the
ref. The pushed objects are in a folder of their own until the hook has succeeded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from gitprovider.errors import GitProviderError
from gitprovider.local.forge import Forge, locate


def main(lines: Iterable[str], environment: Mapping[str, str]) -> int:
    """Check a push, and return the exit code for Git: not 0 refuses all of it."""
    try:
        root, path = locate(Path.cwd())
        forge = Forge(root)
        for line in lines:
            old, new, ref = line.rstrip("\n").split(" ", 2)
            forge.check_push(path, ref, old, new, quarantine=environment.get("GIT_QUARANTINE_PATH"))
    except GitProviderError as error:
        # Git shows it to the person who pushes.
        sys.stderr.write("".join(f"gitprovider: {text}\n" for text in (error.message, error.hint) if text))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(map(os.fsdecode, sys.stdin.buffer), os.environ))
