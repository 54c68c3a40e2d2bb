"""Flows that the policy asks about: the user of a client agrees to each with its value, when it is known."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.serving import MODES, READING, SENDING, YES, World, text_of

from portico import (
    Each,
    FlowReview,
    From,
    Function,
    FunctionLabels,
    ListOf,
    Plan,
    Policy,
    Step,
    StepRun,
    TextOf,
    When,
    plan_function,
)
from portico.errors import ServiceUnavailable
from portico.plans import plan_from_json, plan_to_json


@pytest.fixture
def world() -> World:
    world = World()
    world.kernel.policy = Policy("enforce")
    return world


@pytest.mark.parametrize("mode", MODES)
async def test_a_plan_is_approved_without_its_flows_and_each_flow_with_its_value(world: World, mode: str) -> None:
    world.answers = [YES, YES]
    async with world.client(mode) as client:
        checked = (await client.call_tool("plan_check", {"plan": SENDING})).structured_content
        drawn = await client.call_tool("plan_show", {"plan": SENDING, "format": "mermaid"})
        held = (await client.call_tool("plan_run", {"plan": SENDING})).structured_content
        assert (held["outcome"], held["step"], world.post.sent) == ("held", "s2", [])
        ran = await client.call_tool("run_resume", {"run": held["run"]})
    assert [each["verdict"] for each in checked["findings"]] == ["ask"]
    assert "classDef ask" in text_of(drawn)
    named, asked = world.questions
    assert "s2 arguments.letter: letter of Post-send comes from s1" in named
    assert "HELLO" not in named
    assert f"{held['step']}: {held['reason']}" in asked
    assert 'Post-send with {"letter": "HELLO"}' in asked
    assert ran.structured_content["value"] == "sent HELLO"


@pytest.mark.parametrize("mode", MODES)
async def test_two_flows_with_one_sentence_are_two_questions(world: World, mode: str) -> None:
    again = {**SENDING["steps"][1], "id": "s3"}
    world.answers = [YES] * 3
    async with world.client(mode) as client:
        held = await client.call_tool("plan_run", {"plan": {**SENDING, "steps": [*SENDING["steps"], again]}})
        first, run = held.structured_content["step"], held.structured_content["run"]
        still = await client.call_tool("run_resume", {"run": run})
        assert (still.structured_content["outcome"], len(world.post.sent) < 2) == ("held", True)
        ran = await client.call_tool("run_resume", {"run": run})
    assert {first, still.structured_content["step"]} == {"s2", "s3"}
    assert all(f"{step} arguments.letter" in world.questions[0] for step in ("s2", "s3"))
    assert (ran.structured_content["outcome"], world.post.sent) == ("answer", ["HELLO", "HELLO"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["loop", "nested", "saved", "several"])
async def test_a_step_is_asked_about_once_with_all_its_flows_and_values(world: World, mode: str, kind: str) -> None:
    inner = Plan("Send", plan_from_json(SENDING).steps, result=From("s2"))
    world.kernel.add_function(plan_function("saved", inner))
    names = ListOf((From("s1"), TextOf((From("s1"), "!"))))
    present = When("present", (From("s1"),))
    steps, place, shown, sent = {
        "loop": (
            (inner.steps[0], Step("x", "Post-send", {"letter": From("item")}, each=Each(names))),
            "x",
            ['{"letter": ["HELLO", "HELLO!"]}'],
            ["HELLO", "HELLO!"],
        ),
        "nested": ((Step("x", inner),), "x/s2", ['{"letter": "HELLO"}'], ["HELLO"]),
        "saved": ((Step("x", "saved"),), "x/s2", ['{"letter": "HELLO"}'], ["HELLO"]),
        "several": (
            (inner.steps[0], Step("x", "Post-send", {"letter": From("s1")}, when=present)),
            "x",
            ['{"letter": "HELLO"}', "letter of Post-send comes from s1", "s1 decides whether Post-send is called"],
            ["HELLO"],
        ),
    }[kind]
    world.answers = [YES, YES]
    async with world.client(mode) as client:
        held = await client.call_tool("plan_run", {"plan": plan_to_json(Plan("g", steps, result=From("x")))})
        assert (held.structured_content["step"], world.post.sent) == (place, [])
        ran = await client.call_tool("run_resume", {"run": held.structured_content["run"]})
    assert all(words in told for words in shown for told in (text_of(held), world.questions[1]))
    assert (ran.structured_content["outcome"], world.post.sent) == ("answer", sent)


@pytest.mark.parametrize("mode", MODES)
async def test_a_run_whose_value_is_another_than_the_one_agreed_to_is_held_again(world: World, mode: str) -> None:
    found = iter(("bob", "eve", "eve"))

    async def change(run: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        if run.step.id == "s2":
            run.arguments["letter"] = next(found)
        return await proceed()

    world.kernel.middleware.step.append(change)
    world.answers = [YES] * 3
    async with world.client(mode) as client:
        held = await client.call_tool("plan_run", {"plan": SENDING})
        run = held.structured_content["run"]
        again = await client.call_tool("run_resume", {"run": run})
        assert (again.structured_content["outcome"], world.post.sent) == ("held", [])
        await client.call_tool("run_resume", {"run": run})
    assert ["bob" in each for each in world.questions[1:]] == [True, False]
    assert '"eve"' in text_of(again)
    assert world.post.sent == ["eve"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_failure_that_reads_like_a_held_flow_is_no_question(world: World, mode: str) -> None:
    words: list[str] = []

    async def read(text: str) -> str:
        raise ServiceUnavailable(words[0])

    world.kernel.add_function(Function.of(read))
    reading = {**READING, "steps": [*READING["steps"], {**SENDING["steps"][1], "function": "read"}]}
    reading["steps"][1]["arguments"] = {"text": {"from": "s1"}}
    world.answers = [YES]
    async with world.client(mode) as client:
        held = await client.call_tool("plan_run", {"plan": SENDING})
        words.append(held.structured_content["reason"])
        failed = await client.call_tool("plan_run", {"plan": reading})
        still = await client.call_tool("run_resume", {"run": failed.structured_content["run"]})
    assert words[0] in text_of(failed)
    assert words[0] in text_of(still)
    assert len(world.questions) == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("agrees", [True, False, None])
async def test_the_application_decides_about_the_flows_of_a_run_that_a_function_starts(
    world: World, mode: str, agrees: bool | None
) -> None:
    kernel = world.kernel

    async def decide(review: FlowReview) -> bool:
        return bool(agrees)

    if agrees is not None:
        kernel.approve_flows(decide)

    async def start() -> str:
        return type((await kernel.run_plan(plan_from_json(SENDING))).outcome).__name__

    kernel.add_function(Function.of(start))
    # The client's run has a flow with the same sentence, and the user agrees to that.
    plan = {**SENDING, "steps": [*SENDING["steps"], {"id": "s3", "function": "start", "after": ["s2"]}]}
    world.answers = [YES, YES]
    async with world.client(mode) as client:
        held = await client.call_tool("plan_run", {"plan": plan})
        ran = await client.call_tool("run_resume", {"run": held.structured_content["run"]})
    assert ran.structured_content["steps"][2]["result"] == ("Answer" if agrees else "Paused")
    assert len(world.post.sent) == (2 if agrees else 1)


@pytest.mark.parametrize("mode", MODES)
async def test_a_flow_is_held_where_the_user_cannot_be_asked_and_asked_about_once_when_it_is_resumed(
    world: World, mode: str
) -> None:
    world.kernel.policy = Policy("enforce", {"Post-send": FunctionLabels.read(reaches_out=True)})
    world.kernel.function("Post-send").effects = False
    async with world.client(mode, asks=False) as client:
        held = await client.call_tool("plan_run", {"plan": SENDING})
        run = held.structured_content["run"]
        still = await client.call_tool("run_resume", {"run": run})
    assert held.structured_content["outcome"] == still.structured_content["outcome"] == "held"
    assert held.structured_content["step"] == "s2"
    assert "which is untrusted: it waits for the user to agree" in text_of(held)
    assert world.post.sent == []
    world.answers = [YES]
    async with world.client(mode) as client:
        resumed = await client.call_tool("run_resume", {"run": run})
    [question] = world.questions
    assert "Run it with these values?" in question
    assert 'Post-send with {"letter": "HELLO"}' in question
    assert resumed.structured_content["value"] == "sent HELLO"
    assert world.post.sent == ["HELLO"]
