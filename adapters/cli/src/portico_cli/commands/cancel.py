"""`portico cancel`: give up a run that waits for a worker, or that one has."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from portico_cli.failures import FAILED, Misused, write_error
from portico_cli.goal import clean_argument
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation, short_name
from portico_cli.output import plain, safe_text, show, write_json
from portico_cli.sources import run as run_to_end

if TYPE_CHECKING:
    from portico.ports.job_queue import JobQueue
    from portico.ports.run_store import RunStore
    from portico_cli.run_entries import RunEntry

__all__ = ["command"]

_PATIENCE = 15.0
"""Seconds for a worker to stop: it hears of it within one, unless its database or its process is away."""
_PAUSE = 0.1


class _EndedBefore(click.ClickException):
    """The run had its end when it was to be cancelled; what it says is the whole message."""

    exit_code = FAILED


@click.command(name="cancel")
@click.argument("run", metavar="RUN")
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation, *, run: str) -> None:
    """Give up RUN, which waits for a worker or is in one.

    RUN is a run's name, the beginning of one, or `last`. Its worker stops at once, in the middle of a step; one with
    effects that is broken off so is uncertain. `portico resume` goes on with a run that had begun.
    """
    wanted = clean_argument(run)
    entry, stopped = run_to_end(lambda: _cancel(invocation, wanted))
    if not stopped:
        name = short_name(entry.name)
        write_error(f"Its worker has not stopped yet; `portico runs {name}` shows how the run is when it has.")
    if invocation.json:
        from portico_cli.run_entries import run_to_json

        write_json(run_to_json(entry, details=True))
    else:
        show(safe_text(_told(entry, stopped=stopped)))


async def _cancel(invocation: Invocation, wanted: str) -> tuple[RunEntry, bool]:
    """Cancel a run; return how it is then, and whether nobody is at work on it any more."""
    import portico_host
    from portico.ports.run_store import RunStore as Port
    from portico.ports.runner import Runner
    from portico.runners import require_jobs
    from portico_cli.run_listing import find_any, read_with_job
    from portico_cli.run_names import no_journal
    from portico_cli.step_progress import StepProgress

    application = portico_host.load(invocation.config)
    async with application.services(()) as services:
        queue = require_jobs(services.get(Runner) if services.names(Runner) else None)
        if not services.names(Port):
            raise no_journal(application)
        store = services.get(Port)
        # A queue that cannot be reached is told of before a run is taken for unknown.
        await queue.workers()
        name = await find_any(store, queue, wanted)
        await _give_up(queue, store, name)
        with StepProgress("Waiting for its worker to stop…"):
            stopped = await _is_free(store, name)
        [job] = await queue.status([name], body=True)
        if job is None:
            raise Misused(f"The run {name} is no longer in the queue.")
        entry = await read_with_job(store, job)
        if job.state != "cancelled":
            raise _EndedBefore(f"The run {name} ended before it could be cancelled: it is {entry.state}.")
        return entry, stopped


async def _give_up(queue: JobQueue, store: RunStore, name: str) -> None:
    """Cancel the job of a run. Raises ``Misused`` where it has none, or one that is over."""
    from portico_cli.run_entries import read_run
    from portico_cli.run_listing import read_with_job

    [job] = await queue.status([name])
    entry = await read_run(store, name) if job is None else await read_with_job(store, job)
    if job is not None and job.state in ("waiting", "running"):
        await queue.cancel([name])
    elif job is None and entry.state == "running":
        raise Misused(f"The run {name} is in no worker: stop the process that carries it out, with Ctrl-C for one.")
    elif job is None or job.state != "cancelled":
        raise Misused(f"The run {name} is {entry.state}: it neither waits for a worker nor is in one.")


async def _is_free(store: RunStore, run: str) -> bool:
    """Wait until nobody is at work on a run, and tell whether that came in time."""
    end = asyncio.get_running_loop().time() + _PATIENCE
    while await store.held(run):
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(_PAUSE)
    return True


def _told(entry: RunEntry, *, stopped: bool) -> str:
    name = plain(short_name(entry.name))
    said = f"The run {name} is cancelled."
    if entry.run_state is None or not stopped:
        return said
    if entry.state == "uncertain":
        steps = plain(", ".join(entry.run_state.uncertain))
        return f"{said} Nobody knows what became of {steps}: `portico resume {name}` says what to do about that."
    return f"{said} `portico resume {name}` goes on with it."
