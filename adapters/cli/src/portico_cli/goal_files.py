"""Many goals in one file: a goal on each line, or JSON of one with its input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from portico_cli.failures import Misused

__all__ = ["goals_of", "read_goals"]

_MAXIMUM_BYTES = 100_000_000


def read_goals(name: str) -> list[tuple[str, Any]]:
    """Return the goals of a file, or of standard input for ``-``, each with its input. Raises ``Misused``."""
    try:
        if name == "-":
            content = sys.stdin.buffer.read(_MAXIMUM_BYTES + 1)
        else:
            with Path(name).open("rb") as stream:
                content = stream.read(_MAXIMUM_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise Misused(f"--file: {name} cannot be read: {why}.") from error
    if len(content) > _MAXIMUM_BYTES:
        raise Misused(f"--file: {name} has more than {_MAXIMUM_BYTES:,} bytes.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Misused(f"--file: {name} is not UTF-8 text.") from error
    shown = "standard input" if name == "-" else name
    goals = goals_of(text, shown)
    if not goals:
        raise Misused(f"--file: there is no goal in {shown}. Write one on each line.")
    return goals


def goals_of(text: str, name: str) -> list[tuple[str, Any]]:
    r"""Return the goals of a text, each with its input; blank lines are passed over.

    >>> goals_of('Sum up the week\n\n{"goal": "Forecast", "input": {"city": "Berlin"}}\n', "goals.txt")
    [('Sum up the week', None), ('Forecast', {'city': 'Berlin'})]

    Raises ``Misused``, with the line, for JSON that is none of a goal, and for a list, each line of which would else
    be submitted as a goal.
    """
    if _is_list(text):
        raise Misused(f"--file: {name} is one list in JSON. Write each goal on a line of its own.")
    # Not splitlines: a line of JSON may hold U+2028.
    lines = [line.strip() for line in text.split("\n")]
    return [_goal(line, f"{name}, line {number}") for number, line in enumerate(lines, 1) if line]


def _is_list(text: str) -> bool:
    if not text.lstrip().startswith("["):
        return False
    try:
        return isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        return False


def _goal(line: str, place: str) -> tuple[str, Any]:
    if not line.startswith("{"):
        return line, None
    try:
        made = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Misused(f"--file: {place}: not JSON: {error}.") from error
    unknown = sorted(made.keys() - {"goal", "input"})
    if unknown:
        raise Misused(f"--file: {place}: there is no key {unknown[0]!r}. An object has goal and input.")
    goal = made.get("goal")
    if not isinstance(goal, str) or not goal.strip():
        raise Misused(f"--file: {place}: the goal is not a text, or blank.")
    return goal.strip(), made.get("input")


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")
