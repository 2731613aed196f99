"""What both remote providers share: faults, origins, paths, pages and the pool of clients."""

import http.client
import os
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import urllib3

from gitprovider._core.urls import parse_api_server
from gitprovider._remote.client_pool import ClientPool
from gitprovider._remote.failures import transport_error
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import RemoteOperation
from gitprovider._remote.response import BodyError, ForeignOriginError, Request, Response
from gitprovider.errors import (
    GitProviderError,
    InvalidRequestError,
    Outcome,
    ProviderUnavailableError,
    UnexpectedResponseError,
)

POOL = urllib3.HTTPConnectionPool("host.example")
CONNECTION = urllib3.connection.HTTPConnection("host.example")
REFUSED = urllib3.exceptions.NewConnectionError(CONNECTION, "refused")
UNRESOLVED = urllib3.exceptions.NameResolutionError("host.example", CONNECTION, socket.gaierror(8, "unknown"))
RESET = urllib3.exceptions.ProtocolError("aborted", ConnectionResetError(104))
CLOSED = urllib3.exceptions.ProtocolError("aborted", http.client.RemoteDisconnected("closed"))
NO_TUNNEL = OSError("Tunnel connection failed: 502 Bad Gateway")
REQUESTS_ERRORS = [
    kind
    for kind in vars(requests.exceptions).values()
    if isinstance(kind, type) and issubclass(kind, requests.RequestException)
]


def max_retries(reason: Exception) -> urllib3.exceptions.MaxRetryError:
    return urllib3.exceptions.MaxRetryError(POOL, "/", reason)


def through_proxy(failure: Exception) -> urllib3.exceptions.ProxyError:
    return urllib3.exceptions.ProxyError("Unable to connect to proxy", failure)


def certificate_refused() -> requests.exceptions.SSLError:
    inner = ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed certificate")
    return requests.exceptions.SSLError(max_retries(urllib3.exceptions.SSLError(inner)))


@pytest.mark.parametrize(
    ("exc", "outcome", "transient"),
    [
        (requests.ConnectionError(max_retries(REFUSED)), "not_applied", True),
        (requests.ConnectionError(max_retries(UNRESOLVED)), "not_applied", True),
        (requests.ConnectTimeout("connect timed out"), "not_applied", True),
        (certificate_refused(), "not_applied", False),
        (requests.exceptions.SSLError("_ssl.c:989: The handshake operation timed out"), "unknown", True),
        (requests.exceptions.SSLError("EOF occurred in violation of protocol"), "unknown", True),
        (requests.exceptions.SSLError("[SSL: DECRYPTION_FAILED_OR_BAD_RECORD_MAC] decryption failed"), "unknown", True),
        (requests.exceptions.SSLError("url: /repos/acme/certificates (Caused by [SSL] record layer)"), "unknown", True),
        (OSError("Could not find a suitable TLS CA certificate bundle, invalid path: x"), "not_applied", False),
        (requests.exceptions.ProxyError(max_retries(through_proxy(REFUSED))), "not_applied", True),
        (requests.exceptions.ProxyError(max_retries(through_proxy(NO_TUNNEL))), "not_applied", True),
        (
            requests.exceptions.ProxyError(max_retries(through_proxy(http.client.RemoteDisconnected("closed")))),
            "unknown",
            True,
        ),
        (requests.ReadTimeout("read timed out"), "unknown", True),
        (requests.ConnectionError(RESET), "unknown", True),
        (requests.ConnectionError(CLOSED), "unknown", True),
        (requests.exceptions.ChunkedEncodingError(urllib3.exceptions.IncompleteRead(3, 5)), "unknown", True),
        (requests.exceptions.ContentDecodingError("gzip"), "unknown", True),
        (TimeoutError("timed out"), "unknown", True),
        (EOFError(), "unknown", True),
    ],
)
def test_a_lost_request_is_told_from_one_that_never_left(exc: Exception, outcome: str, transient: bool) -> None:
    """DNS, refusal and certificates mean that nothing was sent; whatever comes later may have taken effect."""
    error = transport_error(exc)

    assert isinstance(error, ProviderUnavailableError)
    assert (error.outcome, error.transient) == (Outcome(outcome), transient)


@pytest.mark.parametrize("reset", [False, True])
def test_a_proxy_that_hangs_up_after_the_request_may_have_passed_it_on(reset: bool) -> None:
    """urllib3 calls that a ProxyError, "unable to connect", although the proxy has the whole request."""
    with socket.create_server(("127.0.0.1", 0)) as server, requests.Session() as session:

        def take_and_hang_up() -> None:
            taken, _ = server.accept()
            with taken:
                taken.recv(65536)
                if reset:
                    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        proxy = threading.Thread(target=take_and_hang_up)
        proxy.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(requests.exceptions.ProxyError) as caught:
            session.post("http://git.example.test/repos", proxies={"http": url}, timeout=5)
        proxy.join()

    error = transport_error(caught.value)
    assert error is not None
    assert error.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("date", ["Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Mon, 01 Jan 2024", "", "x"])
def test_a_date_that_is_none_is_the_present(date: str) -> None:
    """No header of the host's makes an exception of ours while its answer is being understood."""
    assert abs((Response(status=429, headers={"date": date}).date - datetime.now(UTC)).total_seconds()) < 3600


@pytest.mark.parametrize("kind", REQUESTS_ERRORS, ids=lambda kind: kind.__name__)
def test_every_exception_of_requests_is_translated(kind: type[Exception]) -> None:
    """A new class in requests fails here rather than in a user's log."""
    exc = kind("x", "y", 0) if issubclass(kind, requests.exceptions.JSONDecodeError) else kind("x")

    assert isinstance(transport_error(exc), GitProviderError)


def test_an_exception_of_nobody_is_not_claimed() -> None:
    """What is no failure of a transport is left to the provider's own table."""
    assert transport_error(KeyError("x")) is None


def test_a_request_to_another_origin_is_not_applied() -> None:
    """It was not sent, and the error says so, also when requests wrapped it."""
    error = transport_error(requests.ConnectionError(ForeignOriginError()))

    assert isinstance(error, UnexpectedResponseError)
    assert error.outcome is Outcome.NOT_APPLIED


@pytest.mark.parametrize("cut", [True, False])
def test_a_body_that_is_not_what_was_asked_for(cut: bool) -> None:
    """The outcome is unknown; only JSON that was cut off is worth another try of a read."""
    error = transport_error(BodyError("no JSON", Response(status=200, headers={"x-request-id": "r1"}), cut=cut))

    assert isinstance(error, UnexpectedResponseError)
    assert (error.outcome, error.transient, error.status, error.request_id) == (Outcome.UNKNOWN, cut, 200, "r1")


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://git.example.org/", "https://git.example.org"),
        ("https://GIT.example.org:443/gitlab/", "https://git.example.org/gitlab"),
        ("https://git.example.org:8443", "https://git.example.org:8443"),
        ("http://localhost:80/x/", "http://localhost/x"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("https://gït.example/", "https://xn--gt-tja.example"),
        ("git.example.org", "https://git.example.org"),
    ],
)
def test_an_origin_has_one_spelling(url: str, normal: str) -> None:
    """Case, default ports, trailing slashes and IDNA do not make another origin."""
    assert parse_api_server("url", url).url == normal


@pytest.mark.parametrize(
    "url",
    [
        " https://git.example.org",
        "ftp://git.example.org",
        "https://",
        "https://git.example.org?x=1",
        "https://git.example.org#x",
        "https://u:hunter22@git.example.org",
        "https://github.com@evil.example",
        "https://github.com\\@evil.example",
        "https://git.example.org:port",
        "http://git.example.org",
        "http://127.0.0.1.evil.example",
        "http://localhost.evil.example",
        None,
    ],
)
def test_what_is_no_safe_origin_is_refused(url: str) -> None:
    """Credentials, look-alikes and plain http never become the place a token is sent to."""
    with pytest.raises(InvalidRequestError) as caught:
        parse_api_server("url", url)

    assert caught.value.argument == "url"
    assert "hunter22" not in str(caught.value)


def test_http_may_be_allowed() -> None:
    """An argument of the provider allows plain http inside a trusted network."""
    assert parse_api_server("url", "http://git.internal/", allow_http=True).url == "http://git.internal"


def test_parts_of_a_path_are_encoded_once() -> None:
    """A branch named ``feature/x#1%?`` reaches the host as that, and cannot leave its segment."""
    parts = {"repo": "a/b", "branch": "x/y#1%?ü"}
    request = Request(method="GET", template="/repos/{repo/}/branches/{branch}", parts=parts)

    assert request.path == "/repos/a/b/branches/x%2Fy%231%25%3F%C3%BC"
    assert request.endpoint == "GET /repos/{repo/}/branches/{branch}"


class FakeClient:
    """Sends nothing: it returns the pages that it was given. ``more`` is what the host says of each page."""

    def __init__(self, pages: Sequence[Sequence[object]] = (), more: Sequence[bool | None] = ()) -> None:
        self.pages = pages
        self.more = more
        self.queries: list[Mapping[str, object] | None] = []
        self.closed = False

    def send(self, request: Request) -> Response:
        self.queries.append(request.query)
        items = self.pages[len(self.queries) - 1] if self.pages else []
        return Response(status=200, endpoint=request.endpoint, data=[{"iid": item} for item in items])

    def has_next(self, response: Response) -> bool | None:
        return self.more[len(self.queries) - 1]

    def close(self) -> None:
        self.closed = True


def remote_operation(client: FakeClient, **known: Any) -> RemoteOperation[FakeClient]:
    return RemoteOperation(
        "list_branches",
        "acme/widgets",
        client=client,
        authenticate=lambda op: None,
        provider="any",
        host="git.example.org",
        translate=lambda exc: transport_error(exc) or GitProviderError(str(exc)),
        **known,
    )


def listed(*pages: Sequence[object], more: Sequence[bool | None]) -> list[int]:
    return remote_operation(FakeClient(pages, more)).pages("/items", lambda item: item.int("iid"))


def test_whatever_an_exception_holds_is_scrubbed() -> None:
    """Attributes of any kind, a named tuple's included: no class of theirs is called with what it does not take."""
    exc = ValueError("hunter22", ["hunter22"])
    vars(exc).update(url=urlsplit("https://hunter22"), answers={"hunter22": b"hunter22"})
    op = remote_operation(FakeClient(), redact=lambda text: text.replace("hunter22", "***"))

    with pytest.raises(GitProviderError) as caught, op.before("read"):
        raise exc

    assert caught.value.__cause__ is exc
    assert "hunter22" not in f"{exc.args}{vars(exc)}{caught.value}"


def test_pages_end_where_the_host_says() -> None:
    """A full last page costs no further request when the host said that it is the last."""
    client = FakeClient([range(100), range(100, 200)], [True, False])

    found = remote_operation(client).pages("/items", lambda item: item.int("iid"), query={"sort": "name"})

    assert found == list(range(200))
    assert client.queries == [{"sort": "name", "per_page": 100, "page": number} for number in (1, 2)]


def test_without_a_word_a_full_page_is_followed() -> None:
    """A host that says nothing is asked until a page is not full."""
    assert len(listed(range(100), [], more=[None, None])) == 100


def test_a_short_page_before_the_last_is_an_error() -> None:
    """A list with a hole would make a caller recreate or delete what it did not see."""
    with pytest.raises(UnexpectedResponseError, match="items would be missing"):
        listed(range(99), more=[True])


@pytest.mark.parametrize("convert", [lambda item: item.int("iid"), lambda item: item], ids=["values", "objects"])
def test_a_page_that_comes_again_is_an_error(convert: Callable[[JsonReader], object]) -> None:
    """A proxy that drops the query sends page one forever, each time with more to follow."""
    op = remote_operation(FakeClient([range(100)] * 3, [True] * 3))

    with pytest.raises(UnexpectedResponseError, match="would not end"):
        op.pages("/items", convert)


def test_a_client_serves_one_operation_at_a_time() -> None:
    """Two operations at once never share a client; one after the other they do."""
    pool = ClientPool(FakeClient)

    with pool.client() as a, pool.client() as b:
        assert a is not b
    with pool.client() as c:
        assert c in (a, b)


def test_a_forked_child_does_not_use_its_parents_clients() -> None:
    """An inherited socket is written to by both processes; the child makes its own, whatever lock was held."""
    pool = ClientPool(FakeClient)
    with pool.client() as parents:
        pass
    read, write = os.pipe()
    with pool._lock:
        child = os.fork()
        if child == 0:  # pragma: no cover - the child
            with pool.client() as own:
                os.write(write, b"own" if own is not parents else b"same")
            os._exit(0)
    os.close(write)
    answer = os.read(read, 10)
    os.close(read)
    os.waitpid(child, 0)

    assert answer == b"own"


def test_a_closed_pool_lends_nothing_and_closes_what_comes_back() -> None:
    """Closing while an operation runs closes its client at its end."""
    pool = ClientPool(FakeClient)
    with pool.client() as idle:
        pass

    with pool.client() as lent, pool.client() as other:
        assert idle in (lent, other)
        pool.close()
        assert [client.closed for client in (lent, other)] == [False, False]
    assert [client.closed for client in (lent, other)] == [True, True]
    with pytest.raises(InvalidRequestError, match="closed"), pool.client():
        pass


def test_threads_get_clients_of_their_own() -> None:
    """Under contention no client is lent twice."""
    pool = ClientPool(FakeClient)
    busy: set[int] = set()
    clashes: list[int] = []

    def work() -> None:
        for _ in range(200):
            with pool.client() as client:
                if id(client) in busy:
                    clashes.append(id(client))
                busy.add(id(client))
                busy.discard(id(client))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not clashes
