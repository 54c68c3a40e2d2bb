"""The search of a folder: words and vectors, fused."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote_from_bytes

import numpy as np

from portico.errors import ConfigurationError, UnsupportedOption
from portico.plugins import Services, run_together
from portico.ports import EmbeddingGenerator, HybridSearch, JobQueue, Runner, VectorStore
from portico.search import (
    Filter,
    SearchCapabilities,
    SearchConnector,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
    VectorMatch,
    Vectors,
)
from portico_documents.catalogue import CatalogueDamaged, in_thread
from portico_documents.conditions import FILTERS, to_sql
from portico_documents.config import DocumentsSettings, Place
from portico_documents.index import FolderIndex
from portico_documents.lexicon import LexicalScores, Lexicon, Numbers, Scores, score_words
from portico_documents.quotes import line_now
from portico_documents.scan import COLUMNS, is_whole
from portico_documents.terms import query_terms
from portico_documents.vector_mirror import VectorMirror, as_rows

_PAGE = 500


@dataclass(frozen=True, slots=True)
class DocumentHit:
    """A passage found. ``path`` is relative to the folder, with ``/``; lines count from 1, as do pages.

    ``score`` decides the order: ``lexical`` (the part of the query's weight that the words reach) and
    ``vector`` (the cosine), weighed. All three are about 0 for nothing in common and at most 1.
    ``line`` and ``end_line`` are the page where there are pages only. ``changed`` says that the passage stands in its
    file no more, which ``text`` then says instead of it.
    """

    text: str
    path: str
    headings: tuple[str, ...]
    line: int
    end_line: int
    page: int | None
    score: float
    lexical: float
    vector: float
    link: str
    changed: bool = False

    @property
    def name(self) -> str:
        """What to call it: the path, then the headings that it stands under."""
        return " › ".join((self.path, *self.headings))


def link_to(path: Path, line: int, page: int | None) -> str:
    """Return the ``file:`` address of a place in a file.

    Every byte of the name survives, whatever its encoding: what is not plain is percent-encoded.

    >>> link_to(Path("/docs/a b.md"), 12, None)
    'file:///docs/a%20b.md#L12'
    >>> link_to(Path("/docs/a.pdf"), 3, 3)
    'file:///docs/a.pdf#page=3'
    """
    name = os.fsencode(path.as_posix())
    # A Windows drive ("C:/docs") has no slash in front.
    slash = "" if name.startswith(b"/") else "/"
    place = f"page={page}" if page is not None else f"L{line}"
    return f"file://{slash}{quote_from_bytes(name, safe='/:')}#{place}"


class Ranked(NamedTuple):
    """A passage by its number, with its scores."""

    number: int
    score: float
    lexical: float
    vector: float


def find_allowed(connection: sqlite3.Connection, filter: Filter) -> Numbers:
    """Return the numbers of all passages that pass a filter."""
    condition, values = to_sql(filter)
    rows = connection.execute(
        f"SELECT number FROM passages JOIN files ON files.id = file WHERE {condition}", values
    ).fetchall()
    return np.array([number for (number,) in rows], dtype=np.int64)


def look_up_numbers(connection: sqlite3.Connection, column: str, values: Sequence[str | int]) -> dict[str, int]:
    """Return ids of passages with their numbers, looked up by the column ``id`` or ``number``."""
    found: dict[str, int] = {}
    for start in range(0, len(values), _PAGE):
        page = values[start : start + _PAGE]
        marks = ", ".join("?" * len(page))
        found.update(connection.execute(f"SELECT id, number FROM passages WHERE {column} IN ({marks})", page))
    return found


def load_hits(connection: sqlite3.Connection, place: Place, ranked: Sequence[Ranked]) -> list[DocumentHit]:
    """Return passages with their texts and places, in the order given; raise ``CatalogueDamaged`` for a damaged one.

    Each is compared with its file, where it may have moved to other lines.
    """
    single, there = place.root.is_file(), place.root.exists()
    query = (
        f"SELECT line, end_line, page, files.hash, files.size, {COLUMNS} FROM passages JOIN files ON files.id = file"
        " WHERE number = ?"
    )
    read: dict[Path, str | None] = {}
    found: list[DocumentHit] = []
    for number, score, lexical, vector in ranked:
        row = connection.execute(query, (number,)).fetchone()
        if row is None or not is_whole(row[5:]):
            raise CatalogueDamaged.of(place.catalogue)
        line, end_line, page, hash, size, path, shown, *_, headings, text = row
        file = place.root if single else place.root / os.fsdecode(path)
        now = line_now(file, read, hash=hash, size=size, text=text, line=line) if there else line
        if changed := isinstance(now, str):
            text, now = now, line
        end_line += now - line
        link, under = link_to(file, now, page), tuple(json.loads(headings))
        found.append(DocumentHit(text, shown, under, now, end_line, page, score, lexical, vector, link, changed))
    return found


_BALANCE = 0.4
_ALL_ALIKE = 0.9
_LEAST_TRUST = 0.02
_BEST = 10


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each half counts; they sum to 1, so that what is perfect in both scores 1.

    >>> Weights(0.5, 0.5).fuse(np.array([1.0, 0.0]), np.array([0.5, -0.25])).tolist()
    [0.75, 0.0]
    """

    lexical: float
    vector: float

    def fuse(self, lexical: Scores, vector: Scores) -> Scores:
        """Return the fused scores; a vector that points away counts as none."""
        return self.lexical * lexical + self.vector * np.maximum(vector, 0.0)


LEXICAL = Weights(1.0, 0.0)
VECTOR = Weights(0.0, 1.0)


def weights_for(idf: float, best: float, background: float = 0.0, agreement: float = 1.0) -> Weights:
    """Return the weights for a query by what each half knows of it.

    The scores are summed, not their ranks: a sum of ranks puts what one half finds perfect behind what is mediocre
    in both. Words count by what they weigh, ``idf`` in sum, and by the part of that which the ``best`` passage reaches:
    a long query, or one of rare words that stand together somewhere, says much by them.

    Vectors count by how well they tell texts apart for this query. ``background`` is its mean cosine with passages that
    have nothing to do with it: near 0 where the model knows the words, high where all texts are alike to it, as those
    in a language that it has not learnt. ``agreement`` says by how many standard deviations the cosines of the best
    by words lie above that: a model that knows anything of the query puts them at least one above.

    On 16 collections, of prose, code, identifiers, paraphrases and six languages, this was at most 0.01 of nDCG@10
    behind the better half, with any balance from 0.25 to 0.4, and at most 0.021 where the cosines were dealt out by
    chance; without ``agreement`` that lost 0.134 (`python -m tests.eval retrieval` measures any collection).

    >>> weights_for(0.0, 0.0)
    Weights(lexical=0.0, vector=1.0)
    >>> round(weights_for(10.0, 0.5).lexical, 3), round(weights_for(10.0, 0.5, 0.4, 0.5).lexical, 3)
    (0.667, 0.917)
    """
    trust = (1 - min(max(background, 0.0), _ALL_ALIKE)) ** 2 * min(max(agreement, _LEAST_TRUST), 1.0)
    lexical = _BALANCE * idf * best / trust
    return Weights(lexical / (lexical + 1), 1 / (lexical + 1))


_FIRST_DEPTH = 50
_LAST_DEPTH = 6_400
# Stores add up a product in different orders: the last digits must not decide between passages of one text.
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched for, and what was found at first.

    Without a vector, as for a text without any meaning, words decide alone. ``filter`` is what the store applies, and
    ``allowed`` are the passages that pass, where they must be known here. ``nearest`` are the best by their vectors.
    """

    text: str
    vector: Vectors | None
    filter: Filter | None
    allowed: Numbers | None
    words: LexicalScores
    nearest: Sequence[VectorMatch]


def first_depth(count: int, weights: Weights | None) -> int:
    """Return how many of the best by each half are compared at first; words alone need no more than are asked for."""
    return count if weights is not None and not weights.vector else max(_FIRST_DEPTH, 2 * count, _BEST)


async def rank_here(
    connection: sqlite3.Connection, mirror: VectorMirror, asked: Question, count: int, weights: Weights | None
) -> list[Ranked]:
    """Return the ``count`` best passages by the weighed sum of both halves, best first.

    Candidates are the best of each half, as many as it takes: a passage in neither list cannot reach more than
    the weighed sum of both lists' last scores, and once ``count`` candidates reach that, they are the best of
    all (Fagin's threshold algorithm). The lists stop growing at 6,400.
    """
    words, nearest = asked.words, asked.nearest
    depth = first_depth(count, weights)
    while True:
        best = words.best(depth)
        numbers, cosines = await _cosines(connection, mirror, asked, nearest, words.numbers[best])
        lexical = words.of(numbers)
        if weights is None:
            weights = await _weigh(connection, mirror, asked, numbers, cosines)
        fused = weights.fuse(lexical, cosines)
        order = np.lexsort((numbers, -fused))[:count]
        order = order[fused[order] > 0.0]
        lexical_floor = words.scores[best[-1]] if len(best) == depth else 0.0
        cosine_floor = max(0.0, nearest[-1].score) if len(nearest) >= depth else 0.0
        floor = weights.lexical * lexical_floor + weights.vector * cosine_floor
        if floor <= 0.0 or depth >= _LAST_DEPTH or (len(order) == count and fused[order[-1]] >= floor):
            return [
                Ranked(int(numbers[row]), float(fused[row]), float(lexical[row]), float(cosines[row]))
                for row in order.tolist()
            ]
        depth *= 4
        if asked.vector is not None:
            [nearest] = await mirror.store.search(mirror.namespace, asked.vector, top=depth, filter=asked.filter)


async def _weigh(
    connection: sqlite3.Connection, mirror: VectorMirror, asked: Question, numbers: Numbers, cosines: Scores
) -> Weights:
    """Return the weights for a question; the passages by ``numbers``, with their cosines, have the best by words."""
    words = asked.words
    best = words.numbers[words.best(_BEST)]
    known = words.idf, float(words.scores.max(initial=0.0))
    if asked.vector is None or not len(best):
        return weights_for(*known)
    some, rows = await mirror.sample(connection)
    others = rows[~np.isin(some, best)]
    if len(others) < _BEST:  # too few to tell
        return weights_for(*known)
    background = others @ as_rows(asked.vector)[0]
    mean, deviation = float(background.mean()), float(background.std())
    above = float(cosines[np.isin(numbers, best)].mean()) - mean
    return weights_for(*known, mean, above / deviation if deviation else 1.0)


async def _cosines(
    connection: sqlite3.Connection, mirror: VectorMirror, asked: Question, nearest: Sequence[VectorMatch], best: Numbers
) -> tuple[Numbers, Scores]:
    """Return the numbers of the best of both halves, with their cosines."""
    cosines = {match.id: match.score for match in nearest}

    def look_up() -> tuple[dict[str, int], dict[str, int]]:
        numbers = look_up_numbers(connection, "id", list(cosines))
        if asked.allowed is not None:
            inside = set(asked.allowed.tolist())
            numbers = {id: number for id, number in numbers.items() if number in inside}
        others = sorted(set(best.tolist()) - set(numbers.values()))
        return numbers, look_up_numbers(connection, "number", others)

    numbers, of_words = await in_thread(look_up)
    if asked.vector is not None and of_words:
        records, vectors = await mirror.store.get(mirror.namespace, list(of_words))
        if vectors is not None:
            products = as_rows(vectors) @ as_rows(asked.vector)[0]
            cosines.update(zip((record.id for record in records), products.tolist(), strict=True))
    found = numbers | of_words
    every = [round(cosines.get(id, 0.0), _DIGITS) for id in found]
    return np.array(list(found.values()), dtype=np.int64), np.array(every, dtype=np.float64)


_MORE = 16


def hybrid_of(store: VectorStore) -> HybridSearch:
    """Return a store's search by words and vectors; ``ConfigurationError`` for one that has none."""
    hybrid = store.hybrid
    if hybrid is None:
        raise ConfigurationError(
            f'The vector store {store.name!r} does not find by words, which `lexical = "store"` asks of it. Leave '
            "`lexical` out of the source: the index then finds words itself. Or set `use` in [vectors] to a store with "
            "hybrid search, such as postgres."
        )
    return hybrid


async def rank_in_store(
    connection: sqlite3.Connection, mirror: VectorMirror, asked: Question, count: int, weights: Weights | None
) -> list[Ranked]:
    """Return the ``count`` best passages as the store ranks them, best first.

    More is asked for where some of what it gives does not count: passages that the catalogue has not, as those of an
    update under way, and those that a filter leaves out which the store cannot apply.
    """
    hybrid = hybrid_of(mirror.store)
    allowed = None if asked.allowed is None else set(asked.allowed.tolist())
    depth = count + _MORE
    while True:
        found = await hybrid.search(
            mirror.namespace,
            " ".join(query_terms(asked.text)),
            asked.vector,
            top=depth,
            share=None if weights is None else weights.lexical,
            filter=asked.filter,
        )
        numbers = await in_thread(look_up_numbers, connection, "id", [match.id for match in found])
        ranked = [
            Ranked(numbers[match.id], match.score, match.lexical, match.vector)
            for match in found
            if match.id in numbers and match.score > 0.0 and (allowed is None or numbers[match.id] in allowed)
        ]
        if len(ranked) >= count or len(found) < depth or depth >= _LAST_DEPTH:
            return ranked[:count]
        depth = min(depth * 4, _LAST_DEPTH)


class DocumentsSearch(SearchConnector[DocumentHit]):
    """Search a folder, or a file, by words and by meaning at once.

    >>> search = DocumentsSearch(DocumentsSettings(path=Path("docs")), services)  # doctest: +SKIP
    >>> results = await search.get_text_search_results("How are filters declared?")  # doctest: +SKIP
    >>> [result.link async for result in results]  # doctest: +SKIP
    ['file:///home/me/docs/filters.md#L12', ...]

    The index is built by the first search, if not before by ``index.update()``; an outdated one is searched as it
    is. Nothing is opened before the first call. A search reads one state of the index, also during an update.
    Raises ``StoreError`` for an index that cannot be read and what the embedding generator and store raise.
    """

    name = "documents"
    capabilities = SearchCapabilities(filter=FILTERS, local=True)
    index: FolderIndex

    def __init__(self, settings: DocumentsSettings, services: Services) -> None:
        self._place = place = Place.of(settings)

        # Functions without this object: where it is dropped, the connections for reading are closed at once.
        @cache
        def mirror() -> VectorMirror:
            embeddings, store = services.get(EmbeddingGenerator), services.get(VectorStore)
            words = settings.lexical == "store"
            if words:
                hybrid_of(store)
            return VectorMirror(store, embeddings, place.namespace(embeddings.model), words=words)

        def queue() -> JobQueue | None:
            return services.get(Runner).jobs if services.names(Runner) else None

        self._mirror = mirror
        self._lexicon: Lexicon | None = None
        self.index = FolderIndex(settings, place, mirror, queue)

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[DocumentHit]:
        """Rank the passages and leave out the first ``skip``."""
        hits = await self.rank(query, options.skip + options.top, filter=options.filter)
        return SearchResults(hits[options.skip :])

    def to_text(self, record: DocumentHit) -> str:
        """Return the passage's text."""
        return record.text

    def to_result(self, record: DocumentHit) -> TextSearchResult:
        """Return the passage named by path and headings, with a link to its line or page."""
        return TextSearchResult(record.text, name=record.name, link=record.link)

    async def rank(
        self, query: str, count: int, *, filter: Filter | None = None, weights: Weights | None = None
    ) -> list[DocumentHit]:
        """Return the ``count`` best passages by the weighed sum of both halves, best first.

        Without ``weights`` the query decides how much its words count (see `weights_for`), or the store where that
        finds by words.
        """
        await self.index.prepare()
        mirror = self._mirror()
        accepted = _filter_for_store(filter, mirror.store)

        def read(opened: ExitStack) -> tuple[sqlite3.Connection, Numbers | None, LexicalScores]:
            connection = opened.enter_context(self.index.readers.lend())
            allowed = None
            if filter is not None and (accepted is None or not mirror.words):
                allowed = find_allowed(connection, filter)
            self._lexicon = lexicon = Lexicon.of(connection, self._lexicon)
            terms = [] if mirror.words else query_terms(query)
            return connection, allowed, score_words(connection, terms, allowed, lexicon)

        async def find() -> tuple[Vectors | None, list[VectorMatch]]:
            [question] = as_rows(await mirror.embeddings.embed([query], purpose="query"))
            vector = Vectors(question, 1, len(question)) if question.any() else None
            if vector is None or mirror.words or (weights is not None and not weights.vector):
                return vector, []
            depth = first_depth(count, weights)
            [nearest] = await mirror.store.search(mirror.namespace, vector, top=depth, filter=accepted)
            return vector, nearest

        with ExitStack() as opened:
            halves: list[Any] = await run_together([in_thread(read, opened), find()])
            (connection, allowed, words), (vector, nearest) = halves
            asked = Question(query, vector, accepted, allowed, words, nearest)
            ranked = await (rank_in_store if mirror.words else rank_here)(connection, mirror, asked, count, weights)
            return await in_thread(load_hits, connection, self._place, ranked)


def _filter_for_store(filter: Filter | None, store: VectorStore) -> Filter | None:
    """Return the filter if the store can apply it; what it cannot, the catalogue applies to what it finds."""
    try:
        store.filter_support.check(filter, f"Vector store {store.name!r}")
    except UnsupportedOption:
        return None
    return filter
