"""An example backend service: projects from a template, changes, merges. It never learns which host is behind it.

``create_app`` takes the provider; nothing else in this file depends on a host. Under uvicorn, with worker processes::

    SERVICE_PROVIDER=local GITPROVIDER_ROOT=/srv/forge SERVICE_STORE=/srv/calls.sqlite3 \\
        uvicorn --factory app:from_environment --workers 2
"""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

import gitprovider
from gitprovider import (
    ConflictError,
    GitProviderError,
    Intent,
    IntentStore,
    Outcome,
    PutFile,
    SqliteIntentStore,
    errors,
    remembered,
)
from gitprovider.aio import AsyncGitProvider
from gitprovider.connect import Provider, connect
from gitprovider.contract import InspectableProvider

TEMPLATE = {"README.md": b"# From the template\n", "run.sh": b"#!/bin/sh\nexit 0\n"}

# Most specific class first; the first that fits decides.
STATUS: list[tuple[type[GitProviderError], int]] = [
    (errors.InvalidRequestError, 422),
    (errors.UnsupportedOptionError, 422),
    (errors.NotFoundError, 404),
    (errors.ConflictError, 409),
    (errors.AlreadyExistsError, 409),
    (errors.RepoMovedError, 410),
    (errors.PermissionDeniedError, 403),
    (errors.AuthenticationError, 502),  # the service's own credential, not its client's
    (errors.RateLimitedError, 503),
    (errors.ProviderUnavailableError, 503),
    (errors.UnexpectedResponseError, 502),
]


# The operations that an endpoint calls, each at most once.
OPERATIONS = ("create_repo", "commit_files", "create_branch", "open_pull_request", "merge_pull_request")


class Call:
    """A client's request, whose mutations are remembered until their results are known, also if the worker is killed.

    The client may choose the id, and then ask about a call that was never answered.
    """

    def __init__(self, request: Request, idempotency_key: Annotated[uuid.UUID | None, Header()] = None) -> None:
        self.id = request.state.call = idempotency_key or uuid.uuid4()
        self._store: IntentStore = request.app.state.store

    def mutation(self, operation: str) -> AbstractContextManager[object]:
        return remembered(self._store, f"{self.id}:{operation}")


def unresolved(store: IntentStore, call: uuid.UUID) -> Intent:
    """The mutation of the call whose result is not known."""
    for operation in OPERATIONS:
        if (intent := store.get(f"{call}:{operation}")) is not None:
            return intent
    raise HTTPException(404, "no such call is unresolved")


class NewProject(BaseModel):
    path: str
    description: str = ""


class NewChange(BaseModel):
    branch: str
    path: str
    content: str
    title: str


def provider_of(request: Request) -> AsyncGitProvider:
    """The injected provider; tests override this dependency, or pass another provider to ``create_app``."""
    provider: AsyncGitProvider = request.app.state.provider
    return provider


Injected = Annotated[AsyncGitProvider, Depends(provider_of)]


def create_app(provider: Provider, store: IntentStore) -> FastAPI:
    """The service over ``provider``, which it closes at its end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncGitProvider(provider) as app.state.provider:
            yield

    app = FastAPI(lifespan=lifespan)
    app.state.store = store
    app.add_exception_handler(GitProviderError, answer_to)

    @app.post("/projects", status_code=201)
    async def create_project(new: NewProject, git: Injected, call: Annotated[Call, Depends()]) -> dict[str, Any]:
        with call.mutation("create_repo"):
            repo = await git.create_repo(new.path, description=new.description)
        files = [
            PutFile(path=path, content=content, executable=path.endswith(".sh")) for path, content in TEMPLATE.items()
        ]
        with call.mutation("commit_files"):
            commit = await git.commit_files(repo.path, repo.default_branch, files, message="Start from the template")
        with call.mutation("create_branch"):
            await git.create_branch(repo.path, "develop", source=commit.sha)
        return {"path": repo.path, "head": commit.sha}

    @app.get("/projects/{path:path}/branches")
    async def branches(path: str, git: Injected) -> dict[str, str]:
        return {branch.name: branch.sha for branch in await git.list_branches(path)}

    @app.post("/projects/{path:path}/changes", status_code=201)
    async def open_change(path: str, new: NewChange, git: Injected, call: Annotated[Call, Depends()]) -> dict[str, Any]:
        repo = await git.get_repo(path)
        with call.mutation("create_branch"):
            await git.create_branch(path, new.branch, source=repo.default_branch)
        file = PutFile(path=new.path, content=new.content)
        with call.mutation("commit_files"):
            commit = await git.commit_files(path, new.branch, [file], message=new.title)
        with call.mutation("open_pull_request"):
            change = await git.open_pull_request(
                path, source_branch=new.branch, target_branch=repo.default_branch, title=new.title
            )
        return {"number": change.number, "head": commit.sha}

    @app.post("/projects/{path:path}/changes/{number}/merge")
    async def merge_change(
        path: str, number: int, head: str, git: Injected, call: Annotated[Call, Depends()]
    ) -> dict[str, Any]:
        with call.mutation("merge_pull_request"):
            merged = await git.merge_pull_request(path, number, expected_head=head)
        return {"sha": merged.sha, "already_merged": merged.already_merged}

    @app.get("/calls/{key}")
    def ask_again(key: uuid.UUID) -> JSONResponse:
        inspectable: InspectableProvider = provider
        try:
            intent = unresolved(store, key)
        except ConflictError as running:  # by another worker
            return JSONResponse({"verdict": "undecided", "detail": running.message}, status_code=202)
        found = gitprovider.resolve(inspectable, intent)
        undecided = found.verdict.value == "undecided"
        return JSONResponse(found.to_json(), status_code=202 if undecided else 200)

    return app


async def answer_to(request: Request, error: Exception) -> JSONResponse:
    """The response to a call that failed. If its result is not known, it has a link that finds out."""
    assert isinstance(error, GitProviderError)
    body: dict[str, Any] = {
        "error": type(error).__name__,
        "message": error.message,
        "outcome": error.outcome,
        "hint": error.hint,
    }
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(math.ceil(error.retry_after))
    if error.outcome is Outcome.UNKNOWN:
        link = str(request.url_for("ask_again", key=request.state.call))
        return JSONResponse({**body, "ask": link}, status_code=202, headers={**headers, "Location": link})
    if error.outcome is Outcome.PARTIAL:
        body["completed"] = [step.name for step in error.completed]
    status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
    return JSONResponse(body, status_code=status, headers=headers)


def from_environment() -> FastAPI:
    """What a worker process runs: the provider's name, and everything else, comes from the environment."""
    settle = os.environ.get("SERVICE_SETTLE")
    provider = connect(os.environ["SERVICE_PROVIDER"], settle=float(settle) if settle else None)
    return create_app(provider, SqliteIntentStore(os.environ["SERVICE_STORE"]))
