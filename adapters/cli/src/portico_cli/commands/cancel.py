"""`portico cancel`: give up a run that waits for a worker, or that a worker has."""

from __future__ import annotations

import asyncio
import time

import click

from portico_cli.arguments import clean_argument
from portico_cli.failures import Misused, RunFailed, write_error
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation, short_name
from portico_cli.loops import run_async
from portico_cli.runs import RunEntry, find_run, open_journal, read_run
from portico_cli.show.output import safe_text, show, write_json
from portico_cli.show.runs import run_to_json
from portico_cli.terminal.progress import Progress

# Seconds for a worker to stop. It hears of it within one, unless its database or its process is away.
_PATIENCE = 15.0
_PAUSE = 0.1


@click.command(name="cancel")
@click.argument("run", metavar="RUN")
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation, *, run: str) -> None:
    """Give up RUN, which waits for a worker or is in one.

    RUN is the name of a run, the beginning of a name, or `last`. Its worker stops at once, in the middle of a step. A
    step with effects that is interrupted by that is uncertain. `portico resume` continues a run that had begun.
    """
    entry, stopped = run_async(lambda: _cancel(invocation, clean_argument(run)))
    name = short_name(entry.name)
    if not stopped:
        write_error(f"Its worker has not stopped yet; `portico runs {name}` shows the run when it has.")
    if invocation.json:
        write_json(run_to_json(entry, details=True))
        return
    words = f"The run {name} is cancelled."
    if entry.run_state is not None and stopped:
        uncertain = entry.run_state.uncertain if entry.state == "uncertain" else ()
        if uncertain:
            words += f" It is not known whether these steps happened: {', '.join(uncertain)}."
        words += f" `portico resume {name}` {'says what to do about that' if uncertain else 'continues it'}."
    show(safe_text(words))


async def _cancel(invocation: Invocation, wanted: str) -> tuple[RunEntry, bool]:
    """Cancel a run; return its state then, and whether its worker has stopped."""
    from portico import Kernel

    async with open_journal(invocation) as (store, runner):
        queue = Kernel.require_jobs(runner)
        # A queue that cannot be reached is the error, before a run is taken for unknown.
        await queue.workers()
        name = await find_run(store, wanted, queue)
        [job] = await queue.status([name])
        entry = await read_run(store, name, job)
        if job is not None and job.state in ("waiting", "running"):
            await queue.cancel([name])
        elif job is None and entry.state == "running":
            raise Misused(f"The run {name} is in no worker: stop the process that runs it, for example with Ctrl-C.")
        elif job is None or job.state != "cancelled":
            raise Misused(f"The run {name} is {entry.state}: it neither waits for a worker nor is in one.")
        with Progress("Waiting for its worker to stop…"):
            held, end = await store.held(name), time.monotonic() + _PATIENCE
            while held and time.monotonic() < end:
                await asyncio.sleep(_PAUSE)
                held = await store.held(name)
        [job] = await queue.status([name], body=True)
        if job is None:
            raise Misused(f"The run {name} is no longer in the queue.")
        entry = await read_run(store, name, job)
        if job.state != "cancelled":
            raise RunFailed(f"The run {name} ended before it could be cancelled: it is {entry.state}.")
        return entry, not held
