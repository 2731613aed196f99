"""Events for logging and metrics: one for each operation, request and retry, and for each cancelled mutation.

An event never contains a token, a body, a query or a file's content. If a hook raises, the operation continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gitprovider.errors import GitProviderError, NotMergeableError, NotMergeableReason, Outcome
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
        path: the path that was requested, without the query.
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
    path: str = ""
    status: int | None
    attempt: int
    duration: float
    rate_limit_remaining: int | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryEvent:
    """A read failed and is retried after ``wait`` seconds. ``attempt`` is the number of the failed attempt, from 1.

    Attributes:
        error, message, status, request_id: of the error, as in OperationEvent.
    """

    operation: str
    provider: str
    host: str
    repo: str
    attempt: int
    wait: float
    error: str
    message: str | None = None
    status: int | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationEvent:
    """An operation ended.

    Attributes:
        duration: seconds.
        requests: how many requests the operation sent.
        error: the class name of the error, or None for success.
        message, status, request_id: those of the error, or None.
        reason: why a pull request was not merged, or None.
        expected: whether the error is a NotFoundError that the caller is prepared for, as in ``optional``,
            ``ensure_repo`` and ``resolve``.
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
    message: str | None = None
    status: int | None = None
    reason: NotMergeableReason | None = None
    request_id: str | None = None
    expected: bool = False
    outcome: Outcome | None = None
    intent: Intent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelledEvent:
    """The task that awaited a mutation was cancelled (``gitprovider.aio``). The event reports the mutation's result.

    Attributes:
        error: the class name of the mutation's error. None if it succeeded or did not end within the grace period.
        message, status, request_id: those of the error, or None.
        reason: why a pull request was not merged, or None.
        outcome: the error's outcome. UNKNOWN if it did not end within the grace period; None for success.
        intent: the record for ``resolve``, or None for success. If the mutation did not end within the grace period,
            the record has the arguments and the times when the call began and was abandoned. It does not say whether
            the request was sent.
    """

    operation: str
    provider: str
    repo: str
    error: str | None = None
    message: str | None = None
    status: int | None = None
    reason: NotMergeableReason | None = None
    request_id: str | None = None
    outcome: Outcome | None = None
    intent: Intent | None = None


Event = RequestEvent | RetryEvent | OperationEvent | CancelledEvent
Hook = Callable[[Event], None]


def described(error: BaseException | None) -> dict[str, Any]:
    """Return the fields of an event that tell of an error: its class, message, status, request id and reason."""
    fields: dict[str, Any] = {"error": None if error is None else type(error).__name__}
    if isinstance(error, GitProviderError):
        fields |= {"message": error.message, "status": error.status, "request_id": error.request_id}
        if isinstance(error, NotMergeableError):
            fields["reason"] = error.reason
    return fields


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
    cancelled. An outcome that is UNKNOWN or PARTIAL is logged at ERROR, and a missing thing that the caller is prepared
    for at DEBUG.
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
                text = f"{event.operation} failed ({_told(event)}), attempt {event.attempt + 1} in {event.wait:.2f} s"
            case OperationEvent():
                level = _level(event, logging.WARNING if event.error else logging.INFO)
                text = f"{event.operation} {_told(event) if event.error else 'ok'}"
            case CancelledEvent():
                level = _level(event, logging.WARNING)
                text = f"{event.operation} was cancelled while in flight: {event.outcome or 'applied'}"
        if not log.isEnabledFor(level):
            return
        fields = asdict(event)
        if isinstance(event, OperationEvent | CancelledEvent) and event.intent is not None:
            fields["intent"] = event.intent.to_json()
        log.log(level, "%s %s: %s", event.provider, event.repo, text, extra={"gitprovider": fields})

    return hook


def _level(event: OperationEvent | CancelledEvent, otherwise: int) -> int:
    import logging

    if event.outcome in (Outcome.UNKNOWN, Outcome.PARTIAL):
        return logging.ERROR
    return logging.DEBUG if isinstance(event, OperationEvent) and event.expected else otherwise


def _told(event: OperationEvent | RetryEvent) -> str:
    """Return the error of an event on one line: its class, message, status and request id, and the outcome."""
    outcome = event.outcome if isinstance(event, OperationEvent) else None
    facts = [
        f"HTTP {event.status}" if event.status is not None else "",
        f"request {event.request_id}" if event.request_id else "",
        f"outcome {outcome.value}" if outcome not in (None, Outcome.NOT_APPLIED) else "",
    ]
    told = ", ".join(fact for fact in facts if fact)
    return f"{event.error}{f': {event.message}' if event.message else ''}{f' ({told})' if told else ''}"
