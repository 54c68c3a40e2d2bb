"""The file of spans is OTLP in JSON lines, as the protocol's own messages read it."""

from __future__ import annotations

import base64
import json
import math
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections import Counter
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
        assert "NaN" not in line.replace('"NaN"', ""), "other readers of JSON refuse it"
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


def write_spans(file: Path, *names: str) -> None:
    provider = FileTracerProvider(file)
    for name in names:
        provider.get_tracer("portico_opentelemetry").start_span(name).end()
    provider.close()


def test_values_that_json_or_the_protocol_cannot_hold_leave_the_line_readable(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    provider = FileTracerProvider(file)
    odd = {"nan": float("nan"), "most": float("inf"), "long": 2**70, "half": "\ud83d", "bytes": b"\xff", "none": None}
    provider.get_tracer("portico_opentelemetry").start_span("half \ud83d", attributes=odd).end()
    provider.close()
    (span,) = read(file)
    values = {each.key: each.value for each in span.attributes}
    assert math.isnan(values["nan"].double_value)
    assert values["most"].double_value == math.inf
    assert values["long"].string_value == str(2**70)
    assert span.name == "half ?"


def test_half_a_line_of_a_process_that_was_killed_takes_no_other_with_it(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    write_spans(file, "first")
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:40])
    write_spans(file, "second", "third")
    lines = file.read_bytes().splitlines()
    assert lines.pop(1) == whole[:40]
    file.write_bytes(b"\n".join(lines))
    assert [span.name for span in read(file)] == ["first", "second", "third"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="limits of files are Linux's here")
def test_a_disk_that_was_full_for_a_while_costs_the_spans_of_that_while_only(tmp_path: Path) -> None:
    import resource

    file = tmp_path / "trace.jsonl"
    provider = FileTracerProvider(file)
    tracer = provider.get_tracer("portico_opentelemetry")
    tracer.start_span("before").end()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 20, limits[1]))
        tracer.start_span("while").end()
        tracer.start_span("while").end()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, heard)
    tracer.start_span("after").end()
    provider.close()
    lines = file.read_text("ascii").splitlines()
    assert len(lines) == 3
    file.write_text(f"{lines[0]}\n{lines[2]}\n")
    assert [span.name for span in read(file)] == ["before", "after"]


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is open is not removed there")
def test_a_file_that_is_removed_meanwhile_is_made_again_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    provider = FileTracerProvider(Path("trace.jsonl"))
    tracer = provider.get_tracer("portico_opentelemetry")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    tracer.start_span("first").end()
    (tmp_path / "trace.jsonl").rename(tmp_path / "trace.1.jsonl")
    tracer.start_span("second").end()
    (tmp_path / "trace.jsonl").unlink()
    tracer.start_span("third").end()
    provider.close()
    tracer.start_span("closed").end()
    assert [span.name for span in read(tmp_path / "trace.1.jsonl")] == ["first"]
    assert [span.name for span in read(tmp_path / "trace.jsonl")] == ["third"]
    shutil.rmtree(tmp_path / "elsewhere")


MANY = """
import sys, threading
from pathlib import Path
from portico_opentelemetry._file import FileTracerProvider

tracer = FileTracerProvider(Path("trace.jsonl")).get_tracer("portico_opentelemetry")
def work(name):
    for number in range(50):
        tracer.start_span(f"{sys.argv[1]} {name}", attributes={"text": "x" * 20_000}).end()
threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_processes_and_threads_append_whole_lines_at_the_same_time(tmp_path: Path) -> None:
    started = [subprocess.Popen([sys.executable, "-c", MANY, name], cwd=tmp_path) for name in ("one", "two")]
    assert [process.wait(60) for process in started] == [0, 0]
    counted = Counter(span.name for span in read(tmp_path / "trace.jsonl"))
    assert counted == {f"{process} {thread}": 50 for process in ("one", "two") for thread in "abc"}


def test_an_exception_inside_a_current_span_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    provider = FileTracerProvider(file)
    tracer = provider.get_tracer("portico_opentelemetry")
    with pytest.raises(LookupError), tracer.start_as_current_span("outer"):
        raise LookupError("sk-planted-4711")
    with pytest.raises(LookupError), tracer.start_as_current_span("outer", record_exception=True):
        raise LookupError("sk-planted-4711")
    provider.close()
    assert len(read(file)) == 2
    assert "sk-planted" not in file.read_text("ascii")


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
