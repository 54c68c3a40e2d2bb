"""The recorded strategy: propose a plan from a file or the journal, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from portico import Citation, FunctionSpec
from portico.errors import ConfigurationError, LimitExceeded, PlanError, PlanFormatError, PlanStale, RunNotFound
from portico.plans import (
    INPUT,
    Answer,
    Emit,
    Event,
    Expression,
    Infeasible,
    Plan,
    Stale,
    Task,
    XmlPlan,
    evaluate,
    plan_from_json,
)
from portico.plugins import RunState, Services
from portico.ports import Planner, RunStore
from portico_basics.config import RecordedSettings
from portico_basics.files import read_text

_MOST_BYTES = 16_000_000
_SHORTEST_NAME = 4


@dataclass(frozen=True, slots=True)
class Recording:
    """A plan with a result, or a plan without one and its recorded outcome. ``source`` names it for people."""

    plan: Plan
    source: str
    outcome: Answer | Infeasible | None = None


async def recording_of_file(path: Path, catalogue: Mapping[str, FunctionSpec], input: Any = None) -> Recording:
    """Read a plan from a file in JSON or XML; raises ``PlanError`` that names the file."""
    source = f"the plan in {path}"
    try:
        text = await asyncio.to_thread(read_text, path, _MOST_BYTES)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise PlanError(f"The recorded plan {path} cannot be read: {why}.") from error
    try:
        if text.lstrip().startswith("<"):
            plan = XmlPlan.read(text, catalogue, input=input).plan
            if not plan.steps and plan.result is None:
                return Recording(plan, source, Infeasible("The recorded plan is empty: the goal cannot be reached."))
            return Recording(plan, source)
        return _of_document(json.loads(text), source)
    except PlanFormatError as error:
        raise PlanFormatError(f"{path} is no plan: {error}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise PlanFormatError(f"{path} is no plan: it is neither JSON nor XML ({error}).") from error


async def recording_of_run(run: str, store: RunStore) -> Recording:
    """Read the steps and the end of a run in the journal.

    Raises ``RunNotFound`` with the nearest names, ``PlanError`` for a run that did not end, and what the store
    raises.
    """
    entries = await store.read(run)
    if not entries:
        # People see the beginning of the last part; the first part is the time when the run began.
        known = await store.runs()
        short = len(run) >= _SHORTEST_NAME
        matching = [name for name in known if short and (name.startswith(run) or name.split("-")[-1].startswith(run))]
        if len(matching) != 1:
            raise RunNotFound(run, known)
        run = matching[0]
        entries = await store.read(run)
    state = RunState.of(entries)
    if state.outcome is None:
        why = f" ({state.reason})" if state.reason else ""
        raise PlanError(
            f"The run {run} is {state.state}{why}: it has no answer to replay. `portico resume {run}` may continue it."
        )
    done = tuple(record.step for record in state.records if record.error is None and record.step.own)
    result = _result(state)
    prints = {name: text for plan in state.plans for name, text in plan.fingerprints.items()}
    schema = next((plan.input for plan in reversed(state.plans) if plan.input is not None), None)
    plan = Plan(state.goal, done, result, fingerprints=prints, input=schema)
    return Recording(plan, f"the run {run}", None if result is not None else state.outcome)


def _of_document(document: Any, source: str) -> Recording:
    """Read a plan, or the output of `portico ask --json`, which has the plan beside the answer."""
    if not isinstance(document, dict) or "version" in document or not isinstance(document.get("plan"), dict):
        return Recording(plan_from_json(document), source)
    plan = plan_from_json(document["plan"])
    text = document.get("answer")
    if plan.result is not None or not isinstance(text, str) or not text:
        return Recording(plan, source)
    cited = tuple(Citation(**citation) for citation in document.get("citations") or ())
    return Recording(plan, source, Answer(text, cited, document.get("value")))


def _result(state: RunState) -> Expression | None:
    """Return the expression of the answer, or None if the planner wrote the answer itself."""
    result = state.plan.result if state.plan is not None else None
    if result is None or not isinstance(state.outcome, Answer):
        return None
    try:
        value = evaluate(result, {INPUT: state.input, **state.results})
    except (LookupError, LimitExceeded):
        return None
    return result if value in (state.outcome.value, state.outcome.text) else None


class RecordedPlanner(Planner):
    """Replay a plan from a file, or the steps of a run in the journal, without a model.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from portico import Kernel, function
    >>> from portico_testkit.fakes.services import FixedServices
    >>> @function
    ... def shout(text: str) -> str:
    ...     return text.upper()
    >>> kernel = Kernel()
    >>> _ = kernel.add_function(shout)
    >>> file = Path(tempfile.mkdtemp()) / "plan.xml"
    >>> _ = file.write_text('<plan><function.shout text="hey" appendToResult="RESULT__X"/></plan>')
    >>> planner = RecordedPlanner(RecordedSettings(plan=file), FixedServices())
    >>> kernel.run_sync(kernel.run_goal("Shout", planner=planner)).outcome.text
    'HEY'

    The plan is checked as every plan is. Warnings name functions that changed since the recording, and a goal that is
    not the recorded one; ``PlanStale`` names changes with which the plan cannot run. If the planner of the run wrote
    the answer itself, the steps are run again and the recorded answer is returned, with a warning. ``PlanError`` is
    raised when a step failed.
    """

    name = "recorded"

    def __init__(self, settings: RecordedSettings, services: Services) -> None:
        self._settings = settings
        self._services = services

    async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer | Infeasible:
        """Return the recorded plan, its remaining steps, or its answer."""
        task.require_functions()
        catalogue = {spec.name: spec for spec in task.functions}
        recording = await self._recording(catalogue, task.input)
        if isinstance(recording.outcome, Infeasible):
            return recording.outcome
        _refuse_without_end(recording, task)
        stale = _stale(recording, catalogue)
        _refuse_failed(recording, task, stale)
        plan = recording.plan
        recorded = plan.goal.strip()
        if recorded and recorded != task.goal.strip():
            emit(Event.Warned(f"The recorded goal is {recorded!r}, and the answer belongs to it."))
        if stale:
            changes = ". ".join(str(each) for each in stale)
            emit(Event.Warned(f"Functions have changed since {recording.source} was recorded. {changes}."))
        done = {record.step.id for record in task.own_steps}
        steps = tuple(step for step in plan.steps if step.id not in done)
        if steps:
            return Plan(task.goal, steps, plan.result, fingerprints=plan.fingerprints, input=plan.input)
        return _answer(recording, task, emit)

    async def _recording(self, catalogue: Mapping[str, FunctionSpec], input: Any) -> Recording:
        match (self._settings.plan, self._settings.run):
            case (Path() as path, None):
                return await recording_of_file(path, catalogue, input)
            case (None, str(run)):
                return await recording_of_run(run, self._services.get(RunStore))
        raise ConfigurationError(
            "The planner 'recorded' needs `plan`, a file, or `run`, a run of the journal: set one of the two under "
            "[planner.recorded] in portico.toml."
        )


def _refuse_without_end(recording: Recording, task: Task) -> None:
    plan = recording.plan
    if plan.result is None and recording.outcome is None:
        raise PlanError(
            f"{_begin(recording.source)} has no result, so there would be no answer. Give it a result, or "
            "replay the run that it comes from."
        )
    needed = any(reference.step == INPUT for reference in plan.references())
    if needed and task.input is None:
        raise PlanError(f"{_begin(recording.source)} needs an input, and there is none.")


def _stale(recording: Recording, catalogue: Mapping[str, FunctionSpec]) -> list[Stale]:
    """Return the changes of the functions that the plan uses. Raises ``PlanStale`` for harmful ones."""
    used = recording.plan.functions_used
    stale = [each for each in Stale.of(recording.plan, catalogue) if each.function in used]
    harmful = [each for each in stale if each.function not in catalogue or each.harmful]
    if harmful:
        raise PlanStale([str(each) for each in harmful])
    return stale


def _refuse_failed(recording: Recording, task: Task, stale: list[Stale]) -> None:
    """Stop if the plan was refused or a step failed: there is nothing else to propose."""
    if task.refused:
        if stale:
            raise PlanStale([str(each) for each in stale])
        findings = "\n".join(f"  {each}" for each in task.refused[-1].findings if each.severity == "error")
        raise PlanError(f"{_begin(recording.source)} cannot run with these functions:\n{findings}")
    for record in task.own_steps:
        if record.error is not None:
            raise PlanError(f"{_begin(recording.source)} failed at the step {record.step.id}: {record.error}")


def _answer(recording: Recording, task: Task, emit: Emit) -> Answer | Infeasible:
    plan, outcome = recording.plan, recording.outcome
    if plan.result is not None:
        results = {record.step.id: record.result for record in task.steps if record.error is None}
        try:
            answer = Answer.of(evaluate(plan.result, {INPUT: task.input, **results}))
        except LookupError as error:
            raise PlanError(f"{_begin(recording.source)} gave no result: {error}") from error
    else:
        assert isinstance(outcome, Answer)  # noqa: S101 - a recording without both was refused
        ran = "The steps were run again, but the" if plan.steps else "The"
        warning = f"{ran} answer is the recorded one of {recording.source}: the plan has no result expression."
        answer = replace(outcome, warnings=(*outcome.warnings, warning))
    emit(Event.TextDelta(answer.text))
    return answer


def _begin(source: str) -> str:
    return source[:1].upper() + source[1:]
