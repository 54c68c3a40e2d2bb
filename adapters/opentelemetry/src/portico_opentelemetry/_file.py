"""A tracer that writes spans to a file, for which no SDK is needed: each a line with an export request of OTLP.

The form is that of OTLP in JSON: identifiers are hexadecimal, times and whole numbers are texts, enumerations numbers.
https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from __future__ import annotations

import json
import math
import os
import secrets
import stat
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags, Tracer

_NO_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_PAUSES = (0.01, 0.05, 0.2)
"""Seconds between looks at a file that ends with half a line."""
_MODE = 0o600
"""The owner's alone: with content, a trace has what was asked."""


class FileTracerProvider(trace.TracerProvider):
    """Makes tracers that append to one file; several processes may. Raises ``OSError`` where it cannot be opened.

    A file that is removed or moved meanwhile is made again.
    """

    def __init__(self, file: Path) -> None:
        self._file = Path(file).absolute()
        self._lock = threading.Lock()
        self._closed = False
        self._cut = False
        """Whether the file ends with half a line, which a process that was killed or a full disk leaves."""
        self._open()

    def get_tracer(
        self,
        instrumenting_module_name: str,
        instrumenting_library_version: str | None = None,
        schema_url: str | None = None,
        attributes: Any = None,
    ) -> Tracer:
        """Return a tracer of a scope."""
        return _FileTracer(self, instrumenting_module_name)

    def write(self, scope: str, span: dict[str, Any]) -> None:
        """Append a line; what the disk does not take is lost, so that no run fails for its trace."""
        resource = {"attributes": _attributes({"service.name": "portico"})}
        spans = [{"scope": {"name": scope}, "spans": [span]}]
        request = {"resourceSpans": [{"resource": resource, "scopeSpans": spans}]}
        line = json.dumps(request, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        with self._lock, suppress(OSError):
            if self._closed:
                return
            if not self._is_there():
                gone = self._descriptor
                self._open()
                os.close(gone)
            if self._cut:
                line = b"\n" + line
            while line:
                line = line[os.write(self._descriptor, line) :]
                self._cut = bool(line)

    def close(self) -> None:
        """Close the file; what ends later is not written."""
        with self._lock:
            if not self._closed:
                os.close(self._descriptor)
                self._closed = True

    def _open(self) -> None:
        self._descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE)
        self._cut = False
        with suppress(OSError):  # One that may only be written to.
            self._cut = self._is_regular() and not self._ends_with_a_line()

    def _is_regular(self) -> bool:
        return stat.S_ISREG(os.fstat(self._descriptor).st_mode)

    def _ends_with_a_line(self) -> bool:
        """Tell whether the file ends with a whole line; another process may be writing one, so look more than once."""
        with self._file.open("rb", buffering=0) as file:
            for pause in (*_PAUSES, 0.0):
                if file.seek(0, os.SEEK_END) == 0:
                    return True
                file.seek(-1, os.SEEK_END)
                if file.read(1) == b"\n":
                    return True
                time.sleep(pause)
        return False

    def _is_there(self) -> bool:
        try:
            return not self._is_regular() or os.path.samestat(os.fstat(self._descriptor), self._file.stat())
        except OSError:
            return False


class _FileTracer(Tracer):
    def __init__(self, provider: FileTracerProvider, scope: str) -> None:
        self._provider = provider
        self._scope = scope

    def start_span(  # noqa: PLR0917 - as it is there
        self,
        name: str,
        context: Context | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Any = None,
        links: Sequence[Link] | None = None,
        start_time: int | None = None,
        record_exception: bool = True,
        set_status_on_exception: bool = True,
    ) -> Span:
        parent = trace.get_current_span(context).get_span_context()
        started = {
            "traceId": f"{parent.trace_id if parent.is_valid else _identifier(128):032x}",
            "spanId": f"{_identifier(64):016x}",
            **({"parentSpanId": f"{parent.span_id:016x}"} if parent.is_valid else {}),
            "name": _text(name),
            "kind": kind.value + 1,
            "startTimeUnixNano": str(start_time or time.time_ns()),
        }
        span = _FileSpan(self._provider, self._scope, started)
        span.set_attributes(attributes or {})
        for link in links or ():
            span.add_link(link.context, link.attributes)
        return span

    @contextmanager
    def start_as_current_span(  # type: ignore[override]  # typed as a decorator there too
        self, name: str, *arguments: Any, end_on_exit: bool = True, **options: Any
    ) -> Iterator[Span]:
        # The text of an exception, which may have a secret in it, is not written.
        quiet = {"record_exception": False, "set_status_on_exception": False}
        with trace.use_span(self.start_span(name, *arguments, **options), end_on_exit, **quiet) as span:
            yield span


class _FileSpan(Span):
    def __init__(self, provider: FileTracerProvider, scope: str, started: dict[str, Any]) -> None:
        self._provider = provider
        self._scope = scope
        self._span = started
        self._attributes: dict[str, Any] = {}
        self._status: dict[str, Any] = {}
        self._events: list[dict[str, Any]] = []
        self._links: list[dict[str, Any]] = []
        self._recording = True

    def end(self, end_time: int | None = None) -> None:
        if not self._recording:
            return
        self._recording = False
        ended = {
            "endTimeUnixNano": str(end_time or time.time_ns()),
            "attributes": _attributes(self._attributes),
            "status": self._status,
            "events": self._events,
            "links": self._links,
        }
        self._provider.write(self._scope, self._span | {name: value for name, value in ended.items() if value})

    def get_span_context(self) -> SpanContext:
        identifiers = int(self._span["traceId"], 16), int(self._span["spanId"], 16)
        return SpanContext(*identifiers, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        self._attributes |= attributes

    def set_attribute(self, key: str, value: Any) -> None:
        self._attributes[key] = value

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        event = {"timeUnixNano": str(timestamp or time.time_ns()), "name": name}
        self._events.append({**event, "attributes": _attributes(attributes or {})})

    def add_link(self, context: SpanContext, attributes: Any = None) -> None:
        link = {"traceId": f"{context.trace_id:032x}", "spanId": f"{context.span_id:016x}"}
        self._links.append({**link, "attributes": _attributes(attributes or {})})

    def update_name(self, name: str) -> None:
        self._span["name"] = _text(name)

    def is_recording(self) -> bool:
        return self._recording

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        whole = status if isinstance(status, Status) else Status(status, description)
        code, description = whole.status_code, whole.description
        self._status = {"code": code.value, **({"message": description} if description else {})}

    def record_exception(
        self, exception: BaseException, attributes: Any = None, timestamp: int | None = None, escaped: bool = False
    ) -> None:
        self.add_event("exception", {"exception.type": type(exception).__name__, **(attributes or {})}, timestamp)


def _identifier(bits: int) -> int:
    return secrets.randbits(bits) or 1


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and value.bit_length() < 64:
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value if math.isfinite(value) else _NO_NUMBERS[str(value)]}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": list(map(_value, value))}}
    return {"stringValue": _text(str(value))}


def _text(text: str) -> str:
    """Return a text without halves of characters, which readers of JSON refuse."""
    return text.encode("utf-8", "replace").decode()
