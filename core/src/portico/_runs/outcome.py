"""The outcomes of a run: their states and their JSON form; and the checks before a run begins."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from portico._chat.messages import Citation, Usage
from portico._plans.findings import Finding
from portico._plans.task import Answer, Budget, Infeasible, StepRecord

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from portico._agents.thread import Thread
    from portico._chat.messages import Message
    from portico._plans.plan import Plan
    from portico._plans.task import Emit
    from portico._ports.planner import Planner
    from portico._search.results import TextSearchResult
    from portico._selection.selection import Selection


@dataclass(frozen=True, slots=True)
class Proposal:
    """The first proposal of a planner: a plan with the ``findings`` of its check, an answer, or an infeasibility.

    ``selection`` says which functions the planner was offered, where a function selector left some out.
    """

    planner: str
    outcome: Plan | FinalOutcome
    findings: tuple[Finding, ...] = ()
    selection: Selection | None = None


@dataclass(frozen=True, slots=True)
class Paused:
    """The run waits for a person.

    Middleware paused it, or (``uncertain``) an earlier process was interrupted in a step with effects, which may have
    happened. ``step`` is the step; None where the whole plan waits.
    """

    reason: str
    step: str | None = None
    uncertain: bool = False

    @property
    def text(self) -> str:
        """The outcome in words, for people."""
        return f"Paused{f' at the step {self.step}' if self.step else ''}: {self.reason}"


FinalOutcome: TypeAlias = Answer | Infeasible
"""The outcomes that a planner may propose and that end a run."""
Outcome: TypeAlias = FinalOutcome | Paused
"""How a run may end. A new outcome needs a line in each function and table below."""
RunStateName: TypeAlias = Literal["running", "done", "failed", "infeasible", "held", "uncertain", "interrupted"]

STATES: Mapping[str, RunStateName] = {"answer": "done", "infeasible": "infeasible", "held": "held", "failed": "failed"}
"""The state of a run by the ``kind`` of its outcome in the journal."""
FINAL = {"done": "has its answer", "infeasible": "was found to be infeasible"}
"""The states in which a run cannot be resumed, in words."""


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
    passages: tuple[TextSearchResult, ...] = ()
    """The passages that the answer was made from: what the searches found, or what the planner took of it."""

    @staticmethod
    def check_name(run: str) -> str:
        r"""Return a run's name; raises ``TypeError`` and ``ValueError`` for a name that a store may not take.

        >>> Run.check_name("order 17"), Run.check_name("a\0b")
        Traceback (most recent call last):
        ValueError: the name of a run has 1 to 200 characters, without NUL and halves of surrogate pairs, not 'a\x00b'
        """
        if not isinstance(run, str):
            raise TypeError(f"the name of a run is text, not {run!r}")
        # A half of a surrogate pair has no UTF-8, and PostgreSQL takes no NUL.
        unfit = any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in run)
        if not run.strip() or len(run) > LONGEST_RUN or unfit:
            raise ValueError(
                f"the name of a run has 1 to {LONGEST_RUN} characters, without NUL and halves of surrogate pairs, "
                f"not {run[:40]!r}"
            )
        return run


def state_of(outcome: Outcome) -> tuple[RunStateName, str]:
    """Return the state of a run with this outcome, and why it is no answer."""
    body = outcome_body(outcome)
    return "uncertain" if body.get("uncertain") else STATES[body["kind"]], body.get("reason", "")


def outcome_body(outcome: Outcome) -> Mapping[str, Any]:
    """Return what the journal says of an outcome, without what is empty."""
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


def outcome_of(body: Mapping[str, Any]) -> FinalOutcome | None:
    """Return the final outcome of a body; None for a body without one.

    Raises ``LookupError`` and ``TypeError`` for what `outcome_body` does not write.
    """
    match body.get("kind"):
        case "answer":
            return Answer(
                str(body["text"]),
                tuple(Citation(**citation) for citation in body.get("citations", ())),
                body.get("value"),
                tuple(body.get("warnings", ())),
            )
        case "infeasible":
            return Infeasible(str(body["reason"]), tuple(body.get("missing", ())))
        case _:
            return None


GivenContext: TypeAlias = "Thread | Sequence[Message] | Mapping[str, Any] | None"


class SubmitOptions(TypedDict, total=False):
    """What can be given by name to `Kernel.submit` and `Kernel.submit_all`.

    ``planner`` is the name of one that workers have; ``functions``, ``exclude``, ``budget``, ``context`` and ``reuse``
    are as `Kernel.run_goal` takes them, and what else is in the context is JSON.
    """

    planner: str | None
    functions: Collection[str] | None
    exclude: Collection[str]
    budget: Budget | None
    context: GivenContext
    reuse: bool | None


class RunOptions(TypedDict, total=False):
    """What can be given by name to `Kernel.run_goal`.

    ``planner`` is the name of one, or an object; by default the configured one. ``functions`` names the only functions
    and plugins that it may use, ``exclude`` those that it may not; what the kernel leaves out stays out. ``input`` is a
    JSON value; plans refer to it as the step ``input``. ``context`` is the conversation before the goal: a thread or
    messages, or a mapping with these under ``messages``, with the `Image`, `Audio` and `File` parts under ``attached``
    that belong to the goal, and with what else a planner of yours reads. ``emit`` is called with every event. ``reuse``
    runs a plan that was saved for this goal and these functions, and saves a plan that leads to an answer, unless there
    is a context; by default the kernel's setting. ``run`` is a name for the run in the journal.
    """

    planner: Planner | str | None
    functions: Collection[str] | None
    exclude: Collection[str]
    input: Any
    budget: Budget | None
    context: GivenContext
    emit: Emit | None
    reuse: bool | None
    run: str | None


LONGEST_RUN = 200
"""The most characters of a run's name that every store takes."""


def new_run() -> str:
    """Return a name that no other run has, and that sorts by time: ``20261121-233000-5f3a9c21d04e``."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(6).hex()}"


def require_goal(goal: str) -> str:
    """Return a goal; ``ValueError`` for a blank one."""
    if not goal.strip():
        raise ValueError("the goal is blank")
    return goal


def require_budget(budget: Budget) -> Budget:
    """Return a budget; ``ValueError`` where its seconds, its items or its cost are no number of these."""
    for name, unit in (("seconds", "seconds"), ("step_seconds", "seconds"), ("cost", "US dollars")):
        value = getattr(budget, name)
        if value is not None and not 0 <= value < math.inf:
            raise ValueError(f"the budget's {name} are {value}: give a number of {unit}, or None for no bound")
    if type(budget.items) is not int or budget.items < 0:
        raise ValueError(f"the budget's items are {budget.items}: give a whole number that is not below 0")
    return budget


def copy_json(value: Any, what: str = "the input") -> Any:
    """Return a JSON value as a reader of its text has it; ``ValueError`` for a value that is not JSON."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not JSON: {error}") from error
