"""`portico ask`: plan, run, answer with citations."""

from __future__ import annotations

from collections.abc import Sequence

import click

from portico import Part
from portico.ports import IndexReport
from portico_cli.arguments import read_attachment, read_goal
from portico_cli.execution import Ended, carry_out
from portico_cli.invocation import Invocation, RunOptions, overrides_of, pass_invocation, planner_option, run_options
from portico_cli.loops import run_async
from portico_cli.runs import origin_of
from portico_cli.show.answer import show_and_exit
from portico_cli.sources import Chosen, choose_sources, refuse_mistakes, refuse_nothing
from portico_cli.terminal.progress import update_sources


@click.command(name="ask")
@click.argument("goal")
@run_options(planner_option)
@click.option(
    "--attach", metavar="FILE", multiple=True, help="Show the model a picture, sound, PDF or text with the question."
)
@pass_invocation
def command(
    invocation: Invocation, *, goal: str, planner: str | None, attach: tuple[str, ...], options: RunOptions
) -> None:
    """Answer GOAL from your sources, with citations.

    GOAL is a question in words; `-` reads it from standard input. Folders are indexed first, and only what
    changed since the last time is read again.
    """
    goal = read_goal(goal)
    attached = [read_attachment(name) for name in attach]
    chosen = choose_sources(invocation, options.docs, options.names, overrides_of(planner, options.chat, options.trace))
    refuse_mistakes(chosen.application)
    if not attached:
        refuse_nothing(chosen, 'ask "…"')
    show_and_exit(invocation, *run_async(lambda: _ask(invocation, goal, attached, options, chosen)))


async def _ask(
    invocation: Invocation, goal: str, attached: Sequence[Part], options: RunOptions, chosen: Chosen
) -> tuple[Ended, dict[str, IndexReport]]:
    async with chosen.application.kernel(chosen.sources) as kernel:
        assert kernel.services is not None  # noqa: S101 - a kernel of the host has services
        kernel.origin = origin_of(options.docs, options.names, options.chat)
        reports = await update_sources(invocation, kernel.services, chosen)
        context = {"attached": attached} if attached else None
        run = await carry_out(
            invocation, kernel, options, lambda emit: kernel.run_goal(goal, context=context, emit=emit)
        )
        return run, reports
