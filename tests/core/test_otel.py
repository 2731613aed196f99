"""Spans and metrics of operations, as OpenTelemetry's own SDK collects them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gitprovider import NotFoundError, ProviderUnavailableError, PutFile, optional
from gitprovider.events import Hook
from gitprovider.fakes.faults import Fault
from gitprovider.otel import instrument
from tests.support.github_hub import REPO, Hub, running


class Collected:
    """A hook, and what was collected from it."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._metrics = InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.hook: Hook = instrument(tracer_provider=tracers, meter_provider=MeterProvider([self._metrics]))

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._spans.get_finished_spans()

    @property
    def points(self) -> dict[str, list[Mapping[str, Any]]]:
        """The attributes of each metric's points."""
        data: Any = self._metrics.get_metrics_data()
        return {
            metric.name: [dict(point.attributes) for point in metric.data.data_points]
            for metric in data.resource_metrics[0].scope_metrics[0].metrics
        }


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with running(tmp_path / "forge") as hub:
        hub.given_repo()
        yield hub


@pytest.fixture
def collected() -> Collected:
    return Collected()


def test_an_operation_is_one_span_that_is_open_while_it_runs(
    hub: Hub, collected: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spans of its requests hang in the air."""
    current: list[Any] = []
    send = requests.Session.send

    def seen(*given: Any, **more: Any) -> Any:
        current.append(trace.get_current_span())
        return send(*given, **more)

    monkeypatch.setattr(requests.Session, "send", seen)
    with hub.connect(on_event=collected.hook) as provider:
        provider.get_repo(REPO)

    (span,) = collected.spans
    assert (span.name, span.status.is_ok or span.status.is_unset) == ("get_repo", True)
    assert span.attributes == {
        "vcs.provider.name": "github", "vcs.repository.name": REPO, "server.address": "api.github.com",
        "gitprovider.outcome": "ok", "gitprovider.requests": 1,
    }  # fmt: skip
    assert {one.get_span_context().span_id for one in current} == {span.context.span_id if span.context else 0}


def test_a_lost_answer_is_an_unknown_outcome(hub: Hub, collected: Collected) -> None:
    """The dashboard shows an error like any other, and nobody looks it up."""
    hub.given_fault(Fault(kind="reset", method="PATCH", when="after"))
    with hub.connect(on_event=collected.hook) as provider, pytest.raises(ProviderUnavailableError):
        provider.commit_files(REPO, "main", [PutFile(path="new", content="new")], message="m")

    (span,) = collected.spans
    assert span.status.status_code is trace.StatusCode.ERROR
    assert span.attributes is not None
    assert span.attributes["gitprovider.outcome"] == "unknown"
    assert span.attributes["error.type"] == "ProviderUnavailableError"
    assert span.events == ()  # no exception with its traceback


def test_a_retry_is_an_event_of_the_span_and_counted(hub: Hub, collected: Collected) -> None:
    """A host that fails every second time looks healthy."""
    hub.given_fault(Fault(kind="status", status=503))
    with hub.connect(on_event=collected.hook) as provider:
        provider.get_repo(REPO)

    (span,) = collected.spans
    assert [event.name for event in span.events] == ["retry"]
    assert collected.points["gitprovider.retries"] == [
        {
            "gitprovider.operation": "get_repo",
            "vcs.provider.name": "github",
            "error.type": "ProviderUnavailableError",
        }
    ]


def test_metrics_do_not_name_the_repository(hub: Hub, collected: Collected) -> None:
    """A thousand repositories are a thousand time series."""
    with hub.connect(on_event=collected.hook) as provider:
        provider.get_repo(REPO)
        assert optional(provider.get_repo, "acme/none") is None

    assert [sorted(point) for points in collected.points.values() for point in points] == [
        ["gitprovider.operation", "gitprovider.outcome", "vcs.provider.name"],
        ["error.type", "gitprovider.operation", "gitprovider.outcome", "vcs.provider.name"],
    ]
    assert [span.status.status_code for span in collected.spans] == [trace.StatusCode.UNSET] * 2  # it was expected


def test_without_the_sdk_nothing_is_collected_and_nothing_breaks(hub: Hub) -> None:
    """The extra has the API only, and an application without the SDK would fail."""
    with hub.connect(on_event=instrument()) as provider, pytest.raises(NotFoundError):
        provider.get_repo("acme/none")
