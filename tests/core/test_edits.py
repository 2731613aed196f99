"""The planner of a commit on random trees and changes: against real Git, a model of the rules, and the local forge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, product
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pygit2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pygit2.enums import FileMode

from gitprovider._core.edits import Edit, Edits, blob_sha, holds, lookup_in, plan
from gitprovider.contract import TreeEntry
from gitprovider.errors import InvalidRequestError
from gitprovider.local import Forge
from gitprovider.models import DeleteFile, FileChange, MoveFile, PutFile
from gitprovider.mutations import CommitFiles

REPO = "acme/widgets"
PLAIN, EXECUTABLE, LINK, SUBMODULE, DIRECTORY = "100644", "100755", "120000", "160000", "040000"
REGULAR = (PLAIN, EXECUTABLE)
FOREIGN_COMMIT = "1" * 40
NUMBERS = count()

Occupied = Callable[[str, set[str]], bool]


class File(NamedTuple):
    """A file of the model. A submodule has no content of its own."""

    mode: str
    content: bytes = b""


Model = Mapping[str, File]


# Random trees and changes. Few names, so that paths collide.

paths = st.sampled_from(["/".join(parts) for depth in (1, 2, 3) for parts in product("ab", repeat=depth)])
contents = st.sampled_from([b"", b"x", b"y\r\n"])
files = st.builds(File, st.sampled_from([PLAIN, PLAIN, EXECUTABLE, LINK, SUBMODULE]), contents)


def tree_without_clashes(drawn: Model) -> Model:
    kept: dict[str, File] = {}
    for path, file in drawn.items():
        if not kept.keys() & above(path) and not any(path in above(other) for other in kept):
            kept[path] = file
    return kept


@st.composite
def changes_of(draw: st.DrawFn, tree: Model) -> tuple[FileChange, ...]:
    """Changes that a CommitFiles accepts without knowing the tree. For half of the lists the tree admits them too."""
    some_path = st.sampled_from(sorted(tree)) | paths if tree else paths
    modes = st.sampled_from([None, True, False])
    some_change = st.one_of(
        st.builds(partial, st.just(PutFile), path=some_path, content=contents, executable=modes),
        st.builds(partial, st.just(DeleteFile), path=some_path),
        st.builds(partial, st.just(MoveFile), path=some_path, to=paths),
    )
    admitted = draw(st.booleans())
    kept: list[FileChange] = []
    for make in draw(st.lists(some_change, min_size=1, max_size=6)):
        try:
            longer = [*kept, make()]
            CommitFiles(branch="main", changes=longer, message="x")
        except InvalidRequestError:
            continue
        if not admitted or model_of(tree, longer) is not None:
            kept = longer
    return tuple(kept) or (PutFile(path="b/b/b/b", content=b"x"),)


@st.composite
def commits(draw: st.DrawFn) -> tuple[Model, tuple[FileChange, ...]]:
    tree = tree_without_clashes(draw(st.dictionaries(paths, files, min_size=2, max_size=8)))
    return tree, draw(changes_of(tree))


# The model: the plain rules, on a dict of paths.


def above(path: str) -> set[str]:
    return {str(parent) for parent in PurePosixPath(path).parents} - {"."}


def model_of(tree: Model, changes: Sequence[FileChange]) -> Model | None:
    """The tree after the changes; None where a rule refuses them."""
    after = dict(tree)
    for change in changes:
        if change.path in tree and tree[change.path].mode not in REGULAR:
            return None
        if not isinstance(change, PutFile) and after.pop(change.path, None) is None:
            return None
    for change in changes:
        if isinstance(change, MoveFile):
            if change.to in tree or any(change.to in above(path) for path in tree):
                return None
            after[change.to] = tree[change.path]
        elif isinstance(change, PutFile):
            mode = tree[change.path].mode if change.path in tree else PLAIN
            if change.executable is not None:
                mode = EXECUTABLE if change.executable else PLAIN
            after[change.path] = File(mode, change.data())
    return None if any(after.keys() & above(path) for path in after) else after


def held_in(tree: Model, change: FileChange) -> bool:
    """Whether the tree is as the change asks."""
    match change:
        case DeleteFile():
            return change.path not in tree
        case MoveFile():
            return change.path not in tree and change.to in tree
        case PutFile():
            modes = {None: REGULAR, True: (EXECUTABLE,), False: (PLAIN,)}[change.executable]
            return change.path in tree and tree[change.path] in [File(mode, change.data()) for mode in modes]


# Real Git.


def write_entries(git: pygit2.Repository, tree: Model) -> dict[str, TreeEntry]:
    return {
        path: TreeEntry(FOREIGN_COMMIT if mode == SUBMODULE else str(git.create_blob(content)), mode)
        for path, (mode, content) in tree.items()
    }


def index_of(entries: Mapping[str, TreeEntry]) -> pygit2.Index:
    index = pygit2.Index()
    for path, entry in entries.items():
        add(index, path, entry)
    return index


def add(index: pygit2.Index, path: str, entry: TreeEntry) -> None:
    # libgit2 removes what is in the way of a new entry. Git does not.
    assert not any(other in above(path) or path in above(other) for other in (item.path for item in index))
    index.add(pygit2.IndexEntry(path, pygit2.Oid(hex=entry.sha), FileMode(int(entry.mode, 8))))


def apply(git: pygit2.Repository, base: Mapping[str, TreeEntry], edits: Iterable[Edit]) -> str:
    """The tree after the edits, each carried out in its turn."""
    index = index_of(base)
    for edit in edits:
        assert edit.before == base.get(edit.path)
        if edit.data is not None:
            git.create_blob(edit.data)
        if edit.after is None:
            index.remove(edit.path)
        else:
            add(index, edit.path, edit.after)
    return str(index.write_tree(git))


def occupied_in(tree: Iterable[str]) -> Occupied:
    return lambda directory, gone: any(directory in above(path) and path not in gone for path in tree)


def planned(entries: Mapping[str, TreeEntry], changes: Sequence[FileChange], occupied: Occupied | None) -> Edits | str:
    """The edits, or the message of the refusal."""
    try:
        return plan(changes, lookup_in(entries), occupied=occupied)
    except InvalidRequestError as error:
        return f"{error.argument} / {error.message}"


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> pygit2.Repository:
    """A bare repository that holds the objects."""
    return pygit2.init_repository(str(tmp_path_factory.mktemp("objects")), bare=True)


COLLISIONS = [
    ({}, (PutFile(path="a/b", content=b"x", executable=True),)),
    ({"a": File(PLAIN)}, (DeleteFile(path="a"), PutFile(path="a/b", content=b"x"))),
    ({"a": File(EXECUTABLE)}, (MoveFile(path="a", to="b"), PutFile(path="a/b", content=b"x"))),
    ({"a/a": File(EXECUTABLE)}, (DeleteFile(path="a/a"), PutFile(path="a", content=b"x"))),
    ({"a/a": File(PLAIN), "a/b": File(LINK)}, (DeleteFile(path="a/a"), PutFile(path="a", content=b"x"))),
    ({"a/a": File(PLAIN), "b": File(PLAIN)}, (DeleteFile(path="a/a"), MoveFile(path="b", to="a"))),
    ({"a": File(LINK)}, (PutFile(path="a/b", content=b"x"),)),
    ({"a": File(PLAIN, b"x")}, (PutFile(path="a", content=b"x", executable=True),)),
    ({"a": File(LINK, b"x")}, (PutFile(path="a", content=b"x"),)),
    ({"b": File(PLAIN)}, (MoveFile(path="a", to="b/a"), PutFile(path="a/a", content=b"x"))),
    ({"a": File(EXECUTABLE, b"x")}, (PutFile(path="a", content=b"x"),)),
    ({"a/b": File(SUBMODULE), "b": File(PLAIN)}, (MoveFile(path="b", to="a/b/a"),)),
]


def commits_of_all_kinds(number: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Random commits, and every known collision of files and directories."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        for case in COLLISIONS:
            test = example(case=case)(test)
        return settings(max_examples=number, deadline=None)(given(case=commits())(test))

    return decorate


@commits_of_all_kinds(100)
def test_the_edits_make_the_tree_of_the_rules(
    git: pygit2.Repository, case: tuple[Model, tuple[FileChange, ...]]
) -> None:
    """Git builds the model's tree from the edits, in order and from the effective ones alone.

    Catches a planner that loses the mode of a moved or replaced file, follows a link, overwrites a submodule, takes a
    directory for emptied while a file is left, hashes other bytes than Git, puts before it deletes, or refuses a path
    that the same commit frees.
    """
    tree, changes = case
    entries = write_entries(git, tree)
    edits, after = planned(entries, changes, occupied_in(tree)), model_of(tree, changes)

    assert isinstance(edits, str) == (after is None)
    if isinstance(edits, str) or after is None:
        return
    wanted = write_entries(git, after)
    assert apply(git, entries, edits.all) == str(index_of(wanted).write_tree(git))
    assert apply(git, entries, edits.effective) == str(index_of(wanted).write_tree(git))
    assert bool(edits.effective) == (wanted != entries)
    assert edits.files == {
        path: wanted.get(path) for path in CommitFiles(branch="x", changes=changes, message="x").paths
    }
    for edit in edits.all:
        assert edit.moved_from is None or edits.files[edit.moved_from] is None
        assert (edit.moved_from, edit.path) in {(c.path, c.to) for c in changes if isinstance(c, MoveFile)} or (
            edit.moved_from is None
        )


@commits_of_all_kinds(100)
def test_the_touched_paths_are_all_that_is_looked_up(
    git: pygit2.Repository, case: tuple[Model, tuple[FileChange, ...]]
) -> None:
    """A lookup that knows the touched paths and the directories above them gives the same edits or the same refusal.

    Catches a planner that looks at a sibling, at a path below a touched one, or at the tree as a whole: on a host that
    reads only what is touched, it would take an unread path for a missing one.
    """
    tree, changes = case
    entries = write_entries(git, tree)
    everything = lookup_in(entries)
    touched = set(CommitFiles(branch="main", changes=changes, message="x").paths)
    read = {path: everything(path) for path in touched.union(*map(above, touched))}
    reduced = {path: entry for path, entry in read.items() if entry is not None}

    def lookup(path: str) -> TreeEntry | None:
        assert path in read, f"{path} is neither touched nor above a touched path"
        return read[path]

    occupied = occupied_in(tree)
    known = planned(entries, changes, occupied)
    assert planned(reduced, changes, occupied) == known
    if isinstance(known, str):
        with pytest.raises(InvalidRequestError):
            plan(changes, lookup, occupied=occupied)
    else:
        assert plan(changes, lookup, occupied=occupied) == known


@commits_of_all_kinds(100)
def test_a_host_that_cannot_see_into_a_directory_is_lenient_there_alone(
    git: pygit2.Repository, case: tuple[Model, tuple[FileChange, ...]]
) -> None:
    """Without ``occupied`` the only difference is a file in place of a directory that a file is taken from.

    Catches a planner that lets a file replace an untouched directory, or judges anything else by ``occupied``.
    """
    tree, changes = case
    entries = write_entries(git, tree)
    strict, lenient = planned(entries, changes, occupied_in(tree)), planned(entries, changes, None)

    if strict != lenient:
        gone = {change.path for change in changes if not isinstance(change, PutFile)}
        assert isinstance(strict, str)
        assert any(
            isinstance(change, PutFile) and any(change.path in above(path) for path in gone) for change in changes
        )


@commits_of_all_kinds(100)
def test_what_a_commit_has_done_holds(git: pygit2.Repository, case: tuple[Model, tuple[FileChange, ...]]) -> None:
    """A change holds before a commit where the tree is as it asks, and every change holds after its commit.

    Catches a ``holds`` that asks for another mode than the planner gives, which would repeat a finished commit, one
    that takes a link with the same blob for the file, and one that takes a file that was never there for a moved one.
    """
    tree, changes = case
    entries = write_entries(git, tree)
    after = model_of(tree, changes)

    assert [holds(change, entries.get) for change in changes] == [held_in(tree, change) for change in changes]
    if after is not None:
        assert all(holds(change, write_entries(git, after).get) for change in changes)


@pytest.fixture(scope="module")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Forge:
    """A forge with one repository."""
    forge = Forge(tmp_path_factory.mktemp("forge"))
    forge.create_repo(REPO, auto_init=True)
    return forge


def objects(git_dir: Path) -> set[Path]:
    return {path for path in (git_dir / "objects").rglob("*") if path.is_file()}


@commits_of_all_kinds(30)
def test_the_forge_commits_the_tree_of_the_rules(forge: Forge, case: tuple[Model, tuple[FileChange, ...]]) -> None:
    """The forge's commit has the model's tree. A refused list moves no branch and writes no object.

    Catches a forge that writes blobs before every change is judged, lets its tree writer decide otherwise than the
    planner, leaves an empty directory, commits where nothing changes, or notes other files than it commits.
    """
    tree, changes = case
    git_dir = forge.repo(REPO).git_dir
    git = pygit2.Repository(str(git_dir))
    entries = write_entries(git, tree)
    base = forge.write_commit(REPO, tree=str(index_of(entries).write_tree(git)), parents=[], message="base")
    forge.move_branch(REPO, "main", base, expected=None, force=True)
    edits, after = planned(entries, changes, occupied_in(tree)), model_of(tree, changes)
    before, noted = objects(git_dir), list[Edits]()

    if isinstance(edits, str) or after is None:
        unknown = [
            replace(change, content=f"{next(NUMBERS)} is in no blob yet") if isinstance(change, PutFile) else change
            for change in changes
        ]
        with pytest.raises(InvalidRequestError) as caught:
            forge.commit_changes(REPO, "main", unknown, message="x", on_plan=noted.append)
        assert (f"changes / {caught.value.message}", forge.head(REPO, "main"), noted) == (edits, base, [])
        assert objects(git_dir) == before
    else:
        commit = forge.commit_changes(REPO, "main", changes, message="x", on_plan=noted.append)
        assert forge.read_tree(REPO, commit.tree) == write_entries(git, after)
        assert commit.tree == str(index_of(write_entries(git, after)).write_tree(git))
        assert (commit.sha == base, noted) == ((True, []) if after == tree else (False, [edits]))
        assert forge.head(REPO, "main") == commit.sha
    git.free()


@pytest.mark.parametrize(
    ("data", "sha256", "sha"),
    [
        (b"", False, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
        (b"", True, "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"),
    ],
)
def test_the_name_of_a_blob(data: bytes, sha256: bool, sha: str) -> None:
    """As ``git hash-object`` names it. Catches a hash without Git's header, and SHA-1 in a SHA-256 repository."""
    assert blob_sha(data, sha256=sha256) == sha
