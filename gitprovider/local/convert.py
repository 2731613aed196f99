"""The forge's records as values of the contract."""

from __future__ import annotations

from gitprovider.local.database import PullRecord, RepoRecord
from gitprovider.local.git import CommitRecord
from gitprovider.models import Commit, PullRequest, Repo


def repo(record: RepoRecord) -> Repo:
    """A repository. People and Git both find it at its directory."""
    return Repo(
        provider="local",
        path=record.path,
        id=str(record.id),
        default_branch=record.default_branch,
        visibility=record.visibility,
        description=record.description,
        archived=record.archived,
        web_url=record.git_dir.as_uri(),
        clone_url=str(record.git_dir),
        created_at=record.created_at,
    )


def commit(record: CommitRecord, branch: str = "") -> Commit:
    """A commit, on ``branch`` where one is given."""
    return Commit(
        sha=record.sha,
        parent=record.parents[0] if record.parents else None,
        branch=branch,
        message=record.message,
    )


def pull_request(record: PullRecord) -> PullRequest:
    """A pull request, without what the contract does not model."""
    return PullRequest(
        number=record.number,
        state=record.state,
        title=record.title,
        description=record.description,
        source_branch=record.source_branch,
        target_branch=record.target_branch,
        head_sha=record.head_sha,
        draft=record.draft,
        created_at=record.created_at,
        merge_commit_sha=record.merge_commit_sha,
    )
