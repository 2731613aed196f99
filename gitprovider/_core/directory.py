"""Read a directory's files for a commit. Nothing outside the directory is read, whoever changes it meanwhile.

Each entry is opened relative to the open directory above it, without following a link. What was opened is then looked
at, and only that is read. A platform that cannot open relative to a directory opens by path, and then checks that the
directories above are still those that were opened. A directory that is swapped and swapped back in between is not
noticed there.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from gitprovider.checks import check_file_path, check_path, refuse
from gitprovider.errors import InvalidRequestError
from gitprovider.models import MAX_CALL_BYTES, MAX_FILE_BYTES, PutFile

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A pipe or a device that took the place of a file must neither block nor become the controlling terminal.
_ENTRY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# What systems report if O_NOFOLLOW meets a link: Linux and macOS, FreeBSD.
_IS_LINK = (errno.ELOOP, errno.EMLINK)
_CHUNK = 1 << 20


def read_directory(source: str | os.PathLike[str]) -> list[PutFile]:
    """Read every file below ``source`` with its executable bit, sorted by path.

    ``.git`` and empty directories are left out.

    Raises:
        InvalidRequestError: ``source`` is not a directory, cannot be read, or is larger than one commit may be. Or it
            contains no file, or anything that is not a regular file, such as a symbolic link. Or something in it
            changed while it was read.
    """
    root = check_path("source", source)
    files: list[PutFile] = []
    size = 0
    for entry in _walk(root):
        data, status = _read(entry, MAX_CALL_BYTES - size)
        size += len(data)
        files.append(PutFile(path=entry.path, content=data, executable=bool(status.st_mode & stat.S_IXUSR)))
    if not files:
        refuse("source", f"{root!r} contains no file")
    return sorted(files, key=lambda file: file.path)


class _File(NamedTuple):
    """An open regular file. It is closed when the next one is asked for."""

    path: str
    descriptor: int


@dataclass
class _Folder:
    """An open directory.

    Attributes:
        path: relative to the source: empty, or ending with a slash.
        place: the path to open it by.
        names: the entries that remain to be read.
    """

    descriptor: int
    path: str
    place: str
    names: Iterator[str]


def _walk(root: str) -> Iterator[_File]:
    """Open every file below ``root``, depth first."""
    open_folders: list[_Folder] = []

    def enter(descriptor: int, path: str, place: str) -> None:
        folder = _Folder(descriptor, path, place, iter(()))
        open_folders.append(folder)  # from here on it is closed whatever happens
        folder.names = iter(sorted(os.listdir(descriptor if os.listdir in os.supports_fd else place)))

    try:
        with _readable(root):
            enter(os.open(root, _ROOT), "", root)
        while open_folders:
            folder = open_folders[-1]
            name = next(folder.names, None)
            if name is None:
                os.close(open_folders.pop().descriptor)
                continue
            if name == ".git":
                continue
            path, place = folder.path + name, os.path.join(folder.place, name)
            with _readable(path):
                _check_path(path)
                descriptor = _open(open_folders, name, path)
                if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                    enter(descriptor, f"{path}/", place)
                    continue
            try:
                yield _File(path, descriptor)
            finally:
                os.close(descriptor)
    finally:
        for folder in open_folders:
            os.close(folder.descriptor)


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Turn the system's errors into InvalidRequestError: what cannot be read, or has gone, cannot be committed."""
    try:
        yield
    except OSError as exc:
        refuse("source", f"cannot be read: {path!r}: {exc.strerror or type(exc).__name__}")


def _check_path(path: str) -> None:
    try:
        check_file_path("source", path)
    except InvalidRequestError as error:
        refuse(
            "source", f"contains {path[-300:]!r}, which no commit can have: {error.message.removeprefix('source: ')}"
        )


def _open(above: list[_Folder], name: str, path: str) -> int:
    """Open a file or directory of the last folder. Anything else is refused, if possible without opening it."""
    folder = above[-1]
    relative = {os.open, os.stat} <= os.supports_dir_fd
    where: dict[str, Any] = {"dir_fd": folder.descriptor} if relative else {}
    target = name if relative else os.path.join(folder.place, name)
    _check_kind(path, os.stat(target, follow_symlinks=False, **where).st_mode)
    try:
        descriptor = os.open(target, _ENTRY, **where)
    except OSError as exc:
        _check_kind(path, stat.S_IFLNK if exc.errno in _IS_LINK else stat.S_IFREG)
        raise
    try:
        _check_kind(path, os.fstat(descriptor).st_mode)
        for opened in () if relative else above:
            if not os.path.samestat(
                os.fstat(opened.descriptor), os.stat(opened.place, follow_symlinks=opened.path == "")
            ):
                refuse("source", f"{path!r} was replaced while it was read")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_kind(path: str, mode: int) -> None:
    if stat.S_ISLNK(mode):
        refuse("source", f"contains the symbolic link {path!r}; replace it with a file or remove it")
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        refuse("source", f"contains {path!r}, which is not a regular file")


def _read(file: _File, left: int) -> tuple[bytes, os.stat_result]:
    """Read at most what one file and the rest of the commit may have. A file that is being written is refused."""
    with _readable(file.path):
        before = os.fstat(file.descriptor)
        read: list[bytes] = []
        size = 0
        while chunk := os.read(file.descriptor, _CHUNK):
            read.append(chunk)
            size += len(chunk)
            if size > MAX_FILE_BYTES:
                refuse("source", f"contains {file.path!r}, which is larger than {MAX_FILE_BYTES:,} bytes")
            if size > left:
                refuse("source", f"is larger than {MAX_CALL_BYTES:,} bytes, the limit of one commit")
        after = os.fstat(file.descriptor)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        refuse("source", f"{file.path!r} changed while it was read; try again when nothing writes to it")
    return b"".join(read), after
