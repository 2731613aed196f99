"""On sockets: the connection breaks at each boundary of the effect step's request, and of its answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest

from gitprovider import GitProviderError, Outcome, Verdict, resolve
from gitprovider.contract import InspectableProvider
from gitprovider.fakes.faults import FaultyHost
from gitprovider.fakes.serve import serving
from gitprovider.local import Forge
from tests.support import calls
from tests.support.hosts import Kind, everything, fake_of, given_project, provider_of
from tests.support.outcomes import CALLS
from tests.support.proxy import POSITIONS, Cut, Proxy, proxying

# The path, as sent, that tells the effect step's request.
_PATHS = {
    "github": {
        "create_repo": ("POST", "/orgs/acme/repos"),
        "create_branch": ("POST", "/git/refs"),
        "protect_branch": ("PUT", "/protection"),
        "commit_files": ("POST", "/graphql"),
        "open_pull_request": ("POST", "/pulls"),
        "merge_pull_request": ("PUT", "/merge"),
    },
    "gitlab": {
        "create_repo": ("POST", "/projects"),
        "create_branch": ("POST", "/repository/branches"),
        "protect_branch": ("POST", "/protected_branches"),
        "commit_files": ("POST", "/repository/commits"),
        "open_pull_request": ("POST", "/merge_requests"),
        "merge_pull_request": ("PUT", "/merge"),
    },
}
Side = Literal["request", "answer"]


class Wire:
    """A provider that reaches the served fake of its host through a proxy."""

    def __init__(self, kind: Kind, forge: Forge, provider: InspectableProvider, proxy: Proxy, host: FaultyHost) -> None:
        self.kind, self.forge, self.provider, self.proxy, self.host = kind, forge, provider, proxy, host

    def reset(self) -> None:
        """The host as it was at first."""
        for record in self.forge.repos():
            self.forge.delete_repo(record.path)
        given_project(self.forge, calls.REPO)
        self.host.request_log.clear()


@contextmanager
def wired(kind: Kind, root: Path) -> Iterator[Wire]:
    forge, fake, token, _ = fake_of(kind, root)
    host = FaultyHost(fake)
    with serving(host) as url, proxying(url) as proxy, provider_of(kind, token, proxy.url) as provider:
        yield Wire(kind, forge, provider, proxy, host)


def broken_at(wire: Wire, name: str, side: Side, position: str) -> None:
    """Break one exchange there, and compare what is said with what is true."""
    wire.reset()
    before = everything(wire.forge)
    method, path = _PATHS[wire.kind][name]
    wire.proxy.cuts = 0
    body = b"createCommitOnBranch" if path == "/graphql" else b""
    wire.proxy.cut = Cut(method, path, side, POSITIONS[position], body)

    with pytest.raises(GitProviderError) as caught:
        CALLS[name].do(wire.provider)

    settled = datetime.now(UTC) + timedelta(seconds=wire.provider.settle)
    found = resolve(wire.provider, caught.value, now=lambda: settled)
    changed = everything(wire.forge) != before
    assert wire.proxy.cuts == 1
    assert caught.value.outcome is Outcome.UNKNOWN
    assert found.verdict is (Verdict.APPLIED if changed else Verdict.NOT_APPLIED)
    # Only a whole request is carried out, and no request twice.
    assert changed is (side == "answer" or position == "after the last byte")
    sent = [entry for entry in wire.host.request_log.mutations() if entry.method == method and path in entry.path]
    assert len(sent) == changed


@pytest.mark.parametrize("side", ["request", "answer"])
@pytest.mark.parametrize("kind", ["github", "gitlab"])
@pytest.mark.parametrize("name", CALLS)
def test_a_connection_that_breaks_anywhere_is_looked_up(name: str, kind: Kind, side: Side, tmp_path: Path) -> None:
    """From before the first byte to after the last: the outcome is UNKNOWN, the verdict true, nothing sent twice."""
    with wired(kind, tmp_path) as wire:
        for position in POSITIONS:
            if (side, position) != ("answer", "after the last byte"):  # that one broke nothing
                broken_at(wire, name, side, position)
