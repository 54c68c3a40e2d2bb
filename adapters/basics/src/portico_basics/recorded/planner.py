"""The recorded strategy: propose a plan that is there already, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from portico import FunctionSpec
from portico.errors import ConfigurationError, PlanError, PlanStale
from portico.plans import INPUT, Answer, Emit, Event, Infeasible, Plan, Stale, Task, evaluate, references
from portico.plugins import Services
from portico.ports import Planner, RunStore
from portico_basics.recorded._recording import Recording, recording_of_file, recording_of_run
from portico_basics.recorded.config import RecordedSettings

_EFFECTS_NOW = "it has effects now"


class RecordedPlanner(Planner):
    """Replay a plan from a file, or what a run of the journal carried out; no model is asked.

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

    The plan is checked as any other. Functions that changed since it was recorded are named in the answer's warnings,
    or in ``PlanStale`` where it cannot run as it was meant; so is another goal than the recorded one. A run whose
    answer no plan gave is replayed step by step, and its recorded answer given, with a warning that says so.
    ``PlanError`` when a step failed: nothing else is ever proposed.
    """

    name = "recorded"

    def __init__(self, settings: RecordedSettings, services: Services) -> None:
        self._settings = settings
        self._services = services

    async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer | Infeasible:
        """Return the recorded plan, what of it has not run yet, or its answer."""
        task.require_functions()
        catalogue = {spec.name: spec for spec in task.functions}
        recording = await self._recording(catalogue)
        if isinstance(recording.outcome, Infeasible):
            return recording.outcome
        _refuse_without_end(recording, task)
        stale = _stale(recording, catalogue)
        _refuse_failed(recording, task, stale)
        plan = recording.plan
        for warning in _warnings(recording, task, stale):
            emit(Event.Warned(warning))
        done = {record.step.id for record in task.own_steps}
        steps = tuple(step for step in plan.steps if step.id not in done)
        if steps:
            return Plan(task.goal, steps, plan.result, fingerprints=plan.fingerprints, input=plan.input)
        return _answer(recording, task, emit)

    async def _recording(self, catalogue: Mapping[str, FunctionSpec]) -> Recording:
        match self._settings:
            case RecordedSettings(plan=None, run=None):
                said = "it is not said what to replay. Set plan to a file, or run to a run of the journal"
            case RecordedSettings(plan=None, run=str(run)):
                return await recording_of_run(run, self._services.get(RunStore))
            case RecordedSettings(plan=path, run=None) if path is not None:
                return await recording_of_file(path, catalogue)
            case _:
                said = "both plan and run are set. Leave one of them out"
        raise ConfigurationError(f"The planner 'recorded': {said}, under [planner.recorded] in portico.toml.")


def _refuse_without_end(recording: Recording, task: Task) -> None:
    plan = recording.plan
    if plan.result is None and recording.outcome is None:
        raise PlanError(
            f"{_begin(recording.source)} has no result, so it would run and answer nothing. Give it a result, or "
            "replay the run that it comes from."
        )
    expressions = [argument for step in plan.steps for argument in step.arguments.values()]
    expressions += [plan.result] if plan.result is not None else []
    needed = any(each.step == INPUT for expression in expressions for each in references(expression))
    if needed and task.input is None:
        raise PlanError(f"{_begin(recording.source)} needs the input that its goal came with, and there is none.")


def _stale(recording: Recording, catalogue: Mapping[str, FunctionSpec]) -> list[Stale]:
    """Return what changed of the functions that the plan uses; raises ``PlanStale`` where that does harm."""
    used = recording.plan.functions_used
    stale = [each for each in Stale.of(recording.plan, catalogue) if each.function in used]
    harmful = [each for each in stale if each.function not in catalogue or _EFFECTS_NOW in each.changes]
    if harmful:
        raise PlanStale([str(each) for each in harmful])
    return stale


def _refuse_failed(recording: Recording, task: Task, stale: list[Stale]) -> None:
    """Stop where the plan was refused, or a step failed: a replay has nothing else to propose."""
    if task.refused:
        if stale:
            raise PlanStale([str(each) for each in stale])
        findings = "\n".join(f"  {each}" for each in task.refused[-1].findings if each.severity == "error")
        raise PlanError(f"{_begin(recording.source)} cannot run with the functions that there are:\n{findings}")
    for record in task.own_steps:
        if record.error is not None:
            raise PlanError(f"{_begin(recording.source)} failed at the step {record.step.id}: {record.error}")


def _warnings(recording: Recording, task: Task, stale: list[Stale]) -> tuple[str, ...]:
    warnings = []
    recorded = recording.plan.goal.strip()
    if recorded and recorded != task.goal.strip():
        warnings.append(f"This is replayed from another goal, {recorded!r}: the answer is that one's.")
    if stale:
        changes = ". ".join(str(each) for each in stale)
        warnings.append(f"Functions have changed since {recording.source} was recorded. {changes}.")
    return tuple(warnings)


def _answer(recording: Recording, task: Task, emit: Emit) -> Answer | Infeasible:
    plan, outcome = recording.plan, recording.outcome
    if plan.result is not None:
        results = {record.step.id: record.result for record in task.steps if record.error is None}
        try:
            answer = Answer.of(evaluate(plan.result, {INPUT: task.input, **results}))
        except LookupError as error:
            raise PlanError(f"{_begin(recording.source)} gave no result: {error}") from error
    else:
        assert isinstance(outcome, Answer)  # noqa: S101 - a recording without result and answer was refused
        answer = replace(outcome, warnings=(*outcome.warnings, _recorded_answer(recording)))
    emit(Event.TextDelta(answer.text))
    return answer


def _recorded_answer(recording: Recording) -> str:
    ran = "Its steps were run again, but the" if recording.plan.steps else "The"
    return f"{ran} answer is the one that {recording.source} recorded: no plan says how it follows from the steps."


def _begin(source: str) -> str:
    return source[:1].upper() + source[1:]
