"""A process that bootstraps on the local forge and kills itself at a write: ``ROOT SOURCE NUMBER before|after``."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from gitprovider import bootstrap
from gitprovider.local import LocalProvider
from tests.support.mutations import REPO

# What a bootstrap writes with, in the order in which it does.
WRITES = ("create_repo", "commit_changes", "create_branch", "open_pull_request", "merge", "delete_branch", "tighten")


def main(root: str, source: str, number: int, when: str) -> None:
    provider = LocalProvider(root)
    calls = 0

    def killing(write: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == number and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = write(*args, **kwargs)
            if calls == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for name in WRITES:
        setattr(provider.forge, name, killing(getattr(provider.forge, name)))
    bootstrap(provider, REPO, source=source, pull_request=True).raise_for_error()
    print(calls)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
