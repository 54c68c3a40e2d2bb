"""Which functions a planner is told of: all, or for one that asks a model those that the kernel's selector chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from portico.functions import FunctionManual
from portico.plans.findings import Finding
from portico.plans.plan import Plan
from portico.plans.task import Answer, Emit, FunctionsOffered, Infeasible

if TYPE_CHECKING:
    from portico.kernel import Kernel
    from portico.ports.planner import Planner
    from portico.selection.selection import Selection

__all__ = ["Offer", "Offers"]


@dataclass(frozen=True, slots=True)
class Offer:
    """What a planner is told of: ``functions``, and how they were chosen where ``selector`` left some out.

    ``manuals`` are those of the same functions by name, for the check of what the planner proposes.
    """

    functions: tuple[FunctionManual, ...]
    manuals: Mapping[str, FunctionManual]
    selection: Selection | None = None
    selector: str = ""

    def none_fits(self) -> Infeasible | None:
        """Return the outcome where nothing is offered, of which no model need be asked; None where something is."""
        if self.selection is None or self.functions:
            return None
        return Infeasible(
            f"The function selector {self.selector!r} finds that none of the {self.selection.considered:,} functions "
            "fits this goal. Say it in other words, or let the selector offer more."
        )

    def told(self, proposal: Plan | Answer | Infeasible) -> Plan | Answer | Infeasible:
        """Return a proposal; where it is that the goal cannot be reached, with how little its model knew."""
        if self.selection is None or not isinstance(proposal, Infeasible):
            return proposal
        return replace(proposal, reason=f"{proposal.reason} ({self._known()} The selector can be set to choose more.)")

    def explained(self, findings: Sequence[Finding], every: Mapping[str, FunctionManual]) -> list[Finding]:
        """Return the findings of a check with `manuals`; a function that was not offered is no unknown one."""
        if self.selection is None:
            return list(findings)
        return [self._explained(finding, every) for finding in findings]

    def _explained(self, finding: Finding, every: Mapping[str, FunctionManual]) -> Finding:
        before, quote, rest = finding.message.partition("there is no function '")
        name, _, after = rest.partition("'")
        if not quote or name not in every or name in self.manuals:
            return finding
        return replace(finding, message=f"{before}the function {name!r} was not offered{after}. {self._known()}")

    def _known(self) -> str:
        told = len(self.functions)
        known = self.selection.considered if self.selection is not None else told
        return (
            f"Of {known:,} functions the function selector {self.selector!r} chose {told:,} for the goal, and the "
            "model was told of no others."
        )


class Offers:
    """What a planner is told of for a goal, from its first proposal to its last.

    Only a planner that says ``asks_model = True`` has its functions chosen: one that needs no model reads the whole
    catalogue at no cost, and may look for a function that the goal does not speak of. The choice rests on the goal
    alone, so that it stays as it is, and is made again only when the kernel has other functions.
    """

    def __init__(self, kernel: Kernel, planner: Planner, goal: str, emit: Emit) -> None:
        self._kernel = kernel
        self._selector = kernel.function_selector if getattr(planner, "asks_model", False) else None
        self._goal = goal
        self._emit = emit
        self._latest: tuple[Mapping[str, FunctionManual], Offer] | None = None

    async def now(self) -> Offer:
        """Return what is offered, and tell of a selection once; raises what the kernel's selector does."""
        every = self._kernel.manuals
        if self._latest is None or self._latest[0] is not every:
            self._latest = (every, await self._made(every))
            selection = self._latest[1].selection
            if selection is not None:
                self._emit(FunctionsOffered(selection))
        return self._latest[1]

    async def _made(self, every: Mapping[str, FunctionManual]) -> Offer:
        if self._selector is not None:
            from portico.selection.offering import selected

            selection = await selected(self._selector, every, (self._goal,))
            if selection is not None:
                for name in selection.absent:
                    self._kernel.function(name)
                names = frozenset(selection.names)
                # In the catalogue's order: the same functions make the same prompt, which services cache.
                manuals = {name: manual for name, manual in every.items() if name in names}
                return Offer(tuple(manuals.values()), manuals, selection, self._selector.name)
        return Offer(tuple(every.values()), every)
