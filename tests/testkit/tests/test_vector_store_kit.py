"""The VectorStore kit passes a correct store and catches broken ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import Phase, settings

from portico.filter import And, Equal, Filter, FilterSupport, matches
from portico.ports.vector_store import VectorMatch, VectorRecord
from portico.vectors import Vectors
from portico_testkit.fakes.vector_store import DictVectorStore
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


class Broken(DictVectorStore):
    """The start of every variant that does one thing wrong."""


class WorstFirst(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        found = await super().search(namespace, queries, top=top, filter=filter)
        return [matches[::-1] for matches in found]


class InnerProducts(Broken):
    """Scores grow with the length of a query."""

    async def search(self, namespace, queries, *, top=10, filter=None):
        found = await super().search(namespace, queries, top=top, filter=filter)
        length = sum(number * number for number in queries.buffer[: queries.dimensions]) ** 0.5
        return [[VectorMatch(m.id, m.score * length, m.metadata) for m in matches] for matches in found]


class OneTooMany(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        return await super().search(namespace, queries, top=top + 1, filter=filter)


class FirstQueryOnly(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        return (await super().search(namespace, queries, top=top, filter=filter))[:1]


class DropsTheFilter(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        return await super().search(namespace, queries, top=top)


class FiltersAfterTop(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        found = await super().search(namespace, queries, top=top)
        return [[m for m in some if matches(filter, m.metadata)] for some in found]


class DropsClausesItDoesNotKnow(Broken):
    async def search(self, namespace, queries, *, top=10, filter: Filter | None = None):
        if isinstance(filter, And):
            filter = And(tuple(part for part in filter.parts if isinstance(part, Equal)))
        return await super().search(namespace, queries, top=top, filter=filter)


class DropsUnsupportedFilters(Broken):
    filter_support = FilterSupport({"a": frozenset({"Equal"})})

    async def search(self, namespace, queries, *, top=10, filter=None):
        store = DictVectorStore()
        store._namespaces, store._dimensions = self._namespaces, self._dimensions
        return await store.search(namespace, queries, top=top, filter=filter if isinstance(filter, Equal) else None)


class TrueIsOne(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        if isinstance(filter, Equal) and isinstance(filter.value, bool):
            filter = Equal(filter.field, int(filter.value))
        return await super().search(namespace, queries, top=top, filter=filter)


class KeepsTheLastFilter(Broken):
    last: Filter | None = None

    async def search(self, namespace, queries, *, top=10, filter=None):
        self.last = filter or self.last
        return await super().search(namespace, queries, top=top, filter=self.last)


class OneNamespace(Broken):
    async def upsert(self, namespace, records, vectors):
        await super().upsert("all", records, vectors)

    async def search(self, namespace, queries, *, top=10, filter=None):
        return await super().search("all", queries, top=top, filter=filter)


class FoldsNamespaces(Broken):
    async def upsert(self, namespace, records, vectors):
        await super().upsert(namespace.casefold(), records, vectors)

    async def search(self, namespace, queries, *, top=10, filter=None):
        return await super().search(namespace.casefold(), queries, top=top, filter=filter)


class CutsLongIds(Broken):
    async def upsert(self, namespace, records, vectors):
        await super().upsert(namespace, [VectorRecord(r.id[:255], r.metadata) for r in records], vectors)


class RefusesSurrogates(Broken):
    async def upsert(self, namespace, records, vectors):
        for record in records:
            record.id.encode()
        await super().upsert(namespace, records, vectors)


class TakesNaN(Broken):
    async def upsert(self, namespace, records, vectors):
        numbers = [0.0 if number != number else number for number in vectors.buffer.tolist()]
        rows = [numbers[i : i + vectors.dimensions] for i in range(0, len(numbers), vectors.dimensions)]
        await super().upsert(namespace, records, Vectors.from_rows(rows, dimensions=vectors.dimensions))


class WritesUpToTheFault(Broken):
    async def upsert(self, namespace, records, vectors):
        for number, record in enumerate(records):
            await super().upsert(namespace, [record], vectors[number])


class WritesInParts(Broken):
    """Others see a half-written call."""

    async def upsert(self, namespace, records, vectors):
        for number, record in enumerate(records):
            await super().upsert(namespace, [record], vectors[number])
            await asyncio.sleep(0)


class WritesHalfOfReplacements(Broken):
    """An upsert first removes what it replaces and then lets others run."""

    async def upsert(self, namespace, records, vectors):
        await super().delete(namespace, [record.id for record in records])
        await asyncio.sleep(0)
        await super().upsert(namespace, records, vectors)


class LosesWrites(Broken):
    """Reads, waits and writes back."""

    async def upsert(self, namespace, records, vectors):
        before = dict(self._namespaces.get(namespace, {}))
        await asyncio.sleep(0)
        self._namespaces[namespace] = before
        await super().upsert(namespace, records, vectors)


class KeepsOldMetadata(Broken):
    async def upsert(self, namespace, records, vectors):
        old, _ = await self.get(namespace, [record.id for record in records])
        kept = {record.id: record.metadata for record in old}
        merged = [VectorRecord(r.id, {**kept.get(r.id, {}), **r.metadata}) for r in records]
        await super().upsert(namespace, merged, vectors)


class CountsUnknownDeletes(Broken):
    async def delete(self, namespace, ids):
        await super().delete(namespace, ids)
        return len(ids)


class GetsInItsOwnOrder(Broken):
    async def get(self, namespace, ids):
        return await super().get(namespace, sorted(ids))


class GetsOtherVectors(Broken):
    async def get(self, namespace, ids):
        records, vectors = await super().get(namespace, ids)
        if vectors is None:
            return records, None
        return records, Vectors.from_rows([[-x for x in row.buffer] for row in vectors])


class FailsOnUnknownNamespaces(Broken):
    async def count(self, namespace):
        return len(self._namespaces[namespace])


class EmptySettlesDimensions(Broken):
    async def upsert(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        self._dimensions.setdefault(namespace, vectors.dimensions)
        await super().upsert(namespace, records, vectors)


class DropKeepsDimensions(Broken):
    async def drop(self, namespace):
        self._namespaces.pop(namespace, None)


class FirstPageOfIds(Broken):
    async def ids(self, namespace):
        number = 0
        async for id in super().ids(namespace):
            number += 1
            if number <= 1000:
                yield id


class SharesMetadata(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        found = await super().search(namespace, queries, top=top, filter=filter)
        kept = self._namespaces.get(namespace, {})
        return [[VectorMatch(m.id, m.score, kept[m.id][0].metadata) for m in some] for some in found]


class MetadataAsText(Broken):
    async def upsert(self, namespace, records, vectors):
        texts = [VectorRecord(r.id, {field: str(value) for field, value in r.metadata.items()}) for r in records]
        await super().upsert(namespace, texts, vectors)


class TakesAnyQuery(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        try:
            return await super().search(namespace, queries, top=top, filter=filter)
        except ValueError:
            return [[] for _ in range(queries.rows)]


class ZerosBecomeOnes(Broken):
    async def search(self, namespace, queries, *, top=10, filter=None):
        found = await super().search(namespace, queries, top=top, filter=filter)
        return [[VectorMatch(m.id, m.score or 1.0, m.metadata) for m in some] for some in found]


class ForgetsOnCancel(Broken):
    async def upsert(self, namespace, records, vectors):
        half = len(records) // 2
        await super().upsert(namespace, records[:half], vectors.slice(0, half))
        await asyncio.sleep(0.004 if half > 1000 else 0)
        await super().upsert(namespace, records[half:], vectors.slice(half, len(records)))


class Unnamed(Broken):
    def __init__(self) -> None:
        super().__init__(name="")


class SaysItIsPersistent(Broken):
    """Every store of it starts empty."""

    def __init__(self) -> None:
        super().__init__()
        self.persistent = True


BROKEN = list(Broken.__subclasses__())


class Kit(VectorStoreKit):
    # Finding a fault is enough here; making it small takes most of the time.
    effort = settings(max_examples=60, phases=(Phase.explicit, Phase.generate))

    async def another(self, vector_store):
        return type(vector_store)()


async def fails(test: str, make: type[DictVectorStore]) -> bool:
    try:
        await getattr(Kit(), test)(make())
    except pytest.skip.Exception:
        return False
    except (Exception, pytest.fail.Exception):
        return True
    return False


TESTS = sorted(name for name in dir(Kit) if name.startswith("test_"))


@pytest.mark.parametrize("variant", BROKEN, ids=lambda variant: variant.__name__)
async def test_the_kit_catches(variant: type[DictVectorStore]) -> None:
    for test in TESTS:
        if await fails(test, variant):
            return
    pytest.fail(f"no test of the kit fails for {variant.__name__}")


async def test_the_kit_finds_nothing_wrong_with_the_class_that_the_broken_ones_share() -> None:
    assert [test for test in TESTS if await fails(test, Broken)] == []


@pytest.mark.parametrize(
    ("variant", "test"),
    [
        (WorstFirst, "test_the_nearest_come_first_with_their_cosines"),
        (FiltersAfterTop, "test_a_filter_is_applied_before_top"),
        (DropsClausesItDoesNotKnow, "test_every_clause_means_what_matches_says"),
        (TrueIsOne, "test_every_clause_means_what_matches_says"),
        (FoldsNamespaces, "test_namespaces_are_apart"),
        (WritesUpToTheFault, "test_a_wrong_upsert_writes_nothing"),
        (WritesHalfOfReplacements, "test_writes_are_seen_whole"),
        (LosesWrites, "test_writers_at_once_lose_nothing"),
        (ForgetsOnCancel, "test_a_cancelled_write_is_whole_or_absent"),
        (KeepsOldMetadata, "test_the_same_id_is_replaced"),
        (WritesInParts, "test_writes_are_seen_whole"),
        (SaysItIsPersistent, "test_what_was_written_outlives_the_store"),
    ],
)
async def test_a_fault_is_caught_by_the_test_that_names_it(variant: type[DictVectorStore], test: str) -> None:
    assert await fails(test, variant)
