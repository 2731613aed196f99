"""Objects, trees and branches as the fakes of the forge use them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitprovider import (
    AlreadyExistsError,
    Author,
    ConflictError,
    DeleteFile,
    FileChange,
    HeadMovedError,
    InvalidRequestError,
    MoveFile,
    NotFoundError,
    PutFile,
)
from gitprovider.local import Forge
from tests.support.local_forge import REPO, git

ABSENT = "0" * 40


def _tree(forge: Forge, *paths: str) -> str:
    blob = forge.write_blob(REPO, b"x")
    return forge.write_tree(REPO, None, dict.fromkeys(paths, (blob, "100644")))


def test_a_tree_is_built_on_another(forge: Forge) -> None:
    """What is not named stays; directories come and go with their files; modes are as given."""
    base = _tree(forge, "a/b/one", "a/b/two", "c", "d/e")
    run = (forge.write_blob(REPO, b"run"), "100755")
    link = (forge.write_blob(REPO, b"c"), "120000")
    module = ("1" * 40, "160000")

    tree = forge.write_tree(REPO, base, {"a/b/one": None, "d/e": None, "n/run": run, "n/link": link, "n/mod": module})

    assert {path: entry.mode for path, entry in forge.read_tree(REPO, tree).items()} == {
        "a/b/two": "100644",
        "c": "100644",
        "n/link": "120000",
        "n/mod": "160000",
        "n/run": "100755",
    }


def test_a_tree_of_nothing(forge: Forge) -> None:
    """Deleting the last file leaves Git's empty tree."""
    assert forge.write_tree(REPO, _tree(forge, "a/b"), {"a/b": None}) == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    assert forge.write_tree(REPO, None, {}) == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_a_file_and_a_directory_change_places(forge: Forge) -> None:
    """What counts is the tree that results: who makes room in the same change may use it."""
    blob = (forge.write_blob(REPO, b"x"), "100644")
    base = _tree(forge, "file", "folder/a", "folder/b")

    tree = forge.write_tree(
        REPO, base, {"file": None, "file/below": blob, "folder/a": None, "folder/b": None, "folder": blob}
    )

    assert set(forge.read_tree(REPO, tree)) == {"file/below", "folder"}


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        ({"absent": False}, "does not exist"),
        ({"folder/absent": False}, "does not exist"),
        ({"absent/file": False}, "does not exist"),
        ({"folder": False}, "is a directory"),
        ({"folder": True}, "is a directory"),
        ({"file/below": True}, "is a file"),
        ({"file/below": False}, "is a file"),
        ({"new": True, "new/below": True}, "is a directory"),
        ({"folder/a": False, "folder": True}, "is a directory"),
        ({"../up": True}, "not allowed"),
        ({".git/config": True}, ".git"),
    ],
)
def test_a_tree_that_cannot_be(forge: Forge, paths: dict[str, bool], problem: str) -> None:
    """Each is refused by name; True puts a file, False deletes it."""
    blob = forge.write_blob(REPO, b"x")
    base = _tree(forge, "file", "folder/a", "folder/b")

    with pytest.raises(InvalidRequestError, match=problem):
        forge.write_tree(REPO, base, {path: (blob, "100644") if put else None for path, put in paths.items()})


def test_a_mode_that_git_does_not_have(forge: Forge) -> None:
    """A mode is one of five."""
    with pytest.raises(InvalidRequestError, match="100600"):
        forge.write_tree(REPO, None, {"x": (forge.write_blob(REPO, b"x"), "100600")})


@pytest.mark.parametrize("sha", [ABSENT, "0" * 64, "main", "zz" * 20])
def test_what_is_not_there(forge: Forge, sha: str) -> None:
    """Whatever reads as no object of the repository is NotFoundError, and never another object."""
    tree = _tree(forge, "x")
    for call in (
        lambda: forge.read_blob(REPO, sha),
        lambda: forge.read_tree(REPO, sha),
        lambda: forge.read_commit(REPO, sha),
        lambda: forge.write_tree(REPO, sha, {}),
        lambda: forge.write_tree(REPO, None, {"x": (sha, "100644")}),
        lambda: forge.write_commit(REPO, tree=sha, parents=[], message="x"),
        lambda: forge.write_commit(REPO, tree=tree, parents=[sha], message="x"),
        lambda: forge.create_branch(REPO, "new", sha),
        lambda: forge.move_branch(REPO, "main", sha, expected=None),
    ):
        with pytest.raises(NotFoundError):
            call()
    assert not forge.contains(REPO, sha, "main")


def test_an_object_of_another_kind(forge: Forge) -> None:
    """A tree is no commit, and a commit is no blob."""
    head = forge.head(REPO, "main")
    tree = forge.read_commit(REPO, head).tree

    for call in (lambda: forge.read_blob(REPO, head), lambda: forge.read_commit(REPO, tree)):
        with pytest.raises(NotFoundError):
            call()
    assert forge.read_tree(REPO, head) == forge.read_tree(REPO, tree)


def test_entries_at_some_paths(forge: Forge) -> None:
    """A file, a directory and nothing, without reading the whole tree."""
    tree = _tree(forge, "a/b/c", "d")

    entries = forge.read_entries(REPO, tree, ["a", "a/b/c", "a/b/x", "d/below", "x/y"])

    assert {path: entry and entry.mode for path, entry in entries.items()} == {
        "a": "040000",
        "a/b/c": "100644",
        "a/b/x": None,
        "d/below": None,
        "x/y": None,
    }


def test_a_commit_is_as_it_was_written(forge: Forge) -> None:
    """Tree, parents in order, message, author and time come back."""
    head = forge.head(REPO, "main")
    other = forge.write_commit(REPO, tree=_tree(forge, "y"), parents=[], message="other")
    ada = Author(name="Ada", email="ada@example.org")

    sha = forge.write_commit(REPO, tree=_tree(forge, "x"), parents=[head, other], message="m\n\nb\n", author=ada)

    commit = forge.read_commit(REPO, sha)
    assert (commit.tree, commit.parents, commit.message) == (_tree(forge, "x"), (head, other), "m\n\nb\n")
    assert (commit.author_name, commit.author_email, commit.time.isoformat()) == (
        "Ada",
        "ada@example.org",
        "2024-05-01T12:04:00+00:00",
    )


def test_an_author_that_git_has_no_room_for(forge: Forge) -> None:
    """Git strips punctuation from the ends of a name; nothing being left is the author's fault."""
    author = Author(name=",", email="a@example.org")

    with pytest.raises(InvalidRequestError) as caught:
        forge.commit_changes(REPO, "main", [PutFile(path="x", content="x")], message="x", author=author)

    assert caught.value.argument == "author"


def test_an_empty_commit_only_where_it_is_asked_for(forge: Forge) -> None:
    """The same content twice is the same head; ``allow_empty`` makes a commit."""
    head = forge.head(REPO, "main")
    same = [PutFile(path="README.md", content="# Widgets\n")]

    assert forge.commit_changes(REPO, "main", same, message="x").sha == head
    assert forge.commit_changes(REPO, "main", same, message="x", allow_empty=True).parents == (head,)


def test_the_commit_is_told_before_the_branch_moves(forge: Forge) -> None:
    """Whoever records it can tell afterwards whether it took effect."""
    told: list[tuple[str | None, str, str]] = []
    head = forge.head(REPO, "main")

    commit = forge.commit_changes(
        REPO,
        "main",
        [PutFile(path="x", content="x")],
        message="x",
        on_commit=lambda base, sha: told.append((base, sha, forge.head(REPO, "main"))),
    )

    assert told == [(head, commit.sha, head)]


def test_a_first_commit_goes_to_the_default_branch(forge: Forge) -> None:
    """Another branch is refused by name; a pinned head cannot be there."""
    forge.create_repo("acme/empty", default_branch="trunk")
    file = [PutFile(path="x", content="x")]

    with pytest.raises(InvalidRequestError, match="trunk"):
        forge.commit_changes("acme/empty", "main", file, message="x")
    with pytest.raises(HeadMovedError, match="not there"):
        forge.commit_changes("acme/empty", "trunk", file, message="x", expected_head=ABSENT)
    assert forge.commit_changes("acme/empty", "trunk", file, message="x").parents == ()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (PutFile(path="link", content="x"), "symbolic link"),
        (DeleteFile(path="module"), "submodule"),
        (MoveFile(path="link", to="y"), "symbolic link"),
        (PutFile(path="link/x", content="x"), "is not a directory"),
        (MoveFile(path="README.md", to="link"), "exists"),
        (MoveFile(path="folder", to="y"), "is a directory"),
        (DeleteFile(path="folder"), "is a directory"),
    ],
)
def test_what_no_change_may_touch(forge: Forge, git_dir: Path, change: FileChange, problem: str) -> None:
    """Refused before a blob is written, and the branch stays."""
    entries = {
        "link": (forge.write_blob(REPO, b"README.md"), "120000"),
        "module": ("1" * 40, "160000"),
        "folder/x": (forge.write_blob(REPO, b"x"), "100644"),
    }
    head = forge.head(REPO, "main")
    tree = forge.write_tree(REPO, head, entries)
    sha = forge.write_commit(REPO, tree=tree, parents=[head], message="odd")
    forge.move_branch(REPO, "main", sha, expected=head)

    with pytest.raises(InvalidRequestError, match=problem):
        forge.commit_changes(REPO, "main", [change], message="x")

    assert forge.head(REPO, "main") == sha


def test_branches_beside_a_deleted_prefix(forge: Forge) -> None:
    """``release/1`` is in the way of ``release``, and no longer once it is deleted, whatever folder is left."""
    head = forge.head(REPO, "main")
    forge.create_branch(REPO, "release/1", head)
    with pytest.raises(ConflictError):
        forge.create_branch(REPO, "release", head)
    with pytest.raises(ConflictError):
        forge.create_branch(REPO, "release/1/hotfix", head)
    with pytest.raises(NotFoundError):
        forge.head(REPO, "release")
    forge.delete_branch(REPO, "release/1")

    forge.create_branch(REPO, "release", head)

    assert [name for name, _ in forge.branches(REPO)] == ["main", "release"]


def test_an_existing_branch_is_never_moved(forge: Forge) -> None:
    """The error has its name and head."""
    head = forge.head(REPO, "main")
    forge.create_branch(REPO, "topic", head)
    moved = forge.commit_changes(REPO, "topic", [PutFile(path="x", content="x")], message="x").sha

    with pytest.raises(AlreadyExistsError) as caught:
        forge.create_branch(REPO, "topic", head)

    assert caught.value.existing == ("topic", moved)
    assert forge.head(REPO, "topic") == moved


@pytest.mark.parametrize("name", ["a..b", "a b", "-a", "a.lock", "refs/heads/a", ""])
def test_a_name_that_git_refuses(forge: Forge, name: str) -> None:
    """Made by nobody, and found by nobody."""
    with pytest.raises(InvalidRequestError):
        forge.create_branch(REPO, name, forge.head(REPO, "main"))
    with pytest.raises(NotFoundError):
        forge.head(REPO, name)


def test_a_damaged_listing_is_no_shorter_one(forge: Forge, git_dir: Path) -> None:
    """A thousand branches are listed from both of Git's stores, sorted by name."""
    head = forge.head(REPO, "main")
    git(git_dir, "pack-refs", "--all")
    for number in range(5):
        forge.create_branch(REPO, f"b/{number}", head)

    assert forge.branches(REPO) == [*((f"b/{number}", head) for number in range(5)), ("main", head)]
