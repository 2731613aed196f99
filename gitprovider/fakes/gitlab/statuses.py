"""Endpoints for the statuses of commits: https://docs.gitlab.com/api/commits/#commit-status .

A project keeps its statuses in its settings. The statuses of a commit are the jobs of one pipeline.
"""

from __future__ import annotations

from typing import Any

from gitprovider.fakes.gitlab import bodies, responses
from gitprovider.fakes.gitlab.call import Call
from gitprovider.fakes.gitlab.objects import resolve
from gitprovider.fakes.gitlab.responses import Refusal, invalid, reply
from gitprovider.fakes.http import Response
from gitprovider.local.database import RepoRecord
from gitprovider.local.git import opened

_CHECKS = {
    "pending": "pending",
    "running": "pending",
    "success": "success",
    "failed": "failure",
    "canceled": "failure",
    "skipped": "failure",
}
_ACTIVE = ("pending", "running")
# The pipeline has the first of these that one of its jobs has.
_ORDER = ("running", "pending", "failed", "canceled", "success", "skipped")


def set_status(call: Call, project: str, sha: str) -> Response:
    """Set a status of a commit. One that has ended stays, and the next of its name takes its place."""
    record = call.writable(project)
    [_] = call.require("state")
    state = call.choice("state", tuple(_CHECKS))
    sha = _commit(call, record, sha)
    name = call.text("name") or call.text("context") or "default"
    ref = call.text("ref") or _first_branch(call, record, sha)
    every = list(record.settings.get("statuses", []))
    jobs = [one for one in every if one["sha"] == sha]
    found = next((one for one in jobs if (one["name"], one["ref"]) == (name, ref) and one["status"] in _ACTIVE), None)
    if found is not None:
        _check_change(found["status"], state)
        every.remove(found)
    now = bodies.moment(call.state.now())
    status = {
        **(found or _new(call, record, sha, pipeline=jobs[0]["pipeline_id"] if jobs else call.state.next_id())),
        "name": name,
        "ref": ref,
        "status": state,
        "finished_at": None if state in _ACTIVE else now,
    }
    if state == "running":
        status["started_at"] = now
    for field in ("target_url", "description"):
        if call.params.get(field) is not None:
            status[field] = call.text(field)
    if call.params.get("coverage") is not None:
        status["coverage"] = _number("coverage", call.text("coverage"))
    call.forge.update_repo(record.path, settings={"statuses": [*every, status]})
    call.forge.set_check(record.path, sha, name, _CHECKS[state])
    return reply(status, "gl-status-set", status=201, effect=True)


def _commit(call: Call, record: RepoRecord, ref: str) -> str:
    with opened(record.git_dir, record.path) as repository:
        found = resolve(repository, record, ref)
    if found is None:
        raise responses.missing("Commit", "gl-commit-missing")
    return str(found.id)


def _first_branch(call: Call, record: RepoRecord, sha: str) -> str:
    for name, _ in call.forge.branches(record.path):
        if call.forge.contains(record.path, sha, name):
            return name
    raise responses.missing("References for commit", "gl-status-ref-missing")


def _check_change(before: str, after: str) -> None:
    """A state changes forward only. The same state again is refused."""
    event = {"pending": "enqueue", "running": "run"}.get(after)
    if event is None or (before, after) == ("pending", "running"):
        return
    reason = f'Status cannot transition via "{event}"'
    raise Refusal(400, f"Cannot transition status via :{event} from :{before} (Reason(s): {reason})", "gl-status-same")


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise invalid(f"{name} is invalid") from None


def _new(call: Call, record: RepoRecord, sha: str, *, pipeline: int) -> dict[str, Any]:
    fake = call.state
    return {
        "id": fake.next_id(),
        "sha": sha,
        "target_url": None,
        "description": None,
        "coverage": None,
        "allow_failure": False,
        "created_at": bodies.moment(fake.now()),
        "started_at": None,
        "pipeline_id": pipeline,
        "author": bodies.user(call.site, fake.acting, fake.user_id(fake.acting)),
    }


def list_statuses(call: Call, project: str, sha: str) -> Response:
    """The statuses of a commit by number: the last of each name, or with ``all`` every one."""
    record = call.project(project)
    sha = _commit(call, record, sha)
    call.only("name", "ref", "all")
    shown = _jobs(record, sha, every=bool(call.flag("all")))
    wanted = {name: call.text(name) for name in ("name", "ref") if call.text(name)}
    found = [one for one in shown if wanted.items() <= one.items()]
    return call.page(sorted(found, key=lambda one: one["id"]), "gl-statuses", id=record.id)


def _jobs(record: RepoRecord, sha: str, *, every: bool = False) -> list[dict[str, Any]]:
    jobs = [one for one in record.settings.get("statuses", []) if one["sha"] == sha]
    return jobs if every else list({(one["name"], one["ref"]): one for one in jobs}.values())


def pipeline(site: str, record: RepoRecord, sha: str) -> dict[str, Any] | None:
    """The pipeline that the statuses of a commit make, or None if it has none."""
    jobs = _jobs(record, sha)
    if not jobs:
        return None
    states = {one["status"] for one in jobs}
    number = jobs[0]["pipeline_id"]
    return {
        "id": number,
        "iid": number,
        "project_id": record.id,
        "sha": sha,
        "ref": jobs[0]["ref"],
        "status": next(state for state in _ORDER if state in states),
        "source": "external",
        "created_at": min(one["created_at"] for one in jobs),
        "updated_at": max(one["finished_at"] or one["started_at"] or one["created_at"] for one in jobs),
        "web_url": f"{site}/{record.path}/-/pipelines/{number}",
    }
