"""The selector that goes by the conversation: by the words of functions and by their vectors, fused."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING

from portico.errors import FunctionNotFound
from portico.functions import FunctionManual
from portico.naming import find_name
from portico.selection.fusion import Fused, RequestScores, fuse
from portico.selection.known_functions import KnownFunctions, RecentFunctions
from portico.selection.lexical import LexicalScores
from portico.selection.nearest import Near
from portico.selection.options import SelectionOptions
from portico.selection.records import LEASE, FunctionRecords
from portico.selection.requests import requests_in
from portico.selection.selection import Changes, Considered, Reason, Selection
from portico.texts import several_texts

if TYPE_CHECKING:
    from portico.ports.embedding_generator import EmbeddingGenerator
    from portico.ports.vector_store import VectorStore

__all__ = ["ContextualSelector"]

_REMEMBERED = 8
_MOST_REQUESTS = 16
_MOST_CHARACTERS = 8_000
_LOOKED_AT = 24
"""How many functions of each request are looked at, by words and by vectors, where few are offered."""


class ContextualSelector:
    """Choose the functions that a conversation is about, of many: the FunctionSelector port.

    >>> import asyncio
    >>> from portico import Function
    >>> def forecast(city: str) -> str:
    ...     '''Tell the weather of a city.'''
    >>> def send_mail(to: str, text: str) -> str:
    ...     '''Send a mail.'''
    >>> manuals = [Function.of(each).manual for each in (forecast, send_mail)]
    >>> selector = ContextualSelector(options=SelectionOptions(limit=1, ranking="lexical"))
    >>> asyncio.run(selector.select(manuals, ["What will the weather be in Oslo?"])).names
    ('forecast',)

    The vectors lie in ``store``, in namespaces whose names begin with ``namespace``, and are kept in step with the
    functions, before anything is chosen: see `FunctionRecords`. Several selectors and processes may share a
    namespace; one of its own for each saves their looking past the others' functions. ``remembered`` is how many sets
    of functions are kept there: with 1, functions that are not given any more are removed with the next
    selection; with more, parts of a catalogue can be given in turn. ``ranking`` "lexical" needs no store and no
    embeddings.

    Only functions that share a word with the context, or have a vector on its side, are ever chosen: there may be fewer
    than ``limit``. Of a long context the last 8,000 characters count. A name in ``always`` that none of the functions
    given has is passed over, for a turn may offer a part of a catalogue; the selection says so in ``absent``. Raises
    ``FunctionNotFound`` for one that several have, and as the port says; a store that fails is an error also where
    words alone would have found something.
    """

    name = "contextual"

    def __init__(
        self,
        store: VectorStore | None = None,
        embeddings: EmbeddingGenerator | None = None,
        *,
        namespace: str = "functions",
        options: SelectionOptions | None = None,
        remembered: int = _REMEMBERED,
        clock: Callable[[], float] = time.time,
        lease: float = LEASE,
    ) -> None:
        if remembered < 1:
            raise ValueError(f"remembered is how many sets of functions are kept, at least 1, not {remembered}")
        self.options = options or SelectionOptions()
        self._recent = RecentFunctions(self.options.function_text, keep=remembered)
        self._records: FunctionRecords | None = None
        if self.options.ranking != "lexical":
            if store is None or embeddings is None:
                raise ValueError(
                    f"the ranking {self.options.ranking!r} needs a vector store and embeddings; 'lexical' does without"
                )
            self._records = FunctionRecords(store, embeddings, namespace, self._recent, clock=clock, lease=lease)

    @property
    def limit(self) -> int:
        """How many functions are offered where a caller does not say, besides those that always are."""
        return self.options.limit

    async def select(
        self, functions: Sequence[FunctionManual], context: Sequence[str], *, limit: int | None = None
    ) -> Selection:
        """Choose for a conversation's ``context``: its texts, oldest first."""
        limit = self.options.limit if limit is None else limit
        if limit < 0:
            raise ValueError(f"limit is how many functions may be offered, at least 0, not {limit}")
        known = self._recent.of(functions)
        always, absent = _found(self.options.always, known.manuals)
        offered = tuple(Considered(name, "always") for name in always)
        count = len(known.manuals)
        if self.options.minimum_score is None and count - len(always) <= limit:
            rest = (Considered(name, "all") for name in known.manuals if name not in always)
            return Selection((*offered, *rest), considered=count, absent=absent)
        requests = _requests(context)
        if not requests or not limit:
            return Selection(offered, considered=count, requests=requests, absent=absent)
        ranked, changes = await self._ranked(known, requests, limit + len(always))
        chosen, left_out = self._split([each for each in ranked if each.name not in always], limit)
        return Selection((*offered, *chosen), left_out, count, requests, changes, absent)

    async def aclose(self) -> None:
        """Take back what this selector claims in the store, so that others may remove what nobody needs any more."""
        if self._records is not None:
            await self._records.aclose()

    async def _ranked(self, known: KnownFunctions, requests: Sequence[str], wanted: int) -> tuple[list[Fused], Changes]:
        looked_at = max(_LOOKED_AT, 2 * wanted)
        words = [LexicalScores() for _ in requests]
        if self.options.ranking != "vector":
            words = [known.index.score(request, top=looked_at) for request in requests]
        by_words = [_first(each.scores, looked_at) for each in words]
        cosines: Sequence[Near] = [{} for _ in requests]
        changes = Changes()
        if self._records is not None:
            with self._recent.using(known):
                queries = await self._records.embedded(requests)
                cosines, changes = await self._records.cosines(known, queries, looked_at, by_words)
        candidates = {name for some in (*by_words, *cosines) for name in some}
        words = [_among(candidates, known, request, each) for request, each in zip(requests, words, strict=True)]
        return fuse(list(map(RequestScores, words, cosines)), self.options.ranking), changes

    def _split(self, ranked: Sequence[Fused], limit: int) -> tuple[tuple[Considered, ...], tuple[Considered, ...]]:
        chosen: list[Considered] = []
        left_out: list[Considered] = []
        for each in ranked:
            reason: Reason = "chosen"
            if self.options.minimum_score is not None and each.score < self.options.minimum_score:
                reason = "below the minimum score"
            elif len(chosen) == limit:
                reason = "beyond the limit"
            (chosen if reason == "chosen" else left_out).append(
                Considered(each.name, reason, each.score, each.lexical, each.vector)
            )
        return tuple(chosen), tuple(left_out)


def _found(names: Sequence[str], full_names: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the full names of those that are there, each once, and the others as they are."""
    found: dict[str, None] = {}
    absent = []
    for name in names:
        try:
            found[find_name(name, full_names)] = None
        except FunctionNotFound as error:
            if error.meant:
                raise
            absent.append(name)
    return tuple(found), tuple(absent)


def _requests(context: Sequence[str]) -> tuple[str, ...]:
    """Return what is looked for: the whole context, and besides each of its parts that asks for something."""
    whole = "\n".join(text for text in several_texts(context) if text.strip())[-_MOST_CHARACTERS:]
    parts = requests_in(whole)
    return (whole, *parts[1 - _MOST_REQUESTS :]) if len(parts) > 1 else parts


def _first(scores: Mapping[str, float], count: int) -> list[str]:
    """Return the names of the best; of equal ones, names decide, so that no order of adding does."""
    least = nlargest(count, scores.values())[-1] if len(scores) > count else 0.0
    return sorted((name for name in scores if scores[name] >= least), key=lambda name: (-scores[name], name))[:count]


def _among(names: Collection[str], known: KnownFunctions, request: str, found: LexicalScores) -> LexicalScores:
    """Return what the words say of these functions; they are looked up where not all that score were found."""
    if not found.whole:
        return known.index.score_of(request, names)
    return LexicalScores({name: found.scores[name] for name in names if name in found.scores}, found.greatest)
