"""What is traced of runs, agents and services, and what is not."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from portico import (
    ChatAgent,
    ChatCapabilities,
    ChatRequest,
    From,
    Kernel,
    Message,
    Paused,
    Plan,
    Step,
    ToolCall,
    Usage,
    Value,
    function,
)
from portico.errors import ServiceUnavailable, StepFailed
from portico.plans import Answer, Infeasible
from portico.plugins import RunState
from portico.ports import ChatService, EmbeddingGenerator, TextSearch
from portico_opentelemetry.observer import OpenTelemetryObserver
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.fakes.job_queue import MemoryJobQueue
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.fakes.text_search import ListEntry, ListSearch

from .conftest import Spans, attributes

SECRET = "sk-planted-4711"
TOOLS = ChatCapabilities(tools=True)


class Steps:
    @function
    async def Add(self, number: int) -> int:  # noqa: N802 - as it is shown
        """Add one."""
        return number + 1

    @function
    async def Fail(self, number: int) -> int:  # noqa: N802 - as it is shown
        """Fail with what it was given."""
        raise LookupError(f"{number}: the key {SECRET} is refused")


class Once:
    """Proposes one plan, or another outcome."""

    name = "once"

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    async def propose(self, task: Any, *, emit: Any) -> Plan | Answer | Infeasible:
        return self.plan


def ten_steps(function: str = "Steps-Add") -> Plan:
    steps = [Step("s1", function, {"number": Value(0)})]
    steps += [Step(f"s{n}", function, {"number": From(f"s{n - 1}")}) for n in range(2, 11)]
    return Plan("Count to ten", tuple(steps), From("s10"))


def kernel_of(spans: Spans, services: dict[Any, Any] | None = None, *, content: bool = False, **options: Any) -> Kernel:
    observer = spans.observer(content=content)
    traced = {port: observer.observe_service(port.__name__, service) for port, service in (services or {}).items()}
    kernel = Kernel(traced, **options)
    observer.observe_kernel(kernel.middleware)
    kernel.add_plugin(Steps())
    return kernel


async def test_a_run_has_a_span_for_itself_each_proposal_and_each_step(spans: Spans) -> None:
    run = await kernel_of(spans).run_goal("Count to ten", planner=Once(ten_steps()))
    whole, proposal, *steps = spans.all()
    assert (whole.name, proposal.name) == ("invoke_workflow once", "plan once")
    assert [attributes(step)["portico.step"] for step in steps] == [f"s{n}" for n in range(1, 11)]
    assert {step.name for step in steps} == {"execute_tool Steps-Add"}
    assert {span.parent.span_id for span in (proposal, *steps)} == {whole.context.span_id}
    assert attributes(whole)["portico.run"] == run.name
    assert attributes(whole)["portico.outcome"] == "done"
    assert attributes(proposal)["portico.plan.steps"] == 10
    assert len(attributes(proposal)["portico.plan.digest"]) == 64


async def test_equal_plans_have_one_digest(spans: Spans) -> None:
    kernel = kernel_of(spans)
    for plan in (ten_steps(), ten_steps(), Plan("Another", ten_steps().steps, From("s10"))):
        await kernel.run_plan(plan)
    first, same, other = [attributes(span)["portico.plan.digest"] for span in spans.of("invoke_workflow")]
    assert first == same != other


async def test_an_agents_turn_has_its_replies_and_its_calls(spans: Spans) -> None:
    usage = Usage(90, 30, cached_tokens=60, reasoning_tokens=5, cache_written_tokens=7, cost=0.25)
    chat = ScriptedChat(ToolCall("c1", "Steps-Add", '{"number": 4}'), "Five.", usage=usage, capabilities=TOOLS)
    kernel = kernel_of(spans, {ChatService: chat})
    agent = ChatAgent("adder", kernel=kernel, functions=["Steps"])
    reply = await agent.invoke("What is 4 + 1?")
    assert spans.names() == ["invoke_agent adder", "chat", "execute_tool Steps-Add", "chat"]
    turn, first, call, last = spans.all()
    assert {span.parent.span_id for span in (first, call, last)} == {turn.context.span_id}
    assert attributes(call)["gen_ai.tool.call.id"] == "c1"
    assert attributes(first)["gen_ai.response.finish_reasons"] == ("tool_calls",)
    counted = {
        "gen_ai.usage.input_tokens": 90,
        "gen_ai.usage.output_tokens": 30,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cache_creation.input_tokens": 7,
        "gen_ai.usage.reasoning.output_tokens": 5,
        "portico.cost": 0.25,
    }
    assert counted.items() <= attributes(last).items()
    assert attributes(turn)["gen_ai.usage.input_tokens"] == reply.usage.input_tokens == 180
    assert attributes(turn)["gen_ai.conversation.id"] == reply.thread.id


async def test_what_the_reader_of_a_stream_does_is_no_part_of_its_spans(spans: Spans) -> None:
    kernel = kernel_of(spans, {ChatService: ScriptedChat("Five.", "Six.", capabilities=TOOLS)})
    agent = ChatAgent("adder", kernel=kernel)
    async for _ in agent.stream("What is 4 + 1?"):
        assert not trace.get_current_span().get_span_context().is_valid
    stream = agent.stream("And 5 + 1?")
    await anext(stream)
    await stream.aclose()
    assert spans.names() == ["invoke_agent adder", "chat"] * 2
    assert attributes(spans.of("chat")[0])["gen_ai.request.stream"] is True
    assert {span.status.status_code for span in spans.all()} == {StatusCode.UNSET}, "leaving a stream is no error"


async def test_searches_and_embeddings_have_spans(spans: Spans) -> None:
    services = {TextSearch: ListSearch([ListEntry("a red door")]), EmbeddingGenerator: HashingEmbeddings(8)}
    kernel = kernel_of(spans, services)
    await (await kernel.service(TextSearch).search("door")).list()
    await kernel.service(EmbeddingGenerator).embed(["door", "window"])
    retrieval, embeddings = spans.all()
    assert (retrieval.name, embeddings.name) == ("retrieval list", "embeddings hashing-8")
    assert attributes(retrieval)["gen_ai.request.top_k"] == 5
    assert attributes(retrieval)["portico.retrieval.results"] == 1
    assert attributes(embeddings)["gen_ai.embeddings.dimension.count"] == 8
    assert attributes(embeddings)["portico.embeddings.texts"] == 2


async def test_a_resumed_run_links_to_the_trace_before(spans: Spans) -> None:
    store = MemoryRunStore()
    plan = Plan("Add", ten_steps().steps[:2], From("s2"))
    first = kernel_of(spans, run_store=store)
    first.approve_plans()
    held = await first.run_goal("Add", planner=Once(plan))
    assert isinstance(held.outcome, Paused)
    (before,) = spans.of("invoke_workflow")
    assert attributes(before)["portico.approval"] == attributes(before)["portico.outcome"] == "held"
    second = kernel_of(spans, run_store=store)

    async def agree(*about: Any) -> bool:
        return True

    second.approve_plans(agree)
    run = await second.resume(held.name, planner=Once(plan))
    assert run.outcome.value == 2
    after = spans.of("invoke_workflow")[1]
    assert [link.context.span_id for link in after.links] == [before.context.span_id]
    assert after.context.trace_id != before.context.trace_id
    assert attributes(after)["portico.resumed"] is True
    assert attributes(after)["portico.approval"] == "approved"
    assert attributes(after)["portico.plan.digest"] == attributes(before)["portico.plan.digest"]
    assert {span.parent.span_id for span in spans.of("execute_tool")} == {after.context.span_id}


async def test_a_submitted_run_is_part_of_the_trace_that_submitted_it(spans: Spans) -> None:
    store, queue = MemoryRunStore(), MemoryJobQueue()
    chat = ScriptedChat("Five.")

    class Workers:
        name, jobs, durable = "memory", queue, None

        async def execute(self, run: str, name: str, action: Any) -> Any:
            return await action()

    kernel = kernel_of(spans, {ChatService: chat}, run_store=store, runner=Workers())
    kernel.origin = {"application": "tests"}
    planner = Once(ten_steps())
    asked = spans.tracers.get_tracer("application").start_span("asked")
    with trace.use_span(asked):
        job = (await _submitted(kernel, queue))[0]
    asked.end()
    kernel.services.get = lambda port, name=None: planner  # type: ignore[union-attr]
    await Kernel.job_handlers()[job.kind](kernel, job)
    state = RunState.of(await store.read(job.name))
    whole = next(span for span in spans.exporter.get_finished_spans() if span.name.startswith("invoke_workflow"))
    assert whole.parent.span_id == asked.get_span_context().span_id
    assert state.origin["application"] == "tests"
    assert f"{whole.context.span_id:016x}" in state.origin["traceparent"], "a resumed run links to this one"


async def _submitted(kernel: Kernel, queue: MemoryJobQueue) -> list[Any]:
    from portico import Job

    name = await kernel.submit("Count to ten", planner="once")
    status = (await queue.status([name], body=True))[0]
    assert status is not None
    return [Job(name, "pursuit", status.body)]


async def test_tasks_and_threads_of_a_step_are_inside_its_span(spans: Spans) -> None:
    seen: dict[str, int] = {}

    def current() -> int:
        return trace.get_current_span().get_span_context().span_id

    async def note(name: str) -> None:
        seen[name] = current()

    @function(blocking=True)
    def in_thread() -> str:
        assert threading.current_thread() is not threading.main_thread()
        seen["thread"] = current()
        return ""

    @function
    async def in_task() -> str:
        await asyncio.create_task(note("task"))
        return ""

    kernel = kernel_of(spans)
    kernel.add_function(in_thread)
    kernel.add_function(in_task)
    await kernel.run_plan(Plan("Both", (Step("s1", "in_thread", {}), Step("s2", "in_task", {}))))
    steps = {attributes(span)["portico.step"]: span.context.span_id for span in spans.of("execute_tool")}
    assert seen == {"thread": steps["s1"], "task": steps["s2"]}


async def test_a_failure_is_the_status_of_its_spans_by_type_alone(spans: Spans) -> None:
    kernel = kernel_of(spans, {ChatService: ScriptedChat(ServiceUnavailable(SECRET))})
    with pytest.raises(StepFailed):
        await kernel.run_plan(Plan("Fail", (Step("s1", "Steps-Fail", {"number": Value(1)}),)))
    with pytest.raises(ServiceUnavailable):
        await kernel.complete("Hello")
    result = await kernel.call_tool(ToolCall("c1", "Steps-Fail", '{"number": 1}'))
    assert result.error
    types = [(span.name, attributes(span)["error.type"]) for span in spans.all()]
    assert types == [
        ("invoke_workflow plan", "StepFailed"),
        ("execute_tool Steps-Fail", "LookupError"),
        ("chat", "ServiceUnavailable"),
        ("execute_tool Steps-Fail", "LookupError"),
    ]
    assert SECRET not in "".join(span.to_json() for span in spans.all())


async def test_a_step_that_waits_for_a_person_is_no_failure(spans: Spans) -> None:
    kernel = kernel_of(spans)

    @function(effects=True)
    async def send() -> str:
        return "sent"

    kernel.add_function(send)
    kernel.approve_effects()
    await kernel.run_plan(Plan("Send", (Step("s1", "send", {}),)))
    (step,) = spans.of("execute_tool")
    assert attributes(step)["portico.approval"] == "held"
    assert step.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize("content", [False, True])
async def test_content_is_traced_only_where_it_is_wanted(spans: Spans, content: bool) -> None:
    @function
    async def echo(text: str) -> str:
        return f"echo {text}"

    call = ToolCall("c1", "echo", f'{{"text": "{SECRET}-argument"}}')
    chat = ScriptedChat(call, f"{SECRET}-reply", capabilities=TOOLS)
    search = ListSearch([ListEntry("a door")])
    kernel = kernel_of(spans, {ChatService: chat, TextSearch: search}, content=content)
    kernel.add_function(echo)
    await ChatAgent("echo", kernel=kernel, functions=["echo"]).invoke(f"{SECRET}-prompt")
    await kernel.run_plan(Plan(f"{SECRET}-goal", (Step("s1", "echo", {"text": Value(f"{SECRET}-step")}),)))
    await (await kernel.service(TextSearch).search(f"{SECRET}-query")).list()
    written = "".join(span.to_json() for span in spans.all())
    for what in ("argument", "reply", "prompt", "goal", "step", "query"):
        assert (f"{SECRET}-{what}" in written) == content, what


async def test_tokens_and_durations_are_counted(spans: Spans) -> None:
    chat = ScriptedChat("Noon.", ServiceUnavailable("away"), usage=Usage(9, 3), name="openai")
    kernel = kernel_of(spans, {ChatService: chat})
    await kernel.complete("When?")
    with pytest.raises(ServiceUnavailable):
        await kernel.complete("When?")
    counted = {
        point["gen_ai.token.type"]: (total, count) for point, total, count in spans.points("gen_ai.client.token.usage")
    }
    assert counted == {"input": (9, 1), "output": (3, 1)}
    durations = [point for point, _, _ in spans.points("gen_ai.client.operation.duration")]
    assert [point.get("error.type") for point in durations] == [None, "ServiceUnavailable"]
    assert all(point["gen_ai.operation.name"] == "chat" for point in durations)


async def test_a_plan_that_cannot_be_json_fails_as_it_does_without_a_trace(spans: Spans) -> None:
    plan = Plan("Odd", (Step("s1", "Steps-Add", {"number": Value({1})}),), From("s1"))
    plain = Kernel()
    plain.add_plugin(Steps())
    with pytest.raises(Exception) as without:
        await plain.run_goal("Odd", planner=Once(plan))
    with pytest.raises(type(without.value)) as traced:
        await kernel_of(spans, content=True).run_goal("Odd", planner=Once(plan))
    assert str(traced.value) == str(without.value)


async def test_without_a_provider_nothing_is_changed() -> None:
    observer, kernel, chat = OpenTelemetryObserver(), Kernel(), ScriptedChat("Noon.")
    observer.observe_kernel(kernel.middleware)
    assert observer.observe_service("ChatService", chat) is chat
    assert not any(
        getattr(kernel.middleware, kind) for kind in ("function", "step", "run", "tool_call", "turn", "origin")
    )
    await chat.complete(ChatRequest((Message.of("user", "When?"),)))
