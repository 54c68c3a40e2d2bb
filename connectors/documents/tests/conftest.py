"""A folder to index and the services to do it with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portico.ports import EmbeddingGenerator, VectorStore
from portico_documents.config import DocumentsSettings
from portico_documents.search import DocumentsSearch
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.fakes.vector_store import DictVectorStore


class GivenServices:
    """The Services of a test: one embedding generator and one store."""

    def __init__(self, embeddings: Any, store: Any) -> None:
        self.embeddings = embeddings
        self.store = store
        self.asked: list[Any] = []

    def get(self, port: Any, name: str | None = None) -> Any:
        self.asked.append(port)
        return {EmbeddingGenerator: self.embeddings, VectorStore: self.store}[port]

    def names(self, port: Any) -> tuple[str, ...]:
        return ()


@pytest.fixture
def embeddings() -> HashingEmbeddings:
    return HashingEmbeddings()


@pytest.fixture
def store() -> DictVectorStore:
    """One that outlives a search object here, as one in a folder outlives a process."""
    store = DictVectorStore()
    store.persistent = True
    return store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


@pytest.fixture
def make_search(
    folder: Path, tmp_path: Path, embeddings: HashingEmbeddings, store: DictVectorStore
) -> Callable[..., DocumentsSearch]:
    """Make a new search object, as a new process would, with other settings or services if given."""

    def make(*, services: GivenServices | None = None, **settings: Any) -> DocumentsSearch:
        return DocumentsSearch(
            DocumentsSettings(**{"path": folder, "index": tmp_path / "index", **settings}),
            services or GivenServices(embeddings, store),
        )

    return make
