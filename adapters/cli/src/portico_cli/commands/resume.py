"""`portico resume`: go on with a run of the journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from portico_cli.failures import Misused
from portico_cli.goal import clean_argument
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.options import approval_options, chat_option, overrides_of
from portico_cli.output import write_json
from portico_cli.sources import Chosen, choose_sources, docs_option, source_option
from portico_cli.sources import run as run_to_end

if TYPE_CHECKING:
    from portico.plans.task import Emit
    from portico.pursuit import Pursuit
    from portico.pursuits.journal import StartedStep

__all__ = ["command"]


@click.command(name="resume")
@click.argument("run", metavar="RUN")
@click.option("--retry", metavar="STEP", multiple=True, help="Run this step again; may be repeated.")
@click.option(
    "--result",
    "results",
    metavar="STEP VALUE",
    type=(str, str),
    multiple=True,
    help="Take VALUE, JSON or words, for the result of this step; may be repeated.",
)
@click.option("--planner", metavar="NAME", help="Let this planner go on instead of the run's own.")
@docs_option
@source_option
@chat_option
@approval_options
@json_option
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    *,
    run: str,
    retry: tuple[str, ...],
    results: tuple[tuple[str, str], ...],
    planner: str | None,
    docs: tuple[Path, ...],
    names: tuple[str, ...],
    chat: str | None,
    approve: bool,
    approve_effects: bool,
) -> None:
    """Go on with RUN: only what has no result runs.

    RUN is a run's name, the beginning of one, or `last`. A step with effects that was broken off waits until you say
    what became of it.
    """
    from portico_cli.given_values import given_value
    from portico_cli.pursuits import exit_code, pursuit_to_json, show_pursuit

    given = {clean_argument(step): given_value(value, f"--result {step}") for step, value in results}
    twice = sorted(set(retry) & given.keys())
    if twice:
        raise Misused(f"--retry and --result are both given for {twice[0]}; a step runs again or has a result.")
    # What the run was begun with is not known here: sources that it used must be named again.
    chosen = choose_sources(invocation, docs, names, overrides_of(None, chat))
    work = _Work(invocation, clean_argument(run), retry, given, planner, plans=approve, effects=approve_effects)
    resumed = run_to_end(lambda: _resume(work, chosen))
    if invocation.json:
        write_json(pursuit_to_json(resumed.pursuit, resumed.uncertain))
    else:
        show_pursuit(resumed.pursuit, {}, resumed.uncertain, resumable=True)
    click.get_current_context().exit(exit_code(resumed.pursuit))


@dataclass(frozen=True, slots=True)
class _Work:
    invocation: Invocation
    name: str
    retry: tuple[str, ...]
    results: Mapping[str, Any]
    planner: str | None
    plans: bool
    effects: bool


@dataclass(frozen=True, slots=True)
class _Resumed:
    pursuit: Pursuit
    uncertain: Mapping[str, StartedStep]


async def _resume(work: _Work, chosen: Chosen) -> _Resumed:
    from portico_cli.approvals import add_approvals, while_held
    from portico_cli.pursuits import pursuing, uncertain_steps
    from portico_cli.run_names import find_run
    from portico_cli.step_progress import StepProgress

    async with chosen.application.kernel(chosen.sources) as kernel:
        if kernel.run_store is None:
            raise Misused("No journal is kept, so there is nothing to resume: [runs] says so, or none is installed.")
        name = await find_run(kernel.run_store, work.name)
        with StepProgress() as progress:
            person = add_approvals(kernel, work.invocation, progress.quiet, plans=work.plans, effects=work.effects)

            async def pursue(emit: Emit) -> Pursuit:
                pursuit = await kernel.resume(
                    name, planner=work.planner, retry=work.retry, results=work.results, emit=emit
                )
                return await while_held(kernel, person, pursuit, emit)

            pursuit = await pursuing(work.invocation, kernel, progress, pursue)
        return _Resumed(pursuit, await uncertain_steps(kernel, pursuit))
