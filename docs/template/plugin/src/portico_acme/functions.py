"""The function plugin: typed methods that planners, models, templates and plans can call."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from portico import FunctionPlugin, Services, function
from portico.errors import ConfigurationError, nearest

from portico_acme.config import AcmeSettings

__all__ = ["AcmeFunctions", "AcmeTerm"]

_GLOSSARY = {
    "anvil": "A block of iron on which a hammer shapes metal.",
    "hammer": "A tool with a heavy head that strikes.",
    "forge": "A hearth in which metal is heated until a hammer can shape it.",
}


@dataclass(frozen=True, slots=True)
class AcmeTerm:
    """A word of the glossary. Models and plans are told its fields, from these types."""

    word: str
    meaning: str
    see_also: list[str]


class AcmeFunctions:
    """Make a plugin of functions that explain the words of a glossary.

    >>> source = AcmeFunctions(AcmeSettings(), None)
    >>> plugin = asyncio.run(source.load("glossary"))
    >>> [function.full_name for function in plugin]
    ['glossary-define', 'glossary-words']
    """

    def __init__(self, settings: AcmeSettings, services: Services | None) -> None:
        self._settings = settings

    async def load(self, name: str) -> FunctionPlugin:
        """Return the plugin ``name``. Raises ``ConfigurationError`` for a file that cannot be read."""
        path = self._settings.path
        glossary = _GLOSSARY if path is None else await asyncio.to_thread(_read, path)
        return FunctionPlugin.of(_Glossary(glossary), name)


class _Glossary:
    """Explains words."""

    def __init__(self, glossary: Mapping[str, str]) -> None:
        self._glossary = {word.casefold(): meaning for word, meaning in glossary.items()}

    @function
    def define(self, word: str) -> AcmeTerm:
        """Tell what a word means.

        Args:
            word: One word of the glossary, in upper or lower case.
        """
        known = word.strip().casefold()
        if known not in self._glossary:
            close = nearest(known, list(self._glossary))
            raise LookupError(f"the glossary has no {word!r}" + (f"; it has {', '.join(close)}" if close else ""))
        meaning = self._glossary[known]
        mentioned = set(re.findall(r"\w+", meaning.casefold())) & self._glossary.keys() - {known}
        return AcmeTerm(known, meaning, sorted(mentioned))

    @function
    def words(self, beginning: str = "") -> list[str]:
        """List the words of the glossary.

        Args:
            beginning: Only words that begin so.
        """
        return sorted(word for word in self._glossary if word.startswith(beginning.casefold()))


def _read(path: Path) -> dict[str, str]:
    try:
        glossary = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"The glossary {path} cannot be read: {error}") from error
    if not isinstance(glossary, dict) or not all(isinstance(meaning, str) for meaning in glossary.values()):
        raise ConfigurationError(f"The glossary {path} must be one JSON object of words and their meanings.")
    return glossary
