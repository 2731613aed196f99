"""A damaged forge says which repository and what is wrong, and is never written to."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitprovider import BranchProtection, Outcome, ProviderUnavailableError, PutFile
from gitprovider.local import Forge, LocalProvider
from gitprovider.local.git import BareRepository
from gitprovider.local.refs import Refs
from tests.support.local_forge import REPO, git

CHANGE = [PutFile(path="README.md", content="changed\n")]


def _snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _loose(git_dir: Path, sha: str) -> Path:
    return git_dir / "objects" / sha[:2] / sha[2:]


def _refused(call: Callable[[], object], *words: str) -> ProviderUnavailableError:
    with pytest.raises(ProviderUnavailableError) as caught:
        call()
    error = caught.value
    assert all(word in error.message for word in words), error.message
    assert not error.retryable
    assert error.outcome is Outcome.NOT_APPLIED
    return error


@pytest.mark.parametrize("kind", ["commit", "tree", "blob"])
def test_a_missing_object(provider: LocalProvider, git_dir: Path, kind: str) -> None:
    """The error names the repository and the object, and the branch stays where it is."""
    head = provider.head(REPO, "main")
    tree = provider.forge.read_commit(REPO, head).tree
    provider.create_branch(REPO, "other", source="main")
    changed = provider.commit_files(REPO, "other", CHANGE, message="other")
    blob = provider.tree(REPO, changed.sha)["README.md"].sha
    provider.commit_files(REPO, "main", [PutFile(path="x", content="x")], message="main")
    provider.open_pull_request(REPO, source_branch="other", target_branch="main", title="other")
    missing, named = {"commit": (head, head), "tree": (tree, tree[:7]), "blob": (blob, "README.md")}[kind]
    _loose(git_dir, missing).unlink()
    before = provider.head(REPO, "main")

    _refused(lambda: provider.merge_pull_request(REPO, 1), REPO, "damaged", named)

    assert provider.head(REPO, "main") == before


def test_a_missing_head(provider: LocalProvider, git_dir: Path) -> None:
    """A commit on a head whose object is gone is refused before anything is written."""
    head = provider.head(REPO, "main")
    _loose(git_dir, head).unlink()
    before = _snapshot(git_dir)

    _refused(lambda: provider.commit_files(REPO, "main", CHANGE, message="x"), REPO, head)

    assert _snapshot(git_dir) == before


def test_a_head_that_is_no_commit(provider: LocalProvider, git_dir: Path) -> None:
    """A branch that points at a blob is damage too."""
    blob = provider.forge.write_blob(REPO, b"x")
    (git_dir / "refs/heads/main").write_text(blob + "\n")

    _refused(lambda: provider.commit_files(REPO, "main", CHANGE, message="x"), REPO, "not a commit")


def test_a_cut_object(provider: LocalProvider, git_dir: Path) -> None:
    """An object of no bytes, as a power cut leaves it, is named."""
    head = _loose(git_dir, provider.head(REPO, "main"))
    head.chmod(0o644)
    head.write_bytes(b"")

    _refused(lambda: provider.commit_files(REPO, "main", CHANGE, message="x"), REPO)


def test_a_cut_ref(provider: LocalProvider, git_dir: Path) -> None:
    """A branch whose file holds no sha is no missing branch."""
    (git_dir / "refs/heads/main").write_text("")

    _refused(lambda: provider.list_branches(REPO), REPO)
    _refused(lambda: provider.commit_files(REPO, "main", CHANGE, message="x"), REPO)


@pytest.mark.parametrize("left", ["nothing", "no repository"])
def test_a_missing_directory(provider: LocalProvider, git_dir: Path, left: str) -> None:
    """A repository whose directory is gone, or holds no repository, is not made anew and does not read as empty."""
    shutil.rmtree(git_dir)
    if left == "no repository":
        git_dir.mkdir()

    for call in (
        lambda: provider.get_repo(REPO),
        lambda: provider.list_branches(REPO),
        lambda: provider.commit_files(REPO, "main", CHANGE, message="x"),
        lambda: provider.protect_branch(REPO, "main"),
    ):
        _refused(call, REPO)

    assert not git_dir.exists() or not list(git_dir.iterdir())


def test_a_damaged_repository_can_be_deleted(provider: LocalProvider, git_dir: Path) -> None:
    """To be rid of it is the one thing that works on it."""
    (git_dir / "config").unlink()
    (git_dir / "HEAD").unlink()

    provider.forge.delete_repo(REPO)

    assert not git_dir.exists()
    provider.create_repo(REPO)


@pytest.mark.parametrize("damage", ["half", "empty", "text", "another's"])
def test_a_damaged_database(provider: LocalProvider, root: Path, damage: str) -> None:
    """Cut, emptied or replaced: nothing reads as an empty forge, and nothing is written."""
    database = root / "forge.sqlite3"
    provider.protect_branch(REPO, "main", BranchProtection())
    if damage == "half":
        database.write_bytes(database.read_bytes()[: database.stat().st_size // 2])
    elif damage == "another's":
        database.unlink()
        connection = sqlite3.connect(database)
        connection.execute("CREATE TABLE repos (x)")
        connection.commit()
        connection.close()
    else:
        database.write_bytes(b"" if damage == "empty" else b"not a database, but long enough to be looked at\n" * 40)
    before = _snapshot(root)

    for call in (
        lambda: provider.get_repo(REPO),
        lambda: provider.create_repo("acme/new"),
        lambda: provider.commit_files(REPO, "main", CHANGE, message="x"),
    ):
        _refused(call, str(database))

    assert _snapshot(root) == before


def test_a_missing_database(provider: LocalProvider, root: Path) -> None:
    """Repositories without their database are no new forge."""
    (root / "forge.sqlite3").unlink()

    _refused(lambda: provider.get_repo(REPO), "forge.sqlite3", "missing")
    _refused(lambda: provider.create_repo("acme/new"), "forge.sqlite3", "missing")

    assert not (root / "forge.sqlite3").exists()


def test_a_database_of_a_later_version(provider: LocalProvider, root: Path) -> None:
    """What a later version of this library laid out is left alone."""
    connection = sqlite3.connect(root / "forge.sqlite3")
    connection.execute("PRAGMA user_version = 99")
    connection.close()

    _refused(lambda: provider.get_repo(REPO), "version 99")


@pytest.mark.parametrize(
    ("statement", "call"),
    [
        ("UPDATE repos SET settings = '[]'", lambda p: p.get_repo(REPO)),
        ("UPDATE repos SET visibility = 'secret'", lambda p: p.get_repo(REPO)),
        ("UPDATE repos SET created_at = 'then'", lambda p: p.forge.repos()),
        ("UPDATE rules SET protection = '{'", lambda p: p.protection(REPO, "main")),
        ("UPDATE rules SET protection = '{}'", lambda p: p.protect_branch(REPO, "main")),
        ("UPDATE pulls SET state = 'lost'", lambda p: p.get_pull_request(REPO, 1)),
    ],
)
def test_a_row_that_does_not_read_back(
    provider: LocalProvider, root: Path, statement: str, call: Callable[[LocalProvider], object]
) -> None:
    """A row that some other hand wrote is named, and is no KeyError."""
    provider.protect_branch(REPO, "main", BranchProtection(require_pull_request=False))
    provider.create_branch(REPO, "other", source="main")
    provider.commit_files(REPO, "other", CHANGE, message="other")
    provider.open_pull_request(REPO, source_branch="other", target_branch="main", title="other")
    connection = sqlite3.connect(root / "forge.sqlite3")
    connection.execute(statement)
    connection.commit()
    connection.close()

    with pytest.raises(ProviderUnavailableError, match="cannot be parsed") as caught:
        call(provider)

    assert not caught.value.retryable


def test_a_folder_that_cannot_be_one(tmp_path: Path) -> None:
    """A file where the forge's folder is to be: one readable error, with nothing applied."""
    (tmp_path / "file").write_text("x")
    provider = LocalProvider(tmp_path / "file")

    error = _refused(lambda: provider.create_repo(REPO), str(tmp_path / "file"))

    assert error.intent is not None


def test_a_disk_that_fails_while_a_repository_is_made(forge: Forge, root: Path) -> None:
    """The directory cannot be moved in place: no repository, and the next try finds nothing in the way."""
    (root / "repositories" / "other").write_text("x")

    _refused(lambda: forge.create_repo("other/widgets"), "other")
    assert [repo.path for repo in forge.repos()] == [REPO]

    (root / "repositories" / "other").unlink()
    assert forge.create_repo("other/widgets").id == 2


def test_a_full_disk_is_not_called_damage(provider: LocalProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the operating system refuses is said as it is, and the branch stays."""
    before = provider.head(REPO, "main")

    def full(repository: BareRepository, data: bytes) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(BareRepository, "write_blob", full)

    error = _refused(lambda: provider.commit_files(REPO, "main", CHANGE, message="x"), REPO, "No space left")

    assert "damaged" not in error.message
    assert provider.head(REPO, "main") == before


def test_a_branch_made_while_branches_are_listed(forge: Forge, git_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes between the two looks is listed, and one that goes is not."""
    files = Refs._files

    def changed(refs: Refs, prefix: str) -> Iterator[str]:
        (git_dir / "refs/heads/late").write_text(forge.head(REPO, "main") + "\n")
        yield from (*files(refs, prefix), "refs/heads/gone")

    monkeypatch.setattr(Refs, "_files", changed)

    assert [name for name, _ in forge.branches(REPO)] == ["late", "main"]


def test_git_agrees_that_nothing_is_wrong(forge: Forge, git_dir: Path) -> None:
    """The healthy repository of these tests is sound, so that each damage is the test's own."""
    assert git(git_dir, "fsck", "--strict") == ""
