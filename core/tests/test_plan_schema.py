"""The published JSON Schema of plans says what plan_from_json takes: neither more nor less."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.support.described_form import DescribedForm
from tests.support.strategies import plans

from portico._plans.json_form import plan_from_json, plan_to_json
from portico._plans.plan import Plan
from portico.errors import PlanFormatError
from portico_testkit.strategies import json_values, near

PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "plan.schema.json"
# Those that the schema cannot say, by words of the error.
BOUNDS = ("nest deeper", "JSON has no", "digits is too long", "a number is at most")


def beyond(message: str) -> bool:
    return any(words in message for words in BOUNDS)


# Both are made inside of the tests: what is wrong with the schema is then a failure of theirs.
@cache
def the_schema() -> dict[str, Any]:
    return json.loads(PUBLISHED.read_text("utf-8"))


@cache
def form() -> DescribedForm:
    return DescribedForm(plan_from_json, the_schema(), PlanFormatError, beyond=beyond)


def test_it_is_a_schema_of_2020_12_that_names_no_host() -> None:
    jsonschema.Draft202012Validator.check_schema(the_schema())
    assert "://" not in the_schema()["$id"]
    assert the_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_everything_in_it_has_a_title_and_a_description() -> None:
    named = [the_schema(), *the_schema()["$defs"].values()]
    members = [member for each in named for member in each.get("properties", {}).values()]
    for each in (*named, *members, *the_schema()["$defs"]["expression"]["anyOf"]):
        assert each.get("title"), f"without a title: {each}"
        assert each.get("description") or "$ref" in each, f"without a description: {each}"


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(plans())
def test_the_json_form_of_every_plan_is_valid(plan: Plan) -> None:
    faults = [fault.message for fault in form().validator.iter_errors(plan_to_json(plan))]
    assert not faults


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_is_near_a_plan_is_taken_by_both_or_by_neither(data: st.DataObject) -> None:
    form().check(data.draw(near(plan_to_json(data.draw(plans(max_steps=2))))))


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_the_schema_describes_is_taken(data: st.DataObject) -> None:
    document = data.draw(instances(the_schema(), 0))
    assert form().validator.is_valid(document), f"the sampler drew what the schema refuses: {json.dumps(document)}"
    form().check(document)


@settings(max_examples=300)
@given(st.text("$.[]'\"\\u0123abcdefD8-_ \n\t*:?é日", max_size=10))
def test_a_path_is_taken_by_both_or_by_neither(text: str) -> None:
    form().check({"version": 1, "goal": "g", "steps": [], "result": {"from": "s1", "path": f"${text}"}})


@pytest.mark.parametrize(
    "path",
    ["$.a\n", "$\n", "$.a ", "$ .a", "$['\\ud83e\\udde6']", "$['\\ud83e']", "$['\\udde6']", "$[-0]", "$[01]", "$.1"],
)
def test_an_odd_path_is_taken_by_both_or_by_neither(path: str) -> None:
    form().check({"version": 1, "goal": "g", "steps": [], "result": {"from": "s1", "path": path}})


@pytest.mark.parametrize(
    "step",
    [
        {"attempts": 2.0},
        {"attempts": 2.5},
        {"attempts": 101},
        {"attempts": True},
        {"attempts": None},
        {"seconds": 0},
        {"seconds": 1e-9},
        {"seconds": 1_000_001},
        {"seconds": "1"},
        {"after": [1]},
        {"function": {}},
        {"function": {"template": "", "language": ""}},
        {"function": {"template": "", "language": "", "version": 1, "goal": "", "steps": []}},
        {"id": ""},
        {"each": {"items": {"value": [1]}, "at_once": 2.0, "failed": "skip"}},
        {"each": {"items": {"value": [1]}, "at_once": True}},
        {"each": {"items": {"value": [1]}, "at_once": 101}},
        {"each": {"items": {"value": [1]}, "failed": "retry"}},
        {"each": {"failed": "stop"}},
        {"when": {"not": {"not": {"true": {"value": True}}}}},
        {"when": {"not": {"equal": [{"value": 1}, {"from": "item"}]}}},
        {"when": {"equal": [{"value": 1}]}},
        {"when": {"true": {"value": True}, "present": {"value": True}}},
        {"when": {}},
    ],
)
def test_an_odd_step_is_taken_by_both_or_by_neither(step: dict[str, Any]) -> None:
    form().check({"version": 1, "goal": "g", "steps": [{"id": "s", "function": "f", **step}]})


def test_too_many_steps_are_refused_by_both() -> None:
    for count in (1_000, 1_001):
        form().check({"version": 1, "goal": "g", "steps": [{"id": "s", "function": "f"}] * count})


def instances(schema: Any, depth: int) -> st.SearchStrategy[Any]:
    """Draw instances of a schema with the keywords that this one uses."""
    if not isinstance(schema, dict):
        return json_values(3)
    if "$ref" in schema:
        target = (
            the_schema() if schema["$ref"] == "#" else the_schema()["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        )
        return st.deferred(lambda: instances(target, depth + 1))
    if "const" in schema:
        return st.just(schema["const"])
    if "anyOf" in schema:
        options = [each for each in schema["anyOf"] if depth < 6 or "$ref" not in each]
        flat = [each for each in options if "value" in each.get("properties", {}) or each.get("type") == "string"]
        return st.one_of([instances(each, depth) for each in (flat if depth >= 6 and flat else options)])
    match schema.get("type"):
        case "string":
            if "pattern" in schema:
                return st.from_regex(schema["pattern"].removesuffix("(?!\\n)")).filter(
                    lambda text: form().validator.evolve(schema=schema).is_valid(text)
                )
            return st.text(max_size=4)
        case "integer":
            return st.integers(schema["minimum"], schema["maximum"])
        case "number":
            return st.floats(schema["exclusiveMinimum"], schema["maximum"], exclude_min=True)
        case "array":
            least = schema.get("minItems", 0)
            return st.lists(instances(schema["items"], depth + 1), min_size=least, max_size=2 if depth < 6 else least)
        case "object":
            return objects(schema, depth)
    return json_values(3)


@st.composite
def objects(draw: st.DrawFn, schema: dict[str, Any], depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, member in schema.get("properties", {}).items():
        if name in schema.get("required", ()) or (depth < 6 and draw(st.booleans())):
            made[name] = draw(instances(member, depth + 1))
    rest = schema.get("additionalProperties", True)
    if rest is not False and depth < 6:
        made |= draw(st.dictionaries(st.text(max_size=3), instances(rest, depth + 1), max_size=2))
    return made
