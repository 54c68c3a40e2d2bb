"""`portico runs`: what the journal has, and what waits for a worker."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from portico.errors import StoreUnavailable
from portico_cli.failures import Misused, write_error
from portico_cli.goal import clean_argument
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.output import console_for, plain, safe_text, show, write_json
from portico_cli.sources import run as run_to_end

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from portico_cli.run_listing import Listing

__all__ = ["command"]

_SECONDS = 1.0


@click.command(name="runs")
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--watch", is_flag=True, help="Show it again every second, until Ctrl-C.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(1, 100_000), default=20, show_default=True, help="Show N runs."
)
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation, *, run: str | None, watch: bool, limit: int) -> None:
    """List the runs of the journal, or show one.

    Goals that wait for a worker are listed too. RUN is a run's name, the beginning of one, or `last`; it is shown with
    its steps, what they were given and gave.
    """
    if watch and (invocation.json or not sys.stdout.isatty()):
        raise Misused("--watch is for a terminal. Without it the runs are shown once, with --json for programs.")
    wanted = None if run is None else clean_argument(run)
    # Made here: while work goes on, what is printed goes to standard error.
    screen = console_for(sys.stdout) if watch else None
    found, listing = run_to_end(lambda: _look(invocation, wanted, limit, screen))
    if listing.problem:
        write_error(f"Only the journal is shown: {plain(listing.problem)}")
    if not invocation.json:
        show(*_shown(listing, found))
        return
    from portico_cli.run_entries import run_to_json
    from portico_cli.run_listing import workers_to_json

    if found is not None:
        write_json(run_to_json(listing.runs[0], details=True))
    else:
        runs = [run_to_json(each, details=False) for each in listing.runs]
        write_json({"runs": runs, "workers": workers_to_json(listing.workers or ())})


async def _look(
    invocation: Invocation, wanted: str | None, limit: int, screen: Console | None
) -> tuple[str | None, Listing]:
    import portico_host
    from portico.ports.run_store import RunStore as Port
    from portico_cli.job_places import queue_of
    from portico_cli.run_listing import find_any, list_runs
    from portico_cli.run_names import no_journal

    application = portico_host.load(invocation.config)
    async with application.services(()) as services:
        if not services.names(Port):
            raise no_journal(application)
        store, queue = services.get(Port), queue_of(services)
        name = None if wanted is None else await find_any(store, queue, wanted)
        if screen is not None:
            await _watch(lambda: list_runs(store, queue, limit, name), name, screen)
        return name, await list_runs(store, queue, limit, name)


async def _watch(read: Callable[[], Awaitable[Listing]], name: str | None, screen: Console) -> None:
    import asyncio

    from rich.console import Group
    from rich.live import Live

    # What does not fit is left out below; the newest runs are on top.
    listing = await read()
    with Live(console=screen, auto_refresh=False, transient=True, vertical_overflow="crop") as live:
        while True:
            try:
                listing = await read()
            except StoreUnavailable as error:
                # A database that starts again is no end of the watching.
                listing = replace(listing, problem=str(error))
            live.update(Group(*_about_workers(listing), *_shown(listing, name)), refresh=True)
            await asyncio.sleep(_SECONDS)


def _about_workers(listing: Listing) -> Iterator[RenderableType]:
    """Yield the line of the workers; nothing where the runner has none."""
    from rich.text import Text

    from portico_cli.run_listing import worker_words

    words = listing.problem or ("" if listing.workers is None else worker_words(listing.workers))
    if words:
        yield Text(plain(words), style="yellow" if listing.problem else "dim", no_wrap=True, overflow="ellipsis")


def _shown(listing: Listing, name: str | None) -> list[RenderableType]:
    from portico_cli.run_entries import run_lines
    from portico_cli.run_table import RunTable

    now = datetime.now(UTC)
    if name is not None:
        return list(run_lines(listing.runs[0], now))
    if not listing.runs:
        return [safe_text("There are no runs yet. `portico ask` and `portico run` make some.")]
    return [RunTable(listing.runs, now)]
