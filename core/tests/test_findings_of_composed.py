"""What the check says of what a plan puts together: each finding whole, as a person and a model read it."""

from __future__ import annotations

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
NESTED = {"type": "array", "items": {"$ref": "#/$defs/nested"}}


def spec(name: str, returns: Any, **parameters: Any) -> FunctionSpec:
    return FunctionSpec(name, "", {**record(**parameters), "$defs": {"nested": NESTED}}, returns)


CATALOGUE = {
    each.name: each
    for each in (
        spec("today", DAY),
        spec("say", TEXT, text=TEXT),
        spec("total", COUNT, numbers={"type": "array", "items": COUNT}),
        spec("keep", True, day=DAY),
        spec("any", True, value=True),
        spec("either", True, value={"anyOf": [TEXT, {"type": "array", "items": COUNT}, DAY]}),
        spec("deep", True, value=NESTED),
        spec("odds", True, texts={"type": "array", "items": {"type": "string", "pattern": "^a"}}),
        spec("maybe", True, value={"anyOf": [{"type": "null"}, {"type": "array", "items": COUNT}]}),
        spec("days", True, all={"type": "array", "items": DAY, "maxItems": 1}),
        FunctionSpec("free", "", {}, {}),
        spec("few", True, texts={"type": "array", "items": TEXT, "maxItems": 2}),
        spec("twice", True, value={"anyOf": [{"type": "array", "items": TEXT}, {"type": "array", "items": COUNT}]}),
        spec("counts", True, by={"type": "object", "additionalProperties": COUNT}),
        spec("needs", True, both={"type": "object", "required": ["a", "b"]}),
        spec("units", True, all={"type": "array", "items": {"enum": ["celsius", "kelvin"]}}),
        spec("strict", True, text={"type": "string", "maxLength": 3}),
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
            plan(ListOf((Value("a"),)), of="odds.texts"),
            [
                (
                    "warning in x arguments.texts.list[0]: the literal could not be checked: The schema keyword "
                    "'pattern' is not handled by the plain validator. Install portico-basics for all of JSON "
                    "Schema 2020-12."
                )
            ],
            id="a literal that the validator cannot check inside of a list",
        ),
        pytest.param(
            plan(TextOf(("a", From("t", ("date",)))), of="total.numbers"),
            ["error in x arguments.numbers: string is given where total takes array"],
            id="a text where a list is taken",
        ),
        pytest.param(
            plan(TextOf(("ab", Value(12))), of="strict.text"),
            [
                (
                    "warning in x arguments.text: the literal could not be checked: The schema keyword 'maxLength' "
                    "is not handled by the plain validator. Install portico-basics for all of JSON Schema "
                    "2020-12."
                )
            ],
            id="a text of literals that is too long",
        ),
        pytest.param(plan(TextOf(("ab", Value(12)))), [], id="a text of literals where anything fits"),
        pytest.param(
            plan(TextOf(("ab", From("y"), From("z"))), of="strict.text"),
            [
                "error in x arguments.text.text[1]: there is no step 'y'; the steps are: t, x",
                "error in x arguments.text.text[2]: there is no step 'z'; the steps are: t, x",
            ],
            id="a text of what is not there",
        ),
        pytest.param(
            plan(ListOf((From("t"),))),
            ["error in x arguments.text: array is given where say takes string"],
            id="a list where a text is taken",
        ),
        pytest.param(
            plan(
                ListOf((From("t", ("weekday",)), From("t", ("date",)), Value(1), Value("a"), Value("2"))),
                of="total.numbers",
            ),
            [
                "error in x arguments.numbers.list[1]: string is given where total takes integer",
                "  hint: of t, $.weekday would do",
                "  near: $.weekday",
                "error in x arguments.numbers.list[3]: $: expected integer, got string",
                "error in x arguments.numbers.list[4]: $: expected integer, got string; write 2",
                "  fix: ('x',) ('arguments', 'numbers', 'list', 4) Value(value=2)",
            ],
            id="a list of what does not fit and of what does",
        ),
        pytest.param(
            plan(ListOf((ListOf((From("t"),)),)), of="total.numbers"),
            ["error in x arguments.numbers.list[0]: array is given where total takes integer"],
            id="a list in a list",
        ),
        pytest.param(
            plan(ListOf((Value(1), Value(2))), of="total.numbers"), [], id="a list of literals alone that fits"
        ),
        pytest.param(
            plan(ListOf((Value(1), Value("a"))), of="total.numbers"),
            ["error in x arguments.numbers.list[1]: $: expected integer, got string"],
            id="a list of literals alone, of which one does not fit",
        ),
        pytest.param(
            plan(ObjectOf({"date": From("t", ("date",))}), of="keep.day"),
            ["error in x arguments.day: keep needs the member 'weekday' here: integer"],
            id="an object without a member that is needed",
        ),
        pytest.param(
            plan(ObjectOf({"date": From("t", ("date",)), "weekday": Value(1), "year": From("y")}), of="keep.day"),
            [
                "error in x arguments.day.object.year: keep takes no member 'year' here; it takes: date, weekday",
                "error in x arguments.day.object.year: there is no step 'y'; the steps are: t, x",
            ],
            id="an object with a member that is not taken",
        ),
        pytest.param(
            plan(ObjectOf({"Date": From("t", ("date",)), "date": Value("a"), "weekday": Value(1)}), of="keep.day"),
            [
                "error in x arguments.day.object.Date: keep takes no member 'Date' here; it takes: date, weekday",
                "  near: date",
            ],
            id="an object with a member twice, in two cases",
        ),
        pytest.param(
            plan(ObjectOf({"Date": From("t", ("date",)), "DATE": Value("a"), "weekday": Value(1)}), of="keep.day"),
            [
                "error in x arguments.day.object.Date: keep takes no member 'Date' here; it takes: date, weekday",
                "  near: date",
                "error in x arguments.day.object.DATE: keep takes no member 'DATE' here; it takes: date, weekday",
                "  near: date",
                "error in x arguments.day: keep needs the member 'date' here: string",
            ],
            id="an object with a member in two other cases",
        ),
        pytest.param(
            plan(ObjectOf({"date": From("t"), "weekday": From("t", ("date",))}), of="keep.day"),
            [
                "error in x arguments.day.object.date: object is given where keep takes string",
                "  hint: of t, $.date would do",
                "  near: $.date",
                "error in x arguments.day.object.weekday: string is given where keep takes integer",
                "  hint: of t, $.weekday would do",
                "  near: $.weekday",
            ],
            id="an object whose member does not fit",
        ),
        pytest.param(
            plan(ListOf((From("t"), From("y"))), of="either.value"),
            [
                "error in x arguments.value.list[0]: object is given where either takes integer",
                "  hint: of t, $.weekday would do",
                "  near: $.weekday",
                "error in x arguments.value.list[1]: there is no step 'y'; the steps are: t, x",
            ],
            id="a list where a list is one way among others",
        ),
        pytest.param(
            plan(ObjectOf({"a": From("t")}), of="either.value"),
            [
                "error in x arguments.value.object.a: either takes no member 'a' here; it takes: date, weekday",
                "error in x arguments.value: either needs the member 'date' here: string",
                "error in x arguments.value: either needs the member 'weekday' here: integer",
            ],
            id="an object where an object is one way among others",
        ),
        pytest.param(
            plan(ListOf((From("t", ("date",)), Value(True), From("y"))), of="twice.value"),
            [
                "error in x arguments.value.list[2]: there is no step 'y'; the steps are: t, x",
                "error in x arguments.value: array is given where twice takes array, but never one like this",
            ],
            id="a list where two ways take one",
        ),
        pytest.param(
            plan(ListOf((From("t", ("date",)), Value("a"), Value("a"))), of="few.texts"),
            ["error in x arguments.texts: array is given where few takes array, but never one like this"],
            id="a list that is too long",
        ),
        pytest.param(
            plan(ListOf((Value("a"), Value("a"), Value("a"))), of="few.texts"),
            ["error in x arguments.texts: array is given where few takes array, but never one like this"],
            id="a list of literals that is too long",
        ),
        pytest.param(
            plan(ObjectOf({"a": From("t"), "b": Value("1"), "c": From("t", ("weekday",))}), of="counts.by"),
            [
                "error in x arguments.by.object.a: object is given where counts takes integer",
                "  hint: of t, $.weekday would do",
                "  near: $.weekday",
                "error in x arguments.by.object.b: $: expected integer, got string; write 1",
                "  fix: ('x',) ('arguments', 'by', 'object', 'b') Value(value=1)",
            ],
            id="a member that is open to any name",
        ),
        pytest.param(
            plan(ObjectOf({"a": From("t")}), of="needs.both"),
            [
                (
                    "error in x arguments.both: needs needs the member 'b' here: array or boolean or null or number "
                    "or object or string"
                )
            ],
            id="an object without a member that has no schema",
        ),
        pytest.param(
            plan(ListOf((From("t", ("date",)), Value("celsius"), Value("Kelvin"), Value("x"))), of="units.all"),
            [
                "error in x arguments.all.list[2]: $: expected one of 'celsius', 'kelvin'; write \"kelvin\"",
                "  fix: ('x',) ('arguments', 'all', 'list', 2) Value(value='kelvin')",
                "error in x arguments.all.list[3]: $: expected one of 'celsius', 'kelvin'",
            ],
            id="a choice among literals next to a reference",
        ),
        pytest.param(
            plan(ListOf((Value("a"),)), of="maybe.value"),
            ["error in x arguments.value.list[0]: $: expected integer, got string"],
            id="a list of literals where null would do too",
        ),
        pytest.param(
            plan(ListOf((ObjectOf({"weekday": From("t", ("weekday",))}), From("t"))), of="days.all"),
            [
                "error in x arguments.all.list[0]: days needs the member 'date' here: string",
                "error in x arguments.all: array is given where days takes array, but never one like this",
            ],
            id="a list that is too long, with an object that is not whole",
        ),
    ],
)
def test_what_is_wrong_with_what_is_put_together_is_said_with_what_is_meant(made: Plan, findings: list[str]) -> None:
    assert told(check_plan(made, CATALOGUE)) == findings


def lists(depth: int, inmost: Expression) -> Expression:
    """Return an expression inside of so many lists."""
    for _ in range(depth):
        inmost = ListOf((inmost,))
    return inmost


@pytest.mark.parametrize(("levels", "fine"), [(50, True), (51, False)])
@pytest.mark.parametrize("of", ["free.value", "any.value", "deep.value"])
def test_an_argument_has_fifty_levels(of: str, levels: int, fine: bool) -> None:
    made = plan(lists(levels, From("a")), of=of, first=Step("a", "any", {"value": Value(1)}))
    expected = ["error in x arguments.value: expressions nest deeper than 50 levels"]
    assert told(check_plan(made, CATALOGUE)) == ([] if fine else expected)


@pytest.mark.parametrize(
    ("plans", "levels", "fine"),
    [(0, 50, True), (0, 51, False), (1, 49, True), (1, 50, False), (9, 41, True), (9, 42, False), (50, 0, True)],
)
def test_the_plans_around_a_result_are_of_its_levels(plans: int, levels: int, fine: bool) -> None:
    made = Plan("g", (FIRST,), lists(levels, From("t")))
    for _ in range(plans):
        made = Plan("g", (Step("p", made),))
    place = " ".join([*["p"] * (plans - 1), "result"])
    expected = [f"error in {'p' if plans else None} {place}: expressions nest deeper than 50 levels"]
    assert told(check_plan(made, CATALOGUE)) == ([] if fine else expected)


def test_what_is_at_the_fiftieth_level_is_checked() -> None:
    place = "arguments.value" + ".list[0]" * 50
    made = plan(lists(50, From("t", ("date",))), of="deep.value")
    assert told(check_plan(made, CATALOGUE)) == [f"error in x {place}: string is given where deep takes array"]


def test_a_function_that_is_checked_for_the_first_time_is_known_as_well_as_later() -> None:
    made = plan(ObjectOf({"dat": From("t", ("date",))}), of="keep.day")
    expected = "error in x arguments.day.object.dat: keep takes no member 'dat' here; it takes: date, weekday"
    for _ in range(2):
        fresh = {"today": spec("today", DAY), "keep": spec("keep", True, day=DAY)}
        assert expected in told(check_plan(made, fresh)) == told(check_plan(made, fresh))
