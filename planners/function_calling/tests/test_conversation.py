"""The conversation that the planner sends: made anew from the task each time, in whichever process."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.support.reading import tool_results

from portico import ChatCapabilities, Kernel, Paused, Reasoning, RequireApproval, Text, ToolCall, ToolResult, function
from portico.plans import Answer, Finding, Plan, Refusal, Step, StepRecord, Task, Value, plan_from_json, plan_to_json
from portico.ports import ChatService
from portico_function_calling_planner.config import FunctionCallingSettings
from portico_function_calling_planner.planner import FunctionCallingPlanner
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.fakes.services import FixedServices
from portico_testkit.fakes.weather import Weather

TOOLS = ChatCapabilities(tools=True)
LOOK = ToolCall("c1", "Weather-forecast", '{"city": "Oslo"}')


def planner_with(chat: ScriptedChat, **settings: Any) -> FunctionCallingPlanner:
    return FunctionCallingPlanner(FunctionCallingSettings(**settings), FixedServices({ChatService: chat}))


def play(*lines: Any, **options: Any) -> ScriptedChat:
    return ScriptedChat(*lines, capabilities=options.pop("capabilities", TOOLS), **options)


async def test_what_a_service_wants_handed_back_comes_back_from_a_journal_in_another_process() -> None:
    thinking = Reasoning({"encrypted": "…", "n": [1, None, True]}, "Thinking.")
    script = ([thinking, "I look.", LOOK, ToolCall("c2", "No-such")], "Clear.")
    kernel = Kernel(plugins=[Weather()])
    first = play(*script)
    task = Task("The weather?", tuple(kernel.specs.values()))
    plan = await planner_with(first).propose(task, emit=lambda event: None)
    assert isinstance(plan, Plan)
    plan = plan_from_json(json.loads(json.dumps(plan_to_json(plan))))
    later = replace(task, notes=plan.notes, steps=(StepRecord(plan.steps[0], {"sky": "clear"}),))
    second = play("Clear.")
    assert await planner_with(second).propose(later, emit=lambda event: None) == Answer("Clear.")
    [told] = second.requests
    assert told.messages[2].content[:3] == (thinking, Text("I look."), LOOK)
    assert tool_results(told)[0] == ToolResult("c1", "Weather-forecast", '{"sky": "clear"}')
    unbroken = play(*script)
    await kernel.run_goal("The weather?", planner=planner_with(unbroken))
    assert [message.content[:3] for message in unbroken.requests[1].messages[2:3]] == [told.messages[2].content[:3]]
    assert unbroken.requests[1].tools == told.tools


async def test_the_journal_has_every_reply_once_and_each_request_has_them_all() -> None:
    store = MemoryRunStore()
    calls = [ToolCall(f"c{n}", "Weather-forecast", json.dumps({"city": f"City {n}"})) for n in range(1, 7)]
    wrong = ToolCall("c0", "Weather-forecast", "{}")
    chat = play(wrong, *calls[:3], "", *calls[3:], "Clear.")
    kernel = Kernel(plugins=[Weather()], run_store=store)
    run = await kernel.run_goal("The weather?", planner=planner_with(chat))
    assert run.outcome == Answer("Clear.")
    plans = [entry["plan"]["notes"] for entry in await store.read(run.name) if entry["type"] == "plan"]
    kept = [part["call"] for notes in plans for each in notes["exchanges"] for part in each["parts"] if "call" in part]
    assert kept == ["c0", *(call.id for call in calls)]
    told = [part for message in chat.requests[-1].messages for part in message.content if isinstance(part, ToolCall)]
    assert told == [wrong, *calls]
    assert len(tool_results(chat.requests[-1])) == 7


async def test_a_run_that_was_held_goes_on_in_another_kernel_with_the_same_conversation() -> None:
    store, held = MemoryRunStore(), True
    thinking = Reasoning({"encrypted": "…"}, None)

    async def hold(context: Any, proceed: Any) -> Any:
        return RequireApproval("ask Ada") if held else await proceed()

    def kernel() -> Kernel:
        made = Kernel(plugins=[Weather()], run_store=store)
        made.middleware.step.append(hold)
        return made

    first = play([thinking, LOOK, ToolCall("c2", "No-such")], "never said")
    run = await kernel().run_goal("The weather?", planner=planner_with(first))
    assert run.outcome == Paused("ask Ada", "s1")
    held = False
    second = play("Clear.")
    resumed = await kernel().resume(run.name, planner=planner_with(second))
    assert resumed.outcome == Answer("Clear.")
    [request] = second.requests
    assert request.messages[:2] == first.requests[0].messages[:2]
    assert request.messages[2].content == (thinking, LOOK, ToolCall("c2", "No-such"))
    assert [result.error for result in tool_results(request)] == [False, True]


async def test_a_refused_proposal_is_answered_call_by_call() -> None:
    kernel = Kernel(plugins=[Weather()])
    calls = [LOOK, ToolCall("c2", "Weather-forecast", '{"city": "Rome"}')]
    chat = play(calls, "I stop.")
    planner = planner_with(chat)
    task = Task("The weather?", tuple(kernel.specs.values()))
    plan = await planner.propose(task, emit=lambda event: None)
    assert isinstance(plan, Plan)
    findings = (Finding("no Oslo today", "s1", "arguments.city"), Finding("never mind", "s2", severity="warning"))
    refused = replace(task, refused=(Refusal(plan, findings),))
    await planner.propose(refused, emit=lambda event: None)
    oslo, rome = tool_results(chat.requests[1])
    assert oslo.error
    assert "no Oslo today" in oslo.content
    assert rome.error
    assert "another one of the same reply was refused" in rome.content


async def test_steps_that_another_planner_ran_are_known() -> None:
    kernel = Kernel(plugins=[Weather()])
    done = StepRecord(Step("s1", "Weather-forecast", {"city": Value("Oslo")}), {"sky": "clear"})
    chat = play(ToolCall("c", "Weather-forecast", '{"city": "Rome"}'))
    task = Task("?", tuple(kernel.specs.values()), steps=(done,), notes={"of": "another"})
    plan = await planner_with(chat).propose(task, emit=lambda event: None)
    assert isinstance(plan, Plan)
    assert plan.steps[0].id == "s2"
    assert [result.content for result in tool_results(chat.requests[0])] == ['{"sky": "clear"}']


async def test_long_results_are_shortened_with_a_note_and_the_oldest_shrink_first() -> None:
    kernel = Kernel()

    @function
    def page(number: int) -> str:
        return f"{number}: " + "long words " * 400

    kernel.add_function(page)
    calls = [ToolCall(f"c{n}", "page", json.dumps({"number": n})) for n in range(4)]
    chat = play(*calls, "Done.")
    settings = {"observation_tokens": 600, "transcript_tokens": 1_000}
    await kernel.run_goal("Read", planner=planner_with(chat, **settings))
    told = [result.content for result in tool_results(chat.requests[-1])]
    assert all("characters are left out here" in text for text in told)
    assert len(told[0]) < 400 < len(told[-1]) <= 1_800
    assert [part.id for message in chat.requests[-1].messages for part in message.content if isinstance(part, ToolCall)]


async def test_the_input_is_told_as_data() -> None:
    chat = play("Clear.")
    kernel = Kernel(plugins=[Weather()])
    task = Task("Where?", tuple(kernel.specs.values()), input={"city": "Oslo"})
    await planner_with(chat).propose(task, emit=lambda event: None)
    assert '{"city": "Oslo"}' in chat.requests[0].messages[1].text
