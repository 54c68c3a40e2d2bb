"""The cache is held to the kit of its port, over a fake and over a real model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from portico_cached_embeddings.embeddings import CachedEmbeddings
from portico_testkit.embedding_generator import EmbeddingGeneratorKit
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.package import PackageKit
from portico_wordllama.embeddings import WordllamaEmbeddings


class TestOverAFake(EmbeddingGeneratorKit):
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


class TestPackage(PackageKit):
    distribution = "portico-cached-embeddings"
