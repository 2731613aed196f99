"""Events for logging and metrics: one for each operation, request and retry, and for each cancelled mutation.

An event never contains a token, a body, a query or a file's content. If a hook raises, the operation continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from gitprovider.errors import Outcome
from gitprovider.intent import Intent

if TYPE_CHECKING:
    import logging


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEvent:
    """A request ended, with a response or without one.

    Attributes:
        operation, provider, repo: the operation that sent the request.
        host: the host's name. A default port is left out.
        method, endpoint: the HTTP method and the path template, such as ``/repos/{repo}/branches``.
        status: the HTTP status, or None if there was no response.
        attempt: the number of the attempt, from 1.
        duration: seconds.
        rate_limit_remaining: the remaining requests that the host reported, or None.
        request_id: the host's id of the request, or None.
    """

    operation: str
    provider: str
    host: str
    repo: str
    method: str
    endpoint: str
    status: int | None
    attempt: int
    duration: float
    rate_limit_remaining: int | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryEvent:
    """A read failed and is retried after ``wait`` seconds. ``attempt`` is the number of the failed attempt, from 1."""

    operation: str
    provider: str
    host: str
    repo: str
    attempt: int
    wait: float
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationEvent:
    """An operation ended.

    Attributes:
        duration: seconds.
        requests: how many requests the operation sent.
        error: the class name of the error, or None for success.
        outcome: the error's outcome, or None for success.
        intent: for a failed mutation, the record for ``resolve``.
    """

    operation: str
    provider: str
    host: str
    repo: str
    duration: float
    requests: int
    error: str | None = None
    outcome: Outcome | None = None
    intent: Intent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelledEvent:
    """The task that awaited a mutation was cancelled (``gitprovider.aio``). The event reports the mutation's result.

    Attributes:
        error: the class name of the mutation's error. None if it succeeded or did not end within the grace period.
        outcome: the error's outcome. UNKNOWN if it did not end within the grace period; None for success.
        intent: the record for ``resolve``, or None for success. If the mutation did not end within the grace period,
            the record has the arguments and the times when the call began and was abandoned. It does not say whether
            the request was sent.
    """

    operation: str
    provider: str
    repo: str
    error: str | None = None
    outcome: Outcome | None = None
    intent: Intent | None = None


Event = RequestEvent | RetryEvent | OperationEvent | CancelledEvent
Hook = Callable[[Event], None]


def emit(hook: Hook | None, event: Event) -> None:
    """Call ``hook`` with ``event``. An exception that it raises is logged and suppressed."""
    if hook is not None:
        with logged("an event hook raised on %s; the operation continues", type(event).__name__):
            hook(event)


@contextmanager
def logged(text: str, *arguments: object) -> Iterator[None]:
    """Log and suppress an exception of the block, for code of others whose failure must not hide a result."""
    try:
        yield
    except Exception:
        import logging  # not at the top: it is slow to import

        logging.getLogger("gitprovider").warning(text, *arguments, exc_info=True)


def log_events(logger: logging.Logger | None = None) -> Hook:
    """Return a hook that writes events to ``logger``. Each record has the event's fields in ``record.gitprovider``.

    The default is the logger ``gitprovider``.

    Requests are logged at DEBUG, retries at INFO, and operations at INFO, or at WARNING if they failed or were
    cancelled.
    """
    import logging

    log = logger or logging.getLogger("gitprovider")

    def hook(event: Event) -> None:
        match event:
            case RequestEvent():
                level = logging.DEBUG
                text = f"{event.method} {event.endpoint} -> {event.status or 'no response'}"
            case RetryEvent():
                level = logging.INFO
                text = f"{event.operation} failed ({event.error}), attempt {event.attempt + 1} in {event.wait:.2f} s"
            case OperationEvent():
                level = logging.WARNING if event.error else logging.INFO
                text = f"{event.operation} {event.error or 'ok'}"
            case CancelledEvent():
                level = logging.WARNING
                text = f"{event.operation} was cancelled while in flight: {event.outcome or 'applied'}"
        if not log.isEnabledFor(level):
            return
        fields = asdict(event)
        if isinstance(event, OperationEvent | CancelledEvent) and event.intent is not None:
            fields["intent"] = event.intent.to_json()
        log.log(level, "%s %s: %s", event.provider, event.repo, text, extra={"gitprovider": fields})

    return hook
