"""Read the next step from a reply, with all its faults."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from portico.errors import PlanFormatError, nearest
from portico.plans import (
    INPUT,
    ITEM,
    Each,
    Expression,
    From,
    Infeasible,
    ListOf,
    ObjectOf,
    Plan,
    ReplyProblem,
    Step,
    TextOf,
    Value,
    When,
    check_plan,
    references,
)
from portico.plugins import Mismatch, PartialJson
from portico.ports import SchemaValidator
from portico_structured_planner.forms import ParameterForm
from portico_structured_planner.steps import ANYTHING, COMPARED, TRUTH, Path, StepForm

_FAULTS = 20
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function; the planner gives it an id."""

    function: str
    arguments: Mapping[str, Expression]
    reason: str = ""
    each: Each | None = None
    when: When | None = None


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
    items: From | None = None
    """The list for whose items the step runs."""

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
        _require_keys(step, {"function", "arguments"}, {"reason", "each", "when"})
        reason = self.words(step.get("reason", ""), "reason").strip()
        items = self.list_of_items(step.get("each"))
        each, inside = (None, self) if items is None else (Each(items), replace(self, items=items))
        when = inside.when(step.get("when"), each)
        return Call(form.name, inside.arguments(step["arguments"], form.parameters, "arguments"), reason, each, when)

    def list_of_items(self, given: Any) -> From | None:
        if given is None:
            return None
        if not isinstance(given, dict) or given.keys() != {"items"}:
            raise ReplyProblem('each: expected null or {"items": …} with a reference to a list')
        lists = {id: dict.fromkeys(paths) for id, paths in self.form.items.get(ANYTHING.key, {}).items()}
        return _find(given["items"], lists, "each.items", _list_places(lists))

    def when(self, given: Any, each: Each | None) -> When | None:
        if given is None:
            return None
        negated = isinstance(given, dict) and given.keys() == {"not"}
        condition, place = (given["not"], "when.not") if negated else (given, "when")
        match condition:
            case {"true": value} if len(condition) == 1:
                when = When("true", (self.reference(value, TRUTH, f"{place}.true"),), negated)
            case {"present": value} if len(condition) == 1:
                when = When("present", (self.reference(value, ANYTHING, f"{place}.present"),), negated)
            case {"equal": [_, _] as sides} if len(condition) == 1:
                when = When("equal", self.compared(sides, f"{place}.equal"), negated)
            case _:
                one = '{"true": …}, {"equal": […, …]} and {"present": …}'
                raise ReplyProblem(f'{place}: expected null, one of {one}, or {{"not": …}} with one of them')
        step = Step("s", "", each=each, when=when)
        known = {origin.id: origin.schemas[0] for origin in self.form.origins}
        findings = check_plan(Plan("", (step,)), {}, input=known.pop(INPUT, None), finished=known)
        if faults := [f"{found.place}: {found.message}" for found in findings if found.place.startswith("when")]:
            raise ReplyProblem(*faults)
        return when

    def compared(self, sides: list[Any], place: str) -> tuple[Expression, ...]:
        form = next((form for form in COMPARED if any(self.refers(side, form) for side in sides)), COMPARED[0])
        values = tuple(self.side(side, form, f"{place}[{index}]") for index, side in enumerate(sides))
        if not any(isinstance(value, From) for value in values):
            raise ReplyProblem(f"{place}: one of the two is a reference")
        return values

    def refers(self, side: Any, form: ParameterForm) -> bool:
        with suppress(ReplyProblem):
            return bool(self.reference(side, form, ""))
        return False

    def side(self, side: Any, form: ParameterForm, place: str) -> Expression:
        if isinstance(side, dict) and side.keys() == {"value"}:
            return self.check(side["value"], form, place)
        return self.reference(side, form, place)

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
            raise ReplyProblem(*dict.fromkeys(faults[:_FAULTS]))
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
        allowed = self.allowed(form)
        if form is ANYTHING or (allowed and self.form.rules.force_references):
            return _list_places(allowed) if allowed else "a reference, and there is nothing to refer to"
        return (
            f'{{"value": …}} or {_list_places(allowed)}'
            if allowed
            else '{"value": …}; nothing fits that can be referred to'
        )

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

    def allowed(self, form: ParameterForm) -> Mapping[str, Mapping[Path, None]]:
        """Return what an argument may refer to: results, and the item of the list that was chosen."""
        allowed = self.form.allowed.get(form.key, {})
        if self.items is None:
            return allowed
        lists = self.form.items.get(form.key, {}).get(self.items.step, {})
        return {ITEM: lists.get(self.items.path, {}), **allowed}

    def reference(self, value: Any, form: ParameterForm, place: str) -> From:
        if self.items is None and self.form.items and isinstance(value, dict) and value.get("from") == ITEM:
            raise ReplyProblem('each: it is null, so there is no {"from": "item"}')
        return _find(value, self.allowed(form), place, self.explain(form))

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


def _find(value: Any, allowed: Mapping[str, Mapping[Path, None]], place: str, expected: str) -> From:
    step, path = (value.get("from"), value.get("path", "$")) if isinstance(value, dict) else (None, None)
    if isinstance(step, str) and isinstance(path, str) and value.keys() <= {"from", "path"}:
        try:
            parsed = From.parse_path(path)
        except PlanFormatError as error:
            raise ReplyProblem(f"{place}: {error}") from error
        if parsed in allowed.get(step, {}):
            return From(step, parsed)
    shown = json.dumps(value, ensure_ascii=False)[:100]
    raise ReplyProblem(f"{place}: {shown} does not surely fit; expected {expected}")


def _list_places(allowed: Mapping[str, Mapping[Path, None]]) -> str:
    places = [{"from": step, "path": From.print_path(path)} for step, paths in allowed.items() for path in paths]
    shown = [json.dumps(place, ensure_ascii=False) for place in places[:_SHOWN]]
    return f"one of {', '.join(shown)}{' and more' if len(places) > _SHOWN else ''}"


def _key_faults(value: Mapping[str, Any], needed: set[str], allowed: Collection[str], place: str) -> list[str]:
    known = ", ".join(sorted({*needed, *allowed})) or "none"
    missing = [f"{place}: {name!r} is missing" for name in sorted(needed - value.keys())]
    unknown = sorted(map(str, value.keys() - {*needed, *allowed}))
    return [*missing, *(f"{place}: {name!r} is unknown; known are: {known}" for name in unknown)]


def _require_keys(step: Mapping[str, Any], needed: set[str], allowed: Collection[str] = ()) -> None:
    faults = _key_faults(step, needed, allowed, "next")
    if faults:
        raise ReplyProblem(*faults)
