"""Which step of one plan is which of another: what counts as the same step, and which match goes first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portico._plans.difference import canonical, keyed, matched
from portico._plans.plan import Expression, From, ListOf, ObjectOf, Plan, PlanTemplate, Step, TextOf, Value

STEP = Step("s1", "F-f", {"x": Value({"a": 1, "b": [2]}), "y": From("s0")}, ("r", "q"), "why", 2.0, 3)
FIRST = Step("a", "F-f", {"x": Value(1), "y": Value(2)}, ("p", "q"))
SECOND = Step("b", "F-g", {"x": From("a")})
INNER = Plan("inner", (FIRST, SECOND), From("b"), {"k": 1, "l": 2}, {"F-f": "0", "F-g": "1"}, {"type": "object"})
NESTED = Step("n", INNER, {"x": Value(1), "y": Value(2)}, ("r", "q"), "why")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (STEP, replace(STEP, id="other")),
        (STEP, replace(STEP, after=("q", "r"))),
        (STEP, replace(STEP, after=("r", "q", "r"))),
        (STEP, replace(STEP, arguments={"y": From("s0"), "x": Value({"b": [2], "a": 1})})),
        (NESTED, replace(NESTED, id="other", after=("q", "r"), arguments={"y": Value(2), "x": Value(1)})),
        (NESTED, replace(NESTED, function=replace(INNER, steps=(SECOND, FIRST)))),
        (NESTED, replace(NESTED, function=replace(INNER, steps=(replace(FIRST, after=("q", "p")), SECOND)))),
        (NESTED, replace(NESTED, function=replace(INNER, notes={"l": 2, "k": 1}))),
    ],
)
def test_steps_that_do_the_same_are_the_same_however_they_are_written(one: Step, other: Step) -> None:
    assert canonical(one) == canonical(other)


DIFFERENT = {
    "a step": STEP,
    "another function": replace(STEP, function="F-g"),
    "a template": replace(STEP, function=PlanTemplate("F-f", "jinja2")),
    "a template in another language": replace(STEP, function=PlanTemplate("F-f", "handlebars")),
    "an integer that is a number": replace(STEP, arguments={"x": Value({"a": 1.0, "b": [2]}), "y": From("s0")}),
    "an argument less": replace(STEP, arguments={"x": Value({"a": 1, "b": [2]})}),
    "a part": replace(STEP, arguments={"x": Value({"a": 1, "b": [2]}), "y": From("s0", ("z",))}),
    "waiting for less": replace(STEP, after=("r",)),
    "waiting for nothing": replace(STEP, after=()),
    "another reason": replace(STEP, reason=""),
    "more time": replace(STEP, seconds=3.0),
    "fewer attempts": replace(STEP, attempts=2),
    "a nested plan": NESTED,
    "a nested plan with other arguments": replace(NESTED, arguments={"x": Value(1)}),
    "a nested plan that waits for less": replace(NESTED, after=("r",)),
    "a nested plan with another reason": replace(NESTED, reason=""),
    "another goal inside": replace(NESTED, function=replace(INNER, goal="another")),
    "another result inside": replace(NESTED, function=replace(INNER, result=From("a"))),
    "another input inside": replace(NESTED, function=replace(INNER, input=None)),
    "other notes inside": replace(NESTED, function=replace(INNER, notes=None)),
    "other fingerprints inside": replace(NESTED, function=replace(INNER, fingerprints={})),
    "a step less inside": replace(NESTED, function=replace(INNER, steps=(FIRST,))),
    "another step inside": replace(NESTED, function=replace(INNER, steps=(FIRST, replace(SECOND, function="F-h")))),
    "another name inside": replace(NESTED, function=replace(INNER, steps=(FIRST, replace(SECOND, id="c")))),
}


def test_steps_that_do_something_else_are_not_the_same() -> None:
    names: dict[str, list[str]] = {}
    for name, step in DIFFERENT.items():
        names.setdefault(canonical(step), []).append(name)
    assert [same for same in names.values() if len(same) > 1] == []


def test_a_step_whose_id_was_there_already_is_kept_under_a_longer_key() -> None:
    steps = [Step("a", "F-f"), Step("b", "F-f"), Step("a", "F-g"), Step("a", "F-h")]
    assert keyed(steps) == {"a": steps[0], "b": steps[1], "a\0": steps[2], "a\0\0": steps[3]}


NAMES = {"a": "b", "b": "c"}


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        (From("a", ("x", 0)), From("b", ("x", 0))),
        (From("b"), From("c")),
        (TextOf(("a", From("a"), Value("a"), From("z"))), TextOf(("a", From("b"), Value("a"), From("z")))),
        (ListOf((From("a"), Value("b"), From("z"))), ListOf((From("b"), Value("b"), From("z")))),
        (
            ObjectOf({"a": From("a", ("a",)), "b": ListOf((TextOf((From("b"),)),)), "c": From("z", ("z",))}),
            ObjectOf({"a": From("b", ("a",)), "b": ListOf((TextOf((From("c"),)),)), "c": From("z", ("z",))}),
        ),
    ],
)
def test_references_and_nothing_else_have_new_names(expression: Expression, told: Expression) -> None:
    inner = Plan("a", (Step("a", "F-f"),), From("a"))
    step = Step("a", inner, {"a": expression}, ("z", "a", "b"), "a", 1.0, 2)
    assert step.rename_references(NAMES) == Step("a", inner, {"a": told}, ("z", "b", "c"), "a", 1.0, 2)


F, G, H = (f"F-{letter}" for letter in "fgh")


@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        pytest.param(
            [Step("a", F), Step("b", F)],
            [Step("x", F), Step("b", F)],
            {"b": "b", "a": "x"},
            id="of equal steps the one of the same name",
        ),
        pytest.param(
            [Step("a", H), Step("b", F), Step("d", G)],
            [Step("b", G), Step("c", F), Step("d", G)],
            {"d": "d", "b": "c"},
            id="equal steps of another name before others of the same name",
        ),
        pytest.param(
            [Step("a", F), Step("b", G, {"x": From("x")}), Step("c", G, {"x": From("a")})],
            [Step("x", F), Step("c", G, {"x": From("x")})],
            {"a": "x", "c": "c"},
            id="what follows from one new name before the next new name",
        ),
        pytest.param(
            [Step("a", F), Step("b", G, {"x": From("a")}), Step("c", H, {"x": From("b")})],
            [Step("a", H), Step("y", G, {"x": From("a")}), Step("z", H, {"x": From("y")})],
            {"a": "a", "b": "y", "c": "z"},
            id="a step that changed is still what the others refer to",
        ),
        pytest.param(
            [Step("a", H, {"x": From("b")}), Step("b", F)],
            [Step("b", G), Step("c", H, {"x": From("b")}), Step("a", F)],
            {"b": "a"},
            id="nothing is left for a step whose reference has another name",
        ),
        pytest.param(
            [Step("a", H, {"x": From("b")}), Step("b", F)],
            [Step("a", F, {"x": From("b")}), Step("c", H, {"x": From("b")}), Step("b", G)],
            {"b": "b", "a": "c"},
            id="what a step rests on is matched before it wherever it is written",
        ),
        pytest.param(
            [Step("a", F, {"x": From("b")}), Step("b", G, {"x": From("a")})],
            [Step("a", H, {"x": From("b")}), Step("b", G, {"x": From("a")}), Step("c", F, {"x": From("b")})],
            {"a": "a", "b": "b"},
            id="in a circle the first by its name and then the others",
        ),
    ],
)
def test_what_is_certain_is_matched_first(before: list[Step], after: list[Step], pairs: dict[str, str]) -> None:
    assert matched(keyed(before), keyed(after)) == pairs
