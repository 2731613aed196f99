"""A host that wants to harm its client: whatever it sends, a call ends in an error that gives nothing away."""

from __future__ import annotations

import gzip
import io
import json
import logging
import os
import sys
import traceback
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, count, cycle
from pathlib import Path
from typing import Any

import pytest

from gitprovider import BranchProtection, GitProviderError, PutFile, RetryOptions
from gitprovider._core.json import envelope
from gitprovider.cli import main
from gitprovider.events import Event, log_events
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.http import Request
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider
from gitprovider.local import Forge
from gitprovider.retry import Limits
from tests.support.hostile import Heard, HostileHost, Ticking, hosting, response
from tests.support.reachable import leaks

TOKEN = "opaque-s3cret-0f-no-shape"
CONTROL = "\x1b]0;owned\x07\x1b[2J\r\n\x00\x85\u2028\u202eWARNING forged"
REPO = "acme/widgets"
KINDS = ["github", "gitlab"]
CALLS: dict[str, Callable[[Any, int], Any]] = {
    "get_repo": lambda p, n: p.get_repo(REPO),
    "list_branches": lambda p, n: p.list_branches(REPO),
    "create_repo": lambda p, n: p.create_repo(f"acme/new{n}"),
    "create_branch": lambda p, n: p.create_branch(REPO, f"branch{n}", source="main"),
    "protect_branch": lambda p, n: p.protect_branch(REPO, "main", BranchProtection(block_force_push=True)),
    "commit_files": lambda p, n: p.commit_files(
        REPO, "main", [PutFile(path=f"f{n}", content=f"{n}", executable=True)], message="m"
    ),
    "open_pull_request": lambda p, n: p.open_pull_request(
        REPO, source_branch="feature", target_branch="main", title="t", labels=["l"]
    ),
    "merge_pull_request": lambda p, n: p.merge_pull_request(REPO, 1, delete_source_branch=True),
    "head": lambda p, n: p.head(REPO, "main"),
    "tree": lambda p, n: p.tree(REPO, p.head(REPO, "main")),
    "protection": lambda p, n: p.protection(REPO, "main"),
    "find_pull_requests": lambda p, n: p.find_pull_requests(REPO, source_branch="feature", target_branch="main"),
}

# What is sent instead of a response

ECHO = json.dumps(
    {
        TOKEN: TOKEN,
        "message": f"{TOKEN} {CONTROL}",
        "error": {"a": [TOKEN]},
        "errors": [{"message": TOKEN, "field": CONTROL, "code": "custom"}, TOKEN],
        "documentation_url": f"https://docs.github.com/{TOKEN}",
        "full_name": TOKEN,
        "path_with_namespace": TOKEN,
    }
).encode()


def echo(status: str) -> bytes:
    """The token and control characters everywhere in a response."""
    forged = CONTROL.replace("\r\n", "").replace("\x00", "")
    names = ["X-Request-Id", "X-GitHub-Request-Id", "Location", "Link", "Retry-After", "Date", "X-GitHub-SSO"]
    names += ["WWW-Authenticate", "RateLimit-Remaining", "X-RateLimit-Reset", "X-Next-Page", "X-Total", "Set-Cookie"]
    headers = [f"{name}: {TOKEN} {forged}" for name in names] + [f"X-{TOKEN}: x"]
    return response(ECHO, *headers, status=f"{status} {TOKEN} {forged}")


def chunked(*parts: bytes, end: bytes = b"0\r\n\r\n", head: str = "") -> Iterator[bytes]:
    yield f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{head}Transfer-Encoding: chunked\r\n\r\n".encode()
    for part in parts:
        yield b"%x\r\n%s\r\n" % (len(part), part)
    yield end


STATUSES = (200, 201, 202, 204, 301, 302, 307, 400, 401, 403, 404, 405, 409, 422, 429, 500, 503)
FINITE: dict[str, Callable[[], Iterable[bytes]]] = {
    **{f"an echo with {status}": partial(lambda status: [echo(str(status))], status) for status in STATUSES},
    "nothing": lambda: [b""],
    "no HTTP": lambda: [f"{TOKEN}{CONTROL}\r\n\r\n".encode(), b""],
    "half a status line": lambda: [b"HTTP/1.1 2", b""],
    "a status without a number": lambda: [f"HTTP/1.1 {TOKEN}\r\n\r\n".encode(), b""],
    "a status of 999": lambda: [response(ECHO, status="999 x"), b""],
    "a status of 099": lambda: [response(ECHO, status="099 x"), b""],
    "a flood of headers": lambda: [response(b"{}", *(f"X-{n}: {TOKEN}" for n in range(5000)))],
    "one long header": lambda: [response(b"{}", f"X-A: {'a' * 200_000}")],
    "a flood of cookies": lambda: [response(b"{}", *(f"Set-Cookie: c{n}={TOKEN}" for n in range(90)))],
    "a negative length": lambda: [b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}", b""],
    "a length that is none": lambda: [b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}", b""],
    "two lengths": lambda: [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 9\r\n\r\n{}", b""],
    "a body that is cut": lambda: [b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"a\": ", b""],
    "a chunk of no size": lambda: [*chunked(end=b"zz\r\n"), b""],
    "a chunk of a negative size": lambda: [*chunked(end=b"-5\r\n"), b""],
    "a trailer with the token": lambda: chunked(b"{}", end=f"0\r\nX-A: {TOKEN}\r\n\r\n".encode()),
    "no gzip": lambda: [response(ECHO, "Content-Encoding: gzip")],
    "half a gzip": lambda: [response(gzip.compress(ECHO)[:40], "Content-Encoding: gzip")],
    "an unknown encoding": lambda: [response(ECHO, f"Content-Encoding: {TOKEN}")],
    "no UTF-8": lambda: [response(b'{"message": "\xff\xfe\xc3\x28", "id": "\xed\xa0\x80"}')],
    "another charset": lambda: [response("é".encode("utf-16"), kind="application/json; charset=utf-16")],
    "a charset that is none": lambda: [response(ECHO, kind=f"application/json; charset={TOKEN}")],
    "a lone surrogate": lambda: [response(b'{"message": "\\ud800 \\udfff", "full_name": "\\ud800"}', status="422 x")],
    "a byte order mark": lambda: [response(b"\xef\xbb\xbf{}")],
    "an integer without end": lambda: [response(b'{"id": ' + b"9" * 5000 + b"}")],
    "numbers that are none": lambda: [response(b'[{"id": NaN, "number": -Infinity, "iid": 1e999}]')],
    "a wrong type": lambda: [response(b'"text"')],
    "null": lambda: [response(b"null")],
    "a list of everything": lambda: [response(b'[null, [], {}, "", 0, true]')],
    "one key a thousand times": lambda: [response(b"{" + b'"message": "x", ' * 1000 + b'"a": 1}', status="404 x")],
    "a page": lambda: [response(f"<html>{TOKEN}{CONTROL}</html>".encode(), kind="text/html")],
    "a redirect to itself": lambda: [response(b"", "Location: /", status="302 x")],
    "a redirect to a scheme": lambda: [response(b"", f"Location: javascript:{TOKEN}", status="301 x")],
    "a redirect into nothing": lambda: [response(b"", "Location: http://[::1", status="307 x")],
    "a wait of a year": lambda: [response(ECHO, "Retry-After: 31536000", status="429 x")],
    "a wait that is none": lambda: [response(ECHO, f"Retry-After: {'9' * 400}", "Date: x", status="503 x")],
}  # fmt: skip


def endless(head: str, *parts: bytes) -> Callable[[], Iterable[bytes]]:
    """A head, and the parts again and again."""
    start = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{head}\r\n".encode() if head else b""
    return lambda: chain([start] if start else [], cycle([b"".join(parts * 50)]))


def bomb() -> bytes:
    """32 MiB in some kB."""
    return gzip.compress(b"[" + b" " * 2**25 + b"]")


def page(number: int) -> bytes:
    """A full page of branches that says that more follow. Every second one is the same."""
    names = [f"b{number % 2}-{n:03}" for n in range(100)]
    items = [
        {"name": name, "commit": {"sha": "1" * 40, "id": "1" * 40, "url": ""}, "protected": False} for name in names
    ]
    following = 'Link: <http://127.0.0.1/x?page=9>; rel="next"'
    return response(json.dumps(items).encode(), following, "X-Next-Page: 9", "X-Page: 1")


BOMB = bomb()
NUMBERS = count()
# What never ends, or becomes far more than it seems. The limits end it.
ENDLESS: dict[str, Callable[[], Iterable[bytes]]] = {
    "a 100 without end": endless("", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a 100 with the token": endless("", f"HTTP/1.1 100 Continue\r\nX-A: {TOKEN}\r\n\r\n".encode()),
    "a drip of spaces": endless("Content-Length: 99999999999\r\n", b" "),
    "a body without end": endless("Connection: close\r\n", b"0" * 100),
    "chunks without end": endless("Transfer-Encoding: chunked\r\n", b"1\r\n \r\n"),
    "an echo without end": endless("Transfer-Encoding: chunked\r\n", f"{len(TOKEN):x}\r\n{TOKEN}".encode() + b"\r\n"),
    "trailers without end": endless("Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-A: b\r\n"),
    "gzip members without end": endless("Content-Encoding: gzip\r\n", gzip.compress(b"")),
    "a bomb": lambda: [response(BOMB, "Content-Encoding: gzip")],
    "a bomb in an error": lambda: [response(BOMB, "Content-Encoding: gzip", status="422 x")],
    "a bomb in a bomb": lambda: [response(gzip.compress(BOMB), "Content-Encoding: gzip, gzip")],
    "a bomb in ten": lambda: [response(BOMB, *["Content-Encoding: gzip"] * 10)],
    "deep JSON": lambda: [response(b"[" * 100_000)],
    "deep JSON in an error": lambda: [response(b'{"message":' * 490 + b"1" + b"}" * 490, status="404 x")],
    "wide JSON": lambda: [response(b"[" + b"[]," * 300_000 + b"[]]")],
    "pages that alternate": lambda: [page(next(NUMBERS))],
}


@contextmanager
def world(kind: str, root: Path, events: list[Event]) -> Iterator[tuple[HostileHost, Any, dict[str, Any]]]:
    """A host that is honest until it is told what to send, a provider for it, and the place to tell it.

    ``send`` is sent for the requests after ``after``. ``spoil`` is the number of the text to forge in each response.
    """
    fake_class: Any = FakeGitHub if kind == "github" else FakeGitLab
    forge = Forge(root, combine=fake_class.combine)
    forge.create_repo(REPO)
    sha = forge.commit_changes(REPO, "main", [PutFile(path="a", content="a")], message="a", bypass=True).sha
    forge.create_branch(REPO, "feature", sha)
    forge.commit_changes(REPO, "feature", [PutFile(path="b", content="b")], message="b", bypass=True)
    forge.open_pull_request(REPO, source_branch="feature", target_branch="main", title="t")
    told: dict[str, Any] = {"after": 0, "send": None, "seen": 0, "spoil": None}

    def script(heard: Heard) -> Iterable[bytes]:
        told["seen"] += 1
        if told["send"] is not None and told["seen"] > told["after"]:
            send: Callable[[], Iterable[bytes]] = told["send"]
            return send()
        request = Request.of(
            heard.method, heard.target, {**heard.headers, "Host": heard.headers["host"]}, heard.body, scheme="http"
        )
        given = fake.handle(request)
        body = given.body
        if told["spoil"] is not None and body and given.status < 300:
            data = json.loads(body)
            texts = list(fields(data))
            if told["spoil"] < len(texts):
                body = json.dumps(forged(data, texts[told["spoil"]])).encode()
                told["spoilt"] = True
        headers = (f"{name}: {value}" for name, value in given.headers.items())
        return [response(body, *headers, status=f"{given.status} x")]

    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    retry = RetryOptions(max_attempts=1, sleep=sleep, clock=lambda: now[0])
    limits = Limits(max_body=2**20, max_pages=4, deadline=200, clock=Ticking())
    with hosting(script) as host:
        fake = fake_class(forge, token=TOKEN, base=host.url)
        options: dict[str, Any] = {"retry": retry, "on_event": events.append, "limits": limits}
        provider: Any = (
            GitHubProvider(TOKEN, base_url=host.url, **options)
            if kind == "github"
            else GitLabProvider(host.url, private_token=TOKEN, **options)
        )
        with provider:
            yield host, provider, told


def shown(error: GitProviderError) -> list[str]:
    """What programs show of an error: its text, its repr, its JSON, and a traceback."""
    lines = "".join(traceback.format_exception(error)).split("\n")
    return [str(error), repr(error), json.dumps(envelope(error)), *lines]


def check(error: GitProviderError, events: list[Event], caplog: pytest.LogCaptureFixture) -> None:
    """Nothing that a program shows, keeps or logs has the token or a control character."""
    caplog.clear()
    report = log_events()
    for event in events:
        report(event)
    logged = [record.getMessage() for record in caplog.records]
    texts = shown(error) + logged + [repr(event) for event in events]
    assert [text for text in texts if TOKEN in text] == []
    assert [text for text in texts if not text.isprintable()] == []
    assert leaks(error, TOKEN) == []


def meet(
    sent: Mapping[str, Callable[[], Iterable[bytes]]],
    kind: str,
    call: str,
    root: Path,
    caplog: pytest.LogCaptureFixture,
    *,
    latest: int,
) -> None:
    """Let one operation meet everything in ``sent``, at its first request or at a later one, before ``latest``."""
    events: list[Event] = []
    failed = 0
    with world(kind, root / "forge", events) as (_, provider, told):
        for number, (name, send) in enumerate(sent.items()):
            events.clear()
            told.update(after=number % latest, send=send, seen=0)
            try:
                CALLS[call](provider, number)
            except GitProviderError as error:
                check(error, events, caplog)
                failed += 1
            except Exception as error:
                raise AssertionError(f"{name}, after {number % latest} requests: {error!r}") from error

    assert failed > len(sent) / 4


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_sent_the_call_ends_in_an_error_that_gives_nothing_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, call: str
) -> None:
    """If this fails, a host crashes its client, forges its log or reads the token out of it."""
    caplog.set_level(logging.DEBUG, logger="gitprovider")
    meet(FINITE, kind, call, tmp_path, caplog, latest=3)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_never_ends_is_ended_by_a_limit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, call: str
) -> None:
    """If this fails, a host keeps a thread of a service, or its memory, for as long as it likes."""
    meet(ENDLESS, kind, call, tmp_path, caplog, latest=2)


@pytest.mark.parametrize("call", ["list_branches", "create_branch"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_never_ends_takes_little_memory(tmp_path: Path, kind: str, call: str) -> None:
    """If this fails, a host fills the memory of a service, although the call ends."""
    with world(kind, tmp_path / "forge", []) as (_, provider, told):
        for number, (name, send) in enumerate(ENDLESS.items()):
            told.update(after=number % 2, send=send, seen=0)
            tracemalloc.start()
            with suppress(GitProviderError):
                CALLS[call](provider, number)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()

            assert peak < 2**24, f"{name}: {peak} bytes"


# What people see of values that are well-formed


# A terminal style of our own is an escape as well, so these are looked for.
FORGING = ["\x1b]", "\x1b[2J", "\x07", "\x00", "\x85", "\u2028", "\u202e", "\nWARNING"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def fields(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each text in a JSON document."""
    if isinstance(data, str):
        yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, item in items:
        yield from fields(item, (*path, key))


def forged(data: Any, path: tuple[Any, ...]) -> Any:
    """A copy of the document with the token and control characters added to the text at ``path``."""
    if not path:
        return f"{data}{CONTROL}{TOKEN}"
    copy = data.copy()
    copy[path[0]] = forged(data[path[0]], path[1:])
    return copy


COMMANDS = {
    "get_repo": ["get-repo", REPO],
    "list_branches": ["list-branches", REPO],
}


@pytest.mark.parametrize("style", ["terminal", "pipe", "json"])
@pytest.mark.parametrize("call", COMMANDS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_a_host_reaches_the_terminal_as_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, call: str, style: str
) -> None:
    """If this fails, whoever names a branch or describes a repository writes to the terminal of whoever lists it."""
    for name in list(os.environ):
        if name.startswith(("GITPROVIDER_", "GITHUB_", "GITLAB_", "GH_", "CI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GITPROVIDER_TOKEN", TOKEN)
    shown = 0
    with world(kind, tmp_path / "forge", []) as (host, _, told):
        options = ["--provider", kind, "--url", host.url, "--retries", "0", *(["--json"] if style == "json" else [])]
        told["spoil"] = 0
        while not shown or told["spoilt"]:
            out: io.StringIO = Terminal() if style == "terminal" else io.StringIO()
            err: io.StringIO = Terminal() if style == "terminal" else io.StringIO()
            monkeypatch.setattr(sys, "stdout", out)
            monkeypatch.setattr(sys, "stderr", err)
            told["spoilt"] = False
            main([*options, *COMMANDS[call]])
            text = out.getvalue() + err.getvalue()
            assert text
            assert TOKEN not in text, told["spoil"]
            assert [part for part in FORGING if part in text] == [], told["spoil"]
            shown += 1
            told["spoil"] += 7

    assert shown > 1
