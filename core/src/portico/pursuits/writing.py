"""Writing the journal of one run: in order, durable when asked, under a lease that is kept."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from portico.errors import StoreBusy, StoreDamaged, StoreError, StoreUnavailable
from portico.ports.run_store import Lease, RunStore
from portico.pursuits.journal import entry
from portico.pursuits.running import Broken

__all__ = ["LEASE_SECONDS", "Journal", "kept"]

LEASE_SECONDS = 60.0
"""How long a lease is taken for, where the store has no ``lease_seconds`` of its own."""
_BEATS = 3
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


class Journal:
    """The journal of a run, held from `open` to `close`.

    Entries that are written while another write is under way go to the store together: steps that end side by side
    share a write. A task renews the lease, so that a step may take hours. A lease that is lost stops the pursuit. While
    the store is away for a moment, as a database that restarts is, what is to be written waits for as long as a lease
    lasts: ``length`` tells then whether the last write arrived.
    """

    def __init__(self, store: RunStore, run: str) -> None:
        self.run = run
        self.begun = False
        self.ended = False
        self.lost: Exception | None = None
        self.length = 0
        """The entries that the store has of the run, as far as it has said so."""
        self._seconds = float(getattr(store, "lease_seconds", LEASE_SECONDS))
        self._store = store
        self._lease: Lease | None = None
        self._renewed = 0.0
        self._waiting: list[Mapping[str, Any]] = []
        self._next: asyncio.Task[None] | None = None
        self._last: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._stopped: asyncio.Task[Any] | None = None

    async def open(self) -> None:
        """Take the run; ``StoreBusy`` while another process has it. Who is cancelled meanwhile does not keep it."""
        self._renewed = asyncio.get_running_loop().time()
        taking = asyncio.ensure_future(self._store.acquire(self.run, owner=_owner(), seconds=self._seconds))
        try:
            self._lease = await asyncio.shield(taking)
        except asyncio.CancelledError:
            await _over(taking)
            if not taking.cancelled() and taking.exception() is None:
                self._lease = taking.result()
                await self.close()
            raise
        self._beating = asyncio.create_task(self._beat(asyncio.current_task()))

    def uncancel(self) -> bool:
        """Take back the journal's own cancellation of the pursuit; tell whether there was no other one."""
        stopped, self._stopped = self._stopped, None
        return stopped is not None and not stopped.uncancel()

    async def write(self, written: Mapping[str, Any]) -> None:
        """Write an entry after all that came before; it is durable on return.

        Who is cancelled meanwhile does not stop the write. Raises `Broken`: no step fails for it.
        """
        writing = self.add(written)
        try:
            await asyncio.shield(writing)
        except Exception as error:
            raise Broken(error) from error

    def add(self, written: Mapping[str, Any]) -> asyncio.Task[None]:
        """Have an entry written after all that came before; the next `write` waits for it too."""
        self.begun = True
        self.ended = self.ended or written["type"] == "outcome"
        self._waiting.append(written)
        if self._next is None:
            self._next = asyncio.create_task(self._flush(self._last))
        return self._next

    async def close(self) -> None:
        """Give the run back, after everything that is under way; who is cancelled twice meanwhile does not wait."""
        closing = asyncio.create_task(self._close())
        cancelled = False
        while not closing.done():
            try:
                await asyncio.wait([closing])
            except asyncio.CancelledError:
                if cancelled:
                    closing.cancel()
                cancelled = True
        if cancelled:
            if not closing.cancelled():
                closing.exception()
            raise asyncio.CancelledError
        closing.result()

    async def _close(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
        while (last := self._next or self._last) is not None and not last.done():
            await asyncio.wait([last])
        if last is not None and not last.cancelled():
            # Whoever waited for it has its error; nobody may have.
            last.exception()
        if self._lease is not None:
            lease, self._lease = self._lease, None
            # What was done is written; a lease that cannot be given back runs out by itself.
            with suppress(StoreError):
                await self._store.release(lease)

    async def _flush(self, before: asyncio.Task[None] | None) -> None:
        if before is not None and not before.done():
            await asyncio.wait([before])
        if before is not None and (error := before.exception()) is not None:
            raise error
        entries, self._waiting = self._waiting, []
        self._last, self._next = self._next, None
        if self.lost is not None:
            raise self.lost
        assert self._lease is not None  # noqa: S101 - taken before the first entry
        try:
            await self._store.append(self._lease, entries)
        except (StoreBusy, StoreUnavailable) as error:
            await self._append_again(self._lease, entries, unknown=isinstance(error, StoreUnavailable))
        self.length += len(entries)

    async def _append_again(self, lease: Lease, entries: Sequence[Mapping[str, Any]], *, unknown: bool) -> None:
        """Append where the store refused it or was away: then it is ``unknown`` whether it did as it was asked."""
        clock = asyncio.get_running_loop().time
        until = clock() + self._seconds
        pause = _FIRST_PAUSE
        while True:
            try:
                if unknown:
                    if await self._arrived(entries):
                        return
                else:
                    # Where the computer slept, or its clock was set, the lease ran out by the clock of the store only.
                    # Renewing it fails if another had the run since.
                    await self._renew()
                await self._store.append(lease, entries)
            except StoreUnavailable:
                unknown = True
                if clock() + pause >= until:
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                if self.lost is not None:
                    raise self.lost from None
            else:
                return

    async def _arrived(self, entries: Sequence[Mapping[str, Any]]) -> bool:
        """Tell whether entries were written of which the store could not say so any more."""
        length = len(await self._store.read(self.run))
        # Only now: had another owner the run since, it may have written just as many.
        await self._renew()
        if length not in (self.length, self.length + len(entries)):
            raise StoreDamaged(
                f"The store has {length} entries of the run {self.run}, and had {self.length} before {len(entries)} "
                "were written."
            )
        return length > self.length

    async def _renew(self) -> None:
        assert self._lease is not None  # noqa: S101 - nothing renews before it is taken
        now = asyncio.get_running_loop().time()
        await self._store.renew(self._lease, seconds=self._seconds)
        self._renewed = now

    async def _beat(self, pursuing: asyncio.Task[Any] | None) -> None:
        clock = asyncio.get_running_loop().time
        beat = self._seconds / _BEATS
        pause = beat
        while True:
            await asyncio.sleep(pause)
            left = self._renewed + self._seconds - clock()
            try:
                # A store that gives no answer at all may have given the run to another meanwhile.
                async with asyncio.timeout(min(beat, left) if left > 0 else beat):
                    await self._renew()
                pause = beat
            except (StoreError, TimeoutError) as error:
                left = self._renewed + self._seconds - clock()
                pause = min(beat / _BEATS, left)
                if isinstance(error, StoreBusy) or left <= 0:
                    self.lost = error if isinstance(error, StoreError) else self._silent()
                    if pursuing is not None and pursuing.cancel():
                        self._stopped = pursuing
                    return

    def _silent(self) -> StoreUnavailable:
        return StoreUnavailable(
            f"The store of the run {self.run} gave no answer for {self._seconds:g} seconds, so that its lease ran out. "
            "Go on with the run when the store is there again."
        )


async def _over(task: asyncio.Future[Any]) -> None:
    """Wait until a task is over; who is cancelled again meanwhile cancels it."""
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        task.cancel()
        raise


@asynccontextmanager
async def kept(journal: Journal) -> AsyncIterator[Journal]:
    """Hold a journal open; what it and the listener raise comes out as it is, as does a lease lost meanwhile."""
    await journal.open()
    try:
        try:
            yield journal
        except asyncio.CancelledError:
            # A run of which nothing was written here stays what it was.
            if journal.begun and journal.lost is None and not journal.ended:
                with suppress(Broken):
                    await journal.write(entry("interrupted"))
            raise
        finally:
            await journal.close()
    except asyncio.CancelledError:
        # The journal cancelled the pursuit itself, unless somebody else did too.
        if journal.uncancel() and journal.lost is not None:
            raise journal.lost from None
        raise
    except Broken as stop:
        raise stop.error from stop.error.__cause__
    finally:
        journal.uncancel()


def _owner() -> str:
    """Name this process at work: its host, its number, and what no other at work has."""
    host = os.uname().nodename if hasattr(os, "uname") else ""
    return f"{host}:{os.getpid()}:{os.urandom(8).hex()}"
