"""One word of `portico.toml` moves an application from one chat service to another; conversations move with it.

Everything is real but the model: the adapters with their vendors' SDKs, HTTP, the configuration.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.model_forms import Thinking
from tests.support.replayed_model import SERVICES, ReplayedModel

import portico_host
from portico import Audio, File, Image, Message, Reasoning, Thread, ToolCall, Usage
from portico.errors import UnsupportedOption
from portico.ports import ChatService

EACH = pytest.mark.parametrize("service", SERVICES)
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CALL = ToolCall("call_1", "weather", '{"city": "Oslo"}')
SEAL = Thinking("").seal


@dataclass
class Event:
    name: str
    participants: list[str]


EVENT = Event("science fair", ["Alice", "Bob"])
WRITTEN = json.dumps({"name": EVENT.name, "participants": EVENT.participants})


def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"Sun in {city}."


@pytest.fixture
def application(tmp_path: Path, model: ReplayedModel) -> Callable[[str], Path]:
    """Return what writes the configuration, which names the service by one word."""

    def write(service: str) -> Path:
        file = tmp_path / "portico.toml"
        file.write_text(model.every_service(service))
        return file

    return write


@EACH
async def test_a_type_is_filled_in(application: Callable[[str], Path], model: ReplayedModel, service: str) -> None:
    model.sayings = [WRITTEN]
    async with portico_host.open(application(service)) as kernel:
        event = await kernel.invoke_prompt(
            "Extract the event: Alice and Bob go to a science fair.", returns=Event, max_tokens=200
        )
    assert event == EVENT
    assert "participants" in json.dumps(model.asked[0]), "the service was not given the schema"


@EACH
@pytest.mark.parametrize("streamed", [False, True])
async def test_functions_are_called(
    application: Callable[[str], Path], model: ReplayedModel, service: str, streamed: bool
) -> None:
    model.sayings = [[CALL, ToolCall("call_2", "weather", '{"city": "Rome"}')], "Sun in both."]
    async with portico_host.open(application(service)) as kernel:
        kernel.add_function(weather)
        if streamed:
            events = [event async for event in kernel.stream("Where is sun?", functions=["weather"])]
            turn = events[-1]
        else:
            turn = await kernel.complete("Where is sun?", functions=["weather"])
    assert turn.value == "Sun in both."
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (22, 14)
    for city in ("Oslo", "Rome"):
        assert f"Sun in {city}." in json.dumps(model.asked[1])


@EACH
async def test_a_conversation_is_saved_and_continues_on_every_service(
    application: Callable[[str], Path], model: ReplayedModel, service: str
) -> None:
    model.sayings = [Thinking(CALL), WRITTEN]
    async with portico_host.open(application(service)) as kernel:
        kernel.add_function(weather)
        thread = Thread("t1")
        asked = [Message.of("user", "What is it, and how is the weather there?", Image(PIXEL))]
        turn = await kernel.complete(asked, functions=["weather"], returns=Event)
        thread.add(*asked, *turn.messages)
        assert turn.value == EVENT
        assert SEAL in json.dumps(model.asked[1]), "the thinking did not go back to the service that made it"
    written = json.dumps(thread.to_json())
    thoughts = [part for each in thread.messages for part in each.content if isinstance(part, Reasoning)]
    assert thoughts
    assert all(thought.service for thought in thoughts)
    for other in SERVICES:
        again = Thread.from_json(json.loads(written))
        assert again.messages == thread.messages
        model.sayings.append("Fine.")
        async with portico_host.open(application(other)) as kernel:
            kernel.add_function(weather)
            turn = await kernel.complete([*again.messages, Message.of("user", "And?")], functions=["weather"])
        assert turn.value == "Fine."
        sent = json.dumps(model.asked[-1])
        assert base64.b64encode(PIXEL).decode() in sent
        assert "Sun in Oslo." in sent
        assert (SEAL in sent) is (other == service), f"{other} was sent the thinking of {service}"


@EACH
async def test_what_a_service_does_not_take_is_said_before_anything_is_sent(
    application: Callable[[str], Path], model: ReplayedModel, service: str
) -> None:
    parts = [Image(PIXEL), File(b"%PDF-1.7", "a.pdf", "application/pdf"), Audio(b"RIFF....WAVE")]
    async with portico_host.open(application(service)) as kernel:
        capabilities = kernel.service(ChatService).capabilities
        takes = dict(zip(map(type, parts), (capabilities.images, capabilities.files, capabilities.audio), strict=True))
        for part in parts:
            model.sayings.append("Fine.")
            asked = len(model.asked)
            if takes[type(part)]:
                await kernel.complete([Message.of("user", "What is it?", part)])
                assert len(model.asked) == asked + 1
                continue
            model.sayings.pop()
            with pytest.raises(UnsupportedOption, match=type(part).__name__.lower()):
                await kernel.complete([Message.of("user", "What is it?", part)])
            assert len(model.asked) == asked


@EACH
async def test_replies_cost_what_the_settings_say(
    application: Callable[[str], Path], model: ReplayedModel, service: str
) -> None:
    model.sayings = ["Fine."]
    price = {"chat": {service: {"price": {"input": 1, "output": 10}}}}
    async with portico_host.open(application(service), overrides=price) as kernel:
        turn = await kernel.complete("Hello?")
    assert turn.usage == Usage(11, 7, cost=pytest.approx(81e-6))
