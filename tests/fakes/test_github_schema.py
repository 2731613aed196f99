"""The GitHub fake against GitHub's published schema, over a scenario that calls every endpoint."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import responses

from gitprovider.fakes.github.routes import GRAPHQL, ROUTES
from gitprovider.fakes.github.rulesets import KEY as RULESETS
from gitprovider.fakes.github.server import App, FakeGitHub
from gitprovider.fakes.mount import mount
from gitprovider.github import GitHubProvider
from gitprovider.local.forge import Forge
from gitprovider.models import (
    Author,
    BranchProtection,
    DeleteFile,
    FileChange,
    MergeMethod,
    MoveFile,
    PutFile,
    Visibility,
)
from tests.support.github_hand import PROTECTION, REVIEWS, Hand, claim, encoded
from tests.support.github_schema import SCHEMAS, SchemaHost

R = "/repos/acme/widgets"


def play(hub: Hand, app: Hand) -> None:
    """Every endpoint once with success, and the usual refusals."""
    for path in ("/user", "/users/acme", "/users/hubot", "/orgs/acme", "/nonsense", "/orgs/nobody"):
        hub.get(path)
    app.get("/orgs/acme/installation")
    app.get("/users/octocat/installation")
    app.send("POST", "/app/installations/101/access_tokens", {})
    hub.send("POST", "/user/repos", {"name": "own", "private": True, "description": "Mine", "auto_init": True})
    hub.send("DELETE", "/repos/octocat/own")
    hub.get("/repos/octocat/own")
    for _ in range(2):
        body = {"name": "gadgets", "visibility": "private", "description": "", "auto_init": False}
        hub.send("POST", "/orgs/acme/repos", body)
    hub.get("/repos/acme/gadgets/git/ref/heads/main")
    first = {"message": "Begin", "content": encoded(b"hi"), "branch": "main"}
    hub.send("PUT", "/repos/acme/gadgets/contents/a", {**first, "author": {"name": "A", "email": "a@example.com"}})
    hub.send("POST", "/user/repos", {})
    branches_and_objects(hub)
    protection(hub)
    pulls(hub)
    hub.fake.forge.rename_repo("acme/gadgets", "acme/gizmos")
    hub.send("POST", "/repos/acme/gadgets/git/refs", {"ref": "refs/heads/x", "sha": "0" * 40})


def branches_and_objects(hub: Hand) -> None:
    sha = hub.head("acme/widgets", "main")
    hub.branch("acme/widgets", "topic", sha)
    hub.branch("acme/widgets", "topic", sha)
    hub.branch("acme/widgets", "gone", sha)
    hub.send("DELETE", f"{R}/git/refs/heads/gone")
    hub.send("DELETE", f"{R}/git/refs/heads/gone")
    blob = hub.send("POST", f"{R}/git/blobs", {"content": encoded(b"\xff"), "encoding": "base64"})["sha"]
    hub.get(f"{R}/git/blobs/{blob}")
    hub.commit("acme/widgets", "topic", {"a/b.txt": "text\n", "README.md": None})
    hub.send("PATCH", f"{R}/git/refs/heads/topic", {"sha": sha, "force": False})
    body = {"message": "m", "tree": hub.get(f"{R}/git/commits/{sha}")["tree"]["sha"], "parents": [sha]}
    person = {"name": "A", "email": "a@example.com"}
    hub.send("POST", f"{R}/git/commits", {**body, "author": person, "committer": person})
    for path in (
        "",
        "/branches",
        "/branches/main",
        "/branches/none",
        "/git/refs/heads/main",
        "/git/matching-refs/heads/",
        "/git/trees/topic?recursive=1",
        "/commits/topic",
        "/compare/main...topic",
    ):
        hub.get(R + path)


def protection(hub: Hand) -> None:
    url = f"{R}/branches/main/protection"
    hub.get(url)
    people = {"users": ["hubot"], "teams": ["core"], "apps": ["robot"]}
    body: dict[str, Any] = {
        **PROTECTION,
        "required_status_checks": {"strict": False, "checks": [{"context": "ci", "app_id": -1}]},
        "required_pull_request_reviews": {
            **REVIEWS,
            "dismissal_restrictions": people,
            "bypass_pull_request_allowances": people,
        },
        "restrictions": people,
    }
    hub.send("PUT", url, body)
    hub.get(url)
    hub.get(f"{R}/branches/main")
    hub.send("PUT", url, {})
    hub.send("POST", f"{url}/required_signatures")
    hub.send("DELETE", url)
    hub.send("POST", f"{url}/required_signatures")
    kinds = [{"type": "creation"}, {"type": "deletion"}, {"type": "non_fast_forward"}, {"type": "required_signatures"}]
    hub.fake.forge.update_repo("acme/widgets", settings={RULESETS: [{"pattern": "release/*", "rules": kinds}]})
    hub.get(f"{R}/rules/branches/release/1")


def pulls(hub: Hand) -> None:
    body = {"title": "T", "head": "topic", "base": "main", "body": "B", "draft": False}
    hub.send("POST", f"{R}/pulls", body)
    hub.send("POST", f"{R}/pulls", body)
    hub.send("POST", f"{R}/pulls", {**body, "head": "none"})
    hub.send("POST", f"{R}/issues/1/labels", {"labels": ["bug"]})
    hub.send("POST", f"{R}/issues/1/labels", ["new"])
    for name in ("hubot", "octocat"):
        hub.send("POST", f"{R}/pulls/1/requested_reviewers", {"reviewers": [name]})
    hub.get(f"{R}/pulls/1")
    hub.get(f"{R}/pulls?state=all&head=acme:topic&base=main")
    sha = hub.head("acme/widgets", "topic")
    merge = {"merge_method": "squash", "commit_title": "T", "commit_message": "M"}
    hub.send("PUT", f"{R}/pulls/1/merge", {**merge, "sha": "1" * 40})
    hub.send("PUT", f"{R}/pulls/1/merge", {**merge, "sha": sha})
    hub.get(f"{R}/pulls/1")
    hub.get(f"{R}/pulls/2")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> SchemaHost:
    """The play, played once: the schema's models take a second to load."""
    forge = Forge(tmp_path_factory.mktemp("forge"), combine=FakeGitHub.combine)
    forge.create_repo("acme/widgets", auto_init=True)
    fake = FakeGitHub(forge, app=App(installations={101: "acme", 102: "octocat"}))
    host = SchemaHost(fake)
    jwt = claim(1, datetime.now(UTC) + timedelta(minutes=5))
    play(Hand(fake, via=host), Hand(fake, token=jwt, via=host))
    return host


def test_every_exchange_fits_the_published_schema(played: SchemaHost) -> None:
    """No key too many, none missing, none of another type, in requests and responses, refusals included."""
    assert sorted(set(played.problems)) == []


def test_every_endpoint_has_been_held_against_its_schema(played: SchemaHost) -> None:
    """A new endpoint without a schema, or one that never returned success, is missing here."""
    rest = {(route.method, route.template) for route in ROUTES.table if route.template != GRAPHQL}
    assert rest == set(SCHEMAS) == played.covered


def test_no_disagreement_is_listed_in_vain(played: SchemaHost) -> None:
    """Once the schema or the fake has changed, its line goes."""
    assert sorted(played.unused) == []


def test_what_the_provider_sends_fits_the_published_schema(tmp_path: Path) -> None:
    """All eight operations with every option, into an empty repository and beyond: each request is one of GitHub's."""
    fake = FakeGitHub(Forge(tmp_path, combine=FakeGitHub.combine))
    host = SchemaHost(fake)
    rules = BranchProtection(required_approvals=1, required_checks=("ci",), require_linear_history=True)
    changes = [PutFile(path="a.bin", content=b"\xff"), PutFile(path="b.sh", content="x", executable=True)]
    with responses.RequestsMock() as mocked, GitHubProvider(fake.token, commit_api="git-data") as provider:
        mount(host, mocked, fake.base)
        for visibility in (Visibility.PRIVATE, Visibility.PUBLIC):
            provider.create_repo(f"acme/{visibility}", description="D", visibility=visibility)
            provider.create_repo(f"octocat/{visibility}", description="D", visibility=visibility, auto_init=True)
        repo = provider.get_repo("acme/private").path
        provider.commit_files(repo, "main", changes, message="Begin")
        provider.create_branch(repo, "topic", source="main")
        author = Author(name="A", email="a@example.com")
        more: list[FileChange] = [
            MoveFile(path="a.bin", to="c/a.bin"),
            DeleteFile(path="b.sh"),
            PutFile(path="d", content=b"\xfe"),
        ]
        provider.commit_files(repo, "topic", more, message="More", author=author)
        provider.protect_branch(repo, "main", rules)
        provider.protect_branch(repo, "main", BranchProtection(required_approvals=2, enforce_admins=False))
        pull = provider.open_pull_request(
            repo,
            source_branch="topic",
            target_branch="main",
            title="T",
            description="D",
            draft=False,
            labels=["bug"],
            reviewers=["hubot"],
        )
        provider.merge_pull_request(
            repo, pull.number, method=MergeMethod.SQUASH, message="M", delete_source_branch=True
        )
        branches = provider.list_branches(repo)

    assert sorted(set(host.problems)) == []
    assert [branch.name for branch in branches] == ["main"]
