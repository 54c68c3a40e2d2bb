"""Traces of what the whole application does: `ask`, a structured plan of ten steps, and a run on a worker of DBOS."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from adapters.opentelemetry.tests.conftest import require_conventional
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import portico_host
from portico import ChatCapabilities, Kernel, Usage, function
from portico.errors import StoreError
from portico.ports import ChatService, Observer
from portico_opentelemetry.observer import OpenTelemetryObserver
from portico_testkit.fakes.chat_service import ScriptedChat

GOAL = "Count to ten."
PATIENCE = 60.0


class Counter:
    """Counts, and fails once where it is told to."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.fails_at = fails_at

    @function
    async def more(self, number: int) -> int:
        """Add one."""
        if number == self.fails_at:
            self.fails_at = None
            raise StoreError("the counter is stuck")
        return number + 1


def ten_proposals() -> list[str]:
    """Return what a model says to the structured planner."""
    given = [{"value": 0}, *({"from": f"s{number}", "path": "$"} for number in range(1, 10))]
    steps = [{"function": "Counter-more", "reason": "next", "arguments": {"number": each}} for each in given]
    return [
        json.dumps({"next": each}) for each in (*steps, {"function": "finish", "result": {"from": "s10", "path": "$"}})
    ]


@pytest.fixture
def traced() -> Iterator[tuple[InMemorySpanExporter, TracerProvider]]:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield exporter, provider
    for span in exporter.get_finished_spans():
        if span.instrumentation_scope is not None and span.instrumentation_scope.name == "portico_opentelemetry":
            require_conventional(span)
    provider.shutdown()


def children(spans: tuple[ReadableSpan, ...], parent: ReadableSpan) -> list[str]:
    """Return the names of the spans inside of one, in the order in which they began."""
    inside = [span for span in spans if span.parent and span.parent.span_id == parent.context.span_id]
    return [span.name for span in sorted(inside, key=lambda span: span.start_time or 0)]


def named(spans: tuple[ReadableSpan, ...], name: str) -> list[ReadableSpan]:
    """Return the spans of a name."""
    return [span for span in spans if span.name == name]


def services_of(provider: TracerProvider, *said: str) -> dict[Any, Any]:
    chat = ScriptedChat(*said, usage=Usage(40, 10), capabilities=ChatCapabilities(response_schema=True))
    return {ChatService: chat, (Observer, "opentelemetry"): OpenTelemetryObserver(tracer_provider=provider)}


async def test_ask_has_its_searches_and_its_answer(
    traced: tuple[InMemorySpanExporter, TracerProvider], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, provider = traced
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "ferry.md").write_text("The ferry to Oslo leaves at nine in the morning.")
    observed = {(Observer, "opentelemetry"): OpenTelemetryObserver(tracer_provider=provider)}
    docs = {"search": {"docs": {"use": "documents", "path": "docs"}}}
    async with portico_host.open(overrides=docs, services=observed) as kernel:
        exporter.clear()
        await kernel.run_goal("When does the ferry leave?")
    spans = exporter.get_finished_spans()
    (whole,) = named(spans, "invoke_workflow retrieval")
    (search,) = named(spans, "execute_tool docs-GetTextSearchResults")
    (retrieval,) = named(spans, "retrieval docs")
    assert children(spans, whole) == ["plan retrieval", search.name, "plan retrieval"]
    assert children(spans, search) == ["retrieval docs"]
    assert children(spans, retrieval)[0].startswith("embeddings wordllama")
    assert children(spans, named(spans, "plan retrieval")[1])[-1] == "chat"


def test_the_command_line_writes_a_trace_without_an_sdk(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "ferry.md").write_text("The ferry to Oslo leaves at nine in the morning.")
    code = (
        "import sys; from portico_cli.main import main; code = main(sys.argv[1:]); "
        "sys.exit(code or any(name.startswith('opentelemetry.sdk') for name in sys.modules))"
    )
    asked = ("ask", "When does the ferry leave?", "--docs", "docs", "--trace", "trace.jsonl")
    done = subprocess.run([sys.executable, "-c", code, *asked], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "trace.jsonl").read_text("ascii").splitlines()
    spans = [json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for line in lines]
    by_name = {span["name"]: span for span in spans}
    whole, step = by_name["invoke_workflow retrieval"], by_name["execute_tool docs-GetTextSearchResults"]
    assert by_name["retrieval docs"]["parentSpanId"] == step["spanId"]
    assert step["parentSpanId"] == whole["spanId"]
    assert {name.partition(" ")[0] for name in by_name} >= {"plan", "chat", "embeddings"}


async def test_a_structured_plan_of_ten_steps_has_a_reply_and_a_step_for_each(
    traced: tuple[InMemorySpanExporter, TracerProvider], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, provider = traced
    monkeypatch.chdir(tmp_path)
    services = services_of(provider, *ten_proposals())
    planner = {"planner": {"use": "structured"}}
    async with portico_host.open(overrides=planner, services=services, plugins=[Counter()]) as kernel:
        run = await kernel.run_goal(GOAL)
    assert run.outcome.value == 10
    spans = exporter.get_finished_spans()
    (whole,) = named(spans, "invoke_workflow structured")
    assert children(spans, whole) == ["plan structured"] + ["execute_tool Counter-more"] * 10
    (proposal,) = named(spans, "plan structured")
    assert children(spans, proposal) == ["chat"] * 11
    assert proposal.attributes["portico.plan.steps"] == 10


async def test_a_run_on_a_worker_is_in_the_trace_of_its_submitter_and_resumed_links_to_it(
    traced: tuple[InMemorySpanExporter, TracerProvider], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, provider = traced
    monkeypatch.chdir(tmp_path)
    where: Mapping[str, Any] = {
        "planner": {"use": "structured"},
        "runs": {"use": "sqlite", "sqlite": {"path": "runs.sqlite3"}},
        "runner": {"use": "dbos", "dbos": {"path": "dbos.sqlite3", "poll": 0.05}},
    }
    services, plugins = services_of(provider, *ten_proposals()), [Counter(fails_at=7)]
    async with portico_host.open(overrides=where, services=services, plugins=plugins) as kernel:
        with provider.get_tracer("application").start_as_current_span("asked") as asked:
            name = await kernel.submit(GOAL)
        await _work(kernel, name)
        spans = exporter.get_finished_spans()
        run = await kernel.resume(name, retry=["s8"])
    assert run.outcome.value == 10
    (whole,) = named(spans, "invoke_workflow structured")
    assert whole.parent is not None
    assert whole.parent.span_id == asked.get_span_context().span_id
    steps = children(spans, whole)
    assert steps == ["plan structured"] + ["execute_tool Counter-more"] * 8 + ["plan structured"]
    later = exporter.get_finished_spans()[len(spans) :]
    (again,) = named(later, "invoke_workflow structured")
    assert [link.context.span_id for link in again.links] == [whole.context.span_id]
    assert children(later, again) == ["execute_tool Counter-more"] * 3


async def _work(kernel: Kernel, name: str) -> None:
    """Work until a job has ended."""
    queue = Kernel.require_jobs(kernel.runner)
    handlers = {kind: partial(carry_out, kernel) for kind, carry_out in Kernel.job_handlers().items()}
    working = asyncio.ensure_future(queue.work(handlers))
    try:
        async with asyncio.timeout(PATIENCE):
            while (status := (await queue.status([name]))[0]) is None or status.state in ("waiting", "running"):
                await asyncio.sleep(0.02)
    finally:
        working.cancel()
        await asyncio.wait([working])
