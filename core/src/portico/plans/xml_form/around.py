"""What stands around a plan in a model's text: its thoughts before, and the goal."""

from __future__ import annotations

import re
from collections.abc import Callable

from portico.errors import PlanFormatError

__all__ = ["end_of_goal", "end_of_thoughts", "words_of"]

Fail = Callable[[int, str], PlanFormatError]

_THOUGHT = re.compile(r"\s*+<(think|thinking|reasoning)>", re.IGNORECASE)
_GOAL_END = re.compile(r"<(?:/\s*+goal|plan)\b", re.IGNORECASE)
_NAMED = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))


def end_of_thoughts(text: str, fail: Fail) -> tuple[int, int] | None:
    """Return where what a model thought before it answered begins and ends: a plan in there is a draft."""
    match = _THOUGHT.match(text)
    if match is None:
        return None
    start = match.start(1) - 1
    found = re.compile(re.escape(f"</{match[1]}>"), re.IGNORECASE).search(text)
    if found is None:
        raise fail(start, f"<{match[1]}> does not end")
    return start, found.end()


def end_of_goal(text: str, start: int) -> int:
    """Return where a goal's text ends: at its end tag, or at the plan that it is around."""
    end = _GOAL_END.search(text, start)
    return len(text) if end is None else end.start()


def words_of(text: str) -> str:
    """Return the text of an element; what is no reference stays as it is, since a goal is for people."""
    for name, character in _NAMED:
        text = text.replace(name, character)
    return text.strip()
