"""What goes wrong around a run: stores, listeners, filters and functions that do what they should not."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from tests.support.virtual_time import on_virtual_time

from portico._functions.functions import function
from portico._functions.middleware import RequireApproval, StepRun
from portico._kernel import Kernel
from portico._plans.plan import From, ListOf, Plan, PlanTemplate, Step, Value
from portico._plans.task import Answer, Budget, Emit, Event, RunEvent, Task
from portico._ports.run_store import Lease
from portico._runs import writing
from portico._runs.journal import RunState
from portico._runs.outcome import Paused
from portico.errors import LimitExceeded, PlanInvalid, PorticoError, RunError, StepFailed, StoreBusy, StoreError
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore


class World:
    """Counts what is done in it."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.read_: list[str] = []

    @function
    async def read(self, text: str = "") -> str:
        """Read something, as often as one likes."""
        self.read_.append(text)
        await asyncio.sleep(0)
        return f"read {text}"

    @function(effects=True)
    async def send(self, text: str = "") -> str:
        """Send something, once."""
        self.sent.append(text)
        await asyncio.sleep(0)
        return f"sent {text}"

    @function
    async def members(self, values: list[str]) -> list[str]:
        """Give a list back."""
        return values

    @function
    async def cancelled(self) -> str:
        """Wait for something that somebody else cancelled."""
        other = asyncio.get_running_loop().create_future()
        other.cancel()
        return str(await other)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def kernel(world: World) -> Kernel:
    return kernel_of(world, MemoryRunStore())


def kernel_of(world: World, store: MemoryRunStore | None) -> Kernel:
    kernel = Kernel(run_store=store)
    kernel.add_plugin(world, "W")
    return kernel


def step(name: str, what: str = "read", *after: str) -> Step:
    return Step(name, f"W-{what}", {"text": Value(name)}, after)


async def state_of(kernel: Kernel) -> RunState:
    assert kernel.run_store is not None
    (run,) = await kernel.run_store.runs()
    return RunState.of(await kernel.run_store.read(run))


class Failing(MemoryRunStore):
    """Fails at one of its calls, counted over all of them, and works again afterwards."""

    def __init__(self, at: int = 10**9) -> None:
        super().__init__()
        self.at = at
        self.calls = 0
        self.failed = ""

    def happens(self, name: str) -> None:
        self.calls += 1
        if self.calls == self.at:
            self.failed = name
            raise StoreError("The disk is full.")

    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        self.happens("acquire")
        return await super().acquire(run, owner=owner, seconds=seconds)

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        self.happens("append")
        await super().append(lease, entries)

    async def release(self, lease: Lease) -> None:
        self.happens("release")
        await super().release(lease)

    async def read(self, run: str) -> list[Mapping[str, Any]]:
        self.happens("read")
        return await super().read(run)


PLAN = Plan("g", (step("a"), step("b", "send", "a"), step("c", "send", "b")), From("c"))


@pytest.mark.parametrize("planned", [True, False])
async def test_a_store_that_fails_at_any_call_ends_the_run_or_not_but_nothing_is_sent_twice(planned: bool) -> None:
    """What it raises comes out as it is; a release that fails takes no answer away."""
    failed: list[str] = []
    for at in range(1, 100):
        store, world = Failing(at), World()
        kernel = kernel_of(world, store)
        try:
            if planned:
                run = await kernel.run_goal("g", planner=ScriptedPlanner(PLAN))
            else:
                run = await kernel.run_plan(PLAN)
        except StoreError as error:
            assert "disk is full" in str(error)
            await resume_to_the_end(kernel, world, planned)
        else:
            assert run.outcome == Answer("sent c", value="sent c")
        assert len(asyncio.all_tasks()) == 1, "a task was left behind"
        assert sorted(set(world.sent)) == sorted(world.sent), f"sent twice: {world.sent}"
        failed.append(store.failed)
        if not store.failed:
            break
    assert {"acquire", "append", "release", ""} <= set(failed)


async def resume_to_the_end(kernel: Kernel, world: World, planned: bool) -> None:
    store = kernel.run_store
    assert isinstance(store, Failing)
    runs = await store.runs()
    entries = await store.read(runs[0]) if runs else []
    if not entries:
        return
    for lease in list(store._leases.values()):
        await store.release(lease[0])
    planner = ScriptedPlanner(PLAN) if planned and RunState.of(entries).plan is None else None
    given: dict[str, Any] = {}
    while True:
        run = await kernel.resume(runs[0], planner=planner or (ScriptedPlanner() if planned else None), **given)
        if not isinstance(run.outcome, Paused):
            assert run.outcome == Answer("sent c", value="sent c")
            return
        assert run.outcome.uncertain
        stuck = str(run.outcome.step)
        given = {"results": {stuck: f"sent {stuck}"}} if stuck in world.sent else {"retry": [stuck]}


@pytest.mark.parametrize("journalled", [True, False])
async def test_a_listener_that_raises_at_any_event_is_an_ordinary_error(world: World, journalled: bool) -> None:
    for at in range(1, 100):
        kernel = kernel_of(world, MemoryRunStore() if journalled else None)
        heard: list[RunEvent] = []

        def listen(event: RunEvent, heard: list[RunEvent] = heard, at: int = at) -> None:
            heard.append(event)
            if len(heard) == at:
                raise KeyError("listener")

        try:
            await kernel.run_goal("g", planner=ScriptedPlanner(PLAN), emit=listen)
        except KeyError as error:
            assert error.args == ("listener",)
        else:
            assert len(heard) < at
            break
        assert len(asyncio.all_tasks()) == 1
    assert len(heard) > 5


async def test_a_listener_that_raises_when_a_run_is_gone_on_with_is_an_ordinary_error(
    kernel: Kernel, world: World
) -> None:
    async def hold(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        return RequireApproval("wait")

    def listen(event: RunEvent) -> None:
        if isinstance(event, Event.RunStarted) and event.resumed is not None:
            raise KeyError("listener")

    kernel.middleware.step.append(hold)
    held = await kernel.run_plan(PLAN)
    kernel.middleware.step.clear()
    with pytest.raises(KeyError, match="listener"):
        await kernel.resume(held.name, emit=listen)
    assert (await kernel.resume(held.name)).outcome == Answer("sent c", value="sent c")


async def test_the_first_event_is_told_with_and_without_a_journal(world: World) -> None:
    for store in (MemoryRunStore(), None):
        events: list[RunEvent] = []
        await kernel_of(world, store).run_plan(PLAN, emit=events.append)
        assert isinstance(events[0], Event.RunStarted)


@pytest.mark.parametrize("beside", [(), (step("b"), step("c"))], ids=["alone", "side by side"])
@pytest.mark.parametrize("result", [From("x"), None])
async def test_a_function_that_is_cancelled_from_within_is_a_failed_step(
    kernel: Kernel, beside: tuple[Step, ...], result: Any
) -> None:
    """Nobody stopped the run: its step failed, and must not vanish."""
    plan = Plan("g", (Step("x", "W-cancelled"), *beside, step("y", "read", "x")), result)
    with pytest.raises(StepFailed, match=r"Step x failed.*cancelled"):
        await kernel.run_plan(plan)
    state = await state_of(kernel)
    assert state.state == "failed"
    assert {record.step.id for record in state.records} == {"x", *(each.id for each in beside)}


async def test_a_filter_that_changes_arguments_inside_changes_them_for_its_step_only(kernel: Kernel) -> None:
    async def add(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        if context.step.id == "b":
            context.arguments["values"].append("more")
        return await proceed()

    kernel.middleware.step.append(add)
    first = Step("a", "W-members", {"values": Value(["one"])})
    others = tuple(Step(name, "W-members", {"values": From("a")}, after) for name, after in (("b", ()), ("c", ("b",))))
    run = await kernel.run_plan(Plan("g", (first, *others), ListOf((From("a"), From("b"), From("c")))))
    assert run.outcome.value == [["one"], ["one", "more"], ["one"]]  # type: ignore[union-attr]


NESTED = Plan("n", (step("i", "send"),), From("i"))


@pytest.mark.parametrize(
    "twice",
    [
        Step("s", "W-send", {"text": Value("s")}),
        Step("s", NESTED),
        Step("s", PlanTemplate("{{W.send text='s'}}", "semantic-kernel")),
    ],
    ids=["function", "nested plan", "template"],
)
@pytest.mark.parametrize("at_once", [True, False])
async def test_a_filter_that_proceeds_twice_does_not_send_twice(
    kernel: Kernel, world: World, twice: Step, at_once: bool
) -> None:
    async def again(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        if context.step.id != "s":
            return await proceed()
        if at_once:
            both = await asyncio.gather(proceed(), proceed(), return_exceptions=True)
            raise next(each for each in both if isinstance(each, Exception))
        await proceed()
        return await proceed()

    kernel.middleware.step.append(again)
    with pytest.raises(StepFailed, match="proceed"):
        await kernel.run_plan(Plan("g", (twice,), From("s")))
    assert len(world.sent) == 1
    await state_of(kernel)
    assert len(asyncio.all_tasks()) == 1


async def test_a_filter_may_proceed_twice_where_nothing_happens_by_it(kernel: Kernel, world: World) -> None:
    async def again(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        await proceed()
        context.arguments["text"] = "again"
        return await proceed()

    kernel.middleware.step.append(again)
    run = await kernel.run_plan(Plan("g", (step("a"),), From("a")))
    assert run.outcome == Answer("read again", value="read again")
    assert [record.result for record in (await state_of(kernel)).records] == ["read again"]


async def test_a_refused_plan_that_json_cannot_hold_is_mended_all_the_same(kernel: Kernel) -> None:
    wrong = Plan("g", (Step("a", "W-read", {"text": Value(math.nan)}),), From("a"))
    planner = ScriptedPlanner(wrong, Plan("g", (step("a"),), From("a")))
    assert (await kernel.run_goal("g", planner=planner)).outcome == Answer("read a", value="read a")
    assert (await state_of(kernel)).state == "done"


@pytest.mark.parametrize("wrong", [math.nan, {"a": {1, 2}}, object()])
async def test_an_input_that_is_not_json_is_refused_before_anything_is_written(kernel: Kernel, wrong: Any) -> None:
    with pytest.raises(ValueError, match="the input"):
        await kernel.run_plan(Plan("g", (step("a"),), From("a")), input=wrong)
    with pytest.raises(ValueError, match="the input"):
        await kernel.run_goal("g", planner=ScriptedPlanner(Answer("a")), input=wrong)
    assert kernel.run_store is not None
    assert await kernel.run_store.runs() == []


@pytest.mark.parametrize(
    "wrong", [Budget(seconds=math.nan), Budget(seconds=math.inf), Budget(step_seconds=math.inf), Budget(seconds=-1)]
)
async def test_a_budget_of_time_that_is_none_is_refused(kernel: Kernel, wrong: Budget) -> None:
    with pytest.raises(ValueError, match="None"):
        await kernel.run_plan(Plan("g", (step("a"),), From("a")), budget=wrong)


async def test_an_answer_that_is_not_json_is_the_planners_mistake_and_said_so(kernel: Kernel) -> None:
    with pytest.raises(TypeError, match="'scripted': its answer"):
        await kernel.run_goal("g", planner=ScriptedPlanner(Answer("a", value=math.nan)))
    assert (await state_of(kernel)).state == "failed"


async def test_another_planner_is_not_given_the_notes_of_the_first(kernel: Kernel) -> None:
    first = ScriptedPlanner(Plan("g", (step("a"),), notes={"mine": 1}))
    first.name = "first"
    with pytest.raises(LimitExceeded):
        await kernel.run_goal("g", planner=first, budget=Budget(proposals=1))
    (run,) = await kernel.run_store.runs()  # type: ignore[union-attr]
    second = ScriptedPlanner(Answer("a"))
    second.name = "second"
    await kernel.resume(run, planner=second, budget=Budget())
    assert second.tasks[0].notes is None
    assert [record.step.id for record in second.tasks[0].steps] == ["a"]


async def test_a_lease_that_ran_out_while_the_computer_slept_is_renewed(world: World) -> None:
    """The clock of the store jumps, that of the event loop need not."""
    now = [0.0]
    kernel = kernel_of(world, MemoryRunStore(clock=lambda: now[0]))

    async def sleep(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        now[0] += 10 * writing.LEASE_SECONDS
        return await proceed()

    kernel.middleware.step.append(sleep)
    assert (await kernel.run_plan(PLAN)).outcome == Answer("sent c", value="sent c")
    assert (await state_of(kernel)).state == "done"


@on_virtual_time
async def test_who_is_cancelled_while_taking_the_run_gives_it_back(world: World) -> None:
    class Slow(MemoryRunStore):
        async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
            lease = await super().acquire(run, owner=owner, seconds=seconds)
            await asyncio.sleep(0.01)
            return lease

    store = Slow()
    running = asyncio.ensure_future(kernel_of(world, store).run_plan(PLAN))
    await asyncio.sleep(0.005)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(asyncio.all_tasks()) == 1
    assert [await store.held(run) for run in await store.runs()] == [False]
    assert world.read_ == []


@on_virtual_time
async def test_a_lost_lease_leaves_no_cancellation_behind(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that takes no notice of being stopped ends; the task goes on as one that nobody cancelled."""
    monkeypatch.setattr(writing, "LEASE_SECONDS", 0.03)
    store = MemoryRunStore()
    kernel = kernel_of(world, store)

    @function
    async def stubborn() -> str:
        """Take the run away, and wait."""
        (run,) = await store.runs()
        store._newest[run] += 1
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "still here"
        return "undisturbed"

    kernel.add_function(stubborn)
    with pytest.raises(StoreBusy):
        await kernel.run_plan(Plan("g", (Step("s", "stubborn"),), From("s")))
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_run_whose_entries_became_fewer_is_not_gone_on_with(kernel: Kernel) -> None:
    class Forgetful(MemoryRunStore):
        reads = 0

        async def read(self, run: str) -> list[Mapping[str, Any]]:
            self.reads += 1
            return (await super().read(run))[: 4 if self.reads > 1 else None]

    store = kernel.run_store = Forgetful()

    async def hold(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        return RequireApproval("wait") if context.step.id == "c" else await proceed()

    kernel.middleware.step.append(hold)
    held = await kernel.run_plan(PLAN)
    with pytest.raises(StoreError, match="entries"):
        await kernel.resume(held.name)
    assert not await store.held(held.name)


async def test_a_run_that_cannot_be_gone_on_with_stays_what_it_was(kernel: Kernel, world: World) -> None:
    async def hold(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        return RequireApproval("wait") if context.step.id == "b" else await proceed()

    kernel.middleware.step.append(hold)
    held = await kernel.run_plan(PLAN)
    other = Kernel(run_store=kernel.run_store)
    with pytest.raises(PorticoError, match="W-send"):
        await other.resume(held.name)
    assert (await state_of(kernel)).state == "held"
    with pytest.raises(RunError):
        await kernel.resume(held.name, results={"a": "x"})
    assert (await state_of(kernel)).state == "held"


@pytest.mark.parametrize("id", ["a/b", "", "input", "/"])
async def test_no_plan_has_a_step_that_could_be_taken_for_one_inside_of_another(kernel: Kernel, id: str) -> None:
    with pytest.raises(PlanInvalid):
        await kernel.run_plan(Plan("g", (Step(id, "W-read", {"text": Value("a")}),)))


async def test_steps_that_a_template_calls_never_exceed_the_budget(kernel: Kernel, world: World) -> None:
    """Neither do those of the plan that come after."""
    calls = "".join(f"{{{{W.read text='{number}'}}}}" for number in range(3))
    plan = Plan(
        "g", (Step("t", PlanTemplate(calls, "semantic-kernel")), step("a", "read", "t"), step("b", "read", "a"))
    )
    with pytest.raises(LimitExceeded, match="5 steps"):
        await kernel.run_plan(plan, budget=Budget(steps=5))
    assert len(world.read_) <= 5
    run = await kernel.run_plan(plan, budget=Budget(steps=6))
    assert len(run.steps) == 6


@on_virtual_time
async def test_a_step_whose_time_is_over_says_what_is_not_known(kernel: Kernel, world: World) -> None:
    @function(effects=True)
    async def slow() -> None:
        """Do something for long."""
        await asyncio.sleep(30)

    kernel.add_function(slow)
    for work in ("slow", Plan("n", (Step("i", "slow"),))):
        with pytest.raises(StepFailed, match="may have happened"):
            await kernel.run_plan(Plan("g", (Step("s", work, seconds=0.01),)))


async def test_results_of_many_megabytes_are_kept_and_read(kernel: Kernel) -> None:
    @function
    async def much() -> list[str]:
        """Give much."""
        return ["x" * 1000] * 4000

    kernel.add_function(much)
    run = await kernel.run_plan(Plan("g", (Step("m", "much"),), From("m")))
    assert (await state_of(kernel)).results["m"] == ["x" * 1000] * 4000
    assert isinstance(run.outcome, Answer)


async def test_a_thousand_steps_are_journalled_and_gone_on_with(world: World) -> None:
    store = MemoryRunStore()
    kernel = kernel_of(world, store)
    steps = tuple(step(f"s{n}", "read", *([f"s{n - 100}"] if n >= 100 else [])) for n in range(1000))
    plan = Plan("g", steps, From("s999"))
    whole = await kernel.run_plan(plan, budget=Budget(steps=1000))
    entries = await store.read(whole.name)
    assert len(entries) == 2 + 2 * 1000 + 1
    store._entries[whole.name] = store._entries[whole.name][:1000]
    done = len(RunState.of(await store.read(whole.name)).records)
    world.read_.clear()
    again = await kernel.resume(whole.name)
    assert again.outcome == whole.outcome
    assert len(world.read_) == 1000 - done


async def test_a_call_of_a_template_that_fails_does_not_stop_those_beside_it(kernel: Kernel, world: World) -> None:
    """One with effects would have happened, or not: nobody would know."""
    begun = asyncio.Event()

    @function
    async def fail() -> str:
        """Fail while another one is at work."""
        await begun.wait()
        raise ValueError("no")

    @function(effects=True)
    async def slow() -> str:
        """Do something for a while."""
        begun.set()
        for _ in range(20):
            await asyncio.sleep(0)
        world.sent.append("slow")
        return "done"

    kernel.add_function(fail)
    kernel.add_function(slow)
    step = Step("t", PlanTemplate("{{fail}} {{slow}}", "semantic-kernel"))
    with pytest.raises(StepFailed, match=r"Step t failed.*no"):
        await kernel.run_plan(Plan("g", (step,)))
    state = await state_of(kernel)
    assert world.sent == ["slow"]
    assert state.results == {"t/2": "done"}
    assert state.started == {}


async def test_what_a_planner_warns_of_comes_with_the_answer_also_when_a_plan_gives_it(world: World) -> None:
    class Warning:
        name = "warning"

        async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer:
            emit(Event.Warned("Mind the step."))
            return Plan("g", (step("a"),)) if not task.steps else last

    last = Plan("g", (step("b"),), From("b"))
    store = MemoryRunStore()
    whole = await kernel_of(world, store).run_goal("g", planner=Warning())
    assert whole.outcome == Answer("read b", value="read b", warnings=("Mind the step.",))
    entries = list(store._entries[whole.name])
    for count in range(1, len(entries)):
        store._entries[whole.name] = entries[:count]
        assert (await kernel_of(world, store).resume(whole.name, planner=Warning())).outcome == whole.outcome


async def test_a_store_that_fails_at_any_call_while_a_run_is_gone_on_with_loses_nothing() -> None:
    async def hold(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        return RequireApproval("wait") if context.step.id == "b" else await proceed()

    failed: list[str] = []
    for at in range(1, 100):
        store, world = Failing(), World()
        kernel = kernel_of(world, store)
        kernel.middleware.step.append(hold)
        held = await kernel.run_plan(PLAN)
        kernel.middleware.step.clear()
        store.at = store.calls + at
        try:
            run = await kernel.resume(held.name)
        except StoreError:
            await resume_to_the_end(kernel, world, planned=False)
        else:
            assert run.outcome == Answer("sent c", value="sent c")
        assert len(asyncio.all_tasks()) == 1
        assert world.sent == ["b", "c"]
        failed.append(store.failed)
        if not store.failed:
            break
    assert {"read", "acquire", "append", "release"} <= set(failed)


async def test_a_run_cancelled_while_its_outcome_is_written_is_done(world: World) -> None:
    class Told(MemoryRunStore):
        async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
            if entries[-1]["type"] == "outcome":
                running.cancel()
            await asyncio.sleep(0)
            await super().append(lease, entries)

    kernel = kernel_of(world, Told())
    running = asyncio.ensure_future(kernel.run_plan(PLAN))
    with pytest.raises(asyncio.CancelledError):
        await running
    state = await state_of(kernel)
    assert (state.state, state.outcome) == ("done", Answer("sent c", value="sent c"))


async def test_a_step_that_nothing_would_run_again_is_not_to_be_run_again(world: World) -> None:
    @function
    async def fail() -> str:
        """Fail."""
        raise ValueError("no")

    kernel = kernel_of(world, MemoryRunStore())
    kernel.add_function(fail)
    planner = ScriptedPlanner(Plan("g", (Step("f", "fail"),)), Plan("g", (step("a"),)))
    with pytest.raises(LimitExceeded):
        await kernel.run_goal("g", planner=planner, budget=Budget(proposals=2))
    (run,) = await kernel.run_store.runs()  # type: ignore[union-attr]
    with pytest.raises(RunError, match="is over"):
        await kernel.resume(run, planner=ScriptedPlanner(Answer("a")), retry=["f"])


async def test_a_given_result_that_is_not_json_is_refused(kernel: Kernel) -> None:
    async def hold(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        return RequireApproval("wait")

    kernel.middleware.step.append(hold)
    held = await kernel.run_plan(Plan("g", (Step("n", Plan("n", (step("a"),))),)))
    for wrong in (math.nan, object()):
        with pytest.raises(RunError, match="not JSON"):
            await kernel.resume(held.name, results={"n": wrong})


async def test_two_at_once_do_not_go_on_with_one_run(kernel: Kernel, world: World) -> None:
    async def hold(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        return RequireApproval("wait")

    kernel.middleware.step.append(hold)
    held = await kernel.run_plan(PLAN)
    kernel.middleware.step.clear()
    ended = await asyncio.gather(*(kernel.resume(held.name) for _ in range(5)), return_exceptions=True)
    assert sum(not isinstance(each, BaseException) for each in ended) == 1
    assert all(isinstance(each, StoreBusy) for each in ended if isinstance(each, BaseException))
    assert world.sent == ["b", "c"]
