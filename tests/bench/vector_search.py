"""What a vector search costs beside NumPy's own product and selection, in the same run.

    python -m tests.bench.vector_search

prints one JSON line. Times are medians, in microseconds, of one query with a vector in hand.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from portico import VectorRecord, Vectors
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore

__all__ = ["clustered", "measure"]

_TOP = 5


def clustered(rows: int, dimensions: int = 256, *, seed: int = 0) -> npt.NDArray[np.float32]:
    """Return unit vectors around centres, as texts about the same things have them: 100 to a centre."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((max(1, rows // 100), dimensions))
    result = centres[random.integers(0, len(centres), rows)] + 0.6 * random.standard_normal((rows, dimensions))
    result /= np.linalg.norm(result, axis=1, keepdims=True)
    return result.astype(np.float32)


def measure(sizes: tuple[int, ...] = (1_000, 100_000), *, rounds: int = 300) -> dict[str, Any]:
    """Return times of the stores and their ratios to NumPy at each size."""
    return {str(rows): asyncio.run(_one_size(rows, rounds if rows <= 10_000 else rounds // 10)) for rows in sizes}


async def _one_size(rows: int, rounds: int) -> dict[str, float]:
    data = clustered(rows)
    queries = [Vectors(row.reshape(1, -1), 1, row.size) for row in data[:: max(1, rows // 50)]]
    arrays = [np.frombuffer(query.buffer.cast("B"), np.float32) for query in queries]

    async def floor(number: int) -> object:
        scores = data @ arrays[number]
        return np.argpartition(-scores, _TOP)[:_TOP]

    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "memory_exact": FaissSettings(index="exact"),
            "folder_exact": FaissSettings(path=Path(folder) / "exact", index="exact"),
            "memory_hnsw": FaissSettings(index="hnsw"),
            "folder_hnsw": FaissSettings(path=Path(folder) / "hnsw", index="hnsw"),
        }
        stores = {name: FaissVectorStore(chosen) for name, chosen in settings.items()}
        calls: dict[str, Callable[[int], Awaitable[object]]] = {"numpy": floor}
        result: dict[str, float] = {}
        for name, store in stores.items():
            started = time.perf_counter()
            for start in range(0, rows, 10_000):
                part = data[start : start + 10_000]
                records = [VectorRecord(f"r{start + row}", {"n": row}) for row in range(len(part))]
                await store.upsert("bench", records, Vectors(part, *part.shape))
            result[f"{name}_upsert_s"] = round(time.perf_counter() - started, 3)
            calls[name] = lambda number, store=store: store.search("bench", queries[number], top=_TOP)
        times: dict[str, list[float]] = {name: [] for name in calls}
        for turn in range(rounds + 10):
            # All in turn, so that whatever else the machine does meets them alike.
            for name, call in calls.items():
                for _ in range(2):
                    # The second one counts: the first brings its data into the cache, as a floor run in a row has it.
                    started = time.perf_counter()
                    await call(turn % len(queries))
                    taken = time.perf_counter() - started
                if turn >= 10:
                    times[name].append(taken * 1e6)
        for store in stores.values():
            await store.aclose()
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    for name, median in medians.items():
        result[f"{name}_us"] = round(median, 1)
        if name != "numpy":
            result[f"{name}_ratio"] = round(median / medians["numpy"], 2)
    return result


if __name__ == "__main__":
    print(json.dumps({"bench": "vector_search", "top": _TOP, "sizes": measure()}))
