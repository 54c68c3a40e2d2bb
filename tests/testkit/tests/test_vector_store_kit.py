"""The VectorStore kit passes a correct store and catches broken ones."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence

import pytest
from hypothesis import Phase, settings

from portico.errors import StoreDamaged, StoreError
from portico.filter import And, Equal, Filter, FilterSupport, matches
from portico.ports.vector_store import VectorMatch, VectorRecord
from portico.vectors import Vectors
from portico_testkit.fakes.vector_store import DictVectorStore
from portico_testkit.kit_failures import KnownFaults, keeps_its_lock
from portico_testkit.kit_of_a_kit import KitOfAKit
from portico_testkit.vector_store import VectorStoreKit


class TestDictVectorStore(VectorStoreKit):
    @pytest.fixture
    def vector_store(self) -> DictVectorStore:
        return DictVectorStore()


class EqualityOnly(DictVectorStore):
    """Correct, but able to do less: the kit must not ask for more than is declared."""

    filter_support = FilterSupport({"a": frozenset({"Equal"}), "kind": frozenset({"Equal"})})


class TestEqualityOnly(VectorStoreKit):
    @pytest.fixture
    def vector_store(self) -> EqualityOnly:
        return EqualityOnly()


class Files(DictVectorStore):
    """Stands for a persistent store: stores of one place share what they hold."""

    def __init__(self, place: dict) -> None:
        super().__init__()
        self.persistent = True
        self.place = place
        self._namespaces = place.setdefault("namespaces", {})
        self._dimensions = place.setdefault("dimensions", {})


class TestPersistentStore(VectorStoreKit):
    @pytest.fixture
    def vector_store(self) -> Files:
        return Files({})

    async def another(self, vector_store: Files) -> Files:
        return Files(vector_store.place)


class Kit(VectorStoreKit):
    # Finding a fault is enough here; making it small takes most of the time.
    effort = settings(max_examples=60, phases=(Phase.explicit, Phase.generate))

    async def another(self, vector_store):
        return type(vector_store)()


def failing(kind: type[Broken]) -> Broken:
    store = kind()
    store.fails = True
    return store


FAULTS = KnownFaults(Kit, lambda kind: {"vector_store": kind, "failing_store": lambda: failing(kind)})


class Broken(DictVectorStore):
    """The start of every variant that does one thing wrong."""

    fails = False

    async def search(self, namespace, queries, *, top=10, filter=None):
        if self.fails:
            raise StoreDamaged("Vector store 'dict' cannot read what it keeps. Drop 'n', and write it again.")
        return await super().search(namespace, queries, top=top, filter=filter)

    async def count(self, namespace):
        if self.fails:
            raise StoreError("Vector store 'dict' cannot read what it keeps.")
        return await super().count(namespace)


@FAULTS.caught_by("the_nearest_come_first_with_their_cosines")
class WorstFirst(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        found = await super().search(namespace, queries, top=top, filter=filter)
        return [matches[::-1] for matches in found]


@FAULTS.caught_by("the_nearest_come_first_with_their_cosines")
class InnerProducts(Broken):
    """Scores grow with the length of a query."""

    async def search(self, namespace, queries, *, top=10, filter=None):
        found = await super().search(namespace, queries, top=top, filter=filter)
        length = sum(number * number for number in queries.buffer[: queries.dimensions]) ** 0.5
        return [[VectorMatch(m.id, m.score * length, m.metadata) for m in matches] for matches in found]


@FAULTS.caught_by("never_more_than_top")
class OneTooMany(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        return await super().search(namespace, queries, top=top + 1, filter=filter)


@FAULTS.caught_by("a_top_below_one_is_refused", "DID NOT RAISE")
class FindsNothingForNoTop(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        found = await super().search(namespace, queries, top=max(top, 1), filter=filter)
        return found if top > 0 else [[] for _ in found]


@FAULTS.caught_by("a_top_below_one_is_refused", "DID NOT RAISE")
class TakesAnyTopWhereNothingIs(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        if namespace not in self._namespaces:
            return [[] for _ in range(queries.rows)]
        return await super().search(namespace, queries, top=top, filter=filter)


@FAULTS.caught_by("each_query_has_its_own_list")
class FirstQueryOnly(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        return (await super().search(namespace, queries, top=top, filter=filter))[:1]


@FAULTS.caught_by("every_clause_means_what_matches_says")
@FAULTS.caught_by("random_filters_mean_what_matches_says")
class DropsTheFilter(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        return await super().search(namespace, queries, top=top)


@FAULTS.caught_by("a_filter_is_applied_before_top", "did not reach the far record")
class FiltersAfterTop(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        found = await super().search(namespace, queries, top=top)
        return [[m for m in some if matches(filter, m.metadata)] for some in found]


@FAULTS.caught_by("every_clause_means_what_matches_says")
class DropsClausesItDoesNotKnow(Broken):
    async def search(self, namespace, queries, *, top=10, filter: Filter | None = None):
        if isinstance(filter, And):
            filter = And(tuple(part for part in filter.parts if isinstance(part, Equal)))
        return await super().search(namespace, queries, top=top, filter=filter)


@FAULTS.caught_by("every_clause_means_what_matches_says", "DID NOT RAISE")
class DropsUnsupportedFilters(Broken):
    filter_support = FilterSupport({"a": frozenset({"Equal"})})

    async def search(self, namespace, queries, *, top=10, filter=None):
        store = DictVectorStore()
        store._namespaces, store._dimensions = self._namespaces, self._dimensions
        return await store.search(namespace, queries, top=top, filter=filter if isinstance(filter, Equal) else None)


@FAULTS.caught_by("every_clause_means_what_matches_says")
class TrueIsOne(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        if isinstance(filter, Equal) and isinstance(filter.value, bool):
            filter = Equal(filter.field, int(filter.value))
        return await super().search(namespace, queries, top=top, filter=filter)


@FAULTS.caught_by("a_filter_is_applied_before_top", "a filter reached the next call")
class KeepsTheLastFilter(Broken):
    last: Filter | None = None

    async def search(self, namespace, queries, *, top=10, filter=None):
        self.last = filter or self.last
        return await super().search(namespace, queries, top=top, filter=self.last)


@FAULTS.caught_by("namespaces_are_apart")
class OneNamespace(Broken):
    async def upsert(self, namespace, records, vectors):
        await super().upsert("all", records, vectors)

    async def search(self, namespace, queries, *, top=10, filter=None):
        return await super().search("all", queries, top=top, filter=filter)


@FAULTS.caught_by("namespaces_are_apart")
class FoldsNamespaces(Broken):
    async def upsert(self, namespace, records, vectors):
        await super().upsert(namespace.casefold(), records, vectors)

    async def search(self, namespace, queries, *, top=10, filter=None):
        return await super().search(namespace.casefold(), queries, top=top, filter=filter)


@FAULTS.caught_by("any_string_is_an_id")
class CutsLongIds(Broken):
    async def upsert(self, namespace, records, vectors):
        await super().upsert(namespace, [VectorRecord(r.id[:255], r.metadata) for r in records], vectors)


@FAULTS.caught_by("any_string_is_an_id")
class RefusesSurrogates(Broken):
    async def upsert(self, namespace, records, vectors):
        for record in records:
            record.id.encode()
        await super().upsert(namespace, records, vectors)


@FAULTS.caught_by("a_wrong_upsert_writes_nothing", "DID NOT RAISE")
class TakesNaN(Broken):
    async def upsert(self, namespace, records, vectors):
        numbers = [0.0 if number != number else number for number in vectors.buffer.tolist()]
        rows = [numbers[i : i + vectors.dimensions] for i in range(0, len(numbers), vectors.dimensions)]
        await super().upsert(namespace, records, Vectors.from_rows(rows, dimensions=vectors.dimensions))


@FAULTS.caught_by("a_wrong_upsert_writes_nothing")
class WritesUpToTheFault(Broken):
    async def upsert(self, namespace, records, vectors):
        for number, record in enumerate(records):
            await super().upsert(namespace, [record], vectors[number])


@FAULTS.caught_by("writes_are_seen_whole")
@FAULTS.caught_by("a_cancelled_write_is_whole_or_absent")
class WritesInParts(Broken):
    """Others see a half-written call."""

    async def upsert(self, namespace, records, vectors):
        for number, record in enumerate(records):
            await super().upsert(namespace, [record], vectors[number])
            await asyncio.sleep(0)


@FAULTS.caught_by("writes_are_seen_whole", "0 records of batches")
class WritesHalfOfReplacements(Broken):
    """An upsert first removes what it replaces and then lets others run."""

    async def upsert(self, namespace, records, vectors):
        await super().delete(namespace, [record.id for record in records])
        await asyncio.sleep(0)
        await super().upsert(namespace, records, vectors)


@FAULTS.caught_by("writers_at_once_lose_nothing")
class LosesWrites(Broken):
    """Reads, waits and writes back."""

    async def upsert(self, namespace, records, vectors):
        before = dict(self._namespaces.get(namespace, {}))
        await asyncio.sleep(0)
        self._namespaces[namespace] = before
        await super().upsert(namespace, records, vectors)


@FAULTS.caught_by("the_same_id_is_replaced")
class KeepsOldMetadata(Broken):
    async def upsert(self, namespace, records, vectors):
        old, _ = await self.get(namespace, [record.id for record in records])
        kept = {record.id: record.metadata for record in old}
        merged = [VectorRecord(r.id, {**kept.get(r.id, {}), **r.metadata}) for r in records]
        await super().upsert(namespace, merged, vectors)


@FAULTS.caught_by("delete_counts_what_was_there")
@FAULTS.caught_by("any_history_ends_as_in_a_dictionary")
class CountsUnknownDeletes(Broken):
    async def delete(self, namespace, ids):
        await super().delete(namespace, ids)
        return len(ids)


@FAULTS.caught_by("get_keeps_the_order_asked_for")
class GetsInItsOwnOrder(Broken):
    async def get(self, namespace, ids):
        return await super().get(namespace, sorted(ids))


@FAULTS.caught_by("get_keeps_the_order_asked_for")
class GetsOtherVectors(Broken):
    async def get(self, namespace, ids):
        records, vectors = await super().get(namespace, ids)
        if vectors is None:
            return records, None
        return records, Vectors.from_rows([[-x for x in row.buffer] for row in vectors])


@FAULTS.caught_by("an_unknown_namespace_is_empty")
class FailsOnUnknownNamespaces(Broken):
    async def count(self, namespace):
        return len(self._namespaces[namespace])


@FAULTS.caught_by("an_empty_upsert_writes_nothing")
class EmptySettlesDimensions(Broken):
    async def upsert(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        self._dimensions.setdefault(namespace, vectors.dimensions)
        await super().upsert(namespace, records, vectors)


@FAULTS.caught_by("a_dropped_namespace_may_come_back_otherwise")
class DropKeepsDimensions(Broken):
    async def drop(self, namespace):
        self._namespaces.pop(namespace, None)


@FAULTS.caught_by("ids_are_all_there_once")
class FirstPageOfIds(Broken):
    async def ids(self, namespace):
        number = 0
        async for id in super().ids(namespace):
            number += 1
            if number <= 1000:
                yield id


@FAULTS.caught_by("metadata_come_back_as_they_were")
class SharesMetadata(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        found = await super().search(namespace, queries, top=top, filter=filter)
        kept = self._namespaces.get(namespace, {})
        return [[VectorMatch(m.id, m.score, kept[m.id][0].metadata) for m in some] for some in found]


@FAULTS.caught_by("metadata_come_back_as_they_were")
class MetadataAsText(Broken):
    async def upsert(self, namespace, records, vectors):
        texts = [VectorRecord(r.id, {field: str(value) for field, value in r.metadata.items()}) for r in records]
        await super().upsert(namespace, texts, vectors)


@FAULTS.caught_by("a_wrong_query_is_refused")
class TakesAnyQuery(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        try:
            return await super().search(namespace, queries, top=top, filter=filter)
        except ValueError:
            return [[] for _ in range(queries.rows)]


@FAULTS.caught_by("zeros_score_zero")
class ZerosBecomeOnes(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        found = await super().search(namespace, queries, top=top, filter=filter)
        return [[VectorMatch(m.id, m.score or 1.0, m.metadata) for m in some] for some in found]


@FAULTS.caught_by("a_cancelled_write_is_whole_or_absent", "of 3000 records of a cancelled write")
class ForgetsOnCancel(Broken):
    async def upsert(self, namespace, records, vectors):
        half = len(records) // 2
        await super().upsert(namespace, records[:half], vectors.slice(0, half))
        await asyncio.sleep(0.004 if half > 1000 else 0)
        await super().upsert(namespace, records[half:], vectors.slice(half, len(records)))


@FAULTS.caught_by("name_and_abilities_are_declared", "the name is blank")
class Unnamed(Broken):
    def __init__(self) -> None:
        super().__init__(name="")


@FAULTS.caught_by("what_was_written_outlives_the_store", "do not see the same")
class SaysItIsPersistent(Broken):
    """Every store of it starts empty."""

    def __init__(self) -> None:
        super().__init__()
        self.persistent = True


@FAULTS.caught_by("vectors_are_copied")
class KeepsTheBuffer(Broken):
    async def upsert(self, namespace, records, vectors):
        await super().upsert(namespace, records, vectors)
        self.given = {namespace: (records, vectors)}

    async def search(self, namespace, queries, *, top=10, filter=None):
        if namespace in getattr(self, "given", {}):
            await super().upsert(namespace, *self.given[namespace])
        return await super().search(namespace, queries, top=top, filter=filter)


@FAULTS.caught_by("searches_at_once_do_not_mix", "it found")
class MixesSearches(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        self.queries = queries
        await asyncio.sleep(0)
        return await super().search(namespace, self.queries, top=top, filter=filter)


@FAULTS.caught_by("searches_at_once_do_not_mix", "it found")
class MixesTops(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        self.top = top
        await asyncio.sleep(0)
        return await super().search(namespace, queries, top=self.top, filter=filter)


@FAULTS.caught_by("it_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoop(Broken):
    async def upsert(self, namespace, records, vectors):
        time.sleep(0.05)
        await super().upsert(namespace, records, vectors)


@FAULTS.caught_by("it_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoopInSearches(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        time.sleep(0.05)
        return await super().search(namespace, queries, top=top, filter=filter)


@FAULTS.caught_by("a_cancelled_write_is_whole_or_absent", "as if nobody had cancelled it")
class TakesNoNoticeOfCancellation(Broken):
    async def upsert(self, namespace, records, vectors):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)
        await super().upsert(namespace, records, vectors)


@FAULTS.caught_by("a_cancelled_write_is_whole_or_absent", "a cancelled call raised StoreError")
class TakesCancellationForAFailure(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            raise StoreError("The store cannot be read.") from None
        return await super().search(namespace, queries, top=top, filter=filter)


@FAULTS.caught_by("a_cancelled_write_is_whole_or_absent", "after a cancelled call it never answers")
class KeepsItsLockWhenCancelled(Broken):
    upsert = keeps_its_lock(Broken.upsert)


@FAULTS.caught_by("a_cancelled_write_is_whole_or_absent", "after a cancelled call it never answers")
class KeepsTheLockOfReadsWhenCancelled(Broken):
    search = keeps_its_lock(Broken.search)


@FAULTS.caught_by("a_cancelled_write_is_whole_or_absent", "tasks go on")
class WritesOnWhenCancelled(Broken):
    async def upsert(self, namespace, records, vectors):
        writing = asyncio.create_task(asyncio.sleep(5))
        await asyncio.sleep(0.01 if len(records) > 100 else 0)
        writing.cancel()
        await super().upsert(namespace, records, vectors)


@FAULTS.caught_by("what_cannot_be_read_is_a_store_error", "search raised OSError")
class LetsTheDisksErrorOut(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        if self.fails:
            raise OSError("I/O error")
        return await super().search(namespace, queries, top=top, filter=filter)


@FAULTS.caught_by("what_cannot_be_read_is_a_store_error", "ids raised KeyError")
class LetsAKeyErrorOutOfIds(Broken):
    async def ids(self, namespace):
        if self.fails:
            raise KeyError("ids")
        async for id in super().ids(namespace):
            yield id


@FAULTS.caught_by("what_cannot_be_read_is_a_store_error", "what it stands on fails")
class FindsNothingWhereItFails(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        return await DictVectorStore.search(self, namespace, queries, top=top, filter=filter)


class TestTheVectorStoreKit(KitOfAKit):
    faults = FAULTS
    correct = (Broken,)


async def test_a_store_whose_fields_the_kit_does_not_know_is_not_passed_untried() -> None:
    class OfColours(DictVectorStore):
        filter_support = FilterSupport({"colour": frozenset({"Equal"})})

    with pytest.raises(AssertionError, match=r"it takes filters of .*colour.* for the kit, let it take `a`"):
        await VectorStoreKit().test_every_clause_means_what_matches_says(OfColours())
