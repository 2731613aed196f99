"""A small project for the demo: text, a script, a picture, an empty file, and a name with special characters."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

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
    """Write the project's files below ``folder``. The content is always the same."""
    files = {
        "README.md": _README.encode(),
        "src/widgets/__init__.py": _SOURCE.encode(),
        "src/widgets/py.typed": b"",
        "scripts/release.sh": _SCRIPT.encode(),
        "assets/logo.png": _picture(),
        "docs/für Windows.txt": b"Lines end\r\nas they were written.\r\n",
    }
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if name.endswith(".sh") else 0o644)
