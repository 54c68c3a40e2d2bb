"""The kinds of packages that can be begun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from portico_host.typed_words import with_variable

__all__ = ["KINDS", "Kind"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of package: the port that it fills, what the names in it end with, and how it is tried out.

    ``noun`` ends the name of the main class, ``suffix`` that of the distribution. ``attempt`` is a command with
    ``{name}`` where the registered name belongs.
    """

    word: str
    port: str
    noun: str
    attempt: str
    suffix: str = ""

    @property
    def article(self) -> str:
        """What stands before the word in a sentence."""
        return "an" if self.word[0] in "aeiou" else "a"


_SEARCH = 'portico ask "How many pounds does the big anvil weigh?" --source {name}'
_PLAN = 'portico ask "What is this about?" --docs . --planner {name}'
_CHAT = 'portico ask "What is this about?" --docs . --chat {name}'
_FUNCTIONS = with_variable("PORTICO_FUNCTIONS__MINE__USE", "{name}", "portico functions")

KINDS: Mapping[str, Kind] = {
    kind.word: kind
    for kind in (
        Kind("connector", "TextSearch", "Search", _SEARCH),
        Kind("planner", "Planner", "Planner", _PLAN, "-planner"),
        Kind("adapter", "ChatService", "Chat", _CHAT),
        Kind("plugin", "FunctionSource", "Functions", _FUNCTIONS),
    )
}
"""By the word that the command takes."""
