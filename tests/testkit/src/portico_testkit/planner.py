"""What every Planner must do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, get_args

import pytest

from portico import Kernel
from portico.errors import LimitExceeded, PlanError, PlanInvalid, PorticoError, StepFailed
from portico.plans import Answer, Budget, Infeasible, Plan, RunEvent, Task, check_plan, plan_from_json, plan_to_json
from portico.ports import Planner
from portico_testkit._failing import fails_as
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import give_up, no_tasks_but, still_answers

__all__ = ["PlannerKit"]

Proposal: TypeAlias = Plan | Answer | Infeasible

_EVENTS = get_args(RunEvent)
_BUDGET = Budget(seconds=60)
_ODD_GOALS = (
    "?",
    '{"goal": "}',
    "<plan/> <function.X/> ]]> &lt;",
    "{{$input}} {{Plugin-Function}} %s {0} \\",
    "\u202eשלום\u202c \x00\x1b[31m",
    "line\r\n\r\nline\ttab",
    "word " * 20_000,
)


class PlannerKit:
    """Subclass it and give fixtures named ``planner``, ``kernel`` and ``goal``::

        class TestAcmePlanner(PlannerKit):
            @pytest.fixture
            def kernel(self) -> Kernel:
                kernel = Kernel()
                kernel.add_plugin(Weather)
                return kernel

            @pytest.fixture
            def planner(self, kernel: Kernel) -> AcmePlanner:
                return AcmePlanner(AcmeSettings(), FixedServices({ChatService: ScriptedChat("…")}))

            @pytest.fixture
            def goal(self) -> str:
                return "What will the weather be?"

    The kernel holds the functions with which the goal can be reached. Services that the planner asks must give
    the same answer to the same question: give a scripted one that makes it from the request. A fixture
    ``failing_planner`` gives one that stands on something that fails: a chat service that is away, a file that is gone.
    """

    @pytest.fixture
    def failing_planner(self) -> Planner | None:
        """Nothing, for a planner that stands on nothing."""
        return None

    @pytest.mark.asyncio
    async def test_name_is_filled(self, planner: Planner) -> None:
        assert isinstance(planner.name, str), f"the name is {planner.name!r}, not a str"
        assert planner.name.strip(), "the name is empty"

    @pytest.mark.asyncio
    async def test_a_first_plan_passes_the_check(self, planner: Planner, kernel: Kernel, goal: str) -> None:
        proposal = await _propose(planner, _task(kernel, goal))
        if isinstance(proposal, Plan):
            findings = check_plan(
                proposal, kernel.specs, templates=lambda source, language: kernel.template(source, language=language)
            )
            assert findings == [], f"the first plan is refused: {'; '.join(map(str, findings))}"

    @pytest.mark.asyncio
    async def test_a_plan_survives_its_json_form(self, planner: Planner, kernel: Kernel, goal: str) -> None:
        proposal = await _propose(planner, _task(kernel, goal))
        if isinstance(proposal, Plan):
            text = json.dumps(plan_to_json(proposal), allow_nan=False)
            assert plan_from_json(json.loads(text)) == proposal, "the plan is another after its JSON form"

    @pytest.mark.asyncio
    async def test_interleaved_tasks_do_not_mix(self, planner: Planner, kernel: Kernel, goal: str) -> None:
        stages = await _stages(planner, kernel, goal)
        tasks = [*stages, *(replace(stage, goal=f"{goal} (of another)") for stage in stages)]
        alone = [await _or_plan_error(_propose(planner, task)) for task in tasks]
        together = await asyncio.gather(*(_or_plan_error(_propose(planner, task)) for task in tasks))
        assert together == alone, "proposals are others when tasks come at the same time"
        backwards = [await _or_plan_error(_propose(planner, task)) for task in reversed(tasks)]
        assert backwards[::-1] == alone, "proposals are others when tasks come in another order"

    @pytest.mark.asyncio
    async def test_without_functions_it_ends(self, planner: Planner, goal: str) -> None:
        try:
            run = await Kernel().run_goal(goal, planner=planner, budget=_BUDGET)
        except PlanInvalid as error:
            raise AssertionError(f"without functions it goes on proposing until it is refused: {error}") from error
        except StepFailed as error:
            raise AssertionError(f"without functions it runs steps: {error}") from error
        except PlanError as error:
            assert len(str(error)) > 10, f"without functions it fails and says {str(error)!r} only"
        else:
            assert isinstance(run.outcome, Answer | Infeasible), f"it ended with {run.outcome}"

    @pytest.mark.asyncio
    async def test_the_second_plan_takes_no_id_of_a_step_that_ran(
        self, planner: Planner, kernel: Kernel, goal: str
    ) -> None:
        for task in (await _stages(planner, kernel, goal))[1:]:
            for steps in (task.steps, tuple(replace(record, result=None, error="down") for record in task.steps)):
                proposal = await _or_plan_error(_propose(planner, replace(task, steps=steps)))
                if isinstance(proposal, Plan):
                    taken = {record.step.id for record in steps} & {step.id for step in proposal.steps}
                    assert not taken, f"the second plan has steps {', '.join(sorted(taken))}, which ran before"

    @pytest.mark.asyncio
    @pytest.mark.parametrize("odd", _ODD_GOALS, ids=range(len(_ODD_GOALS)))
    async def test_any_text_may_be_a_goal(self, planner: Planner, kernel: Kernel, odd: str) -> None:
        proposal = await _or_plan_error(_propose(planner, _task(kernel, odd)))
        if isinstance(proposal, Plan):
            assert plan_from_json(plan_to_json(proposal)) == proposal

    @pytest.mark.asyncio
    async def test_a_run_ends_within_the_budget(self, planner: Planner, kernel: Kernel, goal: str) -> None:
        run = await kernel.run_goal(goal, planner=planner, budget=_BUDGET, emit=_checked)
        assert isinstance(run.outcome, Answer), f"it ended with {run.outcome}"
        assert run.outcome.text.strip(), "the answer is empty"
        assert run.planner == planner.name

    @pytest.mark.asyncio
    async def test_failing_steps_do_not_make_it_go_on_for_ever(
        self, planner: Planner, kernel: Kernel, goal: str
    ) -> None:

        async def fail(context: object, proceed: object) -> Any:
            raise ConnectionError("nothing works today")

        kernel.middleware.function.append(fail)
        counted = _Counted(planner)
        try:
            run = await kernel.run_goal(goal, planner=counted, budget=_BUDGET)
            assert isinstance(run.outcome, Answer | Infeasible), f"it ended with {run.outcome}"
        except PorticoError as error:
            assert not isinstance(error, LimitExceeded), f"it went on although every step failed: {error}"
        assert counted.proposals < _BUDGET.proposals, "it went on to the last proposal although every step failed"

    @pytest.mark.asyncio
    async def test_a_cancelled_proposal_leaves_it_usable(self, planner: Planner, kernel: Kernel, goal: str) -> None:
        for task in await _stages(planner, kernel, goal):
            expected = await _propose(planner, task)
            tasks = asyncio.all_tasks()
            for moments in range(6):
                await give_up(partial(_propose, planner, task), turns=moments)
                await no_tasks_but(tasks)
                again = await still_answers(_propose(planner, task))
                assert again == expected, f"cancelled after {moments} moments it proposes something else"

    @pytest.mark.asyncio
    async def test_a_proposal_leaves_the_event_loop_free(self, planner: Planner, kernel: Kernel, goal: str) -> None:
        stages = await _stages(planner, kernel, goal)

        async def propose(number: int) -> None:
            for stage in stages:
                await _or_plan_error(_propose(planner, replace(stage, goal=f"{goal} (time {number + 1})")))
                await asyncio.sleep(0)

        await leaves_the_event_loop_free(propose)

    @pytest.mark.asyncio
    async def test_what_it_stands_on_fails_as_an_error_of_ours(
        self, failing_planner: Planner | None, kernel: Kernel, goal: str
    ) -> None:
        if failing_planner is None:
            pytest.skip("there is no fixture `failing_planner`: nothing stands behind the planner that could fail")
        await fails_as(PorticoError, kernel.run_goal(goal, planner=failing_planner, budget=_BUDGET), "a run")


def _task(kernel: Kernel, goal: str) -> Task:
    return Task(goal, tuple(kernel.specs.values()), budget=_BUDGET)


def _checked(event: RunEvent) -> None:
    assert isinstance(event, _EVENTS), f"{event!r} was emitted, which is no event"


async def _propose(planner: Planner, task: Task) -> Proposal:
    proposal = await planner.propose(task, emit=_checked)
    assert isinstance(proposal, Plan | Answer | Infeasible), f"{proposal!r} is no Plan, Answer or Infeasible"
    return proposal


async def _or_plan_error(proposing: Awaitable[Proposal]) -> Proposal | None:
    try:
        return await proposing
    except PlanError:
        return None


async def _stages(planner: Planner, kernel: Kernel, goal: str) -> list[Task]:
    """Return the tasks of a run's first two proposals, as the loop would give them."""
    first = _task(kernel, goal)
    proposal = await _propose(planner, first)
    if not isinstance(proposal, Plan):
        return [first]
    run = await kernel.run_goal(goal, planner=_Replay(replace(proposal, result=None)), budget=_BUDGET)
    return [first, replace(first, steps=run.steps, notes=proposal.notes)]


class _Replay(Planner):
    """Propose one plan, then end."""

    name = "replay"

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    async def propose(self, task: Task, *, emit: Any) -> Proposal:
        return Answer("") if task.steps else self._plan


class _Counted(Planner):
    """Count the proposals of another planner."""

    def __init__(self, planner: Planner) -> None:
        self.name = planner.name
        self.proposals = 0
        self._planner = planner

    async def propose(self, task: Task, *, emit: Any) -> Proposal:
        self.proposals += 1
        return await self._planner.propose(task, emit=emit)
