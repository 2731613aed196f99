"""The forge: a Git host in a folder, with bare Git repositories, and with pull requests, rules and checks in SQLite.

::

    root/forge.sqlite3                        repositories, pull requests, rules, approvals, checks
    root/repositories/acme/widgets.git        a bare repository; `git clone` accepts its path
    root/.gitprovider-scratch/                repositories while they are made or removed

Every write holds SQLite's write lock while it reads, checks and moves a ref, so writers of this library never meet. A
ref moves under Git's own lock file, from the value that was read, so Git may work on a repository at the same time
(:mod:`gitprovider.local.refs`). A push by Git obeys the protection of branches. Only the user who made the forge may
read or write its folder. Reads take no lock. Any number of processes and threads may share a root. Nothing stays open
between two calls, so a fork is harmless.

A forge raises the library's errors and leaves ``provider`` to the caller.
"""

from __future__ import annotations

import os
from pathlib import Path

from gitprovider.errors import NotFoundError
from gitprovider.local.commits import Commits
from gitprovider.local.protection import Protection
from gitprovider.local.pull_requests import PullRequests
from gitprovider.local.repositories import Repositories


class Forge(Repositories, Commits, Protection, PullRequests):
    """A Git host in a folder.

    Every method that takes ``path`` raises NotFoundError for a repository that does not exist, RepoMovedError for one
    that was renamed, and ProviderUnavailableError (not transient) for one that is damaged. Every method that changes
    what is in an archived repository raises PermissionDeniedError.

    Args:
        root: its directory. The first write makes it.
        now: the clock of commits and records. It returns aware datetimes.
        combine: what several rules that cover one branch demand together; by default the strictest of each field.
        identity: the committer, and the author where none is given.
        lock_wait: seconds that a write waits for other writers; None is a minute.
    """

    def __repr__(self) -> str:
        return f"Forge({str(getattr(self, 'root', ''))!r})"


def locate(directory: str | os.PathLike[str]) -> tuple[Path, str]:
    """The root of the forge that a repository's directory belongs to, and the repository's full path.

    Raises:
        NotFoundError: the directory is not a repository of a forge.
    """
    wanted = Path(directory).absolute()
    for root in wanted.parents:
        if (root / "forge.sqlite3").is_file():
            for repo in Forge(root).repos():
                if repo.git_dir == wanted:
                    return root, repo.path
            break
    raise NotFoundError(f"{wanted} is not a repository of a local forge")
