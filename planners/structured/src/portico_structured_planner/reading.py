"""From a reply to the next step, with everything that is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from portico.errors import PlanFormatError, nearest
from portico.plans import Expression, From, ListOf, ObjectOf, ReplyProblem, TextOf, Value, references
from portico.plugins import Mismatch, PartialJson
from portico.ports import SchemaValidator
from portico_structured_planner.forms import ParameterForm
from portico_structured_planner.steps import ANYTHING, StepForm

_FAULTS = 20
_SHOWN = 10
_MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function; the planner gives it an id."""

    function: str
    arguments: Mapping[str, Expression]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of the plan."""

    result: Expression


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The goal cannot be reached."""

    reason: str
    missing: tuple[str, ...]


Next = Call | Finish | GiveUp


def read_step(text: str, form: StepForm, validator: SchemaValidator, *, held: bool) -> Next:
    """Read a reply. ``held`` says that the service holds it to the form's schema: then it is JSON and nothing else.

    Of a service that was asked in words, literals are in their own form, and the first value that is a step is
    taken. Raises `ReplyProblem` with every fault: whatever the service promised, everything is looked at here.
    """
    try:
        values = [json.loads(text)] if held else list(PartialJson.values_in(text))
    except (ValueError, RecursionError) as error:
        raise ReplyProblem(f"it is not JSON: {error}") from error
    for value in values[:-1]:
        try:
            return _Reading(form, validator, held).step(value)
        except ReplyProblem:
            continue
    try:
        return _Reading(form, validator, held).step(values[-1])
    except RecursionError as error:
        raise ReplyProblem("it is nested too deeply") from error


class _Reading:
    def __init__(self, form: StepForm, validator: SchemaValidator, held: bool) -> None:
        self.form = form
        self.validator = validator
        self.held = held
        self.faults: list[str] = []

    def step(self, value: Any) -> Next:
        step = value.get("next") if isinstance(value, dict) else None
        if not isinstance(step, dict) or set(value) != {"next"}:
            raise ReplyProblem('it is not an object {"next": …} with an object in it')
        found = self.alternative(step)
        if self.faults or found is None:
            raise ReplyProblem(*self.faults[:_FAULTS])
        return found

    def alternative(self, step: dict[str, Any]) -> Next | None:
        name = step.get("function")
        if self.form.can_finish and name == self.form.finish:
            self.keys(step, {"function", "result"}, set(), "next")
            return self.finished(step.get("result"))
        if self.form.can_give_up and name == self.form.give_up:
            return self.gave_up(step)
        form = self.form.functions.get(name) if isinstance(name, str) else None
        if form is None:
            self.faults.append(self.no_function(name))
            return None
        self.keys(step, {"function", "arguments"}, {"reason"}, "next")
        return Call(form.name, self.arguments(step.get("arguments"), form.parameters, "arguments"), self.reason(step))

    def finished(self, given: Any) -> Finish | None:
        result = self.expression(given, ANYTHING, "result")
        if isinstance(result, Value):
            self.faults.append(f"result: it refers to no step; expected {self.wanted(ANYTHING)}")
        if isinstance(result, TextOf) and all(isinstance(part, From) for part in result.parts):
            lines = [line for part in result.parts for line in ("\n", part)]
            return Finish(TextOf(tuple(lines[1:])))
        return None if result is None else Finish(result)

    def no_function(self, name: Any) -> str:
        ends = [(self.form.finish, self.form.can_finish), (self.form.give_up, self.form.can_give_up)]
        if name in [end for end, possible in ends if not possible]:
            return f"function: {name!r} is not possible now"
        offered = [*self.form.functions, *(end for end, possible in ends if possible)]
        if isinstance(name, str) and name in self.form.left_out:
            return f"function: {name!r} cannot be called now: {self.form.left_out[name]}"
        near = nearest(name, offered) if isinstance(name, str) else ()
        hint = f"; nearest: {', '.join(near)}" if near else f"; there are: {', '.join(offered[:_FAULTS])}"
        return f"function: there is no {name!r}{hint}" if isinstance(name, str) else f"function: a name is needed{hint}"

    def gave_up(self, step: dict[str, Any]) -> GiveUp | None:
        self.keys(step, {"function", "reason"}, {"missing"}, "next")
        missing = step.get("missing", [])
        if not isinstance(missing, list) or not all(isinstance(each, str) for each in missing):
            self.faults.append("missing: expected an array of strings")
            return None
        reason = self.reason(step)
        for each in missing:
            self.words(each, "missing")
        return GiveUp(reason or "The model gave no reason.", tuple(each for each in missing if each.strip()))

    def reason(self, step: dict[str, Any]) -> str:
        reason = step.get("reason", "")
        if not isinstance(reason, str):
            self.faults.append("reason: expected a string")
            return ""
        return self.words(reason, "reason").strip()

    def words(self, text: str, place: str) -> str:
        self.faults += [f"{place}{fault.removeprefix('$')}" for fault in ANYTHING.faults(text, self.validator)]
        return text

    def arguments(
        self, given: Any, parameters: Mapping[str, tuple[ParameterForm, bool]], place: str, *, inner: bool = False
    ) -> dict[str, Expression]:
        if not isinstance(given, dict):
            self.faults.append(f"{place}: expected an object")
            return {}
        needed = {name for name, (_, required) in parameters.items() if required}
        self.keys(given, needed, set(parameters) - needed, place)
        read: dict[str, Expression] = {}
        for name, (form, required) in parameters.items():
            if name not in given or (given[name] is None and not required):
                continue
            expression = self.expression(given[name], form, f"{place}.{name}", inner=inner)
            if expression is not None:
                read[name] = expression
        return read

    def keys(self, value: Mapping[str, Any], needed: set[str], allowed: set[str], place: str) -> None:
        known = ", ".join(sorted(needed | allowed)) or "none"
        self.faults += [f"{place}: {name!r} is {_MISSING}" for name in sorted(needed - value.keys())]
        self.faults += [
            f"{place}: {name!r} is unknown; known are: {known}"
            for name in sorted(map(str, value.keys() - needed - allowed))
        ]

    def expression(self, value: Any, form: ParameterForm, place: str, *, inner: bool = False) -> Expression | None:
        """Read what is tagged; None, and a fault, where it is not right."""
        tags = set(value) if isinstance(value, dict) else set()
        readers: dict[str, Callable[[Any], Expression | None]] = {"value": lambda each: self.literal(each, form, place)}
        readers["text"] = lambda each: self.text(each, form, place)
        if not inner:
            readers["list"] = lambda each: self.list_of(each, form, place)
            readers["object"] = lambda each: self.object_of(each, form, place)
        if tags in ({"from"}, {"from", "path"}):
            return self.reference(value, form, place)
        if len(tags) == 1 and (tag := next(iter(tags))) in readers:
            return readers[tag](value[tag])
        self.faults.append(f"{place}: expected {self.wanted(form)}")
        return None

    def wanted(self, form: ParameterForm) -> str:
        """Say what is expected: the result, and a part of a text, are references only; others may be values."""
        shown = [
            json.dumps({"from": step, "path": From.print_path(path)}, ensure_ascii=False)
            for step, paths in self.form.allowed.get(form.key, {}).items()
            for path in paths
        ]
        listed = f"one of {', '.join(shown[:_SHOWN])}{' and more' if len(shown) > _SHOWN else ''}"
        if form is ANYTHING or (shown and self.form.rules.force_references):
            return listed if shown else "a reference, and there is nothing to refer to"
        return '{"value": …} or ' + listed if shown else '{"value": …}; nothing fits that can be referred to'

    def literal(self, value: Any, form: ParameterForm, place: str) -> Expression | None:
        if self.form.rules.force_references and form.key in self.form.allowed:
            self.faults.append(f"{place}: a value is not allowed where a reference fits; expected {self.wanted(form)}")
            return None
        try:
            value = form.decode(value) if self.held else value
        except Mismatch as error:
            self.faults += [f"{place}{str(fault).removeprefix('$')}" for fault in error.faults]
            return None
        return self.checked(value, form, place)

    def checked(self, value: Any, form: ParameterForm, place: str) -> Expression | None:
        found = form.faults(value, self.validator)
        self.faults += [f"{place}{fault.removeprefix('$')}" for fault in found]
        return None if found else Value(value)

    def reference(self, value: dict[str, Any], form: ParameterForm, place: str) -> Expression | None:
        step, path = value["from"], value.get("path", "$")
        allowed = self.form.allowed.get(form.key, {})
        parsed: tuple[str | int, ...] | None = None
        if isinstance(step, str) and isinstance(path, str):
            try:
                parsed = From.parse_path(path)
            except PlanFormatError as error:
                self.faults.append(f"{place}: {error}")
                return None
        if parsed is None or parsed not in allowed.get(step, {}):
            shown = json.dumps(value, ensure_ascii=False)[:100]
            self.faults.append(f"{place}: {shown} does not surely fit; expected {self.wanted(form)}")
            return None
        return From(step, parsed)

    def text(self, parts: Any, form: ParameterForm, place: str) -> Expression | None:
        if form is not ANYTHING and not form.takes_text:
            self.faults.append(f"{place}: a text put together does not surely fit here")
            return None
        if not isinstance(parts, list) or not parts:
            self.faults.append(f"{place}.text: expected an array with something in it")
            return None
        read: list[str | Expression] = []
        for index, part in enumerate(parts):
            where = f"{place}.text[{index}]"
            if isinstance(part, str):
                read.append(self.words(part, where))
            elif isinstance(part, dict) and "from" in part and part.keys() <= {"from", "path"}:
                reference = self.reference(part, ANYTHING, where)
                read += [] if reference is None else [reference]
            else:
                self.faults.append(f"{where}: expected a string or {self.wanted(ANYTHING)}")
        if all(isinstance(part, str) for part in read):
            return self.checked("".join(map(str, read)), form, place)
        return TextOf(tuple(read))

    def list_of(self, elements: Any, form: ParameterForm, place: str) -> Expression | None:
        schema = form.list_schema
        if schema is None or form.items is None:
            self.faults.append(f"{place}: a list with references in it does not surely fit here")
            return None
        if not isinstance(elements, list):
            self.faults.append(f"{place}.list: expected an array")
            return None
        least, most = schema.get("minItems", 0), schema.get("maxItems", len(elements))
        if not least <= len(elements) <= most:
            self.faults.append(f"{place}.list: expected {least} to {most} elements, got {len(elements)}")
        read = [
            self.expression(element, form.items, f"{place}.list[{index}]", inner=True)
            for index, element in enumerate(elements)
        ]
        made = ListOf(tuple(each for each in read if each is not None))
        if any(references(made)):
            return made
        return self.checked([each.value for each in made.items if isinstance(each, Value)], form, place)

    def object_of(self, members: Any, form: ParameterForm, place: str) -> Expression | None:
        if form.members is None:
            self.faults.append(f"{place}: an object with references in it does not surely fit here")
            return None
        made = ObjectOf(self.arguments(members, form.members, f"{place}.object", inner=True))
        if any(references(made)):
            return made
        plain = {name: each.value for name, each in made.members.items() if isinstance(each, Value)}
        return self.checked(plain, form, place)
