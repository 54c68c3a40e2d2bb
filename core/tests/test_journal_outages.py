"""A store of runs that is away for a while: nothing is lost, nothing written twice, and nobody else's run touched."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.support.virtual_time import on_virtual_time

from portico._functions.functions import function
from portico._kernel import Kernel
from portico._plans.plan import From, Plan, Step, TextOf, Value
from portico._plans.task import Answer
from portico._ports.run_store import Lease
from portico._runs.journal import RunState, entry
from portico._runs.writing import LEASE_SECONDS, open_journal
from portico.errors import StoreBusy, StoreDamaged, StoreError, StoreUnavailable
from portico_testkit.fakes.run_store import MemoryRunStore


class Remote(MemoryRunStore):
    """A store on the network. ``lose`` says of each append whether it is lost, or its answer, and for how long."""

    def __init__(self, lose: Callable[[], tuple[str, float] | None] = lambda: None) -> None:
        super().__init__(clock=asyncio.get_running_loop().time)
        self.lose = lose
        self.until = 0.0
        self.renewals: list[float] = []
        self.taken_for: list[float] = []
        self.outages = 0

    def reach(self) -> None:
        if self._clock() < self.until:
            raise StoreUnavailable("The server restarts.")

    def leave(self, seconds: float) -> None:
        self.outages += 1
        self.until = self._clock() + seconds

    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        self.reach()
        self.taken_for.append(seconds)
        return await super().acquire(run, owner=owner, seconds=seconds)

    async def renew(self, lease: Lease, *, seconds: float) -> None:
        self.reach()
        self.renewals.append(self._clock())
        await super().renew(lease, seconds=seconds)

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        self.reach()
        lost = self.lose()
        if lost is not None and lost[0] == "request":
            self.leave(lost[1])
            self.reach()
        await super().append(lease, entries)
        if lost is not None:
            self.leave(lost[1])
            self.reach()

    async def read(self, run: str) -> list[Mapping[str, Any]]:
        self.reach()
        return await super().read(run)

    async def release(self, lease: Lease) -> None:
        self.reach()
        await super().release(lease)


class World:
    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.sent: list[str] = []

    @function(effects=True)
    async def send(self, text: str) -> str:
        """Send it, once."""
        self.sent.append(text)
        await asyncio.sleep(self.seconds)
        return f"sent {text}"


def kernel_of(world: World, store: MemoryRunStore) -> Kernel:
    kernel = Kernel(run_store=store)
    kernel.add_plugin(world, "W")
    return kernel


def chain(count: int) -> Plan:
    steps = [Step("s0", "W-send", {"text": Value("0")})]
    for number in range(1, count):
        before = TextOf((f"{number} after ", From(f"s{number - 1}")))
        steps.append(Step(f"s{number}", "W-send", {"text": before if number % 2 else Value(str(number))}))
    return Plan("g", tuple(steps), From(f"s{count - 1}"))


def told(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in each.items() if name != "at"} for each in entries]


def in_order_of_steps(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted(str(each) for each in told(entries))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_short_outages_change_nothing_in_a_journal(seed: int) -> None:
    """Whether what was to be written is lost, or only the word that it is there."""

    @on_virtual_time
    async def run() -> None:
        chance = random.Random(seed)
        plan = chain(chance.randint(1, 6))
        undisturbed = Remote()
        expected = await kernel_of(World(), undisturbed).run_plan(plan, run="r")
        share = chance.choice([0.1, 0.5, 0.8])

        seconds = 0.0

        def lose() -> tuple[str, float] | None:
            nonlocal seconds
            # Two long ones, one after the other, are not short.
            seconds = chance.choice([0.0, 0.05, 3.0, 20.0]) if chance.random() < share and seconds < 3 else 0.0
            return (chance.choice(["request", "answer"]), seconds) if seconds else None

        world, store = World(chance.choice([0.0, 30.0])), Remote(lose)
        ended = await kernel_of(world, store).run_plan(plan, run="r")
        assert ended.outcome == expected.outcome
        assert len(world.sent) == len(plan.steps), "each was sent once"
        store.until = 0.0
        assert in_order_of_steps(await store.read("r")) == in_order_of_steps(await undisturbed.read("r"))
        records = [record.step.id for record in RunState.of(await store.read("r")).records]
        assert [record.step.id for record in ended.steps] == records, "who goes on finds them in the same order"
        assert len(asyncio.all_tasks()) == 1

    run()


@on_virtual_time
async def test_an_outage_longer_than_the_lease_stops_the_run_which_can_be_gone_on_with() -> None:
    once = iter([None, ("request", 3 * LEASE_SECONDS)])
    store, world = Remote(lambda: next(once, None)), World()
    kernel = kernel_of(world, store)
    began = store._clock()
    with pytest.raises(StoreUnavailable, match="restarts"):
        await kernel.run_plan(chain(2), run="r")
    assert LEASE_SECONDS - 3 < store._clock() - began < LEASE_SECONDS + 1
    assert world.sent == [], "what is not journalled does not begin"
    await asyncio.sleep(3 * LEASE_SECONDS)
    assert RunState.of(await store.read("r")).state == "running"
    assert (await kernel.resume("r")).outcome == Answer("sent 1 after sent 0", value="sent 1 after sent 0")
    assert len(world.sent) == 2


@on_virtual_time
async def test_a_failure_that_is_no_outage_is_not_tried_again() -> None:
    class Full(MemoryRunStore):
        appends = 0

        async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
            self.appends += 1
            raise StoreError("The disk is full.")

    store = Full()
    with pytest.raises(StoreError, match="disk is full"):
        await kernel_of(World(), store).run_plan(chain(1))
    assert store.appends == 1
    assert asyncio.get_running_loop().time() == 0


@pytest.mark.parametrize("lost", ["request", "answer"])
@pytest.mark.parametrize("others", [1, 2, 3])
@on_virtual_time
async def test_who_lost_the_run_during_an_outage_writes_and_does_nothing_more(lost: str, others: int) -> None:
    """Also where the new owner wrote just as many entries as were under way."""
    losses = iter([None, (lost, 5.0)])
    store, world = Remote(lambda: next(losses, None)), World()

    async def another() -> None:
        await asyncio.sleep(1)
        store._leases.clear()
        store.until, until = 0.0, store.until
        lease = await store.acquire("r", owner="another", seconds=600)
        await store.append(lease, [entry("resumed", planner="plan", retry=[])] * others)
        store.until = until

    taking = asyncio.create_task(another())
    with pytest.raises(StoreBusy, match="another holds the run"):
        await kernel_of(world, store).run_plan(chain(2), run="r")
    await taking
    assert world.sent == [], "a step whose beginning may not be in the journal is not carried out"
    types = [each["type"] for each in await store.read("r")]
    assert types[:2] == ["pursuit", "plan"]
    assert types[-others:] == ["resumed"] * others
    assert len(types) == 2 + (lost == "answer") + others


@on_virtual_time
async def test_a_store_that_forgot_what_it_had_is_damaged() -> None:
    losses = iter([None, ("request", 1.0)])

    def lose() -> tuple[str, float] | None:
        found = next(losses, None)
        if found is not None:
            del store._entries["r"][0]
        return found

    store = Remote(lose)
    with pytest.raises(StoreDamaged, match=r"has 1 entries of the run r, and had 2 before 1 were written"):
        await kernel_of(World(), store).run_plan(chain(1), run="r")


@on_virtual_time
async def test_a_run_that_is_gone_on_with_survives_an_outage_too() -> None:
    """The entries that were there before are counted as well."""
    store, world = Remote(), World()
    lease = await store.acquire("r", owner="before", seconds=1)
    other = Remote()
    await kernel_of(World(), other).run_plan(chain(2), run="r")
    before = (await other.read("r"))[:4]
    await store.append(lease, before)
    await store.release(lease)
    losses = iter([("answer", 2.0), None, ("request", 2.0), ("answer", 0.5)])
    store.lose = lambda: next(losses, None)
    run = await kernel_of(world, store).resume("r")
    assert run.outcome == Answer("sent 1 after sent 0", value="sent 1 after sent 0")
    assert store.outages == 3
    types = [each["type"] for each in await store.read("r")]
    again = ["step-started", "step-finished"]
    assert types == ["pursuit", "plan", *again, "resumed", *again, "outcome"]


@on_virtual_time
async def test_a_store_says_for_how_long_it_is_leased() -> None:
    class Hasty(Remote):
        lease_seconds = 6.0

    store = Hasty()
    await kernel_of(World(19.0), store).run_plan(chain(1), run="r")
    assert store.taken_for == [6.0]
    assert store.renewals == [2.0 * beat for beat in range(1, 10)]
    usual = Remote()
    await kernel_of(World(50.0), usual).run_plan(chain(1), run="r")
    assert usual.taken_for == [LEASE_SECONDS]
    assert len(usual.renewals) == 2


@pytest.mark.parametrize("away", [False, True])
@on_virtual_time
async def test_a_step_is_stopped_when_its_lease_has_run_out(away: bool) -> None:
    """Somebody else may have the run then; a store that gives no answer is as bad as one that is away."""

    class Silent(Remote):
        silent = False

        async def renew(self, lease: Lease, *, seconds: float) -> None:
            if self.silent:
                await asyncio.Event().wait()
            await super().renew(lease, seconds=seconds)

    store, world = Silent(), World(1000.0)
    running = asyncio.create_task(kernel_of(world, store).run_plan(chain(1), run="r"))
    await asyncio.sleep(50)  # the last renewal was at 40
    store.silent = not away
    store.until = 500.0 if away else 0.0
    with pytest.raises(StoreUnavailable, match="restarts" if away else "no answer for 60 seconds"):
        await running
    assert store._clock() == pytest.approx(40 + LEASE_SECONDS, abs=0.5)
    assert len(asyncio.all_tasks()) == 1
    assert running.cancelling() == 0


@on_virtual_time
async def test_what_waits_to_be_written_waits_no_longer_than_the_lease_lasts() -> None:
    """It was renewed long before the outage began, so that it ends before a lease's time is over."""
    losses = iter([None, None, ("request", 10 * LEASE_SECONDS)])
    store = Remote(lambda: next(losses, None))
    with pytest.raises(StoreUnavailable):
        await kernel_of(World(15.0), store).run_plan(chain(1), run="r")
    assert store._clock() < LEASE_SECONDS + 3


@on_virtual_time
async def test_a_lease_that_is_renewed_after_all_goes_on() -> None:
    store, world = Remote(), World(300.0)
    running = asyncio.create_task(kernel_of(world, store).run_plan(chain(1), run="r"))
    await asyncio.sleep(50)
    store.leave(40.0)
    assert isinstance((await running).outcome, Answer)
    gaps = [later - earlier for earlier, later in zip(store.renewals, store.renewals[1:], strict=False)]
    assert max(gaps) <= LEASE_SECONDS


@on_virtual_time
async def test_who_stops_a_run_during_an_outage_waits_no_longer_than_a_lease() -> None:
    losses = iter([None, ("request", 10 * LEASE_SECONDS)])
    store = Remote(lambda: next(losses, None))
    running = asyncio.create_task(kernel_of(World(), store).run_plan(chain(2), run="r"))
    await asyncio.sleep(5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert store._clock() <= 2 * LEASE_SECONDS
    assert len(asyncio.all_tasks()) == 1


@on_virtual_time
async def test_an_outage_while_the_run_is_given_back_takes_nothing_away() -> None:
    store = Remote()

    async def during(work: Callable[[], Awaitable[None]]) -> None:
        async with open_journal(store, "r"):
            await work()
            store.leave(100.0)

    async def write() -> None:
        async with open_journal(store, "other") as journal:
            await journal.write(entry("pursuit", goal="g", planner="p"))

    await during(write)
    assert len(asyncio.all_tasks()) == 1
