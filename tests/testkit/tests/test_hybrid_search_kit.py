"""The HybridSearch kit passes a correct store and catches broken ones."""

from __future__ import annotations

import asyncio
import re
import time

import pytest

from portico.errors import StoreError
from portico.filter import FilterSupport
from portico.ports.hybrid_search import HybridMatch
from portico.ports.vector_store import VectorRecord
from portico.vectors import Vectors
from portico_testkit.fakes.hybrid_search import DictHybridSearch, DictHybridStore
from portico_testkit.hybrid_search import HybridSearchKit
from portico_testkit.kit_failures import KnownFaults, keeps_its_lock
from portico_testkit.kit_of_a_kit import KitOfAKit


class TestDictHybridStore(HybridSearchKit):
    @pytest.fixture
    def vector_store(self) -> DictHybridStore:
        return DictHybridStore()


class EqualityOnly(DictHybridStore):
    """Correct, but able to do less: the kit must not ask for more than is declared."""

    filter_support = FilterSupport({"a": frozenset({"Equal"})})


class TestEqualityOnly(HybridSearchKit):
    @pytest.fixture
    def vector_store(self) -> EqualityOnly:
        return EqualityOnly()


class Shared(DictHybridStore):
    """Stands for a persistent store: stores of one place share what they hold."""

    def __init__(self, place: dict) -> None:
        super().__init__()
        self.persistent = True
        self.place = place
        self._namespaces = place.setdefault("namespaces", {})
        self._dimensions = place.setdefault("dimensions", {})
        self.texts = place.setdefault("texts", {})


class TestPersistentStore(HybridSearchKit):
    @pytest.fixture
    def vector_store(self) -> Shared:
        return Shared({})

    async def another(self, vector_store: Shared) -> Shared:
        return Shared(vector_store.place)


class Kit(HybridSearchKit):
    async def another(self, vector_store):
        return type(vector_store)()


def failing(kind: type[BrokenStore]) -> BrokenStore:
    store = made(kind)
    store.fails = True
    return store


def made(kind: type) -> BrokenStore:
    """Make a store of a broken kind: of a store, or of the search that a store has."""
    if issubclass(kind, BrokenStore):
        return kind()
    store = BrokenStore()
    store.hybrid = kind(store)
    return store


FAULTS = KnownFaults(Kit, lambda kind: {"vector_store": lambda: made(kind), "failing_store": lambda: failing(kind)})


class BrokenStore(DictHybridStore):
    """The start of every variant whose writing or reading is wrong."""

    fails = False

    def __init__(self) -> None:
        super().__init__()
        self.hybrid = Broken(self)


class Broken(DictHybridSearch):
    """The start of every variant whose searching is wrong."""

    async def search(self, namespace, text, vector=None, *, top=10, share=None, filter=None):
        if self.store.fails:
            raise StoreError("Vector store 'dict' cannot read what it keeps.")
        return await super().search(namespace, text, vector, top=top, share=share, filter=filter)


@FAULTS.caught_by("texts_come_back")
class KeepsNoTexts(BrokenStore):
    async def get(self, namespace, ids):
        records, vectors = await super().get(namespace, ids)
        return [VectorRecord(record.id, record.metadata) for record in records], vectors


@FAULTS.caught_by("texts_come_back")
class CutsTextsAtNul(BrokenStore):
    async def upsert(self, namespace, records, vectors):
        cut = [VectorRecord(r.id, r.metadata, r.text and r.text.split("\x00")[0]) for r in records]
        await super().upsert(namespace, cut, vectors)


@FAULTS.caught_by("words_find_what_the_vector_does_not", "the word alone finds")
class TakesNoNoticeOfWords(Broken):
    async def search(self, namespace, text, vector=None, *, share=None, **options):
        return await super().search(namespace, text, vector, share=0.0, **options)


@FAULTS.caught_by("words_find_what_the_vector_does_not", "both together find forge")
class WordsAloneByDefault(Broken):
    async def search(self, namespace, text, vector=None, *, share=None, **options):
        return await super().search(namespace, text, vector, share=1.0 if share is None else share, **options)


@FAULTS.caught_by("one_half_is_enough", "without words, the vector finds nothing")
class WantsWords(Broken):
    async def search(self, namespace, text, vector=None, **options):
        return await super().search(namespace, text, vector, **options) if text.strip(" ?!") else []


@FAULTS.caught_by("one_half_is_enough", "words alone find nothing")
class WantsAVector(Broken):
    async def search(self, namespace, text, vector=None, **options):
        found = await super().search(namespace, text, vector, **options)
        return [] if vector is None else found


@FAULTS.caught_by("one_half_is_enough", "a cosine where no vector")
class TellsACosineOfNothing(Broken):
    async def search(self, namespace, text, vector=None, **options):
        found = await super().search(namespace, text, vector, **options)
        return [HybridMatch(m.id, m.score, m.metadata, m.lexical, m.vector or 0.5) for m in found]


@FAULTS.caught_by("the_share_weighs_the_halves", "with a share of 0.05")
class TurnsTheShareRound(Broken):
    async def search(self, namespace, text, vector=None, *, share=None, **options):
        turned = None if share is None else 1 - share
        return await super().search(namespace, text, vector, share=turned, **options)


@FAULTS.caught_by("the_share_weighs_the_halves", "first is")
class TakesOneHalfOnly(Broken):
    """What either half finds alone, never what both find."""

    async def search(self, namespace, text, vector=None, **options):
        found = await super().search(namespace, text, vector, **options)
        return sorted(found, key=lambda match: -abs(match.lexical - match.vector))


@FAULTS.caught_by("a_rare_word_says_more", "first are")
class CountsEachWordAlike(Broken):
    def answered(self, namespace, text):
        words = set(re.findall(r"[^\W_]+", text.lower()))
        return {
            id: len(words & set(re.findall(r"[^\W_]+", kept.lower()))) / max(len(words), 1)
            for id, kept in reversed(self.store.texts.get(namespace, {}).items())
        }


@FAULTS.caught_by("case_does_not_count", "finds nothing")
class TellsCapitalsFromSmallLetters(Broken):
    def answered(self, namespace, text):
        return {id: part for id, part in super().answered(namespace, text).items() if self.has(namespace, id, text)}

    def has(self, namespace, id, text):
        return any(word in self.store.texts[namespace][id] for word in re.findall(r"\w+", text))


@FAULTS.caught_by("scores_fall_and_the_halves_are_told", "the scores do not fall")
class WorstFirst(Broken):
    async def search(self, namespace, text, vector=None, **options):
        return (await super().search(namespace, text, vector, **options))[::-1]


@FAULTS.caught_by("scores_fall_and_the_halves_are_told", "the cosine of")
class TellsTheFusedScoreAsCosine(Broken):
    async def search(self, namespace, text, vector=None, **options):
        found = await super().search(namespace, text, vector, **options)
        return [HybridMatch(m.id, m.score, m.metadata, m.lexical, m.score) for m in found]


@FAULTS.caught_by("scores_fall_and_the_halves_are_told", "the words of")
class TellsRawPoints(Broken):
    async def search(self, namespace, text, vector=None, **options):
        found = await super().search(namespace, text, vector, **options)
        return [HybridMatch(m.id, m.score, m.metadata, m.lexical * 7, m.vector) for m in found]


@FAULTS.caught_by("never_more_than_top")
class OneTooMany(Broken):
    async def search(self, namespace, text, vector=None, *, top=10, **options):
        return await super().search(namespace, text, vector, top=top + (top > 0), **options)


@FAULTS.caught_by("never_more_than_top", "DID NOT RAISE")
class TakesAnyTop(Broken):
    async def search(self, namespace, text, vector=None, *, top=10, **options):
        return await super().search(namespace, text, vector, top=max(top, 1), **options)


@FAULTS.caught_by("a_filter_is_applied_to_both_halves_before_top", "the filter keeps")
class FiltersAfterTheCut(Broken):
    async def search(self, namespace, text, vector=None, *, top=10, filter=None, **options):
        found = await super().search(namespace, text, vector, top=top, **options)
        kept = {m.id for m in await super().search(namespace, text, vector, top=1_000, filter=filter, **options)}
        return [match for match in found if match.id in kept]


@FAULTS.caught_by("a_filter_is_applied_to_both_halves_before_top", "by words alone it keeps")
class FiltersTheVectorsOnly(Broken):
    async def search(self, namespace, text, vector=None, *, filter=None, **options):
        return await super().search(namespace, text, vector, filter=None if vector is None else filter, **options)


@FAULTS.caught_by("a_filter_it_cannot_apply_is_refused")
class DropsFilters(Broken):
    async def search(self, namespace, text, vector=None, *, filter=None, **options):
        return await super().search(namespace, text, vector, **options)


@FAULTS.caught_by("the_text_of_a_query_is_data", "multiple repeat")
class ReadsALanguageInQueries(Broken):
    async def search(self, namespace, text, vector=None, **options):
        re.compile(text)
        return await super().search(namespace, text, vector, **options)


@FAULTS.caught_by("the_text_of_a_query_is_data", "has the word, and finds")
class ReadsNotAsAnOperator(Broken):
    async def search(self, namespace, text, vector=None, **options):
        found = await super().search(namespace, text, vector, **options)
        return [match for match in found if match.lexical == 0] if "NOT" in text else found


@FAULTS.caught_by("what_is_replaced_or_gone_is_not_found_by_its_words", "found by the words it had")
class KeepsTheWordsOfWhatIsReplaced(BrokenStore):
    async def upsert(self, namespace, records, vectors):
        before = {record.id: self.texts.get(namespace, {}).get(record.id) for record in records}
        await super().upsert(namespace, records, vectors)
        for record in records:
            if record.text is None and before[record.id] is not None:
                self.texts[namespace][record.id] = before[record.id]


@FAULTS.caught_by("what_is_replaced_or_gone_is_not_found_by_its_words", "the words of a deleted one")
class ForgetsWordsLate(BrokenStore):
    """The words of a deleted record find whatever has its id next."""

    async def delete(self, namespace, ids):
        before = dict(self.texts.get(namespace, {}))
        count = await super().delete(namespace, ids)
        self.texts[namespace] = before
        self.late = True
        return count

    async def upsert(self, namespace, records, vectors):
        before = dict(self.texts.get(namespace, {})) if getattr(self, "late", False) else {}
        await super().upsert(namespace, records, vectors)
        for record in records:
            if record.text and before.get(record.id):
                self.texts[namespace][record.id] = before[record.id]


@FAULTS.caught_by("namespaces_are_apart")
class SharesWords(Broken):
    def answered(self, namespace, text):
        return {
            id: part for each in self.store.texts for id, part in super(SharesWords, self).answered(each, text).items()
        }


@FAULTS.caught_by("a_wrong_query_is_refused", "DID NOT RAISE")
class TakesTheFirstOfSeveralVectors(Broken):
    async def search(self, namespace, text, vector=None, **options):
        return await super().search(namespace, text, vector and vector.slice(0, 1), **options)


@FAULTS.caught_by("a_wrong_query_is_refused", "DID NOT RAISE")
class ClipsTheShare(Broken):
    async def search(self, namespace, text, vector=None, *, share=None, **options):
        clipped = None if share is None else min(1.0, max(0.0, share))
        return await super().search(namespace, text, vector, share=clipped, **options)


@FAULTS.caught_by("metadata_come_back_as_they_were")
class MakesMetadataText(Broken):
    async def search(self, namespace, text, vector=None, **options):
        found = await super().search(namespace, text, vector, **options)
        return [
            HybridMatch(m.id, m.score, {field: str(value) for field, value in m.metadata.items()}, m.lexical, m.vector)
            for m in found
        ]


@FAULTS.caught_by("searches_at_once_do_not_mix", "are wanted, and")
class MixesWords(Broken):
    async def search(self, namespace, text, vector=None, **options):
        self.text = text
        await asyncio.sleep(0)
        return await super().search(namespace, self.text, vector, **options)


@FAULTS.caught_by("what_was_written_is_found_by_another_store", "another store does not find it")
class SaysItIsPersistent(BrokenStore):
    def __init__(self) -> None:
        super().__init__()
        self.persistent = True


@FAULTS.caught_by("a_search_that_is_given_up_leaves_nothing", "after a cancelled call it never answers")
class KeepsItsLockWhenCancelled(Broken):
    search = keeps_its_lock(Broken.search)


@FAULTS.caught_by("a_search_that_is_given_up_leaves_nothing", "tasks go on")
class SearchesOnWhenCancelled(Broken):
    async def search(self, namespace, text, vector=None, **options):
        searching = asyncio.create_task(asyncio.sleep(5))
        await asyncio.sleep(0.001)
        searching.cancel()
        return await super().search(namespace, text, vector, **options)


@FAULTS.caught_by("a_search_that_is_given_up_leaves_nothing", "a cancelled call raised StoreError")
class TakesCancellationForAFailure(Broken):
    async def search(self, namespace, text, vector=None, **options):
        try:
            await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            raise StoreError("The store cannot be read.") from None
        return await super().search(namespace, text, vector, **options)


@FAULTS.caught_by("it_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoop(Broken):
    async def search(self, namespace, text, vector=None, **options):
        time.sleep(0.05)
        return await super().search(namespace, text, vector, **options)


@FAULTS.caught_by("what_cannot_be_read_is_a_store_error", "hybrid search raised OSError")
class LetsTheDisksErrorOut(Broken):
    async def search(self, namespace, text, vector=None, **options):
        if self.store.fails:
            raise OSError("I/O error")
        return await super().search(namespace, text, vector, **options)


class TestTheHybridSearchKit(KitOfAKit):
    faults = FAULTS
    correct = (BrokenStore, Broken)


async def test_a_store_without_hybrid_search_is_told() -> None:
    class Plain(DictHybridStore):
        hybrid = property(lambda self: None, lambda self, value: None)

    with pytest.raises(AssertionError, match="no attribute `hybrid`"):
        await HybridSearchKit().test_namespaces_are_apart(Plain())


async def test_words_of_the_fake_are_weighed_by_their_rarity() -> None:
    store = DictHybridStore()
    records = [VectorRecord("a", {}, "red"), VectorRecord("b", {}, "red roof"), VectorRecord("c", {}, "red")]
    await store.upsert("n", records, Vectors.from_rows([[1.0], [1.0], [1.0]]))
    assert [match.id for match in await store.hybrid.search("n", "red roof", top=1)] == ["b"]
