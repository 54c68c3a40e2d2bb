"""The Planner port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from portico._plans.plan import Plan
    from portico._plans.task import Answer, Emit, Infeasible, Task


class Planner(Protocol):
    """Decides the next plan towards a goal. `Kernel.run_goal` drives it. Inherit from it to have the optional member.

    Behaviour: ``propose`` is a function of its task and stores nothing between calls; notes for the next call go into
    ``Plan.notes``. A plan with a result ends the run after its steps; one without is a move, and ``propose`` is called
    again with the results. An `Infeasible` is an ordinary outcome.
    Errors: ``PlanError`` when no proposal can be made, or what a service raises.
    """

    name: str
    asks_model: bool = False
    """Optional: True where a model writes proposals. The function selector then chooses the functions of a task."""

    async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer | Infeasible:
        """Return the next plan, the answer, or why there is none; ``emit`` streams what is worth showing."""
        ...
