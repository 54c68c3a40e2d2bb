"""The kit of run stores passes the fake, and catches what is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from portico.errors import StoreBusy
from portico.ports.run_store import Lease
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.run_store import RunStoreKit


class TestMemoryRunStore(RunStoreKit):
    @pytest.fixture
    def store(self) -> MemoryRunStore:
        return MemoryRunStore()


class _AnyToken(MemoryRunStore):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        await super().append(self.holder(lease.run) or lease, entries)


class _HalfWritten(MemoryRunStore):
    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        for entry in entries:
            await super().append(lease, [entry])


class _OneToken(MemoryRunStore):
    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        self._tokens = 0
        return await super().acquire(run, owner=owner, seconds=seconds)


class _Shared(MemoryRunStore):
    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        return await super().acquire(run, owner=owner, seconds=-1)


class _ForEver(MemoryRunStore):
    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        return await super().acquire(run, owner=owner, seconds=1e9)


class _NeverHeld(MemoryRunStore):
    async def held(self, run: str) -> bool:
        return False


class _HeldByAny(MemoryRunStore):
    async def held(self, run: str) -> bool:
        return any([await super(_HeldByAny, self).held(other) for other in self._leases])


class _HeldOnceBegun(MemoryRunStore):
    async def held(self, run: str) -> bool:
        return run in self._leases


class _HeldByAsking(MemoryRunStore):
    async def held(self, run: str) -> bool:
        self._entries.setdefault(run, [])
        return await super().held(run)


class _Sorted(MemoryRunStore):
    async def runs(self) -> list[str]:
        return sorted(await super().runs())


class _Folded(MemoryRunStore):
    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        return await super().acquire(run.casefold(), owner=owner, seconds=seconds)

    async def read(self, run: str) -> list[Mapping[str, Any]]:
        return await super().read(run.casefold())


class _Backwards(MemoryRunStore):
    async def read(self, run: str) -> list[Mapping[str, Any]]:
        return (await super().read(run))[::-1]


class _Rounded(MemoryRunStore):
    async def read(self, run: str) -> list[Mapping[str, Any]]:
        return [
            {key: float(value) if type(value) is int else value for key, value in entry.items()}
            for entry in await super().read(run)
        ]


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (_AnyToken, "test_each_lease_has_a_higher_token_and_the_older_are_refused"),
        (_AnyToken, "test_a_lease_runs_out_by_itself"),
        (_HalfWritten, "test_entries_that_are_not_json_are_refused_together"),
        (_HalfWritten, "test_concurrent_appends_are_all_there_and_each_is_whole"),
        (_OneToken, "test_each_lease_has_a_higher_token_and_the_older_are_refused"),
        (_Shared, "test_a_run_belongs_to_one_owner"),
        (_Shared, "test_only_one_of_many_gets_a_run"),
        (_NeverHeld, "test_a_run_is_held_as_long_as_its_lease_is_in_force"),
        (_HeldByAny, "test_a_run_is_held_as_long_as_its_lease_is_in_force"),
        (_HeldOnceBegun, "test_a_run_is_held_as_long_as_its_lease_is_in_force"),
        (_HeldByAsking, "test_a_run_is_held_as_long_as_its_lease_is_in_force"),
        (_Sorted, "test_runs_are_listed_the_oldest_first"),
        (_Folded, "test_any_text_may_name_a_run"),
        (_Backwards, "test_entries_are_read_in_the_order_of_writing"),
        (_Rounded, "test_any_json_comes_back_as_it_was"),
    ],
)
async def test_a_broken_store_is_caught(broken: type[MemoryRunStore], test: str) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception, StoreBusy)):
        await getattr(RunStoreKit(), test)(broken())


async def test_a_lease_that_never_runs_out_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(seconds: float) -> None: ...

    monkeypatch.setattr("portico_testkit.run_store.asyncio.sleep", at_once)
    with pytest.raises(AssertionError, match="did not run out"):
        await RunStoreKit().test_a_lease_runs_out_by_itself(_ForEver(clock=lambda: 0.0))
