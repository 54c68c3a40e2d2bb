"""The loop: propose, check, run, observe; how it ends, and what it leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from tests.support.virtual_time import on_virtual_time

from portico._chat.messages import Usage
from portico._functions.functions import function
from portico._functions.middleware import PlanReview, RequireApproval, StepRun
from portico._kernel import Kernel
from portico._plans.check import check_plan
from portico._plans.findings import Finding
from portico._plans.plan import From, ObjectOf, Plan, Step, TextOf, Value
from portico._plans.reuse import fingerprint
from portico._plans.task import Answer, Budget, Event, Infeasible, RunEvent, Task
from portico._plugins.registration import Services
from portico._ports.planner import Planner
from portico._ports.run_store import Lease
from portico._ports.runner import Runner
from portico._runs.outcome import Paused, Run
from portico.errors import LimitExceeded, PlanError, PlanInvalid, StepFailed, StoreBusy, StoreError
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.fakes.services import FixedServices


class Tools:
    def __init__(self) -> None:
        self.calls: list[str] = []

    @function
    async def shout(self, text: str) -> str:
        """Say it loudly."""
        self.calls.append(text)
        await asyncio.sleep(0)
        return text.upper()

    @function
    def fail(self, text: str = "") -> str:
        """Never works."""
        self.calls.append("fail")
        raise ConnectionError(text)

    @function
    def table(self) -> dict[str, int]:
        """Give numbers."""
        return {"one": 1}

    @function
    async def wait(self) -> None:
        """Wait for ever."""
        self.calls.append("wait")
        await asyncio.Event().wait()


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
def kernel(tools: Tools) -> Kernel:
    kernel = Kernel(run_store=MemoryRunStore())
    kernel.add_plugin(tools, "T")
    return kernel


def shout(name: str, text: Any, *after: str) -> Step:
    return Step(name, "T-shout", {"text": text if not isinstance(text, str) else Value(text)}, after)


FAIL = Step("bad", "T-fail", {"text": Value("down")})


async def journal(kernel: Kernel) -> list[Any]:
    store = kernel.run_store
    assert store is not None
    (run,) = await store.runs()
    assert store.holder(run) is None, "the lease was not given back"  # type: ignore[attr-defined]
    entries = await store.read(run)
    assert all(entry["version"] == 1 and entry["at"].endswith("+00:00") for entry in entries)
    return [{key: value for key, value in entry.items() if key not in ("version", "at")} for entry in entries]


def kinds(entries: list[Any]) -> list[str]:
    return [entry["type"] if entry["type"] != "outcome" else entry["kind"] for entry in entries]


async def test_a_plan_with_a_result_is_the_answer(kernel: Kernel) -> None:
    plan = Plan("g", (shout("s1", "hey"), shout("s2", From("s1"))), TextOf((From("s1"), "!")))
    run = await kernel.run_goal("Shout", planner=ScriptedPlanner(plan))
    assert run.outcome == Answer("HEY!", value="HEY!")
    assert [record.step.id for record in run.steps] == ["s1", "s2"]
    prints = {"T-shout": fingerprint(kernel.specs["T-shout"])}
    again = Plan("Shout", plan.steps, plan.result, fingerprints=prints)
    assert run.plan == again, "what is replayed gives the answer again"
    assert check_plan(run.plan, kernel.specs) == []
    entries = await journal(kernel)
    assert kinds(entries) == [
        "pursuit", "plan", "step-started", "step-finished", "step-started", "step-finished", "answer"
    ]  # fmt: skip
    assert entries[0] == {"type": "pursuit", "goal": "Shout", "planner": "scripted"}
    assert set(entries[1]["plan"]["fingerprints"]) == {"T-shout"}
    assert entries[3] == {"type": "step-finished", "step": "s1", "result": "HEY"}


async def test_a_result_that_is_no_text_is_shown_as_json(kernel: Kernel) -> None:
    plan = Plan("g", (Step("t", "T-table"),), ObjectOf({"é": From("t", ("one",))}))
    run = await kernel.run_goal("Count", planner=ScriptedPlanner(plan))
    assert run.outcome == Answer('{\n  "é": 1\n}', value={"é": 1})


async def test_moves_come_before_an_answer(kernel: Kernel) -> None:
    planner = ScriptedPlanner(
        Plan("g", (shout("s1", "a"),)),
        Plan("g", (shout("s2", From("s1")),)),
        lambda task: Answer(f"{task.result_of('s1')}{task.result_of('s2')}"),
    )
    run = await kernel.run_goal("Shout", planner=planner)
    assert run.outcome == Answer("AA")
    assert [record.step.id for record in run.steps] == ["s1", "s2"]
    assert [len(task.steps) for task in planner.tasks] == [0, 1, 2]
    assert planner.tasks[0].functions == tuple(kernel.specs.values())


async def test_infeasible_is_an_ordinary_end(kernel: Kernel) -> None:
    end = Infeasible("No car.", ("a car",))
    run = await kernel.run_goal("Drive", planner=ScriptedPlanner(end))
    assert run.outcome == end
    assert (await journal(kernel))[-1] == {
        "type": "outcome", "kind": "infeasible", "reason": "No car.", "missing": ["a car"]
    }  # fmt: skip


async def test_a_refused_plan_comes_back_with_its_findings_and_is_mended(kernel: Kernel, tools: Tools) -> None:
    wrong = Plan("g", (Step("s1", "T-shuot", {"text": Value("a")}),), From("s1"))
    planner = ScriptedPlanner(wrong, Plan("g", (shout("s1", "a"),)), lambda task: Answer(str(len(task.refused))))
    run = await kernel.run_goal("Shout", planner=planner)
    assert run.outcome == Answer("0"), "what ran since clears the refusals"
    (refusal,) = planner.tasks[1].refused
    assert refusal.plan.steps == wrong.steps
    assert "nearest: T-shout" in str(refusal.findings[0])
    assert planner.tasks[1].budget.refusals == planner.tasks[0].budget.refusals - 1
    assert kinds(await journal(kernel))[:3] == ["pursuit", "refused", "plan"]
    assert tools.calls == ["a"]


async def test_too_many_refusals_in_a_row_end_it(kernel: Kernel) -> None:
    planner = ScriptedPlanner(*[Plan("g")] * 9)
    with pytest.raises(PlanInvalid, match="neither steps nor a result"):
        await kernel.run_goal("Nothing", planner=planner, budget=Budget(refusals=2))
    assert len(planner.tasks) == 3
    assert kinds(await journal(kernel)) == ["pursuit", "refused", "refused", "refused", "failed"]


async def test_a_result_that_leads_to_nothing_is_told_to_the_planner(kernel: Kernel) -> None:
    planner = ScriptedPlanner(
        Plan("g", (Step("t", "T-table"),), From("t", ("two",))), lambda task: Answer(f"{task.refused[0].findings[0]}")
    )
    run = await kernel.run_goal("Count", planner=planner)
    assert run.outcome == Answer(str(Finding("there is nothing at $.two in t", place="result")))


async def test_a_failed_step_is_seen_and_mended(kernel: Kernel) -> None:
    planner = ScriptedPlanner(
        Plan("g", (FAIL, shout("after", From("bad")), shout("other", "b")), From("after")),
        lambda task: Plan("g", (shout("after", task.steps[0].error or ""),), From("after")),
    )
    run = await kernel.run_goal("Try", planner=planner)
    assert isinstance(run.outcome, Answer)
    assert "CONNECTIONERROR: DOWN" in run.outcome.text
    seen = {record.step.id: record.error for record in planner.tasks[1].steps}
    assert seen == {"bad": "The function T-fail failed: ConnectionError: down", "other": None}
    assert [step.id for step in run.plan.steps] == ["other", "after"], "only what worked can be replayed"


async def test_a_step_whose_arguments_cannot_be_made_is_seen_as_failed(kernel: Kernel) -> None:
    """It never began, and its planner would propose it again for ever if it were not told."""
    planner = ScriptedPlanner(
        Plan("g", (Step("t", "T-table"), shout("s", TextOf((From("t", ("two",)),))))),
        lambda task: Answer(str([(record.step.id, record.error) for record in task.steps])),
    )
    run = await kernel.run_goal("Count", planner=planner)
    assert run.outcome == Answer("[('t', None), ('s', 'there is nothing at $.two in t')]")
    assert kinds(await journal(kernel))[-2:] == ["step-failed", "answer"]


async def test_a_failure_that_nothing_follows_is_raised(kernel: Kernel) -> None:
    again = Plan("g", (FAIL,))
    with pytest.raises(StepFailed, match=r"Step bad failed.*down") as caught:
        await kernel.run_goal("Try", planner=ScriptedPlanner(*[again] * 9))
    assert isinstance(caught.value.__cause__, Exception)
    with pytest.raises(StepFailed):
        kernel.run_store = None
        await kernel.run_goal("Try", planner=ScriptedPlanner(again), budget=Budget(proposals=1))


async def test_ids_that_ran_are_taken_and_ids_that_did_not_are_free(kernel: Kernel) -> None:
    planner = ScriptedPlanner(
        Plan("g", (FAIL, shout("skipped", From("bad")), shout("ran", "a"))),
        Plan("g", (shout("ran", "b"), shout("bad", "c"))),
        Plan("g", (shout("skipped", "d"),), From("skipped")),
    )
    run = await kernel.run_goal("Try", planner=planner)
    assert run.outcome == Answer("D", value="D")
    findings = planner.tasks[2].refused[0].findings
    assert [finding.step for finding in findings] == ["ran", "bad"]
    assert all("is taken" in finding.message for finding in findings)


async def test_the_budget_of_proposals_ends_it(kernel: Kernel) -> None:
    def more(task: Task) -> Plan:
        return Plan("g", (shout(f"s{len(task.steps)}", "a"),))

    planner = ScriptedPlanner(*[more] * 50)
    with pytest.raises(LimitExceeded, match="4 proposals"):
        await kernel.run_goal("Go on", planner=planner, budget=Budget(proposals=4))
    assert [task.budget.proposals for task in planner.tasks] == [4, 3, 2, 1]
    assert [task.budget.steps for task in planner.tasks] == [100, 99, 98, 97]
    assert kinds(await journal(kernel))[-2:] == ["step-finished", "failed"]


async def test_the_budget_of_steps_ends_it_before_the_step_too_many(kernel: Kernel, tools: Tools) -> None:
    for steps in (
        tuple(shout(f"s{n}", "a") for n in range(4)),
        (Step("n", Plan("inner", tuple(shout(f"s{n}", "a") for n in range(3)))),),
    ):
        with pytest.raises(LimitExceeded, match="3 steps"):
            await kernel.run_goal("Go on", planner=ScriptedPlanner(Plan("g", steps)), budget=Budget(steps=3))
    assert tools.calls == []


@on_virtual_time
async def test_the_budget_of_seconds_ends_it_and_stops_what_was_started(kernel: Kernel, tools: Tools) -> None:
    plan = Plan("g", (Step("w", "T-wait"), Step("v", "T-wait")))
    with pytest.raises(LimitExceeded, match=r"0\.05 seconds"):
        await kernel.run_goal("Wait", planner=ScriptedPlanner(plan), budget=Budget(seconds=0.05))
    assert tools.calls == ["wait", "wait"]
    assert len(asyncio.all_tasks()) == 1
    await journal(kernel)


async def test_a_planner_is_told_how_many_seconds_are_left(kernel: Kernel) -> None:
    planner = ScriptedPlanner(Plan("g", (shout("s1", "a"),)), Answer("end"))
    await kernel.run_goal("Shout", planner=planner, budget=Budget(seconds=60))
    first, second = (task.budget.seconds for task in planner.tasks)
    assert first is not None
    assert second is not None
    assert 60 >= first > second > 0
    planner = ScriptedPlanner(Answer("end"))
    kernel.run_store = None
    await kernel.run_goal("Shout", planner=planner)
    assert planner.tasks[0].budget.seconds is None


async def test_a_timeout_of_the_planners_own_is_not_the_budgets(kernel: Kernel) -> None:
    class Late:
        name = "late"

        async def propose(self, task: Task, *, emit: Any) -> Answer:
            raise TimeoutError("the service")

    for budget in (Budget(), Budget(seconds=60)):
        with pytest.raises(TimeoutError, match="the service"):
            await kernel.run_goal("Wait", planner=Late(), budget=budget)


async def test_a_cancellation_stops_everything_and_gives_the_lease_back(kernel: Kernel, tools: Tools) -> None:
    running = asyncio.create_task(
        kernel.run_goal("Wait", planner=ScriptedPlanner(Plan("g", (Step("w", "T-wait"), Step("v", "T-wait")))))
    )
    while tools.calls != ["wait", "wait"]:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert kinds(await journal(kernel)) == ["pursuit", "plan", "step-started", "step-started", "interrupted"]
    assert len(asyncio.all_tasks()) == 1


async def test_a_plan_filter_may_hold(kernel: Kernel, tools: Tools) -> None:
    seen: list[PlanReview] = []

    async def ask(
        context: PlanReview, proceed: Callable[[], Awaitable[RequireApproval | None]]
    ) -> RequireApproval | None:
        seen.append(context)
        return RequireApproval("Look first.") if len(context.plan.steps) > 1 else await proceed()

    kernel.middleware.plan.append(ask)
    planner = ScriptedPlanner(Plan("g", (shout("s1", "a"),)), Plan("g", (shout("s2", "b"), shout("s3", "c"))))
    run = await kernel.run_goal("Shout", planner=planner)
    assert run.outcome == Paused("Look first.")
    assert tools.calls == ["a"]
    assert [review.run for review in seen] == [run.name] * 2
    assert (await journal(kernel))[-1]["kind"] == "held"


async def test_plan_filters_run_from_the_outside_in(kernel: Kernel) -> None:
    log: list[str] = []

    def recording(name: str) -> Any:
        async def filter(context: object, proceed: Callable[[], Awaitable[Any]]) -> Any:
            log.append(f"{name} before")
            result = await proceed()
            log.append(f"{name} after")
            return result

        return filter

    kernel.middleware.plan += [recording("plan 1"), recording("plan 2")]
    kernel.middleware.step += [recording("step 1"), recording("step 2")]
    await kernel.run_goal("Shout", planner=ScriptedPlanner(Plan("g", (shout("s", "a"),), From("s"))))
    assert log == [
        "plan 1 before", "plan 2 before", "plan 2 after", "plan 1 after",
        "step 1 before", "step 2 before", "step 2 after", "step 1 after",
    ]  # fmt: skip


async def test_a_step_filter_may_hold_change_or_replace(kernel: Kernel, tools: Tools) -> None:
    async def guard(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        if context.step.id == "held":
            return RequireApproval("Not this one.")
        if context.step.id == "replaced":
            return "by the filter"
        context.arguments["text"] += " changed"
        return await proceed()

    kernel.middleware.step.append(guard)
    plan = Plan("g", (shout("s1", "a"), shout("replaced", "b", "s1"), shout("held", "c", "replaced")), From("s1"))
    run = await kernel.run_goal("Shout", planner=ScriptedPlanner(plan))
    assert run.outcome == Paused("Not this one.", "held")
    assert [(record.step.id, record.result) for record in run.steps] == [
        ("s1", "A CHANGED"),
        ("replaced", "by the filter"),
    ]
    assert tools.calls == ["a changed"]
    assert kinds(await journal(kernel))[-2:] == ["step-held", "held"]


async def test_a_step_that_waits_for_its_filters_has_not_begun(kernel: Kernel) -> None:
    """A person may take an hour, and what is killed meanwhile is not uncertain."""
    events: list[RunEvent] = []

    async def ask(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        assert kinds(await store.read(context.run)) == ["pursuit", "plan"]
        assert [type(event) for event in events] == [Event.RunStarted, Event.Proposed]
        context.arguments = {"text": "b"}
        return await proceed()

    store = kernel.run_store
    assert store is not None
    kernel.middleware.step.append(ask)
    planner = ScriptedPlanner(Plan("g", (shout("s", "a"),), From("s")))
    await kernel.run_goal("Shout", planner=planner, emit=events.append)
    entries = await journal(kernel)
    assert entries[2] == {"type": "step-started", "step": "s", "arguments": {"text": "b"}}
    assert events[2] == Event.StepStarted(shout("s", "a"), {"text": "b"})


async def test_a_hold_inside_of_a_nested_plan_is_no_failure_of_the_step_around_it(kernel: Kernel) -> None:
    async def guard(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        if context.step.id == "n/a":
            return RequireApproval("Not this one.")
        try:
            return await proceed()
        except Exception as error:
            return str(error)

    kernel.middleware.step.append(guard)
    plan = Plan("g", (Step("n", Plan("i", (shout("a", "x"),), From("a"))),), From("n"))
    assert (await kernel.run_goal("Nest", planner=ScriptedPlanner(plan))).outcome == Paused("Not this one.", "n/a")


@pytest.mark.parametrize("answer", [None, "RequireApproval", RequireApproval])
async def test_a_plan_that_no_filter_let_through_does_not_run(kernel: Kernel, tools: Tools, answer: object) -> None:
    async def forget(context: PlanReview, proceed: Callable[[], Awaitable[RequireApproval | None]]) -> Any:
        return answer

    kernel.middleware.plan.append(forget)
    with pytest.raises(TypeError, match="plan middleware"):
        await kernel.run_goal("Shout", planner=ScriptedPlanner(Plan("g", (shout("s", "a"),), From("s"))))
    assert tools.calls == []


async def test_a_plan_filter_cannot_change_what_was_checked(kernel: Kernel) -> None:
    async def change(
        context: PlanReview, proceed: Callable[[], Awaitable[RequireApproval | None]]
    ) -> RequireApproval | None:
        context.plan = Plan("another")  # type: ignore[misc]
        return await proceed()

    kernel.middleware.plan.append(change)
    with pytest.raises(FrozenInstanceError):
        await kernel.run_goal("Shout", planner=ScriptedPlanner(Plan("g", (shout("s", "a"),), From("s"))))


async def test_a_nested_plan_runs_as_one_step_with_its_own(kernel: Kernel) -> None:
    inner = Plan("inner", (shout("a", "x"), shout("b", From("a"))), TextOf((From("a"), From("b"))))
    plan = Plan("g", (Step("n", inner), shout("s", From("n"))), From("s"))
    run = await kernel.run_goal("Nest", planner=ScriptedPlanner(plan))
    assert run.outcome == Answer("XX", value="XX")
    assert [record.step.id for record in run.steps] == ["n/a", "n/b", "n", "s"]
    assert run.plan.steps == plan.steps
    assert check_plan(run.plan, kernel.specs) == []
    entries = await journal(kernel)
    assert [entry["step"] for entry in entries if entry["type"] == "step-started"] == ["n", "n/a", "n/b", "s"]
    assert set(entries[1]["plan"]["fingerprints"]) == {"T-shout"}


async def test_a_failure_inside_of_a_nested_plan_names_the_step_inside(kernel: Kernel) -> None:
    plan = Plan("g", (Step("n", Plan("inner", (FAIL, shout("after", From("bad"))))),))
    planner = ScriptedPlanner(
        plan, lambda task: Answer("; ".join(f"{record.step.id} {record.error}" for record in task.steps))
    )
    run = await kernel.run_goal("Nest", planner=planner)
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == (
        "n/bad The function T-fail failed: ConnectionError: down; "
        "n Step n/bad failed: The function T-fail failed: ConnectionError: down"
    )


async def test_nested_steps_whose_arguments_cannot_be_made_are_seen_too(kernel: Kernel) -> None:
    inner = Plan("inner", (Step("t", "T-table"), shout("s", TextOf((From("t", ("two",)),)))))
    planner = ScriptedPlanner(
        Plan("g", (Step("n", inner),)), lambda task: Answer(" ".join(record.step.id for record in task.steps))
    )
    assert (await kernel.run_goal("Nest", planner=planner)).outcome == Answer("n/t n/s n")


async def test_notes_and_context_are_handed_back(kernel: Kernel) -> None:
    seen: list[tuple[Any, Any]] = []

    class Noting:
        name = "noting"

        async def propose(self, task: Task, *, emit: Any) -> Plan | Answer:
            seen.append((task.notes, task.context))
            number = len(seen)
            if number == 2:
                return Plan("refused", notes="of a refused plan")
            return Answer("end") if number == 4 else Plan("g", (shout(f"s{number}", "a"),), notes={"round": number})

    await kernel.run_goal("Shout", planner=Noting(), context={"user": "Ada"})
    context = {"user": "Ada"}
    assert seen == [(None, context), ({"round": 1}, context), ({"round": 1}, context), ({"round": 3}, context)]


async def test_events_come_in_the_order_of_what_happens(kernel: Kernel) -> None:
    class Talking:
        name = "talking"

        async def propose(self, task: Task, *, emit: Callable[[RunEvent], None]) -> Plan | Answer:
            if task.steps:
                emit(Event.TextDelta("do"))
                emit(Event.TextDelta("ne"))
                emit(Event.ChatUsed("extractive", "m", Usage(1, 2)))
                return Answer("done")
            emit(Event.ChatUsed("first", "m", Usage(10, 20)))
            return Plan("g", (shout("s1", "a"), Step("bad", "T-fail", after=("s1",))))

    events: list[RunEvent] = []
    run = await kernel.run_goal("Shout", planner=Talking(), emit=events.append)
    assert [type(event) for event in events] == [
        Event.RunStarted, Event.ChatUsed, Event.Proposed, Event.StepStarted, Event.StepFinished, Event.StepStarted,
        Event.StepFailed,
        Event.TextDelta, Event.TextDelta, Event.ChatUsed, Event.Ended,
    ]  # fmt: skip
    assert events[0] == Event.RunStarted(run.name, "Shout", "talking")
    assert events[3] == Event.StepStarted(shout("s1", "a"), {"text": "a"})
    assert events[4] == Event.StepFinished(shout("s1", "a"), "A")
    assert events[-1] == Event.Ended(run.name, "done")
    assert run.usage == Usage(11, 22)
    assert run.services == ("first", "extractive")


async def test_steps_side_by_side_keep_one_lease(kernel: Kernel) -> None:
    """Each entry renews it, which must not make the lease of another's entry stale."""
    steps = tuple(shout(f"s{n}", "a") for n in range(30))
    await kernel.run_goal("Shout", planner=ScriptedPlanner(Plan("g", steps), Answer("end")))
    entries = await journal(kernel)
    for step in steps:
        own = [entry["type"] for entry in entries if entry.get("step") == step.id]
        assert own == ["step-started", "step-finished"]


async def test_the_lease_is_given_back_when_the_planner_raises(kernel: Kernel) -> None:
    with pytest.raises(PlanError, match="script"):
        await kernel.run_goal("Nothing", planner=ScriptedPlanner())
    assert kinds(await journal(kernel)) == ["pursuit", "failed"]


async def test_a_lost_lease_stops_the_run(kernel: Kernel, tools: Tools) -> None:
    time = [0.0]
    store = kernel.run_store = MemoryRunStore(clock=lambda: time[0])

    async def steal(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        time[0] += 3600
        await store.acquire(context.run, owner="another", seconds=60)
        return await proceed()

    kernel.middleware.step.append(steal)
    with pytest.raises(StoreBusy, match="another"):
        await kernel.run_goal("Shout", planner=ScriptedPlanner(Plan("g", (shout("s", "a"),)), Answer("end")))
    assert tools.calls == []


async def test_a_lease_that_another_had_meanwhile_is_not_taken_back(kernel: Kernel) -> None:
    """The other may have done the very same steps."""
    time = [0.0]
    store = kernel.run_store = MemoryRunStore(clock=lambda: time[0])

    async def overtake(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        time[0] += 3600
        lease = await store.acquire(context.run, owner="another", seconds=60)
        await store.append(lease, [{"type": "theirs"}])
        await store.release(lease)
        return await proceed()

    kernel.middleware.step.append(overtake)
    with pytest.raises(StoreBusy, match="no longer in force"):
        await kernel.run_goal("Shout", planner=ScriptedPlanner(Plan("g", (shout("s", "a"),)), Answer("end")))
    (run,) = await store.runs()
    assert [entry["type"] for entry in await store.read(run)] == ["pursuit", "plan", "theirs"]


async def test_two_processes_on_one_run_are_two_owners(kernel: Kernel) -> None:
    store = kernel.run_store
    assert store is not None

    async def look(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        with pytest.raises(StoreBusy):
            await store.acquire(context.run, owner=context.run, seconds=60)
        return await proceed()

    kernel.middleware.step.append(look)
    run = await kernel.run_goal("Shout", planner=ScriptedPlanner(Plan("g", (shout("s", "a"),), From("s"))))
    assert run.outcome == Answer("A", value="A")


@pytest.mark.parametrize("refused", ["step-started", "step-finished"])
async def test_a_journal_that_cannot_be_written_ends_it_and_is_no_failure_of_the_step(
    kernel: Kernel, tools: Tools, refused: str
) -> None:
    """A planner that is told of a failure tries again what was done already."""

    class Full(MemoryRunStore):
        async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
            if any(entry["type"] == refused for entry in entries):
                raise StoreError("The disk is full.")
            await super().append(lease, entries)

    async def patient(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await proceed()
        except Exception:
            return "another"

    kernel.run_store = Full()
    kernel.middleware.step.append(patient)
    planner = ScriptedPlanner(Plan("g", (shout("s1", "a"), shout("s2", "b", "s1"))), Answer("end"))
    with pytest.raises(StoreError, match="disk is full"):
        await kernel.run_goal("Shout", planner=planner)
    assert len(planner.tasks) == 1
    assert tools.calls == ([] if refused == "step-started" else ["a"])
    assert "step-failed" not in kinds(await journal(kernel))


@pytest.mark.parametrize("kind", [Event.Proposed, Event.StepStarted, Event.StepFinished])
async def test_what_a_listener_raises_comes_out(kernel: Kernel, kind: type[RunEvent]) -> None:
    def listen(event: RunEvent) -> None:
        if isinstance(event, kind):
            raise KeyError("listener")

    planner = ScriptedPlanner(Plan("g", (shout("s1", "a"), shout("s2", "b"))), Answer("end"))
    with pytest.raises(KeyError, match="listener"):
        await kernel.run_goal("Shout", planner=planner, emit=listen)
    assert len(planner.tasks) == 1
    assert len(asyncio.all_tasks()) == 1
    await journal(kernel)


async def test_each_step_goes_through_the_runner(kernel: Kernel) -> None:
    class Recorder(Runner):
        name = "recorder"

        def __init__(self) -> None:
            self.names: list[tuple[str, str]] = []

        async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
            self.names.append((run, name))
            return await action() if name != "n/a" else "recorded"

    runner = kernel.runner = Recorder()
    plan = Plan("g", (Step("n", Plan("i", (shout("a", "x"),), From("a"))), shout("s", From("n"))), From("s"))
    ended = await kernel.run_goal("Shout", planner=ScriptedPlanner(plan))
    assert ended.outcome == Answer("RECORDED", value="RECORDED")
    assert runner.names == [(ended.name, "n/a"), (ended.name, "s")]


async def test_the_configured_planner_is_used_or_the_one_of_the_name() -> None:
    services: Services = FixedServices(
        {(Planner, "a"): ScriptedPlanner(Answer("a")), (Planner, "b"): ScriptedPlanner(Answer("b"))}
    )
    kernel = Kernel(services)
    assert (await kernel.run_goal("g")).outcome == Answer("a")
    assert (await kernel.run_goal("g", planner="b")).outcome == Answer("b")


async def test_what_is_no_goal_and_what_is_no_proposal_are_mistakes(kernel: Kernel) -> None:
    with pytest.raises(ValueError, match="blank"):
        await kernel.run_goal(" \n", planner=ScriptedPlanner(Answer("a")))
    for nonsense in (None, "an answer", [Answer("a")]):
        with pytest.raises(TypeError, match="'scripted' proposed"):
            kernel.run_store = MemoryRunStore()
            await kernel.run_goal("g", planner=ScriptedPlanner(lambda task, it=nonsense: it))
        await journal(kernel)


async def test_runs_run_side_by_side_in_one_kernel_with_one_planner(kernel: Kernel) -> None:
    planner = ScriptedPlanner(
        lambda task: Plan("g", (shout("s1", task.goal),)),
        lambda task: Plan("g", (shout("s2", From("s1")),)),
        lambda task: Answer(task.result_of("s2")),
    )
    runs: list[Run] = await asyncio.gather(*(kernel.run_goal(f"goal {n}", planner=planner) for n in range(20)))
    assert [run.outcome for run in runs] == [Answer(f"GOAL {n}") for n in range(20)]
    assert len({run.name for run in runs}) == 20


async def test_one_step_cannot_change_what_another_was_given(kernel: Kernel) -> None:
    @function
    def spoil(value: Any) -> str:
        value["one"] = "spoilt"
        return "spoilt"

    kernel.add_function(spoil)
    plan = Plan(
        "g",
        (Step("t", "T-table"), Step("x", "spoil", {"value": From("t")}), Step("y", "spoil", {"value": From("t")})),
        From("t"),
    )
    run = await kernel.run_goal("Spoil", planner=ScriptedPlanner(plan))
    assert run.outcome == Answer('{\n  "one": 1\n}', value={"one": 1})
