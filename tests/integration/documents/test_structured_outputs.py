"""The samples of the design of structured outputs, each as a user writes it, asked in OpenAI's form on loopback."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel
from tests.support.replayed_model import ReplayedModel

from portico import Kernel, Message
from portico.ports import ChatService
from portico_basics.type_codecs.codecs import PydanticTypeCodec
from portico_openai.chat import OpenAIChat

QUESTION = "How can I solve 8x + 7 = -23?"
ANSWER = {
    "Steps": [
        {"Explanation": "Subtract 7 from both sides.", "Output": "8x = -30"},
        {"Explanation": "Divide both sides by 8.", "Output": "x = -3.75"},
    ],
    "FinalAnswer": "x = -3.75",
}
SCHEMA = {
    "title": "math_reasoning",
    "type": "object",
    "properties": {
        "Steps": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"Explanation": {"type": "string"}, "Output": {"type": "string"}},
                "required": ["Explanation", "Output"],
                "additionalProperties": False,
            },
        },
        "FinalAnswer": {"type": "string"},
    },
    "required": ["Steps", "FinalAnswer"],
    "additionalProperties": False,
}


@dataclass
class MathReasoningStep:
    Explanation: str
    Output: str


@dataclass
class MathReasoning:
    Steps: list[MathReasoningStep]
    FinalAnswer: str


class CalendarEvent(BaseModel):
    name: str
    date: str
    participants: list[str]


@pytest.fixture
def kernel(chat: OpenAIChat) -> Kernel:
    return Kernel({ChatService: chat}, type_codecs=[PydanticTypeCodec()])


def asked_format(model: ReplayedModel) -> dict[str, Any]:
    """Return the form that the model was asked for."""
    (body,) = model.asked
    return dict(body["response_format"])


async def test_an_answer_of_a_json_schema(kernel: Kernel, model: ReplayedModel) -> None:
    model.sayings = [json.dumps(ANSWER)]
    result = await kernel.invoke_prompt(QUESTION, returns=SCHEMA)
    print(result)

    assert result == ANSWER
    schema = {name: value for name, value in SCHEMA.items() if name != "title"}
    asked = asked_format(model)["json_schema"]
    assert (asked["name"], asked["strict"]) == ("math_reasoning", True)
    assert {name: value for name, value in asked["schema"].items() if name != "title"} == schema


async def test_a_type_as_the_form_and_the_answer_as_text(kernel: Kernel, model: ReplayedModel) -> None:
    model.sayings = [json.dumps(ANSWER)]
    turn = await kernel.complete(QUESTION, returns=MathReasoning)

    assert json.loads(turn.text) == ANSWER
    assert asked_format(model)["json_schema"]["strict"] is True


async def test_an_answer_of_a_type(kernel: Kernel, model: ReplayedModel) -> None:
    model.sayings = [json.dumps(ANSWER)]
    reasoning = await kernel.invoke_prompt(QUESTION, returns=MathReasoning)
    for number, step in enumerate(reasoning.Steps, 1):
        print(f"Step #{number}\nExplanation: {step.Explanation}\nOutput: {step.Output}\n")
    print(f"Final answer: {reasoning.FinalAnswer}")

    assert reasoning.FinalAnswer == "x = -3.75"
    assert reasoning.Steps[1] == MathReasoningStep("Divide both sides by 8.", "x = -3.75")


async def test_the_sample_of_the_python_sdk(kernel: Kernel, model: ReplayedModel) -> None:
    event = CalendarEvent(name="science fair", date="Friday", participants=["Alice", "Bob"])
    model.sayings = [event.model_dump_json()]
    turn = await kernel.complete(
        [
            Message.of("system", "Extract the event information."),
            Message.of("user", "Alice and Bob are going to a science fair on Friday."),
        ],
        returns=CalendarEvent,
    )

    assert turn.value == event
    assert [each["role"] for each in model.asked[0]["messages"]] == ["system", "user"]
