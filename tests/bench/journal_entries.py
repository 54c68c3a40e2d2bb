"""What the checksum of a journal's entry costs when it is written: `python -m tests.bench.journal_entries`.

The floor is the same journal, whose entries are encoded without a checksum, as they were before. The two take turns in
short batches, each on its own file. What counts is the time of the processor, at the first decile of the batches:
others who use the machine make a batch slower, and never faster. All is measured three times, and the middle one
counts. The aim is 2%; the limit leaves room for a machine that is not at rest.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from portico._runs.writing import Journal
from portico.errors import StoreError
from portico.plugins import Rows
from portico_basics.config import SqliteSettings
from portico_basics.sqlite.store import SqliteRunStore

ROUNDS = 1_000
BATCH = 4
LIMIT = 1.05
TRIES = 3
SIZES = (50, 500, 3_000)
_plain = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def encode_plainly(run: str, entry: Mapping[str, Any]) -> str:
    """Return an entry as it was written before it had a checksum."""
    try:
        text = _plain(entry)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"An entry of the run {run} is not JSON: {error}.") from error
    if len(text) > 100_000_000:
        raise StoreError(f"An entry of the run {run} is too long.")
    return text


async def batch(journal: Journal, entry: Mapping[str, Any]) -> float:
    """Return the seconds of one entry, of so many."""
    started = time.process_time()
    for _ in range(BATCH):
        await journal.write(entry)
    return (time.process_time() - started) / BATCH


async def measure(folder: Path, size: int) -> tuple[float, float, float]:
    """Return the ratio, and the seconds of an entry without a checksum and with it."""
    entry = {"version": 1, "at": "2026-01-01T00:00:00.000+00:00", "type": "step-finished", "step": "s1"}
    entry["result"] = "It is a Sunday. " * (size // 16)
    stores = [SqliteRunStore(SqliteSettings(path=folder / name)) for name in ("plain", "checked")]
    journals = [Journal(store, "r1") for store in stores]
    for journal in journals:
        await journal.open()
    times: list[tuple[float, float]] = []
    for number in range(ROUNDS + 1):
        took = [0.0, 0.0]
        for which in (0, 1) if number % 2 else (1, 0):
            with patch.object(Rows, "encode", encode_plainly if which == 0 else Rows.encode):
                took[which] = await batch(journals[which], entry)
        times.append((took[0], took[1]))
    for journal, store in zip(journals, stores, strict=True):
        await journal.close()
        await store.aclose()
    plain, checked = (statistics.quantiles(each, n=10)[0] for each in zip(*times[1:], strict=True))
    return checked / plain, plain, checked


def main() -> int:
    """Measure each size, print the table and one JSON line; return 1 where the limit is broken."""
    rows: dict[str, tuple[float, float, float]] = {}
    for size in SIZES:
        tries = []
        for _ in range(TRIES):
            with tempfile.TemporaryDirectory() as folder:
                tries.append(asyncio.run(measure(Path(folder), size)))
        rows[f"{size} characters"] = sorted(tries)[TRIES // 2]
    print(f"first deciles of {ROUNDS} rounds of {BATCH} entries, microseconds an entry; the middle of {TRIES} tries")
    for what, (ratio, plain, checked) in rows.items():
        print(f"{what:20}{plain * 1e6:9.1f}{checked * 1e6:9.1f}{ratio:8.3f}x, limit {LIMIT}x")
    print(json.dumps({"bench": "journal_entries", "limit": LIMIT} | {what: row[0] for what, row in rows.items()}))
    return 1 if any(ratio > LIMIT for ratio, _, _ in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
