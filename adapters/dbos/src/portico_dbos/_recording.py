"""What the actions of a run gave, recorded as steps of a workflow of DBOS.

DBOS lives in its own thread, with its own event loop, so that neither its pools nor its waiting are the
application's. An action does not: the caller of `execute` awaits it in its own task and context, so that it is
cancelled and fails as it would without a runner. Its step begins before it and then receives its result.

DBOS knows a step by its number, and Portico by its name, since independent steps run in any order. So a run that is
begun again reads what was recorded, draws the numbers up to the last one (`DBOS.reserve_step`, which writes nothing),
and looks names up.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from portico.errors import StoreBusy, StoreError
from portico_dbos._database import Database, Opened
from portico_dbos._errors import closed, mapped_errors
from portico_dbos._names import attempt_id, id_of, json_text, name_of, step_name

if TYPE_CHECKING:
    from dbos import StepInfo

T = TypeVar("T")

_log = logging.getLogger("portico_dbos")


@dataclass(slots=True)
class Recorded:
    """The results that are recorded of a run, as JSON by name, and the last number that a step of its workflow has."""

    results: dict[str, str] = field(default_factory=dict)
    last: int = 0


def reserve(last: int) -> None:
    """Draw the numbers of steps up to ``last``, in the workflow that is running."""
    from dbos import DBOS

    while last > 0 and DBOS.reserve_step().step_id < last:
        pass


class Recording:
    """The record of one run while it is worked on in this process.

    ``context`` is that of the workflow, in DBOS's loop. ``load`` reads what is recorded already, once it is needed.
    """

    def __init__(
        self,
        run: str,
        place: str,
        loop: asyncio.AbstractEventLoop,
        context: Context,
        load: Callable[[], Awaitable[Recorded]] | None,
    ) -> None:
        self.run = run
        self.place = place
        self.loop = loop
        self.context = context
        self._load = load
        self._loading: asyncio.Task[Recorded] | None = None
        self._results: dict[str, str] = {}

    async def execute(self, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        """Return the recorded result of ``name``, or execute ``action`` and record what it gives."""
        if self._load is not None:
            await self._loaded(self._load)
        recorded = self._results.get(name)
        if recorded is not None:
            return json.loads(recorded)
        step = _Step(self, name)
        try:
            await step.begin()
            result = await action()
            text = json_text(result, f"the result of {name!r}")
        except BaseException:
            step.give_up()
            raise
        if await step.record(text):
            self._results[name] = text
        return result

    async def _loaded(self, load: Callable[[], Awaitable[Recorded]]) -> None:
        # Steps that begin at once wait for one reading; a caller that gives up does not stop it for the others.
        if self._loading is None:
            self._loading = asyncio.ensure_future(load())
        try:
            recorded = await asyncio.shield(self._loading)
        except StoreError:
            self._loading = None
            raise
        if self._load is not None:
            self._load = None
            self._results |= recorded.results
            if recorded.last:
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._reserve(recorded.last), self.loop))

    async def _reserve(self, last: int) -> None:
        self.context.run(reserve, last)


class _Step:
    """One step of the workflow. The caller's loop and DBOS's meet in futures that belong to no loop."""

    def __init__(self, recording: Recording, name: str) -> None:
        self._recording = recording
        self._name = step_name(name)
        self._began: Future[None] = Future()
        self._result: Future[str] = Future()
        self._ended: Future[bool] = Future()
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Wait until DBOS has begun the step."""
        try:
            self._recording.loop.call_soon_threadsafe(self._create)
        except RuntimeError as error:
            raise closed(self._recording.place) from error
        await asyncio.wrap_future(self._began)

    async def record(self, text: str) -> bool:
        """Record what the action gave; False where another worker has the run by now, and records it."""
        with suppress(InvalidStateError):  # the runner was closed, and `_ended` says so
            self._result.set_result(text)
        return await asyncio.wrap_future(self._ended)

    def give_up(self) -> None:
        """Record nothing: the action failed or was cancelled, and will be executed again."""
        self._result.cancel()

    # What follows runs in DBOS's loop.

    def _create(self) -> None:
        # A copy for each: DBOS sets the step in it. The number is drawn from the workflow, which all of them share.
        self._task = self._recording.loop.create_task(self._run(), context=self._recording.context.copy())

    async def _run(self) -> None:
        from dbos import DBOS, error as dbos_errors

        recording = self._recording
        try:
            with mapped_errors(recording.place):
                await DBOS.run_step_async({"name": self._name}, self._wait)
        except asyncio.CancelledError:
            self._fail(closed(recording.place))
            raise
        except dbos_errors.DBOSWorkflowConflictIDError:
            # The action was executed, and the journal decides who may write it. Only this record is another's.
            _log.info("The step %r of %r ended after another worker took the run.", self._name, recording.run)
            _settle(self._ended, False)
        except dbos_errors.DBOSWorkflowCancelledError:
            self._fail(StoreBusy(f"The run {recording.run!r} was cancelled at {recording.place}."))
        except Exception as error:  # noqa: BLE001 - raised in the caller's task
            self._fail(error)
        else:
            _settle(self._ended, True)

    async def _wait(self) -> str:
        _settle(self._began, None)
        return await asyncio.wrap_future(self._result)

    def _fail(self, error: Exception) -> None:
        for future in (self._began, self._ended):
            with suppress(InvalidStateError):
                future.set_exception(error)


def _settle(future: Future[T], value: T) -> None:
    with suppress(InvalidStateError):  # the caller was cancelled
        future.set_result(value)


_AT_ONCE = 8
"""Attempts of a run that are asked for with one query."""


class Recordings:
    """The open records by run: what is executed for a run while it is open is recorded."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._open: dict[str, Recording] = {}

    def get(self, run: str) -> Recording | None:
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

    ``into`` is the workflow that continues; the last number belongs to the steps of ``into``.
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
        # Failures are executed again; what is no text was not written here.
        if step["error"] is None and isinstance(output, str):
            recorded.results[name_of(step["function_name"])] = output
