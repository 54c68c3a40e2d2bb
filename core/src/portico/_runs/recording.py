"""What a durable runner records of a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from portico._chat.messages import Usage
from portico._functions.middleware import current_step
from portico._plans.json_form import plan_from_json, plan_to_json
from portico._plans.plan import Plan
from portico._plans.task import Answer, Emit, Event, Infeasible, Refusal, RunEvent, Task
from portico._runs.journal import refusal_body
from portico._runs.outcome import outcome_body, outcome_of
from portico.errors import PlanFormatError, StoreDamaged, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from portico._kernel_like import KernelLike
    from portico._ports.durable_runs import DurableRuns
    from portico._ports.planner import Planner
    from portico._ports.runner import Runner
    from portico._runs.journal import RunState


PROPOSAL_VERSION = 1
_DIGITS = 32

Proposal: TypeAlias = Plan | Answer | Infeasible
Said: TypeAlias = Event.ChatUsed | Event.Warned
"""What a planner says that counts after it has proposed; all else that it says is for who watches."""

_OTHER = (LookupError, TypeError, ValueError, AttributeError, RecursionError, PlanFormatError)


def proposal_to_json(proposal: object, said: Collection[Said] = ()) -> dict[str, Any] | None:
    """Return a proposal with what its planner said; None where JSON would not give it back as it is, or it is none.

    >>> proposal_to_json(Infeasible("no map", ("maps",)))
    {'version': 1, 'outcome': {'kind': 'infeasible', 'reason': 'no map', 'missing': ['maps']}}

    Values are copied. A plan that could not be read back is refused by its check, with the findings that say why.
    """
    if not isinstance(proposal, Plan | Answer | Infeasible):
        return None
    try:
        document: dict[str, Any] = json.loads(json.dumps(_document(proposal, said), allow_nan=False))
        return document if proposal_from_json(document) == (proposal, tuple(said)) else None
    except (*_OTHER, StoreError):
        return None


def proposal_from_json(document: Any) -> tuple[Proposal, tuple[Said, ...]]:
    """Read a proposal and what its planner said.

    Raises ``StoreDamaged`` for anything that `proposal_to_json` does not write and ``StoreError`` for a newer version.
    """
    try:
        version = document["version"]
        if type(version) is int and version > PROPOSAL_VERSION:
            raise StoreError(
                f"The runner has a proposal of version {version}; this is a Portico that knows version "
                f"{PROPOSAL_VERSION}. Use the newer one."
            )
        proposal = plan_from_json(document["plan"]) if "plan" in document else outcome_of(document["outcome"])
        if proposal is None:
            raise ValueError("it is neither a plan nor an outcome")
        said = tuple(_said(each) for each in document.get("said", ()))
        if _sorted(_document(proposal, said)) != _sorted(document):
            raise ValueError("it is not as it was written")
    except _OTHER as error:
        raise StoreDamaged(f"What the runner recorded is no proposal: {error!r}.") from error
    return proposal, said


def _document(proposal: Proposal, said: Collection[Said]) -> dict[str, Any]:
    document: dict[str, Any] = {"version": PROPOSAL_VERSION}
    document |= {"plan": plan_to_json(proposal)} if isinstance(proposal, Plan) else {"outcome": outcome_body(proposal)}
    told = [asdict(event) for event in said]
    return {**document, "said": told} if told else document


def _sorted(document: Any) -> str:
    return json.dumps(document, allow_nan=False, sort_keys=True)


def _said(each: Mapping[str, Any]) -> Said:
    return Event.Warned(**each) if "warning" in each else Event.ChatUsed(**{**each, "usage": Usage(**each["usage"])})


def digest_of(task: Task, planner: str) -> str | None:
    """Return a digest of what a planner is given; None where something of it is not JSON.

    Equal digests mean the same state, in any process: the seconds that are left are not part of it, nor are the
    refusals that are left, of which every process has its own. A context that is not JSON may be anything.
    """
    budget = task.budget
    given = {field.name: getattr(task, field.name) for field in fields(task) if field.name != "budget"}
    given |= {"planner": planner, "proposals": budget.proposals, "steps_left": budget.steps}
    try:
        text = json.dumps(given, allow_nan=False, sort_keys=True, default=_plain)
    except (TypeError, ValueError, RecursionError):
        return None
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _plain(value: Any) -> Any:
    if isinstance(value, Refusal):
        return refusal_body(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.compare}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


T = TypeVar("T")


def recording_of(kernel: KernelLike, run: str) -> Recording | None:
    """Return how a run of a kernel with a journal is recorded; None where it is not.

    A run that a step of another one makes is part of that step, which is recorded as a whole.
    """
    runner = kernel.runner
    durable = None if runner is None else runner.durable
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

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do all the work of the run, recorded."""
        return await self._durable.run(self._run, work)

    def take(self, step: str) -> Any:
        """Return the result of a step that an earlier process carried out, once."""
        self.taken.add(step)
        self._given[step] = 1
        return self.finished.pop(step)

    async def step(self, step: str, action: Callable[[], Awaitable[Any]]) -> Any:
        """Carry out a step, or return its recorded result.

        Step middleware may proceed several times: each time is its own action, ``s1``, ``s1//2`` and so on.
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

            def hear(event: RunEvent) -> None:
                if isinstance(event, Event.ChatUsed | Event.Warned):
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
