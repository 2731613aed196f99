"""Injection: a plain constructor argument, and FastAPI's ``Depends`` with an override in a fixture."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from fastapi.testclient import TestClient

from examples.service.app import create_app, provider_of
from gitprovider import GitProviderContract, PutFile, SqliteIntentStore
from gitprovider.aio import AsyncGitProvider
from gitprovider.local import LocalProvider


@dataclass(frozen=True)
class Publisher:
    """A class of a backend that publishes a page, on whatever host it was handed."""

    git: GitProviderContract

    def publish(self, repo: str, page: str) -> str:
        branch = self.git.get_repo(repo).default_branch
        return self.git.commit_files(repo, branch, [PutFile(path="index.html", content=page)], message="Publish").sha


def test_a_constructor_argument_is_all_it_takes(tmp_path: pathlib.Path) -> None:
    """The class names the contract; the test hands it the local provider."""
    with LocalProvider(tmp_path) as provider:
        provider.create_repo("acme/site")

        sha = Publisher(provider).publish("acme/site", "<h1>Hello</h1>")

        assert provider.head("acme/site", "main") == sha


@pytest.fixture
def client(tmp_path: pathlib.Path) -> Iterator[TestClient]:
    """The app with its provider swapped for a local one, as a test of a service does it."""
    app = create_app(LocalProvider(tmp_path / "unused"), SqliteIntentStore(tmp_path / "calls"))
    swapped = AsyncGitProvider(LocalProvider(tmp_path / "swapped"))
    app.dependency_overrides[provider_of] = lambda: swapped
    with TestClient(app) as client:
        yield client


def test_a_dependency_is_overridden(client: TestClient, tmp_path: pathlib.Path) -> None:
    """The override serves the request, and the app's own provider sees nothing of it."""
    made = client.post("/projects", json={"path": "acme/shop"})

    assert made.status_code == 201
    with LocalProvider(tmp_path / "swapped") as swapped, LocalProvider(tmp_path / "unused") as unused:
        assert swapped.head("acme/shop", "develop") == made.json()["head"]
        assert unused.forge.repos() == []
