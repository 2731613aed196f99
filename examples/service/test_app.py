"""The service, when the host loses an answer or refuses a request: how a service over gitprovider is tested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from examples.service.app import create_app
from gitprovider import SqliteIntentStore
from gitprovider.testing.fakes import GitHubFake, GitLabFake

pytest_plugins = ["gitprovider.testing.fakes"]


@pytest.fixture(params=["fake_github", "fake_gitlab"])
def host(request: pytest.FixtureRequest) -> GitHubFake | GitLabFake:
    fake: GitHubFake | GitLabFake = request.getfixturevalue(request.param)
    return fake


@pytest.fixture
def client(host: GitHubFake | GitLabFake, tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(create_app(host.provider(), SqliteIntentStore(tmp_path / "calls"))) as client:
        yield client


@pytest.mark.parametrize("applied", [True, False])
def test_a_lost_merge_is_looked_up_and_not_repeated(
    host: GitHubFake | GitLabFake, client: TestClient, applied: bool
) -> None:
    """A client would be told that a merge failed although it took effect, or the merge would be sent twice."""
    client.post("/projects", json={"path": "acme/shop"})
    change = client.post(
        "/projects/acme/shop/changes",
        json={"branch": "cart", "path": "cart.txt", "content": "empty\n", "title": "Add a cart"},
    ).json()
    host.lose_answer("merge_pull_request", applied=applied)

    lost = client.post(f"/projects/acme/shop/changes/{change['number']}/merge", params={"head": change["head"]})
    found = client.get(lost.headers["Location"])

    assert (lost.status_code, lost.json()["outcome"]) == (202, "unknown")
    assert found.json()["verdict"] == ("applied" if applied else "not_applied")
    assert len(host.sent("merge_pull_request")) == 1


def test_a_rate_limit_is_passed_on_with_its_wait(host: GitHubFake | GitLabFake, client: TestClient) -> None:
    """The service's client would not know how long to wait, and would repeat its call at once."""
    host.rate_limit("create_repo", retry_after=17)

    refused = client.post("/projects", json={"path": "acme/shop"})

    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "17")
