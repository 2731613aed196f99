"""The options and the state of a fake GitLab: what its handlers read and change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import urlsplit

from gitprovider.fakes.gitlab import bodies
from gitprovider.fakes.http import Request
from gitprovider.fakes.stale import StaleReads
from gitprovider.local.database import PullRecord, RepoRecord
from gitprovider.local.forge import Forge
from gitprovider.models import Author

NO_ONE, DEVELOPERS, MAINTAINERS, OWNERS, ADMINISTRATORS = 0, 30, 40, 50, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRule:
    """A rule of a group for every project below it. Projects list it and cannot change it."""

    group: str
    name: str
    push_access_level: int = MAINTAINERS
    merge_access_level: int = MAINTAINERS
    allow_force_push: bool = False


class State:
    """The options and the state of a fake GitLab. The server handles one request at a time.

    Args:
        forge: stores the projects. It needs ``combine=FakeGitLab.combine``.
        token: the accepted token, as ``PRIVATE-TOKEN`` or as a bearer token.
        username: the user that the token belongs to.
        tier: ``free`` or ``premium``. They differ in protected branches and in reviewers.
        base: the URL of the installation. Its path prefixes every route. Links lead to where a request arrived.
        groups: the full paths of the groups that the token's user is a member of. It does not see other groups.
        users: more user names and their numbers.
        old: whether it is of the oldest version that is supported, 14.0: GraphQL without ``RefType``, no endpoint that
            changes a rule, and merge requests without ``detailed_merge_status``.
        mergeable_after: how many reads of a merge request show ``checking`` before its mergeability is known. A moved
            head starts again. Until then a merge gets 405.
        now: the clock for the headers of the rate limit.

    Attributes, which may be set at any time:
        role: the role of the token's user in every project: 10 guest, 20 reporter, 30 developer, 40 maintainer, 50
            owner.
        tokens: the tokens of other users, with their names. They have the role and the scopes of ``token``.
        acting: the user whose request is being handled, or "" for a request without a token.
        group_details: name, description and visibility of groups, by full path. A group without them is private.
        scopes: the scopes of the token. Without ``api``, requests that are not reads are refused.
        credential: a ``revoked`` or ``expired`` token is refused with a text of its own.
        external_url: the URL that the server has configured for its links; None uses where a request arrived.
        totals: whether pages have totals.
        branch_lag: how many reads do not find a new branch, and how many merge requests from it are refused.
        protects_default: whether GitLab protects the new default branch of a project.
        default_protection_after: how many requests later it does.
        group_rules: the protected branches of groups.
        has_patch: whether the server has the endpoint that changes a rule.
        hidden: paths of projects that exist and that the token may not see.
        pending_deletion: paths of projects that are being deleted.
        restricted_visibilities: visibilities that the administrator forbids. gitlab.com forbids ``internal`` as well.
        branch_name_pattern, commit_message_pattern: push rules, as regular expressions.
        outsiders: names of users that may not read the projects. As reviewers they are dropped.
        late_sha: whether a new merge request has no sha yet.
        merge_statuses: values of ``detailed_merge_status``, by project path and iid, that the forge does not have.
        requires_sha: whether a merge without ``sha`` is refused.
        locked_for: how many reads of a merged merge request show ``locked`` before ``merged``.
        auto_merges: whether every merge is scheduled for later.
        hides_merge_errors: whether a failed merge returns 200 and an open merge request, as older versions do.
    """

    def __init__(
        self,
        forge: Forge,
        *,
        token: str = "glpat-fake",  # noqa: S107 - the token of a fake server
        username: str = "tanuki",
        tier: Literal["free", "premium"] = "free",
        base: str = "https://gitlab.com",
        groups: Iterable[str] = ("acme", "acme/platform"),
        users: Mapping[str, int] | None = None,
        old: bool = False,
        mergeable_after: int = 0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.forge = forge
        self.token = token
        self.username = username
        self.premium = tier == "premium"
        self.old = old
        self.prefix = urlsplit(base).path.rstrip("/")
        self.groups = set(groups)
        self.group_details: dict[str, dict[str, str]] = {}
        self.users: dict[str, int] = {username: 1, "reviewer": 2, "alice": 46, "bob": 47, **(users or {})}
        self.mergeable_after = mergeable_after
        self.now = now

        self.role = MAINTAINERS
        self.tokens = {"glpat-reviewer": "reviewer"}
        self.acting = username
        self.scopes = {"api"}
        self.credential: Literal["good", "revoked", "expired"] = "good"
        self.external_url: str | None = None
        self.totals = True
        self.branch_lag = 0
        self.protects_default = True
        self.default_protection_after = 0
        self.group_rules: list[GroupRule] = []
        self.has_patch = not old
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

        self.lock = threading.RLock()
        self.request_count = 0
        self.stale_reads = StaleReads()
        # The default branches to protect: the request count when that happens, the project's path and the branch.
        self.unprotected: list[tuple[int, str, str]] = []
        self._reads: dict[tuple[int, int, str], int] = {}
        # Not from 1: after a restart the forge still has access levels with earlier numbers.
        self._ids = int(now().timestamp())

    @property
    def identity(self) -> Author:
        """The committer: the user whose request is being handled."""
        return Author(name=self.acting.title(), email=f"{self.acting}@example.com")

    def kind(self, namespace: str) -> Literal["user", "group"]:
        """The kind of a namespace."""
        owners = {self.username, *self.tokens.values()}
        return "user" if namespace.lower() in {owner.lower() for owner in owners} else "group"

    def user_of(self, token: str) -> str | None:
        """The user that a token belongs to, or None if no token of the kind is accepted."""
        return self.username if token == self.token else self.tokens.get(token)

    def user_id(self, username: str) -> int:
        """A user's number. For an unknown name it follows from the name."""
        return self.users.get(username) or bodies.namespace_id(username)

    def next_id(self) -> int:
        """A new number for an access level."""
        self._ids += 1
        return self._ids

    def restricted(self, request: Request) -> set[str]:
        """The visibilities that a new project may not have."""
        return self.restricted_visibilities | ({"internal"} if request.host == "gitlab.com" else set())

    def is_checking(self, record: RepoRecord, pull: PullRecord) -> bool:
        """Whether the mergeability of a merge request is still being computed."""
        return self._reads.get((record.id, pull.number, pull.head_sha), 0) < self.mergeable_after

    def count_read(self, record: RepoRecord, pull: PullRecord) -> None:
        """Count one read of a merge request."""
        key = record.id, pull.number, pull.head_sha
        self._reads[key] = self._reads.get(key, 0) + 1
