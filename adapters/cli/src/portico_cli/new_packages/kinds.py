"""The kinds of packages that can be begun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["KINDS", "Kind"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of package: the port that it fills, what its distribution's name ends with, and how it is tried out.

    ``attempt`` is a command, or lines of `portico.toml`, with ``{name}`` where the registered name belongs.
    """

    word: str
    port: str
    attempt: str
    suffix: str = ""

    @property
    def article(self) -> str:
        """What stands before the word in a sentence."""
        return "an" if self.word[0] in "aeiou" else "a"


KINDS: Mapping[str, Kind] = {
    kind.word: kind
    for kind in (
        Kind("connector", "TextSearch", 'portico ask "How many pounds does the big anvil weigh?" --source {name}'),
        Kind("planner", "Planner", 'portico ask "What is this about?" --docs . --planner {name}', "-planner"),
        Kind("adapter", "ChatService", 'portico ask "What is this about?" --docs . --chat {name}'),
        Kind("plugin", "FunctionSource", "PORTICO_FUNCTIONS__MINE__USE={name} portico functions"),
    )
}
"""By the word that the command takes."""
