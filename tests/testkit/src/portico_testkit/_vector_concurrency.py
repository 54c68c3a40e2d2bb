"""What every VectorStore must do when calls come at the same time, are given up, or take long."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import ClassVar

import pytest

from portico.ports import VectorStore
from portico.search import VectorRecord, Vectors
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import give_up, no_tasks_but, still_answers
from portico_testkit.vector_checks import find, put

__all__ = ["VectorConcurrency"]


class VectorConcurrency:
    """A part of `portico_testkit.vector_store.VectorStoreKit`, which is the one to subclass."""

    tolerance: ClassVar[float]
    large: ClassVar[int]

    @pytest.mark.asyncio
    async def test_writes_are_seen_whole(self, vector_store: VectorStore) -> None:
        """Searches while writers replace all records see one batch, never parts of two."""
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
        """And the store goes on working."""
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
        """Many records written and many queries asked at once do not hold up a whole application."""
        records = [VectorRecord(str(number)) for number in range(self.large)]
        rows = Vectors.from_rows([[float(number % 97), *[1.0] * 15] for number in range(self.large)])

        async def write_and_search(number: int) -> None:
            await vector_store.upsert(f"large {number}", records, rows)
            await vector_store.search(f"large {number}", rows.slice(0, 20), top=5)

        await leaves_the_event_loop_free(write_and_search)
