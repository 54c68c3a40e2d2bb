"""JSON in an attribute of a plan as XML, as models write it: in quotes that it has inside too, or in none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._functions.functions import FunctionSpec
from portico._plans.plan import Value
from portico._plans.xml_form.reading import XmlPlan
from portico.errors import PlanFormatError

ANYTHING: dict[str, Any] = {"type": "object", "properties": {"given": {"type": ["object", "array"]}, "n": {}}}
CATALOGUE = {"P-f": FunctionSpec("P-f", "", ANYTHING, {})}
PLAIN = st.text("ab 1$&.", max_size=8)
ODD = st.text("ab \"'=<>/,:{}[]&;", max_size=12)


def values(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    leaves = texts | st.integers() | st.booleans() | st.none()
    one = st.lists(leaves, max_size=3) | st.dictionaries(texts, leaves, max_size=3)
    return st.lists(leaves | one, min_size=1, max_size=3) | st.dictionaries(texts, leaves | one, min_size=1, max_size=3)


def given_in(value: Any, quote: str, write: Any) -> Any:
    text = f'<plan><function.P.f given={quote}{write(value)}{quote} n="x"/><function.P.f n="y"/></plan>'
    plan = XmlPlan.read(text, CATALOGUE, recover=True).plan
    assert [step.arguments.get("n") for step in plan.steps] == [Value("x"), Value("y")]
    return plan.steps[0].arguments["given"]


@pytest.mark.parametrize("write", [json.dumps, repr])
@given(value=values(PLAIN), quote=st.sampled_from(['"', "'", ""]))
def test_json_is_read_in_any_quotes_and_in_none(write: Any, value: Any, quote: str) -> None:
    assert given_in(value, quote, write) == Value(value)


@given(value=values(ODD), quote=st.sampled_from(['"', "'", ""]))
def test_json_with_odd_texts_is_read_or_refused_and_never_misread(value: Any, quote: str) -> None:
    try:
        read = given_in(value, quote, json.dumps)
    except PlanFormatError:
        return
    assert read == Value(value)


def test_two_attributes_are_not_taken_for_one_that_is_json() -> None:
    plan = XmlPlan.read('<plan><function.P.f a="[", b="]"/></plan>', recover=True).plan
    assert plan.steps[0].arguments == {"a": Value("["), "b": Value("]")}


@pytest.mark.parametrize("inside", ['<plan>\n<function.P.f n="x"/></plan>', '<plan><function.P.f n="x"></plan>'])
def test_a_plan_inside_of_another_element_is_read(inside: str) -> None:
    plan = XmlPlan.read(f"<xml>\n{inside}\n</xml>", recover=True).plan
    assert [step.arguments for step in plan.steps] == [{"n": Value("x")}]
