"""GitLab's JSON as values. A field that is missing or of another type is a BodyError, never a guess."""

from __future__ import annotations

import re
from typing import Any

from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import BodyError, Response
from gitprovider.gitlab.errors import GraphQLError
from gitprovider.models import Branch, Commit, PullRequest, PullRequestState, Repo

# An empty project of an old server has null here. Since 14.0 GitLab names the branch of a first commit so.
UNBORN_BRANCH = "main"

# What makes a draft of a merge request, by its title: https://docs.gitlab.com/user/project/merge_requests/drafts/
_DRAFT = re.compile(r"\s*(?:\[draft\]|\(draft\)|draft:)\s*", re.IGNORECASE)
DRAFT_PREFIX = "Draft: "

_STATES = {
    "opened": PullRequestState.OPEN,
    "locked": PullRequestState.OPEN,  # a merge is running
    "closed": PullRequestState.CLOSED,
    "merged": PullRequestState.MERGED,
}


def repo(response: Response) -> Repo:
    """A project (https://docs.gitlab.com/api/projects/)."""
    data = JsonReader(response)
    return data.build(
        Repo,
        provider="gitlab",
        path=data.str("path_with_namespace"),
        id=str(data.int("id")),
        default_branch=data.str_or_none("default_branch") or UNBORN_BRANCH,
        visibility=data.str("visibility"),
        description=data.str_or_none("description") or "",
        archived=data.bool_or_none("archived") or False,
        web_url=data.str("web_url"),
        clone_url=data.str("http_url_to_repo"),
        ssh_url=data.str_or_none("ssh_url_to_repo"),
        created_at=data.time_or_none("created_at"),
    )


def branch(data: JsonReader) -> Branch:
    """A branch (https://docs.gitlab.com/api/branches/)."""
    return data.build(
        Branch, name=data.str("name"), sha=data.object("commit").str("id"), protected=data.bool_or_none("protected")
    )


def commit(response: Response, branch_name: str = "") -> Commit:
    """A commit (https://docs.gitlab.com/api/commits/)."""
    data = JsonReader(response)
    parents = data.strs("parent_ids")
    return data.build(
        Commit,
        sha=data.str("id"),
        parent=parents[0] if parents else None,
        branch=branch_name,
        message=data.str_or_none("message") or "",
        web_url=data.str_or_none("web_url"),
    )


def pull_request(data: JsonReader) -> PullRequest:
    """A merge request (https://docs.gitlab.com/api/merge_requests/), its title without the prefix of a draft."""
    title, draft = data.str("title"), is_draft(data)
    state = _STATES.get(data.str("state"))
    if state is None:
        raise BodyError(f"the state {data.str('state')!r} is not one that GitLab documents", data.response)
    return data.build(
        PullRequest,
        number=data.int("iid"),
        state=state,
        title=_DRAFT.object("", title, count=1) if draft and makes_draft(title) else title,
        description=data.str_or_none("description") or "",
        source_branch=data.str("source_branch"),
        target_branch=data.str("target_branch"),
        head_sha=data.str_or_none("sha"),
        draft=draft,
        web_url=data.str_or_none("web_url"),
        created_at=data.time_or_none("created_at"),
        merge_commit_sha=merged_sha(data) if state is PullRequestState.MERGED else None,
    )


def is_draft(data: JsonReader) -> bool:
    """Whether a merge request is a draft. Before 14.0 the field had another name."""
    return data.bool_or_none("draft") or data.bool_or_none("work_in_progress") or False


def makes_draft(title: str) -> bool:
    """Whether GitLab makes a draft of a merge request with this title."""
    return _DRAFT.match(title) is not None


def merged_sha(data: JsonReader) -> str | None:
    """The commit that a merge produced: of the merge, else of the squash, else (fast-forward) the head itself."""
    return data.str_or_none("merge_commit_sha") or data.str_or_none("squash_commit_sha") or data.str_or_none("sha")


def graphql(response: Response) -> JsonReader:
    """The ``data`` of a GraphQL response.

    Raises:
        GraphQLError: it holds errors. GitLab sends them with status 200.
    """
    body = JsonReader(response)
    if "errors" in body and (errors := body.objects("errors")):
        raise GraphQLError(response, _kind(errors[0]), errors[0].str_or_none("message") or "an error without a message")
    return body.object("data")


def _kind(error: JsonReader) -> str:
    extensions = error.object_or_none("extensions")
    kind: Any = (extensions.str_or_none("code") if extensions else None) or error.str_or_none("type") or ""
    return str(kind).upper()
