"""The ensure function of each mutation, as tests call it under a key."""

from __future__ import annotations

from typing import Any

from gitprovider import (
    BranchProtection,
    PutFile,
    ensure_branch,
    ensure_files,
    ensure_merged,
    ensure_protection,
    ensure_pull_request,
    ensure_repo,
)

REPO = "acme/widgets"
ENSURE: dict[str, tuple[Any, dict[str, Any]]] = {
    "create_repo": (ensure_repo, {"repo": "acme/new"}),
    "create_branch": (ensure_branch, {"repo": REPO, "name": "topic", "source": "main"}),
    "protect_branch": (ensure_protection, {"repo": REPO, "branch": "main", "rules": BranchProtection()}),
    "commit_files": (
        ensure_files,
        {"repo": REPO, "branch": "later", "changes": [PutFile(path="b.txt", content="b\n")], "message": "Add b"},
    ),
    "open_pull_request": (
        ensure_pull_request,
        {"repo": REPO, "source_branch": "later", "target_branch": "main", "title": "Later"},
    ),
    "merge_pull_request": (ensure_merged, {"repo": REPO, "number": 1}),
}


def ensure(provider: Any, name: str, **settings: Any) -> Any:
    """Call the ensure function of a mutation on the project of ``given_project``, with more or other arguments."""
    function, arguments = ENSURE[name]
    return function(provider, **{**arguments, **settings})
