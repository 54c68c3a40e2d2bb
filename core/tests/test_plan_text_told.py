"""The text form, whole: what each part of a plan reads like, the odd ones too."""

from __future__ import annotations

from typing import Any

import pytest

from portico._functions.functions import FunctionSpec
from portico._plans.plan import Expression, From, ListOf, ObjectOf, Plan, PlanTemplate, Step, TextOf, Value
from portico._plans.text_form import expression_to_text, input_in_words, plan_to_text, printable

CATALOGUE = {
    "Mail-send": FunctionSpec("Mail-send", "Send\n it.", {"type": "object"}, {}, effects=True),
    "Clock-today": FunctionSpec("Clock-today", "", {"type": "object"}, {}),
}


@pytest.mark.parametrize(
    ("plan", "lines"),
    [
        (Plan("  a \n goal "), ["Goal: a goal", "", "Result: none; the planner goes on"]),
        (Plan("g", result=Value(None)), ["Goal: g", "", "Result: null"]),
        (
            Plan("g", input={"type": "array"}, result=From("input")),
            ["Goal: g", 'Input: {"type": "array"}', "", "Result: input"],
        ),
        (
            Plan("g", (Step("n", Plan("inner")), Step("m", Plan("inner", input={"a": 1}, result=Value("é"))))),
            [
                "Goal: g",
                "",
                "1. n: a nested plan: inner",
                "     Result: none; the step gives null",
                "2. m: a nested plan: inner",
                '     Input: {"a": 1}',
                '     Result: "é"',
                "",
                "Result: none; the planner goes on",
            ],
        ),
        (
            Plan("g", (Step("s 1", "F-f", {"first name": Value("é")}, ("é e", "b"), "so\tit is", 0.5, 1),)),
            [
                "Goal: g",
                "",
                '1. "s 1": F-f',
                "     because: so it is",
                '     "first name" = "é"',
                '     after: "é e", b',
                "     at most 0.5 s for each attempt",
                "     1 attempt at most",
                "",
                "Result: none; the planner goes on",
            ],
        ),
        (
            Plan("g", (Step("s", "F-f", seconds=90.0, attempts=2), Step("t", PlanTemplate("a\n\n b \n", "my\nown")))),
            [
                "Goal: g",
                "",
                "1. s: F-f",
                "     at most 90 s for each attempt",
                "     2 attempts at most",
                "2. t: a template in my own",
                "     | a",
                "     |",
                "     |  b",
                "     |",
                "",
                "Result: none; the planner goes on",
            ],
        ),
    ],
)
def test_each_part_of_a_plan_has_its_words(plan: Plan, lines: list[str]) -> None:
    assert plan_to_text(plan).split("\n") == lines


def test_a_catalogue_tells_of_the_functions_in_nested_plans_too() -> None:
    steps = (Step("a", "Mail-send"), Step("b", "Mail-sned"), Step("c", "Clock-today"))
    plan = Plan("g", (*steps, Step("n", Plan("inner", steps))))
    assert plan_to_text(plan, catalogue=CATALOGUE).split("\n") == [
        "Goal: g",
        "",
        "1. a: Mail-send (has effects)",
        "     Send it.",
        "2. b: Mail-sned (not in the catalogue)",
        "3. c: Clock-today",
        "4. n: a nested plan: inner",
        "     1. a: Mail-send (has effects)",
        "          Send it.",
        "     2. b: Mail-sned (not in the catalogue)",
        "     3. c: Clock-today",
        "     Result: none; the step gives null",
        "",
        "Result: none; the planner goes on",
    ]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (
            ObjectOf({"é": Value("ü"), "b": ListOf((From("s"), Value({"ö": None})))}),
            '{"é": "ü", "b": [s, {"ö": null}]}',
        ),
        (From("é e", ("ä", 0, "max temp")), 'step "é e".ä[0]["max temp"]'),
        (From("step"), 'step "step"'),
        (From("Infinity", ("x",)), 'step "Infinity".x'),
        (TextOf(("é", From("s"))), '"é" + s'),
        (TextOf((TextOf(("a", "b")), From("s"))), '"" + ("a" + "b") + s'),
        (Value("a\x1b\u200d"), '"a\\u001b\u200d"'),
        (Value({("a", 1): 2}), "(a value that is not JSON)"),
        (TextOf(("a", ListOf((Value({("a", 1): 2}),)))), '"a" + [(a value that is not JSON)]'),
    ],
)
def test_an_expression_is_written_in_its_own_letters(expression: Expression, text: str) -> None:
    assert expression_to_text(expression) == text


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({}, "{}"),
        ({"properties": {}}, '{"properties": {}}'),
        ({"properties": ["é"]}, '{"properties": ["é"]}'),
        ({"type": "string", "title": "a\u2028b"}, '{"type": "string", "title": "a\\u2028b"}'),
        (
            {
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": ["integer", "null"]},
                    "é e": {},
                    "any": True,
                    "odd": {"type": {"a": 1}},
                },
                "required": ["city", "any"],
            },
            'city (string), days (integer or null, optional), "é e" (any, optional), any (any), odd (any, optional)',
        ),
        ({"properties": {"a": {"type": "string\x1b"}}}, "a (string\\x1b, optional)"),
    ],
)
def test_an_input_is_told_in_a_few_words(schema: dict[str, Any], words: str) -> None:
    assert input_in_words(schema) == words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("tab\tline\nbell\x07", r"tab\tline\nbell\x07"),
        ("\u202e\ud800\U000e0001", r"\u202e\ud800\U000e0001"),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)
def test_only_what_does_not_print_is_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown
