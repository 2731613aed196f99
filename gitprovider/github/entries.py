"""What a commit's changes come to on GitHub: tree entries, and requests of a size that it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from gitprovider._core.edits import blob_sha, directories
from gitprovider.contract import TreeEntry
from gitprovider.errors import InvalidRequestError
from gitprovider.models import DeleteFile, FileChange, MoveFile, PutFile

PLAIN, EXECUTABLE = "100644", "100755"
_FILES_PER_TREE = 100
# Reports put the limit of one request's inline text at 2.5 MB; beyond it GitHub answers 502, or 422 "timed out".
_INLINE_BYTES = 1_000_000
_INLINE_BYTES_PER_TREE = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One path after the commit.

    Attributes:
        sha: the blob's sha; None when the path is to be gone.
        mode: ``100644`` or ``100755``.
        data: the content that is still to be sent; None where the host has the blob, or for a deletion.
    """

    path: str
    sha: str | None
    mode: str = PLAIN
    data: bytes | None = None

    @property
    def text(self) -> str | None:
        """The content, where a tree can carry it: UTF-8 text of a modest size."""
        if self.data is None or len(self.data) > _INLINE_BYTES or b"\0" in self.data:
            return None
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return None

    def item(self) -> dict[str, Any]:
        """The entry as ``POST git/trees`` takes it. GitHub wants a mode on deletions too."""
        item = {"path": self.path, "mode": self.mode, "type": "blob"}
        return item | ({"sha": self.sha} if (text := self.text) is None else {"content": text})


def entries(changes: Sequence[FileChange], tree: Mapping[str, TreeEntry]) -> list[Entry]:
    """What the changes make of ``tree``.

    It is always needed: GitHub puts a file in the place of a link, a submodule or a directory without a word.

    Raises:
        InvalidRequestError: deleting or moving what is not there; moving onto an existing path; a file below a file or
            in place of a directory; a symbolic link or submodule at a touched path.
    """
    made: list[Entry] = []
    for change in changes:
        was = _judged(change, tree)
        match change:
            case PutFile():
                data = change.data()
                keep = was.mode if was is not None else PLAIN
                mode = keep if change.executable is None else EXECUTABLE if change.executable else PLAIN
                made.append(Entry(path=change.path, sha=blob_sha(data), mode=mode, data=data))
            case MoveFile() if was is not None:
                made.append(Entry(path=change.to, sha=was.sha, mode=was.mode))
                made.append(Entry(path=change.path, sha=None))
            case _:
                made.append(Entry(path=change.path, sha=None))
    _check_places(made, tree)
    return sorted(made, key=lambda entry: entry.sha is not None)  # what goes makes room for what comes


def _judged(change: FileChange, tree: Mapping[str, TreeEntry]) -> TreeEntry | None:
    was = tree.get(change.path)
    if was is not None and was.mode not in (PLAIN, EXECUTABLE):
        kind = "a submodule" if was.mode == "160000" else "a symbolic link"
        _refuse(f"{change.path!r} is {kind}, which cannot be changed here")
    if was is None and not isinstance(change, PutFile):
        verb = "deleted" if isinstance(change, DeleteFile) else "moved"
        _refuse(f"{change.path!r} is no file that exists, and cannot be {verb}")
    if isinstance(change, MoveFile) and (change.to in tree or any(path.startswith(f"{change.to}/") for path in tree)):
        _refuse(f"{change.to!r} exists; nothing can be moved onto it")
    return was


def _check_places(made: Sequence[Entry], tree: Mapping[str, TreeEntry]) -> None:
    gone = {entry.path for entry in made if entry.sha is None}
    left = set(tree) - gone
    occupied = {above for path in left for above in directories(path)}
    for entry in made:
        if entry.sha is None:
            continue
        if entry.path in occupied:
            _refuse(f"{entry.path!r} is a directory; no file can take its place")
        if below := next((above for above in directories(entry.path) if above in left), None):
            _refuse(f"{below!r} is a file; nothing can be below it")


def changed(made: Sequence[Entry], tree: Mapping[str, TreeEntry]) -> list[Entry]:
    """The entries that differ from what is there."""
    return [e for e in made if e.sha is None or tree.get(e.path) != TreeEntry(e.sha, e.mode)]


def evidence(made: Sequence[Entry]) -> dict[str, tuple[str, str] | None]:
    """What an intent remembers of the files: per path its blob and mode, None for one that is gone."""
    return {entry.path: None if entry.sha is None else (entry.sha, entry.mode) for entry in made}


def batches(made: Sequence[Entry]) -> Iterator[list[Entry]]:
    """The entries in lots that one ``POST git/trees`` takes."""
    batch: list[Entry] = []
    size = 0
    for entry in made:
        inline = 0 if entry.data is None or entry.text is None else len(entry.data)
        if batch and (len(batch) == _FILES_PER_TREE or size + inline > _INLINE_BYTES_PER_TREE):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += inline
    if batch:
        yield batch


def _refuse(problem: str) -> NoReturn:
    raise InvalidRequestError(f"changes: {problem}", argument="changes")
