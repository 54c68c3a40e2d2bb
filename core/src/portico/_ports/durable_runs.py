"""The DurableRuns port: a runner's record of what the actions of a run gave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

T = TypeVar("T")


class DurableRuns(Protocol):
    """Records what `Runner.execute` gave, so that a run that is begun again takes it from there.

    Behaviour: what was recorded of a run and name is given back instead of being executed again; failures are not
    recorded. Calls may run concurrently.
    Errors: ``StoreError`` when the record cannot be read or written; those of the work, unchanged.
    """

    async def run(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do all the work of a run, and record what it executes. Inside a job of that name, continue that job."""
        ...

    async def recorded(self, run: str) -> Mapping[str, Any]:
        """Return the results of the run's actions that are recorded, by name; none for an unknown run."""
        ...
