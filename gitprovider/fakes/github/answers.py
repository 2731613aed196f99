"""How the GitHub fake answers: replies, pages, GitHub's refusals, and what a forge's error is in GitHub's words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from gitprovider.errors import (
    AlreadyExistsError,
    ConflictError,
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    NotMergeableReason,
)
from gitprovider.fakes.host import Request, Response

JSON = "application/json; charset=utf-8"
DOCS = "https://docs.github.com/rest"
MAX_PER_PAGE = 100
_REDIRECTS = f"{DOCS}/guides/best-practices-for-using-the-rest-api#follow-redirects"
_PROTECTED = "https://docs.github.com/articles/about-protected-branches"
_LIMITS = f"{DOCS}/using-the-rest-api/rate-limits-for-the-rest-api"


@dataclass(frozen=True, slots=True)
class Words:
    """A refusal as GitHub puts it; ``{names}`` are filled in.

    Attributes:
        errors: the entries of the ``errors`` key, when there is one.
        docs: the documentation_url, where it is not the endpoint's own.
    """

    status: int
    message: str
    errors: tuple[Mapping[str, str] | str, ...] = ()
    docs: str = ""


def _validation(resource: str, **known: str) -> Words:
    return Words(422, "Validation Failed", ({"resource": resource, **known},))


# Every refusal of the fake, by the fact that it follows.
REFUSALS: Mapping[str, Words] = {
    "gh-no-user-agent": Words(
        403, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header."
    ),
    "gh-bad-credentials": Words(401, "Bad credentials", docs=DOCS),
    "gh-requires-authentication": Words(401, "Requires authentication"),
    "gh-bad-jwt": Words(401, "A JSON web token could not be decoded", docs=DOCS),
    "gh-jwt-lifetime": Words(401, "'Expiration time' claim ('exp') is too far in the future", docs=DOCS),
    "gh-rate-limit": Words(403, "API rate limit exceeded for user ID {id}.", docs=_LIMITS),
    "gh-secondary-limit": Words(
        403,
        "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. Please retry"
        " your request again later.",
        docs=f"{_LIMITS}#about-secondary-rate-limits",
    ),
    "gh-not-found": Words(404, "Not Found"),
    "gh-route-missing": Words(404, "Not Found", docs=DOCS),
    "gh-repo-missing": Words(404, "Not Found"),
    "gh-repo-lag": Words(404, "Not Found"),
    "gh-moved-read": Words(301, "Moved Permanently", docs=_REDIRECTS),
    "gh-moved-write": Words(307, "Moved Permanently", docs=_REDIRECTS),
    "gh-archived": Words(403, "Repository was archived so is read-only."),
    "gh-admin-rights": Words(403, "Must have admin rights to Repository."),
    "gh-app-permission": Words(403, "Resource not accessible by integration"),
    "gh-not-json": Words(400, "Problems parsing JSON"),
    "gh-not-object": Words(400, "Body should be a JSON object"),
    "gh-not-supplied": Words(422, "Invalid request.\n\n{names} {verb} supplied."),
    "gh-wrong-type": Words(422, "Invalid request.\n\nFor 'properties/{name}', {value} is not {kind}."),
    "gh-name-exists": Words(
        422,
        "Repository creation failed.",
        (
            {
                "resource": "Repository",
                "code": "custom",
                "field": "name",
                "message": "name already exists on this account",
            },
        ),
    ),
    "gh-repo-name": Words(
        422,
        "Repository creation failed.",
        ({"resource": "Repository", "code": "custom", "field": "name", "message": "name is invalid"},),
    ),
    "gh-no-such-org": Words(404, "Not Found"),
    "gh-visibility-internal": Words(
        422,
        "Validation Failed",
        (
            {
                "resource": "Repository",
                "code": "custom",
                "field": "visibility",
                "message": "Only organizations associated with an enterprise can set visibility to internal",
            },
        ),
    ),
    "gh-empty-repo": Words(409, "Git Repository is empty."),
    "gh-branch-not-found": Words(404, "Branch not found"),
    "gh-ref-not-found": Words(404, "Not Found"),
    "gh-ref-lag": Words(404, "Not Found"),
    "gh-ref-exists": Words(422, "Reference already exists"),
    "gh-ref-update-failed": Words(422, "Reference update failed"),
    "gh-ref-name": Words(422, "{ref} is not a valid ref name."),
    "gh-object-missing": Words(422, "Object does not exist"),
    "gh-ref-missing": Words(422, "Reference does not exist"),
    "gh-not-fast-forward": Words(422, "Update is not a fast forward"),
    "gh-protected-commit": Words(422, "Changes must be made through a pull request.", docs=_PROTECTED),
    "gh-protected-check": Words(422, 'Required status check "{check}" is expected.', docs=_PROTECTED),
    "gh-protected-force": Words(422, "Cannot force-push to a protected branch", docs=_PROTECTED),
    "gh-protected-deletion": Words(422, "Cannot delete a protected branch", docs=_PROTECTED),
    "gh-protected-linear": Words(422, "This branch must not contain merge commits.", docs=_PROTECTED),
    "gh-ref-default": Words(422, "Cannot delete the default branch"),
    "gh-protected-contents": Words(
        409, "Could not create file: Changes must be made through a pull request.", docs=_PROTECTED
    ),
    "gh-rule-creation": Words(422, "Repository rule violations found\n\n{reason}\n\n"),
    "gh-rule-violation": Words(422, "Repository rule violations found\n\n{reason}\n\n"),
    "gh-rule-violation-contents": Words(409, "Repository rule violations found\n\n{reason}\n\n"),
    "gh-blob-missing": Words(404, "Not Found"),
    "gh-blob-encoding": Words(422, "Invalid blob content"),
    "gh-tree-missing": Words(404, "Not Found"),
    "gh-tree-base": Words(422, "base_tree is not a valid tree oid"),
    "gh-tree-mode": Words(422, "Must supply a valid tree.mode"),
    "gh-tree-path": Words(422, "tree.path contains a malformed path component"),
    "gh-tree-content": Words(422, "Must supply either tree.sha or tree.content"),
    "gh-tree-blob": Words(422, "tree.sha {sha} is not a valid {kind}"),
    "gh-tree-too-big": Words(
        422,
        "Sorry, your request timed out.  It's likely that your input was too large to process.  Consider building the"
        " tree incrementally, or building the commits you need in a local clone of the repository and then pushing"
        " them to GitHub.",
    ),
    "gh-tree-delete": Words(422, "GitRPC::BadObjectState"),
    "gh-tree-lag": Words(422, "Tree SHA does not exist"),
    "gh-commit-parent": Words(422, "Parent SHA does not exist or is not a commit object"),
    "gh-commit-missing": Words(422, "No commit found for SHA: {sha}"),
    "gh-git-commit-missing": Words(404, "Not Found"),
    "gh-compare-unrelated": Words(404, "No common ancestor between {base} and {head}."),
    "gh-contents-branch": Words(404, "Branch {branch} not found"),
    "gh-contents-sha": Words(422, 'Invalid request.\n\n"sha" wasn\'t supplied.'),
    "gh-contents-stale": Words(409, "{path} does not match {sha}"),
    "gh-contents-base64": Words(422, "content is not valid Base64"),
    "gh-contents-path": Words(422, "path contains a malformed path component"),
    "gh-protection-none": Words(404, "Branch not protected"),
    "gh-protection-no-admin": Words(404, "Not Found"),
    "gh-plan": Words(403, "Upgrade to GitHub Pro or make this repository public to enable this feature."),
    "gh-protection-schema": Words(
        422, 'Invalid request.\n\nNo subschema in "anyOf" matched.\n{names} {verb} supplied.'
    ),
    "gh-protection-approvals": Words(
        422, 'Invalid request.\n\n{value} must be less than or equal to 6.\nNot all subschemas of "allOf" matched.'
    ),
    "gh-protection-restrictions": Words(
        422, "Validation Failed", ("Only organization repositories can have users and team restrictions",)
    ),
    "gh-protection-linear": Words(
        422, "Validation Failed", ("Linear history requires squash or rebase merging to be allowed",)
    ),
    "gh-pull-missing": Words(404, "Not Found"),
    "gh-pull-exists": _validation(
        "PullRequest", code="custom", message="A pull request already exists for {owner}:{head}."
    ),
    "gh-no-commits-between": _validation("PullRequest", code="custom", message="No commits between {base} and {head}"),
    "gh-head-invalid": _validation("PullRequest", field="head", code="invalid"),
    "gh-base-invalid": _validation("PullRequest", field="base", code="invalid"),
    "gh-no-drafts": Words(422, "Draft pull requests are not supported in this repository."),
    "gh-review-author": Words(422, "Review cannot be requested from pull request author."),
    "gh-review-stranger": Words(
        422,
        "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a"
        " collaborator of the {path} repository.",
    ),
    "gh-not-mergeable": Words(405, "Pull Request is not mergeable"),
    "gh-head-modified": Words(409, "Head branch was modified. Review and try the merge again."),
    "gh-base-modified": Words(405, "Base branch was modified. Review and try the merge again."),
    "gh-merge-draft": Words(405, "Pull Request is still a draft"),
    "gh-merge-no-merge-commits": Words(405, "Merge commits are not allowed on this repository."),
    "gh-merge-no-squash": Words(405, "Squash merges are not allowed on this repository."),
    "gh-merge-no-rebase": Words(405, "Rebase merges are not allowed on this repository."),
    "gh-merge-linear": Words(405, "This branch must not contain merge commits.", docs=_PROTECTED),
    "gh-merge-no-rebase-possible": Words(405, "This branch can't be rebased"),
    "gh-merge-check": Words(405, 'Required status check "{check}" is {state}.', docs=_PROTECTED),
    "gh-merge-review": Words(
        405,
        "At least {count} approving review{s} required by reviewers with write access.",
        docs=_PROTECTED,
    ),
    "gh-head-behind": Words(409, "Head branch is out of date. Review and try the merge again.", docs=_PROTECTED),
    "gh-merge-queue": Words(405, "Repository rule violations found\n\nChanges must be made through the merge queue"),
    "gh-merge-ruleset": Words(405, "Repository rule violations found\n\n{reason}\n\n"),
    "gh-installation-missing": Words(404, "Not Found"),
}


_KINDS: Mapping[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    list: "an array",
    dict: "an object",
}


class Refusal(Exception):
    """An answer that is not 2xx; a handler raises it by the fact that it follows.

    Attributes:
        words: what its text is filled in with.
        headers: what it carries besides.
    """

    def __init__(self, fact: str, *, headers: Mapping[str, str] | None = None, **words: object) -> None:
        super().__init__(fact)
        self.fact = fact
        self.headers = dict(headers or {})
        self.words: Mapping[str, object] = words

    def response(self, docs: str) -> Response:
        """The answer, for an endpoint that is documented at ``docs``."""
        text = REFUSALS[self.fact]
        body: dict[str, Any] = {"message": text.message.format_map(self.words)}
        if text.errors:
            body["errors"] = [_filled(entry, self.words) for entry in text.errors]
        if "Location" in self.headers:
            body["url"] = self.headers["Location"]
        body |= {"documentation_url": text.docs or docs, "status": str(text.status)}
        return reply(body, self.fact, status=text.status, headers=self.headers)


def _filled(entry: Mapping[str, str] | str, words: Mapping[str, object]) -> dict[str, str] | str:
    if isinstance(entry, str):
        return entry.format_map(words)
    return {name: text.format_map(words) for name, text in entry.items()}


# What GitHub answers where the forge refused, by the endpoint and the error's class; the first that fits decides.
_FORGE: Mapping[str, tuple[tuple[type[GitProviderError], str], ...]] = {
    "POST /user/repos": ((AlreadyExistsError, "gh-name-exists"), (InvalidRequestError, "gh-repo-name")),
    "POST /orgs/{org}/repos": ((AlreadyExistsError, "gh-name-exists"), (InvalidRequestError, "gh-repo-name")),
    "GET /repos/{owner}/{repo}/branches/{branch/}": ((NotFoundError, "gh-branch-not-found"),),
    "GET /repos/{owner}/{repo}/branches/{branch/}/protection": ((NotFoundError, "gh-branch-not-found"),),
    "PUT /repos/{owner}/{repo}/branches/{branch/}/protection": ((NotFoundError, "gh-branch-not-found"),),
    "DELETE /repos/{owner}/{repo}/branches/{branch/}/protection": ((NotFoundError, "gh-protection-none"),),
    "GET /repos/{owner}/{repo}/git/ref/{ref/}": ((NotFoundError, "gh-ref-not-found"),),
    "GET /repos/{owner}/{repo}/git/refs/{ref/}": ((NotFoundError, "gh-ref-not-found"),),
    "POST /repos/{owner}/{repo}/git/refs": (
        (AlreadyExistsError, "gh-ref-exists"),
        (NotFoundError, "gh-object-missing"),
        (ConflictError, "gh-ref-update-failed"),
        (InvalidRequestError, "gh-ref-name"),
    ),
    "PATCH /repos/{owner}/{repo}/git/refs/{ref/}": (
        (HeadMovedError, "gh-not-fast-forward"),
        (NotFoundError, "gh-object-missing"),
    ),
    "DELETE /repos/{owner}/{repo}/git/refs/{ref/}": (
        (NotFoundError, "gh-ref-missing"),
        (ConflictError, "gh-ref-default"),
    ),
    "GET /repos/{owner}/{repo}/git/blobs/{sha}": ((NotFoundError, "gh-blob-missing"),),
    "POST /repos/{owner}/{repo}/git/trees": ((InvalidRequestError, "gh-tree-delete"),),
    "GET /repos/{owner}/{repo}/git/commits/{sha}": ((NotFoundError, "gh-git-commit-missing"),),
    "PUT /repos/{owner}/{repo}/contents/{path/}": ((InvalidRequestError, "gh-contents-path"),),
    "GET /repos/{owner}/{repo}/pulls/{number}": ((NotFoundError, "gh-pull-missing"),),
    "PUT /repos/{owner}/{repo}/pulls/{number}/merge": (
        (NotFoundError, "gh-pull-missing"),
        (HeadMovedError, "gh-head-modified"),
    ),
    "POST /repos/{owner}/{repo}/issues/{number}/labels": ((NotFoundError, "gh-pull-missing"),),
    "POST /repos/{owner}/{repo}/pulls/{number}/requested_reviewers": ((NotFoundError, "gh-pull-missing"),),
}

# What GitHub says of a merge that the forge refused; what is not here it says in one sentence for all.
MERGE_REFUSALS: Mapping[NotMergeableReason, str] = {
    NotMergeableReason.DRAFT: "gh-merge-draft",
    NotMergeableReason.METHOD: "gh-merge-linear",
    NotMergeableReason.CHECKS: "gh-merge-check",
    NotMergeableReason.REVIEWS: "gh-merge-review",
    NotMergeableReason.BEHIND: "gh-head-behind",
    NotMergeableReason.PENDING: "gh-base-modified",
}


def of_forge(error: GitProviderError, endpoint: str, words: Mapping[str, object]) -> Refusal:
    """What GitHub answers at ``endpoint`` where the forge raised ``error``.

    Raises:
        GitProviderError: the error itself, where GitHub has no words for it: the fake lacks a check.
    """
    for kind, fact in _FORGE.get(endpoint, ()):
        if isinstance(error, kind):
            refusal = Refusal(fact)
            refusal.words = words
            return refusal
    raise error


def reply(
    data: Any, fact: str, *, status: int = 200, headers: Mapping[str, str] | None = None, effect: bool = False
) -> Response:
    """A JSON answer; 204 has no body."""
    if status == 204:
        return Response(status=204, headers=dict(headers or {}), effect=effect, fact=fact)
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(
        status=status, headers={"Content-Type": JSON, **(headers or {})}, body=body, effect=effect, fact=fact
    )


def typed(name: str, value: Any, kind: type) -> Any:
    """``value``, where it is of this JSON type.

    Raises:
        Refusal: it is of another; ``name`` is said to be wrong.
    """
    # A bool is an int to Python, and not to JSON.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Refusal("gh-wrong-type", name=name, value=value, kind=_KINDS[kind])
    return value


def page(items: Sequence[Any], fact: str, request: Request, url: str, *, default: int = 30) -> Response:
    """One page of ``items`` with GitHub's Link header, whose links lead to ``url``."""
    start, stop = window(request, default=default)
    size, number = stop - start, start // (stop - start) + 1
    last = max(1, -(-len(items) // size))
    targets = {
        "prev": min(number - 1, last) if number > 1 else None,
        "next": number + 1 if number < last else None,
        "last": last if number < last else None,
        "first": 1 if number > 1 else None,
    }
    links = ", ".join(
        f'<{url}?{urlencode({**request.query, "page": target})}>; rel="{name}"'
        for name, target in targets.items()
        if target is not None
    )
    return reply(items[start:stop], fact, headers={"Link": links} if links else None)


def window(request: Request, *, default: int) -> tuple[int, int]:
    """Where the page that is asked for starts and stops.

    ``per_page`` is cut to 100, and what is no number counts as absent, as GitHub has it.
    """
    size = min(_positive(request, "per_page", default), MAX_PER_PAGE)
    start = (_positive(request, "page", 1) - 1) * size
    return start, start + size


def _positive(request: Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isdecimal() and int(text) > 0 else default
