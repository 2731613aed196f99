"""The fake GitLab server: authentication, limits and dispatch to the handlers."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

from gitprovider.errors import GitProviderError
from gitprovider.fakes import git_http
from gitprovider.fakes.gitlab import access, graphql, responses
from gitprovider.fakes.gitlab.call import Call
from gitprovider.fakes.gitlab.responses import Refusal
from gitprovider.fakes.gitlab.routes import NO_ROUTE, NOT_MODELLED, ROUTES
from gitprovider.fakes.gitlab.state import DEVELOPERS, GroupRule, State
from gitprovider.fakes.http import Request, Response, Route, not_modelled

__all__ = ["FakeGitLab", "GroupRule"]

API, GRAPHQL = "/api/v4", "/api/graphql"
# The JSON escape of NUL, but not an escaped backslash before the same letters.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


_GIT = git_http.Dialect(
    realm="GitLab",
    missing="The project you were looking for could not be found or you don't have permission to view it.",
    served_fact="gl-git-http",
    unauthorized_fact="gl-git-http-unauthorized",
    missing_fact="gl-git-http-missing",
)


class FakeGitLab(State):
    """A fake GitLab over a forge: the REST API and the part of GraphQL that a commit needs.

    Each response has the status, text and page headers of the real host, and names the recorded fact that it follows
    (``gitprovider/fakes/facts.jsonl``). Safe to call from many threads.
    """

    combine = staticmethod(access.most_permissive)

    def handle(self, request: Request) -> Response:
        """Handle one request."""
        with self.lock:
            self.request_count += 1
            access.protect_due(self)
            try:
                response = self._respond(request)
            except Refusal as refusal:
                response = refusal.response()
            except UnicodeEncodeError:
                response = responses.MALFORMED_TEXT
            except GitProviderError as error:
                response = responses.of_forge(error).response()
            return replace(response, headers={**self._headers(), **response.headers})

    def endpoint(self, request: Request) -> str:
        """The route's template as GitLab documents it, below ``/api/v4``, or ``""`` if no route matches."""
        path = request.path.removeprefix(self.prefix)
        if path == GRAPHQL:
            return GRAPHQL
        if git := git_http.endpoint(request):
            return git
        found = self._route(request.method, path)
        return found[0].template if found else ""

    def _route(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        if not path.startswith(API + "/"):
            return None
        inside = path.removeprefix(API)
        found = ROUTES.find(method, inside)
        return ROUTES.find("GET", inside) if found is None and method == "HEAD" else found

    def _respond(self, request: Request) -> Response:
        git = git_http.respond(
            self.forge,
            request,
            _GIT,
            lambda token: self.user_of(token) is not None and self.credential == "good",
            hidden=self.hidden,
            may_push=self.role >= DEVELOPERS,
        )
        if git is not None:
            return git
        if not request.path.startswith(f"{self.prefix}/api/"):
            return responses.FOREIGN_PAGE
        if "%00" in request.path or _NUL.search(request.body):
            return responses.MALFORMED_TEXT
        path = request.path.removeprefix(self.prefix)
        site = (self.external_url or request.origin + self.prefix).rstrip("/")
        if path == GRAPHQL and request.method == "POST":
            self._authenticate(request, graphql=True)
            return graphql.execute(Call(self, request, site))
        found = self._route(request.method, path)
        if found is None:
            return self._no_route(request, path)
        route, parts = found
        reads = request.method in ("GET", "HEAD")
        self._authenticate(request, is_open=reads and route.template.startswith(("/projects", "/groups")))
        response = route.handler(Call(self, request, site), **parts)
        return _conditional(request, response)

    def _no_route(self, request: Request, path: str) -> Response:
        """What GitLab itself says if it has no such endpoint, or 501 if only the fake has none."""
        found = {verb: self._route(verb, path) for verb in ("GET", "POST", "PUT", "PATCH", "DELETE")}
        templates = {verb: one[0].template for verb, one in found.items() if one is not None}
        if templates and not any((request.method, template) in NOT_MODELLED for template in templates.values()):
            allow = ", ".join(templates)
            raise Refusal(405, {"error": "405 Not Allowed"}, "gl-verb-missing", headers={"Allow": allow})
        if not templates and (not path.startswith(f"{API}/") or NO_ROUTE.match(path.removeprefix(API))):
            raise Refusal(404, {"error": "404 Not Found"}, "gl-route-missing")
        return not_modelled("FakeGitLab", request)

    def _authenticate(self, request: Request, *, graphql: bool = False, is_open: bool = False) -> None:
        """Find the user of the token. Without one, what is public may be read if the endpoint is open."""
        given = request.headers.get("private-token") or request.headers.get("authorization", "").removeprefix("Bearer ")
        self.acting = self.user_of(given) or ""
        if not self.acting:
            if not given and is_open:
                return
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
        limit, left = 2000, max(2000 - self.request_count, 1)
        number = f"01FACE{self.request_count:020d}"
        return {
            "X-Request-Id": number,
            "X-Gitlab-Meta": f'{{"correlation_id":"{number}","version":"1"}}',
            "RateLimit-Name": "throttle_authenticated_api",
            "RateLimit-Limit": str(limit),
            "RateLimit-Observed": str(limit - left),
            "RateLimit-Remaining": str(left),
            "RateLimit-Reset": str(int(self.now().timestamp()) // 60 * 60 + 60),
        }


def _conditional(request: Request, response: Response) -> Response:
    """Add the ETag of a JSON body, as Rack does. The same ETag in a read's ``If-None-Match`` makes it a 304."""
    if response.status not in (200, 201) or response.headers.get("Content-Type") != "application/json":
        return replace(response, body=b"") if request.method == "HEAD" else response
    etag = f'W/"{hashlib.sha256(response.body).hexdigest()[:32]}"'
    headers = {**response.headers, "ETag": etag}
    if request.method in ("GET", "HEAD"):
        headers["Cache-Control"] = "max-age=0, private, must-revalidate"
        if etag in re.split(r",\s*", request.headers.get("if-none-match", "")):
            del headers["Content-Type"]
            return Response(status=304, headers=headers, fact="gl-not-modified")
    if request.method == "HEAD":
        return replace(response, headers={**headers, "Content-Length": str(len(response.body))}, body=b"")
    return replace(response, headers=headers)
