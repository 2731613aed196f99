"""What a hostile host can send, and for how long: bodies, encodings, JSON, pages, and time."""

from __future__ import annotations

import copy
import gzip
import itertools
import json
import pickle
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import responses

from gitprovider import (
    GitProviderError,
    InvalidRequestError,
    Limits,
    Outcome,
    ProviderUnavailableError,
    RetryCancelledError,
    RetryOptions,
    UnexpectedResponseError,
    connect,
    deadline,
)
from gitprovider._core.json import MAX_DEPTH, MAX_VALUES, JsonLimitError, parse
from gitprovider.contract import InspectableProvider
from gitprovider.fakes.http import FakeServer, Request, Response
from gitprovider.fakes.mount import mount
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider
from gitprovider.retry import PollDeadline, wait
from tests.support.hostile import Heard, Script, Ticking, hosting, response
from tests.support.hosts import fake_of, given_project, provider_of

REPO = "acme/widgets"
SHA = "1" * 40
MIB = 1024 * 1024
TOKEN = "t0ken-0123456789"
kinds = pytest.mark.parametrize("kind", ["github", "gitlab"])


@contextmanager
def connected(
    kind: str, url: str, limits: Limits | None = None, retry: RetryOptions | None = None
) -> Iterator[InspectableProvider]:
    """A provider of that kind for the host at ``url``. Its reads are tried once unless ``retry`` says otherwise."""
    limits, retry = limits or Limits(), retry or RetryOptions(max_attempts=1)
    if kind == "github":
        with GitHubProvider(TOKEN, base_url=url, limits=limits, retry=retry) as github:
            yield github
    else:
        with GitLabProvider(url, private_token=TOKEN, limits=limits, retry=retry) as gitlab:
            yield gitlab


def head(*headers: str) -> bytes:
    """The head of a response."""
    return "\r\n".join(["HTTP/1.1 200 Any", "Content-Type: application/json", *headers, "", ""]).encode()


def whole(body: bytes, *headers: str, status: int = 200) -> bytes:
    """A complete response."""
    return response(body, *headers, status=f"{status} Any")


def always(*parts: bytes) -> Script:
    return lambda request: parts


def endless(start: bytes, *parts: bytes) -> Script:
    """``start``, then the parts again and again, for as long as the client reads."""
    return lambda request: itertools.chain([start] if start else [], itertools.cycle([b"".join(parts * 100)]))


def failed(call: Callable[[], object]) -> GitProviderError:
    with pytest.raises(GitProviderError) as caught:
        call()
    return caught.value


def nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + "1" + closing * depth


# Bodies


def bomb(compressor: Any) -> bytes:
    """64 MiB of zeros in some kB."""
    parts: list[bytes] = [compressor.compress(b"0" * MIB) for _ in range(64)]
    return b"".join([*parts, compressor.flush()])


BOMBS = {
    "gzip": bomb(zlib.compressobj(9, zlib.DEFLATED, 31)),
    "x-gzip": gzip.compress(b"0" * 8 * MIB) * 8,  # several members
    "deflate": bomb(zlib.compressobj(9)),
    "Deflate": bomb(zlib.compressobj(9, zlib.DEFLATED, -15)),
}


@kinds
@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize("coding", BOMBS)
def test_a_bomb_is_not_decompressed_beyond_the_limit(kind: str, coding: str, status: int) -> None:
    """If this fails, a host fills the memory of a service with a few kB."""
    sent = whole(BOMBS[coding], f"Content-Encoding: {coding}", status=status)
    with hosting(always(sent)) as host, connected(kind, host.url, Limits(max_body=MIB)) as provider:
        tracemalloc.start()
        error = failed(lambda: provider.get_repo(REPO))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    assert type(error) is UnexpectedResponseError
    assert "limits.max_body" in error.message
    assert error.status == status
    assert peak < 16 * MIB
    assert len(host.heard) == 1


@kinds
@pytest.mark.parametrize(
    "body",
    [
        endless(head(), b"0" * 1000),
        endless(head("Content-Length: 1073741824"), b"0" * 1000),
        endless(head("Transfer-Encoding: chunked"), b"3e8\r\n" + b"0" * 1000 + b"\r\n"),
    ],
    ids=["until it closes", "with a length", "in chunks"],
)
def test_a_body_without_end_is_cut_at_the_limit(kind: str, body: Script) -> None:
    """If this fails, a host keeps a service reading until its memory is full."""
    with hosting(body) as host, connected(kind, host.url, Limits(max_body=MIB)) as provider:
        error = failed(lambda: provider.create_branch(REPO, "change", source=SHA))
        assert host.sent < 32 * MIB  # what the sockets' buffers took besides

    assert type(error) is UnexpectedResponseError
    assert "limits.max_body" in error.message
    assert error.outcome is Outcome.UNKNOWN
    assert error.intent is not None
    assert len(host.heard) == 1


@kinds
@pytest.mark.parametrize(
    "codings", [["gzip, gzip"], ["gzip", "gzip"], ["deflate,gzip"], ["br"], ["zstd"], ["GZIP ,x"], ["compress"]]
)
def test_an_encoding_that_cannot_be_bounded_is_refused(kind: str, codings: list[str]) -> None:
    """If this fails, 1.7 kB that are compressed twice become gigabytes in one step."""
    body = gzip.compress(gzip.compress(b"0" * 64 * MIB))
    sent = whole(body, *[f"Content-Encoding: {coding}" for coding in codings])
    with hosting(always(sent)) as host, connected(kind, host.url) as provider:
        error = failed(lambda: provider.get_repo(REPO))

    assert type(error) is UnexpectedResponseError
    assert "Content-Encoding" in error.message


@kinds
@pytest.mark.parametrize("extra", [0, 1])
def test_the_limit_is_the_last_size_that_is_read(kind: str, extra: int) -> None:
    """If this fails, a body of exactly the limit is refused, or a larger one is read."""
    body = b'{"id": 1}'.ljust(1000)
    with hosting(always(whole(body))) as host, connected(kind, host.url, Limits(max_body=1000 - extra)) as provider:
        error = failed(lambda: provider.get_repo(REPO))

    assert ("limits.max_body" in error.message) is bool(extra)


@kinds
def test_what_is_cut_before_the_effect_step_is_not_applied(kind: str) -> None:
    """If this fails, a caller asks what became of a request that was never sent."""
    with hosting(endless(head(), b"0")) as host, connected(kind, host.url, Limits(max_body=MIB)) as provider:
        error = failed(lambda: provider.create_repo(REPO))

    assert error.outcome is Outcome.NOT_APPLIED
    assert "limits.max_body" in error.message
    assert [heard.method for heard in host.heard] == ["GET"]


@kinds
def test_a_connection_with_the_rest_of_a_body_is_not_used_again(kind: str) -> None:
    """If this fails, the rest of one response is read as the next one."""
    with hosting(always(whole(b"0" * 5000))) as host, connected(kind, host.url, Limits(max_body=1000)) as provider:
        errors = [failed(lambda: provider.get_repo(REPO)) for _ in range(3)]

    assert [error.status for error in errors] == [200, 200, 200]


# JSON


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":[', "]}]")])
def test_json_is_parsed_to_a_bounded_depth(opening: str, closing: str) -> None:
    """If this fails, code that walks a value overflows the stack."""
    levels = opening.count("[") + opening.count("{")
    assert parse(nested(MAX_DEPTH // levels, opening, closing))
    for depth in (MAX_DEPTH // levels + 1, 490, 5_000, 200_000):
        with pytest.raises(JsonLimitError, match="levels"):
            parse(nested(depth, opening, closing))


def test_wide_json_is_not_deep() -> None:
    """If this fails, an ordinary long list is refused."""
    assert len(parse(json.dumps([{"a": [n]} for n in range(1000)]))) == 1000


@pytest.mark.parametrize("item", ["[]", "{}", "0", '"a"', '{"a":1}'])
def test_json_has_a_bounded_number_of_values(item: str) -> None:
    """If this fails, a body within its limit takes thirty times its size when it is parsed."""
    with pytest.raises(JsonLimitError, match="values"):
        parse(f"[{','.join([item] * (MAX_VALUES + 1))}]")


@kinds
@pytest.mark.parametrize("status", [201, 409, 500])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 490, 100_000])
@pytest.mark.parametrize("shape", ["{}", '{{"message":{}}}', '{{"error":{{"base":{}}}}}', '{{"errors":[{}]}}'])
def test_deep_json_in_any_response_is_an_error_with_the_intent(kind: str, status: int, depth: int, shape: str) -> None:
    """If this fails, a RecursionError comes out of a mutation, and nobody knows whether it was applied."""
    for body in (nested(depth), nested(depth, '{"a":', "}")):
        sent = whole(shape.format(body).encode(), status=status)
        with hosting(always(sent)) as host, connected(kind, host.url) as provider:
            error = failed(lambda: provider.create_branch(REPO, "change", source=SHA))

        assert error.intent is not None
        assert error.outcome is not Outcome.PARTIAL
        if status in (201, 500):
            assert error.outcome is Outcome.UNKNOWN
        assert repr(pickle.loads(pickle.dumps(error))) == repr(copy.copy(error))
        assert repr(error.__cause__)
        assert len([heard for heard in host.heard if heard.method == "POST"]) == 1


# Time


@kinds
@pytest.mark.parametrize(
    "body",
    [
        endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        endless(b"", b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n"),
        endless(head(), b" "),
        endless(head("Transfer-Encoding: chunked"), b"1\r\n \r\n"),
        endless(head("Transfer-Encoding: chunked") + b"0\r\n", b"A: b\r\n"),
        endless(head("Content-Encoding: gzip"), gzip.compress(b"")),
        endless(head("Content-Length: 99999999999"), b" "),
    ],
    ids=["100", "100 with headers", "body", "chunks", "trailers", "empty gzip members", "a length"],
)
@pytest.mark.parametrize("how", ["limit", "block"])
def test_a_response_without_end_is_cut_at_the_deadline(kind: str, body: Script, how: str) -> None:
    """If this fails, a host that sends a little now and then keeps a call for as long as it likes."""
    clock = Ticking()
    limits = Limits(max_body=10**15, deadline=40.0 if how == "limit" else None, clock=clock)
    with hosting(body) as host, connected(kind, host.url, limits) as provider:
        if how == "limit":
            error = failed(lambda: provider.create_branch(REPO, "change", source=SHA))
        else:
            with deadline(40.0, clock=clock):
                error = failed(lambda: provider.create_branch(REPO, "change", source=SHA))

    assert type(error) is ProviderUnavailableError
    assert ("limits.deadline of 40 seconds" if how == "limit" else "the deadline of 40 seconds") in error.message
    assert error.outcome is Outcome.UNKNOWN
    assert error.intent is not None
    assert len(host.heard) == 1


@kinds
def test_a_silent_host_is_given_up_at_the_deadline(kind: str) -> None:
    """If this fails, a deadline shorter than the timeout is not kept while nothing comes."""
    stop = threading.Event()

    def respond(heard: Heard) -> Iterable[bytes]:
        stop.wait(30)
        return ()

    with hosting(respond) as host, connected(kind, host.url, Limits(deadline=0.2)) as provider:
        error = failed(lambda: provider.get_repo(REPO))
        stop.set()

    assert "limits.deadline" in error.message


@kinds
def test_after_the_deadline_nothing_is_sent(kind: str) -> None:
    """If this fails, a call goes on sending after its time, or a caller thinks that it may have."""
    with hosting(always(whole(b"{}"))) as host, connected(kind, host.url) as provider, deadline(0):
        error = failed(lambda: provider.create_branch(REPO, "change", source=SHA))

    assert host.heard == []
    assert type(error) is ProviderUnavailableError
    assert error.outcome is Outcome.NOT_APPLIED
    assert "the deadline" in error.message


@kinds
def test_a_read_is_not_tried_again_beyond_the_deadline(kind: str) -> None:
    """If this fails, the waits of a retry outlast the deadline."""
    waits: list[float] = []
    retry = RetryOptions(max_attempts=9, sleep=waits.append, random=lambda low, high: high, base_delay=4.0)
    now = 100.0
    with (
        hosting(always(whole(b"{}", status=503))) as host,
        connected(kind, host.url, retry=retry) as provider,
        deadline(3, clock=lambda: now),
    ):
        error = failed(lambda: provider.get_repo(REPO))

    assert (len(host.heard), waits) == (1, [])
    assert error.status == 503


def test_the_earliest_deadline_decides() -> None:
    """If this fails, an inner block can give itself more time than the outer one has."""

    def left(*seconds: float) -> float:
        if not seconds:
            return PollDeadline(1000.0, clock=lambda: 0.0).left
        with deadline(seconds[0], clock=lambda: 0.0):
            return left(*seconds[1:])

    assert [left(5, 9), left(9, 5), left(9), left()] == [5.0, 5.0, 9.0, 1000.0]


def test_a_wait_that_would_end_after_the_deadline_is_not_begun() -> None:
    """If this fails, a poll or a resolution sleeps past the deadline."""
    slept: list[float] = []
    with deadline(5, clock=lambda: 0.0):
        wait(5, slept.append)
        with pytest.raises(RetryCancelledError, match="deadline"):
            wait(6, slept.append)

    assert slept == [5]


def test_a_deadline_is_of_its_own_thread() -> None:
    """If this fails, one caller's deadline ends another caller's wait."""
    slept: list[float] = []
    with deadline(0):
        thread = threading.Thread(target=lambda: wait(6, slept.append))
        thread.start()
        thread.join()

    assert slept == [6]


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "5", None, True])
def test_a_wrong_deadline_is_refused(seconds: Any) -> None:
    """If this fails, a deadline that means nothing is taken for one."""
    with pytest.raises(InvalidRequestError), deadline(seconds):
        pass


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_body", 0), ("max_body", 1.5), ("max_pages", 0), ("max_pages", None), ("deadline", 0), ("deadline", "1")],
)
def test_a_wrong_limit_is_refused_by_name(name: str, value: Any) -> None:
    """If this fails, a limit is accepted that limits nothing."""
    with pytest.raises(InvalidRequestError) as caught:
        Limits(**{name: value})

    assert caught.value.argument == name


@kinds
@pytest.mark.parametrize("seconds", [0.25, 15, 2.5])
def test_a_timeout_may_be_a_part_of_a_second(kind: str, seconds: float) -> None:
    """If this fails, one host takes a timeout that the other refuses."""
    with connect(kind, token="t0ken-0123456789", timeout=seconds, limits=Limits(max_pages=3)) as provider:
        assert provider.supports("create_repo.auto_init")


def test_the_local_forge_refuses_limits() -> None:
    """If this fails, an option is accepted and ignored."""
    with pytest.raises(InvalidRequestError, match="limits"):
        connect("local", root="/nowhere", limits=Limits())


# Pages


def paged(page: Callable[[int], list[dict[str, Any]]]) -> Script:
    """Every page says that another one follows."""

    def respond(heard: Heard) -> Iterable[bytes]:
        number = int(parse_qs(urlsplit(heard.target).query)["page"][0])
        link = f'Link: <http://any/?page={number + 1}>; rel="next"'
        return [whole(json.dumps(page(number)).encode(), link, f"X-Next-Page: {number + 1}")]

    return respond


def branches(start: int) -> list[dict[str, Any]]:
    return [
        {"name": f"b{n}", "commit": {"sha": f"{n:040x}", "id": f"{n:040x}"}, "protected": False, "default": False}
        for n in range(start, start + 100)
    ]


@kinds
@pytest.mark.parametrize("period", [1, 2, 3, 7])
def test_pages_that_come_round_again_are_an_error(kind: str, period: int) -> None:
    """If this fails, a host whose pages alternate keeps a listing going for ever."""
    respond = paged(lambda number: branches(100 * (number % period)))
    with hosting(respond) as host, connected(kind, host.url) as provider:
        error = failed(lambda: provider.list_branches(REPO))

    assert type(error) is UnexpectedResponseError
    assert "would not end" in error.message
    assert len(host.heard) == period + 1


@kinds
def test_pages_without_end_are_cut_at_the_limit(kind: str) -> None:
    """If this fails, a host that makes up new pages fills the memory of a service."""
    respond = paged(lambda number: branches(100 * number))
    with hosting(respond) as host, connected(kind, host.url, Limits(max_pages=5)) as provider:
        error = failed(lambda: provider.list_branches(REPO))

    assert type(error) is UnexpectedResponseError
    assert "5 pages" in error.message
    assert "limits.max_pages" in (error.hint or "")
    assert len(host.heard) == 5


# Headers that an SDK reads


class WithHeaders:
    """A fake server whose responses have further headers."""

    def __init__(self, fake: FakeServer, headers: Mapping[str, str]) -> None:
        self._fake = fake
        self._headers = headers
        self.calls: list[str] = []

    def endpoint(self, request: Request) -> str:
        return self._fake.endpoint(request)

    def handle(self, request: Request) -> Response:
        self.calls.append(request.method)
        response = self._fake.handle(request)
        kept = {name: value for name, value in response.headers.items() if name.lower() not in self._headers}
        return replace(response, headers={**kept, **self._headers})


@kinds
@pytest.mark.parametrize("value", ["abc", "", "nan", "1e999", "9" * 5000])
def test_a_header_that_an_sdk_cannot_read_does_not_undo_a_success(kind: Any, value: str, tmp_path: Path) -> None:
    """If this fails, a mutation that took effect is an error, because of a number that nobody asked for."""
    names = ("x-ratelimit-remaining", "x-ratelimit-limit", "x-ratelimit-reset", "retry-after", "ratelimit-remaining",
             "ratelimit-reset", "ratelimit-limit", "x-total", "x-oauth-scopes")  # fmt: skip
    forge, fake, token, url = fake_of(kind, tmp_path)
    given_project(forge, REPO)
    host = WithHeaders(fake, dict.fromkeys(names, value))
    with responses.RequestsMock() as rsps, provider_of(kind, token, url) as provider:
        mount(host, rsps, url)
        made = provider.create_branch(REPO, "new", source=forge.head(REPO, "main"))

    assert forge.head(REPO, "new") == made.sha
    assert host.calls == ["POST"]
