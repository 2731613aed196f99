"""The repositories' directories: each is made elsewhere and moved in place, and moved away before it is removed.

The caller holds the forge's lock. Whatever is in ``tmp`` is therefore left over from a killed process, and so is a
repository's directory that no row of the database names.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pygit2

from gitprovider.errors import ConflictError, ProviderUnavailableError

# The key of the row's id in a repository's own config. A forge made every directory that has it, and may remove it.
_MARK = "gitprovider.repository"


def make(root: Path, git_dir: Path, repo_id: int, default_branch: str, fill: Callable[[Path], None]) -> None:
    """Make a bare repository in ``tmp``, let ``fill`` write its first commit, and move it in place.

    Raises:
        ConflictError: the directory exists, and no forge made it.
        ProviderUnavailableError: the disk is full, read-only or failing.
    """
    with _disk(git_dir):
        tmp = root / "tmp"
        shutil.rmtree(tmp, ignore_errors=True)
        tmp.mkdir(parents=True)
        draft = tmp / secrets.token_hex(8)
        repository = pygit2.init_repository(str(draft), bare=True, initial_head=default_branch)
        repository.config[_MARK] = repo_id
        repository.free()
        fill(draft)
        if git_dir.exists():
            if not _is_marked(git_dir):
                raise ConflictError(f"{git_dir} exists, and no forge made it", hint="move it elsewhere")
            _discard(root, git_dir)
        git_dir.parent.mkdir(parents=True, exist_ok=True)
        os.rename(draft, git_dir)


def remove(root: Path, git_dir: Path) -> None:
    """Remove a repository's directory if it exists. The caller has just deleted the row that named it.

    Raises:
        ProviderUnavailableError: the disk is read-only or failing.
    """
    with _disk(git_dir):
        if git_dir.exists():
            _discard(root, git_dir)


def _discard(root: Path, git_dir: Path) -> None:
    trash = root / "tmp" / secrets.token_hex(8)
    trash.parent.mkdir(parents=True, exist_ok=True)
    os.rename(git_dir, trash)
    shutil.rmtree(trash, ignore_errors=True)


def _is_marked(git_dir: Path) -> bool:
    try:
        return _MARK in pygit2.Config(str(git_dir / "config"))
    except (OSError, pygit2.GitError, ValueError):
        return False


@contextmanager
def _disk(git_dir: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pygit2.GitError) as exc:
        raise ProviderUnavailableError(f"{git_dir} cannot be written: {exc}", transient=False) from exc
