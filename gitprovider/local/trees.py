"""Tree objects. Only the directories above a changed path are read and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pygit2
from pygit2.enums import FileMode

from gitprovider.checks import refuse
from gitprovider.contract import TreeEntry
from gitprovider.local.git import BareRepository

# Path to blob sha and mode, or to None for a path that is deleted.
Entries = Mapping[str, tuple[str, str] | None]


@dataclass(slots=True)
class _Node:
    """The changes at and below one name: ``leaf`` at it (when ``changed``), ``below`` in the directory of that name."""

    changed: bool = False
    leaf: TreeEntry | None = None
    below: dict[str, _Node] = field(default_factory=dict)


def write_tree(repository: BareRepository, base: pygit2.Tree | None, entries: Entries) -> str:
    """Write the tree that ``entries`` make of ``base`` and return its sha. Empty directories disappear.

    Raises:
        InvalidRequestError: a deleted path does not exist; a file is below a file or in place of a directory.
    """
    root = _Node()
    for path, entry in entries.items():
        node = root
        for part in path.split("/"):
            node = node.below.setdefault(part, _Node())
        node.changed = True
        node.leaf = None if entry is None else TreeEntry(*entry)
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
                refuse("changes", f"{path!r} is a file; nothing can be below it")
            left = _write(repository, repository.own(left) if left is not None else None, child, path + "/")
        if child.changed and child.leaf is None and (held is None or is_directory):
            problem = "is a directory" if is_directory else "does not exist"
            refuse("changes", f"{path!r} {problem} and cannot be deleted")
        if child.changed and child.leaf is not None:
            if left is not None:
                refuse("changes", f"{path!r} is a directory; no file can take its place")
            builder.insert(name, pygit2.Oid(hex=child.leaf.sha), FileMode(int(child.leaf.mode, 8)))
        elif left is not None:
            builder.insert(name, left, FileMode.TREE)
        elif held is not None:
            builder.remove(name)
    return builder.write() if len(builder) else None
