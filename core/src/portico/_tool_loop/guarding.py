"""Watches what a model that has read untrusted data calls."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from portico._chat.messages import (
    ATTACHED_FILE,
    FOR_SOME,
    Message,
    Reasoning,
    Source,
    Text,
    ToolCall,
    ToolResult,
    is_users,
    untrusted_in,
)
from portico._flows.around import Around, member_names
from portico._flows.check import Flow, FlowReview, flows_of
from portico._flows.labels import Label, Takes, shade_of
from portico._flows.policy import Policy
from portico._flows.words import UserWords, named_in, parts_at, readers_at
from portico._functions.functions import FunctionSpec
from portico._plans.functions import around_of
from portico._plans.plan import Expression, ListOf, ObjectOf, Plan, Step, Value
from portico._schema.paths import EACH

if TYPE_CHECKING:
    from portico._functions.functions import Function
    from portico._kernel_like import KernelLike


class CallGuard:
    """The guard of one turn: once untrusted data was read, the user must have said what is given to a function.

    That is so for functions with effects, and those that reach out of the application. Of the conversation before, the
    messages say what had a part in them; results of functions are as trusted as their labels say, and sources and
    files are untrusted.
    """

    def __init__(self, kernel: KernelLike, policy: Policy, messages: Iterable[Message]) -> None:
        self.kernel = kernel
        self.policy = policy
        self.read: set[str] = set()
        self.for_some: set[str] = set()
        """What was read that only some may read, where it is not known who they are."""
        self.readers: set[str] | None = None
        """Who may see all that was read; None where all may."""
        self.results: list[tuple[ToolResult, Collection[Function]]] = []
        """The results that the model has not read yet, with the functions that began to run for each."""
        words: list[Any] = []
        for message in messages:
            if is_users(message):
                words.append(message.text)
            for name in untrusted_in(message):
                (self.for_some if name.endswith(FOR_SOME) else self.read).add(name)
            for part in message.content:
                match part:
                    case Text() | ToolCall() | Reasoning():
                        pass
                    case Source():
                        self.read.add("a source")
                    case ToolResult(name=name):
                        function, known = self._find(name), message.untrusted
                        name = name if function is None else function.full_name
                        began = not part.error or known is None or _an_error(name) in known
                        # What a function gave that is not the kernel's, the message says.
                        if began and (function is not None or known is None):
                            self._take(part, name, function)
                    case _:
                        self.read.add(ATTACHED_FILE)
        if self.for_some:
            self.readers = set()
        self.words = UserWords(words)

    @staticmethod
    def guards(policy: Policy | None) -> bool:
        """Tell whether a policy has turns guarded."""
        return policy is not None and policy.mode == "enforce"

    @staticmethod
    def of(kernel: KernelLike, messages: Iterable[Message]) -> CallGuard | None:
        """Return the guard of a turn; None where the kernel's policy does not enforce one."""
        policy = kernel.policy
        return CallGuard(kernel, policy, messages) if policy is not None and CallGuard.guards(policy) else None

    @property
    def untrusted(self) -> tuple[str, ...]:
        """What a message has that is written now, see `Message`."""
        return tuple(sorted(self.read | self.for_some))

    def read_results(self) -> None:
        """Take note that the model reads the results that there are by now."""
        for result, began in self.results:
            functions: dict[str, Function | None] = {each.full_name: each for each in began}
            if not result.error and result.name not in functions:
                functions[result.name] = self.kernel.functions.get(result.name)
            for name, function in functions.items():
                self._take(result, name, function)
        self.results.clear()

    def _find(self, name: str) -> Function | None:
        """Return a function of the kernel by its name, or by its name for chat services."""
        known = self.kernel.functions
        return known.get(name) or next((known[each] for each in known if FunctionSpec.wire_name(each) == name), None)

    def _take(self, result: ToolResult, name: str, function: Function | None) -> None:
        """Take note that the model reads what a function gave; an error may quote anything, and is private."""
        if function is None:
            self.read.add(name)
            return
        label = self._label(function)
        self.read |= {_an_error(name)} if result.error else label.untrusted
        if hidden := self._hides(function):
            self.readers = set()
        if hidden or (label.private and self.kernel.functions.get(name) is not function):
            # The turns after do not know of whom it is.
            self.for_some.add(name + FOR_SOME)
        for _, path in label.private:
            try:
                readers = readers_at(json.loads(result.content), path)
            except (ValueError, RecursionError):
                readers = set()
            self.readers = readers if self.readers is None else self.readers & readers

    def _label(self, function: Function) -> Label:
        return shade_of(self.policy.labels(function.spec), function.full_name, {})((), True)

    def _hides(self, function: Function) -> bool:
        """Tell whether a function without a label calls, by a plan or a template, one that only some may read."""
        known, around = self.kernel.functions, self._around(function)
        if around.labels(function.spec).gives:
            return False
        called = around.every(around.inside(function.full_name))
        return any(self._label(known[each]).private for each in called if each in known)

    def _around(self, function: Function) -> Around:
        """Return what is around a call; a function that is not the kernel's counts before one of its name."""
        known = self.kernel.functions.get(function.full_name) is function
        return around_of(self.kernel, self.policy, more={} if known else {function.full_name: function})

    async def refusal(self, function: Function, arguments: Mapping[str, Any]) -> str:
        """Return why a function may not be called; "" where it may, or a person agrees."""
        spec = function.spec
        around = self._around(function)
        step = Step(spec.name, spec.name, {name: Value(value) for name, value in arguments.items()})
        if around.inside(spec.name) and around.plans(spec.name) is None:
            # A prompt may read and send by itself; a plan that does is judged when it runs.
            inside = [each for each in flows_of(Plan("", (step,)), around) if each.place == ("function",)]
            if inside and (why := await self._ask(step, arguments, inside)):
                return why
        if not (self.read or self.readers is not None) or not around.restricts(spec):
            return ""
        sink = around.is_sink(spec)
        judged = [each for name in arguments for each in self._judge(around, spec, name, arguments[name])]
        wrong = [each for each in judged if each.takes.trusted and not each.said]
        naming = {each.takes.readers for each in judged}
        private = [
            each
            for each in judged
            if not each.takes.private
            and (each.takes.readers is not None or sink)
            # Those who are named may see who they are.
            and not self._may_read(arguments.get(each.takes.readers or (each.name if each.name in naming else "")))
            and not each.said
        ]
        settled = any(each.takes.trusted and not each.takes.outside for each in judged) or not sink
        if not private and (not self.read or (settled and not wrong)):
            return ""
        sources = tuple(sorted(self.read))
        why = f"the model read {' and '.join(sources)}, which is untrusted, before it called {spec.name}"
        if wrong:
            why += f" with {wrong[0].name!r}, which the user did not say"
        if private and not wrong:
            why = f"the model read what only some may read, before it called {spec.name} with {private[0].name!r}"
        place = ("arguments", (wrong or private)[0].name) if wrong or private else ("function",)
        refused = any(each.takes.refuse for each in (*wrong, *private))
        flow = Flow((spec.name,), place, "refuse" if refused else "ask", sources, why)
        return await self._ask(step, arguments, [flow])

    async def _ask(self, step: Step, arguments: Mapping[str, Any], flows: Sequence[Flow]) -> str:
        """Return why a call does not happen, "" where a person agrees to it."""
        why, decide = flows[0].why, self.kernel.decide_flow
        if decide is not None and all(each.verdict == "ask" for each in flows):
            decided = await decide(FlowReview(step, "", arguments, tuple(flows)))
            if decided is True:
                return ""
            why = decided or why
        return f"{step.function} was not called: {why}. A person must agree first."

    def _judge(self, around: Around, spec: FunctionSpec, name: str, value: Any) -> Iterator[_Judged]:
        """Yield the places of an argument with what each takes; none of one that could as well be left out."""
        schema = spec.parameters.get("properties", {}).get(name)
        known = isinstance(schema, Mapping) and "default" in schema
        if known and name not in spec.parameters.get("required", ()) and _same(schema["default"], value):
            return
        names, taken = member_names(spec.parameters), around.takes(spec, name, _expression(value))
        for path, takes in taken.items():
            end = len(path)
            inside = {each[end] for each in taken if len(each) > end and each[:end] == path} if takes.outside else ()
            parts = [*parts_at(value, path)]
            if parts:
                yield _Judged(name, takes, all(self._said(each, inside, names) for each in parts))

    def _said(self, value: Any, inside: Collection[Any], names: Collection[str]) -> bool:
        """Tell whether the user said a value, or all of it but what is ``inside`` and judged alone."""
        if isinstance(value, dict) and value:
            rest = {name: each for name, each in value.items() if name not in inside}
            return not rest or self.words.said(rest, names)
        return (isinstance(value, list) and bool(value) and EACH in inside) or self.words.said(value, names)

    def _may_read(self, given: Any) -> bool:
        """Tell whether those in an argument may see all that was read."""
        wanted = named_in(given)
        return self.readers is None or (bool(wanted) and wanted is not None and wanted <= self.readers)


@dataclass(frozen=True, slots=True)
class _Judged:
    """One place of an argument: what it takes, and whether the user said what is there."""

    name: str
    takes: Takes
    said: bool


def _expression(value: Any) -> Expression:
    """Return a JSON value as an expression that tells which members it has."""
    if isinstance(value, dict):
        return ObjectOf({name: _expression(each) for name, each in value.items()})
    return ListOf(tuple(map(_expression, value))) if isinstance(value, list) else Value(value)


def _same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _an_error(name: str) -> str:
    return f"an error of {name}"
