"""What a worker does with a pursuit that was submitted: begin it, or go on with it, until it has its end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from portico.errors import RunError, StoreBusy, StoreDamaged, StoreUnavailable
from portico.jobs import Job
from portico.plans.task import Emit
from portico.pursuits.journal import RunState
from portico.pursuits.outcome import outcome_body
from portico.pursuits.submitting import Submitted, submitted

if TYPE_CHECKING:
    from portico.kernel import Kernel
    from portico.ports.run_store import RunStore

__all__ = ["LONGEST_OUTAGE", "RESULT_VERSION", "carry_out"]

RESULT_VERSION = 1
LONGEST_OUTAGE = 300.0
"""Seconds for which a job waits for a store that is away; then that is its failure, and the run can be resumed."""
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


async def carry_out(kernel: Kernel, job: Job, *, emit: Emit | None = None) -> dict[str, Any]:
    """Carry out a job of the kind ``pursuit`` and return how its run ended, as JSON.

    The journal says what is to be done, so that a job that is begun several times is one run: what it does not know is
    pursued under the name of the job, what has not ended is gone on with, and what has ended gives its end again. While
    another process holds the run this one waits, for as long as that process renews its lease, or ends.

    The result has ``run``, ``planner``, ``steps`` (how many ended), ``state``, and what the state says: ``text``,
    ``value``, ``citations`` and ``warnings`` of an answer ("done"), ``reason`` and ``missing`` ("infeasible"),
    ``reason`` and ``step`` ("held", "uncertain"), ``reason`` ("failed").

    Raises ``RunError`` for a kernel without a journal, ``StoreDamaged`` for a job that asks for nothing, and what
    `portico.pursuit.pursue` and `portico.pursuit.resume` raise and do not write into the journal.
    """
    asked = submitted(job)
    store = kernel.run_store
    if store is None:
        raise RunError("This kernel keeps no journal, and what is submitted needs one. Choose one under [runs].")
    outage = _Outage()
    known: int | None = None
    busy = False
    while True:
        try:
            if busy:
                await _until_free(store, asked.run)
                busy = False
            state, length = await _read(store, asked.run)
            if length != known:
                known = length
                outage.over()
            if state is None or not _has_ended(state):
                state = await _one_attempt(kernel, store, asked, state, emit)
            if state is not None:
                return _result(asked.run, state)
        except StoreBusy:
            busy = True
        except StoreUnavailable:
            if outage.lasts_too_long():
                raise
            await asyncio.sleep(outage.pause())


async def _read(store: RunStore, run: str) -> tuple[RunState | None, int]:
    entries = await store.read(run)
    return (RunState.of(entries) if entries else None), len(entries)


async def _one_attempt(
    kernel: Kernel, store: RunStore, asked: Submitted, before: RunState | None, emit: Emit | None
) -> RunState | None:
    """Begin the run or go on with it, and return how the journal says that it ended; None where it began meanwhile."""
    from portico.pursuit import pursue, resume

    failure: Exception | None = None
    try:
        if before is None:
            await pursue(
                kernel,
                asked.goal,
                asked.planner,
                input=asked.input,
                budget=asked.budget,
                context=asked.context,
                emit=emit,
                reuse=asked.reuse,
                run=asked.run,
                origin=asked.origin,
            )
        else:
            await resume(kernel, asked.run, context=asked.context, emit=emit)
    except (StoreBusy, StoreUnavailable):
        raise
    except Exception as error:  # noqa: BLE001 - raised below, unless the journal has it
        failure = error
    state, _ = await _read(store, asked.run)
    if state is not None and _has_ended(state):
        return state
    if state is not None and before is None and isinstance(failure, RunError):
        return None  # Another worker began it when this one had looked.
    raise failure or StoreDamaged(f"The journal does not have the end of the run {asked.run} that was written.")


def _has_ended(state: RunState) -> bool:
    return state.state not in ("running", "interrupted")


def _result(run: str, state: RunState) -> dict[str, Any]:
    said: Mapping[str, Any] = {"reason": state.reason}
    if state.outcome is not None:
        said = {name: value for name, value in outcome_body(state.outcome).items() if name != "kind"}
    elif state.step is not None:
        said = {"reason": state.reason, "step": state.step}
    about = {"version": RESULT_VERSION, "run": run, "planner": state.planner, "steps": len(state.records)}
    return {**about, "state": state.state, **said}


async def _until_free(store: RunStore, run: str) -> None:
    pause = _FIRST_PAUSE
    while True:
        await asyncio.sleep(pause)
        if not await store.held(run):
            return
        pause = min(2 * pause, _LONGEST_PAUSE)


class _Outage:
    """A time in which a store is away, or is there and nothing comes of it."""

    def __init__(self) -> None:
        self.over()

    def over(self) -> None:
        self._since: float | None = None
        self._pause = _FIRST_PAUSE

    def lasts_too_long(self) -> bool:
        now = asyncio.get_running_loop().time()
        self._since = now if self._since is None else self._since
        return now - self._since >= LONGEST_OUTAGE

    def pause(self) -> float:
        pause, self._pause = self._pause, min(2 * self._pause, _LONGEST_PAUSE)
        return pause
