"""The options and the state of a fake GitHub: what its handlers read and change."""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal
from urllib.parse import urlsplit

from gitprovider.fakes.github.bodies import Body, account_id, stamp
from gitprovider.fakes.stale import StaleReads
from gitprovider.local.forge import Forge
from gitprovider.models import Author

TOKEN = "ghp_" + "0" * 36
_MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """A GitHub App.

    Attributes:
        installations: the account of each installation, by the installation's id.
        key: checks the signature of the App's JSON web token. It gets the signed part and the signature. None accepts
            any signature.
    """

    id: int = 1
    installations: Mapping[int, str] = field(default_factory=lambda: {101: "acme"})
    key: Callable[[bytes, bytes], bool] | None = None


class State:
    """The options and the state of a fake GitHub. Safe to use from many threads.

    Args:
        forge: stores the repositories. It needs ``combine=FakeGitHub.combine``: on GitHub one rule applies to a branch.
        token: the token of ``login``. Its scopes suffice for everything.
        login: the user that the token belongs to, and the author of every pull request.
        orgs: the logins that are organizations. ``login`` may create repositories in them.
        users: more users. All of them are collaborators of every repository.
        admin: whether ``login`` administers the repositories: it may protect and delete, and bypasses protection that
            is not enforced for administrators.
        plan: on ``free``, a private repository has no branch protection and no drafts.
        base: the API's root. Its path (``/api/v3`` on an Enterprise Server) prefixes every endpoint. Links lead to
            where a request arrived. A base other than api.github.com has internal repositories.
        web: the root of the web pages.
        app: the GitHub App whose JSON web tokens are accepted, or None.
        rate_limit: requests per window and token.
        rate_window: how long a window is. GitHub's is an hour.
        write_limit: requests per minute and token that are not reads, before the secondary limit refuses them; None
            for no such limit.
        lag: how many reads of a new repository get 404.
        ref_lag: how many reads of a new ref get 404. A pull request from it is refused as often.
        mergeable_after: how many reads of a pull request, for each head and base, find ``mergeable`` null.
        tree_limit: how many entries a tree may have before it is truncated.
        graphql: ``full``; ``no-commits`` for a server without the mutation createCommitOnBranch; ``off`` for none.
        old: be a server of the oldest version that is supported, Enterprise Server 3.9, which has no rulesets.
        shows_wildcards: show a wildcard's rule at the protection of a branch that it covers. GitHub does not document
            whether it does.
        now: the clock for rate limits, tokens and Date.
    """

    def __init__(
        self,
        forge: Forge,
        *,
        token: str = TOKEN,
        login: str = "octocat",
        orgs: Collection[str] = ("acme",),
        users: Collection[str] = ("hubot", "monalisa", "reviewer"),
        admin: bool = True,
        plan: Literal["free", "pro"] = "pro",
        base: str = "https://api.github.com",
        web: str = "https://github.com",
        app: App | None = None,
        rate_limit: int = 15_000,
        rate_window: timedelta = timedelta(hours=1),
        write_limit: int | None = None,
        lag: int = 0,
        ref_lag: int = 0,
        mergeable_after: int = 0,
        tree_limit: int = 100_000,
        graphql: Literal["full", "no-commits", "off"] = "full",
        old: bool = False,
        shows_wildcards: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.forge = forge
        self.token = token
        self.login = login
        self.orgs = frozenset(orgs)
        self.logins = frozenset({login, *users})
        self.admin = admin
        self.plan = plan
        self.base = base.rstrip("/")
        self.web = web.rstrip("/")
        self.app = app
        self.rate_limit = rate_limit
        self.rate_window = rate_window
        self.write_limit = write_limit
        self.lag = lag
        self.ref_lag = ref_lag
        self.mergeable_after = mergeable_after
        self.tree_limit = tree_limit
        self.graphql = graphql
        self.old = old
        self.shows_wildcards = shows_wildcards
        self.now = now
        self.since = datetime(2020, 1, 1, tzinfo=UTC)
        self.stale_reads = StaleReads()
        self.prefix = urlsplit(self.base).path
        self.window = now()
        self.request_numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._tokens: dict[str, tuple[str, datetime]] = {}
        self._requests: dict[str, int] = {}
        self._writes: dict[str, tuple[datetime, int]] = {}

    @property
    def is_enterprise(self) -> bool:
        """Whether this is an Enterprise Server, not github.com."""
        return urlsplit(self.base).hostname != "api.github.com"

    @property
    def identity(self) -> Author:
        """The author of a commit that names none."""
        return Author(name=self.login, email=f"{account_id(self.login)}+{self.login}@users.noreply.github.com")

    def knows(self, login: str) -> bool:
        """Whether a user or organization exists."""
        return login.lower() in {known.lower() for known in self.logins | self.orgs}

    def issue_token(self, account: str) -> Body:
        """Issue a token for the installation on ``account``, valid for an hour, and return GitHub's body for it."""
        token, expires = "ghs_" + secrets.token_hex(18), self.now() + timedelta(hours=1)
        with self._lock:
            self._tokens[token] = (account, expires)
        return {
            "token": token,
            "expires_at": stamp(expires),
            "permissions": {"administration": "write", "contents": "write", "metadata": "read"},
            "repository_selection": "all",
        }

    def account_of(self, token: str) -> str | None:
        """The account that an installation token was issued for; None if there is none, or if it has expired."""
        with self._lock:
            account, expires = self._tokens.get(token, (None, self.since))
        return account if self.now() < expires else None

    def count_request(self, token: str, by: int = 1) -> int:
        """Count a request, or with -1 take it back, and return how many the token has made in this hour."""
        with self._lock:
            if self.now() - self.window >= self.rate_window:
                self.window = self.now()
                self._requests.clear()
            self._requests[token] = self._requests.get(token, 0) + by
            return self._requests[token]

    def count_write(self, token: str) -> float:
        """Count a request that writes, and return how many seconds the secondary limit makes the token wait."""
        if self.write_limit is None:
            return 0.0
        with self._lock:
            start, count = self._writes.get(token, (self.now(), 0))
            passed = (self.now() - start).total_seconds()
            if passed >= _MINUTE:
                start, count, passed = self.now(), 0, 0.0
            self._writes[token] = (start, count + 1)
        return _MINUTE - passed if count >= self.write_limit else 0.0
