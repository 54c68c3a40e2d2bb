"""One value that does not fit, and how values are named to people."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

__all__ = ["Wrong", "kind_of", "shown"]

_LONGEST = 60


class Wrong(Exception):
    """A value does not fit its setting: what was expected and what came, or a whole ``sentence``."""

    def __init__(self, expected: str = "", got: str = "", *, sentence: str | None = None) -> None:
        self.sentence = sentence if sentence is not None else f"expected {expected}, got {got}."
        super().__init__(self.sentence)


def kind_of(value: object) -> str:
    """Name a value's kind in TOML's words, and nothing of the value."""
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "a boolean"),
        (int, "an integer"),
        (float, "a float"),
        (str, "a string"),
        (Mapping, "a table"),
        ((list, tuple), "an array"),
        (dt.datetime, "a date and time"),
        (dt.date, "a date"),
        (dt.time, "a time"),
        (PurePath, "a path"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), f"a {type(value).__name__}")


def shown(value: Any) -> str:
    """Show a value that is no secret, at most 60 characters of it; only the kind of tables and arrays."""
    kind = kind_of(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = str.__repr__(value)
    elif isinstance(value, int | float):
        try:
            text = repr(value)
        except ValueError:  # Python refuses to print integers of more than 4,300 digits
            return kind
    else:
        return kind
    return f"{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'} ({kind})"
