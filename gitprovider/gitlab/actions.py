"""A commit's changes as actions of GitLab's commits API, chosen by what is at the touched paths of the head.

The API has no upsert: ``create`` on a file that exists and ``update`` on one that does not are refused, and an update
with the same content makes an empty commit. So the head, and what is there, are read first, in one GraphQL query.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gitprovider._core.edits import blob_sha, directories, touched_paths
from gitprovider._remote.json_reader import JsonReader
from gitprovider.checks import refuse
from gitprovider.contract import TreeEntry
from gitprovider.models import DeleteFile, FileChange, MoveFile, PutFile

PATHS = 100
# https://docs.gitlab.com/api/graphql/reference/#repositoryblobs and #repositorytree
QUERY = """
query touched($project: ID!, $ref: String!, $type: RefType, $paths: [String!]!, $n: Int, $above: [String!]!, $m: Int) {
  project(fullPath: $project) {
    repository {
      empty
      rootRef
      tree(ref: $ref, refType: $type) { lastCommit { sha } }
      blobs(ref: $ref, refType: $type, paths: $paths, first: $n) { nodes { path oid mode } }
      above: blobs(ref: $ref, refType: $type, paths: $above, first: $m) { nodes { path oid mode } }
    }
  }
}
"""
# GitLab refuses a query of a complexity above 250. Its fields beside the two lists count about this much; a list of n
# paths with a page of n entries counts (n + 6) * (1 + n / 100), by app/graphql/types/base_field.rb.
_LIMIT, _REST = 250, 14

_PLAIN, _EXECUTABLE = "100644", "100755"
_TREES = ("40000", "040000")


@dataclass(frozen=True, slots=True)
class Touched:
    """What one query is to ask for: paths that change, and directories above them, which must not be files."""

    paths: tuple[str, ...]
    above: tuple[str, ...]

    def variables(self, project: str, ref: str, *, branch: bool) -> dict[str, Any]:
        """The query's variables. ``ref`` is the name of a branch or, of the same head, its sha."""
        return {
            "project": project,
            "ref": ref,
            "type": "HEADS" if branch else None,
            "paths": list(self.paths),
            "n": max(len(self.paths), 1),
            "above": list(self.above),
            "m": max(len(self.above), 1),
        }


@dataclass(frozen=True, slots=True)
class Seen:
    """What the queries found.

    Attributes:
        empty: whether the repository has no commits.
        default_branch: the name that a first commit's branch must have; None where the host does not say.
        head: the branch's head; None when there is no such branch.
        entries: per touched path, or path above one, what is there.
    """

    empty: bool
    default_branch: str | None
    head: str | None
    entries: Mapping[str, TreeEntry]


def queries(changes: Sequence[FileChange]) -> list[Touched]:
    """One query per 100 touched paths; more only where those lie in so many directories that GitLab would refuse it."""
    paths = touched_paths(changes)
    above = [*dict.fromkeys(directory for path in paths for directory in directories(path))]
    found: list[Touched] = []
    while paths or above:
        now, paths = paths[:PATHS], paths[PATHS:]
        room = _LIMIT - _REST - _cost(len(now))
        fit = max((count for count in range(min(len(above), PATHS) + 1) if _cost(count) <= room), default=0)
        found.append(Touched(tuple(now), tuple(above[:fit])))
        above = above[fit:]
    return found


def _cost(count: int) -> float:
    return (count + 6) * (1 + max(count, 1) / 100)


def seen(repository: JsonReader) -> Seen:
    """What one response says. A path that is not there is not among the nodes."""
    tree = repository.object_or_none("tree")
    last = tree.object_or_none("lastCommit") if tree else None
    nodes = [node for name in ("blobs", "above") for node in repository.sub(name).objects("nodes")]
    return Seen(
        empty=repository.bool("empty"),
        default_branch=repository.str_or_none("rootRef") or None,
        head=last.str("sha") if last else None,
        entries={node.str("path"): TreeEntry(node.str("oid"), node.str("mode")) for node in nodes},
    )


@dataclass(frozen=True, slots=True)
class Actions:
    """What to send, and what the touched paths will be: blob sha and mode, None where a path will be gone."""

    actions: list[dict[str, Any]]
    files: dict[str, tuple[str, str] | None]


def plan(changes: Sequence[FileChange], entries: Mapping[str, TreeEntry], *, sha256: bool = False) -> Actions:
    """Choose the actions. Changes that change nothing give none.

    Raises:
        InvalidRequestError: a path is missing, taken, a link or a submodule, or lies below a file.
    """
    gone = {change.path for change in changes if isinstance(change, DeleteFile | MoveFile)}
    planned = Actions([], {})
    # What goes first makes room: a path may lie below one that is deleted or moved away by the same call.
    for change in sorted(changes, key=lambda change: (DeleteFile, MoveFile, PutFile).index(type(change))):
        match change:
            case DeleteFile():
                _existing(change.path, entries)
                planned.actions.append({"action": "delete", "file_path": change.path})
                planned.files[change.path] = None
            case MoveFile():
                was = _existing(change.path, entries)
                _check_room(change.to, entries, gone)
                # A directory is not among the entries, but what is touched below it is.
                if any(path == change.to or path.startswith(f"{change.to}/") for path in entries):
                    refuse("changes", f"move {change.path!r} onto {change.to!r}, which exists")
                planned.actions.append(
                    {"action": "move", "previous_path": change.path, "file_path": change.to},
                )
                planned.files.update({change.path: None, change.to: (was.sha, was.mode)})
            case PutFile():
                _check_room(change.path, entries, gone)
                there = entries.get(change.path)
                emptied = any(path.startswith(f"{change.path}/") for path in gone)
                if there is not None and there.mode in _TREES and emptied:
                    there = None  # perhaps not of all its files; the host sees that
                _put(change, there, planned, sha256=sha256)
    return planned


def _put(change: PutFile, was: TreeEntry | None, planned: Actions, *, sha256: bool) -> None:
    data = change.data()
    if was is not None:
        _check_regular(change.path, was)
    old = was.mode if was else _PLAIN
    mode = old if change.executable is None else _EXECUTABLE if change.executable else _PLAIN
    sha = blob_sha(data, sha256=sha256)
    if was is None or was.sha != sha:
        verb = "create" if was is None else "update"
        planned.actions.append({"action": verb, "file_path": change.path, **encoded(data)})
    if mode != old:
        # create and update do not take the bit: it is an action of its own.
        chmod = {"action": "chmod", "file_path": change.path, "execute_filemode": mode == _EXECUTABLE}
        planned.actions.append(chmod)
    planned.files[change.path] = (sha, mode)


def encoded(data: bytes) -> dict[str, str]:
    """A file's content as the API takes it: text where that is safe, else base64."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    # A NUL in a parameter is refused by GitLab's own guard; other control characters are no text either.
    if text is not None and not any(c < " " and c not in "\t\n" for c in text):
        return {"content": text, "encoding": "text"}
    return {"content": base64.b64encode(data).decode("ascii"), "encoding": "base64"}


def _existing(path: str, entries: Mapping[str, TreeEntry]) -> TreeEntry:
    entry = entries.get(path)
    if entry is None:
        refuse("changes", f"name {path!r}, which does not exist on the branch")
    _check_regular(path, entry)
    return entry


def _check_regular(path: str, entry: TreeEntry) -> None:
    if entry.mode in _TREES:
        refuse("changes", f"name {path!r}, which is a directory on the branch")
    if entry.mode not in (_PLAIN, _EXECUTABLE):
        kind = {"120000": "a symbolic link", "160000": "a submodule"}.get(entry.mode, f"of mode {entry.mode}")
        refuse("changes", f"name {path!r}, which is {kind} on the branch")


def _check_room(path: str, entries: Mapping[str, TreeEntry], gone: set[str]) -> None:
    for directory in directories(path):
        entry = entries.get(directory)
        if entry is not None and entry.mode not in _TREES and directory not in gone:
            refuse("changes", f"put {path!r} below {directory!r}, which is no directory on the branch")
