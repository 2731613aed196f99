"""Path templates of the endpoints that the provider uses, relative to the API's address.

https://docs.github.com/rest
"""

USER = "/user"
USER_REPOS = "/user/repos"
ORG_REPOS = "/orgs/{org}/repos"
REPO = "/repos/{repo/}"
REPO_BY_ID = "/repositories/{id}"
BRANCHES = "/repos/{repo/}/branches"
BRANCH = "/repos/{repo/}/branches/{branch}"
PROTECTION = "/repos/{repo/}/branches/{branch}/protection"
SIGNATURES = "/repos/{repo/}/branches/{branch}/protection/required_signatures"
RULES = "/repos/{repo/}/rules/branches/{branch}"
COMPARE = "/repos/{repo/}/compare/{base}...{head}"
CONTENTS = "/repos/{repo/}/contents/{path/}"
PULLS = "/repos/{repo/}/pulls"
PULL = "/repos/{repo/}/pulls/{number}"
MERGE = "/repos/{repo/}/pulls/{number}/merge"
REVIEWERS = "/repos/{repo/}/pulls/{number}/requested_reviewers"
LABELS = "/repos/{repo/}/issues/{number}/labels"

# The Git data API reads a branch at one path and updates it at another.
REF = "/repos/{repo/}/git/ref/heads/{branch/}"
REFS = "/repos/{repo/}/git/refs"
OLD_REF = "/repos/{repo/}/git/refs/heads/{branch/}"
BLOBS = "/repos/{repo/}/git/blobs"
TREES = "/repos/{repo/}/git/trees"
TREE = "/repos/{repo/}/git/trees/{tree}"
COMMITS = "/repos/{repo/}/git/commits"
COMMIT = "/repos/{repo/}/git/commits/{sha}"

# Its address on GitHub Enterprise Server is beside /api/v3, which the client knows.
GRAPHQL = "/graphql"

# Endpoints of a GitHub App.
INSTALLATION_OF_ORG = "/orgs/{owner}/installation"
INSTALLATION_OF_USER = "/users/{owner}/installation"
ACCESS_TOKENS = "/app/installations/{id}/access_tokens"
