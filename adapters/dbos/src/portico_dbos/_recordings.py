"""The records of the runs that this process works on, and those that earlier attempts left."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING

from portico_dbos._database import Database, Opened
from portico_dbos._names import attempt_id, id_of, name_of
from portico_dbos._recording import Recorded, Recording

if TYPE_CHECKING:
    from dbos import StepInfo


_AT_ONCE = 8
"""Attempts of a run that are asked for with one query."""


class Recordings:
    """The open records by run: what is executed for a run while it is open is recorded."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._open: dict[str, Recording] = {}

    def get(self, run: str) -> Recording | None:
        """Return the open record of a run."""
        return self._open.get(run)

    @contextmanager
    def open(self, recording: Recording) -> Iterator[None]:
        """Record what is executed for the run within the block."""
        before = self._open.get(recording.run)
        self._open[recording.run] = recording
        try:
            yield
        finally:
            if before is None:
                self._open.pop(recording.run, None)
            else:
                self._open[recording.run] = before

    def of_job(self, run: str, id: str, attempts: int) -> Recording:
        """Return the record of a job, in whose workflow this is called. In DBOS's loop."""

        async def load() -> Recorded:
            recorded, _ = await self._database.call(lambda opened: read_recorded(opened, run, into=id))
            return recorded

        return Recording(run, self._database.place, asyncio.get_running_loop(), copy_context(), load)


def read_recorded(opened: Opened, run: str, *, into: str | None = None) -> tuple[Recorded, int]:
    """Return what all attempts of a run recorded, the latest last, and the number of the next attempt.

    ``into`` is the workflow that goes on: the last number is its own that steps.
    """
    recorded, number = Recorded(), 1
    ids = [id_of(run)]
    while True:
        last = number + _AT_ONCE
        ids += [attempt_id(run, each) for each in range(number, last)]
        there = opened.client.list_workflows(workflow_ids=ids, load_input=False, load_output=False)
        known = {each.workflow_id for each in there}
        for id in ids:
            if id in known:
                _add(recorded, opened.client.list_workflow_steps(id), own=id == into)
        taken = [each for each in range(number, last) if attempt_id(run, each) in known]
        number = taken[-1] + 1 if taken else number
        if number < last:
            return recorded, number
        ids = []


def _add(recorded: Recorded, steps: list[StepInfo], *, own: bool) -> None:
    for step in steps:
        if own:
            recorded.last = max(recorded.last, step["function_id"])
        output = step["output"]
        # Failures are executed again; what is no text is none of ours.
        if step["error"] is None and isinstance(output, str):
            recorded.results[name_of(step["function_name"])] = output
