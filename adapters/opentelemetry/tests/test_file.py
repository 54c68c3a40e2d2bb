"""The file of spans is OTLP in JSON lines, as the protocol's own messages read it."""

from __future__ import annotations

import base64
import json
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.trace import Link, SpanContext, SpanKind, StatusCode

from portico import From, Kernel, Plan, Step, Value, function
from portico.errors import ConfigurationError, StepFailed
from portico_opentelemetry._file import FileTracerProvider
from portico_opentelemetry.config import OpenTelemetrySettings
from portico_opentelemetry.observer import OpenTelemetryObserver


def read(file: Path) -> list[Any]:
    """Return the spans of a file as the protocol's messages, in which identifiers are bytes."""
    spans = []
    for line in file.read_text("ascii").splitlines():
        found = re.sub(
            r'"(traceId|spanId|parentSpanId)":"([0-9a-f]+)"',
            lambda match: f'"{match[1]}":"{base64.b64encode(bytes.fromhex(match[2])).decode()}"',
            line,
        )
        request = ParseDict(json.loads(found), ExportTraceServiceRequest())
        (resource,) = request.resource_spans
        assert resource.resource.attributes[0].value.string_value == "portico"
        (scope,) = resource.scope_spans
        assert scope.scope.name == "portico_opentelemetry"
        spans += scope.spans
    return spans


def test_a_line_has_all_of_a_span(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    provider = FileTracerProvider(file)
    tracer = provider.get_tracer("portico_opentelemetry")
    before = SpanContext(7, 9, is_remote=True)
    given = {"text": "é\n", "count": 2**40, "share": 0.5, "yes": True, "list": ("a", "b")}
    with tracer.start_as_current_span("outer", kind=SpanKind.CLIENT, attributes=given, links=[Link(before)]):
        inner = tracer.start_span("inner")
        inner.set_status(StatusCode.ERROR, "LookupError")
        inner.end()
        inner.end()
    provider.close()
    child, parent = read(file)
    assert (child.name, parent.name) == ("inner", "outer")
    assert child.parent_span_id == parent.span_id
    assert child.trace_id == parent.trace_id
    assert (len(parent.trace_id), len(parent.span_id), parent.parent_span_id) == (16, 8, b"")
    assert (parent.kind, child.kind) == (parent.SPAN_KIND_CLIENT, child.SPAN_KIND_INTERNAL)
    assert (child.status.code, child.status.message) == (child.status.STATUS_CODE_ERROR, "LookupError")
    assert parent.links[0].span_id == (9).to_bytes(8)
    assert 0 < parent.start_time_unix_nano <= child.start_time_unix_nano <= child.end_time_unix_nano
    values = {each.key: each.value for each in parent.attributes}
    assert values["text"].string_value == "é\n"
    assert values["count"].int_value == 2**40
    assert values["share"].double_value == 0.5
    assert values["yes"].bool_value is True
    assert [each.string_value for each in values["list"].array_value.values] == ["a", "b"]


async def test_the_setting_writes_runs_to_a_file_of_their_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    observer, kernel = OpenTelemetryObserver(OpenTelemetrySettings(file=file)), Kernel()
    observer.observe_kernel(kernel.middleware)

    @function
    async def half(number: int) -> int:
        return number // 2 if number else 1 // number

    kernel.add_function(half)
    await kernel.run_plan(Plan("Halve", (Step("s1", "half", {"number": Value(8)}),), From("s1")))
    with pytest.raises(StepFailed):
        await kernel.run_plan(Plan("Halve", (Step("s1", "half", {"number": Value(0)}),), From("s1")))
    await observer.aclose()
    await observer.aclose()
    assert [span.name for span in read(file)] == ["execute_tool half", "invoke_workflow plan"] * 2
    assert sys.platform == "win32" or stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    observer = OpenTelemetryObserver(OpenTelemetrySettings(file=tmp_path / "no" / "trace.jsonl"))
    with pytest.raises(ConfigurationError, match=r"trace\.jsonl"):
        observer.observe_service("ChatService", object())


PROCESS = """
import asyncio, sys
from portico import Kernel
from portico_opentelemetry.config import OpenTelemetrySettings
from portico_opentelemetry.observer import OpenTelemetryObserver

def traced(**settings):
    kernel = Kernel()
    OpenTelemetryObserver(OpenTelemetrySettings(**settings)).observe_kernel(kernel.middleware)
    return bool(kernel.middleware.run)

assert not traced()
assert "opentelemetry" not in sys.modules, "what is not used is not imported"
assert traced(file="trace.jsonl")
assert not any(name.startswith("opentelemetry.sdk") for name in sys.modules)
assert not traced(), "the process still has no provider"
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
assert traced()
"""


def test_the_provider_of_the_process_is_found_and_a_file_needs_no_sdk(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROCESS], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
