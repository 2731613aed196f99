"""One of several writers: commits, branches and pull requests, each reported once it is acknowledged.

Usage: writer.py ROOT NAME ROUNDS FIRST, the sha that the branch ``pinned`` begins at. Every round also contends with
the other writers for what only one can have.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from gitprovider import GitProviderError, MergeMethod, PutFile
from gitprovider.local import LocalProvider

REPO = "acme/widgets"


def report(**fact: Any) -> None:
    print(json.dumps(fact), flush=True)


def attempt(what: str, call: Callable[..., Any], *args: Any, given: dict[str, Any], **fact: Any) -> Any:
    try:
        value = call(*args, **given)
    except GitProviderError as error:
        report(what=what, refused=type(error).__name__, outcome=error.outcome, message=str(error), **fact)
        return None
    report(what=what, sha=getattr(value, "sha", None), number=getattr(value, "number", None), **fact)
    return value


def play(provider: LocalProvider, first: str, own: str, turn: int) -> None:
    """One round: ``own`` is a name that no other writer and no other round has."""
    commit, branch = provider.commit_files, provider.create_branch
    feature, text = f"feature/{own}", {"message": own}
    file = PutFile(path=f"files/{own}", content=own)
    attempt("commit", commit, REPO, "main", [file], given=text, path=file.path)
    attempt("branch", branch, REPO, feature, given={"source": first}, name=feature)
    attempt("same branch", branch, REPO, f"shared-{turn}", given={"source": first})
    attempt("same repository", provider.create_repo, f"acme/shared-{turn}", given={"auto_init": True})
    attempt("same head", commit, REPO, "pinned", [file], given={**text, "expected_head": first})
    pulled = PutFile(path=f"pulled/{own}", content=own)
    attempt("change", commit, REPO, feature, [pulled], given=text)
    between = {"source_branch": feature, "target_branch": "main", "title": own}
    opened = attempt("open", provider.open_pull_request, REPO, given=between)
    if opened is not None:
        attempt("merge", provider.merge_pull_request, REPO, opened.number, given={}, path=pulled.path)


def main(root: str, name: str, rounds: int, first: str) -> None:
    provider = LocalProvider(root)
    for turn in range(rounds):
        play(provider, first, f"{name}-{turn}", turn)
    attempt("same merge", provider.forge.merge, REPO, 1, given={"method": MergeMethod.MERGE})
    attempt("merged", provider.merge_pull_request, REPO, 1, given={})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
