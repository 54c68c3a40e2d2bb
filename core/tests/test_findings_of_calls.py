"""What the check says of the calls of a plan: each finding whole, as a person and a model read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.findings import told

from portico._functions.functions import FunctionSpec
from portico._plans.check import check_plan
from portico._plans.plan import Expression, From, Plan, Step, Value

TEXT, COUNT = {"type": "string"}, {"type": "integer"}


def spec(name: str, *required: str, closed: bool = True, **parameters: Any) -> FunctionSpec:
    schema = {"type": "object", "properties": parameters, "required": list(required)}
    return FunctionSpec(name, "", {**schema, **({"additionalProperties": False} if closed else {})}, TEXT)


CATALOGUE = {
    each.name: each
    for each in (
        spec("Weather-forecast", "city", city=TEXT, days=COUNT, never=False),
        spec("Clock-now"),
        spec("say", "text", text=TEXT, tone=TEXT),
        spec("total", "numbers", numbers={"type": "array", "items": COUNT}),
        spec("loose", "a", "b", closed=False, a=TEXT),
        spec("A-mix"),
        spec("B-mix"),
    )
}
W = Step("w", "Weather-forecast", {"city": Value("Oslo")})


def plan(*steps: Step, result: Expression | None = None, input: Mapping[str, Any] | None = None) -> Plan:
    return Plan("g", steps, result, input=input)


def found(made: Plan, options: Mapping[str, Any]) -> list[str]:
    return told(check_plan(made, CATALOGUE, **options))


@pytest.mark.parametrize(
    ("made", "options", "findings"),
    [
        pytest.param(
            plan(Step("x", "zzz", {"a": From("y")})),
            {},
            [
                (
                    "error in x function: there is no function 'zzz'; the functions are: Weather-forecast, "
                    "Clock-now, say, total, loose, A-mix, B-mix"
                ),
                "error in x arguments.a: there is no step 'y'; the steps are: x",
            ],
            id="no function of that name, and none like it",
        ),
        pytest.param(
            plan(Step("x", "Weather-forecasts", {"a": Value(1)})),
            {},
            [
                "error in x function: there is no function 'Weather-forecasts'; nearest: Weather-forecast",
                "  near: Weather-forecast",
            ],
            id="no function of that name, and some like it",
        ),
        pytest.param(
            plan(Step("x", "weather.FORECAST", {"City": Value("a"), "days": Value("2")})),
            {},
            [
                "error in x function: there is no function 'weather.FORECAST'; it is written 'Weather-forecast'",
                "  near: Weather-forecast",
                "  fix: ('x',) ('function',) Weather-forecast",
                "error in x arguments.City: Weather-forecast has no parameter 'City'; it is written 'city'",
                "  near: city",
                "  fix: ('x',) ('arguments', 'City') city",
                "error in x arguments.days: $: expected integer, got string; write 2",
                "  fix: ('x',) ('arguments', 'days') Value(value=2)",
            ],
            id="a function of another spelling is checked as the one that is meant",
        ),
        pytest.param(
            plan(
                Step("x", " Forecast ", {"city": Value("a")}),
                Step("y", "functions.Clock_Now"),
                Step("z", "clock/now"),
                Step("v", "clock:now"),
                Step("u", "clock now"),
                Step("n", "Now"),
            ),
            {},
            [
                "error in x function: there is no function ' Forecast '; it is written 'Weather-forecast'",
                "  near: Weather-forecast",
                "  fix: ('x',) ('function',) Weather-forecast",
                "error in y function: there is no function 'functions.Clock_Now'; it is written 'Clock-now'",
                "  near: Clock-now",
                "  fix: ('y',) ('function',) Clock-now",
                "error in z function: there is no function 'clock/now'; it is written 'Clock-now'",
                "  near: Clock-now",
                "  fix: ('z',) ('function',) Clock-now",
                "error in v function: there is no function 'clock:now'; it is written 'Clock-now'",
                "  near: Clock-now",
                "  fix: ('v',) ('function',) Clock-now",
                "error in u function: there is no function 'clock now'; it is written 'Clock-now'",
                "  near: Clock-now",
                "  fix: ('u',) ('function',) Clock-now",
                "error in n function: there is no function 'Now'; it is written 'Clock-now'",
                "  near: Clock-now",
                "  fix: ('n',) ('function',) Clock-now",
            ],
            id="a function without its plugin",
        ),
        pytest.param(
            plan(Step("x", "mix")),
            {},
            ["error in x function: there is no function 'mix'; nearest: B-mix, A-mix", "  near: B-mix, A-mix"],
            id="a name that two functions have",
        ),
        pytest.param(
            plan(Step("x", "say"), Step("y", "loose")),
            {},
            [
                "error in x arguments: say needs the argument 'text': string",
                "error in y arguments: loose needs the argument 'a': string",
                "error in y arguments: loose needs the argument 'b': a value",
            ],
            id="no argument that is needed",
        ),
        pytest.param(
            plan(Step("x", "say", {"Text": Value("a"), "to ne": From("w")}), W),
            {},
            [
                "error in x arguments.Text: say has no parameter 'Text'; it is written 'text'",
                "  near: text",
                "  fix: ('x',) ('arguments', 'Text') text",
                "error in x arguments.to ne: say has no parameter 'to ne'; it is written 'tone'",
                "  near: tone",
                "  fix: ('x',) ('arguments', 'to ne') tone",
            ],
            id="an argument of another spelling is that one",
        ),
        pytest.param(
            plan(Step("x", "say", {"TEXT": Value({"a": 1}), "TONE": From("y")})),
            {},
            [
                "error in x arguments.TEXT: say has no parameter 'TEXT'; it is written 'text'",
                "  near: text",
                "  fix: ('x',) ('arguments', 'TEXT') text",
                "error in x arguments.TEXT: $: expected string, got object",
                "error in x arguments.TONE: say has no parameter 'TONE'; it is written 'tone'",
                "  near: tone",
                "  fix: ('x',) ('arguments', 'TONE') tone",
                "error in x arguments.TONE: there is no step 'y'; the steps are: x",
            ],
            id="an argument of another spelling that does not fit",
        ),
        pytest.param(
            plan(Step("x", "say", {"text": Value("a"), "Text": Value("b")})),
            {},
            ["error in x arguments.Text: say has no parameter 'Text'; it has: text, tone", "  near: text"],
            id="an argument in two spellings",
        ),
        pytest.param(
            plan(Step("x", "say", {"text": Value("a"), "txt": From("y")})),
            {},
            [
                "error in x arguments.txt: say has no parameter 'txt'; it has: text, tone",
                "  near: text",
                "error in x arguments.txt: there is no step 'y'; the steps are: x",
            ],
            id="an argument that is not taken",
        ),
        pytest.param(
            plan(Step("x", "Weather-forecast", {"city": Value("a"), "never": Value(1)})),
            {},
            ["error in x arguments.never: Weather-forecast has no parameter 'never'; it has: city, days"],
            id="an argument that no value can have",
        ),
        pytest.param(
            plan(Step("x", "loose", {"a": Value("a"), "b": Value(1), "c": From("y")})),
            {},
            ["error in x arguments.c: there is no step 'y'; the steps are: x"],
            id="an argument that is not known is taken where others may be given",
        ),
        pytest.param(
            plan(Step("", "Clock-now"), Step("a/b", "Clock-now"), Step("input", "Clock-now")),
            {},
            [
                "error in  id: '' is not an id; it is a word without '/', '[' and ']'",
                "error in a/b id: 'a/b' is not an id; it is a word without '/', '[' and ']'",
                "error in input id: 'input' is what the plan is given; no step may have that id",
            ],
            id="ids that no step can have",
        ),
        pytest.param(
            plan(W, W, Step("f", "Clock-now"), Step("k", "Clock-now")),
            {"finished": {"f": None}, "taken": {"k"}},
            [
                "error in w : the id 'w' is taken; ids are unique in a run",
                "error in f : the id 'f' is taken; ids are unique in a run",
                "error in k : the id 'k' is taken; ids are unique in a run",
            ],
            id="ids that others have",
        ),
        pytest.param(
            plan(Step("x", "loose", {"b": Value(1)})),
            {},
            ["error in x arguments: loose needs the argument 'a': string"],
            id="the first of two arguments is missing",
        ),
        pytest.param(
            plan(W, Step("x", "total", {"Numbers": From("w")})),
            {},
            [
                "error in x arguments.Numbers: total has no parameter 'Numbers'; it is written 'numbers'",
                "  near: numbers",
                "  fix: ('x',) ('arguments', 'Numbers') numbers",
                "error in x arguments.Numbers: string is given where total takes array",
            ],
            id="a parameter of another spelling that does not take what is given",
        ),
    ],
)
def test_what_is_wrong_with_a_call_is_said_with_what_is_meant(
    made: Plan, options: dict[str, Any], findings: list[str]
) -> None:
    assert found(made, options) == findings
