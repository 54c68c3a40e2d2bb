"""Which functions a model is offered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Reason: TypeAlias = Literal["always", "all", "chosen", "beyond the limit", "below the minimum score"]


@dataclass(frozen=True, slots=True)
class Considered:
    """A function and how well it fits the context: ``score`` is fused of ``lexical`` and ``vector``.

    ``vector`` is the best cosine, -1 to 1, with any of the context's requests; ``lexical`` is the best share of a
    request's words, weighed by their rarity, that the function's text has, 0 to 1. All three are 0 where nothing had
    to be measured. ``reason`` says why it is offered ("always", "all", "chosen") or left out.
    """

    name: str
    reason: Reason
    score: float = 0.0
    lexical: float = 0.0
    vector: float = 0.0


@dataclass(frozen=True, slots=True)
class Selection:
    """The functions offered, those that always are first, then the best first; and what was left out.

    ``left_out`` has those that came nearest, the best first, each with its reason; ``considered`` counts all functions
    that there were. ``requests`` are what the context was taken to ask for. ``absent`` names those that are always
    offered, and were not among the functions that there were. ``embedded`` counts the texts that were embedded for it.

    >>> Selection((Considered("Mail-Send", "chosen", 0.7),), considered=9).names
    ('Mail-Send',)
    """

    offered: tuple[Considered, ...]
    left_out: tuple[Considered, ...] = ()
    considered: int = 0
    requests: tuple[str, ...] = ()
    embedded: int = 0
    absent: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the functions offered, in order."""
        return tuple(each.name for each in self.offered)

    def keep(self, names: tuple[str, ...], limit: int) -> Selection:
        """Offer these functions always, and besides them the ``limit`` best of those chosen."""
        others = [each for each in self.offered if each.name not in names]
        always = [Considered(name, "always") for name in names] + [each for each in others if each.reason == "always"]
        chosen = [each for each in others if each.reason != "always"]
        left_out = [replace(each, reason="beyond the limit") for each in chosen[limit:]]
        left_out += [each for each in self.left_out if each.name not in names]
        return replace(self, offered=(*always, *chosen[:limit]), left_out=tuple(left_out))


@dataclass(frozen=True, slots=True)
class FunctionsOffered:
    """There were more functions than a model sees; these are offered, and no others can be called.

    It comes before the model is asked, where a function selector is at work and leaves something out.
    """

    selection: Selection
