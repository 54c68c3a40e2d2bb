"""Carrying out the steps of a pursuit: filters around, tried again where that may help, journalled, told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from portico.calls import CURRENT_STEP
from portico.errors import FunctionNotFound, LimitExceeded, PlanError, StepFailed
from portico.middleware import RequireApproval, StepRun, run_middleware
from portico.plans.evaluation import evaluate
from portico.plans.plan import INPUT, Plan, PlanTemplate, Step
from portico.plans.task import (
    Budget,
    Event,
    StepFailure,
    StepFinished,
    StepHeld,
    StepRecord,
    StepRetried,
    StepStarted,
)
from portico.pursuits.failures import failure_of
from portico.pursuits.journal import RunState, entry
from portico.pursuits.retrying import may_pass, pause
from portico.pursuits.running import Broken, HeldStep, run_steps

if TYPE_CHECKING:
    from portico.kernel import Kernel
    from portico.pursuits.recording import Recording
    from portico.pursuits.writing import Journal

__all__ = ["Execution", "count_steps"]

_SCALARS = (str, int, bool, type(None))


@dataclass(slots=True)
class Execution:
    """The steps of one pursuit: those that were run, and how further ones are."""

    kernel: Kernel
    run: str
    budget: Budget
    journal: Journal | None = None
    listener: Callable[[Event], None] | None = None
    records: list[StepRecord] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    """The results of the steps of its plans, and the input; those inside of nested plans are not there."""
    past: RunState | None = None
    """What an earlier process left in the journal."""
    warnings: list[str] = field(default_factory=list)
    """What is to be said with the answer."""
    recording: Recording | None = None
    """What the runner records, where it is durable."""
    promised: int = 0
    """The steps that were run, and those of what runs now that may be."""
    _inner: dict[str, Plan | None] = field(default_factory=dict)

    @property
    def finished(self) -> frozenset[str]:
        """The steps of earlier processes that have a result, in the journal or in the runner's record."""
        recorded = self.recording.finished if self.recording is not None else ()
        return frozenset((*(self.past.results if self.past is not None else ()), *recorded))

    async def plan(self, plan: Plan) -> list[StepFailed]:
        """Run what has no result of a plan and return the failures; a hold is raised as `HeldStep`."""
        self.promised = len(self.records)
        try:
            self.take(plan)
        except Broken as stop:
            raise stop.error from None
        return await self._steps(plan, self.results, self.step)

    def take(self, more: Plan | int, within: Step | None = None) -> None:
        """Count further steps, or those of a plan that have not ended; raises what is `Broken` beyond the budget."""
        if isinstance(more, Plan):
            ended = {record.step.id for record in self.records}
            more = count_steps(more, ended, "" if within is None else f"{within.id}/")
        self.promised += more
        if self.promised > self.budget.steps:
            who = "The pursuit" if within is None else f"With what the step {within.id} calls, the pursuit"
            limit = f"{who} would run more than its {self.budget.steps} steps. Allow more with the budget's steps."
            raise Broken(LimitExceeded(limit))

    async def _steps(
        self,
        plan: Plan,
        results: dict[str, Any],
        execute: Callable[[Step, dict[str, Any]], Awaitable[Any]],
        within: str = "",
    ) -> list[StepFailed]:
        earlier = self._failed_before(plan, within) if self.past is not None else {}
        failures = await run_steps(plan, results, execute, failed=earlier)
        if failures:
            await self._tell_unbegun(plan, failures, within)
        for step_id, message in earlier.items():
            cause = failure_of(message)
            failures.append(StepFailed(step_id, cause))
            failures[-1].__cause__ = cause
        return failures

    def _failed_before(self, plan: Plan, within: str) -> dict[str, str]:
        """Return the steps of a plan that an earlier process saw fail, with what it saw."""
        assert self.past is not None  # noqa: S101 - only asked where there is one
        own = {f"{within}{step.id}": step.id for step in plan.steps}
        return {
            own[record.step.id]: record.error
            for record in self.past.records
            if record.error is not None and record.step.id in own
        }

    async def _tell_unbegun(self, plan: Plan, failures: list[StepFailed], within: str) -> None:
        """Record the steps whose arguments could not be made: they never began; the planner must see why."""
        steps = {f"{within}{step.id}": step for step in plan.steps}
        known = {record.step.id for record in self.records}
        for failure in failures:
            failed = f"{within}{failure.step}"
            if failed not in known:
                await self._failed(replace(steps[failed], id=failed), failure.__cause__ or failure)

    async def step(self, step: Step, arguments: dict[str, Any], attempts: int | None = None) -> Any:
        """Carry out one step, whatever it is, and return its JSON result.

        ``attempts`` are those of the step that it is inside of, for a step that says nothing itself.
        """
        try:
            if self.kernel.middleware.step:
                result = await self._filtered(step, arguments, attempts)
            else:
                result = await self._begun(step, arguments, attempts)
            if self.journal is not None and type(result) not in _SCALARS:
                result = _as_json(result, step)
        except HeldStep as held:
            # A hold inside of this step is that step's.
            if held.step is step:
                await self.note("step-held", step=step.id, reason=held.hold.reason)
                self.tell(StepHeld(step, held.hold.reason))
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody stopped this step: something that it waited for was cancelled, and that is its failure.
            failure = PlanError(f"{_called(step)} was cancelled from within: what it waited for was.")
            await self._failed(step, failure)
            raise failure from error
        except Exception as error:
            await self._failed(step, error)
            raise
        if self.journal is not None:
            if self.recording is not None and step.id in self.recording.taken:
                await self.note("step-finished", step=step.id, result=result, recorded=True)
            else:
                await self.note("step-finished", step=step.id, result=result)
        self.records.append(StepRecord(step, result))
        if self.listener is not None:
            self.tell(StepFinished(step, result))
        return result

    async def _failed(self, step: Step, error: BaseException) -> None:
        message = str(error) or type(error).__name__
        await self.note("step-failed", step=step.id, error=message)
        self.records.append(StepRecord(step, error=message))
        self.tell(StepFailure(step, message))

    async def _filtered(self, step: Step, arguments: dict[str, Any], attempts: int | None) -> Any:
        # What it changes inside of them is the plan's, or another step's result.
        context = StepRun(step, self.run, _copied(arguments))
        begun = False

        async def final() -> Any:
            nonlocal begun
            if begun and not self._repeatable(step):
                raise PlanError(
                    f"A step filter may proceed once only with the step {step.id}: what it does would happen twice."
                )
            begun = True
            if self.journal is not None:
                _as_json(context.arguments, step, "the arguments that a filter left")
            return await self._begun(step, context.arguments, attempts)

        result = await run_middleware(self.kernel.middleware.step, context, final)
        if isinstance(result, RequireApproval):
            raise HeldStep(step, result)
        return result

    async def _begun(self, step: Step, arguments: dict[str, Any], attempts: int | None) -> Any:
        # Only now, with the arguments it is given: a step that waits for its filters has not begun.
        function = step.function
        if type(function) is str:
            inner = self._plan_of(function)
            if inner is None:
                if self.past is not None and step.id in self.past.inner:
                    # What it did then is part of that plan; the whole again would do it twice.
                    raise PlanError(
                        f"When the step {step.id} began, {function} ran a plan, which it does no more. Give its result."
                    )
                return await self._call(step, function, arguments, attempts)
            from portico.pursuits.inner import PlanStep

            return await PlanStep(self, step, inner, step.attempts or attempts).call(function, arguments)
        if self.listener is not None:
            self.tell(StepStarted(step, arguments))
        if self.journal is not None:
            await self.note("step-started", step=step.id, arguments=arguments)
        attempts = step.attempts or attempts
        if isinstance(function, Plan):
            work = self.nested(step, function, arguments, attempts)
        else:
            from portico.pursuits.templates import TemplateStep

            assert isinstance(function, PlanTemplate)  # noqa: S101 - what a step's function is by its type
            work = TemplateStep(self, step, attempts).render(function, arguments)
        return await self.bounded(work, step, step.seconds)

    async def _call(self, step: Step, name: str, arguments: dict[str, Any], attempts: int | None) -> Any:
        if self.listener is not None:
            self.tell(StepStarted(step, arguments))
        if self.recording is not None and step.id in self.recording.finished:
            return self.recording.take(step.id)
        if self.journal is not None:
            await self.note("step-started", step=step.id, arguments=arguments, **self._marks(name))
        attempts = step.attempts or attempts or self.budget.step_attempts
        attempt = 1
        while True:
            try:
                return await self._attempt(step, name, arguments, attempt)
            except Exception as error:
                if attempt >= attempts or not self._again(name, error):
                    raise
                seconds = pause(attempt, error)
                attempt += 1
                message = str(error) or type(error).__name__
                await self.note("step-retried", step=step.id, error=message, attempt=attempt)
                self.tell(StepRetried(step, message, attempt, seconds))
            await asyncio.sleep(seconds)

    async def _attempt(self, step: Step, name: str, arguments: dict[str, Any], attempt: int) -> Any:
        seconds = self.budget.step_seconds if step.seconds is None else step.seconds
        runner = self.kernel.runner
        token = CURRENT_STEP.set((self.run, step.id, attempt))
        try:
            if seconds is None and runner is None:
                return await self.kernel.invoke_json(name, arguments)

            async def action() -> Any:
                return await self.bounded(self.kernel.invoke_json(name, arguments), step, seconds)

            if self.recording is not None:
                return await self.recording.step(step.id, action)
            return await (action() if runner is None else runner.execute(self.run, step.id, action))
        finally:
            CURRENT_STEP.reset(token)

    def _again(self, name: str, error: Exception) -> bool:
        return (may_pass(error) or isinstance(error, _TooLong)) and not self._effects(name)

    def _effects(self, name: str) -> bool:
        try:
            return self.kernel.function(name).effects
        except FunctionNotFound:
            return False

    def _may_have_effects(self, function: str | Plan | PlanTemplate) -> bool:
        if isinstance(function, Plan):
            return any(self._may_have_effects(step.function) for step in function.steps)
        return not isinstance(function, str) or self._effects(function)

    def _repeatable(self, step: Step) -> bool:
        function = step.function
        return isinstance(function, str) and self._plan_of(function) is None and not self._effects(function)

    def _plan_of(self, name: str) -> Plan | None:
        """Return the plan that a function runs, if it does."""
        if name not in self._inner:
            from portico.plans.plan_functions import plan_of

            try:
                self._inner[name] = plan_of(self.kernel.function(name))
            except FunctionNotFound:
                self._inner[name] = None
        return self._inner[name]

    async def bounded(self, work: Awaitable[Any], step: Step, seconds: float | None) -> Any:
        """Wait for the work of a step for so many seconds, or for as long as it takes."""
        if seconds is None:
            return await work
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                return await work
        except TimeoutError as error:
            if not deadline.expired():
                raise
            known = " Whether it happened is not known." if self._may_have_effects(step.function) else ""
            raise _TooLong(f"The step {step.id} did not end within its {seconds:g} seconds.{known}") from error

    def _marks(self, name: str) -> Mapping[str, Any]:
        """Return what the journal must know of a function to judge later what became of a step."""
        return {"effects": True} if self._effects(name) else {}

    async def nested(self, step: Step, plan: Plan, input: Any, attempts: int | None) -> Any:
        """Run the plan that a step is, or that its function runs, and return its result."""
        within = f"{step.id}/"
        results: dict[str, Any] = {INPUT: input}
        if self.past is not None:
            finished = self.past.results
            results |= {child.id: finished[within + child.id] for child in plan.steps if within + child.id in finished}

        async def inner(child: Step, arguments: dict[str, Any]) -> Any:
            return await self.step(replace(child, id=within + child.id), arguments, attempts)

        failures = await self._steps(plan, results, inner, within)
        if failures:
            cause = failures[0].__cause__ or failures[0]
            raise StepFailed(f"{within}{failures[0].step}", cause) from cause
        return evaluate(plan.result, results) if plan.result is not None else None

    def tell(self, event: Event) -> None:
        """Emit what happens to a step, which a listener that raises does not make a failure."""
        if self.listener is None:
            return
        try:
            self.listener(event)
        except Exception as error:
            raise Broken(error) from error

    async def note(self, type: Any, /, **body: Any) -> None:
        """Write an entry to the journal, if there is one; it is durable on return."""
        if self.journal is not None:
            await self.journal.write(entry(type, **body))


class _TooLong(LimitExceeded):
    """An attempt's own time-out."""


def _as_json(value: Any, step: Step, what: str = "its result") -> Any:
    """Return a value as it will be read from the journal: a step goes on with the same, fresh or resumed."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise PlanError(
            f"{_called(step)}: {what} cannot be kept in the journal, for it is not JSON: {error}"
        ) from error


def _called(step: Step) -> str:
    return step.function if isinstance(step.function, str) else f"the step {step.id}"


def _copied(value: Any) -> Any:
    """Copy a JSON value."""
    if type(value) is dict:
        return {name: _copied(member) for name, member in value.items()}
    return [_copied(item) for item in value] if type(value) is list else value


def count_steps(plan: Plan, ended: set[str] | frozenset[str] = frozenset(), within: str = "") -> int:
    """Count the steps of a plan that have not ended, and those of the plans nested in them."""
    return sum(
        1 + (count_steps(step.function, ended, f"{within}{step.id}/") if isinstance(step.function, Plan) else 0)
        for step in plan.steps
        if within + step.id not in ended
    )
