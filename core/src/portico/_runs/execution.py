"""Runs the steps of a plan."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from portico._functions.middleware import CURRENT_STEP, INNER_PLAN, InnerPlan, RequireApproval, StepRun, run_middleware
from portico._plans.json_form import plan_to_json
from portico._plans.plan import INPUT, Plan, PlanTemplate, Step, Value, evaluate
from portico._plans.task import Budget, Event, RunEvent, StepRecord
from portico._prompts.calling import json_caller
from portico._runs.checking import reviewed, sound, with_fingerprints
from portico._runs.journal import RunState, entry
from portico._runs.writing import Broken, PausedStep, run_steps
from portico.errors import (
    FunctionFailed,
    FunctionNotFound,
    LimitExceeded,
    PlanError,
    PorticoError,
    RateLimited,
    ServiceTimeout,
    ServiceUnavailable,
    StepFailed,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from portico._functions.functions import Function
    from portico._kernel_like import KernelLike
    from portico._runs.recording import Recording
    from portico._runs.writing import Journal


class TemplateStep:
    """One rendering of a template step.

    Its calls are numbered in the order in which they are made: ``s1/1``, ``s1/2``. A run that is continued renders
    again; a call of the same function with the same arguments as one of the journal is that one: what it gave is
    given again, and what it had begun runs under its old number. Equal calls are taken in their order.
    """

    def __init__(self, execution: Execution, step: Step, attempts: int | None) -> None:
        self._execution = execution
        self._step = step
        self._attempts = attempts
        self._recorded: dict[str, list[tuple[Step, StepRecord | None]]] = {}
        self._calls = 0
        self._running = 0
        self._idle = asyncio.Event()
        self._held: PausedStep | None = None
        self._read_past()

    async def render(self, template: PlanTemplate, arguments: dict[str, Any]) -> str:
        """Return the text; raises what the language does, and what a call does."""
        kernel = self._execution.kernel
        compiled = kernel.template(template.source, language=template.language, name=self._step.id)
        variables = dict(arguments)
        text = await compiled.render(variables, call=json_caller(kernel, self._call, variables))
        if self._held is not None:  # A language may go on without a function that did not answer.
            raise self._held
        return str.__str__(text)

    def _call(self, function: Function, arguments: dict[str, Any]) -> Awaitable[Any]:
        # The number is given when the call is made, before anything is awaited: so it is the same each time.
        known = self._recorded.get(_key(function.full_name, arguments))
        if known:
            step, record = known.pop(0)
            if record is not None:
                return _answer(record)
        else:
            self._calls += 1
            written = {name: Value(value) for name, value in arguments.items()}
            step = Step(f"{self._step.id}/{self._calls}", function.full_name, written)
            if self._execution.journal is not None:
                # With its first write: no plan tells what this step is.
                body = {"step": step.id, "function": function.full_name, "arguments": arguments}
                self._execution.journal.add(entry("step-called", **body))
        return self._carry_out(step, arguments)

    async def _carry_out(self, step: Step, arguments: dict[str, Any]) -> Any:
        execution = self._execution
        if self._held is not None:
            raise self._held
        execution.take(1, self._step)
        self._running += 1
        stop: BaseException
        try:
            return await execution.step(step, arguments, self._attempts)
        except PausedStep as held:
            stop = self._first_held(held)
        except Exception as error:  # noqa: BLE001 - raised below
            stop = error
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()
        # Raised at once it would stop the calls beside it; they come to their end, so that nothing is lost.
        while self._running:
            self._idle.clear()
            await self._idle.wait()
        raise stop

    def _first_held(self, held: PausedStep) -> PausedStep:
        if self._held is None:
            self._held = held
        return self._held

    def _read_past(self) -> None:
        past = self._execution.past
        if past is None:
            return
        ended = {record.step.id: record for record in past.records}
        # its own Those: what it calls may run a plan with a template in it.
        calls = [step for step_id, step in past.called.items() if step_id.rpartition("/")[0] == self._step.id]
        for step in sorted(calls, key=_number):
            arguments = {name: value.value for name, value in step.arguments.items() if isinstance(value, Value)}
            recorded = self._recorded.setdefault(_key(str(step.function), arguments), [])
            recorded.append((step, ended.get(step.id)))
            self._calls = max(self._calls, _number(step))


async def _answer(record: StepRecord) -> Any:
    if record.error is not None:
        # In the words of the first time: what the template fails of must not depend on who has run it.
        raise failure_of(record.error)
    return record.result


def _number(step: Step) -> int:
    return int(step.id.rpartition("/")[2])


def _key(function: str, arguments: dict[str, Any]) -> str:
    return json.dumps([function, arguments], sort_keys=True)


_STEP_FAILED = re.compile(r"Step (.+?) failed: (.*)", re.DOTALL)


def failure_of(message: str) -> PlanError:
    """Return the error that a message of the journal tells of.

    That a step inside failed is a `StepFailed` again, so that who adds the steps around it says no sentence twice.

    >>> str(StepFailed("a", failure_of("Step a/b, step c failed: no")))
    'Step a/b, step c failed: no'
    """
    found = _STEP_FAILED.fullmatch(message)
    if found is None:
        return PlanError(message)
    steps, reason = found.groups()
    error = PlanError(reason)
    for step in reversed(steps.split(", step ")):
        error = StepFailed(step, error)
    return error


FIRST_PAUSE = 0.5
"""Seconds before the second attempt; each further pause is twice as long."""
LONGEST_PAUSE = 60.0


def may_pass(error: Exception) -> bool:
    """Tell whether a function that failed so may succeed when it is called again with the same arguments.

    >>> may_pass(ServiceUnavailable("down")), may_pass(PorticoError("no such function"))
    (True, False)

    A service that asks for more patience than `LONGEST_PAUSE` is not asked again. What a function raises that is
    no ``PorticoError`` comes as ``FunctionFailed``, and may be anything.
    """
    if isinstance(error, RateLimited):
        return error.retry_after is None or error.retry_after <= LONGEST_PAUSE
    if isinstance(error, FunctionFailed):
        return not isinstance(error.__cause__, PorticoError)
    return isinstance(error, ServiceUnavailable | ServiceTimeout)


def pause(attempt: int, error: Exception) -> float:
    """Return the seconds to wait after a failed ``attempt``, counted from 1.

    >>> [pause(attempt, ServiceUnavailable("down")) for attempt in (1, 2, 3, 100)]
    [0.5, 1.0, 2.0, 60.0]
    >>> pause(1, RateLimited("slowly", retry_after=7))
    7
    """
    if isinstance(error, RateLimited) and error.retry_after is not None:
        return max(error.retry_after, 0)
    # The exponent is bounded too: a hundred attempts may be asked for, and floats end at 2**1024.
    return float(min(FIRST_PAUSE * 2 ** min(attempt - 1, 20), LONGEST_PAUSE))


_SCALARS = (str, int, bool, type(None))


@dataclass(slots=True)
class Execution:
    """The steps of one run: those that were run, and how further ones are."""

    kernel: KernelLike
    run: str
    budget: Budget
    journal: Journal | None = None
    listener: Callable[[RunEvent], None] | None = None
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
        """Run what has no result of a plan and return the failures; a hold is raised as `PausedStep`."""
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
            who = "The run" if within is None else f"With what the step {within.id} calls, the run"
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
        except PausedStep as held:
            # A hold inside of this step is that step's.
            if held.step is step:
                await self.note("step-held", step=step.id, reason=held.hold.reason)
                self.tell(Event.StepPaused(step, held.hold.reason))
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # No one stopped this step: something that it waited for was cancelled, and that is its failure.
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
            self.tell(Event.StepFinished(step, result))
        return result

    async def _failed(self, step: Step, error: BaseException) -> None:
        message = str(error) or type(error).__name__
        await self.note("step-failed", step=step.id, error=message)
        self.records.append(StepRecord(step, error=message))
        self.tell(Event.StepFailed(step, message))

    async def _filtered(self, step: Step, arguments: dict[str, Any], attempts: int | None) -> Any:
        # What it changes inside of them is the plan's, or another step's result.
        context = StepRun(step, self.run, _copied(arguments))
        begun = False

        async def final() -> Any:
            nonlocal begun
            if begun and not self._repeatable(step):
                raise PlanError(
                    f"Step middleware may proceed once only with the step {step.id}: what it does would happen twice."
                )
            begun = True
            if self.journal is not None:
                _as_json(context.arguments, step, "the arguments that a filter left")
            return await self._begun(step, context.arguments, attempts)

        result = await run_middleware(self.kernel.middleware.step, context, final)
        if isinstance(result, RequireApproval):
            raise PausedStep(step, result)
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

            return await PlanStep(self, step, inner, step.attempts or attempts).call(function, arguments)
        if self.listener is not None:
            self.tell(Event.StepStarted(step, arguments))
        if self.journal is not None:
            await self.note("step-started", step=step.id, arguments=arguments)
        attempts = step.attempts or attempts
        if isinstance(function, Plan):
            work = self.nested(step, function, arguments, attempts)
        else:
            assert isinstance(function, PlanTemplate)  # noqa: S101 - what a step's function is by its type
            work = TemplateStep(self, step, attempts).render(function, arguments)
        return await self.bounded(work, step, step.seconds)

    async def _call(self, step: Step, name: str, arguments: dict[str, Any], attempts: int | None) -> Any:
        if self.listener is not None:
            self.tell(Event.StepStarted(step, arguments))
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
                self.tell(Event.StepRetried(step, message, attempt, seconds))
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
            from portico._plans.functions import plan_of

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

    def tell(self, event: RunEvent) -> None:
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
    """Return a value as it will be read from the journal: a step continues with the same, fresh or resumed."""
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


class PlanStep:
    """One call of a function that runs a plan.

    The function is called as any other, with its filters; what it does then comes back here. A plan that an earlier
    process began is continued as it was then, also where the function has another one by now. It is checked, and
    goes through the plan middleware, before it runs; who lets it through is not asked again.
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
            execution.tell(Event.StepStarted(step, arguments))
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
                raise PausedStep(step, hold)
            if execution.kernel.middleware.plan:
                await execution.note("approved", step=step.id)
        return await execution.nested(step, plan, given, self._attempts)
