"""A template as a step of a plan: rendered, each function that it calls a step of its own inside."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from portico.functions import Function
from portico.plans.plan import PlanTemplate, Step, Value
from portico.plans.task import StepRecord
from portico.prompts.calling import json_caller
from portico.pursuits.failures import failure_of
from portico.pursuits.journal import entry
from portico.pursuits.running import HeldStep

if TYPE_CHECKING:
    from portico.pursuits.execution import Execution

__all__ = ["TemplateStep"]


class TemplateStep:
    """One rendering of a template step.

    Its calls are numbered in the order in which they are made: ``s1/1``, ``s1/2``. A run that is gone on with renders
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
        self._held: HeldStep | None = None
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
        except HeldStep as held:
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

    def _first_held(self, held: HeldStep) -> HeldStep:
        if self._held is None:
            self._held = held
        return self._held

    def _read_past(self) -> None:
        past = self._execution.past
        if past is None:
            return
        ended = {record.step.id: record for record in past.records}
        # Those of its own: what it calls may run a plan with a template in it.
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
