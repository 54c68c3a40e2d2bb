"""`portico ask`: plan, run, answer with citations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from portico_cli.goal import read_goal
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.options import approval_options, chat_option, overrides_of, planner_option
from portico_cli.origins import origin_of
from portico_cli.output import write_json
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
    from portico.pursuits.journal import StartedStep

__all__ = ["command"]


@click.command(name="ask")
@click.argument("goal")
@docs_option
@source_option
@planner_option
@chat_option
@approval_options
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
    approve: bool,
    approve_effects: bool,
    yes: bool,
) -> None:
    """Answer GOAL from your sources, with citations.

    GOAL is a question in words; `-` reads it from standard input. Folders are indexed first, and only what
    changed since the last time is read again.
    """
    goal = read_goal(goal)
    chosen = choose_sources(invocation, docs, names, overrides_of(planner, chat))
    refuse_mistakes(chosen.application)
    if not chosen.sources and _needs_sources(chosen.application.configuration.values):
        raise nothing_to_search("ask")
    from portico_cli.pursuits import exit_code, pursuit_to_json, show_pursuit

    work = _Work(invocation, goal, origin_of(docs, names, chat), plans=approve, effects=approve_effects, yes=yes)
    asked = run(lambda: _pursue(work, chosen))
    if invocation.json:
        from portico_cli.reports import report_to_json

        reports = {name: report_to_json(report) for name, report in asked.reports.items()}
        write_json({**pursuit_to_json(asked.pursuit, asked.uncertain), "indexes": reports})
    else:
        show_pursuit(asked.pursuit, asked.reports, asked.uncertain, resumable=asked.resumable)
    click.get_current_context().exit(exit_code(asked.pursuit))


def _needs_sources(values: Mapping[str, Any]) -> bool:
    """Tell whether the default planner is to answer and has nothing to answer from.

    Another planner says itself what it needs.
    """
    return not values.get("functions") and not (values.get("planner") or {}).get("use")


@dataclass(frozen=True, slots=True)
class _Work:
    invocation: Invocation
    goal: str
    origin: Mapping[str, Any]
    plans: bool
    effects: bool
    yes: bool


@dataclass(frozen=True, slots=True)
class _Asked:
    pursuit: Pursuit
    reports: Mapping[str, IndexReport]
    uncertain: Mapping[str, StartedStep]
    resumable: bool


async def _pursue(work: _Work, chosen: Chosen) -> _Asked:
    from portico_cli.approvals import add_approvals
    from portico_cli.progress import Activity, update_sources
    from portico_cli.pursuits import pursuing, uncertain_steps

    async with chosen.application.kernel(chosen.sources) as kernel:
        assert kernel.services is not None  # noqa: S101 - a kernel of the host has services
        kernel.origin = work.origin
        reports = await update_sources(work.invocation, kernel.services, chosen)
        with Activity(chosen.sources) as activity:
            add_approvals(kernel, work.invocation, activity.quiet, plans=work.plans, effects=work.effects, yes=work.yes)
            pursuit = await pursuing(
                work.invocation, kernel, activity, lambda emit: kernel.pursue(work.goal, emit=emit)
            )
        uncertain = await uncertain_steps(kernel, pursuit)
        return _Asked(pursuit, reports, uncertain, resumable=kernel.run_store is not None)
