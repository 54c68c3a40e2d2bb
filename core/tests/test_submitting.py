"""Goals as jobs: what is sent to a worker comes out as it was; what cannot be sent is refused before anything is."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from portico._jobs import Job
from portico._kernel import Kernel
from portico._plans.plan import Plan, Value
from portico._plans.task import Answer, Budget
from portico._ports.runner import Runner
from portico._runs.outcome import LONGEST_RUN, Run
from portico._runs.submitting import JOB_VERSION, RUN_KIND, read_job, require_jobs, run_job
from portico.errors import RunError, StoreDamaged, StoreError, UnsupportedOption
from portico_testkit.fakes.durable_runs import MemoryDurableRunner
from portico_testkit.fakes.job_queue import MemoryJobQueue
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.strategies import json_values

BUDGETS = st.builds(
    Budget,
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 9),
    st.none() | st.floats(0, 100),
    st.none() | st.floats(0, 100),
    st.integers(1, 9),
)
GOALS = st.text(min_size=1).filter(str.strip)
OBJECTS = st.dictionaries(st.text(max_size=4), json_values(), max_size=3)


@pytest.fixture
def queue() -> MemoryJobQueue:
    return MemoryJobQueue()


@pytest.fixture
def kernel(queue: MemoryJobQueue) -> Kernel:
    return Kernel(run_store=MemoryRunStore(), runner=MemoryDurableRunner(jobs=queue))


@given(
    GOALS,
    st.fixed_dictionaries(
        {},
        optional={
            "planner": st.text(min_size=1),
            "input": json_values(),
            "budget": BUDGETS,
            "context": OBJECTS,
            "reuse": st.booleans(),
            "run": st.from_regex(r"[a-z0-9-]{1,20}", fullmatch=True),
        },
    ),
    OBJECTS,
)
def test_what_is_asked_for_arrives_as_it_was(goal: str, options: dict[str, Any], origin: dict[str, Any]) -> None:
    kernel = Kernel()
    kernel.origin = origin
    job = run_job(kernel, goal, **options)
    assert job.kind == RUN_KIND
    sent = Job(job.name, job.kind, json.loads(json.dumps(job.body, allow_nan=False)))
    run = options.pop("run", job.name)
    asked = {name: value for name, value in options.items() if value is not None}
    assert read_job(sent) == {"run": run, "goal": goal, **asked, **({"origin": origin} if origin else {})}


async def test_a_goal_that_is_submitted_waits_under_the_name_of_its_run(kernel: Kernel, queue: MemoryJobQueue) -> None:
    run = await kernel.submit("Shout", planner="scripted", input={"a": 1}, budget=Budget(steps=3))
    assert re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{12}", run)
    (status,) = await queue.status([run])
    assert status is not None
    assert (status.kind, status.state) == ("pursuit", "waiting")
    job = run_job(kernel, "Shout", planner="scripted", input={"a": 1}, budget=Budget(steps=3), run=run)
    assert job.body == {
        "version": JOB_VERSION,
        "goal": "Shout",
        "planner": "scripted",
        "input": {"a": 1},
        "budget": asdict(Budget(steps=3)),
    }


async def test_the_same_run_is_submitted_once(kernel: Kernel, queue: MemoryJobQueue) -> None:
    assert [await kernel.submit(goal, run="order 17") for goal in ("Ship it", "Ship it again")] == ["order 17"] * 2
    (waiting,) = await queue.jobs(RUN_KIND)
    assert waiting.name == "order 17"


async def test_many_goals_are_submitted_in_one_call(kernel: Kernel) -> None:
    class Counted(MemoryJobQueue):
        calls: list[list[Job]] = []  # noqa: RUF012 - of this test alone

        async def submit(self, jobs: Any) -> None:
            self.calls.append(list(jobs))
            await super().submit(jobs)

    kernel.runner = MemoryDurableRunner(jobs=Counted())
    runs = await kernel.submit_all(["one", ("two", {"n": 2}), ("three", None)], planner="p", reuse=False)
    (jobs,) = Counted.calls
    assert [job.name for job in jobs] == runs
    assert len(set(runs)) == 3
    asked = [read_job(job) for job in jobs]
    assert [(each["goal"], each.get("input"), each["planner"], each["reuse"]) for each in asked] == [
        ("one", None, "p", False),
        ("two", {"n": 2}, "p", False),
        ("three", None, "p", False),
    ]
    assert await kernel.submit_all([]) == []


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"goal": " \n"}, ValueError, "the goal is blank"),
        ({"planner": ScriptedPlanner()}, TypeError, "a worker finds its planner by name"),
        ({"input": {1, 2}}, ValueError, "the input is not JSON"),
        ({"input": math.nan}, ValueError, "the input is not JSON"),
        ({"context": {"client": object()}}, ValueError, "the context is not JSON"),
        ({"budget": Budget(seconds=math.inf)}, ValueError, "the budget's seconds are inf"),
        ({"budget": Budget(step_seconds=-1)}, ValueError, "the budget's step_seconds are -1"),
        ({"run": ""}, ValueError, "the name of a run has 1 to 200"),
        ({"run": "a\0b"}, ValueError, "the name of a run has 1 to 200"),
        ({"run": "\ud800"}, ValueError, "the name of a run has 1 to 200"),
        ({"run": "x" * (LONGEST_RUN + 1)}, ValueError, "the name of a run has 1 to 200"),
        ({"run": 5}, TypeError, "the name of a run is text, not 5"),
        ({"bugdet": Budget()}, TypeError, "'bugdet' is not an option of a submitted goal; 'budget' is"),
    ],
)
async def test_what_cannot_be_sent_is_refused_before_anything_is(
    kernel: Kernel, queue: MemoryJobQueue, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await kernel.submit(**{"goal": "g", **options})
    assert not await queue.jobs(RUN_KIND)


async def test_one_goal_that_cannot_be_sent_holds_back_all(kernel: Kernel, queue: MemoryJobQueue) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        await kernel.submit_all(["one", ("two", object())])
    kernel.origin = {"of": object()}
    with pytest.raises(ValueError, match="the kernel's origin is not JSON"):
        await kernel.submit_all(["one"])
    assert not await queue.jobs(RUN_KIND)


class Plain(Runner):
    """A runner that executes and can do nothing else."""

    name = "plain"

    async def execute(self, run: str, name: str, action: Any) -> Any:
        return await action()


@pytest.mark.parametrize(
    ("runner", "words"),
    [
        (None, "There is no runner."),
        (Plain(), "The runner 'plain' has no workers."),
        (MemoryDurableRunner(), "The runner 'memory' has no workers."),
    ],
)
async def test_a_runner_without_workers_takes_no_goal(runner: Any, words: str) -> None:
    with pytest.raises(
        UnsupportedOption, match=rf"^{re.escape(words)} Set `use` under \[runner\] .* `portico plugins`"
    ):
        await Kernel(runner=runner).submit("g")


def test_a_runner_is_asked_for_what_else_it_can(queue: MemoryJobQueue) -> None:
    runner = MemoryDurableRunner(jobs=queue)
    assert require_jobs(runner) is queue


@given(st.dictionaries(st.sampled_from(["version", "planner", "input", "budget", "more"]), json_values()))
@example({"version": 1})
@example({"version": True, "goal": "g"})
@example({"version": 0, "goal": "g"})
@example({"version": 1, "goal": 5})
@example({"version": 1, "goal": "g", "more": 1})
@example({"version": 1, "goal": "g", "run": "other"})
@example({"version": 1, "goal": "g", "planner": None})
@example({"version": 1, "goal": "g", "budget": None})
@example({"version": 1, "goal": "g", "budget": {"steps": 5, "more": 1}})
@example({"version": 1, "goal": "g", "budget": {"seconds": -1}})
@example({"version": 1, "goal": "g", "reuse": 1})
@example({"version": 1, "goal": "g", "context": []})
@example({"version": 1, "goal": "g", "origin": "here"})
def test_what_asks_for_no_run_is_damage(body: dict[str, Any]) -> None:
    words = "The job j (does not ask|is of version [0-9]+;)"
    with pytest.raises(StoreError, match=words):
        read_job(Job("j", RUN_KIND, body))


def test_a_job_of_a_newer_version_is_told() -> None:
    words = f"version {JOB_VERSION + 1}; this is a Portico that knows version {JOB_VERSION}"
    with pytest.raises(StoreError, match=words) as caught:
        read_job(Job("j", RUN_KIND, {"version": JOB_VERSION + 1, "wish": "?"}))
    assert not isinstance(caught.value, StoreDamaged)


@given(st.text(min_size=1, max_size=LONGEST_RUN).filter(str.strip))
def test_any_other_text_names_a_run(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        refused = True
    else:
        refused = "\0" in name
    if refused:
        with pytest.raises(ValueError, match="the name of a run"):
            Run.check_name(name)
    else:
        assert Run.check_name(name) == name


@pytest.mark.parametrize("planned", [True, False])
async def test_a_run_has_the_name_that_it_is_given_and_no_other_run_has_it(planned: bool) -> None:
    kernel = Kernel(run_store=MemoryRunStore())

    async def begin(run: str) -> Any:
        if planned:
            return await kernel.run_goal("g", planner=ScriptedPlanner(Answer("there")), run=run)
        return await kernel.run_plan(Plan("g", result=Value(1)), run=run)

    assert (await begin("mine")).name == "mine"
    assert kernel.run_store is not None
    entries = await kernel.run_store.read("mine")
    with pytest.raises(RunError, match="The journal has a run 'mine' already"):
        await begin("mine")
    assert await kernel.run_store.read("mine") == entries
    with pytest.raises(ValueError, match="1 to 200"):
        await begin(" ")
    without = Kernel()
    assert (await without.run_plan(Plan("g", result=Value(1)), run="mine")).name == "mine"


class Slow(MemoryRunStore):
    """Gives way to others before it reads."""

    async def read(self, run: str) -> list[Mapping[str, Any]]:
        await asyncio.sleep(0)
        return await super().read(run)


@pytest.mark.parametrize("moments", range(14))
async def test_a_run_that_is_cancelled_before_its_beginning_is_written_is_none(moments: int) -> None:
    store = Slow()
    running = asyncio.create_task(Kernel(run_store=store).run_plan(Plan("g", result=Value(1)), run="mine"))
    for _ in range(moments):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert [each["type"] for each in await store.read("mine")][:1] in ([], ["pursuit"])
    assert not await store.held("mine")
    assert len(asyncio.all_tasks()) == 1
