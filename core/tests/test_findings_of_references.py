"""What the check says of the references of a plan: each finding whole, as a person and a model read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.support.findings import told

from portico._functions.functions import FunctionSpec
from portico._plans.check import check_plan
from portico._plans.plan import Expression, From, ListOf, ObjectOf, Plan, Step, TextOf, Value

TEXT, COUNT = {"type": "string"}, {"type": "integer"}


def record(**members: Any) -> dict[str, Any]:
    """Return the schema of an object that has these members and no others."""
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


DAY = record(date=TEXT, weekday=COUNT)
OPEN = {"type": "object", "properties": {"date": TEXT, "weekday": COUNT, "Note": TEXT}, "required": ["date", "weekday"]}
WIDE = record(**{f"part{number}": TEXT for number in range(1, 6)}, last=COUNT)


def spec(name: str, returns: Any, **parameters: Any) -> FunctionSpec:
    return FunctionSpec(name, "", record(**parameters), returns)


CATALOGUE = {
    each.name: each
    for each in (
        spec("today", DAY),
        spec("open", OPEN),
        spec("wide", WIDE),
        spec("say", TEXT, text=TEXT),
        spec("total", COUNT, numbers={"type": "array", "items": COUNT}),
        spec("none", True, value={"enum": []}),
        spec("keep", True, day=DAY),
        spec("any", True, value=True),
    )
}
FIRST = Step("t", "today")
NO_EXPRESSION: Any = 3


def plan(
    expression: Expression | None = None,
    *,
    of: str = "say.text",
    first: Step = FIRST,
    more: int = 0,
    input: Mapping[str, Any] | None = None,
    result: Expression | None = None,
) -> Plan:
    """Return a plan of a first step, some more as it, and one that takes the expression as its argument."""
    function, _, argument = of.partition(".")
    steps = [replace(first, id=f"more{number}") for number in range(more)]
    if expression is not None:
        steps.append(Step("x", function, {argument: expression}))
    return Plan("g", (first, *steps), result, input=input)


@pytest.mark.parametrize(
    ("made", "findings"),
    [
        pytest.param(
            plan(From("y")),
            ["error in x arguments.text: there is no step 'y'; the steps are: t, x"],
            id="a step that nobody knows",
        ),
        pytest.param(
            plan(From("today"), first=Step("today1", "today")),
            ["error in x arguments.text: there is no step 'today'; the steps are: today1, x", "  near: today1"],
            id="a step that nobody knows, like one that is there",
        ),
        pytest.param(
            plan(From("t", ("Date",))),
            [
                (
                    "error in x arguments.text: $.Date of t: there can be nothing at $.Date; it has: date, weekday; "
                    "nearest: $.date"
                ),
                "  near: $.date",
            ],
            id="a path of another case",
        ),
        pytest.param(plan(From("t", ("Date",)), first=Step("t", "open")), [], id="a property that nothing declares"),
        pytest.param(
            plan(From("input")),
            ["error in x arguments.text: the plan is given nothing that 'input' could stand for"],
            id="no input",
        ),
        pytest.param(
            plan(From("t", ("day",))),
            [
                (
                    "error in x arguments.text: $.day of t: there can be nothing at $.day; it has: date, weekday; "
                    "nearest: $.date, $.weekday"
                ),
                "  near: $.date, $.weekday",
            ],
            id="a path to nothing",
        ),
        pytest.param(
            plan(From("w", ("part",)), first=Step("w", "wide")),
            [
                (
                    "error in x arguments.text: $.part of w: there can be nothing at $.part; it has: last, part1, "
                    "part2, part3, part4, part5; nearest: $.part3, $.part1, $.part2"
                ),
                "  near: $.part3, $.part1, $.part2",
            ],
            id="a path to nothing like several that fit",
        ),
        pytest.param(
            plan(From("w", ("lost",)), first=Step("w", "wide")),
            [
                (
                    "error in x arguments.text: $.lost of w: there can be nothing at $.lost; it has: last, part1, "
                    "part2, part3, part4, part5; nearest: $.part1, $.part2, $.part3"
                ),
                "  near: $.part1, $.part2, $.part3",
            ],
            id="a path to nothing like one that does not fit",
        ),
        pytest.param(
            plan(From("t", ("date", 0))),
            [
                (
                    "error in x arguments.text: $.date[0] of t: there can be nothing at $.date[0]; $.date is "
                    "string; nearest: $.date"
                ),
                "  near: $.date",
            ],
            id="a path into what has nothing inside",
        ),
        pytest.param(
            plan(From("t")),
            [
                "error in x arguments.text: object is given where say takes string",
                "  hint: of t, $.date would do",
                "  near: $.date",
            ],
            id="an object where its member is taken",
        ),
        pytest.param(
            plan(From("w"), first=Step("w", "wide")),
            [
                "error in x arguments.text: object is given where say takes string",
                "  hint: of w, $.part1 or $.part2 or $.part3 would do",
                "  near: $.part1, $.part2, $.part3",
            ],
            id="an object where three of its members are taken",
        ),
        pytest.param(
            plan(From("t"), of="total.numbers"),
            ["error in x arguments.numbers: object is given where total takes array"],
            id="an object where none of its members is taken",
        ),
        pytest.param(
            plan(From("s"), first=Step("t1", "today"), more=9),
            [
                (
                    "error in x arguments.text: there is no step 's'; the steps are: t1, more0, more1, more2, "
                    "more3, more4, more5, more6, more7, more8 and 1 more"
                )
            ],
            id="more steps than are listed",
        ),
        pytest.param(
            plan(From("input", ("town",)), input=record(city=TEXT)),
            [
                (
                    "error in x arguments.text: $.town of input: there can be nothing at $.town; it has: city; "
                    "nearest: $.city"
                ),
                "  near: $.city",
            ],
            id="an input without that",
        ),
        pytest.param(
            plan(From("y"), input={}),
            ["error in x arguments.text: there is no step 'y'; the steps are: t, x, input"],
            id="a step that nobody knows, where there is an input",
        ),
        pytest.param(
            plan(result=From("y", ("a",))),
            ["error in None result: there is no step 'y'; the steps are: t"],
            id="a result of nothing that is there",
        ),
        pytest.param(
            plan(result=ListOf((Value(1), ObjectOf({"a": TextOf(("b", From("t", ("day",))))})))),
            [
                (
                    "error in None result.list[1].object.a.text[1]: $.day of t: there can be nothing at $.day; it "
                    "has: date, weekday; nearest: $.weekday"
                ),
                "  near: $.weekday",
            ],
            id="a result of a path to nothing",
        ),
        pytest.param(
            plan(result=ListOf((Value(1), NO_EXPRESSION))),
            ["error in None result.list[1]: 3 is no expression"],
            id="what is no expression",
        ),
        pytest.param(
            plan(From("y"), of="none.value"),
            [
                "error in x arguments.value: there is no step 'y'; the steps are: t, x",
                (
                    "error in x arguments.value: array or boolean or null or number or object or string is given "
                    "where none takes nothing"
                ),
            ],
            id="no step, for what takes nothing",
        ),
    ],
)
def test_what_is_wrong_with_a_reference_is_said_with_what_is_meant(made: Plan, findings: list[str]) -> None:
    assert told(check_plan(made, CATALOGUE)) == findings
