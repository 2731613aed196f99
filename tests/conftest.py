"""What every test shares: temporary files in memory, and a garbage collector that runs less often."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM = 2 * 2**30


def memory_for_files(folder: Path = _MEMORY) -> str | None:
    """Return a folder that is kept in memory, or None if it has no room or forbids running the programs in it."""
    try:
        may_run = not os.statvfs(folder).f_flag & os.ST_NOEXEC
        return str(folder) if may_run and shutil.disk_usage(folder).free >= _ROOM else None
    except OSError:
        return None


# A forge waits for the disk after each change, and only a power failure shows the difference. Programs that the tests
# start inherit the choice. TMPDIR=/tmp keeps the files on a disk.
if "TMPDIR" not in os.environ and (found := memory_for_files()) is not None:
    os.environ["TMPDIR"] = tempfile.tempdir = found

# The cases of the whole suite are a million objects that live until the end. Each full collection visits them all.
gc.set_threshold(10_000, 20, 100)
