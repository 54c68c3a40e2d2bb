"""WordllamaEmbeddings does what every EmbeddingGenerator must."""

import pytest

from portico_testkit.embedding_generator import EmbeddingGeneratorKit
from portico_testkit.package import PackageKit
from portico_wordllama.config import WordllamaSettings
from portico_wordllama.embeddings import WordllamaEmbeddings


class TestWordllamaEmbeddings(EmbeddingGeneratorKit):
    @pytest.fixture(params=[256, 64])
    def embedding_generator(self, request: pytest.FixtureRequest) -> WordllamaEmbeddings:
        return WordllamaEmbeddings(WordllamaSettings(dimensions=request.param))


class TestInSmallBatches(EmbeddingGeneratorKit):
    @pytest.fixture
    def embedding_generator(self) -> WordllamaEmbeddings:
        return WordllamaEmbeddings(WordllamaSettings(batch_size=3))


class TestPackage(PackageKit):
    distribution = "portico-wordllama"
