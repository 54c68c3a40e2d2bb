"""A run whose steps so far have loops and conditions of one planner continues with another one."""

from __future__ import annotations

from typing import Any

import pytest

from portico import ChatCapabilities, Each, Kernel, Source, When, function
from portico.plans import Answer, From, Plan, Step, StepRecord, Task, Value
from portico.ports import ChatService, Planner
from portico.search import search_plugin
from portico_basics.config import RetrievalSettings
from portico_basics.retrieval.planner import RetrievalPlanner
from portico_function_calling_planner.config import FunctionCallingSettings
from portico_function_calling_planner.planner import FunctionCallingPlanner
from portico_stepwise_planner.config import StepwiseSettings
from portico_stepwise_planner.planner import StepwisePlanner
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices
from portico_testkit.fakes.text_search import ListSearch


@function
def send(to: str, text: str = "") -> str:
    """Send a text."""
    return to + text


TO = {"to": From("item"), "text": Value("Hi.")}
LOOP, AWAY = Each(From("s1")), When("present", (From("s1"),), negated=True)
STEPS = (
    StepRecord(Step("s1", "people"), ["ada", "ben", "cyd"]),
    StepRecord(Step("s2[0]", "send", TO), "one"),
    StepRecord(Step("s2[1]", "send", TO), "two"),
    StepRecord(Step("s2", "send", TO, reason="All.", each=LOOP), ["one", "two"]),
    StepRecord(Step("s3", "send", {"to": Value("dee")}, when=AWAY), skipped=True),
    StepRecord(Step("s4[0]", "send", TO), "three"),
    StepRecord(Step("s4[1]", "send", TO), error="The post is closed."),
    StepRecord(Step("s4", "send", TO, each=LOOP), error="Step s4[1] failed: The post is closed."),
)


async def said_to(planner: type[Any], settings: Any, can: ChatCapabilities, reply: str) -> str:
    """Return all that a planner's model is told after these steps."""
    kernel, chat = Kernel(), ScriptedChat(reply, capabilities=can)
    kernel.add_function(send)
    made: Planner = planner(settings, FixedServices({ChatService: chat}))
    await made.propose(Task("Send.", tuple(kernel.specs.values()), STEPS), emit=lambda event: None)
    return "\n".join(str(part) for message in chat.requests[0].messages[1:] for part in message.content)


@pytest.mark.parametrize(
    ("planner", "settings", "can", "reply"),
    [
        (StepwisePlanner, StepwiseSettings(), ChatCapabilities(), "Thought: Enough.\nFinal answer: Sent."),
        (FunctionCallingPlanner, FunctionCallingSettings(), ChatCapabilities(tools=True), "Sent."),
    ],
)
async def test_a_loop_is_one_call_with_its_results_and_what_failed_says_how_far_it_came(
    planner: type[Any], settings: Any, can: ChatCapabilities, reply: str
) -> None:
    said = await said_to(planner, settings, can, reply)
    assert said.count("one") == said.count("two") == 1, "an item is not a call"
    assert "For each item of a list" in said or "for each item of a list" in said
    assert '"item"' not in said, "the model has no item"
    assert "It was skipped, since its condition does not hold." in said
    assert "The post is closed. It ran already for the items at 0 of its list" in said


async def test_retrieval_searches_after_steps_that_were_no_searches_and_takes_the_searches_of_a_loop() -> None:
    kernel = Kernel()
    kernel.add_function(send)
    kernel.add_plugin(search_plugin(ListSearch([]), "docs"))
    chat = ScriptedChat("So [1].", capabilities=ChatCapabilities(sources=True))
    planner = RetrievalPlanner(RetrievalSettings(), FixedServices({ChatService: chat}))
    functions = tuple(spec for spec in kernel.specs.values())
    plan = await planner.propose(Task("What?", functions, STEPS), emit=lambda event: None)
    assert isinstance(plan, Plan)
    assert [step.id for step in plan.steps] == ["s5"]
    search = plan.steps[0].function
    passage = {"value": "Oslo is wet.", "name": "a", "link": "file:///a"}
    loop = (
        StepRecord(Step("s5[0]", search, {"query": From("item")}), [passage]),
        StepRecord(Step("s5[1]", search, {"query": From("item")}), skipped=True),
        StepRecord(Step("s5", search, {"query": From("item")}, each=LOOP), [[passage], None]),
    )
    answer = await planner.propose(Task("What?", functions, (*STEPS, *loop)), emit=lambda event: None)
    assert isinstance(answer, Answer)
    assert [part.text for part in chat.requests[0].messages[-1].content if isinstance(part, Source)] == ["Oslo is wet."]
