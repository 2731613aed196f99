"""GitHub's responses: JSON, pages and refusals, and the refusals that errors of the forge become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gitprovider.errors import (
    AlreadyExistsError,
    ConflictError,
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    NotMergeableReason,
)
from gitprovider.fakes.http import Request, Response, json_response, link_header

DOCS = "https://docs.github.com/rest"
MAX_PER_PAGE = 100
_REDIRECTS = f"{DOCS}/guides/best-practices-for-using-the-rest-api#follow-redirects"
_PROTECTED = "https://docs.github.com/articles/about-protected-branches"
_LIMITS = f"{DOCS}/using-the-rest-api/rate-limits-for-the-rest-api"

reply = partial(json_response, content_type="application/json; charset=utf-8", compact=True)


@dataclass(frozen=True, slots=True)
class ErrorText:
    """The status and texts of a refusal. ``{names}`` are placeholders.

    Attributes:
        errors: the entries of the ``errors`` key, if the body has one.
        docs: the documentation_url, if it is not the endpoint's own.
    """

    status: int
    message: str
    errors: tuple[Mapping[str, str] | str, ...] = ()
    docs: str = ""


def _invalid(**error: str) -> ErrorText:
    return ErrorText(422, "Validation Failed", ({"resource": "PullRequest", **error},))


def _custom(field: str, text: str, message: str = "Validation Failed") -> ErrorText:
    return ErrorText(422, message, ({"resource": "Repository", "code": "custom", "field": field, "message": text},))


_NOT_FOUND = (
    "gh-not-found", "gh-repo-missing", "gh-repo-lag", "gh-no-such-org", "gh-ref-not-found", "gh-ref-lag",
    "gh-blob-missing", "gh-tree-missing", "gh-git-commit-missing", "gh-protection-no-admin",
    "gh-pull-missing", "gh-installation-missing", "gh-no-rulesets",
)  # fmt: skip
# Every refusal of the fake server, by the id of its recorded fact.
REFUSALS: Mapping[str, ErrorText] = {
    **dict.fromkeys(_NOT_FOUND, ErrorText(404, "Not Found")),
    "gh-no-user-agent": ErrorText(
        403, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header."
    ),
    "gh-bad-credentials": ErrorText(401, "Bad credentials", docs=DOCS),
    "gh-requires-authentication": ErrorText(401, "Requires authentication"),
    "gh-bad-jwt": ErrorText(401, "A JSON web token could not be decoded", docs=DOCS),
    "gh-jwt-lifetime": ErrorText(401, "'Expiration time' claim ('exp') is too far in the future", docs=DOCS),
    "gh-rate-limit": ErrorText(403, "API rate limit exceeded for user ID {id}.", docs=_LIMITS),
    "gh-secondary-limit": ErrorText(
        403,
        "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. Please retry"
        " your request again later.",
        docs=f"{_LIMITS}#about-secondary-rate-limits",
    ),
    "gh-route-missing": ErrorText(404, "Not Found", docs=DOCS),
    "gh-moved-read": ErrorText(301, "Moved Permanently", docs=_REDIRECTS),
    "gh-moved-write": ErrorText(307, "Moved Permanently", docs=_REDIRECTS),
    "gh-archived": ErrorText(403, "Repository was archived so is read-only."),
    "gh-admin-rights": ErrorText(403, "Must have admin rights to Repository."),
    "gh-app-permission": ErrorText(403, "Resource not accessible by integration"),
    "gh-not-json": ErrorText(400, "Problems parsing JSON"),
    "gh-not-object": ErrorText(400, "Body should be a JSON object"),
    "gh-not-supplied": ErrorText(422, "Invalid request.\n\n{names} {verb} supplied."),
    "gh-wrong-type": ErrorText(422, "Invalid request.\n\nFor 'properties/{name}', {value} is not {kind}."),
    "gh-name-exists": _custom("name", "name already exists on this account", "Repository creation failed."),
    "gh-repo-name": _custom("name", "name is invalid", "Repository creation failed."),
    "gh-visibility-internal": _custom(
        "visibility", "Only organizations associated with an enterprise can set visibility to internal"
    ),
    "gh-empty-repo": ErrorText(409, "Git Repository is empty."),
    "gh-branch-not-found": ErrorText(404, "Branch not found"),
    "gh-ref-exists": ErrorText(422, "Reference already exists"),
    "gh-ref-update-failed": ErrorText(422, "Reference update failed"),
    "gh-ref-name": ErrorText(422, "{ref} is not a valid ref name."),
    "gh-object-missing": ErrorText(422, "Object does not exist"),
    "gh-ref-missing": ErrorText(422, "Reference does not exist"),
    "gh-not-fast-forward": ErrorText(422, "Update is not a fast forward"),
    "gh-protected-commit": ErrorText(422, "Changes must be made through a pull request.", docs=_PROTECTED),
    "gh-protected-check": ErrorText(422, 'Required status check "{check}" is expected.', docs=_PROTECTED),
    "gh-protected-force": ErrorText(422, "Cannot force-push to a protected branch", docs=_PROTECTED),
    "gh-protected-deletion": ErrorText(422, "Cannot delete a protected branch", docs=_PROTECTED),
    "gh-protected-linear": ErrorText(422, "This branch must not contain merge commits.", docs=_PROTECTED),
    "gh-ref-default": ErrorText(422, "Cannot delete the default branch"),
    "gh-protected-contents": ErrorText(
        409, "Could not create file: Changes must be made through a pull request.", docs=_PROTECTED
    ),
    "gh-rule-creation": ErrorText(422, "Repository rule violations found\n\n{reason}\n\n"),
    "gh-rule-violation": ErrorText(422, "Repository rule violations found\n\n{reason}\n\n"),
    "gh-rule-violation-contents": ErrorText(409, "Repository rule violations found\n\n{reason}\n\n"),
    "gh-blob-encoding": ErrorText(422, "Invalid blob content"),
    "gh-tree-base": ErrorText(422, "base_tree is not a valid tree oid"),
    "gh-tree-mode": ErrorText(422, "Must supply a valid tree.mode"),
    "gh-tree-path": ErrorText(422, "tree.path contains a malformed path component"),
    "gh-tree-content": ErrorText(422, "Must supply either tree.sha or tree.content"),
    "gh-tree-blob": ErrorText(422, "tree.sha {sha} is not a valid {kind}"),
    "gh-tree-too-big": ErrorText(
        422,
        "Sorry, your request timed out.  It's likely that your input was too large to process.  Consider building the"
        " tree incrementally, or building the commits you need in a local clone of the repository and then pushing"
        " them to GitHub.",
    ),
    "gh-tree-delete": ErrorText(422, "GitRPC::BadObjectState"),
    "gh-tree-lag": ErrorText(422, "Tree SHA does not exist"),
    "gh-commit-parent": ErrorText(422, "Parent SHA does not exist or is not a commit object"),
    "gh-commit-missing": ErrorText(422, "No commit found for SHA: {sha}"),
    "gh-compare-unrelated": ErrorText(404, "No common ancestor between {base} and {head}."),
    "gh-contents-branch": ErrorText(404, "Branch {branch} not found"),
    "gh-contents-sha": ErrorText(422, 'Invalid request.\n\n"sha" wasn\'t supplied.'),
    "gh-contents-stale": ErrorText(409, "{path} does not match {sha}"),
    "gh-contents-base64": ErrorText(422, "content is not valid Base64"),
    "gh-contents-path": ErrorText(422, "path contains a malformed path component"),
    "gh-protection-none": ErrorText(404, "Branch not protected"),
    "gh-plan": ErrorText(403, "Upgrade to GitHub Pro or make this repository public to enable this feature."),
    "gh-protection-schema": ErrorText(
        422, 'Invalid request.\n\nNo subschema in "anyOf" matched.\n{names} {verb} supplied.'
    ),
    "gh-protection-approvals": ErrorText(
        422, 'Invalid request.\n\n{value} must be less than or equal to 6.\nNot all subschemas of "allOf" matched.'
    ),
    "gh-protection-restrictions": ErrorText(
        422, "Validation Failed", ("Only organization repositories can have users and team restrictions",)
    ),
    "gh-protection-linear": ErrorText(
        422, "Validation Failed", ("Linear history requires squash or rebase merging to be allowed",)
    ),
    "gh-pull-exists": _invalid(code="custom", message="A pull request already exists for {owner}:{head}."),
    "gh-no-commits-between": _invalid(code="custom", message="No commits between {base} and {head}"),
    "gh-head-invalid": _invalid(field="head", code="invalid"),
    "gh-base-invalid": _invalid(field="base", code="invalid"),
    "gh-no-drafts": ErrorText(422, "Draft pull requests are not supported in this repository."),
    "gh-review-author": ErrorText(422, "Review cannot be requested from pull request author."),
    "gh-review-stranger": ErrorText(
        422,
        "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a"
        " collaborator of the {path} repository.",
    ),
    "gh-not-mergeable": ErrorText(405, "Pull Request is not mergeable"),
    "gh-head-modified": ErrorText(409, "Head branch was modified. Review and try the merge again."),
    "gh-base-modified": ErrorText(405, "Base branch was modified. Review and try the merge again."),
    "gh-merge-draft": ErrorText(405, "Pull Request is still a draft"),
    "gh-merge-no-merge-commits": ErrorText(405, "Merge commits are not allowed on this repository."),
    "gh-merge-no-squash": ErrorText(405, "Squash merges are not allowed on this repository."),
    "gh-merge-no-rebase": ErrorText(405, "Rebase merges are not allowed on this repository."),
    "gh-merge-linear": ErrorText(405, "This branch must not contain merge commits.", docs=_PROTECTED),
    "gh-merge-no-rebase-possible": ErrorText(405, "This branch can't be rebased"),
    "gh-merge-check": ErrorText(405, 'Required status check "{check}" is {state}.', docs=_PROTECTED),
    "gh-merge-review": ErrorText(
        405,
        "At least {count} approving review{s} required by reviewers with write access.",
        docs=_PROTECTED,
    ),
    "gh-head-behind": ErrorText(409, "Head branch is out of date. Review and try the merge again.", docs=_PROTECTED),
    "gh-merge-queue": ErrorText(
        405, "Repository rule violations found\n\nChanges must be made through the merge queue"
    ),
    "gh-merge-ruleset": ErrorText(405, "Repository rule violations found\n\n{reason}\n\n"),
}


_KINDS: Mapping[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    list: "an array",
    dict: "an object",
}


class Refusal(Exception):
    """A response that is not 2xx. A handler raises it with the id of its recorded fact.

    Attributes:
        headers: the additional headers of the response.
        values: replace the placeholders of the texts.
    """

    def __init__(self, fact: str, *, headers: Mapping[str, str] | None = None, **values: object) -> None:
        super().__init__(fact)
        self.fact = fact
        self.headers = dict(headers or {})
        self.values: Mapping[str, object] = values

    def response(self, docs: str) -> Response:
        """The response, for an endpoint that is documented at ``docs``."""
        text = REFUSALS[self.fact]
        body: dict[str, Any] = {"message": text.message.format_map(self.values)}
        if text.errors:
            body["errors"] = [_filled(entry, self.values) for entry in text.errors]
        if "Location" in self.headers:
            body["url"] = self.headers["Location"]
        body |= {"documentation_url": text.docs or docs, "status": str(text.status)}
        return reply(body, self.fact, status=text.status, headers=self.headers)


def not_supplied(fact: str, absent: list[str]) -> Refusal:
    """The refusal of a body without its required fields."""
    names = ", ".join(f'"{name}"' for name in absent)
    return Refusal(fact, names=names, verb="wasn't" if len(absent) == 1 else "weren't")


def _filled(entry: Mapping[str, str] | str, values: Mapping[str, object]) -> dict[str, str] | str:
    if isinstance(entry, str):
        return entry.format_map(values)
    return {name: text.format_map(values) for name, text in entry.items()}


# The refusals that errors of the forge become, by endpoint. The first matching class decides.
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

# The refusals of a merge, by the forge's reason. Other reasons share gh-not-mergeable.
MERGE_REFUSALS: Mapping[NotMergeableReason, str] = {
    NotMergeableReason.DRAFT: "gh-merge-draft",
    NotMergeableReason.METHOD: "gh-merge-linear",
    NotMergeableReason.CHECKS: "gh-merge-check",
    NotMergeableReason.REVIEWS: "gh-merge-review",
    NotMergeableReason.BEHIND: "gh-head-behind",
    NotMergeableReason.PENDING: "gh-base-modified",
}


def of_forge(error: GitProviderError, endpoint: str, values: Mapping[str, object]) -> Refusal:
    """The refusal that an error of the forge becomes at ``endpoint``.

    Raises:
        GitProviderError: the error itself, if GitHub has no refusal for it: a handler lacks a check.
    """
    for kind, fact in _FORGE.get(endpoint, ()):
        if isinstance(error, kind):
            refusal = Refusal(fact)
            refusal.values = values
            return refusal
    raise error


def typed(name: str, value: Any, kind: type) -> Any:
    """Return ``value`` if it has this JSON type.

    Raises:
        Refusal: the value has another type. The text names ``name``.
    """
    # In Python a bool is an int, in JSON it is not.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Refusal("gh-wrong-type", name=name, value=value, kind=_KINDS[kind])
    return value


def page(items: Sequence[Any], fact: str, request: Request, url: str) -> Response:
    """One page of ``items`` with GitHub's Link header, whose links lead to ``url``."""
    start, stop = window(request)
    size, number = stop - start, start // (stop - start) + 1
    last = max(1, -(-len(items) // size))
    pages = {
        "prev": min(number - 1, last),
        "next": number + 1 if number < last else 0,
        "last": last if number < last else 0,
        "first": 1 if number > 1 else 0,
    }
    links = link_header(url, request.query, pages)
    return reply(items[start:stop], fact, headers={"Link": links} if links else None)


def window(request: Request) -> tuple[int, int]:
    """Where the requested page starts and stops. GitHub ignores numbers that are invalid."""
    size = min(_positive(request, "per_page", 30), MAX_PER_PAGE)
    start = (_positive(request, "page", 1) - 1) * size
    return start, start + size


def _positive(request: Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isdecimal() and int(text) > 0 else default
