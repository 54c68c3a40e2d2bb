"""What a durable runner records of a pursuit: proposals and the results of steps, so that nothing is done again.

The journal is what is true, and the record stands in for what the journal missed: a process that ended between the end
of an action and the entry that says so. So only a pursuit with a journal is recorded. What the record cannot take or
give for now is carried out and journalled all the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from portico.calls import current_step
from portico.errors import StoreError, StoreUnavailable
from portico.plans.task import ChatUsed, Emit, Event, Task, Warned
from portico.pursuits.proposals import Said, digest_of, proposal_from_json, proposal_to_json
from portico.runners import durable_of

if TYPE_CHECKING:
    from portico.kernel import Kernel
    from portico.ports.durable_runs import DurableRuns
    from portico.ports.planner import Planner
    from portico.ports.runner import Runner
    from portico.pursuits.journal import RunState

__all__ = ["Recording", "recording_of"]

T = TypeVar("T")


def recording_of(kernel: Kernel, run: str) -> Recording | None:
    """Return how a run of a kernel with a journal is recorded; None where it is not.

    A pursuit that a step of another one makes is part of that step, which is recorded as a whole.
    """
    runner = kernel.runner
    durable = durable_of(runner)
    if runner is None or durable is None or current_step() is not None:
        return None
    return Recording(runner, durable, run)


class Recording:
    """The record of one run. ``finished`` has the results of steps that the journal saw begin and not end."""

    def __init__(self, runner: Runner, durable: DurableRuns, run: str) -> None:
        self.finished: dict[str, Any] = {}
        self.taken: set[str] = set()
        """The steps that ended with a result of ``finished``."""
        self._runner = runner
        self._durable = durable
        self._run = run
        self._given: dict[str, int] = {}

    async def go_on_from(self, state: RunState) -> None:
        """Look what the runner knows of the steps that began and did not end; ``StoreError`` where it cannot tell."""
        if state.started:
            recorded = await self._durable.recorded(self._run)
            self.finished = {step: recorded[step] for step in state.started if step in recorded}

    async def pursue(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do all the work of the run, recorded."""
        return await self._durable.pursue(self._run, work)

    def take(self, step: str) -> Any:
        """Return the result of a step that an earlier process carried out, once."""
        self.taken.add(step)
        self._given[step] = 1
        return self.finished.pop(step)

    async def step(self, step: str, action: Callable[[], Awaitable[Any]]) -> Any:
        """Carry out a step, or return its recorded result.

        A step filter may proceed several times: each time is an action of its own, ``s1``, ``s1//2`` and so on.
        """
        times = self._given.get(step, 0) + 1
        result = await self._executed(step if times == 1 else f"{step}//{times}", action)
        self._given[step] = times
        return result

    async def proposal(self, planner: Planner, task: Task, number: int, emit: Emit) -> Any:
        """Return what a planner proposes, or proposed to the same task before; what it said that counts is emitted."""
        digest = digest_of(task, planner.name)
        if digest is None:
            return await planner.propose(task, emit=emit)
        fresh: list[Any] = []

        async def action() -> Mapping[str, Any] | None:
            said: list[Said] = []

            def hear(event: Event) -> None:
                if isinstance(event, ChatUsed | Warned):
                    said.append(event)
                emit(event)

            fresh[:] = [await planner.propose(task, emit=hear)]
            return proposal_to_json(fresh[0], said)

        document = await self._executed(f"proposal-{number}-{digest}", action)
        if document is None:  # JSON could not hold it; what is wrong with it is for the loop to say.
            return fresh[0] if fresh else await planner.propose(task, emit=emit)
        proposal, said = proposal_from_json(document)
        if not fresh:
            for event in said:
                emit(event)
        return proposal

    async def _executed(self, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        begun = False
        results: list[Any] = []

        async def once() -> Any:
            nonlocal begun
            begun = True
            results[:] = [await action()]
            return results[0]

        try:
            return await self._runner.execute(self._run, name, once)
        except StoreError as error:
            if results:  # It is done, and the journal will say so: the record would only have spared work.
                return results[0]
            if begun or not isinstance(error, StoreUnavailable):
                raise
        return await action()
