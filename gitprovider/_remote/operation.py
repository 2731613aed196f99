"""An operation of a remote provider: it has borrowed a client, and every request passes through it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

from gitprovider._core.operation import Operation, chain
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.response import BodyError, Client, Request, Response, StatusError
from gitprovider.errors import GitProviderError, UnexpectedResponseError
from gitprovider.events import RequestEvent, emit
from gitprovider.redact import Redactor

PAGE_SIZE = 100
_T = TypeVar("_T")
_C = TypeVar("_C", bound=Client)


class RemoteOperation(Operation, Generic[_C]):
    """An operation that has borrowed a client.

    Attributes:
        client: the borrowed client.
        refusal: the response that the last failed step ended with; None where there was none.
    """

    def __init__(
        self,
        name: str,
        repo: str,
        *,
        client: _C,
        authenticate: Callable[[RemoteOperation[_C]], None],
        redact: Callable[[str], str] = Redactor(),
        **known: Any,
    ) -> None:
        super().__init__(name, repo, **known)
        self.client = client
        self.refusal: Response | None = None
        self._authenticate = authenticate
        self._redact = redact

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        super().__exit__(kind, error, traceback)
        # Frames of a traceback refer to the operation. From here on it leads to no credential.
        del self.client, self._redact
        self.refusal = None

    @contextmanager
    def before(self, step: str) -> Iterator[None]:
        """A step that changes nothing a user of the host can see. The credential is refreshed in it if needed."""
        with super().before(step):
            self._authenticate(self)
            yield

    @contextmanager
    def effect(self, step: str) -> Iterator[None]:
        """The effect step. The credential is refreshed before it, so a failure of that is NOT_APPLIED."""
        with super().before("authenticate"):
            self._authenticate(self)
        with super().effect(step):
            yield

    def _stamped(self, exc: Exception, step: str, effect: bool) -> GitProviderError:
        if getattr(exc, "failed_step", None) is None:  # otherwise an inner step kept the response and emptied the error
            self.refusal = next(
                (link.response for link in chain(exc) if isinstance(link, StatusError | BodyError)), self.refusal
            )
        error = super()._stamped(exc, step, effect)
        carrier = error.__cause__ or exc
        if isinstance(carrier, StatusError | BodyError) and carrier.__cause__ is not None:
            error.__cause__ = carrier.__cause__  # the SDK's own error
        # The one place of redaction: an error of a table and one that a provider raises itself both pass here.
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
        """Send one request to ``template``, whose ``{parts}`` are percent-encoded, and report it to the hook.

        Raises:
            StatusError, BodyError: as the client's.
        """
        request = Request(method=method, template=template, parts=parts, query=query, body=body)
        self.requests += 1
        started = self.clock()
        response: Response | None = None
        try:
            response = self.client.send(request)
            return response
        except (StatusError, BodyError) as exc:
            response = exc.response
            raise
        finally:
            if self.hook is not None:
                emit(self.hook, self._request_event(request, response, self.clock() - started))

    def read(self, template: str, **given: Any) -> JsonReader:
        """The JSON object that a GET returns; ``given`` as in :meth:`request`."""
        return JsonReader(self.request("GET", template, **given))

    def pages(
        self,
        template: str,
        convert: Callable[[JsonReader], _T],
        *,
        query: Mapping[str, Any] | None = None,
        check: Callable[[Response], None] = lambda response: None,
        read: Callable[[Callable[[], Any]], Any] = lambda fn: fn(),
        **parts: str | int,
    ) -> list[_T]:
        """Every item of a list, page by page, in the host's order.

        A full page is taken to be followed by another where the host does not say.

        Args:
            convert: makes a value of an item.
            check: looks at each page's response, and raises if it is not whole.
            read: runs the read of one page; a listing that is retried repeats the page that failed.

        Raises:
            UnexpectedResponseError: a short page that the host says is not the last, which would leave a hole; or the
                page before once more, from a host that ignores the number, which would have no end.
        """

        def page(number: int) -> tuple[list[_T], bool | None]:
            response = self.request(
                "GET", template, query={**(query or {}), "per_page": PAGE_SIZE, "page": number}, **parts
            )
            check(response)
            return [convert(item) for item in JsonReader.each(response)], self.client.has_next(response)

        items: list[_T] = []
        before: list[_T] = []
        number = 1
        while True:
            batch, more = read(partial(page, number))
            if batch and batch == before:
                raise UnexpectedResponseError(f"page {number} repeats the page before it: the list would have no end")
            before = batch
            items += batch
            if not (len(batch) >= PAGE_SIZE if more is None else more):
                return items
            if len(batch) < PAGE_SIZE:
                raise UnexpectedResponseError(
                    f"page {number} has {len(batch)} items of {PAGE_SIZE}, and the host says that more follow: "
                    "the list would have a hole"
                )
            number += 1

    def _request_event(self, request: Request, response: Response | None, duration: float) -> RequestEvent:
        headers = response.headers if response else {}
        left = headers.get("x-ratelimit-remaining") or headers.get("ratelimit-remaining")
        return RequestEvent(
            operation=self.name,
            provider=self.provider,
            host=self.host,
            repo=self.repo,
            method=request.method,
            endpoint=request.template.replace("/}", "}"),
            status=response.status if response else None,
            attempt=self.attempt,
            duration=duration,
            rate_limit_remaining=int(left) if left and left.isdecimal() and len(left) < 15 else None,
            request_id=self._redact(response.request_id) if response and response.request_id else None,
        )


def _scrub(exc: BaseException, redact: Callable[[str], str]) -> None:
    """Redact every text that ``exc`` and its chain hold, and empty the responses that they carry."""
    for link in chain(exc):
        link.args = tuple(_scrubbed(arg, redact) for arg in link.args)
        if not isinstance(link, GitProviderError):  # its values are ours, and its texts are redacted
            for name, value in list(vars(link).items()):
                vars(link)[name] = _scrubbed(value, redact)


def _scrubbed(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, bytes):
        return redact(value.decode("utf-8", "replace")).encode()
    if isinstance(value, dict):
        return {_scrubbed(key, redact): _scrubbed(item, redact) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_scrubbed(item, redact) for item in value]
        return items if isinstance(value, list) else tuple(items)  # a named tuple's class takes its items one by one
    if isinstance(value, Response):
        return Response(status=value.status)
    return value
