"""Writes the journal of a run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from portico._plans.plan import INPUT, From, Plan, Step, Value, evaluate, references
from portico._runs.journal import entry
from portico.errors import StepFailed, StoreBusy, StoreDamaged, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from portico._functions.middleware import RequireApproval
    from portico._ports.run_store import Lease, RunStore

ExecuteStep: TypeAlias = Callable[[Step, dict[str, Any]], Awaitable[Any]]
"""Executes one step with JSON arguments and returns its JSON result."""


# Neither of the two is a failure of the step: no filter of the application is to take it for one.
class Broken(BaseException):
    """What stops a plan as a whole: the journal, a listener or a bound raised ``error``."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(str(error))


class PausedStep(BaseException):
    """Step middleware paused a step."""

    def __init__(self, step: Step, hold: RequireApproval) -> None:
        self.step = step
        self.hold = hold
        super().__init__(hold.reason)


async def run_steps(
    plan: Plan, results: dict[str, Any], execute: ExecuteStep, *, failed: Collection[str] = ()
) -> list[StepFailed]:
    """Run every step of ``plan`` that has no result, independent ones concurrently, and add to ``results``.

    A step whose predecessor failed is not run, nor is one of those that have ``failed`` before. Returns the failures.

    Nothing that is started is left running. A cancellation, or what is `Broken`, stops it. After a `PausedStep` nothing
    new begins, but what runs comes to its end before it is raised: its results are not lost.
    """
    return await _Running(plan, results, execute, failed).to_the_end()


class _Running:
    __slots__ = (
        "broken", "execute", "failures", "following", "held", "over", "ready", "results", "rows", "running", "stopped",
        "waiting",
    )  # fmt: skip

    def __init__(self, plan: Plan, results: dict[str, Any], execute: ExecuteStep, failed: Collection[str]) -> None:
        self.results = results
        self.execute = execute
        self.failures: list[StepFailed] = []
        self.held: PausedStep | None = None
        self.rows: set[asyncio.Task[None]] = set()
        self.running = 0
        self.over: asyncio.Future[None] | None = None
        self.broken: BaseException | None = None
        self.stopped = False
        self.ready: list[Step] = []
        self.waiting: dict[str, int] = {}
        self.following: dict[str, list[Step]] = {}
        following, waiting = self.following, self.waiting
        for step in plan.steps:
            if step.id in results or step.id in failed:
                continue
            count = 0
            for before in _before(step):
                if before not in results:
                    count += 1
                    if before in following:
                        following[before].append(step)
                    else:
                        following[before] = [step]
            if count:
                waiting[step.id] = count
            else:
                self.ready.append(step)

    async def to_the_end(self) -> list[StepFailed]:
        ready = self.ready
        # As long as one step follows another, none of them needs its own task.
        while len(ready) == 1 and self.held is None:
            step = ready[0]
            ready = self.released(step.id) if await self.one(step) else []
        if ready and self.held is None:
            await self.side_by_side(ready)
        if self.held is not None:
            raise self.held
        return self.failures

    async def side_by_side(self, ready: list[Step]) -> None:
        # What a task group does, at half its price: no callback for each task, which wakes the loop once more.
        self.over = asyncio.get_running_loop().create_future()
        for step in ready:
            self.begin(step)
        cancelled: asyncio.CancelledError | None = None
        try:
            await self.over
        except asyncio.CancelledError as error:
            cancelled = error
            self.stop(None)
        while left := [row for row in self.rows if not row.done()]:
            try:
                await asyncio.wait(left)
            except asyncio.CancelledError as error:
                cancelled = error
        self.rows.clear()
        stop = cancelled or self.broken
        if stop is not None:
            raise stop  # Outside of the handler, so that it keeps the cause and context that it has.

    def begin(self, step: Step) -> None:
        if not self.stopped:
            self.rows.add(asyncio.create_task(self.row(step)))
            self.running += 1

    def stop(self, error: BaseException | None) -> None:
        """Cancel what runs; nothing new begins."""
        assert self.over is not None  # noqa: S101 - made before any row
        self.broken = self.broken or error
        if not self.stopped:
            self.stopped = True
            this = asyncio.current_task()
            for row in self.rows:
                if row is not this:
                    row.cancel()
        if not self.over.done():
            self.over.set_result(None)

    async def row(self, step: Step) -> None:
        """Run a step, and in the same task one of those that waited for it alone, and so on."""
        try:
            while self.held is None and await self.one(step):
                ready = self.released(step.id)
                if not ready or self.stopped:
                    break
                for other in ready[1:]:
                    self.begin(other)
                step = ready[0]
        except BaseException as error:  # noqa: BLE001 - whoever waits for all of them raises it
            # Also a cancellation that came from elsewhere: the step must not vanish.
            if not (self.stopped and isinstance(error, asyncio.CancelledError)):
                self.stop(error)
        self.running -= 1
        assert self.over is not None  # noqa: S101 - made before any row
        if not self.running and not self.over.done():
            self.over.set_result(None)

    async def one(self, step: Step) -> bool:
        results = self.results
        try:
            arguments = {name: evaluate(argument, results) for name, argument in step.arguments.items()}
            results[step.id] = await self.execute(step, arguments)
        except PausedStep as held:
            self.held = self.held or held
            return False
        except Exception as error:  # noqa: BLE001 - a step may fail in any way; the failure is data here
            failure = StepFailed(step.id, error)
            failure.__cause__ = error
            self.failures.append(failure)
            return False
        return True

    def released(self, step: str) -> list[Step]:
        """Return the steps that waited for this one only."""
        ready = []
        for following in self.following.get(step, ()):
            left = self.waiting[following.id] - 1
            self.waiting[following.id] = left
            if not left:
                ready.append(following)
        return ready


def _before(step: Step) -> set[str]:
    """Return what a step waits for; the input is there from the beginning, or never comes."""
    before = set(step.after)
    for argument in step.arguments.values():
        if type(argument) is From:
            before.add(argument.step)
        elif type(argument) is not Value:
            before |= {reference.step for reference in references(argument)}
    before.discard(INPUT)
    return before


LEASE_SECONDS = 60.0
"""How long a lease is taken for, where the store has no ``lease_seconds`` of its own."""
_BEATS = 3
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


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
        """Take back the journal's own cancellation of the run; tell whether there was no other one."""
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
            # Whoever waited for it has its error; no one may have.
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

    async def _beat(self, running: asyncio.Task[Any] | None) -> None:
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
                    if running is not None and running.cancel():
                        self._stopped = running
                    return

    def _silent(self) -> StoreUnavailable:
        return StoreUnavailable(
            f"The store of the run {self.run} gave no answer for {self._seconds:g} seconds, so that its lease ran out. "
            "Continue the run when the store is there again."
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
        # The journal cancelled the run itself, unless somebody else did too.
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
