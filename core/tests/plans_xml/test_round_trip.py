"""Every plan either survives XML as it was, or is refused with the reason."""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import assume, example, given, settings, strategies as st
from tests.support.strategies import plans

from portico._functions.functions import FunctionSpec
from portico._plans.json_form import plan_to_json
from portico._plans.plan import Expression, From, Plan, Step, TextOf, Value
from portico._plans.xml_form.reading import XmlPlan
from portico.errors import PlanFormatError
from portico_testkit.strategies import json_values

WORDS = st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=6)
# Anything that an attribute can hold, but no variable: "$" is for those.
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters="$\ufffe\uffff")
    | st.sampled_from("<>&\"'\n\t\r \ufeff]"),
    max_size=12,
)
REASONS = (
    st.text(string.ascii_letters + " \n<>&'\".é-", max_size=10).map(str.strip).filter(lambda text: "--" not in text)
)
PARAMETERS = st.lists(st.sampled_from(["input", "text", "Größe", "a.b", "x-y", "_1", "city"]), unique=True, max_size=3)


@st.composite
def plans_for_xml(draw: st.DrawFn) -> Plan:
    """Draw a plan that XML can hold: steps in order, texts and whole results, a result of steps or parts of them."""
    count = draw(st.integers(1, 5))
    names = draw(st.lists(WORDS, min_size=count, max_size=count, unique_by=str.casefold))
    ids = [name if draw(st.booleans()) and name.casefold() != "input" else "" for name in names]
    ids = [name or f"s{number}" for number, name in enumerate(ids, 1)]
    if len({each.casefold() for each in ids}) < count:
        ids = [f"s{number}" for number in range(1, count + 1)]
    steps: list[Step] = []
    for number, id in enumerate(ids):
        sources = st.sampled_from(["input", *ids[:number]]).map(From)
        expression: st.SearchStrategy[Expression] = st.builds(Value, TEXTS) | sources
        # A blank or a bracket after a variable ends its name.
        expression |= st.builds(
            lambda before, source, after: TextOf((f"{before} ", source, f") {after}")), TEXTS, sources, TEXTS
        )
        function = draw(
            st.builds("-".join, st.tuples(WORDS, WORDS).filter(lambda pair: pair[0] != "_GLOBAL_FUNCTIONS_")) | WORDS
        )
        arguments = {name: draw(expression) for name in draw(PARAMETERS)}
        steps.append(Step(id, function, arguments, (), draw(REASONS)))
    chosen = draw(st.lists(st.sampled_from(range(count)), min_size=1, unique=True).map(sorted))
    parts: list[str | Expression] = []
    for index in chosen:
        path = draw(st.sampled_from([(), ("date",), ("list", 0, "max temp"), ("a.b", -1)]))
        parts += ["\n", From(ids[index], path)]
    result = parts[1] if len(chosen) == 1 else TextOf(tuple(parts[1:]))
    goal = draw(st.text(string.ascii_letters + " \n<>&\"'$é", max_size=12).map(str.strip))
    return Plan(goal, tuple(steps), result)


@pytest.mark.fuzz
@given(plans_for_xml())
def test_a_plan_that_xml_can_hold_comes_back_as_it_was(plan: Plan) -> None:
    text = XmlPlan.write(plan)
    assert XmlPlan.read(text).plan == plan
    read = XmlPlan.read(f"Here it is:\n{text}\n", recover=True)
    assert read.plan == plan, "the scanner reads what is well-formed as the parser does"
    assert {mend.what for mend in read.recovered} == {"text around the plan"}


@pytest.mark.fuzz
@settings(max_examples=50)
@given(plans())
@example(Plan("g"))
@example(Plan("", (Step("s1", "f", {"a": Value("$INPUT")}),), From("s1")))
@example(Plan("", (Step("s1", "f", {"a": Value(True)}),), From("s1")))
@example(Plan("", (Step("s1", "f", {"a": Value("x")}, reason="a--b"),), From("s1")))
def test_any_plan_comes_back_or_is_refused_with_the_reason(plan: Plan) -> None:
    try:
        text = XmlPlan.write(plan)
    except PlanFormatError as error:
        assert str(error).startswith("XML cannot hold this plan")
    else:
        assert plan_to_json(XmlPlan.read(text).plan) == plan_to_json(replace(plan, notes=None, fingerprints={}))


SCHEMAS: dict[str, Any] = {
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": ["boolean", "null"]},
    "array": {"type": "array"},
    "object": {"anyOf": [{"$ref": "#/$defs/thing"}, {"type": "null"}]},
    "string": {"type": "string"},
    "open": {},
}
VALUES = {
    "integer": st.integers(),
    "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
    "boolean": st.booleans() | st.none(),
    "array": st.lists(json_values(3), max_size=3),
    "object": st.dictionaries(st.text(max_size=3), json_values(3), max_size=3),
    "string": st.sampled_from(["3", "true", "null", "[]", "{}", "3.0", " 3"]),
    "open": st.sampled_from(["3", "true", "null", "[]"]),
}
TYPED = FunctionSpec(
    "Typed-call",
    "",
    {"type": "object", "properties": SCHEMAS, "required": [], "$defs": {"thing": {"type": "object"}}},
    {},
)


@pytest.mark.fuzz
@given(st.fixed_dictionaries({}, optional=VALUES))
def test_with_the_catalogue_values_keep_their_kind(arguments: dict[str, Any]) -> None:
    steps = (Step("s1", "Typed-call", {name: Value(value) for name, value in arguments.items()}),)
    plan = Plan("", steps, From("s1"))
    catalogue = {TYPED.name: TYPED}
    try:
        text = XmlPlan.write(plan, catalogue)
    except PlanFormatError as error:
        # A text inside may hold what is no character of XML, or look like a variable.
        written = str(arguments)
        assert "$" in written or "character" in str(error)
    else:
        assert plan_to_json(XmlPlan.read(text, catalogue).plan) == plan_to_json(plan)


TRIP: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "array", "items": {"type": "object", "properties": {"max temp": {"type": "number"}}}},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
ANY = {"type": "object", "properties": {"input": {}, "text": {"type": "string"}, "n": {"type": "integer"}}}
FIELDS = {
    name: FunctionSpec(name, "", {**ANY, "required": required}, returns)
    for name, returns, required in (
        ("P-trip", TRIP, []),
        ("P-word", {"type": "string"}, ["input"]),
        ("P-any", {}, ["n"]),
    )
}
INPUT = {"city": "Oslo", "n": 3, "trip": {"city": "Bergen", "days": [{"max temp": 7}]}}
PLACES = st.sampled_from(
    ["", ".city", ".days[0]", '.days[-1]["max temp"]', ".days[0]['max temp']", ".days[*].city", ".", ".txt", "[x]"]
)
NAMES = st.sampled_from(["A", "b", "INPUT", "city", "n", "trip", "s2", "RESULT__A"])
AROUND = st.sampled_from(["", "", "on ", " and "])
GIVEN = st.builds(lambda *parts: "".join(parts), AROUND, st.just("$") | st.just("at "), NAMES, PLACES, AROUND)


@st.composite
def documents_with_fields(draw: st.DrawFn) -> str:
    """Draw a plan as a model writes it, with parts of results; some refer to what is not there."""
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        function = draw(st.sampled_from(["P.trip", "P.word", "p.Any"]))
        attributes = draw(st.dictionaries(st.sampled_from(["input", "text", "n"]), GIVEN | st.just("3"), max_size=3))
        if draw(st.booleans()):
            attributes["setContextVariable"] = draw(NAMES)
        if draw(st.booleans()):
            attributes["appendToResult"] = draw(st.sampled_from(["RESULT__A", "b"])) + draw(PLACES)
        written = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
        lines.append(f"<function.{function}{written}/>")
    return f"<plan>{''.join(lines)}</plan>"


def _texts(step: Step) -> Iterator[str]:
    for argument in step.arguments.values():
        parts = argument.parts if isinstance(argument, TextOf) else [getattr(argument, "value", None)]
        yield from (part for part in parts if isinstance(part, str))


@pytest.mark.fuzz
@given(documents_with_fields())
@example('<plan><function.P.trip text="x" appendToResult="RESULT__A.days[0]"/></plan>')
def test_a_plan_that_was_written_as_xml_can_be_written_as_xml_again(text: str) -> None:
    try:
        plan = XmlPlan.read(text, FIELDS, input=INPUT).plan
    except PlanFormatError:
        assume(False)
    try:
        again = XmlPlan.write(plan, FIELDS, input=INPUT)
    except PlanFormatError:
        # The writer chooses names of variables, and a text may hold one of these.
        assert any("$" in str(part) for step in plan.steps for part in _texts(step))
        assume(False)
    assert XmlPlan.read(again, FIELDS, input=INPUT).plan == plan
