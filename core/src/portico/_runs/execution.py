"""Runs one plan after the other: steps, nested plans, templates, time limits and attempts."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from portico._chat.passages import CURRENT, Passages
from portico._chat.spending import purse
from portico._functions.functions import RESULTS_TAG
from portico._functions.middleware import CURRENT_STEP, INNER_PLAN, InnerPlan, RequireApproval, StepRun, run_middleware
from portico._plans.functions import plan_of
from portico._plans.json_form import plan_to_json
from portico._plans.plan import (
    INPUT,
    ITEM,
    Each,
    From,
    Plan,
    PlanTemplate,
    Step,
    Value,
    around,
    evaluate,
    evaluate_arguments,
    holds,
    put_together,
    size_of,
)
from portico._plans.task import Budget, Event, RunEvent, StepRecord
from portico._prompts.calling import FunctionCall
from portico._runs.attempts import RunLimit, TooLong, causes, may_pass, pause
from portico._runs.checking import require_valid, review_inner_plan, with_fingerprints
from portico._runs.items import count_items, count_steps, require_list, run_items, warn_of
from portico._runs.journal import RunState, entry
from portico._runs.outcome import copy_json
from portico._runs.scheduling import Broken, PausedStep, run_steps
from portico._runs.spent import Spent, ran
from portico.errors import FunctionNotFound, PlanError, StepFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from portico._functions.functions import Function
    from portico._kernel_like import KernelLike
    from portico._plans.plan import Expression
    from portico._runs.guarding import Guard
    from portico._runs.writing import Journal, Recording


_SCALARS = (str, int, bool, type(None))


@dataclass(slots=True)
class Execution:
    """The steps of one run: those that ended, and how further ones run."""

    kernel: KernelLike
    run: str
    budget: Budget
    journal: Journal | None = None
    listener: Callable[[RunEvent], None] | None = None
    records: list[StepRecord] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    """The input, and the results of the steps of its plans, without those inside nested plans."""
    past: RunState | None = None
    """What an earlier process wrote into the journal."""
    ended: Mapping[str, StepRecord] = field(default_factory=dict)
    """The steps that ended there, by id."""
    warnings: list[str] = field(default_factory=list)
    """The warnings for the answer."""
    recording: Recording | None = None
    passages: Passages = field(default_factory=Passages)
    """The passages in the results of all steps, with their numbers."""
    searched: bool = False
    guard: Guard | None = None
    spent: Spent = field(init=False)
    _inner: dict[str, Plan | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.spent = Spent(self.budget)

    @property
    def finished(self) -> frozenset[str]:
        """The steps of earlier processes that have a result, in the journal or in the runner's record."""
        recorded = self.recording.finished if self.recording is not None else ()
        return frozenset((*(self.past.results if self.past is not None else ()), *recorded))

    async def plan(self, plan: Plan) -> list[StepFailed]:
        """Run the steps of a plan that have no result and return the failures; raises `PausedStep`."""
        self.spent.steps, self.spent.items = ran(self.records)
        try:
            self.count(plan)
        except Broken as stop:
            raise stop.error from None
        token = CURRENT.set(self.passages)
        try:
            return await self._steps(plan, self.results, self.step)
        finally:
            CURRENT.reset(token)

    def count(self, plan: Plan, within: Step | None = None) -> None:
        """Count the steps of a plan that have not ended; raises `Broken` beyond the budget."""
        ended = {record.step.id for record in self.records}
        self.spent.count(count_steps(plan, ended, "" if within is None else f"{within.id}/"), within)

    def evaluate(self, expression: Expression, results: Mapping[str, Any]) -> Any:
        """Return the value of an expression and count what was put together for it."""
        if type(expression) is Value:
            return expression.value
        if type(expression) is From:
            return put_together(expression, results)[0]
        self.spent.spend(0)  # Steps side by side are refused before they take memory.
        value, size = put_together(expression, results)
        self.spent.spend(size)
        return value

    async def _steps(
        self,
        plan: Plan,
        results: dict[str, Any],
        execute: Callable[[Step, dict[str, Any]], Awaitable[Any]],
        within: str = "",
    ) -> list[StepFailed]:
        """Run the steps of a plan. Those that failed in an earlier process fail again without running."""
        earlier: list[StepRecord] = []
        if self.past is not None:
            ids = {f"{within}{step.id}" for step in plan.steps}
            earlier = [record for record in self.past.records if record.error is not None and record.step.id in ids]
        again = [record.step.id.removeprefix(within) for record in earlier]

        async def decide(step: Step, results: dict[str, Any]) -> Any:
            return await self._decide(step, results, execute, within)

        failures = await run_steps(plan, results, execute, self.evaluate, failed=again, decide=decide)
        if failures:
            steps = {step.id: step for step in plan.steps}
            known = {record.step.id for record in self.records}
            for failure in failures:
                if (failed := f"{within}{failure.step}") not in known:
                    # Its arguments could not be made, so it never began. The planner must see why.
                    await self._record_failure(replace(steps[failure.step], id=failed), failure.__cause__ or failure)
        for record in earlier:
            cause = self.failure(record)
            failures.append(StepFailed(record.step.id.removeprefix(within), cause))
            failures[-1].__cause__ = cause
        return failures

    async def step(self, step: Step, arguments: dict[str, Any], attempts: int | None = None) -> Any:
        """Carry out one step of any kind and return its JSON result.

        ``attempts`` are those of the step around it, for a step that does not say its own.
        """
        try:
            if self.kernel.middleware.step:
                result = await self._with_middleware(step, arguments, attempts)
            else:
                result = await self._begin(step, arguments, attempts)
            if self.journal is not None and type(result) not in _SCALARS:
                result = _as_json(result, step)
        except PausedStep as paused:
            # A step inside this one may have paused.
            if paused.step is step:
                await self._note_held(step, paused)
            raise
        except Exception as error:
            await self._record_failure(step, error)
            raise
        recorded = self.recording is not None and step.id in self.recording.taken
        return await self._finish(step, result, **({"recorded": True} if recorded else {}))

    async def _finish(self, step: Step, result: Any, **body: Any) -> Any:
        untrusted: tuple[str, ...] = ()
        if self.guard is not None and step.own:
            untrusted = self.guard.sources(step.id)
            body |= {"untrusted": list(untrusted)} if untrusted else {}
        if self.journal is not None:
            # The results of the items are on record.
            gave = {"result": result} if step.each is None else {"items": len(result)}
            await self.note("step-finished", step=step.id, **gave, **body)
        self.records.append(StepRecord(step, result, untrusted=untrusted))
        self.take(self.records[-1])
        if self.listener is not None:
            self.tell(Event.StepFinished(step, result))
        return result

    async def _decide(
        self,
        step: Step,
        results: dict[str, Any],
        execute: Callable[[Step, dict[str, Any]], Awaitable[Any]],
        within: str,
    ) -> Any:
        """Carry out a step that has a condition or runs for each item of a list; ``within`` is before its id."""
        whole = replace(step, id=f"{within}{step.id}")
        if step.when is not None and not step.decides_by_item and not holds(step.when, results, self.evaluate):
            return await self.skip(whole)
        if step.each is None:
            return await execute(step, evaluate_arguments(step, results, self.evaluate))
        try:
            return await self._for_each(whole, step.each, results, execute, within)
        except Exception as error:
            await self._record_failure(whole, error)
            raise

    async def _for_each(
        self,
        step: Step,
        each: Each,
        results: dict[str, Any],
        execute: Callable[[Step, dict[str, Any]], Awaitable[Any]],
        within: str,
    ) -> list[Any]:
        items = require_list(self.evaluate(each.items, results))
        inner = self._plan_of(step.function) if isinstance(step.function, str) else step.function
        self.spent.count_items(count_items(step.id, len(items), inner, self.ended), step)
        self.tell(Event.StepStarted(step, {}))
        await self.note("step-started", step=step.id, arguments={}, items=len(items))
        if self.guard is not None and inner is None:
            await self._agree_to_all(step, items, results)
        values, failed, bare = dict(results), dict[str, str](), step.id.removeprefix(within)
        when = step.when if step.decides_by_item else None

        async def run(index: int, item: Any) -> Any:
            id = f"{step.id}[{index}]"
            record = self.ended.get(id)
            if record is not None and record.error is None:
                return record.result
            values[ITEM] = item  # Until the next await.
            one = Step(id, step.function, step.arguments, (), step.reason, step.seconds, step.attempts)
            try:
                if record is not None:
                    raise self.failure(record)
                try:
                    if when is not None and not holds(when, values, self.evaluate):
                        return await self.skip(replace(one, when=when))
                    arguments = evaluate_arguments(step, values, self.evaluate)
                except Exception as error:
                    await self._record_failure(one, error)  # It never began.
                    raise
                return await execute(replace(one, id=f"{bare}[{index}]"), arguments)
            except Exception as error:
                spent = (money := purse()) is not None and money.empty
                if each.failed == "stop" or spent or any(isinstance(cause, RunLimit) for cause in causes(error)):
                    raise StepFailed(id, error) from error
                failed[id] = str(error) or type(error).__name__
                return None

        found = await run_items(items, each.at_once, run)
        warnings = warn_of(failed, step.id)
        self.warnings += warnings
        await self._finish(step, found, **({"warnings": warnings} if warnings else {}))
        return found

    async def _agree_to_all(self, step: Step, items: list[Any], results: dict[str, Any]) -> None:
        """Have a person agree to the calls for all items at once, where this is needed."""
        assert self.guard is not None  # noqa: S101 - the caller has one
        every, values = [], dict(results)
        for index, item in enumerate(items):
            values[ITEM] = item
            with suppress(Exception):  # It fails when it is the item's turn.
                holds_now = not step.decides_by_item or step.when is None or holds(step.when, values, self.evaluate)
                if holds_now and f"{step.id}[{index}]" not in self.ended:
                    every.append(evaluate_arguments(step, values, evaluate))
        try:
            agreed = await self.guard.allow_all(step, self.run, every, self.records)
        except PausedStep as paused:
            await self._note_held(step, paused)
            raise
        for flow, value in agreed:
            await self.note("approved", step=step.id, flow=flow, value=value)

    async def _note_held(self, step: Step, paused: PausedStep) -> None:
        await self.note("step-held", step=step.id, reason=paused.hold.reason)
        self.tell(Event.StepPaused(step, paused.hold.reason))

    async def skip(self, step: Step) -> None:
        """Write down that the condition of a step does not hold."""
        await self.note("step-finished", step=step.id, result=None, skipped=True)
        self.records.append(StepRecord(step, skipped=True))
        self.tell(Event.StepSkipped(step))

    def failure(self, record: StepRecord) -> PlanError:
        """Return the error of a step that failed in an earlier process."""
        return PlanError(record.error) if self.past is None else self.past.failure(record)

    def take(self, record: StepRecord) -> None:
        """Give numbers to the passages in a step's result, for a list in the order of its items."""
        if type(record.result) not in (list, dict) or record.step.id.endswith("]"):
            return
        function = record.step.function if isinstance(record.step.function, str) else ""
        spec = self.kernel.specs.get(function)
        found = spec is not None and RESULTS_TAG in spec.tags
        if function and not found and (spec is None or not spec.is_search):
            return  # what it returns is no passage, whatever its form
        every = (record.result,) if record.step.each is None else record.result
        for result in (each for each in every if type(each) in (list, dict)):
            taken = self.passages.take(result, found=found, name=function.partition("-")[0])
            self.searched |= found or bool(taken)

    async def _record_failure(self, step: Step, error: BaseException) -> None:
        message = str(error) or type(error).__name__
        await self.note("step-failed", step=step.id, error=message)
        self.records.append(StepRecord(step, error=message))
        self.tell(Event.StepFailed(step, message))

    async def _with_middleware(self, step: Step, arguments: dict[str, Any], attempts: int | None) -> Any:
        # Middleware may change its copy of the arguments.
        context = StepRun(step, self.run, deepcopy(arguments))
        begun = False

        async def final() -> Any:
            nonlocal begun
            if begun and not self._repeatable(step):
                raise PlanError(f"Step middleware may proceed only once with the step {step.id}: it may have effects.")
            begun = True
            if self.journal is not None:
                _as_json(context.arguments, step, "the arguments of its middleware")
            return await self._begin(step, context.arguments, attempts)

        result = await run_middleware(self.kernel.middleware.step, context, final)
        if isinstance(result, RequireApproval):
            raise PausedStep(step, result)
        return result

    async def _begin(self, step: Step, arguments: dict[str, Any], attempts: int | None) -> Any:
        function = step.function
        if type(function) is str:
            if self.guard is not None:
                for flow, value in await self.guard.allow(step, self.run, arguments, self.records):
                    await self.note("approved", step=step.id, flow=flow, value=value)
            inner = self._plan_of(function)
            if inner is not None:
                return await self._call_plan(step, function, inner, arguments, step.attempts or attempts)
            if self.past is not None and step.id in self.past.inner:
                # A part of that plan may have run; another function must not do it again.
                raise PlanError(
                    f"When the step {step.id} began, {function} ran a plan, and now it does not. Give its result."
                )
            return await self._call(step, function, arguments, attempts)
        if self.listener is not None:
            self.tell(Event.StepStarted(step, arguments))
        if self.journal is not None:
            await self.note("step-started", step=step.id, arguments=arguments)
        attempts = step.attempts or attempts
        if isinstance(function, Plan):
            work = self._run_nested(step, function, arguments, attempts)
        else:
            assert isinstance(function, PlanTemplate)  # noqa: S101 - the third kind of step
            work = _TemplateStep(self, step, attempts).render(function, arguments)
        return await self._wait_for(work, step, step.seconds)

    async def _call(self, step: Step, name: str, arguments: dict[str, Any], attempts: int | None) -> Any:
        if self.listener is not None:
            self.tell(Event.StepStarted(step, arguments))
        if self.recording is not None and step.id in self.recording.finished:
            return self.recording.take(step.id)
        if self.journal is not None:
            effects = {"effects": True} if self._effects(name) else {}
            await self.note("step-started", step=step.id, arguments=arguments, **effects)
        attempts = step.attempts or attempts or self.budget.step_attempts
        attempt = 1
        while True:
            try:
                return await self._attempt(step, name, arguments, attempt)
            except Exception as error:
                if attempt >= attempts or not may_pass(error) or self._effects(name):
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
                return await self._wait_for(self.kernel.invoke_json(name, arguments), step, seconds)

            if self.recording is not None:
                return await self.recording.step(step.id, action)
            return await (action() if runner is None else runner.execute(self.run, step.id, action))
        finally:
            CURRENT_STEP.reset(token)

    async def _call_plan(
        self, step: Step, name: str, plan: Plan, arguments: dict[str, Any], attempts: int | None
    ) -> Any:
        """Call a function that runs a plan: the function's middleware runs, and the plan's steps run inside this step.

        A plan that an earlier process began continues as it was, even if the function has another one now. The plan
        is checked and goes through the plan middleware before it runs; an approval of an earlier process holds.
        """
        past = self.past
        if past is not None:
            now, plan = plan, past.inner.get(step.id, plan)
            if self.guard is not None and (plan.steps, plan.result) != (now.steps, now.result):
                self.guard.enter(step, plan)

        async def run(given: Any) -> Any:
            finished = self.finished
            ended = {child.id: child for child in plan.steps if f"{step.id}/{child.id}" in finished}
            self.warnings += require_valid(self.kernel, plan, input=given, ended=ended)
            if not step.id.endswith("]"):  # It has been counted with its item.
                self.count(plan, step)
            if past is None or step.id not in past.reviewed:
                hold = await review_inner_plan(self.kernel, plan, self.run)
                if hold is not None:
                    raise PausedStep(step, hold)
                if self.kernel.middleware.plan:
                    await self.note("approved", step=step.id)
            return await self._run_nested(step, plan, given, attempts)

        self.tell(Event.StepStarted(step, arguments))
        if self.journal is not None:
            written = plan_to_json(with_fingerprints(self.kernel, plan))
            await self.note("step-started", step=step.id, arguments=arguments, plan=written)
        token = INNER_PLAN.set(InnerPlan(self.kernel, self.kernel.function(name).full_name, run))
        try:
            return await self._wait_for(self.kernel.invoke_json(name, arguments), step, step.seconds)
        finally:
            INNER_PLAN.reset(token)

    async def _run_nested(self, step: Step, plan: Plan, input: Any, attempts: int | None) -> Any:
        """Run the plan of a step, or of its function, and return its result."""
        within = f"{step.id}/"
        results: dict[str, Any] = {INPUT: input}
        if self.past is not None:
            finished = self.past.results
            results |= {child.id: finished[within + child.id] for child in plan.steps if within + child.id in finished}

        async def run(child: Step, arguments: dict[str, Any]) -> Any:
            return await self.step(replace(child, id=within + child.id), arguments, attempts)

        failures = await self._steps(plan, results, run, within)
        if failures:
            cause = failures[0].__cause__ or failures[0]
            raise StepFailed(f"{within}{failures[0].step}", cause) from cause
        return self.evaluate(plan.result, results) if plan.result is not None else None

    async def _wait_for(self, work: Awaitable[Any], step: Step, seconds: float | None) -> Any:
        """Wait for the work of a step, for so many seconds where they are given."""
        if seconds is None:
            return await work
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                return await work
        except TimeoutError as error:
            if not deadline.expired():
                raise
            unknown = "" if self._repeatable(step) else " It may have happened."
            raise TooLong(f"The step {step.id} did not end within its {seconds:g} seconds.{unknown}") from error

    def _effects(self, name: str) -> bool:
        try:
            return self.kernel.function(name).effects
        except FunctionNotFound:
            return False

    def _repeatable(self, step: Step) -> bool:
        function = step.function
        return isinstance(function, str) and self._plan_of(function) is None and not self._effects(function)

    def _plan_of(self, name: str) -> Plan | None:
        """Return the plan that a function runs, if it does."""
        if name not in self._inner:
            try:
                self._inner[name] = plan_of(self.kernel.function(name))
            except FunctionNotFound:
                self._inner[name] = None
        return self._inner[name]

    def tell(self, event: RunEvent) -> None:
        """Emit an event; an error of the listener is no failure of a step."""
        try:
            if self.listener is not None:
                self.listener(event)
        except Exception as error:
            raise Broken(error) from error

    async def note(self, type: Any, /, **body: Any) -> None:
        """Write an entry to the journal, if there is one; it is durable on return."""
        if self.journal is not None:
            await self.journal.write(entry(type, **body))


class _TemplateStep:
    """One rendering of a template step.

    Its calls are numbered in the order in which they are made: ``s1/1``, ``s1/2``. A run that continues renders again.
    A call that equals one of the journal takes the result of that call, or its number if it has no result. Equal calls
    are matched in their order.
    """

    def __init__(self, execution: Execution, step: Step, attempts: int | None) -> None:
        self._execution = execution
        self._step = step
        self._attempts = attempts
        self._recorded: dict[str, list[tuple[Step, StepRecord | None]]] = {}
        self._calls = 0
        self._running = 0
        self._idle = asyncio.Event()
        self._paused: list[PausedStep] = []
        if execution.past is not None:
            self._read_past(execution.past)

    async def render(self, template: PlanTemplate, arguments: dict[str, Any]) -> str:
        """Return the text; raises what the language and the calls raise."""
        kernel = self._execution.kernel
        compiled = kernel.template(template.source, language=template.language, name=self._step.id)
        variables = dict(arguments)
        text = await compiled.render(variables, call=FunctionCall.caller(kernel, variables, call_json=self._call))
        if self._paused:  # A language may continue without a function that did not answer.
            raise self._paused[0]
        self._execution.spent.spend(size_of(text))
        return str.__str__(text)

    def _call(self, function: Function, arguments: dict[str, Any]) -> Awaitable[Any]:
        # The number is given before anything is awaited, so that it is the same each time.
        known = self._recorded.get(_key(function.full_name, arguments))
        if known:
            step, record = known.pop(0)
            if record is not None:
                return self._replay(record)
        else:
            self._calls += 1
            written = {name: Value(value) for name, value in arguments.items()}
            step = Step(f"{self._step.id}/{self._calls}", function.full_name, written)
            if self._execution.journal is not None:
                body = {"step": step.id, "function": function.full_name, "arguments": arguments}
                self._execution.journal.add(entry("step-called", **body))
        return self._carry_out(step, arguments)

    async def _carry_out(self, step: Step, arguments: dict[str, Any]) -> Any:
        execution = self._execution
        if self._paused:
            raise self._paused[0]
        execution.spent.count(1, self._step)
        self._running += 1
        stop: BaseException
        try:
            return await execution.step(step, arguments, self._attempts)
        except PausedStep as paused:
            self._paused.append(paused)
            stop = self._paused[0]
        except Exception as error:  # noqa: BLE001 - raised below
            stop = error
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()
        # Raised at once it would stop the calls beside it, and their results would be lost.
        while self._running:
            self._idle.clear()
            await self._idle.wait()
        raise stop

    async def _replay(self, record: StepRecord) -> Any:
        if record.error is not None:
            raise self._execution.failure(record)
        return record.result

    def _read_past(self, past: RunState) -> None:
        ended = {record.step.id: record for record in past.records}
        calls = [step for step_id, step in past.called.items() if around(step_id) == self._step.id]
        for step in sorted(calls, key=_number):
            arguments = {name: value.value for name, value in step.arguments.items() if isinstance(value, Value)}
            recorded = self._recorded.setdefault(_key(str(step.function), arguments), [])
            recorded.append((step, ended.get(step.id)))
            self._calls = max(self._calls, _number(step))


def _number(step: Step) -> int:
    return int(step.id.rpartition("/")[2])


def _key(function: str, arguments: dict[str, Any]) -> str:
    return json.dumps([function, arguments], sort_keys=True)


def _as_json(value: Any, step: Step, what: str = "its result") -> Any:
    """Return a value as the journal gives it back, so that a fresh run and a resumed one have the same."""
    try:
        return copy_json(value, what)
    except ValueError as error:
        called = step.function if isinstance(step.function, str) else f"the step {step.id}"
        raise PlanError(f"{called}: {error}") from error
