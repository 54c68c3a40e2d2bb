"""`portico submit`: hand goals over to workers."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from portico_cli.carrying_out import Ended, tell_and_exit
from portico_cli.failures import DONE, FAILED, HELD, INFEASIBLE, Misused, write_error
from portico_cli.goal import clean_argument, read_goal
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation, short_name
from portico_cli.options import overrides_of, planner_option
from portico_cli.output import show, write_as_it_is, write_json
from portico_cli.sources import choose_sources, run

if TYPE_CHECKING:
    from portico.kernel import Kernel
    from portico.ports.job_queue import JobQueue
    from portico.ports.run_store import RunStore
    from portico_cli.run_entries import RunEntry
    from portico_host import Application

__all__ = ["command"]

_CODES = {"done": DONE, "infeasible": INFEASIBLE, "held": HELD, "uncertain": HELD}
_WORST = (FAILED, HELD, INFEASIBLE, DONE)


@click.command(name="submit")
@click.argument("goal", required=False)
@click.option("--file", metavar="FILE|-", help="Submit every goal of FILE: one on each line, or JSON.")
@click.option("--input", "given", metavar="JSON|@FILE|-", help="What the goal is given: JSON, a file of it, or words.")
@planner_option
@click.option("--run", "name", metavar="NAME", help="Call the run NAME; where there is one already, it is that one.")
@click.option("--wait", is_flag=True, help="Follow it to its end, and end as `portico ask` does.")
@json_option
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    *,
    goal: str | None,
    file: str | None,
    given: str | None,
    planner: str | None,
    name: str | None,
    wait: bool,
) -> None:
    """Hand GOAL over to the workers, and print its run's name.

    GOAL is in words; `-` reads it from standard input. It is in the queue when this ends, and waits there until a
    `portico worker` takes it.
    """
    goals = _goals(goal, file, given, name)
    application = choose_sources(invocation, overrides=overrides_of(planner, None)).application
    work = _Work(invocation, application, goals, planner, None if name is None else _checked_name(name))
    runs, at_work = run(lambda: _submit(work))
    several = file is not None
    # With --wait there is one object at the end, which has the names too.
    if not (wait and invocation.json):
        _tell_submitted(work, runs, several=several, at_work=at_work, wait=wait)
    if not wait:
        return
    invocation.submitted = True
    if several:
        click.get_current_context().exit(_tell_ended(invocation, run(lambda: _follow_all(work, runs))))
    invocation.run = runs[0]
    tell_and_exit(invocation, run(lambda: _follow(work, runs[0])))


def _goals(goal: str | None, file: str | None, given: str | None, name: str | None) -> list[tuple[str, Any]]:
    from portico_cli.given_values import given_value
    from portico_cli.goal_files import read_goals

    if file is not None:
        for option, value in (("GOAL", goal), ("--input", given), ("--run", name)):
            if value is not None:
                raise Misused(f"{option} and --file are both given; the goals of a file are all that is submitted.")
        return read_goals(file)
    if goal is None:
        raise Misused("There is nothing to submit. Give a goal, `-` to read it from standard input, or --file.")
    if goal == "-" and given == "-":
        raise Misused("The goal and --input cannot both be read from standard input.")
    return [(read_goal(goal), None if given is None else given_value(given, "--input"))]


def _checked_name(name: str) -> str:
    from portico.pursuits.beginning import checked_run

    try:
        return checked_run(clean_argument(name))
    except ValueError as error:
        raise Misused(f"--run: {error}.") from error


@dataclass(frozen=True, slots=True)
class _Work:
    invocation: Invocation
    application: Application
    goals: list[tuple[str, Any]]
    planner: str | None
    name: str | None


@asynccontextmanager
async def _opened(work: _Work) -> AsyncIterator[tuple[Kernel, JobQueue, RunStore]]:
    """Open what submitting takes: no source and no function of the configuration is."""
    from portico.kernel import Kernel
    from portico.ports.planner import Planner
    from portico.ports.run_store import RunStore
    from portico.ports.runner import Runner
    from portico.runners import require_jobs
    from portico_cli.origins import origin_of
    from portico_cli.run_names import no_journal

    async with work.application.services(()) as services:
        kernel = Kernel(services, runner=services.get(Runner) if services.names(Runner) else None)
        queue = require_jobs(kernel.runner)
        if work.planner is not None:
            services.prepare(Planner.__name__, work.planner)
        if not services.names(RunStore):
            # A worker can do nothing with it.
            raise no_journal(work.application)
        kernel.origin = origin_of((), (), None)
        yield kernel, queue, services.get(RunStore)


async def _submit(work: _Work) -> tuple[list[str], int]:
    """Submit the goals; return the names of their runs, and how many workers are at work."""
    async with _opened(work) as (kernel, queue, _):
        if work.name is not None:
            (goal, given), *_ = work.goals
            runs = [await kernel.submit(goal, planner=work.planner, input=given, run=work.name)]
        else:
            runs = await kernel.submit_all(work.goals, planner=work.planner)
        return runs, len(await queue.workers())


def _tell_submitted(work: _Work, runs: list[str], *, several: bool, at_work: int, wait: bool) -> None:
    submitted = [{"run": run, "goal": goal} for run, (goal, _) in zip(runs, work.goals, strict=True)]
    if work.invocation.json:
        write_json({"runs": submitted} if several else submitted[0])
        return
    write_as_it_is("\n".join(runs))
    if sys.stderr.isatty() and not wait:
        which = "They wait" if several else "It waits"
        shown = "portico runs" if several else f"portico runs {short_name(runs[0])}"
        workers = f"{at_work} worker{' is' if at_work == 1 else 's are'} at work" if at_work else "none is at work yet"
        write_error(f"{which} for a worker ({workers}); `{shown}` shows how far.")


async def _follow(work: _Work, run: str) -> Ended:
    from portico_cli.following import ended_run, follow
    from portico_cli.step_progress import StepProgress

    async with _opened(work) as (_, queue, store):
        with StepProgress("Waiting for a worker…") as line:
            status = await follow(queue, store, run, line)
        return await ended_run(work.invocation, store, status)


async def _follow_all(work: _Work, runs: list[str]) -> list[RunEntry]:
    from portico_cli.following import ended_jobs
    from portico_cli.run_listing import read_with_job
    from portico_cli.step_progress import StepProgress

    async with _opened(work) as (_, queue, store):
        entries: dict[str, RunEntry] = {}
        goals = {run: goal for run, (goal, _) in zip(runs, work.goals, strict=True)}
        with StepProgress(f"0 of {len(runs):,} runs ended") as line:
            async for status in ended_jobs(queue, runs):
                entries[status.name] = await read_with_job(store, status, goals[status.name])
                line.say(f"{len(entries):,} of {len(runs):,} runs ended")
        return [entries[run] for run in runs]


def _tell_ended(invocation: Invocation, runs: list[RunEntry]) -> int:
    """Tell how runs ended, and return the exit code of the worst."""
    from portico_cli.run_entries import run_to_json
    from portico_cli.run_table import RunTable

    if invocation.json:
        write_json({"runs": [run_to_json(each, details=True) for each in runs]})
    else:
        show(RunTable(runs, datetime.now(UTC)))
    codes = {_CODES.get(each.state, FAILED) for each in runs}
    return next(code for code in _WORST if code in codes)
