"""What a policy demands of calls, where functions may call others themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from portico._flows.labels import TRUSTED, FunctionLabels, Label, Takes
from portico._flows.policy import Policy
from portico._plans.plan import Expression, ListOf, ObjectOf, Plan, Step
from portico._schema.paths import EACH, JsonPath

if TYPE_CHECKING:
    from portico._functions.functions import FunctionSpec

_TRUSTED, _ANYTHING, _OUTSIDE = Takes(), Takes(trusted=False), Takes(outside=True)
_NULL = {"type": "null"}
_OTHERWISE = ("$ref", "anyOf", "oneOf", "allOf", "patternProperties")


def never_late(step: Step) -> Label:
    """Say that a step was planned before anything was read."""
    return TRUSTED


@dataclass(frozen=True, slots=True)
class Around:
    """What all plans of one check share, and the calls of one model.

    ``plans`` returns the plan that a function runs, ``inside`` the functions that one calls by a plan or a template,
    ``called`` those that a template among the steps may call ("" for one that is not known). A step that was planned
    ``late`` was written by a planner that had read untrusted values: these have a part in its literals, unless the user
    ``said`` them, and in whether it runs.
    """

    policy: Policy
    specs: Mapping[str, FunctionSpec]
    plans: Callable[[str], Plan | None] = lambda name: None
    inside: Callable[[str], Iterable[str]] = lambda name: ()
    called: Callable[[Step], Iterable[str]] = lambda step: ()
    late: Callable[[Step], Label] = never_late
    said: Callable[[Any], bool] = lambda value: False
    _passing: dict[str, bool] = field(default_factory=dict)
    _taken: dict[tuple[str, str], dict[JsonPath, Takes]] = field(default_factory=dict)
    _labels: dict[str, FunctionLabels] = field(default_factory=dict)
    _sinks: dict[str, bool] = field(default_factory=dict)

    def labels(self, spec: FunctionSpec) -> FunctionLabels:
        """Return the labels of a function, found once."""
        found = self._labels.get(spec.name)
        if found is None:
            found = self._labels[spec.name] = self.policy.labels(spec)
        return found

    def is_sink(self, spec: FunctionSpec) -> bool:
        """Tell whether it matters who decides that a function is called."""
        known = self._sinks.get(spec.name)
        if known is None:
            known = self._sinks[spec.name] = self.policy.is_sink(spec) or self._passes_on(spec.name)
        return known

    def restricts(self, spec: FunctionSpec) -> bool:
        """Tell whether it matters what a function is called with."""
        return self.policy.restricts(spec) or self._passes_on(spec.name)

    def takes(self, spec: FunctionSpec, parameter: str, given: Expression | None = None) -> dict[JsonPath, Takes]:
        """Return what a parameter takes, by paths into it; ``given`` is what it is given.

        Where something is said of parts of it only, the rest takes what the whole would without a word.
        """
        key, plain = (spec.name, parameter), not isinstance(given, ObjectOf | ListOf)
        if plain and key in self._taken:
            return self._taken[key]
        found = self.policy.said_of(spec, parameter)
        if not self.is_sink(spec):
            found = found or {(): _ANYTHING}
        elif () not in found:
            schema = spec.parameters.get("properties", {}).get(parameter)
            rest = _rest(schema, found, given, spec.parameters.get("$defs", {})) if found else [((), _TRUSTED)]
            # What is said of the whole of a place holds for all inside it.
            found |= {path: takes for path, takes in rest if path not in found}
        if plain:
            self._taken[key] = found
        return found

    def _passes_on(self, name: str) -> bool:
        """Tell whether a function may call, by a plan or a template, one that it matters to what it is called with."""
        known = self._passing.get(name)
        if known is None:
            every = self.every(self.inside(name))
            known = any(each not in self.specs or self.policy.restricts(self.specs[each]) for each in every)
            self._passing[name] = known
        return known

    def every(self, called: Iterable[str]) -> set[str]:
        """Return the functions that are called, and all that these may call; every one where one is not known."""
        found, waiting = set[str](), [*called]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.inside(name) if name else self.specs
        return found


def _rest(
    schema: Any, said: Collection[JsonPath], given: Expression | None, definitions: Mapping[str, Any]
) -> Iterator[tuple[JsonPath, Takes]]:
    """Yield the places of a value of which nothing is ``said``; the outside of one where only its parts are said."""
    if () in said:
        return
    schema = _plain(schema, definitions)
    kind, inner = schema.get("type"), dict[Any, Any]()
    known = isinstance(given, ObjectOf) or (kind == "object" and schema.get("additionalProperties") is False)
    if known and isinstance(schema.get("properties"), Mapping):
        inner |= schema["properties"]
    if isinstance(given, ObjectOf):
        inner = {**dict.fromkeys(given.members), **inner}
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        inner[EACH] = schema["items"]
    names = {path[0] for path in said}
    if not names or not names <= inner.keys() or any(word in schema for word in _OTHERWISE):
        yield (), _TRUSTED
        return
    yield (), _OUTSIDE
    members: Mapping[Any, Expression] = given.members if isinstance(given, ObjectOf) else {}
    for name, part in inner.items():
        every: Iterable[tuple[Any, Expression | None]] = [(name, members.get(name))]
        if name == EACH and isinstance(given, ListOf):
            every = enumerate(given.items)
        for place, one in every:
            for path, takes in _rest(part, [path[1:] for path in said if path[0] == name], one, definitions):
                yield (place, *path), takes


def _plain(schema: Any, definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a schema says that refers to another one, or also takes null."""
    options = [each for each in schema.get("anyOf", ()) if each != _NULL] if isinstance(schema, Mapping) else []
    found: Any = options[0] if len(options) == 1 else schema
    reference = found.get("$ref") if isinstance(found, Mapping) else None
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        found = definitions.get(reference[8:])
    return found if isinstance(found, Mapping) else {}


def member_names(schema: Any) -> set[str]:
    """Return the names of the members that a JSON Schema knows, wherever they are."""
    inside = schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list | tuple) else ()
    names = {name for each in inside for name in member_names(each)}
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return names | (set(properties) if isinstance(properties, Mapping) else set())
