"""A generator that tells what it was asked, and caches over it in a folder of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from portico.search import Vectors
from portico_basics.cached_embeddings.embeddings import CachedEmbeddings
from portico_testkit.fakes.embedding_generator import HashingEmbeddings

Open = Callable[..., CachedEmbeddings]


class Asked:
    """Embed by the words of a text, other ones for a query, and keep what was asked; ``gate`` holds calls up."""

    name = "asked"

    def __init__(self, dimensions: int = 64, model: str = "asked-1") -> None:
        self.model = model
        self.calls: list[tuple[str, ...]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = asyncio.Event()
        self.error: Exception | None = None
        self.inner = HashingEmbeddings(dimensions)

    async def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"] = "document") -> Vectors:
        self.calls.append(tuple(texts))
        self.waiting.set()
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return await self.inner.embed([f"{text} {purpose} {self.model}" if text else "" for text in texts])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
async def opened(folder: Path) -> AsyncIterator[Open]:
    """Return what opens a cache over a generator, as another process would; all are closed in the end."""
    caches: list[CachedEmbeddings] = []

    def make(generator: Any, **options: Any) -> CachedEmbeddings:
        caches.append(CachedEmbeddings(generator, **({"path": folder} | options)))
        return caches[-1]

    yield make
    for cached in caches:
        await cached.aclose()
