"""An observer whose spans and metrics stay in memory, and what the conventions ask of each span."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes, server_attributes
from opentelemetry.trace import SpanKind, StatusCode

from portico_opentelemetry._names import SCOPE
from portico_opentelemetry.config import OpenTelemetrySettings
from portico_opentelemetry.observer import OpenTelemetryObserver

KNOWN = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")} | {
    error_attributes.ERROR_TYPE,
    server_attributes.SERVER_ADDRESS,
    server_attributes.SERVER_PORT,
}
"""The attributes of the conventions."""

INTERNAL, CLIENT = SpanKind.INTERNAL, SpanKind.CLIENT
OPERATIONS: dict[str, tuple[SpanKind, str, frozenset[str]]] = {
    "invoke_workflow": (INTERNAL, "gen_ai.workflow.name", frozenset({"gen_ai.workflow.name"})),
    "plan": (INTERNAL, "gen_ai.agent.name", frozenset({"gen_ai.agent.name"})),
    "execute_tool": (INTERNAL, "gen_ai.tool.name", frozenset({"gen_ai.tool.name"})),
    "invoke_agent": (INTERNAL, "gen_ai.agent.name", frozenset({"gen_ai.agent.name", "gen_ai.provider.name"})),
    "chat": (CLIENT, "gen_ai.request.model", frozenset({"gen_ai.provider.name"})),
    "embeddings": (CLIENT, "gen_ai.request.model", frozenset({"gen_ai.provider.name", "gen_ai.request.model"})),
    "retrieval": (CLIENT, "gen_ai.data_source.id", frozenset({"gen_ai.data_source.id"})),
}
"""The kind of each operation's spans, what their names end with, and the attributes that they must have."""


@dataclass
class Spans:
    """What was traced."""

    exporter: InMemorySpanExporter
    reader: InMemoryMetricReader
    tracers: TracerProvider
    meters: MeterProvider

    def observer(self, *, content: bool = False) -> OpenTelemetryObserver:
        """Return an observer that traces into this."""
        settings = OpenTelemetrySettings(content=content)
        return OpenTelemetryObserver(settings, tracer_provider=self.tracers, meter_provider=self.meters)

    def all(self) -> list[ReadableSpan]:
        """Return Portico's spans in the order in which they began, each checked against the conventions."""
        every = self.exporter.get_finished_spans()
        own = [span for span in every if span.instrumentation_scope and span.instrumentation_scope.name == SCOPE]
        spans = sorted(own, key=lambda span: span.start_time or 0)
        for span in spans:
            require_conventional(span)
        return spans

    def names(self) -> list[str]:
        """Return their names."""
        return [span.name for span in self.all()]

    def of(self, operation: str) -> list[ReadableSpan]:
        """Return the spans of an operation."""
        return [span for span in self.all() if attributes(span)["gen_ai.operation.name"] == operation]

    def parents(self) -> dict[str, str | None]:
        """Return the name of each span's parent."""
        spans = self.all()
        known = {span.context.span_id: span.name for span in spans if span.context}
        return {span.name: known[span.parent.span_id] if span.parent else None for span in spans}

    def points(self, metric: str) -> list[tuple[dict[str, Any], float, int]]:
        """Return the attributes, the sum and the count of each series of a histogram."""
        data = self.reader.get_metrics_data()
        found = [one for resource in data.resource_metrics for scope in resource.scope_metrics for one in scope.metrics]
        return [
            (dict(point.attributes), point.sum, point.count)
            for one in found
            if one.name == metric
            for point in one.data.data_points
        ]


def attributes(span: ReadableSpan) -> dict[str, Any]:
    """Return the attributes of a span."""
    return dict(span.attributes or {})


def require_conventional(span: ReadableSpan) -> None:
    """Fail for a span that is not as the conventions have it."""
    given = attributes(span)
    kind, last, required = OPERATIONS[given["gen_ai.operation.name"]]
    assert span.kind is kind
    assert span.name == f"{given['gen_ai.operation.name']} {given.get(last, '')}".rstrip()
    assert required <= given.keys()
    own = {name for name in given if name.startswith("portico.")}
    assert given.keys() - own <= KNOWN
    assert ("server.port" in given) <= ("server.address" in given)
    assert (span.status.status_code is StatusCode.ERROR) == ("error.type" in given)
    assert span.events == (), "an exception's text may have a secret in it"


@pytest.fixture
def spans() -> Iterator[Spans]:
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    meters = MeterProvider([reader], shutdown_on_exit=False)
    yield Spans(exporter, reader, tracers, meters)
    meters.shutdown()
    tracers.shutdown()
