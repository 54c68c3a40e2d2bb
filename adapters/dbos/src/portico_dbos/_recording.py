"""What the actions of a run gave, recorded as steps of a workflow of DBOS.

DBOS lives in its own thread, with its own event loop, so that neither its pools nor its waiting are the
application's. An action does not: it is awaited by whoever calls `execute`, in its own task and context, so that it is
cancelled and fails as it would without a runner. Its step begins before it and is told what it gave.

DBOS knows a step by its number, and Portico by its name, since independent steps run in any order. So a run that is
begun again reads what was recorded, draws the numbers up to the last one (`DBOS.reserve_step`, which writes nothing),
and looks names up.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any

from portico.errors import StoreBusy, StoreError
from portico_dbos._errors import closed, mapped_errors
from portico_dbos._json import json_text
from portico_dbos._names import step_name

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
    """One step of the workflow, from the side of the caller's loop."""

    def __init__(self, recording: Recording, name: str) -> None:
        self._recording = recording
        self._name = step_name(name)
        self._home = asyncio.get_running_loop()
        self._began: asyncio.Future[bool] = self._home.create_future()
        self._recorded: asyncio.Future[bool] = self._home.create_future()
        self._result: asyncio.Future[str]  # made where it belongs, in DBOS's loop
        self._task: asyncio.Task[None] | None = None
        self._given_up = False

    async def begin(self) -> None:
        """Wait until DBOS has begun the step."""
        self._there(self._create)
        await self._began

    async def record(self, text: str) -> bool:
        """Record what the action gave; False where another worker has the run by now, and records it."""
        self._there(self._tell_result, text)
        return await self._recorded

    def give_up(self) -> None:
        """Record nothing: the action failed or was cancelled, and will be executed again."""
        self._given_up = True
        with suppress(StoreError):
            self._there(self._cancel)

    def _there(self, call: Callable[..., object], *arguments: Any) -> None:
        try:
            self._recording.loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError as error:
            raise closed(self._recording.place) from error

    # What follows runs in DBOS's loop.

    def _create(self) -> None:
        loop = self._recording.loop
        self._result = loop.create_future()
        # A copy for each: DBOS sets the step in it. The number is drawn from the workflow, which all of them share.
        self._task = loop.create_task(self._run(), context=self._recording.context.copy())

    def _tell_result(self, text: str) -> None:
        if not self._result.done():
            self._result.set_result(text)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

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
            # What was done is done, and the journal says who may write it. Only this record is another's.
            _log.info("The step %r of %r ended after another worker took the run.", self._name, recording.run)
            self._settle(self._recorded, False)
        except dbos_errors.DBOSWorkflowCancelledError:
            self._fail(StoreBusy(f"The run {recording.run!r} was cancelled at {recording.place}."))
        except Exception as error:  # noqa: BLE001 - raised in the caller's task
            self._fail(error)
        else:
            self._settle(self._recorded, True)

    async def _wait(self) -> str:
        self._settle(self._began, True)
        return await self._result

    def _settle(self, future: asyncio.Future[bool], value: bool) -> None:
        with suppress(RuntimeError):  # the caller's loop has ended, and no one waits
            self._home.call_soon_threadsafe(_set, future, value)

    def _fail(self, error: Exception) -> None:
        with suppress(RuntimeError):
            self._home.call_soon_threadsafe(self._raise, error)

    def _raise(self, error: Exception) -> None:
        if self._given_up:
            return
        waiting = self._recorded if self._began.done() else self._began
        if not waiting.done():
            waiting.set_exception(error)


def _set(future: asyncio.Future[bool], value: bool) -> None:
    if not future.done():
        future.set_result(value)
