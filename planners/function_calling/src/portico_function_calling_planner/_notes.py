"""The conversation as plans' notes keep it: replies with their opaque parts, and which step each call became.

Each plan has the replies since the last one that ran, so that the journal holds every reply once.

The results of steps are not in it: they come with the task, from the journal when a run is resumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from portico import ChatReply, Message, Part, Reasoning, Text, ToolCall

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Carried:
    """What became of one call: the step that carries it out, or why nothing does."""

    call: ToolCall
    step: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """One reply, and what became of its calls. ``shown`` are those of its words that people have seen.

    ``said`` is what the planner told the model after a reply without calls.
    """

    message: Message
    carried: tuple[Carried, ...] = ()
    shown: str = ""
    said: str = ""


def own_ids(reply: ChatReply) -> Message:
    """Return a reply's message with its own id for each call: some models give none, or one to several."""
    taken: set[str] = set()
    parts: list[Part] = []
    for part in reply.message.content:
        if not isinstance(part, ToolCall):
            parts.append(part)
            continue
        given = part.id.strip() or "call"
        id = next(each for number in count(1) if (each := given if number == 1 else f"{given}_{number}") not in taken)
        taken.add(id)
        parts.append(part if id == part.id else ToolCall(id, part.name, part.arguments))
    return Message("assistant", tuple(parts), reply.message.name)


def exchanges_to(exchanges: Iterable[Exchange]) -> dict[str, Any]:
    """Return the exchanges as JSON values."""
    return {"version": _VERSION, "exchanges": [_to(exchange) for exchange in exchanges]}


def exchanges_from(notes: object) -> tuple[Exchange, ...] | None:
    """Read the exchanges back; None for notes that another planner made."""
    if not isinstance(notes, Mapping) or notes.get("version") != _VERSION:
        return None
    try:
        return tuple(_from(exchange) for exchange in notes["exchanges"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _to(exchange: Exchange) -> dict[str, Any]:
    document: dict[str, Any] = {"parts": [part for each in exchange.message.content if (part := _part(each))]}
    if exchange.message.name is not None:
        document["name"] = exchange.message.name
    if exchange.carried:
        document["calls"] = [
            {"id": each.call.id, **({"step": each.step} if each.step is not None else {"error": each.error})}
            for each in exchange.carried
        ]
    if exchange.shown:
        document["shown"] = exchange.shown
    if exchange.said:
        document["said"] = exchange.said
    return document


def _part(part: Part) -> dict[str, Any] | None:
    match part:
        case Text(text):
            return {"text": text}
        case ToolCall(id, name, arguments):
            return {"call": id, "name": name, "arguments": arguments}
        case Reasoning(data, summary):
            # What a service hands out to be handed back is JSON; other objects could not come back from a journal.
            try:
                json.dumps(data, allow_nan=False)
            except (TypeError, ValueError, RecursionError):
                return None
            return {"reasoning": data, "summary": summary}
        case _:
            return None


def _from(document: Mapping[str, Any]) -> Exchange:
    parts = [_part_from(part) for part in document["parts"]]
    calls = {part.id: part for part in parts if isinstance(part, ToolCall)}
    carried = tuple(
        Carried(calls[each["id"]], each.get("step"), each.get("error")) for each in document.get("calls", ())
    )
    message = Message("assistant", tuple(parts), document.get("name"))
    return Exchange(message, carried, document.get("shown", ""), document.get("said", ""))


def _part_from(document: Mapping[str, Any]) -> Part:
    if "text" in document:
        return Text(str(document["text"]))
    if "call" in document:
        return ToolCall(str(document["call"]), str(document["name"]), str(document["arguments"]))
    return Reasoning(document["reasoning"], document.get("summary"))
