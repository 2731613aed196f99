"""GitHub's published schema, as githubkit has it: every request and every response of an exchange is held against it.

The models forbid what they do not name. Where GitHub itself differs from its schema, the difference stands in
DISAGREEMENTS with its reason, and nowhere else.
"""

from __future__ import annotations

import json
import re
from functools import cache, reduce
from operator import or_
from typing import Any, NamedTuple

from githubkit.compat import GitHubModel
from pydantic import BaseModel, TypeAdapter, ValidationError

from gitprovider.fakes.http import FakeServer, Request, Response

# Before any model is made: a subclass takes its parent's configuration when it is.
GitHubModel.model_config["extra"] = "forbid"

_R = "/repos/{owner}/{repo}"


class Schema(NamedTuple):
    """The models of an endpoint, by name; ``[Name]`` is an array of them, ``A | B`` either."""

    request: str
    success: str


SCHEMAS: dict[tuple[str, str], Schema] = {
    ("GET", "/user"): Schema("", "PrivateUser"),
    ("GET", "/users/{login}"): Schema("", "PublicUser"),
    ("GET", "/orgs/{org}"): Schema("", "OrganizationFull"),
    ("GET", "/orgs/{login}/installation"): Schema("", "Installation"),
    ("GET", "/users/{login}/installation"): Schema("", "Installation"),
    ("POST", "/app/installations/{number}/access_tokens"): Schema(
        "AppInstallationsInstallationIdAccessTokensPostBody", "InstallationToken"
    ),
    ("POST", "/user/repos"): Schema("UserReposPostBody", "FullRepository"),
    ("POST", "/orgs/{org}/repos"): Schema("OrgsOrgReposPostBody", "FullRepository"),
    ("GET", _R): Schema("", "FullRepository"),
    ("DELETE", _R): Schema("", ""),
    ("GET", f"{_R}/branches"): Schema("", "[ShortBranch]"),
    ("GET", f"{_R}/branches/{{branch/}}"): Schema("", "BranchWithProtection"),
    ("GET", f"{_R}/branches/{{branch/}}/protection"): Schema("", "BranchProtection"),
    ("PUT", f"{_R}/branches/{{branch/}}/protection"): Schema(
        "ReposOwnerRepoBranchesBranchProtectionPutBody", "ProtectedBranch"
    ),
    ("DELETE", f"{_R}/branches/{{branch/}}/protection"): Schema("", ""),
    ("POST", f"{_R}/branches/{{branch/}}/protection/required_signatures"): Schema("", "ProtectedBranchAdminEnforced"),
    ("GET", f"{_R}/rules/branches/{{branch/}}"): Schema(
        "",
        "[RepositoryRuleDetailedOneof0 | RepositoryRuleDetailedOneof2 | RepositoryRuleDetailedOneof6"
        " | RepositoryRuleDetailedOneof9]",
    ),
    ("GET", f"{_R}/git/ref/{{ref/}}"): Schema("", "GitRef"),
    ("GET", f"{_R}/git/refs/{{ref/}}"): Schema("", "GitRef"),
    ("GET", f"{_R}/git/matching-refs/{{ref/}}"): Schema("", "[GitRef]"),
    ("POST", f"{_R}/git/refs"): Schema("ReposOwnerRepoGitRefsPostBody", "GitRef"),
    ("PATCH", f"{_R}/git/refs/{{ref/}}"): Schema("ReposOwnerRepoGitRefsRefPatchBody", "GitRef"),
    ("DELETE", f"{_R}/git/refs/{{ref/}}"): Schema("", ""),
    ("POST", f"{_R}/git/blobs"): Schema("ReposOwnerRepoGitBlobsPostBody", "ShortBlob"),
    ("GET", f"{_R}/git/blobs/{{sha}}"): Schema("", "Blob"),
    ("POST", f"{_R}/git/trees"): Schema("ReposOwnerRepoGitTreesPostBody", "GitTree"),
    ("GET", f"{_R}/git/trees/{{name/}}"): Schema("", "GitTree"),
    ("POST", f"{_R}/git/commits"): Schema("ReposOwnerRepoGitCommitsPostBody", "GitCommit"),
    ("GET", f"{_R}/git/commits/{{sha}}"): Schema("", "GitCommit"),
    ("GET", f"{_R}/commits/{{name/}}"): Schema("", "Commit"),
    ("GET", f"{_R}/compare/{{base/}}...{{head/}}"): Schema("", "CommitComparison"),
    ("PUT", f"{_R}/contents/{{path/}}"): Schema("ReposOwnerRepoContentsPathPutBody", "FileCommit"),
    ("GET", f"{_R}/pulls"): Schema("", "[PullRequestSimple]"),
    ("POST", f"{_R}/pulls"): Schema("ReposOwnerRepoPullsPostBody", "PullRequest"),
    ("GET", f"{_R}/pulls/{{number}}"): Schema("", "PullRequest"),
    ("PUT", f"{_R}/pulls/{{number}}/merge"): Schema(
        "ReposOwnerRepoPullsPullNumberMergePutBody", "PullRequestMergeResult"
    ),
    ("POST", f"{_R}/issues/{{number}}/labels"): Schema(
        "ReposOwnerRepoIssuesIssueNumberLabelsPostBodyOneof0 | str[]", "[Label]"
    ),
    ("POST", f"{_R}/pulls/{{number}}/requested_reviewers"): Schema(
        "ReposOwnerRepoPullsPullNumberRequestedReviewersPostBodyAnyof0", "PullRequestSimple"
    ),
}


class Disagreement(NamedTuple):
    """Where GitHub differs from its schema: a pattern for ``endpoint side location: kind``, and why."""

    pattern: str
    reason: str


DISAGREEMENTS = (
    Disagreement(
        r" refusal status: extra_forbidden",
        "GitHub has put the status into every error's body since 2024; the models of 422 do not know it",
    ),
    Disagreement(
        r"^PUT .*/protection request required_status_checks\.contexts: missing",
        "contexts is deprecated; recorded requests that send checks alone get 200",
    ),
)


class SchemaHost:
    """A fake whose every exchange is held against the schema. ``problems`` is what did not fit.

    Attributes:
        covered: the endpoints that have returned success.
        unused: the disagreements that have not been met.
    """

    def __init__(self, fake: FakeServer) -> None:
        self.fake = fake
        self.problems: list[str] = []
        self.covered: set[tuple[str, str]] = set()
        self.unused = set(DISAGREEMENTS)

    def endpoint(self, request: Request) -> str:
        return self.fake.endpoint(request)

    def handle(self, request: Request) -> Response:
        response = self.fake.handle(request)
        template = self.endpoint(request).replace("/repositories/{id}", _R)
        schema = SCHEMAS.get((request.method, template))
        if response.status < 300:
            assert schema is not None, (request.method, template)
            self.covered.add((request.method, template))
            # What GitHub refuses need not fit; what it takes must.
            if request.body:
                self._compare(f"{request.method} {template} request", schema.request, request.body)
            if response.body or schema.success:
                self._compare(f"{request.method} {template} response", schema.success, response.body)
        else:
            self._compare(f"{request.method} {template} refusal", _refusal(response.body), response.body)
        return response

    def _compare(self, where: str, names: str, body: bytes) -> None:
        try:
            _adapter(names).validate_json(body, strict=True)
        except ValidationError as errors:
            for error in errors.errors(include_url=False, include_input=False):
                problem = f"{where} {'.'.join(map(str, error['loc']))}: {error['type']}"
                known = [found for found in DISAGREEMENTS if re.search(found.pattern, problem)]
                self.unused.difference_update(known)
                if not known:
                    self.problems.append(problem)


def _refusal(body: bytes) -> str:
    """The model of a refusal: 422 has one for errors that are objects, and one for errors that are sentences."""
    errors = json.loads(body).get("errors")
    if errors is None:
        return "BasicError"
    return "ValidationErrorSimple" if isinstance(errors[0], str) else "ValidationError"


@cache
def _adapter(names: str) -> TypeAdapter[Any]:
    many: Any = list
    return TypeAdapter(many[_union(names[1:-1])] if names.startswith("[") else _union(names))


def _union(names: str) -> Any:
    kinds: list[Any] = [list[str] if name == "str[]" else _model(name) for name in names.split(" | ")]
    return reduce(or_, kinds)


def _model(name: str) -> type[BaseModel]:
    # The package loads each model's module when it is asked for: all of them would take a minute.
    from githubkit_schemas.v2022_11_28 import models

    model: type[BaseModel] = getattr(models, name)
    return model
