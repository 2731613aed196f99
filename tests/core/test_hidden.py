"""What is raised leads to no credential: not by its text, and not by its frames, causes or values."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from gitprovider import (
    BranchProtection,
    GitProviderError,
    InvalidRequestError,
    PutFile,
    RetryOptions,
    connect,
    connect_repo,
)
from gitprovider.aio import AsyncGitProvider
from gitprovider.events import Event
from tests.support.reachable import leaks

TOKEN = "opaque-s3cret-0f-no-shape"
CALLS: dict[str, Callable[[Any], Any]] = {
    "get_repo": lambda p: p.get_repo("acme/w"),
    "list_branches": lambda p: p.list_branches("acme/w"),
    "create_repo": lambda p: p.create_repo("acme/w"),
    "create_branch": lambda p: p.create_branch("acme/w", "x", source="main"),
    "protect_branch": lambda p: p.protect_branch("acme/w", "main", BranchProtection()),
    "commit_files": lambda p: p.commit_files("acme/w", "main", [PutFile(path="a", content="a")], message="m"),
    "open_pull_request": lambda p: p.open_pull_request("acme/w", source_branch="x", target_branch="y", title="t"),
    "merge_pull_request": lambda p: p.merge_pull_request("acme/w", 1),
}


class Handler(BaseHTTPRequestHandler):
    """Answers everything with what the server was told, and echoes the headers of the request."""

    def do_GET(self) -> None:
        status, kind = self.server.answer  # type: ignore[attr-defined] # set by the test
        body = f'{{"message": "{kind} {self.headers}"}}'.encode() if kind == "json" else f"<p>{self.headers}".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Request-Id", f"id-{TOKEN}\x1b[31m")
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the names that the server calls

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def build(kind: str, port: int, events: list[Event] | None = None) -> Any:
    hook = None if events is None else events.append
    url, retry = f"http://127.0.0.1:{port}", RetryOptions(max_attempts=1)
    return connect(kind, url=url, token=TOKEN, retry=retry, on_event=hook, environ={})


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "answer", [(200, "html"), (200, "json"), (401, "json"), (404, "json"), (422, "json"), (500, "html")]
)
@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_no_credential_is_reachable_from_the_error_of_a_refused_call(
    server: Any, kind: str, answer: tuple[int, str], call: str
) -> None:
    """A tracker of errors that walks frames or causes would store the Authorization header of the request."""
    server.answer = answer
    events: list[Event] = []

    with build(kind, server.server_port, events) as provider, pytest.raises(GitProviderError) as caught:
        CALLS[call](provider)

    assert leaks(caught.value, TOKEN) == []
    assert TOKEN not in repr(events)
    assert "\x1b" not in repr(caught.value.request_id) + repr(events)
    assert all("\\x1b" not in repr(event) for event in events)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "raised", [KeyboardInterrupt, SystemExit, MemoryError, ConnectionRefusedError, ZeroDivisionError]
)
@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_no_credential_is_reachable_from_what_interrupts_a_call(
    monkeypatch: pytest.MonkeyPatch, kind: str, raised: type[BaseException], call: str
) -> None:
    """Ctrl+C passes through the SDK's frames with the header, as does every error that the SDK does not know."""

    def interrupted(*args: object, **known: object) -> None:
        raise raised("inside the SDK")

    monkeypatch.setattr(socket, "getaddrinfo", interrupted)
    with build(kind, 1) as provider, pytest.raises(BaseException) as caught:  # noqa: PT011 - whatever it is
        CALLS[call](provider)

    assert isinstance(caught.value, GitProviderError | raised)
    assert leaks(caught.value, TOKEN) == []
    if isinstance(caught.value, raised):
        assert caught.tb.tb_next is not None  # where it happened is still there


def test_the_frames_of_the_caller_are_left_alone() -> None:
    """A call in an except block must not clear the exception that the caller is handling."""
    with build("github", 1) as provider:
        try:
            raise LookupError("the caller's")
        except LookupError as handled:
            mine = handled
            with pytest.raises(GitProviderError):
                provider.get_repo("acme/w")

    assert mine.__traceback__ is not None
    assert mine.__traceback__.tb_frame is sys._getframe()


def test_no_credential_is_reachable_through_the_coroutines(server: Any) -> None:
    """The worker thread's frames are part of the error as well."""
    server.answer = (404, "json")

    async def main() -> None:
        async with AsyncGitProvider(build("gitlab", server.server_port)) as provider:
            await provider.create_branch("acme/w", "x", source="main")

    with pytest.raises(GitProviderError) as caught:
        asyncio.run(main())

    assert leaks(caught.value, TOKEN) == []


SECRET_ENV = {"GITHUB_TOKEN": TOKEN, "GITLAB_TOKEN": TOKEN, "GITPROVIDER_TOKEN": TOKEN}
ANY: Any = {"no str": 5, "verify": 3.5, "retry": 3, "hosts": [TOKEN]}
REFUSED: dict[str, Callable[[], Any]] = {
    "an unknown name": lambda: connect("forgejo", token=TOKEN, environ=SECRET_ENV),
    "no str": lambda: connect(ANY["no str"], token=TOKEN, environ=SECRET_ENV),
    "an option of another": lambda: connect("github", token=TOKEN, obey_rate_limit=True, environ=SECRET_ENV),
    "a token for local": lambda: connect("local", token=TOKEN, root="x", environ=SECRET_ENV),
    "a root": lambda: connect("gitlab", token=TOKEN, root="x", environ=SECRET_ENV),
    "no root": lambda: connect("local", environ=SECRET_ENV),
    "a wrong url": lambda: connect("github", url="ftp://x", token=TOKEN, environ=SECRET_ENV),
    "a url with credentials": lambda: connect("github", url=f"https://u:{TOKEN}@h", environ=SECRET_ENV),
    "a token of two lines": lambda: connect("github", token=f"{TOKEN}\n{TOKEN}", environ=SECRET_ENV),
    "a wrong verify": lambda: connect("github", token=TOKEN, verify=ANY["verify"], environ=SECRET_ENV),
    "a wrong timeout": lambda: connect("gitlab", token=TOKEN, timeout=-1, environ=SECRET_ENV),
    "a wrong retry": lambda: connect("gitlab", token=TOKEN, retry=ANY["retry"], environ=SECRET_ENV),
    "no token there": lambda: connect("github", url="https://h.example", environ={"GITHUB_TOKEN": TOKEN}),
    "a repo nowhere": lambda: connect_repo("https://h.example/a/b", environ=SECRET_ENV),
    "a repo with credentials": lambda: connect_repo(f"https://{TOKEN}@github.com/a/b", environ=SECRET_ENV),
    "a repo in a list": lambda: connect_repo("https://h/a/b", hosts=ANY["hosts"], environ=SECRET_ENV),
    "a repo with a wrong option": lambda: connect_repo(
        "https://github.com/a/b", timeout=-1, environ={"GITHUB_TOKEN": TOKEN}
    ),
    "no folder": lambda: connect_repo("/nowhere/x", environ=SECRET_ENV),
}


@pytest.mark.parametrize("call", REFUSED)
def test_a_refused_connection_leads_to_no_token_and_no_environment(call: str) -> None:
    """Whatever is refused, and however early, frames must not hold the token or the variables beside it."""
    with pytest.raises(GitProviderError) as caught:
        REFUSED[call]()

    assert leaks(caught.value, TOKEN) == []


def test_a_leak_would_be_found() -> None:
    """The walk reaches a frame's locals, a cause's attributes and a closure; otherwise the tests above are blind."""

    namespace: dict[str, Any] = {}
    exec(  # a frame that is not of this file
        "def fail(token):\n    hidden = [{'headers': (token,)}]\n    raise ValueError\n", namespace
    )
    with pytest.raises(ValueError) as by_frame:  # noqa: PT011 - the error is ours
        namespace["fail"](TOKEN + "!")
    by_cause = InvalidRequestError("x")
    by_cause.__cause__ = cause = OSError()
    cause.request = lambda hidden=TOKEN: hidden  # type: ignore[attr-defined] # set by the test

    assert leaks(by_frame.value, TOKEN)
    assert leaks(by_cause, TOKEN)
