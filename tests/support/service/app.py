"""An example backend service: projects from a template, changes, merges. It never learns which host is behind it.

``create_app`` takes the provider; nothing else in this file depends on a host. Under uvicorn, with worker processes::

    SERVICE_PROVIDER=local GITPROVIDER_ROOT=/srv/forge SERVICE_STORE=/srv/lost \\
        uvicorn --factory tests.support.service.app:from_environment --workers 2
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

import gitprovider
from gitprovider import GitProviderError, Intent, Outcome, PutFile, errors
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


class LostAnswers:
    """The intents of calls whose answer was lost, a file each, so that every worker process can be asked."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def keep(self, intent: Intent) -> str:
        key = uuid.uuid4().hex
        (self._folder / key).write_text(json.dumps(intent.to_json()))
        return key

    def find(self, key: uuid.UUID) -> Intent:
        try:
            return Intent.from_json(json.loads((self._folder / key.hex).read_text()))
        except FileNotFoundError:
            raise HTTPException(404, "no such call") from None


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


def create_app(provider: Provider, lost: LostAnswers) -> FastAPI:
    """The service over ``provider``, which it closes at its end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncGitProvider(provider) as app.state.provider:
            yield

    app = FastAPI(lifespan=lifespan)
    app.add_exception_handler(GitProviderError, _answer_to(lost))

    @app.post("/projects", status_code=201)
    async def create_project(new: NewProject, git: Injected) -> dict[str, Any]:
        repo = await git.create_repo(new.path, description=new.description)
        files = [
            PutFile(path=path, content=content, executable=path.endswith(".sh")) for path, content in TEMPLATE.items()
        ]
        commit = await git.commit_files(repo.path, repo.default_branch, files, message="Start from the template")
        await git.create_branch(repo.path, "develop", source=commit.sha)
        return {"path": repo.path, "head": commit.sha}

    @app.get("/projects/{path:path}/branches")
    async def branches(path: str, git: Injected) -> dict[str, str]:
        return {branch.name: branch.sha for branch in await git.list_branches(path)}

    @app.post("/projects/{path:path}/changes", status_code=201)
    async def open_change(path: str, new: NewChange, git: Injected) -> dict[str, Any]:
        repo = await git.get_repo(path)
        await git.create_branch(path, new.branch, source=repo.default_branch)
        file = PutFile(path=new.path, content=new.content)
        commit = await git.commit_files(path, new.branch, [file], message=new.title)
        change = await git.open_pull_request(
            path, source_branch=new.branch, target_branch=repo.default_branch, title=new.title
        )
        return {"number": change.number, "head": commit.sha}

    @app.post("/projects/{path:path}/changes/{number}/merge")
    async def merge_change(path: str, number: int, head: str, git: Injected) -> dict[str, Any]:
        merged = await git.merge_pull_request(path, number, expected_head=head)
        return {"sha": merged.sha, "already_merged": merged.already_merged}

    @app.get("/calls/{key}")
    def ask_again(key: uuid.UUID) -> JSONResponse:
        inspectable: InspectableProvider = provider
        found = gitprovider.resolve(inspectable, lost.find(key))
        undecided = found.verdict.value == "undecided"
        return JSONResponse(found.to_json(), status_code=202 if undecided else 200)

    return app


def _answer_to(lost: LostAnswers) -> Any:
    async def answer(request: Request, error: GitProviderError) -> JSONResponse:
        body: dict[str, Any] = {
            "error": type(error).__name__,
            "message": error.message,
            "outcome": error.outcome,
            "hint": error.hint,
        }
        headers = {}
        if error.retry_after is not None:
            headers["Retry-After"] = str(math.ceil(error.retry_after))
        if error.outcome is Outcome.UNKNOWN and error.intent is not None:
            link = str(request.url_for("ask_again", key=lost.keep(error.intent)))
            return JSONResponse({**body, "ask": link}, status_code=202, headers={**headers, "Location": link})
        if error.outcome is Outcome.PARTIAL:
            body["completed"] = [step.name for step in error.completed]
        status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
        return JSONResponse(body, status_code=status, headers=headers)

    return answer


def from_environment() -> FastAPI:
    """What a worker process runs: the provider's name, and everything else, comes from the environment."""
    settle = os.environ.get("SERVICE_SETTLE")
    provider = connect(os.environ["SERVICE_PROVIDER"], settle=float(settle) if settle else None)
    return create_app(provider, LostAnswers(pathlib.Path(os.environ["SERVICE_STORE"])))
