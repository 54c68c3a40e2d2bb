"""What a search on Milvus costs beside pymilvus's own call for the same answer, in the same run.

    python -m tests.bench.milvus_vectors

prints one JSON line. Milvus Lite answers both, in a folder that goes afterwards, so the times say what stands before
a server and nothing of how fast one is. They are medians, in microseconds, of one query with a vector in hand; those
of the processor are all threads', the server's too, and say more on a busy machine. The seconds are for writing all
records, 1,000 at a time.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from portico import VectorRecord, Vectors
from portico.search import Equal
from portico_milvus._records import expression
from portico_milvus.config import MilvusSettings
from portico_milvus.store import MilvusVectorStore

__all__ = ["measure"]

_TOP = 5
_DIMENSIONS = 256
_BATCH = 1_000


def measure(sizes: tuple[int, ...] = (1_000, 10_000), *, rounds: int = 100) -> dict[str, Any]:
    """Return the times of the store and of pymilvus at each size, and their ratios."""
    return {str(rows): asyncio.run(_one_size(rows, rounds)) for rows in sizes}


async def _one_size(rows: int, rounds: int) -> dict[str, float]:
    data = np.random.default_rng(0).standard_normal((rows, _DIMENSIONS)).astype(np.float32)
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as folder:
        store = MilvusVectorStore(MilvusSettings(uri=f"{folder}/vectors.db"))
        await store.count("bench")
        result = {"write_s": await _written(store, data)}
        with store._connection.use() as link:
            client = link.client
        result["pymilvus_write_s"] = _written_raw(client, data)
        queries = data[:: max(1, rows // 50)]
        few = Equal("tenth", 3)

        def raw(number: int, filter: str) -> list[tuple[str, float, Any]]:
            [hits] = client.search(
                "portico_bench",
                data=[queries[number]],
                filter=filter,
                limit=_TOP,
                output_fields=["id", "metadata"],
                search_params={"metric_type": "IP"},
                anns_field="vector",
                consistency_level="Strong",
                timeout=60.0,
            )
            return [(hit["entity"]["id"], hit["distance"], json.loads(hit["entity"]["metadata"])) for hit in hits]

        async def by_hand(number: int, filter: str = "") -> object:
            return raw(number, filter)

        async def ours(number: int, filter: Equal | None = None) -> object:
            return await store.search("bench", Vectors(queries[number], 1, _DIMENSIONS), top=_TOP, filter=filter)

        calls: dict[str, Callable[[int], Awaitable[object]]] = {
            "pymilvus": by_hand,
            "store": ours,
            "pymilvus_filtered": lambda number: by_hand(number, str(expression(few))),
            "store_filtered": lambda number: ours(number, few),
        }
        times = await _timed(calls, len(queries), rounds)
        await store.aclose()
    for name, (wall, processor) in times.items():
        result[f"{name}_us"], result[f"{name}_cpu_us"] = round(wall, 1), round(processor, 1)
    for ours, floor in (("store", "pymilvus"), ("store_filtered", "pymilvus_filtered")):
        result[f"{ours}_ratio"] = round(times[ours][0] / times[floor][0], 3)
        result[f"{ours}_cpu_ratio"] = round(times[ours][1] / times[floor][1], 3)
    return result


async def _timed(
    calls: dict[str, Callable[[int], Awaitable[object]]], queries: int, rounds: int
) -> dict[str, tuple[float, float]]:
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for turn in range(rounds + 5):
        # All in turn, so that whatever else the machine does meets them alike.
        for name, call in calls.items():
            started, worked = time.perf_counter(), time.process_time()
            await call(turn % queries)
            if turn >= 5:
                times[name].append(((time.perf_counter() - started) * 1e6, (time.process_time() - worked) * 1e6))
    return {
        name: (statistics.median(wall for wall, _ in taken), statistics.median(processor for _, processor in taken))
        for name, taken in times.items()
    }


async def _written(store: MilvusVectorStore, data: npt.NDArray[np.float32]) -> float:
    started = time.perf_counter()
    for start in range(0, len(data), _BATCH):
        part = data[start : start + _BATCH]
        records = [VectorRecord(f"r{start + row}", {"n": row, "tenth": row % 10}) for row in range(len(part))]
        await store.upsert("bench", records, Vectors(part, *part.shape))
    return round(time.perf_counter() - started, 3)


def _written_raw(client: Any, data: npt.NDArray[np.float32]) -> float:
    """Write the same ids, metadata and vectors by hand, without what filters are asked about."""
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=200)
    schema.add_field("metadata", DataType.JSON)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=_DIMENSIONS)
    client.create_collection("raw", schema=schema, timeout=60.0)
    started = time.perf_counter()
    for start in range(0, len(data), _BATCH):
        part = data[start : start + _BATCH]
        rows = [
            {"id": f"r{start + row}", "metadata": {"n": row, "tenth": row % 10}, "vector": vector}
            for row, vector in enumerate(part)
        ]
        client.upsert("raw", rows, timeout=60.0)
    return round(time.perf_counter() - started, 3)


if __name__ == "__main__":
    print(json.dumps({"bench": "milvus_vectors", "top": _TOP, "dimensions": _DIMENSIONS, "sizes": measure()}))
