"""A plan that a function runs, as a step: its steps are steps of the pursuit, inside of that one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from portico.calls import INNER_PLAN, InnerPlan
from portico.plans.json_form import plan_to_json
from portico.plans.task import StepStarted
from portico.pursuits.checking import sound, with_fingerprints
from portico.pursuits.reviewing import reviewed
from portico.pursuits.running import HeldStep

if TYPE_CHECKING:
    from portico.plans.plan import Plan, Step
    from portico.pursuits.execution import Execution

__all__ = ["PlanStep"]


class PlanStep:
    """One call of a function that runs a plan.

    The function is called as any other, with its filters; what it does then comes back here. A plan that an earlier
    process began is gone on with as it was then, also where the function has another one by now. It is checked, and
    goes through the plan filters, before it runs; who lets it through is not asked again.
    """

    def __init__(self, execution: Execution, step: Step, plan: Plan, attempts: int | None) -> None:
        past = execution.past
        self._execution = execution
        self._step = step
        self._plan = plan if past is None else past.inner.get(step.id, plan)
        self._attempts = attempts

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call the function with JSON arguments and return its JSON result."""
        execution, step = self._execution, self._step
        if execution.listener is not None:
            execution.tell(StepStarted(step, arguments))
        if execution.journal is not None:
            written = plan_to_json(with_fingerprints(execution.kernel, self._plan))
            await execution.note("step-started", step=step.id, arguments=arguments, plan=written)
        token = INNER_PLAN.set(InnerPlan(execution.kernel, execution.kernel.function(name).full_name, self._run))
        try:
            work = execution.kernel.invoke_json(name, arguments)
            return await execution.bounded(work, step, step.seconds)
        finally:
            INNER_PLAN.reset(token)

    async def _run(self, given: Any) -> Any:
        execution, step, plan = self._execution, self._step, self._plan
        within = f"{step.id}/"
        finished = execution.finished
        ended = {child.id: child for child in plan.steps if within + child.id in finished}
        execution.warnings += sound(execution.kernel, plan, input=given, ended=ended)
        execution.take(plan, step)
        if execution.past is None or step.id not in execution.past.reviewed:
            hold = await reviewed(execution.kernel, plan, execution.run)
            if hold is not None:
                raise HeldStep(step, hold)
            if execution.kernel.middleware.plan:
                await execution.note("approved", step=step.id)
        return await execution.nested(step, plan, given, self._attempts)
