"""Read the arguments of a command: goals, JSON values, files, and files of many goals."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from portico_cli.failures import Misused

_GOAL_BYTES = 1_000_000
_VALUE_BYTES = 10_000_000
_GOALS_BYTES = 100_000_000


def clean_argument(argument: str) -> str:
    r"""Return an argument as text that can be encoded; bytes that are not UTF-8 become U+FFFD.

    >>> clean_argument("caf\udce9")
    'caf\ufffd'
    """
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def read_bytes(name: str, most: int, subject: str) -> bytes:
    """Return the content of a file, or of standard input for ``-``; ``subject`` names it in errors.

    Raises ``Misused`` for a file that cannot be read or has more than ``most`` bytes.
    """
    try:
        if name == "-":
            content = sys.stdin.buffer.read(most + 1)
        else:
            with Path(name).open("rb") as stream:
                content = stream.read(most + 1)
    except (OSError, ValueError) as error:
        raise Misused(f"{subject} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if len(content) > most:
        raise Misused(f"{subject} has more than {most:,} bytes.")
    return content


def read_goal(argument: str) -> str:
    """Return the goal, or the one on standard input for ``-``. Raises ``Misused`` for a blank or a huge one."""
    if argument == "-":
        goal = read_bytes("-", _GOAL_BYTES, "The goal on standard input").decode("utf-8-sig", "replace")
    else:
        goal = clean_argument(argument)
    if not goal.strip():
        raise Misused("The goal is blank. Ask something, or give `-` to read it from standard input.")
    return goal.strip()


def given_value(argument: str, option: str) -> Any:
    """Return the value of an option: JSON, a plain text, or JSON from ``@FILE`` or from standard input for ``-``.

    >>> given_value('{"days": 3}', "--input"), given_value("3", "--input"), given_value("Berlin", "--input")
    ({'days': 3}, 3, 'Berlin')

    A value that begins like an object, an array or a string and is not JSON raises ``Misused``.
    """
    if argument == "-" or (argument.startswith("@") and len(argument) > 1):
        name = argument.removeprefix("@")
        return _json(_decoded(read_bytes(name, _VALUE_BYTES, f"{option}: {name}"), f"{option}: {name}"), option)
    text = clean_argument(argument)
    if text.lstrip()[:1] in ("{", "[", '"'):
        return _json(text, option)
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def read_goals(name: str) -> list[tuple[str, Any]]:
    """Return the goals of a file, or of standard input for ``-``, each with its input. Raises ``Misused``."""
    shown = "standard input" if name == "-" else name
    text = _decoded(read_bytes(name, _GOALS_BYTES, f"--file: {shown}"), f"--file: {shown}")
    goals = goals_of(text, shown)
    if not goals:
        raise Misused(f"--file: there is no goal in {shown}. Write one on each line.")
    return goals


def goals_of(text: str, name: str) -> list[tuple[str, Any]]:
    r"""Return the goals of a text, each with its input. Blank lines are skipped.

    >>> goals_of('Sum up the week\n\n{"goal": "Forecast", "input": {"city": "Berlin"}}\n', "goals.txt")
    [('Sum up the week', None), ('Forecast', {'city': 'Berlin'})]

    Raises ``Misused`` with the line for an object that is not a goal, and for a file that is one JSON list.
    """
    if text.lstrip().startswith("["):
        try:
            is_list = isinstance(json.loads(text), list)
        except (ValueError, RecursionError):
            is_list = False
        if is_list:
            raise Misused(f"--file: {name} is one JSON list. Write each goal on its own line.")
    # Not splitlines: a line of JSON may contain U+2028.
    lines = [line.strip() for line in text.split("\n")]
    return [_goal(line, f"--file: {name}, line {number}") for number, line in enumerate(lines, 1) if line]


def _goal(line: str, place: str) -> tuple[str, Any]:
    if not line.startswith("{"):
        return line, None
    try:
        made = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Misused(f"{place}: not JSON: {error}.") from error
    unknown = sorted(made.keys() - {"goal", "input"})
    if unknown:
        raise Misused(f"{place}: there is no key {unknown[0]!r}. An object has goal and input.")
    goal = made.get("goal")
    if not isinstance(goal, str) or not goal.strip():
        raise Misused(f"{place}: the goal is not a text, or blank.")
    return goal.strip(), made.get("input")


def _decoded(content: bytes, subject: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Misused(f"{subject} is not UTF-8 text.") from error


def _json(text: str, subject: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        message = error.msg[:1].lower() + error.msg[1:]
        raise Misused(f"{subject}: line {error.lineno}, column {error.colno}: not JSON: {message}.") from error
    except RecursionError as error:
        raise Misused(f"{subject}: this JSON is nested too deeply.") from error
    except ValueError as error:
        raise Misused(f"{subject}: not JSON that can be read: {error}.") from error


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")
