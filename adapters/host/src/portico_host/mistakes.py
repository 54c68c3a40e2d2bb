"""What is wrong in a configuration, said so that a person can mend it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from portico.errors import ConfigurationError, nearest

__all__ = ["Mistake", "SettingsInvalid", "unknown_word"]

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
    """Settings are wrong; ``mistakes`` are all of them, the text lists each on a line of its own."""

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
