"""One running call of a provider: its steps, its intent, and its error.

Every operation runs inside an :class:`Operation`. Each step is one block::

    with op.before("read source"):          # nothing has changed: an error here is NOT_APPLIED
        ...
    with op.effect("create branch"):        # the effect step: an error is NOT_APPLIED or UNKNOWN, by its cause
        ...
        op.done("create branch", branch)    # acknowledged
    with op.after("add labels"):            # the effect is applied: an error is PARTIAL, `completed` has the steps
        ...

A block turns every exception into a GitProviderError with all its attributes set and its text redacted.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from traceback import clear_frames
from typing import Any, Self

from gitprovider._core.claims import Claim, current_claim
from gitprovider.checks import guarded, shown_repo
from gitprovider.contract import absence_expected
from gitprovider.errors import GitProviderError, NotFoundError, Outcome, Step, UnexpectedResponseError
from gitprovider.events import Hooks, OperationEvent, StartEvent, described, emit, enter
from gitprovider.intent import Intent
from gitprovider.models import BranchProtection
from gitprovider.mutations import plain_rules

# Maps an exception of a step to an error. Nothing is sent. The error's `outcome` assumes that this was the effect step.
Translate = Callable[[Exception], GitProviderError]
# Is called with the complete intent just before each effect of a mutation is sent. If it raises, nothing is sent.
BeforeEffect = Callable[[Intent], None]


class Operation:
    """One call of a provider. As a context manager, it reports the operation to the hooks at its start and its end.

    Attributes:
        name, provider, host, repo: the operation's name, its provider and host, and the repository's path.
        step: the name of the current or last step.
        completed: the acknowledged steps.
        intent: for a mutation, what is known so far; None for a read.
        requests: how many requests were sent.
        attempt: the number of the current attempt, from 1.
    """

    def __init__(
        self,
        name: str,
        repo: str,
        *,
        provider: str,
        host: str,
        translate: Translate,
        mutation: bool = False,
        hooks: Hooks = (),
        before_effect: BeforeEffect | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.name = name
        self.repo = shown_repo(repo)
        self.provider = provider
        self.host = host
        self.hooks = hooks
        self.clock = clock
        self.step = name
        self.completed: tuple[Step, ...] = ()
        self.intent = Intent(operation=name, provider=provider, repo=self.repo) if mutation else None
        self.requests = 0
        self.attempt = 1
        self._before_effect = before_effect
        self._claim: Claim | None = None
        self._translate = translate
        self._now = now
        self._sent = False
        self._started = clock()
        self._around = ExitStack()

    def __enter__(self) -> Self:
        if self.hooks:
            start = StartEvent(operation=self.name, provider=self.provider, host=self.host, repo=self.repo)
            self._around = enter(self.hooks, start)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if self._sent and error is not None and not isinstance(error, Exception):
            self.note(lost_at=self._now())
        outcome = self._outcome(error)
        if self._claim is not None:
            self._claim.end(None if outcome in (None, Outcome.NOT_APPLIED) else self._evidence())
        if not self.hooks:
            return
        emit(
            self.hooks,
            OperationEvent(
                operation=self.name,
                provider=self.provider,
                host=self.host,
                repo=self.repo,
                duration=self.clock() - self._started,
                requests=self.requests,
                **described(error),
                expected=self.intent is None and isinstance(error, NotFoundError) and absence_expected.get(),
                outcome=outcome,
                intent=self._evidence() if kind else None,
            ),
        )
        self._around.__exit__(kind, error, None)  # without the traceback: its frames lead to the token

    def _outcome(self, error: BaseException | None) -> Outcome | None:
        if isinstance(error, GitProviderError):
            return error.outcome
        if error is None or self.intent is None:
            return None
        # Ctrl+C or a cancellation: the response to a request that was sent was not read.
        return Outcome.PARTIAL if self.completed else Outcome.UNKNOWN if self._sent else Outcome.NOT_APPLIED

    def note(self, **fields: Any) -> None:
        """Set fields of the intent. A protection may be given as a BranchProtection."""
        if self.intent is not None:
            plain: dict[str, Any] = {
                k: plain_rules(v) if isinstance(v, BranchProtection) else v for k, v in fields.items()
            }
            self.intent = dataclasses.replace(self.intent, **plain)

    def done(self, step: str, value: Any) -> None:
        """Record that a step with a visible effect was acknowledged, and the value it produced."""
        self.completed = (*self.completed, Step(step, value))

    def meaning(self, exc: Exception) -> GitProviderError:
        """Map ``exc`` to an error. Nothing is sent.

        If the mapping itself fails, the outcome is UNKNOWN, because nothing is known about the host.
        """
        if isinstance(exc, GitProviderError):
            return exc
        try:
            return self._translate(exc)
        except Exception as failure:
            return _uninterpreted(exc, failure)

    @contextmanager
    def arguments(self) -> Iterator[None]:
        """The step that checks the arguments, and the key of the mutation if it has one, before any request."""
        with self._translated("check arguments"):
            with guarded("arguments"):
                yield
            if self.intent is not None and (claim := current_claim()) is not None:
                claim.begin()
                self._claim = claim

    @contextmanager
    def before(self, step: str) -> Iterator[None]:
        """A step that changes nothing a user of the host can see."""
        with self._translated(step):
            yield

    @contextmanager
    def effect(self, step: str, *, complete: bool = True) -> Iterator[None]:
        """The effect step. It begins with :meth:`sending`.

        Args:
            complete: whether the intent is complete. If not, the step itself calls :meth:`sending` later.
        """
        with self._translated(step, effect=True):
            if complete:
                self.sending()
            yield

    def sending(self) -> None:
        """Tell ``before_effect`` and the store of the key what is sent next, and set ``sent_at`` of the intent.

        Raises:
            GitProviderError: one of them failed, and nothing may be sent.
        """
        earlier = self.intent
        self.note(sent_at=self._now())
        try:
            self._tell()
        except BaseException:
            self.intent = earlier
            raise
        self._sent = True

    def _tell(self) -> None:
        intent = self._evidence()
        for whom, tell in (
            ("before_effect", self._before_effect),
            ("the intent store", None if self._claim is None else self._claim.send),
        ):
            if tell is None or intent is None:
                continue
            try:
                tell(intent)
            except Exception as exc:
                if isinstance(exc, GitProviderError) and tell is not self._before_effect:
                    exc.outcome = Outcome.NOT_APPLIED
                    raise
                raise GitProviderError(f"{whom} raised {type(exc).__name__}, so nothing was sent: {exc}") from exc

    @contextmanager
    def after(self, step: str) -> Iterator[None]:
        """A step after the effect was acknowledged."""
        with self._translated(step, effect=True):
            yield

    @contextmanager
    def _translated(self, step: str, *, effect: bool = False) -> Iterator[None]:
        self.step = step
        handled = sys.exception()
        try:
            yield
        except Exception as exc:
            _detach_context(exc, handled)
            try:
                error = self._stamped(exc, step, effect)
            except Exception as failure:
                error = Operation._stamped(self, _uninterpreted(exc, failure), step, effect)
                for link in list(chain(exc)):  # what could not be redacted is not kept
                    link.args, link.__dict__ = (), {}
            # Frames of the SDK contain the Authorization header. The cause keeps only its type and text.
            cause = error.__cause__ if error is exc or error.__cause__ is not None else exc
            strip_exception(exc)
            raise error.with_traceback(None) from (strip_exception(cause) if cause is not None else None)

    def _stamped(self, exc: Exception, step: str, effect: bool) -> GitProviderError:
        """Return the error of a step, with the attributes that only the operation knows."""
        error = self.meaning(exc)
        error.provider = error.provider or self.provider
        error.operation = self.name
        error.repo = error.repo or self.repo
        error.failed_step = step
        error.completed = self.completed
        if effect and error.outcome is Outcome.UNKNOWN:
            self.note(lost_at=self._now())
        if self.completed:
            error.outcome = Outcome.PARTIAL
        elif not effect:
            error.outcome = Outcome.NOT_APPLIED
        error.intent = self._evidence()
        return error

    def _evidence(self) -> Intent | None:
        if self.intent is None:
            return None
        return dataclasses.replace(self.intent, steps=tuple(done.name for done in self.completed))


def _uninterpreted(exc: Exception, failure: Exception) -> UnexpectedResponseError:
    return UnexpectedResponseError(
        f"an error could not be interpreted: {type(exc).__name__}, then {type(failure).__name__}",
        outcome=Outcome.UNKNOWN,
    )


def chain(exc: BaseException) -> Iterator[BaseException]:
    """Yield ``exc`` and every exception that it was caused by or contains, each once."""
    seen: set[int] = set()
    stack: list[BaseException | None] = [exc]
    while stack:
        link = stack.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        reason = getattr(link, "reason", None)  # urllib3's MaxRetryError keeps its cause here
        stack += [link.__cause__, link.__context__, reason if isinstance(reason, BaseException) else None]
        stack += [arg for arg in link.args if isinstance(arg, BaseException)]


def _detach_context(exc: BaseException, handled: BaseException | None) -> None:
    """Remove from ``exc`` the exception that the caller was handling when the step began.

    If a call is made in an ``except`` block, that block's exception is at the end of the chain of ``exc``. It is not a
    cause of this failure: it must not be mapped or redacted, and its frames belong to the caller.
    """
    if handled is None:
        return
    for link in chain(exc):
        if link.__context__ is handled:
            link.__context__ = None


@contextmanager
def cleared_frames() -> Iterator[None]:
    """Clear the local variables of every frame that an exception passed through inside the block.

    Frames of an SDK hold the Authorization header, and contextlib's hold the traceback that leads to them. File names
    and line numbers are kept. Exceptions that the caller was handling before are left alone.
    """
    handled = sys.exception()
    try:
        yield
    except BaseException as exc:
        theirs = set() if handled is None else {id(link) for link in chain(handled)}
        for link in chain(exc):
            if id(link) in theirs:
                continue
            clear_frames(link.__traceback__)
            if link is not exc:
                link.__traceback__ = None
            _drop_requests(link)
        raise


def strip_exception(exc: BaseException) -> BaseException:
    """Remove tracebacks, requests and responses from ``exc`` and its whole chain, and return ``exc``."""
    for link in chain(exc):
        link.__traceback__ = None
        _drop_requests(link)
    return exc


def _drop_requests(link: BaseException) -> None:
    for attribute in ("request", "response", "pool", "conn"):
        if attribute in vars(link):  # hasattr would trigger the warnings of urllib3's deprecated properties
            vars(link)[attribute] = None
