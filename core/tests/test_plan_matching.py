"""References of a step follow the new names of other steps."""

from __future__ import annotations

import pytest

from portico._plans.plan import Expression, From, ListOf, ObjectOf, Plan, Step, TextOf, Value

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
