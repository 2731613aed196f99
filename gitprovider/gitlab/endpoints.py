"""The templates of the endpoints, below ``/api/v4``.

https://docs.gitlab.com/api/api_resources/
"""

PROJECTS = "/projects"
PROJECT = "/projects/{project}"
BRANCHES = "/projects/{project}/repository/branches"
BRANCH = "/projects/{project}/repository/branches/{branch}"
COMMITS = "/projects/{project}/repository/commits"
COMMIT = "/projects/{project}/repository/commits/{sha}"
COMPARE = "/projects/{project}/repository/compare"
MERGE_BASE = "/projects/{project}/repository/merge_base"
TREE = "/projects/{project}/repository/tree"
RULES = "/projects/{project}/protected_branches"
RULE = "/projects/{project}/protected_branches/{name}"
MERGE_REQUESTS = "/projects/{project}/merge_requests"
MERGE_REQUEST = "/projects/{project}/merge_requests/{iid}"
MERGE = "/projects/{project}/merge_requests/{iid}/merge"
NAMESPACE = "/namespaces/{namespace}"
USERS = "/users"

# Not below it. The client gives python-gitlab the whole address.
GRAPHQL = "/api/graphql"
