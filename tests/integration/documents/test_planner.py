"""The samples of the article on planners: a poem and its translation, planned without a planner and with one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.replayed_model import ReplayedModel

import portico_host
from portico import Answer, From, FunctionSpec, Kernel, Plan, Step, Value, prompt_function
from portico.plans import XmlPlan
from portico.ports import ChatService
from portico_openai.chat import OpenAIChat

GOALS = pytest.mark.parametrize(
    "goal", ["Write a poem about John Doe, then translate it into Chinese.", "帮忙写一首关于水哥的诗, 然后翻译为中文"]
)
PLAN = """<plan>
  <!-- A poem first. -->
  <function.WriterPlugin.ShortPoem input="John Doe" setContextVariable="POEM"/>
  <!-- Then in Chinese. -->
  <function.WriterPlugin.Translate input="$POEM" language="Chinese" appendToResult="RESULT__FINAL_ANSWER"/>
</plan>"""
POEM, TRANSLATED = 'John Doe & Co.\nwrote a "poem".', "张三写了一首诗。"
MANUAL = """WriterPlugin.ShortPoem:
  description: Turn a scenario into a short and entertaining poem.
  inputs:
  - input: The scenario to turn into a poem.

WriterPlugin.Translate:
  description: Translate the input into a language of your choice
  inputs:
  - input:
  - language: The language which will translate to"""


def with_writer(kernel: Kernel) -> Kernel:
    poem = prompt_function(
        "ShortPoem",
        "Write a short and funny poem.\n\nIt is about: {{$input}}",
        plugin="WriterPlugin",
        description="Turn a scenario into a short and entertaining poem.",
        inputs={"input": "The scenario to turn into a poem."},
    )
    translation = prompt_function(
        "Translate",
        "Translate into {{$language}} and write nothing else:\n\n{{$input}}",
        plugin="WriterPlugin",
        description="Translate the input into a language of your choice",
        inputs={"input": "", "language": "The language which will translate to"},
    )
    kernel.add_function(poem)
    kernel.add_function(translation)
    return kernel


PROMPT = """Write a plan in XML for the goal, with these functions:

{{$available_functions}}

A plan is <plan>…</plan>. A step is <function.Plugin.Name parameter="…" setContextVariable="NAME"/>: one attribute for
each parameter, and a name for its output. Give an output to a later step as "$NAME". The step that answers the goal has
appendToResult="RESULT__NAME". Say why in a comment before each step. Escape values as XML. Invent no functions. If the
functions cannot reach the goal, answer <plan/>.

<goal>{{$input}}</goal>"""


@GOALS
async def test_a_prompt_of_one_s_own_plans_and_the_plan_is_read_checked_and_run(
    chat: OpenAIChat, model: ReplayedModel, goal: str
) -> None:
    model.sayings = [PLAN, POEM, TRANSLATED]
    kernel = with_writer(Kernel({ChatService: chat}))
    manual = FunctionSpec.write_text(kernel.specs.values())
    written = await kernel.invoke_prompt(PROMPT, {"input": goal, "available_functions": manual})
    run = await kernel.run_plan(XmlPlan.read(written, kernel.specs, goal=goal, recover=True).plan)

    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == TRANSLATED
    assert [line.rstrip() for line in manual.splitlines()] == MANUAL.splitlines()
    asked = [body["messages"][0]["content"] for body in model.asked]
    assert f"{manual}\n" in asked[0]
    assert f"<goal>{goal}</goal>" in asked[0]
    assert asked[1].endswith("It is about: John Doe")
    assert asked[2] == f"Translate into Chinese and write nothing else:\n\n{POEM}"
    assert run.plan is not None
    assert [step.reason for step in run.plan.steps] == ["A poem first.", "Then in Chinese."]


@GOALS
async def test_the_packaged_planner_needs_two_lines_of_configuration(
    chat: OpenAIChat, model: ReplayedModel, goal: str, tmp_path: Path
) -> None:
    model.sayings = [PLAN, POEM, TRANSLATED]
    file = tmp_path / "portico.toml"
    file.write_text('[planner]\nuse = "sequential"')
    async with portico_host.open(file, services={ChatService: chat}) as kernel:
        run = await with_writer(kernel).run_goal(goal)

    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == TRANSLATED
    assert run.plan is not None
    read_again = PLAN.replace("appendToResult", 'setContextVariable="s2" appendToResult').replace("FINAL_ANSWER", "s2")
    assert XmlPlan.write(run.plan, kernel.specs) == f"<goal>{goal}</goal>\n{read_again}"


async def test_the_same_plan_made_by_hand_from_steps(chat: OpenAIChat, model: ReplayedModel) -> None:
    model.sayings = [POEM, TRANSLATED]
    kernel = with_writer(Kernel({ChatService: chat}))
    poem = Step("POEM", "WriterPlugin-ShortPoem", {"input": Value("John Doe")})
    chinese = Step("CHINESE", "WriterPlugin-Translate", {"input": From("POEM"), "language": Value("Chinese")})
    run = await kernel.run_plan(Plan("A poem in Chinese", (poem, chinese), From("CHINESE")))

    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == TRANSLATED
