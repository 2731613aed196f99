"""What happened, told to whoever wants to know: one event per operation and one per request.

An event never holds a token, a body, a query or a file's content. A hook that raises does not break an operation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass

from gitprovider.errors import Outcome
from gitprovider.intent import Intent

_log = logging.getLogger("gitprovider")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEvent:
    """One request was answered, or failed.

    Attributes:
        operation, provider, repo: whose request it was; ``host``: the host's name, without a port's default.
        method, endpoint: the verb, and the path's template, such as ``/repos/{repo}/branches``.
        status: the HTTP status, or None when there was no answer.
        attempt: 1 for the first try.
        duration: seconds.
        rate_limit_remaining: what the host said is left, or None.
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
    """A read failed and will be tried again after ``wait`` seconds. ``attempt`` is the one that failed, from 1."""

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
        error: the class name of the error, or None for success.
        outcome: the error's outcome; None for success.
        requests: how many requests it sent.
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
    """The task that awaited a mutation was cancelled; this is what became of the mutation (``gitprovider.aio``).

    Attributes:
        error: the class name of its error; None when it succeeded, or when nobody waited for its end any longer.
        outcome: the error's outcome; UNKNOWN when nobody waited for its end; None for success.
        intent: for ``resolve``, where something is to be found out. When nobody waited for its end, it says what was
            asked, and when the call began and was given up: whether the request was sent by then, only its thread knew.
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
    """Tell ``hook``; whatever it raises is logged once per event and goes no further."""
    if hook is None:
        return
    try:
        hook(event)
    except Exception:
        _log.warning("an observation hook raised on %s; the operation goes on", type(event).__name__, exc_info=True)


def log_events(logger: logging.Logger = _log) -> Hook:
    """A hook that writes events to ``logger``, each with its fields as ``record.gitprovider`` (a dict).

    Requests are DEBUG; a try to come is INFO; an operation is INFO, or WARNING when it failed or was cancelled.
    """

    def hook(event: Event) -> None:
        match event:
            case RequestEvent():
                level = logging.DEBUG
                text = f"{event.method} {event.endpoint} -> {event.status or 'no answer'}"
            case RetryEvent():
                level = logging.INFO
                text = f"{event.operation} failed ({event.error}), attempt {event.attempt + 1} in {event.wait:.2f} s"
            case OperationEvent():
                level = logging.WARNING if event.error else logging.INFO
                text = f"{event.operation} {event.error or 'ok'}"
            case CancelledEvent():
                level = logging.WARNING
                text = f"{event.operation} was cancelled while in flight: {event.outcome or 'applied'}"
        if not logger.isEnabledFor(level):
            return
        fields = asdict(event)
        if isinstance(event, OperationEvent | CancelledEvent) and event.intent is not None:
            fields["intent"] = event.intent.to_json()
        logger.log(level, "%s %s: %s", event.provider, event.repo, text, extra={"gitprovider": fields})

    return hook
