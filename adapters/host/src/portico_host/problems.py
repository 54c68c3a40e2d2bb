"""What is wrong with a configuration or a package, as sentences for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, Literal

from portico.errors import ConfigurationError, PluginNotInstalled, PorticoError, nearest

_LONGEST = 60
_KNOWN_SHOWN = 12

Key = tuple[str, ...]


def write_key(key: Key) -> str:
    """Write a key as TOML has it in a heading."""
    return ".".join(part if part.replace("_", "").replace("-", "").isalnum() else repr(part) for part in key)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that does not work ("error") or is unwise ("warning"): a sentence on it, and one on what mends it.

    A wrong setting has its ``key`` and the ``place`` where it is: a file, a variable or "override". ``subject`` is the
    setting, the package or the service that it is about, and ``error`` what a package raised. It never holds a secret.
    """

    cause: str
    mend: str = ""
    key: Key = ()
    place: str = ""
    subject: str = ""
    severity: Literal["error", "warning"] = "error"
    error: BaseException | None = field(default=None, compare=False, repr=False)

    @property
    def message(self) -> str:
        """The place, the key and the sentence."""
        return ": ".join(part for part in (self.place, write_key(self.key), self.cause) if part)

    def __str__(self) -> str:
        return f"{self.message} {self.mend}".rstrip()


class SettingsInvalid(ConfigurationError):
    """Settings are wrong; ``problems`` are all of them, the text lists each on its own line."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            super().__init__(str(self.problems[0]))
        else:
            lines = "\n".join(f"  {problem}" for problem in self.problems)
            super().__init__(f"{len(self.problems)} mistakes in the configuration:\n{lines}")

    @classmethod
    def of(cls, expected: str, got: str) -> SettingsInvalid:
        """Return the error for one value."""
        return cls([Problem(f"expected {expected}, got {got}.")])


def problems_of(error: PorticoError, subject: str = "configuration") -> list[Problem]:
    """Turn an error of the configuration or of a package into problems, one for each mistake."""
    if isinstance(error, SettingsInvalid):
        problems = [replace(each, subject=write_key(each.key) or each.place) for each in error.problems]
    else:
        cause, dot, mend = str(error).partition(". ") if isinstance(error, PluginNotInstalled) else (str(error), "", "")
        known = (
            error.args[0] if error.args and isinstance(error.args[0], Problem) else Problem(cause + dot.strip(), mend)
        )
        problems = [replace(known, subject=subject, error=error.__cause__)]
    return [replace(each, mend=each.mend or "Correct the configuration.") for each in problems]


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


def show(value: Any) -> str:
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
    more = ", …" if len(names) > _KNOWN_SHOWN else ""
    return f"is not {what}. Known: {', '.join(names[:_KNOWN_SHOWN]) or 'none'}{more}."
