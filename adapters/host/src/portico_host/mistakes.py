"""Mistakes in a configuration, as sentences for people."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from portico.errors import ConfigurationError, nearest

__all__ = ["Mistake", "SettingsInvalid", "Wrong", "kind_of", "shown", "unknown_word"]

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


_KNOWN_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake: in which file or variable, at which key, and a sentence on it. It never holds a secret."""

    place: str
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.key}: {self.message}" if self.key else f"{self.place}: {self.message}"


class SettingsInvalid(ConfigurationError):
    """Settings are wrong; ``mistakes`` are all of them, the text lists each on its own line."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        if len(self.mistakes) == 1:
            super().__init__(str(self.mistakes[0]))
        else:
            lines = "\n".join(f"  {mistake}" for mistake in self.mistakes)
            super().__init__(f"{len(self.mistakes)} mistakes in the configuration:\n{lines}")


def unknown_word(word: str, known: Iterable[str], what: str) -> str:
    """Say that ``word`` is not known, with the nearest known words, or all when they are few."""
    names = sorted(known)
    close = nearest(word, names)
    if close:
        return f"is not {what}. Nearest: {', '.join(close)}."
    if not names:
        return f"is not {what}; there are none."
    shown = ", ".join(names[:_KNOWN_SHOWN])
    more = f" and {len(names) - _KNOWN_SHOWN} more" if len(names) > _KNOWN_SHOWN else ""
    return f"is not {what}. Known: {shown}{more}."
