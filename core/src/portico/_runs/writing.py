"""Writes the journal of a run, and asks a durable runner for what it recorded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from portico._functions.middleware import current_step
from portico._plans.plan import size_of
from portico._runs.journal import entry
from portico._runs.scheduling import Broken
from portico.errors import StoreBusy, StoreDamaged, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from portico._kernel_like import KernelLike
    from portico._ports.durable_runs import DurableRuns
    from portico._ports.run_store import Lease, RunStore
    from portico._ports.runner import Runner
    from portico._runs.journal import RunState


T = TypeVar("T")

LEASE_SECONDS = 60.0
"""How long a lease lasts, if the store does not set ``lease_seconds``."""
_BEATS = 3
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
_FEW, _AT_ONCE = 8, 8_000_000
"""More entries than this go to the store by so many bytes, since it holds all their texts at the same time."""


class Journal:
    """The journal of a run, held from `open` to `close`.

    Entries that are written while another write is under way go to the store together: steps that end side by side
    share a write. A task renews the lease, so that a step may take hours. A lease that is lost stops the run. While
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
        self.used: Mapping[str, Any] = {}
        """What the next entry says of the chat services that were asked."""
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
        """Take the run; ``StoreBusy`` while another process has it. A cancelled call gives it back."""
        self._renewed = asyncio.get_running_loop().time()
        taking = asyncio.ensure_future(self._store.acquire(self.run, owner=_owner(), seconds=self._seconds))
        try:
            self._lease = await asyncio.shield(taking)
        except asyncio.CancelledError:
            await asyncio.wait([taking])
            if not taking.cancelled() and taking.exception() is None:
                self._lease = taking.result()
                await self.close()
            raise
        self._beating = asyncio.create_task(self._beat(asyncio.current_task()))

    def uncancel(self) -> bool:
        """Take back the journal's own cancellation of the run; return whether there was no other one."""
        stopped, self._stopped = self._stopped, None
        return stopped is not None and not stopped.uncancel()

    async def write(self, written: Mapping[str, Any]) -> None:
        """Write an entry after the earlier ones; it is durable on return. A cancellation does not stop the write.

        Raises `Broken`, so that no step fails for it.
        """
        writing = self.add(written)
        try:
            await asyncio.shield(writing)
        except Exception as error:
            raise Broken(error) from error

    def add(self, written: Mapping[str, Any]) -> asyncio.Task[None]:
        """Put an entry after the earlier ones; the next `write` waits for it too."""
        self.begun = True
        self.ended = self.ended or written["type"] == "outcome"
        self._waiting.append({**written, **self.used} if self.used else written)
        self.used = {}
        if self._next is None:
            self._next = asyncio.create_task(self._flush(self._last))
        return self._next

    async def close(self) -> None:
        """Give the run back, after everything that is under way. A cancellation waits for it, a second one does not."""
        closing = asyncio.create_task(self._close())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            try:
                await asyncio.wait([closing])
            except asyncio.CancelledError:
                closing.cancel()
                await asyncio.wait([closing])
            raise

    async def _close(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
        while (last := self._next or self._last) is not None and not last.done():
            await asyncio.wait([last])
        if last is not None and not last.cancelled():
            last.exception()  # Marks it as seen, even if no caller waited for it.
        if self._lease is not None:
            lease, self._lease = self._lease, None
            # A lease that cannot be given back runs out.
            with suppress(StoreError):
                await self._store.release(lease)

    async def _flush(self, before: asyncio.Task[None] | None) -> None:
        if before is not None and not before.done():
            await asyncio.wait([before])
        if before is not None and (error := before.exception()) is not None:
            raise error
        entries, self._waiting = self._waiting, []
        self._last, self._next = self._next, None
        while entries:
            size = count = 0
            while count < len(entries) and size < _AT_ONCE:
                size += size_of(entries[count], _AT_ONCE) if len(entries) > _FEW else 0
                count += 1
            await self._append(entries[:count])
            del entries[:count]

    async def _append(self, entries: Sequence[Mapping[str, Any]]) -> None:
        if self.lost is not None:
            raise self.lost
        assert self._lease is not None  # noqa: S101 - taken before the first entry
        try:
            await self._store.append(self._lease, entries)
        except (StoreBusy, StoreUnavailable) as error:
            await self._append_again(self._lease, entries, unknown=isinstance(error, StoreUnavailable))
        self.length += len(entries)

    async def _append_again(self, lease: Lease, entries: Sequence[Mapping[str, Any]], *, unknown: bool) -> None:
        """Append again. With ``unknown``, the store may have the entries already: it could not be reached."""
        clock = asyncio.get_running_loop().time
        until = clock() + self._seconds
        pause = _FIRST_PAUSE
        while True:
            try:
                if unknown:
                    if await self._have_arrived(entries):
                        return
                else:
                    # After the computer slept, the lease has run out. It can be renewed unless another took the run.
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

    async def _have_arrived(self, entries: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether the store has entries that it could not confirm."""
        length = len(await self._store.read(self.run))
        # Another owner may have written just as many entries. Then this fails.
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

    async def _beat(self, running: asyncio.Task[Any] | None) -> None:
        clock = asyncio.get_running_loop().time
        beat = self._seconds / _BEATS
        pause = beat
        while True:
            await asyncio.sleep(pause)
            left = self._renewed + self._seconds - clock()
            try:
                # A store that gives no answer may have given the run to another process.
                async with asyncio.timeout(min(beat, left) if left > 0 else beat):
                    await self._renew()
                pause = beat
            except (StoreError, TimeoutError) as error:
                left = self._renewed + self._seconds - clock()
                pause = min(beat / _BEATS, left)
                if isinstance(error, StoreBusy) or left <= 0:
                    self.lost = error
                    if isinstance(error, TimeoutError):
                        self.lost = StoreUnavailable(
                            f"The store of the run {self.run} gave no answer for {self._seconds:g} seconds, so its "
                            "lease ran out. Resume the run when the store is there again."
                        )
                    if running is not None and running.cancel():
                        self._stopped = running
                    return


@asynccontextmanager
async def open_journal(store: RunStore, run: str) -> AsyncIterator[Journal]:
    """Hold the journal of a run open; raises what it and the listener raise, and the error of a lost lease."""
    journal = Journal(store, run)
    await journal.open()
    try:
        try:
            yield journal
        except asyncio.CancelledError:
            if journal.begun and journal.lost is None and not journal.ended:
                with suppress(Broken):
                    await journal.write(entry("interrupted"))
            raise
        finally:
            await journal.close()
    except asyncio.CancelledError:
        # The journal cancelled the run, unless somebody else did too.
        if journal.uncancel() and journal.lost is not None:
            raise journal.lost from None
        raise
    except Broken as stop:
        raise stop.error from stop.error.__cause__
    finally:
        journal.uncancel()


def _owner() -> str:
    """Return ``HOST:PID:RANDOM``."""
    host = os.uname().nodename if hasattr(os, "uname") else ""
    return f"{host}:{os.getpid()}:{os.urandom(8).hex()}"


class Recording:
    """What a durable runner records of one run: the result of each step.

    ``finished`` has the results of steps that began and have no end in the journal.
    """

    def __init__(self, runner: Runner, durable: DurableRuns, run: str) -> None:
        self.finished: dict[str, Any] = {}
        self.taken: set[str] = set()
        """The steps that ended with a result of ``finished``."""
        self._runner = runner
        self._durable = durable
        self._run = run
        self._times: dict[str, int] = {}

    @classmethod
    def open(cls, kernel: KernelLike, run: str) -> Recording | None:
        """Return the record of a run; None without a durable runner.

        A run that a step of another run makes is part of that step, which is recorded as a whole.
        """
        runner = kernel.runner
        if runner is None or runner.durable is None or current_step() is not None:
            return None
        return cls(runner, runner.durable, run)

    async def load(self, state: RunState) -> None:
        """Read the results of the steps that began and did not end; ``StoreError`` where that is impossible."""
        if state.started:
            recorded = await self._durable.recorded(self._run)
            self.finished = {step: recorded[step] for step in state.started if step in recorded}

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do all the work of the run, recorded."""
        return await self._durable.run(self._run, work)

    def take(self, step: str) -> Any:
        """Return the result of a step that an earlier process carried out, once."""
        self.taken.add(step)
        self._times[step] = 1
        return self.finished.pop(step)

    async def step(self, step: str, action: Callable[[], Awaitable[Any]]) -> Any:
        """Carry out a step, or return its recorded result.

        Step middleware may proceed several times: each time is its own action, ``s1``, ``s1//2`` and so on.
        """
        times = self._times.get(step, 0) + 1
        begun = False
        results: list[Any] = []

        async def once() -> Any:
            nonlocal begun
            begun = True
            results[:] = [await action()]
            return results[0]

        try:
            result = await self._runner.execute(self._run, step if times == 1 else f"{step}//{times}", once)
        except StoreError as error:
            if results:  # The step is done, and the journal will have its result.
                result = results[0]
            elif begun or not isinstance(error, StoreUnavailable):
                raise
            else:
                result = await action()
        self._times[step] = times
        return result
