"""A fake GitLab: its REST API, and the GraphQL that a commit needs, over a forge.

It answers with GitLab's statuses, texts and page headers, and each answer cites the recorded fact that it follows. The
handlers are in the modules beside this one; here are the table of routes, the token, and the knobs.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import urlsplit

from gitprovider.errors import GitProviderError
from gitprovider.fakes.gitlab import answers
from gitprovider.fakes.gitlab import bodies as gitlab_json
from gitprovider.fakes.gitlab import files as gitlab_files
from gitprovider.fakes.gitlab import graphql as gitlab_graphql
from gitprovider.fakes.gitlab import merges as gitlab_merge
from gitprovider.fakes.gitlab import projects as gitlab_projects
from gitprovider.fakes.gitlab import rules as gitlab_rules
from gitprovider.fakes.gitlab.answers import Refusal
from gitprovider.fakes.gitlab.call import MAINTAINER, Call
from gitprovider.fakes.gitlab.rules import GroupRule, most_permissive
from gitprovider.fakes.host import Handler, Request, Response, Routes
from gitprovider.local.database import PullRecord, RepoRecord
from gitprovider.local.forge import Forge
from gitprovider.models import Author

__all__ = ["FakeGitLab", "GroupRule", "most_permissive"]

# A NUL in a JSON text: the escape, and not a backslash before the letters of one.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")

API, GRAPHQL = "/api/v4", "/api/graphql"
_PROJECT = "/projects/{project}"
_BRANCHES = f"{_PROJECT}/repository/branches"
_COMMITS = f"{_PROJECT}/repository/commits"
_FILES = f"{_PROJECT}/repository/files"
_RULES = f"{_PROJECT}/protected_branches"
_MERGE_REQUESTS = f"{_PROJECT}/merge_requests"

_TABLE: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/version", gitlab_projects.get_version),
    ("GET", "/metadata", gitlab_projects.get_version),
    ("GET", "/user", gitlab_projects.get_user),
    ("GET", "/users", gitlab_projects.list_users),
    ("GET", "/namespaces/{namespace}", gitlab_projects.get_namespace),
    ("POST", "/projects", gitlab_projects.create_project),
    ("GET", _PROJECT, gitlab_projects.get_project),
    ("PUT", _PROJECT, gitlab_projects.update_project),
    ("DELETE", _PROJECT, gitlab_projects.delete_project),
    ("POST", f"{_PROJECT}/archive", gitlab_projects.archive_project),
    ("POST", f"{_PROJECT}/unarchive", gitlab_projects.unarchive_project),
    ("GET", _BRANCHES, gitlab_projects.list_branches),
    ("POST", _BRANCHES, gitlab_projects.create_branch),
    ("GET", f"{_BRANCHES}/{{branch}}", gitlab_projects.get_branch),
    ("DELETE", f"{_BRANCHES}/{{branch}}", gitlab_projects.delete_branch),
    ("POST", _COMMITS, gitlab_files.create_commit),
    ("GET", f"{_COMMITS}/{{sha}}", gitlab_files.get_commit),
    ("GET", f"{_COMMITS}/{{sha}}/refs", gitlab_files.list_refs),
    ("GET", f"{_PROJECT}/repository/compare", gitlab_files.compare),
    ("GET", f"{_PROJECT}/repository/tree", gitlab_files.list_tree),
    ("GET", f"{_FILES}/{{path}}", gitlab_files.get_file),
    ("HEAD", f"{_FILES}/{{path}}", gitlab_files.head_file),
    ("GET", f"{_FILES}/{{path}}/raw", gitlab_files.get_raw_file),
    ("GET", _RULES, gitlab_rules.list_rules),
    ("POST", _RULES, gitlab_rules.create_rule),
    ("GET", f"{_RULES}/{{name}}", gitlab_rules.get_rule),
    ("PATCH", f"{_RULES}/{{name}}", gitlab_rules.update_rule),
    ("DELETE", f"{_RULES}/{{name}}", gitlab_rules.delete_rule),
    ("GET", _MERGE_REQUESTS, gitlab_merge.list_merge_requests),
    ("POST", _MERGE_REQUESTS, gitlab_merge.create_merge_request),
    ("GET", f"{_MERGE_REQUESTS}/{{iid}}", gitlab_merge.get_merge_request),
    ("PUT", f"{_MERGE_REQUESTS}/{{iid}}", gitlab_merge.update_merge_request),
    ("PUT", f"{_MERGE_REQUESTS}/{{iid}}/merge", gitlab_merge.merge),
    ("POST", f"{_MERGE_REQUESTS}/{{iid}}/approve", gitlab_merge.approve),
)
ROUTES = Routes()
for _method, _template, _handler in _TABLE:
    ROUTES.on(_method, _template)(_handler)


class FakeGitLab:
    """GitLab over a forge. Safe to call from many threads; one request is worked on at a time.

    Give the forge ``combine=most_permissive``, which is how GitLab's rules add up.

    Args:
        forge: what it stands on.
        token: the one it accepts, as ``PRIVATE-TOKEN`` or as a bearer.
        username: whose token it is.
        tier: ``free`` or ``premium``; they differ in protected branches and in reviewers.
        base: where the installation lives. Its path is the prefix of every route; links lead where a request arrived.
        groups: the groups, by full path, whose members the token's user is. Any other does not exist for it.
        users: user names and their numbers, besides the token's own.
        mergeable_after: how many reads of a merge request show ``checking`` before its mergeability is known; a moved
            head starts anew. Until then a merge is refused with 405.
        now: the clock of the rate limit's headers.

    Attributes, to be set at any time:
        role: the token's user's role in every project: 10 guest, 20 reporter, 30 developer, 40 maintainer, 50 owner.
        scopes: the token's scopes; without ``api``, what is no read is refused.
        credential: a ``revoked`` or ``expired`` token is refused with a text of its own.
        external_url: what the server believes to be its URL, and leads its links to; None: where a request arrived.
        totals: whether pages tell how many there are.
        branch_lag: how often a new branch is not found yet, or no source of a merge request, before it is.
        protects_default: whether a project's new default branch is protected by GitLab itself, and
        default_protection_after: how many requests later that happens.
        group_rules: protected branches that groups lay down.
        has_patch: whether the server has the endpoint that changes a rule.
        hidden: paths of projects that the token may not see, though they are there.
        pending_deletion: paths that a project holds which is being deleted.
        restricted_visibilities: visibilities that the administrator forbids. gitlab.com itself forbids ``internal``.
        branch_name_pattern, commit_message_pattern: push rules, as regular expressions.
        outsiders: user names that exist and may not read the projects; as reviewers they are dropped.
        late_sha: whether a new merge request comes without its sha.
        merge_statuses: a ``detailed_merge_status`` to show, by project path and iid, for what a forge does not have.
        requires_sha: whether a merge without ``sha`` is refused.
        locked_for: how many reads of a merged merge request show ``locked`` before ``merged``.
        auto_merges: whether a merge is only set to happen later, also when that was not asked.
        hides_merge_errors: whether a merge that fails is answered with 200 and an open merge request, as it once was.
    """

    def __init__(
        self,
        forge: Forge,
        *,
        token: str = "glpat-fake",  # noqa: S107 - a fake host's
        username: str = "tanuki",
        tier: Literal["free", "premium"] = "free",
        base: str = "https://gitlab.com",
        groups: Iterable[str] = ("acme", "acme/platform"),
        users: Mapping[str, int] | None = None,
        mergeable_after: int = 0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.forge = forge
        self.token = token
        self.username = username
        self.premium = tier == "premium"
        self.prefix = urlsplit(base).path.rstrip("/")
        self.groups = set(groups)
        self.users: dict[str, int] = {username: 1, "reviewer": 2, "alice": 46, "bob": 47, **(users or {})}
        self.mergeable_after = mergeable_after

        self.role = MAINTAINER
        self.scopes = {"api"}
        self.credential: Literal["good", "revoked", "expired"] = "good"
        self.external_url: str | None = None
        self.totals = True
        self.branch_lag = 0
        self.protects_default = True
        self.default_protection_after = 0
        self.group_rules: list[GroupRule] = []
        self.has_patch = True
        self.hidden: set[str] = set()
        self.pending_deletion: set[str] = set()
        self.restricted_visibilities: set[str] = set()
        self.branch_name_pattern: str | None = None
        self.commit_message_pattern: str | None = None
        self.outsiders: set[str] = set()
        self.late_sha = False
        self.merge_statuses: dict[tuple[str, int], str] = {}
        self.requires_sha = False
        self.locked_for = 0
        self.auto_merges = False
        self.hides_merge_errors = False

        self._now = now
        self._lock = threading.RLock()
        self._requests = 0
        self._reads: dict[tuple[int, int, str], int] = {}
        self._late: dict[tuple[int, str], int] = {}
        self._locked: dict[tuple[int, int], int] = {}
        self._protect: list[tuple[int, str, str]] = []
        # Not from 1: after a restart the forge still holds levels that were numbered before.
        self._ids = int(now().timestamp())

    # requests

    def handle(self, request: Request) -> Response:
        """Answer one request."""
        with self._lock:
            self._requests += 1
            self._protect_due()
            try:
                answer = self._answer(request)
            except Refusal as refusal:
                answer = refusal.response()
            except UnicodeEncodeError:
                answer = answers.MALFORMED_TEXT
            except GitProviderError as error:
                answer = answers.of_forge(error).response()
            return replace(answer, headers={**self._headers(), **answer.headers})

    def endpoint(self, request: Request) -> str:
        """The template of the request's route as GitLab documents it, below ``/api/v4``; ``""`` when there is none."""
        path = request.path.removeprefix(self.prefix)
        if path == GRAPHQL:
            return GRAPHQL
        found = self._route(request.method, path)
        return found[0] if found else ""

    def _route(self, method: str, path: str) -> tuple[str, Handler, dict[str, str]] | None:
        if not path.startswith(API + "/"):
            return None
        inside = path.removeprefix(API)
        found = ROUTES.find(method, inside)
        return ROUTES.find("GET", inside) if found is None and method == "HEAD" else found

    def _answer(self, request: Request) -> Response:
        if not request.path.startswith(f"{self.prefix}/api/"):
            return answers.FOREIGN_PAGE
        if "%00" in request.path or _NUL.search(request.body):
            return answers.MALFORMED_TEXT
        path = request.path.removeprefix(self.prefix)
        site = (self.external_url or request.origin + self.prefix).rstrip("/")
        if path == GRAPHQL and request.method == "POST":
            self._authenticate(request, graphql=True)
            return gitlab_graphql.answer(Call(self, request, site))
        found = self._route(request.method, path)
        if found is None:
            raise self._no_route(path)
        self._authenticate(request)
        _, handler, parts = found
        answer = handler(Call(self, request, site), **parts)
        return replace(answer, body=b"") if request.method == "HEAD" else answer

    def _no_route(self, path: str) -> Refusal:
        verbs = [verb for verb in ("GET", "POST", "PUT", "PATCH", "DELETE") if self._route(verb, path)]
        if verbs:
            return Refusal(405, {"error": "405 Not Allowed"}, "gl-verb-missing", headers={"Allow": ", ".join(verbs)})
        return Refusal(404, {"error": "404 Not Found"}, "gl-route-missing")

    def _authenticate(self, request: Request, *, graphql: bool = False) -> None:
        given = request.headers.get("private-token") or request.headers.get("authorization", "").removeprefix("Bearer ")
        if given != self.token:
            if graphql:
                raise Refusal(401, {"errors": [{"message": "Invalid token"}]}, "gl-graphql-unauthorized")
            raise Refusal(401, "401 Unauthorized", "gl-unauthorized")
        if self.credential != "good":
            text = {
                "revoked": "Token was revoked. You have to re-authorize from the user.",
                "expired": "Token is expired. You can either do re-authorization or token refresh.",
            }[self.credential]
            raise Refusal(401, {"error": "invalid_token", "error_description": text}, "gl-token-revoked")
        if "api" not in self.scopes and not graphql and request.method not in ("GET", "HEAD"):
            text = "The request requires higher privileges than provided by the access token."
            body = {"error": "insufficient_scope", "error_description": text, "scope": "api"}
            raise Refusal(403, body, "gl-insufficient-scope")

    def _headers(self) -> dict[str, str]:
        limit, left = 2000, max(2000 - self._requests, 1)
        number = f"01FACE{self._requests:020d}"
        return {
            "X-Request-Id": number,
            "X-Gitlab-Meta": f'{{"correlation_id":"{number}","version":"1"}}',
            "RateLimit-Name": "throttle_authenticated_api",
            "RateLimit-Limit": str(limit),
            "RateLimit-Observed": str(limit - left),
            "RateLimit-Remaining": str(left),
            "RateLimit-Reset": str(int(self._now().timestamp()) // 60 * 60 + 60),
        }

    # what the handlers ask

    @property
    def identity(self) -> Author:
        """Who commits: the token's user."""
        return Author(name=self.username.title(), email=f"{self.username}@example.com")

    def kind(self, namespace: str) -> Literal["user", "group"]:
        """What a namespace is."""
        return "user" if namespace.lower() == self.username.lower() else "group"

    def user_id(self, username: str) -> int:
        """A user's number; for somebody whom nobody introduced, one that follows from the name."""
        return self.users.get(username) or gitlab_json.namespace_id(username)

    def next_id(self) -> int:
        """A number that no other access level has."""
        self._ids += 1
        return self._ids

    def restricted(self, request: Request) -> set[str]:
        """The visibilities that may not be chosen."""
        return self.restricted_visibilities | ({"internal"} if request.host == "gitlab.com" else set())

    # what takes its time

    def branch_made(self, record: RepoRecord, branch: str) -> None:
        """A branch was made through the fake: it may be late, and it may be the default one."""
        if self.branch_lag:
            self._late[record.id, branch] = self.branch_lag
        if branch == record.default_branch and self.protects_default:
            self._protect.append((self._requests + self.default_protection_after, record.path, branch))
            self._protect_due()

    def _protect_due(self) -> None:
        for due in [one for one in self._protect if one[0] <= self._requests]:
            self._protect.remove(due)
            gitlab_rules.protect_default(self, due[1], due[2])

    def is_late(self, record: RepoRecord, branch: str) -> bool:
        """Whether a branch cannot be seen yet."""
        return self._late.get((record.id, branch), 0) > 0

    def seen_late(self, record: RepoRecord, branch: str) -> bool:
        """The same, and one look less."""
        if not self.is_late(record, branch):
            return False
        self._late[record.id, branch] -= 1
        return True

    def is_checking(self, record: RepoRecord, pull: PullRecord) -> bool:
        """Whether a merge request's mergeability is still being computed."""
        return self._reads.get((record.id, pull.number, pull.head_sha), 0) < self.mergeable_after

    def note_read(self, record: RepoRecord, pull: PullRecord) -> None:
        """Somebody read a merge request."""
        key = record.id, pull.number, pull.head_sha
        self._reads[key] = self._reads.get(key, 0) + 1

    def lock(self, record: RepoRecord, pull: PullRecord) -> bool:
        """Show a merge as running for a while, if that is wanted."""
        self._locked[record.id, pull.number] = self.locked_for
        return self.locked_for > 0

    def seen_locked(self, record: RepoRecord, pull: PullRecord) -> bool:
        """Whether a merge is still shown as running, and one look less."""
        left = self._locked.get((record.id, pull.number), 0)
        self._locked[record.id, pull.number] = max(left - 1, 0)
        return left > 0
