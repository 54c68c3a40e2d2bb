"""The JSON form of threads, version 1: what is saved and read back."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args

from portico.agents.reducing import WHOLE, Reduced, split_turns
from portico.chat import File, Image, Message, Part, Reasoning, Role, Source, Text, ToolCall, ToolResult, Usage
from portico.errors import ThreadFormatError

if TYPE_CHECKING:
    from portico.agents.thread import ThreadTurn

__all__ = ["BASE64", "ROLES", "VERSION", "thread_from_json", "thread_to_json"]

VERSION = 1
ROLES: tuple[str, ...] = get_args(Role)
BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"
"""Bytes, in the one way to write them: what is read is written again as it was."""

_BASE64 = re.compile(BASE64)
_USAGE = tuple(Usage.__dataclass_fields__)
_DEEPEST_VALUE = 200
_NAMES = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
}

_Read: TypeAlias = Callable[[object, str], Any]


def thread_to_json(id: str, turns: Sequence[ThreadTurn], reduced: Reduced) -> dict[str, Any]:
    """Return a thread as JSON values; what is empty is left out. See `Thread.to_json`."""
    document: dict[str, Any] = {"version": VERSION, "id": id, "turns": []}
    for index, turn in enumerate(turns):
        written: dict[str, Any] = {} if turn.agent is None else {"agent": turn.agent}
        written["messages"] = _messages_to_json(turn.messages, f"$.turns[{index}].messages")
        document["turns"].append(written | _usage_to_json(turn.usage))
    if reduced != WHOLE:
        messages = _messages_to_json(reduced.messages, "$.reduced.messages")
        document["reduced"] = {"turns": reduced.turns, "messages": messages} | _usage_to_json(reduced.usage)
    return document


def _messages_to_json(messages: Sequence[Message], place: str) -> list[dict[str, Any]]:
    return [
        ({"role": message.role} if message.name is None else {"role": message.role, "name": message.name})
        | {
            "content": [
                _part_to_json(part, f"{place}[{index}].content[{number}]")
                for number, part in enumerate(message.content)
            ]
        }
        for index, message in enumerate(messages)
    ]


def _part_to_json(part: Part, place: str) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(data, url, media_type):
            written: dict[str, Any] = {"type": "image", "media_type": media_type}
            written |= {} if data is None else {"data": _base64(data)}
            return written | ({} if url is None else {"url": url})
        case File(data, name, media_type):
            return {"type": "file", "name": name, "media_type": media_type, "data": _base64(data)}
        case Source(number, text, name, link):
            written = {"type": "source", "number": number, "text": text}
            written |= {} if name is None else {"name": name}
            return written | ({} if link is None else {"link": link})
        case ToolCall(id, name, arguments):
            return {"type": "tool_call", "id": id, "name": name, "arguments": arguments}
        case ToolResult(id, name, content, error):
            return {"type": "tool_result", "id": id, "name": name, "content": content} | (
                {"error": True} if error else {}
            )
        case Reasoning(data, summary):
            written = {"type": "reasoning"} | ({} if summary is None else {"summary": summary})
            if isinstance(data, bytes):
                return written | {"bytes": _base64(data)}
            return written | {"data": _json(data, f"{place}.data")}
        case _:
            raise ThreadFormatError(f"{place}: a {type(part).__name__} is no part of a message.")


def _usage_to_json(usage: Usage) -> dict[str, Any]:
    counts = {name: getattr(usage, name) for name in _USAGE if getattr(usage, name)}
    return {"usage": counts} if counts else {}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def thread_from_json(document: object) -> tuple[str, tuple[ThreadTurn, ...], Reduced]:
    """Read the id, the turns, and how the history was reduced; see `Thread.from_json`."""
    from portico.agents.thread import ThreadTurn

    if isinstance(document, dict) and "version" in document:
        _refuse_other_version(document["version"])

    def turn(written: object, place: str) -> ThreadTurn:
        body = _object(written, place, ("messages",), ("agent", "usage"))
        return ThreadTurn(
            _whole_messages(body["messages"], f"{place}.messages"),
            _optional(body, place, "agent", _text),
            _usage(body, place),
        )

    body = _object(document, "$", ("version", "id", "turns"), ("reduced",))
    turns = _list(body["turns"], "$.turns", turn)
    id = _text(body["id"], "$.id")
    if not id:
        raise _error("$.id", "a text that is not empty", id)
    return id, turns, _reduced(body["reduced"], len(turns)) if "reduced" in body else WHOLE


def _reduced(document: object, turns: int) -> Reduced:
    place = "$.reduced"
    body = _object(document, place, ("turns", "messages"), ("usage",))
    first = _count(body["turns"], f"{place}.turns")
    if first > turns:
        raise ThreadFormatError(f"{place}.turns: {first} turns are reduced, and the thread has {turns}.")
    return Reduced(first, _whole_messages(body["messages"], f"{place}.messages"), _usage(body, place))


def _whole_messages(document: object, place: str) -> tuple[Message, ...]:
    messages = _list(document, place, _message)
    try:
        split_turns(messages)
    except ValueError as error:
        raise ThreadFormatError(f"{place}: {error}.") from error
    return messages


def _message(document: object, place: str) -> Message:
    body = _object(document, place, ("role", "content"), ("name",))
    role = body["role"]
    if role not in ROLES:
        raise _error(f"{place}.role", f"one of {', '.join(ROLES)}", role)
    content = _list(body["content"], f"{place}.content", _part)
    return Message(cast("Role", role), content, _optional(body, place, "name", _text))


def _part(document: object, place: str) -> Part:
    if not isinstance(document, dict):
        raise _error(place, "an object", document)
    kind = document.get("type")
    if not isinstance(kind, str) or kind not in _FORMS:
        raise _error(f"{place}.type", f"one of {', '.join(_FORMS)}", kind)
    made, required, optional = _FORMS[kind]
    body = _object(document, place, ("type", *required), tuple(optional))
    fields = {
        name: read(body[name], f"{place}.{name}") for name, read in {**required, **optional}.items() if name in body
    }
    if made is Reasoning:
        if ("data" in fields) == ("bytes" in fields):
            raise ThreadFormatError(f'{place}: exactly one of "data" and "bytes" is needed.')
        fields["data"] = fields.pop("bytes", None) if "bytes" in fields else fields["data"]
    part: Part = made(**fields)
    return part


def _usage(body: Mapping[str, Any], place: str) -> Usage:
    if "usage" not in body:
        return Usage()
    counts = _object(body["usage"], f"{place}.usage", (), _USAGE)
    return Usage(**{name: _count(value, f"{place}.usage.{name}") for name, value in counts.items()})


def _refuse_other_version(version: object) -> None:
    if type(version) is int and version > VERSION:
        raise ThreadFormatError(
            f"$.version: expected {VERSION}, got {version!r:.20}. This Portico reads version {VERSION} of the form; a "
            "newer one wrote the thread."
        )
    if version != VERSION or isinstance(version, bool):
        raise _error("$.version", f"{VERSION}", version)


def _object(document: object, place: str, required: Sequence[str], optional: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        advice = ": parse the text with json.loads first" if isinstance(document, str | bytes) and place == "$" else ""
        raise _error(place, f"an object{advice}", document)
    missing = [name for name in required if name not in document]
    if missing:
        raise ThreadFormatError(f"{place}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing.")
    known = (*required, *optional)
    unknown = [name for name in document if name not in known]
    if unknown:
        raise ThreadFormatError(f"{place}: unknown key {str(unknown[0])[:60]!r}; known are {', '.join(known)}.")
    return document


def _list(document: object, place: str, read: _Read) -> tuple[Any, ...]:
    if not isinstance(document, list):
        raise _error(place, "an array", document)
    return tuple(read(each, f"{place}[{index}]") for index, each in enumerate(document))


def _optional(body: Mapping[str, Any], place: str, name: str, read: _Read) -> Any:
    return read(body[name], f"{place}.{name}") if name in body else None


def _text(document: object, place: str) -> str:
    if not isinstance(document, str):
        raise _error(place, "a string", document)
    return document


def _number(document: object, place: str) -> int:
    if type(document) is not int:
        raise _error(place, "a whole number", document)
    return document


def _count(document: object, place: str) -> int:
    number = _number(document, place)
    if number < 0:
        raise _error(place, "a number of at least 0", document)
    return number


def _boolean(document: object, place: str) -> bool:
    if not isinstance(document, bool):
        raise _error(place, "true or false", document)
    return document


def _bytes(document: object, place: str) -> bytes:
    text = _text(document, place)
    if not _BASE64.fullmatch(text):
        raise _error(place, "bytes in Base64", text)
    return base64.b64decode(text)


def _json(value: Any, place: str, depth: int = 0) -> Any:
    """Return a copy of a JSON value; what would not come back as it is has no place in the form."""
    if depth > _DEEPEST_VALUE:
        raise ThreadFormatError(f"{place}: values nest deeper than {_DEEPEST_VALUE} levels.")
    kind = type(value)
    if kind in (str, int, bool, type(None)) or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [_json(each, f"{place}[{index}]", depth + 1) for index, each in enumerate(value)]
    if kind is dict and all(type(key) is str for key in value):
        return {key: _json(each, f"{place}.{key}", depth + 1) for key, each in value.items()}
    what = (
        f"the number {value!r}"
        if kind is float
        else f"a {kind.__name__}"
        if kind is not dict
        else "a key that is no text"
    )
    raise ThreadFormatError(f"{place}: JSON has no form for {what}, so the thread would not come back as it is.")


def _error(place: str, expected: str, got: object) -> ThreadFormatError:
    # Not repr(): what came may be nested too deeply for it, or a number too long to print.
    shown = repr(got[:60]) if isinstance(got, str) else f"a JSON {_NAMES.get(type(got), 'value')}"
    return ThreadFormatError(f"{place}: expected {expected}, got {shown}.")


_FORMS: dict[str, tuple[type[Any], dict[str, _Read], dict[str, _Read]]] = {
    "text": (Text, {"text": _text}, {}),
    "image": (Image, {"media_type": _text}, {"data": _bytes, "url": _text}),
    "file": (File, {"name": _text, "media_type": _text, "data": _bytes}, {}),
    "source": (Source, {"number": _number, "text": _text}, {"name": _text, "link": _text}),
    "tool_call": (ToolCall, {"id": _text, "name": _text, "arguments": _text}, {}),
    "tool_result": (ToolResult, {"id": _text, "name": _text, "content": _text}, {"error": _boolean}),
    "reasoning": (Reasoning, {}, {"data": _json, "bytes": _bytes, "summary": _text}),
}
