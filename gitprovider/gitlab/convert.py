"""GitLab's JSON as values. A field that is missing or of another type is a BodyError, never a guess."""

from __future__ import annotations

import re
from typing import Any

from gitprovider._remote.operation import Answer, BodyError
from gitprovider._remote.reader import Fields
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


def repo(answer: Answer) -> Repo:
    """A project (https://docs.gitlab.com/api/projects/)."""
    data = Fields(answer)
    return data.build(
        Repo,
        provider="gitlab",
        path=data.text("path_with_namespace"),
        id=str(data.number("id")),
        default_branch=data.maybe_text("default_branch") or UNBORN_BRANCH,
        visibility=data.text("visibility"),
        description=data.maybe_text("description") or "",
        archived=data.maybe_flag("archived") or False,
        web_url=data.text("web_url"),
        clone_url=data.text("http_url_to_repo"),
        ssh_url=data.maybe_text("ssh_url_to_repo"),
        created_at=data.maybe_time("created_at"),
    )


def branch(data: Fields) -> Branch:
    """A branch (https://docs.gitlab.com/api/branches/)."""
    return data.build(
        Branch, name=data.text("name"), sha=data.sub("commit").text("id"), protected=data.maybe_flag("protected")
    )


def commit(answer: Answer, branch_name: str = "") -> Commit:
    """A commit (https://docs.gitlab.com/api/commits/)."""
    data = Fields(answer)
    parents = data.texts("parent_ids")
    return data.build(
        Commit,
        sha=data.text("id"),
        parent=parents[0] if parents else None,
        branch=branch_name,
        message=data.maybe_text("message") or "",
        web_url=data.maybe_text("web_url"),
    )


def pull_request(data: Fields) -> PullRequest:
    """A merge request (https://docs.gitlab.com/api/merge_requests/), its title without the prefix of a draft."""
    title, draft = data.text("title"), is_draft(data)
    state = _STATES.get(data.text("state"))
    if state is None:
        raise BodyError(f"the state {data.text('state')!r} is not one that GitLab documents", data.answer)
    return data.build(
        PullRequest,
        number=data.number("iid"),
        state=state,
        title=_DRAFT.sub("", title, count=1) if draft and makes_draft(title) else title,
        description=data.maybe_text("description") or "",
        source_branch=data.text("source_branch"),
        target_branch=data.text("target_branch"),
        head_sha=data.maybe_text("sha"),
        draft=draft,
        web_url=data.maybe_text("web_url"),
        created_at=data.maybe_time("created_at"),
        merge_commit_sha=merged_sha(data) if state is PullRequestState.MERGED else None,
    )


def is_draft(data: Fields) -> bool:
    """Whether a merge request is a draft. Before 14.0 the field had another name."""
    return data.maybe_flag("draft") or data.maybe_flag("work_in_progress") or False


def makes_draft(title: str) -> bool:
    """Whether GitLab makes a draft of a merge request with this title."""
    return _DRAFT.match(title) is not None


def merged_sha(data: Fields) -> str | None:
    """The commit that a merge produced: of the merge, else of the squash, else (fast-forward) the head itself."""
    return data.maybe_text("merge_commit_sha") or data.maybe_text("squash_commit_sha") or data.maybe_text("sha")


def graphql(answer: Answer) -> Fields:
    """The ``data`` of a GraphQL answer.

    Raises:
        GraphQLError: it holds errors. GitLab sends them with status 200.
    """
    body = Fields(answer)
    if "errors" in body and (errors := body.items("errors")):
        raise GraphQLError(answer, _kind(errors[0]), errors[0].maybe_text("message") or "an error without a message")
    return body.sub("data")


def _kind(error: Fields) -> str:
    extensions = error.maybe_sub("extensions")
    kind: Any = (extensions.maybe_text("code") if extensions else None) or error.maybe_text("type") or ""
    return str(kind).upper()
