"""GitLab's JSON as values, and what GitLab makes of a title and a description.

A field that is missing or of another type is a BodyError, never a guess.
"""

from __future__ import annotations

import re

from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.response import BodyError, Response
from gitprovider.gitlab.errors import GraphQLError
from gitprovider.models import Branch, Commit, PullRequest, PullRequestState, Repo

# GitLab's name for the branch of a first commit since 14.0. An older server returns null for an empty project.
UNBORN_BRANCH = "main"

# The titles that make a merge request a draft: https://docs.gitlab.com/user/project/merge_requests/drafts/
_DRAFT = re.compile(r"\s{0,255}(?:\[draft\]|\(draft\)|draft:)\s{0,255}", re.IGNORECASE)
DRAFT_PREFIX = "Draft: "

# The quick actions for merge requests and for every issuable: https://docs.gitlab.com/user/project/quick_actions/
_QUICK_ACTIONS = (
    "add_child add_contacts add_email add_parent approve assign assign_reviewer award blocked_by blocks board_move "
    "cc child_epic clear_health_status clear_weight clone close confidential convert_to_ticket copy_metadata "
    "create_merge_request done draft due duplicate epic estimate estimate_time health_status invite_email iteration "
    "label labels link lock merge milestone move page parent_epic placeholder promote promote_to promote_to_incident "
    "publish q react ready reassign reassign_reviewer rebase relabel relate remove_child remove_child_epic "
    "remove_contacts remove_due_date remove_email remove_estimate remove_iteration remove_label remove_milestone "
    "remove_parent remove_parent_epic remove_reviewer remove_time_spent remove_time_estimate remove_zoom reopen "
    "request_changes request_review reviewer set_parent severity ship shrug spend spend_time spent status "
    "submit_review subscribe summarize_diff tableflip target_branch timeline title todo type unapprove "
    "unassign unassign_reviewer unlabel unlink unlock unrelate unsubscribe vulnerability weight wip zoom"
)
_ACTION = re.compile(rf"/(?:{'|'.join(_QUICK_ACTIONS.split())})(?:[ \t].*)?", re.IGNORECASE)

_STATES = {
    "opened": PullRequestState.OPEN,
    "locked": PullRequestState.OPEN,  # a merge is running
    "closed": PullRequestState.CLOSED,
    "merged": PullRequestState.MERGED,
}


def repo(data: JsonReader) -> Repo:
    """A project (https://docs.gitlab.com/api/projects/)."""
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


def is_only_empty(project: JsonReader) -> bool:
    """Whether a project whose repository is not found is only empty. Old servers return 404 to the branches of such."""
    if project.bool_or_none("empty_repo") is not True or is_being_imported(project):
        return False
    return project.str_or_none("repository_access_level") != "disabled"


def is_being_imported(project: JsonReader) -> bool:
    """Whether the project's repository is on its way (https://docs.gitlab.com/api/project_import_export/)."""
    return project.str_or_none("import_status") in ("scheduled", "started")


def branch(data: JsonReader) -> Branch:
    """A branch (https://docs.gitlab.com/api/branches/)."""
    return data.build(
        Branch, name=data.str("name"), sha=data.object("commit").str("id"), protected=data.bool_or_none("protected")
    )


def commit(data: JsonReader, branch: str = "") -> Commit:
    """A commit (https://docs.gitlab.com/api/commits/)."""
    parents = data.strs("parent_ids")
    return data.build(
        Commit,
        sha=data.str("id"),
        parent=parents[0] if parents else None,
        branch=branch,
        message=data.str_or_none("message") or "",
        web_url=data.str_or_none("web_url"),
    )


def pull_request(data: JsonReader) -> PullRequest:
    """A merge request (https://docs.gitlab.com/api/merge_requests/). The title is without the prefix of a draft."""
    title = data.str("title")
    draft = is_draft(data)
    state = _STATES.get(data.str("state"))
    if state is None:
        raise BodyError(f"the state {data.str('state')!r} is not one that GitLab documents", data.response)
    return data.build(
        PullRequest,
        number=data.int("iid"),
        state=state,
        title=_DRAFT.sub("", title, count=1) if draft and makes_draft(title) else title,
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
    """Whether a merge request is a draft."""
    return data.bool_or_none("draft") or data.bool_or_none("work_in_progress") or False  # the latter before 14.0


def merged_sha(data: JsonReader) -> str | None:
    """The commit that a merge made: the merge commit, else the squash commit, else (fast-forward) the head."""
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
    kind = (extensions.str_or_none("code") if extensions else None) or error.str_or_none("type") or ""
    return kind.upper()


def makes_draft(title: str) -> bool:
    """Whether GitLab makes a draft of a merge request with this title."""
    return _DRAFT.match(title) is not None


def first_quick_action(text: str) -> str | None:
    """The first line of ``text`` that GitLab would execute instead of keeping it, or None.

    As in GitLab's own extractor it stands at the start of a line, in any case, outside fenced code.
    """
    fenced = False
    for line in re.split(r"\r\n|\n|\r", text):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and _ACTION.fullmatch(line.strip()):
            return line.strip()
    # An open fence hides nothing: GitLab looks for whole blocks.
    return first_quick_action(re.split(r"(?m)^```.*$", text)[-1]) if fenced else None
