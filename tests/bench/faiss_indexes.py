"""What a query costs by NumPy and by indexes of FAISS, and how much they find: the table of `docs/how-to/use-faiss.md`.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m tests.bench.faiss_indexes [ROWSxDIMENSIONS...]

prints one JSON object a line. Times are processor time, so run it with one thread; `ms` is of one query.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import faiss
import numpy as np
from tests.bench.vector_search import clustered

from portico_faiss._index import FaissIndex
from portico_faiss.config import FaissSettings

_TOP, _QUERIES = 10, 100


def milliseconds(call: Callable[[int], object]) -> float:
    """Return the median time of a call for each query."""
    taken = []
    for number in range(_QUERIES):
        started = time.process_time()
        call(number)
        taken.append(time.process_time() - started)
    return round(1000 * median(taken), 2)


def measure(rows: int, dimensions: int) -> dict[str, Any]:
    """Return times, recall@10, seconds to build and the size of each way."""
    data = clustered(rows + _QUERIES, dimensions)
    data, queries = data[:rows].copy(), data[rows:].copy()
    best = [set(np.argsort(-(data @ query))[:_TOP].tolist()) for query in queries]
    none = np.empty(0, np.int64)

    def product(number: int) -> object:
        negated = -data.dot(queries[number])
        bound = np.partition(negated, _TOP - 1)[_TOP - 1]
        return (negated <= bound).nonzero()[0]

    flat = faiss.IndexFlatIP(dimensions)
    flat.add(data)
    result: dict[str, Any] = {"rows": rows, "dimensions": dimensions, "numpy": {"ms": milliseconds(product)}}
    result["flat"] = {"ms": milliseconds(lambda number: flat.search(queries[number : number + 1], _TOP))}
    for name, settings in {
        "hnsw": FaissSettings(index="hnsw"),
        "IVF1024,PQ32": FaissSettings(factory="IVF1024,PQ32"),
    }.items():
        if rows < settings.indexed_from and name != "hnsw":
            continue
        index, started = FaissIndex.empty(dimensions, settings), time.process_time()
        index.extend(data, lambda activity: None)
        seconds = round(time.process_time() - started, 1)
        recall = []
        for number, wanted in enumerate(best):
            [found] = index.candidates(queries[number : number + 1], _TOP, none, rows)
            ranked = found[np.argsort(-(data[found] @ queries[number]))[:_TOP]]
            recall.append(len(wanted & set(ranked.tolist())) / _TOP)
        result[name] = {
            "ms": milliseconds(
                lambda number, index=index: index.candidates(queries[number : number + 1], _TOP, none, rows)
            ),
            "recall@10": round(float(np.mean(recall)), 3),
            "build_s": seconds,
            "mb": round(len(faiss.serialize_index(index._index)) / 1e6, 1),
        }
    return result


if __name__ == "__main__":
    for size in sys.argv[1:] or ("10000x256", "30000x256", "100000x256", "10000x768", "30000x768"):
        rows, _, dimensions = size.partition("x")
        print(json.dumps({"bench": "faiss_indexes", **measure(int(rows), int(dimensions))}), flush=True)
