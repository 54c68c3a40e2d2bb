"""Which functions the structured planner offers in a step, and when it lets the plan end."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hypothesis import given, strategies as st

from portico import ChatCapabilities, Considered, FunctionsOffered, FunctionSpec, Kernel, Selection, function
from portico.plans import Answer, Infeasible, Plan, RunEvent, Task, Value
from portico.ports import ChatService, FunctionSelector, Planner
from portico_structured_planner.config import StructuredSettings
from portico_structured_planner.planner import StructuredPlanner
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices

HELD = ChatCapabilities(response_schema=True)
IN_WORDS = ChatCapabilities()
GOAL = "Write a poem about John Doe, then translate the text into Chinese."


class Desk:
    @function
    def poem(self, subject: str) -> str:
        """Write a poem about a subject."""
        return f"O {subject}!"

    @function
    def translate(self, text: str, language: str) -> str:
        """Translate a text into a language."""
        return f"{text} in {language}"

    @function
    def forecast(self, city: str) -> str:
        """Tell the weather."""
        return "Rain."

    @function
    def today(self) -> str:
        """Tell what day it is."""
        return "Monday"


def call(name: str, **arguments: str) -> str:
    given = {each: {"value": text} for each, text in arguments.items()}
    return json.dumps({"next": {"function": f"Desk-{name}", "reason": "", "arguments": given}})


def finish(step: str) -> str:
    return json.dumps({"next": {"function": "finish", "result": {"from": step, "path": "$"}}})


NAMES = ("poem", "translate", "forecast", "today")
POEM, CHINESE = call("poem", subject="John Doe"), call("translate", text="O!", language="Chinese")


def desk() -> Kernel:
    kernel = Kernel()
    kernel.add_plugin(Desk)
    return kernel


def planner_of(chat: ChatService, selector: FunctionSelector | None = None, **settings: Any) -> Planner:
    services: dict[Any, Any] = {ChatService: chat, **({FunctionSelector: selector} if selector else {})}
    return StructuredPlanner(StructuredSettings(give_up=False, **settings), FixedServices(services))


def offered(chat: ScriptedChat) -> list[list[str]]:
    """List the names that each request offers."""
    found = []
    for request in chat.requests:
        assert request.response_schema is not None
        following = request.response_schema["properties"]["next"]
        options = following.get("anyOf", [following])
        found.append([each["properties"]["function"]["const"].removeprefix("Desk-") for each in options])
    return found


async def test_functions_that_fit_what_is_missing_are_offered_the_best_first_and_then_the_end() -> None:
    chat = ScriptedChat(POEM, CHINESE, finish("s2"), capabilities=HELD)
    run = await desk().run_goal(GOAL, planner=planner_of(chat, choices=2))
    assert isinstance(run.outcome, Answer)
    assert offered(chat) == [["poem", "translate"], ["translate"], ["finish"]]
    assert "Desk-poem, Desk-translate" in chat.requests[0].messages[-1].text


async def test_without_the_setting_all_functions_are_offered_in_the_order_of_the_catalogue() -> None:
    chat = ScriptedChat(POEM, finish("s1"), capabilities=HELD)
    run = await desk().run_goal(GOAL, planner=planner_of(chat))
    assert offered(chat) == [[*NAMES], [*NAMES, "finish"]]
    assert run.selection is None


async def test_what_was_never_offered_is_in_the_selection_of_the_run_with_scores() -> None:
    chat = ScriptedChat(POEM, CHINESE, finish("s2"), capabilities=HELD)
    events: list[RunEvent] = []
    run = await desk().run_goal(GOAL, planner=planner_of(chat, choices=1), emit=events.append)
    assert run.selection is not None
    assert set(run.selection.names) == {"Desk-poem", "Desk-translate"}
    assert {each.name for each in run.selection.left_out} == {"Desk-forecast", "Desk-today"}
    assert run.selection.considered == 4
    assert all(each.score > 0 for each in run.selection.offered)
    assert [event.selection for event in events if isinstance(event, FunctionsOffered)][-1] == run.selection


async def test_a_goal_that_shares_no_word_with_any_function_leaves_the_choice_to_the_model() -> None:
    chat = ScriptedChat(POEM, finish("s1"), capabilities=HELD)
    await desk().run_goal("Ψ?", planner=planner_of(chat, choices=1))
    assert offered(chat) == [[*NAMES], [*NAMES, "finish"]]


async def test_before_min_steps_the_plan_does_not_end_even_if_nothing_fits() -> None:
    chat = ScriptedChat(POEM, call("today"), finish("s1"), capabilities=HELD)
    await desk().run_goal("A poem about a subject", planner=planner_of(chat, choices=4, min_steps=2))
    first, second, last = offered(chat)
    assert first[0] == "poem"
    assert "finish" not in second
    assert len(second) == 3
    assert last == ["finish"]


async def test_a_call_again_with_equal_arguments_is_not_taken_and_not_offered_again() -> None:
    for capabilities in (HELD, IN_WORDS):
        other = call("poem", subject="Ada")
        chat = ScriptedChat(POEM, POEM, CHINESE, other, other, finish("s3"), capabilities=capabilities)
        run = await desk().run_goal(GOAL, planner=planner_of(chat))
        assert [record.step.function for record in run.steps] == ["Desk-poem", "Desk-translate", "Desk-poem"]
        assert run.steps[2].step.arguments == {"subject": Value("Ada")}
        if capabilities is HELD:
            assert ["poem" in names for names in offered(chat)] == [True, True, False, True, True, False]


async def test_a_function_without_parameters_is_not_offered_twice_in_a_row() -> None:
    chat = ScriptedChat(call("today"), POEM, call("today"), finish("s2"), capabilities=HELD)
    await desk().run_goal(GOAL, planner=planner_of(chat))
    assert ["today" in names for names in offered(chat)] == [True, False, True, False]


async def test_where_nothing_is_left_to_call_the_plan_may_end_before_min_steps() -> None:
    kernel = Kernel()
    kernel.add_function(function(name="today")(lambda: "Monday"))
    today = json.dumps({"next": {"function": "today", "reason": "", "arguments": {}}})
    chat = ScriptedChat(today, finish("s1"), capabilities=HELD)
    run = await kernel.run_goal("The day", planner=planner_of(chat, min_steps=3))
    assert isinstance(run.outcome, Answer)
    assert offered(chat)[1] == ["finish"]


@dataclass(frozen=True, slots=True)
class ByTable:
    """Selects by a table of cosines, whatever the context; it always offers one function."""

    cosines: dict[str, float]
    asked: list[str] = field(default_factory=list)
    name: str = "by table"
    limit: int = 2

    async def select(
        self, functions: Sequence[FunctionSpec], context: Sequence[str], *, limit: int | None = None
    ) -> Selection:
        limit = self.limit if limit is None else limit
        assert limit < len(functions), "all of them would have no scores"
        self.asked.extend(context)
        found = [Considered(name, "chosen", 9.0, 0.0, cosine) for name, cosine in self.cosines.items()]
        always = Considered("Desk-today", "always")
        return Selection((always, *found[:limit]), tuple(found[limit:]), len(functions))


async def test_the_scores_are_the_selectors_where_there_is_one() -> None:
    selector = ByTable({"Desk-forecast": 0.2, "Desk-poem": 0.9, "Desk-translate": 0.4})
    chat = ScriptedChat(POEM, CHINESE, finish("s2"), capabilities=HELD)
    await desk().run_goal("A poem about the sea, please", planner=planner_of(chat, selector, choices=3))
    # Of the rest of the goal, one function fits, and not well: the plan may end.
    assert offered(chat)[:2] == [["poem", "translate", "today"], ["translate", "today", "finish"]]
    assert selector.asked[:2] == ["A poem about the sea, please", "the sea, please"]


@given(
    st.lists(st.sampled_from(["poem", "text", "weather", "day", "a", "sea", "?"]), min_size=1, max_size=12),
    st.integers(1, 5), st.integers(0, 3), st.integers(1, 6), st.integers(0, 2**32), st.booleans(),
)  # fmt: skip
def test_whatever_is_chosen_some_step_can_be_written_until_the_plan_ends(
    goal: list[str], choices: int, min_steps: int, max_steps: int, seed: int, one_step: bool
) -> None:
    source = random.Random(seed)

    def answer(request: Any) -> str:
        following = request.response_schema["properties"]["next"]
        option = source.choice(following.get("anyOf", [following]))["properties"]
        name = option["function"]["const"].removeprefix("Desk-")
        if name == "finish":
            return finish("s1")
        return call(name, **{each: source.choice("ab") for each in option["arguments"]["properties"]})

    chat = ScriptedChat(answer, capabilities=HELD, repeat=True)
    settings = {"choices": choices, "min_steps": min_steps, "max_steps": max_steps, "one_step": one_step}
    task = Task(" ".join(goal), tuple(desk().specs.values()))
    plan = asyncio.run(planner_of(chat, **settings).propose(task, emit=lambda event: None))
    assert isinstance(plan, Plan | Infeasible)
    steps = [(step.function, step.arguments) for step in plan.steps] if isinstance(plan, Plan) else []
    assert 1 <= len(steps) <= max_steps
    assert all(one != next for one, next in pairwise(steps)), "a call twice in a row"
