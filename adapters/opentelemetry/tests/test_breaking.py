"""Spans of what runs side by side, is broken off, is left early or is odd; none of it changes for them."""

from __future__ import annotations

import asyncio
import gc
import json
from contextlib import aclosing
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from portico import ChatAgent, ChatRequest, From, Kernel, Message, Plan, Step, Value, function
from portico.plans import Finding, Refusal
from portico.plugins import RunState
from portico.ports import ChatService
from portico.search import (
    SearchConnector,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
    search_method,
    search_plugin,
)
from portico_opentelemetry._spans import LONGEST
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.run_store import MemoryRunStore

from .conftest import Spans, attributes
from .test_spans import TOOLS, Once, kernel_of, ten_steps

REQUEST = ChatRequest((Message.of("user", "When?"),))


class Papers(SearchConnector[str]):
    """A source with a further search method, whose third result cannot be had."""

    name = "papers"

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[str]:
        async def read() -> Any:
            for number in range(3):
                if query == "torn" and number == 2:
                    raise LookupError("the third page is torn")
                yield f"{query} {number}"

        return SearchResults(read())

    def to_text(self, record: str) -> str:
        return record

    def to_result(self, record: str) -> TextSearchResult:
        return TextSearchResult(record)

    @search_method
    async def get_news(self, query: str, options: TextSearchOptions) -> SearchResults[str]:
        """Find what was in the papers."""
        return SearchResults([query])


async def test_a_traced_source_keeps_its_further_search_methods_and_they_have_spans(spans: Spans) -> None:
    traced = spans.observer().observe_service("TextSearch", Papers())
    kernel = Kernel()
    kernel.add_plugin(search_plugin(traced, name="papers", functions=["GetNews"]))
    assert await kernel.invoke("papers-GetNews", query="anvil") == ["anvil"]
    assert isinstance(traced, SearchConnector)
    (span,) = spans.of("retrieval")
    assert attributes(span)["portico.retrieval.results"] == 1


async def test_the_span_of_a_search_ends_with_its_results_however_they_are_left(spans: Spans) -> None:
    search = spans.observer().observe_service("TextSearch", Papers())
    assert len(await (await search.search("whole")).list()) == 3
    with pytest.raises(LookupError):
        await (await search.search("torn")).list()
    early = await search.get_text_search_results("early")
    await anext(aiter(early))
    await early.aclose()
    await early.aclose()
    unread = await search.search("unread")
    del unread
    gc.collect()
    await asyncio.sleep(0)
    found = [(attributes(span)["portico.retrieval.results"], span.status.status_code) for span in spans.of("retrieval")]
    unset, error = StatusCode.UNSET, StatusCode.ERROR
    assert found == [(3, unset), (2, error), (1, unset), (0, unset)]


async def test_steps_and_runs_side_by_side_have_the_right_parents(spans: Spans) -> None:
    @function
    async def wait(number: int) -> int:
        with spans.tracers.get_tracer("application").start_as_current_span("inside"):
            await asyncio.sleep(0.001 * (5 - number % 5))
        return number

    kernel = kernel_of(spans)
    kernel.add_function(wait)
    plan = Plan("Wait", tuple(Step(f"s{number}", "wait", {"number": Value(number)}) for number in range(5)))
    runs = await asyncio.gather(*(kernel.run_plan(plan) for _ in range(4)))
    every = spans.exporter.get_finished_spans()
    by_id = {span.context.span_id: span for span in every}
    whole = {attributes(span)["portico.run"]: span for span in every if span.name == "invoke_workflow plan"}
    assert whole.keys() == {run.name for run in runs}
    for span in every:
        if span.name == "inside":
            step = by_id[span.parent.span_id]
            assert step.name == "execute_tool wait"
            assert step.parent.span_id == whole[attributes(step)["portico.run"]].context.span_id
            assert span.context.trace_id == step.context.trace_id
    assert len({span.context.trace_id for span in every}) == 4


def test_a_run_without_a_loop_is_inside_the_callers_span(spans: Spans) -> None:
    kernel = kernel_of(spans)
    with spans.tracers.get_tracer("application").start_as_current_span("outer") as outer:
        kernel.run_sync(kernel.run_plan(ten_steps()))
    whole = next(span for span in spans.exporter.get_finished_spans() if span.name == "invoke_workflow plan")
    assert whole.parent.span_id == outer.get_span_context().span_id


async def test_a_run_that_is_cancelled_has_its_spans(spans: Spans) -> None:
    begun = asyncio.Event()

    @function
    async def hang() -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    kernel = kernel_of(spans)
    kernel.add_function(hang)
    task = asyncio.create_task(kernel.run_plan(Plan("Hang", (Step("s1", "hang", {}),))))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert spans.names() == ["invoke_workflow plan", "execute_tool hang"]
    assert {attributes(span)["error.type"] for span in spans.all()} == {"CancelledError"}
    assert not trace.get_current_span().get_span_context().is_valid


async def test_a_turn_that_is_cancelled_or_left_ends_its_spans_and_leaves_no_current_span(spans: Spans) -> None:
    kernel = kernel_of(spans, {ChatService: ScriptedChat("One two three.", repeat=True, capabilities=TOOLS)})
    agent = ChatAgent("adder", kernel=kernel)

    async def read_one(stop: asyncio.Event) -> None:
        async for _ in agent.stream("What?"):
            await stop.wait()

    stop = asyncio.Event()
    task = asyncio.create_task(read_one(stop))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with aclosing(agent.stream("What?")) as stream:
        await anext(stream)
    unread = agent.stream("What?")
    await unread.aclose()
    await asyncio.sleep(0)
    gc.collect()
    await asyncio.sleep(0)
    assert spans.names() == ["invoke_agent adder", "chat"] * 2
    assert not trace.get_current_span().get_span_context().is_valid


async def test_a_chat_service_that_fails_before_its_stream_begins_ends_its_span(spans: Spans) -> None:
    class Refuses:
        name = "refuses"

        def stream(self, request: ChatRequest) -> Any:
            raise LookupError("no")

    chat = spans.observer().observe_service("ChatService", Refuses())
    with pytest.raises(LookupError):
        [delta async for delta in chat.stream(REQUEST)]
    (span,) = spans.of("chat")
    assert attributes(span)["error.type"] == "LookupError"


async def test_where_a_service_is_asked_is_in_its_spans_without_user_and_path(spans: Spans) -> None:
    class Away(ScriptedChat):
        address = "https://me:sk-planted@bedrock-runtime.eu-west-1.amazonaws.com/v1?key=sk-planted"

    class Near(ScriptedChat):
        address = "http://127.0.0.1:8080/v1"

    class Odd(ScriptedChat):
        address = "http://[half"

    for kind in (Away, Near, Odd, ScriptedChat):
        await spans.observer().observe_service("ChatService", kind("Noon.", name="mine")).complete(REQUEST)
    asked = ("gen_ai.provider.name", "server.address", "server.port")
    assert [tuple(attributes(span).get(name) for name in asked) for span in spans.of("chat")] == [
        ("aws.bedrock", "bedrock-runtime.eu-west-1.amazonaws.com", 443),
        ("mine", "127.0.0.1", 8080),
        ("mine", None, None),
        ("mine", None, None),
    ]
    assert "sk-planted" not in "".join(span.to_json() for span in spans.all())


async def test_content_is_cut_and_whatever_it_is_it_harms_nothing(spans: Spans) -> None:
    class Bad:
        def __str__(self) -> str:
            raise RuntimeError("no words")

        __repr__ = __str__

    @function
    async def long(text: str) -> str:
        return text * 10

    kernel = kernel_of(spans, content=True)
    kernel.add_function(long)
    run = await kernel.run_plan(Plan("é\ud83d", (Step("s1", "long", {"text": Value("ü" * LONGEST)}),), From("s1")))
    assert len(run.outcome.value) == 10 * LONGEST
    (step,) = spans.of("execute_tool")
    for name in ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"):
        assert len(attributes(step)[name]) == LONGEST + 1
    (whole,) = spans.of("invoke_workflow")
    assert json.loads(attributes(whole)["gen_ai.input.messages"])[0]["parts"][0]["content"] == "é?"
    with spans.tracers.get_tracer("x").start_as_current_span("odd") as span:
        from portico_opentelemetry._spans import Tracing

        tracing = Tracing(spans.tracers.get_tracer("x"), spans.meters.get_meter("x"), content=True)
        tracing.tell(span, "odd", {"value": Bad()})
        tracing.tell(span, "set", {1, 2} and Bad())


@pytest.mark.parametrize("content", [False, True])
async def test_without_content_nothing_is_written_as_json(spans: Spans, content: bool) -> None:
    shown: list[str] = []

    class Shown:
        def __str__(self) -> str:
            shown.append("")
            return "shown"

    async def odd(context: Any, proceed: Any) -> Any:
        await proceed()
        return Shown()

    kernel = kernel_of(spans, content=content)
    kernel.middleware.step.append(odd)
    await kernel.run_plan(Plan("Add", ten_steps().steps[:1]))
    assert bool(shown) is content


@pytest.mark.parametrize("odd", [Plan("Odd", ("x",)), Plan("Odd", None)])  # type: ignore[arg-type]
async def test_a_proposal_that_is_no_plan_fails_as_it_does_without_a_trace(spans: Spans, odd: Plan) -> None:
    with pytest.raises(Exception) as without:
        await Kernel().run_goal("Odd", planner=Once(odd))
    with pytest.raises(type(without.value)) as traced:
        await kernel_of(spans).run_goal("Odd", planner=Once(odd))
    assert str(traced.value) == str(without.value)


async def test_a_text_that_is_no_list_of_texts_fails_as_it_does_without_a_trace(spans: Spans) -> None:
    class Fussy:
        name = model = "fussy"

        async def embed(self, texts: Any) -> Any:
            raise TypeError(f"{type(texts).__name__} is no list")

    generator = spans.observer().observe_service("EmbeddingGenerator", Fussy())
    with pytest.raises(TypeError, match="NoneType is no list"):
        await generator.embed(None)


async def test_a_plan_that_a_person_edits_or_refuses_says_so(spans: Spans) -> None:
    plan = Plan("Add", ten_steps().steps[:2], From("s2"))
    shorter = Plan("Add", plan.steps[:1], From("s1"))
    decisions: list[Any] = [Refusal(plan, (Finding("too long"),)), shorter]

    async def decide(review: Any) -> Any:
        seen.append(attributes_now())
        return decisions.pop(0)

    def attributes_now() -> Any:
        return dict(getattr(trace.get_current_span(), "attributes", {}) or {}).get("portico.approval")

    seen: list[Any] = []
    kernel = kernel_of(spans)
    kernel.approve_plans(decide)
    run = await kernel.run_goal("Add", planner=Once(plan))
    assert run.outcome.value == 1
    assert seen == [None, "refused"]
    (whole,) = spans.of("invoke_workflow")
    assert attributes(whole)["portico.approval"] == "approved"


async def test_a_run_that_begins_while_a_plan_waits_does_not_have_it_asked_twice(spans: Spans) -> None:
    kernel = kernel_of(spans)
    asked: list[str] = []
    waiting, go = asyncio.Event(), asyncio.Event()

    async def review(context: Any, proceed: Any) -> Any:
        asked.append(context.run)
        waiting.set()
        await go.wait()
        return await proceed()

    class Approving(Once):
        async def propose(self, task: Any, *, emit: Any) -> Any:
            kernel.middleware.plan.append(review)
            return self.plan

    two = asyncio.create_task(kernel.run_goal("Two", planner=Approving(ten_steps())))
    await waiting.wait()
    three = asyncio.create_task(kernel.run_goal("Three", planner=Once(ten_steps())))
    await asyncio.sleep(0.01)
    go.set()
    await asyncio.gather(two, three)
    assert len(asked) == len(set(asked)) == 2


async def test_each_resumption_links_to_the_one_before(spans: Spans) -> None:
    store = MemoryRunStore()
    plan = Plan("Add", ten_steps().steps[:1], From("s1"))
    answers = [False, False, True]

    async def decide(*about: Any) -> bool:
        return answers.pop(0)

    def fresh() -> Kernel:
        kernel = kernel_of(spans, run_store=store)
        kernel.origin = {"application": "tests"}
        kernel.approve_plans(decide)
        return kernel

    held = await fresh().run_goal("Add", planner=Once(plan))
    with spans.tracers.get_tracer("application").start_as_current_span("request"):
        await fresh().resume(held.name, planner=Once(plan))
    run = await fresh().resume(held.name, planner=Once(plan))
    assert run.outcome.value == 1
    first, second, third = spans.of("invoke_workflow")
    assert [link.context.span_id for link in second.links] == [first.context.span_id]
    assert [link.context.span_id for link in third.links] == [second.context.span_id]
    origin = RunState.of(await store.read(held.name)).origin
    assert origin["application"] == "tests"
    assert f"{third.context.span_id:016x}" in origin["traceparent"]
