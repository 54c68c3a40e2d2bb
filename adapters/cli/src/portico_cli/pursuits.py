"""How a pursuit ended: for programs, for people, and as an exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from portico_cli.failures import DONE, HELD, INFEASIBLE
from portico_cli.output import show
from portico_cli.selections import selection_to_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from portico.plans.plan import Step
    from portico.ports.search_index import IndexReport
    from portico.pursuit import Pursuit
    from portico.pursuits.journal import StartedStep

__all__ = ["exit_code", "function_to_json", "pursuit_to_json", "show_pursuit"]


def exit_code(pursuit: Pursuit) -> int:
    """Return the exit code that tells how a pursuit ended."""
    from portico.plans.task import Answer, Infeasible

    match pursuit.outcome:
        case Answer():
            return DONE
        case Infeasible():
            return INFEASIBLE
        case _:
            return HELD


def show_pursuit(
    pursuit: Pursuit, reports: Mapping[str, IndexReport], uncertain: Mapping[str, StartedStep], *, resumable: bool
) -> None:
    """Tell people how a pursuit ended."""
    show(*_told(pursuit, reports, uncertain, resumable=resumable))


def _told(
    pursuit: Pursuit, reports: Mapping[str, IndexReport], uncertain: Mapping[str, StartedStep], *, resumable: bool
) -> Iterator[RenderableType]:
    from portico.plans.task import Answer, Infeasible
    from portico_cli.answers import answer, hold, infeasibility

    match pursuit.outcome:
        case Answer() as outcome:
            yield from answer(outcome, pursuit, reports, terminal=sys.stdout.isatty())
        case Infeasible() as outcome:
            yield from infeasibility(outcome)
        case outcome:
            yield from hold(outcome, pursuit, uncertain, resumable=resumable)


def pursuit_to_json(pursuit: Pursuit, uncertain: Mapping[str, StartedStep]) -> dict[str, Any]:
    """Return a pursuit as JSON values."""
    from portico.plans.json_form import plan_to_json
    from portico.plans.task import Answer, Infeasible
    from portico.pursuit import Held

    outcome = pursuit.outcome
    found = outcome if isinstance(outcome, Answer) else Answer("")
    return {
        "outcome": type(outcome).__name__.lower(),
        "answer": outcome.text if isinstance(outcome, Answer) else None,
        "value": found.value,
        "citations": [
            {"number": citation.number, "name": citation.name, "link": citation.link, "quote": citation.quote}
            for citation in found.citations
        ],
        "warnings": list(found.warnings),
        "reason": None if isinstance(outcome, Answer) else outcome.reason,
        "missing": list(outcome.missing) if isinstance(outcome, Infeasible) else [],
        "step": outcome.step if isinstance(outcome, Held) else None,
        "uncertain": [
            {"id": step, "function": function_to_json(begun.step), "arguments": dict(begun.arguments)}
            for step, begun in uncertain.items()
        ],
        "plan": plan_to_json(pursuit.plan) if pursuit.plan.steps else None,
        "steps": [
            {
                "id": record.step.id,
                "function": function_to_json(record.step),
                **({"result": record.result} if record.error is None else {"error": record.error}),
            }
            for record in pursuit.steps
        ],
        "usage": {"input_tokens": pursuit.usage.input_tokens, "output_tokens": pursuit.usage.output_tokens},
        "run": pursuit.run,
        "planner": pursuit.planner,
        "service": pursuit.services[-1] if pursuit.services else None,
        "selection": selection_to_json(pursuit.selection),
    }


def function_to_json(step: Step) -> Any:
    """Return what a step calls: a name, or the JSON form of a plan or a template."""
    from portico.plans.json_form import plan_to_json
    from portico.plans.plan import Plan

    return step.function if isinstance(step.function, str) else plan_to_json(Plan("", (step,)))["steps"][0]["function"]
