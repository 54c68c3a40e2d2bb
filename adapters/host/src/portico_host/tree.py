"""Merge the file, the environment and the overrides into one tree, and record the origin of each value."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from portico.ports import PORTS
from portico_host.problems import Key, Problem

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


def parse(value: Any) -> Any:
    """Read text of the environment as one TOML value; anything else, and what is not TOML, stays as it is."""
    if not isinstance(value, Given) or not value.textual or len(value) > _MAXIMUM_TEXT:
        return value
    try:
        document = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        return value
    # A line break could smuggle in a second key.
    return _mark(document["value"], value.origin) if list(document) == ["value"] else value


def _mark(value: Any, origin: str) -> Any:
    if isinstance(value, str):
        return value if isinstance(value, Given) else Given(value, origin, textual=False)
    if isinstance(value, Mapping):
        return {key: _mark(part, origin) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_mark(part, origin) for part in value]
    return value


PREFIX = "PORTICO_"
_MAXIMUM_DEPTH = 50
_MANY = frozenset(port.table for port in PORTS if port.many)
NONE = "none"
"""As the choice of a port that a kernel can do without: do without it."""


@dataclass(slots=True)
class Tree:
    """A tree of raw values; ``origins`` has the file, the variable or "override" of every leaf."""

    file: str
    values: dict[str, Any] = field(default_factory=dict, repr=False)
    origins: dict[Key, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add_file(self, values: Mapping[str, Any]) -> None:
        """Merge the tables of the file."""
        self._merge(self.values, values, (), self.file)

    def add_environment(self, environ: Mapping[str, str]) -> None:
        """Merge every variable ``PORTICO_TABLE__…__KEY``; others, such as PORTICO_DISABLE, are no settings."""
        for variable in sorted(environ):
            if variable.startswith(PREFIX) and "__" in variable:
                self._add_variable(variable, environ[variable])

    def add_overrides(self, overrides: Mapping[str, Any]) -> None:
        """Merge what the application sets; None leaves a setting as it is."""
        self._merge(self.values, _mark(overrides, "override"), (), "override")

    def _add_variable(self, variable: str, text: str) -> None:
        words = variable.removeprefix(PREFIX).split("__")
        if not all(words) or len(words) > _MAXIMUM_DEPTH:
            self.add_problem((), "is not of the form PORTICO_TABLE__KEY.", variable)
            return
        node: Any = self.values
        key: list[str] = []
        for word in words:
            key.append(_known_key(node, word))
            node = node.get(key[-1], {}) if isinstance(node, dict) else {}
        nested: Any = Given(text, f"env {variable}", textual=True)
        for part in reversed(key):
            nested = {part: nested}
        self._merge(self.values, nested, (), variable)

    def _merge(self, into: dict[str, Any], values: Mapping[str, Any], base: Key, place: str) -> None:
        for name, value in values.items():
            if value is None:
                continue
            key = (*base, str(name))
            present = into.get(str(name))
            if isinstance(value, Mapping):
                if len(key) > _MAXIMUM_DEPTH:
                    self.add_problem(key[:3], f"the tables are more than {_MAXIMUM_DEPTH} deep.", place)
                    continue
                if not isinstance(present, dict) or self._is_other_source(key, present, value):
                    self._forget(key)
                    present = into[str(name)] = {}
                if not value:
                    self.origins.setdefault(key, place)
                self._merge(present, value, key, place)
            else:
                self._forget(key)
                into[str(name)] = value
                self.origins[key] = place

    def _is_other_source(self, key: Key, present: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
        """Whether a named entry is given to another plugin, which cannot know the settings of the former."""
        if len(key) != 2 or key[0] not in _MANY:
            return False
        return "use" in value and "use" in present and value["use"] != present["use"]

    def _forget(self, key: Key) -> None:
        for known in [known for known in self.origins if known[: len(key)] == key]:
            del self.origins[known]

    def add_problem(self, key: Key, cause: str, place: str = "") -> None:
        """Note a mistake; without ``place`` it is where the key comes from."""
        place = place or origin_of(self.origins, key) or self.file
        self.problems.append(Problem(cause, key=key, place=place))


def origin_of(origins: Mapping[Key, str], key: Key) -> str | None:
    """Return the origin of the known key that shares most with ``key``, None when none shares its table."""
    for length in range(len(key), 0, -1):
        for known, origin in origins.items():
            if known[:length] == key[:length]:
                return origin
    return None


def _known_key(node: Any, word: str) -> str:
    """Find the key that a word of a variable means: variables know neither small letters nor hyphens."""
    wanted = word.lower()
    if not isinstance(node, dict) or wanted in node:
        return wanted
    return next((key for key in node if key.lower().replace("-", "_") == wanted), wanted)
