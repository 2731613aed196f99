"""OpenTelemetry spans and metrics of operations (extra ``[otel]``, which has the API only).

::

    provider = GitHubProvider(token, on_event=gitprovider.otel.instrument())

Each operation is one span, which is current while the operation runs. The spans of its requests are the business of
opentelemetry-instrumentation-requests. Here is what only this library knows: the outcome, the retries and the waits.

Spans have the repository's path. Metrics do not, because each repository would be a time series of its own.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from gitprovider._core.extras import missing_extra
from gitprovider.events import Event, Hook, OperationEvent, RetryEvent, StartEvent

try:
    from opentelemetry import metrics, trace
except ImportError as cause:
    raise missing_extra("otel", cause) from None

__all__ = ["instrument"]


def instrument(
    *, tracer_provider: trace.TracerProvider | None = None, meter_provider: metrics.MeterProvider | None = None
) -> Hook:
    """Return a hook for ``on_event`` that makes spans and metrics.

    A span has the name of its operation, such as ``merge_pull_request``, and these attributes: ``vcs.provider.name``,
    ``vcs.repository.name``, ``server.address``, ``gitprovider.outcome`` (``ok``, ``not_applied``, ``unknown`` or
    ``partial``; ``error`` for a read), ``gitprovider.requests`` and ``error.type``. Each retry is an event of the span,
    with its attempt, its wait in seconds and its error. The span of a failure has the status ERROR, unless the caller
    is prepared for it.

    The metrics are ``gitprovider.operation.duration``, a histogram of seconds, and ``gitprovider.retries``, a counter.
    Both have the operation, the provider and the type of the error. The first has the outcome, too.

    Args:
        tracer_provider, meter_provider: the global ones by default.
    """
    tracer = trace.get_tracer("gitprovider", tracer_provider=tracer_provider)
    meter = metrics.get_meter("gitprovider", meter_provider=meter_provider)
    durations = meter.create_histogram("gitprovider.operation.duration", "s", "How long operations take")
    retries = meter.create_counter("gitprovider.retries", "{retry}", "Reads that were tried again")

    def start(event: StartEvent) -> AbstractContextManager[object]:
        return tracer.start_as_current_span(
            event.operation,
            attributes={
                "vcs.provider.name": event.provider,
                "vcs.repository.name": event.repo,
                "server.address": event.host,
            },
            # The text of an error may quote the host. The event says what is known of it.
            record_exception=False,
            set_status_on_exception=False,
        )

    def hook(event: Event) -> AbstractContextManager[object] | None:
        if isinstance(event, StartEvent):
            return start(event)
        known = {"gitprovider.operation": event.operation, "vcs.provider.name": event.provider}
        span = trace.get_current_span()
        if isinstance(event, RetryEvent):
            retries.add(1, {**known, "error.type": event.error})
            span.add_event("retry", {"attempt": event.attempt, "wait": event.wait, "error.type": event.error})
        elif isinstance(event, OperationEvent):
            outcome = event.outcome.value if event.outcome else "error" if event.error else "ok"
            found = {"gitprovider.outcome": outcome} | ({"error.type": event.error} if event.error else {})
            durations.record(event.duration, known | found)
            span.set_attributes({**found, "gitprovider.requests": event.requests})
            if event.error and not event.expected:
                span.set_status(trace.Status(trace.StatusCode.ERROR, event.message))
        return None

    return hook
