"""bootstrap on the fakes of both hosts: with their lag, and killed at each request that changes something."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import responses

from gitprovider import BootstrapReport, PullRequestState, bootstrap
from gitprovider.contract import InspectableProvider
from gitprovider.fakes.faults import FaultyHost, RequestLog
from gitprovider.fakes.http import FakeServer, Request, Response
from gitprovider.fakes.mount import mount
from gitprovider.local import Forge
from tests.support.bootstrapping import SENT, STEPS, a_directory
from tests.support.hosts import Kind, fake_of, provider_of, tree_of

REPO = "acme/widgets"
remote_hosts = pytest.mark.parametrize("kind", ["github", "gitlab"])


class Killed(BaseException):
    """The process ends here."""


class KillingServer:
    """A fake during whose n-th change the client dies: the change is there, and nobody hears of it."""

    def __init__(self, fake: FakeServer) -> None:
        self._fake = fake
        self.changes = 0
        self.kill_at = 0

    def endpoint(self, request: Request) -> str:
        return self._fake.endpoint(request)

    def handle(self, request: Request) -> Response:
        answer = self._fake.handle(request)
        self.changes += answer.effect
        if answer.effect and self.changes == self.kill_at:
            raise Killed
        return answer


class Bed:
    """A host, and a bootstrap on it whose waits take no time."""

    def __init__(
        self, forge: Forge, provider: InspectableProvider, fake: KillingServer, request_log: RequestLog
    ) -> None:
        self.forge, self.provider, self.fake, self.request_log = forge, provider, fake, request_log
        self.waited = 0.0

    def run(self, source: Path) -> BootstrapReport:
        def sleep(seconds: float) -> None:
            self.waited += seconds

        return bootstrap(
            self.provider,
            REPO,
            source=source,
            pull_request=True,
            sleep=sleep,
            clock=lambda: self.waited,
            now=lambda: datetime.now(UTC) + timedelta(seconds=self.waited),
        )

    def state(self) -> dict[str, Any]:
        """Files of each branch, what protects it, and the pull requests; no commit ids."""
        names = [name for name, _ in self.forge.branches(REPO)]
        return {
            "trees": {name: tree_of(self.forge, REPO, name) for name in names},
            "protection": {name: self.forge.protection(REPO, name) for name in names},
            "pulls": [(pull.number, pull.state, pull.title) for pull in self.forge.pull_requests(REPO)],
        }


@contextmanager
def bed(kind: Kind, root: Path, **knobs: Any) -> Iterator[Bed]:
    given = {name: knobs.pop(name) for name in ("mergeable_after", "lag", "ref_lag", "tier") if name in knobs}
    forge, fake, token, url = fake_of(kind, root, **given)
    for name, value in knobs.items():
        assert hasattr(fake, name)
        setattr(fake, name, value)
    killing = KillingServer(fake)
    faulty = FaultyHost(killing)
    with (
        responses.RequestsMock(assert_all_requests_are_fired=False) as mocked,
        provider_of(kind, token, url) as provider,
    ):
        mount(faulty, mocked, url)
        yield Bed(forge, provider, killing, faulty.request_log)


LAGGING: list[tuple[Kind, dict[str, Any]]] = [
    ("github", {"lag": 3}),
    ("github", {"ref_lag": 3}),
    ("github", {"mergeable_after": 3}),
    ("gitlab", {"branch_lag": 3}),
    ("gitlab", {"mergeable_after": 3}),
    ("gitlab", {"default_protection_after": 4}),
    ("gitlab", {"tier": "premium", "mergeable_after": 3}),
    ("gitlab", {"locked_for": 2}),
]


@pytest.mark.parametrize(("kind", "knobs"), LAGGING)
def test_a_host_that_lags_is_waited_for(kind: Kind, knobs: dict[str, Any], tmp_path: Path) -> None:
    """Whatever the host shows or admits late, one run does everything, and each change once."""
    source = a_directory(tmp_path / "source")
    with bed(kind, tmp_path / "plain") as plain:
        assert plain.run(source).ok
        undisturbed = plain.state()

    with bed(kind, tmp_path / "lagging", **knobs) as there:
        report = there.run(source)

        assert report.ok, report.error
        assert [step.name for step in report.steps] == STEPS
        assert there.state() == undisturbed


@remote_hosts
def test_a_second_run_changes_nothing(kind: Kind, tmp_path: Path) -> None:
    """Everything is there, and no request for a change is sent."""
    source = a_directory(tmp_path / "source")
    with bed(kind, tmp_path / "forge") as there:
        assert there.run(source).ok
        there.request_log.clear()

        report = there.run(source)

        assert {step.status.value for step in report.steps} == {"already there"}
        assert there.request_log.mutations() == []


@remote_hosts
def test_a_run_killed_at_any_change_is_finished_by_the_next(kind: Kind, tmp_path: Path) -> None:
    """Killed while the answer to any change was on its way, the same call ends as an undisturbed run."""
    source = a_directory(tmp_path / "source")
    with bed(kind, tmp_path / "plain") as plain:
        assert plain.run(source).ok
        undisturbed, changes = plain.state(), plain.fake.changes
    assert changes >= len(SENT)

    for number in range(1, changes + 1):
        with bed(kind, tmp_path / str(number)) as there:
            there.fake.kill_at = number
            with pytest.raises(Killed):
                there.run(source)
            there.fake.kill_at = 0

            report = there.run(source)

            assert report.ok, (number, report.error)
            assert there.state() == undisturbed, number


def test_the_same_files_on_every_host(tmp_path: Path) -> None:
    """The trees of main and develop are the same, blob by blob, on both hosts."""
    source = a_directory(tmp_path / "source")
    trees = []
    for kind in ("github", "gitlab"):
        with bed(kind, tmp_path / kind) as there:
            assert there.run(source).ok
            trees.append(there.state()["trees"])
            assert there.state()["pulls"][0][1] is PullRequestState.MERGED

    assert trees[0] == trees[1]
