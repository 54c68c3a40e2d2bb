"""How loops and conditions are written for people, compared, read from XML, and shown to planners."""

from __future__ import annotations

import pytest

from portico._plans.difference import plan_difference
from portico._plans.json_form import plan_to_json
from portico._plans.plan import Each, From, ListOf, Plan, Step, TextOf, Value, When
from portico._plans.task import StepRecord, Task
from portico._plans.text_form import plan_to_text, when_to_text
from portico._plans.xml_form.reading import XmlPlan
from portico.errors import PlanFormatError

EACH, WHEN = Each(From("s1"), 2, "skip"), When("present", (From("item"),))
LOOP = Step("s2", "double", {"x": From("item")}, each=EACH, when=WHEN)


def test_no_two_conditions_are_written_alike() -> None:
    s1, values = From("s1"), [Value(True), Value(False), Value("true"), From("true"), From("present"), From("equal")]
    conditions = [When("true", (s1,)), When("present", (s1,)), *(When("equal", (s1, value)) for value in values)]
    conditions += [When(each.test, each.values, negated=True) for each in conditions]
    written = [when_to_text(each) for each in conditions]
    assert len(set(written)) == len(conditions)
    assert written[:4] == ["s1 is true", "s1 is present", "s1 is equal to true", "s1 is equal to false"]


def test_a_condition_that_is_none_can_be_shown_and_is_not_written_as_json() -> None:
    plan = Plan("g", (Step("s1", "double", when=When("true", ())),))
    assert "when nothing is true" in plan_to_text(plan)
    with pytest.raises(PlanFormatError, match=r"\$\.steps\[0\]\.when: 0 values and the test 'true' are no condition"):
        plan_to_json(plan)


def test_a_difference_shows_for_what_a_step_runs_and_when() -> None:
    before = Plan("g", (Step("s1", "nums"), Step("s2", "double", {"x": From("item")}, each=Each(From("s1")))))
    after = Plan(
        "g", (Step("s1", "nums"), LOOP, Step("s3", "double", {"x": Value(1)}, when=When("true", (From("s1"),))))
    )
    assert str(plan_difference(before, after)).splitlines() == [
        "+ s3: double(x: 1) when s1 is true",
        "~ s2",
        "    each: each item of s1 → each item of s1, 2 at a time, null where it fails",
        "    when: nothing → item is present",
    ]
    removed = str(plan_difference(Plan("g", (Step("s1", "nums"), LOOP)), Plan("g", (Step("s1", "nums"),))))
    assert removed == (
        "- s2: double(x: item) for each item of s1, 2 at a time, null where it fails when item is present"
    )


@pytest.mark.parametrize("right", ["", "  ", "NaN", "Infinity", "1e999", "[1, -Infinity]"])
def test_a_condition_in_xml_compares_with_a_value_of_json(right: str) -> None:
    written = f"""<plan><function.nums setContextVariable="X"/><function.double x="1" runIf="$X == {right}"/></plan>"""
    with pytest.raises(PlanFormatError, match=r"line 1, column .*runIf is '\$X == "):
        XmlPlan.read(written)


@pytest.mark.parametrize(
    ("place", "attribute"),
    [
        ("each.items", "forEach"),
        ("each.at_once", "atOnce"),
        ("each.failed", "ifFails"),
        ("when.not.equal", "runIf"),
        ("arguments.x", "x"),
    ],
)
def test_a_finding_in_xml_is_at_the_attribute(place: str, attribute: str) -> None:
    written = """<plan><function.double forEach="[1]" atOnce="2" ifFails="skip" runIf="$ITEM != 3" x="$ITEM"/></plan>"""
    assert XmlPlan.read(written).place_of("s1", place) == (1, written.index(f" {attribute}=") + 2)


def test_a_planner_sees_the_arguments_of_an_item() -> None:
    items = ListOf((TextOf(("a", From("input"))), Value("b")))
    loop = Step("s1", "shout", {"text": From("item")}, each=Each(items))
    one = Step("s1[0]", "shout", {"text": From("item"), "times": Value(2)})
    task = Task("g", steps=(StepRecord(one, "A!"), StepRecord(loop, ["A!", "B"])), input="!")
    assert task.arguments_of(one) == {"text": "a!", "times": 2}
    assert task.arguments_of(Step("s1[7]", "shout", {"text": From("item")})) == {}


def test_calls_for_other_items_or_on_another_condition_are_no_repetition() -> None:
    def times(*steps: Step) -> int:
        return Task("g", steps=tuple(StepRecord(step, []) for step in steps)).repeats()

    ones, twos = (Step("s", "double", {"x": From("item")}, each=Each(Value([n]))) for n in (1, 2))
    assert (times(ones, twos), times(ones, ones)) == (1, 2)
    assert times(Step("a", "double", when=When("true", (Value(True),))), Step("b", "double")) == 1
