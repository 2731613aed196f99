"""Onboard many repositories from one manifest: durable workflows of `ensure_` steps on DBOS.

`python fleet.py submit manifest.json` enqueues one workflow for each repository. `python fleet.py work` runs them, on
as many machines as you like, until none is left. README.md says what is promised.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID

import gitprovider as gp

STATE = Path(os.environ.get("FLEET_STATE", ".fleet"))
DATABASE = os.environ.get("FLEET_DATABASE", f"sqlite:///{STATE}/fleet.sqlite")  # or postgresql://…
EXECUTOR = os.environ.get("FLEET_EXECUTOR", socket.gethostname())  # a dead worker's jobs wait for this name
VERSION = "1"  # change it with the workflow: jobs of another version are left alone
QUEUE = "onboard"


def throttle() -> gp.Throttle:
    """The limit of one credential: shared by all machines through Redis, or by this process' threads."""
    if not (url := os.environ.get("FLEET_REDIS")):
        return gp.HostBudget()
    import redis

    from gitprovider.redis import RedisBudget

    return RedisBudget(redis.Redis.from_url(url, socket_timeout=5), owner=os.environ.get("FLEET_OWNER", ""))


def provider() -> gp.InspectableProvider:
    """One provider for all threads. It waits for the shared limit, and its intents outlive the process."""
    return gp.connect(
        os.environ.get("GITPROVIDER_PROVIDER", "github"),
        intents=gp.SqliteIntentStore(STATE / f"intents-{EXECUTOR}.sqlite"),
        retry=gp.RetryOptions(max_total_wait=4_000, max_retry_after=4_000),
        throttle=throttle(),
        settle=float(os.environ["FLEET_SETTLE"]) if "FLEET_SETTLE" in os.environ else None,
    )


def worth_another_try(error: BaseException) -> Any:
    """A lost answer is looked up by the next try, under the step's key, before anything is sent."""
    return isinstance(error, gp.GitProviderError) and (error.transient or error.outcome is not gp.Outcome.NOT_APPLIED)


again = {"retries_allowed": True, "max_attempts": 10, "backoff_rate": 1.0, "should_retry": worth_another_try}
host: gp.InspectableProvider


@DBOS.step(**again)
def make_repository(repo: str, description: str) -> str:
    return gp.ensure_repo(host, repo, description=description, key=f"{repo}:create_repo").value.path


@DBOS.step(**again)
def commit_files(repo: str, files: dict[str, str]) -> str:
    changes = [gp.PutFile(path=path, content=content) for path, content in files.items()]
    return gp.ensure_files(host, repo, "main", changes, message="Begin", key=f"{repo}:commit_files").value.sha


@DBOS.step(**again)
def make_branch(repo: str, source: str) -> str:
    return gp.ensure_branch(host, repo, "develop", source=source, key=f"{repo}:create_branch").value.sha


@DBOS.step(**again)
def protect(repo: str) -> None:
    gp.ensure_protection(host, repo, "main", gp.BranchProtection(), key=f"{repo}:protect_branch")


@DBOS.workflow()
def onboard(repo: str, description: str, files: dict[str, str]) -> str:
    """Each step is remembered. A workflow that is run again begins with the first step that did not end."""
    made = make_repository(repo, description)
    make_branch(repo, commit_files(repo, files))
    protect(repo)
    return made


def submit(manifest: Path) -> None:
    for job in json.loads(manifest.read_text(encoding="utf-8")):
        with SetWorkflowID(f"onboard:{job['repo']}"):  # a repository is onboarded once, however often it is submitted
            DBOS.enqueue_workflow(QUEUE, onboard, job["repo"], job.get("description", ""), job["files"])


def work() -> None:
    while DBOS.list_workflows(status=["ENQUEUED", "PENDING"], limit=1, load_input=False, load_output=False):
        time.sleep(0.5)
    if failed := DBOS.list_workflows(status=["ERROR", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"], load_output=False):
        sys.exit("".join(f"failed: {one.workflow_id}\n" for one in failed) + "see README.md for how to resume them")


if __name__ == "__main__":
    STATE.mkdir(parents=True, exist_ok=True)
    DBOS(
        config={
            "name": "fleet",
            "system_database_url": DATABASE,
            "application_version": VERSION,
            "executor_id": EXECUTOR,
            "log_level": "WARNING",
        }
    )
    submitting = sys.argv[1:2] == ["submit"]
    host = provider()
    DBOS.listen_queues([] if submitting else [QUEUE])
    DBOS.launch()
    DBOS.register_queue(QUEUE, worker_concurrency=int(os.environ.get("FLEET_WORKERS", "4")), polling_interval_sec=0.2)
    submit(Path(sys.argv[2])) if submitting else work()
    DBOS.destroy()
