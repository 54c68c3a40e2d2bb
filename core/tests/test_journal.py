"""The journal: what a run's state is after each entry, and that what is damaged is told."""

from __future__ import annotations

from typing import Any

import pytest

from portico._chat.messages import Citation
from portico._functions.functions import function
from portico._functions.middleware import RequireApproval
from portico._kernel import Kernel
from portico._plans.json_form import plan_to_json
from portico._plans.plan import Plan, Step, Value
from portico._plans.task import Answer, Budget, Infeasible
from portico._runs.journal import JOURNAL_VERSION, RunState, entry
from portico.errors import StoreDamaged, StoreError
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore

PLAN = Plan("g", (Step("s", "f"), Step("n", Plan("i", (Step("a", "f"),)))))
START = entry("pursuit", goal="g", planner="p", input=5, budget={"steps": 7})


def planned() -> dict[str, Any]:
    return entry("plan", plan=plan_to_json(PLAN))


def state(*entries: dict[str, Any]) -> RunState:
    return RunState.of([START, *entries])


def test_a_run_that_began_is_running() -> None:
    begun = state()
    assert (begun.goal, begun.planner, begun.state, begun.input) == ("g", "p", "running", 5)
    assert begun.budget == Budget(steps=7)
    assert begun.started_at == begun.updated_at == START["at"]
    assert (begun.plan, begun.pending, begun.records) == (None, False, ())


@pytest.mark.parametrize(
    ("body", "name", "outcome"),
    [
        ({"kind": "answer", "text": "a"}, "done", Answer("a")),
        ({"kind": "infeasible", "reason": "no", "missing": ["x"]}, "infeasible", Infeasible("no", ("x",))),
        ({"kind": "held", "reason": "wait", "step": "s"}, "held", None),
        ({"kind": "held", "reason": "who knows", "step": "s", "uncertain": True}, "uncertain", None),
        ({"kind": "failed", "reason": "down", "error": "StepFailed"}, "failed", None),
    ],
)
def test_the_outcome_is_the_state(body: dict[str, Any], name: str, outcome: object) -> None:
    ended = state(planned(), entry("outcome", **body))
    assert (ended.state, ended.outcome) == (name, outcome)
    assert ended.reason == body.get("reason", "")
    assert ended.step == body.get("step")
    assert ended.pending == (name in ("held", "uncertain", "failed"))
    again = state(planned(), entry("outcome", **body), entry("resumed", planner="other", retry=[]))
    assert (again.state, again.planner) == ("running", "other")


def test_steps_are_followed_from_their_start_to_their_end() -> None:
    began = state(
        planned(), entry("step-started", step="n", arguments={}), entry("step-started", step="n/a", arguments={})
    )
    assert list(began.started) == ["n", "n/a"]
    ended = state(
        planned(),
        entry("step-started", step="n/a", arguments={"x": 1}, effects=True),
        entry("step-finished", step="s", result=[1]),
        entry("step-failed", step="n", error="down"),
    )
    assert ended.results == {"s": [1]}
    assert [(record.step.id, record.error) for record in ended.records] == [("s", None), ("n", "down")]
    assert ended.started["n/a"].step == Step("n/a", "f")
    assert ended.uncertain == (), "what is inside of a step that failed is history"
    retried = state(
        planned(),
        entry("step-started", step="n/a", arguments={}, effects=True),
        entry("step-failed", step="n", error="down"),
        entry("resumed", planner="p", retry=["n"]),
    )
    assert (retried.uncertain, retried.records) == (("n/a",), ())


def test_what_templates_call_is_a_step() -> None:
    called = state(
        planned(),
        entry("step-called", step="s/1", function="f", arguments={"x": 1}),
        entry("step-finished", step="s/1", result=2),
    )
    assert called.called == {"s/1": Step("s/1", "f", {"x": Value(1)})}
    assert called.results == {"s/1": 2}


def test_refused_proposals_are_kept_until_one_runs() -> None:
    refused = entry("refused", plan=plan_to_json(Plan("wrong")), findings=[{"message": "empty", "step": None}])
    twice = state(refused, refused)
    assert [str(refusal.findings[0]) for refusal in twice.refused] == ["empty", "empty"]
    assert (twice.proposals, state(refused, planned(), entry("approved")).refused) == (2, ())
    assert state(planned(), {**refused, "ran": True}).proposals == 1
    assert not state(planned(), {**refused, "ran": True}).pending


def test_a_plan_that_was_used_again_is_no_proposal() -> None:
    assert state({**planned(), "reused": True}).proposals == 0
    assert state(planned(), entry("approved")).approved
    assert not state(planned(), entry("approved"), planned()).approved


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [{}],
        [{"version": 1, "at": "", "type": "plan"}],
        [START, {"version": 1, "type": "plan", "plan": 5}],
        [START, entry("step-finished", step="nowhere", result=1)],
        [START, entry("step-finished", step="s/x/y", result=1)],
        [START, {"version": "1", "type": "approved"}],
        [START, {"version": 1, "type": "approved"}],
        [START, entry("outcome", kind="nothing")],
        [START, {**entry("approved"), "used": 3}],
        [START, {**entry("approved"), "type": []}],
        [{**START, "budget": {"nothing": 1}}],
    ],
)
def test_what_no_run_writes_is_damage(entries: list[Any]) -> None:
    with pytest.raises(StoreDamaged):
        RunState.of(entries)


def test_a_newer_version_is_told_and_unknown_types_are_passed_over() -> None:
    with pytest.raises(StoreError, match="version 2"):
        RunState.of([START, {"version": JOURNAL_VERSION + 1, "at": "", "type": "plan"}])
    assert state(entry("of tomorrow")).state == "running"  # type: ignore[arg-type]


async def test_an_answer_is_journalled_as_a_whole() -> None:
    store = MemoryRunStore()
    answer = Answer("a [1]", (Citation(1, "n", None, "q"),), {"v": 1}, ("mind",))
    run = await Kernel(run_store=store).run_goal("g", planner=ScriptedPlanner(answer))
    assert RunState.of(await store.read(run.name)).outcome == answer


async def test_what_the_application_wants_to_know_again_is_in_the_journal() -> None:
    kernel = Kernel(run_store=MemoryRunStore())
    assert kernel.run_store is not None
    without = await kernel.run_goal("g", planner=ScriptedPlanner(Answer("a")))
    assert RunState.of(await kernel.run_store.read(without.name)).origin == {}
    kernel.origin = {"folder": "/here"}
    run = await kernel.run_goal("g", planner=ScriptedPlanner(Answer("a")))
    assert RunState.of(await kernel.run_store.read(run.name)).origin == {"folder": "/here"}


async def test_the_state_of_a_held_run_names_the_step() -> None:
    @function
    async def f() -> None: ...

    async def hold(context: object, proceed: object) -> Any:
        return RequireApproval("Look.")

    kernel = Kernel(run_store=MemoryRunStore())
    kernel.add_function(f)
    kernel.middleware.step.append(hold)
    run = await kernel.run_plan(Plan("g", (Step("s", "f"),)))
    assert kernel.run_store is not None
    held = RunState.of(await kernel.run_store.read(run.name))
    assert (held.state, held.step, held.reason) == ("held", "s", "Look.")
