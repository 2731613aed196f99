"""The request log and the fault script, by themselves and in front of a fake of one counter."""

from __future__ import annotations

import json
import threading
from contextlib import suppress

import pytest

from gitprovider.fakes.faults import Fault, FaultKind, FaultScript, FaultyHost
from gitprovider.fakes.http import Request, Response, TransportFault
from tests.support.counter import Counter


def post(name: str = "a") -> Request:
    return Request.of("POST", f"https://host.example/counter/{name}?x=1", {"Accept": "*/*"}, b"{}")


def test_the_request_log_keeps_what_was_asked_and_answered() -> None:
    """An entry has the decoded path, the template, the query, the headers, the body, the status and the fact."""
    host = FaultyHost(Counter())

    host.handle(post("a%2Fb"))

    (entry,) = host.request_log.entries
    assert (entry.method, entry.path, entry.endpoint) == ("POST", "/counter/a/b", "/counter/{name}")
    assert (entry.query, entry.headers, entry.body) == ({"x": "1"}, {"accept": "*/*"}, b"{}")
    assert (entry.status, entry.effect, entry.fault, entry.fact) == (200, True, None, "counter")


@pytest.mark.parametrize("kind", ["status", "html", "shape", "redirect", "reset", "timeout", "cut"])
def test_a_fault_before_the_effect_keeps_the_request_from_the_fake(kind: FaultKind) -> None:
    """Whatever the fault, nothing is counted, and the request log says that there was no effect."""
    fake = Counter()
    host = FaultyHost(fake, script=FaultScript(Fault(kind=kind, when="before")))

    with suppress(TransportFault):
        host.handle(post())

    assert fake.count == 0
    (entry,) = host.request_log.entries
    assert (entry.effect, entry.fault, entry.fact) == (False, kind, "")


@pytest.mark.parametrize("kind", ["status", "html", "shape", "redirect", "reset", "timeout", "cut"])
def test_a_fault_after_the_effect_loses_only_the_answer(kind: FaultKind) -> None:
    """The fake has done its work, and the request log knows it although the caller does not."""
    fake = Counter()
    host = FaultyHost(fake, script=FaultScript(Fault(kind=kind, when="after")))

    with suppress(TransportFault):
        host.handle(post())

    assert fake.count == 1
    assert host.request_log.entries[0].effect


@pytest.mark.parametrize("kind", ["reset", "timeout", "cut"])
def test_a_transport_fault_leaves_no_status_in_the_request_log(kind: FaultKind) -> None:
    """No whole response reached the caller, so there is no status that it was told."""
    host = FaultyHost(Counter(), script=FaultScript(Fault(kind=kind)))

    with pytest.raises(TransportFault) as caught:
        host.handle(post())

    assert caught.value.kind == kind
    assert host.request_log.entries[0].status is None


def test_a_status_fault_has_its_status_headers_and_body() -> None:
    """The response is the fault's, with the fake's other headers kept."""
    fault = Fault(kind="status", status=429, headers={"Retry-After": "7"}, body=b"slow down", when="after")
    host = FaultyHost(Counter(), script=FaultScript(fault))

    response = host.handle(post())

    assert (response.status, response.headers["Retry-After"], response.body) == (429, "7", b"slow down")
    assert response.headers["X-Request-Id"] == "1"


@pytest.mark.parametrize(("body", "shape"), [(b'{"a": 1}', list), (b"[1]", dict)])
def test_a_shape_fault_answers_json_of_another_shape(body: bytes, shape: type) -> None:
    """An object becomes a list and a list an object; the status stays what the fake said."""

    class Fixed(Counter):
        def handle(self, request: Request) -> Response:
            return Response(status=201, body=body)

    host = FaultyHost(Fixed(), script=FaultScript(Fault(kind="shape", when="after")))

    response = host.handle(post())

    assert response.status == 201
    assert isinstance(json.loads(response.body), shape)


def test_nth_and_times_choose_the_requests_that_get_the_fault() -> None:
    """A fault with nth=2 and times=2 is injected into the second and the third match only."""
    host = FaultyHost(Counter(), script=FaultScript(Fault(kind="status", status=503, nth=2, times=2)))

    statuses = [host.handle(post()).status for _ in range(4)]

    assert statuses == [200, 503, 503, 200]


def test_a_lasting_fault_is_injected_until_it_is_cleared() -> None:
    """times=None has no end but clear()."""
    host = FaultyHost(Counter(), script=FaultScript(Fault(kind="status", times=None)))
    statuses = [host.handle(post()).status for _ in range(3)]

    host.script.clear()

    assert statuses == [500, 500, 500]
    assert host.handle(post()).status == 200


def test_a_fault_counts_only_the_requests_that_it_matches() -> None:
    """A request with another method or endpoint does not count."""
    host = FaultyHost(Counter(), script=FaultScript(Fault(kind="status", method="POST", endpoint="counter")))

    statuses = [
        host.handle(Request.of("GET", "https://host.example/counter/a", {}, b"")).status,
        host.handle(Request.of("POST", "https://host.example/other", {}, b"")).status,
        host.handle(post()).status,
    ]

    assert statuses == [200, 200, 500]


def test_a_delay_lets_the_real_answer_through() -> None:
    """The wait goes through the given sleep, and the response is the fake's own."""
    slept: list[float] = []
    host = FaultyHost(Counter(), script=FaultScript(Fault(kind="delay", delay=2.5)), sleep=slept.append)

    response = host.handle(post())

    assert slept == [2.5]
    assert response.fact == "counter"


@pytest.mark.parametrize(
    ("method", "path", "body", "is_mutation"),
    [
        ("GET", "/counter/a", b"", False),
        ("HEAD", "/counter/a", b"", False),
        ("DELETE", "/counter/a", b"", True),
        ("POST", "/api/graphql", b'{"query": "query($p: ID!) { project(fullPath: $p) { id } }"}', False),
        ("POST", "/api/graphql", b'{"query": "{ project { mutation } }"}', False),
        ("POST", "/api/graphql", b'{"query": "mutation { destroy(input: {}) { errors } }"}', True),
        (
            "POST",
            "/api/graphql",
            b'{"query": "fragment F on T { id }\\nmutation M($i: In!) { m(i: $i) { ...F } }"}',
            True,
        ),
        ("POST", "/api/graphql", b"junk", True),
    ],
)
def test_what_counts_as_a_mutation(method: str, path: str, body: bytes, is_mutation: bool) -> None:
    """GET, HEAD and a GraphQL query only read; everything else asks for a change, junk included."""
    host = FaultyHost(Counter())

    host.handle(Request.of(method, f"https://host.example{path}", {}, body))

    assert bool(host.request_log.mutations()) is is_mutation


def test_many_threads_are_recorded_once_each() -> None:
    """Of 400 requests from eight threads each has its entry, and a fault for one request is injected once."""
    host = FaultyHost(Counter(), script=FaultScript(Fault(kind="status", nth=200)))

    def work() -> None:
        for _ in range(50):
            host.handle(post())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(host.request_log) == 400
    assert [entry.fault for entry in host.request_log.entries].count("status") == 1
