"""What every EmbeddingGenerator must do."""

from __future__ import annotations

import asyncio
import itertools
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from portico.ports.embedding_generator import EmbeddingGenerator
from portico.vectors import Vectors

__all__ = ["EmbeddingGeneratorKit"]

_TEXTS = (
    "The station clock stopped at noon.",
    "Bread rises faster in a warm kitchen.",
    "A kestrel hovers above the motorway verge.",
    "Copper turns green in sea air.",
    "The last bus leaves the harbour at eleven.",
    "Her violin was made in Cremona.",
)
_AWKWARD = (
    "\x00",
    "\ufeff\u200b\u202e",
    "\U0001f9e6" * 300,
    "e\u0301" * 50,
    "中文 без пробелов עברית ไทย",
    "<s></s><unk>[PAD] {{$input}} %s \\",
    "\t\tindented\r\n\r\ntext\x0b",
    "lone \ud800 surrogate",
    "word " * 20_000,
    "x" * 100_000,
)


class EmbeddingGeneratorKit:
    """Subclass it and give a fixture named ``embedding_generator``::

        class TestAcmeEmbeddings(EmbeddingGeneratorKit):
            @pytest.fixture
            def embedding_generator(self) -> AcmeEmbeddings:
                return AcmeEmbeddings(AcmeSettings(), None)

    ``tolerance`` is by how much numbers of equal texts may differ; ``large`` is how many texts the tests of load
    embed. Lower it only for a service that bills them.
    """

    tolerance: ClassVar[float] = 1e-6
    large: ClassVar[int] = 2_000

    @pytest.mark.asyncio
    async def test_name_and_model_are_filled(self, embedding_generator: EmbeddingGenerator) -> None:
        """People read the name, and an index compares the model."""
        for attribute in ("name", "model"):
            value = getattr(embedding_generator, attribute)
            assert isinstance(value, str), f"{attribute} is {value!r}, not a str"
            assert value.strip(), f"{attribute} is empty"

    @pytest.mark.asyncio
    async def test_the_model_stays_the_same_when_it_is_used(self, embedding_generator: EmbeddingGenerator) -> None:
        """An index is remade when the model's name changes: it may not change by itself."""
        before = embedding_generator.model
        await embedding_generator.embed(_TEXTS)
        assert embedding_generator.model == before, "the first call changed the model's name"

    @pytest.mark.asyncio
    async def test_each_text_has_its_own_row_in_order(self, embedding_generator: EmbeddingGenerator) -> None:
        """Row i belongs to text i, whatever the generator does inside its batches."""
        varied = tuple(text * (1 + number % 3 * 7) for number, text in enumerate(_TEXTS))
        together = _rows(await embedding_generator.embed(varied))
        assert len(together) == len(varied), f"{len(varied)} texts gave {len(together)} rows"
        for number, text in enumerate(varied):
            alone = _rows(await embedding_generator.embed([text]))
            self._same(together[number], alone[0], f"row {number} is not that of text {number}")

    @pytest.mark.asyncio
    async def test_rows_are_finite_and_of_length_one(self, embedding_generator: EmbeddingGenerator) -> None:
        """Stores take the inner product for the cosine."""
        rows = _rows(await embedding_generator.embed(_TEXTS))
        assert np.isfinite(rows).all(), "there are numbers that are not finite"
        lengths = np.linalg.norm(rows, axis=1)
        assert np.allclose(lengths, 1, atol=1e-4), f"the rows' lengths are {lengths.tolist()}, not 1"

    @pytest.mark.asyncio
    async def test_an_empty_text_gives_zeros(self, embedding_generator: EmbeddingGenerator) -> None:
        """Zeros are like nothing; NaN would poison every comparison."""
        rows = _rows(await embedding_generator.embed(["", _TEXTS[0], ""]))
        assert not rows[0].any(), "the row of an empty text is not zeros"
        assert not rows[2].any(), "the row of an empty text is not zeros"
        assert rows[1].any(), "the text between two empty ones was lost"
        alone = _rows(await embedding_generator.embed([""]))
        assert alone.shape == (1, rows.shape[1]), f"one empty text alone has the shape {alone.shape}"
        assert not alone.any(), "the row of an empty text alone is not zeros"

    @pytest.mark.asyncio
    async def test_white_space_gives_a_finite_row(self, embedding_generator: EmbeddingGenerator) -> None:
        """Of length 1 or 0, never in between and never NaN."""
        rows = _rows(await embedding_generator.embed([" ", "\n\t \r\n", "\u00a0"]))
        self._unit_or_zero(rows)

    @pytest.mark.asyncio
    async def test_no_texts_give_no_rows(self, embedding_generator: EmbeddingGenerator) -> None:
        """The shape is there all the same."""
        none = await embedding_generator.embed([])
        some = await embedding_generator.embed(_TEXTS[:1])
        assert (none.rows, none.dimensions) == (0, some.dimensions)

    @pytest.mark.asyncio
    async def test_equal_texts_give_equal_rows_whatever_their_neighbours(
        self, embedding_generator: EmbeddingGenerator
    ) -> None:
        """A row may not depend on its batch: content hashes decide what is embedded again."""
        text = _TEXTS[0]
        alone = _rows(await embedding_generator.embed([text]))[0]
        for neighbours in (_TEXTS, ("",), ("long " * 3_000,), (text,), _TEXTS * 50):
            rows = _rows(await embedding_generator.embed([*neighbours, text]))
            self._same(rows[-1], alone, f"{len(neighbours)} texts before it changed a text's row")
            rows = _rows(await embedding_generator.embed([text, *neighbours]))
            self._same(rows[0], alone, f"{len(neighbours)} texts after it changed a text's row")

    @pytest.mark.asyncio
    async def test_different_texts_are_told_apart(self, embedding_generator: EmbeddingGenerator) -> None:
        """A constant would pass every other test."""
        documents = _rows(await embedding_generator.embed(_TEXTS))
        queries = _rows(await embedding_generator.embed(_TEXTS, purpose="query"))
        assert documents.shape == queries.shape, "queries and documents have different shapes"
        best = (queries @ documents.T).argmax(axis=1)
        assert best.tolist() == list(range(len(_TEXTS))), f"as queries, the texts find {best.tolist()}"

    @pytest.mark.asyncio
    async def test_awkward_texts_do_no_harm(self, embedding_generator: EmbeddingGenerator) -> None:
        """Users' files hold anything; one text must not spoil a batch."""
        batch = [_TEXTS[0], *_AWKWARD, _TEXTS[1]]
        rows = _rows(await embedding_generator.embed(batch))
        assert len(rows) == len(batch)
        self._unit_or_zero(rows)
        plain = _rows(await embedding_generator.embed(_TEXTS[:2]))
        self._same(rows[0], plain[0], "an awkward text after it changed a text's row")
        self._same(rows[-1], plain[1], "an awkward text before it changed a text's row")

    @pytest.mark.asyncio
    async def test_earlier_results_are_not_touched_by_later_calls(
        self, embedding_generator: EmbeddingGenerator
    ) -> None:
        """A buffer that is used again would rewrite what a caller holds."""
        first = await embedding_generator.embed(_TEXTS[:2])
        before = bytes(first.buffer)
        await embedding_generator.embed(_TEXTS[2:4])
        assert bytes(first.buffer) == before, "a later call changed the vectors of an earlier one"

    @pytest.mark.asyncio
    async def test_concurrent_calls_do_not_mix(self, embedding_generator: EmbeddingGenerator) -> None:
        """Fresh generators too: the first calls may all arrive at once."""
        batches = [[f"{text} Number {number}." for text in _TEXTS[: 1 + number % 6]] for number in range(24)]
        at_once = await asyncio.gather(*(embedding_generator.embed(batch) for batch in batches))
        for number, batch in enumerate(batches):
            alone = await embedding_generator.embed(batch)
            assert (at_once[number].rows, at_once[number].dimensions) == (len(batch), alone.dimensions)
            self._same(_rows(at_once[number]), _rows(alone), f"call {number} of 24 at once has other rows")

    @pytest.mark.asyncio
    async def test_a_large_batch_is_whole_and_leaves_the_event_loop_free(
        self, embedding_generator: EmbeddingGenerator
    ) -> None:
        """While it runs, the loop may not stand still for half the time (or half a second, if that is more)."""
        texts = [f"{text} It is number {number}." for number in range(self.large // 6 + 1) for text in _TEXTS]
        await embedding_generator.embed(_TEXTS)
        loop = asyncio.get_running_loop()
        ticks = [loop.time()]
        ticker = asyncio.create_task(_tick(ticks))
        await asyncio.sleep(0)
        try:
            vectors = await embedding_generator.embed(texts)
            ticks.append(loop.time())
        finally:
            ticker.cancel()
        longest = max(after - before for before, after in itertools.pairwise(ticks))
        whole = ticks[-1] - ticks[0]
        assert longest <= max(0.5, whole / 2), f"the event loop stood still for {longest:.2f} of {whole:.2f} s"
        assert vectors.rows == len(texts)
        for number in (0, len(texts) // 2, len(texts) - 1):
            alone = _rows(await embedding_generator.embed([texts[number]]))
            self._same(_rows(vectors)[number], alone[0], f"row {number} of {len(texts)} is another text's")

    @pytest.mark.asyncio
    async def test_a_cancelled_call_leaves_it_usable(self, embedding_generator: EmbeddingGenerator) -> None:
        """Cancelled before, while and after it works; the first call of all may be the cancelled one."""
        for pause in (0.0, 0.001, 0.02):
            call = asyncio.create_task(embedding_generator.embed(_TEXTS * (self.large // 6 + 1)))
            await asyncio.sleep(pause)
            call.cancel()
            await asyncio.wait([call], timeout=30)
            assert call.done(), "a cancelled call goes on"
        before = _rows(await embedding_generator.embed(_TEXTS))
        after = _rows(await embedding_generator.embed(_TEXTS))
        assert before.shape[0] == len(_TEXTS)
        self._same(before, after, "after a cancelled call, equal texts have different rows")
        self._unit_or_zero(before)

    def _same(self, one: npt.NDArray[np.float32], other: npt.NDArray[np.float32], message: str) -> None:
        assert one.shape == other.shape, f"{message}: the shapes are {one.shape} and {other.shape}"
        apart = float(np.abs(one - other).max(initial=0))
        assert apart <= self.tolerance, f"{message}: numbers are {apart:g} apart, more than {self.tolerance:g}"

    def _unit_or_zero(self, rows: npt.NDArray[np.float32]) -> None:
        assert np.isfinite(rows).all(), "there are numbers that are not finite"
        lengths = np.linalg.norm(rows, axis=1)
        odd = [float(length) for length in lengths if length > 1e-6 and abs(length - 1) > 1e-4]
        assert not odd, f"rows have the lengths {odd}, neither 1 nor 0"


def _rows(vectors: Vectors) -> npt.NDArray[np.float32]:
    assert isinstance(vectors, Vectors), f"embed returned {type(vectors).__name__}, not Vectors"
    return np.asarray(vectors.buffer, dtype=np.float32).reshape(vectors.rows, vectors.dimensions)


async def _tick(ticks: list[float]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(0.005)
        ticks.append(loop.time())
