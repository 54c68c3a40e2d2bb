"""What every EmbeddingGenerator must do."""

from __future__ import annotations

import asyncio
import itertools
from functools import partial
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pytest

from portico.errors import ConfigurationError, ServiceError
from portico.ports import EmbeddingGenerator
from portico.search import Vectors
from portico_testkit._failing import fails_as
from portico_testkit.tasks import give_up, no_tasks_but, still_answers

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
    "\U0001f9e6" * 40,
    "e\u0301" * 50,
    "中文 без пробелов עברית ไทย",
    "<s></s><unk>[PAD] {{$input}} %s \\",
    "\t\tindented\r\n\r\ntext\x0b",
    "lone \ud800 surrogate",
)


class EmbeddingGeneratorKit:
    """Subclass it and give a fixture named ``embedding_generator``::

        class TestAcmeEmbeddings(EmbeddingGeneratorKit):
            @pytest.fixture
            def embedding_generator(self) -> AcmeEmbeddings:
                return AcmeEmbeddings(AcmeSettings(), None)

    A fixture ``failing_generator`` gives one whose vendor fails: its address leads nowhere, or its model is no model.
    It is called some hundred and fifty times, mostly with a few short texts. Run a generator that works in batches
    a second time with batches of two or three texts: what goes wrong between batches shows only there.
    """

    tolerance: ClassVar[float] = 1e-6
    """By how much the numbers of equal texts may differ: a thousandth, where the hardware rounds by the batch."""

    large: ClassVar[int] = 2_000
    """How many texts the tests of load embed, six to eight times in all. Lower it for a service that bills them."""

    @pytest.fixture
    def failing_generator(self) -> EmbeddingGenerator | None:
        """Nothing, for a generator that stands on nothing."""
        return None

    @pytest.mark.asyncio
    async def test_name_and_model_are_filled(self, embedding_generator: EmbeddingGenerator) -> None:
        for attribute in ("name", "model"):
            value = getattr(embedding_generator, attribute)
            assert isinstance(value, str), f"{attribute} is {value!r}, not a str"
            assert value.strip(), f"{attribute} is empty"

    @pytest.mark.asyncio
    async def test_each_text_has_its_own_row_in_order(self, embedding_generator: EmbeddingGenerator) -> None:
        varied = tuple(text * (1 + number % 3 * 7) for number, text in enumerate(_TEXTS))
        together = _rows(await embedding_generator.embed(varied))
        assert len(together) == len(varied), f"{len(varied)} texts gave {len(together)} rows"
        for number, text in enumerate(varied):
            alone = _rows(await embedding_generator.embed([text]))
            self._same(together[number], alone[0], f"row {number} is not that of text {number}")

    @pytest.mark.asyncio
    async def test_rows_are_finite_and_of_length_one(self, embedding_generator: EmbeddingGenerator) -> None:
        rows = _rows(await embedding_generator.embed(_TEXTS))
        assert np.isfinite(rows).all(), "there are numbers that are not finite"
        lengths = np.linalg.norm(rows, axis=1)
        assert np.allclose(lengths, 1, atol=1e-4), f"the rows' lengths are {lengths.tolist()}, not 1"

    @pytest.mark.asyncio
    async def test_an_empty_text_gives_zeros(self, embedding_generator: EmbeddingGenerator) -> None:
        rows = _rows(await embedding_generator.embed(["", _TEXTS[0], ""]))
        assert not rows[0].any(), "the row of an empty text is not zeros"
        assert not rows[2].any(), "the row of an empty text is not zeros"
        assert rows[1].any(), "the text between two empty ones was lost"
        alone = _rows(await embedding_generator.embed([""]))
        assert alone.shape == (1, rows.shape[1]), f"one empty text alone has the shape {alone.shape}"
        assert not alone.any(), "the row of an empty text alone is not zeros"

    @pytest.mark.asyncio
    async def test_equal_texts_give_equal_rows_whatever_their_neighbours(
        self, embedding_generator: EmbeddingGenerator
    ) -> None:
        text = _TEXTS[0]
        alone = _rows(await embedding_generator.embed([text]))[0]
        for neighbours in (_TEXTS, ("",), ("long " * 200,), (text,), _TEXTS * max(1, self.large // 40)):
            rows = _rows(await embedding_generator.embed([*neighbours, text]))
            self._same(rows[-1], alone, f"{len(neighbours)} texts before it changed a text's row")
            rows = _rows(await embedding_generator.embed([text, *neighbours]))
            self._same(rows[0], alone, f"{len(neighbours)} texts after it changed a text's row")

    @pytest.mark.asyncio
    async def test_different_texts_are_told_apart(self, embedding_generator: EmbeddingGenerator) -> None:
        documents = _rows(await embedding_generator.embed(_TEXTS))
        queries = _rows(await embedding_generator.embed(_TEXTS, purpose="query"))
        assert documents.shape == queries.shape, "queries and documents have different shapes"
        best = (queries @ documents.T).argmax(axis=1)
        assert best.tolist() == list(range(len(_TEXTS))), f"as queries, the texts find {best.tolist()}"
        apart = min(float(np.abs(one - other).max()) for one, other in itertools.combinations(documents, 2))
        assert self.tolerance < apart / 4, f"a tolerance of {self.tolerance:g} hides rows that are {apart:g} apart"

    @pytest.mark.asyncio
    async def test_awkward_texts_do_no_harm(self, embedding_generator: EmbeddingGenerator) -> None:
        batch = [_TEXTS[0], *_AWKWARD, _TEXTS[1]]
        rows = _rows(await embedding_generator.embed(batch))
        assert len(rows) == len(batch)
        self._unit_or_zero(rows)
        plain = _rows(await embedding_generator.embed(_TEXTS[:2]))
        self._same(rows[0], plain[0], "an awkward text after it changed a text's row")
        self._same(rows[-1], plain[1], "an awkward text before it changed a text's row")

    @pytest.mark.asyncio
    async def test_concurrent_calls_do_not_mix(self, embedding_generator: EmbeddingGenerator) -> None:
        batches = [[f"{text} Number {number}." for text in _TEXTS[: 1 + number % 6]] for number in range(24)]
        at_once = await asyncio.gather(*(embedding_generator.embed(batch) for batch in batches))
        for number, batch in enumerate(batches):
            alone = await embedding_generator.embed(batch)
            assert (at_once[number].rows, at_once[number].dimensions) == (len(batch), alone.dimensions)
            self._same(_rows(at_once[number]), _rows(alone), f"call {number} of 24 at once has other rows")

    @pytest.mark.asyncio
    async def test_a_cancelled_call_leaves_it_usable(self, embedding_generator: EmbeddingGenerator) -> None:
        tasks = asyncio.all_tasks()
        texts = _TEXTS * (self.large // 6 + 1)
        # After one turn it has begun, however long a pause takes on a busy machine.
        for turns, pause in ((0, 0.0), (1, 0.0), (2, 0.0), (1, 0.001), (1, 0.02)):
            await give_up(partial(embedding_generator.embed, texts), turns=turns, seconds=pause)
        await no_tasks_but(tasks)
        before = _rows(await still_answers(embedding_generator.embed(_TEXTS)))
        after = _rows(await embedding_generator.embed(_TEXTS))
        assert before.shape[0] == len(_TEXTS)
        self._same(before, after, "after a cancelled call, equal texts have different rows")
        self._unit_or_zero(before)

    @pytest.mark.asyncio
    async def test_a_vendor_that_fails_is_an_error_of_ours(self, failing_generator: EmbeddingGenerator | None) -> None:
        if failing_generator is None:
            pytest.skip("there is no fixture `failing_generator`: nothing stands behind the generator that could fail")
        purposes: tuple[Literal["document", "query"], ...] = ("document", "query")
        for purpose in purposes:
            embedding = failing_generator.embed(_TEXTS, purpose=purpose)
            await fails_as((ServiceError, ConfigurationError), embedding, f"embedding a {purpose}")

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
