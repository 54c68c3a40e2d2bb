"""Read one turn of a model: a thought with an action, or with the final answer.

Only the first action counts. Everything after it, and every observation, was written without a result and is dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from portico.plans import ModelCall, ReplyProblem

_WORDS = r"final[ _-]answer|action[ _-]input|thought|action|observation"
_SPACES = str.maketrans("_-", "  ")
_MARK = re.compile(
    # At the beginning of a line, with or without Markdown around: "Thought:", "**Action 2:**", "[FINAL ANSWER]".
    rf"^[ \t>*_#-]*(?:\[(?P<bracketed>{_WORDS})\](?:[ \t]*:)?|(?P<plain>{_WORDS})(?:[ \t]+\d+)?[ \t*_]*:)"
    r"(?:(?:\*{1,2}|_{1,2})(?=\s|\Z))?[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_OPENING = re.compile(r"\A\s*(?:`{1,3}(?:json)?\s*)?", re.IGNORECASE)
_FENCE = re.compile(r"\A\s*```[\w-]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_NAMES = ("function", "name", "tool", "action")
_ARGUMENTS = ("arguments", "action_variables", "action_input", "args", "parameters", "input")
_WORDS_BESIDE = ("thought", "reason")
_FINALS = ("final", "final_answer", "answer")
_EXPECTED = 'Write it as one JSON object: {"function": "Plugin-Function", "arguments": {"name": "value"}}.'


@dataclass(frozen=True, slots=True)
class Action:
    """One call, with the name and arguments as the model wrote them."""

    thought: str
    function: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Final:
    """The final answer; ``value`` is set if it is not a text."""

    thought: str
    text: str
    value: Any = None


def read_reply(text: str) -> Action | Final:
    r"""Read one turn. Raises `ReplyProblem` with what to correct.

    >>> reply = 'Thought: I need the date.\nAction: {"function": "Clock.Today"}\nObservation: 1 May'
    >>> read_reply(reply)
    Action(thought='I need the date.', function='Clock.Today', arguments={})
    >>> read_reply('{"thought": "Done.", "action": {"final": "It is 1 May."}}')
    Final(thought='Done.', text='It is 1 May.', value=None)
    """
    if not text.strip():
        raise ReplyProblem("the reply is empty")
    fenced = _FENCE.match(text)
    whole = fenced[1] if fenced else text
    if whole.lstrip().startswith("{") and _MARK.search(whole) is None:
        return _from_json(_first_object(whole, "The reply"))
    return _from_lines(text)


def _from_lines(text: str) -> Action | Final:
    marks = list(_MARK.finditer(text))
    names = [(mark["bracketed"] or mark["plain"]).lower().translate(_SPACES) for mark in marks]
    if not marks:
        bracket = text.find("{")
        if bracket >= 0:
            return _from_json(_first_object(text[bracket:], "The JSON in the reply"), text[:bracket].strip())
        raise ReplyProblem("there is neither a line that begins with 'Action:' nor one with 'Final answer:'")
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    thought = text[: marks[0].start()].strip(" `\t\r\n")
    for place, (name, mark, end) in enumerate(zip(names, marks, ends, strict=True)):
        body = text[mark.end() : end]
        match name:
            case "thought":
                thought = "\n".join(filter(None, (thought, body.strip())))
            case "observation":
                break
            case "final answer":
                # The model may invent an observation after it.
                told = names.index("observation", place) if "observation" in names[place:] else len(marks)
                return _final(thought, text[mark.end() : marks[told].start() if told < len(marks) else None])
            case "action":
                has_input = names[place + 1 : place + 2] == ["action input"]
                given = text[marks[place + 1].end() :] if has_input else None
                return _action(thought, body, text[mark.end() :], given)
            case "action input":
                raise ReplyProblem(f"there is an input without an action before it. {_EXPECTED}")
    raise ReplyProblem("there is neither an action nor a final answer before the observation")


def _action(thought: str, body: str, rest: str, given: str | None) -> Action | Final:
    opened = _unwrap(body)
    if opened.startswith(("{", "[")):
        return _from_json(_first_object(rest[rest.index(opened[0]) :], "The action"), thought)
    name = body.strip().strip("`*\"'").strip()
    if given is not None and re.fullmatch(r"[\w.:/-]+", name):
        # "Action: Name" and "Action Input: {…}", as other frameworks have it.
        return _read_call({"function": name, "arguments": _first_object(_unwrap(given), "The action's input")}, thought)
    if not name:
        raise ReplyProblem(f"there is nothing after 'Action:'. {_EXPECTED}")
    raise ReplyProblem(f"the action is not JSON: {name[:80]!r}. {_EXPECTED}")


def _unwrap(text: str) -> str:
    """Return a text without the fence that may open it."""
    return _OPENING.sub("", text, count=1)


def _first_object(text: str, what: str) -> dict[str, Any]:
    """Read the JSON object with which a text begins, also as the first of an array."""
    try:
        return ModelCall.arguments(text.lstrip().removeprefix("["), more=True)
    except ValueError as error:
        raise ReplyProblem(f"{what} is not whole JSON: {error}. {_EXPECTED}") from error


def _from_json(document: Mapping[str, Any], thought: str = "") -> Action | Final:
    own = document.get("thought") or document.get("reason")
    if isinstance(own, str) and own.strip():
        thought = "\n".join(filter(None, (thought, own.strip())))
    action = document.get("action")
    if isinstance(action, Mapping):
        _refuse_others(document, ("action", *_WORDS_BESIDE, *_FINALS), "the reply")
        return _from_json(action, thought)
    for key in _FINALS:
        given = document.get(key)
        if given is not None and not any(isinstance(document.get(name), str) for name in _NAMES):
            _refuse_others(document, (*_FINALS, *_WORDS_BESIDE, "action"), "the reply")
            return _final(thought, given)
    return _read_call(document, thought)


def _final(thought: str, given: Any) -> Final:
    if not isinstance(given, str):
        return Final(thought, json.dumps(given, ensure_ascii=False, indent=2), given)
    if not given.strip():
        raise ReplyProblem("the final answer is empty")
    return Final(thought, given.strip())


def _read_call(document: Mapping[str, Any], thought: str) -> Action:
    names = [key for key in _NAMES if isinstance(document.get(key), str) and document[key].strip()]
    if not names:
        raise ReplyProblem(f"the action names no function. {_EXPECTED}")
    given = [key for key in _ARGUMENTS if key in document]
    _refuse_others(document, (names[0], *given[:1], *_WORDS_BESIDE), "the action")
    arguments = document[given[0]] if given else {}
    if isinstance(arguments, str):
        try:
            arguments = ModelCall.arguments(arguments or "{}")
        except ValueError as error:
            raise ReplyProblem(f"the arguments are no JSON object: {error}. {_EXPECTED}") from error
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise ReplyProblem(f"the arguments are no JSON object. {_EXPECTED}")
    return Action(thought, document[names[0]].strip(), arguments)


def _refuse_others(document: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
    """Refuse unknown keys: a key beside "arguments" was probably meant as an argument."""
    others = [key for key in document if key not in known]
    if others:
        raise ReplyProblem(f"{what} has an unknown key: {others[0]!r}. {_EXPECTED}")
