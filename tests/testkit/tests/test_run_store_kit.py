"""The kit of run stores passes the fakes, and catches what is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from portico.errors import StoreError
from portico.ports import Lease, RunStore
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.kit_failures import Fault, KnownFaults
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
    RunStoreKit, lambda kind: {"store": kind, "reopen": lambda: reopened, "failing_store": lambda: failing(kind)}
)


@FAULTS.caught_by("each_lease_has_a_higher_token_and_the_older_are_refused")
@FAULTS.caught_by("a_lease_runs_out_by_itself")
class _AnyToken(Kept):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        await super().append(self.holder(lease.run) or lease, entries)


@FAULTS.caught_by("a_cancelled_append_is_there_as_a_whole_or_not_at_all", "half an append was written")
class _HalfWrittenWhenCancelled(Kept):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        await super().append(lease, entries[:1])
        await super().append(lease, entries[1:])


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
