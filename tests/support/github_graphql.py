"""A GitHub of a test that has GraphQL, and what it says when it refuses."""

from __future__ import annotations

import json
from typing import Any


def with_graphql(hub: Any, *, mutation: bool = True) -> Any:
    """The provider of a hub, with ``commit_api="auto"``. ``mutation=False`` is a server from before the mutation."""
    hub.fake.graphql = "full" if mutation else "no-commits"
    return hub.connect(commit_api="auto")


def refused(kind: str, message: str) -> bytes:
    """The body of a refused mutation, as GitHub sends it."""
    error = {"type": kind, "path": ["createCommitOnBranch"], "message": message}
    return json.dumps({"data": {"createCommitOnBranch": None}, "errors": [error]}).encode()
