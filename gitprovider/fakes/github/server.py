"""The GitHub fake: GitHub's REST dialect (version 2022-11-28) over a forge.

Only the endpoints that a provider calls. Each answer has the status, headers, body and error text of the real host,
and names the recorded fact that it follows (``gitprovider/fakes/facts.jsonl``).
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
import re
import secrets
import threading
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

from gitprovider.errors import GitProviderError, NotFoundError, RepoMovedError
from gitprovider.fakes.github import git as github_git
from gitprovider.fakes.github import protection as github_protection
from gitprovider.fakes.github import pulls as github_pulls
from gitprovider.fakes.github import repos as github_repos
from gitprovider.fakes.github.answers import DOCS, Refusal, of_forge
from gitprovider.fakes.github.bodies import Bodies, account_id, is_private, stamp
from gitprovider.fakes.github.call import Call, Caller
from gitprovider.fakes.host import Handler, Request, Response
from gitprovider.local.database import RepoRecord
from gitprovider.local.forge import Forge
from gitprovider.models import Author

TOKEN = "ghp_" + "0" * 36
_TABLES = (github_repos.ROUTES, github_git.ROUTES, github_pulls.ROUTES)
_REPO = "/repos/{owner}/{repo}"
_BY_ID = "/repositories/{id}"
_READS = ("GET", "HEAD")
_MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """A GitHub App.

    Attributes:
        installations: the account that each installation is on, by the installation's id.
        key: checks the signature of the App's JSON web token, given its signed part and the signature; None takes
            any signature.
    """

    id: int = 1
    installations: Mapping[int, str] = field(default_factory=lambda: {101: "acme"})
    key: Callable[[bytes, bytes], bool] | None = None


class Lagging:
    """Counts down how many more reads see what was true before."""

    def __init__(self) -> None:
        self._left: dict[Hashable, int] = {}
        self._lock = threading.Lock()

    def start(self, key: Hashable, reads: int) -> None:
        """The next ``reads`` of ``key`` lag behind."""
        with self._lock:
            self._left[key] = reads

    def start_once(self, key: Hashable, reads: int) -> None:
        """As :meth:`start`, unless it was started before."""
        with self._lock:
            self._left.setdefault(key, reads)

    def strikes(self, key: Hashable) -> bool:
        """Count one read, and tell whether it lags."""
        with self._lock:
            left = self._left.get(key, 0)
            if left:
                self._left[key] = left - 1
            return left > 0


class FakeGitHub:
    """A GitHub in front of a forge. Safe to call from many threads.

    Args:
        forge: the host behind it; give it ``combine=FakeGitHub.combine``, since on GitHub one rule applies to a branch.
        token: the token of ``login``, whose scopes suffice for everything.
        login: the user that the token belongs to, and the author of every pull request.
        orgs: the logins that are organizations; ``login`` may create repositories there.
        users: further users, all of them collaborators of every repository.
        admin: whether ``login`` administers the repositories: may protect, delete, and pass by protection that is not
            enforced for administrators.
        plan: on ``free`` a private repository has no branch protection and no drafts.
        base: the API's root. Its path (an Enterprise Server has ``/api/v3``) comes before each endpoint's; links lead
            to wherever a request arrived. A base that is not api.github.com has internal repositories.
        web: where people go.
        app: the GitHub App whose JSON web tokens are accepted, or None.
        rate_limit: requests an hour and token.
        write_limit: requests a minute and token that are no reads, above which the secondary limit refuses them; None
            for no such limit.
        lag: how many reads of a new repository are answered 404.
        ref_lag: how many reads of a new ref are answered 404; a pull request from it is refused as often.
        mergeable_after: how many reads of a pull request, at each head and base, find ``mergeable`` null.
        tree_limit: entries of a tree above which it is truncated.
        now: the clock of rate limits, tokens and Date.
    """

    combine = staticmethod(github_protection.one_rule_applies)

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
        write_limit: int | None = None,
        lag: int = 0,
        ref_lag: int = 0,
        mergeable_after: int = 0,
        tree_limit: int = 100_000,
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
        self.write_limit = write_limit
        self.lag = lag
        self.ref_lag = ref_lag
        self.mergeable_after = mergeable_after
        self.tree_limit = tree_limit
        self.now = now
        self.since = datetime(2020, 1, 1, tzinfo=UTC)
        self.lagging = Lagging()
        self._prefix = urlsplit(self.base).path
        self._lock = threading.Lock()
        self._tokens: dict[str, tuple[str, datetime]] = {}
        self._used: dict[str, int] = {}
        self._writes: dict[str, tuple[datetime, int]] = {}
        self._window = now()
        self._numbers = itertools.count(1)

    def __repr__(self) -> str:
        return f"FakeGitHub({self.forge!r}, base={self.base!r})"

    @property
    def is_enterprise(self) -> bool:
        """Whether it is an Enterprise Server, not github.com."""
        return urlsplit(self.base).hostname != "api.github.com"

    @property
    def identity(self) -> Author:
        """Who a commit without an author is by."""
        return Author(name=self.login, email=f"{account_id(self.login)}+{self.login}@users.noreply.github.com")

    def knows(self, login: str) -> bool:
        """Whether there is such a user or organization."""
        return login.lower() in {known.lower() for known in self.logins | self.orgs}

    # A host

    def endpoint(self, request: Request) -> str:
        """The template of the request's route, such as ``/repos/{owner}/{repo}``; ``""`` when there is none."""
        path, by_id = self._path(request)
        found = self._find(request.method, path)
        if found is None:
            return ""
        return _BY_ID + found[0].removeprefix(_REPO) if by_id else found[0]

    def handle(self, request: Request) -> Response:
        """Answer one request."""
        token = _token(request)
        used = self._count(token)
        anonymous = token is None
        limit = 60 if anonymous else self.rate_limit
        answer = self._answer(request, token, over=used > limit)
        headers = {
            **answer.headers,
            "Server": "github.com",
            "Date": format_datetime(self.now(), usegmt=True),
            "Cache-Control": "private, max-age=60, s-maxage=60",
            "Vary": "Accept, Authorization, Cookie, X-GitHub-OTP,Accept-Encoding, Accept, X-Requested-With",
            "X-GitHub-Media-Type": "github.v3; format=json",
            "x-github-api-version-selected": "2022-11-28",
            "X-RateLimit-Limit": str(limit),
            "X-RateLimit-Remaining": str(max(0, limit - used)),
            "X-RateLimit-Reset": str(int((self._window + timedelta(hours=1)).timestamp())),
            "X-RateLimit-Used": str(min(used, limit)),
            "X-RateLimit-Resource": "core",
            "X-GitHub-Request-Id": f"{next(self._numbers):04X}:{secrets.token_hex(3).upper()}:{secrets.token_hex(4)}",
        }
        if answer.status < 300 and answer.body:
            headers["ETag"] = f'W/"{hashlib.sha256(answer.body).hexdigest()}"'
        if not anonymous:
            headers["X-OAuth-Scopes"] = "delete_repo, repo"
        return replace(answer, headers=headers)

    def _answer(self, request: Request, token: str | None, *, over: bool) -> Response:
        found = self._find(request.method, self._path(request)[0])
        docs, template = DOCS, ""
        words: Mapping[str, Any] = {}
        try:
            if "user-agent" not in request.headers:
                raise Refusal("gh-no-user-agent")
            caller = self._caller(token)
            if over:
                raise Refusal("gh-rate-limit", id=account_id(caller.login or "ghost"))
            self._check_writes(request, token)
            if found is None:
                raise Refusal("gh-route-missing")
            template, _, words = found
            docs = f"{DOCS}/{self._docs(request.method, template)}"
            return self._handled(request, caller, found)
        except Refusal as refusal:
            return refusal.response(docs)
        except GitProviderError as error:
            return of_forge(error, f"{request.method} {template}", {**_asked(request), **words}).response(docs)

    def _handled(self, request: Request, caller: Caller, found: tuple[str, Handler, dict[str, str]]) -> Response:
        template, handler, parts = found
        if caller.kind == "app" and "/installation" not in template:
            raise Refusal("gh-bad-credentials")  # a signed claim opens the App's own endpoints only
        record: RepoRecord | None = None
        if template.startswith(_REPO):
            record = self._repo(request, caller, f"{parts['owner']}/{parts['repo']}")
            parts = {name: part for name, part in parts.items() if name not in ("owner", "repo")}
        elif request.method not in _READS and caller.kind == "anonymous":
            raise Refusal("gh-requires-authentication")
        bodies = Bodies(request.origin + self._prefix, self.web, self.orgs)
        return handler(Call(self, request, caller, bodies, record), **parts)

    def _repo(self, request: Request, caller: Caller, path: str) -> RepoRecord:
        """The repository that the request is about, if the caller may do that with it."""
        try:
            record = self.forge.repo(path)
        except RepoMovedError as moved:
            raise self._moved(request, self.forge.repo(str(moved.moved_to))) from None
        except NotFoundError:
            raise Refusal("gh-repo-missing") from None
        if caller.kind == "anonymous" and is_private(record):
            raise Refusal("gh-repo-missing")
        if request.method in _READS:
            if self.lagging.strikes(("repo", record.id)):
                raise Refusal("gh-repo-lag")
            return record
        if caller.kind == "anonymous":
            raise Refusal("gh-requires-authentication")
        deletes_it = request.method == "DELETE" and self._find("DELETE", self._path(request)[0])
        if record.archived and not (deletes_it and deletes_it[0] == _REPO):
            raise Refusal("gh-archived")
        return record

    def _moved(self, request: Request, record: RepoRecord) -> Refusal:
        rest = self._path(request)[0].split("/", 4)[4:]
        place = "/".join([f"{request.origin}{self._prefix}/repositories/{record.id}", *rest])
        query = f"?{urlencode(request.query)}" if request.query else ""
        fact = "gh-moved-read" if request.method in _READS else "gh-moved-write"
        return Refusal(fact, headers={"Location": place + query})

    # Routes

    def _path(self, request: Request) -> tuple[str, bool]:
        """The path below the API's root, and whether it named the repository by its id."""
        path = request.path.removeprefix(self._prefix) if request.path.startswith(self._prefix + "/") else ""
        by_id = re.match(r"/repositories/(\d{1,15})(?=/|\Z)", path)
        if by_id is None:
            return path, False
        try:
            name = self.forge.repo_by_id(int(by_id[1])).path
        except NotFoundError:
            name = "-/-"  # no repository has this path
        return f"/repos/{name}{path[by_id.end() :]}", True

    @staticmethod
    def _find(method: str, path: str) -> tuple[str, Handler, dict[str, str]] | None:
        return next((found for table in _TABLES if (found := table.find(method, path))), None)

    @staticmethod
    def _docs(method: str, template: str) -> str:
        return next((docs for table in _TABLES if (docs := table.docs(method, template))), "")

    @staticmethod
    def templates() -> list[tuple[str, str]]:
        """Every method and template that it answers."""
        return [route for table in _TABLES for route in table.templates()]

    # Credentials

    def _caller(self, token: str | None) -> Caller:
        if token is None:
            return Caller("anonymous")
        if secrets.compare_digest(token.encode(), self.token.encode()):
            return Caller("user", self.login)
        with self._lock:
            account, expires = self._tokens.get(token, ("", self.since))
        if account and self.now() < expires:
            return Caller("installation", account)
        if token.count(".") == 2 and self.app is not None:
            return self._claim(token, self.app)
        raise Refusal("gh-bad-credentials")

    def _claim(self, token: str, app: App) -> Caller:
        head, claims, signature = token.split(".")
        try:
            known = json.loads(_unpadded(claims))
            issuer, expires = str(known["iss"]), int(known["exp"])
            signed = app.key is None or app.key(f"{head}.{claims}".encode(), _unpadded(signature))
        except (ValueError, KeyError, TypeError):
            raise Refusal("gh-bad-jwt") from None
        now = self.now().timestamp()
        if not signed or issuer != str(app.id) or expires <= now:
            raise Refusal("gh-bad-jwt")
        if expires > now + 660:  # ten minutes, and a minute for clocks that differ
            raise Refusal("gh-jwt-lifetime")
        return Caller("app")

    def app_of(self, caller: Caller) -> App:
        """The App, for an endpoint that takes its JSON web token only."""
        if caller.kind != "app" or self.app is None:
            raise Refusal("gh-bad-jwt")
        return self.app

    def issue_token(self, account: str) -> dict[str, Any]:
        """A token for an installation on ``account``, good for an hour, as GitHub hands it out."""
        token, expires = "ghs_" + secrets.token_hex(18), self.now() + timedelta(hours=1)
        with self._lock:
            self._tokens[token] = (account, expires)
        return {
            "token": token,
            "expires_at": stamp(expires),
            "permissions": {"administration": "write", "contents": "write", "metadata": "read"},
            "repository_selection": "all",
        }

    def _count(self, token: str | None) -> int:
        """Count a request, and return how many the token has made in this hour."""
        with self._lock:
            if self.now() - self._window >= timedelta(hours=1):
                self._window = self.now()
                self._used.clear()
            key = token or ""
            self._used[key] = self._used.get(key, 0) + 1
            return self._used[key]

    def _check_writes(self, request: Request, token: str | None) -> None:
        if self.write_limit is None or request.method in _READS:
            return
        with self._lock:
            start, count = self._writes.get(token or "", (self.now(), 0))
            passed = (self.now() - start).total_seconds()
            if passed >= _MINUTE:
                start, count, passed = self.now(), 0, 0.0
            self._writes[token or ""] = (start, count + 1)
        if count >= self.write_limit:
            wait = math.ceil(_MINUTE - passed)
            raise Refusal("gh-secondary-limit", headers={"Retry-After": str(wait)})


def _token(request: Request) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() in ("token", "bearer") else None


def _asked(request: Request) -> Mapping[str, Any]:
    """The body's fields, for the text of a refusal."""
    try:
        body = request.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
