"""VectorsTextSearch does what every TextSearch must, on a real store and real embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from portico.ports import EmbeddingGenerator, VectorStore
from portico.search import And, AnyOf, Equal, Range
from portico_basics.config import VectorsSettings
from portico_basics.vectors.search import VectorsTextSearch, make_search
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.fakes.hybrid_search import DictHybridStore
from portico_testkit.fakes.services import FixedServices
from portico_testkit.text_search import TextSearchKit
from portico_wordllama.config import WordllamaSettings
from portico_wordllama.embeddings import WordllamaEmbeddings


@dataclass(frozen=True, slots=True)
class Author:
    name: str
    town: str | None = None


@dataclass(frozen=True, slots=True)
class Note:
    id: str
    body: str
    written: date
    author: Author
    tags: tuple[str, ...] = ()
    page: str | None = None


ADA, BOB = Author("Ada", "Ulm"), Author("Bob")
NOTES = [
    Note("1", "The door of the house is red.", date(2025, 1, 7), ADA, ("house", "paint"), "http://n.example/1"),
    Note("2", "A door without a handle is a wall.", date(2025, 6, 1), BOB, ("house",)),
    Note("3", "Slate keeps the rain off a roof.", date(2026, 2, 3), ADA, ("roof",), "http://n.example/3"),
    Note("4", "The cat has a door of her own.", date(2026, 3, 9), BOB),
    Note("5", "Bread rises in a warm kitchen.", date(2024, 5, 5), ADA, ("food",)),
    Note("6", "The last bus leaves at eleven.", date(2026, 5, 5), BOB, ("travel", "food")),
]


@pytest.fixture(scope="session")
def embeddings() -> WordllamaEmbeddings:
    return WordllamaEmbeddings(WordllamaSettings(dimensions=64))


class TestVectorsTextSearch(TextSearchKit):
    filters = (
        Equal("author.name", "Ada"),
        Equal("tags", "food"),
        AnyOf("id", ("2", "4")),
        Range("written", at_least="2026-01-01"),
        And((Equal("author.town", "Ulm"), Range("written", below="2026"))),
    )

    @pytest.fixture
    async def text_search(self, embeddings: WordllamaEmbeddings) -> VectorsTextSearch[Note]:
        search = VectorsTextSearch(
            Note,
            FaissVectorStore(FaissSettings(), None),
            embeddings,
            namespace="notes",
            key="id",
            text="body",
            title=lambda note: f"A note of {note.author.name}",
            link="page",
            offered=("author.name",),
        )
        await search.add(NOTES)
        return search

    def fields_of(self, record: Note) -> Mapping[str, object]:
        return {
            "id": record.id,
            "written": record.written.isoformat(),
            "author.name": record.author.name,
            "author.town": record.author.town,
            "tags": record.tags,
        }


class TestAsConfigured(TextSearchKit):
    filters = (Equal("author", "Ada"), Range("year", above=2025))

    @pytest.fixture
    async def text_search(self, embeddings: WordllamaEmbeddings) -> VectorsTextSearch[dict[str, Any]]:
        store = FaissVectorStore(FaissSettings(), None)
        services = FixedServices({VectorStore: store, EmbeddingGenerator: embeddings})
        search = make_search(VectorsSettings(namespace="notes", text="body", title="author"), services)
        await search.add(
            {"id": note.id, "body": note.body, "author": note.author.name, "year": note.written.year}
            | ({} if note.page is None else {"link": note.page})
            for note in NOTES
        )
        return search

    @pytest.fixture
    def failing_search(self, tmp_path: Path, embeddings: WordllamaEmbeddings) -> VectorsTextSearch[dict[str, Any]]:
        (tmp_path / "vectors").write_text("This is a file, and no folder.")
        store = FaissVectorStore(FaissSettings(path=tmp_path / "vectors"), None)
        services = FixedServices({VectorStore: store, EmbeddingGenerator: embeddings})
        return make_search(VectorsSettings(namespace="notes", text="body"), services)

    def fields_of(self, record: dict[str, Any]) -> Mapping[str, object]:
        return record


def test_a_source_may_have_other_embeddings_than_the_application(embeddings: WordllamaEmbeddings) -> None:
    own = HashingEmbeddings()
    services = FixedServices(
        {VectorStore: DictHybridStore(), EmbeddingGenerator: embeddings, (EmbeddingGenerator, "own"): own}
    )
    assert make_search(VectorsSettings(namespace="notes", embeddings="own"), services).embeddings is own
    assert make_search(VectorsSettings(namespace="notes"), services).embeddings is embeddings


class TestByTheWordsOfTheStore(TestAsConfigured):
    @pytest.fixture
    async def text_search(self, embeddings: WordllamaEmbeddings) -> VectorsTextSearch[dict[str, Any]]:
        services = FixedServices({VectorStore: DictHybridStore(), EmbeddingGenerator: embeddings})
        search = make_search(VectorsSettings(namespace="notes", text="body", title="author", lexical="store"), services)
        await search.add(
            {"id": note.id, "body": note.body, "author": note.author.name, "year": note.written.year}
            | ({} if note.page is None else {"link": note.page})
            for note in NOTES
        )
        return search
