"""A clock that the tests move, and the service over each of the three providers."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.support.memory import Clock
from tests.support.service.running import Service, backend, running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session", params=["local", "github", "gitlab"])
def shared_service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service over each host, started once."""
    root = tmp_path_factory.mktemp(request.param)
    with (
        backend(request.param, root) as behind,
        running({**behind.environment, "SERVICE_SETTLE": "0.001"}, root / "calls") as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        yield Service(request.param, url, client, behind)


@pytest.fixture
def service(shared_service: Service) -> Iterator[Service]:
    """The service, with a request log and a fault script that this test alone writes."""
    shared_service.behind.request_log.clear()
    yield shared_service
    shared_service.behind.script.clear()


@pytest.fixture
def remote(service: Service) -> Service:
    """The service over a host that can lose an answer."""
    if service.name == "local":
        pytest.skip("there is no network between the local provider and its forge")
    return service
