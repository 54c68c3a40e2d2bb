"""Read the next step from a reply, with all its faults."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from portico.errors import PlanFormatError, nearest
from portico.plans import Expression, From, Infeasible, ListOf, ObjectOf, ReplyProblem, TextOf, Value, references
from portico.plugins import Mismatch, PartialJson
from portico.ports import SchemaValidator
from portico_structured_planner.forms import ParameterForm
from portico_structured_planner.steps import ANYTHING, StepForm

_FAULTS = 20
_SHOWN = 10


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


Next = Call | Finish | Infeasible


def read_step(text: str, form: StepForm, validator: SchemaValidator, *, held: bool) -> Next:
    """Read a reply. Raises `ReplyProblem` with every fault.

    ``held`` means that the service holds replies to the form's schema, so the reply is JSON in strict form. Otherwise
    the first JSON value that is a step counts, and literals have their own form. Everything is checked in both cases.
    """
    try:
        values = [json.loads(text)] if held else list(PartialJson.values_in(text))
    except (ValueError, RecursionError) as error:
        raise ReplyProblem(f"it is not JSON: {error}") from error
    reader = _Reader(form, validator, held)
    for value in values[:-1]:
        with suppress(ReplyProblem):
            return reader.step(value)
    try:
        return reader.step(values[-1])
    except RecursionError as error:
        raise ReplyProblem("it is nested too deeply") from error


@dataclass(frozen=True, slots=True)
class _Reader:
    """Every method raises `ReplyProblem`."""

    form: StepForm
    validator: SchemaValidator
    held: bool

    def step(self, value: Any) -> Next:
        step = value.get("next") if isinstance(value, dict) else None
        if not isinstance(step, dict) or set(value) != {"next"}:
            raise ReplyProblem('it is not an object {"next": …} with an object in it')
        name = step.get("function")
        if self.form.can_finish and name == self.form.finish:
            _require_keys(step, {"function", "result"})
            return self.finish(step["result"])
        if self.form.can_give_up and name == self.form.give_up:
            _require_keys(step, {"function", "reason"}, {"missing"})
            return self.give_up(step["reason"], step.get("missing", []))
        form = self.form.functions.get(name) if isinstance(name, str) else None
        if form is None:
            raise ReplyProblem(self.no_function(name))
        _require_keys(step, {"function", "arguments"}, {"reason"})
        reason = self.words(step.get("reason", ""), "reason").strip()
        return Call(form.name, self.arguments(step["arguments"], form.parameters, "arguments"), reason)

    def finish(self, given: Any) -> Finish:
        result = self.expression(given, ANYTHING, "result")
        if isinstance(result, Value):
            raise ReplyProblem(f"result: it refers to no step; expected {self.explain(ANYTHING)}")
        if isinstance(result, TextOf) and all(isinstance(part, From) for part in result.parts):
            lines = [line for part in result.parts for line in ("\n", part)]
            return Finish(TextOf(tuple(lines[1:])))
        return Finish(result)

    def give_up(self, reason: Any, missing: Any) -> Infeasible:
        if not isinstance(missing, list):
            raise ReplyProblem("missing: expected an array of strings")
        reason = self.words(reason, "reason").strip() or "The model gave no reason."
        return Infeasible(reason, tuple(each for each in missing if self.words(each, "missing").strip()))

    def no_function(self, name: Any) -> str:
        offered = self.form.names
        if isinstance(name, str) and name in {self.form.finish, self.form.give_up, *self.form.left_out}:
            return f"function: {name!r} cannot be called now. {self.form.left_out.get(name, '')}".rstrip()
        near = nearest(name, offered) if isinstance(name, str) else ()
        kind = "nearest" if near else "there are"
        return f"function: there is no {name!r}; {kind}: {', '.join(near or offered[:_FAULTS])}"

    def words(self, text: Any, place: str) -> str:
        if not isinstance(text, str):
            raise ReplyProblem(f"{place}: expected a string")
        return str(self.check(text, ANYTHING, place).value)

    def arguments(
        self, given: Any, parameters: Mapping[str, tuple[ParameterForm, bool]], place: str, *, inner: bool = False
    ) -> dict[str, Expression]:
        if not isinstance(given, dict):
            raise ReplyProblem(f"{place}: expected an object")
        needed = {name for name, (_, required) in parameters.items() if required}
        faults = _key_faults(given, needed, set(parameters) - needed, place)
        read: dict[str, Expression] = {}
        for name, (form, required) in parameters.items():
            if name not in given or (given[name] is None and not required):
                continue
            try:
                read[name] = self.expression(given[name], form, f"{place}.{name}", inner=inner)
            except ReplyProblem as problem:
                faults += problem.faults
        if faults:
            raise ReplyProblem(*faults[:_FAULTS])
        return read

    def expression(self, value: Any, form: ParameterForm, place: str, *, inner: bool = False) -> Expression:
        """Read an argument; ``inner`` if it is inside a list or an object."""
        match value:
            case {"from": _, **others} if others.keys() <= {"path"}:
                return self.reference(value, form, place)
            case {"value": literal} if len(value) == 1:
                return self.literal(literal, form, place)
            case {"text": parts} if len(value) == 1:
                return self.text(parts, form, place)
            case {"list": elements} if len(value) == 1 and not inner:
                return self.list_of(elements, form, place)
            case {"object": members} if len(value) == 1 and not inner:
                return self.object_of(members, form, place)
        raise ReplyProblem(f"{place}: expected {self.explain(form)}")

    def explain(self, form: ParameterForm) -> str:
        """Return what is expected. The result, and a part of a text, must be references; others may be values."""
        shown = [
            json.dumps({"from": step, "path": From.print_path(path)}, ensure_ascii=False)
            for step, paths in self.form.allowed.get(form.key, {}).items()
            for path in paths
        ]
        listed = f"one of {', '.join(shown[:_SHOWN])}{' and more' if len(shown) > _SHOWN else ''}"
        if form is ANYTHING or (shown and self.form.rules.force_references):
            return listed if shown else "a reference, and there is nothing to refer to"
        return '{"value": …} or ' + listed if shown else '{"value": …}; nothing fits that can be referred to'

    def literal(self, value: Any, form: ParameterForm, place: str) -> Value:
        if self.form.rules.force_references and form.key in self.form.allowed:
            raise ReplyProblem(f"{place}: a value is not allowed where a reference fits; expected {self.explain(form)}")
        try:
            value = form.decode(value) if self.held else value
        except Mismatch as error:
            raise ReplyProblem(*(f"{place}{str(fault).removeprefix('$')}" for fault in error.faults)) from error
        return self.check(value, form, place)

    def check(self, value: Any, form: ParameterForm, place: str) -> Value:
        faults = form.faults(value, self.validator)
        if faults:
            raise ReplyProblem(*(f"{place}{fault.removeprefix('$')}" for fault in faults))
        return Value(value)

    def reference(self, value: dict[str, Any], form: ParameterForm, place: str) -> From:
        step, path = value["from"], value.get("path", "$")
        if isinstance(step, str) and isinstance(path, str):
            try:
                parsed = From.parse_path(path)
            except PlanFormatError as error:
                raise ReplyProblem(f"{place}: {error}") from error
            if parsed in self.form.allowed.get(form.key, {}).get(step, {}):
                return From(step, parsed)
        shown = json.dumps(value, ensure_ascii=False)[:100]
        raise ReplyProblem(f"{place}: {shown} does not surely fit; expected {self.explain(form)}")

    def text(self, parts: Any, form: ParameterForm, place: str) -> Expression:
        if form is not ANYTHING and not form.takes_text:
            raise ReplyProblem(f"{place}: a text put together does not surely fit here")
        if not isinstance(parts, list) or not parts:
            raise ReplyProblem(f"{place}.text: expected an array with something in it")
        read: list[str | Expression] = []
        for index, part in enumerate(parts):
            where = f"{place}.text[{index}]"
            if isinstance(part, str):
                read.append(self.words(part, where))
            elif isinstance(part, dict) and "from" in part and part.keys() <= {"from", "path"}:
                read.append(self.reference(part, ANYTHING, where))
            else:
                raise ReplyProblem(f"{where}: expected a string or {self.explain(ANYTHING)}")
        if all(isinstance(part, str) for part in read):
            return self.check("".join(map(str, read)), form, place)
        return TextOf(tuple(read))

    def list_of(self, elements: Any, form: ParameterForm, place: str) -> Expression:
        schema, items = form.list_schema, form.items
        if schema is None or items is None:
            raise ReplyProblem(f"{place}: a list with references in it does not surely fit here")
        if not isinstance(elements, list):
            raise ReplyProblem(f"{place}.list: expected an array")
        least, most = schema.get("minItems", 0), schema.get("maxItems", len(elements))
        if not least <= len(elements) <= most:
            raise ReplyProblem(f"{place}.list: expected {least} to {most} elements, got {len(elements)}")
        read = [
            self.expression(element, items, f"{place}.list[{index}]", inner=True)
            for index, element in enumerate(elements)
        ]
        if any(references(made := ListOf(tuple(read)))):
            return made
        return self.check([each.value for each in read if isinstance(each, Value)], form, place)

    def object_of(self, members: Any, form: ParameterForm, place: str) -> Expression:
        if form.members is None:
            raise ReplyProblem(f"{place}: an object with references in it does not surely fit here")
        read = self.arguments(members, form.members, f"{place}.object", inner=True)
        if any(references(made := ObjectOf(read))):
            return made
        return self.check({name: each.value for name, each in read.items() if isinstance(each, Value)}, form, place)


def _key_faults(value: Mapping[str, Any], needed: set[str], allowed: Collection[str], place: str) -> list[str]:
    known = ", ".join(sorted({*needed, *allowed})) or "none"
    missing = [f"{place}: {name!r} is missing" for name in sorted(needed - value.keys())]
    unknown = sorted(map(str, value.keys() - {*needed, *allowed}))
    return [*missing, *(f"{place}: {name!r} is unknown; known are: {known}" for name in unknown)]


def _require_keys(step: Mapping[str, Any], needed: set[str], allowed: Collection[str] = ()) -> None:
    faults = _key_faults(step, needed, allowed, "next")
    if faults:
        raise ReplyProblem(*faults)
