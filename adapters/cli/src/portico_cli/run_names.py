"""Runs as people name them: by a part of the name that is enough, or as the last one."""

from __future__ import annotations

import re

from portico.ports.run_store import RunStore
from portico_cli.failures import Misused

__all__ = ["find_run"]

_LAST = "last"
_SHOWN = 5
_END = re.compile(r"-(?=[0-9a-f]+$)")


async def find_run(store: RunStore, wanted: str) -> str:
    """Return the run of that name, the only one whose name or whose last part begins so, or the newest for ``last``.

    Raises ``Misused`` where there is none, or more than one.
    """
    runs = await store.runs()
    if wanted in runs:
        return wanted
    if wanted == _LAST and runs:
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
