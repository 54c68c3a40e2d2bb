"""The Runner port: who executes a run's actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from portico._ports.durable_runs import DurableRuns
    from portico._ports.job_queue import JobQueue


class Runner(Protocol):
    """Executes the actions of a run; each step is one. Inherit from it to have the optional members.

    Behaviour: an action's result is JSON. A durable runner returns the recorded result of an action of the same run and
    name and does not execute it again. Cancelling the call cancels the action.
    Errors: those of the action, unchanged.
    """

    name: str
    jobs: JobQueue | None = None  # optional: the queue of its worker processes
    durable: DurableRuns | None = None  # optional: its record of results

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        """Execute ``action`` and return its result; ``name`` is unique in ``run``."""
        ...
