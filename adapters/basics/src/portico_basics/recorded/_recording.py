"""What is replayed: the plan, and the answer that was recorded where no plan gives it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portico import Citation, FunctionSpec
from portico.errors import PlanError, PlanFormatError, RunNotFound
from portico.plans import INPUT, Answer, Expression, Infeasible, Plan, XmlPlan, evaluate, plan_from_json
from portico.plugins import RunState
from portico.ports import RunStore

_MOST_BYTES = 16_000_000
_SHORTEST_NAME = 4


@dataclass(frozen=True, slots=True)
class Recording:
    """A plan with a result, or one without and the outcome that was recorded; ``source`` names it for people."""

    plan: Plan
    source: str
    outcome: Answer | Infeasible | None = None


async def recording_of_file(path: Path, catalogue: Mapping[str, FunctionSpec]) -> Recording:
    """Read a plan from a file in JSON or XML; raises ``PlanError`` that names the file."""
    source = f"the plan in {path}"
    try:
        text = await asyncio.to_thread(_read, path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise PlanError(f"The recorded plan {path} cannot be read: {why}.") from error
    try:
        if text.lstrip().startswith("<"):
            plan = XmlPlan.read_plan(text, catalogue)
            if not plan.steps and plan.result is None:
                return Recording(plan, source, Infeasible("The recorded plan is empty: it says that there is no way."))
            return Recording(plan, source)
        return _of_document(json.loads(text), source)
    except PlanFormatError as error:
        raise PlanFormatError(f"{path} is no plan: {error}") from error
    except (ValueError, RecursionError) as error:
        raise PlanFormatError(f"{path} is no plan: it is neither JSON nor XML ({error}).") from error


async def recording_of_run(run: str, store: RunStore) -> Recording:
    """Read the steps that a run of the journal carried out, and how it ended.

    Raises ``RunNotFound`` with the nearest names, ``PlanError`` for a run that did not come to its end, and what the
    store raises.
    """
    entries = await store.read(run)
    if not entries:
        # People are shown the beginning of the last part: what stands before it is when the run began.
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
            f"The run {run} is {state.state}{why}: it came to no answer that could be replayed. "
            f"`portico resume {run}` may go on with it."
        )
    done = tuple(record.step for record in state.records if record.error is None and "/" not in record.step.id)
    result = _result(state)
    prints = {name: text for plan in state.plans for name, text in plan.fingerprints.items()}
    schema = next((plan.input for plan in reversed(state.plans) if plan.input is not None), None)
    plan = Plan(state.goal, done, result, fingerprints=prints, input=schema)
    return Recording(plan, f"the run {run}", None if result is not None else state.outcome)


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise OSError(None, f"it has more than {_MOST_BYTES:,} bytes")
    return data.decode("utf-8-sig")


def _of_document(document: Any, source: str) -> Recording:
    """Read a plan, or what holds one: `portico ask --json` prints it beside the answer."""
    if not isinstance(document, dict) or "version" in document or not isinstance(document.get("plan"), dict):
        return Recording(plan_from_json(document), source)
    plan = plan_from_json(document["plan"])
    said = document.get("answer")
    if plan.result is not None or not isinstance(said, str) or not said:
        return Recording(plan, source)
    try:
        cited = tuple(Citation(**citation) for citation in document.get("citations") or ())
    except TypeError:  # not as it was printed
        cited = ()
    return Recording(plan, source, Answer(said, cited, document.get("value")))


def _result(state: RunState) -> Expression | None:
    """Return the expression that gave the answer; None where the planner gave it by itself."""
    result = state.plan.result if state.plan is not None else None
    if result is None or not isinstance(state.outcome, Answer):
        return None
    try:
        value = evaluate(result, {INPUT: state.input, **state.results})
    except LookupError:
        return None
    return result if value in (state.outcome.value, state.outcome.text) else None
