"""What can be set for choosing functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from portico.functions import FunctionManual
from portico.selection.fusion import Ranking
from portico.selection.words import function_text

__all__ = ["SelectionOptions"]

_RANKINGS = ("fused", "lexical", "vector")


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """How functions are chosen.

    >>> SelectionOptions(limit=3, always=("Clock-Now",)).ranking
    'fused'

    ``limit`` is how many may be offered; those named in ``always`` are offered besides. ``minimum_score`` leaves out
    what scores less, also where there would be room; a `Selection` shows the scores. ``ranking`` "lexical" compares
    words and needs neither store nor embeddings, "vector" compares vectors, "fused" does both. ``function_text`` makes
    of a manual the text that is searched. Raises ``ValueError`` for a number or a word that means nothing.
    """

    limit: int = 8
    always: Sequence[str] = ()
    minimum_score: float | None = None
    ranking: Ranking = "fused"
    function_text: Callable[[FunctionManual], str] = function_text

    def __post_init__(self) -> None:
        if isinstance(self.always, str):
            raise TypeError(f"always is a sequence of names, not the string {self.always!r}")
        object.__setattr__(self, "always", tuple(self.always))
        if self.limit < 0:
            raise ValueError(f"limit is how many functions may be offered, at least 0, not {self.limit}")
        if self.ranking not in _RANKINGS:
            raise ValueError(f"ranking is one of {', '.join(_RANKINGS)}, not {self.ranking!r}")
        if self.minimum_score is not None and self.minimum_score != self.minimum_score:
            raise ValueError("minimum_score is not a number")
