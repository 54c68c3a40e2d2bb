"""Watches where values flow while a run is under way."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from portico._flows.around import Around, member_names
from portico._flows.check import Flow, FlowReview, Flows
from portico._flows.labels import TRUSTED, Label, Shade
from portico._flows.words import UserWords, is_absent, leaves, named_in, readers_at
from portico._functions.middleware import RequireApproval
from portico._plans.findings import Finding
from portico._plans.functions import around_of
from portico._plans.json_form import step_to_json
from portico._plans.plan import INPUT, Plan, Step, around, outermost
from portico._runs.scheduling import PausedStep
from portico._schema.paths import read_path
from portico.errors import PlanError

if TYPE_CHECKING:
    from portico._flows.policy import Policy
    from portico._kernel_like import KernelLike
    from portico._plans.task import StepRecord

_INDEX = re.compile(r"\[\d+\]")


Agreement: TypeAlias = tuple[str, str]
"""A step with the reason that a person read, and a digest of the call that the person saw."""


@dataclass(slots=True)
class Guard:
    """The flows of one run, under the policy of its kernel; ``words`` are what the user said: the goal and the input.

    A value that the user said, word for word, is the user's, wherever it is found: this narrows what the check of the
    plan could not know. ``had_read`` are the untrusted places that the run's planner knows already.
    """

    kernel: KernelLike
    policy: Policy
    words: UserWords
    had_read: set[str] = field(default_factory=set)
    agreed: set[Agreement] = field(default_factory=set)
    warned: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    unsure: bool = False
    """Whether what was read may have written a step of a plan that ran, or was to run."""
    proposed: bool = False
    """Whether the planner was shown the flows of a plan once, so that it may find one without."""
    _flows: dict[str, list[Flow]] = field(default_factory=dict)
    _shades: dict[str, Shade] = field(default_factory=dict)
    _running: Flows | None = None
    _planned: Counter[str] = field(default_factory=Counter)
    """The steps that were planned before anything untrusted was read, and have not run."""
    _begun: list[Plan] = field(default_factory=list)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @staticmethod
    def of(kernel: KernelLike, *words: Any, messages: Iterable[Mapping[str, Any]] = ()) -> Guard | None:
        """Return the guard of a run after a conversation; None where the kernel's policy does not want one."""
        policy = kernel.policy
        if policy is None or policy.mode == "off":
            return None
        read, said = set[str](), list[Any]()
        for word in leaves(words):
            # A prompt that was rendered before says what had a part in it.
            sources = getattr(word, "untrusted", None) or ()
            read |= {*sources}
            said += [] if sources else [word]
        for message in messages:
            # Of an answer it is not known what it quotes, unless it says so.
            sources = message.get("untrusted", () if message["role"] == "user" else ("an earlier answer",))
            read |= {*sources}
            said += [message["text"]] if message["role"] == "user" and not sources else []
        return Guard(kernel, policy, UserWords(said), read)

    @property
    def enforced(self) -> bool:
        """Whether flows that ask are asked about; else they are warnings."""
        return self.policy.mode == "enforce"

    def findings(self, plan: Plan) -> list[Finding]:
        """Return the flows of a plan as findings of its check."""
        return [flow.finding(enforced=self.enforced) for flow in self._check(plan)]

    def begin(self, plan: Plan) -> None:
        """Take over the flows of a plan that is about to run."""
        self._running = self._check(plan)
        flows: dict[str, list[Flow]] = {}
        for flow in self._running:
            flows.setdefault(flow.step, []).append(flow)
        own = {step.id for step in plan.steps}  # also those of a plan that a person edited
        self._flows = {id: found for id, found in self._flows.items() if outermost(id) not in own} | flows
        self.unsure = self.unsure or bool(self.had_read and flows)
        # A plan that continues was planned once.
        if not self.had_read and not any(each is plan for each in self._begun):
            self._planned |= Counter(map(_canonical, plan.steps))  # A step that is planned again is one step.
        self._begun.append(plan)

    def end(self, plan: Plan, records: Iterable[StepRecord]) -> None:
        """Take over the labels of what the steps of a plan gave, or how they failed; what is on record is kept."""
        flows = self._running or self._check(plan)
        ran: dict[str, list[StepRecord]] = {}
        for record in records:
            ran.setdefault(outermost(record.step.id), []).append(record)
        for step in plan.steps:
            inside = ran.get(step.id, ())
            if not inside:
                continue
            self._planned[_canonical(step)] -= 1
            shade = flows.shade(step.id)
            known = Label(frozenset(each for record in inside for each in record.untrusted))
            if known.untrusted and not shade((), True).untrusted:
                shade = _constant(known)
            self._shades[step.id] = shade
            self.had_read |= flows.read(step).untrusted | known.untrusted
            # An error may quote what a server said.
            self.had_read |= {f"the error of {record.step.id}" for record in inside if record.error is not None}

    def sources(self, step: str) -> tuple[str, ...]:
        """Return the untrusted places that had a part in what a step of the plan gives."""
        return () if self._running is None else tuple(sorted(self._running.shade(step)((), True).untrusted))

    def enter(self, step: Step, plan: Plan) -> None:
        """Take over the flows of the plan of a function that began as it was once; what it is given is not known."""
        id = _INDEX.sub("", step.id)
        unknown = Label(frozenset((f"what {id} was given",)))
        within = tuple(id.split("/"))
        flows = Flows(self._around(Plan("")), plan, within, {INPUT: _constant(unknown)}, control=unknown)
        for flow in flows:
            self._flows.setdefault(flow.step, []).append(flow)
        if self._running is not None and step.own:
            self._running.shades[id] = _constant(unknown)

    async def allow(
        self, step: Step, run: str, arguments: Mapping[str, Any], records: Sequence[StepRecord]
    ) -> list[Agreement]:
        """Return what a person agreed to just now for a step; ``records`` are those of the run's steps so far.

        Raises `PausedStep` where a person must agree first, and ``PlanError`` for what is refused.
        """
        asked: list[tuple[Agreement, Flow]] = []
        for flow in self._flows_to(step):
            key = f"{flow.step}: {flow.why}"
            if key in self.warned or self._lifted(flow, step, arguments, records):
                continue
            if not self.enforced:
                self.warnings.append(f"Step {key}.")
                self.warned.add(key)
            elif flow.verdict == "refuse":
                raise PlanError(f"{flow.why}, and is refused")
            else:
                asked.append(((key, _digest(step, arguments)), flow))
        return await self._ask(step, run, arguments, asked)

    async def allow_all(
        self, step: Step, run: str, each: Sequence[Mapping[str, Any]], records: Sequence[StepRecord]
    ) -> list[Agreement]:
        """Ask once about all that a step will be called with, for ``each`` item of its list; see `allow`."""
        waiting, asked = list[Mapping[str, Any]](), list[tuple[Agreement, Flow]]()
        flows = [flow for flow in self._flows_to(step) if flow.verdict != "refuse"] if self.enforced else []
        for arguments in each if flows else ():
            left = [flow for flow in flows if not self._lifted(flow, step, arguments, records)]
            waiting += [arguments] if left else []
            asked += [((f"{flow.step}: {flow.why}", _digest(step, arguments)), flow) for flow in left]
        shown = {name: [arguments.get(name) for arguments in waiting] for name in step.arguments}
        return await self._ask(step, run, shown, asked) if len(waiting) > 1 else []

    async def _ask(
        self, step: Step, run: str, arguments: Mapping[str, Any], asked: Sequence[tuple[Agreement, Flow]]
    ) -> list[Agreement]:
        decide = self.kernel.decide_flow
        async with self._asking:
            new = {key: flow for key, flow in asked if key not in self.agreed}
            if not new:
                return []
            flows = tuple(dict.fromkeys(new.values()))
            decided = False if decide is None else await decide(FlowReview(step, run, arguments, flows))
            if decided is not True:
                words = f": {decided}" if isinstance(decided, str) else ". A person must agree"
                raise PausedStep(step, RequireApproval(f"{flows[0].why}{words}"))
            self.agreed |= set(new)
        return list(new)

    def _flows_to(self, step: Step) -> Iterator[Flow]:
        id = _INDEX.sub("", step.id)
        yield from self._flows.get(id, ())
        spec = self.kernel.specs.get(step.function) if isinstance(step.function, str) else None
        around_all = None if self._running is None else self._running.around
        if spec is not None and around_all is not None and around_all.restricts(spec) and not id.endswith("]"):
            # A call of a template, also in a function that runs a plan: its flow says what it may be called with.
            while id := around(id):
                for flow in self._flows.get(id, ()):
                    if flow.place == ("function",):
                        yield replace(flow, place=("call",))

    def _lifted(self, flow: Flow, step: Step, arguments: Mapping[str, Any], records: Sequence[StepRecord]) -> bool:
        """Tell whether a value may flow after all, since it is one that the user said, or its readers are right."""
        spec = self.kernel.specs.get(step.function) if isinstance(step.function, str) else None
        names = member_names(spec.parameters) if spec is not None else ()
        if flow.place == ("call",):
            # What was read may have decided that it is called, which no words of the user allow.
            decides = self._running is None or spec is None or self._running.around.is_sink(spec)
            return (
                not decides and bool(arguments) and all(self.words.said(value, names) for value in arguments.values())
            )
        if flow.place[0] != "arguments":
            return False
        name, *path = flow.place[1:]
        if name not in arguments:
            return True  # there is no such value
        if flow.readers is not None:
            allowed, given = _readers(flow, records), named_in(arguments.get(flow.readers))
            return given is not None and allowed is not None and bool(given) and given <= allowed
        value = arguments[str(name)]
        if "*" in path:
            return self.words.said(value, names)
        try:
            return self.words.said(read_path(value, tuple(path)), names)
        except LookupError:
            return is_absent(value, tuple(path))

    def _check(self, plan: Plan) -> Flows:
        return Flows(self._around(plan), plan, (), self._shades)

    def _around(self, plan: Plan) -> Around:
        left, late = Counter(self._planned), set[str]()
        # One that has run was counted when it ended.
        for step in (each for each in plan.steps if self.had_read and each.id not in self._shades):
            known = _canonical(step)
            left[known] -= 1
            if left[known] < 0:
                late.add(step.id)
        had_read = Label(frozenset(self.had_read))
        return around_of(
            self.kernel, self.policy, lambda step: had_read if step.id in late else TRUSTED, self.words.said
        )


def _canonical(step: Step) -> str:
    return json.dumps(step_to_json(replace(step, id="", reason="")), sort_keys=True)


def _digest(step: Step, arguments: Mapping[str, Any]) -> str:
    """Return a digest of a call: a value that was right beside others may be wrong beside these."""
    seen = json.dumps([step.function, arguments], sort_keys=True)
    return hashlib.sha256(seen.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _constant(label: Label) -> Shade:
    return lambda path, whole: label


def _readers(flow: Flow, records: Iterable[StepRecord]) -> set[str] | None:
    """Return who may read all that a flow has a part of; None where it cannot be known."""
    results = {record.step.id: record.result for record in records if record.error is None}
    if not all(step in results for step, _ in flow.private):
        return None
    return set.intersection(*(readers_at(results[step], path) for step, path in flow.private))
