"""Pages of a list, read side by side: what is sent, what is not sent any more, and in which order it comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import groupby
from typing import Any

import pytest

from gitprovider._remote.operation import RemoteOperation
from gitprovider._remote.response import Request, Response, StatusError
from gitprovider._remote.side_by_side import SideBySide
from gitprovider._remote.throttle import Answered, Sending
from gitprovider.connect import connect
from gitprovider.errors import (
    GitProviderError,
    InvalidRequestError,
    ProviderUnavailableError,
    RateLimitedError,
    RetryCancelledError,
    UnexpectedResponseError,
    UnsupportedOptionError,
)
from gitprovider.events import Event, RequestEvent
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider
from gitprovider.retry import Limits, Retrier, RetryOptions, WaitBudget, cancel_on
from tests.support.patience import PATIENCE

PAGES, ITEMS = 11, 1003


class Listed:
    """A host with a list of ``PAGES`` pages. It sends nothing.

    Attributes:
        sent, senders: the page and the thread of each request, in the order in which they were sent.
        most: the largest number of requests that were open at the same time.
        statuses: what the next answers to a page are, before it is listed.
        together: how many pages after the first begin at the same time; they wait for each other.
        until: for a page, what its answer waits for.
        events: what the hook was told of.
        limited: set once the hook was told of a 429.
        interrupted: the thread in which Ctrl+C is pressed on a page after the first.
    """

    def __init__(self, statuses: Mapping[int, list[int]] = {}, *, together: int = 0) -> None:
        self.sent: list[int] = []
        self.senders: list[int] = []
        self.most = 0
        self.statuses = {page: list(answers) for page, answers in statuses.items()}
        self.until: dict[int, threading.Event] = {}
        self.items = {page: range((page - 1) * 100, min(page * 100, ITEMS)) for page in range(1, PAGES + 1)}
        self.events: list[RequestEvent] = []
        self.limited = threading.Event()
        self.interrupted: int | None = None
        self._open = 0
        self._lock = threading.Lock()
        self._start = dict.fromkeys(range(2, 2 + together), threading.Barrier(together or 1))

    def hear(self, event: Event) -> None:
        if isinstance(event, RequestEvent):
            self.events.append(event)
            if event.status == 429:
                self.limited.set()

    def answer(self, page: int) -> tuple[int, Any]:
        with self._lock:
            self.sent.append(page)
            self.senders.append(threading.get_ident())
            self._open += 1
            self.most = max(self.most, self._open)
            first = self.sent.count(page) == 1
        if first and page in self._start:
            self._start[page].wait(PATIENCE)
        if page > 1 and threading.get_ident() == self.interrupted:
            raise KeyboardInterrupt
        if page in self.until:
            assert self.until[page].wait(PATIENCE)
        with self._lock:
            self._open -= 1
            status = self.statuses.get(page, []) and self.statuses[page].pop(0)
        return status or 200, [{"iid": item} for item in self.items[page]]


class Lent:
    """A client of a :class:`Listed`. Two threads that use it at the same time are an error."""

    def __init__(self, host: Listed) -> None:
        self.host = host
        self._free = threading.Lock()

    def send(self, request: Request) -> Response:
        assert request.query is not None
        assert self._free.acquire(blocking=False), "two requests share a client"
        try:
            page = int(request.query["page"])
            status, data = self.host.answer(page)
        finally:
            self._free.release()
        links = f'<https://h/?page={page + 1}>; rel="next"' if page < PAGES else ""
        answer = Response(status=status, endpoint=request.endpoint, data=data, headers={"link": links})
        if status != 200:
            raise StatusError(answer)
        return answer

    def resource(self, request: Request) -> str:
        return "core"

    def has_next(self, response: Response) -> bool:
        return bool(response.headers["link"])

    def size(self, response: Response) -> tuple[str, int] | None:
        return ("pages", PAGES) if response.headers["link"] else None

    def close(self) -> None:
        """Nothing is open."""


def translate(exc: Exception) -> GitProviderError:
    assert isinstance(exc, StatusError), exc
    if exc.response.status == 429:
        return RateLimitedError("slow down", retry_after=7.0)
    return ProviderUnavailableError(f"HTTP {exc.response.status}", transient=True)


def list_items(
    host: Listed, *, concurrency: int = 4, retry: RetryOptions = RetryOptions(max_attempts=1), **known: Any
) -> tuple[list[int], RemoteOperation[Lent]]:
    @contextmanager
    def lend() -> Iterator[Lent]:
        yield Lent(host)

    waits = WaitBudget(retry)
    op = RemoteOperation(
        "list_branches",
        "acme/widgets",
        client=Lent(host),
        lend=lend,
        page_concurrency=concurrency,
        authenticate=lambda op: None,
        provider="any",
        host="git.example.org",
        translate=translate,
        hooks=(host.hear,),
        waits=waits,
        **known,
    )

    def retried(part: RemoteOperation[Lent]) -> Callable[[Callable[[], Any]], Any]:
        retrier = Retrier[Any](retry, should_retry=lambda error: isinstance(error, GitProviderError), budget=waits)

        def once(fn: Callable[[], Any]) -> Any:
            with part.before("list branches"):
                return fn()

        return lambda fn: retrier(partial(once, fn))

    with op.before("list branches"):
        return op.pages("/items", lambda item: item.int("iid"), retried=retried), op


def test_pages_are_read_side_by_side_and_returned_in_order() -> None:
    """A list would take as long as its pages one after the other, or come back in the order of the answers."""
    host = Listed(together=4)

    listed, op = list_items(host)

    assert listed == list(range(ITEMS))
    assert (host.sent[0], sorted(host.sent), host.most) == (1, list(range(1, PAGES + 1)), 4)
    assert (op.requests, len(host.events)) == (PAGES, PAGES)
    assert not _threads()


def test_by_default_one_page_is_read_after_the_other() -> None:
    """GitHub asks for serial requests."""
    host = Listed()

    assert list_items(host, concurrency=1)[0] == list(range(ITEMS))
    assert (host.sent, host.most) == (list(range(1, PAGES + 1)), 1)


@pytest.mark.parametrize("status", [429, 500])
def test_after_a_failed_page_nothing_more_is_sent(status: int) -> None:
    """A host that refuses would be asked for the rest of the list all the same."""
    host = Listed({3: [status]}, together=4)
    told = threading.Event()
    host.until = dict.fromkeys((2, 4, 5), told)

    with pytest.raises(RateLimitedError if status == 429 else ProviderUnavailableError) as caught:
        list_items(host, throttle=_Noting(told))

    assert sorted(host.sent) == [1, 2, 3, 4, 5]
    assert caught.value.failed_step == "list branches"


class _Noting:
    """A throttle that sets an event once it was told of an answer that is not 200."""

    def __init__(self, told: threading.Event) -> None:
        self.asked: list[Sending] = []
        self.answered: list[Answered] = []
        self._told = told

    def before(self, request: Sending) -> None:
        self.asked.append(request)

    def after(self, response: Answered) -> None:
        self.answered.append(response)
        if response.status != 200:
            self._told.set()


def test_after_a_limit_the_list_goes_on_one_page_at_a_time() -> None:
    """The other pages would be sent while the host asks to wait, or the list would fail although a retry is allowed."""
    host = Listed({3: [429]}, together=4)
    host.until = dict.fromkeys((2, 4, 5), host.limited)
    waits: list[tuple[float, int]] = []
    throttle = _Noting(threading.Event())

    retry = RetryOptions(sleep=lambda seconds: waits.append((seconds, len(host.sent))), random=lambda low, high: low)
    listed, op = list_items(host, retry=retry, throttle=throttle)

    assert listed == list(range(ITEMS))
    assert waits == [(7.0, 5)], "a page was sent before the wait, or more than one waited"
    turns = [thread for thread, _ in groupby(host.senders[5:])]
    assert len(turns) == len(set(turns)) <= 2, "the page that met the limit was not the only one, then the caller"
    assert len(host.sent) == op.requests == len(host.events) == PAGES + 1
    assert len(throttle.asked) == len(throttle.answered) == PAGES + 1


def test_of_several_limits_one_is_waited_for() -> None:
    """Every page that meets the limit would wait and be sent again by itself."""
    host = Listed({page: [429] for page in (2, 3, 4, 5)}, together=4)
    waits: list[float] = []
    retry = RetryOptions(sleep=waits.append, random=lambda low, high: low)

    listed, _ = list_items(host, retry=retry)

    assert listed == list(range(ITEMS))
    assert waits == [7.0]
    assert len(host.sent) == PAGES + 4


def test_a_cancelled_wait_ends_the_list() -> None:
    """A thread would go on sending for a caller who is gone."""
    host = Listed({3: [429]}, together=4)
    host.until = dict.fromkeys((2, 4, 5), host.limited)
    cancelled = threading.Event()
    cancelled.set()

    with cancel_on(cancelled), pytest.raises(RetryCancelledError):
        list_items(host, retry=RetryOptions(sleep=lambda seconds: None))

    assert sorted(host.sent) == [1, 2, 3, 4, 5]


def test_an_interrupt_ends_the_list() -> None:
    """Ctrl+C would leave threads that go on sending."""
    host = Listed(together=4)
    host.interrupted = threading.get_ident()

    with pytest.raises(KeyboardInterrupt):
        list_items(host)

    assert not _threads()


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("gitprovider-pages")]


@pytest.mark.parametrize(
    ("items", "limits", "problem"),
    [
        ({7: range(600, 699)}, Limits(), "page 7 has 99 of 100 items"),
        ({9: range(100, 200)}, Limits(), "page 9 repeats an earlier page"),
        ({}, Limits(max_pages=10), "more than 10 pages"),
    ],
)
def test_pages_are_checked_as_when_they_are_read_one_by_one(
    items: Mapping[int, range], limits: Limits, problem: str
) -> None:
    """A list with a hole, or without an end, would be taken for the whole."""
    host = Listed()
    host.items |= items

    with pytest.raises(UnexpectedResponseError, match=problem):
        list_items(host, max_pages=limits.max_pages)

    assert len(host.sent) <= limits.max_pages


def test_after_the_last_page_no_other_is_begun() -> None:
    """A host that names page 999,999,999 as the last would be asked for as many pages as the limits allow."""
    ended = threading.Event()

    def run(part: str, page: int) -> int:
        if page == 3:
            beside.finish()
            ended.set()
        assert ended.wait(PATIENCE)
        return page

    beside = SideBySide(run, range(2, 999_999_999))

    assert beside.results("own", lambda: nullcontext("lent"), 1) == {2: 2, 3: 3}


def test_the_waits_of_all_parts_have_one_budget() -> None:
    """Each thread would wait as long as the whole operation may."""
    budget = WaitBudget(RetryOptions(max_total_wait=10, sleep=lambda seconds: None))

    assert [budget.take(6), budget.take(6), budget.take(4), budget.take(1)] == [True, False, True, False]


@pytest.mark.parametrize(
    ("url", "most"),
    [
        ("https://github.com", 4),
        ("https://acme.ghe.com", 4),
        ("https://git.example.org", 8),
        ("http://127.0.0.1:1", 8),
    ],
)
def test_github_allows_so_many_pages_at_a_time(url: str, most: int) -> None:
    """GitHub would block the credential for requests that are not serial."""
    GitHubProvider("t0ken-t0ken", base_url=url, page_concurrency=most).close()
    for wrong in (0, most + 1, True, "2"):
        with pytest.raises(InvalidRequestError, match="page_concurrency"):
            GitHubProvider("t0ken-t0ken", base_url=url, page_concurrency=wrong)  # type: ignore[arg-type]  # some are not int


def test_other_hosts_say_why_not(tmp_path: Any) -> None:
    """The option would be accepted and then ignored."""
    GitLabProvider(private_token="t0ken-t0ken", page_concurrency=1).close()
    builds: list[Callable[[], object]] = [
        lambda: GitLabProvider(private_token="t0ken-t0ken", page_concurrency=2),
        lambda: connect("gitlab", token="t0ken-t0ken", page_concurrency=2, environ={}),
        lambda: connect("local", root=tmp_path, page_concurrency=2),
    ]
    for build in builds:
        with pytest.raises(UnsupportedOptionError, match=r"page_concurrency: .*(GitLab|local forge) reads") as caught:
            build()
        assert (caught.value.option, bool(caught.value.hint)) == ("page_concurrency", True)
