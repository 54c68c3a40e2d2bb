"""Steps: their time, their attempts, their input, templates as steps; and what the journal keeps of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.support.virtual_time import on_virtual_time

from portico._functions.functions import function
from portico._functions.middleware import RequireApproval, StepRun, current_step
from portico._kernel import Kernel
from portico._plans.plan import From, Plan, PlanTemplate, Step, Value
from portico._plans.task import Answer, Budget, Event, RunEvent
from portico._ports.run_store import Lease
from portico._runs import attempts, writing
from portico._runs.attempts import may_pass, pause
from portico._runs.outcome import Paused
from portico.errors import (
    ArgumentsInvalid,
    AuthenticationFailed,
    FunctionFailed,
    LimitExceeded,
    PlanInvalid,
    PlanStale,
    RateLimited,
    ServiceTimeout,
    ServiceUnavailable,
    StepFailed,
    StoreBusy,
    StoreError,
)
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore


class Shaky:
    """Fails with the errors that it is given, then works."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.attempts: list[int] = []

    @function
    async def read(self, text: str = "") -> str:
        """Read."""
        self.happens()
        return text or "read"

    @function(effects=True)
    async def send(self, text: str = "") -> str:
        """Send."""
        self.happens()
        return "sent"

    @function
    async def wait(self) -> None:
        """Wait for ever."""
        self.happens()
        await asyncio.Event().wait()

    def happens(self) -> None:
        step = current_step()
        assert step is not None
        self.attempts.append(step.attempt)
        if self.errors:
            raise self.errors.pop(0)


def kernel_of(shaky: Shaky, *, run_store: MemoryRunStore | None = None) -> Kernel:
    kernel = Kernel(run_store=run_store)
    kernel.add_plugin(shaky, "S")
    return kernel


def one(name: str = "S-read", **options: Any) -> Plan:
    return Plan("g", (Step("s", name, **options),), From("s"))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "FIRST_PAUSE", 0)


DOWN = ServiceUnavailable("down")


@pytest.mark.parametrize(
    "error", [DOWN, ServiceTimeout("late"), RateLimited("slowly", retry_after=0), ConnectionError("reset")], ids=repr
)
async def test_what_may_pass_is_tried_again(error: Exception) -> None:
    shaky = Shaky(error, error)
    kernel = kernel_of(shaky)
    assert (await kernel.run_plan(one(attempts=3))).outcome == Answer("read", value="read")
    assert shaky.attempts == [1, 2, 3]
    shaky.errors[:] = [error] * 3
    with pytest.raises(StepFailed):
        await kernel.run_plan(one(), budget=Budget(step_attempts=2))
    assert shaky.attempts == [1, 2, 3, 1, 2]


@pytest.mark.parametrize(
    "error",
    [AuthenticationFailed("no"), ArgumentsInvalid("f", ["x"]), RateLimited("tomorrow", retry_after=86_400)],
    ids=repr,
)
async def test_what_does_not_pass_is_not_tried_again(error: Exception) -> None:
    shaky = Shaky(error)
    with pytest.raises(StepFailed):
        await kernel_of(shaky).run_plan(one(attempts=3))
    assert shaky.attempts == [1]


@pytest.mark.parametrize("around", ["plain", "nested", "template"])
async def test_a_function_with_effects_is_never_tried_again(around: str) -> None:
    shaky = Shaky(DOWN)
    plans = {
        "plain": one("S-send"),
        "nested": Plan("g", (Step("n", one("S-send"), attempts=None),)),
        "template": Plan("g", (Step("t", PlanTemplate("{{S.send}}", "semantic-kernel")),)),
    }
    with pytest.raises(StepFailed):
        await kernel_of(shaky).run_plan(plans[around], budget=Budget(step_attempts=5))
    assert shaky.attempts == [1]


async def test_steps_inside_of_a_nested_plan_or_a_template_have_its_attempts() -> None:
    for outer in (one(), PlanTemplate("{{S.read}}", "semantic-kernel")):
        shaky = Shaky(DOWN, DOWN)
        run = await kernel_of(shaky).run_plan(Plan("g", (Step("n", outer, attempts=3),), From("n")))
        assert run.outcome == Answer("read", value="read")
        assert shaky.attempts == [1, 2, 3]


async def test_a_retry_is_told_and_journalled() -> None:
    store = MemoryRunStore()
    shaky = Shaky(DOWN)
    events: list[RunEvent] = []
    run = await kernel_of(shaky, run_store=store).run_plan(one(attempts=2), emit=events.append)
    (retried,) = (event for event in events if isinstance(event, Event.StepRetried))
    assert (retried.step.id, retried.error, retried.attempt) == ("s", "down", 2)
    (entry,) = [entry for entry in await store.read(run.name) if entry["type"] == "step-retried"]
    assert (entry["step"], entry["error"], entry["attempt"]) == ("s", "down", 2)
    assert sum(isinstance(event, Event.StepStarted) for event in events) == 1


@given(st.integers(1, 1000), st.none() | st.floats(0, 60))
def test_pauses_grow_and_are_bounded(attempt: int, retry_after: float | None) -> None:
    error = DOWN if retry_after is None else RateLimited("slowly", retry_after=retry_after)
    assert 0 <= pause(attempt, error) <= attempts.LONGEST_PAUSE
    assert pause(attempt, DOWN) <= pause(attempt + 1, DOWN)
    if retry_after is not None:
        assert pause(attempt, error) == retry_after, "a service that says when is taken at its word"


def test_failures_of_functions_may_pass_unless_they_are_our_own() -> None:
    foreign = FunctionFailed("f", OSError())
    foreign.__cause__ = OSError()
    assert may_pass(foreign)
    own = FunctionFailed("f", AuthenticationFailed())
    own.__cause__ = AuthenticationFailed()
    assert not may_pass(own)


@on_virtual_time
async def test_a_step_that_takes_too_long_is_stopped_and_may_be_tried_again() -> None:
    shaky = Shaky()
    kernel = kernel_of(shaky)
    with pytest.raises(StepFailed, match=r"Step s failed: The step s did not end within its 0\.01 seconds"):
        await kernel.run_plan(one("S-wait", seconds=0.01, attempts=2))
    assert shaky.attempts == [1, 2]
    with pytest.raises(StepFailed, match=r"0\.02 seconds"):
        await kernel.run_plan(one("S-wait"), budget=Budget(step_seconds=0.02))
    assert len(asyncio.all_tasks()) == 1


@on_virtual_time
async def test_the_time_of_a_nested_plan_is_that_of_all_its_steps() -> None:
    inner = Plan("i", (Step("a", "S-wait"), Step("b", "S-wait")))
    with pytest.raises(StepFailed, match=r"Step n failed: The step n did not end within its 0\.02 seconds"):
        await kernel_of(Shaky()).run_plan(Plan("g", (Step("n", inner, seconds=0.02),)))
    assert len(asyncio.all_tasks()) == 1


async def test_a_timeout_of_the_functions_own_is_its_failure() -> None:
    with pytest.raises(StepFailed, match="TimeoutError: mine"):
        await kernel_of(Shaky(TimeoutError("mine"))).run_plan(one(seconds=60))


async def test_the_input_is_referred_to_and_journalled() -> None:
    store = MemoryRunStore()
    kernel = kernel_of(Shaky(), run_store=store)
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    plan = Plan("g", (Step("s", "S-read", {"text": From("input", ("city",))}),), From("s"), input=schema)
    run = await kernel.run_plan(plan, input={"city": "Rome"})
    assert run.outcome == Answer("Rome", value="Rome")
    assert (run.input, run.plan.input) == ({"city": "Rome"}, schema)
    assert (await store.read(run.name))[0]["input"] == {"city": "Rome"}
    again = await kernel.run_plan(run.plan, input={"city": "Oslo"})
    assert again.outcome == Answer("Oslo", value="Oslo"), "what was executed can be run with another input"


@pytest.mark.parametrize("wrong", [None, 5, {}, {"city": 5}])
async def test_an_input_that_is_not_what_the_plan_takes_is_refused_before_anything_runs(wrong: Any) -> None:
    store, shaky = MemoryRunStore(), Shaky()
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    plan = Plan("g", (Step("s", "S-read", {"text": From("input", ("city",))}),), From("s"), input=schema)
    with pytest.raises(PlanInvalid):
        await kernel_of(shaky, run_store=store).run_plan(plan, input=wrong)
    assert shaky.attempts == []
    assert await store.runs() == [], "a plan that cannot run makes no run"


async def test_a_planner_is_given_the_input_and_its_plan_refers_to_it() -> None:
    plan = Plan("g", (Step("s", "S-read", {"text": From("input")}),), From("s"))
    planner = ScriptedPlanner(plan)
    run = await kernel_of(Shaky()).run_goal("Read it", planner=planner, input="this")
    assert run.outcome == Answer("this", value="this")
    assert planner.tasks[0].input == "this"


async def test_a_nested_plan_is_given_its_arguments_as_input() -> None:
    inner = Plan("i", (Step("a", "S-read", {"text": From("input", ("word",))}),), From("a"))
    plan = Plan("g", (Step("x", "S-read", {"text": Value("hey")}), Step("n", inner, {"word": From("x")})), From("n"))
    assert (await kernel_of(Shaky()).run_plan(plan)).outcome == Answer("hey", value="hey")


async def test_a_plan_for_other_functions_is_told_from_one_that_is_wrong() -> None:
    run = await kernel_of(Shaky()).run_plan(one(arguments={"text": Value("a")}))

    @function
    async def read(text: int) -> str:
        return ""

    other = Kernel()
    other.add_function(read)
    with pytest.raises(PlanStale, match="S-read: it is gone"):
        await other.run_plan(run.plan)


TEMPLATE = "semantic-kernel"


async def test_each_call_of_a_template_is_a_step_of_its_own() -> None:
    store = MemoryRunStore()
    kernel = kernel_of(Shaky(), run_store=store)
    seen: list[str] = []

    async def watch(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        seen.append(context.step.id)
        return await proceed()

    kernel.middleware.step.append(watch)
    template = PlanTemplate("{{$who}}: {{S.read 'one'}}, {{S.read text=$who}} <{{S.read}}>", TEMPLATE)
    plan = Plan("g", (Step("t", template, {"who": Value("a & b")}),), From("t"))
    run = await kernel.run_plan(plan)
    assert run.outcome == Answer("a & b: one, a & b <read>", value="a & b: one, a & b <read>")
    assert seen == ["t", "t/1", "t/2", "t/3"]
    assert [record.step.id for record in run.steps] == ["t/1", "t/2", "t/3", "t"]
    assert run.steps[1].step.arguments == {"text": Value("a & b")}
    assert run.plan.steps == plan.steps
    calls = [entry for entry in await store.read(run.name) if entry["type"] == "step-called"]
    assert [(call["step"], call["function"], call["arguments"]) for call in calls] == [
        ("t/1", "S-read", {"text": "one"}), ("t/2", "S-read", {"text": "a & b"}), ("t/3", "S-read", {}),
    ]  # fmt: skip


async def test_a_template_that_calls_what_is_not_there_is_refused_before_it_runs() -> None:
    template = PlanTemplate("{{S.raed}}", TEMPLATE)
    with pytest.raises(PlanInvalid, match="raed"):
        await kernel_of(Shaky()).run_plan(Plan("g", (Step("t", template),)))
    with pytest.raises(PlanInvalid, match="esperanto"):
        await kernel_of(Shaky()).run_plan(Plan("g", (Step("t", PlanTemplate("", "esperanto")),)))


async def test_a_failure_inside_of_a_template_is_the_failure_of_its_step() -> None:
    planner = ScriptedPlanner(
        Plan("g", (Step("t", PlanTemplate("{{S.read}}{{S.read 'b'}}", TEMPLATE)),)),
        lambda task: Answer(" ".join(f"{record.step.id}:{record.error}" for record in task.steps if record.error)),
    )
    run = await kernel_of(Shaky(AuthenticationFailed("no"))).run_goal("Try", planner=planner)
    assert run.outcome == Answer("t/1:no t:no")


async def test_a_hold_inside_of_a_template_keeps_what_was_called_beside_it() -> None:
    store, shaky = MemoryRunStore(), Shaky()
    kernel = kernel_of(shaky, run_store=store)
    held = ["t/1"]

    async def guard(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        await asyncio.sleep(0)
        return RequireApproval("Really?") if context.step.id in held else await proceed()

    kernel.middleware.step.append(guard)
    plan = Plan("g", (Step("t", PlanTemplate("{{S.send 'a'}}{{S.send 'b'}}", TEMPLATE)),), From("t"))
    run = await kernel.run_plan(plan)
    assert run.outcome == Paused("Really?", "t/1")
    assert len(shaky.attempts) == 1, "the other call came to its end"
    held.clear()
    assert (await kernel.resume(run.name)).outcome == Answer("sentsent", value="sentsent")
    assert len(shaky.attempts) == 2, "what was called beside the hold was not called again"


async def test_the_calls_of_templates_count_as_steps() -> None:
    template = PlanTemplate("{{S.read}}" * 6, TEMPLATE)
    with pytest.raises(LimitExceeded, match="more than its 5 steps"):
        await kernel_of(Shaky()).run_plan(Plan("g", (Step("t", template),)), budget=Budget(steps=5))


class Tuples:
    @function
    async def pair(self) -> Any:
        """Give what JSON has no form of its own for."""
        return (1, (2, 3))

    @function
    async def moment(self) -> Any:
        """Give what JSON has no form for."""
        return float("nan")

    @function
    async def length(self, value: Any) -> str:
        """Tell a kind."""
        return type(value).__name__


async def test_a_result_is_what_the_journal_has_fresh_or_resumed() -> None:
    kernel = Kernel(run_store=MemoryRunStore())
    kernel.add_plugin(Tuples(), "T")
    plan = Plan("g", (Step("a", "T-pair"), Step("b", "T-length", {"value": From("a")})), From("b"))
    assert (await kernel.run_plan(plan)).outcome == Answer("list", value="list")


async def test_a_result_that_is_not_json_is_the_failure_of_its_step() -> None:
    kernel = Kernel(run_store=MemoryRunStore())
    kernel.add_plugin(Tuples(), "T")
    with pytest.raises(StepFailed, match=r"Step a failed: T-moment: its result .*is not JSON.*float"):
        await kernel.run_plan(Plan("g", (Step("a", "T-moment"),)))


class Slow(MemoryRunStore):
    """Takes its time, and counts the appends."""

    def __init__(self) -> None:
        super().__init__()
        self.appends: list[int] = []

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        await asyncio.sleep(0.01)
        await super().append(lease, entries)
        self.appends.append(len(entries))


@on_virtual_time
async def test_steps_that_end_side_by_side_share_a_write() -> None:
    store = Slow()
    kernel = kernel_of(Shaky(), run_store=store)
    await kernel.run_plan(Plan("g", tuple(Step(f"s{number}", "S-read") for number in range(20))))
    assert sum(store.appends) == 2 + 20 * 2 + 1
    assert len(store.appends) <= 10, f"{len(store.appends)} writes for 20 steps side by side"


@on_virtual_time
async def test_the_lease_is_renewed_while_a_step_runs_longer_than_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "LEASE_SECONDS", 0.15)
    store = MemoryRunStore(clock=asyncio.get_running_loop().time)

    @function
    async def nap() -> str:
        await asyncio.sleep(0.5)
        (run,) = await store.runs()
        with pytest.raises(StoreBusy):
            await store.acquire(run, owner="another", seconds=60)
        return "rested"

    kernel = Kernel(run_store=store)
    kernel.add_function(nap)
    assert (await kernel.run_plan(Plan("g", (Step("s", "nap"),), From("s")))).outcome == Answer(
        "rested", value="rested"
    )


@on_virtual_time
async def test_a_lease_that_is_lost_stops_the_step_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "LEASE_SECONDS", 0.1)
    store = MemoryRunStore()

    @function
    async def nap() -> None:
        (run,) = await store.runs()
        store._leases.clear()
        await store.acquire(run, owner="another", seconds=60)
        await asyncio.Event().wait()

    kernel = Kernel(run_store=store)
    kernel.add_function(nap)
    with pytest.raises(StoreBusy, match="another holds the run"):
        await asyncio.wait_for(kernel.run_plan(Plan("g", (Step("s", "nap"),))), 30)
    assert len(asyncio.all_tasks()) == 1


@on_virtual_time
async def test_a_store_that_cannot_renew_for_once_does_not_stop_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "LEASE_SECONDS", 0.3)

    class Hiccup(MemoryRunStore):
        renewals = 0

        async def renew(self, lease: Lease, *, seconds: float) -> None:
            self.renewals += 1
            if self.renewals == 1:
                raise StoreError("the disk was away")
            await super().renew(lease, seconds=seconds)

    @function
    async def nap() -> None:
        await asyncio.sleep(0.5)

    store = Hiccup(clock=asyncio.get_running_loop().time)
    kernel = Kernel(run_store=store)
    kernel.add_function(nap)
    await kernel.run_plan(Plan("g", (Step("s", "nap"),)))
    assert store.renewals > 1


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.integers(0, 2**20))
def test_entries_are_thin(sizes: list[int], seed: int) -> None:
    """The whole plan is written once, not with each of its steps."""
    store = MemoryRunStore()
    kernel = kernel_of(Shaky(), run_store=store)
    steps = tuple(Step(f"s{number}", "S-read", {"text": Value("x" * size)}) for number, size in enumerate(sizes))

    async def entries() -> list[Mapping[str, Any]]:
        return await store.read((await kernel.run_plan(Plan("g", steps))).name)

    for entry in asyncio.run(entries()):
        if entry["type"].startswith("step-"):
            assert len(json.dumps(entry)) < 200
