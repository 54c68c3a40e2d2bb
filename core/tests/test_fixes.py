"""Fixes: what a check is certain of is mended, and nothing else becomes wrong by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import pytest
from hypothesis import given, strategies as st

from portico._functions.functions import Function, FunctionSpec, function
from portico._plans.check import check_plan
from portico._plans.findings import Finding, Fix
from portico._plans.plan import Expression, From, ListOf, ObjectOf, Plan, PlanTemplate, Step, TextOf, Value


@dataclass
class Day:
    date: str
    high: int


def today() -> Day: ...
def forecast(city: str, days: int = 1, scale: Literal["celsius", "kelvin"] = "celsius") -> list[Day]: ...
def total(numbers: list[int]) -> int: ...
def keep(day: Day, note_text: str = "") -> None: ...
@function(effects=True)
def send(text: str) -> None: ...


CATALOGUE: Mapping[str, FunctionSpec] = {
    made.full_name: made.spec
    for made in (
        Function.of(today, plugin="Clock"),
        Function.of(forecast, plugin="Weather"),
        Function.of(total),
        Function.of(keep),
        Function.of(send),
    )
}


def mended(plan: Plan) -> Plan:
    return Finding.fix_plan(plan, check_plan(plan, CATALOGUE))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (Step("x", "Weather.forecast", {"city": Value("a")}), Step("x", "Weather-forecast", {"city": Value("a")})),
        (Step("x", "weather_FORECAST", {"city": Value("a")}), Step("x", "Weather-forecast", {"city": Value("a")})),
        (Step("x", "forecast", {"city": Value("a")}), Step("x", "Weather-forecast", {"city": Value("a")})),
        (
            Step("x", "functions.Weather.Forecast", {"City": From("t", ("date",))}),
            Step("x", "Weather-forecast", {"city": From("t", ("date",))}),
        ),
        (
            Step("x", "Weather-forecast", {"CITY": Value("a"), "days": Value("3")}),
            Step("x", "Weather-forecast", {"city": Value("a"), "days": Value(3)}),
        ),
        (
            Step("x", "Weather-forecast", {"city": Value(7), "scale": Value("Celsius")}),
            Step("x", "Weather-forecast", {"city": Value("7"), "scale": Value("celsius")}),
        ),
        (Step("x", "total", {"numbers": Value(["1", 2])}), Step("x", "total", {"numbers": Value([1, 2])})),
        (Step("x", "total", {"numbers": Value("[1, 2]")}), Step("x", "total", {"numbers": Value([1, 2])})),
        (
            Step("x", "total", {"numbers": ListOf((Value("1"), From("t", ("high",))))}),
            Step("x", "total", {"numbers": ListOf((Value(1), From("t", ("high",))))}),
        ),
        (
            Step(
                "x",
                "keep",
                {"day": ObjectOf({"date": From("t", ("date",)), "high": Value("1")}), "notetext": Value("")},
            ),
            Step(
                "x", "keep", {"day": ObjectOf({"date": From("t", ("date",)), "high": Value(1)}), "note_text": Value("")}
            ),
        ),
        (Step("x", "send", {"text": Value("a")}, attempts=3), Step("x", "send", {"text": Value("a")})),
        (
            Step("x", Plan("inner", (Step("y", "Send", {"text": Value(1)}),), From("y"))),
            Step("x", Plan("inner", (Step("y", "send", {"text": Value("1")}),), From("y"))),
        ),
    ],
    ids=lambda step: str(step.function) if step.id == "x" and isinstance(step.function, str) else "nested",
)
def test_what_is_certain_is_mended(wrong: Step, right: Step) -> None:
    clock = Step("t", "Clock-today")
    findings = check_plan(Plan("g", (clock, wrong)), CATALOGUE)
    assert findings, "it must be found first"
    assert all(finding.fix for finding in findings), [str(finding) for finding in findings]
    plan = mended(Plan("g", (clock, wrong)))
    assert plan == Plan("g", (clock, right))
    assert check_plan(plan, CATALOGUE) == []


@pytest.mark.parametrize(
    "step",
    [
        Step("x", "Weather-forecasts", {"city": Value("a")}),
        Step("x", "Weather-forecast", {"city": Value("a"), "Days": Value(1), "days": Value(2)}),
        Step("x", "Weather-forecast", {"city": Value("a"), "Days": Value(1), "DAYS": Value(2)}),
        Step("x", "Weather-forecast", {"city": Value("a"), "days": Value("03")}),
        Step("x", "Weather-forecast", {"city": Value("a"), "days": Value("3.0")}),
        Step("x", "Weather-forecast", {"city": Value("a"), "day": Value(3)}),
        Step("x", "Weather-forecast", {"city": From("t", ("Date",))}),
        Step("x", "Weather-forecast", {"city": From("T", ("date",))}),
        Step("x", "send", {"text": Value("a")}, after=("T",)),
        Step("x", "keep", {"day": ObjectOf({"Date": Value("d"), "high": Value(1)})}),
        Step("x", "Weather-forecast", {"city": From("t")}),
    ],
)
def test_what_is_not_certain_is_left_to_the_author(step: Step) -> None:
    plan = Plan("g", (Step("t", "Clock-today"), step))
    findings = check_plan(plan, CATALOGUE)
    assert findings
    assert not any(finding.fix for finding in findings)
    assert Finding.fix_plan(plan, findings) is plan


def test_of_two_steps_of_one_name_nothing_is_mended() -> None:
    step = Step("x", "Send", {"text": Value("a")})
    plan = Plan("g", (step, step, Step("y", Plan("h", (step,))), Step("y", Plan("h", (step,)))))
    assert not any(finding.fix for finding in check_plan(plan, CATALOGUE))


def test_a_name_that_means_two_functions_is_not_chosen() -> None:
    catalogue = dict.fromkeys(("A-total", "B-total"), CATALOGUE["total"])
    (finding, *_) = check_plan(Plan("g", (Step("x", "total", {"numbers": Value([1])}),)), catalogue)
    assert finding.fix is None
    assert set(finding.nearest) == {"A-total", "B-total"}


def test_a_place_that_is_not_there_is_passed_over() -> None:
    plan = Plan("g", (Step("x", "send", {"text": Value("a")}),), From("x"))
    places: list[tuple[Any, ...]] = [("arguments", "no"), ("after", 3), ("arguments", "text", "list", 0), ("odd",)]
    fixes = [Finding("", "x", fix=Fix(("x",), place, Value(1))) for place in places]
    fixes += [Finding("", "z", fix=Fix(("z",), ("function",), "total"))]
    assert Finding.fix_plan(plan, fixes) == plan


def test_a_plan_without_a_result_is_given_none() -> None:
    plan = Plan("g", (Step("x", "send", {"text": Value("a")}),))
    assert Finding.fix_plan(plan, [Finding("", fix=Fix((), ("result",), Value(1)))]) == plan


NAMES = st.sampled_from(
    ["forecast", "Weather.forecast", "TOTAL", "total", "keep", "Send", "send", "nothing", "clock_today"]
)
IDS = st.sampled_from(["s0", "s1", "s2", "S1", "S2", "zz", "input"])
ARGUMENTS = st.sampled_from(["city", "City", "days", "DAYS", "numbers", "Numbers", "day", "text", "note-text", "scale"])
VALUES = st.sampled_from(
    ["a", "3", 3, "Kelvin", ["1"], [1], {"date": "d", "high": "2"}, {"Date": "d"}, None, 1.5, "True"]
)
PATHS = st.sampled_from([(), ("date",), ("Date",), (0, "HIGH"), (0,), ("nope",)])


@cache
def expressions() -> st.SearchStrategy[Expression]:
    leaves: st.SearchStrategy[Expression] = st.builds(Value, VALUES) | st.builds(From, IDS, PATHS)
    keys = st.sampled_from(["date", "Date", "high", "x"])
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(ListOf, st.lists(inner, max_size=2).map(tuple))
            | st.builds(ObjectOf, st.dictionaries(keys, inner, max_size=2))
            | st.builds(TextOf, st.lists(st.just("x") | inner, max_size=2).map(tuple))
        ),
        max_leaves=3,
    )


@st.composite
def careless_plans(draw: st.DrawFn, *, nested: bool = True) -> Plan:
    steps = []
    for number in range(draw(st.integers(1, 4))):
        function: Any = draw(NAMES)
        if nested and draw(st.integers(0, 4)) == 0:
            function = draw(careless_plans(nested=False) | st.just(PlanTemplate("Hi", "none")))
        arguments = draw(st.dictionaries(ARGUMENTS, expressions(), max_size=3))
        after = draw(st.lists(IDS, max_size=1))
        steps.append(
            Step(f"s{number}", function, arguments, tuple(after), attempts=draw(st.none() | st.integers(1, 2)))
        )
    return Plan("g", tuple(steps), draw(st.none() | expressions()))


@given(careless_plans())
def test_after_mending_those_findings_are_gone_and_no_new_ones_came(plan: Plan) -> None:
    before = check_plan(plan, CATALOGUE)
    after = check_plan(Finding.fix_plan(plan, before), CATALOGUE)
    left = [finding for finding in before if finding.fix is None]
    told = "\n".join(["before:", *map(str, before), "after:", *map(str, after)])
    assert [finding.fix for finding in after] == [None] * len(left), told
    assert sorted(short(finding) for finding in after) == sorted(map(short, left)), told


def short(finding: Finding) -> tuple[str, str]:
    """Return what stays the same when names around a finding change."""
    return (finding.step or "", finding.message.partition(";")[0].casefold().replace("-", "_"))
