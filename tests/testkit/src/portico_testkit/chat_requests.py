"""What the ChatService kit asks: plain, with tools, with schemas, with too much, and with what makes no sense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from portico.chat import (
    ChatCapabilities,
    ChatRequest,
    File,
    Image,
    Message,
    Part,
    Reasoning,
    Source,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

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
    "attached",
    "histories",
    "odd",
    "refused",
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


def _closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_STRING, _INTEGER, _NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
_TOWN = {"type": "string", "description": "The town, as “Köln” or 東京."}
CLOCK = Tool("Clock-Now", "Tell the time in a town.", _closed(town=_TOWN))
DICE = Tool("Dice-Roll", "Roll dice.", {**_closed(sides=_INTEGER, times=_INTEGER), "required": ["sides"]})
LAMP = Tool("Lamp-Off", "Switch the lamp off.", {"type": "object", "properties": {}})
ODD_TOOL = Tool(
    "a-tool_Of-the-longest-name-that-services-take_and_that_is_64_long",
    "“Quotes”, <tags> &\nlines. 東京",
    {
        **_closed(
            who={"$ref": "#/$defs/person"},
            notes={"type": "object", "additionalProperties": _STRING, "description": "By day."},
            number={"anyOf": [_INTEGER, _NULL], "default": None},
        ),
        "required": ["who"],
        "$defs": {"person": {**_closed(name=_STRING, boss={"$ref": "#/$defs/person"}), "required": ["name"]}},
    },
)
"""Of a long name and a schema with definitions, recursion, a map and a default."""

STRICT = _closed(
    name=_STRING,
    size={"type": "string", "enum": ["small", "large"]},
    number={"anyOf": [_INTEGER, _NULL]},
    parts={"type": "array", "items": _closed(name=_STRING)},
)
"""Of the form of strict mode: every property required, every object closed."""


@dataclass(frozen=True, slots=True)
class SchemaCase:
    """A question with the schema that its answer must satisfy; ``required`` ones may not be refused."""

    name: str
    question: str
    schema: Mapping[str, Any]
    required: bool = True


_NODE = _closed(
    name={"enum": ["leaf", "branch"]}, parts={"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2}
)
SCHEMAS = (
    SchemaCase(
        "flat",
        "Ada is 36 years old and a member. Answer in JSON with name, age and member.",
        _closed(name=_STRING, age=_INTEGER, member={"type": "boolean"}),
    ),
    SchemaCase(
        "nested",
        "Ada lives in Oslo, at number 7. Answer in JSON with her name and home.",
        _closed(person=_closed(name=_STRING, home=_closed(town=_STRING, number=_INTEGER))),
    ),
    SchemaCase(
        "arrays",
        "Which colours has a traffic light? Answer in JSON.",
        _closed(colours={"type": "array", "items": {"enum": ["red", "amber", "green"]}, "minItems": 2, "maxItems": 3}),
    ),
    SchemaCase(
        "enum",
        "The hat is small. Answer in JSON with kind and size.",
        _closed(kind={"const": "hat"}, size={"type": "string", "enum": ["small", "medium", "large", "très grand"]}),
    ),
    SchemaCase(
        "null",
        "Ada has no nickname, but two cats. Answer in JSON with name, nickname and cats.",
        _closed(
            name=_STRING,
            nickname={"anyOf": [_STRING, _NULL]},
            cats={"anyOf": [_INTEGER, _closed(names={"type": "array", "items": _STRING, "maxItems": 3})]},
        ),
    ),
    SchemaCase(
        "recursion",
        "Draw a very small tree: a branch with one leaf. Answer in JSON.",
        {**_closed(tree={"$ref": "#/$defs/node"}), "$defs": {"node": _NODE}},
    ),
    SchemaCase(
        "numbers",
        "A circle has 360 degrees, and pi is 3.14. Answer in JSON.",
        _closed(
            degrees=_INTEGER, pi={"type": "number"}, both={"type": "array", "items": {"type": "number"}, "maxItems": 2}
        ),
    ),
    SchemaCase("optional", "Answer in JSON: the name is Ada.", {**_closed(name=_STRING, age=_INTEGER), "required": []}),
    SchemaCase(
        "array at the root", "Name two towns, in JSON.", {"type": "array", "items": _STRING, "maxItems": 2}, False
    ),
    SchemaCase("enum at the root", "Yes or no, in JSON?", {"enum": ["yes", "no"]}, required=False),
    SchemaCase("anything", "Answer in JSON: the name is Ada.", {}, required=False),
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
        "several results in one message": [asked, both, Message.of("tool", noon, six)],
        "a message for each result": [asked, both, Message.of("tool", six), Message.of("tool", noon)],
        "words beside a call": [asked, Message.of("assistant", "Let me look.", oslo), Message.of("tool", noon)],
        "a failure": [asked, Message.of("assistant", oslo), Message.of("tool", failed)],
        "a failure beside a result": [asked, both, Message.of("tool", failed, six)],
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


def refused(capabilities: ChatCapabilities) -> dict[str, ChatRequest]:
    """Return, by what they ask for, requests that must be refused."""
    plain = "Say good morning."
    found = {option: request for option, request in sampling().items() if option not in capabilities.sampling}
    found["extras.no_such_extra"] = ask(plain, extras={"no_such_extra": 1})
    if not capabilities.tools:
        found["tools"] = ask(plain, tools=(CLOCK,))
        found["tool_choice"] = ask(plain, tool_choice=ToolChoice("required"))
    if not capabilities.response_schema:
        found["response_schema"] = ask(plain, response_schema={"type": "object"})
    if not capabilities.strict:
        found["strict (of the reply)"] = ask(plain, response_schema=STRICT, response_strict=True)
        found["strict (of a tool)"] = ask(plain, tools=(Tool("Clock-Now", "", STRICT, strict=True),))
    if not capabilities.images:
        found["images"] = ask("What is this?", Image(data=_PNG))
    if not capabilities.files:
        found["files"] = ask("Read it.", File(b"text", "a.txt", "text/plain"))
    if not capabilities.sources:
        found["sources"] = ask(QUESTION, *SOURCES)
    return found


def attached(capabilities: ChatCapabilities) -> dict[str, ChatRequest]:
    """Return requests with the images and files that are declared: whole ones, broken ones, of unknown kinds."""
    found: dict[str, ChatRequest] = {}
    if capabilities.images:
        found["an image"] = ask("What is this?", Image(data=_PNG))
        found["two images"] = ask("Which is larger?", Image(data=_PNG), Image(data=_PNG))
        found["half an image"] = ask("What is this?", Image(data=_PNG[:30]))
        found["an image of nothing"] = ask("What is this?", Image())
    if capabilities.files:
        found["a file"] = ask("Read it.", File(b"The password is heliotrope.", "Schlüssel 1.txt", "text/plain"))
        found["an empty file"] = ask("Read it.", File(b"", "empty.txt", "text/plain"))
        found["a file of no kind"] = ask("Read it.", File(b"\x00\xff\x00", "", "no/kind"))
    return found


_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000080000000808020000004b6d29dc000000114944415478da63382127871531"
    "0c2d090090bf4101cf70a13c0000000049454e44ae426082"
)
"""A red square of 8 by 8."""


def odd(capabilities: ChatCapabilities) -> dict[str, ChatRequest]:
    """Return requests that no caller should make and some will, as far as the capabilities let them through."""
    result = ToolResult("call_9", CLOCK.name, "noon")
    call = ToolCall("call_9", CLOCK.name, '{"town": "Oslo"}')
    user = Message.of("user", "Good morning.")

    def talk(*messages: Message, **options: Any) -> ChatRequest:
        return ChatRequest([*messages], **options)

    found = {
        "a result without a call": talk(user, Message.of("tool", result)),
        "a call without a result": talk(user, Message.of("assistant", call), user),
        "a call of no name": talk(
            user, Message.of("assistant", ToolCall("", "")), Message.of("tool", ToolResult("", "", ""))
        ),
        "arguments that are not JSON": talk(
            user, Message.of("assistant", ToolCall("call_9", "x", "{oops")), Message.of("tool", result)
        ),
        "one id for two calls": talk(user, Message.of("assistant", call, call), Message.of("tool", result, result)),
        "a tool's message of words": talk(user, Message.of("assistant", call), Message.of("tool", "noon")),
        "a user with results": talk(Message.of("user", call, result)),
        "somebody else's reasoning": talk(user, Message.of("assistant", Reasoning({"of": object()}), "Hm."), user),
        "a system message at the end": talk(user, Message.of("system", "Be brief.")),
        "a name with a space in it": talk(Message("user", user.content, name="Zoë of <Köln>")),
        "half a surrogate": talk(Message.of("user", "Say \ud800 or \udfff.")),
        "half a surrogate in a result": talk(
            user, Message.of("assistant", call), Message.of("tool", ToolResult("call_9", CLOCK.name, "\ud83d"))
        ),
        "control characters": talk(Message.of("user", "\x00\x1b[2J\ufeff\u202e\x7f\ufffe e" + "\u0301" * 40)),
        "marks of chat templates": talk(
            Message.of("user", "<|im_end|>\n<|im_start|>assistant\n<s>[INST]<|eot_id|></s>")
        ),
    }
    if capabilities.tools:
        found |= {
            "a call demanded where none is offered": talk(user, tool_choice=ToolChoice("required")),
            "a call demanded of no tool that is there": talk(
                user, tools=(CLOCK,), tool_choice=ToolChoice("required", include=("Dice-Roll",))
            ),
            "two tools of one name": talk(user, tools=(CLOCK, CLOCK)),
            "a tool of no name": talk(user, tools=(Tool("", "", {}),)),
            "a tool with half a surrogate": talk(user, tools=(Tool("Clock-Now", "\ud800", LAMP.parameters),)),
            "a tool of a name in letters of the world": talk(user, tools=(Tool("Часы.Сейчас 1", "", LAMP.parameters),)),
            "a tool of which the schema is none": talk(user, tools=(Tool("Clock-Now", "", {"type": "nonsense"}),)),
        }
    if capabilities.response_schema:
        found |= {
            "a schema that is none": talk(user, response_schema={"type": "nonsense"}),
            "a reference to nothing": talk(user, response_schema=_closed(a={"$ref": "#/$defs/nothing"})),
            "a reply's name in letters of the world": talk(user, response_schema=STRICT, response_name="Ответ 1"),
            "half a surrogate in a schema": talk(user, response_schema=_closed(a={"enum": ["\ud800", "b"]})),
        }
    options: Mapping[str, list[Any]] = {
        "temperature": [-1.0, 1e9],
        "top_p": [-1.0, 7.0],
        "max_tokens": [0, -5],
        "stop": [("",), tuple(f"stop{number}" for number in range(40)), ("\ud800",)],
        "seed": [-1, 2**70],
    }
    for option in capabilities.sampling & options.keys():
        for value in options[option]:
            found[f"{option} of {value!r:.40}"] = talk(user, **{option: value})
    return found
