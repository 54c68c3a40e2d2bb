"""The results of a run's actions, recorded as steps of a workflow of DBOS.

DBOS runs in its own thread, with its own event loop. An action does not: the caller of `execute` awaits it in its own
task and context, so that it is cancelled and fails as it would without a runner. Its step begins before it and then
receives its result.

DBOS identifies a step by its number, and Portico by its name, since independent steps run in any order. So a job that
begins again reads what was recorded, skips the numbers up to the last one (`DBOS.reserve_step`, which writes nothing),
and looks up names.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from portico.errors import StoreBusy
from portico_dbos._errors import closed_error, map_errors
from portico_dbos._names import attempt_id, id_of, json_text, name_of, step_name
from portico_dbos._process import PROCESS

if TYPE_CHECKING:
    from dbos import StepInfo

    from portico_dbos._opened import Opened

_log = logging.getLogger("portico_dbos")


@dataclass(slots=True)
class Recorded:
    """The recorded results of a run, as JSON by name, and the number of the last step of its workflow."""

    results: dict[str, str] = field(default_factory=dict)
    last: int = 0


def reserve(last: int) -> None:
    """Skip the numbers of steps up to ``last``, in the workflow that is running."""
    from dbos import DBOS

    while last > 0 and DBOS.reserve_step().step_id < last:
        pass


class Recording:
    """The record of one run while this process works on it.

    ``context`` is that of the workflow, whose ``loop`` is DBOS's. ``load`` reads what was recorded before, when the
    first action is executed: most jobs that are no runs have none.
    """

    def __init__(
        self,
        run: str,
        place: str,
        loop: asyncio.AbstractEventLoop,
        context: Context,
        load: Callable[[], Awaitable[Recorded]],
    ) -> None:
        self.run = run
        self._place = place
        self._loop = loop
        self._context = context
        self._load = load
        self._loading = asyncio.Lock()
        self._results: dict[str, str] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def execute(self, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        """Return the recorded result of ``name``, or execute ``action`` and record its result."""
        results = self._results
        if results is None:
            async with self._loading:
                results = await self._load_results()
        recorded = results.get(name)
        if recorded is not None:
            return json.loads(recorded)
        home = asyncio.get_running_loop()
        began: asyncio.Future[None] = home.create_future()
        ended: asyncio.Future[bool] = home.create_future()
        result: Future[str] = Future()

        def tell(*outcome: Any) -> None:
            with suppress(RuntimeError):  # the caller's loop has ended
                home.call_soon_threadsafe(_settle, began, ended, *outcome)

        step = self._step(step_name(name), result, tell)
        try:
            # A copy for each: DBOS sets the step in it. The number is drawn from the workflow, which all of them share.
            self._loop.call_soon_threadsafe(self._begin, step, tell, context=self._context.copy())
        except RuntimeError as error:
            step.close()
            raise closed_error(self._place) from error
        try:
            await began
            value = await action()
            text = json_text(value, f"the result of {name!r}")
        except BaseException:
            # Nothing is recorded: the action will be executed again.
            result.cancel()
            ended.cancel()
            raise
        with suppress(InvalidStateError):  # the runner was closed, and `ended` says so
            result.set_result(text)
        if await ended:
            results[name] = text
        return value

    async def _load_results(self) -> dict[str, str]:
        if self._results is None:
            recorded = await self._load()
            self._context.run(reserve, recorded.last)
            self._results = recorded.results
        return self._results

    def _begin(self, step: Coroutine[Any, Any, None], tell: Callable[..., None]) -> None:
        def end(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if task.cancelled():  # perhaps before it began, so the step cannot tell
                tell(closed_error(self._place))

        task = self._loop.create_task(step)
        self._tasks.add(task)
        task.add_done_callback(end)

    async def _step(self, name: str, result: Future[str], tell: Callable[..., None]) -> None:
        """Record the result as a step, in DBOS's loop, and tell the caller's; False if another worker has the run."""
        from dbos import DBOS, error as dbos_errors

        async def wait() -> str:
            tell()
            return await asyncio.wrap_future(result)

        try:
            with map_errors(self._place):
                await DBOS.run_step_async({"name": name}, wait)
        except dbos_errors.DBOSWorkflowConflictIDError:
            # The action was executed, and the journal decides who may write it. Only this record is another's.
            _log.info("The step %r of %r ended after another worker took the run.", name, self.run)
            tell(False)
        except dbos_errors.DBOSWorkflowCancelledError:
            tell(StoreBusy(f"The run {self.run!r} was cancelled at {self._place}."))
        except Exception as error:  # noqa: BLE001 - raised in the caller's task
            running = PROCESS.running
            # DBOS ends in parts, and each of them fails in its own words.
            is_open = running is not None and running.loop is self._loop
            tell(error if is_open else closed_error(self._place))
        else:
            tell(True)


def _settle(began: asyncio.Future[None], ended: asyncio.Future[bool], *outcome: bool | Exception) -> None:
    """Tell a caller that its step has begun, has ended or has failed. In the caller's loop."""
    if not outcome:
        if not began.done():
            began.set_result(None)
    elif isinstance(outcome[0], Exception):
        waiting: asyncio.Future[Any] = ended if began.done() else began
        if not waiting.done():
            waiting.set_exception(outcome[0])
    elif not ended.done():
        ended.set_result(outcome[0])


_AT_ONCE = 8
"""Attempts of a run that are read with one query."""


class Recordings:
    """The open records by run: what is executed for a run while its record is open is recorded."""

    def __init__(self) -> None:
        self._open: dict[str, Recording] = {}

    def get(self, run: str) -> Recording | None:
        return self._open.get(run)

    @contextmanager
    def open(self, recording: Recording) -> Iterator[None]:
        """Record what is executed for the run within the block."""
        self._open[recording.run] = recording
        try:
            yield
        finally:
            if self._open.get(recording.run) is recording:
                del self._open[recording.run]


def read_recorded(opened: Opened, run: str, *, into: str | None = None) -> tuple[Recorded, int]:
    """Return what all attempts of a run recorded, the latest last, and the number of the next attempt.

    The last number is that of the steps of ``into``, the workflow that continues.
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
        # A failure is executed again. Portico writes strings only.
        if step["error"] is None and isinstance(output, str):
            recorded.results[name_of(step["function_name"])] = output
