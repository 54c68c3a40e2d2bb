"""What the checksum of a journal's entry costs when it is written: `python -m tests.bench.journal_entries`.

Entries are encoded in turn without a checksum, as they were before, and with it, in the midst of a journal's work, when
the processor's caches hold other things. The difference of the two, as the processor's time of the thread, is compared
with its time for a whole entry. Two journals side by side would not do: they differ by a tenth with equal code.
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

ROUNDS = 4_000
LIMIT = 0.02
TRIES = 3
SIZES = (50, 500, 5_000)
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


async def measure(folder: Path, size: int) -> tuple[float, float, float]:
    """Return the seconds of an entry, and those of encoding it without a checksum and with it."""
    entry = {"version": 1, "at": "2026-01-01T00:00:00.000+00:00", "type": "step-finished", "step": "s1"}
    entry["result"] = "It is a Sunday. " * (size // 16)
    kinds = encode_plainly, Rows.encode
    times: tuple[list[float], list[float]] = [], []
    store = SqliteRunStore(SqliteSettings(path=folder / "journal.db"))
    journal = Journal(store, "r1")
    await journal.open()
    whole: list[float] = []

    def encode(run: str, entry: Mapping[str, Any]) -> str:
        kind = len(whole) % 2
        started = time.thread_time()
        text = kinds[kind](run, entry)
        times[kind].append(time.thread_time() - started)
        return text

    with patch.object(Rows, "encode", encode):
        for _ in range(ROUNDS):
            started = time.process_time()
            await journal.write(entry)
            whole.append(time.process_time() - started)
    await journal.close()
    await store.aclose()
    return statistics.median(whole), statistics.median(times[0]), statistics.median(times[1])


def main() -> int:
    """Measure each size, print the table and one JSON line; return 1 where the limit is broken."""
    shares: dict[str, float] = {}
    print(f"medians of {ROUNDS} entries, microseconds of the processor; the middle of {TRIES} tries")
    for size in SIZES:
        tries = []
        for _ in range(TRIES):
            with tempfile.TemporaryDirectory() as folder:
                whole, plain, checked = asyncio.run(measure(Path(folder), size))
                tries.append(((checked - plain) / whole, whole * 1e6, plain * 1e6, checked * 1e6))
        share, whole, plain, checked = sorted(tries)[TRIES // 2]
        print(f"{size:5} characters: entry {whole:.0f}, encoded {plain:.1f}, with checksum {checked:.1f}: {share:.2%}")
        shares[f"{size} characters"] = share
    print(json.dumps({"bench": "journal_entries", "limit": LIMIT} | shares))
    return 1 if any(share > LIMIT for share in shares.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
