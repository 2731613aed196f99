"""A hand at the GitLab fake: sends requests as a client would, and reads what comes back."""

from __future__ import annotations

import json
import pathlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from gitprovider.fakes.faults import FaultyHost
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.http import Request
from gitprovider.local.forge import Forge

ORIGIN = "https://gitlab.example.com"
REPO = "acme/platform/widgets"


@dataclass(frozen=True)
class Said:
    """A response: its status, headers, JSON (or text), effect and fact."""

    status: int
    headers: dict[str, str]
    data: Any
    effect: bool
    fact: str

    @property
    def message(self) -> Any:
        """What the body says in words."""
        return self.data["message"]


class Hand:
    """Sends requests to a fake, with its token unless another header is given."""

    def __init__(self, fake: FakeGitLab) -> None:
        self.fake = fake
        self.forge = fake.forge
        self.host = FaultyHost(fake)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        origin: str = ORIGIN,
    ) -> Said:
        """One request; ``path`` is below the API unless it starts with ``//``, and is encoded already.

        A body of bytes is sent as it is. Another body is sent as JSON.
        """
        target = path[1:] if path.startswith("//") else f"{self.fake.prefix}/api/v4{path}"
        url = f"{origin}{target}" + (f"?{urlencode(query)}" if query else "")
        sent = {"PRIVATE-TOKEN": self.fake.token} if headers is None else headers
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        response = self.host.handle(Request.of(method, url, sent, data))
        try:
            parsed = json.loads(response.body) if response.body else None
        except ValueError:
            parsed = response.body.decode()
        return Said(response.status, dict(response.headers), parsed, response.effect, response.fact)

    def repo(self, method: str, rest: str, body: Any = None, **more: Any) -> Said:
        """One request below the project that most tests use."""
        return self.send(method, f"/projects/{quote(REPO, safe='')}{rest}", body, **more)

    def graphql(self, query: str, **variables: Any) -> Said:
        """One GraphQL request."""
        return self.send("POST", f"/{self.fake.prefix}/api/graphql", {"query": query, "variables": variables})

    # what is given

    def given_repo(self, files: dict[str, bytes] | None = None, *, path: str = REPO) -> str:
        """A project with one commit on main, made without the fake; its head."""
        self.forge.create_repo(path)
        return self.given_commit("main", {"README.md": b"hello\n"} if files is None else files, path=path)

    def given_commit(self, branch: str, files: dict[str, bytes], *, path: str = REPO) -> str:
        """One more commit on a branch, or its first; the commit's sha."""
        forge = self.forge
        head = dict(forge.branches(path)).get(branch)
        tree = forge.write_tree(
            path,
            forge.read_commit(path, head).tree if head else None,
            {name: (forge.write_blob(path, data), "100644") for name, data in files.items()},
        )
        sha = forge.write_commit(path, tree=tree, parents=[head] if head else [], message=f"change {branch}")
        if head is None:
            forge.create_branch(path, branch, sha)
        else:
            forge.move_branch(path, branch, sha, expected=head, bypass=True)
        return sha

    def given_feature(self, name: str = "feature", files: dict[str, bytes] | None = None) -> str:
        """A branch off main with one commit of its own; its head."""
        self.forge.create_branch(REPO, name, self.forge.head(REPO, "main"))
        return self.given_commit(name, files or {f"{name}.txt": b"new\n"})

    def given_merge_request_in_new_repo(self) -> int:
        """A project and an open merge request in it; its iid."""
        self.given_repo()
        return self.given_merge_request()

    def given_merge_request(self, source: str = "feature", **more: Any) -> int:
        """An open merge request into main; its iid."""
        self.given_feature(source)
        body = {"source_branch": source, "target_branch": "main", "title": "A change", **more}
        made = self.repo("POST", "/merge_requests", body)
        assert made.status == 201, made.data
        number: int = made.data["iid"]
        return number


def a_hand(root: pathlib.Path, **options: Any) -> Hand:
    """A hand at a new fake over a new forge."""
    return Hand(FakeGitLab(Forge(root / "forge", combine=FakeGitLab.combine), **options))
