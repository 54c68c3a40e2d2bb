"""What happened in a run and when, as spans: from the file with traces, or from the journal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from portico.errors import StoreError
from portico_cli.runs import RunEntry

_RUN = "portico.run"
_MOST_SPANS = 5_000
_MOST_BYTES = 256_000_000
_STATUSES = {0: "unset", 1: "ok", 2: "error"}

Span = dict[str, Any]


async def trace_view(entry: RunEntry, file: Path | None) -> dict[str, Any]:
    """Return the spans of a run. Raises ``StoreError`` for a file that cannot be read."""
    if file is not None:
        try:
            spans = await asyncio.to_thread(spans_of_file, file, entry.name)
        except FileNotFoundError:
            spans = []
        except OSError as error:
            raise StoreError(f"The trace {file} cannot be read: {error.strerror or error}.") from error
        if spans:
            return {"spans": spans, "from": "trace"}
    return {"spans": spans_of_journal(entry.entries)[:_MOST_SPANS], "from": "journal"}


def spans_of_journal(entries: Iterable[Mapping[str, Any]]) -> list[Span]:
    """Return a span for the run, each proposal, each step and each attempt of one that was tried again."""
    spans: list[Span] = []
    steps: dict[str, Span] = {}
    attempts: dict[str, Span] = {}
    since, last = "", ""
    for each in entries:
        kind, at = each["type"], each["at"]
        if not spans:
            spans.append(_span("run", None, str(each.get("goal", ""))[:200], at, planner=each.get("planner")))
        spans[0]["end"] = last = at
        step = str(each.get("step", ""))
        match kind:
            case "pursuit" | "resumed":
                since = at
            case "plan" | "refused" if "by" not in each and not each.get("ran") and not each.get("edited"):
                number = sum(one["id"].startswith("proposal:") for one in spans) + 1
                spans.append(_span(f"proposal:{number}", "run", f"proposal {number}", since, at, steps=_count(each)))
                spans[-1]["status"] = "ok" if kind == "plan" else "error"
                since = at
            case "step-started":
                spans.append(_span(step, _parent(step, steps), step, at, **_marks(each)))
                steps[step] = spans[-1]
            case "step-retried" if step in steps:
                number = int(each["attempt"]) - 1
                begun = attempts.get(step, steps[step])["end" if step in attempts else "start"]
                spans.append(_span(f"{step}#{number}", step, f"attempt {number}", begun, at, error=each.get("error")))
                spans[-1]["status"] = "error"
                attempts[step] = spans[-1]
            case "step-finished" | "step-failed":
                if step not in steps:
                    spans.append(_span(step, _parent(step, steps), step, at))
                    steps[step] = spans[-1]
                steps[step]["end"] = since = at
                steps[step]["status"] = "ok" if kind == "step-finished" else "error"
                more = {name: each[name] for name in ("skipped", "given", "recorded", "error") if name in each}
                steps[step]["attributes"] |= more
                if step in attempts:
                    number = int(attempts.pop(step)["id"].rpartition("#")[2]) + 1
                    began = next(one["end"] for one in reversed(spans) if one["id"] == f"{step}#{number - 1}")
                    spans.append(_span(f"{step}#{number}", step, f"attempt {number}", began, at))
                    spans[-1]["status"] = steps[step]["status"]
            case "interrupted":
                spans[0]["status"] = "unset"
            case "outcome":
                spans[0]["status"] = {"answer": "ok", "failed": "error"}.get(str(each.get("kind")), "unset")
                spans[0]["attributes"]["outcome"] = each.get("kind")
    for one in spans:
        if one["end"] is None and (spans[0]["status"] != "unset" or one is spans[0]):
            one["end"] = last
    return spans


def _span(id: str, parent: str | None, name: str, start: str, end: str | None = None, **attributes: Any) -> Span:
    given = {key: value for key, value in attributes.items() if value is not None}
    return {
        "id": id,
        "parent": parent,
        "name": name,
        "start": start,
        "end": end,
        "status": "unset",
        "attributes": given,
    }


def _parent(step: str, steps: Mapping[str, Span]) -> str:
    while step := step.rpartition("[" if step.endswith("]") else "/")[0]:
        if step in steps:
            return step
    return "run"


def _count(entry: Mapping[str, Any]) -> int:
    return len((entry.get("plan") or {}).get("steps", ()))


def _marks(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in ("effects", "items") if name in entry}


def spans_of_file(file: Path, run: str) -> list[Span]:
    """Return the spans of a run in a file of OTLP in JSON lines: those that name it, and all of their traces."""
    named = _read(file, [json.dumps(run)])
    traces = {str(span["traceId"]) for span in named if _attributes(span).get(_RUN) == run}
    spans = (_shown(each) for each in _read(file, traces) if str(each["traceId"]) in traces) if traces else ()
    return sorted(islice(spans, _MOST_SPANS), key=lambda each: str(each["start"]))


def _read(file: Path, words: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the spans of the lines with one of the words; what is no line of a trace is left out."""
    wanted = [each.encode("utf-8", "surrogatepass") for each in words]
    with file.open("rb") as stream:
        stream.seek(max(file.stat().st_size - _MOST_BYTES, 0))
        for line in stream:
            if not any(each in line for each in wanted):
                continue
            try:
                for resource in json.loads(line.decode("utf-8"))["resourceSpans"]:
                    for scope in resource["scopeSpans"]:
                        yield from (each for each in scope["spans"] if {"traceId", "spanId"} <= each.keys())
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                continue


def _shown(span: Mapping[str, Any]) -> Span:
    status = span.get("status") or {}
    return {
        "id": span["spanId"],
        "parent": span.get("parentSpanId"),
        "name": str(span.get("name", "")),
        "start": _time(span.get("startTimeUnixNano")),
        "end": _time(span.get("endTimeUnixNano")),
        "status": _STATUSES.get(status.get("code", 0), "unset"),
        "attributes": _attributes(span),
    }


def _time(nanoseconds: Any) -> str | None:
    try:
        return datetime.fromtimestamp(int(nanoseconds) / 1e9, UTC).isoformat(timespec="microseconds")
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def _attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in span.get("attributes") or ():
        if isinstance(each, dict) and isinstance(each.get("value"), dict):
            found[str(each.get("key"))] = _value(each["value"])
    return found


def _value(value: Mapping[str, Any]) -> Any:
    for kind, given in value.items():
        if kind == "intValue":
            return int(given) if str(given).lstrip("-").isdigit() else None
        if kind == "arrayValue":
            return [_value(each) for each in (given or {}).get("values", ())]
        return given
    return None
