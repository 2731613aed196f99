"""The forge: a Git host in a folder. Real bare repositories, and pull requests, rules and checks in SQLite.

::

    root/forge.sqlite3                        repositories, pull requests, rules, approvals, checks
    root/repositories/acme/widgets.git        a plain bare repository: `git clone` takes its path
    root/tmp/                                 repositories that are being made or removed

Every write holds SQLite's write lock around read, check and move, since libgit2's creation of a ref is no
compare-and-set. Reads take no lock. Any number of processes and threads may share a root; nothing is kept open between
two calls, so a fork is harmless.

A forge raises the library's own errors, with ``provider`` left to the caller.
"""

from __future__ import annotations

import os
from pathlib import Path

from gitprovider.errors import NotFoundError
from gitprovider.local.commits import Contents
from gitprovider.local.protection import Protection
from gitprovider.local.pull_requests import PullRequests
from gitprovider.local.repositories import Repositories


class Forge(Repositories, Contents, Protection, PullRequests):
    """A Git host in a folder.

    Every method that takes ``path`` raises NotFoundError for a repository that is not there, RepoMovedError for one
    that was renamed, and ProviderUnavailableError (not transient) for one that is damaged, naming what; every method
    that changes an archived repository raises PermissionDeniedError.

    Args:
        root: its directory; made by the first write.
        now: the clock of commits and records, as aware datetimes.
        combine: what several rules that cover one branch demand together; by default the strictest of each field.
        identity: who the committer is, and the author where none is given.
        lock_wait: seconds to wait for one's turn to write; None is a minute.
    """

    def __repr__(self) -> str:
        return f"Forge({str(self.root)!r})"


def locate(directory: str | os.PathLike[str]) -> tuple[Path, str]:
    """The root of the forge that a repository's directory belongs to, and the repository's full path.

    Raises:
        NotFoundError: no forge has this directory.
    """
    wanted = Path(directory).absolute()
    for root in wanted.parents:
        if (root / "forge.sqlite3").is_file():
            for repo in Forge(root).repos():
                if repo.git_dir == wanted:
                    return root, repo.path
            break
    raise NotFoundError(f"{wanted} is not a repository of a local forge")
