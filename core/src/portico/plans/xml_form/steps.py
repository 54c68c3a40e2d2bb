"""Steps from written calls: ids, references, implied arguments, the result.

The rules are those of Semantic Kernel's ``SequentialPlanParser`` and ``Plan`` (version 1.0 of .NET);
`docs/reference/plan-xml.md` says where they differ here on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from portico.errors import PlanFormatError, nearest
from portico.functions import FunctionManual
from portico.plans.plan import INPUT, Expression, From, Step, TextOf, Value
from portico.plans.xml_form.literals import read_literal
from portico.plans.xml_form.names import FunctionNames
from portico.plans.xml_form.written import APPEND, CONTROL_LENGTHS, WrittenCall, control, unlike_names

__all__ = ["steps_and_result"]

Fail: TypeAlias = Callable[[int, str], PlanFormatError]

_REFERENCE = re.compile(r"\$(\w+)")
_WORD = re.compile(r"\w+")
_ASCII_WORD = re.compile(r"[0-9A-Za-z_]+")
_NOT_APPENDED = frozenset({"false", "no", "none"})
_NO_PROPERTIES: Mapping[str, Any] = {}


def steps_and_result(
    calls: Sequence[WrittenCall],
    catalogue: Mapping[str, FunctionManual] | None,
    finished: Collection[str],
    fail: Fail,
) -> tuple[tuple[Step, ...], Expression | None]:
    """Return the steps of a plan and its result; ``fail`` makes the error for an offset."""
    if not calls:
        return (), None
    return _Steps(calls, catalogue, finished, fail).build()


class _Steps:
    __slots__ = (
        "arguments",
        "barrier",
        "calls",
        "ever_set",
        "fail",
        "ids",
        "names",
        "sets",
        "since",
        "unclear",
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
        self.unclear: set[str] = set()
        self.ever_set: set[str] | None = None
        # What each call sets, folded, and the id that it would have by that.
        self.sets: list[tuple[str, str, str]] = []
        self.arguments = [self.separated(call) for call in calls]
        self.ids = self.identified(finished)
        # What each variable stands for at the step that is read.
        self.variables = {INPUT: INPUT, **{each.casefold(): each for each in finished}}
        # Steps with effects keep the place in which they are written: one waits for all before it, all after for it.
        self.barrier: str | None = None
        self.since: list[str] = []

    def build(self) -> tuple[tuple[Step, ...], Expression]:
        steps: list[Step] = []
        appended: list[From] = []
        variables = self.variables
        previous = INPUT
        for call, given, (_, kept, added), id in zip(self.calls, self.arguments, self.sets, self.ids, strict=True):
            name, manual = self.names.find(call.function)
            if manual is None:
                arguments = {key: self.expression(value, call) for key, value in given.items()}
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
                variables[kept] = id
            if added:
                variables[added] = id
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
            variable = self.variable(value, call)
            if kind != APPEND:
                if kept and kept != variable:
                    raise self.fail(call.offset, "setContextVariable has two values")
                kept = variable
            elif added and added != variable:
                raise self.fail(call.offset, "appendToResult has two values")
            elif variable.lower() in _NOT_APPENDED:
                raise self.fail(call.offset, f"appendToResult is the name of a result, not {variable!r}")
            else:
                added = variable
        self.sets.append((kept, kept.casefold(), added.casefold()))
        if len(arguments) > 1 and len({name.lower() for name in arguments}) < len(arguments):
            return unlike_names(arguments, lambda problem: self.fail(call.offset, problem))
        return arguments

    def variable(self, written: str, call: WrittenCall) -> str:
        if written.isidentifier():
            return written
        name = written.strip().removeprefix("$")
        word = _WORD.match(name)
        if word is None or word.end() == len(name):
            return name
        # "$my-key" would be the variable "my" and a text, so that nobody can refer to this one.
        self.unclear.add(word[0].casefold())
        return name

    def identified(self, finished: Collection[str]) -> list[str]:
        """Give each step an id: the variable that it sets, else s and its number, or the next that is free."""
        taken = {INPUT, *(each.casefold() for each in finished)}
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
            if "$" in value:
                arguments[name] = self.expression(value, call, schema, parameters)
            elif schema is None or (type(schema) is dict and schema.get("type") == "string"):
                arguments[name] = Value(value)
            else:
                arguments[name] = Value(read_literal(value, schema, parameters))
        for name in parameters.get("required", ()):
            if name not in arguments:
                folded = name.casefold()
                if folded == INPUT:
                    arguments[name] = From(previous)
                elif folded in self.variables:
                    arguments[name] = From(self.variables[folded])
        return arguments

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

    def expression(
        self, value: str, call: WrittenCall, schema: Any = None, root: Mapping[str, Any] = _NO_PROPERTIES
    ) -> Expression:
        """Return what an attribute's text stands for: variables are references, everything else is text."""
        if value[:1] == "$" and not self.unclear:
            step = self.variables.get(value[1:].casefold())
            if step is not None:
                return From(step)
        parts: list[str | Expression] = []
        done = 0
        for match in _REFERENCE.finditer(value) if "$" in value else ():
            found = self.referred(match[1], value, call)
            if found is None:
                continue
            start = match.start()
            step, length = found
            if start > done:
                parts.append(value[done:start])
            parts.append(From(step))
            done = start + 1 + length
        if not parts:
            return Value(value if schema is None else read_literal(value, schema, root))
        if done < len(value):
            parts.append(value[done:])
        only = parts[0]
        return only if len(parts) == 1 and isinstance(only, From) else TextOf(tuple(parts))

    def referred(self, word: str, value: str, call: WrittenCall) -> tuple[str, int] | None:
        """Return the step that ``$word`` stands for, and how much of the word is the name; None where it is text."""
        folded = word.casefold()
        if folded in self.unclear:
            raise self.fail(call.offset, f"${word} may be the beginning of another variable's name")
        step = self.variables.get(folded)
        if step is not None:
            return step, len(word)
        # Languages without spaces: "$POEM" and what follows are one word for a regular expression.
        ascii_word = _ASCII_WORD.match(word)
        if ascii_word is not None and ascii_word.end() < len(word):
            step = self.variables.get(ascii_word[0].casefold())
            if step is not None:
                return step, ascii_word.end()
        if self.ever_set is None:
            self.ever_set = {each for _, kept, added in self.sets for each in (kept, added)}
        if folded in self.ever_set:
            raise self.fail(call.offset, f"${word} is set only by this step or a later one")
        if len(word) + 1 == len(value) and not word[0].isdigit():
            known = list(self.variables)
            near = nearest(word[:100], known)
            hint = f"nearest: {', '.join(near)}" if near else f"there are: {', '.join(known[:20])}"
            raise self.fail(call.offset, f"there is no variable ${word[:100]}; {hint}")
        return None


def _in_another_case(name: str, properties: Mapping[str, Any], given: Mapping[str, str]) -> str:
    lowered = name.lower()
    alike = [each for each in properties if each.lower() == lowered]
    return alike[0] if len(alike) == 1 and alike[0] not in given else name


def _referred(argument: Expression) -> Iterator[str]:
    if isinstance(argument, From):
        yield argument.step
    elif isinstance(argument, TextOf):
        yield from (part.step for part in argument.parts if isinstance(part, From))
