"""Calls of a model as steps of a plan."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import count
from typing import Any

from portico._functions.functions import FunctionManual
from portico._functions.names import find_name
from portico._plans.check import check_plan
from portico._plans.plan import Plan, Step, Value, evaluate
from portico._plans.task import Infeasible, StepRecord, Task
from portico._schema.coerce import mended_for
from portico.errors import PlanError


def call_step(
    name: str, arguments: Mapping[str, Any], catalogue: Mapping[str, FunctionManual], *, id: str, reason: str = ""
) -> Step:
    """Make the step that a model means: another spelling of a name and of a value is understood as in a tool call.

    >>> from portico import Function
    >>> def forecast(city: str, days: int = 1) -> str:
    ...     return "Sun"
    >>> manual = Function.of(forecast, plugin="Weather").manual
    >>> step = call_step("weather.forecast", {"city": "Oslo", "days": "3"}, {manual.name: manual}, id="s1")
    >>> step.function, step.arguments["days"]
    ('Weather-forecast', Value(value=3))

    Every argument is a `Value`: no text of a model becomes a reference. Raises ``FunctionNotFound`` with the nearest
    names. Whether the arguments fit is for the check to say, see `step_faults`.
    """
    manual = catalogue[find_name(name, catalogue, lenient=True)]
    mended = mended_for(manual.parameters, dict(arguments))
    return Step(id, manual.name, {key: Value(value) for key, value in mended.items()}, reason=reason)


def step_faults(step: Step, catalogue: Mapping[str, FunctionManual]) -> list[str]:
    """Return what makes a step that stands for itself invalid, a sentence each."""
    findings = check_plan(Plan("", (step,)), catalogue)
    return [
        f"{finding.place}: {finding.words}" if finding.place else finding.words
        for finding in findings
        if finding.severity == "error"
    ]


def given_up(arguments: Mapping[str, Any], *, said: str = "") -> Infeasible:
    """Return the outcome of a call by which a model says that there is no way: its ``reason`` and what is ``missing``.

    >>> given_up({"reason": " No ferry. ", "missing": "a timetable"})
    Infeasible(reason='No ferry.', missing=('a timetable',))

    Without a reason what the model ``said`` besides is it. Small models write one thing where a list is asked for.
    """
    reason, missing = arguments.get("reason"), arguments.get("missing")
    words = (reason.strip() if isinstance(reason, str) else "") or said.strip()
    if isinstance(missing, str):
        missing = [missing]
    named = (str(each).strip() for each in missing) if isinstance(missing, list) else ()
    return Infeasible(words or "The model says that these functions cannot reach the goal.", tuple(filter(None, named)))


def fresh_ids(task: Task, taken: Collection[str] = ()) -> Iterator[str]:
    """Yield step ids that the pursuit has not used: ``s1``, ``s2`` and so on."""
    used = {record.step.id for record in task.steps} | set(taken)
    start = sum("/" not in id for id in used) + 1
    return (id for number in count(start) if (id := f"s{number}") not in used)


def own_steps(task: Task) -> tuple[StepRecord, ...]:
    """Return the steps of plans that were proposed, without those that ran inside of one."""
    return tuple(record for record in task.steps if "/" not in record.step.id)


def same_at_the_end(task: Task) -> int:
    """Return how many of the last steps are one and the same call with the same result, in a row; 0 without steps.

    A model that sees nothing new in a result may ask for it for ever.
    """
    records = own_steps(task)[::-1]
    if not records or records[0].error is not None:
        return 0
    last = records[0]
    same = (
        (each.step.function, each.step.arguments, each.result, each.error)
        == (last.step.function, last.step.arguments, last.result, None)
        for each in records
    )
    return next((number for number, is_same in enumerate(same) if not is_same), len(records))


def arguments_given(step: Step, task: Task) -> dict[str, Any]:
    """Return a step's arguments as JSON, as far as they are known: those that refer to what is gone are left out."""
    results = {record.step.id: record.result for record in task.steps if record.error is None}
    results.setdefault("input", task.input)
    given: dict[str, Any] = {}
    for name, expression in step.arguments.items():
        try:
            given[name] = evaluate(expression, results)
        except LookupError:
            continue
    return given


def object_in(text: str) -> dict[str, Any]:
    """Read a JSON object, a key twice and what is no JSON refused; raises ``ValueError`` that says what is wrong."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(name for place, (name, _) in enumerate(pairs) if name in [key for key, _ in pairs[:place]])
        raise ValueError(f"the key {twice!r} stands there twice")
    return made


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON value")


def plan_number(task: Task, *, replans: int) -> int:
    """Return the number of the plan that comes next, from 1; a planner keeps it in its notes, under ``plan``.

    >>> plan_number(Task("A poem", notes={"plan": 1}), replans=2)
    2

    Raises ``PlanError`` with the last error when a step failed and ``replans`` plans came after the first already.
    """
    number = _before(task.notes) + 1
    errors = [record.error for record in own_steps(task) if record.error is not None]
    if errors and number > replans + 1:
        tried = f"The plan failed, and so did the {replans} after it." if replans else "The plan failed."
        raise PlanError(f"{tried} The last error was: {errors[-1]}")
    return number


def _before(notes: Any) -> int:
    """Return how many plans ran before; none where the notes are those of another planner."""
    counted = notes.get("plan") if isinstance(notes, dict) else None
    return counted if type(counted) is int else 0
