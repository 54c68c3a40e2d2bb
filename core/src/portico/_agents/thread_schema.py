"""The published JSON Schema of the JSON form of threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from portico._agents.thread import BASE64, ROLES, VERSION
from portico._chat.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COUNT = {"type": "integer", "minimum": 0}


def thread_schema() -> dict[str, Any]:
    """Return a JSON Schema (2020-12) of what `Thread.from_json` reads.

    >>> thread_schema()["required"]
    ['version', 'id', 'turns']

    It says all but four things: that in a turn each call has its result and each result its call, that no more turns
    are reduced than there are, how deep the data of reasoning may nest, and that a number is finite, and an integer
    written as one. ``$id`` names the form; nothing is to be fetched there.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:portico:thread:{VERSION}",
        "title": "Thread",
        "description": f"A conversation of Portico in version {VERSION} of its JSON form: all that was said in it.",
        **_object(
            {
                "version": {"title": "Version", "description": "The version of this form.", "const": VERSION},
                "id": {**_text("Id", "What the application knows the conversation by."), "minLength": 1},
                "turns": _list("Turns", "The turns that were taken, the oldest first.", "turn"),
                "reduced": {
                    "title": "Reduced",
                    "description": "How the history was sent the last time that not all of it had room.",
                    **_object(
                        {
                            "turns": {
                                "title": "Turns",
                                "description": "How many of the oldest turns were not sent.",
                                **_COUNT,
                            },
                            "messages": _list("Messages", "What was sent in their place.", "message"),
                            "usage": {"$ref": "#/$defs/usage"},
                        },
                        required=["turns", "messages"],
                    ),
                },
            },
            required=["version", "id", "turns"],
        ),
        "$defs": {"turn": _turn(), "message": _message(), "part": _part(), "usage": _usage()},
    }


def _turn() -> dict[str, Any]:
    return {
        "title": "Turn",
        "description": "What was said in one turn, calls and results included.",
        **_object(
            {
                "messages": _list("Messages", "The new messages, and all that answered them.", "message"),
                "agent": _text("Agent", "The name of the agent that answered."),
                "usage": {"$ref": "#/$defs/usage"},
            },
            required=["messages"],
        ),
    }


def _message() -> dict[str, Any]:
    return {
        "title": "Message",
        "description": "Who speaks, and the parts of what is said.",
        **_object(
            {
                "role": {"title": "Role", "description": "Who speaks.", "enum": list(ROLES)},
                "name": _text("Name", "The name of who speaks."),
                "content": _list("Content", "The parts, in order.", "part"),
            },
            required=["role", "content"],
        ),
    }


def _part() -> dict[str, Any]:
    name, media_type = _text("Name", "A name."), _text("Media type", "As in image/png.")
    call = {"id": _text("Id", "The id of the call."), "name": _text("Name", "The full name of the function.")}
    forms = [
        _form("text", "Text", "Words.", {"text": _text("Text", "The words.")}, ["text"]),
        _form(
            "image",
            "Image",
            "A picture, by content or by address.",
            {"media_type": media_type, "data": _bytes("Data", "The picture."), "url": _text("URL", "Its address.")},
            ["media_type"],
        ),
        _form(
            "file",
            "File",
            "A file by content.",
            {"name": name, "media_type": media_type, "data": _bytes("Data", "The content.")},
            ["name", "media_type", "data"],
        ),
        _form(
            "source",
            "Source",
            "A retrieved passage.",
            {
                "number": {"title": "Number", "description": "What a citation refers to.", "type": "integer"},
                "text": _text("Text", "The passage."),
                "name": name,
                "link": _text("Link", "Where it stands."),
            },
            ["number", "text"],
        ),
        _form(
            "tool_call",
            "Tool call",
            "A model's wish to call a function.",
            {**call, "arguments": _text("Arguments", "The JSON text, as the model wrote it.")},
            ["id", "name", "arguments"],
        ),
        _form(
            "tool_result",
            "Tool result",
            "The answer to a call.",
            {
                **call,
                "content": _text("Content", "JSON text or words."),
                "error": {"title": "Error", "description": "Whether it tells of a failure.", "type": "boolean"},
            },
            ["id", "name", "content"],
        ),
        {
            **_form(
                "reasoning",
                "Reasoning",
                "A service's own record of its thinking, handed back as it came.",
                {
                    "data": {"title": "Data", "description": "The record, where it is JSON."},
                    "bytes": _bytes("Bytes", "The record, where it is bytes."),
                    "summary": _text("Summary", "What people may be shown of it."),
                },
                [],
            ),
            "oneOf": [{"required": ["data"]}, {"required": ["bytes"]}],
        },
    ]
    return {"title": "Part", "description": "A part of what is said; its type says which.", "anyOf": forms}


def _usage() -> dict[str, Any]:
    counts = {
        name: {
            "title": name.replace("_", " ").capitalize(),
            "description": "Tokens; none where it is left out.",
            **_COUNT,
        }
        for name in Usage.__dataclass_fields__
    }
    return {"title": "Usage", "description": "The tokens that it cost.", **_object(counts, required=[])}


def _form(
    kind: str, title: str, description: str, properties: Mapping[str, Any], required: Sequence[str]
) -> dict[str, Any]:
    tag = {"title": "Type", "description": "Which kind of part it is.", "const": kind}
    return {
        "title": title,
        "description": description,
        **_object({"type": tag, **properties}, required=["type", *required]),
    }


def _object(properties: Mapping[str, Any], *, required: Sequence[str]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required), "additionalProperties": False}


def _list(title: str, description: str, of: str) -> dict[str, Any]:
    return {"title": title, "description": description, "type": "array", "items": {"$ref": f"#/$defs/{of}"}}


def _text(title: str, description: str) -> dict[str, Any]:
    return {"title": title, "description": description, "type": "string"}


def _bytes(title: str, description: str) -> dict[str, Any]:
    # No dollar sign alone at the end: in Python it matches before a last line feed too.
    pattern = rf"^(?:{BASE64})$(?!\n)"
    return {**_text(title, description), "contentEncoding": "base64", "pattern": pattern}
