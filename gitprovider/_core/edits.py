"""The planner of a commit: from changes and what is at their paths to the edits that the hosts carry out.

The rules are the same on every host:

* A symbolic link, a submodule or a directory at a changed path is refused.
* What is deleted or moved must be a file that exists. Nothing may be at the place that a file is moved to.
* A file goes neither below a file nor in the place of a directory, unless the same commit takes that away.
* What is there already, with its content and mode, needs no edit. The pointer that Git LFS keeps in place of a content
  counts as that content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from gitprovider.checks import refuse
from gitprovider.contract import TreeEntry
from gitprovider.models import DeleteFile, FileChange, MoveFile, PutFile

PLAIN, EXECUTABLE = "100644", "100755"
LINK, SUBMODULE, DIRECTORY = "120000", "160000", "040000"
_KINDS = {LINK: "a symbolic link", SUBMODULE: "a submodule", DIRECTORY: "a directory"}

# Returns what is at a path of the tree that the commit is built on, or None for nothing. It must know every changed
# path and every directory above one, and may know no more.
Lookup = Callable[[str], TreeEntry | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What happens to one path.

    Attributes:
        path: the path.
        before: what is there; None for nothing.
        after: what will be there; None when the path is deleted.
        data: the content of a file that is put; None for a deletion or a move.
        moved_from: for the destination of a move, where the file comes from.
        moved_to: for the origin of a move, where the file goes.
        pointer: the blob sha of the content's LFS pointer, for a file that is put.
    """

    path: str
    before: TreeEntry | None
    after: TreeEntry | None
    data: bytes | None = None
    moved_from: str | None = None
    moved_to: str | None = None
    pointer: str | None = None

    @property
    def changes_something(self) -> bool:
        """Whether the path is different afterwards."""
        return self.before != self.after


@dataclass(frozen=True)
class Edits:
    """The edits of one commit: deletions, then moves, then files that are put. Each makes room for the next."""

    all: tuple[Edit, ...]

    @cached_property
    def effective(self) -> tuple[Edit, ...]:
        """The edits that change something."""
        return tuple(edit for edit in self.all if edit.changes_something)

    @property
    def files(self) -> dict[str, tuple[str, str] | None]:
        """What an intent keeps: per path its blob sha and mode after the commit, None for a path that is gone."""
        return {edit.path: edit.after and (edit.after.sha, edit.after.mode) for edit in self.all}

    @property
    def pointers(self) -> dict[str, str]:
        """What an intent keeps for a host that may store a pointer: per path that is put, that pointer's blob sha."""
        return {edit.path: edit.pointer for edit in self.all if edit.pointer is not None}


def plan(
    changes: Sequence[FileChange],
    lookup: Lookup,
    *,
    sha256: bool = False,
    occupied: Callable[[str, set[str]], bool] | None = None,
) -> Edits:
    """Decide the edits that ``changes`` come to.

    Args:
        changes: the changes of one CommitFiles: each path at most once, contents as bytes.
        lookup: what is at a path now.
        sha256: whether the repository's object ids are SHA-256.
        occupied: whether a directory still holds a file when the given paths are gone. A host that cannot tell leaves
            it out: then a directory counts as emptied when any file below it is taken away.

    Raises:
        InvalidRequestError: a change breaks a rule of this module.
    """
    gone = {change.path for change in changes if isinstance(change, DeleteFile | MoveFile)}
    edits: list[Edit] = []
    for change in changes:
        before = lookup(change.path)
        match change:
            case PutFile():
                before = None if _is_emptied(change.path, before, gone, occupied) else before
                _check_kind(change.path, before)
                _check_above(change.path, lookup, gone)
                edits.append(_put(change, before, sha256=sha256))
            case DeleteFile():
                edits.append(Edit(path=change.path, before=_existing(change.path, before, "deleted"), after=None))
            case MoveFile(to=to):
                entry = _existing(change.path, before, "moved")
                if lookup(to) is not None:
                    _refuse(f"{to!r} exists; nothing can be moved onto it")
                _check_above(to, lookup, gone)
                edits.append(Edit(path=change.path, before=entry, after=None, moved_to=to))
                edits.append(Edit(path=to, before=None, after=entry, moved_from=change.path))
    return Edits(tuple(sorted(edits, key=_order)))


def lookup_in(entries: Mapping[str, TreeEntry]) -> Lookup:
    """A lookup over the files that are known, by path. A path above one of them is a directory."""
    above = {directory for path in entries for directory in directories(path)}
    return lambda path: entries.get(path) or (TreeEntry("", DIRECTORY) if path in above else None)


def directories(path: str) -> list[str]:
    """The directories above ``path``, the outermost first: ``a`` and ``a/b`` for ``a/b/c``."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def blob_sha(data: bytes, *, sha256: bool = False) -> str:
    """The object id that Git gives to this content, in a repository of SHA-1 or of SHA-256."""
    content = b"blob %d\0" % len(data) + data
    return (hashlib.sha256(content) if sha256 else hashlib.sha1(content, usedforsecurity=False)).hexdigest()


def lfs_pointer(data: bytes) -> bytes:
    """What Git LFS stores in place of this content: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md ."""
    oid = hashlib.sha256(data).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(data)}\n".encode()


def matches(there: TreeEntry | None, wanted: tuple[str, str] | None, pointer: str | None) -> bool:
    """Whether a path holds the blob sha and mode that are wanted, or the blob sha of the content's LFS pointer."""
    if there is None or wanted is None:
        return there is wanted
    return there.mode == wanted[1] and there.sha in (wanted[0], pointer)


def holds(change: FileChange, lookup: Lookup, *, sha256: bool = False) -> bool:
    """Whether the tree is already as ``change`` asks.

    A file is, when its content and the mode asked for are there (``executable=None``: either mode). A deleted file is,
    when nothing is at its path; a moved one, when nothing is at its old path and something at its new one.
    """
    entry = lookup(change.path)
    match change:
        case DeleteFile():
            return entry is None
        case MoveFile(to=to):
            return entry is None and lookup(to) is not None
        case PutFile():
            return (
                entry is not None
                and entry.mode in (PLAIN, EXECUTABLE)
                and _put(change, entry, sha256=sha256).after == entry
            )


def _order(edit: Edit) -> int:
    return 0 if edit.after is None else 1 if edit.moved_from is not None else 2


def _put(change: PutFile, before: TreeEntry | None, *, sha256: bool) -> Edit:
    data = change.data()
    keep = PLAIN if before is None else before.mode
    mode = keep if change.executable is None else EXECUTABLE if change.executable else PLAIN
    sha, pointer = blob_sha(data, sha256=sha256), blob_sha(lfs_pointer(data), sha256=sha256)
    if before is not None and before.sha == pointer:
        sha = pointer
    return Edit(path=change.path, before=before, after=TreeEntry(sha, mode), data=data, pointer=pointer)


def _is_emptied(
    path: str, before: TreeEntry | None, gone: set[str], occupied: Callable[[str, set[str]], bool] | None
) -> bool:
    """Whether a directory disappears with this commit, because every file below it goes."""
    if before is None or before.mode != DIRECTORY or not any(name.startswith(f"{path}/") for name in gone):
        return False
    return occupied is None or not occupied(path, gone)


def _existing(path: str, entry: TreeEntry | None, verb: str) -> TreeEntry:
    if entry is None:
        _refuse(f"{path!r} does not exist and cannot be {verb}")
    _check_kind(path, entry)
    return entry


def _check_kind(path: str, entry: TreeEntry | None) -> None:
    if entry is not None and entry.mode not in (PLAIN, EXECUTABLE):
        kind = _KINDS.get(entry.mode, f"of mode {entry.mode}")
        _refuse(f"{path!r} is {kind} and cannot be changed here")


def _check_above(path: str, lookup: Lookup, gone: Iterable[str]) -> None:
    for directory in directories(path):
        entry = lookup(directory)
        if entry is not None and entry.mode != DIRECTORY and directory not in gone:
            _refuse(f"{directory!r} is not a directory; nothing can be below it")


def _refuse(problem: str) -> NoReturn:
    refuse("changes", problem)
