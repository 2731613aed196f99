"""An operation of a remote provider. It borrows a client and sends every request through it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from copy import copy
from functools import partial
from hashlib import sha256
from typing import Any, Generic, NamedTuple, TypeVar

from gitprovider._core.operation import Operation, chain
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.response import BodyError, Client, DeadlineError, Request, Response, StatusError
from gitprovider._remote.side_by_side import SideBySide
from gitprovider._remote.throttle import UNSTATED_BLOCK, Sending, Throttle, limit_header, read_answer
from gitprovider.errors import (
    AlreadyExistsError,
    AuthenticationError,
    GitProviderError,
    NotFoundError,
    Outcome,
    ProviderUnavailableError,
    RateLimitedError,
    UnexpectedResponseError,
)
from gitprovider.events import RequestEvent, emit, logged
from gitprovider.redact import Redactor
from gitprovider.retry import Limits, RetryOptions, WaitBudget, earliest_deadline

PAGE_SIZE = 100
_LISTINGS = 3  # how often a list that changes is read from its start
_T = TypeVar("_T")
_C = TypeVar("_C", bound=Client)


class _Page(NamedTuple, Generic[_T]):
    """A page of a list: its items, a digest of what the host sent, and what the host says about the list."""

    items: list[_T]
    digest: bytes
    more: bool
    size: tuple[str, int] | None


class RemoteOperation(Operation, Generic[_C]):
    """An operation with a borrowed client.

    Attributes:
        client: the borrowed client.
        waits: the waits of this operation, between attempts and for the throttle.
        refusal: the response of the last failed step; None if there was none.
    """

    def __init__(
        self,
        name: str,
        repo: str,
        *,
        client: _C,
        authenticate: Callable[[RemoteOperation[_C]], None],
        redact: Callable[[str], str] = Redactor(),
        denied_write: Callable[[GitProviderError, Response], GitProviderError] = lambda error, response: error,
        max_pages: int = Limits().max_pages,
        page_concurrency: int = 1,
        lend: Callable[[], AbstractContextManager[_C]] | None = None,
        throttle: Throttle | None = None,
        waits: WaitBudget | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, repo, **kwargs)
        self.client = client
        self.refusal: Response | None = None
        self._authenticate = authenticate
        self._redact = redact
        self._denied_write = denied_write
        self._max_pages = max_pages
        self._page_concurrency = page_concurrency
        self._lend = lend
        self._beside: SideBySide[Any, Any] | None = None  # the other parts, while pages are read side by side
        self._throttle = throttle
        self.waits = waits or WaitBudget(RetryOptions())
        self._seen = False  # whether the repository was read, or written to, in this operation

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        super().__exit__(kind, error, traceback)
        self._let_go()
        self.refusal = None

    def _let_go(self) -> None:
        # Frames of a traceback refer to the operation. From here on it leads to no credential.
        del self.client, self._redact, self._lend

    @contextmanager
    def before(self, step: str) -> Iterator[None]:
        """A step that changes nothing a user of the host can see. It refreshes the credential if needed."""
        with super().before(step):
            self._authenticate(self)
            yield

    @contextmanager
    def effect(self, step: str, *, complete: bool = True) -> Iterator[None]:
        """The effect step. The credential is refreshed before it, so a failed refresh is NOT_APPLIED."""
        with super().before("authenticate"):
            self._authenticate(self)
        with super().effect(step, complete=complete):
            yield

    def meaning(self, exc: Exception) -> GitProviderError:
        """What ``exc`` means. A 404 to a write says another thing once the repository was read in this operation."""
        error = super().meaning(exc)
        if self._seen and isinstance(exc, StatusError) and not exc.response.endpoint.startswith("GET "):
            return self._denied_write(error, exc.response)
        return error

    def refused(self, exc: StatusError, there: Callable[[], Any]) -> GitProviderError:
        """What a refused write means. A 404 has two meanings, and ``there`` reads what it would be about to decide."""
        error = self.meaning(exc)
        if exc.response.status != 404 or not isinstance(error, NotFoundError) or self._seen:
            return error
        with suppress(Exception):
            there()
        return self.meaning(exc)

    def _stamped(self, exc: Exception, step: str, effect: bool) -> GitProviderError:
        if getattr(exc, "failed_step", None) is None:  # an inner step keeps the response and removes it from its error
            self.refusal = next(
                (link.response for link in chain(exc) if isinstance(link, StatusError | BodyError)), self.refusal
            )
        error = super()._stamped(exc, step, effect)
        carrier = error.__cause__ or exc
        if isinstance(carrier, StatusError | BodyError) and carrier.__cause__ is not None:
            error.__cause__ = carrier.__cause__  # the SDK's own error
        # All redaction of errors happens here: errors of a table and errors that a provider raises itself.
        for name in ("message", "hint", "request_id", "repo", "moved_to"):
            if isinstance(text := getattr(error, name, None), str):
                setattr(error, name, self._redact(text))
        error.args = (error.message,)
        _scrub(exc, self._redact)
        return error

    def request(
        self,
        method: str,
        template: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        **parts: str | int,
    ) -> Response:
        """Send one request to ``template`` with its ``{parts}`` percent-encoded, and report it to the hook.

        Raises:
            StatusError: the status is not 2xx.
            BodyError: the status is 2xx, but the body is not JSON; or the body exceeds a limit.
            DeadlineError: a deadline passed. If it had passed before, nothing is sent.
        """
        limit = earliest_deadline()
        if limit is not None and limit.left <= 0:
            raise DeadlineError(limit.name, sent=False)
        if self._beside is not None:
            self._beside.check(self)
        request = Request(method=method, template=template, parts=parts, query=query, body=body)
        sending = None if self._throttle is None else self._admit(self._throttle, request)
        self.requests += 1
        started = self.clock()
        response: Response | None = None
        limited: float | None = None
        try:
            response = self.client.send(request)
            self._seen = self._seen or "repo" in parts
            return response
        except (StatusError, BodyError) as exc:
            response = exc.response
            if (sending or self._beside) and isinstance(refused := self.meaning(exc), RateLimitedError):
                limited = UNSTATED_BLOCK if refused.retry_after is None else refused.retry_after
                if self._beside is not None:
                    self._beside.met_limit(self)
            raise
        finally:
            if self._throttle is not None and sending is not None:
                self._learn(self._throttle, sending, response, limited)
            if self.hooks:
                emit(self.hooks, self._request_event(request, response, self.clock() - started))

    def _admit(self, throttle: Throttle, request: Request) -> Sending:
        """Wait until the throttle lets the request pass. Whatever it raises, nothing was sent."""
        sending = Sending(
            host=self.host,
            resource=self.client.resource(request),
            mutation=request.is_mutation,
            wait=self._throttled,
        )
        try:
            throttle.before(sending)
        except GitProviderError as error:
            error.outcome = Outcome.NOT_APPLIED
            raise
        except Exception as exc:
            raise ProviderUnavailableError(
                f"the throttle failed with {type(exc).__name__}, so nothing was sent",
                hint="a throttle's `before` may raise RateLimitedError only",
            ) from exc
        return sending

    def _throttled(self, seconds: float) -> None:
        """Wait for the throttle, within the operation's budget."""
        if not self.waits.take(seconds):
            left = self.waits.left
            raise RateLimitedError(
                f"the shared limit of {self.host} allows the next request in {seconds:.0f} s; "
                f"this operation may wait {max(left, 0.0):.0f} s",
                retry_after=seconds,
                hint="repeat it then, or raise RetryOptions.max_total_wait",
            )
        self.waits.wait(seconds)
        if self._beside is not None:
            self._beside.check(self)

    def _learn(self, throttle: Throttle, sending: Sending, response: Response | None, limited: float | None) -> None:
        headers, date = ({}, 0.0) if response is None else (response.headers, response.date.timestamp())
        status = response.status if response else None
        # The request was sent. A failure to count it must not hide its result.
        with logged("a throttle raised in `after`; it is ignored"):
            throttle.after(read_answer(sending, status, headers, blocked_for=limited, date=date))

    def read(self, template: str, **given: Any) -> JsonReader:
        """Send a GET and return a reader for the JSON object in its response. ``given`` is as for :meth:`request`."""
        return JsonReader(self.request("GET", template, **given))

    def pages(
        self,
        template: str,
        convert: Callable[[JsonReader], _T],
        *,
        query: Mapping[str, Any] | None = None,
        check: Callable[[Response], None] = lambda response: None,
        retried: Callable[[Any], Callable[[Callable[[], Any]], Any]] = lambda op: lambda fn: fn(),
        **parts: str | int,
    ) -> list[_T]:
        """Read a list page by page and return its items in the host's order.

        With ``page_concurrency``, the first page is read alone. The others, up to the last one that the first page
        names, are read side by side, each with a client of its own.

        If the host does not say whether another page follows, a full page is followed by another request. An item that
        is deleted between two pages moves another one to the page that was read. Where the host tells the size of the
        whole list, and it does not fit, the list is read again from the start.

        Args:
            convert: creates a value from an item.
            check: checks each page's response, and raises if it is incomplete.
            retried: returns the function that runs the read of one page for an operation, or for a part of one. A
                retry repeats only the page that failed.

        Raises:
            UnexpectedResponseError: a page is short although the host says that more follow, so items would be missing;
                a page repeats an earlier one, so the list would never end; the list exceeds ``limits.max_pages``; or it
                changes each time that it is read.
        """

        def page(op: RemoteOperation[_C], number: int) -> _Page[_T]:
            response = op.request(
                "GET", template, query={**(query or {}), "per_page": PAGE_SIZE, "page": number}, **parts
            )
            check(response)
            items = [convert(item) for item in JsonReader.each(response)]
            more = op.client.has_next(response)
            return _Page(
                items,
                sha256(repr(response.data).encode()).digest(),
                len(items) >= PAGE_SIZE if more is None else more,
                op.client.size(response),
            )

        def read_page(op: RemoteOperation[_C], number: int) -> _Page[_T]:
            found: _Page[_T] = retried(op)(partial(page, op, number))
            return found

        for _ in range(_LISTINGS):
            pages = self._listing(read_page)
            items = [item for page in pages for item in page.items]
            found = {"items": len(items), "pages": len(pages)}
            sizes = {page.size for page in pages if page.size is not None}
            if all(found[unit] == size for unit, size in sizes):
                return items
        raise UnexpectedResponseError(
            f"{len(items)} items were listed on {len(pages)} pages, but the host says {sorted(sizes)}: "
            "they changed while they were listed",
            transient=True,
        )

    def _listing(self, read_page: Callable[[RemoteOperation[_C], int], _Page[_T]]) -> list[_Page[_T]]:
        """Read and check all pages, and return them."""
        pages: list[_Page[_T]] = []
        seen: set[bytes] = set()
        ahead: dict[int, _Page[_T]] = {}
        for number in range(1, self._max_pages + 1):
            page = ahead.pop(number, None) or read_page(self, number)
            if page.items and page.digest in seen:
                raise UnexpectedResponseError(f"page {number} repeats an earlier page: the list would not end")
            seen.add(page.digest)
            pages.append(page)
            if not page.more:
                return pages
            if len(page.items) < PAGE_SIZE:
                raise UnexpectedResponseError(
                    f"page {number} has {len(page.items)} of {PAGE_SIZE} items, but the host says that more follow: "
                    "items would be missing"
                )
            if number == 1 and page.size is not None and page.size[0] == "pages":
                ahead = self._read_ahead(read_page, min(page.size[1], self._max_pages))
        raise UnexpectedResponseError(
            f"the list has more than {self._max_pages} pages",
            hint="raise limits.max_pages if the list is really this long",
        )

    def _read_ahead(
        self, read_page: Callable[[RemoteOperation[_C], int], _Page[_T]], last: int
    ) -> dict[int, _Page[_T]]:
        """Read the pages from the second to ``last`` side by side. A page is missing if it was not read."""
        lend, further = self._lend, min(self._page_concurrency, last - 1) - 1
        if lend is None or further < 1:
            return {}
        parts: list[RemoteOperation[_C]] = []

        def read(op: RemoteOperation[_C], number: int) -> _Page[_T]:
            page = read_page(op, number)
            if not page.more:
                beside.finish()
            return page

        beside = SideBySide(read, range(2, last + 1))

        def part(client: _C) -> RemoteOperation[_C]:
            """A part counts its own requests and attempts, and shares the hook, the throttle and the waits."""
            made = copy(self)
            made.client, made.requests, made._beside = client, 0, beside
            parts.append(made)
            return made

        @contextmanager
        def lent() -> Iterator[RemoteOperation[_C]]:
            with lend() as client:
                yield part(client)

        try:
            return beside.results(part(self.client), lent, further)
        finally:
            for made in parts:
                self.requests += made.requests
                self.refusal = self.refusal or made.refusal
                made._let_go()

    def _request_event(self, request: Request, response: Response | None, duration: float) -> RequestEvent:
        headers = response.headers if response else {}
        return RequestEvent(
            operation=self.name,
            provider=self.provider,
            host=self.host,
            repo=self.repo,
            method=request.method,
            endpoint=request.template.replace("/}", "}"),
            path=self._redact(request.path),
            status=response.status if response else None,
            attempt=self.attempt,
            duration=duration,
            rate_limit_remaining=limit_header(headers, "remaining"),
            limit=limit_header(headers, "limit"),
            reset=limit_header(headers, "reset"),
            resource=self.client.resource(request),
            request_id=self._redact(response.request_id) if response and response.request_id else None,
        )


def ask_for_token(ask: Callable[[], str]) -> str:
    """Call the user's function for a token, and return the token.

    Raises:
        AuthenticationError: it raised, or what it returned is no token. The message does not have the token.
    """
    try:
        token = ask()
    except Exception as exc:
        raise AuthenticationError(f"the function for the token raised {type(exc).__name__}") from exc
    if not issubclass(type(token), str) or re.fullmatch(r"[!-~]+", token) is None:
        kind, token = type(token).__name__, ""  # a traceback refers to this frame
        raise AuthenticationError(f"the function for the token must return a str of printable ASCII, not this {kind}")
    return token


def with_existing(error: GitProviderError, read: Callable[[], Any]) -> GitProviderError:
    """The error, with what has the name already where it can be read."""
    if isinstance(error, AlreadyExistsError):
        with suppress(Exception):
            error.existing = read()
    return error


def _scrub(exc: BaseException, redact: Callable[[str], str]) -> None:
    """Redact all text in ``exc`` and its chain, and empty the responses in them."""
    for link in chain(exc):
        link.args = tuple(_scrubbed(arg, redact) for arg in link.args)
        if not isinstance(link, GitProviderError):  # its values are safe, and its text is already redacted
            for name, value in list(vars(link).items()):
                vars(link)[name] = _scrubbed(value, redact)


def _scrubbed(value: Any, redact: Callable[[str], str], depth: int = 20) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, bytes):
        return redact(value.decode("utf-8", "replace")).encode()
    if isinstance(value, dict | list | tuple) and not depth:
        return "..."  # an SDK keeps what it parsed, at any depth
    if isinstance(value, dict):
        return {_scrubbed(key, redact, depth - 1): _scrubbed(item, redact, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_scrubbed(item, redact, depth - 1) for item in value]
        return items if isinstance(value, list) else tuple(items)  # a named tuple's own class takes items one by one
    if isinstance(value, Response):
        return Response(status=value.status)
    return value
