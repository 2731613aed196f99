"""A small project for the demo: text, a script, a picture, an empty file, and a name with special characters."""

from __future__ import annotations

import errno
import os
import struct
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from gitprovider.bootstrap import read_directory
from gitprovider.checks import refuse
from gitprovider.errors import InvalidRequestError
from gitprovider.models import PutFile

_README = """\
# Widgets

`gitprovider demo` created this project. It contains files that careless tools break: an executable script, a picture,
an empty file, a file with Windows line endings, and a name with a space and an umlaut.
"""
_SOURCE = '''\
"""Widgets."""


def area(width: float, height: float) -> float:
    """The area of a widget."""
    return width * height
'''
_SCRIPT = """\
#!/bin/sh
set -eu
echo "released $1"
"""


def _picture(width: int = 16, height: int = 16) -> bytes:
    """Return a PNG of a colour gradient (https://www.w3.org/TR/png-3/)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes((x * 8 + y * 8) % 256 for x in range(width)) for y in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def write_project(folder: Path) -> None:
    """Write the project as ``folder``, unless it is there. Nothing that exists is changed.

    Raises:
        InvalidRequestError: ``folder`` has other content, or cannot be written.
    """
    project = _project()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".gitprovider-demo-") as scratch:
            draft = Path(scratch, "files")
            for file in project:
                path = draft / file.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.data())
                path.chmod(0o755 if file.executable else 0o644)
            try:
                os.rename(draft, folder)  # it succeeds only if there is nothing, or an empty folder
            except OSError as exc:
                if exc.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                    raise
                if not _has(folder, project):
                    refuse("FOLDER", f"{str(folder)!r} has content that is not the demo's; name another folder")
    except OSError as exc:
        refuse("FOLDER", f"{str(folder)!r} cannot be written: {exc.strerror or type(exc).__name__}")


def _has(folder: Path, project: Sequence[PutFile]) -> bool:
    try:
        return read_directory(folder).files == project
    except InvalidRequestError:
        return False


def _project() -> list[PutFile]:
    """Return the files, sorted by path as ``read_directory`` returns them."""
    files = {
        "README.md": _README.encode(),
        "src/widgets/__init__.py": _SOURCE.encode(),
        "src/widgets/py.typed": b"",
        "scripts/release.sh": _SCRIPT.encode(),
        "assets/logo.png": _picture(),
        "docs/für Windows.txt": b"Lines end\r\nas they were written.\r\n",
    }
    return [PutFile(path=name, content=files[name], executable=name.endswith(".sh")) for name in sorted(files)]
