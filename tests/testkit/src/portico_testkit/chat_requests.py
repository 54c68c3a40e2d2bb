"""What the ChatService kit asks: plain, with tools, with schemas, with too much, and with what makes no sense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from portico import ChatRequest, Message, Part, Source, Tool, ToolCall, ToolResult

__all__ = [
    "CLOCK",
    "DICE",
    "LAMP",
    "ODD_TOOL",
    "QUESTION",
    "SCHEMAS",
    "SOURCES",
    "STRICT",
    "SchemaCase",
    "ask",
    "closed",
    "histories",
    "sampling",
]

SOURCES = (
    Source(3, "The clock on the station stops at noon.", name="clock.md", link="file:///town/clock.md#L4"),
    Source(7, "The password of the blue door is heliotrope.", name="doors.md", link="file:///town/doors.md#L9"),
    Source(12, "Ferries leave the harbour at eleven.", name="ferries.md", link="file:///town/ferries.md"),
)
QUESTION = "What is the password of the blue door?"


def ask(question: str, *parts: Part, **options: Any) -> ChatRequest:
    """Make a request of one message."""
    return ChatRequest([Message.of("user", question, *parts)], **options)


def closed(**properties: Any) -> dict[str, Any]:
    """Make the schema of an object that has just these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_STRING, _INTEGER, _NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
_TOWN = {"type": "string", "description": "The town, as “Köln” or 東京."}
CLOCK = Tool("Clock-Now", "Tell the time in a town.", closed(town=_TOWN))
DICE = Tool("Dice-Roll", "Roll dice.", {**closed(sides=_INTEGER, times=_INTEGER), "required": ["sides"]})
LAMP = Tool("Lamp-Off", "Switch the lamp off.", {"type": "object", "properties": {}})
ODD_TOOL = Tool(
    "a-tool_Of-the-longest-name-that-services-take_and_that_is_64_long",
    "“Quotes”, <tags> &\nlines. 東京",
    {
        **closed(
            who={"$ref": "#/$defs/person"},
            notes={"type": "object", "additionalProperties": _STRING, "description": "By day."},
            number={"anyOf": [_INTEGER, _NULL], "default": None},
        ),
        "required": ["who"],
        "$defs": {"person": {**closed(name=_STRING, boss={"$ref": "#/$defs/person"}), "required": ["name"]}},
    },
)
"""Of a long name and a schema with definitions, recursion, a map and a default."""

STRICT = closed(
    name=_STRING,
    size={"type": "string", "enum": ["small", "large"]},
    number={"anyOf": [_INTEGER, _NULL]},
    parts={"type": "array", "items": closed(kind={"type": "string", "enum": ["lid", "handle"]})},
)
"""Of the form of strict mode: every property required, every object closed."""


@dataclass(frozen=True, slots=True)
class SchemaCase:
    """A question with the schema that its answer must satisfy; ``required`` ones may not be refused."""

    name: str
    question: str
    schema: Mapping[str, Any]
    required: bool = True


_NODE = closed(
    name={"enum": ["leaf", "branch"]}, parts={"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2}
)
SCHEMAS = (
    SchemaCase(
        "flat",
        "Ada is 36 years old and a member. Answer in JSON with name, age and member.",
        closed(name=_STRING, age=_INTEGER, member={"type": "boolean"}),
    ),
    SchemaCase(
        "enum",
        "The hat is small. Answer in JSON with kind and size.",
        closed(kind={"const": "hat"}, size={"type": "string", "enum": ["small", "medium", "large", "très grand"]}),
    ),
    SchemaCase(
        "null",
        "Ada has no nickname, but two cats. Answer in JSON with name, nickname and cats.",
        closed(
            name=_STRING,
            nickname={"anyOf": [_STRING, _NULL]},
            cats={"anyOf": [_INTEGER, closed(names={"type": "array", "items": _STRING, "maxItems": 3})]},
        ),
    ),
    SchemaCase(
        "recursion",
        "Draw a very small tree: a branch with one leaf. Answer in JSON.",
        {**closed(tree={"$ref": "#/$defs/node"}), "$defs": {"node": _NODE}},
    ),
    SchemaCase(
        "array at the root", "Name two towns, in JSON.", {"type": "array", "items": _STRING, "maxItems": 2}, False
    ),
    SchemaCase("enum at the root", "Yes or no, in JSON?", {"enum": ["yes", "no"]}, required=False),
)


def histories() -> dict[str, list[Message]]:
    """Return, by what is particular about them, conversations in which tools were called."""
    oslo = ToolCall("call_1", CLOCK.name, '{"town": "Oslo"}')
    lima = ToolCall("call_2", CLOCK.name, '{"town": "Lima"}')
    lamp = ToolCall("call_3", LAMP.name, "{}")
    noon = ToolResult("call_1", CLOCK.name, '{"time": "12:00"}')
    six = ToolResult("call_2", CLOCK.name, "06:00")
    dark = ToolResult("call_3", LAMP.name, "")
    failed = ToolResult("call_1", CLOCK.name, "There is no clock in Oslo.", error=True, cause=OSError("no clock"))
    odd = ToolResult(
        "call_1", CLOCK.name, "½ past “twelve” \u202e\x00 </tool_response>\n<|im_end|> {{$input}} 🕛 \\u0000"
    )
    asked = Message.of("user", "What time is it in Oslo and in Lima?")
    both = Message.of("assistant", oslo, lima)
    return {
        "one call and its result": [asked, Message.of("assistant", oslo), Message.of("tool", noon)],
        "a message for each result": [asked, both, Message.of("tool", six), Message.of("tool", noon)],
        "a failure": [asked, Message.of("assistant", oslo), Message.of("tool", failed)],
        "an empty result": [Message.of("user", "Lights out!"), Message.of("assistant", lamp), Message.of("tool", dark)],
        "a result of odd characters": [asked, Message.of("assistant", oslo), Message.of("tool", odd)],
        "two rounds and a further question": [
            Message.of("system", "Be brief."),
            asked,
            Message.of("assistant", oslo),
            Message.of("tool", noon),
            Message.of("assistant", lima),
            Message.of("tool", six),
            Message.of("assistant", "Noon in Oslo, six in Lima."),
            Message.of("user", "Thank you. Which is earlier?"),
        ],
    }


def sampling() -> dict[str, ChatRequest]:
    """Return a plain request with each sampling option."""
    question = "Say good morning."
    return {
        "temperature": ask(question, temperature=0.0),
        "top_p": ask(question, top_p=0.5),
        "max_tokens": ask(question, max_tokens=200),
        "stop": ask(question, stop=("###",)),
        "seed": ask(question, seed=0),
    }
