"""Two providers on one store, at the moments when one could take the other's records away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from portico._functions.functions import FunctionManual
from portico._selection import contextual
from portico._selection.contextual import ContextualSelector, SelectionOptions
from portico_testkit.fakes.clock import StillClock
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.fakes.vector_store import DictVectorStore

LEASE = 100.0
VECTORS = "functions/vectors/hashing-256"
ASKED = ["post a letter"]
MANY = [
    FunctionManual("Mail-Post", "Post a letter.", {}, {}),
    *(FunctionManual(f"Song-Play{number}", f"Sing a song, number {number}.", {}, {}) for number in range(9)),
]
FEW = MANY[1:]
Moment = Callable[[str, tuple[Any, ...]], bool]


def searched(call: str, given: tuple[Any, ...]) -> bool:
    return call == "search" and given[0] == VECTORS


def removed(call: str, given: tuple[Any, ...]) -> bool:
    return call == "delete" and given[0] == VECTORS


def about_to_be_removed(call: str, given: tuple[Any, ...]) -> bool:
    return call == "upsert" and given[1][0].metadata["kind"] == "doom"


@pytest.fixture(autouse=True)
def few_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at few functions, so that one that is missing in the store is missed in the selection."""
    monkeypatch.setattr(contextual, "_LOOKED_AT", 1)


class Watched:
    """A store that tells of each call before it is made."""

    def __init__(self, store: DictVectorStore) -> None:
        self.store = store
        self.name, self.persistent, self.filter_support = store.name, store.persistent, store.filter_support
        self.before: Callable[[str, tuple[Any, ...]], Awaitable[None]] | None = None

    def interrupt(self, at: Moment, do: Callable[[], Awaitable[None]]) -> None:
        """Have something done once, before the first call of this moment."""

        async def before(call: str, given: tuple[Any, ...]) -> None:
            if at(call, given):
                self.before = None
                await do()

        self.before = before

    async def _told(self, call: str, *given: Any) -> None:
        if self.before is not None:
            await self.before(call, given)

    async def upsert(self, *given: Any) -> None:
        await self._told("upsert", *given)
        await self.store.upsert(*given)

    async def delete(self, *given: Any) -> int:
        await self._told("delete", *given)
        return await self.store.delete(*given)

    async def get(self, *given: Any) -> Any:
        await self._told("get", *given)
        return await self.store.get(*given)

    async def search(self, *given: Any, **options: Any) -> Any:
        await self._told("search", *given)
        return await self.store.search(*given, **options)

    async def count(self, namespace: str) -> int:
        return await self.store.count(namespace)

    async def ids(self, namespace: str) -> AsyncIterator[str]:
        await self._told("ids", namespace)
        async for id in self.store.ids(namespace):
            yield id

    async def drop(self, namespace: str) -> None:
        await self.store.drop(namespace)


@pytest.fixture
def plain() -> DictVectorStore:
    return DictVectorStore()


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


def provider(store: Any, clock: StillClock) -> ContextualSelector:
    return ContextualSelector(
        store,
        HashingEmbeddings(),
        options=SelectionOptions(limit=1, ranking="vector"),
        remembered=1,
        clock=clock,
        lease=LEASE,
    )


async def finds_all(selector: ContextualSelector, manuals: Sequence[FunctionManual] = MANY) -> bool:
    return (await selector.select(manuals, ASKED)).names[:1] == ("Mail-Post",)


async def ids(store: DictVectorStore) -> set[str]:
    return {id.partition("#")[0] for id in [id async for id in store.ids(VECTORS)]}


async def test_records_of_a_provider_that_slept_are_put_back_before_it_chooses(
    plain: DictVectorStore, clock: StillClock
) -> None:
    first, second = provider(plain, clock), provider(plain, clock)
    assert await finds_all(first)
    clock.now += 3 * LEASE
    await second.select(FEW, ASKED)
    assert "Mail-Post" not in await ids(plain), "what nobody claims any more was kept"
    assert await finds_all(first)


async def test_a_provider_that_slept_while_it_searched_searches_again(
    plain: DictVectorStore, clock: StillClock
) -> None:
    watched = Watched(plain)
    first, second = provider(watched, clock), provider(plain, clock)

    async def sleep() -> None:
        clock.now += 3 * LEASE
        await second.select(FEW, ASKED)
        assert "Mail-Post" not in await ids(plain)

    watched.interrupt(searched, sleep)
    assert await finds_all(first)


async def find_what_is_removed(plain: DictVectorStore, clock: StillClock, at: Moment) -> None:
    """Have one provider remove what nobody claims, and another begin to use it at this moment of the removal."""
    gone = provider(plain, clock)
    assert await finds_all(gone)
    await gone.aclose()
    watched = Watched(plain)
    remover, user = provider(watched, clock), provider(plain, clock)

    async def come_in_between() -> None:
        assert await finds_all(user)

    watched.interrupt(at, come_in_between)
    await remover.select(FEW, ASKED)
    assert watched.before is None, "the moment never came"
    assert await finds_all(user), "another took away what this one uses"


async def test_a_record_that_another_is_about_to_remove_is_written_under_another_id(
    plain: DictVectorStore, clock: StillClock
) -> None:
    await find_what_is_removed(plain, clock, removed)


async def test_a_record_that_is_claimed_while_it_is_looked_at_is_spared(
    plain: DictVectorStore, clock: StillClock
) -> None:
    await find_what_is_removed(plain, clock, about_to_be_removed)
    assert len([id async for id in plain.ids(VECTORS)]) == len(MANY), "a record that was spared is there twice"


async def test_providers_with_different_functions_keep_each_other_s_records(
    plain: DictVectorStore, clock: StillClock
) -> None:
    first, second = provider(plain, clock), provider(plain, clock)
    assert await finds_all(first)
    await second.select(FEW, ASKED)
    clock.now += LEASE * 0.7
    assert await finds_all(first)
    clock.now += LEASE * 0.7
    await second.select(FEW, ASKED)
    assert "Mail-Post" in await ids(plain), "a claim that was renewed did not hold"
    changes = (await first.select(MANY, ASKED)).changes
    assert changes.embedded == 0, "what was there was embedded again"


async def test_a_provider_that_is_closed_leaves_its_records_to_others(
    plain: DictVectorStore, clock: StillClock
) -> None:
    first, second = provider(plain, clock), provider(plain, clock)
    assert await finds_all(first)
    await first.aclose()
    changes = (await second.select(FEW, ASKED)).changes
    assert (changes.removed, changes.embedded) == (1, 0)
    assert "Mail-Post" not in await ids(plain)
    assert await finds_all(first), "a provider that was closed can be used again"


async def test_a_store_that_somebody_emptied_is_filled_again(plain: DictVectorStore, clock: StillClock) -> None:
    first = provider(plain, clock)
    assert await finds_all(first)
    await plain.drop(VECTORS)
    selection = await first.select(MANY, ASKED)
    assert selection.names == ("Mail-Post",)
    assert selection.changes.embedded == len(MANY)


async def test_functions_that_vanish_while_a_selection_is_made_are_removed_after_it(
    plain: DictVectorStore, clock: StillClock
) -> None:
    watched = Watched(plain)
    first = provider(watched, clock)

    async def change() -> None:
        await first.select(FEW, ASKED)
        assert "Mail-Post" in await ids(plain), "a record was taken from under a selection"

    watched.interrupt(searched, change)
    assert await finds_all(first)
    assert (await first.select(FEW, ASKED)).changes.removed == 1
    assert "Mail-Post" not in await ids(plain)
