"""`portico runs`: what the journal has."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from portico_cli.failures import Misused
from portico_cli.goal import clean_argument
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.output import console_for, safe_text, show, write_json
from portico_cli.sources import run as run_to_end

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from portico.ports.run_store import RunStore
    from portico_cli.run_entries import RunEntry

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

    RUN is a run's name, the beginning of one, or `last`; it is shown with its steps, what they were given and gave.
    """
    if watch and (invocation.json or not sys.stdout.isatty()):
        raise Misused("--watch is for a terminal. Without it the runs are shown once, with --json for programs.")
    wanted = None if run is None else clean_argument(run)
    # Made here: while work goes on, what is printed goes to standard error.
    screen = console_for(sys.stdout) if watch else None
    found, runs = run_to_end(lambda: _look(invocation, wanted, limit, screen))
    if not invocation.json:
        show(*_shown(runs, found))
        return
    from portico_cli.run_entries import run_to_json

    if found is not None:
        write_json(run_to_json(runs[0], details=True))
    else:
        write_json({"runs": [run_to_json(each, details=False) for each in runs]})


async def _look(
    invocation: Invocation, wanted: str | None, limit: int, screen: Console | None
) -> tuple[str | None, list[RunEntry]]:
    import portico_host
    from portico.ports.run_store import RunStore as Port
    from portico_cli.run_names import find_run, no_journal

    application = portico_host.load(invocation.config)
    async with application.services(()) as services:
        if not services.names(Port):
            raise no_journal(application)
        store = services.get(Port)
        name = None if wanted is None else await find_run(store, wanted)
        if screen is not None:
            await _watch(store, name, limit, screen)
        return name, await _read(store, name, limit)


async def _watch(store: RunStore, name: str | None, limit: int, screen: Console) -> None:
    import asyncio

    from rich.console import Group
    from rich.live import Live

    # What does not fit is left out below; the newest runs are on top.
    with Live(console=screen, auto_refresh=False, transient=True, vertical_overflow="crop") as live:
        while True:
            live.update(Group(*_shown(await _read(store, name, limit), name)), refresh=True)
            await asyncio.sleep(_SECONDS)


async def _read(store: RunStore, name: str | None, limit: int) -> list[RunEntry]:
    from portico_cli.run_entries import read_run

    names = [name] if name is not None else (await store.runs())[-limit:][::-1]
    return [await read_run(store, each) for each in names]


def _shown(runs: list[RunEntry], name: str | None) -> list[RenderableType]:
    from portico_cli.run_entries import RunTable, run_lines

    now = datetime.now(UTC)
    if name is not None:
        return list(run_lines(runs[0], now))
    if not runs:
        return [safe_text("There are no runs yet. `portico ask` and `portico run` make some.")]
    return [RunTable(runs, now)]
