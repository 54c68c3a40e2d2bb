"""What the check says of what steps wait for, are given and give: each finding whole, as it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.findings import told

from portico._functions.functions import FunctionSpec
from portico._plans.check import check_plan
from portico._plans.plan import Expression, From, ListOf, Plan, Step, Value

TEXT, COUNT = {"type": "string"}, {"type": "integer"}


def spec(name: str, *required: str, **parameters: Any) -> FunctionSpec:
    schema = {"type": "object", "properties": parameters, "required": list(required), "additionalProperties": False}
    return FunctionSpec(name, "", schema, TEXT)


CATALOGUE = {
    each.name: each
    for each in (
        spec("Weather-forecast", "city", city=TEXT, days=COUNT, never=False),
        spec("Clock-now"),
        spec("say", "text", text=TEXT, tone=TEXT),
        spec("total", "numbers", numbers={"type": "array", "items": COUNT}),
    )
}
W = Step("w", "Weather-forecast", {"city": Value("Oslo")})
CITY = {"type": "object", "properties": {"city": TEXT}, "required": ["city"]}


def many(count: int) -> Plan:
    return Plan("g", tuple(Step(f"s{number}", "Clock-now") for number in range(count)))


def deep(levels: int, inmost: Plan) -> Plan:
    """Return a plan inside of so many others."""
    for _ in range(levels):
        inmost = Plan("g", (Step("p", inmost),), From("p"))
    return inmost


def plan(*steps: Step, result: Expression | None = None, input: Mapping[str, Any] | None = None) -> Plan:
    return Plan("g", steps, result, input=input)


def found(made: Plan, options: Mapping[str, Any]) -> list[str]:
    return told(check_plan(made, CATALOGUE, **options))


@pytest.mark.parametrize(
    ("made", "options", "findings"),
    [
        pytest.param(
            plan(
                Step("n", Plan("i", (Step("x", "Say", {"text": Value("a")}),))),
                Step("n", Plan("i", (Step("m", Plan("j", (Step("x", "Clock-Now"),))),))),
            ),
            {},
            [
                "error in n x function: there is no function 'Say'; it is written 'say'",
                "  near: say",
                "error in n : the id 'n' is taken; ids are unique in a run",
                "error in n m x function: there is no function 'Clock-Now'; it is written 'Clock-now'",
                "  near: Clock-now",
            ],
            id="in two plans of one id, nothing is mended",
        ),
        pytest.param(
            plan(
                Step("x", "Clock-now", after=("y",)),
                Step("y", "Clock-now", after=("z",)),
                Step("z", "Clock-now"),
                Step("v", "Clock-now", after=("y", "x")),
            ),
            {},
            [],
            id="steps that do not wait for each other",
        ),
        pytest.param(plan(), {}, ["error in None : the plan has neither steps nor a result"], id="nothing"),
        pytest.param(
            plan(Step("x", plan(), {"a": From("y")})),
            {},
            [
                "error in x arguments.a: there is no step 'y'; the steps are: x",
                "error in x : the plan has neither steps nor a result",
            ],
            id="a nested plan of nothing",
        ),
        pytest.param(
            plan(
                Step("x", plan(W, input=CITY)),
                Step(
                    "y", plan(W, input={**CITY, "required": ["city", "other"]}), {"City": Value("a"), "town": Value(1)}
                ),
            ),
            {},
            [
                "error in x arguments: the plan needs the argument 'city': string",
                "error in y arguments: the plan needs the argument 'city': string",
                "error in y arguments: the plan needs the argument 'other': a value",
            ],
            id="a nested plan without what it needs",
        ),
        pytest.param(
            plan(
                W,
                Step(
                    "x",
                    plan(Step("i", "total", {"numbers": From("input", ("city",))}), input=CITY),
                    {"city": From("w"), "other": From("y")},
                ),
            ),
            {},
            [
                "error in x arguments.other: there is no step 'y'; the steps are: w, x",
                "error in x i arguments.numbers: string is given where total takes array",
            ],
            id="a nested plan that gets what it does not take",
        ),
        pytest.param(
            plan(
                W,
                Step(
                    "x",
                    plan(
                        Step("i", "total", {"numbers": From("input", ("a",))}),
                        Step("j", "say", {"text": From("input", ("b",))}),
                    ),
                    {"a": From("w"), "c": Value(1)},
                ),
                Step("y", plan(Step("i", "say", {"text": From("input")}))),
            ),
            {},
            [
                "error in x i arguments.numbers: string is given where total takes array",
                "error in x j arguments.text: $.b of input: there can be nothing at $.b; it has: a, c; nearest: $.a",
                "  near: $.a",
                "error in y i arguments.text: the plan is given nothing that 'input' could stand for",
            ],
            id="a nested plan that says nothing of its input",
        ),
        pytest.param(
            plan(
                Step("x", plan(W, result=ListOf((From("w"), From("V"), From("v"))))),
                Step("y", "say", {"text": From("x", (0,))}),
                Step("z", "say", {"text": From("x", (3,))}),
                result=From("x", ("a",)),
            ),
            {},
            [
                "error in x result.list[1]: there is no step 'V'; the steps are: w",
                "error in x result.list[2]: there is no step 'v'; the steps are: w",
                "error in z arguments.text: $[3] of x: there can be nothing at $[3]; $ is array; nearest: $[0]",
                "  near: $[0]",
                "error in None result: $.a of x: there can be nothing at $.a; $ is array",
            ],
            id="the result of a nested plan",
        ),
        pytest.param(
            plan(Step("x", plan(W)), Step("y", "say", {"text": From("x")})),
            {},
            ["error in y arguments.text: null is given where say takes string"],
            id="the result of a nested plan that has none",
        ),
        pytest.param(
            plan(
                Step("x", "Clock.Now"),
                Step("y", "total", {"numbers": From("x")}),
                Step("z", "total", {"numbers": From("n")}),
                Step("n", "zzz"),
            ),
            {},
            [
                "error in x function: there is no function 'Clock.Now'; it is written 'Clock-now'",
                "  near: Clock-now",
                "  fix: ('x',) ('function',) Clock-now",
                "error in y arguments.numbers: string is given where total takes array",
                (
                    "error in n function: there is no function 'zzz'; the functions are: Weather-forecast, "
                    "Clock-now, say, total"
                ),
            ],
            id="the result of a function of another spelling",
        ),
        pytest.param(
            plan(
                Step("x", plan(W, result=From("input", ("a",))), {"a": From("y")}),
                Step("y", plan(W, result=From("input", ("b",))), {"b": From("x")}),
            ),
            {},
            ["error in x : waits for itself: x → y → x"],
            id="nested plans that wait for each other",
        ),
        pytest.param(
            plan(
                Step("x", "say", {"text": From("input", ("city",))}),
                Step("y", "total", {"numbers": From("input", ("city",))}),
                input=CITY,
            ),
            {"input": {"const": 3}},
            [
                "error in None input: 3 is given where the plan takes object",
                "error in y arguments.numbers: string is given where total takes array",
            ],
            id="an input that does not fit",
        ),
        pytest.param(
            plan(
                Step("x", "say", {"text": From("input", ("city",))}),
                Step("y", "say", {"text": From("input", ("town",))}),
                input=CITY,
            ),
            {"input": {"type": "object", "additionalProperties": False, "properties": {"city": True, "size": True}}},
            [
                (
                    "error in y arguments.text: $.town of input: there can be nothing at $.town; it has: city, "
                    "size; nearest: $.city"
                ),
                "  near: $.city",
            ],
            id="an input that may fit",
        ),
        pytest.param(
            plan(Step("x", "say", {"text": From("input", ("city",))})),
            {"input": {"const": {"town": "a"}}},
            ["error in x arguments.text: $.city of input: there can be nothing at $.city; it has: town"],
            id="an input of which the plan says nothing",
        ),
        pytest.param(
            plan(Step("x", "say", {"text": From("y")})),
            {"finished": {"input": None}},
            ["error in x arguments.text: there is no step 'y'; the steps are: input, x"],
            id="an input that an earlier part of the run gave",
        ),
        pytest.param(
            many(1_001), {}, ["error in None : a plan has at most 1,000 steps, not 1,001"], id="too many steps"
        ),
        pytest.param(many(1_000), {}, [], id="as many steps as there may be"),
        pytest.param(
            plan(*deep(50, plan(result=Value(1))).steps, Step("z", "say", {"text": From("p")})),
            {},
            ["error in z arguments.text: 1 is given where say takes string"],
            id="plans that nest as deep as they may",
        ),
        pytest.param(
            plan(*deep(51, plan(result=Value(1))).steps, Step("z", "say", {"text": From("p")})),
            {},
            [
                (
                    "error in p p p p p p p p p p p p p p p p p p p p p p p p p p p p p p p p p p p p p p p p p p p "
                    "p p p p p p p p: plans nest deeper than 50 levels"
                )
            ],
            id="plans that nest too deep",
        ),
    ],
)
def test_what_is_wrong_with_what_flows_is_said_with_what_is_meant(
    made: Plan, options: dict[str, Any], findings: list[str]
) -> None:
    assert found(made, options) == findings


def test_of_many_circles_one_is_said() -> None:
    made = plan(*[Step(f"s{number}", "Clock-now", after=(f"s{number}",)) for number in range(21)])
    assert found(made, {}) == ["error in s0 : waits for itself: s0 → s0"]
