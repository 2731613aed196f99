"""Forks while the forge is in use. Usage: forked.py ROOT [nested].

Without ``nested`` another thread is in the middle of a write when this one forks; with it the fork is made inside of
this thread's own write. The child writes too, or reads.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

from gitprovider import PutFile
from gitprovider.local import Forge
from gitprovider.local import database as records

REPO = "acme/widgets"


def report(**fact: Any) -> None:
    print(json.dumps(fact), flush=True)


def child_of(work: Any) -> int:
    """The exit status of a forked child that does ``work``."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def across_threads(forge: Forge) -> None:
    writing, go_on = threading.Event(), threading.Event()

    def pause(base: str | None, sha: str) -> None:
        writing.set()
        go_on.wait(10)

    def write(name: str, **known: Any) -> None:
        forge.commit_changes(REPO, "main", [PutFile(path=name, content="x")], message=name, **known)

    thread = threading.Thread(target=write, args=("thread",), kwargs={"on_commit": pause})
    thread.start()
    writing.wait(10)
    # The fork below waits for the write; the write goes on only once the fork has been asked for.
    os.register_at_fork(before=go_on.set)
    report(child=child_of(lambda: write("child")))
    thread.join()
    report(thread="done")


def nested(forge: Forge) -> None:
    def fork(base: str | None, sha: str) -> None:
        report(child=child_of(lambda: forge.head(REPO, "main")))

    forge.commit_changes(REPO, "main", [PutFile(path="nested", content="x")], message="x", on_commit=fork)


def main() -> None:
    records.LOCK_WAIT_SECONDS = 3.0
    forge = Forge(sys.argv[1])
    (nested if sys.argv[2:] else across_threads)(forge)
    report(files=sorted(forge.read_tree(REPO, forge.head(REPO, "main"))))


if __name__ == "__main__":
    main()
