"""Observation: events reach a hook, and a hook breaks nothing."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

import pytest

from gitprovider import ensure_repo, optional
from gitprovider.errors import InvalidRequestError, NotFoundError, NotMergeableError, NotMergeableReason, Outcome
from gitprovider.events import (
    CancelledEvent,
    Event,
    Hook,
    OperationEvent,
    RequestEvent,
    RetryEvent,
    StartEvent,
    described,
    emit,
    log_events,
)
from gitprovider.intent import Intent
from gitprovider.local import LocalProvider

WHO: dict[str, Any] = {"provider": "github", "host": "github.com", "repo": "acme/widgets"}
REQUEST = RequestEvent(
    operation="get_repo", method="GET", endpoint="/repos/{repo}", status=200, attempt=1, duration=0.1, **WHO
)
RETRY = RetryEvent(operation="get_repo", attempt=1, wait=0.5, error="ProviderUnavailableError", **WHO)
FAILED = OperationEvent(
    operation="create_branch",
    duration=1.0,
    requests=2,
    error="ProviderUnavailableError",
    outcome=Outcome.UNKNOWN,
    intent=Intent(operation="create_branch", provider="github", repo="acme/widgets"),
    **WHO,
)
PARTIAL = dataclasses.replace(FAILED, outcome=Outcome.PARTIAL)
MISSING = OperationEvent(
    operation="head",
    duration=1.0,
    requests=1,
    error="NotFoundError",
    message="there is no branch",
    status=404,
    request_id="A1:B2",
    **WHO,
)
LOOKED = dataclasses.replace(MISSING, expected=True)
DONE = OperationEvent(operation="get_repo", duration=1.0, requests=1, **WHO)


def test_a_hook_that_raises_is_logged_and_harmless(caplog: pytest.LogCaptureFixture) -> None:
    """The operation goes on, and somebody is told."""

    def broken(event: Event) -> None:
        raise RuntimeError("no such backend")

    emit((broken,), REQUEST)

    assert "RequestEvent" in caplog.text


class Around:
    """A hook that notes what it is told, and returns a context manager that does too."""

    def __init__(self, notes: list[str], name: str, *, breaks: str = "") -> None:
        self.notes, self.name, self.breaks = notes, name, breaks

    def __call__(self, event: Event) -> Around | None:
        self.notes.append(f"{self.name} {type(event).__name__}")
        return self if isinstance(event, StartEvent) else None

    def __enter__(self) -> None:
        self.notes.append(f"{self.name} entered")
        if self.breaks == "enter":
            raise RuntimeError("no such backend")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> bool:
        self.notes.append(f"{self.name} left {kind.__name__ if kind else 'well'}")
        assert traceback is None, "its frames lead to the token"
        if self.breaks == "leave":
            raise RuntimeError("no such backend")
        return True


def test_an_operation_runs_inside_what_its_hooks_return(tmp_path: Path) -> None:
    """A span that is not open while the operation runs is no parent of its requests."""
    notes: list[str] = []
    hooks: list[Hook] = [Around(notes, "outer"), Around(notes, "inner"), lambda event: None]
    with LocalProvider(tmp_path, on_event=hooks) as provider, pytest.raises(NotFoundError):
        provider.get_repo("acme/widgets")

    assert notes == [
        "outer StartEvent", "outer entered", "inner StartEvent", "inner entered",
        "outer OperationEvent", "inner OperationEvent", "inner left NotFoundError", "outer left NotFoundError",
    ]  # fmt: skip


@pytest.mark.parametrize("breaks", ["enter", "leave"])
def test_a_context_manager_that_raises_is_logged_and_harmless(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, breaks: str
) -> None:
    """An exporter that is down takes a merge with it."""
    notes: list[str] = []
    with LocalProvider(tmp_path, on_event=(Around(notes, "broken", breaks=breaks), Around(notes, "sane"))) as provider:
        assert provider.create_repo("acme/widgets").path == "acme/widgets"

    assert "the operation continues" in caplog.text
    assert notes[-2:] == (
        ["sane left well", "broken left well"] if breaks == "leave" else ["sane OperationEvent", "sane left well"]
    )


@pytest.mark.parametrize("wrong", [3, [print, "x"], "print"])
def test_what_is_no_hook_is_refused(tmp_path: Path, wrong: Any) -> None:
    """The first operation logs a TypeError for each event."""
    with pytest.raises(InvalidRequestError) as caught:
        LocalProvider(tmp_path, on_event=wrong)

    assert caught.value.argument == "on_event"


@pytest.mark.parametrize(
    ("event", "level", "text"),
    [
        (REQUEST, logging.DEBUG, "github acme/widgets: GET /repos/{repo} -> 200"),
        (RETRY, logging.INFO, "github acme/widgets: get_repo failed (ProviderUnavailableError), attempt 2 in 0.50 s"),
        (FAILED, logging.ERROR, "github acme/widgets: create_branch ProviderUnavailableError (outcome unknown)"),
        (PARTIAL, logging.ERROR, "github acme/widgets: create_branch ProviderUnavailableError (outcome partial)"),
        (MISSING, logging.WARNING,
         "github acme/widgets: head NotFoundError: there is no branch (HTTP 404, request A1:B2)"),
        (LOOKED, logging.DEBUG,
         "github acme/widgets: head NotFoundError: there is no branch (HTTP 404, request A1:B2)"),
        (CancelledEvent(operation="create_branch", provider="github", repo="a/b", outcome=Outcome.UNKNOWN),
         logging.ERROR, "github a/b: create_branch was cancelled while in flight: unknown"),
        (DONE, logging.INFO, "github acme/widgets: get_repo ok"),
    ],
)  # fmt: skip
def test_logging_has_a_level_a_line_and_fields(
    event: Event, level: int, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each event is one record with structured extras."""
    caplog.set_level(logging.DEBUG)
    logger = logging.getLogger("tests.observe")

    log_events(logger)(event)

    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (level, text)
    assert vars(record)["gitprovider"]["operation"] == event.operation


def test_an_error_s_event_tells_what_a_person_needs() -> None:
    """Whoever reads the log has to reproduce the failure to learn its message, status, reason or request id."""
    error = NotMergeableError("checks fail", reason=NotMergeableReason.CHECKS, status=405, request_id="A1:B2")

    assert described(error) == {
        "error": "NotMergeableError",
        "message": "checks fail",
        "status": 405,
        "request_id": "A1:B2",
        "reason": NotMergeableReason.CHECKS,
    }
    assert described(KeyboardInterrupt()) == {"error": "KeyboardInterrupt"}


def test_only_a_look_that_is_prepared_for_absence_expects_it(tmp_path: Path) -> None:
    """A monitor is alarmed by every ensure_ that makes something, or is not told of a repository that vanished."""
    events: list[Event] = []
    with LocalProvider(tmp_path, on_event=events.append) as provider:
        assert optional(provider.get_repo, "acme/none") is None
        ensure_repo(provider, "acme/made")
        for call in (provider.get_repo, provider.list_branches):
            with pytest.raises(NotFoundError):
                call("acme/none")
        assert optional(provider.create_branch, "acme/none", "x", source="main") is None

    ended = [(event.operation, event.expected) for event in events if isinstance(event, OperationEvent)]
    assert ended == [
        ("get_repo", True), ("get_repo", True), ("create_repo", False), ("get_repo", False), ("list_branches", False),
        ("create_branch", False),
    ]  # fmt: skip


def test_a_failed_mutation_logs_its_intent_as_json() -> None:
    """The record can be stored by a JSON formatter and given to ``resolve``."""
    records: list[logging.LogRecord] = []
    logger = logging.Logger("alone")
    logger.addFilter(lambda record: records.append(record) or True)  # type: ignore[func-returns-value]  # append gives None

    log_events(logger)(FAILED)

    assert vars(records[0])["gitprovider"]["intent"] == {
        "operation": "create_branch",
        "provider": "github",
        "repo": "acme/widgets",
    }


def test_a_level_that_is_off_costs_no_record(caplog: pytest.LogCaptureFixture) -> None:
    """Requests are not logged unless DEBUG is on."""
    caplog.set_level(logging.INFO)

    log_events(logging.getLogger("tests.observe"))(REQUEST)

    assert caplog.records == []
