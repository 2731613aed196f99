"""GitHub's API by hand: requests written out, and every response held against its fact."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.http import Host, Request, Response
from tests.support import facts

ORIGIN = "https://api.github.com"


class Hand:
    """Sends requests to a fake, ``via`` a host before it where one is given. ``last`` is the latest response."""

    def __init__(self, fake: FakeGitHub, token: str | None = None, via: Host | None = None) -> None:
        self.fake = fake
        self.host = fake if via is None else via
        self.token = fake.token if token is None else token
        self.seen: list[tuple[Request, Response]] = []

    @property
    def last(self) -> Response:
        return self.seen[-1][1]

    def send(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        """Send one request, and return the JSON of the response, None for an empty one."""
        given = {"User-Agent": "hand", **(headers or {})}
        if self.token:
            given["Authorization"] = f"token {self.token}"
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = Request.of(method, path if "://" in path else ORIGIN + path, given, data)
        response = self.host.handle(request)
        facts.check(response)
        self.seen.append((request, response))
        return json.loads(response.body) if response.body else None

    def get(self, path: str) -> Any:
        return self.send("GET", path)

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """Send one request, and return the status and the message of its refusal, which had no effect."""
        response = self.send(method, path, body)
        assert not self.last.effect
        return self.last.status, response["message"]

    def commit(
        self,
        repo: str,
        branch: str,
        files: Mapping[str, str | None],
        *,
        parent: str | None = None,
    ) -> str:
        """Commit files to a branch through the Git data API, and return the sha."""
        head = parent or self.get(f"/repos/{repo}/git/ref/heads/{branch}")["object"]["sha"]
        tree = self.get(f"/repos/{repo}/git/commits/{head}")["tree"]["sha"]
        entries = [
            {"path": path, "mode": "100644", "type": "blob", **({"sha": None} if text is None else {"content": text})}
            for path, text in files.items()
        ]
        made = self.send("POST", f"/repos/{repo}/git/trees", {"base_tree": tree, "tree": entries})
        body = {"message": "work", "tree": made["sha"], "parents": [head]}
        sha = self.send("POST", f"/repos/{repo}/git/commits", body)["sha"]
        self.send("PATCH", f"/repos/{repo}/git/refs/heads/{branch}", {"sha": sha, "force": False})
        return str(sha)

    def head(self, repo: str, branch: str) -> str:
        return str(self.get(f"/repos/{repo}/git/ref/heads/{branch}")["object"]["sha"])

    def branch(self, repo: str, name: str, sha: str) -> None:
        self.send("POST", f"/repos/{repo}/git/refs", {"ref": f"refs/heads/{name}", "sha": sha})

    def pull(self, repo: str, head: str, base: str = "main", **more: Any) -> int:
        body = {"title": "Add it", "head": head, "base": base, **more}
        return int(self.send("POST", f"/repos/{repo}/pulls", body)["number"])


def claim(app_id: int, expires: datetime) -> str:
    parts = [{"alg": "RS256"}, {"iss": str(app_id), "exp": int(expires.timestamp())}]
    return (
        ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + ".c2ln"
    )


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


PROTECTION: dict[str, Any] = {
    "required_status_checks": None,
    "enforce_admins": False,
    "required_pull_request_reviews": None,
    "restrictions": None,
    "required_linear_history": False,
    "allow_force_pushes": False,
    "allow_deletions": False,
    "block_creations": False,
    "required_conversation_resolution": False,
    "lock_branch": False,
    "allow_fork_syncing": False,
}
REVIEWS: dict[str, Any] = {
    "dismiss_stale_reviews": False,
    "require_code_owner_reviews": False,
    "required_approving_review_count": 0,
    "require_last_push_approval": False,
}
