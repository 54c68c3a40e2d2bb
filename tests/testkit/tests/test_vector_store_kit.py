"""The VectorStore kit passes a correct store and catches broken ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import Phase, settings

from portico.search import FilterSupport
from portico_testkit.fakes.vector_store import DictVectorStore
from portico_testkit.kit_failures import Fault, KnownFaults
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


FAULTS = KnownFaults(Kit, lambda kind: {"vector_store": kind})


@FAULTS.caught_by("the_nearest_come_first_with_their_cosines")
class WorstFirst(DictVectorStore):
    async def search(self, namespace, queries, *, top=10, filter=None):
        found = await super().search(namespace, queries, top=top, filter=filter)
        return [matches[::-1] for matches in found]


@FAULTS.caught_by("a_cancelled_write_is_whole_or_absent", "of 3000 records of a cancelled write")
class ForgetsOnCancel(DictVectorStore):
    async def upsert(self, namespace, records, vectors):
        half = len(records) // 2
        await super().upsert(namespace, records[:half], vectors.slice(0, half))
        await asyncio.sleep(0.004 if half > 1000 else 0)
        await super().upsert(namespace, records[half:], vectors.slice(half, len(records)))


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
