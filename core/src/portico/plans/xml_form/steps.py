"""Steps from written calls: ids, references, implied arguments, the result.

The rules are those of Semantic Kernel's ``SequentialPlanParser`` and ``Plan`` (version 1.0 of .NET);
`docs/reference/plan-xml.md` says where they differ here on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from portico._schema.coerce import read_literal
from portico.functions import FunctionManual
from portico.plans.plan import INPUT, Expression, From, Step, TextOf, Value
from portico.plans.xml_form.names import FunctionNames
from portico.plans.xml_form.spelling import one_letter_off
from portico.plans.xml_form.variables import Doubt, Fail, Variables
from portico.plans.xml_form.written import APPEND, CONTROL_LENGTHS, WrittenCall, control, unlike_names

__all__ = ["steps_and_result"]


_WORD = re.compile(r"\w+")
_SHORTEST_CONTROL = 13
_SEPARATORS = re.compile(r"[\W_]")
_NOT_APPENDED = frozenset({"false", "no", "none"})
_NO_PROPERTIES: Mapping[str, Any] = {}


def steps_and_result(
    calls: Sequence[WrittenCall],
    catalogue: Mapping[str, FunctionManual] | None,
    finished: Collection[str],
    fail: Fail,
) -> tuple[tuple[Step, ...], Expression | None, Sequence[Doubt]]:
    """Return the steps of a plan, its result, and what may be misread."""
    if not calls:
        return (), None, ()
    read = _Steps(calls, catalogue, finished, fail)
    return *read.build(), read.variables.doubts


class _Steps:
    __slots__ = (
        "arguments",
        "barrier",
        "calls",
        "fail",
        "ids",
        "names",
        "sets",
        "since",
        "variables",
    )

    def __init__(
        self,
        calls: Sequence[WrittenCall],
        catalogue: Mapping[str, FunctionManual] | None,
        finished: Collection[str],
        fail: Fail,
    ) -> None:
        self.calls = calls
        self.names = FunctionNames(catalogue)
        self.fail = fail
        # What each call sets, folded, and the id that it would have by that.
        self.sets: list[tuple[str, str, str]] = []
        self.variables = Variables(finished, self.sets, fail, self.made_by)
        self.arguments = [self.separated(call) for call in calls]
        self.ids = self.identified(finished)
        # Steps with effects keep the place in which they are written: one waits for all before it, all after for it.
        self.barrier: str | None = None
        self.since: list[str] = []

    def build(self) -> tuple[tuple[Step, ...], Expression]:
        steps: list[Step] = []
        appended: list[From] = []
        variables, known = self.variables, self.variables.known
        previous = INPUT
        for call, given, (_, kept, added), id in zip(self.calls, self.arguments, self.sets, self.ids, strict=True):
            name, manual = self.names.find(call.function)
            variables.step = id
            if manual is None:
                arguments = {key: variables.expression(value, call, key) for key, value in given.items()}
                after: tuple[str, ...] = ()
            else:
                arguments = self.fitted(given, manual, call, previous)
                after = ()
                if manual.effects or self.barrier is not None:
                    after = self.order(id, manual, arguments)
                else:
                    self.since.append(id)
            steps.append(Step(id, name, arguments, after, call.reason))
            previous = id
            if kept:
                known[kept] = id
            if added:
                known[added] = id
                appended.append(From(id))
        if not appended:
            return tuple(steps), From(previous)
        if len(appended) == 1:
            return tuple(steps), appended[0]
        parts: list[str | Expression] = []
        for reference in appended:
            parts += ("\n", reference)
        return tuple(steps), TextOf(tuple(parts[1:]))

    def separated(self, call: WrittenCall) -> Mapping[str, str]:
        """Take the attributes apart that are no arguments, and keep what they set."""
        kept = added = ""
        arguments: dict[str, str] = {}
        for name, value in call.attributes.items():
            kind = control(name) if len(name) in CONTROL_LENGTHS else None
            if kind is None:
                arguments[name] = value
                continue
            variable = self.variables.name(value)
            if kind != APPEND:
                if kept and kept != variable:
                    raise self.fail(call, "setContextVariable has two values")
                kept = variable
            elif added and added != variable:
                raise self.fail(call, "appendToResult has two values")
            elif variable.lower() in _NOT_APPENDED:
                raise self.fail(call, f"appendToResult is the name of a result, not {variable!r}")
            else:
                added = variable
        self.sets.append((kept, kept.lower(), added.lower()))
        if len(arguments) > 1 and len({name.lower() for name in arguments}) < len(arguments):
            return unlike_names(arguments, lambda problem: self.fail(call, problem))
        return arguments

    def identified(self, finished: Collection[str]) -> list[str]:
        """Give each step an id: the variable that it sets, else s and its number, or the next that is free."""
        taken = {INPUT, *(each.lower() for each in finished)}
        found: list[str] = []
        for kept, folded, _ in self.sets:
            if kept and folded not in taken and (kept.isidentifier() or _WORD.fullmatch(kept)):
                taken.add(folded)
                found.append(kept)
            else:
                found.append("")
        number = 0
        for index, id in enumerate(found):
            if not id:
                number = max(number, index) + 1
                while f"s{number}" in taken:
                    number += 1
                found[index] = f"s{number}"
        return found

    def fitted(
        self, given: Mapping[str, str], manual: FunctionManual, call: WrittenCall, previous: str
    ) -> dict[str, Expression]:
        """Return the arguments under the names of the manual, with those that a variable or the last result gives."""
        parameters = manual.parameters
        properties = parameters.get("properties", _NO_PROPERTIES)
        arguments: dict[str, Expression] = {}
        for written, value in given.items():
            name = written if written in properties else _in_another_case(written, properties, given)
            schema = properties.get(name)
            if schema is None and len(name) >= _SHORTEST_CONTROL:
                self.no_control(name, call)
            if "$" in value:
                arguments[name] = self.variables.expression(value, call, written, schema, parameters)
            elif schema is None or (type(schema) is dict and schema.get("type") == "string"):
                arguments[name] = Value(value)
            else:
                arguments[name] = Value(read_literal(value, schema, parameters))
        for name in parameters.get("required", ()):
            if name not in arguments:
                folded = name.lower()
                if folded == INPUT:
                    arguments[name] = From(previous)
                elif folded in self.variables.known:
                    arguments[name] = From(self.variables.known[folded])
        return arguments

    def no_control(self, name: str, call: WrittenCall) -> None:
        """Refuse what is no parameter and is nearly an attribute that is none: the step would keep nothing."""
        plain = _SEPARATORS.sub("", name).lower()
        for known in ("setContextVariable", "appendToResult"):
            if one_letter_off(plain, known.lower()):
                raise self.fail(call, f"{name} is no parameter of {call.function}; it is written {known}", name)

    def made_by(self, id: str) -> FunctionManual | None:
        """Return the manual of the function that a step of this plan calls."""
        return self.names.find(self.calls[self.ids.index(id)].function)[1] if id in self.ids else None

    def order(self, id: str, manual: FunctionManual, arguments: Mapping[str, Expression]) -> tuple[str, ...]:
        """Return what a step waits for beyond what it refers to, so that effects come in the order of writing."""
        before = [] if self.barrier is None else [self.barrier]
        if manual.effects:
            before += self.since
            self.barrier = id
            self.since = []
        else:
            self.since.append(id)
        if not before:
            return ()
        referred = {reference for argument in arguments.values() for reference in _referred(argument)}
        return tuple(each for each in before if each not in referred)


def _in_another_case(name: str, properties: Mapping[str, Any], given: Mapping[str, str]) -> str:
    lowered = name.lower()
    alike = [each for each in properties if each.lower() == lowered]
    return alike[0] if len(alike) == 1 and alike[0] not in given else name


def _referred(argument: Expression) -> Iterator[str]:
    if isinstance(argument, From):
        yield argument.step
    elif isinstance(argument, TextOf):
        yield from (part.step for part in argument.parts if isinstance(part, From))
