"""Settings files: YAML, TOML and JSON to plain data, with bounds."""

from __future__ import annotations

import json
import math
import tomllib
from typing import Any

import yaml

_DEEPEST = 64
_SHOWN = 200
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PromptInvalid(Exception):
    """A prompt cannot be used: the reason, with the place in the file where it has one."""


def read_document(text: str, kind: str) -> Any:
    """Return the value of a document; ``kind`` is ``yaml``, ``toml`` or ``json``. Raises `PromptInvalid`."""
    try:
        match kind:
            case "toml":
                value: Any = tomllib.loads(text)
            case "json":
                value = json.loads(text)
            case _:
                value = _read_yaml(text)
    except (ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:_SHOWN]
        raise PromptInvalid(f"this is not {kind.upper()}: {reason}") from error
    except RecursionError:
        raise PromptInvalid(f"it nests deeper than {_DEEPEST} levels") from None
    _require_json(value, 0)
    return value


def _read_yaml(text: str) -> Any:
    """Read YAML without aliases: repeated without bound, they make a small file a large value."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise PromptInvalid(f"line {event.start_mark.line + 1}: aliases (*{event.anchor:.60}) are not read")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise PromptInvalid(f"line {event.start_mark.line + 1}: it nests deeper than {_DEEPEST} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is a safe one


def _require_json(value: Any, depth: int) -> None:
    """Refuse what JSON does not hold: YAML and TOML have dates, infinite numbers and keys that are no text."""
    if depth > _DEEPEST:
        raise PromptInvalid(f"it nests deeper than {_DEEPEST} levels")
    if type(value) is dict:
        for key, inner in value.items():
            if type(key) is not str:
                raise PromptInvalid(f"the key {str(key)[:_SHOWN]} is a {type(key).__name__}: write it in quotes")
            _require_json(inner, depth + 1)
    elif type(value) is list:
        for inner in value:
            _require_json(inner, depth + 1)
    elif (type(value) is float and not math.isfinite(value)) or type(value) not in (
        *(str, int, float, bool),
        type(None),
    ):
        raise PromptInvalid(f"{str(value)[:_SHOWN]} is a {type(value).__name__}: write it as text, in quotes")
