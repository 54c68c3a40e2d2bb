"""What a planner is given, what it may return, and what happens on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from portico._chat.messages import Citation, Usage
from portico._functions.functions import FunctionManual
from portico._plans.findings import Finding
from portico._plans.plan import Plan, Step
from portico._selection.selection import FunctionsOffered


@dataclass(frozen=True, slots=True)
class Answer:
    """The end that was wanted. ``value`` is the JSON result where a plan gave one; ``text`` is for people.

    ``warnings`` are sentences on what to keep in mind: a source that failed, a citation that nothing backs.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    value: Any = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Infeasible:
    """The goal cannot be reached; ``missing`` names the capabilities that would be needed."""

    reason: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A proposal that failed its check, with the findings."""

    plan: Plan
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step that was run, with its JSON result or the sentence that says how it failed."""

    step: Step
    result: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """What is left: proposals to make, steps to run, refusals in a row to bear, seconds (None: no bound).

    ``step_seconds`` bounds each attempt of a step, ``step_attempts`` how often a step is tried in all when it fails
    in a way that may pass; a step of a plan may have its own. Functions with effects are never tried again.
    """

    proposals: int = 20
    steps: int = 100
    refusals: int = 3
    seconds: float | None = None
    step_seconds: float | None = None
    step_attempts: int = 1


@dataclass(frozen=True, slots=True)
class Task:
    """Everything a planner needs to propose; it keeps nothing itself between two calls.

    ``functions`` is the manual of what may be used: of all functions, or of those that the kernel's function selector
    chose for the goal, where the planner asks a model. ``steps`` are all steps run so far in this pursuit, in the
    order in which they ended; ``refused`` are the proposals refused since the last one that ran; ``notes`` are
    those of the last plan, ``notes_before`` those of the plans before it; ``context`` is what the application hands
    its planner. ``input`` is the JSON value that the goal came with: plans refer to it as to the step ``input``;
    None when there is none.
    """

    goal: str
    functions: tuple[FunctionManual, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    refused: tuple[Refusal, ...] = ()
    budget: Budget = Budget()
    notes: Any = None
    context: Mapping[str, Any] | None = None
    input: Any = None
    notes_before: tuple[Any, ...] = ()

    def result_of(self, step: str) -> Any:
        """Return a finished step's JSON result; ``KeyError`` when there is none."""
        for record in self.steps:
            if record.step.id == step and record.error is None:
                return record.result
        raise KeyError(step)


@dataclass(frozen=True, slots=True)
class Started:
    """A pursuit began. ``run`` is its name, by which it can be resumed where a journal is kept."""

    run: str
    goal: str
    planner: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """A run is gone on with, after ``steps`` steps that its journal has."""

    run: str
    goal: str
    planner: str
    steps: int


@dataclass(frozen=True, slots=True)
class Proposed:
    """A planner made a plan, which was checked."""

    plan: Plan
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """A proposal does not run; its planner is told of the findings."""

    plan: Plan
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class PlanReused:
    """A plan that was saved at ``saved_at`` (UTC, ISO 8601) runs in place of a proposal."""

    plan: Plan
    saved_at: str


@dataclass(frozen=True, slots=True)
class PlanHeld:
    """A plan filter held a plan."""

    plan: Plan
    reason: str


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step began, with the JSON arguments it is given."""

    step: Step
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StepRetried:
    """A step failed in a way that may pass: attempt number ``attempt`` comes in ``seconds`` seconds."""

    step: Step
    error: str
    attempt: int
    seconds: float


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A step ended with a result."""

    step: Step
    result: Any


@dataclass(frozen=True, slots=True)
class StepFailure:
    """A step ended with an error."""

    step: Step
    error: str


@dataclass(frozen=True, slots=True)
class StepHeld:
    """A step filter held a step."""

    step: Step
    reason: str


@dataclass(frozen=True, slots=True)
class StepUncertain:
    """A step with effects was interrupted in an earlier process: nobody knows whether it happened."""

    step: Step
    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A pursuit ended: ``state`` is that of its run, ``reason`` why, where it is no answer."""

    run: str
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text as it comes."""

    text: str


@dataclass(frozen=True, slots=True)
class ChatUsed:
    """A planner asked a chat service: who answered, and what it cost."""

    service: str
    model: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Warned:
    """A planner has something to say with the answer, also where a plan gives it: one more of its warnings."""

    warning: str


Event: TypeAlias = (
    Started
    | Resumed
    | Proposed
    | Refused
    | PlanReused
    | PlanHeld
    | StepStarted
    | StepRetried
    | StepFinished
    | StepFailure
    | StepHeld
    | StepUncertain
    | FunctionsOffered
    | TextDelta
    | ChatUsed
    | Warned
    | Ended
)
Emit: TypeAlias = Callable[[Event], None]
