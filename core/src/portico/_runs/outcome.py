"""The outcome of a run, and the checks before it begins."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from portico._chat.messages import Citation, Usage
from portico._plans.findings import Finding
from portico._plans.task import Answer, Budget, Infeasible, StepRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from portico._plans.plan import Plan
    from portico._selection.selection import Selection


@dataclass(frozen=True, slots=True)
class Proposal:
    """The first proposal of a planner: a plan with the ``findings`` of its check, an answer, or an infeasibility.

    ``selection`` says which functions the planner was offered, where a function selector left some out.
    """

    planner: str
    outcome: Plan | Answer | Infeasible
    findings: tuple[Finding, ...] = ()
    selection: Selection | None = None


@dataclass(frozen=True, slots=True)
class Paused:
    """The run waits for a person.

    Middleware paused it, or (``uncertain``) a step with effects was interrupted in an earlier
    process, and no one knows whether it happened. ``step`` is the step, None where the whole plan waits.
    """

    reason: str
    step: str | None = None
    uncertain: bool = False


Outcome: TypeAlias = Answer | Infeasible | Paused
"""How a run may end."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a run ended and what it did.

    ``plan`` is every executed step as one plan, with the result where a plan gave the answer: what can be replayed,
    with ``input``, the JSON value that it was given.
    """

    goal: str
    name: str
    planner: str
    outcome: Outcome
    plan: Plan
    steps: tuple[StepRecord, ...]
    usage: Usage = field(default_factory=Usage)
    services: tuple[str, ...] = ()
    """The chat services that were asked, in order."""
    input: Any = None
    selection: Selection | None = None
    """Which functions the planner's model saw and why, where a function selector left some out."""

    @staticmethod
    def check_name(run: str) -> str:
        r"""Return a run's name that somebody chose; ``TypeError`` and ``ValueError`` for what not every store takes.

        >>> Run.check_name("order 17"), Run.check_name("a\0b")
        Traceback (most recent call last):
        ValueError: 'a\x00b' names no run: not every store takes the character '\x00'
        """
        if not isinstance(run, str):
            raise TypeError(f"the name of a run is text, not {run!r}")
        if not run.strip():
            raise ValueError("the name of the run is blank")
        if len(run) > LONGEST_RUN:
            raise ValueError(f"the name of a run has {LONGEST_RUN} characters at most, not {len(run)}: {run[:40]!r}…")
        for letter in run:
            # A lone surrogate cannot be written as UTF-8, and no text of PostgreSQL has a NUL.
            if letter == "\0" or "\ud800" <= letter <= "\udfff":
                raise ValueError(f"{run!r} names no run: not every store takes the character {letter!r}")
        return run


def state_of(outcome: Outcome) -> tuple[str, str]:
    """Return the state of a run with this outcome, and why it is no answer."""
    match outcome:
        case Answer():
            return "done", ""
        case Infeasible():
            return "infeasible", outcome.reason
        case Paused():
            return "uncertain" if outcome.uncertain else "held", outcome.reason


def outcome_body(outcome: Outcome) -> Mapping[str, Any]:
    """Return what the journal says of an outcome; what is empty is left out."""
    body: dict[str, Any]
    match outcome:
        case Answer():
            body = {"kind": "answer", "text": outcome.text}
            body |= {"value": outcome.value} if outcome.value is not None else {}
            body |= {"citations": [asdict(each) for each in outcome.citations]} if outcome.citations else {}
            body |= {"warnings": list(outcome.warnings)} if outcome.warnings else {}
        case Infeasible():
            body = {"kind": "infeasible", "reason": outcome.reason, "missing": list(outcome.missing)}
        case Paused():
            body = {"kind": "held", "reason": outcome.reason, "step": outcome.step}
            body |= {"uncertain": True} if outcome.uncertain else {}
    return body


def outcome_of(body: Mapping[str, Any]) -> Answer | Infeasible | None:
    """Return the outcome that a body tells of; None for one that a run can go on from, or for another thing.

    Raises ``LookupError`` and ``TypeError`` for what `outcome_body` does not write.
    """
    match body.get("kind"):
        case "answer":
            citations: Sequence[Mapping[str, Any]] = body.get("citations", ())
            return Answer(
                str(body["text"]),
                tuple(Citation(**citation) for citation in citations),
                body.get("value"),
                tuple(body.get("warnings", ())),
            )
        case "infeasible":
            return Infeasible(str(body["reason"]), tuple(body.get("missing", ())))
        case _:
            return None


def require_json(outcome: Answer | Infeasible, planner: str) -> None:
    """Raise ``TypeError`` for a planner's answer that the journal cannot keep."""
    try:
        json.dumps(outcome_body(outcome), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"the planner {planner!r} answered with what is not JSON: {error}") from error


LONGEST_RUN = 200
"""The most characters of a run's name that every store takes."""


def new_run() -> str:
    """Return a name that no other run has, and that sorts by time: ``20261121-233000-5f3a9c21d04e``."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(6).hex()}"


def checked_goal(goal: str) -> str:
    """Return a goal; ``ValueError`` for a blank one."""
    if not goal.strip():
        raise ValueError("the goal is blank")
    return goal


def checked_budget(budget: Budget) -> Budget:
    """Return a budget; ``ValueError`` where its seconds are none."""
    for name in ("seconds", "step_seconds"):
        seconds = getattr(budget, name)
        if seconds is not None and not 0 <= seconds < math.inf:
            raise ValueError(f"the budget's {name} are {seconds}: give a number of seconds, or None for no bound")
    return budget


def checked_input(value: Any, what: str = "the input") -> Any:
    """Return a JSON value as it will be read again; ``ValueError`` for any other."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not JSON: {error}") from error
