"""Mistakes in a configuration, as sentences for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, NamedTuple

from portico.errors import ConfigurationError, nearest

_LONGEST = 60
_KNOWN_SHOWN = 12


class Fault(NamedTuple):
    """One fault in the settings of a service: the key inside them, a sentence, and what mends it if that is known."""

    key: tuple[str, ...]
    sentence: str
    mend: str = ""


class Unfit(Exception):
    """Raw values do not fit a settings class; ``faults`` are all of them."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{'.'.join(fault.key)}: {fault.sentence}" for fault in self.faults))


def unfit(expected: str, got: str) -> Unfit:
    """Return the error for one value."""
    return Unfit([Fault((), f"expected {expected}, got {got}.")])


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake: in which file or variable, at which key, and a sentence. It never holds a secret.

    ``mend`` says what to do, where that is more than to edit the place.
    """

    place: str
    key: str
    message: str
    mend: str = ""

    def __str__(self) -> str:
        parts = (self.place, self.key, f"{self.message} {self.mend}".rstrip())
        return ": ".join(part for part in parts if part)


class SettingsInvalid(ConfigurationError):
    """Settings are wrong; ``mistakes`` are all of them, the text lists each on its own line."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        if len(self.mistakes) == 1:
            super().__init__(str(self.mistakes[0]))
        else:
            lines = "\n".join(f"  {mistake}" for mistake in self.mistakes)
            super().__init__(f"{len(self.mistakes)} mistakes in the configuration:\n{lines}")


def kind_of(value: object) -> str:
    """Name a value's kind in TOML's words, and nothing of the value."""
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "a boolean"),
        (int, "an integer"),
        (float, "a float"),
        (str, "a string"),
        (Mapping, "a table"),
        ((list, tuple), "an array"),
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
    elif isinstance(value, float) or (isinstance(value, int) and abs(value) < 10**_LONGEST):
        text = repr(value)
    else:
        return kind
    return f"{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'} ({kind})"


def unknown_word(word: str, known: Iterable[str], what: str) -> str:
    """Say that ``word`` is not known, with the nearest known words, or all when they are few."""
    names = sorted(known)
    close = nearest(word, names)
    if close:
        return f"is not {what}. Nearest: {', '.join(close)}."
    if not names:
        return f"is not {what}; there are none."
    listed = ", ".join(names[:_KNOWN_SHOWN])
    more = f" and {len(names) - _KNOWN_SHOWN} more" if len(names) > _KNOWN_SHOWN else ""
    return f"is not {what}. Known: {listed}{more}."
