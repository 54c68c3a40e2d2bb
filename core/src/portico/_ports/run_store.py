"""The RunStore port: the journal of runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write one run. Each new lease on a run has a higher ``token``; older ones are refused."""

    run: str
    owner: str
    token: int


class RunStore(Protocol):
    """Stores the entries of each run in order. Inherit from it to have the optional members.

    Behaviour: entries are JSON objects, those of `portico._runs.journal`. `append` is atomic and durable before it
    returns. It is refused without the newest lease's token, so that an owner that lost its lease cannot write. An owner
    is one process, ``HOST:PID:RANDOM``; a store may hand over the lease of a process that is gone. A lease is renewed
    regularly; an attribute ``lease_seconds`` sets its length. Calls may run concurrently and be cancelled.
    Optional: ``outline(run)``, `read` without the ``step-`` entries of steps inside others (``s1[0]``) but the last.
    Errors: ``StoreBusy`` for another's lease or a stale token; ``StoreUnavailable`` for now; ``StoreError`` otherwise.
    """

    name: str

    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        """Take the run for ``seconds``; its owner may take it again."""
        ...

    async def renew(self, lease: Lease, *, seconds: float) -> None:
        """Lengthen a lease, token unchanged; one that has run out too, unless there was a newer one since."""
        ...

    async def release(self, lease: Lease) -> None:
        """Give the run back; a stale lease is not an error."""
        ...

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        """Add entries at the end of the run."""
        ...

    async def read(self, run: str) -> list[Mapping[str, Any]]:
        """Return a run's entries in order; none for an unknown run."""
        ...

    async def held(self, run: str) -> bool:
        """Tell whether a process is at work on the run, as far as its lease says."""
        ...

    async def runs(self) -> list[str]:
        """Return the names of all runs, the oldest first."""
        ...
