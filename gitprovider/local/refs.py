"""The refs of one repository, read and written by Git's own rules, beside any other program that keeps them.

A ref is a file, or else a line of ``packed-refs``. Whoever changes one holds a lock file beside it, compares the old
value under the lock, and renames the new file into place. libgit2 compares too, but it makes lock files that do not say
whose they are, and it reads ``packed-refs`` before it locks it, so that a deletion undoes what Git packs in between.

Our lock files are hard links to one file of the repository. That tells the ones of a process of ours from Git's. Every
writer of ours holds the forge's write lock, so a lock of ours that another writer finds was left by a killed process.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gitprovider import checks
from gitprovider.errors import ConflictError, HeadMovedError, ProviderUnavailableError
from gitprovider.local.errors import damaged
from gitprovider.local.storage import make_folder

HEADS, PULLS = "refs/heads/", "refs/pull/"
# How long a writer waits for a lock of another program. Git waits a second for packed-refs.
LOCK_WAIT_SECONDS = 5.0
_TURN_SECONDS = 0.01
_SYMBOLIC, _MAX_DEPTH, _MAX_BYTES = "ref: ", 5, 512
# In the repository's directory: the file that our locks are links to, and a ref before it is renamed into place.
_LOCK, _DRAFT = "gitprovider-lock", "gitprovider-ref"
_ABOUT = b"Lock files of gitprovider are links to this file. Its next write removes those of a killed process.\n"


class Refs:
    """The refs of one repository, for one operation. A writer holds the forge's write lock.

    Args:
        git_dir: the repository's directory.
        path: the repository's full path, for messages.
    """

    def __init__(self, git_dir: Path, path: str) -> None:
        self._git_dir = git_dir
        self._path = path
        self._packed_as_of: tuple[int, ...] = ()
        self._packed: dict[str, str] = {}

    # Reading: files first. Git packs a ref before it removes the file, so a ref is always in one of the two.

    def get(self, name: str) -> str | None:
        """The sha that a ref names, or None when the ref does not exist."""
        return self._resolved(name)[1]

    def branches(self) -> dict[str, str]:
        """Every branch and the sha of its head."""
        files = list(self._files(HEADS))
        found = {name: sha for name, sha in self._read_packed().items() if name.startswith(HEADS)}
        for name in files:
            sha = self.get(name)
            if sha is not None:
                found[name] = sha
            else:  # deleted since; the packed line may have been an old one
                found.pop(name, None)
        return {name.removeprefix(HEADS): sha for name, sha in found.items()}

    def first(self, prefix: str) -> str | None:
        """The name of any ref below ``prefix``, which ends with a slash; None when there is none."""
        return next(self._files(prefix), None) or next(
            (name for name in self._read_packed() if name.startswith(prefix)), None
        )

    def _resolved(self, name: str) -> tuple[str, str | None]:
        """The ref that a symbolic ref leads to, and its sha."""
        for _ in range(_MAX_DEPTH):
            text = self._read(name)
            if text is None:
                return name, self._read_packed().get(name)
            if not text.startswith(_SYMBOLIC):
                if not checks.is_sha(text):
                    raise damaged(self._path, f"the ref {name} is not a sha")
                return name, text
            name = text.removeprefix(_SYMBOLIC).strip()
        raise damaged(self._path, f"the ref {name} leads to itself")

    def _read(self, name: str) -> str | None:
        """The content of a ref's file, or None. A listing reads thousands, so this is the shortest way."""
        try:
            file = os.open(f"{self._git_dir}/{name}", os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a null character in the name
            return None
        except OSError as exc:
            if exc.errno == errno.ENAMETOOLONG:  # no file can have that name
                return None
            raise
        try:
            return os.read(file, _MAX_BYTES).decode(errors="replace").rstrip()
        except IsADirectoryError:
            return None
        finally:
            os.close(file)

    def _files(self, prefix: str) -> Iterator[str]:
        pending = [prefix]
        while pending:
            folder = pending.pop()
            try:
                entries = list(os.scandir(self._git_dir / folder))
            except (FileNotFoundError, NotADirectoryError):
                continue
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{folder}{entry.name}/")
                elif not entry.name.endswith(".lock"):
                    yield folder + entry.name

    def _read_packed(self) -> dict[str, str]:
        file = self._git_dir / "packed-refs"
        try:
            stat = file.stat()
            as_of = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            if as_of != self._packed_as_of:
                lines = os.fsdecode(file.read_bytes()).split("\n")
                # The line after an annotated tag begins with ^, and the first line is a comment.
                self._packed = {line[41:]: line[:40] for line in lines if line[40:41] == " " and line[0] not in "#^"}
                self._packed_as_of = as_of
        except FileNotFoundError:
            self._packed, self._packed_as_of = {}, ()
        return self._packed

    # Writing

    def set(self, name: str, sha: str, old: str | None) -> None:
        """Move a ref from ``old`` to ``sha``; None for a ref that is not there yet.

        Raises:
            HeadMovedError: the ref is not at ``old``. Another program has moved it.
            ConflictError: a ref is where a folder would be, or the reverse.
            ProviderUnavailableError: another program holds the lock (transient).
        """
        name, _ = self._resolved(name)
        with self._locked(name):
            self._compare(name, old)
            self._replace(name, f"{sha}\n".encode())

    def set_head(self, branch: str) -> None:
        """Point HEAD at ``branch``, which need not exist.

        Raises:
            ProviderUnavailableError: another program holds the lock (transient).
        """
        with self._locked("HEAD"):
            self._replace("HEAD", os.fsencode(f"{_SYMBOLIC}{HEADS}{branch}\n"))

    def delete(self, name: str, old: str) -> None:
        """Delete a ref that is at ``old``.

        Raises:
            HeadMovedError: the ref is not at ``old``. Another program has moved it.
            ProviderUnavailableError: another program holds a lock (transient).
        """
        with self._locked(name):
            self._compare(name, old)
            # Git may be packing the ref just now, so its line is looked for under the lock. It goes before the file:
            # a reader would otherwise take an old line for the ref.
            with self._locked("packed-refs"):
                (self._git_dir / "logs" / name).unlink(missing_ok=True)
                if name in self._read_packed():
                    self._replace("packed-refs", self._without(name))
                (self._git_dir / name).unlink(missing_ok=True)
        folder = (self._git_dir / name).parent
        with suppress(OSError):  # not empty, or gone
            while folder != self._git_dir / HEADS:
                folder.rmdir()
                folder = folder.parent

    def _without(self, name: str) -> bytes:
        """The content of ``packed-refs`` without a ref and the ^ line that may follow it."""
        kept, dropping = [], False
        for line in (self._git_dir / "packed-refs").read_bytes().splitlines(keepends=True):
            dropping = line[41:].rstrip(b"\n") == os.fsencode(name) or (dropping and line.startswith(b"^"))
            if not dropping:
                kept.append(line)
        return b"".join(kept)

    def _compare(self, name: str, old: str | None) -> None:
        now = self.get(name)
        if now != old:
            raise HeadMovedError(
                f"another program has moved {name} from {old or 'nothing'} to {now or 'nothing'}",
                expected=old,
                actual=now,
            )

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        lock, own = self._git_dir / f"{name}.lock", self._git_dir / _LOCK
        deadline = time.monotonic() + LOCK_WAIT_SECONDS
        while True:
            try:
                os.link(own, lock)
                break
            except FileNotFoundError:
                # Git removes a folder when the last ref in it goes.
                self._make_folder(lock)
                if not own.exists():
                    _write(own, _ABOUT)
            except NotADirectoryError:
                raise self._clash(name) from None
            except FileExistsError:
                with suppress(FileNotFoundError):
                    if lock.samefile(own):
                        lock.unlink()
                        continue
                if time.monotonic() >= deadline:
                    raise ProviderUnavailableError(
                        f"another program holds {lock}",
                        repo=self._path,
                        transient=True,
                        hint="if no git runs on this repository, remove that file",
                    ) from None
                time.sleep(_TURN_SECONDS)
        try:
            yield
        finally:
            with suppress(OSError):  # what was done under the lock stands, and the next writer removes it
                lock.unlink()

    def _make_folder(self, file: Path) -> None:
        try:
            make_folder(file.parent)
        except FileNotFoundError:
            pass  # Git has just removed one again; the caller tries again
        except (FileExistsError, NotADirectoryError):
            raise self._clash(str(file.relative_to(self._git_dir)).removesuffix(".lock")) from None

    def _replace(self, name: str, content: bytes) -> None:
        draft, file = self._git_dir / _DRAFT, self._git_dir / name
        _write(draft, content)
        try:
            os.replace(draft, file)
        except IsADirectoryError:
            # What remains of deleted refs. A folder that is not empty is one of refs.
            for folder, _, _ in os.walk(file, topdown=False):
                with suppress(OSError):
                    os.rmdir(folder)
            try:
                os.replace(draft, file)
            except IsADirectoryError:
                raise self._clash(name) from None

    def _clash(self, name: str) -> ConflictError:
        return ConflictError(f"{self._path} has a ref whose name and {name!r} exclude each other")


def _write(file: Path, content: bytes) -> None:
    with open(file, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as stream:
        stream.write(content)
