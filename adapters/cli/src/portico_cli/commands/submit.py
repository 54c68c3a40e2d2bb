"""`portico submit`: hand goals over to workers."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from portico_cli.arguments import clean_argument, given_value, read_goal, read_goals
from portico_cli.execution import Ended, ended_jobs, ended_run, follow
from portico_cli.failures import DONE, FAILED, HELD, INFEASIBLE, Misused, write_error
from portico_cli.invocation import (
    Invocation,
    common_options,
    json_option,
    overrides_of,
    pass_invocation,
    planner_option,
    short_name,
)
from portico_cli.runs import RunEntry, journal_of, origin_of, read_run
from portico_cli.show.answer import show_and_exit
from portico_cli.show.layout import count_words
from portico_cli.show.output import show, write_as_it_is, write_json
from portico_cli.show.runs import run_table, run_to_json
from portico_cli.sources import choose_sources, run
from portico_cli.terminal.progress import Progress

if TYPE_CHECKING:
    from portico import Kernel
    from portico.ports import JobQueue, RunStore
    from portico_host import Application


_CODES = {"done": DONE, "infeasible": INFEASIBLE, "held": HELD, "uncertain": HELD}
_WORST = (FAILED, HELD, INFEASIBLE, DONE)


@click.command(name="submit")
@click.argument("goal", required=False)
@click.option("--file", metavar="FILE|-", help="Submit every goal of FILE: one on each line, or JSON.")
@click.option("--input", "given", metavar="JSON|@FILE|-", help="The input of the goal: JSON, a file of it, or words.")
@planner_option
@click.option("--run", "name", metavar="NAME", help="Call the run NAME; if there is one already, use that one.")
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
    """Hand GOAL over to the workers, and print the name of its run.

    GOAL is in words; `-` reads it from standard input. When this ends, the goal is in the queue, and waits there until
    a `portico worker` takes it.
    """
    goals = _goals(goal, file, given, name)
    application = choose_sources(invocation, overrides=overrides_of(planner, None)).application
    work = _Work(invocation, application, goals, planner, None if name is None else _checked_name(name))
    names, workers = run(work.submit)
    # With --wait there is one object at the end, which has the names too.
    if not (wait and invocation.json):
        _show_submitted(work, names, several=file is not None, workers=workers, wait=wait)
    if not wait:
        return
    invocation.submitted = True
    if file is not None:
        click.get_current_context().exit(_show_ended(invocation, run(lambda: work.follow_all(names))))
    invocation.run = names[0]
    show_and_exit(invocation, run(lambda: work.follow(names[0])))


def _goals(goal: str | None, file: str | None, given: str | None, name: str | None) -> list[tuple[str, Any]]:
    if file is not None:
        for option, value in (("GOAL", goal), ("--input", given), ("--run", name)):
            if value is not None:
                raise Misused(f"{option} and --file are both given; only the goals of the file can be submitted.")
        return read_goals(file)
    if goal is None:
        raise Misused("There is nothing to submit. Give a goal, `-` to read it from standard input, or --file.")
    if goal == "-" and given == "-":
        raise Misused("The goal and --input cannot both be read from standard input.")
    return [(read_goal(goal), None if given is None else given_value(given, "--input"))]


def _checked_name(name: str) -> str:
    from portico import Run

    try:
        return Run.check_name(clean_argument(name))
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
    async def _open(self) -> AsyncIterator[tuple[Kernel, JobQueue, RunStore]]:
        """Open what submitting needs; no source and no function of the configuration is opened."""
        from portico import Kernel
        from portico.ports import Planner, Runner

        async with self.application.services(()) as services:
            kernel = Kernel(services, runner=services.get(Runner) if services.names(Runner) else None)
            queue = Kernel.require_jobs(kernel.runner)
            if self.planner is not None:
                services.prepare(Planner.__name__, self.planner)
            kernel.origin = origin_of((), (), None)
            # A worker can do nothing without a journal.
            yield kernel, queue, journal_of(self.application, services)

    async def submit(self) -> tuple[list[str], int]:
        """Submit the goals; return the names of their runs, and the number of workers."""
        async with self._open() as (kernel, queue, _):
            if self.name is not None:
                (goal, given), *_ = self.goals
                names = [await kernel.submit(goal, planner=self.planner, input=given, run=self.name)]
            else:
                names = await kernel.submit_all(self.goals, planner=self.planner)
            return names, len(await queue.workers())

    async def follow(self, name: str) -> Ended:
        """Follow a run to its end."""
        async with self._open() as (_, queue, store):
            with Progress("Waiting for a worker…") as progress:
                status = await follow(queue, store, name, progress)
            return await ended_run(self.invocation, store, status)

    async def follow_all(self, names: list[str]) -> list[RunEntry]:
        """Follow runs until all have ended."""
        async with self._open() as (_, queue, store):
            entries: dict[str, RunEntry] = {}
            goals = {name: goal for name, (goal, _) in zip(names, self.goals, strict=True)}
            with Progress(f"0 of {len(names):,} runs ended") as progress:
                async for status in ended_jobs(queue, names):
                    entries[status.name] = await read_run(store, status.name, status, goals[status.name])
                    progress.say(f"{len(entries):,} of {len(names):,} runs ended")
            return [entries[name] for name in names]


def _show_submitted(work: _Work, names: list[str], *, several: bool, workers: int, wait: bool) -> None:
    if work.invocation.json:
        submitted = [{"run": name, "goal": goal} for name, (goal, _) in zip(names, work.goals, strict=True)]
        write_json({"runs": submitted} if several else submitted[0])
        return
    write_as_it_is("\n".join(names))
    if sys.stderr.isatty() and not wait:
        shown = "portico runs" if several else f"portico runs {short_name(names[0])}"
        running = f"{count_words(workers, 'worker')} running" if workers else "none is running yet"
        write_error(f"{'They wait' if several else 'It waits'} for a worker ({running}); `{shown}` shows the state.")


def _show_ended(invocation: Invocation, runs: list[RunEntry]) -> int:
    """Show how runs ended, and return the exit code of the worst."""
    if invocation.json:
        write_json({"runs": [run_to_json(each, details=True) for each in runs]})
    else:
        show(run_table(runs))
    codes = {_CODES.get(each.state, FAILED) for each in runs}
    return next(code for code in _WORST if code in codes)
