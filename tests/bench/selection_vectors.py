"""What the vector half of choosing functions costs beside NumPy's own product and partition, in the same run.

    python -m tests.bench.selection_vectors [--full]

prints one JSON line, and ends with 1 where a limit is broken. Times are medians, in microseconds, of the 5 nearest
functions to a vector in hand: of 1,000, compared with each, at most twice NumPy's; and of 20,000 along a graph, below
5 ms, with a recall of 0.95 at least against NumPy's exact answer. With `--full` these are 100,000: making the graph
takes minutes. Vectors have structure, as texts about the same things have.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from tests.bench.vector_search import clustered

from portico import FunctionSpec, Vectors
from portico_basics.contextual.records import FunctionRecords, KnownFunctions
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore

__all__ = ["broken", "vector_half"]

LIMIT = 2.0
"""Times NumPy's own product and partition, where every vector is compared."""
LIMIT_GRAPH_US = 5_000.0
LEAST_RECALL = 0.95

_SMALL, _LARGE, _FULL = 1_000, 20_000, 100_000
_TOP = 5
_QUERIES = 200


class _Ready:
    """Gives the vector of the function that a text numbers."""

    name = model = "ready"

    def __init__(self, rows: npt.NDArray[np.float32]) -> None:
        self._rows = rows

    async def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"] = "document") -> Vectors:
        chosen = self._rows[[int(text) for text in texts]]
        return Vectors(chosen, *chosen.shape)


def vector_half(*, small: int = _SMALL, large: int = _LARGE, rounds: int = 300) -> dict[str, Any]:
    """Return the times of both sizes, their ratios to NumPy's, and their recalls."""
    exact = asyncio.run(_measured(small, rounds, FaissSettings(index="exact")))
    graph = asyncio.run(_measured(large, max(rounds // 10, 20), FaissSettings(index="hnsw")))
    return {"exact": exact, "graph": graph}


def broken(figures: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return which limits the figures exceed."""
    exact, graph = figures["exact"], figures["graph"]
    held = {
        f"exact: {LIMIT:g} times NumPy": exact["ratio"] <= LIMIT,
        "exact: every one of the nearest": exact["recall@5"] == 1.0,
        f"graph: {LIMIT_GRAPH_US:g} µs": graph["portico_us"] < LIMIT_GRAPH_US,
        f"graph: recall {LEAST_RECALL:g}": graph["recall@5"] >= LEAST_RECALL,
    }
    return [limit for limit, holds in held.items() if not holds]


async def _measured(count: int, rounds: int, settings: FaissSettings) -> dict[str, float]:
    rows = clustered(count + _QUERIES)
    data, asked = np.ascontiguousarray(rows[:count]), rows[count:]
    specs = [FunctionSpec(f"f{number}", "", {}, {}) for number in range(count)]
    store = FaissVectorStore(settings)
    records = FunctionRecords(store, _Ready(data), "bench")
    known = KnownFunctions({spec.name: spec for spec in specs}, {spec.name: spec.name[1:] for spec in specs})
    started = time.perf_counter()
    # The first search brings the store up to date.
    await records.cosines(known, Vectors(asked[:1], 1, data.shape[1]), _TOP, ((),))
    result = {"functions": count, "in_step_s": round(time.perf_counter() - started, 2)}
    queries = [Vectors(row.reshape(1, -1), 1, row.size) for row in asked]
    times: dict[str, list[float]] = {"numpy": [], "portico": []}
    found: list[tuple[set[int], set[str]]] = []
    for turn in range(rounds + 10):
        row, query = asked[turn % _QUERIES], queries[turn % _QUERIES]
        for _ in range(2):
            # The second one counts: the first brings its data into the cache.
            started = time.perf_counter()
            scores = data @ row
            best = np.argpartition(-scores, _TOP)[:_TOP]
            floor = time.perf_counter() - started
        for _ in range(2):
            started = time.perf_counter()
            [near], _ = await records.cosines(known, query, _TOP, ((),))
            taken = time.perf_counter() - started
        if turn >= 10:
            times["numpy"].append(floor * 1e6)
            times["portico"].append(taken * 1e6)
        found.append((set(best.tolist()), set(list(near)[:_TOP])))
    medians = {name: statistics.median(some) for name, some in times.items()}
    hits = sum(len({f"f{number}" for number in exact} & names) for exact, names in found)
    result |= {f"{name}_us": round(median, 1) for name, median in medians.items()}
    result["ratio"] = round(medians["portico"] / medians["numpy"], 2)
    result["recall@5"] = round(hits / (_TOP * len(found)), 4)
    await store.aclose()
    return result


if __name__ == "__main__":
    figures = vector_half(large=_FULL if "--full" in sys.argv[1:] else _LARGE)
    over = broken(figures)
    print(json.dumps({"bench": "selection_vectors", "top": _TOP, "broken": over, "figures": figures}))
    sys.exit(1 if over else 0)
