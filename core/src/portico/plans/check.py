"""Checking a plan against the catalogue before anything runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from portico.errors import SchemaUnsupported, nearest
from portico.functions import FunctionManual
from portico.plans.path import JsonPath, print_path
from portico.plans.plan import Expression, Plan, Step, Value, references
from portico.plans.task import Finding
from portico.ports.schema_validator import SchemaValidator
from portico.schemas import PlainSchemaValidator

__all__ = ["check_plan", "fingerprint", "stale_functions"]


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
    return list(_Check(catalogue, finished or {}, taken, validator or PlainSchemaValidator()).plan(plan))


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

    def plan(self, plan: Plan) -> Iterator[Finding]:
        by_id: dict[str, Step] = {}
        for step in plan.steps:
            if step.id in by_id or step.id in self.finished or step.id in self.taken:
                yield Finding(f"the id {step.id!r} is taken; ids are unique in a pursuit", step.id)
            by_id.setdefault(step.id, step)
        if not plan.steps and plan.result is None:
            yield Finding("the plan has neither steps nor a result")
        for step in plan.steps:
            yield from self.step(step, by_id)
        if plan.result is not None:
            yield from self.references(plan.result, None, "result", by_id)
        for cycle in _cycles(by_id):
            yield Finding(f"waits for itself: {' → '.join(cycle)}", cycle[0])

    def step(self, step: Step, by_id: Mapping[str, Step]) -> Iterator[Finding]:
        for earlier in step.after:
            if earlier not in by_id and earlier not in self.finished:
                yield self.unknown_step(earlier, step.id, "after", by_id)
        for name, expression in step.arguments.items():
            yield from self.references(expression, step.id, f"arguments.{name}", by_id)
        if isinstance(step.function, Plan):
            inner = _Check(self.catalogue, {}, (), self.validator)
            for finding in inner.plan(step.function):
                place = f"{finding.step or ''} {finding.place}".strip()
                yield Finding(finding.message, step.id, place, finding.severity)
            return
        manual = self.catalogue.get(step.function)
        if manual is None:
            near = nearest(step.function, list(self.catalogue))
            hint = f"; nearest: {', '.join(near)}" if near else ""
            yield Finding(f"there is no function {step.function!r}{hint}", step.id, "function")
            return
        yield from self.arguments(step, manual)

    def arguments(self, step: Step, manual: FunctionManual) -> Iterator[Finding]:
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

    def literal(
        self, value: Any, schema: Mapping[str, Any], manual: FunctionManual, step: str, place: str
    ) -> Iterator[Finding]:
        definitions = manual.parameters.get("$defs")
        try:
            validate = self.validator.compile({**schema, "$defs": definitions} if definitions else schema)
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
    options = _alternatives(schema, schema, 0)
    for depth, part in enumerate(path):
        following: list[Any] = []
        for option in options:
            following += _inside(option, part)
        if not following:
            names = sorted({name for option in options for name in option.get("properties", {})})
            hint = f"; it has: {', '.join(names)}" if names and isinstance(part, str) else ""
            return f"there can be nothing at {print_path(path[: depth + 1])}{hint}"
        options = [
            option for inner in following for option in ([{}] if inner is True else _alternatives(inner, schema, 0))
        ]
    return None


def _alternatives(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> list[Mapping[str, Any]]:
    if depth > 20:
        return [{}]
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = root.get("$defs", {}).get(reference.removeprefix("#/$defs/"))
        return _alternatives(target, root, depth + 1) if isinstance(target, dict) else [{}]
    if "anyOf" in schema:
        return [option for part in schema["anyOf"] for option in _alternatives(part, root, depth + 1)]
    return [schema]


def _inside(schema: Mapping[str, Any], part: str | int) -> list[Any]:
    kind = schema.get("type")
    if isinstance(part, str):
        if kind is not None and kind != "object":
            return []
        properties = schema.get("properties", {})
        if part in properties:
            return [properties[part]]
        rest = schema.get("additionalProperties", True)
    else:
        if kind is not None and kind != "array":
            return []
        fixed = schema.get("prefixItems", ())
        if "maxItems" in schema and not -schema["maxItems"] <= part < schema["maxItems"]:
            return []
        if 0 <= part < len(fixed):
            return [fixed[part]]
        rest = True if fixed else schema.get("items", True)
    return [] if rest is False else [rest]


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
