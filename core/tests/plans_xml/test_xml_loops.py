"""Loops and conditions in XML."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from portico._functions.functions import FunctionSpec
from portico._plans.plan import Each, Expression, From, Plan, Step, Value, When
from portico._plans.xml_form.reading import XmlPlan
from portico.errors import PlanFormatError

ITEMS = From("s1", ("items",))
FIRST = Step("s1", "Post-mails")
SIDES = st.builds(From, st.sampled_from(["s1", "item"]), st.sampled_from([(), ("kind",), ("a", 0)]))
LITERALS = st.builds(Value, st.none() | st.booleans() | st.integers() | st.text("ab 5'\"=!$[]{}<&é", max_size=6))
WHENS = st.builds(When, st.sampled_from(["true", "present"]), st.tuples(SIDES), st.booleans()) | st.builds(
    When, st.just("equal"), st.tuples(SIDES, SIDES | LITERALS), st.booleans()
)
EACHES = st.builds(Each, st.just(ITEMS), st.integers(1, 100), st.sampled_from(["stop", "skip"]))


def second(attributes: str, catalogue: dict[str, FunctionSpec] | None = None) -> Step:
    text = f'<plan><function.Post.mails setContextVariable="s1"/><function.Post.send {attributes}/></plan>'
    return XmlPlan.read(text, catalogue).plan.steps[1]


@given(EACHES, st.none() | WHENS)
def test_what_is_written_of_loops_and_conditions_is_read_as_the_same(each: Each, when: When | None) -> None:
    step = Step("s2", "Post-send", {"text": From("item", ("by",))}, each=each, when=when)
    plan = Plan("", (FIRST, step), From("s2"))
    assert XmlPlan.read(XmlPlan.write(plan)).plan == plan


@pytest.mark.parametrize(
    ("written", "values", "negated"),
    [
        ("$s1.kind == 'a bill'", (From("s1", ("kind",)), Value("a bill")), False),
        ("$s1.kind == a bill", (From("s1", ("kind",)), Value("a bill")), False),
        (" not  $s1 == 5 ", (From("s1"), Value(5)), True),
        ("not $s1 != $s1.a", (From("s1"), From("s1", ("a",))), False),
    ],
)
def test_a_condition_is_read_as_people_write_it(written: str, values: tuple[Expression, ...], negated: bool) -> None:
    assert second(f'runIf="{written}"').when == When("equal", values, negated)


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ('runIf="paid"', "runIf is 'paid'; it is \\$NAME, present \\$NAME, or"),
        ('runIf="a $s1"', "runIf is 'a \\$s1'; it is \\$NAME"),
        ('runIf="$nope"', "there is no variable \\$nope"),
        ('atOnce="2"', "atOnce is '2'; it belongs to forEach"),
        ('forEach="$s1" atOnce="0"', "atOnce is '0'; it is a whole number from 1 to 100"),
        ('forEach="$s1" ifFails="retry"', "ifFails is 'retry'; it is stop or skip"),
        ('text="$ITEM"', "there is no variable \\$ITEM"),
    ],
)
def test_what_a_loop_or_a_condition_cannot_be_is_refused_with_the_place(attributes: str, says: str) -> None:
    with pytest.raises(PlanFormatError, match=f"^line 1, column [0-9]+: {says}"):
        second(attributes)


def test_a_parameter_of_such_a_name_stays_a_parameter() -> None:
    spec = FunctionSpec("Post-send", "", {"properties": {"run_if": {"type": "string"}}}, {})
    step = second('runIf="$s1"', {"Post-send": spec})
    assert step.when is None
    assert step.arguments == {"run_if": From("s1")}


def test_the_item_is_typed_as_the_elements_of_the_list_are() -> None:
    mail = {"type": "object", "properties": {"by": {"type": "string"}}, "additionalProperties": False}
    catalogue = {
        "Post-mails": FunctionSpec("Post-mails", "", {}, {"type": "array", "items": mail}),
        "Post-send": FunctionSpec("Post-send", "", {"properties": {"text": {"type": "string"}}}, {}),
    }
    for items in ("$s1", "$s1[1:]"):
        text = second(f'text="by $ITEM.by, $ITEM.to" forEach="{items}"', catalogue).arguments["text"]
        assert list(getattr(text, "parts", ())) == ["by ", From("item", ("by",)), ", ", From("item"), ".to"]


@pytest.mark.parametrize(
    ("place", "attribute"),
    [("each.items", "forEach"), ("each.at_once", "atOnce"), ("when.not.equal[1]", "runIf"), ("arguments.to", "to")],
)
def test_a_finding_has_the_place_of_its_attribute(place: str, attribute: str) -> None:
    step = '<function.Post.send\n to="a"\n forEach="$INPUT"\n atOnce="2"\n runIf="$ITEM != 3"/>'
    read = XmlPlan.read(f"<plan>{step}</plan>")
    line = next(number for number, text in enumerate(step.splitlines(), 1) if f" {attribute}=" in text)
    assert read.place_of("s1", place) == (line, 2)
