"""The text form says all that a plan will do, in words that a terminal can show."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from tests.support.strategies import plans

from portico import Function
from portico._plans.plan import Expression, From, ListOf, ObjectOf, Plan, PlanTemplate, Step, TextOf, Value, references
from portico._plans.text_form import expression_to_text, plan_to_text, printable


def forecast(city: str) -> str:
    """Tell the weather."""
    return city


MANUAL = Function.of(forecast, plugin="Weather").spec


def test_everything_that_a_plan_says_is_there() -> None:
    inner = Plan("inner goal", (Step("a", "Tone-shout", {"text": From("input", ("word",))}),), result=From("a"))
    plan = Plan(
        "Tell what to wear",
        (
            Step("s1", "Weather-forecast", {"city": Value("Oslo")}, reason="the weather decides"),
            Step("s2", inner, {"word": TextOf(("on ", From("s1", ("days", 0, "max temp"))))}, ("s1",)),
            Step("s3", PlanTemplate("Hi {{name}}\nBye", "handlebars"), {"name": Value(None)}, seconds=2.5, attempts=3),
        ),
        result=ObjectOf({"all": ListOf((From("s2"), Value([1, "x"])))}),
        input={"type": "object", "properties": {"city": {"type": "string"}, "days": {}}, "required": ["city"]},
    )
    assert plan_to_text(plan).splitlines() == [
        "Goal: Tell what to wear",
        "Input: city (string), days (any, optional)",
        "",
        "1. s1: Weather-forecast",
        "     because: the weather decides",
        '     city = "Oslo"',
        "2. s2: a nested plan: inner goal",
        '     word = "on " + s1.days[0]["max temp"]',
        "     after: s1",
        "     1. a: Tone-shout",
        "          text = input.word",
        "     Result: a",
        "3. s3: a template in handlebars",
        "     name = null",
        "     at most 2.5 s for each attempt",
        "     3 attempts at most",
        "     | Hi {{name}}",
        "     | Bye",
        "",
        'Result: {"all": [s2, [1, "x"]]}',
    ]


def test_a_catalogue_adds_what_functions_do_and_which_are_not_there() -> None:
    plan = Plan("Tell", (Step("s1", "Weather-forecast"), Step("s2", "Mail-send")))
    text = plan_to_text(plan, catalogue={"Weather-forecast": MANUAL})
    assert "1. s1: Weather-forecast\n     Tell the weather." in text
    assert "2. s2: Mail-send (not in the catalogue)" in text


def test_a_function_with_effects_says_so() -> None:
    spec = type(MANUAL)("Mail-send", "Send it.", {"type": "object"}, {}, effects=True)
    text = plan_to_text(Plan("Tell", (Step("s1", "Mail-send"),)), catalogue={"Mail-send": spec})
    assert "1. s1: Mail-send (has effects)" in text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (Value("s1.date"), '"s1.date"'),
        (From("s1", ("date",)), "s1.date"),
        (From("a b"), 'step "a b"'),
        (From("true"), 'step "true"'),
        (Value(True), "true"),
        (TextOf((From("s1"),)), '"" + s1'),
        (TextOf(()), '""'),
        (TextOf(("a", TextOf(("b", From("s1"))))), '"a" + ("b" + s1)'),
        (ObjectOf({}), "{}"),
        (Value(float("nan")), "NaN"),
        (Value({1, 2}), '"{1, 2}"'),
    ],
)
def test_no_literal_is_written_as_a_reference(expression: Expression, text: str) -> None:
    assert expression_to_text(expression) == text


@settings(max_examples=60)
@given(plans())
def test_a_terminal_can_show_every_plan_and_nothing_is_left_out(plan: Plan) -> None:
    text = plan_to_text(plan)
    for line in text.split("\n"):
        assert printable(line) == line, f"a character that a terminal obeys is in {line!r}"
    for step in plan.steps:
        for name, expression in step.arguments.items():
            assert expression_to_text(expression) in text, f"the argument {name} of {step.id} is not told"
            for reference in references(expression):
                assert reference.step in text


@pytest.mark.parametrize("evil", ["\x1b[2J", "a\rb", "\u202egnirts", "\x9b31m", "\u2028", "\ud800", "\x00"])
def test_what_a_terminal_would_obey_is_an_escape(evil: str) -> None:
    plan = Plan(evil, (Step(evil, evil, {evil: Value(evil)}, (evil,), evil),), result=From(evil), input={evil: evil})
    text = plan_to_text(plan)
    assert not set(text) & set(evil) - set(json.dumps(evil)) - {"a", "b"}
    assert all(printable(line) == line for line in text.split("\n"))


def test_other_scripts_and_emoji_stay_as_they_are() -> None:
    assert printable("写一首诗 🧦 می‌خواهم 👩‍👩‍👧") == "写一首诗 🧦 می‌خواهم 👩‍👩‍👧"
