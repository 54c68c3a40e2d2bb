"""Tasks and outcomes of planners, and the events of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from portico._chat.attaching import Attachments
from portico._chat.messages import EARLIER_ANSWER, Message, is_users, untrusted_in
from portico._plans.plan import ITEM, Plan, Step, around, evaluate
from portico._selection.selection import FunctionsOffered
from portico.errors import LimitExceeded, PlanError

if TYPE_CHECKING:
    from portico._chat.citations import Citations
    from portico._chat.messages import Citation, Source, Usage
    from portico._functions.functions import FunctionSpec
    from portico._plans.findings import Finding


_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Answer:
    """The goal is reached. ``value`` is the JSON result, if a plan gave one; ``text`` is for people.

    ``warnings`` are sentences: a source failed, or no result backs a citation. ``sources`` are the passages that a
    planner made it from, where these are not all that its searches found.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    value: Any = None
    warnings: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()

    @staticmethod
    def of(value: Any) -> Answer:
        """Return a plan's result as an answer: text as it is, other values as JSON."""
        if isinstance(value, str):
            return Answer(value, value=value)
        return Answer(json.dumps(value, ensure_ascii=False, indent=2), value=value)

    def citing(self, check: Citations) -> Answer:
        """Return the answer with what it cites, numbered in its order; its warnings say what is wrong with that."""
        text, cited = check.renumber(self.text)
        value = text if self.value == self.text else self.value
        return replace(self, text=text, citations=cited, value=value, warnings=(*self.warnings, *check.remarks))


@dataclass(frozen=True, slots=True)
class Infeasible:
    """The goal cannot be reached; ``missing`` names the capabilities that would be needed."""

    reason: str
    missing: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The outcome in words, for people."""
        lacking = f" Missing: {'; '.join(self.missing)}." if self.missing else ""
        return f"This cannot be done: {self.reason}{lacking}"

    @staticmethod
    def from_call(arguments: Mapping[str, Any], *, said: str = "") -> Infeasible:
        """Return the outcome of a call by which a model gives up: its ``reason`` and what is ``missing``.

        >>> Infeasible.from_call({"reason": " No ferry. ", "missing": "a timetable"})
        Infeasible(reason='No ferry.', missing=('a timetable',))

        Without a reason, the text that the model ``said`` is the reason. ``missing`` may be one text instead of a list.
        """
        reason, missing = arguments.get("reason"), arguments.get("missing")
        words = (reason.strip() if isinstance(reason, str) else "") or said.strip()
        if isinstance(missing, str):
            missing = [missing]
        named = (str(each).strip() for each in missing) if isinstance(missing, list) else ()
        return Infeasible(
            words or "The model says that these functions cannot reach the goal.", tuple(filter(None, named))
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """A proposal that does not run: it failed its check, or a person refused it; with the findings."""

    plan: Plan
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step that was run, with its JSON result or the sentence that says how it failed."""

    step: Step
    result: Any = None
    error: str | None = None
    skipped: bool = False
    """Whether its condition did not hold; its result is null then."""
    untrusted: tuple[str, ...] = ()
    """The untrusted places that had a part in the result, where the kernel has a policy: ``s1[*].body``."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may still use: proposals, steps, refusals in a row, seconds (None: no bound).

    ``step_seconds`` bounds each attempt of a step. ``step_attempts`` bounds the attempts of a step that fails in a way
    that may pass. A step of a plan may set both itself. Functions with effects are never tried again. ``items`` bounds
    the items of lists for which all steps with ``each`` run, together with the steps inside of these items. ``cost`` is
    what all models of the run may cost in US dollars, looked at before each call, from its beginning or its resuming;
    a chat service of unknown price is refused then.
    """

    proposals: int = 20
    steps: int = 100
    refusals: int = 3
    seconds: float | None = None
    step_seconds: float | None = None
    step_attempts: int = 1
    items: int = 1_000
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """Everything a planner needs to propose; planners keep nothing between two calls.

    ``functions`` are the functions that may be used: all of them, or those that the kernel's function selector chose
    for the goal, if the planner asks a model. ``steps`` are all steps run so far in this run, in the order in which
    they ended. ``refused`` are the proposals refused since the last one that ran. ``notes`` are those of the last plan,
    ``notes_before`` those of earlier plans. ``context`` comes from the application. Under ``messages`` it has the
    conversation before the goal, each ``{"role": "user", "text": …}``, with ``untrusted`` where it is known which
    untrusted places had a part in it; under ``attached`` the parts that the user attached to the goal, in the JSON form
    of threads, which `Asking.ask` and `Asking.stream` show the model. ``input`` is the JSON value that came with the
    goal, or None; plans refer to it as to the step ``input``. ``sources`` are the passages in the results of steps; an
    answer cites them by these numbers.
    """

    goal: str
    functions: tuple[FunctionSpec, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    refused: tuple[Refusal, ...] = ()
    budget: Budget = Budget()
    notes: Any = None
    context: Mapping[str, Any] | None = None
    input: Any = None
    notes_before: tuple[Any, ...] = ()
    sources: tuple[Source, ...] = ()

    def result_of(self, step: str) -> Any:
        """Return a finished step's JSON result; ``KeyError`` when there is none."""
        for record in self.steps:
            if record.step.id == step and record.error is None:
                return record.result
        raise KeyError(step)

    def require_functions(self) -> None:
        """Raise ``PlanError`` when there is no function to plan with."""
        if not self.functions:
            raise PlanError(
                "There are no functions to plan with. Add some to the kernel, name them under [functions] or [search] "
                "in portico.toml, or leave out fewer with functions=, exclude= and those of [planner]."
            )

    def fresh_ids(self, taken: Collection[str] = ()) -> Iterator[str]:
        """Yield step ids that the run has not used: ``s1``, ``s2`` and so on."""
        used = {record.step.id for record in self.steps} | set(taken)
        start = sum(not around(id) for id in used) + 1
        return (id for number in count(start) if (id := f"s{number}") not in used)

    @property
    def own_steps(self) -> tuple[StepRecord, ...]:
        """Return the steps of plans that were proposed, without those that ran inside of one."""
        return tuple(record for record in self.steps if record.step.own)

    def explain(self, record: StepRecord) -> str:
        """Say why a step gave nothing: how it failed, or that it was skipped; "" where it gave something.

        Of a step for each item of a list it says for which items it ran, so that a new plan can leave them out.
        """
        if record.skipped:
            return "It was skipped, since its condition does not hold."
        if record.error is None:
            return ""
        ran = [
            each.step.id.rpartition("[")[2][:-1]
            for each in self.steps
            if each.error is None and not each.skipped and around(each.step.id) == record.step.id
        ]
        if record.step.each is None or not ran:
            return record.error
        shown = f"{', '.join(ran[:_SHOWN])}{', …' if len(ran) > _SHOWN else ''}"
        return f"{record.error.rstrip('.')}. It ran already for the items at {shown} of its list; the first is at 0."

    def repeats(self) -> int:
        """Return how many of the last steps are the same call with the same result; 0 without steps.

        A model may repeat a call for ever.
        """
        records = self.own_steps[::-1]
        if not records or records[0].error is not None:
            return 0
        steps = ((each.step, each.result, each.error) for each in records)
        calls = [(step.function, step.arguments, step.each, step.when, *ended) for step, *ended in steps]
        return next((number for number, call in enumerate(calls) if call != calls[0]), len(calls))

    def arguments_of(self, step: Step) -> dict[str, Any]:
        """Return a step's arguments as JSON, without those that refer to a missing result."""
        results = {record.step.id: record.result for record in self.steps if record.error is None}
        results.setdefault("input", self.input)
        outer = around(step.id) if step.id.endswith("]") else ""
        loop = next((each.step.each for each in self.steps if outer and each.step.id == outer), None)
        if loop is not None:
            with suppress(LookupError, LimitExceeded):
                results[ITEM] = evaluate(loop.items, results)[int(step.id[len(outer) + 1 : -1])]
        given: dict[str, Any] = {}
        for name, expression in step.arguments.items():
            try:
                given[name] = evaluate(expression, results)
            except (LookupError, LimitExceeded):
                continue
        return given

    def plan_number(self, *, replans: int) -> int:
        """Return the number of the plan that comes next, from 1; a planner keeps it in its notes, under ``plan``.

        >>> Task("A poem", notes={"plan": 1}).plan_number(replans=2)
        2

        Raises ``PlanError`` with the last error when a step failed and ``replans`` plans came after the first already.
        """
        # The notes may be those of another planner.
        counted = self.notes.get("plan") if isinstance(self.notes, dict) else None
        number = counted + 1 if type(counted) is int else 1
        errors = [record.error for record in self.own_steps if record.error is not None]
        if errors and number > replans + 1:
            tried = f"The plan failed, and so did the {replans} after it." if replans else "The plan failed."
            raise PlanError(f"{tried} The last error was: {errors[-1]}")
        return number


def context_of(given: Any) -> Mapping[str, Any] | None:
    """Return a context as `Task` has it: of a conversation, the words of users and assistants as JSON.

    What is ``attached`` is in the form of threads. Raises ``TypeError`` for messages and parts that are none.
    """
    context: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {"messages": given} if given else {}
    if "attached" in context:
        context["attached"] = Attachments.to_json(context["attached"])
    if "messages" in context:
        try:
            said = getattr(context["messages"], "messages", context["messages"])
            messages = [_message_json(one) for one in said]
            context["messages"] = [
                each for each in messages if each["role"] in ("user", "assistant") and each["text"].strip()
            ]
        except (AttributeError, LookupError, TypeError) as error:
            raise TypeError(f"a conversation is a Thread or a list of messages, not {given!r}") from error
    return context or None


def _message_json(given: Any) -> dict[str, Any]:
    """Return a message as JSON, with the untrusted places that had a part in it where they are known."""
    if isinstance(given, Message):
        role, text, untrusted = given.role, given.text, given.untrusted
        if role == "user" and not is_users(given):
            untrusted = untrusted_in(given) or EARLIER_ANSWER
    else:
        role, text, untrusted = given["role"], given["text"], given.get("untrusted")
    return {"role": role, "text": text} | ({} if untrusted is None else {"untrusted": list(map(str, untrusted))})


class Event:
    """The events of a run, `Event.StepStarted` and so on, in the order in which they happen."""

    taker: ClassVar[ContextVar[Emit]] = ContextVar("portico_events", default=lambda event: None)

    @staticmethod
    def of_run() -> Emit:
        """Return what takes what a function costs in a run, and its words where its step gives the answer."""
        return Event.taker.get()

    @dataclass(frozen=True, slots=True)
    class RunStarted:
        """A run began, or continues after the ``resumed`` steps of its journal. ``run`` is its name there."""

        run: str
        goal: str
        planner: str
        resumed: int | None = None

    @dataclass(frozen=True, slots=True)
    class Proposed:
        """A planner made a plan, and it was checked; or the plan saved at ``saved_at`` (UTC, ISO 8601) runs again."""

        plan: Plan
        findings: tuple[Finding, ...] = ()
        saved_at: str | None = None

    @dataclass(frozen=True, slots=True)
    class Refused:
        """A proposal does not run; its planner gets the findings."""

        plan: Plan
        findings: tuple[Finding, ...]

    @dataclass(frozen=True, slots=True)
    class StepStarted:
        """A step began, with the JSON arguments it is given."""

        step: Step
        arguments: Mapping[str, Any]

    @dataclass(frozen=True, slots=True)
    class StepRetried:
        """A step failed in a way that may pass; attempt number ``attempt`` starts in ``seconds`` seconds."""

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
    class StepSkipped:
        """A step does not run, since its condition does not hold; its result is null."""

        step: Step

    @dataclass(frozen=True, slots=True)
    class StepFailed:
        """A step ended with an error."""

        step: Step
        error: str

    @dataclass(frozen=True, slots=True)
    class StepPaused:
        """Middleware paused a step, or a plan before its first step (``step`` is None).

        A step is ``uncertain`` where it has effects and an earlier process was interrupted in it: it may have happened.
        """

        step: Step | None
        reason: str
        uncertain: bool = False

    @dataclass(frozen=True, slots=True)
    class Ended:
        """A run ended in this ``state``; ``reason`` says why, if there is no answer."""

        run: str
        state: str
        reason: str = ""

    @dataclass(frozen=True, slots=True)
    class TextDelta:
        """A piece of the answer's text as it comes."""

        text: str

    @dataclass(frozen=True, slots=True)
    class ChatUsed:
        """A planner or a function asked a chat service: who answered, what it cost, and what the service read itself.

        ``untrusted`` are the places that it looked into, such as the web, and ``citations`` the pages that it cites.
        """

        service: str
        model: str
        usage: Usage
        untrusted: tuple[str, ...] = ()
        citations: tuple[Citation, ...] = ()

    @dataclass(frozen=True, slots=True)
    class Warned:
        """A planner adds a warning to the answer, also if a plan gives the answer."""

        warning: str


RunEvent: TypeAlias = (
    Event.RunStarted
    | Event.Proposed
    | Event.Refused
    | Event.StepStarted
    | Event.StepRetried
    | Event.StepFinished
    | Event.StepSkipped
    | Event.StepFailed
    | Event.StepPaused
    | FunctionsOffered
    | Event.TextDelta
    | Event.ChatUsed
    | Event.Warned
    | Event.Ended
)
Emit: TypeAlias = Callable[[RunEvent], None]
