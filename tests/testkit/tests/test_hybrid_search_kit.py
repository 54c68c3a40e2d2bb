"""The HybridSearch kit passes a correct store and catches broken ones."""

from __future__ import annotations

from typing import Any

import pytest

from portico_testkit.fakes.hybrid_search import DictHybridSearch, DictHybridStore
from portico_testkit.hybrid_search import HybridSearchKit
from portico_testkit.kit_failures import Fault, KnownFaults


class TestDictHybridStore(HybridSearchKit):
    @pytest.fixture
    def vector_store(self) -> DictHybridStore:
        return DictHybridStore()


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


def store_with(kind: type[DictHybridSearch]) -> DictHybridStore:
    store = DictHybridStore()
    store.hybrid = kind(store)
    return store


FAULTS = KnownFaults(HybridSearchKit, lambda kind: {"vector_store": lambda: store_with(kind)})


@FAULTS.caught_by("words_find_what_the_vector_does_not", "the word alone finds")
class TakesNoNoticeOfWords(DictHybridSearch):
    async def search(self, namespace, text, vector=None, *, share=None, **options):
        return await super().search(namespace, text, vector, share=0.0, **options)


@FAULTS.caught_by("a_filter_is_applied_to_both_halves_before_top", "the filter keeps")
class FiltersAfterTheCut(DictHybridSearch):
    async def search(self, namespace, text, vector=None, *, top=10, filter=None, **options):
        found = await super().search(namespace, text, vector, top=top, **options)
        kept = {m.id for m in await super().search(namespace, text, vector, top=1_000, filter=filter, **options)}
        return [match for match in found if match.id in kept]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)


async def test_a_store_without_hybrid_search_is_told() -> None:
    class Plain(DictHybridStore):
        hybrid = property(lambda self: None, lambda self, value: None)

    with pytest.raises(AssertionError, match="no attribute `hybrid`"):
        await HybridSearchKit().test_one_half_is_enough(Plain())
