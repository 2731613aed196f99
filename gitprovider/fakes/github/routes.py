"""GitHub's endpoints: their handlers, and where GitHub documents them below https://docs.github.com/rest ."""

from __future__ import annotations

import re

from gitprovider.fakes.github import commits, graphql, protection, pull_requests, repositories
from gitprovider.fakes.http import Route, Routes

REPO = "/repos/{owner}/{repo}"
_BRANCH = f"{REPO}/branches/{{branch/}}"
_PROTECTION = f"{_BRANCH}/protection"
_COMMIT = f"{REPO}/commits/{{name/}}"

GRAPHQL = "/graphql"
_VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE")

ROUTES = Routes(
    Route("POST", GRAPHQL, graphql.run, "../graphql"),
    Route("GET", "/user", repositories.get_own_user, "users/users#get-the-authenticated-user"),
    Route("GET", "/users/{login}", repositories.get_user, "users/users#get-a-user"),
    Route("GET", "/orgs/{org}", repositories.get_org, "orgs/orgs#get-an-organization"),
    Route(
        "GET",
        "/orgs/{login}/installation",
        repositories.get_installation,
        "apps/apps#get-an-organization-installation-for-the-authenticated-app",
    ),
    Route(
        "GET",
        "/users/{login}/installation",
        repositories.get_installation,
        "apps/apps#get-a-user-installation-for-the-authenticated-app",
    ),
    Route(
        "POST",
        "/app/installations/{number}/access_tokens",
        repositories.create_installation_token,
        "apps/apps#create-an-installation-access-token-for-an-app",
    ),
    Route(
        "POST",
        "/user/repos",
        repositories.create_own_repo,
        "repos/repos#create-a-repository-for-the-authenticated-user",
    ),
    Route("POST", "/orgs/{org}/repos", repositories.create_org_repo, "repos/repos#create-an-organization-repository"),
    Route("GET", REPO, repositories.get_repo, "repos/repos#get-a-repository"),
    Route("DELETE", REPO, repositories.delete_repo, "repos/repos#delete-a-repository"),
    Route("GET", f"{REPO}/branches", repositories.list_branches, "branches/branches#list-branches"),
    Route("GET", _PROTECTION, protection.get_protection, "branches/branch-protection#get-branch-protection"),
    Route("PUT", _PROTECTION, protection.put_protection, "branches/branch-protection#update-branch-protection"),
    Route("DELETE", _PROTECTION, protection.delete_protection, "branches/branch-protection#delete-branch-protection"),
    Route(
        "POST",
        f"{_PROTECTION}/required_signatures",
        protection.require_signatures,
        "branches/branch-protection#create-commit-signature-protection",
    ),
    Route("GET", _BRANCH, repositories.get_branch, "branches/branches#get-a-branch"),
    Route(
        "GET",
        f"{REPO}/rules/branches/{{branch/}}",
        repositories.list_branch_rules,
        "repos/rules#get-rules-for-a-branch",
    ),
    Route("GET", f"{REPO}/git/ref/{{ref/}}", commits.get_ref, "git/refs#get-a-reference"),
    Route("GET", f"{REPO}/git/refs/{{ref/}}", commits.get_ref, "git/refs#get-a-reference"),
    Route("GET", f"{REPO}/git/matching-refs/{{ref/}}", commits.list_matching_refs, "git/refs#list-matching-references"),
    Route("POST", f"{REPO}/git/refs", commits.create_ref, "git/refs#create-a-reference"),
    Route("PATCH", f"{REPO}/git/refs/{{ref/}}", commits.update_ref, "git/refs#update-a-reference"),
    Route("DELETE", f"{REPO}/git/refs/{{ref/}}", commits.delete_ref, "git/refs#delete-a-reference"),
    Route("POST", f"{REPO}/git/blobs", commits.create_blob, "git/blobs#create-a-blob"),
    Route("GET", f"{REPO}/git/blobs/{{sha}}", commits.get_blob, "git/blobs#get-a-blob"),
    Route("POST", f"{REPO}/git/trees", commits.create_tree, "git/trees#create-a-tree"),
    Route("GET", f"{REPO}/git/trees/{{name/}}", commits.get_tree, "git/trees#get-a-tree"),
    Route("POST", f"{REPO}/git/commits", commits.create_commit, "git/commits#create-a-commit"),
    Route("GET", f"{REPO}/git/commits/{{sha}}", commits.get_git_commit, "git/commits#get-a-commit-object"),
    Route("GET", _COMMIT, commits.get_commit, "commits/commits#get-a-commit"),
    Route("GET", f"{REPO}/compare/{{base/}}...{{head/}}", commits.compare, "commits/commits#compare-two-commits"),
    Route("PUT", f"{REPO}/contents/{{path/}}", commits.put_contents, "repos/contents#create-or-update-file-contents"),
    Route("GET", f"{REPO}/pulls", pull_requests.list_pulls, "pulls/pulls#list-pull-requests"),
    Route("POST", f"{REPO}/pulls", pull_requests.create_pull, "pulls/pulls#create-a-pull-request"),
    Route("GET", f"{REPO}/pulls/{{number}}", pull_requests.get_pull, "pulls/pulls#get-a-pull-request"),
    Route("PUT", f"{REPO}/pulls/{{number}}/merge", pull_requests.merge_pull, "pulls/pulls#merge-a-pull-request"),
    Route("POST", f"{REPO}/issues/{{number}}/labels", pull_requests.add_labels, "issues/labels#add-labels-to-an-issue"),
    Route(
        "POST",
        f"{REPO}/pulls/{{number}}/requested_reviewers",
        pull_requests.request_reviewers,
        "pulls/review-requests#request-reviewers-for-a-pull-request",
    ),
)

# What GitHub has behind a branch or a commit, whose own names may have slashes.
_BEHIND = re.compile(
    r"/repos/[^/]+/[^/]+/(?:branches/.+/(?:protection(?:/.+)?|rename)"
    r"|commits/.+/(?:branches-where-head|check-runs|check-suites|comments|pulls|status|statuses))"
)
# The first parts of GitHub's paths. GitHub has no route below any other.
_ROOT = re.compile(
    r"/(?:advisories|agents|app|app-manifests|applications|apps|assignments|classrooms|codes_of_conduct|credentials|emojis"
    r"|enterprises|events|feeds|gists|gitignore|graphql|installation|issues|licenses|markdown|marketplace_listing|meta"
    r"|networks|notifications|octocat|organizations|orgs|rate_limit|repos|repositories|scim|search|teams|user|users"
    r"|versions|zen)?(?:/|\Z)"
)
# Endpoints that GitHub has at the path of a route above. Every other method there is 404 at GitHub too.
_NOT_MODELLED = {
    ("PATCH", "/user"),
    ("GET", "/user/repos"),
    ("PATCH", "/orgs/{org}"),
    ("DELETE", "/orgs/{org}"),
    ("GET", "/orgs/{org}/repos"),
    ("PATCH", REPO),
    ("GET", f"{_PROTECTION}/required_signatures"),
    ("DELETE", f"{_PROTECTION}/required_signatures"),
    ("GET", f"{REPO}/contents/{{path/}}"),
    ("DELETE", f"{REPO}/contents/{{path/}}"),
    ("PATCH", f"{REPO}/pulls/{{number}}"),
    ("GET", f"{REPO}/pulls/{{number}}/merge"),
    ("GET", f"{REPO}/issues/{{number}}/labels"),
    ("PUT", f"{REPO}/issues/{{number}}/labels"),
    ("DELETE", f"{REPO}/issues/{{number}}/labels"),
    ("GET", f"{REPO}/pulls/{{number}}/requested_reviewers"),
    ("DELETE", f"{REPO}/pulls/{{number}}/requested_reviewers"),
}


def find(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """The route for a request and the decoded parts of its path, or None. HEAD is read as GET."""
    found = ROUTES.find("GET" if method == "HEAD" else method, path)
    if found is not None and found[0].template in (_BRANCH, _COMMIT) and _BEHIND.fullmatch(path):
        return None
    return found


def is_endpoint(method: str, path: str) -> bool:
    """Whether GitHub may have an endpoint here that the fake server does not model.

    It has none below an unknown first part. At a path that is modelled, it has no method but those listed.
    """
    if _ROOT.match(path) is None:
        return False
    verb = "GET" if method == "HEAD" else method
    here = [found[0].template for known in _VERBS if (found := find(known, path))]
    return not here or any((verb, template) in _NOT_MODELLED for template in here)
