"""The EmbeddingGenerator kit passes a correct generator and catches broken ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest

from portico.errors import ServiceUnavailable
from portico.search import Vectors
from portico_testkit.embedding_generator import EmbeddingGeneratorKit
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.kit_failures import Fault, KnownFaults

Purpose = Literal["document", "query"]


class TestHashingEmbeddings(EmbeddingGeneratorKit):
    @pytest.fixture
    def embedding_generator(self) -> HashingEmbeddings:
        return HashingEmbeddings()


def failing(kind: type[HashingEmbeddings]) -> HashingEmbeddings:
    generator = kind()
    generator.embed = getattr(generator, "fail", Broken.fail)
    return generator


FAULTS = KnownFaults(
    EmbeddingGeneratorKit, lambda kind: {"embedding_generator": kind, "failing_generator": lambda: failing(kind)}
)


class Broken(HashingEmbeddings):
    """Does right what a variant does not do wrong."""

    @staticmethod
    async def fail(texts: Sequence[str], *, purpose: Purpose = "document") -> Vectors:
        raise ServiceUnavailable("Embedding generator 'hashing' cannot be reached.")

    def spoil(self, rows: np.ndarray, texts: Sequence[str], purpose: Purpose) -> np.ndarray:
        return rows

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Vectors:
        vectors = await super().embed(texts, purpose=purpose)
        rows = np.frombuffer(vectors.buffer, dtype=np.float32).reshape(vectors.rows, vectors.dimensions).copy()
        rows = np.ascontiguousarray(self.spoil(rows, texts, purpose), dtype=np.float32)
        return Vectors(rows, rows.shape[0], rows.shape[1])


@FAULTS.caught_by("rows_are_finite_and_of_length_one", "lengths are")
class NotNormalised(Broken):
    def spoil(self, rows, texts, purpose):
        return rows * 3


@FAULTS.caught_by("each_text_has_its_own_row_in_order", "is not that of text")
class MixesRows(Broken):
    def spoil(self, rows, texts, purpose):
        return rows[::-1]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
