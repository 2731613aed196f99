"""How recorded exchanges with GitHub are read: see ``tests/support/recordings.py``."""

from __future__ import annotations

from gitprovider._remote.json_reader import JsonReader
from gitprovider.github import GitHubProvider, convert, endpoints, graphql, protection
from gitprovider.models import PullRequest
from gitprovider.retry import RetryOptions
from tests.support.recordings import Converters, each, one

URL = "https://api.github.com"
PREFIX = ""


def provider() -> GitHubProvider:
    """A provider of the host that was recorded."""
    return GitHubProvider("token", base_url=URL, retry=RetryOptions(max_attempts=1))


def _pull(fields: JsonReader) -> PullRequest:
    convert.in_one_repo(fields)
    return convert.pull_request(fields)


_REPO = one(convert.repo)
_PULL = one(_pull)
_SHA = one(convert.sha)
_RULE = one(protection.demands)

CONVERTERS: Converters = {
    f"GET {endpoints.USER}": one(lambda fields: fields.str("login")),
    f"POST {endpoints.USER_REPOS}": _REPO,
    f"POST {endpoints.ORG_REPOS}": _REPO,
    f"GET {endpoints.REPO}": _REPO,
    f"GET {endpoints.REPO_BY_ID}": _REPO,
    f"GET {endpoints.BRANCHES}": each(convert.branch),
    f"GET {endpoints.BRANCH}": one(convert.head),
    f"GET {endpoints.PROTECTION}": _RULE,
    f"PUT {endpoints.PROTECTION}": _RULE,
    f"POST {endpoints.SIGNATURES}": one(lambda fields: fields.bool("enabled")),
    f"GET {endpoints.RULES}": lambda response: protection.from_rulesets(JsonReader.each(response)),
    f"GET {endpoints.COMPARE}": one(lambda fields: fields.str("status")),
    f"PUT {endpoints.CONTENTS}": one(
        lambda fields: (
            convert.commit(fields.object("commit"), "main"),
            convert.sha(fields.object("commit").object("tree")),
        )
    ),
    f"POST {endpoints.GRAPHQL}": graphql.refusal,
    f"GET {endpoints.PULLS}": each(convert.pull_request),
    f"POST {endpoints.PULLS}": _PULL,
    f"GET {endpoints.PULL}": _PULL,
    f"PUT {endpoints.MERGE}": one(lambda fields: (fields.bool("merged"), convert.merge_result(fields))),
    f"POST {endpoints.REVIEWERS}": one(
        lambda fields: [user.str("login") for user in fields.objects("requested_reviewers")]
    ),
    f"POST {endpoints.LABELS}": each(lambda label: label.str("name")),
    f"GET {endpoints.REF}": one(convert.ref_sha),
    f"POST {endpoints.REFS}": one(convert.new_branch),
    f"PATCH {endpoints.OLD_REF}": one(convert.ref_sha),
    f"DELETE {endpoints.OLD_REF}": lambda response: response.status == 204,
    f"POST {endpoints.BLOBS}": _SHA,
    f"POST {endpoints.TREES}": _SHA,
    f"GET {endpoints.TREE}": one(convert.tree),
    f"POST {endpoints.COMMITS}": one(lambda fields: convert.commit(fields, "main")),
    f"GET {endpoints.COMMIT}": one(lambda fields: (convert.commit(fields), convert.sha(fields.object("tree")))),
    f"GET {endpoints.INSTALLATION_OF_ORG}": one(lambda fields: fields.int("id")),
    f"GET {endpoints.INSTALLATION_OF_USER}": one(lambda fields: fields.int("id")),
    f"POST {endpoints.ACCESS_TOKENS}": one(lambda fields: len(fields.str("token")) > 0),
    # The provider does not send these. Their bodies are those of endpoints above.
    f"PATCH {endpoints.REPO}": _REPO,
    f"POST {endpoints.REPO}/generate": _REPO,
    f"PATCH {endpoints.PULL}": _PULL,
}
