"""The search of a folder: words and vectors, fused."""

from __future__ import annotations

from portico.errors import UnsupportedOption
from portico.plugins import Services
from portico.ports import EmbeddingGenerator, JobQueue, Runner, VectorStore
from portico.search import (
    Filter,
    SearchCapabilities,
    SearchConnector,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
    Vectors,
)
from portico_documents import catalogue
from portico_documents.conditions import FILTERS
from portico_documents.config import DocumentsSettings
from portico_documents.hit import DocumentHit
from portico_documents.index import FolderIndex
from portico_documents.own_ranking import Question, rank_here
from portico_documents.place import Place
from portico_documents.ranking import Weights
from portico_documents.rows import hits
from portico_documents.store_ranking import hybrid_of, rank_in_store
from portico_documents.threads import in_thread
from portico_documents.vector_mirror import VectorMirror, as_rows


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
        self._words_in_store = settings.lexical == "store"
        self._opened: VectorMirror | None = None
        self.index = FolderIndex(settings, self._place, self._mirror, self._queue)

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

        Without ``weights`` the query decides how much its words count (see `weights_for`), or the store where that
        finds by words.
        """
        await self.index.prepare()
        mirror = self._mirror()
        [question] = as_rows(await mirror.embeddings.embed([query], purpose="query"))
        asked = Question(
            query,
            Vectors(question, 1, len(question)) if question.any() else None,
            filter,
            _accepted(filter, mirror.store),
        )
        ranking = rank_in_store if mirror.words else rank_here
        connection = await in_thread(catalogue.connect, self._place.catalogue)
        try:
            with catalogue.store_errors(self._place.catalogue):
                await in_thread(connection.execute, "BEGIN")
                ranked = await ranking(connection, mirror, asked, count, weights)
                return await in_thread(hits, connection, self._place, ranked)
        finally:
            await in_thread(connection.close)

    def _queue(self) -> JobQueue | None:
        return self._services.get(Runner).jobs if self._services.names(Runner) else None

    def _mirror(self) -> VectorMirror:
        if self._opened is None:
            embeddings = self._services.get(EmbeddingGenerator)
            store = self._services.get(VectorStore)
            if self._words_in_store:
                hybrid_of(store)
            namespace = self._place.namespace(embeddings.model)
            self._opened = VectorMirror(store, embeddings, namespace, words=self._words_in_store)
        return self._opened


def _accepted(filter: Filter | None, store: VectorStore) -> Filter | None:
    """Return the filter if the store can apply it; what it cannot, the catalogue applies to what it finds."""
    try:
        store.filter_support.check(filter, f"Vector store {store.name!r}")
    except UnsupportedOption:
        return None
    return filter
