"""Events for logging and metrics: operations that start and end, requests, retries, and cancelled mutations.

An event never contains a token, a body, a query or a file's content. If a hook raises, the operation continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gitprovider.checks import check_callable, check_items
from gitprovider.errors import GitProviderError, NotMergeableError, NotMergeableReason, Outcome
from gitprovider.intent import Intent

if TYPE_CHECKING:
    import logging


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEvent:
    """An operation starts. If the hook returns a context manager, the operation runs inside it.

    The context manager is entered before the first request. It is left after the OperationEvent, with the operation's
    error if there is one. It cannot suppress the error.
    """

    operation: str
    provider: str
    host: str
    repo: str


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
        limit: the requests of a whole window, as the host reported it, or None.
        reset: when the window ends, in seconds since the epoch, as the host reported it, or None.
        resource: the limit that counted the request, such as ``core``, ``graphql`` or ``api``.
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
    limit: int | None = None
    reset: int | None = None
    resource: str = ""
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


Event = StartEvent | RequestEvent | RetryEvent | OperationEvent | CancelledEvent
# What a hook returns is used for a StartEvent only.
Hook = Callable[[Event], "AbstractContextManager[object] | None"]
Hooks = tuple[Hook, ...]


def check_hooks(given: Hook | Sequence[Hook] | None) -> Hooks:
    """Return the hooks that an ``on_event`` argument names: none, one, or several."""
    if given is None:
        return ()
    hooks = (given,) if callable(given) else tuple(check_items("on_event", given, "functions"))
    for hook in hooks:
        check_callable("on_event", hook)
    return hooks


def described(error: BaseException | None) -> dict[str, Any]:
    """Return the fields of an event that tell of an error: its class, message, status, request id and reason."""
    fields: dict[str, Any] = {"error": None if error is None else type(error).__name__}
    if isinstance(error, GitProviderError):
        fields |= {"message": error.message, "status": error.status, "request_id": error.request_id}
        if isinstance(error, NotMergeableError):
            fields["reason"] = error.reason
    return fields


def emit(hooks: Hooks, event: Event) -> None:
    """Call each hook with ``event``. An exception that one raises is logged and suppressed."""
    for hook in hooks:
        with logged("an event hook raised on %s; the operation continues", type(event).__name__):
            hook(event)


def enter(hooks: Hooks, event: StartEvent) -> ExitStack:
    """Call each hook, and enter what they return. The caller closes the stack when the operation has ended."""
    stack = ExitStack()
    for hook in hooks:
        with logged("an event hook raised on StartEvent; the operation continues"):
            around = hook(event)
            if around is not None:
                around.__enter__()
                stack.push(_Leave(around))
    return stack


class _Leave:
    """Leaves a hook's context manager. Neither its exception nor its result changes how the operation ends."""

    def __init__(self, around: AbstractContextManager[object]) -> None:
        self._around = around

    def __enter__(self) -> None:
        """Do nothing: the context manager has been entered."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with logged("a hook's context manager raised; the operation continues"):
            self._around.__exit__(kind, error, traceback)


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
            case StartEvent():
                return
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
