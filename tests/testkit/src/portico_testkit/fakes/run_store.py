"""A run store that forgets everything with the process."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from portico.errors import StoreBusy, StoreError
from portico.ports.run_store import Lease

__all__ = ["MemoryRunStore"]


class MemoryRunStore:
    """Keep the entries of each run in lists; leases run out by ``clock``, in seconds.

    >>> store = MemoryRunStore()
    >>> async def write():
    ...     lease = await store.acquire("r1", owner="me", seconds=60)
    ...     await store.append(lease, [{"type": "pursuit"}])
    ...     return await store.read("r1")
    >>> asyncio.run(write())
    [{'type': 'pursuit'}]

    Every lease has a new token, a renewed one too: who keeps an old lease is found out. Each call gives way to
    other tasks first, as a store with a disk would.
    """

    name = "memory"

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[str, list[str]] = {}
        self._leases: dict[str, tuple[Lease, float]] = {}
        self._tokens = 0

    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        """Take the run, or renew it; ``StoreBusy`` while another holds it."""
        await asyncio.sleep(0)
        held = self._leases.get(run)
        if held is not None and held[0].owner != owner and held[1] > self._clock():
            raise StoreBusy(f"The run {run} is held by {held[0].owner}.")
        self._tokens += 1
        lease = Lease(run, owner, self._tokens)
        self._leases[run] = (lease, self._clock() + seconds)
        self._entries.setdefault(run, [])
        return lease

    async def release(self, lease: Lease) -> None:
        """Give the run back, unless the lease is stale."""
        await asyncio.sleep(0)
        if self.holder(lease.run) == lease:
            del self._leases[lease.run]

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        """Add entries; ``StoreBusy`` for a stale lease, ``StoreError`` for what is not JSON."""
        await asyncio.sleep(0)
        if self.holder(lease.run) != lease:
            raise StoreBusy(f"The lease {lease.token} on {lease.run} is no longer the newest.")
        try:
            written = [json.dumps(entry, allow_nan=False) for entry in entries]
        except (TypeError, ValueError, RecursionError) as error:
            raise StoreError(f"An entry of {lease.run} is not JSON: {error}.") from error
        self._entries[lease.run] += written

    async def read(self, run: str) -> list[Mapping[str, Any]]:
        """Return the entries in order."""
        return [json.loads(entry) for entry in self._entries.get(run, ())]

    async def runs(self) -> list[str]:
        """Return the names of all runs, the oldest first."""
        return list(self._entries)

    def holder(self, run: str) -> Lease | None:
        """Return the lease on a run that is in force, for tests to look at."""
        held = self._leases.get(run)
        return held[0] if held is not None and held[1] > self._clock() else None
