"""`portico resume`: go on with a run of the journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from portico.errors import PlanError, PlanInvalid, PlanStale
from portico_cli.carrying_out import Ended, carry_out, tell_and_exit
from portico_cli.failures import Misused
from portico_cli.goal import clean_argument
from portico_cli.invocation import Invocation, pass_invocation
from portico_cli.options import PursuitOptions, overrides_of, pursuit_options
from portico_cli.origins import Begun, begun_with
from portico_cli.sources import Chosen, choose_sources
from portico_cli.sources import run as run_to_end

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
@pursuit_options()
@pass_invocation
def command(
    invocation: Invocation,
    *,
    run: str,
    retry: tuple[str, ...],
    results: tuple[tuple[str, str], ...],
    planner: str | None,
    options: PursuitOptions,
) -> None:
    """Go on with RUN: only what has no result runs.

    RUN is a run's name, the beginning of one, or `last`. A step with effects that was broken off waits until you say
    what became of it.
    """
    from portico_cli.given_values import given_value

    given = {clean_argument(step): given_value(value, f"--result {step}") for step, value in results}
    twice = sorted(set(retry) & given.keys())
    if twice:
        raise Misused(f"--retry and --result are both given for {twice[0]}; a step runs again or has a result.")
    begun = run_to_end(lambda: begun_with(invocation, clean_argument(run)))
    chosen = choose_sources(
        invocation,
        options.docs or _still_there(begun),
        options.names or begun.names,
        overrides_of(None, options.chat or begun.chat),
    )
    work = _Work(invocation, begun, retry, given, planner, options)
    try:
        resumed = run_to_end(lambda: _resume(work, chosen))
    except PlanError as error:
        _note_folder(error, begun)
        raise
    tell_and_exit(invocation, resumed)


def _note_folder(error: PlanError, begun: Begun) -> None:
    """Say where the run was begun, when that may be why its plan does not fit: another folder has other functions."""
    if isinstance(error, PlanStale | PlanInvalid) and begun.folder and Path(begun.folder) != Path.cwd():
        error.add_note(f"The run was begun in {begun.folder}, with the portico.toml of that folder: resume it there.")


def _still_there(begun: Begun) -> tuple[Path, ...]:
    for path in begun.docs:
        if not path.exists():
            raise Misused(f"The run was begun with --docs {path}, which is no longer there. Give --docs again.")
    return begun.docs


@dataclass(frozen=True, slots=True)
class _Work:
    invocation: Invocation
    begun: Begun
    retry: tuple[str, ...]
    results: Mapping[str, Any]
    planner: str | None
    options: PursuitOptions


async def _resume(work: _Work, chosen: Chosen) -> Ended:
    from portico_cli.step_progress import StepProgress

    async with chosen.application.kernel(chosen.sources) as kernel:
        return await carry_out(
            work.invocation,
            kernel,
            work.options,
            StepProgress(),
            lambda emit: kernel.resume(
                work.begun.run, planner=work.planner, retry=work.retry, results=work.results, emit=emit
            ),
        )
