"""What the check says of the literals of a plan: each finding whole, as a person and a model read it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.findings import told

from portico._functions.functions import FunctionSpec
from portico._plans.check import check_plan
from portico._plans.plan import Expression, From, ListOf, Plan, Step, TextOf, Value

TEXT, COUNT = {"type": "string"}, {"type": "integer"}


def record(**members: Any) -> dict[str, Any]:
    """Return the schema of an object that has these members and no others."""
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


DAY = record(date=TEXT, weekday=COUNT)


def spec(name: str, returns: Any, **parameters: Any) -> FunctionSpec:
    return FunctionSpec(name, "", record(**parameters), returns)


CATALOGUE = {
    each.name: each
    for each in (
        spec("today", DAY),
        spec("say", TEXT, text=TEXT),
        spec("scale", COUNT, unit={"enum": ["celsius", "kelvin"]}),
        spec("total", COUNT, numbers={"type": "array", "items": COUNT}),
        spec("flag", True, on={"type": "boolean"}),
        spec("odd", True, text={"type": "string", "pattern": "^a"}),
        spec("names", True, all={"type": "array", "items": TEXT}),
        spec("wait", True, days={"type": ["integer", "null"]}),
        spec("any", True, word={"type": ["string", "integer"], "minimum": 1}),
        spec("rows", True, all={"type": "array", "items": {"type": "array", "items": COUNT}}),
    )
}
FIRST = Step("t", "today")


def plan(expression: Expression, *, of: str = "say.text", first: Step = FIRST) -> Plan:
    """Return a plan of a first step, and one that takes the expression as its argument."""
    function, _, argument = of.partition(".")
    return Plan("g", (first, Step("x", function, {argument: expression})))


@pytest.mark.parametrize(
    ("made", "findings"),
    [
        pytest.param(
            plan(Value({"a": 1})),
            ["error in x arguments.text: $: expected string, got object"],
            id="a literal of another type",
        ),
        pytest.param(
            plan(Value(7)),
            [
                'error in x arguments.text: $: expected string, got integer; write "7"',
                "  fix: ('x',) ('arguments', 'text') Value(value='7')",
            ],
            id="a literal that means another",
        ),
        pytest.param(
            plan(Value('["ä"]'), of="names.all"),
            [
                'error in x arguments.all: $: expected array, got string; write ["ä"]',
                "  fix: ('x',) ('arguments', 'all') Value(value=['ä'])",
            ],
            id="a literal that means another, in letters of its own",
        ),
        pytest.param(
            plan(Value("Kelvin"), of="scale.unit"),
            [
                "error in x arguments.unit: $: expected one of 'celsius', 'kelvin'; write \"kelvin\"",
                "  fix: ('x',) ('arguments', 'unit') Value(value='kelvin')",
            ],
            id="a literal that means a value of another case",
        ),
        pytest.param(
            plan(Value("rankine"), of="scale.unit"),
            ["error in x arguments.unit: $: expected one of 'celsius', 'kelvin'"],
            id="a literal that means no value",
        ),
        pytest.param(
            plan(Value("TRUE"), of="flag.on"),
            ["error in x arguments.on: $: expected boolean, got string"],
            id="a truth as no language writes it",
        ),
        pytest.param(
            plan(Value(["1", "2"]), of="total.numbers"),
            [
                "error in x arguments.numbers: $[0]: expected integer, got string; write [1, 2]",
                "  fix: ('x',) ('arguments', 'numbers') Value(value=[1, 2])",
                "error in x arguments.numbers: $[1]: expected integer, got string; write [1, 2]",
                "  fix: ('x',) ('arguments', 'numbers') Value(value=[1, 2])",
            ],
            id="a literal with two faults and one meaning",
        ),
        pytest.param(
            plan(Value(["a", "b"]), of="total.numbers"),
            [
                "error in x arguments.numbers: $[0]: expected integer, got string",
                "error in x arguments.numbers: $[1]: expected integer, got string",
            ],
            id="a literal with two faults and no meaning",
        ),
        pytest.param(
            plan(Value("[" + ", ".join(map(str, range(10, 40))) + "]"), of="total.numbers"),
            [
                (
                    "error in x arguments.numbers: $: expected array, got string; write [10, 11, 12, 13, 14, 15, "
                    "16, 17, 18, 19, 20, 21, 22, 23, 24,…"
                ),
                (
                    "  fix: ('x',) ('arguments', 'numbers') Value(value=[10, 11, 12, 13, 14, 15, 16, 17, 18, 19, "
                    "20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39])"
                ),
            ],
            id="a literal that means a long one",
        ),
        pytest.param(
            plan(Value("[" + ", ".join(map(str, range(10, 24))) + ", 12]"), of="total.numbers"),
            [
                (
                    "error in x arguments.numbers: $: expected array, got string; write [10, 11, 12, 13, 14, 15, "
                    "16, 17, 18, 19, 20, 21, 22, 23, 12]"
                ),
                (
                    "  fix: ('x',) ('arguments', 'numbers') Value(value=[10, 11, 12, 13, 14, 15, 16, 17, 18, 19, "
                    "20, 21, 22, 23, 12])"
                ),
            ],
            id="a literal that means one just short enough",
        ),
        pytest.param(
            plan(Value("[" + ", ".join(map(str, range(10, 24))) + ", 123]"), of="total.numbers"),
            [
                (
                    "error in x arguments.numbers: $: expected array, got string; write [10, 11, 12, 13, 14, 15, "
                    "16, 17, 18, 19, 20, 21, 22, 23, 123…"
                ),
                (
                    "  fix: ('x',) ('arguments', 'numbers') Value(value=[10, 11, 12, 13, 14, 15, 16, 17, 18, 19, "
                    "20, 21, 22, 23, 123])"
                ),
            ],
            id="a literal that means one just too long",
        ),
        pytest.param(
            plan(Value("a"), of="odd.text"),
            [
                (
                    "warning in x arguments.text: the literal could not be checked: The schema keyword 'pattern' is "
                    "not handled by the plain validator. Install portico-basics for all of JSON Schema 2020-12."
                )
            ],
            id="a literal that the validator cannot check",
        ),
        pytest.param(
            plan(Value("soon"), of="wait.days"),
            ["error in x arguments.days: $: expected integer or null, got string"],
            id="a literal of another type where null would do",
        ),
        pytest.param(
            plan(TextOf(("a", Value(1))), of="any.word"),
            [],
            id="a text of literals where what the validator cannot check is of numbers",
        ),
        pytest.param(
            plan(ListOf((ListOf((Value(1),)), ListOf((From("t", ("weekday",)),)))), of="rows.all"),
            [],
            id="a list of literals beside one of references",
        ),
    ],
)
def test_what_is_wrong_with_a_literal_is_said_with_what_is_meant(made: Plan, findings: list[str]) -> None:
    assert told(check_plan(made, CATALOGUE)) == findings
