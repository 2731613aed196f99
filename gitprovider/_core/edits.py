"""The planner of a commit. It turns the changes and the current entries at their paths into edits for the hosts.

The rules are the same on every host:

* A symbolic link, a submodule or a directory at a changed path is refused.
* A deleted or moved file must exist. The new path of a move must not exist.
* A file cannot be put below a file or in place of a directory, unless the same commit removes that file or directory.
* A file that already has the content and the mode needs no edit. The LFS pointer of a content counts as the content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, NoReturn

from gitprovider.checks import refuse
from gitprovider.contract import TreeEntry
from gitprovider.models import DeleteFile, FileChange, MoveFile, PutFile

PLAIN, EXECUTABLE = "100644", "100755"
LINK, SUBMODULE, DIRECTORY = "120000", "160000", "040000"
_KINDS = {LINK: "a symbolic link", SUBMODULE: "a submodule", DIRECTORY: "a directory"}

# Returns the entry at a path of the tree that the commit is based on, or None if there is none. It must know every
# changed path and every directory above one. It need not know other paths.
Lookup = Callable[[str], TreeEntry | None]


class Edit(NamedTuple):
    """The change of one path.

    Attributes:
        path: the path.
        before: the entry before the commit; None if there is none.
        after: the entry after the commit; None if the path is deleted.
        data: the content of a PutFile; None for a deletion or a move.
        moved_from: for the destination of a move, the old path.
        moved_to: for the origin of a move, the new path.
        pointer: the blob sha of the content's LFS pointer, for a PutFile.
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
        """Whether the commit changes the path."""
        return self.before != self.after


class Edits(NamedTuple):
    """The edits of one commit in the order in which they can be applied: deletions, moves, then files that are put."""

    all: tuple[Edit, ...]

    @property
    def effective(self) -> tuple[Edit, ...]:
        """The edits that change something."""
        return tuple(edit for edit in self.all if edit.changes_something)

    @property
    def files(self) -> dict[str, tuple[str, str] | None]:
        """The blob sha and mode of each path after the commit, for an intent; None for a path that is deleted."""
        return {edit.path: edit.after and (edit.after.sha, edit.after.mode) for edit in self.all}

    @property
    def pointers(self) -> dict[str, str]:
        """The blob sha of the LFS pointer of each PutFile, for an intent. Some hosts store the pointer instead."""
        return {edit.path: edit.pointer for edit in self.all if edit.pointer is not None}


def plan(
    changes: Sequence[FileChange],
    lookup: Lookup,
    *,
    sha256: bool = False,
    occupied: Callable[[str, set[str]], bool] | None = None,
) -> Edits:
    """Return the edits for ``changes``.

    Args:
        changes: the changes of one CommitFiles: each path at most once, contents as bytes.
        lookup: returns the current entry at a path.
        sha256: whether the repository's object ids are SHA-256.
        occupied: reports whether a directory still contains a file after the given paths are removed. If it is None, a
            directory counts as empty as soon as any file below it is removed.

    Raises:
        InvalidRequestError: a change breaks a rule of this module.
    """
    removed = {change.path for change in changes if isinstance(change, DeleteFile | MoveFile)}
    edits: list[Edit] = []
    for change in changes:
        before = lookup(change.path)
        match change:
            case PutFile():
                before = None if _is_emptied(change.path, before, removed, occupied) else before
                _check_kind(change.path, before)
                _check_above(change.path, lookup, removed)
                edits.append(_put(change, before, sha256=sha256))
            case DeleteFile():
                edits.append(Edit(path=change.path, before=_existing(change.path, before, "deleted"), after=None))
            case MoveFile(to=to):
                entry = _existing(change.path, before, "moved")
                if lookup(to) is not None:
                    _refuse(f"{to!r} exists; a file cannot be moved onto it")
                _check_above(to, lookup, removed)
                edits.append(Edit(path=change.path, before=entry, after=None, moved_to=to))
                edits.append(Edit(path=to, before=None, after=entry, moved_from=change.path))
    return Edits(tuple(sorted(edits, key=_order)))


def lookup_in(entries: Mapping[str, TreeEntry]) -> Lookup:
    """Return a lookup over the given files. A path above one of them is a directory."""
    above = {directory for path in entries for directory in directories(path)}
    return lambda path: entries.get(path) or (TreeEntry("", DIRECTORY) if path in above else None)


def directories(path: str) -> list[str]:
    """Return the directories above ``path``, the outermost first: ``a`` and ``a/b`` for ``a/b/c``."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def blob_sha(data: bytes, *, sha256: bool = False) -> str:
    """Return the Git object id of a blob with this content, by SHA-1 or SHA-256."""
    import hashlib  # not at the top, here and below: it loads OpenSSL

    head = b"blob %d\0" % len(data)
    digest = hashlib.sha256(head) if sha256 else hashlib.sha1(head, usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


def lfs_pointer(data: bytes) -> bytes:
    """Return what Git LFS stores instead of a content (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md)."""
    import hashlib

    oid = hashlib.sha256(data).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(data)}\n".encode()


def matches(there: TreeEntry | None, wanted: tuple[str, str] | None, pointer: str | None) -> bool:
    """Report whether an entry has the wanted mode, and the wanted blob sha or that of the content's LFS pointer."""
    if there is None or wanted is None:
        return there is wanted
    return there.mode == wanted[1] and there.sha in (wanted[0], pointer)


def holds(change: FileChange, lookup: Lookup, *, sha256: bool = False) -> bool:
    """Report whether the tree already is as ``change`` requests.

    For a PutFile, the path has its content and its mode (``executable=None``: any mode). For a DeleteFile, the path
    does not exist. For a MoveFile, the old path does not exist and the new path does.
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
    path: str, before: TreeEntry | None, removed: set[str], occupied: Callable[[str, set[str]], bool] | None
) -> bool:
    """Report whether ``path`` is a directory that the commit removes because it removes every file below it."""
    if before is None or before.mode != DIRECTORY or not any(name.startswith(f"{path}/") for name in removed):
        return False
    return occupied is None or not occupied(path, removed)


def _existing(path: str, entry: TreeEntry | None, verb: str) -> TreeEntry:
    if entry is None:
        _refuse(f"{path!r} does not exist and cannot be {verb}")
    _check_kind(path, entry)
    return entry


def _check_kind(path: str, entry: TreeEntry | None) -> None:
    if entry is not None and entry.mode not in (PLAIN, EXECUTABLE):
        kind = _KINDS.get(entry.mode, f"of mode {entry.mode}")
        _refuse(f"{path!r} is {kind} and cannot be changed here")


def _check_above(path: str, lookup: Lookup, removed: Iterable[str]) -> None:
    for directory in directories(path):
        entry = lookup(directory)
        if entry is not None and entry.mode != DIRECTORY and directory not in removed:
            _refuse(f"{directory!r} is not a directory; nothing can be below it")


def _refuse(problem: str) -> NoReturn:
    refuse("changes", problem)
