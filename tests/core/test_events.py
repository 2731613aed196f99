"""Observation: events reach a hook, and a hook breaks nothing."""

import logging
from typing import Any

import pytest

from gitprovider.errors import Outcome
from gitprovider.events import Event, OperationEvent, RequestEvent, RetryEvent, emit, log_events
from gitprovider.intent import Intent

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
DONE = OperationEvent(operation="get_repo", duration=1.0, requests=1, **WHO)


def test_a_hook_that_raises_is_logged_and_harmless(caplog: pytest.LogCaptureFixture) -> None:
    """The operation goes on, and somebody is told."""

    def broken(event: Event) -> None:
        raise RuntimeError("no such backend")

    emit(broken, REQUEST)

    assert "RequestEvent" in caplog.text
    emit(None, REQUEST)


@pytest.mark.parametrize(
    ("event", "level", "text"),
    [
        (REQUEST, logging.DEBUG, "github acme/widgets: GET /repos/{repo} -> 200"),
        (RETRY, logging.INFO, "github acme/widgets: get_repo failed (ProviderUnavailableError), attempt 2 in 0.50 s"),
        (FAILED, logging.WARNING, "github acme/widgets: create_branch ProviderUnavailableError"),
        (DONE, logging.INFO, "github acme/widgets: get_repo ok"),
    ],
)
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
