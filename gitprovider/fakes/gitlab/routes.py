"""GitLab's endpoints below /api/v4, and their handlers."""

from __future__ import annotations

import re

from gitprovider.fakes.gitlab import commits, files, groups, protection, pull_requests, repositories, statuses, tags
from gitprovider.fakes.http import Route, Routes

_GROUP, _PROJECT = "/groups/{group}", "/projects/{project}"
_BRANCHES = f"{_PROJECT}/repository/branches"
_COMMITS = f"{_PROJECT}/repository/commits"
_FILES = f"{_PROJECT}/repository/files"
_TAGS = f"{_PROJECT}/repository/tags"
_RULES = f"{_PROJECT}/protected_branches"
_MERGE_REQUESTS = f"{_PROJECT}/merge_requests"

# Paths that GitLab has no endpoint for: the API inside itself, a project or a name whose slashes are not encoded.
NO_ROUTE = re.compile(
    r"/api/|/projects/(?!\d+/|[^/]*%2[Ff])[^/]+/|/projects/[^/]+/protected_branches/[^/]+/"
    r"|/projects/[^/]+/repository/branches/[^/]+/(?!(?:un)?protect\Z)"
    r"|/projects/[^/]+/repository/files/[^/]+/(?!(?:raw|blame)\Z)"
)
# Endpoints that GitLab has at the path of a route below. Every other method there is 405 at GitLab too.
NOT_MODELLED = {
    ("POST", "/users"),
    ("PUT", _GROUP),
    ("DELETE", _GROUP),
    ("DELETE", f"{_MERGE_REQUESTS}/{{iid}}"),
}

ROUTES = Routes(
    Route("GET", "/version", repositories.get_version),
    Route("GET", "/metadata", repositories.get_version),
    Route("GET", "/user", repositories.get_user),
    Route("GET", "/users", repositories.list_users),
    Route("GET", "/namespaces/{namespace}", repositories.get_namespace),
    Route("GET", "/groups", groups.list_groups),
    Route("POST", "/groups", groups.create_group),
    Route("GET", _GROUP, groups.get_group),
    Route("GET", f"{_GROUP}/projects", groups.list_group_projects),
    Route("GET", f"{_GROUP}/subgroups", groups.list_subgroups),
    Route("GET", "/projects", groups.list_projects),
    Route("POST", "/projects", repositories.create_project),
    Route("GET", _PROJECT, repositories.get_project),
    Route("PUT", _PROJECT, repositories.update_project),
    Route("DELETE", _PROJECT, repositories.delete_project),
    Route("POST", f"{_PROJECT}/archive", repositories.archive_project),
    Route("POST", f"{_PROJECT}/unarchive", repositories.archive_project),
    Route("GET", _BRANCHES, repositories.list_branches),
    Route("POST", _BRANCHES, repositories.create_branch),
    Route("GET", f"{_BRANCHES}/{{branch}}", repositories.get_branch),
    Route("DELETE", f"{_BRANCHES}/{{branch}}", repositories.delete_branch),
    Route("GET", _TAGS, tags.list_tags),
    Route("POST", _TAGS, tags.create_tag),
    Route("GET", f"{_TAGS}/{{name}}", tags.get_tag),
    Route("DELETE", f"{_TAGS}/{{name}}", tags.delete_tag),
    Route("GET", _COMMITS, commits.list_commits),
    Route("POST", _COMMITS, commits.create_commit),
    Route("GET", f"{_COMMITS}/{{sha}}", commits.get_commit),
    Route("GET", f"{_COMMITS}/{{sha}}/refs", commits.list_refs),
    Route("GET", f"{_COMMITS}/{{sha}}/statuses", statuses.list_statuses),
    Route("POST", f"{_PROJECT}/statuses/{{sha}}", statuses.set_status),
    Route("GET", f"{_PROJECT}/repository/compare", commits.compare),
    Route("GET", f"{_PROJECT}/repository/merge_base", commits.get_merge_base),
    Route("GET", f"{_PROJECT}/repository/tree", files.list_tree),
    Route("GET", f"{_FILES}/{{path}}", files.get_file),
    Route("HEAD", f"{_FILES}/{{path}}", files.head_file),
    Route("GET", f"{_FILES}/{{path}}/raw", files.get_raw_file),
    Route("POST", f"{_FILES}/{{path}}", files.create_file),
    Route("PUT", f"{_FILES}/{{path}}", files.update_file),
    Route("DELETE", f"{_FILES}/{{path}}", files.delete_file),
    Route("GET", _RULES, protection.list_rules),
    Route("POST", _RULES, protection.create_rule),
    Route("GET", f"{_RULES}/{{name}}", protection.get_rule),
    Route("PATCH", f"{_RULES}/{{name}}", protection.update_rule),
    Route("DELETE", f"{_RULES}/{{name}}", protection.delete_rule),
    Route("GET", _MERGE_REQUESTS, pull_requests.list_merge_requests),
    Route("POST", _MERGE_REQUESTS, pull_requests.create_merge_request),
    Route("GET", f"{_MERGE_REQUESTS}/{{iid}}", pull_requests.get_merge_request),
    Route("PUT", f"{_MERGE_REQUESTS}/{{iid}}", pull_requests.update_merge_request),
    Route("PUT", f"{_MERGE_REQUESTS}/{{iid}}/merge", pull_requests.merge),
    Route("POST", f"{_MERGE_REQUESTS}/{{iid}}/approve", pull_requests.approve),
    Route("GET", f"{_MERGE_REQUESTS}/{{iid}}/approvals", pull_requests.get_approvals),
)
