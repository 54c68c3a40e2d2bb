"""Resuming: what finished never runs again, what has effects never runs twice unasked, and the end is the same."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.support.virtual_time import on_virtual_time

from portico._chat.messages import Message
from portico._functions.functions import function
from portico._functions.middleware import PlanReview, RequireApproval, StepRun, current_step
from portico._kernel import Kernel
from portico._plans.functions import plan_function
from portico._plans.plan import Each, From, ListOf, Plan, PlanTemplate, Step, TextOf, Value, When
from portico._plans.task import Answer, Budget, Event, Infeasible, RunEvent, Task
from portico._ports.planner import Planner
from portico._ports.run_store import Lease
from portico._runs.journal import RunState
from portico._runs.outcome import Paused, Run
from portico.errors import (
    LimitExceeded,
    PlanStale,
    RunError,
    RunNotFound,
    ServiceUnavailable,
    StepFailed,
    StoreBusy,
    StoreError,
)
from portico_testkit.fakes.durable_runs import MemoryDurableRunner
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.fakes.services import FixedServices


class World:
    """What happens outside: each call with the step that it is for and how much of the journal there was."""

    def __init__(self, store: MemoryRunStore | None = None) -> None:
        self.store = store
        self.calls: list[tuple[str, int]] = []
        self.fail: set[str] = set()

    def happens(self) -> str:
        step = current_step()
        assert step is not None
        entries = len(self.store._entries.get(step.run, ())) if self.store is not None else 0
        self.calls.append((step.step, entries))
        if step.step in self.fail:
            raise ServiceUnavailable("down")
        return step.step

    @function
    async def join(self, texts: list[str]) -> str:
        """Join texts."""
        self.happens()
        await asyncio.sleep(0)
        return "+".join(texts)

    @function
    async def frail(self, texts: list[str]) -> str:
        """Join texts, or fail."""
        self.happens()
        if len(texts[0]) % 2:
            raise ValueError(texts[0])
        return texts[0]

    @function(effects=True)
    async def send(self, texts: list[str]) -> dict[str, str]:
        """Send texts, once."""
        self.happens()
        return {"sent": "+".join(texts)}

    @property
    def called(self) -> list[str]:
        return [step for step, _ in self.calls]


class Noted(MemoryDurableRunner):
    """Records, and notes how much of the journal there was when it did."""

    def __init__(self, store: MemoryRunStore) -> None:
        super().__init__()
        self.store = store
        self.made: dict[str, int] = {}

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        result = await super().execute(run, name, action)
        self.made.setdefault(name, len(self.store._entries[run]))
        return result

    def before(self, count: int, run: str) -> dict[str, str]:
        """Return what was recorded when the journal had so many entries."""
        return {name: text for name, text in self.durable.record.get(run, {}).items() if self.made[name] <= count}


def kernel_of(world: World, store: MemoryRunStore | None, runner: MemoryDurableRunner | None = None) -> Kernel:
    kernel = Kernel(run_store=store, runner=runner)
    kernel.add_plugin(world, "W")
    first = Step("a", "W-send", {"texts": ListOf((From("input", ("text",)),))})
    both = Plan("both", (first, Step("b", "W-join", {"texts": ListOf((TextOf((From("a"),)),))})), From("b"))
    kernel.add_function(plan_function("both", both))
    return kernel


async def store_with(run: str, entries: Iterable[Mapping[str, Any]]) -> MemoryRunStore:
    store = MemoryRunStore()
    lease = await store.acquire(run, owner="before", seconds=1)
    await store.append(lease, list(entries))
    await store.release(lease)
    return store


def some_plan(seed: int, *, depth: int = 0) -> Plan:
    """Make a small plan of any shape: chains, fans, loops, nested plans and templates, some steps with effects."""
    chance = random.Random(seed)
    steps: list[Step] = []
    for number in range(chance.randint(1, 4 if depth == 0 else 2)):
        earlier = [step.id for step in steps]
        before = chance.sample(earlier, chance.randint(0, len(earlier)))
        kinds = ["join", "join", "send", "function"]
        kind = chance.choice([*kinds, "nested", "template", "loop", "loop"] if depth == 0 else kinds)
        id = f"s{number}"
        match kind:
            case "loop":
                over = ListOf((Value(id), *(TextOf((From(step),)) for step in before)))
                again = [From(step.id) for step in steps if step.each is not None]
                items = Each(chance.choice([over, over, *again]), chance.randint(1, 3), chance.choice(["stop", "skip"]))
                text = TextOf((From("item"),))
                equal = When("equal", (From("item"), Value(id)), negated=chance.random() < 0.5)
                when = equal if items.items is over else When("present", (From("item"),))
                called, given = chance.choice(
                    [
                        ("W-send", {"texts": ListOf((text,))}),
                        ("W-frail" if items.failed == "skip" else "W-join", {"texts": ListOf((text,))}),
                        ("both", {"text": text}),
                        (some_plan(chance.randrange(1000), depth=1), {}),
                    ]
                )
                steps.append(Step(id, called, given, each=items, when=chance.choice([None, when])))
            case "nested":
                inner = some_plan(chance.randrange(1000), depth=1)
                steps.append(Step(id, inner, {}, tuple(before)))
            case "template":
                called = chance.choice(
                    [
                        "{{W.join texts='[\"a\"]'}}",
                        "{{W.send texts='[\"b\"]'}}{{W.join texts='[]'}}",
                        "{{both text='c'}} {{both text='d'}}",
                    ]
                )
                steps.append(Step(id, PlanTemplate(f"It is {called}.", "semantic-kernel"), {}, tuple(before)))
            case "function":
                steps.append(Step(id, "both", {"text": Value(id)}, tuple(before)))
            case _:
                firsts = {step.id: (0,) for step in steps if step.each is not None and chance.random() < 0.8}
                texts = ListOf((Value(id), *(TextOf((From(step, firsts.get(step, ())),)) for step in before)))
                steps.append(Step(id, f"W-{kind}", {"texts": texts}))
    return Plan("all", tuple(steps), ListOf(tuple(From(step.id) for step in steps)))


def effects(plan: Plan) -> Callable[[str], bool]:
    """Tell of a step's id whether it has effects, as the plan was made above."""

    def of(steps: Mapping[str, Step], path: list[str]) -> bool:
        step = steps[path[0]]
        if isinstance(step.function, Plan):
            return len(path) > 1 and of({each.id: each for each in step.function.steps}, path[1:])
        if isinstance(step.function, PlanTemplate):
            if "both" in step.function.source:
                return path[2:] == ["a"]
            return len(path) > 1 and path[1] == "1" and "W.send" in step.function.source
        return step.function == "W-send" or (step.function == "both" and path[1:] == ["a"])

    return lambda step_id: of({step.id: step for step in plan.steps}, re.sub(r"\[\d+\]", "", step_id).split("/"))


async def crash_everywhere(plan: Plan, planner: Callable[[], ScriptedPlanner] | None, *, durable: bool = False) -> None:
    store = MemoryRunStore()
    world = World(store)
    runner = Noted(store) if durable else None
    kernel = kernel_of(world, store, runner)
    first = planner() if planner is not None else None
    whole = await (kernel.run_plan(plan) if first is None else kernel.run_goal("all", planner=first))
    entries = await store.read(whole.name)
    has_effects = effects(plan)
    # A plan that runs by itself is written together with the run's beginning.
    for count in range(1 if planner is not None else 2, len(entries)):
        before = [step for step, durable in world.calls if durable <= count]
        for answer in ("result", "retry"):
            record = runner.before(count, whole.name) if runner is not None else None
            await check_one_crash(planner, whole, entries[:count], before, answer, has_effects, record)


async def check_one_crash(
    planner: Callable[[], ScriptedPlanner] | None,
    whole: Run,
    entries: list[Mapping[str, Any]],
    before: list[str],
    answer: str,
    has_effects: Callable[[str], bool],
    record: dict[str, str] | None,
) -> None:
    place = f"after entry {len(entries)}, {entries[-1]['type']} {entries[-1].get('step', '')}"
    store = await store_with(whole.name, entries)
    world = World()
    kernel = kernel_of(world, store, None if record is None else MemoryDurableRunner(record={whole.name: dict(record)}))
    asked: list[str] = []
    planners = [planner() if planner is not None else None]
    run = await kernel.resume(whole.name, planner=planners[-1])
    while isinstance(run.outcome, Paused):
        assert run.outcome.uncertain
        step = run.outcome.step
        assert step is not None
        assert has_effects(step), f"{step} may simply run again"
        assert step not in asked, f"it asks for {step} again"
        assert step not in (record or ()), f"{place}: it asks for {step}, which is on record"
        asked.append(step)
        results = {record.step.id: record.result for record in whole.steps}
        planners.append(planner() if planner is not None else None)
        run = await kernel.resume(
            whole.name,
            planner=planners[-1],
            retry=[step] if answer == "retry" else [],
            results={step: results[step]} if answer == "result" else None,
        )
    assert run.outcome == whole.outcome, place
    finished = {entry["step"] for entry in entries if entry["type"] == "step-finished"}
    assert not finished & set(world.called), f"{place}: what finished ran again"
    both = before + world.called
    twice = {step for step in both if has_effects(step) and both.count(step) > 1}
    assert twice <= (set(asked) if answer == "retry" else set()), f"{place}: {twice} happened twice unasked"
    assert {record.step.id for record in run.steps} == {record.step.id for record in whole.steps}
    assert run.plan.steps == run.plan.steps
    assert RunState.of(await store.read(whole.name)).state == "done"
    with pytest.raises(RunError, match="has its answer"):
        await kernel.resume(whole.name)
    assert len(asyncio.all_tasks()) == 1
    if record is None:
        return
    assert not set(record) & set(world.called), f"{place}: what was recorded ran again"
    begun = {entry["step"] for entry in entries if entry["type"] == "step-started"}
    taken = {entry["step"] for entry in await store.read(whole.name) if entry.get("recorded")}
    assert taken == (begun - finished) & set(record), place


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_a_plan_that_dies_after_any_entry_ends_as_if_it_had_not(seed: int) -> None:
    asyncio.run(crash_everywhere(some_plan(seed), None))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_a_recorded_plan_that_dies_after_any_entry_does_nothing_again(seed: int) -> None:
    asyncio.run(crash_everywhere(some_plan(seed), None, durable=True))


@pytest.mark.parametrize("durable", [False, True])
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_a_run_that_dies_after_any_entry_ends_as_if_it_had_not(seed: int, durable: bool) -> None:
    plan = some_plan(seed)
    moves = tuple(Plan("move", (step,)) for step in plan.steps)
    refused = Plan("wrong", (Step("x", "W-nothing"),))

    def planner() -> ScriptedPlanner:
        return ScriptedPlanner(*moves[:1], refused, *moves[1:], lambda task: Answer(str(len(task.steps))))

    asyncio.run(crash_everywhere(plan, planner, durable=durable))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 40))
def test_a_run_cancelled_at_any_moment_leaves_nothing_and_can_be_resumed(seed: int, moments: int) -> None:
    plan = some_plan(seed)
    has_effects = effects(plan)

    async def run() -> None:
        store = MemoryRunStore()
        world = World()
        kernel = kernel_of(world, store)
        running = asyncio.create_task(kernel.run_plan(plan))
        for _ in range(moments):
            await asyncio.sleep(0)
        running.cancel()
        try:
            await running
            return
        except asyncio.CancelledError:
            pass
        assert len(asyncio.all_tasks()) == 1, "a task was left behind"
        runs = [run for run in await store.runs() if await store.read(run)]
        if not runs:
            return
        (name,) = runs
        assert store.holder(name) is None, "the lease was not given back"
        state = RunState.of(await store.read(name)).state
        assert state in ("interrupted", "done")
        if state == "done":
            return  # It was cancelled when it had its answer, before anybody was given it.
        ended = await kernel.resume(name)
        while isinstance(ended.outcome, Paused):
            step = ended.outcome.step
            assert step is not None
            assert has_effects(step)
            ended = await kernel.resume(name, retry=[step])
        expected = await kernel_of(World(), None).run_plan(plan)
        assert ended.outcome == expected.outcome

    asyncio.run(run())


class Unsteady(MemoryRunStore):
    """Fails by chance: before it did what it was asked for, or after."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance
        self.share = 0.08

    def fail(self) -> None:
        if self.chance.random() < self.share:
            raise StoreError("by chance")

    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        self.fail()
        return await super().acquire(run, owner=owner, seconds=seconds)

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        self.fail()
        await super().append(lease, entries)
        self.fail()

    async def release(self, lease: Lease) -> None:
        self.fail()
        await super().release(lease)

    async def read(self, run: str) -> list[Mapping[str, Any]]:
        self.fail()
        return await super().read(run)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_whatever_stores_and_cancellations_do_it_ends_and_nothing_happens_twice_unasked(seed: int) -> None:
    asyncio.run(go_on_until_it_ends(seed))


async def go_on_until_it_ends(seed: int) -> None:
    chance, plan = random.Random(seed), some_plan(seed)
    has_effects = effects(plan)
    expected = (await kernel_of(World(), None).run_plan(plan)).outcome
    store = Unsteady(chance)
    world = World(store)
    kernel = kernel_of(world, store)
    asked: list[str] = []
    retry: list[str] = []
    while True:
        begun = [run for run, entries in store._entries.items() if entries]
        working = asyncio.ensure_future(kernel.resume(begun[0], retry=retry) if begun else kernel.run_plan(plan))
        if chance.random() < 0.3:
            for _ in range(chance.randrange(60)):
                await asyncio.sleep(0)
            working.cancel()
        retry = []
        try:
            outcome = (await working).outcome
        except (StoreError, asyncio.CancelledError):
            pass
        else:
            if isinstance(outcome, Paused):
                assert outcome.uncertain
                retry = [str(outcome.step)]
                asked += retry
        assert len(asyncio.all_tasks()) == 1, "a task was left behind"
        store._leases.clear()  # The process is gone.
        store.share *= 0.98
        written = next((entries for entries in store._entries.values() if entries), None)
        assert written or not world.calls, "something happened before the run was written"
        state = RunState.of(map(json.loads, written)) if written else None
        if state is not None and state.state == "done":
            break
    assert state.outcome == expected
    for step in {step for step in world.called if has_effects(step)}:
        assert world.called.count(step) <= 1 + asked.count(step), f"{step} happened twice unasked"


SEND = Step("send", "W-send", {"texts": Value(["a"])})
JOIN = Step("join", "W-join", {"texts": ListOf((From("send", ("sent",)),))})
PLAN = Plan("Send it", (SEND, JOIN), From("join"))


@pytest.fixture
def store() -> MemoryRunStore:
    return MemoryRunStore()


@pytest.fixture
def world(store: MemoryRunStore) -> World:
    return World(store)


@pytest.fixture
def kernel(world: World, store: MemoryRunStore) -> Kernel:
    return kernel_of(world, store)


async def interrupted(kernel: Kernel, plan: Plan = PLAN, *, keep: int = 3) -> str:
    """Run a plan, and cut its journal after so many entries."""
    run = await kernel.run_plan(plan)
    assert kernel.run_store is not None
    entries = await kernel.run_store.read(run.name)
    kernel.run_store = await store_with(run.name, entries[:keep])
    return run.name


async def test_an_interrupted_step_with_effects_waits_for_a_person(kernel: Kernel, world: World) -> None:
    run = await interrupted(kernel)
    world.calls.clear()
    events: list[RunEvent] = []
    held = await kernel.resume(run, emit=events.append)
    assert isinstance(held.outcome, Paused)
    assert (held.outcome.step, held.outcome.uncertain) == ("send", True)
    assert "W-send, which has effects" in held.outcome.reason
    assert world.calls == []
    assert [event.step for event in events if isinstance(event, Event.StepPaused) and event.uncertain] == [SEND]
    assert events[0] == Event.RunStarted(run, "Send it", "plan", 0)
    assert kernel.run_store is not None
    assert RunState.of(await kernel.run_store.read(run)).state == "uncertain"


async def test_a_result_given_by_a_person_is_checked_and_journalled(kernel: Kernel, world: World) -> None:
    run = await interrupted(kernel)
    world.calls.clear()
    with pytest.raises(RunError, match=r"does not fit W-send.*expected"):
        await kernel.resume(run, results={"send": "yes"})
    done = await kernel.resume(run, results={"send": {"sent": "by hand"}})
    assert done.outcome == Answer("by hand", value="by hand")
    assert world.called == ["join"]
    assert kernel.run_store is not None
    entries = await kernel.run_store.read(run)
    assert [entry["step"] for entry in entries if entry.get("given")] == ["send"]


async def test_who_asks_for_it_has_an_uncertain_step_run_again(kernel: Kernel, world: World) -> None:
    run = await interrupted(kernel)
    done = await kernel.resume(run, retry=["send"])
    assert done.outcome == Answer("a", value="a")
    assert world.called == ["send", "join", "send", "join"]


@pytest.mark.parametrize(
    ("retry", "results", "message"),
    [
        (["sned"], {}, "no step 'sned'. It has"),
        ([], {"other": 1}, "no step 'other'"),
        (["send"], {"send": {}}, "not both"),
    ],
)
async def test_what_is_asked_of_a_step_that_is_not_there_is_refused(
    kernel: Kernel, retry: list[str], results: dict[str, Any], message: str
) -> None:
    run = await interrupted(kernel)
    with pytest.raises(RunError, match=message):
        await kernel.resume(run, retry=retry, results=results)
    with pytest.raises(TypeError, match="several steps"):
        await kernel.resume(run, retry="send")


async def test_a_step_that_finished_is_never_run_again(kernel: Kernel) -> None:
    run = await interrupted(kernel, keep=4)
    for asked in ({"retry": ["send"]}, {"results": {"send": {"sent": "x"}}}):
        with pytest.raises(RunError, match="never run again"):
            await kernel.resume(run, **asked)


async def test_a_run_that_is_not_there_is_answered_with_the_nearest(kernel: Kernel) -> None:
    run = (await kernel.run_plan(PLAN)).name
    with pytest.raises(RunNotFound, match=run):
        await kernel.resume(f"{run}x")
    with pytest.raises(RunError, match="no journal"):
        await Kernel().resume(run)


async def test_a_run_that_stopped_before_its_plan_was_written_says_so(kernel: Kernel) -> None:
    run = await interrupted(kernel, keep=1)
    with pytest.raises(RunError, match="run the plan again"):
        await kernel.resume(run)


async def test_a_run_that_another_process_has_is_left_to_it(kernel: Kernel) -> None:
    run = await interrupted(kernel)
    assert kernel.run_store is not None
    await kernel.run_store.acquire(run, owner="another", seconds=60)
    with pytest.raises(StoreBusy, match="another"):
        await kernel.resume(run)


async def test_a_failed_step_stays_failed_until_it_is_to_be_run_again(kernel: Kernel, world: World) -> None:
    world.fail.add("join")
    with pytest.raises(StepFailed, match="join"):
        await kernel.run_plan(PLAN)
    assert kernel.run_store is not None
    (run,) = await kernel.run_store.runs()
    state = RunState.of(await kernel.run_store.read(run))
    assert (state.state, state.reason) == ("failed", "Step join failed: down")
    world.fail.clear()
    with pytest.raises(StepFailed, match="Step join failed: down"):
        await kernel.resume(run)
    assert world.called == ["send", "join"]
    done = await kernel.resume(run, retry=["join"])
    assert done.outcome == Answer("a", value="a")
    assert world.called == ["send", "join", "join"]
    assert [step.id for step in done.plan.steps] == ["send", "join"]


async def test_a_failure_inside_of_a_nested_plan_can_be_run_again(kernel: Kernel, world: World) -> None:
    nested = Plan("g", (Step("n", Plan("i", (SEND, JOIN), From("join"))),), From("n"))
    world.fail.add("n/join")
    with pytest.raises(StepFailed, match="n/join"):
        await kernel.run_plan(nested)
    world.fail.clear()
    assert kernel.run_store is not None
    (run,) = await kernel.run_store.runs()
    done = await kernel.resume(run, retry=["n/join"])
    assert done.outcome == Answer("a", value="a")
    assert world.called == ["n/send", "n/join", "n/join"]


@on_virtual_time
async def test_a_step_with_effects_inside_of_one_that_was_cut_off_is_not_forgotten(store: MemoryRunStore) -> None:
    """The time-out of the step around it ended it; who has that step run again is asked first."""
    calls: list[str] = []

    @function(effects=True)
    async def pay() -> str:
        calls.append("pay")
        await asyncio.sleep(0 if len(calls) > 1 else 3600)
        return "paid"

    kernel = Kernel(run_store=store)
    kernel.add_function(pay)
    plan = Plan("Pay", (Step("n", Plan("i", (Step("p", "pay"),), From("p")), seconds=0.05),), From("n"))
    with pytest.raises(StepFailed, match=r"did not end within its 0\.05 seconds"):
        await kernel.run_plan(plan)
    (run,) = await store.runs()
    held = await kernel.resume(run, retry=["n"])
    assert isinstance(held.outcome, Paused)
    assert (held.outcome.step, held.outcome.uncertain, calls) == ("n/p", True, ["pay"])
    done = await kernel.resume(run, retry=["n/p"])
    assert done.outcome == Answer("paid", value="paid")


async def test_what_was_held_is_asked_again(kernel: Kernel, world: World) -> None:
    answers: list[RequireApproval | None] = [RequireApproval("Look first."), None]
    asked: list[str] = []

    async def guard_plan(context: PlanReview, proceed: Callable[[], Awaitable[Any]]) -> Any:
        asked.append("plan")
        return answers.pop(0) or await proceed()

    async def guard_step(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        asked.append(context.step.id)
        return RequireApproval("Really?") if context.step.id == "send" and asked.count("send") == 1 else await proceed()

    kernel.middleware.plan.append(guard_plan)
    kernel.middleware.step.append(guard_step)
    held = await kernel.run_plan(PLAN)
    assert held.outcome == Paused("Look first.")
    held = await kernel.resume(held.name)
    assert held.outcome == Paused("Really?", "send")
    done = await kernel.resume(held.name)
    assert done.outcome == Answer("a", value="a")
    assert asked == ["plan", "plan", "send", "send", "join"], "a plan that was let through is not asked for again"
    assert world.called == ["send", "join"]


async def test_resume_goes_on_with_the_planner_of_the_journal(kernel: Kernel) -> None:
    class Down:
        name = "scripted"

        async def propose(self, task: Task, *, emit: Any) -> Plan:
            if task.steps:
                raise ServiceUnavailable("no model today")
            return Plan("g", (SEND,), notes={"script": 1})

    with pytest.raises(ServiceUnavailable):
        await kernel.run_goal("Send", planner=Down(), input={"to": "Ada"})
    seen: list[Task] = []

    def answer(task: Task) -> Answer:
        seen.append(task)
        return Answer("sent")

    kernel.services = FixedServices({Planner: ScriptedPlanner(Answer("never"), answer)})
    assert kernel.run_store is not None
    (run,) = await kernel.run_store.runs()
    done = await kernel.resume(run)
    assert (done.outcome, done.planner, done.input) == (Answer("sent"), "scripted", {"to": "Ada"})
    assert [record.step.id for record in seen[0].steps] == ["send"]
    assert seen[0].budget.proposals == Budget().proposals - 1, "proposals count over the whole run"
    assert seen[0].input == {"to": "Ada"}


async def test_the_budget_that_was_asked_for_holds_after_resuming_unless_another_is_given(kernel: Kernel) -> None:
    planner = ScriptedPlanner(Plan("g", (SEND,)), Answer("end"))
    with pytest.raises(LimitExceeded):
        await kernel.run_goal("Send", planner=planner, budget=Budget(proposals=1))
    assert kernel.run_store is not None
    (run,) = await kernel.run_store.runs()
    with pytest.raises(LimitExceeded, match="1 proposals"):
        await kernel.resume(run, planner=planner)
    done = await kernel.resume(run, planner=planner, budget=Budget(proposals=2))
    assert done.outcome == Answer("end")


async def test_an_infeasible_run_is_over(kernel: Kernel) -> None:
    run = await kernel.run_goal("Fly", planner=ScriptedPlanner(Infeasible("No wings.")))
    with pytest.raises(RunError, match="infeasible"):
        await kernel.resume(run.name)


async def test_a_plan_whose_functions_changed_is_not_run_on(kernel: Kernel) -> None:
    run = await interrupted(kernel, keep=4)

    class Changed:
        @function(effects=True)
        async def send(self, texts: list[str]) -> dict[str, str]:
            return {}

        @function
        async def join(self, text: str) -> str:
            return text

    other = Kernel(run_store=kernel.run_store)
    other.add_plugin(Changed(), "W")
    with pytest.raises(PlanStale, match=r"W-join: the parameter 'text' is new"):
        await other.resume(run)
    assert other.run_store is not None
    assert (await other.run_store.read(run))[-1]["type"] == "step-finished", "something happened"


async def test_a_change_that_leaves_the_rest_of_the_plan_valid_is_harmless(kernel: Kernel) -> None:
    run = await interrupted(kernel, keep=4)

    class Changed:
        @function
        async def join(self, texts: list[str], between: str = "+") -> str:
            """Join texts otherwise; sending is gone, but was done."""
            return between.join(texts)

    other = Kernel(run_store=kernel.run_store)
    other.add_plugin(Changed(), "W")
    outcome = (await other.resume(run)).outcome
    assert isinstance(outcome, Answer)
    assert outcome.value == "a"
    assert [warning for warning in outcome.warnings if "W-join: the parameter 'between' is new" in warning]


async def test_a_function_that_has_effects_now_is_not_run_unasked(kernel: Kernel) -> None:
    run = await interrupted(kernel, keep=5)

    class Changed:
        @function(effects=True)
        async def join(self, texts: list[str]) -> str:
            return ""

    other = Kernel(run_store=kernel.run_store)
    other.add_plugin(Changed(), "W")
    with pytest.raises(PlanStale, match="has effects now"):
        await other.resume(run)


async def test_functions_are_told_which_step_they_are_called_for(store: MemoryRunStore) -> None:
    seen: list[Any] = []

    @function(blocking=True)
    def look() -> None:
        seen.append(current_step())

    kernel = Kernel(run_store=store)
    kernel.add_function(look)
    plan = Plan("g", (Step("a", "look"), Step("n", Plan("i", (Step("b", "look"),)))))
    run = await kernel.run_plan(plan)
    assert sorted(step.key for step in seen) == [f"{run.name}/a", f"{run.name}/n/b"]
    await kernel.invoke("look")
    assert seen[-1] is None


async def test_events_of_a_resumed_run_are_those_of_what_is_left(kernel: Kernel) -> None:
    run = await interrupted(kernel, keep=4)
    events: list[RunEvent] = []
    await kernel.resume(run, emit=events.append)
    assert [event.step.id for event in events if isinstance(event, Event.StepStarted)] == ["join"]
    assert events[0] == Event.RunStarted(run, "Send it", "plan", 1)


@on_virtual_time
async def test_the_conversation_before_the_goal_is_there_again_when_a_run_is_resumed() -> None:
    store = MemoryRunStore()
    seen: list[Any] = []

    def plan(task: Task) -> Answer:
        seen.append(task.context)
        if len(seen) == 1:
            raise ServiceUnavailable("down")
        return Answer("Yes.")

    kernel = Kernel(run_store=store)
    planner = ScriptedPlanner(plan, plan)
    with pytest.raises(ServiceUnavailable):
        context = {"messages": [Message.of("user", "Oslo?")], "user": object()}
        await kernel.run_goal("And Rome?", planner=planner, context=context, run="r")
    await kernel.resume("r", planner=planner)
    said = {"messages": [{"role": "user", "text": "Oslo?"}]}
    assert seen[0].items() > said.items()
    assert seen[1] == said
