"""Plans that are drawn at random from the very schemas that the planner makes: every one passes the full check."""

from __future__ import annotations

import asyncio
import json
import random
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from tests.support.strategies import type_cases

from portico import ChatCapabilities, ChatRequest, Function, FunctionSpec, Parameter
from portico.plans import (
    ITEM,
    From,
    Infeasible,
    Plan,
    RunEvent,
    Task,
    check_plan,
    plan_from_json,
    plan_to_json,
    references,
)
from portico.plugins import compile_type
from portico.ports import ChatService
from portico_structured_planner.config import StructuredSettings
from portico_structured_planner.planner import StructuredPlanner
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices
from portico_testkit.strategies import json_values

HELD = ChatCapabilities(response_schema=True)
STRICT = ChatCapabilities(response_schema=True, strict=True)
PLANS_EACH = 20


@dataclass(slots=True)
class Sampler:
    """Draw JSON values that are valid under the schemas of strict mode, with the bounds that a grammar holds too.

    A step without a list refers to no item where it can do otherwise, as a model does.
    """

    schema: Mapping[str, Any]
    random: random.Random
    loops: bool = False

    def value(self) -> Any:
        return self.of(self.schema, 0)

    def of(self, schema: Mapping[str, Any], depth: int) -> Any:
        assert depth < 200, "the schema has no end"
        if "$ref" in schema:
            return self.of(self.schema["$defs"][schema["$ref"].removeprefix("#/$defs/")], depth + 1)
        if "anyOf" in schema:
            options = schema["anyOf"]
            options = [each for each in options if self.loops or not self.is_item(each)] or options
            # Deep inside of something recursive what is short is taken, as a model does that means to end.
            return self.of(min(options, key=self.weight) if depth > 40 else self.random.choice(options), depth + 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        kind = schema["type"]
        if isinstance(kind, list):
            kind = self.random.choice(kind)
        return getattr(self, f"of_{kind}")(schema, depth + 1)

    def weight(self, schema: Mapping[str, Any]) -> int:
        if schema.get("type") in ("null", "boolean", "string", "integer", "number"):
            return 0
        return 2 if "$ref" in schema else 1

    def of_object(self, schema: Mapping[str, Any], depth: int) -> Any:
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) == set(schema["properties"])
        made = {}
        for name, member in schema["properties"].items():
            made[name] = self.of(member, depth)
            self.loops = self.loops or (name == "each" and made[name] is not None)
        return made

    def is_item(self, schema: Mapping[str, Any]) -> bool:
        place = self.schema.get("$defs", {}).get(schema.get("$ref", "").removeprefix("#/$defs/"), {})
        return bool(place.get("properties", {}).get("from", {}).get("const") == ITEM)

    def of_array(self, schema: Mapping[str, Any], depth: int) -> Any:
        least = schema.get("minItems", 0)
        most = least if depth > 40 else min(schema.get("maxItems", least + 3), least + 3)
        return [self.of(schema["items"], depth) for _ in range(self.random.randint(least, most))]

    def of_string(self, schema: Mapping[str, Any], depth: int) -> Any:
        if "pattern" in schema:
            return self.random.choice(["0", "-12.5", "99"])
        match schema.get("format"):
            case "date":
                return date.fromordinal(self.random.randint(1, 700_000)).isoformat()
            case "date-time":
                return "2026-03-01T10:00:00Z"
            case "time":
                return "10:00:00Z"
            case "duration":
                return "P1DT2H"
            case "uuid":
                return "123e4567-e89b-42d3-a456-426614174000"
        letters = string.ascii_letters + " äß漢\U0001f642\"\\'<>&{}$\n"
        size = self.random.randint(0, min(schema.get("maxLength", 12), 12))
        return "".join(self.random.choice(letters) for _ in range(size))

    def of_integer(self, schema: Mapping[str, Any], depth: int) -> Any:
        return self.random.randint(schema.get("minimum", -9), schema.get("maximum", 10**6))

    def of_number(self, schema: Mapping[str, Any], depth: int) -> Any:
        return self.random.choice([self.of_integer(schema, depth), float(self.of_integer(schema, depth))])

    def of_boolean(self, schema: Mapping[str, Any], depth: int) -> Any:
        return self.random.random() < 0.5

    def of_null(self, schema: Mapping[str, Any], depth: int) -> Any:
        return None


def sampling(seed: int, capabilities: ChatCapabilities) -> ScriptedChat:
    """Make a service that answers with anything that is valid under the schema it is given."""
    source = random.Random(seed)

    def answer(request: ChatRequest) -> str:
        assert request.response_schema is not None
        return json.dumps(Sampler(request.response_schema, source).value())

    return ScriptedChat(answer, capabilities=capabilities, repeat=True)


_HINTS = type_cases().map(lambda case: case.hint) | st.sampled_from([Any, list[Any], dict[str, Any], str, date])
_TAKEN = _HINTS.filter(lambda hint: "prefixItems" not in json.dumps(compile_type(hint).schema))
"""The types that a model can write: a tuple of several types has no strict form."""
_RAW: Sequence[dict[str, Any]] = (
    {"type": "integer", "minimum": 0, "maximum": 5},
    {"type": "string", "minLength": 0},
    {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
    {"type": "object"},
    {"type": "object", "properties": {"deep": {"type": "object", "properties": {"n": {"type": "integer"}}}}},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"required": ["a"]}]},
    {"oneOf": [{"type": "string"}, {"type": "integer"}]},
)


@st.composite
def catalogues(draw: st.DrawFn) -> tuple[FunctionSpec, ...]:
    """Draw functions: some of Python types, some of other schemas, as an API's description has."""
    specs = []
    for number in range(draw(st.integers(1, 6))):
        parameters = []
        for place in range(draw(st.integers(0, 4))):
            required = draw(st.booleans())
            parameters.append(Parameter(f"p{place}", "", compile_type(draw(_TAKEN)), required))
        name = draw(st.sampled_from(["finish", "infeasible", "f", "look_up", "get"]))
        function = Function(
            f"{name}{number or ''}",
            print,
            plugin=draw(st.sampled_from([None, "Api", "my_plugin"])),
            parameters=parameters,
            returns=compile_type(draw(_HINTS)),
        )
        spec = function.spec
        if draw(st.integers(0, 3)) == 0:
            properties = {**spec.parameters["properties"], "raw": draw(st.sampled_from(_RAW))}
            parameters_schema = {**spec.parameters, "properties": properties, "required": ["raw"]}
            spec = FunctionSpec(spec.name, "", parameters_schema, draw(st.sampled_from(_RAW)))
        specs.append(spec)
    return tuple({spec.name: spec for spec in specs}.values())


@dataclass(frozen=True)
class Place:
    street: str
    town: str
    number: int


@dataclass(frozen=True)
class Person:
    name: str
    born: date
    home: Place
    phone: str | None = None


@dataclass(slots=True)
class Counts:
    plans: int = 0
    with_references: int = 0
    with_items: int = 0
    with_conditions: int = 0
    steps: int = 0
    infeasible: int = 0
    repairs: int = 0
    """Of what no schema says: keys of maps and elements of sets that are there twice, and items of another list."""


def count_plans(examples: int) -> Counts:
    counts = Counts()

    @settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate],
        derandomize=True,
    )  # fmt: skip
    @given(catalogues(), st.none() | json_values(4), st.integers(0, 2**32))
    def draw_plans(catalogue: tuple[FunctionSpec, ...], given_input: Any, seed: int) -> None:
        specs = {spec.name: spec for spec in catalogue}
        drawn = 0
        while drawn < PLANS_EACH:
            seed += 1
            options = StructuredSettings(
                max_steps=5, min_steps=1 + seed % 4, force_references=seed % 3 == 0, give_up=seed % 5 == 0, repairs=20
            )
            chat = sampling(seed, STRICT if seed % 2 else HELD)
            planner = StructuredPlanner(options, FixedServices({ChatService: chat}))
            task = Task("any", catalogue, input=given_input)
            proposal = asyncio.run(planner.propose(task, emit=ignore))
            asked = len(chat.requests)
            if isinstance(proposal, Infeasible):
                counts.infeasible += 1
                continue
            assert isinstance(proposal, Plan)
            drawn += 1
            findings = check(proposal, specs, given_input)
            assert not findings, f"{findings}\n{json.dumps(plan_to_json(proposal), indent=1)}"
            assert plan_from_json(json.loads(json.dumps(plan_to_json(proposal), allow_nan=False))) == proposal
            counts.plans += 1
            counts.repairs += asked - len(proposal.steps) - 1
            counts.steps += len(proposal.steps)
            found = {reference.step for reference in references_of(proposal)}
            counts.with_references += bool(found)
            counts.with_items += ITEM in found
            counts.with_conditions += any(step.when is not None for step in proposal.steps)

    draw_plans()
    return counts


def ignore(event: RunEvent) -> None:
    """Take an event."""


def references_of(plan: Plan) -> Iterator[From]:
    """Yield the references of the steps; that of the result is in every plan."""
    for step in plan.steps:
        for expression in step.expressions():
            yield from references(expression)


def check(plan: Plan, specs: Mapping[str, FunctionSpec], given_input: Any) -> Sequence[Any]:
    return [finding for finding in check_plan(plan, specs) if finding.severity == "error"]


def test_five_hundred_of_five_hundred_sampled_plans_pass_the_check() -> None:
    report(count_plans(25), 500)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_five_thousand_of_five_thousand_sampled_plans_pass_the_check() -> None:
    report(count_plans(250), 5_000)


def report(counts: Counts, wanted: int) -> None:
    print(counts)
    assert counts.plans >= wanted
    assert counts.with_references * 4 >= counts.plans, f"only {counts.with_references} of {counts.plans} refer"
    assert counts.with_items * 10 >= counts.plans, f"only {counts.with_items} of {counts.plans} refer to an item"
    assert counts.with_conditions * 10 >= counts.plans, (
        f"only {counts.with_conditions} of {counts.plans} have a condition"
    )


def test_a_hundred_functions_and_twenty_steps_stay_within_strict_mode() -> None:
    """Of strict mode's 5,000 properties and 1,000 listed values only a part is used, and nothing is left out."""
    hints = (str, int, float, bool, date, Place, Person, list[str], list[Person], Place | None, dict[str, int])
    source = random.Random(1)
    specs = []
    for number in range(100):
        parameters = [
            Parameter(f"p{place}", "What it is.", compile_type(source.choice(hints)), place < 2)
            for place in range(source.randint(1, 5))
        ]
        returns = compile_type(source.choice(hints))
        specs.append(Function(f"f{number}", print, parameters=parameters, returns=returns).spec)
    chat = sampling(3, STRICT)
    options = StructuredSettings(max_steps=20, min_steps=20, give_up=False, manual_tokens=None, repairs=20)
    planner = StructuredPlanner(options, FixedServices({ChatService: chat}))
    plan = asyncio.run(planner.propose(Task("any", tuple(specs)), emit=ignore))
    assert isinstance(plan, Plan)
    assert len(plan.steps) == 20
    assert check_plan(plan, {spec.name: spec for spec in specs}) == []
    largest = max((request.response_schema or {} for request in chat.requests), key=lambda each: len(json.dumps(each)))
    assert len(largest["properties"]["next"]["anyOf"]) == 100
    origins = {properties["from"]["const"] for properties in within(largest) if properties.keys() == {"from", "path"}}
    assert "s1" in origins
    assert sum(map(len, within(largest))) < 1_500, "properties"


def within(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the properties of every object in a schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema["properties"]
        for part in schema.values():
            yield from within(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from within(part)
