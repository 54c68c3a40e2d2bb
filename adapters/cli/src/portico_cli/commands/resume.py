"""`portico resume`: go on with a run of the journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from portico.errors import PlanError, PlanInvalid, PlanStale
from portico_cli.failures import Misused
from portico_cli.goal import clean_argument
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.options import approval_options, chat_option, overrides_of
from portico_cli.origins import Begun, begun_with
from portico_cli.output import write_json
from portico_cli.sources import Chosen, choose_sources, docs_option, source_option
from portico_cli.sources import run as run_to_end

if TYPE_CHECKING:
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
    yes: bool,
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
    begun = run_to_end(lambda: begun_with(invocation, clean_argument(run)))
    chosen = choose_sources(
        invocation, docs or _still_there(begun), names or begun.names, overrides_of(None, chat or begun.chat)
    )
    work = _Work(invocation, begun, retry, given, planner, plans=approve, effects=approve_effects, yes=yes)
    try:
        resumed = run_to_end(lambda: _resume(work, chosen))
    except PlanError as error:
        _note_folder(error, begun)
        raise
    if invocation.json:
        write_json(pursuit_to_json(resumed.pursuit, resumed.uncertain))
    else:
        show_pursuit(resumed.pursuit, {}, resumed.uncertain, resumable=True)
    click.get_current_context().exit(exit_code(resumed.pursuit))


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
    plans: bool
    effects: bool
    yes: bool


@dataclass(frozen=True, slots=True)
class _Resumed:
    pursuit: Pursuit
    uncertain: Mapping[str, StartedStep]


async def _resume(work: _Work, chosen: Chosen) -> _Resumed:
    from portico_cli.approvals import add_approvals
    from portico_cli.pursuits import pursuing, uncertain_steps
    from portico_cli.step_progress import StepProgress

    async with chosen.application.kernel(chosen.sources) as kernel:
        with StepProgress() as progress:
            add_approvals(kernel, work.invocation, progress.quiet, plans=work.plans, effects=work.effects, yes=work.yes)
            pursuit = await pursuing(
                work.invocation,
                kernel,
                progress,
                lambda emit: kernel.resume(
                    work.begun.run, planner=work.planner, retry=work.retry, results=work.results, emit=emit
                ),
            )
        return _Resumed(pursuit, await uncertain_steps(kernel, pursuit))
