"""Running a checked plan: by the dependency graph, not by the order of the list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from portico.errors import StepFailed
from portico.filters import Hold
from portico.plans.path import read_path
from portico.plans.plan import Expression, From, ListOf, ObjectOf, Plan, Step, TextOf, Value

__all__ = ["Broken", "ExecuteStep", "HeldStep", "evaluate", "run_steps"]

ExecuteStep: TypeAlias = Callable[[Step, dict[str, Any]], Awaitable[Any]]
"""Executes one step with JSON arguments and returns its JSON result."""


# Neither of the two is a failure of the step: no filter of the application is to take it for one.
class Broken(BaseException):
    """What stops a plan as a whole: the journal or a listener raised ``error``."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(str(error))


class HeldStep(BaseException):
    """A step filter held a step."""

    def __init__(self, step: Step, hold: Hold) -> None:
        self.step = step
        self.hold = hold
        super().__init__(hold.reason)


def evaluate(expression: Expression, results: Mapping[str, Any]) -> Any:
    """Return the JSON value of an expression, given the results of the steps it refers to.

    Raises ``LookupError`` when a reference leads to nothing.
    """
    match expression:
        case Value(value):
            return value
        case From(step, path):
            if step not in results:
                raise LookupError(f"the step {step} has no result")
            return read_path(results[step], path) if path else results[step]
        case TextOf(parts):
            return "".join(part if isinstance(part, str) else _as_text(evaluate(part, results)) for part in parts)
        case ListOf(items):
            return [evaluate(item, results) for item in items]
        case ObjectOf(members):
            return {name: evaluate(member, results) for name, member in members.items()}


async def run_steps(plan: Plan, results: dict[str, Any], execute: ExecuteStep) -> list[StepFailed]:
    """Run every step of ``plan``, independent ones concurrently, and put their results into ``results``.

    A step whose predecessor failed is not run. Returns the failures; a cancellation, a `HeldStep` or what is
    `Broken` stops everything that was started before it goes on.
    """
    waiting = {step.id: step.depends_on() - results.keys() for step in plan.steps}
    steps = {step.id: step for step in plan.steps}
    running: dict[asyncio.Task[None], str] = {}
    failures: list[StepFailed] = []

    async def run(step: Step) -> None:
        try:
            arguments = {name: evaluate(argument, results) for name, argument in step.arguments.items()}
            results[step.id] = await execute(step, arguments)
        except Exception as error:  # noqa: BLE001 - a step may fail in any way; the failure is data here
            failure = StepFailed(step.id, error)
            failure.__cause__ = error
            failures.append(failure)

    try:
        while waiting or running:
            ready = [step for step, before in waiting.items() if before <= results.keys()]
            for step in ready:
                del waiting[step]
            if len(ready) == 1 and not running:
                await run(steps[ready[0]])
                continue
            running |= {asyncio.create_task(run(steps[step])): step for step in ready}
            if not running:
                break
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                del running[task]
                task.result()
    finally:
        for task in running:
            task.cancel()
        if running:
            await asyncio.gather(*running, return_exceptions=True)
    return failures


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
