"""Replies of a real model that is held to a schema: each validates, and becomes a value of its type.

The model is small and its answers are foolish; what is tested is that nothing but the form asked for ever comes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pytest
from jsonschema import Draft202012Validator

from portico import ChatRequest, Kernel, Message, PartialValue, Turn
from portico.plugins import compile_type
from portico.ports import ChatService
from portico_llamacpp.chat import LlamaCppChat
from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings


class Colour(Enum):
    RED = "red"
    GREEN = "green"
    BLUE = "blue"


@dataclass(frozen=True)
class Address:
    town: str
    number: int | None = None


@dataclass(frozen=True)
class Person:
    name: str
    age: int
    address: Address
    favourite: Colour


@dataclass(frozen=True)
class CalendarEvent:
    name: str
    day: date
    participants: list[str]


@dataclass(frozen=True)
class Circle:
    kind: Literal["circle"]
    radius: float


@dataclass(frozen=True)
class Square:
    kind: Literal["square"]
    side: float


@dataclass(frozen=True)
class Drawing:
    shape: Circle | Square
    colour: Colour


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class Line:
    start: Point
    end: Point


class Opening(TypedDict):
    opens: time
    closes: time


@dataclass(frozen=True)
class Shop:
    name: str
    monday: Opening
    has_parking: bool


@dataclass(frozen=True)
class Invoice:
    number: int
    total: float
    customer: Address | None = None


@dataclass(frozen=True)
class Departure:
    leaves: datetime
    platform: Literal[1, 2, 3]
    change: Address | None


@dataclass(frozen=True)
class Verdict:
    answer: Literal["yes", "no", "unknown"]
    certainty: Annotated[int, "From 0 to 100."]
    checked: tuple[bool, bool]


QUESTIONS: list[tuple[Any, str]] = [
    (Person, "Ada is 36 years old, lives at 12 Mill Lane in Oxford and likes green."),
    (CalendarEvent, "Alice and Bob go to a science fair on 14 March 2025."),
    (Drawing, "Draw a red circle with a radius of 2.5."),
    (Drawing, "Draw a blue square with a side of 4."),
    (Line, "A line from 1, 2 to 3, 4."),
    (Shop, "The bakery is open on Monday from 08:00 to 17:30. It has no parking."),
    (Invoice, "Invoice 1042 is over 99.50 euros."),
    (Departure, "The train leaves platform 2 on 1 May 2025 at 09:15, without a change."),
    (Verdict, "Is water wet?"),
    (list[Colour] | Colour, "Which colour is grass?"),
]
COMPILED = {hint: compile_type(hint) for hint, _ in QUESTIONS}
MOST_TOKENS = 250


@pytest.fixture
async def openai_chat(connection: dict[str, Any]) -> AsyncIterator[OpenAIChat]:
    """Give the adapter with the penalty that keeps a small model from going round in circles."""
    chat = OpenAIChat(OpenAIChatSettings(**connection, body={"repeat_penalty": 1.1}))
    yield chat
    await chat.aclose()


async def test_every_reply_is_a_value_of_its_type(openai_chat: OpenAIChat, local_chat: LlamaCppChat) -> None:
    faults: list[str] = []

    async def ask(chat: ChatService, hint: Any, question: str) -> None:
        request = ChatRequest(
            [Message.of("system", "Answer in JSON."), Message.of("user", question)],
            response_schema=COMPILED[hint].schema,
            temperature=0.0,
            max_tokens=MOST_TOKENS,
            seed=1,
        )
        reply = await chat.complete(request)
        assert reply.usage.input_tokens > 0
        assert 0 < reply.usage.output_tokens <= MOST_TOKENS
        faults.extend(faults_of(chat.name, hint, question, reply.text))

    await ask_all(QUESTIONS, ask, openai_chat, local_chat)
    assert not faults, "\n".join(faults)


async def ask_all(
    questions: list[tuple[Any, str]], ask: Callable[..., Coroutine[Any, Any, None]], *chats: ChatService
) -> None:
    """Ask each service one thing after the other, the services side by side: each model has a processor of its own.

    Replies that a model writes together depend on each other's timing in their last digits, and so in their words.
    """

    async def ask_each(chat: ChatService) -> None:
        for question in questions:
            await ask(chat, *question)

    await asyncio.gather(*map(ask_each, chats))


def faults_of(service: str, hint: Any, question: str, text: str) -> list[str]:
    """Say what is wrong with a reply, by a validator that is not ours and by the type."""
    compiled = COMPILED[hint]
    try:
        value = json.loads(text)
        found = [error.message for error in Draft202012Validator(compiled.schema).iter_errors(value)]
        compiled.structure(value)
    except ValueError as error:
        found = [str(error)]
    return [f"{service}: {question!r}: {fault}: {text!r}" for fault in found]


async def test_every_turn_of_a_kernel_streams_partial_values_and_ends_with_a_whole_one(
    openai_chat: OpenAIChat, local_chat: LlamaCppChat
) -> None:
    kernel = Kernel()
    faults: list[str] = []
    repaired = 0

    async def ask(chat: ChatService, hint: Any, question: str) -> None:
        nonlocal repaired
        options: Any = {"chat": chat, "temperature": 0.0, "max_tokens": MOST_TOKENS, "seed": 1}
        events = [event async for event in kernel.stream(question, returns=hint, **options)]
        turn = events[-1]
        assert isinstance(turn, Turn)
        faults.extend(faults_of(chat.name, hint, question, turn.text))
        assert turn.value == COMPILED[hint].structure(json.loads(turn.text))
        partial = [event.value for event in events if isinstance(event, PartialValue)]
        assert partial, f"{chat.name}: {question!r}: nothing was shown while the reply came"
        assert partial[-1] == turn.value
        repaired += turn.rounds - 1

    await ask_all(QUESTIONS[::3], ask, openai_chat, local_chat)
    assert not faults, "\n".join(faults)
    assert repaired == 0, f"{repaired} replies had to be mended"


async def test_a_prompt_gives_a_value(local_chat: LlamaCppChat) -> None:
    event = await Kernel().invoke_prompt(
        "Extract the event: {{$text}}",
        {"text": "Alice and Bob go to a science fair on 14 March 2025."},
        returns=CalendarEvent,
        chat=local_chat,
        temperature=0,
        max_tokens=MOST_TOKENS,
    )
    assert isinstance(event, CalendarEvent)
    assert isinstance(event.day, date)
