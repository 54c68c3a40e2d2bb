"""What a planner is given, what it may return, and what happens on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from portico.chat import Citation, Usage
from portico.functions import FunctionManual
from portico.plans.plan import Plan, Step

__all__ = [
    "Answer",
    "Budget",
    "ChatUsed",
    "Emit",
    "Event",
    "Finding",
    "Infeasible",
    "Proposed",
    "Refusal",
    "StepFailure",
    "StepFinished",
    "StepRecord",
    "StepStarted",
    "Task",
    "TextDelta",
]


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
class Finding:
    """Something that a check found: in which step, where inside it, and how bad it is."""

    message: str
    step: str | None = None
    place: str = ""
    severity: str = "error"

    def __str__(self) -> str:
        where = " ".join(part for part in (self.step, self.place) if part)
        return f"{where}: {self.message}" if where else self.message


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
    """What is left: proposals to make, steps to run, refusals in a row to bear, seconds (None: no bound)."""

    proposals: int = 20
    steps: int = 100
    refusals: int = 3
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """Everything a planner needs to propose; it keeps nothing itself between two calls.

    ``functions`` is the manual of what may be used; ``steps`` are all steps run so far in this pursuit, in the
    order in which they ended; ``refused`` are the proposals refused since the last one that ran; ``notes`` are
    those of the last plan; ``context`` is what the application hands its planner.
    """

    goal: str
    functions: tuple[FunctionManual, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    refused: tuple[Refusal, ...] = ()
    budget: Budget = Budget()
    notes: Any = None
    context: Mapping[str, Any] | None = None

    def result_of(self, step: str) -> Any:
        """Return a finished step's JSON result; ``KeyError`` when there is none."""
        for record in self.steps:
            if record.step.id == step and record.error is None:
                return record.result
        raise KeyError(step)


@dataclass(frozen=True, slots=True)
class Proposed:
    """A planner proposed a plan and the check passed (or not: then there are findings)."""

    plan: Plan
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step began, with the JSON arguments it is given."""

    step: Step
    arguments: Mapping[str, Any]


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
class TextDelta:
    """A piece of the answer's text as it comes."""

    text: str


@dataclass(frozen=True, slots=True)
class ChatUsed:
    """A planner asked a chat service: who answered, and what it cost."""

    service: str
    model: str
    usage: Usage


Event: TypeAlias = Proposed | StepStarted | StepFinished | StepFailure | TextDelta | ChatUsed
Emit: TypeAlias = Callable[[Event], None]
