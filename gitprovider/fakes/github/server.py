"""The fake GitHub server: authentication, limits and dispatch to the handlers."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from email.utils import format_datetime
from typing import Any
from urllib.parse import urlencode

from gitprovider.errors import GitProviderError, NotFoundError, RepoMovedError
from gitprovider.fakes import git_http
from gitprovider.fakes.github.bodies import Bodies, account_id, is_private
from gitprovider.fakes.github.call import Call, Caller
from gitprovider.fakes.github.graphql import mutation_of
from gitprovider.fakes.github.protection import one_rule_applies
from gitprovider.fakes.github.responses import DOCS, Refusal, of_forge, reply
from gitprovider.fakes.github.routes import GRAPHQL, REPO, find, is_endpoint
from gitprovider.fakes.github.state import App, State
from gitprovider.fakes.http import Request, Response, Route, not_modelled
from gitprovider.local.database import RepoRecord

__all__ = ["App", "FakeGitHub"]

_READS = ("GET", "HEAD")
_RATE_LIMITED = {"type": "RATE_LIMITED", "message": "API rate limit already exceeded for user ID 1."}


_GIT = git_http.Dialect(
    realm="GitHub",
    missing="Repository not found.",
    served_fact="gh-git-http",
    unauthorized_fact="gh-git-http-unauthorized",
    missing_fact="gh-git-http-missing",
)


class FakeGitHub(State):
    """A fake GitHub over a forge: the REST API of version 2022-11-28, as far as a provider uses it.

    Each response has the status, headers, body and error text of the real host, and names the recorded fact that it
    follows (``gitprovider/fakes/facts.jsonl``). Safe to call from many threads.
    """

    combine = staticmethod(one_rule_applies)

    def __repr__(self) -> str:
        return f"FakeGitHub({getattr(self, 'forge', None)!r})"

    def endpoint(self, request: Request) -> str:
        """The route's template, such as ``/repos/{owner}/{repo}``, or ``""`` if no route matches.

        A mutation of GraphQL has its name behind it: ``/graphql createCommitOnBranch``.
        """
        path, by_id = self._path(request)
        found = find(request.method, path)
        if found is None:
            return git_http.endpoint(request)
        template = found[0].template
        if template == GRAPHQL:
            return f"{GRAPHQL} {mutation_of(request)}".rstrip()
        return "/repositories/{id}" + template.removeprefix(REPO) if by_id else template

    def handle(self, request: Request) -> Response:
        """Handle one request."""
        if (git := git_http.respond(self.forge, request, _GIT, self._accepts)) is not None:
            return git
        token = _token(request)
        resource = "graphql" if self._path(request)[0] == GRAPHQL else "core"
        used = self.count_request(f"{token or ''} {resource}")
        limit = 60 if token is None else self.rate_limit
        response = self._respond(request, token, over=used > limit)
        etag = f'W/"{hashlib.sha256(response.body).hexdigest()}"' if response.status < 300 and response.body else ""
        if etag and request.method in _READS and _matches(request, etag):
            response = Response(status=304, fact="gh-not-modified")
            if token is not None:
                used = self.count_request(f"{token} {resource}", -1)
        number = next(self.request_numbers)
        headers = {
            **response.headers,
            "Server": "github.com",
            "Date": format_datetime(self.now(), usegmt=True),
            "Cache-Control": "private, max-age=60, s-maxage=60",
            "Vary": "Accept, Authorization, Cookie, X-GitHub-OTP,Accept-Encoding, Accept, X-Requested-With",
            "X-GitHub-Media-Type": "github.v3; format=json",
            "x-github-api-version-selected": "2022-11-28",
            "X-RateLimit-Limit": str(limit),
            "X-RateLimit-Remaining": str(max(0, limit - used)),
            "X-RateLimit-Reset": str(math.ceil((self.window + self.rate_window).timestamp())),
            "X-RateLimit-Used": str(min(used, limit)),
            "X-RateLimit-Resource": resource,
            "X-GitHub-Request-Id": f"{number:04X}:{secrets.token_hex(3).upper()}:{secrets.token_hex(4)}",
        }
        if etag:
            headers["ETag"] = etag
        if request.method == "HEAD":
            headers["Content-Length"] = str(len(response.body))
            response = replace(response, body=b"")
        if token is not None:
            headers["X-OAuth-Scopes"] = "delete_repo, repo"
        return replace(response, headers=headers)

    def _respond(self, request: Request, token: str | None, *, over: bool) -> Response:
        path = self._path(request)[0]
        found = find(request.method, path)
        docs, endpoint = DOCS, ""
        values: Mapping[str, Any] = {}
        try:
            if "user-agent" not in request.headers:
                raise Refusal("gh-no-user-agent")
            caller = self._caller(token)
            if over and found is not None and found[0].template == GRAPHQL:
                return reply({"errors": [_RATE_LIMITED]}, "gh-graphql-rate-limit")
            if over:
                raise Refusal("gh-rate-limit", id=account_id(caller.login or "ghost"))
            reads = request.method in _READS or self.endpoint(request) == GRAPHQL
            if not reads and (wait := self.count_write(token or "")):
                raise Refusal("gh-secondary-limit", headers={"Retry-After": str(math.ceil(wait))})
            if found is None and is_endpoint(request.method, path):
                return not_modelled("FakeGitHub", request)
            if found is None or (found[0].template == GRAPHQL and self.graphql == "off"):
                raise Refusal("gh-route-missing")
            route, values = found
            docs, endpoint = f"{DOCS}/{route.docs}", f"{route.method} {route.template}"
            return self._call(request, caller, route, dict(values))
        except Refusal as refusal:
            return refusal.response(docs)
        except GitProviderError as error:
            return of_forge(error, endpoint, {**_fields(request), **values}).response(docs)

    def _call(self, request: Request, caller: Caller, route: Route, parts: dict[str, str]) -> Response:
        if caller.kind == "app" and "/installation" not in route.template:
            raise Refusal("gh-bad-credentials")  # a signed claim is valid for the App's own endpoints only
        record: RepoRecord | None = None
        if route.template.startswith(REPO):
            record = self._repo(request, caller, route, f"{parts.pop('owner')}/{parts.pop('repo')}")
        elif request.method not in _READS and caller.kind == "anonymous":
            raise Refusal("gh-requires-authentication")
        bodies = Bodies(request.origin + self.prefix, self.web, self.orgs, git=git_http.root(request))
        return route.handler(Call(self, request, caller, bodies, record), **parts)

    def _repo(self, request: Request, caller: Caller, route: Route, path: str) -> RepoRecord:
        """The repository at ``path``, if the caller may access it."""
        try:
            record = self.forge.repo(path)
        except RepoMovedError as moved:
            raise self._moved(request, self.forge.repo(str(moved.moved_to))) from None
        except NotFoundError:
            raise Refusal("gh-repo-missing") from None
        if caller.kind == "anonymous" and is_private(record):
            raise Refusal("gh-repo-missing")
        if request.method in _READS:
            if self.stale_reads.count(("repo", record.id)):
                raise Refusal("gh-repo-lag")
            return record
        if caller.kind == "anonymous":
            raise Refusal("gh-requires-authentication")
        if record.archived and (route.method, route.template) != ("DELETE", REPO):
            raise Refusal("gh-archived")
        return record

    def _moved(self, request: Request, record: RepoRecord) -> Refusal:
        rest = self._path(request)[0].split("/", 4)[4:]
        place = "/".join([f"{request.origin}{self.prefix}/repositories/{record.id}", *rest])
        query = f"?{urlencode(request.query)}" if request.query else ""
        fact = "gh-moved-read" if request.method in _READS else "gh-moved-write"
        return Refusal(fact, headers={"Location": place + query})

    def _path(self, request: Request) -> tuple[str, bool]:
        """The path below the API's root, and whether it names the repository by its id."""
        if request.path == self.prefix.removesuffix("/v3") + GRAPHQL:
            return GRAPHQL, False
        path = request.path.removeprefix(self.prefix) if request.path.startswith(self.prefix + "/") else ""
        by_id = re.match(r"/repositories/(\d{1,15})(?=/|\Z)", path)
        if by_id is None:
            return path, False
        try:
            name = self.forge.repo_by_id(int(by_id[1])).path
        except NotFoundError:
            name = "-/-"  # no repository has this path
        return f"/repos/{name}{path[by_id.end() :]}", True

    def _accepts(self, token: str) -> bool:
        """Whether Git may use a token: the user's own, or one of an installation."""
        return secrets.compare_digest(token.encode(), self.token.encode()) or self.account_of(token) is not None

    def _caller(self, token: str | None) -> Caller:
        if token is None:
            return Caller("anonymous")
        if secrets.compare_digest(token.encode(), self.token.encode()):
            return Caller("user", self.login)
        if (account := self.account_of(token)) is not None:
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
        if expires > now + 660:  # ten minutes, and one minute for clock skew
            raise Refusal("gh-jwt-lifetime")
        return Caller("app")


def _matches(request: Request, etag: str) -> bool:
    """Whether ``If-None-Match`` names the ETag. The comparison is weak (RFC 9110, 13.1.2)."""
    given = re.findall(r'"[^"]*"', request.headers.get("if-none-match", ""))
    return etag.removeprefix("W/") in given or request.headers.get("if-none-match") == "*"


def _token(request: Request) -> str | None:
    if (basic := git_http.password(request)) is not None:
        return basic
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() in ("token", "bearer") else None


def _fields(request: Request) -> Mapping[str, Any]:
    """The body's fields, for the text of a refusal."""
    try:
        body = request.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
