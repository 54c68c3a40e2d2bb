"""Runs as people name them: by a part of the name that is enough, or as the last one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from portico.ports.run_store import RunStore
from portico_cli.failures import Misused

if TYPE_CHECKING:
    from portico_host import Application

__all__ = ["LAST", "find_run", "no_journal"]

LAST = "last"
"""What the newest run is called."""
_SHOWN = 5
_END = re.compile(r"-(?=[0-9a-f]+$)")


def no_journal(application: Application) -> Misused:
    """Return the error for a command that needs the journal where there is none."""
    from portico_host.packages import port_named

    configuration = application.configuration
    if configuration.is_off(port_named("RunStore")):
        return Misused(f'No journal is kept: {configuration.place(("runs", "use"))}: runs.use is "none".')
    return Misused("No journal is kept: none is installed. Run `pip install portico-basics`.")


async def find_run(store: RunStore, wanted: str, others: Sequence[str] = ()) -> str:
    """Return the run of that name, the only one whose name or whose last part begins so, or the newest for ``last``.

    ``others`` are runs that the journal need not have. Raises ``Misused`` where there is none, or more than one.
    """
    journalled = await store.runs()
    runs = [*journalled, *sorted(set(others) - set(journalled))]
    if wanted in runs:
        return wanted
    if wanted == LAST and runs:
        return runs[-1]
    found = [run for run in runs if wanted and (run.startswith(wanted) or _ending(run).startswith(wanted))]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(found[-_SHOWN:])
        raise Misused(f"{len(found)} runs begin with {wanted!r}; give more of the name: {names}.")
    advice = "`portico runs` lists them." if runs else "The journal holds none yet."
    raise Misused(f"There is no run {wanted!r}. {advice}")


def _ending(run: str) -> str:
    return _END.split(run)[-1]
