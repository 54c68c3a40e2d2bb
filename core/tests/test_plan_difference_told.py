"""How a difference between plans is told: whole, to people as lines and to programs as JSON."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from portico._plans.difference import PlanDifference, plan_difference
from portico._plans.json_form import plan_to_json
from portico._plans.plan import From, ListOf, Plan, PlanTemplate, Step, TextOf, Value
from portico.errors import PlanFormatError

KEPT = Step("k", "Clock-today")
RENAMED = Step("r", "Weather-get", {"day": From("k")})
GONE = Step("g", "Mail-send", {"to": Value("Zoë"), "text": From("r", ("text",))}, ("k",), "asked for", 2.0, 3)
CHANGED = Step("c", "Tone-shout", {"text": TextOf(("é ", From("r")))}, ("k", "r"), "löud", 2.5, 3)
HI = PlanTemplate("Hi {{name}}\né", "handlebars")
INNER = Plan("inner", (Step("i", "F-f"),), From("i"))
BEFORE = Plan("Tell", (KEPT, RENAMED, GONE, CHANGED), From("r"), {"é": 1}, {"F-f": "0"}, {"type": "object"})


def plan_of(step: Step) -> Plan:
    return Plan("g", (step,))


def test_a_difference_is_told_whole() -> None:
    steps = (
        KEPT,
        replace(RENAMED, id="new"),
        Step("c", "Tone-whisper", {"voice": Value("Zoë"), "text": TextOf(("é ", From("new")))}, ("new",)),
        Step("t", HI, {"name": Value("Ada"), "all": ListOf((From("k"),))}),
        Step("p", replace(INNER, goal="in\x1bner")),
    )
    difference = plan_difference(
        BEFORE, Plan("Säy", steps, From("c"), ["é"], {"F-g": "1"}, MappingProxyType({"type": "null"}))
    )
    assert str(difference).splitlines() == [
        'goal: "Tell" → "Säy"',
        'input: {"type": "object"} → {"type": "null"}',
        "result: new → c",
        'notes: {"é": 1} → ["é"]',
        'fingerprints.F-f: "0" → nothing',
        'fingerprints.F-g: nothing → "1"',
        '- g: Mail-send(to: "Zoë", text: r.text)',
        '+ t: {"template": "Hi {{name}}\\né", "language": "handlebars"}(name: "Ada", all: [k])',
        "+ p: a plan: in\\x1bner()",
        "= new, which was r",
        "~ c",
        '    function: "Tone-shout" → "Tone-whisper"',
        '    arguments.voice: nothing → "Zoë"',
        '    after: ["k", "new"] → ["new"]',
        '    reason: "löud" → ""',
        "    seconds: 2.5 → nothing",
        "    attempts: 3 → nothing",
    ]
    inner = {"version": 1, "goal": "in\x1bner", "steps": [{"id": "i", "function": "F-f"}], "result": {"from": "i"}}
    template = {"template": "Hi {{name}}\né", "language": "handlebars"}
    assert difference.to_json() == {
        "same": False,
        "added": [
            {
                "id": "t",
                "function": template,
                "arguments": {"name": {"value": "Ada"}, "all": {"list": [{"from": "k"}]}},
            },
            {"id": "p", "function": inner},
        ],
        "removed": [
            {
                "id": "g",
                "function": "Mail-send",
                "arguments": {"to": {"value": "Zoë"}, "text": {"from": "r", "path": "$.text"}},
                "after": ["k"],
                "reason": "asked for",
                "seconds": 2.0,
                "attempts": 3,
            }
        ],
        "renamed": [{"before": "r", "after": "new"}],
        "changed": [
            {
                "step": "c",
                "changes": [
                    {"place": "function", "before": "Tone-shout", "after": "Tone-whisper"},
                    {"place": "arguments.voice", "before": None, "after": {"value": "Zoë"}},
                    {"place": "after", "before": ["k", "new"], "after": ["new"]},
                    {"place": "reason", "before": "löud", "after": ""},
                    {"place": "seconds", "before": 2.5, "after": None},
                    {"place": "attempts", "before": 3, "after": None},
                ],
            }
        ],
        "changes": [
            {"place": "goal", "before": "Tell", "after": "Säy"},
            {"place": "input", "before": {"type": "object"}, "after": {"type": "null"}},
            {"place": "result", "before": {"from": "new"}, "after": {"from": "c"}},
            {"place": "notes", "before": {"é": 1}, "after": ["é"]},
            {"place": "fingerprints.F-f", "before": "0", "after": None},
            {"place": "fingerprints.F-g", "before": None, "after": "1"},
        ],
    }


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            Step("s", "F-f"),
            Step("s", HI),
            'function: "F-f" → {"template": "Hi {{name}}\\né", "language": "handlebars"}',
        ),
        (Step("s", INNER), Step("s", "F-f"), 'function: a plan: inner → "F-f"'),
        (
            Step("s", INNER, {"x": Value("Zoë")}),
            Step("s", INNER, {"x": TextOf(("é", From("z")))}),
            'arguments.x: "Zoë" → "é" + z',
        ),
    ],
)
def test_a_change_of_a_step_is_told_whole(before: Step, after: Step, told: str) -> None:
    difference = plan_difference(plan_of(before), plan_of(after))
    assert str(difference) == f"~ s\n    {told}"
    (change,) = difference.to_json()["changed"][0]["changes"]
    written = [plan_to_json(plan_of(step))["steps"][0] for step in (before, after)]
    for name in change["place"].split("."):
        written = [document[name] for document in written]
    assert [change["before"], change["after"]] == written


def test_a_change_inside_of_a_nested_plan_stands_beside_those_of_its_step() -> None:
    before, after = Step("s", INNER), Step("s", replace(INNER, goal="other"), reason="why")
    difference = plan_difference(plan_of(before), plan_of(after))
    assert str(difference).splitlines() == ["~ s", '    reason: "" → "why"', '    goal: "inner" → "other"']
    assert difference.to_json()["changed"] == [
        {
            "step": "s",
            "changes": [{"place": "reason", "before": "", "after": "why"}],
            "plan": {
                "same": False,
                "added": [],
                "removed": [],
                "renamed": [],
                "changed": [],
                "changes": [{"place": "goal", "before": "inner", "after": "other"}],
            },
        }
    ]


def test_the_order_of_names_is_no_difference() -> None:
    one = Plan("g", (Step("s", "F-f", {"x": Value({"a": 1, "b": 2})}),), notes={"a": 1, "b": 2})
    other = Plan("g", (Step("s", "F-f", {"x": Value({"b": 2, "a": 1})}),), notes={"b": 2, "a": 1})
    for difference in (plan_difference(one, other), plan_difference(other, one)):
        assert difference == PlanDifference()
        assert str(difference) == "The plans are the same."
        assert difference.to_json() == {
            "same": True,
            "added": [],
            "removed": [],
            "renamed": [],
            "changed": [],
            "changes": [],
        }


def test_a_bound_that_a_step_got_is_told() -> None:
    bounded = plan_of(Step("s", "F-f", seconds=1.5, attempts=2))
    assert str(plan_difference(plan_of(Step("s", "F-f")), bounded)).splitlines() == [
        "~ s",
        "    seconds: nothing → 1.5",
        "    attempts: nothing → 2",
    ]


def test_what_a_step_rests_on_is_compared_before_it_wherever_it_is_written() -> None:
    before = Plan("g", (Step("a", "F-h", {"x": From("b")}), Step("b", "F-f")))
    steps = (Step("a", "F-f", {"x": From("b")}), Step("c", "F-h", {"x": From("b")}), Step("b", "F-g"))
    there, turned = (
        plan_difference(before, Plan("g", steps)),
        plan_difference(replace(before, steps=before.steps[::-1]), Plan("g", steps)),
    )
    assert there == turned
    assert there.renamed == (("a", "c"),)


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (Plan("g", notes=[{1, 2}]), "$.notes[0]: expected a JSON value, got a Python set."),
        (Plan("g", notes={"at": float("nan")}), "$.notes.at: JSON has no nan."),
        (Plan("g", input={"default": (1, 2)}), "$.input.default: expected a JSON value, got a Python tuple."),
        (
            Plan("g", (KEPT, Step("s", "F-f", {"x": Value(b"")}))),
            "$.steps[1].arguments.x.value: expected a JSON value, got a Python bytes.",
        ),
    ],
)
def test_what_json_does_not_have_is_refused_in_either_plan(plan: Plan, says: str) -> None:
    other: Any = Plan("g")
    for one, two in ((plan, other), (other, plan), (plan, plan)):
        with pytest.raises(PlanFormatError) as caught:
            plan_difference(one, two)
        assert str(caught.value) == says
