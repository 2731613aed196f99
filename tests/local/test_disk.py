"""What the operating system refuses is told by who can mend it: a user, an administrator, or time alone."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pygit2
import pytest

from gitprovider import GitProviderError, Outcome, PermissionDeniedError, ProviderUnavailableError, PutFile
from gitprovider.local import LocalProvider
from gitprovider.local.errors import disk_error, translate
from gitprovider.local.git import BareRepository
from tests.support.local_forge import REPO

NOBODY = 65534
READS: dict[str, Callable[[LocalProvider], object]] = {
    "get_repo": lambda p: p.get_repo(REPO),
    "list_branches": lambda p: p.list_branches(REPO),
    "protection": lambda p: p.protection(REPO, "main"),
    "tree": lambda p: p.tree(REPO, p.head(REPO, "main")),
}
WRITES: dict[str, Callable[[LocalProvider], object]] = {
    "create_repo": lambda p: p.create_repo("acme/new"),
    "create_branch": lambda p: p.create_branch(REPO, "new", source="main"),
    "commit_files": lambda p: p.commit_files(REPO, "main", [PutFile(path="x", content="x")], message="x"),
    "protect_branch": lambda p: p.protect_branch(REPO, "main"),
}


def _python(code: int) -> Exception:
    return OSError(code, os.strerror(code), "/somewhere/else")


def _libgit2(code: int) -> Exception:
    return OSError(f"failed to write out file: {os.strerror(code)}")


def _git_error(code: int) -> Exception:
    return pygit2.GitError(f"could not open '/x': {os.strerror(code)}")


@pytest.mark.parametrize("made", [_python, _libgit2, _git_error])
@pytest.mark.parametrize(
    ("code", "kind", "transient", "hint"),
    [
        (errno.ENOSPC, ProviderUnavailableError, False, "free space"),
        (errno.EDQUOT, ProviderUnavailableError, False, "quota"),
        (errno.EACCES, PermissionDeniedError, False, "run as"),
        (errno.EROFS, PermissionDeniedError, False, "writable"),
        (errno.EMFILE, ProviderUnavailableError, True, None),
        (errno.ENOMEM, ProviderUnavailableError, True, None),
        (errno.EBUSY, ProviderUnavailableError, True, None),
        (errno.EIO, ProviderUnavailableError, False, None),
    ],
)
def test_a_failure_is_told_by_who_can_mend_it(
    tmp_path: Path,
    made: Callable[[int], Exception],
    code: int,
    kind: type[GitProviderError],
    transient: bool,
    hint: str | None,
) -> None:
    """A full disk is no missing commit, and a limit that passes is no reason to restore a backup."""
    error = disk_error(made(code), tmp_path)

    assert type(error) is kind
    assert os.strerror(code) in error.message
    assert ("/somewhere" in error.message) or (str(tmp_path) in error.message)
    assert error.transient is transient
    assert (hint is None and error.hint is None) or str(hint) in str(error.hint)


@pytest.mark.parametrize(
    ("code", "transient"),
    [
        (sqlite3.SQLITE_BUSY, True),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, True),
        (sqlite3.SQLITE_LOCKED, True),
        (sqlite3.SQLITE_PROTOCOL, True),
        (sqlite3.SQLITE_NOMEM, True),
        (sqlite3.SQLITE_FULL, False),
        (sqlite3.SQLITE_IOERR_WRITE, False),
    ],
)
def test_a_lock_that_passes_may_be_waited_for(tmp_path: Path, code: int, transient: bool) -> None:
    """Whoever gives up on it would give up on a healthy forge."""
    exc = sqlite3.OperationalError("x")
    exc.sqlite_errorcode = code
    (tmp_path / "forge.sqlite3").touch()

    error = disk_error(exc, tmp_path / "forge.sqlite3")

    assert isinstance(error, ProviderUnavailableError)
    assert error.transient is transient


@pytest.mark.parametrize("code", [sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR])
def test_damage_is_no_failure_of_the_disk(tmp_path: Path, code: int) -> None:
    """It is mended from a backup."""
    exc = sqlite3.DatabaseError("x")
    exc.sqlite_errorcode = code

    assert disk_error(exc, tmp_path / "forge.sqlite3") is None


def test_a_failure_nobody_expected_leaves_the_outcome_open(tmp_path: Path) -> None:
    """It may have come after the effect."""
    error = translate(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path)))

    assert (error.outcome, error.retryable) == (Outcome.UNKNOWN, False)
    assert str(tmp_path) in error.message


def test_a_commit_that_git_only_says_it_wrote(provider: LocalProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk libgit2 reports a commit as written. It must not read as a commit that the caller got wrong."""
    before = provider.head(REPO, "main")
    create = pygit2.Repository.create_commit

    def lost(repository: pygit2.Repository, *given: Any) -> pygit2.Oid:
        made = create(repository, *given)
        (Path(repository.path) / "objects" / str(made)[:2] / str(made)[2:]).unlink()
        monkeypatch.setattr("gitprovider.local.errors._is_full", lambda folder: True)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(pygit2.Repository, "create_commit", lost)
        with pytest.raises(ProviderUnavailableError, match=os.strerror(errno.ENOSPC)) as caught:
            provider.commit_files(REPO, "main", [PutFile(path="x", content="x")], message="x")

    assert (caught.value.outcome, caught.value.retryable) == (Outcome.NOT_APPLIED, False)
    assert provider.head(REPO, "main") == before


def test_a_branch_never_moves_to_what_is_not_there(provider: LocalProvider) -> None:
    """Every later call on the branch would fail."""
    before = provider.head(REPO, "main")

    with pytest.raises(pygit2.GitError):
        BareRepository(provider.forge.repo(REPO).git_dir, REPO).set_branch("main", "1" * 40, old=before)

    assert provider.head(REPO, "main") == before


# Another user's folder, and a read-only one


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can reach."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    for path in (made, *made.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(made)


def as_another(call: Callable[[], object], home: str = "/nonexistent") -> list[str | bool | None]:
    """What a call raises for a user who is not root: its class, message and hint. Root forks and becomes nobody."""
    if os.geteuid() != 0:
        return _raised(call)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            pygit2.settings.search_path[pygit2.enums.ConfigLevel.GLOBAL] = home
            os.write(writing, json.dumps(_raised(call)).encode())
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading, "rb") as stream:
        said: list[str | bool | None] = json.loads(stream.read())
    return said


def _raised(call: Callable[[], object]) -> list[str | bool | None]:
    try:
        call()
    except GitProviderError as error:
        return [type(error).__name__, error.message, error.hint, error.outcome.value]
    except Exception as error:
        return [type(error).__name__, str(error), None, None]
    return [None, "", None, None]


@pytest.mark.parametrize("readable", [False, True])
@pytest.mark.parametrize("call", [*READS, *WRITES])
def test_the_folder_of_another_user(folder: Path, call: str, readable: bool) -> None:
    """A backup mends nothing there: the error names both users and the path."""
    root = folder / "forge"
    provider = LocalProvider(root)
    provider.create_repo(REPO, auto_init=True)
    if os.geteuid() != 0:
        for path in (*reversed(list(root.rglob("*"))), root):
            path.chmod(0)
    elif readable:
        for path in (root, *root.rglob("*")):
            path.chmod(0o755)

    kind, message, hint, outcome = as_another(lambda: (READS | WRITES)[call](provider))

    assert kind == "PermissionDeniedError", message
    assert str(root) in str(message)
    assert "belongs to" in str(message)
    assert "damaged" not in str(message)
    assert "run as" in str(hint)
    assert outcome == "not_applied"


@pytest.mark.parametrize("call", [*READS, *WRITES])
def test_a_folder_that_is_read_only(folder: Path, call: str) -> None:
    """What lies there can be read, and a write says what it may not do."""
    root = folder / "forge"
    provider = LocalProvider(root)
    provider.create_repo(REPO, auto_init=True)
    for path in (*reversed(list(root.rglob("*"))), root):
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        path.chmod(0o500)

    kind, message, hint, outcome = as_another(lambda: (READS | WRITES)[call](provider))

    if call in READS:
        assert kind is None, message
    else:
        assert kind == "PermissionDeniedError", message
        assert str(root) in str(message)
        assert "may not use" in str(message)
        assert (outcome, "run as" in str(hint)) == ("not_applied", True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_home_of_another_user(folder: Path) -> None:
    """As under sudo: libgit2 then says no more than that it could not look, and no repository is damaged."""
    provider = LocalProvider(folder / "forge")
    provider.create_repo(REPO, auto_init=True)
    for path in (folder / "forge", *(folder / "forge").rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    (folder / "home").mkdir(mode=0o700)

    kind, message, _, _ = as_another(lambda: provider.get_repo(REPO), home=str(folder / "home"))

    assert kind == "PermissionDeniedError", message
    assert f"{folder / 'home'} belongs to root" in str(message)


def test_what_waits_in_the_log_is_not_passed_over(folder: Path) -> None:
    """A reader that cannot read the log would show a forge without its last changes."""
    provider = LocalProvider(folder / "forge")
    provider.create_repo(REPO, auto_init=True)
    database = folder / "forge" / "forge.sqlite3"
    holder = sqlite3.connect(database)
    holder.execute("UPDATE repos SET description = 'new'")
    holder.commit()
    for path in (folder / "forge", *(folder / "forge").rglob("*")):
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
    (folder / "forge" / "forge.sqlite3-wal").chmod(0)
    (folder / "forge" / "forge.sqlite3-shm").chmod(0)

    kind, message, _, _ = as_another(lambda: provider.get_repo(REPO))

    holder.close()
    assert kind == "PermissionDeniedError", message
