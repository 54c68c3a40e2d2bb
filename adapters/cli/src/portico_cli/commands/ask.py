"""`portico ask`: plan, run, answer with citations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from portico_cli.carrying_out import Ended, carry_out, tell_and_exit
from portico_cli.goal import read_goal
from portico_cli.invocation import Invocation, pass_invocation
from portico_cli.options import PursuitOptions, overrides_of, planner_option, pursuit_options
from portico_cli.origins import origin_of
from portico_cli.sources import Chosen, choose_sources, nothing_to_search, refuse_mistakes, run

if TYPE_CHECKING:
    from portico.ports.search_index import IndexReport

__all__ = ["command"]


@click.command(name="ask")
@click.argument("goal")
@pursuit_options(planner_option)
@pass_invocation
def command(invocation: Invocation, *, goal: str, planner: str | None, options: PursuitOptions) -> None:
    """Answer GOAL from your sources, with citations.

    GOAL is a question in words; `-` reads it from standard input. Folders are indexed first, and only what
    changed since the last time is read again.
    """
    goal = read_goal(goal)
    chosen = choose_sources(invocation, options.docs, options.names, overrides_of(planner, options.chat))
    refuse_mistakes(chosen.application)
    if not chosen.sources and _needs_sources(chosen.application.configuration.values):
        raise nothing_to_search('ask "…"')
    ended, reports = run(lambda: _ask(invocation, goal, options, chosen))
    tell_and_exit(invocation, ended, reports)


def _needs_sources(values: Mapping[str, Any]) -> bool:
    """Tell whether the default planner is to answer and has nothing to answer from.

    Another planner says itself what it needs.
    """
    return not values.get("functions") and not (values.get("planner") or {}).get("use")


async def _ask(
    invocation: Invocation, goal: str, options: PursuitOptions, chosen: Chosen
) -> tuple[Ended, dict[str, IndexReport]]:
    from portico_cli.progress import Activity, update_sources

    async with chosen.application.kernel(chosen.sources) as kernel:
        assert kernel.services is not None  # noqa: S101 - a kernel of the host has services
        kernel.origin = origin_of(options.docs, options.names, options.chat)
        reports = await update_sources(invocation, kernel.services, chosen)
        ended = await carry_out(
            invocation, kernel, options, Activity(chosen.sources), lambda emit: kernel.pursue(goal, emit=emit)
        )
        return ended, reports
