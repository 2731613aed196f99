"""Trees from changes: only the directories on the way to a change are read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import pygit2
from pygit2.enums import FileMode

from gitprovider.contract import TreeEntry
from gitprovider.errors import InvalidRequestError
from gitprovider.local.git import BareRepository
from gitprovider.models import DeleteFile, FileChange, MoveFile, PutFile

# path -> (blob sha, mode), or None to delete it
Entries = Mapping[str, tuple[str, str] | None]
_REGULAR = ("100644", "100755")


def refuse(problem: str) -> NoReturn:
    """Raise InvalidRequestError for ``changes``."""
    raise InvalidRequestError(f"changes: {problem}", argument="changes")


def entries_of(repository: BareRepository, base: pygit2.Tree | None, changes: Sequence[FileChange]) -> Entries:
    """What the changes make of ``base``, path by path. Blobs are written; no ref names them yet.

    Raises:
        InvalidRequestError: deleting or moving what is not there; moving onto an existing path; a symbolic link or
            submodule at a touched path; a directory where a file is to be.
    """
    # All paths are judged before the first blob is written.
    for change in changes:
        _judge(repository, base, change)
    entries: dict[str, tuple[str, str] | None] = {}
    for change in changes:
        held = repository.entry(base, change.path)
        match change:
            case PutFile():
                keep = held.mode if held is not None and held.mode in _REGULAR else "100644"
                mode = keep if change.executable is None else "100755" if change.executable else "100644"
                entries[change.path] = (repository.write_blob(change.data()), mode)
            case DeleteFile():
                entries[change.path] = None
            case MoveFile():
                entries[change.path] = None
                entries[change.to] = None if held is None else (held.sha, held.mode)
    return entries


def _judge(repository: BareRepository, base: pygit2.Tree | None, change: FileChange) -> None:
    held = repository.entry(base, change.path)
    if held is not None and held.mode in ("120000", "160000"):
        kind = "a symbolic link" if held.mode == "120000" else "a submodule"
        refuse(f"{change.path!r} is {kind}, which cannot be changed here")
    if not isinstance(change, PutFile):
        verb = "deleted" if isinstance(change, DeleteFile) else "moved"
        if held is None:
            refuse(f"{change.path!r} does not exist and cannot be {verb}")
        if held.mode not in _REGULAR:
            refuse(f"{change.path!r} is a directory and cannot be {verb}")
    if isinstance(change, MoveFile) and repository.entry(base, change.to) is not None:
        refuse(f"{change.to!r} exists; nothing can be moved onto it")


@dataclass(slots=True)
class _Node:
    """The changes at and below one name: ``leaf`` at it (when ``changed``), ``below`` in the directory of that name."""

    changed: bool = False
    leaf: TreeEntry | None = None
    below: dict[str, _Node] = field(default_factory=dict)


def write_tree(repository: BareRepository, base: pygit2.Tree | None, entries: Entries) -> str:
    """Write the tree that ``entries`` make of ``base`` and return its sha. Directories left empty disappear.

    Raises:
        InvalidRequestError: deleting what is not there; a file below a file or in place of a directory.
    """
    root = _Node()
    for path, what in entries.items():
        node = root
        for part in path.split("/"):
            node = node.below.setdefault(part, _Node())
        node.changed = True
        node.leaf = None if what is None else TreeEntry(*what)
    written = _write(repository, base, root, "")
    return str(repository.git.TreeBuilder().write() if written is None else written)


def _write(repository: BareRepository, base: pygit2.Tree | None, node: _Node, prefix: str) -> pygit2.Oid | None:
    builder = repository.git.TreeBuilder() if base is None else repository.git.TreeBuilder(base)
    for name, child in node.below.items():
        path = prefix + name
        held = base[name] if base is not None and name in base else None
        is_directory = held is not None and held.filemode == FileMode.TREE
        left: pygit2.Oid | None = held.id if held is not None and is_directory else None
        if child.below:
            if held is not None and not is_directory and not (child.changed and child.leaf is None):
                refuse(f"{path!r} is a file; nothing can be below it")
            left = _write(repository, repository.own(left) if left is not None else None, child, path + "/")
        if child.changed and child.leaf is None and (held is None or is_directory):
            refuse(f"{path!r} {'is a directory' if is_directory else 'does not exist'} and cannot be deleted")
        if child.changed and child.leaf is not None:
            if left is not None:
                refuse(f"{path!r} is a directory; no file can take its place")
            builder.insert(name, pygit2.Oid(hex=child.leaf.sha), FileMode(int(child.leaf.mode, 8)))
        elif left is not None:
            builder.insert(name, left, FileMode.TREE)
        elif held is not None:
            builder.remove(name)
    return builder.write() if len(builder) else None
