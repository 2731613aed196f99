"""The repositories' directories: each is made elsewhere and moved in place, and moved away before it is removed.

The caller holds the forge's lock. Whatever is in the scratch folder is therefore left over from a killed process, and
so is a repository's directory that no row of the database names.
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
# The scratch folder below the forge's root, and the file in it that says that a forge made it.
SCRATCH, _SIGN = ".gitprovider-scratch", ".made-by-gitprovider"


def make(root: Path, git_dir: Path, repo_id: int, default_branch: str, fill: Callable[[Path], None]) -> None:
    """Make a bare repository in the scratch folder, let ``fill`` write its first commit, and move it in place.

    Raises:
        ConflictError: the directory or the scratch folder exists, and no forge made it.
        ProviderUnavailableError: the disk is full, read-only or failing.
    """
    with _disk(git_dir):
        scratch = _scratch(root)
        for left in scratch.iterdir():  # by a process that was killed
            if left.name != _SIGN:
                shutil.rmtree(left, ignore_errors=True)
        draft = scratch / secrets.token_hex(8)
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
        ConflictError: the scratch folder exists, and no forge made it.
        ProviderUnavailableError: the disk is read-only or failing.
    """
    with _disk(git_dir):
        if git_dir.exists():
            _discard(root, git_dir)


def _scratch(root: Path) -> Path:
    """The folder for what is being made or removed. A sign in it says that a forge made it, so its content is ours."""
    scratch = root / SCRATCH
    if not (scratch / _SIGN).exists():
        if scratch.exists() and any(scratch.iterdir()):
            raise ConflictError(f"{scratch} exists, and no forge made it", hint="move it elsewhere")
        scratch.mkdir(parents=True, exist_ok=True)
        (scratch / _SIGN).touch()
    return scratch


def _discard(root: Path, git_dir: Path) -> None:
    trash = _scratch(root) / secrets.token_hex(8)
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
