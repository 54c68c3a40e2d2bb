"""Checking a plan against the catalogue before anything runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from portico.errors import SchemaUnsupported, nearest
from portico.functions import FunctionManual
from portico.plans.path import JsonPath, print_path
from portico.plans.plan import Expression, From, ListOf, ObjectOf, Plan, Step, TextOf, Value, references
from portico.plans.task import Finding
from portico.ports.schema_validator import SchemaValidator
from portico.schemas import PlainSchemaValidator

__all__ = ["check_plan", "fingerprint", "path_problem", "stale_functions"]

_KINDS = frozenset({"string", "number", "boolean", "null", "array", "object"})
_OPEN: Mapping[str, Any] = {}
_MAXIMUM_DEPTH = 50
_MAXIMUM_CYCLES = 20
_MAXIMUM_HINTS = 20


def check_plan(
    plan: Plan,
    catalogue: Mapping[str, FunctionManual],
    *,
    finished: Mapping[str, FunctionManual | None] | None = None,
    taken: Collection[str] = (),
    validator: SchemaValidator | None = None,
) -> list[Finding]:
    """Return everything that is wrong with a plan, in the order of its steps.

    ``finished`` are steps of the same pursuit that have run, by id, with the manual of what each called (None
    for a nested plan): new steps may refer to them. ``taken`` are the ids that no new step may have.
    """
    check = _Check(catalogue, finished or {}, taken, validator or PlainSchemaValidator())
    try:
        return list(check.plan(plan, 0))
    except RecursionError:
        return [Finding("the plan is nested too deeply to be checked")]


def fingerprint(manual: FunctionManual) -> str:
    """Return a hash of what a plan rests on in a function: its parameters and its result."""
    body = json.dumps([manual.parameters, manual.returns, manual.effects], sort_keys=True)
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def stale_functions(plan: Plan, catalogue: Mapping[str, FunctionManual]) -> tuple[str, ...]:
    """Return the functions whose manual is another, or gone, since the plan was written."""
    return tuple(
        name
        for name, recorded in plan.fingerprints.items()
        if name not in catalogue or fingerprint(catalogue[name]) != recorded
    )


class _Check:
    def __init__(
        self,
        catalogue: Mapping[str, FunctionManual],
        finished: Mapping[str, FunctionManual | None],
        taken: Collection[str],
        validator: SchemaValidator,
    ) -> None:
        self.catalogue = catalogue
        self.finished = finished
        self.taken = taken
        self.validator = validator
        self.hints = _MAXIMUM_HINTS

    def plan(self, plan: Plan, depth: int) -> Iterator[Finding]:
        if depth > _MAXIMUM_DEPTH:
            yield Finding(f"plans nest deeper than {_MAXIMUM_DEPTH} levels")
            return
        by_id: dict[str, Step] = {}
        for step in plan.steps:
            if not step.id or "/" in step.id:
                yield Finding(f"{step.id!r} is not an id; it is a word without '/'", step.id or None, "id")
            if step.id in by_id or step.id in self.finished or step.id in self.taken:
                yield Finding(f"the id {step.id!r} is taken; ids are unique in a pursuit", step.id)
            by_id.setdefault(step.id, step)
        if not plan.steps and plan.result is None:
            yield Finding("the plan has neither steps nor a result")
        for step in plan.steps:
            yield from self.step(step, by_id, depth)
        if plan.result is not None:
            yield from self.references(plan.result, None, "result", by_id)
        for cycle in islice(_cycles(by_id), _MAXIMUM_CYCLES):
            yield Finding(f"waits for itself: {' → '.join(cycle)}", cycle[0])

    def step(self, step: Step, by_id: Mapping[str, Step], depth: int) -> Iterator[Finding]:
        for earlier in step.after:
            if earlier not in by_id and earlier not in self.finished:
                yield self.unknown_step(earlier, step.id, "after", by_id)
        for name, expression in step.arguments.items():
            yield from self.references(expression, step.id, f"arguments.{name}", by_id)
        if isinstance(step.function, Plan):
            if step.arguments:
                yield Finding("a nested plan takes no arguments", step.id, "arguments")
            inner = _Check(self.catalogue, {}, (), self.validator)
            for finding in inner.plan(step.function, depth + 1):
                place = f"{finding.step or ''} {finding.place}".strip()
                yield Finding(finding.message, step.id, place, finding.severity)
            return
        manual = self.catalogue.get(step.function)
        if manual is None:
            # Looking through a large catalogue for each of many steps would take minutes.
            self.hints -= 1
            near = nearest(step.function, list(self.catalogue)) if self.hints >= 0 else ()
            hint = f"; nearest: {', '.join(near)}" if near else ""
            yield Finding(f"there is no function {step.function!r}{hint}", step.id, "function")
            return
        yield from self.arguments(step, manual, by_id)

    def arguments(self, step: Step, manual: FunctionManual, by_id: Mapping[str, Step]) -> Iterator[Finding]:
        properties = manual.parameters.get("properties", {})
        for name in manual.parameters.get("required", ()):
            if name not in step.arguments:
                yield Finding(f"{manual.name} needs the argument {name!r}", step.id, "arguments")
        open_ended = manual.parameters.get("additionalProperties") is not False
        for name, expression in step.arguments.items():
            place = f"arguments.{name}"
            if name not in properties:
                if not open_ended:
                    known = ", ".join(properties) or "none"
                    yield Finding(f"{manual.name} has no parameter {name!r}; it has: {known}", step.id, place)
            elif isinstance(expression, Value):
                yield from self.literal(expression.value, properties[name], manual, step.id, place)
            else:
                wanted = _kinds([properties[name]], manual.parameters)
                given = self.kinds_given(expression, by_id)
                if not given & wanted:
                    message = f"{_words(given)} is given where {manual.name} takes {_words(wanted)}"
                    yield Finding(message, step.id, place)

    def literal(
        self, value: Any, schema: Mapping[str, Any], manual: FunctionManual, step: str, place: str
    ) -> Iterator[Finding]:
        definitions = manual.parameters.get("$defs")
        whole = {**schema, "$defs": definitions} if definitions and isinstance(schema, Mapping) else schema
        try:
            validate = self.validator.compile(whole)
        except SchemaUnsupported as error:
            yield Finding(f"the literal could not be checked: {error}", step, place, "warning")
            return
        for fault in validate(value):
            yield Finding(fault, step, place)

    def references(
        self, expression: Expression, step: str | None, place: str, by_id: Mapping[str, Step]
    ) -> Iterator[Finding]:
        for reference in references(expression):
            if reference.step not in by_id and reference.step not in self.finished:
                yield self.unknown_step(reference.step, step, place, by_id)
                continue
            manual = self.produced_by(reference.step, by_id)
            if manual is not None:
                problem = path_problem(manual.returns, reference.path)
                if problem:
                    yield Finding(f"{print_path(reference.path)} of {reference.step}: {problem}", step, place)

    def kinds_given(self, expression: Expression, by_id: Mapping[str, Step]) -> frozenset[str]:
        """Return the kinds of JSON value that an expression may have; all where that is not known."""
        match expression:
            case From(step, path):
                known = step in by_id or step in self.finished
                manual = self.produced_by(step, by_id) if known else None
                return _KINDS if manual is None else _kinds(_at(manual.returns, path), manual.returns)
            case TextOf():
                return frozenset({"string"})
            case ListOf():
                return frozenset({"array"})
            case ObjectOf():
                return frozenset({"object"})
            case Value():
                return _KINDS

    def produced_by(self, step: str, by_id: Mapping[str, Step]) -> FunctionManual | None:
        if step in self.finished:
            return self.finished[step]
        function = by_id[step].function
        return self.catalogue.get(function) if isinstance(function, str) else None

    def unknown_step(self, step: str, where: str | None, place: str, by_id: Mapping[str, Step]) -> Finding:
        known = ", ".join([*self.finished, *by_id]) or "none"
        return Finding(f"there is no step {step!r}; the steps are: {known}", where, place)


def path_problem(schema: Mapping[str, Any], path: JsonPath) -> str | None:
    """Say why a value of ``schema`` cannot have anything at ``path``; None when it may.

    Only what the schema rules out is a problem: an open schema allows every path.
    """
    options = _alternatives([schema], schema)
    for depth, part in enumerate(path):
        outer, options = options, _inside(options, part, schema)
        if not options:
            names = sorted({name for option in outer for name in option.get("properties", {})})
            hint = f"; it has: {', '.join(names)}" if names and isinstance(part, str) else ""
            return f"there can be nothing at {print_path(path[: depth + 1])}{hint}"
    return None


def _at(schema: Mapping[str, Any], path: JsonPath) -> list[Mapping[str, Any]]:
    """Return the schemas that the value at ``path`` may have: one at least must hold; none where nothing can be."""
    options = _alternatives([schema], schema)
    for part in path:
        options = _inside(options, part, schema)
    return options


def _kinds(options: Iterable[Any], root: Mapping[str, Any]) -> frozenset[str]:
    """Return the kinds of JSON value that any of the schemas allows; integers are numbers here."""
    found: set[str] = set()
    for option in _alternatives(options, root):
        if "type" in option:
            names = [option["type"]] if isinstance(option["type"], str) else option["type"]
            found |= {"number" if name == "integer" else name for name in names}
        elif "enum" in option:
            found |= {_kind(value) for value in option["enum"]}
        else:
            return _KINDS
    return frozenset(found) or _KINDS


def _kind(value: Any) -> str:
    kinds = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def _words(kinds: frozenset[str]) -> str:
    return " or ".join(sorted(kinds))


def _alternatives(schemas: Iterable[Any], root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Follow references and unions to the schemas behind them, each once, since a plan may go deep into them."""
    found: dict[int, Mapping[str, Any]] = {}
    seen: set[str] = set()
    stack = list(schemas)[::-1]
    while stack:
        schema = stack.pop()
        if not isinstance(schema, Mapping):
            schema = None if schema is False else _OPEN
        elif isinstance(reference := schema.get("$ref"), str):
            if reference not in seen:
                seen.add(reference)
                stack.append(root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), _OPEN))
            continue
        elif isinstance(schema.get("anyOf"), list):
            stack.extend(reversed(schema["anyOf"]))
            continue
        if schema is not None:
            found[id(schema)] = schema
    return list(found.values())


def _inside(options: Iterable[Mapping[str, Any]], part: str | int, root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return _alternatives([inner for option in options for inner in _members(option, part)], root)


def _members(schema: Mapping[str, Any], part: str | int) -> list[Any]:
    kind = schema.get("type")
    kinds = [kind] if isinstance(kind, str) else kind
    if kinds is not None and ("object" if isinstance(part, str) else "array") not in kinds:
        return []
    if isinstance(part, str):
        properties = schema.get("properties", {})
        return [properties[part] if part in properties else schema.get("additionalProperties", True)]
    if "maxItems" in schema and not -schema["maxItems"] <= part < schema["maxItems"]:
        return []
    fixed = schema.get("prefixItems", ())
    if 0 <= part < len(fixed):
        return [fixed[part]]
    return [True if fixed else schema.get("items", True)]


def _cycles(steps: Mapping[str, Step]) -> Iterator[list[str]]:
    """Yield one walk for each cycle met, without recursion (a plan may have 1,000 steps)."""
    done: set[str] = set()
    for start in steps:
        if start in done:
            continue
        trail: list[str] = []
        on_trail: set[str] = set()
        stack: list[tuple[str, Iterable[str]]] = [(start, iter(_ordered(steps[start], steps)))]
        trail.append(start)
        on_trail.add(start)
        while stack:
            step, following = stack[-1]
            next_step = next(iter(following), None)
            if next_step is None:
                stack.pop()
                trail.pop()
                on_trail.discard(step)
                done.add(step)
            elif next_step in on_trail:
                yield [*trail[trail.index(next_step) :], next_step]
            elif next_step not in done:
                trail.append(next_step)
                on_trail.add(next_step)
                stack.append((next_step, iter(_ordered(steps[next_step], steps))))


def _ordered(step: Step, steps: Mapping[str, Step]) -> list[str]:
    return sorted(name for name in step.depends_on() if name in steps)
