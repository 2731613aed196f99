"""What becomes of recorded answers of GitLab, by the key of their endpoint; used by tests.recordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gitprovider._remote.operation import Answer
from gitprovider._remote.reader import Fields
from gitprovider.errors import GitProviderError
from gitprovider.gitlab import convert, endpoints
from gitprovider.gitlab import errors as translate

ENDPOINTS: Mapping[str, str] = {
    "get_project": f"GET {endpoints.PROJECT}",
    "create_project": f"POST {endpoints.PROJECTS}",
    "get_branch": f"GET {endpoints.BRANCH}",
    "list_branches": f"GET {endpoints.BRANCHES}",
    "create_branch": f"POST {endpoints.BRANCHES}",
    "get_commit": f"GET {endpoints.COMMIT}",
    "create_commit": f"POST {endpoints.COMMITS}",
    "get_mr": f"GET {endpoints.MERGE_REQUEST}",
    "list_mrs": f"GET {endpoints.MERGE_REQUESTS}",
    "create_mr": f"POST {endpoints.MERGE_REQUESTS}",
    "merge_mr": f"PUT {endpoints.MERGE}",
}


def _project(answer: Answer) -> Any:
    # Nobody's read shows less of a project. A provider always sends its token.
    if isinstance(answer.data, dict) and "visibility" not in answer.data:
        return "a project as shown to nobody"
    return convert.repo(answer)


def _pull_request(answer: Answer) -> Any:
    return convert.pull_request(Fields(answer))


CONVERTERS: Mapping[str, Callable[[Answer], Any]] = {
    "get_project": _project,
    "create_project": convert.repo,
    "fork_project": convert.repo,
    "get_branch": lambda answer: convert.branch(Fields(answer)),
    "list_branches": lambda answer: [convert.branch(item) for item in Fields.each(answer)],
    "get_commit": convert.commit,
    "get_mr": _pull_request,
    "create_mr": _pull_request,
    "edit_mr": _pull_request,
    "merge_mr": _pull_request,
    "list_mrs": lambda answer: [convert.pull_request(item) for item in Fields.each(answer)],
    "list_users": lambda answer: {item.text("username"): item.number("id") for item in Fields.each(answer)},
    "list_tree": lambda answer: {item.text("path"): item.text("mode") for item in Fields.each(answer)},
}


def meaning(answer: Answer, endpoint: str) -> GitProviderError:
    """What an answer of another status than 2xx means there."""
    return translate.refusal(answer, endpoint)
