"""The poem of the planner article, from end to end, with a model's recorded replies."""

from __future__ import annotations

import pytest

from portico import ChatRequest, FunctionInvocation, Kernel, prompt_function
from portico.errors import PlanInvalid
from portico.plans import Answer, Event, Infeasible, RunEvent
from portico.ports import ChatService
from portico_sequential_planner.config import SequentialSettings
from portico_sequential_planner.planner import SequentialPlanner
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices

GOALS = (
    "Write a poem about John Doe, then translate it into Chinese.",
    "写一首关于 John Doe 的诗，然后把它翻译成中文。",
)
PLAN = """\
<plan>
  <!-- A poem first. -->
  <function.WriterPlugin.ShortPoem input="John Doe" setContextVariable="POEM"/>
  <!-- Then in Chinese. -->
  <function.WriterPlugin.Translate input="$POEM" language="Chinese" appendToResult="RESULT__TRANSLATED_POEM"/>
</plan>
<!-- END -->"""
BOTH = PLAN.replace('setContextVariable="POEM"', 'setContextVariable="POEM" appendToResult="RESULT__POEM"')
POEM, TRANSLATED = (
    "John Doe, nobody knows you,\nyet every <form> & file does.",
    "无名氏，无人识你，\n而每张表格都认得。",
)


def model(plan: str) -> ScriptedChat:
    def replay(request: ChatRequest) -> str:
        words = request.messages[-1].text
        if words == "Write a short poem about: John Doe":
            return POEM
        if words == f"Translate into Chinese: {POEM}":
            return TRANSLATED
        assert any(f"<goal>{goal}</goal>" in words for goal in GOALS), f"nobody recorded an answer to {words!r}"
        return plan

    return ScriptedChat(replay, repeat=True)


def kernel_with(chat: ScriptedChat) -> Kernel:
    kernel = Kernel(FixedServices({ChatService: chat}))
    for name, prompt, description in (
        ("ShortPoem", "Write a short poem about: {{$input}}", "Turn a scenario into a short poem."),
        ("Translate", "Translate into {{$language}}: {{$input}}", "Translate text into a language of your choice."),
    ):
        kernel.add_function(prompt_function(name, prompt, plugin="WriterPlugin", description=description))
    return kernel


def planner_of(kernel: Kernel) -> SequentialPlanner:
    assert kernel.services is not None
    return SequentialPlanner(SequentialSettings(), kernel.services)


@pytest.mark.parametrize("goal", GOALS)
async def test_the_poem_is_written_and_translated(goal: str) -> None:
    kernel = kernel_with(model(PLAN))
    run = await kernel.run_goal(goal, planner=planner_of(kernel))
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == TRANSLATED
    assert [(record.step.function, record.result) for record in run.steps] == [
        ("WriterPlugin-ShortPoem", POEM),
        ("WriterPlugin-Translate", TRANSLATED),
    ]


async def test_both_poems_are_the_answer_where_both_are_appended() -> None:
    kernel = kernel_with(model(BOTH))
    run = await kernel.run_goal(GOALS[0], planner=planner_of(kernel))
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == f"{POEM}\n{TRANSLATED}"


@pytest.mark.parametrize(
    "plan",
    [
        f"Sure! Here is the plan:\n```xml\n{PLAN}\n```",
        PLAN.replace("</plan>\n<!-- END -->", ""),
        PLAN.replace("function.WriterPlugin.ShortPoem", "Function.writerplugin.shortpoem").replace("input", "INPUT", 1),
        PLAN.replace('input="John Doe"', 'input="John Doe" input="John Doe"'),
    ],
)
async def test_a_damaged_plan_does_the_same_or_is_asked_for_again(plan: str) -> None:
    kernel = kernel_with(model(plan))
    run = await kernel.run_goal(GOALS[0], planner=planner_of(kernel))
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == TRANSLATED


async def test_a_refused_plan_is_repaired_before_anything_runs() -> None:
    called: list[str] = []
    chat = ScriptedChat(PLAN.replace("ShortPoem", "LongPoem"), PLAN, POEM, TRANSLATED)
    kernel = kernel_with(chat)

    async def note(context: FunctionInvocation, proceed):
        called.append(context.function.full_name)
        return await proceed()

    kernel.middleware.function.append(note)
    events: list[RunEvent] = []
    run = await kernel.run_goal(GOALS[0], planner=planner_of(kernel), emit=events.append)
    assert isinstance(run.outcome, Answer)
    assert called == ["WriterPlugin-ShortPoem", "WriterPlugin-Translate"]
    told = chat.requests[1].messages[-1].text
    assert "LongPoem" in told
    assert "WriterPlugin-ShortPoem" in told, "the nearest name is not told"
    assert sum(isinstance(event, Event.Proposed) for event in events) == 2


async def test_a_plan_that_is_refused_again_and_again_ends_the_run() -> None:
    chat = ScriptedChat(PLAN.replace("ShortPoem", "LongPoem"), repeat=True)
    kernel = kernel_with(chat)
    with pytest.raises(PlanInvalid, match="LongPoem"):
        await kernel.run_goal(GOALS[0], planner=planner_of(kernel))


async def test_a_step_that_fails_is_planned_anew_with_the_poem_at_hand() -> None:
    anew = '<plan><function.WriterPlugin.Translate input="$POEM" language="Chinese" appendToResult="RESULT__T"/></plan>'
    chat = ScriptedChat(PLAN, POEM, ConnectionError("no line"), anew, TRANSLATED)
    kernel = kernel_with(chat)
    run = await kernel.run_goal(GOALS[0], planner=planner_of(kernel))
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == TRANSLATED
    poems = [record for record in run.steps if record.step.function == "WriterPlugin-ShortPoem"]
    assert len(poems) == 1, "the poem was written twice"


async def test_an_empty_plan_ends_the_run_with_what_is_missing() -> None:
    kernel = kernel_with(model("<!-- Nothing here sends letters. -->\n<!-- missing: sending letters -->\n<plan />"))
    run = await kernel.run_goal(GOALS[0], planner=planner_of(kernel))
    assert run.outcome == Infeasible("Nothing here sends letters.", ("sending letters",))
