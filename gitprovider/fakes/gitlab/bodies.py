"""The JSON bodies of GitLab's REST API, with the keys of recorded responses."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pygit2

from gitprovider.local.database import PullRecord, RepoRecord
from gitprovider.local.git import decoded

# The settings of a project that was created through the API: https://docs.gitlab.com/api/projects/#create-a-project
SETTINGS: Mapping[str, Any] = {
    "merge_method": "merge",
    "squash_option": "default_off",
    "remove_source_branch_after_merge": True,
    "only_allow_merge_if_pipeline_succeeds": False,
}

# Keys of a project that nothing here reads.
_FEATURES: Mapping[str, Any] = {
    "issues_enabled": True,
    "merge_requests_enabled": True,
    "wiki_enabled": True,
    "jobs_enabled": True,
    "snippets_enabled": True,
    "packages_enabled": True,
    "container_registry_enabled": True,
    "service_desk_enabled": True,
    "lfs_enabled": True,
    "request_access_enabled": True,
    "shared_runners_enabled": True,
    "auto_devops_enabled": False,
    "emails_disabled": None,
    "public_jobs": True,
    "can_create_merge_request_in": True,
    "printing_merge_request_link_enabled": True,
    "autoclose_referenced_issues": True,
    "resolve_outdated_diff_discussions": False,
    "only_allow_merge_if_all_discussions_are_resolved": False,
    "allow_merge_on_skipped_pipeline": None,
    "suggestion_commit_message": None,
    "shared_with_groups": [],
    "build_timeout": 3600,
    "ci_config_path": "",
    "ci_default_git_depth": 20,
    "import_status": "none",
    "import_error": None,
    "marked_for_deletion_on": None,
    **{
        f"{feature}_access_level": "enabled"
        for feature in ("issues", "repository", "merge_requests", "forking", "wiki", "builds", "snippets", "pages")
    },
}


def setting(record: RepoRecord, name: str) -> Any:
    """A project's setting, or its default."""
    return record.settings.get(name, SETTINGS[name])


def namespace_id(full_path: str) -> int:
    """A namespace's id. It follows from the path, and is the same after a restart."""
    return zlib.crc32(full_path.lower().encode()) % 90_000_000 + 1_000


def moment(value: datetime) -> str:
    """A time in the format of GitLab's database."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def user(site: str, username: str, number: int) -> dict[str, Any]:
    """A user inside other bodies."""
    return {
        "id": number,
        "username": username,
        "public_email": "",
        "name": username.title(),
        "state": "active",
        "locked": False,
        "avatar_url": None,
        "web_url": f"{site}/{username}",
    }


def current_user(site: str, username: str, number: int) -> dict[str, Any]:
    """``GET /user``."""
    return {
        **user(site, username, number),
        "created_at": "2020-01-01T00:00:00.000Z",
        "bio": "",
        "bot": False,
        "confirmed_at": "2020-01-01T00:00:00.000Z",
        "email": f"{username}@example.com",
        "commit_email": f"{username}@example.com",
        "can_create_group": True,
        "can_create_project": True,
        "projects_limit": 100000,
        "two_factor_enabled": False,
        "external": False,
    }


def namespace(site: str, full_path: str, *, kind: str) -> dict[str, Any]:
    """``GET /namespaces/:id``."""
    parent, _, path = full_path.rpartition("/")
    return {
        "id": namespace_id(full_path),
        "name": path,
        "path": path,
        "kind": kind,
        "full_path": full_path,
        "parent_id": namespace_id(parent) if parent else None,
        "avatar_url": None,
        "web_url": f"{site}/{full_path}" if kind == "user" else f"{site}/groups/{full_path}",
    }


def project(site: str, record: RepoRecord, *, kind: str, empty: bool, open_merge_requests: int) -> dict[str, Any]:
    """``GET /projects/:id``. It names the default branch even before that exists."""
    owner, _, path = record.path.rpartition("/")
    host = site.split("://", 1)[1].split("/", 1)[0].split(":", 1)[0]
    api = f"{site}/api/v4/projects/{record.id}"
    return {
        "id": record.id,
        "description": record.description,
        "name": record.settings.get("name", path),
        "name_with_namespace": f"{owner.replace('/', ' / ')} / {path}",
        "path": path,
        "path_with_namespace": record.path,
        "created_at": moment(record.created_at),
        "default_branch": record.default_branch,
        "tag_list": [],
        "topics": [],
        "ssh_url_to_repo": f"git@{host}:{record.path}.git",
        "http_url_to_repo": f"{site}/{record.path}.git",
        "web_url": f"{site}/{record.path}",
        "readme_url": None,
        "forks_count": 0,
        "avatar_url": None,
        "star_count": 0,
        "last_activity_at": moment(record.created_at),
        "visibility": str(record.visibility),
        "namespace": namespace(site, owner, kind=kind),
        "_links": {
            "self": api,
            "issues": f"{api}/issues",
            "merge_requests": f"{api}/merge_requests",
            "repo_branches": f"{api}/repository/branches",
            "labels": f"{api}/labels",
            "events": f"{api}/events",
            "members": f"{api}/members",
        },
        "archived": record.archived,
        "empty_repo": empty,
        "creator_id": 1,
        "open_issues_count": open_merge_requests,
        **_FEATURES,
        **{name: setting(record, name) for name in SETTINGS},
        "permissions": {
            "project_access": None,
            "group_access": {"access_level": 40, "notification_level": 3} if kind == "group" else None,
        },
    }


def _when(signature: Any) -> str:
    zone = timezone(timedelta(minutes=signature.offset))
    return datetime.fromtimestamp(signature.time, zone).isoformat(timespec="milliseconds")


def commit(site: str, record: RepoRecord, found: pygit2.Commit) -> dict[str, Any]:
    """A commit in lists and inside a branch."""
    sha, message = str(found.id), decoded(found.raw_message, found)
    return {
        "id": sha,
        "short_id": sha[:8],
        "created_at": _when(found.committer),
        "parent_ids": [str(parent) for parent in found.parent_ids],
        "title": message.split("\n", 1)[0],
        "message": message,
        "author_name": decoded(found.author.raw_name, found),
        "author_email": decoded(found.author.raw_email, found),
        "authored_date": _when(found.author),
        "committer_name": decoded(found.committer.raw_name, found),
        "committer_email": decoded(found.committer.raw_email, found),
        "committed_date": _when(found.committer),
        "trailers": {},
        "extended_trailers": {},
        "web_url": f"{site}/{record.path}/-/commit/{sha}",
    }


def commit_detail(
    site: str, record: RepoRecord, found: pygit2.Commit, pipeline: Mapping[str, Any] | None
) -> dict[str, Any]:
    """``GET /projects/:id/repository/commits/:sha``, and the response of the commits API."""
    tree = found.tree
    diff = found.parents[0].tree.diff_to_tree(tree) if found.parents else tree.diff_to_tree(swap=True)
    return {
        **commit(site, record, found),
        "stats": {
            "additions": diff.stats.insertions,
            "deletions": diff.stats.deletions,
            "total": diff.stats.insertions + diff.stats.deletions,
        },
        "status": pipeline["status"] if pipeline is not None else None,
        "project_id": record.id,
        "last_pipeline": pipeline,
    }


def branch(
    site: str, record: RepoRecord, name: str, found: pygit2.Commit, *, protected: bool, can_push: bool
) -> dict[str, Any]:
    """``GET /projects/:id/repository/branches/:branch``."""
    return {
        "name": name,
        "commit": commit(site, record, found),
        "merged": False,
        "protected": protected,
        "developers_can_push": False,
        "developers_can_merge": False,
        "can_push": can_push,
        "default": name == record.default_branch,
        "web_url": f"{site}/{record.path}/-/tree/{name}",
    }


def merge_request(
    site: str,
    record: RepoRecord,
    pull: PullRecord,
    *,
    title: str,
    draft: bool,
    state: str,
    status: str,
    author: Mapping[str, Any],
    ended_by: Mapping[str, Any],
    reviewers: list[dict[str, Any]],
    squash_on_merge: bool,
    pipeline: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """``GET /projects/:id/merge_requests/:iid``. ``status`` is the detailed status."""
    merged = state == "merged"
    kept = pull.settings
    created = moment(pull.created_at)
    ended = kept.get("ended_at", created)
    waiting = status in ("checking", "preparing", "unchecked")
    conflict = status in ("conflict", "need_rebase")
    return {
        "id": record.id * 100_000 + pull.number,
        "iid": pull.number,
        "project_id": record.id,
        "title": title,
        "description": pull.description,
        "state": state,
        "created_at": created,
        "updated_at": kept.get("updated_at", created),
        "merged_by": ended_by if merged else None,
        "merge_user": ended_by if merged else None,
        "merged_at": ended if merged else None,
        "closed_by": ended_by if state == "closed" else None,
        "closed_at": ended if state == "closed" else None,
        "target_branch": pull.target_branch,
        "source_branch": pull.source_branch,
        "user_notes_count": 0,
        "upvotes": 0,
        "downvotes": 0,
        "author": author,
        "assignees": [],
        "assignee": None,
        "reviewers": reviewers,
        "source_project_id": record.id,
        "target_project_id": record.id,
        "labels": list(pull.labels),
        "draft": draft,
        "imported": False,
        "imported_from": "none",
        "work_in_progress": draft,
        "milestone": None,
        "merge_when_pipeline_succeeds": bool(kept.get("auto_merge")),
        "merge_status": "checking" if waiting else "cannot_be_merged" if conflict else "can_be_merged",
        "detailed_merge_status": status,
        "merge_after": None,
        "sha": pull.head_sha,
        "merge_commit_sha": _merge_commit(pull) if merged else None,
        "squash_commit_sha": kept.get("squash_commit_sha") if merged else None,
        "discussion_locked": None,
        "should_remove_source_branch": kept.get("should_remove_source_branch"),
        "force_remove_source_branch": kept.get("force_remove_source_branch"),
        "prepared_at": created,
        "reference": f"!{pull.number}",
        "references": {
            "short": f"!{pull.number}",
            "relative": f"!{pull.number}",
            "full": f"{record.path}!{pull.number}",
        },
        "web_url": f"{site}/{record.path}/-/merge_requests/{pull.number}",
        "time_stats": {
            "time_estimate": 0,
            "total_time_spent": 0,
            "human_time_estimate": None,
            "human_total_time_spent": None,
        },
        "squash": bool(kept.get("squash")),
        "squash_on_merge": squash_on_merge,
        "task_completion_status": {"count": 0, "completed_count": 0},
        "has_conflicts": status == "conflict",
        "blocking_discussions_resolved": status != "discussions_not_resolved",
        "subscribed": True,
        "changes_count": "1",
        "latest_build_started_at": None,
        "latest_build_finished_at": None,
        "first_deployed_to_production_at": None,
        "pipeline": pipeline,
        "head_pipeline": pipeline,
        "diff_refs": {"base_sha": pull.base_sha, "head_sha": pull.head_sha, "start_sha": pull.base_sha},
        "merge_error": kept.get("merge_error"),
        "user": {"can_merge": True},
    }


def _merge_commit(pull: PullRecord) -> str | None:
    # A fast-forward makes no merge commit.
    if pull.settings.get("fast_forward"):
        return None
    above: str | None = pull.settings.get("merge_commit_sha")
    return above or pull.merge_commit_sha
