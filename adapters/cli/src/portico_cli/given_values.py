"""JSON values that options are given: as JSON, as plain words, from a file or from standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from portico_cli.failures import Misused
from portico_cli.goal import clean_argument

__all__ = ["given_value"]

_MAXIMUM_BYTES = 10_000_000


def given_value(argument: str, option: str) -> Any:
    """Return the value that an option was given.

    >>> given_value('{"days": 3}', "--input"), given_value("3", "--input"), given_value("Berlin", "--input")
    ({'days': 3}, 3, 'Berlin')

    ``@FILE`` and ``-`` are read, and hold JSON. Words that are no JSON are a text; what begins like an object, an
    array or a string and is none is a mistake. Raises ``Misused``.
    """
    if argument == "-" or (argument.startswith("@") and len(argument) > 1):
        return _parsed(_read(argument, option), option)
    text = clean_argument(argument)
    if text.lstrip()[:1] in ("{", "[", '"'):
        return _parsed(text, option)
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _read(argument: str, option: str) -> str:
    try:
        if argument == "-":
            content = sys.stdin.buffer.read(_MAXIMUM_BYTES + 1)
        else:
            with Path(argument[1:]).open("rb") as stream:
                content = stream.read(_MAXIMUM_BYTES + 1)
        if len(content) > _MAXIMUM_BYTES:
            raise Misused(f"{option}: the value has more than {_MAXIMUM_BYTES:,} bytes.")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Misused(f"{option}: {argument} is not UTF-8 text.") from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise Misused(f"{option}: {argument[1:]} cannot be read: {why}.") from error


def _parsed(text: str, option: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        message = error.msg[:1].lower() + error.msg[1:]
        raise Misused(f"{option}: line {error.lineno}, column {error.colno}: not JSON: {message}.") from error
    except RecursionError as error:
        raise Misused(f"{option}: not JSON that can be read: it is nested too deeply.") from error
    except ValueError as error:
        raise Misused(f"{option}: not JSON that can be read: {error}.") from error


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")
