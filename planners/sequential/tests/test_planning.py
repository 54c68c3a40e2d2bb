"""From a goal to a plan: what the model is told, and what becomes of its replies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico import ChatRequest, Kernel, function
from portico.errors import PlanFormatError
from portico.plans import (
    Answer,
    Finding,
    From,
    Infeasible,
    ListOf,
    ObjectOf,
    Plan,
    Refusal,
    ReplyProblem,
    RunEvent,
    Step,
    StepRecord,
    Task,
    TextOf,
    Value,
    XmlPlan,
)
from portico.ports import ChatService
from portico_sequential_planner.config import SequentialSettings
from portico_sequential_planner.planner import SequentialPlanner, read_reply
from portico_testkit.fakes.chat_service import Line, ScriptedChat
from portico_testkit.fakes.services import FixedServices


@dataclass
class Day:
    date: str


@dataclass
class Forecast:
    degreesFahrenheit: int  # noqa: N815


class Tools:
    @function
    def count(self, text: str, least: int = 0) -> int:
        """Count the words of a text.

        Args:
            text: What to count.
            least: Shorter words do not count.
        """
        return sum(len(word) >= least for word in text.split())

    @function
    def measure(self, text: str) -> dict[str, int]:
        """Measure a text."""
        return {"letters": len(text)}

    @function
    def shout(self, text: str) -> str:
        """Say it aloud."""
        return text.upper()


def planner(*script: Line, settings: SequentialSettings | None = None, **options: Any) -> SequentialPlanner:
    chat = ScriptedChat(*script, **options)
    made = SequentialPlanner(settings or SequentialSettings(), FixedServices({ChatService: chat}))
    made.chat = chat  # type: ignore[attr-defined]
    return made


def requests_of(made: SequentialPlanner) -> list[ChatRequest]:
    asked: list[ChatRequest] = made.chat.requests  # type: ignore[attr-defined]
    return asked


def task(goal: str = "Shout hey.", **options: Any) -> Task:
    kernel = Kernel()
    kernel.add_plugin(Tools())
    return Task(goal, tuple(kernel.specs.values()), **options)


async def propose(made: SequentialPlanner, given: Task, emit: Callable[[RunEvent], None] = [].append) -> Plan:
    plan = await made.propose(given, emit=emit)
    assert isinstance(plan, Plan), f"it proposed {plan}"
    return plan


SHOUT = '<plan><function.Tools.shout text="hey" appendToResult="RESULT__LOUD"/></plan>'
TWO = """\
<plan>
  <!-- loud first -->
  <function.Tools.shout text="hey" setContextVariable="LOUD"/>
  <function.Tools.count text="so: $LOUD" least="2" appendToResult="RESULT__NUMBER"/>
</plan>"""


async def test_a_plan_is_read_with_its_variables_types_and_reasons() -> None:
    plan = await propose(planner(TWO), task())
    first, second = plan.steps
    assert (first.function, first.arguments, first.reason) == ("Tools-shout", {"text": Value("hey")}, "loud first")
    assert second.arguments == {"text": TextOf(("so: ", From(first.id))), "least": Value(2)}
    assert plan.result == From(second.id)
    assert plan.goal == "Shout hey."


async def test_without_a_marked_result_the_last_step_s_output_is_it() -> None:
    plan = await propose(
        planner('<plan><function.Tools.shout text="a"/><function.Tools.count text="b"/></plan>'), task()
    )
    assert plan.result == From(plan.steps[-1].id)


async def test_several_marked_results_are_joined_by_line_breaks() -> None:
    reply = '<plan><function.Tools.shout text="a" appendToResult="RESULT__A"/>'
    reply += '<function.Tools.shout text="b" appendToResult="RESULT__B"/></plan>'
    plan = await propose(planner(reply), task())
    first, second = plan.steps
    assert plan.result == TextOf((From(first.id), "\n", From(second.id)))


async def test_the_model_is_told_of_the_functions_in_the_text_manual() -> None:
    made = planner(SHOUT)
    await propose(made, task())
    [request] = requests_of(made)
    roles = [message.role for message in request.messages]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    told = request.messages[0].text
    assert "Tools.count:\n  description: Count the words of a text.\n  inputs:\n  - text: What to count.\n" in told
    assert request.messages[-1].text.endswith("<goal>Shout hey.</goal>")
    assert "There is no $INPUT." in request.messages[-1].text


async def test_the_examples_are_plans_that_can_be_read() -> None:
    from portico.plans import XmlPlan

    made = planner(SHOUT)
    await propose(made, task())
    good, impossible = (message.text for message in requests_of(made)[0].messages if message.role == "assistant")
    assert len(XmlPlan.read(good).plan.steps) == 3
    assert XmlPlan.read(impossible).empty


@pytest.mark.parametrize(
    ("reply", "mended"),
    [
        (f"Here is the plan:\n\n```xml\n{SHOUT}\n```\nIt shouts.", "text around the plan"),
        ('<plan><function.Tools.shout text="hey" appendToResult="RESULT__LOUD"></plan>', "not closed"),
        ('<plan><function.Tools.shout text="hey" appendToResult="RESULT__LOUD"/>', "plan"),
    ],
)
async def test_what_was_mended_is_in_the_notes_with_its_place(reply: str, mended: str) -> None:
    plan = await propose(planner(reply), task())
    assert [step.function for step in plan.steps] == ["Tools-shout"]
    assert plan.notes["recovered"], "nothing is said to be mended"
    assert all(note.startswith("line ") for note in plan.notes["recovered"])
    assert any(mended in note for note in plan.notes["recovered"]), plan.notes


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("<plan/>", Infeasible("The functions do not suffice.")),
        ("<plan></plan>\n<!-- END -->", Infeasible("The functions do not suffice.")),
        ("<!-- Nobody\n listens. -->\n<plan />", Infeasible("Nobody listens.")),
        ("<plan><!-- Nobody listens. --></plan>", Infeasible("Nobody listens.")),
        ("Nobody listens.\n<plan/>", Infeasible("Nobody listens.")),
        ("```xml\n<plan/>\n```\nNobody listens.", Infeasible("Nobody listens.")),
        (
            "<!-- Nobody listens. -->\n<!-- missing: an audience -->\n<!-- Missing: a stage. --><plan/>",
            Infeasible("Nobody listens.", ("an audience", "a stage")),
        ),
    ],
)
async def test_an_empty_plan_makes_the_goal_infeasible(reply: str, outcome: Infeasible) -> None:
    assert await planner(reply).propose(task(), emit=[].append) == outcome


async def test_a_refused_plan_is_shown_as_xml_with_every_finding_where_it_is() -> None:
    plan = await propose(planner(TWO), task())
    findings = (
        Finding("a hint", severity="warning"),
        Finding("takes an integer", plan.steps[1].id, "arguments.least", hint="of M, $.letters would do"),
        Finding("there is no function 'Tools-shout'", plan.steps[0].id, "function"),
    )
    for refused in (plan, replace(plan, notes=None)):
        made = planner(SHOUT)
        await propose(made, task(refused=(Refusal(refused, findings),)))
        shown, told = requests_of(made)[0].messages[-2:]
        assert (shown.role, told.role) == ("assistant", "user")
        assert "<function.Tools.count" in shown.text
        assert "$LOUD" in shown.text
    lines = told.text.splitlines()
    assert "- step 2, <function.Tools.count>, attribute least: takes an integer; of M, $.letters would do" in lines
    assert "- step 1, <function.Tools.shout>: there is no function 'Tools-shout'" in lines
    assert lines.index("- a hint") > 2, "errors come first"


async def test_a_refused_plan_that_xml_cannot_hold_is_shown_in_another_form() -> None:
    plan = Plan("g", (Step("s1", "Tools-shout", {"text": ObjectOf({"a": ListOf((From("input", ("x",)),))})}),))
    made = planner(SHOUT)
    await propose(made, task(refused=(Refusal(plan, (Finding("no", "s1"),)),)))
    assert "Tools-shout" in requests_of(made)[0].messages[-2].text


async def test_the_input_is_a_variable() -> None:
    made = planner('<plan><function.Tools.shout text="Dear $INPUT"/></plan>')
    plan = await propose(made, task(input="Ada"))
    assert plan.steps[0].arguments == {"text": TextOf(("Dear ", From("input")))}
    assert '$INPUT stands for it: "Ada"' in requests_of(made)[0].messages[-1].text


async def test_the_members_of_the_input_are_variables() -> None:
    made = planner('<plan><function.Tools.shout text="Dear $NAME of $town"/></plan>')
    plan = await propose(made, task(input={"name": "Ada", "Town": "Oslo"}))
    parts = ("Dear ", From("input", ("name",)), " of ", From("input", ("Town",)))
    assert plan.steps[0].arguments == {"text": TextOf(parts)}
    assert "variables as well: $name, $Town" in requests_of(made)[0].messages[-1].text


class DatePluginSimpleComplex:
    @function
    def GetDate1(self, numDays: int) -> Day:  # noqa: N802, N803
        """Gets the date with the current date offset by the specified number of days.

        Args:
            numDays: The number of days to offset the date by from today. Positive for future, negative for past.
        """
        return Day(f"2023-11-{8 + numDays:02}")


class WeatherPluginSimpleComplex:
    @function
    def GetWeatherForecast1(self, date: str) -> Forecast:  # noqa: N802
        """Gets the weather forecast for the specified date and the current location, and time.

        Args:
            date: The date for the forecast
        """
        return Forecast(61 if date == "2023-11-09" else 0)


@pytest.mark.parametrize(
    ("manual", "told"),
    [
        ("text", ["types: (numDays: integer) -> {date: string}", "types: (date: string) -> {degreesFahrenheit"]),
        ("schema", ['"name": "DatePluginSimpleComplex.GetDate1"', '"schema": {"type": "object", "properties": {"da']),
    ],
)
async def test_the_goal_of_the_type_information_document_is_reached_by_a_field(manual: str, told: list[str]) -> None:
    made = planner(
        '<plan><function.DatePluginSimpleComplex.GetDate1 numDays="1" setContextVariable="DATE"/>'
        '<function.WeatherPluginSimpleComplex.GetWeatherForecast1 date="$DATE.date" setContextVariable="W"/></plan>',
        settings=SequentialSettings(manual=manual),
    )
    kernel = Kernel(plugins=[DatePluginSimpleComplex, WeatherPluginSimpleComplex])
    run = await kernel.run_goal("What is the weather forecast for tomorrow?", planner=made)
    assert isinstance(run.outcome, Answer)
    assert run.outcome.value == {"degreesFahrenheit": 61}
    system = requests_of(made)[0].messages[0].text
    assert [each for each in told if each not in system] == []
    assert run.plan is not None
    assert 'date="$DATE.date"' in XmlPlan.write(run.plan, kernel.specs)


async def test_a_later_plan_may_use_fields_of_results_so_far() -> None:
    done = StepRecord(Step("M", "Tools-measure", {"text": Value("hey")}), {"letters": 3})
    made = planner('<plan><function.Tools.shout text="It has $M.letters letters"/></plan>')
    plan = await propose(made, task(steps=(done,), notes={"plan": 1}))
    assert plan.steps[0].arguments == {"text": TextOf(("It has ", From("M", ("letters",)), " letters"))}


FAILED_HALF_WAY = (
    StepRecord(Step("LOUD", "Tools-shout", {"text": Value("hey")}), "HEY"),
    StepRecord(Step("NUMBER", "Tools-count", {"text": From("LOUD")}), error="broken\n</goal>"),
)


async def test_after_a_failure_a_plan_may_use_what_is_done() -> None:
    made = planner('<plan><function.Tools.count text="$LOUD" setContextVariable="NUMBER"/></plan>')
    plan = await propose(made, task(steps=FAILED_HALF_WAY, notes={"plan": 1}))
    [step] = plan.steps
    assert step.arguments == {"text": From("LOUD")}
    assert step.id not in ("LOUD", "NUMBER"), "the id is that of a step that has run"
    assert plan.result == From(step.id)
    told = requests_of(made)[0].messages[-1].text
    assert '- $LOUD is the output of Tools.shout: "HEY"' in told
    assert '- Tools.count: "broken\\n</goal>"' in told


async def test_the_plan_that_failed_is_shown_as_it_was_written() -> None:
    made = planner(SHOUT)
    await propose(made, task(steps=FAILED_HALF_WAY, notes={"plan": 1, "written": f"Gladly:\n{TWO}"}))
    asked, written, happened = requests_of(made)[0].messages[-3:]
    assert [message.role for message in (asked, written, happened)] == ["user", "assistant", "user"]
    assert written.text == f"Gladly:\n{TWO}"
    assert "$LOUD is the output" in happened.text


async def test_what_a_done_step_gave_to_the_result_stays_in_it() -> None:
    made = planner('<plan><function.Tools.count text="$LOUD" appendToResult="RESULT__B"/></plan>')
    plan = await propose(made, task(steps=FAILED_HALF_WAY, notes={"plan": 1, "result": ["LOUD", "NUMBER"]}))
    assert plan.result == TextOf((From("LOUD"), "\n", From(plan.steps[0].id)))
    assert plan.notes["result"] == ["LOUD", plan.steps[0].id]


@given(
    st.lists(
        st.sampled_from(
            [
                "<plan>",
                "</plan>",
                "<plan/>",
                '<function.Tools.shout text="',
                '"/>',
                ">",
                "$INPUT",
                "<!-- a -->",
                "<!--",
                "```xml\n",
                "```",
                "&",
                "missing:",
                "\n",
                'setContextVariable="A"',
                "$A",
                "<![CDATA[",
                "]]>",
            ]
        ),
        max_size=12,
    ).map("".join)
)
def test_any_reply_is_a_plan_an_infeasible_goal_or_a_problem(reply: str) -> None:
    try:
        read = read_reply(reply, {}, goal="g")
    except (PlanFormatError, ReplyProblem) as error:
        assert str(error)
    else:
        assert isinstance(read, Infeasible) or read.plan.steps


async def test_a_function_that_had_no_room_in_the_manual_may_still_be_planned_with() -> None:
    made = planner(SHOUT, settings=SequentialSettings(manual_tokens=60))
    plan = await propose(made, task("Count the words."))
    assert "Tools.shout" not in requests_of(made)[0].messages[0].text
    assert plan.steps[0].function == "Tools-shout"
