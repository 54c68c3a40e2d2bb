"""What a planner is offered: the functions that a run may use, and how they were chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from portico._functions.functions import FunctionSpec
from portico._functions.middleware import ProposalInvocation, run_middleware
from portico._plans.findings import Finding
from portico._plans.plan import Plan
from portico._plans.task import Emit, Infeasible, StepRecord, Task
from portico._runs.outcome import FinalOutcome
from portico._selection.offering import select_functions
from portico._selection.selection import FunctionsOffered
from portico.errors import ConfigurationError, FunctionNotFound

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from portico._kernel_like import KernelLike
    from portico._ports.planner import Planner
    from portico._selection.selection import Selection

    _Specs = Mapping[str, FunctionSpec]
    _Records = Sequence[StepRecord]


def find_allowed(kernel: KernelLike, functions: Collection[str] | None, exclude: Collection[str]) -> _Specs:
    """Return the functions that planners may use, by what the kernel and the run include and exclude.

    Raises ``FunctionNotFound`` for a name of the run, ``ConfigurationError`` for one of the kernel.
    """
    every = kept = kernel.specs
    choices = (("", functions, exclude), ("[planner]", kernel.planner_include, kernel.planner_exclude))
    for table, include, left_out in choices:
        if include is None and not left_out:
            continue
        try:
            included = every if include is None else {*FunctionSpec.find_names(include, every)}
            excluded = {*FunctionSpec.find_names(left_out, every)}
        except FunctionNotFound as error:
            if not table:
                raise
            raise ConfigurationError(f"include and exclude of {table}: {error}") from error
        kept = {name: spec for name, spec in kept.items() if name in included and name not in excluded}
    return kept


@dataclass(frozen=True, slots=True)
class Offer:
    """The ``functions`` that a planner sees, and how they were chosen.

    ``every`` are those that the run may use, ``known`` those of the kernel; ``steps`` had run when they were chosen.
    """

    known: _Specs
    every: _Specs
    functions: tuple[FunctionSpec, ...]
    specs: _Specs
    selection: Selection | None = None
    hint: str = ""
    steps: int | None = None

    @classmethod
    async def make(
        cls, kernel: KernelLike, planner: Planner, goal: str, emit: Emit, every: _Specs, *, ran: _Records = ()
    ) -> Offer:
        """Choose by the goal which of ``every`` function a planner sees; raises what the function selector raises.

        A selector with ``each_round = True`` chooses by the results of steps too, and again when further ones have run.
        Only the functions of a planner with ``asks_model = True`` are chosen. Others read the whole catalogue at no
        cost, and may look for a function that the goal does not mention.
        """
        selector = kernel.function_selector if getattr(planner, "asks_model", False) else None
        if selector is None:
            return cls(kernel.specs, every, tuple(every.values()), every)
        steps = len(ran) if getattr(selector, "each_round", False) else None
        calls = [(str(each.step.function), str(each.error or each.result)) for each in ran[: steps or 0]]
        selection = await select_functions(selector, every, (goal,), calls=calls)
        if selection is None:
            return cls(kernel.specs, every, tuple(every.values()), every, steps=steps)
        tuple(FunctionSpec.find_names(selection.absent, kernel.specs))
        emit(FunctionsOffered(selection))
        names = frozenset(selection.names)
        # In the catalogue's order: the same functions make the same prompt, which services cache.
        specs = {name: spec for name, spec in every.items() if name in names}
        hint = (
            f"Of {selection.considered:,} functions the function selector {selector.name!r} chose {len(specs):,} for "
            "the goal, and the model saw no others."
        )
        return cls(kernel.specs, every, tuple(specs.values()), specs, selection, hint, steps)

    async def ask(self, kernel: KernelLike, planner: Planner, task: Task, emit: Emit) -> Plan | FinalOutcome:
        """Return the proposal of a planner, inside the middleware.

        It is not asked where nothing is offered to its model. An infeasible goal is reported with how few functions the
        model saw.
        """
        if self.selection is not None and not self.specs:
            return Infeasible(f"{self.hint} Say the goal in other words, or let the selector choose more.")
        propose = partial(planner.propose, task, emit=emit)
        around = kernel.middleware.proposal
        context = ProposalInvocation(planner.name, task) if around else None
        proposal = await (propose() if context is None else run_middleware(around, context, propose))
        if self.selection is None or not isinstance(proposal, Infeasible):
            return proposal
        return replace(proposal, reason=f"{proposal.reason} ({self.hint} The selector can be set to choose more.)")

    def explain(self, finding: Finding) -> Finding:
        """Return a finding; a function that exists and was not offered is not unknown."""
        name = finding.unknown_function
        if name not in self.known or name in self.specs:
            return finding
        hint = self.hint if name in self.every else "This run leaves it out."
        return replace(finding, message=f"the function {name!r} was not offered. {hint}")
