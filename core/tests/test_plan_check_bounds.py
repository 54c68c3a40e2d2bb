"""Where the check stops looking, into a plan and into schemas, and what it says there."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from tests.support.findings import told

from portico._functions.functions import FunctionSpec
from portico._plans.check import check_plan
from portico._plans.plan import Expression, From, ListOf, Plan, Step, TextOf, Value
from portico._schema.compare import _Search, meeting, never_meet

TEXT, COUNT = {"type": "string"}, {"type": "integer"}


def spec(name: str, **parameters: Any) -> FunctionSpec:
    return FunctionSpec(name, "", {"type": "object", "properties": parameters}, TEXT)


CATALOGUE = {
    each.name: each
    for each in (
        spec("say", text=TEXT),
        spec("pick", one={"enum": ["a", "b"]}),
        spec("total", numbers={"type": "array", "items": COUNT}),
        spec("any"),
    )
}
SAID = Step("s", "say", {"text": Value("a")})


def lists(levels: int, inmost: Expression) -> Expression:
    """Return an expression inside of so many lists."""
    for _ in range(levels):
        inmost = ListOf((inmost,))
    return inmost


def test_what_no_function_could_follow_is_one_finding() -> None:
    text: Expression = Value("a")
    for _ in range(sys.getrecursionlimit()):
        text = TextOf((text,))
    made = Plan("g", (Step("x", "pick", {"one": text}),))
    assert told(check_plan(made, CATALOGUE))[-1] == "error in None : the plan is nested too deeply to be checked"


@pytest.mark.parametrize("plans", [0, 1, 48, 49])
def test_as_long_as_there_is_a_level_left_what_is_in_a_list_is_checked_by_itself(plans: int) -> None:
    made = Plan("g", (SAID, Step("x", "total", {"numbers": lists(1, From("s"))})))
    for _ in range(plans):
        made = Plan("g", (Step("p", made),))
    step, *inner = [*["p"] * plans, "x"]
    place = " ".join([*inner, "arguments.numbers.list[0]"])
    assert told(check_plan(made, CATALOGUE)) == [f"error in {step} {place}: string is given where total takes integer"]


@pytest.mark.parametrize("before", [{}, {"sooner": From("s")}])
def test_a_reference_too_deep_to_be_looked_at_closes_no_circle(before: dict[str, Expression]) -> None:
    made = Plan("g", (SAID, Step("x", "any", {**before, "deep": lists(51, From("x"))})))
    assert told(check_plan(made, CATALOGUE)) == ["error in x arguments.deep: expressions nest deeper than 50 levels"]


def test_a_search_answers_five_thousand_questions_and_says_no_to_more() -> None:
    search = _Search()
    answers = [search.answer(number, lambda: True) for number in range(5_010)]
    assert answers == [True] * 5_000 + [False] * 10
    assert search.answer(0, lambda: False) is True, "what is known by then is not forgotten"


def wide(count: int, last: Any) -> dict[str, Any]:
    """Return the schema of an object that has so many properties: texts, and the last."""
    properties: dict[str, Any] = {f"p{number}": dict(TEXT) for number in range(count - 1)}
    properties["last"] = last
    return {"type": "object", "properties": properties, "required": ["p0", "last"]}


@pytest.mark.parametrize(("count", "decision"), [(1_000, "always"), (6_000, "maybe")])
def test_that_all_properties_fit_is_certain_of_a_thousand_and_not_of_six(count: int, decision: str) -> None:
    given, wanted = wide(count, TEXT), wide(count, TEXT)
    assert meeting(given, given, wanted, wanted) == decision


@pytest.mark.parametrize(("count", "never"), [(1_000, True), (6_000, False)])
def test_that_one_property_never_fits_is_certain_of_a_thousand_and_not_of_six(count: int, never: bool) -> None:
    given, wanted = wide(count, TEXT), wide(count, COUNT)
    for schema in (given, wanted):
        schema["required"] = list(schema["properties"])
    assert never_meet(((given, given), (wanted, wanted))) is never
