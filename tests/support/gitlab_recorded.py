"""What becomes of GitLab's recorded responses, by the key of their endpoint; used by tests.support.recordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.response import Response
from gitprovider.errors import GitProviderError
from gitprovider.gitlab import convert, endpoints, errors

ENDPOINTS: Mapping[str, str] = {
    "get_project": f"GET {endpoints.PROJECT}",
    "create_project": f"POST {endpoints.PROJECTS}",
    "get_branch": f"GET {endpoints.BRANCH}",
    "list_branches": f"GET {endpoints.BRANCHES}",
    "create_branch": f"POST {endpoints.BRANCHES}",
    "get_commit": f"GET {endpoints.COMMIT}",
    "get_merge_base": f"GET {endpoints.MERGE_BASE}",
    "create_commit": f"POST {endpoints.COMMITS}",
    "get_mr": f"GET {endpoints.MERGE_REQUEST}",
    "list_mrs": f"GET {endpoints.MERGE_REQUESTS}",
    "create_mr": f"POST {endpoints.MERGE_REQUESTS}",
    "merge_mr": f"PUT {endpoints.MERGE}",
}


def _project(response: Response) -> Any:
    # A read without a token shows less of a project. A provider always sends its token.
    if isinstance(response.data, dict) and "visibility" not in response.data:
        return "a project as shown to nobody"
    return _repo(response)


def _repo(response: Response) -> Any:
    return convert.repo(JsonReader(response))


def _pull_request(response: Response) -> Any:
    return convert.pull_request(JsonReader(response))


CONVERTERS: Mapping[str, Callable[[Response], Any]] = {
    "get_project": _project,
    "create_project": _repo,
    "fork_project": _repo,
    "get_branch": lambda response: convert.branch(JsonReader(response)),
    "list_branches": lambda response: [convert.branch(item) for item in JsonReader.each(response)],
    "get_commit": lambda response: convert.commit(JsonReader(response)),
    "get_merge_base": lambda response: convert.commit(JsonReader(response)),
    "get_mr": _pull_request,
    "create_mr": _pull_request,
    "edit_mr": _pull_request,
    "merge_mr": _pull_request,
    "list_mrs": lambda response: [convert.pull_request(item) for item in JsonReader.each(response)],
    "list_users": lambda response: {item.str("username"): item.int("id") for item in JsonReader.each(response)},
    "list_tree": lambda response: {item.str("path"): item.str("mode") for item in JsonReader.each(response)},
}


def meaning(response: Response) -> GitProviderError:
    """What a response that is not 2xx means."""
    return errors.refusal(response)
