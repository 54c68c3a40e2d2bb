"""The EmbeddingGenerator kit passes a correct generator and catches broken ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytest

from portico.vectors import Vectors
from portico_testkit.embedding_generator import EmbeddingGeneratorKit
from portico_testkit.fakes.embedding_generator import HashingEmbeddings

Purpose = Literal["document", "query"]


class TestHashingEmbeddings(EmbeddingGeneratorKit):
    @pytest.fixture
    def embedding_generator(self) -> HashingEmbeddings:
        return HashingEmbeddings()


class Broken(HashingEmbeddings):
    """Does right what a variant does not do wrong."""

    def spoil(self, rows: np.ndarray, texts: Sequence[str], purpose: Purpose) -> np.ndarray:
        return rows

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Vectors:
        vectors = await super().embed(texts, purpose=purpose)
        rows = np.frombuffer(vectors.buffer, dtype=np.float32).reshape(vectors.rows, vectors.dimensions).copy()
        rows = np.ascontiguousarray(self.spoil(rows, texts, purpose), dtype=np.float32)
        return Vectors(rows, rows.shape[0], rows.shape[1])


class NotNormalised(Broken):
    def spoil(self, rows, texts, purpose):
        return rows * 3


class NotANumberForEmpty(Broken):
    def spoil(self, rows, texts, purpose):
        rows[[not text for text in texts]] = np.nan
        return rows


class OnesForEmpty(Broken):
    def spoil(self, rows, texts, purpose):
        rows[[not text for text in texts], 0] = 1
        return rows


class SortedByLength(Broken):
    def spoil(self, rows, texts, purpose):
        return rows[np.argsort([len(text) for text in texts], kind="stable")] if len(texts) else rows


class LosesEmptyTexts(Broken):
    def spoil(self, rows, texts, purpose):
        return rows[[bool(text) for text in texts]] if len(texts) else rows


class Constant(Broken):
    def spoil(self, rows, texts, purpose):
        rows[[bool(text) for text in texts]] = np.eye(1, rows.shape[1])
        return rows


class PaddingLeaks(Broken):
    """The longest text of the batch decides how strongly a common component is mixed in."""

    def spoil(self, rows, texts, purpose):
        rows[:, 0] += 0.001 * max((len(text) for text in texts), default=0) * rows.any(axis=1)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, lengths, out=rows, where=lengths > 0)


class QueriesOfAnotherShape(Broken):
    def spoil(self, rows, texts, purpose):
        return rows[:, :128] if purpose == "query" else rows


class Blocking(Broken):
    def spoil(self, rows, texts, purpose):
        if len(texts) > 1000:
            time.sleep(0.7)
        return rows


class CountsCalls(Broken):
    def spoil(self, rows, texts, purpose):
        self.model = f"hashing-after-{self.calls}"
        return rows


class KeepsState(Broken):
    def spoil(self, rows, texts, purpose):
        shift = self.calls % 2
        return np.roll(rows, shift, axis=1)


class OneBuffer(Broken):
    async def embed(self, texts, *, purpose="document"):
        vectors = await HashingEmbeddings.embed(self, texts, purpose=purpose)
        if not hasattr(self, "shared"):
            self.shared = bytearray(40_000_000)
        self.shared[: vectors.buffer.nbytes] = vectors.buffer.cast("B")
        return Vectors(memoryview(self.shared)[: vectors.buffer.nbytes], vectors.rows, vectors.dimensions)


class MixesCalls(Broken):
    """Keeps its texts on itself while it works."""

    async def embed(self, texts, *, purpose="document"):
        self.texts = list(texts)
        await super().embed(texts[:1])
        return await super().embed(self.texts, purpose=purpose)


class RefusesSurrogates(Broken):
    def spoil(self, rows, texts, purpose):
        for text in texts:
            text.encode()
        return rows


class Unnamed(Broken):
    def __init__(self):
        super().__init__(name=" ")


class DeadAfterCancellation(Broken):
    """Never gives back what it takes when it is interrupted."""

    busy = False

    async def embed(self, texts, *, purpose="document"):
        if self.busy:
            raise RuntimeError("still busy")
        if len(texts) > 1000:
            self.busy = True
        vectors = await super().embed(texts, purpose=purpose)
        self.busy = False
        return vectors


BROKEN = list(Broken.__subclasses__())


async def failures(kit: type[EmbeddingGeneratorKit], make: type[HashingEmbeddings]) -> list[str]:
    found = []
    for name in sorted(dir(kit)):
        if name.startswith("test_"):
            try:
                await getattr(kit(), name)(make())
            except Exception:
                found.append(name)
    return found


@pytest.mark.parametrize("variant", BROKEN, ids=lambda variant: variant.__name__)
async def test_the_kit_catches(variant: type[HashingEmbeddings]) -> None:
    assert await failures(EmbeddingGeneratorKit, variant), f"no test of the kit fails for {variant.__name__}"


async def test_the_kit_finds_nothing_wrong_with_the_wrapper_that_the_broken_ones_share() -> None:
    assert await failures(EmbeddingGeneratorKit, Broken) == []


@pytest.mark.parametrize(
    ("variant", "test"),
    [
        (Blocking, "test_a_large_batch_is_whole_and_leaves_the_event_loop_free"),
        (OneBuffer, "test_earlier_results_are_not_touched_by_later_calls"),
        (DeadAfterCancellation, "test_a_cancelled_call_leaves_it_usable"),
        (PaddingLeaks, "test_equal_texts_give_equal_rows_whatever_their_neighbours"),
    ],
)
async def test_a_fault_is_caught_by_the_test_that_names_it(variant: type[HashingEmbeddings], test: str) -> None:
    assert test in await failures(EmbeddingGeneratorKit, variant)
