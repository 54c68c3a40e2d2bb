"""Settings files: YAML, TOML and JSON to plain data, each bounded, with the line of what is broken."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from portico_basics.prompts._wrong import Wrong

_DEEPEST = 64


def read_document(text: str, kind: str) -> Any:
    """Return the value of a document; ``kind`` is ``yaml``, ``toml`` or ``json``. Raises `Wrong` with the line."""
    try:
        match kind:
            case "toml":
                value: Any = tomllib.loads(text)
            case "json":
                value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse_constant)
            case _:
                from portico_basics.prompts._yaml import read_yaml

                value = read_yaml(text)
    except json.JSONDecodeError as error:
        raise Wrong(f"line {error.lineno}: this is not JSON: {error.msg}") from error
    except tomllib.TOMLDecodeError as error:
        raise Wrong(f"this is not TOML: {error}") from error
    except RecursionError:
        raise Wrong(f"it nests deeper than {_DEEPEST} levels") from None
    except ValueError as error:
        raise Wrong(str(error)) from error  # a number of thousands of digits
    _check(value, 0)
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise Wrong(f"the key {key[:60]!r} stands twice")
        made[key] = value
    return made


def _refuse_constant(word: str) -> Any:
    raise Wrong(f"{word} is no number of JSON")


def _check(value: Any, depth: int) -> None:
    """Refuse what JSON does not hold: TOML has dates."""
    if depth > _DEEPEST:
        raise Wrong(f"it nests deeper than {_DEEPEST} levels")
    if type(value) is dict:
        for each in value.values():
            _check(each, depth + 1)
    elif type(value) is list:
        for each in value:
            _check(each, depth + 1)
    elif value is not None and type(value) not in (str, int, float, bool):
        raise Wrong(f"{value} is a {type(value).__name__}: write it as text, in quotes")
