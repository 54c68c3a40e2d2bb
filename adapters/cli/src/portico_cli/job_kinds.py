"""The kinds of jobs that a worker carries out."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from portico.jobs import Job
    from portico.kernel import Kernel
    from portico.plans.task import Emit

__all__ = ["KINDS", "CarryOut", "carry_outs"]

KINDS: Mapping[str, str] = {
    "pursuit": "portico.pursuits.carrying_out:carry_out",
    "embed": "portico.bulk_embedding.jobs:EmbeddingJobs",
}
"""By kind, what of core does what a job of it asks for: a function, or a class that a worker makes one of."""


class CarryOut(Protocol):
    """Do what a job asks for and return what it gives, as JSON."""

    async def __call__(self, kernel: Kernel, job: Job, *, emit: Emit | None = None) -> Any:
        """Do it with what the kernel has; ``emit`` is told of a pursuit's events."""
        ...


def carry_outs() -> dict[str, CarryOut]:
    """Import and return what carries out each kind."""
    found = {}
    for kind, reference in KINDS.items():
        module, _, name = reference.partition(":")
        known = getattr(import_module(module), name)
        found[kind] = known() if isinstance(known, type) else known
    return found
