"""Error mapping of the local provider: what failed in the operating system, and who can mend it."""

from __future__ import annotations

import errno
import os
import pwd
import re
import sqlite3
from pathlib import Path
from typing import Any

from gitprovider.errors import (
    GitProviderError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    UnexpectedResponseError,
)
from gitprovider.redact import printable

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_PASSING = (
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR, errno.EBUSY),
    *(errno.ENOLCK, errno.EDEADLK, errno.ESTALE, errno.ETIMEDOUT),
)
# What SQLite says for one of these. For its other codes, the folder is looked at.
_SQLITE = {
    sqlite3.SQLITE_BUSY: errno.EBUSY,
    sqlite3.SQLITE_LOCKED: errno.EBUSY,
    sqlite3.SQLITE_PROTOCOL: errno.EBUSY,
    sqlite3.SQLITE_NOMEM: errno.ENOMEM,
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_PERM: errno.EACCES,
}
_LOOKED_AT = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)


def damaged(path: str, problem: object) -> ProviderUnavailableError:
    """The error for a repository whose files are damaged."""
    return ProviderUnavailableError(
        f"the repository {path} is damaged: {problem}",
        repo=path,
        transient=False,
        hint="restore it from a clone or a backup; git fsck lists what is missing",
    )


def disk_error(exc: Exception, path: Path, **attributes: Any) -> GitProviderError | None:
    """The error for a failure of the operating system at ``path``; None if it is not known to be one.

    Args:
        exc: what Python, SQLite or libgit2 raised. The last two say the cause in a code of their own or in words.
        path: the file or folder, if ``exc`` does not name one.
        attributes: of the error.
    """
    code, path = _failure(exc, path)
    if code is None:
        return None
    problem = os.strerror(code)
    if code in _PASSING:
        return ProviderUnavailableError(f"{path} cannot be used now: {problem}", transient=True, **attributes)
    if code in _FULL:
        return ProviderUnavailableError(
            f"{path} cannot be written: {problem}",
            transient=False,
            hint="free space on its disk, or have the quota raised",
            **attributes,
        )
    if code in _FORBIDDEN:
        culprit = path if code == errno.EROFS else _culprit(path)
        owner, mode = _owner(culprit)
        return PermissionDeniedError(
            f"user {_user(os.geteuid())} may not use {path}: {culprit} belongs to {owner} and has the mode {mode}"
            f" ({problem})",
            hint="mount the file system writable, or use a folder elsewhere; reads work as it is"
            if code == errno.EROFS
            else f"run as {owner}, or let {owner} give the forge's folder to the user who runs this",
            **attributes,
        )
    return ProviderUnavailableError(f"{path} cannot be used: {problem}", transient=False, **attributes)


def _failure(exc: Exception, path: Path) -> tuple[int | None, Path]:
    """The ``errno`` of a failure, if it has one, and the file."""
    if isinstance(exc, sqlite3.Error):
        primary = getattr(exc, "sqlite_errorcode", 0) & 0xFF  # without what tells SQLITE_BUSY_RECOVERY from SQLITE_BUSY
        return _look(path) if primary in _LOOKED_AT else _SQLITE.get(primary), path
    if isinstance(exc, OSError) and exc.errno:
        return exc.errno, Path(os.fsdecode(exc.filename)) if exc.filename else path
    text = str(exc)
    if "is not owned by current user" in text:  # libgit2's and Git's check of a repository's owner
        return errno.EPERM, path
    for code in (*_FULL, *_FORBIDDEN, *_PASSING, errno.EIO):
        if os.strerror(code) in text:
            return code, path
    # libgit2 may lose the cause. It fails to read the configuration of another user's home, and it reports an object
    # as written whose folder did not fit on a full disk.
    for name in re.findall(r"'(/[^']{1,4096})'", text):
        try:
            os.stat(name)
        except PermissionError as refused:
            return refused.errno, Path(name)
        except OSError:
            continue
    return errno.ENOSPC if _is_full(path) else None, path


def _look(path: Path) -> int:
    """Why SQLite cannot use its file."""
    try:
        # Too many open files? The database itself must not be opened for this: closing it would drop SQLite's locks.
        os.close(os.open(os.devnull, os.O_RDONLY))
        if os.statvfs(path.parent).f_flag & os.ST_RDONLY:
            return errno.EROFS
        files = (path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm")))
        usable = all(os.access(file, os.R_OK | os.W_OK) for file in files if file == path or file.exists())
        if not (usable and os.access(path.parent, os.W_OK | os.X_OK)):
            return errno.EACCES
    except OSError as exc:
        return exc.errno or errno.EIO
    return errno.ENOSPC if _is_full(path.parent) else errno.EIO


def _is_full(folder: Path) -> bool:
    try:
        stat = os.statvfs(folder)
    except OSError:
        return False
    return not stat.f_bavail or (stat.f_files > 0 and not stat.f_favail)


def _culprit(path: Path) -> Path:
    """The topmost folder that this user may not enter, or else the file or the nearest folder that exists."""
    for each in reversed(path.parents):
        if os.path.lexists(each) and not os.access(each, os.X_OK):
            return each
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    return path


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"number {number}"


def _owner(path: Path) -> tuple[str, str]:
    try:
        stat = path.stat()
    except OSError:
        return "another user", "unknown"
    return _user(stat.st_uid), f"{stat.st_mode & 0o7777:04o}"


def translate(exc: Exception) -> GitProviderError:
    """Map an exception that is not one of the library's errors.

    The forge raises the library's errors for every failure that it expects. The rest are failures of the operating
    system and bugs. Both leave the outcome of the effect step unknown.
    """
    if isinstance(exc, OSError) and (error := disk_error(exc, Path.cwd(), outcome=Outcome.UNKNOWN)):
        return error
    problem = printable(f"{type(exc).__name__}: {exc}")
    return UnexpectedResponseError(f"the forge failed: {problem}", outcome=Outcome.UNKNOWN)
