"""What ``requests`` sees of a host that is mounted on ``responses``."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import IncompleteRead

import pytest
import requests
import responses
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from gitprovider.fakes.faults import Fault, FaultKind, FaultScript, FaultyHost
from gitprovider.fakes.mount import mount
from gitprovider.fakes.serve import serving
from tests.support.counter import Counter


@pytest.fixture
def rsps() -> Iterator[responses.RequestsMock]:
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


def test_every_verb_below_the_base_url_reaches_the_host(rsps: responses.RequestsMock) -> None:
    """The verb, the query and the body arrive, also under the port that PyGithub writes out."""
    host = FaultyHost(Counter())
    mount(host, rsps, "https://host.example/api")

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        requests.request(method, "https://host.example:443/api/counter?n=1", json={"a": 1}, timeout=5)

    assert [entry.method for entry in host.request_log.entries] == ["GET", "POST", "PUT", "PATCH", "DELETE"]
    assert {entry.body for entry in host.request_log.entries} == {b'{"a": 1}'}
    assert {entry.query["n"] for entry in host.request_log.entries} == {"1"}


@pytest.mark.parametrize(
    "url", ["https://host.example/apis", "https://host.example.evil/api", "http://host.example/api"]
)
def test_another_url_does_not_reach_the_host(rsps: responses.RequestsMock, url: str) -> None:
    """A longer path part, a longer host name and another scheme are not below the base URL."""
    host = FaultyHost(Counter())
    mount(host, rsps, "https://host.example/api")

    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=5)

    assert len(host.request_log) == 0


def test_status_headers_and_body_come_back(rsps: responses.RequestsMock) -> None:
    """The client reads what the host returned, with no header added."""
    mount(FaultyHost(Counter()), rsps, "https://host.example")

    response = requests.get("https://host.example/counter/a", timeout=5)

    assert (response.status_code, response.json()) == (200, {"count": 1})
    assert dict(response.headers) == {"Content-Type": "application/json", "X-Request-Id": "1"}


def mounted(rsps: responses.RequestsMock, fault: Fault) -> None:
    mount(FaultyHost(Counter(), script=FaultScript(fault)), rsps, "https://host.example")


def test_a_reset_is_the_exception_that_requests_raises(rsps: responses.RequestsMock) -> None:
    """ConnectionError, ProtocolError, ConnectionResetError, as on a socket."""
    mounted(rsps, Fault(kind="reset"))

    with pytest.raises(requests.ConnectionError) as caught:
        requests.get("https://host.example/counter/a", timeout=5)

    protocol = caught.value.args[0]
    assert isinstance(protocol, ProtocolError)
    assert isinstance(protocol.args[1], ConnectionResetError)
    assert caught.value.__context__ is protocol
    assert caught.value.request is not None


def test_a_timeout_is_the_exception_that_requests_raises(rsps: responses.RequestsMock) -> None:
    """ReadTimeout over urllib3's ReadTimeoutError over TimeoutError."""
    mounted(rsps, Fault(kind="timeout"))

    with pytest.raises(requests.ReadTimeout) as caught:
        requests.get("https://host.example/counter/a", timeout=5)

    assert isinstance(caught.value.args[0], ReadTimeoutError)
    assert isinstance(caught.value.args[0].__cause__, TimeoutError)


def test_a_cut_body_is_the_exception_that_requests_raises(rsps: responses.RequestsMock) -> None:
    """ChunkedEncodingError over ProtocolError over IncompleteRead, with the bytes counted."""
    mounted(rsps, Fault(kind="cut", when="after"))

    with pytest.raises(requests.exceptions.ChunkedEncodingError) as caught:
        requests.get("https://host.example/counter/a", timeout=5)

    broken = caught.value.args[0].args[1]
    assert isinstance(broken, IncompleteRead)
    assert (len(broken.partial), broken.expected) == (6, 6)


def chain(error: BaseException) -> list[str]:
    """The names of the classes from an error down to its first cause."""
    names = []
    link: BaseException | None = error
    while link is not None:
        names.append(type(link).__name__)
        link = link.__cause__ or link.__context__
    return names


@pytest.mark.parametrize("kind", ["reset", "timeout", "cut"])
def test_an_imitation_has_the_chain_of_the_real_fault(rsps: responses.RequestsMock, kind: FaultKind) -> None:
    """What code can learn from the exception is the same on a socket and under ``responses``."""

    def chain_at(url: str) -> list[str]:
        with pytest.raises(requests.RequestException) as caught:
            requests.get(f"{url}/counter/a", timeout=0.3)
        return chain(caught.value)

    mounted(rsps, Fault(kind=kind, when="after"))
    rsps.add_passthru("http://127.0.0.1")
    with serving(FaultyHost(Counter(), script=FaultScript(Fault(kind=kind, when="after")))) as url:
        real = chain_at(url)

    assert chain_at("https://host.example") == real
