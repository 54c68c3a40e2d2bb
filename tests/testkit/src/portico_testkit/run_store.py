"""What every RunStore must do."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

import pytest

from portico.errors import StoreBusy, StoreError
from portico.ports import Lease, RunStore
from portico_testkit._failing import fails_as
from portico_testkit._odd import ODD_ENTRIES, ODD_NAMES, short
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import give_up, in_time, no_tasks_but, still_answers

__all__ = ["Reopen", "RunStoreKit"]

Reopen: TypeAlias = Callable[[RunStore], Awaitable[RunStore]]

_NOT_OVER = (
    "a thread goes on when its call is cancelled, and writes after what was called later. Wait for the thread before "
    "the cancelled call ends, or give all calls to one thread"
)


class RunStoreKit:
    """Subclass it and give a fixture named ``store``, empty; and one named ``reopen`` where it outlives the process::

        class TestAcmeRunStore(RunStoreKit):
            @pytest.fixture
            def store(self, tmp_path: Path) -> AcmeRunStore:
                return AcmeRunStore(AcmeSettings(path=tmp_path / "runs"))

            @pytest.fixture
            def reopen(self, tmp_path: Path) -> Reopen:
                async def again(store: RunStore) -> RunStore:
                    return AcmeRunStore(AcmeSettings(path=tmp_path / "runs"))

                return again

    ``reopen`` opens another store on what the first one wrote, as a new process does; the first is not closed, as
    that of a process that was killed is not. A fixture ``failing_store`` gives a store that cannot read and write: its
    file is damaged, or its folder is a file.
    """

    @pytest.fixture
    def reopen(self) -> Reopen | None:
        """Nothing, for a store that forgets with the process."""
        return None

    @pytest.fixture
    def failing_store(self) -> RunStore | None:
        """Nothing, for a store that cannot fail."""
        return None

    @pytest.mark.asyncio
    async def test_name_is_filled(self, store: RunStore) -> None:
        assert isinstance(store.name, str), f"the name is {store.name!r}, not a str"
        assert store.name.strip(), "the name is empty"

    @pytest.mark.asyncio
    async def test_entries_are_read_in_the_order_of_writing(self, store: RunStore) -> None:
        lease = await store.acquire("r", owner="me", seconds=60)
        for number in range(20):
            await store.append(lease, [{"number": number}])
        await store.append(lease, [{"number": number} for number in range(20, 25)])
        assert [entry["number"] for entry in await store.read("r")] == list(range(25))

    @pytest.mark.asyncio
    async def test_any_json_comes_back_as_it_was(self, store: RunStore) -> None:
        lease = await store.acquire("r", owner="me", seconds=60)
        await store.append(lease, copy.deepcopy(ODD_ENTRIES))
        for given, read in zip(ODD_ENTRIES, await store.read("r"), strict=True):
            assert repr(dict(read)) == repr(given), f"{short(given)} came back as {short(dict(read))}"

    @pytest.mark.asyncio
    async def test_any_text_may_name_a_run(self, store: RunStore) -> None:
        for name in ODD_NAMES:
            lease = await store.acquire(name, owner="me", seconds=60)
            await store.append(lease, [{"name": name}])
        for name in ODD_NAMES:
            assert [entry["name"] for entry in await store.read(name)] == [name], f"the run {name!r} was mixed up"
        assert set(await store.runs()) == {*ODD_NAMES}

    @pytest.mark.asyncio
    async def test_entries_that_are_not_json_are_refused_together(self, store: RunStore) -> None:
        lease = await store.acquire("r", owner="me", seconds=60)
        for wrong in ({"a": object()}, {"a": float("nan")}, {"a": {1, 2}}):
            with pytest.raises(StoreError):
                await store.append(lease, [{"fine": 1}, wrong])
        assert list(await store.read("r")) == [], "half an append was written"
        await store.append(lease, [{"fine": 2}])
        assert [dict(entry) for entry in await store.read("r")] == [{"fine": 2}]

    @pytest.mark.asyncio
    async def test_a_run_belongs_to_one_owner(self, store: RunStore) -> None:
        await store.acquire("r", owner="me", seconds=60)
        with pytest.raises(StoreBusy):
            await store.acquire("r", owner="another", seconds=60)
        await store.acquire("other", owner="another", seconds=60)

    @pytest.mark.asyncio
    async def test_each_lease_has_a_higher_token_and_the_older_are_refused(self, store: RunStore) -> None:
        leases = [await store.acquire("r", owner="me", seconds=60) for _ in range(3)]
        tokens = [lease.token for lease in leases]
        assert tokens == sorted(set(tokens)), f"tokens are {tokens}: each new lease has a higher one"
        assert [lease.run for lease in leases] == ["r"] * 3
        for stale in leases[:-1]:
            with pytest.raises(StoreBusy):
                await store.append(stale, [{"stale": True}])
            with pytest.raises(StoreBusy):
                await store.renew(stale, seconds=60)
            await store.release(stale)
        await store.append(leases[-1], [{"stale": False}])
        assert [entry["stale"] for entry in await store.read("r")] == [False]

    @pytest.mark.asyncio
    async def test_a_run_that_was_given_back_is_free_and_its_old_lease_is_void(self, store: RunStore) -> None:
        lease = await store.acquire("r", owner="me", seconds=60)
        await store.release(lease)
        await store.release(lease)
        newer = await store.acquire("r", owner="another", seconds=60)
        assert newer.token > lease.token
        await store.release(lease)
        with pytest.raises(StoreBusy):
            await store.append(lease, [{}])
        with pytest.raises(StoreBusy):
            await store.renew(lease, seconds=60)
        await store.append(newer, [{}])

    @pytest.mark.asyncio
    async def test_a_lease_runs_out_by_itself(self, store: RunStore) -> None:
        lease = await store.acquire("r", owner="me", seconds=0.05)
        newer = await _when_free(store, "r", "another")
        with pytest.raises(StoreBusy):
            await store.append(lease, [{}])
        with pytest.raises(StoreBusy):
            await store.renew(lease, seconds=60)
        await store.append(newer, [{}])
        assert newer.token > lease.token

    @pytest.mark.asyncio
    async def test_a_lease_that_is_renewed_does_not_run_out(self, store: RunStore) -> None:
        lease = await store.acquire("r", owner="me", seconds=0.05)
        await store.renew(lease, seconds=60)
        await asyncio.sleep(0.1)
        with pytest.raises(StoreBusy):
            await store.acquire("r", owner="another", seconds=60)
        await store.append(lease, [{}])

    @pytest.mark.asyncio
    async def test_only_one_of_many_gets_a_run(self, store: RunStore) -> None:
        tried = await asyncio.gather(
            *(store.acquire("r", owner=f"owner {number}", seconds=60) for number in range(8)), return_exceptions=True
        )
        got = [each for each in tried if not isinstance(each, BaseException)]
        assert len(got) == 1, f"{len(got)} of 8 owners hold the run at once"
        assert all(isinstance(each, StoreBusy) for each in tried if isinstance(each, BaseException)), tried

    @pytest.mark.asyncio
    async def test_concurrent_appends_are_all_there_and_each_is_whole(self, store: RunStore) -> None:
        leases = [await store.acquire(run, owner="me", seconds=60) for run in ("r1", "r2")]
        writes = [
            store.append(lease, [{"batch": number, "part": part} for part in range(3)])
            for number in range(10)
            for lease in leases
        ]
        await asyncio.gather(*writes)
        for lease in leases:
            read = [(entry["batch"], entry["part"]) for entry in await store.read(lease.run)]
            assert sorted(read) == [(number, part) for number in range(10) for part in range(3)]
            batches = [read[at : at + 3] for at in range(0, 30, 3)]
            assert all([part for _, part in batch] == [0, 1, 2] for batch in batches), "appends were mixed"
            assert all(len({number for number, _ in batch}) == 1 for batch in batches), "appends were mixed"

    @pytest.mark.asyncio
    async def test_a_cancelled_append_is_there_as_a_whole_or_not_at_all(self, store: RunStore) -> None:
        lease = await store.acquire("r", owner="me", seconds=60)
        tasks = asyncio.all_tasks()
        for moments in range(6):
            await give_up(partial(store.append, lease, [{"at": moments}, {"at": moments}]), turns=moments)
            await give_up(partial(store.read, "r"), turns=moments)
        await no_tasks_but(tasks)
        await still_answers(store.append(lease, [{"at": -1}]))
        written = [entry["at"] for entry in await still_answers(store.read("r"))]
        assert written.pop() == -1, f"the last append did not come last: {_NOT_OVER}"
        # A call that is looked at again was made again.
        assert all(written.count(at) % 2 == 0 for at in range(6)), f"half an append was written: {written}"

    @pytest.mark.asyncio
    async def test_an_append_leaves_the_event_loop_free(self, store: RunStore) -> None:
        entries = [{"number": number, "text": "x" * 500} for number in range(500)]

        async def write_and_read(number: int) -> None:
            lease = await store.acquire("r", owner="me", seconds=60)  # what it opens is opened here
            await store.append(lease, entries)
            await store.read("r")

        await leaves_the_event_loop_free(write_and_read)

    @pytest.mark.asyncio
    async def test_what_was_written_outlives_the_process(self, store: RunStore, reopen: Reopen | None) -> None:
        if reopen is None:
            pytest.skip("there is no fixture `reopen`: what this store holds ends with the process")
        lease = await store.acquire("r", owner="me", seconds=60)
        await store.append(lease, [*ODD_ENTRIES])
        again = await reopen(store)
        assert [repr(dict(entry)) for entry in await again.read("r")] == [repr(entry) for entry in ODD_ENTRIES]
        assert list(await again.runs()) == ["r"]
        with pytest.raises(StoreBusy):
            await again.acquire("r", owner="another", seconds=60)
        await store.release(lease)
        newer = await again.acquire("r", owner="another", seconds=60)
        assert newer.token > lease.token, "a process after this one does not have a higher token"
        with pytest.raises(StoreBusy):
            await store.append(lease, [{}])

    @pytest.mark.asyncio
    async def test_two_processes_lose_nothing_of_each_other(self, store: RunStore, reopen: Reopen | None) -> None:
        if reopen is None:
            pytest.skip("there is no fixture `reopen`: what this store holds ends with the process")
        stores = (store, await reopen(store))
        leases = [await each.acquire(f"r{at}", owner=f"p{at}", seconds=60) for at, each in enumerate(stores)]
        await asyncio.gather(
            *(stores[at].append(leases[at], [{"n": number}]) for number in range(15) for at in range(2))
        )
        for each in stores:
            for run in ("r0", "r1"):
                read = sorted(entry["n"] for entry in await each.read(run))
                assert read == list(range(15)), f"of two processes' entries, {len(read)} of 15 are in {run}"
            assert sorted(await each.runs()) == ["r0", "r1"]
        with pytest.raises(StoreBusy):
            await stores[1].append(Lease("r0", "p1", leases[0].token - 1), [{}])
        got = await asyncio.gather(
            *(each.acquire("new", owner=f"p{at}", seconds=60) for at, each in enumerate(stores)), return_exceptions=True
        )
        taken = [each for each in got if isinstance(each, Lease)]
        assert len(taken) == 1, f"{len(taken)} of 2 processes hold one run at once: {got}"

    @pytest.mark.asyncio
    async def test_what_cannot_be_kept_is_a_store_error(self, failing_store: RunStore | None) -> None:
        if failing_store is None:
            pytest.skip("there is no fixture `failing_store`: a store that cannot fail")
        await fails_as(StoreError, failing_store.acquire("r", owner="me", seconds=60), "acquire")
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "read": lambda: failing_store.read("r"),
            "held": lambda: failing_store.held("r"),
            "runs": failing_store.runs,
            "append": lambda: failing_store.append(Lease("r", "me", 1), [{}]),
        }
        for what, call in calls.items():
            await fails_as(StoreError, call(), what, must=False)


async def _when_free(store: RunStore, run: str, owner: str) -> Any:
    async def acquired() -> Lease:
        while True:
            try:
                return await store.acquire(run, owner=owner, seconds=60)
            except StoreBusy:
                await asyncio.sleep(0.02)

    return await in_time(acquired(), "a lease of 0.05 seconds did not run out")
