"""The cache is held to the kit of its port, over a fake and over a real model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Literal

import pytest

from portico.errors import ServiceUnavailable
from portico.search import Vectors
from portico_basics.cached_embeddings.embeddings import CachedEmbeddings
from portico_testkit.embedding_generator import EmbeddingGeneratorKit
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_wordllama.embeddings import WordllamaEmbeddings


class Away(HashingEmbeddings):
    """Cannot be reached."""

    async def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"] = "document") -> Vectors:
        raise ServiceUnavailable("The embeddings are away.")


class TestOverAFake(EmbeddingGeneratorKit):
    @pytest.fixture
    async def failing_generator(self, tmp_path: Path) -> AsyncIterator[CachedEmbeddings]:
        cached = CachedEmbeddings(Away(), path=tmp_path / "cache")
        yield cached
        await cached.aclose()

    @pytest.fixture
    async def embedding_generator(self, tmp_path: Path) -> AsyncIterator[CachedEmbeddings]:
        cached = CachedEmbeddings(HashingEmbeddings(), path=tmp_path / "cache")
        yield cached
        await cached.aclose()


class TestOverWordllama(EmbeddingGeneratorKit):
    @pytest.fixture
    async def embedding_generator(self, tmp_path: Path) -> AsyncIterator[CachedEmbeddings]:
        cached = CachedEmbeddings(WordllamaEmbeddings(), path=tmp_path / "cache")
        yield cached
        await cached.aclose()


class TestInACacheThatIsAlwaysFull(EmbeddingGeneratorKit):
    @pytest.fixture
    async def embedding_generator(self, tmp_path: Path) -> AsyncIterator[CachedEmbeddings]:
        cached = CachedEmbeddings(HashingEmbeddings(), path=tmp_path / "cache", max_bytes=200_000)
        yield cached
        await cached.aclose()


class TestWithoutAUsableCache(EmbeddingGeneratorKit):
    @pytest.fixture
    async def embedding_generator(self, tmp_path: Path) -> AsyncIterator[CachedEmbeddings]:
        (tmp_path / "file").touch()
        cached = CachedEmbeddings(HashingEmbeddings(), path=tmp_path / "file" / "cache")
        yield cached
        await cached.aclose()
