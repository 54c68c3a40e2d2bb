"""The Planner port."""

from __future__ import annotations

from typing import Protocol

from portico.plans.plan import Plan
from portico.plans.task import Answer, Emit, Infeasible, Task

__all__ = ["Planner"]


class Planner(Protocol):
    """Decides what to do next towards a goal. The loop that drives it is `Kernel.pursue`.

    Behaviour: ``propose`` is a function of its task and keeps nothing between calls; what it must remember
    goes into ``Plan.notes``. A plan with a result ends the pursuit when it has run; one without is a move, and
    ``propose`` is called again with the steps' results. An `Infeasible` is an ordinary outcome.
    A planner that has a model write its proposals says so with ``asks_model = True``: its task has the functions then
    that the kernel's function selector chooses for the goal, where there is one. Others are given all.
    Errors: ``PlanError`` when no proposal can be made, or whatever a service it uses raises.
    """

    name: str

    async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer | Infeasible:
        """Return the next plan, the answer, or why there is none; ``emit`` streams what is worth showing."""
        ...
