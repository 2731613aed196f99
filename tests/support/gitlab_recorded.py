"""How recorded exchanges with GitLab are read: see ``tests/support/recordings.py``."""

from __future__ import annotations

from typing import Any

from gitprovider._remote.response import Response
from gitprovider.gitlab import GitLabProvider, convert, endpoints, protection
from gitprovider.retry import RetryOptions
from tests.support.recordings import Converters, each, one

URL = "https://gitlab.com"
PREFIX = "/api/v4"


def provider() -> GitLabProvider:
    """A provider of the host that was recorded."""
    return GitLabProvider(URL, private_token="token", retry=RetryOptions(max_attempts=1))


_REPO = one(convert.repo)
_PULL = one(convert.pull_request)
_RULE = one(protection.rule)


def _project(response: Response) -> Any:
    # A read without a token shows less of a project. A provider always sends its token.
    if isinstance(response.data, dict) and "visibility" not in response.data:
        return "a project as shown to nobody"
    return _REPO(response)


CONVERTERS: Converters = {
    f"POST {endpoints.PROJECTS}": _REPO,
    f"GET {endpoints.PROJECT}": _project,
    f"GET {endpoints.BRANCHES}": each(convert.branch),
    f"POST {endpoints.BRANCHES}": one(convert.branch),
    f"GET {endpoints.BRANCH}": one(convert.branch),
    f"DELETE {endpoints.BRANCH}": lambda response: response.status == 204,
    f"POST {endpoints.COMMITS}": one(convert.commit),
    f"GET {endpoints.COMMIT}": one(convert.commit),
    f"GET {endpoints.COMPARE}": one(lambda fields: len(fields.objects("commits"))),
    f"GET {endpoints.TREE}": each(lambda item: (item.str("path"), item.str("id"), item.str("mode"), item.str("type"))),
    f"GET {endpoints.RULES}": each(protection.rule),
    f"POST {endpoints.RULES}": _RULE,
    f"PATCH {endpoints.RULE}": _RULE,
    f"DELETE {endpoints.RULE}": lambda response: response.status == 204,
    f"GET {endpoints.MERGE_REQUESTS}": each(convert.pull_request),
    f"POST {endpoints.MERGE_REQUESTS}": _PULL,
    f"GET {endpoints.MERGE_REQUEST}": _PULL,
    f"PUT {endpoints.MERGE}": _PULL,
    f"GET {endpoints.NAMESPACE}": one(lambda fields: (fields.str("full_path"), fields.int("id"))),
    f"GET {endpoints.USERS}": each(lambda user: (user.str("username"), user.int("id"))),
    f"POST {endpoints.GRAPHQL}": convert.graphql,
    # The provider does not send these. Their bodies are those of endpoints above.
    f"POST {endpoints.PROJECT}/fork": _REPO,
    f"PUT {endpoints.MERGE_REQUEST}": _PULL,
}
