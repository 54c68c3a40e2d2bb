"""The kit of run stores passes the fakes, and catches what is broken."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from portico.errors import StoreError
from portico.ports.run_store import Lease, RunStore
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.kit_failures import KnownFaults, keeps_its_lock
from portico_testkit.kit_of_a_kit import KitOfAKit
from portico_testkit.run_store import Reopen, RunStoreKit


class Kept(MemoryRunStore):
    """Stands for a durable store: what `reopen` gives shares what it holds."""

    fails = False

    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        if self.fails:
            raise StoreError("The journal cannot be read: it is no database.")
        return await super().acquire(run, owner=owner, seconds=seconds)

    def again(self) -> MemoryRunStore:
        other = type(self)()
        other.__dict__.update(self.__dict__)
        return other


async def reopened(store: Any) -> RunStore:
    return store.again()


class TestMemoryRunStore(RunStoreKit):
    @pytest.fixture
    def store(self) -> MemoryRunStore:
        return MemoryRunStore()


class TestOneThatIsKept(RunStoreKit):
    @pytest.fixture
    def store(self) -> Kept:
        return Kept()

    @pytest.fixture
    def reopen(self) -> Reopen:
        return reopened


def failing(kind: type[Kept]) -> Kept:
    store = kind()
    store.fails = True
    return store


FAULTS = KnownFaults(
    RunStoreKit,
    lambda kind: {"store": kind, "reopen": lambda: reopened, "failing_store": lambda: failing(kind)},
)


@FAULTS.caught_by("each_lease_has_a_higher_token_and_the_older_are_refused")
@FAULTS.caught_by("a_lease_runs_out_by_itself")
class _AnyToken(Kept):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        await super().append(self.holder(lease.run) or lease, entries)


@FAULTS.caught_by("entries_that_are_not_json_are_refused_together")
@FAULTS.caught_by("concurrent_appends_are_all_there_and_each_is_whole")
class _HalfWritten(Kept):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        for entry in entries:
            await super().append(lease, [entry])


@FAULTS.caught_by("each_lease_has_a_higher_token_and_the_older_are_refused")
class _OneToken(Kept):
    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        self._tokens = 0
        return await super().acquire(run, owner=owner, seconds=seconds)


@FAULTS.caught_by("a_run_belongs_to_one_owner")
@FAULTS.caught_by("only_one_of_many_gets_a_run")
class _Shared(Kept):
    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        return await super().acquire(run, owner=owner, seconds=-1)


@FAULTS.caught_by("a_lease_runs_out_by_itself", "did not run out after 0.3 seconds")
class _ForEver(Kept):
    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        return await super().acquire(run, owner=owner, seconds=1e9)


@FAULTS.caught_by("a_run_is_held_as_long_as_its_lease_is_in_force")
class _NeverHeld(Kept):
    async def held(self, run: str) -> bool:
        return False


@FAULTS.caught_by("a_run_is_held_as_long_as_its_lease_is_in_force")
class _HeldByAny(Kept):
    async def held(self, run: str) -> bool:
        return any([await super(_HeldByAny, self).held(other) for other in self._leases])


@FAULTS.caught_by("a_run_is_held_as_long_as_its_lease_is_in_force")
class _HeldOnceBegun(Kept):
    async def held(self, run: str) -> bool:
        return run in self._leases


@FAULTS.caught_by("a_run_is_held_as_long_as_its_lease_is_in_force")
class _HeldByAsking(Kept):
    async def held(self, run: str) -> bool:
        self._entries.setdefault(run, [])
        return await super().held(run)


@FAULTS.caught_by("runs_are_listed_the_oldest_first")
class _Sorted(Kept):
    async def runs(self) -> list[str]:
        return sorted(await super().runs())


@FAULTS.caught_by("any_text_may_name_a_run")
class _Folded(Kept):
    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        return await super().acquire(run.casefold(), owner=owner, seconds=seconds)

    async def read(self, run: str) -> list[Mapping[str, Any]]:
        return await super().read(run.casefold())


@FAULTS.caught_by("entries_are_read_in_the_order_of_writing")
class _Backwards(Kept):
    async def read(self, run: str) -> list[Mapping[str, Any]]:
        return (await super().read(run))[::-1]


@FAULTS.caught_by("any_json_comes_back_as_it_was")
class _Rounded(Kept):
    async def read(self, run: str) -> list[Mapping[str, Any]]:
        return [
            {key: float(value) if type(value) is int else value for key, value in entry.items()}
            for entry in await super().read(run)
        ]


@FAULTS.caught_by("name_is_filled", "the name is empty")
class _Nameless(Kept):
    name = " "


@FAULTS.caught_by("an_unknown_run_has_no_entries")
class _MakesRunsOfQuestions(Kept):
    async def read(self, run: str) -> list[Mapping[str, Any]]:
        self._entries.setdefault(run, [])
        return await super().read(run)


@FAULTS.caught_by("an_unknown_run_has_no_entries", "no such run")
class _FailsOnUnknownRuns(Kept):
    async def read(self, run: str) -> list[Mapping[str, Any]]:
        if run not in self._entries:
            raise StoreError(f"There is no run {run}.")
        return await super().read(run)


@FAULTS.caught_by("any_json_comes_back_as_it_was")
@FAULTS.caught_by("what_was_written_outlives_the_process")
class _CutsLongTexts(Kept):
    async def read(self, run: str) -> list[Mapping[str, Any]]:
        entries = await super().read(run)
        return [{key: v[:65_535] if isinstance(v, str) else v for key, v in entry.items()} for entry in entries]


@FAULTS.caught_by("what_is_done_to_entries_afterwards_changes_nothing")
class _SharesWhatItReads(Kept):
    async def read(self, run: str) -> list[Mapping[str, Any]]:
        self.shown = getattr(self, "shown", None) or await super().read(run)
        return self.shown


@FAULTS.caught_by("what_is_done_to_entries_afterwards_changes_nothing")
class _KeepsTheObjects(Kept):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        await super().append(lease, entries)
        self.given = [*getattr(self, "given", ()), *entries]

    async def read(self, run: str) -> list[Mapping[str, Any]]:
        return self.given


@FAULTS.caught_by("entries_that_are_not_json_are_refused_together", "not JSON serializable")
class _LetsTheEncodersErrorOut(Kept):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        try:
            await super().append(lease, entries)
        except StoreError as error:
            raise error.__cause__ or error from None


@FAULTS.caught_by("a_run_that_was_given_back_is_free_and_its_old_lease_is_void")
class _NeverGivesBack(Kept):
    async def release(self, lease: Lease) -> None:
        await asyncio.sleep(0)


@FAULTS.caught_by("a_run_that_was_given_back_is_free_and_its_old_lease_is_void", "no longer")
class _FailsOnASecondRelease(Kept):
    async def release(self, lease: Lease) -> None:
        if self.holder(lease.run) != lease:
            raise self._stale(lease)
        await super().release(lease)


@FAULTS.caught_by("a_run_that_was_given_back_is_free_and_its_old_lease_is_void")
class _AnyLeaseGivesBack(Kept):
    async def release(self, lease: Lease) -> None:
        self._leases.pop(lease.run, None)


@FAULTS.caught_by("a_lease_that_is_renewed_does_not_run_out")
class _ForgetsRenewals(Kept):
    async def renew(self, lease: Lease, *, seconds: float) -> None:
        until = self._leases[lease.run][1]
        await super().renew(lease, seconds=seconds)
        self._leases[lease.run] = (lease, until)


@FAULTS.caught_by("a_lease_that_ran_out_may_be_renewed_when_nobody_had_the_run_since", "no longer in force")
class _RenewsOnlyInTime(Kept):
    async def renew(self, lease: Lease, *, seconds: float) -> None:
        if self.holder(lease.run) != lease:
            raise self._stale(lease)
        await super().renew(lease, seconds=seconds)


@FAULTS.caught_by("a_cancelled_append_is_there_as_a_whole_or_not_at_all", "half an append was written")
class _HalfWrittenWhenCancelled(Kept):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        await super().append(lease, entries[:1])
        await super().append(lease, entries[1:])


@FAULTS.caught_by("a_cancelled_append_is_there_as_a_whole_or_not_at_all", "as if nobody had cancelled it")
class _TakesNoNoticeOfCancellation(Kept):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)
        await super().append(lease, entries)


@FAULTS.caught_by("a_cancelled_append_is_there_as_a_whole_or_not_at_all", "after a cancelled call it never answers")
class _KeepsItsLockWhenCancelled(Kept):
    append = keeps_its_lock(Kept.append)


@FAULTS.caught_by("a_cancelled_append_is_there_as_a_whole_or_not_at_all", "after a cancelled call it never answers")
class _KeepsTheLockOfReadsWhenCancelled(Kept):
    read = keeps_its_lock(Kept.read)


@FAULTS.caught_by("a_cancelled_append_is_there_as_a_whole_or_not_at_all", "tasks go on")
class _WritesOnWhenCancelled(Kept):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        writing = asyncio.create_task(asyncio.sleep(5))
        await asyncio.sleep(0)
        writing.cancel()
        await super().append(lease, entries)


@FAULTS.caught_by("an_append_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class _BlocksTheLoop(Kept):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        time.sleep(0.05)
        await super().append(lease, entries)


@FAULTS.caught_by("what_was_written_outlives_the_process")
class _ForgetsWithTheProcess(Kept):
    def again(self) -> MemoryRunStore:
        return type(self)()


@FAULTS.caught_by("what_was_written_outlives_the_process", "DID NOT RAISE")
class _ForgetsItsLeases(Kept):
    def again(self) -> MemoryRunStore:
        other = super().again()
        other._leases, other._newest = {}, {}
        return other


@FAULTS.caught_by("two_processes_lose_nothing_of_each_other", "15 are in")
class _LosesWritesOfOthers(Kept):
    """Each process reads the whole journal, and writes it back."""

    def again(self) -> MemoryRunStore:
        return super().again()

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        before = {run: list(written) for run, written in self._entries.items()}
        await super().append(lease, entries)
        before.setdefault(lease.run, []).append(self._entries[lease.run][-1])
        self._entries.update(before)


@FAULTS.caught_by("two_processes_lose_nothing_of_each_other", "2 processes hold one run")
class _TwoGetARun(Kept):
    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        return await super().acquire(run, owner="any" if run == "new" else owner, seconds=seconds)


@FAULTS.caught_by("what_cannot_be_kept_is_a_store_error", "acquire raised OSError")
class _LetsTheDisksErrorOut(Kept):
    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        if self.fails:
            raise OSError("I/O error")
        return await super().acquire(run, owner=owner, seconds=seconds)


@FAULTS.caught_by("what_cannot_be_kept_is_a_store_error", "runs raised FileNotFoundError")
class _LetsTheDisksErrorOutOfTheList(Kept):
    async def runs(self) -> list[str]:
        if self.fails:
            raise FileNotFoundError("runs")
        return await super().runs()


@FAULTS.caught_by("what_cannot_be_kept_is_a_store_error", "what it stands on fails")
class _BeginsWhatNobodyWritesDown(Kept):
    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        return await MemoryRunStore.acquire(self, run, owner=owner, seconds=seconds)


@FAULTS.caught_by("any_json_comes_back_as_it_was", "'whole': 1.0.* came back as .*'whole': 1,")
class _TakesWholeFloatsForIntegers(Kept):
    async def read(self, run: str) -> list[Mapping[str, Any]]:
        return [
            {
                key: int(value) if isinstance(value, float) and value.is_integer() else value
                for key, value in each.items()
            }
            for each in await super().read(run)
        ]


@FAULTS.caught_by("runs_are_listed_the_oldest_first", "a run that was taken up again changed its place")
class _SortedByTheNewestLease(Kept):
    async def runs(self) -> list[str]:
        return sorted(self._newest, key=lambda run: self._newest[run])


@FAULTS.caught_by("a_lease_that_ran_out_may_append_or_is_busy_when_nobody_had_the_run_since", "and the run has")
class _DropsWhatComesLate(Kept):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        if self.holder(lease.run) is not None:
            await super().append(lease, entries)


@FAULTS.caught_by("a_lease_that_ran_out_may_append_or_is_busy_when_nobody_had_the_run_since", "written all the same")
class _WritesWhatItRefuses(Kept):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        if self.holder(lease.run) is None:
            self._entries[lease.run] += map(json.dumps, entries)
        await super().append(lease, entries)


@FAULTS.caught_by("a_lease_that_ran_out_may_append_or_is_busy_when_nobody_had_the_run_since", "has run out for good")
class _FailsOnALateAppend(Kept):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        if self.holder(lease.run) is None:
            raise StoreError("The lease has run out for good.")
        await super().append(lease, entries)


class _InThreads(Kept):
    """Each call has a thread of its own. Correct: one that is cancelled ends when its thread has."""

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        writing = asyncio.ensure_future(self.written(lease, entries))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait([writing])
            raise

    async def written(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        if self.holder(lease.run) != lease:
            raise self._stale(lease)
        await asyncio.to_thread(self.write, lease, entries)

    def write(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        try:
            texts = [json.dumps(entry, allow_nan=False) for entry in entries]
        except (TypeError, ValueError) as error:
            raise StoreError(f"An entry is no JSON: {error}.") from error
        self._entries[lease.run] += texts


@FAULTS.caught_by(
    "a_cancelled_append_is_over_before_the_next_one", r"\['next', 'cancelled'\] were written, .* a thread"
)
class _LeavesItsThreadBehind(_InThreads):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        await self.written(lease, entries)


@FAULTS.caught_by("an_append_leaves_the_event_loop_free", "the event loop waits by os.fsync in append")
class _SyncsItsFileInTheLoop(Kept):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        with tempfile.TemporaryFile() as file:
            os.fsync(file.fileno())
        await super().append(lease, entries)


@FAULTS.caught_by("an_append_leaves_the_event_loop_free", "the event loop waits by sqlite3.connect in acquire")
class _OpensItsDatabaseInTheLoop(Kept):
    database: sqlite3.Connection | None = None

    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        if self.database is None:
            with tempfile.TemporaryDirectory() as folder:
                self.database = sqlite3.connect(f"{folder}/runs")
                self.database.close()
        return await super().acquire(run, owner=owner, seconds=seconds)


class _AppendsLate(Kept):
    """Correct: the lease is the newest, and nobody took the run. What has no entries is no run to it."""

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        if self._newest.get(lease.run) == lease.token and lease.run in self._leases:
            until = self._leases[lease.run][1]
            self._leases[lease.run] = (lease, self._clock() + 60)
            try:
                await super().append(lease, entries)
            finally:
                self._leases[lease.run] = (lease, until)
        else:
            await super().append(lease, entries)

    async def runs(self) -> list[str]:
        return [run for run in await super().runs() if self._entries[run]]


class TestTheRunStoreKit(KitOfAKit):
    faults = FAULTS
    correct = (Kept, _InThreads, _AppendsLate)
