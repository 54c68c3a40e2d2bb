"""Results of earlier steps as arguments: referred to, never copied, and never mistaken for a value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico import ChatCapabilities, Kernel, Run, function
from portico.plans import Answer, From, ReplyProblem, Value
from portico.ports import ChatService
from portico_stepwise_planner.config import StepwiseSettings
from portico_stepwise_planner.planner import StepwisePlanner, read_argument
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices

LONG = "word " * 20_000
HOLDS = ChatCapabilities(response_schema=True)
STRICT = ChatCapabilities(response_schema=True, strict=True)
FINAL = '{"thought": "", "action": {"final": "Done."}}'
LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["from", "path", "value", "other"]), inner, max_size=3)
    ),
    max_leaves=6,
)


class Texts:
    """Texts."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    @function
    def read(self) -> dict[str, Any]:
        """Read a page."""
        return {"title": "A page", "text": LONG, "tags": ["a", "b"]}

    @function
    def count(self, text: str, note: str | None = None) -> int:
        """Count the letters of a text."""
        self.given.append(text)
        return len(text)

    @function
    def keep(self, record: dict[str, Any]) -> str:
        """Keep a record."""
        self.given.append(record)
        return "kept"


def turn(function: str, **arguments: Any) -> str:
    return json.dumps({"thought": "So.", "action": {"function": function, "arguments": arguments}})


async def run_goal(texts: Texts, *said: str, capabilities: ChatCapabilities) -> tuple[Run, ScriptedChat]:
    chat = ScriptedChat(*said, capabilities=capabilities)
    planner = StepwisePlanner(StepwiseSettings(), FixedServices({ChatService: chat}))
    return await Kernel(plugins=[texts]).run_goal("How long is the page?", planner=planner), chat


@pytest.mark.parametrize("capabilities", [ChatCapabilities(), HOLDS, STRICT], ids=["lines", "a schema", "strict"])
async def test_a_long_result_is_given_on_whole_though_the_model_sees_a_part_of_it(
    capabilities: ChatCapabilities,
) -> None:
    texts = Texts()
    count = turn("Texts-count", text={"from": "s1", "path": "$.text"}, note=None)
    run, chat = await run_goal(texts, turn("Texts-read"), count, FINAL, capabilities=capabilities)
    assert run.outcome == Answer("Done.")
    assert texts.given == [LONG]
    assert run.plan.steps[1].arguments["text"] == From("s1", ("text",)), "the plan has the reference, not a copy"
    told = chat.requests[2].messages
    assert '{"from": "s1", "path": "$.text"}' in told[4].text, "the model is not shown what it wrote"
    assert max(len(message.text) for message in told) < len(LONG)


@pytest.mark.parametrize("capabilities", [ChatCapabilities(), HOLDS, STRICT], ids=["lines", "a schema", "strict"])
async def test_a_reference_to_a_step_that_is_not_there_is_refused_and_nothing_is_called(
    capabilities: ChatCapabilities,
) -> None:
    texts = Texts()
    wrong = turn("Texts-count", text={"from": "s7", "path": "$"}, note=None)
    nowhere = turn("Texts-keep", record={"from": "s1", "path": "no path"})
    said = (turn("Texts-read"), wrong, nowhere, FINAL)
    run, chat = await run_goal(texts, *said, capabilities=capabilities)
    assert texts.given == []
    assert len(run.steps) == 1
    assert "s7" in chat.requests[2].messages[-1].text
    assert "'record' refers to no place" in chat.requests[3].messages[-1].text


async def test_a_long_input_is_shown_in_part_and_given_on_whole() -> None:
    texts = Texts()
    chat = ScriptedChat(turn("Texts-count", text={"from": "input", "path": "$.text"}), FINAL)
    planner = StepwisePlanner(StepwiseSettings(), FixedServices({ChatService: chat}))
    await Kernel(plugins=[texts]).run_goal("How long is it?", planner=planner, input={"text": LONG})
    assert texts.given == [LONG]
    assert "characters are left out here" in chat.requests[0].messages[1].text
    assert len(chat.requests[0].messages[1].text) < 20_000


async def test_what_is_inside_of_an_argument_is_no_reference() -> None:
    texts = Texts()
    record = {"mail": {"from": "s1", "path": "$"}, "path": "$"}
    await run_goal(texts, turn("Texts-read"), turn("Texts-keep", record=record), FINAL, capabilities=ChatCapabilities())
    assert texts.given == [record]


async def test_the_schema_lets_references_in_when_there_is_something_to_refer_to() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    count = turn("Texts-count", text={"from": "s1", "path": "$.text"})
    _, chat = await run_goal(Texts(), turn("Texts-read"), turn("Texts-read"), FINAL, capabilities=HOLDS)
    first, second, third = (request.response_schema for request in chat.requests)
    assert not jsonschema.Draft202012Validator(first).is_valid(json.loads(count))
    assert jsonschema.Draft202012Validator(second).is_valid(json.loads(count))
    assert second == third, "services keep what they made of a schema"


@given(LITERALS)
def test_an_argument_is_a_reference_or_the_value_that_was_written(value: Any) -> None:
    try:
        argument = read_argument("given", value)
    except ReplyProblem:
        return
    if isinstance(argument, Value):
        assert argument.value == value
    else:
        assert isinstance(argument, From)
        assert value.keys() <= {"from", "path"}
