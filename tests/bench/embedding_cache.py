"""What a cached embedding costs beside reading the same rows from SQLite by hand, and beside making them anew.

    python -m tests.bench.embedding_cache

prints one JSON line. Times are medians, in microseconds, of one call with so many texts. ``by_hand`` reads the same
rows of the same file with one statement, in this thread, and puts them together: no hash, no check, no thread. ``work``
is processor time of all threads, which a machine that is busy with something else changes less. ``keeping`` is what the
cache adds to the generator's own time when nothing is there yet, a text.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from portico.search import Vectors
from portico_basics.cached_embeddings.embeddings import CachedEmbeddings
from portico_wordllama.embeddings import WordllamaEmbeddings

__all__ = ["measure"]

_WORDS = ("invoice", "harbour", "weather", "customer", "review", "kitchen", "violin", "meeting", "letter", "station")


def _texts(count: int) -> list[str]:
    return [
        f"{_WORDS[number % 10]} {_WORDS[number // 10 % 10]} {_WORDS[number // 100 % 10]} of customer {number}: "
        "what has to be known of it, in a sentence or two as they are found in manuals."
        for number in range(count)
    ]


def measure(sizes: tuple[int, ...] = (1, 10, 100, 1_000), *, kept: int = 20_000, rounds: int = 100) -> dict[str, Any]:
    """Return times and ratios for calls of each size, in a cache of ``kept`` vectors."""
    return asyncio.run(_measure(sizes, kept, rounds))


async def _measure(sizes: tuple[int, ...], kept: int, rounds: int) -> dict[str, Any]:
    texts = _texts(kept)
    generator = WordllamaEmbeddings()
    await generator.embed(texts[:1])
    started = time.perf_counter()
    await generator.embed(texts)
    alone = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        cached = CachedEmbeddings(generator, path=Path(folder))
        started = time.perf_counter()
        await cached.embed(texts)
        result: dict[str, Any] = {
            "rows": kept,
            "keeping_us": round((time.perf_counter() - started - alone) / kept * 1e6, 1),
            "wordllama_us": round(alone / kept * 1e6, 1),
        }
        (file,) = Path(folder).glob("*.sqlite3")
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            # Of the pages, for some of them may be in SQLite's log still.
            pages = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
            result["bytes_a_row"] = round(connection.execute(pages).fetchone()[0] / kept)
            for size in sizes:
                result[str(size)] = await _one_size(texts, size, rounds, generator, cached, connection)
        await cached.aclose()
    return result


async def _one_size(
    texts: list[str],
    size: int,
    rounds: int,
    generator: WordllamaEmbeddings,
    cached: CachedEmbeddings,
    connection: sqlite3.Connection,
) -> dict[str, float]:
    starts = [number * 7_919 % (len(texts) - size) for number in range(rounds + 5)]
    # The rows lie in the order of the texts: one call kept them.
    keys = [key for (key,) in connection.execute("SELECT key FROM vectors ORDER BY row")]
    statement = f"SELECT key, vector FROM vectors WHERE key IN ({', '.join('?' * size)})"

    async def by_hand(start: int) -> Vectors:
        wanted = keys[start : start + size]
        there = dict(connection.execute(statement, wanted))
        return Vectors(b"".join([there[key] for key in wanted]), size, 256)

    calls: dict[str, Callable[[int], Awaitable[Vectors]]] = {
        "by_hand": by_hand,
        "cached": lambda start: cached.embed(texts[start : start + size]),
        "wordllama": lambda start: generator.embed(texts[start : start + size]),
        "a_hop": lambda start: asyncio.to_thread(Vectors, b"", 0, 256),
    }
    assert await by_hand(starts[0]) == await calls["cached"](starts[0])
    times: dict[str, list[float]] = {name: [] for name in calls}
    work: dict[str, list[float]] = {name: [] for name in calls}
    for turn, start in enumerate(starts):
        # All in turn, so that whatever else the machine does meets them alike.
        for name, call in calls.items():
            started, worked = time.perf_counter(), time.process_time()
            await call(start)
            if turn >= 5:
                times[name].append((time.perf_counter() - started) * 1e6)
                work[name].append((time.process_time() - worked) * 1e6)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    worked_for = {name: statistics.median(taken) for name, taken in work.items()}
    return {f"{name}_us": round(median, 1) for name, median in medians.items()} | {
        "to_by_hand": round(medians["cached"] / medians["by_hand"], 2),
        "to_wordllama": round(medians["cached"] / medians["wordllama"], 2),
        "work_to_by_hand": round(worked_for["cached"] / worked_for["by_hand"], 2),
        "work_to_wordllama": round(worked_for["cached"] / worked_for["wordllama"], 2),
    }


if __name__ == "__main__":
    print(json.dumps({"bench": "embedding_cache", **measure()}))
