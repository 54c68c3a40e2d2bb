"""The contextual selector does what every FunctionSelector must, on any store and with any embeddings."""

from __future__ import annotations

from pathlib import Path

import pytest

from portico.ports import EmbeddingGenerator, FunctionSelector, VectorStore
from portico_basics.config import ContextualSettings
from portico_basics.contextual.choosing import make_selector
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.fakes.services import FixedServices
from portico_testkit.fakes.vector_store import DictVectorStore
from portico_testkit.function_selector import FunctionSelectorKit
from portico_wordllama.embeddings import WordllamaEmbeddings


class TestWithTheEmbeddedDefault(FunctionSelectorKit):
    @pytest.fixture(params=["fused", "vector"])
    def function_selector(self, request: pytest.FixtureRequest) -> FunctionSelector:
        services = FixedServices({VectorStore: FaissVectorStore(), EmbeddingGenerator: WordllamaEmbeddings()})
        return make_selector(ContextualSettings(max=3, ranking=request.param), services)


class TestOnAFolder(FunctionSelectorKit):
    @pytest.fixture
    def function_selector(self, tmp_path: Path) -> FunctionSelector:
        store = FaissVectorStore(FaissSettings(path=tmp_path))
        services = FixedServices({VectorStore: store, EmbeddingGenerator: HashingEmbeddings()})
        return make_selector(ContextualSettings(max=3), services)


class TestOnADictionary(FunctionSelectorKit):
    @pytest.fixture
    def function_selector(self) -> FunctionSelector:
        services = FixedServices({VectorStore: DictVectorStore(), EmbeddingGenerator: HashingEmbeddings()})
        return make_selector(ContextualSettings(max=3), services)


class TestWithWordsAlone(FunctionSelectorKit):
    @pytest.fixture
    def function_selector(self) -> FunctionSelector:
        return make_selector(ContextualSettings(max=3, ranking="lexical"), FixedServices({}))
