"""The example service over a socket, on all three providers: the swap is the provider's name."""

from __future__ import annotations

import asyncio
import pathlib
import threading
import uuid
from contextlib import suppress

import httpx
import pytest

from gitprovider.fakes.faults import Fault
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.http import Request, Response, TransportFault
from gitprovider.fakes.serve import serving
from gitprovider.local import Forge
from tests.support.hosts import given_project
from tests.support.service.load import load, sent_twice
from tests.support.service.running import Service, kill_workers, running


def test_a_project_is_made_changed_and_merged(service: Service) -> None:
    """The service's whole life runs unchanged on every provider, and ends in the same branches and files."""
    client = service.client

    made = client.post("/projects", json={"path": "acme/shop", "description": "A shop"})
    change = client.post(
        "/projects/acme/shop/changes",
        json={"branch": "feature/cart", "path": "cart.txt", "content": "empty\n", "title": "Add a cart"},
    )
    merged = client.post(
        f"/projects/acme/shop/changes/{change.json()['number']}/merge", params={"head": change.json()["head"]}
    )
    branches = client.get("/projects/acme/shop/branches")

    assert [answer.status_code for answer in (made, change, merged, branches)] == [201, 201, 200, 200]
    assert branches.json() == {
        "develop": made.json()["head"],
        "feature/cart": change.json()["head"],
        "main": merged.json()["sha"],
    }
    tree = service.behind.forge.read_tree("acme/shop", merged.json()["sha"])
    assert {path: entry.mode for path, entry in tree.items()} == {
        "README.md": "100644",
        "cart.txt": "100644",
        "run.sh": "100755",
    }


def test_errors_become_statuses(service: Service) -> None:
    """What the caller asked wrongly is 4xx, with the error's name, whatever host is behind."""
    client = service.client
    client.post("/projects", json={"path": "acme/taken"})

    again = client.post("/projects", json={"path": "acme/taken"})
    absent = client.get("/projects/acme/none/branches")
    wrong = client.post("/projects", json={"path": "no-namespace"})
    unknown = client.post("/projects/acme/taken/changes/1/merge", params={"head": "a" * 40})

    assert [(answer.status_code, answer.json()["error"]) for answer in (again, absent, wrong, unknown)] == [
        (409, "AlreadyExistsError"),
        (404, "NotFoundError"),
        (422, "InvalidRequestError"),
        (404, "NotFoundError"),
    ]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_answer_is_202_with_a_link_that_finds_out(remote: Service, when: str) -> None:
    """The connection breaks around the create: the service says that it does not know, and later that it does."""
    applied = when == "after"
    remote.behind.script.add(Fault(kind="reset", method="POST", when="after" if applied else "before"))

    lost = remote.client.post("/projects", json={"path": f"acme/lost-{when}"})
    found = remote.client.get(lost.headers["Location"])

    assert (lost.status_code, lost.json()["outcome"]) == (202, "unknown")
    assert (found.status_code, found.json()["verdict"]) == (200, "applied" if applied else "not_applied")
    assert len(remote.behind.request_log.mutations()) == 1


class Held:
    """A host that holds a merge, before or after it takes effect, until the test lets go of it. It never responds."""

    def __init__(self, fake: FakeGitHub, applied: bool) -> None:
        self._fake = fake
        self._applied = applied
        self.arrived, self.released = threading.Event(), threading.Event()
        self.merges = 0

    def handle(self, request: Request) -> Response:
        if not request.path.endswith("/merge"):
            return self._fake.handle(request)
        self.merges += 1
        if self._applied:
            self._fake.handle(request)
        self.arrived.set()
        self.released.wait(60)
        raise TransportFault("reset")


@pytest.mark.skipif(not pathlib.Path("/proc/self/task").exists(), reason="needs the list of a process's children")
@pytest.mark.parametrize("applied", [True, False])
def test_a_worker_killed_in_flight_leaves_a_link_that_answers(applied: bool, tmp_path: pathlib.Path) -> None:
    """After `kill -9` nobody could tell the client what became of its call."""
    forge = Forge(tmp_path / "forge", combine=FakeGitHub.combine)
    given_project(forge, "acme/widgets")
    held = Held(FakeGitHub(forge, token="t" * 20), applied)
    call, head = uuid.uuid4(), dict(forge.branches("acme/widgets"))["change"]
    supervisors: list[int] = []

    def merge(url: str) -> None:
        with suppress(httpx.HTTPError):
            httpx.post(
                f"{url}/projects/acme/widgets/changes/1/merge",
                params={"head": head},
                headers={"Idempotency-Key": str(call)},
                timeout=60,
            )

    with serving(held) as host:
        environment = {"SERVICE_PROVIDER": "github", "GITPROVIDER_URL": host, "GITPROVIDER_TOKEN": "t" * 20}
        environment["SERVICE_SETTLE"] = "0.001"
        with running(environment, tmp_path / "calls", supervisors=supervisors) as url:
            client = threading.Thread(target=merge, args=(url,))
            client.start()
            assert held.arrived.wait(60)
            meanwhile = httpx.get(f"{url}/calls/{call}", timeout=60)
            kill_workers(supervisors[0])
            client.join()
            held.released.set()
            answers = [httpx.get(f"{url}/calls/{call}", timeout=60) for _ in range(3)]
            again = httpx.post(
                f"{url}/projects/acme/widgets/changes/1/merge",
                params={"head": head},
                headers={"Idempotency-Key": str(call)},
                timeout=60,
            )

    assert meanwhile.status_code == 202
    assert (answers[-1].status_code, answers[-1].json()["verdict"]) == (200, "applied" if applied else "not_applied")
    assert (again.status_code, again.json()["error"]) == (409, "ConflictError")
    assert held.merges == 1


def test_a_call_that_nobody_knows_is_404(service: Service) -> None:
    """A link that was not given out finds nothing, and a key cannot leave the store."""
    assert service.client.get("/calls/00000000-0000-4000-8000-000000000000").status_code == 404
    assert service.client.get("/calls/..%2f..%2fetc").status_code in (404, 422)


def test_many_clients_at_once(service: Service) -> None:
    """50 clients, four requests each, two worker processes: nothing twice, nothing lost, nobody else's answer."""
    assert asyncio.run(load(service.url, 4)) == []
    assert sent_twice(service.behind) == []
