"""The changes of one ``commit_files`` call: checked and read before any request, the same on every host."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from gitprovider.checks import refuse
from gitprovider.models import MAX_CALL_BYTES, DeleteFile, FileChange, MoveFile, PutFile


def read_changes(changes: Any) -> tuple[FileChange, ...]:
    """Check the changes as a whole, and read files that are named by path: every PutFile's content is bytes now.

    Raises:
        InvalidRequestError: none, or something that is no FileChange; a path twice; a file below another one that is
            put; a file that cannot be read; more than 50 MB together.
    """
    if isinstance(changes, str | bytes) or not isinstance(changes, Iterable):
        refuse("changes", "must be a sequence of PutFile, DeleteFile and MoveFile")
    read: list[FileChange] = []
    size = 0
    for change in changes:
        if isinstance(change, PutFile):
            data = change.data()
            size += len(data)
            if size > MAX_CALL_BYTES:
                refuse("changes", f"are larger than {MAX_CALL_BYTES:,} bytes together; split them over several commits")
            read.append(dataclasses.replace(change, content=data))
        elif isinstance(change, DeleteFile | MoveFile):
            read.append(change)
        else:
            refuse("changes", f"must hold PutFile, DeleteFile and MoveFile, not {type(change).__name__}")
    if not read:
        refuse("changes", "must not be empty")
    _check_paths(read)
    return tuple(read)


def touched_paths(changes: Sequence[FileChange]) -> list[str]:
    """Every path that the changes name, in their order: for a move, where from and where to."""
    return [
        path
        for change in changes
        for path in ([change.path, change.to] if isinstance(change, MoveFile) else [change.path])
    ]


def directories(path: str) -> list[str]:
    """The directories that ``path`` is in, the outermost first: ``a`` and ``a/b`` for ``a/b/c``."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def blob_sha(data: bytes, *, sha256: bool = False) -> str:
    """The object id that Git gives to this content, in a repository of SHA-1 or of SHA-256."""
    content = b"blob %d\0" % len(data) + data
    return (hashlib.sha256(content) if sha256 else hashlib.sha1(content, usedforsecurity=False)).hexdigest()


def _check_paths(changes: Sequence[FileChange]) -> None:
    seen: set[str] = set()
    for path in touched_paths(changes):
        if path in seen:
            refuse("changes", f"name {path!r} twice")
        seen.add(path)
    made = {
        change.to if isinstance(change, MoveFile) else change.path
        for change in changes
        if not isinstance(change, DeleteFile)
    }
    for path in sorted(made):
        parts = path.split("/")
        for depth in range(1, len(parts)):
            if (above := "/".join(parts[:depth])) in made:
                refuse("changes", f"put {path!r} below the file {above!r}")
