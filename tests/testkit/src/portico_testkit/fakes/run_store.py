"""A run store that forgets everything with the process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from portico.errors import StoreBusy
from portico.plugins import Rows
from portico.ports import Lease, RunStore

__all__ = ["MemoryRunStore"]


class MemoryRunStore(RunStore):
    """Keep the entries of each run in lists; leases run out by ``clock``, in seconds.

    >>> store = MemoryRunStore()
    >>> async def write():
    ...     lease = await store.acquire("r1", owner="me", seconds=60)
    ...     await store.append(lease, [{"type": "plan"}])
    ...     return await store.read("r1")
    >>> asyncio.run(write())
    [{'type': 'plan'}]

    Every lease that is taken has a new token: who keeps an old one is found out. Each call gives way to other
    tasks first, as a store with a disk would.
    """

    name = "memory"

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[str, list[str]] = {}
        self._leases: dict[str, tuple[Lease, float]] = {}
        self._newest: dict[str, int] = {}
        self._tokens = 0

    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        """Take the run; ``StoreBusy`` while another holds it."""
        await asyncio.sleep(0)
        held = self._leases.get(run)
        if held is not None and held[0].owner != owner and held[1] > self._clock():
            raise StoreBusy(f"The run {run} is held by {held[0].owner}.")
        self._entries.setdefault(run, [])
        self._tokens += 1
        lease = Lease(run, owner, self._tokens)
        self._newest[run] = lease.token
        self._leases[run] = (lease, self._clock() + seconds)
        return lease

    async def renew(self, lease: Lease, *, seconds: float) -> None:
        """Lengthen a lease; ``StoreBusy`` when it is no longer the newest."""
        await asyncio.sleep(0)
        if self._newest.get(lease.run) != lease.token:
            raise self._stale(lease)
        self._leases[lease.run] = (lease, self._clock() + seconds)

    async def release(self, lease: Lease) -> None:
        """Give the run back, unless the lease is stale."""
        await asyncio.sleep(0)
        if self.holder(lease.run) == lease:
            del self._leases[lease.run]

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        """Add entries; ``StoreBusy`` for a stale lease, ``StoreError`` for what is not JSON."""
        await asyncio.sleep(0)
        if self.holder(lease.run) != lease:
            raise self._stale(lease)
        written = [Rows.encode(lease.run, entry) for entry in entries]
        self._entries[lease.run] += written

    async def read(self, run: str) -> list[Mapping[str, Any]]:
        """Return the entries in order."""
        return [Rows.decode(text) for text in self._entries.get(run, ())]

    async def held(self, run: str) -> bool:
        """Tell whether a lease on the run is in force."""
        return self.holder(run) is not None

    async def runs(self) -> list[str]:
        """Return the names of all runs, the oldest first."""
        return list(self._entries)

    def _stale(self, lease: Lease) -> StoreBusy:
        holder = self.holder(lease.run)
        since = f": {holder.owner} holds the run" if holder is not None and holder != lease else ""
        return StoreBusy(f"The lease {lease.token} on {lease.run} is no longer in force{since}.")

    def holder(self, run: str) -> Lease | None:
        """Return the lease on a run that is in force, for tests to look at."""
        held = self._leases.get(run)
        return held[0] if held is not None and held[1] > self._clock() else None
