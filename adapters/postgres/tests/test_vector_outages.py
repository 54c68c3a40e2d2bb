"""A server that goes while vectors are written: what was acknowledged is there, and nothing is there in part."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from tests.support.postgres_server import PostgresServer

from portico.errors import StoreUnavailable
from portico.plugins import Secret
from portico.search import VectorRecord, Vectors
from portico_postgres.config import PostgresVectorSettings
from portico_postgres.vector_store import PostgresVectorStore

SIZE = 400


@pytest.mark.parametrize("index", ["exact", "hnsw"])
async def test_a_restart_in_the_middle_loses_nothing_and_leaves_nothing_in_part(
    own_server: PostgresServer, index: str
) -> None:
    settings = PostgresVectorSettings(uri=Secret(own_server.uri), index=index, hnsw_from=1_000)
    store = PostgresVectorStore(settings)
    rows = np.random.default_rng(0).standard_normal((SIZE, 16)).astype(np.float32)
    acknowledged: set[int] = set()
    found: list[int] = []
    over = asyncio.Event()

    async def write(writer: int) -> None:
        batch = writer
        while not over.is_set():
            records = [VectorRecord(f"{batch}-{row}", {"batch": batch}, f"anvil {batch}") for row in range(SIZE)]
            try:
                await store.upsert("n", records, Vectors(rows, *rows.shape))
            except StoreUnavailable:
                await asyncio.sleep(0.05)
            else:
                acknowledged.add(batch)
                batch += 3

    async def search() -> None:
        while not over.is_set():
            try:
                [matches] = await store.search("n", Vectors(rows[:1], 1, 16), top=5)
            except StoreUnavailable:
                await asyncio.sleep(0.05)
            else:
                found.append(len(matches))
                await asyncio.sleep(0.01)

    async def restart() -> None:
        for at_once in (False, True):
            await asyncio.sleep(0.7)
            await asyncio.to_thread(own_server.restart, at_once=at_once)
        await asyncio.sleep(0.7)
        over.set()

    await asyncio.gather(restart(), search(), *(write(writer) for writer in range(3)))
    assert found[-1] == 5
    held: dict[str, int] = {}
    async for id in store.ids("n"):
        batch, _, _ = id.partition("-")
        held[batch] = held.get(batch, 0) + 1
    assert set(held.values()) == {SIZE}, "a batch is there in part"
    assert {str(batch) for batch in acknowledged} <= set(held), "what was acknowledged is gone"
    last = max(acknowledged)
    by_words = await store.hybrid.search("n", f"anvil {last}", top=10)
    assert {match.metadata["batch"] for match in by_words} == {last}
    await store.aclose()
