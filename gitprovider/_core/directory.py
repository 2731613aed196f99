"""Read a directory's files for a commit. Nothing outside the directory is read, whoever changes it meanwhile.

Each entry is opened relative to the open directory above it, without following a link. What was opened is then looked
at, and only that is read. A platform that cannot open relative to a directory opens by path, and then checks that the
directories above are still those that were opened. A directory that is swapped and swapped back in between is not
noticed there.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gitprovider.checks import check_bool, check_file_path, check_items, check_path, check_text, refuse
from gitprovider.errors import InvalidRequestError
from gitprovider.models import MAX_CALL_BYTES, MAX_FILE_BYTES, PutFile

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A pipe or a device that took the place of a file must neither block nor become the controlling terminal.
_ENTRY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# What systems report if O_NOFOLLOW meets a link: Linux and macOS, FreeBSD.
_IS_LINK = (errno.ELOOP, errno.EMLINK)
_CHUNK = 1 << 20


# Files whose name says that they hold a credential, but for examples of them.
_SECRET_NAME = re.compile(
    r"(?:[\w-]{0,99}\.env(?:\.(?!example|sample|template|dist)\w{1,99})?|id_(?:rsa|dsa|ecdsa|ed25519)"
    r"|\.netrc|\.pypirc|\.pgpass|\.git-credentials)\Z",
    re.IGNORECASE,
)
# A private key, and tokens of GitHub, GitLab, AWS and Slack, in their documented lengths.
_SECRET_CONTENT = re.compile(
    rb"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----|\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_[A-Za-z0-9_]{22}"
    rb"|\bglpat-[A-Za-z0-9_-]{20}|\bAKIA[0-9A-Z]{16}\b|\bxox[abprs]-[0-9A-Za-z-]{10}"
)


class Source(NamedTuple):
    """What a directory gives to a commit.

    Attributes:
        files: sorted by path.
        skipped: the paths of the symbolic links that were left out.
    """

    files: list[PutFile]
    skipped: tuple[str, ...]


def read_directory(
    source: str | os.PathLike[str],
    *,
    ignore: bool = True,
    exclude: Sequence[str] = (),
    skip_links: bool = False,
    allow_secrets: bool = False,
) -> Source:
    """Read the files below ``source`` that Git would take, with their executable bits.

    ``.git`` and empty directories are left out.

    Args:
        ignore: leave out what the ``.gitignore`` of each level and ``.git/info/exclude`` name, by Git's own rules.
        exclude: further patterns, as a line of a ``.gitignore`` in ``source``. They go before the files' own.
        skip_links: leave out symbolic links, and return their paths. Otherwise one is refused.
        allow_secrets: take files that look like a credential: a private key, a ``.env``, a token of a known form.

    Raises:
        InvalidRequestError: ``source`` is not a directory, cannot be read, or is larger than one commit may be. Or it
            contains no file, a credential, or anything that is not a regular file, such as a symbolic link. Or
            something in it changed while it was read. Or an argument is wrong.
    """
    root = check_path("source", source)
    for argument, value in (("ignore", ignore), ("skip_links", skip_links), ("allow_secrets", allow_secrets)):
        check_bool(argument, value)
    rules = _Rules(root, ignore, [check_text("exclude", line) for line in check_items("exclude", exclude, "patterns")])
    files: list[PutFile] = []
    skipped: list[str] = []
    size = 0
    for entry in _walk(root, rules, skipped if skip_links else None):
        data, status = _read(entry, MAX_CALL_BYTES - size)
        size += len(data)
        if not allow_secrets and (_SECRET_NAME.match(entry.path.rpartition("/")[2]) or _SECRET_CONTENT.search(data)):
            refuse("source", f"contains {entry.path!r}, which looks like a credential; exclude it, or allow secrets")
        files.append(PutFile(path=entry.path, content=data, executable=bool(status.st_mode & stat.S_IXUSR)))
    if not files:
        refuse("source", f"{root!r} contains no file to commit")
    return Source(sorted(files, key=lambda file: file.path), tuple(sorted(skipped)))


class _Rules:
    """What is left out. The rule of the deepest folder that says anything decides, as in Git."""

    def __init__(self, root: str, ignore: bool, exclude: Sequence[str]) -> None:
        self._ignore = ignore
        self._specs: list[tuple[str, GitIgnoreSpec]] = []
        self._given: GitIgnoreSpec | None = None
        if exclude:
            from pathspec import GitIgnoreSpec

            try:
                self._given = GitIgnoreSpec.from_lines(exclude)
            except ValueError as exc:
                refuse("exclude", f"has a pattern that Git would not read: {exc}")
        if ignore:
            with suppress(OSError, ValueError), open(_exclude_file(root), "rb") as file:
                self._add("", file.read(MAX_FILE_BYTES))

    @property
    def wanted(self) -> bool:
        """Whether a ``.gitignore`` is read at all."""
        return self._ignore

    def enter(self, folder: str, text: bytes | None) -> None:
        """Add the rules of a folder's ``.gitignore``, if it has one and they are wanted. Leave those beside it."""
        self._specs = [(above, spec) for above, spec in self._specs if folder.startswith(above)]
        if text is not None:
            self._add(folder, text)

    def leave_out(self, path: str) -> bool:
        """Whether a path is left out. That of a directory ends with a slash; then nothing in it is looked at."""
        if self._given is not None and self._given.match_file(path):
            return True
        for folder, spec in reversed(self._specs):
            if path.startswith(folder) and (found := spec.check_file(path[len(folder) :]).include) is not None:
                return found
        return False

    def _add(self, folder: str, text: bytes) -> None:
        from pathspec import GitIgnoreSpec  # not at the top: it is slow to import, and a bootstrap alone needs it

        lines = []
        for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            pattern = line.removesuffix(b"\r").decode(errors="surrogateescape")
            with suppress(ValueError):  # Git obeys the other lines, too
                GitIgnoreSpec.from_lines([pattern])
                lines.append(pattern)
        self._specs.append((folder, GitIgnoreSpec.from_lines(lines)))


def _exclude_file(root: str) -> str:
    """Where the clone keeps its own patterns. In a worktree, ``.git`` is a file that leads to the repository.

    https://git-scm.com/docs/gitrepository-layout
    """
    folder = os.path.join(root, ".git")
    if os.path.isfile(folder):
        with open(folder, encoding="utf-8") as file:
            folder = os.path.join(root, file.read(MAX_CALL_BYTES).removeprefix("gitdir:").strip())
        with suppress(OSError), open(os.path.join(folder, "commondir"), encoding="utf-8") as file:
            folder = os.path.join(folder, file.read(MAX_CALL_BYTES).strip())
    return os.path.join(folder, "info", "exclude")


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


def _walk(root: str, rules: _Rules, skipped: list[str] | None) -> Iterator[_File]:
    """Open every file below ``root`` that the rules leave in, depth first.

    Args:
        skipped: gets the paths of links. None refuses a link.
    """
    open_folders: list[_Folder] = []

    def enter(descriptor: int, path: str, place: str) -> None:
        folder = _Folder(descriptor, path, place, iter(()))
        open_folders.append(folder)  # from here on it is closed whatever happens
        names = sorted(os.listdir(descriptor if os.listdir in os.supports_fd else place))
        folder.names = iter(names)
        own = rules.wanted and ".gitignore" in names and stat.S_ISREG(_kind(folder, ".gitignore"))
        rules.enter(path, _rules_of(open_folders, path) if own else None)

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
                mode = _kind(folder, name)
                if rules.leave_out(f"{path}/" if stat.S_ISDIR(mode) else path):
                    continue
                _check_path(path)
                if stat.S_ISLNK(mode) and skipped is not None:
                    skipped.append(path)
                    continue
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


def _rules_of(above: list[_Folder], folder: str) -> bytes:
    """The text of the ``.gitignore`` of the last folder."""
    descriptor = _open(above, ".gitignore", f"{folder}.gitignore")
    try:
        return _read(_File(f"{folder}.gitignore", descriptor), MAX_CALL_BYTES)[0]
    finally:
        os.close(descriptor)


def _target(folder: _Folder, name: str) -> tuple[str, dict[str, Any]]:
    """How to name an entry of an open folder: relative to it where the system can."""
    if {os.open, os.stat} <= os.supports_dir_fd:
        return name, {"dir_fd": folder.descriptor}
    return os.path.join(folder.place, name), {}


def _kind(folder: _Folder, name: str) -> int:
    """The mode of an entry, to decide whether it is left out. What is opened is looked at again."""
    target, where = _target(folder, name)
    return os.stat(target, follow_symlinks=False, **where).st_mode


def _open(above: list[_Folder], name: str, path: str) -> int:
    """Open a file or directory of the last folder. Anything else is refused, if possible without opening it."""
    folder = above[-1]
    target, where = _target(folder, name)
    relative = bool(where)
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
        refuse("source", f"contains the symbolic link {path!r}; replace it with a file, remove it, or skip links")
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
