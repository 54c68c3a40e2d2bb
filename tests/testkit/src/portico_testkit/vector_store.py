"""What every VectorStore must do when calls come at the same time, are given up, or take long."""

from __future__ import annotations

import asyncio
import itertools
import math
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import settings, strategies as st

from portico.ports import VectorStore
from portico.search import Equal, Filter, FilterSupport, VectorRecord, Vectors
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.fakes.vector_store import DictVectorStore
from portico_testkit.tasks import give_up, no_tasks_but, still_answers
from portico_testkit.vector_checks import (
    AWKWARD_IDS,
    check_failing,
    check_filtered,
    close,
    compare,
    find,
    put,
    same_scores,
    skip_without,
    tried,
    typed,
)
from portico_testkit.vector_strategies import Call, calls, filters, metadata

__all__ = ["VectorStoreKit"]


class VectorStoreKit:
    """Subclass it and give a fixture named ``vector_store``; a new, empty store for each test::

        class TestAcmeVectors(VectorStoreKit):
            @pytest.fixture
            async def vector_store(self, tmp_path):
                store = AcmeVectors(AcmeSettings(path=tmp_path), None)
                yield store
                await store.aclose()

            async def another(self, vector_store):
                return AcmeVectors(vector_store.settings, None)

    A persistent store also has `another`: a second store on the same data, while the first stays open. A fixture
    ``failing_store`` gives one that cannot read what it keeps: its files are damaged, or nobody is there.
    ``tolerance`` is by how much scores and vectors may be off; ``effort`` is how hard random calls are tried, to be
    lowered only for a service that bills them, as is ``large``, the records of a large write. A store that filters by
    declared fields only declares ``a`` and ``kind`` for the kit.
    """

    tolerance: ClassVar[float] = 1e-5
    large: ClassVar[int] = 1_000
    effort: ClassVar[settings] = settings(max_examples=30)

    async def another(self, vector_store: VectorStore) -> VectorStore:
        """Return another store on the data of ``vector_store``; only persistent stores need it."""
        pytest.fail("the kit of a persistent store needs `another`")

    @pytest.fixture
    def failing_store(self) -> VectorStore | None:
        """Nothing, for a store that cannot fail."""
        return None

    @pytest.mark.asyncio
    async def test_name_and_abilities_are_declared(self, vector_store: VectorStore) -> None:
        assert isinstance(vector_store.name, str)
        assert vector_store.name.strip(), "the name is blank"
        assert isinstance(vector_store.persistent, bool)
        assert isinstance(vector_store.filter_support, FilterSupport)

    @pytest.mark.asyncio
    async def test_the_nearest_come_first_with_their_cosines(self, vector_store: VectorStore) -> None:
        await put(vector_store, {"far": (-2, 0), "near": (30, 40), "nearest": (0.5, 0), "across": (0, 7)})
        found = await find(vector_store, (10, 0), top=10)
        assert [match.id for match in found] == ["nearest", "near", "across", "far"]
        same_scores([match.score for match in found], [1.0, 0.6, 0.0, -1.0], self.tolerance)

    @pytest.mark.asyncio
    async def test_never_more_than_top(self, vector_store: VectorStore) -> None:
        await put(vector_store, {str(number): (number, 10 - number) for number in range(11)})
        for top in (1, 3, 11, 50):
            found = await find(vector_store, (1, 0), top=top)
            assert [match.id for match in found] == [str(number) for number in range(10, -1, -1)][:top]

    @pytest.mark.asyncio
    async def test_a_filter_is_applied_before_top(self, vector_store: VectorStore) -> None:
        skip_without(vector_store, Equal("kind", "odd"))
        rows = {str(number): (100 - number, number) for number in range(100)}
        records = [VectorRecord(id, {"kind": "odd" if id == "99" else "plain"}) for id in rows]
        await vector_store.upsert("n", records, Vectors.from_rows(rows.values()))
        found = await find(vector_store, (1, 0), top=1, filter=Equal("kind", "odd"))
        assert [match.id for match in found] == ["99"], "the filter did not reach the far record"
        assert len(await find(vector_store, (1, 0), top=3)) == 3, "a filter reached the next call"

    @pytest.mark.asyncio
    async def test_random_filters_mean_what_matches_says(self, vector_store: VectorStore) -> None:
        numbers = itertools.count()

        async def check(drawn: list[dict[str, Any]], filter: Filter) -> None:
            namespace = f"filters-{next(numbers)}"
            records = [VectorRecord(str(row), fields) for row, fields in enumerate(drawn)]
            await vector_store.upsert(namespace, records, Vectors.from_rows([(1, row) for row in range(len(drawn))]))
            await check_filtered(vector_store, namespace, records, filter)

        await tried(self.effort, check, st.lists(metadata(), min_size=1, max_size=8), filters())

    @pytest.mark.asyncio
    async def test_metadata_come_back_as_they_were(self, vector_store: VectorStore) -> None:
        fields: dict[str, Any] = {"text": "é\x00", "whole": 2**53, "part": 0.1, "yes": True, "one": 1}
        fields["list"] = ["a", 1, 2.5, False]
        given: dict[str, Any] = {**fields, "list": list(fields["list"])}
        await vector_store.upsert("n", [VectorRecord("r", given)], Vectors.from_rows([(1, 0)]))
        given["list"].append("later")
        given["text"] = "later"
        for _ in range(2):
            [match] = await find(vector_store, (1, 0))
            [record], _ = await vector_store.get("n", ["r"])
            for came in (match.metadata, record.metadata):
                assert typed(came) == typed(fields)
                if isinstance(came, dict):
                    came["text"] = "changed by the caller"

    @pytest.mark.asyncio
    async def test_any_string_is_an_id(self, vector_store: VectorStore) -> None:
        records = [VectorRecord(id, {"n": number}) for number, id in enumerate(AWKWARD_IDS)]
        await vector_store.upsert("n", records, Vectors.from_rows([(1, number) for number in range(len(records))]))
        assert sorted([id async for id in vector_store.ids("n")]) == sorted(AWKWARD_IDS)
        found, _ = await vector_store.get("n", AWKWARD_IDS)
        assert [(record.id, record.metadata["n"]) for record in found] == list(
            zip(AWKWARD_IDS, range(99), strict=False)
        )
        assert await vector_store.delete("n", AWKWARD_IDS) == len(AWKWARD_IDS)

    @pytest.mark.asyncio
    async def test_a_wrong_upsert_writes_nothing(self, vector_store: VectorStore) -> None:
        await put(vector_store, {"old": (1, 0)})
        new, old = VectorRecord("new"), VectorRecord("old", {"changed": True})
        wrong: list[tuple[str, list[VectorRecord], Vectors]] = [
            ("NaN", [old, new], Vectors.from_rows([(0, 1), (math.nan, 1)])),
            ("infinity", [old, new], Vectors.from_rows([(0, 1), (1, -math.inf)])),
            ("other dimensions", [old, new], Vectors.from_rows([(0, 1, 0), (0, 1, 1)])),
            ("fewer vectors", [old, new], Vectors.from_rows([(0, 1)])),
            ("more vectors", [old], Vectors.from_rows([(0, 1), (1, 1)])),
            ("an id twice", [new, old, new], Vectors.from_rows([(0, 1), (0, 1), (1, 1)])),
        ]
        for what, records, vectors in wrong:
            with pytest.raises(ValueError):
                await vector_store.upsert("n", records, vectors)
            assert [id async for id in vector_store.ids("n")] == ["old"], f"{what}: something was written"
            [match] = await find(vector_store, (1, 0))
            assert (match.id, dict(match.metadata)) == ("old", {}), f"{what}: the old record was changed"
            assert match.score > 0.99, f"{what}: the old vector was changed"
        with pytest.raises(ValueError):
            await vector_store.upsert("fresh", [new], Vectors.from_rows([(math.nan, 0)]))
        await vector_store.upsert("fresh", [new], Vectors.from_rows([(1, 0, 0)]))

    @pytest.mark.asyncio
    async def test_a_wrong_query_is_refused(self, vector_store: VectorStore) -> None:
        await put(vector_store, {"a": (1, 0)})
        for query in ((1, 0, 0), (1,), (math.nan, 0), (math.inf, 0)):
            with pytest.raises(ValueError):
                await find(vector_store, query)
        assert len(await find(vector_store, (1, 0))) == 1

    @pytest.mark.asyncio
    async def test_any_history_ends_as_in_a_dictionary(self, vector_store: VectorStore) -> None:
        numbers = itertools.count()

        async def check(history: list[Call]) -> None:
            prefix, plain = f"history-{next(numbers)}-", DictVectorStore()
            for call in history:
                await compare(call, prefix, vector_store, plain, self.tolerance)

        await tried(self.effort, check, calls())

    @pytest.mark.asyncio
    async def test_what_was_written_outlives_the_store(self, vector_store: VectorStore) -> None:
        if not vector_store.persistent:
            pytest.skip("the store is not persistent")
        await put(vector_store, {"a": (1, 0), "b": (0.6, 0.8), "gone": (0, 1)})
        second = await self.another(vector_store)
        try:
            await second.delete("n", ["gone"])
            await second.upsert("n", [VectorRecord("c", {"new": True})], Vectors.from_rows([(0, -1)]))
            for store in (vector_store, second):
                found = await find(store, (1, 0))
                assert [match.id for match in found] == ["a", "b", "c"], "the two stores do not see the same"
            await vector_store.upsert("n", [VectorRecord("a", {"turned": 1})], Vectors.from_rows([(-1, 0)]))
            assert [match.id for match in await find(second, (1, 0))] == ["b", "c", "a"]
            await close(vector_store)
            records, vectors = await second.get("n", ["a", "b", "c"])
            assert [dict(record.metadata) for record in records] == [{"turned": 1}, {}, {"new": True}]
            assert vectors is not None
            same_scores(vectors.buffer.tolist(), [-1, 0, 0.6, 0.8, 0, -1], self.tolerance)
        finally:
            await close(second)

    @pytest.mark.asyncio
    async def test_what_cannot_be_read_is_a_store_error(self, failing_store: VectorStore | None) -> None:
        await check_failing(failing_store)

    @pytest.mark.asyncio
    async def test_writes_are_seen_whole(self, vector_store: VectorStore) -> None:
        size, rounds = 20, 15
        vectors = Vectors.from_rows([(1, number) for number in range(size)])

        async def write(batch: int) -> None:
            records = [VectorRecord(str(number), {"batch": batch}) for number in range(size)]
            await vector_store.upsert("n", records, vectors)

        async def replace() -> None:
            for batch in range(1, rounds):
                await write(batch)
                await asyncio.sleep(0)

        async def read() -> None:
            for _ in range(rounds * 2):
                found = await find(vector_store, (1, 0), top=100)
                batches = {match.metadata["batch"] for match in found}
                assert (len(found), len(batches)) == (size, 1), f"{len(found)} records of batches {batches}"
                await asyncio.sleep(0)

        await write(0)
        await asyncio.gather(replace(), *(read() for _ in range(4)))

    @pytest.mark.asyncio
    async def test_a_cancelled_write_is_whole_or_absent(self, vector_store: VectorStore) -> None:
        size = 3_000
        vectors = Vectors.from_rows([(1, number) for number in range(size)])
        tasks = asyncio.all_tasks()
        for attempt in range(4):
            records = [VectorRecord(f"{attempt}-{number}") for number in range(size)]
            upsert = partial(vector_store.upsert, "n", records, vectors)
            await give_up(upsert, turns=1 + attempt)
            await give_up(upsert, seconds=0.002 * attempt)
            count = await still_answers(vector_store.count("n"))
            assert count % size == 0, f"{count % size} of {size} records of a cancelled write"
            for call in (vector_store.search, vector_store.get, vector_store.delete, vector_store.drop):
                wanted = [vectors] if call == vector_store.search else [["nobody"]] if call != vector_store.drop else []
                await give_up(partial(call, "other", *wanted), turns=attempt)
        await no_tasks_but(tasks)
        await still_answers(put(vector_store, {"after": (1, 0)}))
        await still_answers(find(vector_store, (1, 0), top=1))
        assert (await still_answers(vector_store.get("n", ["after"])))[0] == [VectorRecord("after")]

    @pytest.mark.asyncio
    async def test_it_leaves_the_event_loop_free(self, vector_store: VectorStore) -> None:
        records = [VectorRecord(str(number)) for number in range(self.large)]
        rows = Vectors.from_rows([[float(number % 97), *[1.0] * 15] for number in range(self.large)])

        async def write_and_search(number: int) -> None:
            await vector_store.upsert(f"large {number}", records, rows)
            await vector_store.search(f"large {number}", rows.slice(0, 20), top=5)

        await leaves_the_event_loop_free(write_and_search)
