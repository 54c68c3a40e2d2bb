"""The search of a folder: words and vectors, fused."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from portico.errors import UnsupportedFilter
from portico.filter import Filter, check_filter
from portico.ports.embedding_generator import EmbeddingGenerator
from portico.ports.vector_store import VectorStore
from portico.registration import Services
from portico.search import SearchCapabilities, SearchConnector, SearchResults, TextSearchOptions, TextSearchResult
from portico.vectors import Vectors
from portico_documents import catalogue
from portico_documents.conditions import FILTERS, to_sql
from portico_documents.config import DocumentsSettings
from portico_documents.hit import DocumentHit, link_to
from portico_documents.index import FolderIndex
from portico_documents.lexical import LexicalScores, score_words
from portico_documents.place import Place
from portico_documents.ranking import Weights, weights_for
from portico_documents.terms import query_terms
from portico_documents.threads import in_thread
from portico_documents.vector_mirror import VectorMirror, as_rows

__all__ = ["DocumentsSearch"]

_FIRST_DEPTH = 100
_LAST_DEPTH = 6_400
_PAGE = 500


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
    capabilities = SearchCapabilities(filter=FILTERS)
    index: FolderIndex

    def __init__(self, settings: DocumentsSettings, services: Services) -> None:
        self._place = Place.of(settings)
        self._services = services
        self._opened: VectorMirror | None = None
        self.index = FolderIndex(settings, self._place, self._mirror)

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[DocumentHit]:
        """Rank the passages and leave out the first ``skip``."""
        hits = await self.rank(query, options.skip + options.top, filter=options.filter)
        return SearchResults(hits[options.skip :])

    def to_text(self, record: DocumentHit) -> str:
        """Return the passage's text."""
        return record.text

    def to_result(self, record: DocumentHit) -> TextSearchResult:
        """Return the passage named by path and headings, with a link to its line or page."""
        return record.to_result()

    async def rank(
        self, query: str, count: int, *, filter: Filter | None = None, weights: Weights | None = None
    ) -> list[DocumentHit]:
        """Return the ``count`` best passages by the weighed sum of both halves, best first.

        Without ``weights`` the query decides how much its words count (see `weights_for`).

        Candidates are the best of each half, as many as it takes: a passage in neither list cannot reach more than
        the weighed sum of both lists' last scores, and once ``count`` candidates reach that, they are the best of
        all (Fagin's threshold algorithm). The lists stop growing at 6,400.
        """
        await self.index.prepare()
        mirror = self._mirror()
        [question] = as_rows(await mirror.embeddings.embed([query], purpose="query"))
        asked = _Question(
            query,
            Vectors(question, 1, len(question)) if question.any() else None,
            filter,
            _accepted(filter, mirror.store),
        )
        connection = await in_thread(catalogue.connect, self._place.catalogue)
        try:
            with catalogue.store_errors(self._place.catalogue):
                await in_thread(connection.execute, "BEGIN")
                return await self._rank(connection, mirror, asked, count, weights)
        finally:
            await in_thread(connection.close)

    async def _rank(
        self,
        connection: sqlite3.Connection,
        mirror: VectorMirror,
        asked: _Question,
        count: int,
        weights: Weights | None,
    ) -> list[DocumentHit]:
        allowed = None if asked.filter is None else await in_thread(_allowed, connection, asked.filter)
        words = _Words(await in_thread(score_words, connection, query_terms(asked.text), allowed), allowed)
        weights = weights or weights_for(words.scores.idf)
        depth = max(_FIRST_DEPTH, 2 * count)
        while True:
            candidates, cosine_floor = await self._candidates(connection, mirror, asked, words, depth)
            lexical_floor = words.scores.scores[depth - 1] if len(words.scores.scores) >= depth else 0.0
            fused = weights.fuse(candidates.lexical, candidates.cosines)
            order = np.lexsort((candidates.numbers, -fused))[:count]
            order = order[fused[order] > 0.0]
            floor = weights.lexical * lexical_floor + weights.vector * cosine_floor
            if floor <= 0.0 or depth >= _LAST_DEPTH or (len(order) == count and fused[order[-1]] >= floor):
                return await in_thread(_hits, connection, self._place, candidates, fused, order)
            depth *= 4

    async def _candidates(
        self,
        connection: sqlite3.Connection,
        mirror: VectorMirror,
        asked: _Question,
        words: _Words,
        depth: int,
    ) -> tuple[_Candidates, float]:
        """Return the best of both halves with both scores, and the cosine that no other passage exceeds."""
        cosines: dict[str, float] = {}
        floor = 0.0
        if asked.vector is not None:
            [found] = await mirror.store.search(mirror.namespace, asked.vector, top=depth, filter=asked.pushed_filter)
            cosines = {match.id: match.score for match in found}
            floor = max(0.0, found[-1].score) if len(found) >= depth else 0.0
        numbers = await in_thread(_numbers, connection, list(cosines))
        if words.allowed is not None:
            inside = set(words.allowed.tolist())
            numbers = {id: number for id, number in numbers.items() if number in inside}
        best = words.scores.numbers[:depth].tolist()
        of_words = await in_thread(_ids, connection, sorted(set(best) - set(numbers.values())))
        if asked.vector is not None and of_words:
            records, vectors = await mirror.store.get(mirror.namespace, list(of_words))
            if vectors is not None:
                products = as_rows(vectors) @ as_rows(asked.vector)[0]
                cosines.update(zip((record.id for record in records), products.tolist(), strict=True))
        numbers |= of_words
        every = list(numbers.values())
        return _Candidates(
            np.asarray(every, dtype=np.int64),
            words.scores.of(every),
            np.array([cosines.get(id, 0.0) for id in numbers], dtype=np.float64),
        ), floor

    def _mirror(self) -> VectorMirror:
        if self._opened is None:
            embeddings = self._services.get(EmbeddingGenerator)
            store = self._services.get(VectorStore)
            self._opened = VectorMirror(store, embeddings, self._place.namespace(embeddings.model))
        return self._opened


@dataclass(frozen=True, slots=True)
class _Question:
    text: str
    vector: Vectors | None
    filter: Filter | None
    pushed_filter: Filter | None


@dataclass(frozen=True, slots=True)
class _Words:
    scores: LexicalScores
    allowed: npt.NDArray[np.int64] | None


@dataclass(frozen=True, slots=True)
class _Candidates:
    numbers: npt.NDArray[np.int64]
    lexical: npt.NDArray[np.float64]
    cosines: npt.NDArray[np.float64]


def _accepted(filter: Filter | None, store: VectorStore) -> Filter | None:
    """Return the filter if the store can apply it; what it cannot, the catalogue applies to what it finds."""
    try:
        check_filter(filter, store.filter_support, f"Vector store {store.name!r}")
    except UnsupportedFilter:
        return None
    return filter


def _allowed(connection: sqlite3.Connection, filter: Filter) -> npt.NDArray[np.int64]:
    condition, values = to_sql(filter)
    rows = connection.execute(
        f"SELECT number FROM passages JOIN files ON files.id = file WHERE {condition}", values
    ).fetchall()
    return np.array([number for (number,) in rows], dtype=np.int64)


def _numbers(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, int]:
    """Return the numbers of those ids that the catalogue knows, in the order given."""
    known: dict[str, int] = {}
    for start in range(0, len(ids), _PAGE):
        page = ids[start : start + _PAGE]
        known.update(
            connection.execute(f"SELECT id, number FROM passages WHERE id IN ({', '.join('?' * len(page))})", page)
        )
    return {id: known[id] for id in ids if id in known}


def _ids(connection: sqlite3.Connection, numbers: Sequence[int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for start in range(0, len(numbers), _PAGE):
        page = numbers[start : start + _PAGE]
        found.update(
            connection.execute(f"SELECT id, number FROM passages WHERE number IN ({', '.join('?' * len(page))})", page)
        )
    return found


def _hits(
    connection: sqlite3.Connection,
    place: Place,
    candidates: _Candidates,
    fused: npt.NDArray[np.float64],
    order: npt.NDArray[np.intp],
) -> list[DocumentHit]:
    single = place.root.is_file()
    hits: list[DocumentHit] = []
    for row in order.tolist():
        path, shown, text, headings, line, end_line, page = connection.execute(
            "SELECT path, shown, text, headings, line, end_line, page FROM passages JOIN files ON files.id = file"
            " WHERE number = ?",
            (int(candidates.numbers[row]),),
        ).fetchone()
        hits.append(
            DocumentHit(
                text=text,
                path=shown,
                headings=catalogue.headings(headings),
                line=line,
                end_line=end_line,
                page=page,
                score=float(fused[row]),
                lexical=float(candidates.lexical[row]),
                vector=float(candidates.cosines[row]),
                link=link_to(place.root if single else place.at(path), line, page),
            )
        )
    return hits
