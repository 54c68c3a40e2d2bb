"""Watches what a model that has read untrusted data calls."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from portico._chat.messages import Message, Reasoning, Source, Text, ToolCall, ToolResult, is_users, untrusted_in
from portico._flows.around import member_names
from portico._flows.check import Flow, FlowReview
from portico._flows.labels import shade_of
from portico._flows.policy import Policy
from portico._flows.words import UserWords, named_in, readers_at
from portico._plans.functions import around_of
from portico._plans.plan import Step, Value

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
        self.readers: set[str] | None = None
        """Who may see all that was read; None where all may."""
        self.results: list[tuple[ToolResult, Collection[str]]] = []
        """The results that the model has not read yet, with the functions that began to run for each."""
        words: list[Any] = []
        for message in messages:
            if is_users(message):
                words.append(message.text)
            self.read.update(untrusted_in(message))
            for part in message.content:
                match part:
                    case Text() | ToolCall() | Reasoning():
                        pass
                    case Source():
                        self.read.add("a source")
                    case ToolResult(name=name):
                        began = message.untrusted is None or _an_error(name) in message.untrusted
                        self._take(part, (name,) if began or not part.error else ())
                    case _:
                        self.read.add("an attached file")
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
        return tuple(sorted(self.read))

    def read_results(self) -> None:
        """Take note that the model reads the results that there are by now."""
        for result, began in self.results:
            self._take(result, began if result.error else {result.name, *began})
        self.results.clear()

    def _take(self, result: ToolResult, names: Collection[str]) -> None:
        """Take note that the model reads what these functions gave; an error may quote anything, and is private."""
        for name in names:
            spec = self.kernel.specs.get(name)
            if spec is None:
                self.read.add(name)
                continue
            label = shade_of(self.policy.labels(spec), name, {})((), True)
            self.read |= {_an_error(name)} if result.error else label.untrusted
            for _, path in label.private:
                try:
                    readers = readers_at(json.loads(result.content), path)
                except (ValueError, RecursionError):
                    readers = set()
                self.readers = readers if self.readers is None else self.readers & readers

    async def refusal(self, function: Function, arguments: Mapping[str, Any]) -> str:
        """Return why a function may not be called; "" where it may, or a person agrees."""
        spec = function.spec
        if not (self.read or self.readers is not None):
            return ""
        around = around_of(self.kernel, self.policy)
        if not around.restricts(spec):
            return ""
        sink, names = around.is_sink(spec), member_names(spec.parameters)
        judged = [(name, takes) for name in arguments for takes in around.takes(spec, name).values()]
        wrong = [
            (name, takes) for name, takes in judged if takes.trusted and not self.words.said(arguments[name], names)
        ]
        naming = {takes.readers for _, takes in judged}
        private = [
            (name, takes)
            for name, takes in judged
            if not takes.private
            and (takes.readers is not None or sink)
            # Those who are named may see who they are.
            and not self._may_read(arguments.get(takes.readers or (name if name in naming else "")))
            and not self.words.said(arguments[name], names)
        ]
        settled = any(takes.trusted for _, takes in judged) or not sink
        if not private and (not self.read or (settled and not wrong)):
            return ""
        sources = tuple(sorted(self.read))
        why = f"the model read {' and '.join(sources)}, which is untrusted, before it called {spec.name}"
        if wrong:
            why += f" with {wrong[0][0]!r}, which the user did not say"
        if private and not wrong:
            why = f"the model read what only some may read, before it called {spec.name} with {private[0][0]!r}"
        place = ("arguments", (wrong or private)[0][0]) if wrong or private else ("function",)
        if not any(takes.refuse for _, takes in (*wrong, *private)) and (decide := self.kernel.decide_flow) is not None:
            step = Step(spec.name, spec.name, {name: Value(value) for name, value in arguments.items()})
            flows = (Flow((spec.name,), place, "ask", sources, why),)
            decided = await decide(FlowReview(step, "", arguments, flows))
            if decided is True:
                return ""
            why = decided or why
        return f"{spec.name} was not called: {why}. A person must agree first."

    def _may_read(self, given: Any) -> bool:
        """Tell whether those in an argument may see all that was read."""
        wanted = named_in(given)
        return self.readers is None or (bool(wanted) and wanted is not None and wanted <= self.readers)


def _an_error(name: str) -> str:
    return f"an error of {name}"
