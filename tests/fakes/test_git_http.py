"""Git itself clones from a served fake and pushes to it."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from gitprovider import BranchProtection, Visibility
from gitprovider.fakes.faults import FaultyHost
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.serve import serving
from gitprovider.local.forge import Forge
from tests.support.hosts import Kind, provider_of
from tests.support.local_forge import git

REPO = "acme/widgets"
AS_GIT = ("-c", "user.name=git", "-c", "user.email=git@example.org")
Served = tuple[Any, Kind, str]  # the host behind a fault script, its kind and its URL
FAKES: dict[str, Any] = {"github": FakeGitHub, "gitlab": FakeGitLab}


@pytest.fixture(params=sorted(FAKES))
def served(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Served]:
    make = FAKES[request.param]
    fake = make(Forge(tmp_path / "forge", combine=make.combine))
    fake.forge.create_repo(REPO, auto_init=True)
    host = FaultyHost(fake)
    with serving(host) as url:
        yield host, request.param, url


def _clone_url(host: Any, kind: Kind, url: str) -> str:
    places = {"github": f"/repos/{REPO}", "gitlab": f"/api/v4/projects/{REPO.replace('/', '%2F')}"}
    keys = {"github": "clone_url", "gitlab": "http_url_to_repo"}
    headers = {"Authorization": f"Bearer {host.fake.token}"}
    found: str = requests.get(url + places[kind], headers=headers, timeout=30).json()[keys[kind]]
    return found


def test_a_clone_pushes_a_branch_and_pulls(served: Served, tmp_path: pathlib.Path) -> None:
    """If it fails, clone_url of a served fake leads nowhere, or a push is lost, or the request log misses it."""
    host, kind, url = served
    plain = _clone_url(host, kind, url)
    assert plain.startswith(f"{url}/")
    place = plain.replace("://", f"://x-access-token:{host.fake.token}@")
    forge = host.fake.forge

    git(tmp_path, "clone", "-q", place, "clone")
    clone = tmp_path / "clone"
    (clone / "new.txt").write_text("new\n")
    git(clone, "add", ".")
    git(clone, *AS_GIT, "commit", "-q", "-m", "new")
    git(clone, "push", "-q", "origin", "HEAD:topic")
    assert forge.head(REPO, "topic") == git(clone, "rev-parse", "HEAD").strip()

    with provider_of(kind, host.fake.token, url) as provider:
        opened = provider.open_pull_request(REPO, source_branch="topic", target_branch="main", title="New")
        provider.merge_pull_request(REPO, opened.number)
    git(clone, "pull", "-q", "origin", "main")

    assert git(clone, "rev-parse", "HEAD") == forge.head(REPO, "main")
    assert forge.contains(REPO, forge.head(REPO, "topic"), "main")
    pushes = [one for one in host.request_log.entries if one.endpoint.endswith("/git-receive-pack")]
    assert [(one.status, one.effect) for one in pushes] == [(200, True)]


def test_a_push_to_a_protected_branch_is_refused(served: Served, tmp_path: pathlib.Path) -> None:
    """If it fails, Git goes around the protection of a branch."""
    host, kind, url = served
    forge = host.fake.forge
    forge.put_rule(REPO, "main", BranchProtection())
    place = _clone_url(host, kind, url).replace("://", f"://oauth2:{host.fake.token}@")
    git(tmp_path, "clone", "-q", place, "clone")
    head = forge.head(REPO, "main")
    git(tmp_path / "clone", *AS_GIT, "commit", "-q", "--allow-empty", "-m", "new")

    with pytest.raises(AssertionError, match="declined"):
        git(tmp_path / "clone", "push", "-q", "origin", "HEAD:main")
    assert forge.head(REPO, "main") == head


@pytest.mark.parametrize(
    ("path", "service", "auth", "status"),
    [
        ("private", "git-upload-pack", None, 401),
        ("private", "git-upload-pack", "wrong", 401),
        ("private", "git-upload-pack", "right", 200),
        ("absent", "git-upload-pack", None, 401),
        ("absent", "git-upload-pack", "right", 404),
        ("public", "git-upload-pack", None, 200),
        ("public", "git-receive-pack", None, 401),
        ("public", "git-receive-pack", "right", 200),
    ],
)
def test_who_may_clone_and_push(served: Served, path: str, service: str, auth: str | None, status: int) -> None:
    """If it fails, a private repository is open to everybody, or a public one is closed."""
    host, _, url = served
    for name in ("public", "private"):
        host.fake.forge.create_repo(f"acme/{name}", visibility=Visibility(name))
    token = {"right": host.fake.token, "wrong": "wrong"}.get(auth or "")

    response = requests.get(
        f"{url}/acme/{path}.git/info/refs?service={service}", auth=("x", token) if token else None, timeout=30
    )

    assert response.status_code == status
    assert ("WWW-Authenticate" in response.headers) == (status == 401)
