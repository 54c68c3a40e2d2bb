"""`portico resume`: continue a run of the journal."""

from __future__ import annotations

import click

from portico_cli.arguments import clean_argument, read_value
from portico_cli.execution import Ended, carry_out
from portico_cli.failures import Misused
from portico_cli.invocation import Invocation, RunOptions, overrides_of, pass_invocation, run_options
from portico_cli.loops import run_async
from portico_cli.runs import Origin, find_run, open_journal
from portico_cli.show.answer import show_and_exit
from portico_cli.sources import choose_sources


@click.command(name="resume")
@click.argument("run", metavar="RUN")
@click.option("--retry", metavar="STEP", multiple=True, help="Run this step again; may be repeated.")
@click.option(
    "--result",
    "results",
    metavar="STEP VALUE",
    type=(str, str),
    multiple=True,
    help="Take VALUE, JSON or words, as the result of this step; may be repeated.",
)
@click.option("--planner", metavar="NAME", help="Let this planner continue instead of the run's own.")
@run_options()
@pass_invocation
def command(
    invocation: Invocation,
    *,
    run: str,
    retry: tuple[str, ...],
    results: tuple[tuple[str, str], ...],
    planner: str | None,
    options: RunOptions,
) -> None:
    """Continue RUN: only the steps without a result run.

    RUN is the name of a run, the beginning of a name, or `last`. A step with effects that was interrupted waits until
    you say what happened to it.
    """
    given = {clean_argument(step): read_value(value, f"--result {step}") for step, value in results}
    twice = sorted(set(retry) & given.keys())
    if twice:
        raise Misused(f"--retry and --result are both given for {twice[0]}; a step runs again or has a result.")
    name, begun, by = run_async(lambda: _find(invocation, clean_argument(run)))
    for path in () if options.docs else begun.docs:
        if not path.exists():
            raise Misused(f"The run began with --docs {path}, which is gone. Give --docs again.")
    chosen = choose_sources(
        invocation,
        options.docs or begun.docs,
        options.names or begun.names,
        overrides_of(None, options.chat or begun.chat, options.trace),
    )

    async def resume() -> Ended:
        async with chosen.application.kernel(chosen.sources) as kernel:
            return await carry_out(
                invocation,
                kernel,
                options,
                lambda emit: kernel.resume(name, planner=planner, retry=retry, results=given, emit=emit),
                idle="Running…" if (planner or by) == "plan" else "Thinking…",
            )

    show_and_exit(invocation, run_async(resume))


async def _find(invocation: Invocation, wanted: str) -> tuple[str, Origin, str]:
    """Find a run of the journal, its options and its planner. Raises ``Misused`` if there is none."""
    async with open_journal(invocation) as (store, runner):
        run = await find_run(store, wanted, runner.jobs if runner is not None else None)
        entries = await store.read(run)
        if not entries and run not in await store.runs():
            raise Misused(f"The run {run} waits for a worker: it has not begun, so there is nothing to resume.")
    first = entries[0] if entries else {}
    return run, Origin.from_json(first.get("origin")), str(first.get("planner"))
