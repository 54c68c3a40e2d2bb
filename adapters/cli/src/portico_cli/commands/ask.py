"""`portico ask`: plan, run, answer with citations."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from portico_cli.failures import DONE, HELD, INFEASIBLE
from portico_cli.goal import read_goal
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.output import show, write_json
from portico_cli.sources import (
    Chosen,
    choose_sources,
    docs_option,
    nothing_to_search,
    refuse_mistakes,
    run,
    source_option,
)

if TYPE_CHECKING:
    from portico.ports.search_index import IndexReport
    from portico.pursuit import Pursuit

__all__ = ["command"]


@click.command(name="ask")
@click.argument("goal")
@docs_option
@source_option
@click.option("--planner", metavar="NAME", help="Use this planner.")
@click.option("--chat", metavar="NAME", help="Let this chat service answer.")
@json_option
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    *,
    goal: str,
    docs: tuple[Path, ...],
    names: tuple[str, ...],
    planner: str | None,
    chat: str | None,
) -> None:
    """Answer GOAL from your sources, with citations.

    GOAL is a question in words; `-` reads it from standard input. Folders are indexed first, and only what
    changed since the last time is read again.
    """
    goal = read_goal(goal)
    overrides = {table: {"use": name} for table, name in (("planner", planner), ("chat", chat)) if name is not None}
    chosen = choose_sources(invocation, docs, names, overrides)
    refuse_mistakes(chosen.application)
    if not chosen.sources and _needs_sources(chosen.application.configuration.values):
        raise nothing_to_search("ask")
    pursuit, reports = run(lambda: _pursue(invocation, goal, chosen))
    if invocation.json:
        write_json(_as_json(pursuit, reports))
    else:
        _tell(pursuit, reports)
    click.get_current_context().exit(_exit_code(pursuit))


def _needs_sources(values: Mapping[str, Any]) -> bool:
    """Tell whether the default planner is to answer and has nothing to answer from.

    Another planner says itself what it needs.
    """
    return not values.get("functions") and not (values.get("planner") or {}).get("use")


async def _pursue(invocation: Invocation, goal: str, chosen: Chosen) -> tuple[Pursuit, Mapping[str, IndexReport]]:
    from portico_cli.progress import Activity, update_sources

    async with chosen.application.kernel(chosen.sources) as kernel:
        assert kernel.services is not None  # noqa: S101 - a kernel of the host has services
        reports = await update_sources(invocation, kernel.services, chosen)
        with Activity(chosen.sources) as activity:
            pursuit = await kernel.pursue(goal, emit=activity)
    return pursuit, reports


def _exit_code(pursuit: Pursuit) -> int:
    from portico.plans.task import Answer, Infeasible

    match pursuit.outcome:
        case Answer():
            return DONE
        case Infeasible():
            return INFEASIBLE
        case _:
            return HELD


def _tell(pursuit: Pursuit, reports: Mapping[str, IndexReport]) -> None:
    from portico.plans.task import Answer, Infeasible
    from portico_cli.answers import answer, hold, infeasibility

    match pursuit.outcome:
        case Answer() as outcome:
            show(*answer(outcome, pursuit, reports, terminal=sys.stdout.isatty()))
        case Infeasible() as outcome:
            show(*infeasibility(outcome))
        case outcome:
            show(*hold(outcome, pursuit))


def _as_json(pursuit: Pursuit, reports: Mapping[str, IndexReport]) -> dict[str, Any]:
    from portico.plans.json_form import plan_to_json
    from portico.plans.task import Answer, Infeasible
    from portico_cli.reports import report_to_json

    outcome = pursuit.outcome
    found = outcome if isinstance(outcome, Answer) else Answer("")
    return {
        "outcome": type(outcome).__name__.lower(),
        "answer": outcome.text if isinstance(outcome, Answer) else None,
        "citations": [
            {"number": citation.number, "name": citation.name, "link": citation.link, "quote": citation.quote}
            for citation in found.citations
        ],
        "warnings": list(found.warnings),
        "reason": None if isinstance(outcome, Answer) else outcome.reason,
        "missing": list(outcome.missing) if isinstance(outcome, Infeasible) else [],
        "plan": plan_to_json(pursuit.plan) if pursuit.plan.steps else None,
        "steps": [
            {
                "id": record.step.id,
                "function": record.step.function
                if isinstance(record.step.function, str)
                else plan_to_json(record.step.function),
                **({"result": record.result} if record.error is None else {"error": record.error}),
            }
            for record in pursuit.steps
        ],
        "usage": {"input_tokens": pursuit.usage.input_tokens, "output_tokens": pursuit.usage.output_tokens},
        "run": pursuit.run,
        "planner": pursuit.planner,
        "service": pursuit.services[-1] if pursuit.services else None,
        "indexes": {name: report_to_json(report) for name, report in reports.items()},
    }
