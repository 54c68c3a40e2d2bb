"""What workers do with runs that were submitted: each is one run, however often and by how many it is begun."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.support.virtual_time import on_virtual_time

from portico._agents.thread import Thread
from portico._chat.messages import Message
from portico._functions.functions import function
from portico._functions.middleware import RequireApproval, StepRun
from portico._jobs import Job, JobStatus
from portico._kernel import Kernel
from portico._plans.plan import Plan, Step, Value
from portico._plans.task import Answer, Budget, Emit, Event, Infeasible, Task
from portico._ports.planner import Planner
from portico._ports.run_store import Lease
from portico._runs.journal import RunState, entry
from portico._runs.submitting import LONGEST_OUTAGE, RESULT_VERSION, RUN_KIND, carry_out, run_job
from portico.errors import PorticoError, RunError, StoreDamaged, StoreError, StoreUnavailable
from portico_testkit.fakes.durable_runs import MemoryDurableRunner
from portico_testkit.fakes.job_queue import MemoryJobQueue
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.fakes.services import FixedServices


class World:
    """What is done outside, and how long it takes."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.done: Counter[str] = Counter()
        self.finished: Counter[str] = Counter()

    async def happens(self, text: str) -> str:
        self.done[text] += 1
        await asyncio.sleep(self.seconds)
        self.finished[text] += 1
        return f"did {text}"

    @function
    async def read(self, text: str) -> str:
        """Read something, as often as one likes."""
        return await self.happens(text)

    @function(effects=True)
    async def send(self, text: str) -> str:
        """Send something, once."""
        return await self.happens(text)


class Proposing:
    """Proposes two moves for each goal, then an answer, and counts how often it was asked."""

    name = "proposing"

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer | Infeasible:
        self.asked[task.goal] += 1
        await asyncio.sleep(1)
        goal = task.goal
        if goal == "fly":
            return Infeasible("no wings", ("wings",))
        done = {record.step.id for record in task.steps}
        if "a" not in done:
            return Plan(
                goal,
                (Step("a", "W-read", {"text": Value(f"{goal} a")}), Step("b", "W-send", {"text": Value(f"{goal} b")})),
            )
        if "c" not in done:
            return Plan(goal, (Step("c", "W-send", {"text": Value(f"{goal} c")}),))
        return Answer(f"{goal} is done", value={"goal": goal, "input": task.input}, warnings=("So it seems.",))


class Crew:
    """Workers that share a queue, a journal and a record, each with a kernel and a runner of its own."""

    def __init__(self, store: MemoryRunStore | None = None, *, seconds: float = 3.0, durable: bool = True) -> None:
        clock = asyncio.get_running_loop().time
        self.store = MemoryRunStore(clock=clock) if store is None else store
        self.queue = MemoryJobQueue(clock=clock)
        self.record: dict[str, dict[str, str]] = {}
        self.world = World(seconds)
        self.planner = Proposing()
        self.durable = durable
        self.seen: list[JobStatus] = []
        self.working: list[asyncio.Task[None]] = []

    def kernel(self, **options: Any) -> Kernel:
        runner: Any = MemoryDurableRunner(record=self.record, jobs=self.queue)
        if not self.durable:
            runner.durable = None
            runner.execute = _execute
        services = FixedServices({Planner: self.planner, (Planner, "other"): ScriptedPlanner(Answer("other"))})
        kernel = Kernel(services, run_store=self.store, runner=runner, **options)
        kernel.add_plugin(self.world, "W")
        return kernel

    def hire(self, kernel: Kernel | None = None) -> asyncio.Task[None]:
        work = self.queue.work({RUN_KIND: partial(carry_out, kernel or self.kernel())}, emit=self.seen.append)
        self.working.append(asyncio.create_task(work))
        return self.working[-1]

    async def dismiss(self) -> None:
        for each in self.working:
            each.cancel()
        await asyncio.gather(*self.working, return_exceptions=True)


async def _execute(run: str, name: str, action: Any) -> Any:
    return await action()


@asynccontextmanager
async def crew_of(count: int, **options: Any) -> AsyncIterator[Crew]:
    crew = Crew(**options)
    for _ in range(count):
        crew.hire()
    try:
        yield crew
    finally:
        await crew.dismiss()


@on_virtual_time
async def test_a_goal_that_is_submitted_is_run_by_a_worker_under_the_name_of_its_run() -> None:
    async with crew_of(1) as crew:
        kernel = crew.kernel()
        kernel.origin = {"folder": "/here"}
        run = await kernel.submit("swim", input=[1], budget=Budget(steps=9))
        (status,) = await crew.queue.ended([run])
        assert status.state == "done"
        assert status.result == {
            "version": RESULT_VERSION,
            "run": run,
            "planner": "proposing",
            "steps": 3,
            "state": "done",
            "text": "swim is done",
            "value": {"goal": "swim", "input": [1]},
            "warnings": ["So it seems."],
        }
        state = RunState.of(await crew.store.read(run))
        assert (state.input, state.budget, state.origin) == ([1], Budget(steps=9), {"folder": "/here"})
        assert crew.world.done == Counter(["swim a", "swim b", "swim c"])
        assert not await crew.store.held(run)


@on_virtual_time
async def test_what_is_asked_for_goes_before_what_the_worker_has() -> None:
    async with crew_of(0) as crew:
        crew.hire(crew.kernel(budget=Budget(steps=1)))
        kernel = crew.kernel()
        runs = [await kernel.submit("swim", planner="other"), await kernel.submit("swim"), await kernel.submit("fly")]
        other, bounded, none = await crew.queue.ended(runs)
        assert (other.result["state"], other.result["text"]) == ("done", "other")
        assert (bounded.result["state"], bounded.state) == ("failed", "done")
        assert "1 steps" in bounded.result["reason"]
        assert (none.result["state"], none.result["reason"], none.result["missing"]) == (
            "infeasible",
            "no wings",
            ["wings"],
        )


@on_virtual_time
async def test_a_run_that_is_held_ends_its_job() -> None:
    async def hold(context: StepRun, proceed: Any) -> Any:
        return RequireApproval("look at it") if context.step.id == "b" else await proceed()

    async with crew_of(0) as crew:
        kernel = crew.kernel()
        kernel.middleware.step.append(hold)
        crew.hire(kernel)
        run = await kernel.submit("swim")
        (status,) = await crew.queue.ended([run])
        assert status.result == {
            "version": RESULT_VERSION,
            "run": run,
            "planner": "proposing",
            "steps": 1,
            "state": "held",
            "reason": "look at it",
            "step": "b",
        }
        again = await carry_out(kernel, Job(run, RUN_KIND, {"version": 1, "goal": "swim"}))
        assert again == status.result
        assert (await crew.kernel().resume(run)).outcome == Answer(
            "swim is done", value={"goal": "swim", "input": None}, warnings=("So it seems.",)
        )


@on_virtual_time
async def test_a_run_that_has_ended_gives_its_end_again() -> None:
    async with crew_of(1) as crew:
        run = await crew.kernel().submit("swim")
        (status,) = await crew.queue.ended([run])
        entries = await crew.store.read(run)
        assert await carry_out(crew.kernel(), Job(run, RUN_KIND, {"version": 1, "goal": "swim"})) == status.result
        assert await crew.store.read(run) == entries


@on_virtual_time
async def test_a_worker_that_is_dismissed_leaves_its_runs_to_the_next() -> None:
    async with crew_of(1) as crew:
        run = await crew.kernel().submit("swim")
        await asyncio.sleep(5)
        await crew.dismiss()
        assert RunState.of(await crew.store.read(run)).state == "interrupted"
        (status,) = await crew.queue.status([run])
        assert status is not None
        assert status.state == "waiting"
        crew.hire()
        (status,) = await crew.queue.ended([run])
        assert status.result["state"] == "done"
        assert max(crew.world.finished.values()) == 1
        types = Counter(each["type"] for each in await crew.store.read(run))
        assert (types["pursuit"], types["resumed"], types["outcome"]) == (1, 1, 1)


@on_virtual_time
async def test_a_job_waits_for_as_long_as_another_process_is_at_work_on_its_run() -> None:
    async with crew_of(0) as crew:
        crew.world.seconds = 500.0
        running = asyncio.create_task(crew.kernel().run_goal("swim", run="r"))
        await asyncio.sleep(10)
        crew.hire()
        await crew.kernel().submit("swim", run="r")
        (status,) = await crew.queue.ended(["r"])
        assert (await running).outcome == Answer(
            "swim is done", value={"goal": "swim", "input": None}, warnings=("So it seems.",)
        )
        assert status.result["text"] == "swim is done"
        assert set(crew.world.done.values()) == {1}


@pytest.mark.parametrize("begun", [0, 1])
@on_virtual_time
async def test_a_lease_that_nobody_renews_is_waited_for_and_then_the_run_is_gone_on_with(begun: int) -> None:
    """Also where whoever has it took it between the look and the beginning, and wrote nothing, or the beginning."""
    async with crew_of(1) as crew:
        lease = await crew.store.acquire("r", owner="a process that is gone", seconds=60)
        if begun:
            await crew.store.append(lease, [entry("pursuit", goal="swim", planner="proposing")])
        await crew.kernel().submit("swim", run="r")
        (status,) = await crew.queue.ended(["r"])
        assert status.result["state"] == "done"
        assert 60 <= asyncio.get_running_loop().time() <= 75
        types = [each["type"] for each in await crew.store.read("r")]
        assert types.count("pursuit") == 1
        assert types.count("resumed") == begun


@on_virtual_time
async def test_two_workers_that_begin_a_run_at_once_make_one_run_of_it() -> None:
    class Slow(MemoryRunStore):
        async def read(self, run: str) -> list[Mapping[str, Any]]:
            entries = await super().read(run)
            await asyncio.sleep(0.01)
            return entries

    crew = Crew(Slow(clock=asyncio.get_running_loop().time))
    job = Job("r", RUN_KIND, {"version": 1, "goal": "swim"})
    results = await asyncio.gather(*(carry_out(crew.kernel(), job) for _ in range(3)))
    assert results[0] == results[1] == results[2]
    assert results[0]["state"] == "done"
    assert set(crew.world.done.values()) == {1}
    types = Counter(each["type"] for each in await crew.store.read("r"))
    assert (types["pursuit"], types["outcome"]) == (1, 1)


@on_virtual_time
async def test_a_run_that_was_begun_and_interrupted_between_is_gone_on_with() -> None:
    """The other began it after this one looked, and stopped before this one could take it."""

    class Interrupted(MemoryRunStore):
        async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
            if run not in await self.runs():
                lease = await super().acquire(run, owner="other", seconds=60)
                await self.append(lease, [entry("pursuit", goal="swim", planner="proposing"), entry("interrupted")])
                await self.release(lease)
            return await super().acquire(run, owner=owner, seconds=seconds)

    crew = Crew(Interrupted(clock=asyncio.get_running_loop().time))
    result = await carry_out(crew.kernel(), Job("r", RUN_KIND, {"version": 1, "goal": "swim"}))
    assert result["state"] == "done"


@on_virtual_time
async def test_a_worker_that_was_cut_off_does_nothing_more_and_another_one_ends_its_runs() -> None:
    """What it had begun when it was cut off goes on; what it would journal is refused."""
    async with crew_of(1) as crew:
        run = await crew.kernel().submit("swim")
        await asyncio.sleep(2.5)  # the first two steps are under way
        (worker,) = await crew.queue.workers()
        crew.queue.silence(worker.name)
        crew.store._leases.clear()
        crew.hire()
        (status,) = await crew.queue.ended([run])
        assert status.result["state"] == "uncertain", "one of the two has effects, and may have happened"
        assert status.result["step"] == "b"
        await asyncio.sleep(200)
        entries = await crew.store.read(run)
        assert [each["type"] for each in entries][-2:] == ["resumed", "outcome"]
        assert crew.world.done["swim b"] == 1
        assert crew.world.done["swim c"] == 0


@on_virtual_time
async def test_what_is_no_run_and_what_cannot_begin_is_the_jobs_own_failure() -> None:
    async with crew_of(1) as crew:
        kernel = crew.kernel()
        await crew.queue.submit([Job("wrong", RUN_KIND, {"goal": "swim"})])
        await kernel.submit("swim", planner="unknown", run="planner")
        await kernel.submit("swim", reuse=True, run="reuse")
        wrong, planner, reuse = await crew.queue.ended(["wrong", "planner", "reuse"])
        assert {wrong.state, planner.state, reuse.state} == {"failed"}
        assert "does not ask for a run" in str(wrong.error)
        assert "unknown" in str(planner.error)
        assert "reuse=True needs a store of plans" in str(reuse.error)
        assert await crew.store.runs() == []
    with pytest.raises(RunError, match="what is submitted needs one"):
        await carry_out(Kernel(), Job("r", RUN_KIND, {"version": 1, "goal": "swim"}))


@on_virtual_time
async def test_a_run_that_cannot_be_gone_on_with_fails_its_job_and_stays_what_it_was() -> None:
    crew = Crew()
    lease = await crew.store.acquire("r", owner="before", seconds=1)
    await crew.store.append(lease, [entry("pursuit", goal="swim", planner="gone")])
    await crew.store.release(lease)
    with pytest.raises(PorticoError, match="gone"):
        await carry_out(crew.kernel(), Job("r", RUN_KIND, {"version": 1, "goal": "swim"}))
    assert len(await crew.store.read("r")) == 1
    lease = await crew.store.acquire("d", owner="before", seconds=1)
    await crew.store.append(lease, [{"type": "nonsense"}])
    with pytest.raises(StoreDamaged):
        await carry_out(crew.kernel(), Job("d", RUN_KIND, {"version": 1, "goal": "swim"}))


@pytest.mark.parametrize("begun", [False, True])
@on_virtual_time
async def test_a_planner_has_the_context_that_was_submitted(begun: bool) -> None:
    crew = Crew()
    if begun:
        lease = await crew.store.acquire("r", owner="before", seconds=1)
        await crew.store.append(lease, [entry("pursuit", goal="swim", planner="other")])
        await crew.store.release(lease)
    told: list[Any] = []
    planner = ScriptedPlanner(lambda task: Answer(str(task.context)))
    kernel = crew.kernel()
    kernel.services = FixedServices({(Planner, "other"): planner})
    job = run_job(kernel, "swim", planner="other", context={"who": "me"}, run="r")
    assert (await carry_out(kernel, job, emit=told.append))["text"] == "{'who': 'me'}"
    assert isinstance(told[0], Event.RunStarted)


async def test_a_job_has_the_conversation_before_its_goal_as_json() -> None:
    job = run_job(Kernel(), "And Rome?", context=Thread(messages=[Message.of("user", "Oslo?")]))
    assert json.loads(json.dumps(job.body))["context"] == {"messages": [{"role": "user", "text": "Oslo?"}]}


@on_virtual_time
async def test_events_of_a_run_are_told_to_who_watches_the_worker() -> None:
    crew = Crew()
    told: list[Any] = []
    await carry_out(crew.kernel(), Job("r", RUN_KIND, {"version": 1, "goal": "fly"}), emit=told.append)
    assert told[0] == Event.RunStarted("r", "fly", "proposing")


class Remote(MemoryRunStore):
    """A store on the network, which is away from time to time."""

    def __init__(self) -> None:
        super().__init__(clock=asyncio.get_running_loop().time)
        self.until = 0.0
        self.reading = True

    def reach(self) -> None:
        if self._clock() < self.until:
            raise StoreUnavailable("The server restarts.")

    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        self.reach()
        return await super().acquire(run, owner=owner, seconds=seconds)

    async def renew(self, lease: Lease, *, seconds: float) -> None:
        self.reach()
        await super().renew(lease, seconds=seconds)

    async def release(self, lease: Lease) -> None:
        self.reach()
        await super().release(lease)

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        self.reach()
        await super().append(lease, entries)

    async def read(self, run: str) -> list[Mapping[str, Any]]:
        if self.reading:
            self.reach()
        return await super().read(run)

    async def held(self, run: str) -> bool:
        self.reach()
        return await super().held(run)


@pytest.mark.parametrize("at", [0.0, 0.5, 2.0, 4.5, 8.0])
@pytest.mark.parametrize("seconds", [5.0, 100.0])
@on_virtual_time
async def test_a_store_that_is_away_for_a_while_delays_a_job(at: float, seconds: float) -> None:
    """For longer than the lease too: then the run is taken up again."""
    store = Remote()
    async with crew_of(1, store=store) as crew:
        run = await crew.kernel().submit("swim")
        await asyncio.sleep(at)
        store.until = store._clock() + seconds
        (status,) = await crew.queue.ended([run])
        assert status.result["state"] == "done"
        assert set(crew.world.finished.values()) == {1}


@pytest.mark.parametrize("reading", [True, False])
@on_virtual_time
async def test_a_store_that_stays_away_is_the_jobs_failure_in_the_end(reading: bool) -> None:
    """Also where it can still be read, as that of a server which takes no writes."""
    store = Remote()
    store.until, store.reading = 10_000.0, reading
    crew = Crew(store)
    with pytest.raises(StoreUnavailable, match="restarts"):
        await carry_out(crew.kernel(), Job("r", RUN_KIND, {"version": 1, "goal": "swim"}))
    assert LONGEST_OUTAGE <= store._clock() < LONGEST_OUTAGE + 10
    assert len(asyncio.all_tasks()) == 1


@on_virtual_time
async def test_outages_add_up_only_where_nothing_comes_of_the_store_being_there() -> None:
    store = Remote()
    async with crew_of(1, store=store, seconds=0.5) as crew:
        run = await crew.kernel().submit("swim")
        for _ in range(4):
            await asyncio.sleep(1.2)
            store.until = store._clock() + LONGEST_OUTAGE - 20
            await asyncio.sleep(LONGEST_OUTAGE - 20)
        (status,) = await crew.queue.ended([run])
        assert status.result["state"] == "done"


@on_virtual_time
async def test_a_store_that_fails_otherwise_is_the_jobs_failure_at_once() -> None:
    class Broken(MemoryRunStore):
        async def read(self, run: str) -> list[Mapping[str, Any]]:
            raise StoreError("The disk is full.")

    with pytest.raises(StoreError, match="disk is full"):
        await carry_out(Crew(Broken()).kernel(), Job("r", RUN_KIND, {"version": 1, "goal": "swim"}))
    assert asyncio.get_running_loop().time() == 0


@pytest.mark.parametrize("durable", [True, False])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_whatever_becomes_of_workers_every_run_ends_once_and_nothing_happens_twice(seed: int, durable: bool) -> None:
    """Workers come, go and are cut off; the store is away now and then."""

    @on_virtual_time
    async def run() -> None:
        chance = random.Random(seed)
        store = Remote()
        crew = Crew(store, seconds=chance.choice([0.1, 3.0, 25.0]), durable=durable)
        for _ in range(3):
            crew.hire()
        runs = await crew.kernel().submit_all([f"goal {number}" for number in range(8)])
        ended = asyncio.create_task(crew.queue.ended(runs))
        for _ in range(chance.randint(1, 8)):
            await asyncio.sleep(chance.uniform(0, 8))
            match chance.choice(["dismiss", "silence", "away"]):
                case "dismiss":
                    chance.choice(crew.working).cancel()
                    crew.hire()
                case "silence":
                    if workers := await crew.queue.workers():
                        worker = chance.choice(workers).name
                        crew.queue.silence(worker)
                        crew.hire()
                        # A worker that was silent for too long stops what it has: another one has it by now.
                        asyncio.get_running_loop().call_later(15, _hear, crew.queue, worker)
                case "away":
                    store.until = store._clock() + chance.choice([1.0, 10.0])
        statuses = await asyncio.wait_for(ended, 3600)
        await asyncio.sleep(300)
        await crew.dismiss()
        for status in statuses:
            assert status.state == "done", status
            assert status.result["state"] in ("done", "uncertain"), status.result
            entries = await store.read(status.name)
            state = RunState.of(entries)
            assert state.state == status.result["state"]
            types = Counter(each["type"] for each in entries)
            assert (types["pursuit"], types["outcome"]) == (1, 1)
            finished = [each["step"] for each in entries if each["type"] == "step-finished"]
            assert len(finished) == len(set(finished)), "each step ended once"
        twice = {what for what, times in crew.world.done.items() if times > 1 and not what.endswith("a")}
        assert not twice, f"effects happened twice: {twice}"
        assert [name for name in runs if await store.held(name)] == []
        assert len(asyncio.all_tasks()) == 1

    run()


def _hear(queue: MemoryJobQueue, worker: str) -> None:
    if worker in queue._workers:
        queue.hear(worker)


@on_virtual_time
async def test_a_recorded_result_of_a_step_with_effects_needs_no_person() -> None:
    """The process ended after the effect and before its entry: with a record nobody needs to look."""
    crew = Crew()
    job = Job("r", RUN_KIND, {"version": 1, "goal": "swim"})
    whole = await carry_out(crew.kernel(), job)
    entries = await crew.store.read("r")
    (began,) = [
        place for place, each in enumerate(entries, 1) if each["type"] == "step-started" and each["step"] == "c"
    ]
    for durable, state in ((True, "done"), (False, "uncertain")):
        later = Crew(durable=durable)
        later.record = crew.record
        lease = await later.store.acquire("r", owner="before", seconds=1)
        await later.store.append(lease, entries[:began])
        result = await carry_out(later.kernel(), job)
        assert result["state"] == state
        assert later.world.done == Counter()
        if durable:
            assert result == whole
