"""The repositories' directories: each is made elsewhere and moved in place, and moved away before it is removed.

The caller holds the forge's lock. Whatever is in the scratch folder is therefore left over from a killed process, and
so is a repository's directory that no row of the database names.

Only the user who made a forge may read it: folders have the mode 0700 and files 0600, whatever the umask is.
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pygit2

from gitprovider.errors import ConflictError, ProviderUnavailableError
from gitprovider.local.errors import disk_error

# The key of the row's id in a repository's own config. A forge made every directory that has it, and may remove it.
_MARK = "gitprovider.repository"
# The scratch folder below the forge's root, and the file in it that says that a forge made it.
SCRATCH, _SIGN = ".gitprovider-scratch", ".made-by-gitprovider"
# A repository's own config. Git's garbage collection is for whoever runs it by hand, and the modes are for its pushes.
_CONFIG: dict[str, str | int] = {"gc.auto": 0, "core.sharedRepository": "0600", "core.hooksPath": "hooks"}
# The first words of our hook. A hook without them is somebody else's, and is left alone.
_HOOK = "#!/bin/sh\n# gitprovider: "


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
        for key, value in {_MARK: repo_id, **_CONFIG}.items():
            repository.config[key] = value
        repository.free()
        install_hook(draft)
        _make_private(draft)
        fill(draft)
        if git_dir.exists():
            if not _is_marked(git_dir):
                raise ConflictError(f"{git_dir} exists, and no forge made it", hint="move it elsewhere")
            _discard(root, git_dir)
        make_folder(git_dir.parent)
        os.rename(draft, git_dir)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, for this user alone."""
    for each in (*reversed(folder.parents), folder):
        if not each.is_dir():
            each.mkdir(mode=0o700, exist_ok=True)


def refuse_link(root: Path, path: Path) -> None:
    """Refuse a path below the root that a symbolic link on the way leads elsewhere.

    Raises:
        ProviderUnavailableError: the path, or a folder between it and the root, is a symbolic link.
    """
    for each in (path, *path.parents):
        if each == root:
            return
        if each.is_symlink():
            raise ProviderUnavailableError(
                f"{each} is a symbolic link; what is below a forge's root stays there",
                transient=False,
                hint="put the folder itself in its place; to keep the forge elsewhere, give that folder as its root",
            )


def install_hook(git_dir: Path) -> None:
    """Write the hook that makes a push obey the protection, unless the repository has one that somebody else wrote."""
    hook = git_dir / "hooks" / "pre-receive"
    library, python = str(Path(__file__).parents[2]), sys.executable or "python3"
    text = (
        f"{_HOOK}a push obeys the protection of branches. Without this file it does not.\n"
        f"PYTHONPATH={shlex.quote(library)}${{PYTHONPATH:+:$PYTHONPATH}} \\\n"
        f"exec {shlex.quote(python)} -P -m gitprovider.local.receive\n"
    )
    held = hook.read_text(errors="replace") if hook.exists() else None
    if held != text and (held is None or held.startswith(_HOOK)):
        make_folder(hook.parent)
        draft = hook.with_name(f".{hook.name}")
        draft.write_text(text)
        draft.chmod(0o700)
        draft.replace(hook)


def _make_private(folder: Path) -> None:
    for each in (folder, *folder.rglob("*")):
        each.chmod(each.stat().st_mode & 0o700)


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
    refuse_link(root, scratch)
    if not (scratch / _SIGN).exists():
        if scratch.exists() and any(scratch.iterdir()):
            raise ConflictError(f"{scratch} exists, and no forge made it", hint="move it elsewhere")
        make_folder(scratch)
        (scratch / _SIGN).touch(0o600)
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
        raise disk_error(exc, git_dir) or ProviderUnavailableError(
            f"{git_dir} cannot be written: {exc}", transient=False
        ) from exc
