"""The operation: outcomes by step, evidence, cleaned causes, and the event at its end."""

import traceback
from datetime import UTC, datetime
from typing import Any

import pytest

from gitprovider._core.operation import Operation, chain
from gitprovider.errors import GitProviderError, NotFoundError, Outcome, ProviderUnavailableError
from gitprovider.events import Event, OperationEvent
from gitprovider.models import BranchProtection

SENT = datetime(2026, 5, 1, tzinfo=UTC)
GIVEN_UP = datetime(2026, 5, 1, 0, 2, tzinfo=UTC)


def translate(exc: Exception) -> GitProviderError:
    return ProviderUnavailableError(str(exc), outcome=Outcome.UNKNOWN)


def operation(**changes: Any) -> Operation:
    known: dict[str, Any] = {
        "provider": "github",
        "host": "github.com",
        "translate": translate,
        "mutation": True,
        "now": lambda: SENT,
    }
    return Operation("create_branch", "acme/widgets", **{**known, **changes})


def fail(kind: type[Exception] = OSError) -> None:
    secret = "Authorization: hunter22"  # noqa: F841 - a frame's local, as the SDKs have it
    raise kind("reset")


def test_a_failure_before_the_effect_is_not_applied() -> None:
    """Whatever the cause would mean at the effect step, nothing was sent that can be seen."""
    op = operation()

    with pytest.raises(ProviderUnavailableError) as caught, op, op.before("read source"):
        fail()

    error = caught.value
    assert error.outcome is Outcome.NOT_APPLIED
    assert (error.failed_step, error.operation, error.repo) == ("read source", "create_branch", "acme/widgets")
    assert error.intent is not None
    assert error.intent.sent_at is None
    assert error.retryable


def test_a_failure_at_the_effect_is_what_its_cause_says() -> None:
    """The translation decides, and the intent says when the request was sent."""
    op = operation()

    with pytest.raises(ProviderUnavailableError) as caught, op, op.effect("create ref"):
        fail()

    assert caught.value.outcome is Outcome.UNKNOWN
    assert caught.value.intent is not None
    assert caught.value.intent.sent_at == SENT
    assert not caught.value.retryable


def test_the_time_at_which_an_answer_was_given_up_is_evidence() -> None:
    """A large body is sent until then, so that a request settles from there; a refusal is nothing to settle."""
    times = iter([SENT, GIVEN_UP, SENT])
    refused = operation(now=lambda: next(times), translate=lambda exc: NotFoundError("no such commit"))
    lost = operation(now=refused._now)

    for op in (lost, refused):
        with pytest.raises(GitProviderError) as caught, op, op.effect("create ref"):
            fail()
        assert caught.value.intent is not None
        given_up = GIVEN_UP if op is lost else None
        assert (caught.value.intent.sent_at, caught.value.intent.lost_at) == (SENT, given_up)


def test_a_failure_after_the_effect_is_partial_and_has_what_was_done() -> None:
    """The pull request's number is never lost because a label failed."""
    op = operation()
    with op.effect("open"):
        op.done("open", 7)

    with pytest.raises(ProviderUnavailableError) as caught, op, op.after("labels"):
        fail()

    error = caught.value
    assert error.outcome is Outcome.PARTIAL
    assert [(step.name, step.value) for step in error.completed] == [("open", 7)]
    assert error.intent is not None
    assert error.intent.steps == ("open",)


def test_an_error_of_ours_keeps_its_own_facts() -> None:
    """A GitProviderError raised inside a step is completed, not replaced."""
    op = operation()
    mine = NotFoundError("no branch", repo="acme/other", status=404)

    with pytest.raises(NotFoundError) as caught, op, op.before("read"):
        raise mine

    assert caught.value is mine
    assert (mine.repo, mine.status, mine.provider) == ("acme/other", 404, "github")


def test_the_cause_keeps_its_type_and_no_frames() -> None:
    """Frames of an SDK hold the Authorization header: none is reachable from the error."""
    op = operation()

    def fail_twice() -> None:
        try:
            fail(ValueError)
        except ValueError:
            fail()

    with pytest.raises(ProviderUnavailableError) as caught, op, op.before("read"):
        fail_twice()

    seen = set()
    stack: list[BaseException | None] = [caught.value.__cause__, caught.value.__context__]
    while stack:
        link = stack.pop()
        if link is None:
            continue
        seen.add(type(link))
        assert link.__traceback__ is None
        stack += [link.__cause__, link.__context__]
    assert seen == {OSError, ValueError}
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert "hunter22" not in "".join(shown.format())


def test_what_the_caller_was_handling_is_no_part_of_the_failure() -> None:
    """A call made in an except block: an earlier refused connection says nothing of this one, and stays untouched."""
    op = operation(translate=lambda exc: GitProviderError(" ".join(type(link).__name__ for link in chain(exc))))

    def fail_twice() -> None:
        try:
            fail(ValueError)
        except ValueError:
            fail(ConnectionResetError)

    try:
        fail(ConnectionRefusedError)
    except ConnectionRefusedError as mine:
        theirs = mine
        with pytest.raises(GitProviderError) as caught, op, op.effect("create ref"):
            fail_twice()

    assert caught.value.message == "ConnectionResetError ValueError"
    assert theirs.__traceback__ is not None


def test_a_read_has_no_intent() -> None:
    """There is nothing to look up after a failed read."""
    op = operation(mutation=False)
    op.note(branch="x")

    with pytest.raises(ProviderUnavailableError) as caught, op, op.before("read"):
        fail()

    assert caught.value.intent is None


def test_notes_become_plain_values() -> None:
    """A protection is kept as JSON values, so that the intent can be stored."""
    op = operation()
    op.note(branch="main", rules=BranchProtection(required_checks=("ci",)))

    assert op.intent is not None
    assert op.intent.rules is not None
    assert op.intent.rules["required_checks"] == ["ci"]


@pytest.mark.parametrize(
    ("sent", "done", "outcome"),
    [(False, False, Outcome.NOT_APPLIED), (True, False, Outcome.UNKNOWN), (True, True, Outcome.PARTIAL)],
)
def test_an_interrupted_mutation_is_reported_with_its_outcome(sent: bool, done: bool, outcome: Outcome) -> None:
    """Ctrl+C carries no outcome, so the event does, with the evidence."""
    events: list[Event] = []
    op = operation(hooks=(events.append,), clock=lambda: 1.0)

    if sent:
        with op.effect("create ref"):
            if done:
                op.done("create ref", 1)

    with pytest.raises(KeyboardInterrupt), op:
        raise KeyboardInterrupt

    _, event = events
    assert isinstance(event, OperationEvent)
    assert (event.error, event.outcome) == ("KeyboardInterrupt", outcome)
    assert event.intent is not None
    assert event.intent.lost_at == (SENT if sent else None)


def test_a_success_is_one_event_without_error() -> None:
    """Duration comes from the injected clock; a success carries neither outcome nor intent."""
    events: list[Event] = []
    ticks = iter([10.0, 12.5])

    with operation(hooks=(events.append,), clock=lambda: next(ticks)) as op:
        op.requests = 2

    _, event = events
    assert isinstance(event, OperationEvent)
    assert (event.duration, event.requests, event.error, event.outcome, event.intent) == (2.5, 2, None, None, None)
