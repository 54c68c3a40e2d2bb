"""Values that did not come from the file: text of the environment, and what the application overrides."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

__all__ = ["Given", "overriding", "parsed"]

_MAXIMUM_TEXT = 65_536


class Given(str):
    """A string from outside the file; its ``origin`` says from where.

    Paths in it are relative to the working directory, not to the file's folder. With ``textual`` set it may
    stand for another type (the environment has text only) and is read as TOML where the setting is not a string.
    """

    origin: str
    textual: bool

    def __new__(cls, text: str, origin: str, *, textual: bool) -> Given:
        """Make one of ``text``."""
        made = super().__new__(cls, text)
        made.origin = origin
        made.textual = textual
        return made


def overriding(value: Any) -> Any:
    """Mark every string in an override as one."""
    if isinstance(value, Given):
        return value
    if isinstance(value, str):
        return Given(value, "override", textual=False)
    if isinstance(value, Mapping):
        return {key: overriding(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [overriding(part) for part in value]
    return value


def parsed(value: Any) -> Any:
    """Read text of the environment as one TOML value; anything else, and what is not TOML, stays as it is."""
    if not isinstance(value, Given) or not value.textual or len(value) > _MAXIMUM_TEXT:
        return value
    try:
        document = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        return value
    # A line break could smuggle in a second key.
    return _marked(document["value"], value.origin) if list(document) == ["value"] else value


def _marked(value: Any, origin: str) -> Any:
    if isinstance(value, str):
        return Given(value, origin, textual=False)
    if isinstance(value, dict):
        return {key: _marked(part, origin) for key, part in value.items()}
    if isinstance(value, list):
        return [_marked(part, origin) for part in value]
    return value
