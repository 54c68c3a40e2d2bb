"""`portico ask`: plan, run, answer with citations."""

from __future__ import annotations

import click

from portico.ports import IndexReport
from portico_cli.arguments import read_goal
from portico_cli.execution import Ended, carry_out
from portico_cli.invocation import Invocation, RunOptions, overrides_of, pass_invocation, planner_option, run_options
from portico_cli.loops import run_async
from portico_cli.runs import origin_of
from portico_cli.show.answer import show_and_exit
from portico_cli.sources import Chosen, choose_sources, nothing_to_search, refuse_mistakes
from portico_cli.terminal.progress import update_sources


@click.command(name="ask")
@click.argument("goal")
@run_options(planner_option)
@pass_invocation
def command(invocation: Invocation, *, goal: str, planner: str | None, options: RunOptions) -> None:
    """Answer GOAL from your sources, with citations.

    GOAL is a question in words; `-` reads it from standard input. Folders are indexed first, and only what
    changed since the last time is read again.
    """
    goal = read_goal(goal)
    chosen = choose_sources(invocation, options.docs, options.names, overrides_of(planner, options.chat))
    refuse_mistakes(chosen.application)
    values = chosen.application.configuration.values
    # Another planner than the default says itself what it needs.
    if not chosen.sources and not values.get("functions") and not (values.get("planner") or {}).get("use"):
        raise nothing_to_search('ask "…"')
    show_and_exit(invocation, *run_async(lambda: _ask(invocation, goal, options, chosen)))


async def _ask(
    invocation: Invocation, goal: str, options: RunOptions, chosen: Chosen
) -> tuple[Ended, dict[str, IndexReport]]:
    async with chosen.application.kernel(chosen.sources) as kernel:
        assert kernel.services is not None  # noqa: S101 - a kernel of the host has services
        kernel.origin = origin_of(options.docs, options.names, options.chat)
        reports = await update_sources(invocation, kernel.services, chosen)
        return await carry_out(invocation, kernel, options, lambda emit: kernel.run_goal(goal, emit=emit)), reports
