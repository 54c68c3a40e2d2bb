"""What changed between two plans: by content, whatever steps are called and wherever they stand."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given, settings, strategies as st
from tests.support.strategies import plans

from portico._plans.difference import plan_difference
from portico._plans.plan import From, ListOf, Plan, Step, TextOf, Value

A = Step("s1", "Weather-get", {"city": Value("Oslo")})
B = Step("s2", "Tone-shout", {"text": TextOf(("on ", From("s1", ("date",))))}, reason="loud")
PLAN = Plan("Tell", (A, B), result=From("s2"))


def renamed(plan: Plan, names: dict[str, str]) -> Plan:
    steps = tuple(replace(step.rename_references(names), id=names[step.id]) for step in plan.steps)
    result = None
    if plan.result is not None:
        result = Step("", "", {"": plan.result}).rename_references(names).arguments[""]
    return replace(plan, steps=steps, result=result)


@settings(max_examples=50)
@given(plans())
def test_a_plan_does_not_differ_from_itself_in_whatever_order(plan: Plan) -> None:
    difference = plan_difference(plan, replace(plan, steps=plan.steps[::-1]))
    assert difference.same
    assert str(difference) == "The plans are the same."
    assert difference.to_json()["same"] is True


@settings(max_examples=50)
@given(plans(), st.randoms())
def test_new_names_are_only_new_names(plan: Plan, random: object) -> None:
    names = {step.id: f"new {number}" for number, step in enumerate(plan.steps)}
    difference = plan_difference(plan, renamed(plan, names))
    assert not difference.added
    assert not difference.removed
    assert not difference.changed
    assert not difference.changes
    assert {before for before, _ in difference.renamed} == set(names)


@settings(max_examples=50)
@given(plans(), plans())
def test_two_plans_differ_both_ways_and_the_difference_is_json(one: Plan, other: Plan) -> None:
    there, back = plan_difference(one, other), plan_difference(other, one)
    assert there.same == back.same
    assert len(there.added) - len(there.removed) == len(other.steps) - len(one.steps)
    assert {step.id for step in there.added} <= {step.id for step in other.steps}
    written = json.loads(json.dumps(there.to_json()))
    assert written["same"] == there.same
    assert there.same == (str(there) == "The plans are the same.")


@settings(max_examples=50)
@given(plans(max_steps=8), st.data())
def test_a_step_that_is_taken_away_is_the_one_that_is_removed(plan: Plan, data: st.DataObject) -> None:
    if not plan.steps:
        return
    gone = data.draw(st.sampled_from(plan.steps))
    left = replace(plan, steps=tuple(step for step in plan.steps if step.id != gone.id))
    difference = plan_difference(plan, left)
    assert len(difference.removed) == 1
    assert not difference.added


def test_everything_that_changed_in_a_step_is_told() -> None:
    other = Step("s2", "Tone-whisper", {"voice": Value(1)}, ("s1",), "soft", 2.0, 3)
    difference = plan_difference(PLAN, replace(PLAN, steps=(A, other)))
    assert str(difference).splitlines() == [
        "~ s2",
        '    function: "Tone-shout" → "Tone-whisper"',
        '    arguments.text: "on " + s1.date → nothing',
        "    arguments.voice: nothing → 1",
        '    after: [] → ["s1"]',
        '    reason: "loud" → "soft"',
        "    seconds: nothing → 2.0",
        "    attempts: nothing → 3",
    ]
    changes = difference.to_json()["changed"][0]["changes"]
    assert {"place": "arguments.voice", "before": None, "after": {"value": 1}} in changes


def test_everything_that_changed_in_the_plan_itself_is_told() -> None:
    other = Plan("Say", (A, B), ListOf((From("s1"),)), {"n": 1}, {"Weather-get": "2"}, {"type": "object"})
    assert str(plan_difference(PLAN, other)).splitlines() == [
        'goal: "Tell" → "Say"',
        'input: nothing → {"type": "object"}',
        "result: s2 → [s1]",
        'notes: nothing → {"n": 1}',
        'fingerprints.Weather-get: nothing → "2"',
    ]


def test_a_renamed_step_changes_nothing_in_those_that_refer_to_it() -> None:
    other = Plan("Tell", (replace(A, id="w"), replace(B, arguments={"text": TextOf(("on ", From("w", ("date",))))})))
    difference = plan_difference(PLAN, replace(other, result=From("s2")))
    assert difference.renamed == (("s1", "w"),)
    assert not difference.changed
    assert str(difference) == "= w, which was s1"


def test_names_that_were_swapped_are_two_new_names() -> None:
    one = Plan("g", (Step("a", "F-f"), Step("b", "F-g", {"x": From("a")})), result=From("b"))
    assert plan_difference(one, renamed(one, {"a": "b", "b": "a"})).renamed == (("a", "b"), ("b", "a"))


def test_a_changed_nested_plan_says_what_changed_inside() -> None:
    def outer(city: str) -> Plan:
        return Plan("g", (Step("n", Plan("in", (replace(A, arguments={"city": Value(city)}),), From("s1"))),))

    difference = plan_difference(outer("Oslo"), outer("Bergen"))
    assert str(difference).splitlines() == ["~ n", "    ~ s1", '        arguments.city: "Oslo" → "Bergen"']
    assert difference.to_json()["changed"][0]["plan"]["changed"][0]["step"] == "s1"


def test_one_is_not_true_and_not_one_point_zero() -> None:
    def plan(value: object) -> Plan:
        return Plan("g", result=Value(value))

    assert not plan_difference(plan(1), plan(True)).same
    assert not plan_difference(plan(1), plan(1.0)).same
    assert not plan_difference(plan([0]), plan([False])).same


def test_a_thousand_renamed_steps_take_no_minutes() -> None:
    def chain(prefix: str) -> Plan:
        steps = [Step(f"{prefix}0", "F-f")]
        steps += [Step(f"{prefix}{n}", "F-f", {"x": From(f"{prefix}{n - 1}")}) for n in range(1, 1_000)]
        return Plan("g", tuple(steps))

    assert len(plan_difference(chain("a"), chain("b")).renamed) == 1_000


def test_the_words_of_a_difference_are_printable() -> None:
    other = replace(PLAN, goal="\x1b[31m", steps=(Step("\x07", "\x9b", {"\u202e": Value("\x00")}),))
    assert all(line.isprintable() for line in str(plan_difference(PLAN, other)).splitlines())
