"""The EmbeddingGenerator kit passes a correct generator and catches broken ones."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytest

from portico.errors import ContextOverflow, ServiceUnavailable
from portico.vectors import Vectors
from portico_testkit.embedding_generator import EmbeddingGeneratorKit
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.kit_failures import KnownFaults, keeps_its_lock
from portico_testkit.kit_of_a_kit import KitOfAKit

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


@FAULTS.caught_by("an_empty_text_gives_zeros", "not zeros")
class NotANumberForEmpty(Broken):
    def spoil(self, rows, texts, purpose):
        rows[[not text for text in texts]] = np.nan
        return rows


@FAULTS.caught_by("an_empty_text_gives_zeros", "not zeros")
class OnesForEmpty(Broken):
    def spoil(self, rows, texts, purpose):
        rows[[not text for text in texts], 0] = 1
        return rows


@FAULTS.caught_by("each_text_has_its_own_row_in_order", "is not that of text")
class SortedByLength(Broken):
    def spoil(self, rows, texts, purpose):
        return rows[np.argsort([len(text) for text in texts], kind="stable")] if len(texts) else rows


@FAULTS.caught_by("empty_and_repeated_texts_among_others_keep_their_places", "gave 32 rows")
class LosesEmptyTexts(Broken):
    def spoil(self, rows, texts, purpose):
        return rows[[bool(text) for text in texts]] if len(texts) else rows


@FAULTS.caught_by("different_texts_are_told_apart", "the texts find")
class Constant(Broken):
    def spoil(self, rows, texts, purpose):
        rows[[bool(text) for text in texts]] = np.eye(1, rows.shape[1])
        return rows


@FAULTS.caught_by("equal_texts_give_equal_rows_whatever_their_neighbours", "before it changed a text's row")
class PaddingLeaks(Broken):
    """The longest text of the batch decides how strongly a common component is mixed in."""

    def spoil(self, rows, texts, purpose):
        rows[:, 0] += 0.001 * max((len(text) for text in texts), default=0) * rows.any(axis=1)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, lengths, out=rows, where=lengths > 0)


@FAULTS.caught_by("all_rows_have_the_same_dimensions", "128")
class QueriesOfAnotherShape(Broken):
    def spoil(self, rows, texts, purpose):
        return rows[:, :128] if purpose == "query" else rows


@FAULTS.caught_by("a_large_batch_is_whole_and_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class Blocking(Broken):
    def spoil(self, rows, texts, purpose):
        if len(texts) > 1000:
            time.sleep(0.05)
        return rows


class StopsOnceWithItsHost(Broken):
    """Is right, and is stopped in its first large batch, as a busy host does it to every process."""

    stopped = False

    def spoil(self, rows, texts, purpose):
        if len(texts) > 1000 and not self.stopped:
            self.stopped = True
            end = time.monotonic() + 0.7  # it does not wait: it is stopped
            while time.monotonic() < end:
                pass
        return rows


@FAULTS.caught_by("the_model_stays_the_same_when_it_is_used", "changed the model's name")
class CountsCalls(Broken):
    def spoil(self, rows, texts, purpose):
        self.model = f"hashing-after-{self.calls}"
        return rows


@FAULTS.caught_by("equal_texts_give_equal_rows_whatever_their_neighbours")
class KeepsState(Broken):
    def spoil(self, rows, texts, purpose):
        shift = self.calls % 2
        return np.roll(rows, shift, axis=1)


@FAULTS.caught_by("earlier_results_are_not_touched_by_later_calls", "a later call changed the vectors")
class OneBuffer(Broken):
    async def embed(self, texts, *, purpose="document"):
        vectors = await HashingEmbeddings.embed(self, texts, purpose=purpose)
        if not hasattr(self, "shared"):
            self.shared = bytearray(40_000_000)
        self.shared[: vectors.buffer.nbytes] = vectors.buffer.cast("B")
        return Vectors(memoryview(self.shared)[: vectors.buffer.nbytes], vectors.rows, vectors.dimensions)


@FAULTS.caught_by("concurrent_calls_do_not_mix")
class MixesCalls(Broken):
    """Keeps its texts on itself while it works."""

    async def embed(self, texts, *, purpose="document"):
        self.texts = list(texts)
        await super().embed(texts[:1])
        return await super().embed(self.texts, purpose=purpose)


@FAULTS.caught_by("awkward_texts_do_no_harm", "surrogates not allowed")
class RefusesSurrogates(Broken):
    def spoil(self, rows, texts, purpose):
        for text in texts:
            text.encode()
        return rows


@FAULTS.caught_by("name_and_model_are_filled", "name is empty")
class Unnamed(Broken):
    def __init__(self):
        super().__init__(name=" ")


@FAULTS.caught_by("a_cancelled_call_leaves_it_usable", "still busy")
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


@FAULTS.caught_by("empty_and_repeated_texts_among_others_keep_their_places", "of them empty, gave 9 rows")
class SendsEqualTextsOnce(Broken):
    def spoil(self, rows, texts, purpose):
        return rows[[list(texts).index(text) for text in dict.fromkeys(texts)]] if len(texts) else rows


@FAULTS.caught_by("empty_and_repeated_texts_among_others_keep_their_places", "is not that of text")
class PutsEmptyTextsLast(Broken):
    def spoil(self, rows, texts, purpose):
        return rows[np.argsort([not text for text in texts], kind="stable")] if len(texts) else rows


@FAULTS.caught_by("all_rows_have_the_same_dimensions", r"had rows of \[1, 1, 256")
class KnowsNoDimensionsBeforeItsFirstText(Broken):
    async def embed(self, texts, *, purpose="document"):
        if not any(texts) and not self.embedded:
            return Vectors(np.zeros((len(texts), 1), np.float32), len(texts), 1)
        return await super().embed(texts, purpose=purpose)


@FAULTS.caught_by("the_texts_are_not_changed", "embedding changed the texts")
class StripsTheCallersTexts(Broken):
    async def embed(self, texts, *, purpose="document"):
        if isinstance(texts, list):
            texts[:] = [text.strip() for text in texts]
        return await super().embed(texts, purpose=purpose)


@FAULTS.caught_by("the_texts_are_not_changed", "embedding changed the texts")
class SortsTheCallersTexts(Broken):
    async def embed(self, texts, *, purpose="document"):
        vectors = await super().embed(texts, purpose=purpose)
        if isinstance(texts, list):
            texts.sort(key=len)
        return vectors


class Batching(Broken):
    """Embeds in batches of 100 texts at once; ``pause`` is how long batch n takes."""

    async def embed(self, texts, *, purpose="document"):
        texts = list(texts)
        starts = range(0, max(1, len(texts)), 100)
        batches = [self.batch(start, texts[start : start + 100]) for start in starts]
        rows = np.concatenate(await self.gather(batches))
        return Vectors(np.ascontiguousarray(rows), rows.shape[0], rows.shape[1])

    async def batch(self, start, texts):
        return self._rows(texts)

    async def gather(self, batches):
        return await asyncio.gather(*batches)


@FAULTS.caught_by("a_large_batch_is_whole_and_leaves_the_event_loop_free", "is another text's")
class TakesBatchesAsTheyCome(Batching):
    async def batch(self, start, texts):
        await asyncio.sleep(0.01 if start % 300 == 0 else 0)
        return self._rows(texts)

    async def gather(self, batches):
        return [await batch for batch in asyncio.as_completed(batches)]


@FAULTS.caught_by("a_large_batch_is_whole_and_leaves_the_event_loop_free", "100 of 2000 rows are zeros")
class LosesABatch(Batching):
    async def batch(self, start, texts):
        return np.zeros((len(texts), self.dimensions), np.float32) if start == 400 else self._rows(texts)


@FAULTS.caught_by("a_cancelled_call_leaves_it_usable", "after a cancelled call it never answers")
class KeepsItsLockWhenCancelled(Broken):
    embed = keeps_its_lock(Broken.embed)


@FAULTS.caught_by("a_cancelled_call_leaves_it_usable", "tasks go on 0.3 seconds after")
class LeavesBatchesRunning(Batching):
    async def batch(self, start, texts):
        await asyncio.sleep(0.001 if start < 100 else 2)
        return self._rows(texts)

    async def gather(self, batches):
        tasks = [asyncio.create_task(batch) for batch in batches]
        return [await task for task in tasks]


@FAULTS.caught_by("a_text_that_is_too_long_is_refused_or_has_its_row", "tasks go on 0.3 sec")
class LeavesBatchesRunningAfterARefusal(Batching):
    """The first batch that fails ends the call, and nobody ends the others."""

    async def batch(self, start, texts):
        if any(len(text) > 80_000 for text in texts):
            raise ContextOverflow("A text is too long.")
        await asyncio.sleep(5 if len(texts) == 100 and texts[1] == texts[2] else 0)
        return self._rows(texts)


@FAULTS.caught_by("a_text_that_is_too_long_is_refused_or_has_its_row", "one of them long, gave 2 rows")
class EndsABatchAtALongText(Broken):
    def spoil(self, rows, texts, purpose):
        long = [number for number, text in enumerate(texts) if len(text) > 10_000]
        return rows[: long[0] + 1] if long else rows


@FAULTS.caught_by("a_text_that_is_too_long_is_refused_or_has_its_row", "gave zeros, as if it were empty")
class ZerosForLongTexts(Broken):
    def spoil(self, rows, texts, purpose):
        rows[[len(text) > 10_000 for text in texts]] = 0
        return rows


@FAULTS.caught_by("a_text_that_is_too_long_is_refused_or_has_its_row", "raised RuntimeError")
class VendorsErrorForLongTexts(Broken):
    def spoil(self, rows, texts, purpose):
        if any(len(text) > 10_000 for text in texts):
            raise RuntimeError("input is too large to process")
        return rows


@FAULTS.caught_by("a_text_that_is_too_long_is_refused_or_has_its_row", "refused without a word")
class RefusesLongTextsWithoutAWord(Broken):
    def spoil(self, rows, texts, purpose):
        if any(len(text) > 10_000 for text in texts):
            raise ContextOverflow("")
        return rows


@FAULTS.caught_by("a_cancelled_call_leaves_it_usable", "a cancelled call raised ServiceUnavailable")
class TakesCancellationForAFailure(Broken):
    async def embed(self, texts, *, purpose="document"):
        try:
            return await super().embed(texts, purpose=purpose)
        except asyncio.CancelledError as error:
            raise ServiceUnavailable("no connection") from error


@FAULTS.caught_by("no_texts_give_no_rows")
class ARowForNothing(Broken):
    def spoil(self, rows, texts, purpose):
        return rows if len(texts) else np.zeros((1, self.dimensions))


@FAULTS.caught_by("white_space_gives_a_finite_row", "not finite")
class DividesByTheWordsOfAText(Broken):
    def spoil(self, rows, texts, purpose):
        for row, text in zip(rows, texts, strict=True):
            if text and not text.split():
                row[:] = np.nan
        return rows


@FAULTS.caught_by("rows_are_finite_and_of_length_one", "not finite")
class NotFinite(Broken):
    def spoil(self, rows, texts, purpose):
        rows[:, 0] = np.inf
        return rows


@FAULTS.caught_by("each_text_has_its_own_row_in_order", "not Vectors")
class GivesAnArray(Broken):
    """Of double precision, as a vendor's library does."""

    async def embed(self, texts, *, purpose="document"):
        return np.zeros((len(texts), self.dimensions))


@FAULTS.caught_by("rows_are_finite_and_of_length_one", "lengths are")
class ReadsHalfPrecisionAsSingle(Broken):
    async def embed(self, texts, *, purpose="document"):
        rows = np.ones((len(texts), self.dimensions * 2), np.float16)
        return Vectors(rows.view(np.float32).copy(), len(texts), self.dimensions)


@FAULTS.caught_by("the_purpose_of_one_call_does_not_reach_another", "after queries were embedded")
class KeepsThePurpose(Broken):
    """Embeds questions with a prefix of their own, and everything after them."""

    asked = False

    async def embed(self, texts, *, purpose="document"):
        self.asked = self.asked or purpose == "query"
        prefixed = [f"question {text}" if text and self.asked else text for text in texts]
        return await super().embed(prefixed, purpose=purpose)


@FAULTS.caught_by("the_purpose_of_one_call_does_not_reach_another", "beside calls of the other purpose")
class MixesPurposes(Broken):
    async def embed(self, texts, *, purpose="document"):
        self.purpose = purpose
        await asyncio.sleep(0)
        prefixed = [f"question {text}" if text and self.purpose == "query" else text for text in texts]
        return await super().embed(prefixed, purpose=purpose)


@FAULTS.caught_by("a_cancelled_call_leaves_it_usable", "as if nobody had cancelled it")
class TakesNoNoticeOfCancellation(Broken):
    async def embed(self, texts, *, purpose="document"):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)
        return await super().embed(texts, purpose=purpose)


@FAULTS.caught_by("a_vendor_that_fails_is_an_error_of_ours", "embedding a document raised ConnectionError: down")
class LetsTheVendorsErrorOut(Broken):
    @staticmethod
    async def fail(texts, *, purpose="document"):
        raise ConnectionError("down")


@FAULTS.caught_by("a_vendor_that_fails_is_an_error_of_ours", "embedding a query raised KeyError")
class LetsTheVendorsErrorOutForQuestions(Broken):
    @staticmethod
    async def fail(texts, *, purpose="document"):
        if purpose == "query":
            raise KeyError("data")
        await Broken.fail(texts)


@FAULTS.caught_by("a_vendor_that_fails_is_an_error_of_ours", "what it stands on fails")
class GivesZerosWhereItFails(Broken):
    @staticmethod
    async def fail(texts, *, purpose="document"):
        return Vectors(bytes(len(texts) * 4), len(texts), 1)


@FAULTS.caught_by("a_vendor_that_fails_is_an_error_of_ours", "says '' only")
class FailsWithoutAWord(Broken):
    @staticmethod
    async def fail(texts, *, purpose="document"):
        raise ServiceUnavailable("")


class RefusesLongTexts(HashingEmbeddings):
    """As a service may whose model reads so and so many tokens."""

    async def embed(self, texts, *, purpose="document"):
        if any(len(text) > 10_000 for text in texts):
            raise ContextOverflow("A text has more than 10,000 characters.")
        return await super().embed(texts, purpose=purpose)


class TestOneThatRefusesLongTexts(EmbeddingGeneratorKit):
    @pytest.fixture
    def embedding_generator(self) -> RefusesLongTexts:
        return RefusesLongTexts()


class TestOneThatWorksInBatches(EmbeddingGeneratorKit):
    @pytest.fixture
    def embedding_generator(self) -> Batching:
        return Batching()


class TestTheEmbeddingGeneratorKit(KitOfAKit):
    faults = FAULTS
    correct = (Broken, Batching, RefusesLongTexts, StopsOnceWithItsHost)


async def test_a_tolerance_that_hides_mix_ups_is_refused() -> None:
    class Lenient(EmbeddingGeneratorKit):
        tolerance = 0.2

    with pytest.raises(AssertionError, match=r"a tolerance of 0.2 hides rows that are 0\.\d+ apart"):
        await Lenient().test_different_texts_are_told_apart(HashingEmbeddings())
