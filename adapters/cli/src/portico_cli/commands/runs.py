"""`portico runs`: list the runs of the journal and of the queue, or show one."""

from __future__ import annotations

import click

from portico_cli.arguments import clean_argument
from portico_cli.failures import write_error
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.loops import run_async
from portico_cli.runs import Listing, find_run, list_runs, open_journal
from portico_cli.show.output import plain, safe_text, show, write_json
from portico_cli.show.runs import run_lines, run_table, run_to_json


@click.command(name="runs")
@click.argument("run", metavar="[RUN]", required=False)
@click.option(
    "--limit", metavar="N", type=click.IntRange(1, 100_000), default=20, show_default=True, help="Show N runs."
)
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation, *, run: str | None, limit: int) -> None:
    """List the runs of the journal, or show one.

    Goals that wait for a worker are listed too. RUN is the name of a run, the beginning of a name, or `last`. It is
    shown with its steps, their arguments and their results.
    """
    wanted = None if run is None else clean_argument(run)
    listing = run_async(lambda: _look(invocation, wanted, limit))
    if listing.problem:
        write_error(f"Only the journal is shown: {plain(listing.problem)}")
    if wanted is not None:
        [entry] = listing.runs
        if invocation.json:
            write_json(run_to_json(entry, details=True))
        else:
            show(*run_lines(entry))
    elif invocation.json:
        workers = [
            {"name": each.name, "since": each.since, "seen": each.seen, "jobs": each.jobs}
            for each in listing.workers or ()
        ]
        write_json({"runs": [run_to_json(each, details=False) for each in listing.runs], "workers": workers})
    elif listing.runs:
        show(run_table(listing.runs))
    else:
        show(safe_text("There are no runs yet. `portico ask` and `portico run` make some."))


async def _look(invocation: Invocation, wanted: str | None, limit: int) -> Listing:
    async with open_journal(invocation) as (store, runner):
        queue = runner.jobs if runner is not None else None
        name = None if wanted is None else await find_run(store, wanted, queue)
        return await list_runs(store, queue, limit, name)
