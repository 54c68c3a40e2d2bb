"""How written calls become steps: ids, variables, implied arguments, the order of effects, the result, and doubts."""

from __future__ import annotations

from typing import Any

import pytest

from portico._functions.functions import FunctionSpec
from portico._plans.plan import Expression, From, Plan, Step, TextOf, Value
from portico._plans.xml_form.document import Mend
from portico._plans.xml_form.reading import XmlPlan
from portico.errors import PlanFormatError


def spec(name: str, *required: str, returns: str = "string", effects: bool = False, **properties: Any) -> FunctionSpec:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "$defs": {"list": {"type": "array"}},
    }
    return FunctionSpec(name, "", parameters, {"type": returns}, effects)


CATALOGUE = {
    each.name: each
    for each in (
        spec("f", a={}, b={}),
        spec("object", returns="object"),
        spec("array", returns="array"),
        spec("needs", "INPUT", "Style", "more", INPUT={}, Style={}, more={}),
        spec("near", appendToResults={}, setContextVariabl={"type": "string"}),
        spec("typed", n={"type": "integer"}, l={"$ref": "#/$defs/list"}, s={"type": "string"}, City={}, any=True),
        spec("look", a={}, b={}),
        spec("send", effects=True, a={}, b={}),
        FunctionSpec("bare", "", {"type": "object"}, {}),
    )
}
POEM = '<function.f setContextVariable="POEM"/>'
LONG = "w" * 100


def steps(text: str) -> list[tuple[str, dict[str, Expression]]]:
    """Read the steps of a plan with the catalogue, each as its id and its arguments."""
    return [(step.id, dict(step.arguments)) for step in XmlPlan.read(f"<plan>{text}</plan>", CATALOGUE).plan.steps]


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        (["", "", ""], ["s1", "s2", "s3"]),
        (["s2", "", "S1", ""], ["s2", "s3", "S1", "s4"]),
        (["s3", "", "", "s2"], ["s3", "s4", "s5", "s2"]),
        (["a", "A", "é", "1", "1x"], ["a", "s2", "é", "1", "1x"]),
    ],
)
def test_an_id_is_the_variable_or_the_next_free_number(names: list[str], ids: list[str]) -> None:
    text = "".join(f'<function.f setContextVariable="{name}"/>' for name in names)
    plan = XmlPlan.read(f"<plan>{text}</plan>", finished=["done"]).plan
    assert [step.id for step in plan.steps] == ids


@pytest.mark.parametrize(
    ("before", "value", "expression"),
    [
        ("", "$", Value("$")),
        ("", "$$INPUT", TextOf(("$", From("input")))),
        ("", "$5", Value("$5")),
        ("", "at $1x", Value("at $1x")),
        (POEM, "$poem$POEM-$input", TextOf((From("POEM"), From("POEM"), "-", From("input")))),
        (POEM, "1poem", Value("1poem")),
        (POEM, "$poem翻 $", TextOf((From("POEM"), "翻 $"))),
        (POEM, "$done!", TextOf((From("Done"), "!"))),
        ('<function.f setContextVariable=" $X "/>', "$x", From("X")),
        ('<function.f setContextVariable="1"/>', "$1", From("1")),
        ('<function.f appendToResult="R"/>', "$r", From("s1")),
        ('<function.f appendToResult="R" setContextVariable="r"/>', "$R", From("r")),
    ],
)
def test_a_value_is_text_and_references_to_what_was_set(before: str, value: str, expression: Expression) -> None:
    for catalogue in (None, CATALOGUE):
        read = XmlPlan.read(f'<plan>{before}<function.f a="{value}"/></plan>', catalogue, finished=["Done"])
        assert read.plan.steps[-1].arguments == {"a": expression}
        assert read.findings == ()


@pytest.mark.parametrize(
    ("before", "value", "says"),
    [
        (POEM, "a $poe b", ["there is no variable $poe: it stays text"]),
        (POEM, "a $日本 b", ["there is no variable $日本: it stays text"]),
        (POEM, "a $poetry b", ["there is no variable $poetry: it stays text"]),
        (POEM, "$poem $po翻", ["there is no variable $po翻: it stays text"]),
        ('<function.f setContextVariable="ab"/>', "a $abc", ["there is no variable $abc: it stays text"]),
        (POEM, f"a ${LONG}w ${LONG}", [f"there is no variable ${LONG}: it stays text"] * 2),
        (POEM, "$poem.city $input. $done [0]", []),
        (POEM, "$input.city x", ["it is not known what $input is: .city after it stays text"]),
    ],
)
def test_what_may_be_meant_as_a_variable_is_told(before: str, value: str, says: list[str]) -> None:
    read = XmlPlan.read(f'<plan>{before}<function.f A="{value}"/></plan>', CATALOGUE, finished=["Done"])
    assert [(each.severity, each.step, each.place, each.message) for each in read.findings] == [
        ("warning", read.plan.steps[-1].id, "arguments.A", each) for each in says
    ]


def test_twenty_doubts_are_the_most() -> None:
    words = " ".join(f"$unknown{number}" for number in range(21)) + " $inptu"
    read = XmlPlan.read(f'<plan><function.f a="{words}"/></plan>')
    assert [each.message for each in read.findings] == [
        f"there is no variable $unknown{number}: it stays text" for number in range(20)
    ]


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        # Variables.
        (f'{POEM}<function.f a="$peom"/>', 58, "there is no variable $peom; nearest: POEM"),
        (f'{POEM}<function.f A="a $po_em b"/>', 58, "there is no variable $po_em; nearest: POEM"),
        (f'{POEM}<function.f a="a $poems"/>', 58, "there is no variable $poems; nearest: POEM"),
        (
            '<function.f a="a $MyPoem"/><function.f setContextVariable="my_poem"/>',
            19,
            "there is no variable $MyPoem; nearest: my_poem",
        ),
        (
            '<function.f setContextVariable="MyPoem"/><function.f a="on $M_Y_Poem"/>',
            60,
            "there is no variable $M_Y_Poem; nearest: MyPoem",
        ),
        (
            '<function.f setContextVariable="m_y_poem"/><function.f a="on $MyPoem"/>',
            62,
            "there is no variable $MyPoem; nearest: m_y_poem",
        ),
        (
            f'<function.f setContextVariable="{LONG[:43]}"/><function.f a="${LONG}w"/>',
            97,
            f"there is no variable ${LONG}; there are: input, {LONG[:43]}",
        ),
        (f'{POEM}<function.f a="$my_poem"/>', 58, "there is no variable $my_poem; there are: input, POEM"),
        (f'{POEM}<function.f a="$xyz"/>', 58, "there is no variable $xyz; there are: input, POEM"),
        (f'<function.f b="" a="${LONG}w"/>', 24, f"there is no variable ${LONG}; there are: input"),
        (
            "".join(f'<function.f setContextVariable="var{end}"/>' for end in "abcd") + '<function.f a="b $vare"/>',
            175,
            "there is no variable $vare; nearest: vard, varc, varb",
        ),
        (
            "".join(f'<function.f setContextVariable="{chr(97 + end) * 9}"/>' for end in range(20))
            + '<function.f a="$z"/>',
            899,
            "there is no variable $z; there are: input, " + ", ".join(chr(97 + end) * 9 for end in range(19)),
        ),
        ('<function.f a="$B"/><function.f appendToResult="b"/>', 19, "$B is set only by this step or a later one"),
        (
            '<function.f a="b $B"/><function.f setContextVariable="B"/>',
            19,
            "$B is set only by this step or a later one",
        ),
        ('<function.f a="1" b="2" A="2"/>', 7, "a and A are one argument with two values"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_its_place(text: str, column: int, says: str) -> None:
    with pytest.raises(PlanFormatError) as caught:
        XmlPlan.read(f"<plan>{text}</plan>", CATALOGUE)
    assert str(caught.value) == f"line 1, column {column}: {says}."


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('<function.bare a="1" b="$input"/>', {"a": Value("1"), "b": From("input")}),
        (
            '<function.near appendToResults="x" SETCONTEXTVARIABL="y"/>',
            {"appendToResults": Value("x"), "setContextVariabl": Value("y")},
        ),
        (
            '<function.typed N="5" L="[1, 2]" S="5" city="x" any="5" other="5"/>',
            {
                "n": Value(5),
                "l": Value([1, 2]),
                "s": Value("5"),
                "City": Value("x"),
                "any": Value("5"),
                "other": Value("5"),
            },
        ),
        (
            '<function.typed n="5 $" l="[1, &quot;$5&quot;]" s="[&quot;$5&quot;]" other="[&quot;$5&quot;]"/>',
            {"n": Value("5 $"), "l": Value([1, "$5"]), "s": Value('["$5"]'), "other": Value('["$5"]')},
        ),
        ("<function.needs/>", {"INPUT": From("input")}),
        ('<function.needs input="x" STYLE="$input"/>', {"INPUT": Value("x"), "Style": From("input")}),
        (f"{POEM}<function.f/><function.needs/>", {"INPUT": From("s2")}),
        (
            '<function.f setContextVariable="STYLE"/><function.f appendToResult="More"/><function.needs/>',
            {"INPUT": From("s2"), "Style": From("STYLE"), "more": From("s2")},
        ),
        ('<function.unknown Input="3" a="$INPUT"/>', {"Input": Value("3"), "a": From("input")}),
    ],
)
def test_arguments_are_those_of_the_manual(text: str, arguments: dict[str, Expression]) -> None:
    assert steps(text)[-1][1] == arguments


@pytest.mark.parametrize(
    ("calls", "after"),
    [
        (["look", "send", "look", "send"], [(), ("s1",), ("s2",), ("s2", "s3")]),
        (["send", "send", "look", "look"], [(), ("s1",), ("s2",), ("s2",)]),
        (["look", "look", 'send a="$x1" b="and $input"'], [(), (), ("s2",)]),
        (["look", "look", 'send a="on $x1 and $x2"'], [(), (), ()]),
        (["send", 'look a="$x1"', 'send a="$x2"'], [(), (), ("s1",)]),
        (["send", "unknown", "send"], [(), (), ("s1",)]),
    ],
)
def test_effects_come_in_the_order_of_writing(calls: list[str], after: list[tuple[str, ...]]) -> None:
    text = "".join(f'<function.{call} appendToResult="x{number}"/>' for number, call in enumerate(calls, 1))
    assert [step.after for step in XmlPlan.read(f"<plan>{text}</plan>", CATALOGUE).plan.steps] == after


@pytest.mark.parametrize(
    ("names", "result"),
    [
        (["", ""], From("s2")),
        (["A", ""], From("s1")),
        (["A.date", ""], From("s1", ("date",))),
        (["$A.list[0]['x y']", "A"], TextOf((From("s1", ("list", 0, "x y")), "\n", From("s2")))),
        (["A", "B", "A"], TextOf((From("s1"), "\n", From("s2"), "\n", From("s3")))),
    ],
)
def test_the_result_is_what_is_appended_or_the_last(names: list[str], result: Expression) -> None:
    text = "".join(f'<function.f appendToResult="{name}"/>' for name in names)
    assert XmlPlan.read(f"<plan>{text}</plan>", CATALOGUE).plan.result == result


def test_the_reading_of_a_plan_is_a_whole() -> None:
    text = '\n<plan>\n<function.f a="x">\n <function.F\n  b="is $B" N.d="x"\n  n="$input"/></plan>'
    read = XmlPlan.read(text, CATALOGUE, goal="Do", recover=True, finished=["s2"])
    first = Step("s1", "f", {"a": Value("x")})
    second = Step("s3", "f", {"b": Value("is $B"), "N.d": Value("x"), "n": From("input")})
    assert read.plan == Plan("Do", (first, second), From("s3"))
    assert XmlPlan.read(text, CATALOGUE, goal="Do", recover=True, finished=["s2"]).plan == read.plan
    assert read.recovered == (Mend(3, 18, "the tag of function.f is not closed"),)
    assert [str(each) for each in read.recovered] == ["line 3, column 18: the tag of function.f is not closed"]
    assert not read.empty
    for place, found in {
        "": (4, 2),
        "arguments": (4, 2),
        "arguments.B": (5, 3),
        "arguments.b[0]": (5, 3),
        "arguments.b.text": (5, 3),
        "arguments.bc": (4, 2),
        "arguments.n": (6, 3),
        "arguments.n.e": (6, 3),
        "places.n": (4, 2),
    }.items():
        assert read.place_of("s3", place) == found, place
    assert read.place_of("s3") == (4, 2)
    assert read.place_of("s2") is read.place_of(None) is None


def test_by_default_nothing_is_mended_and_the_goal_is_the_text_s() -> None:
    assert XmlPlan.read("<plan/>").plan == Plan("")
    read = XmlPlan.read
    with pytest.raises(PlanFormatError, match="line 1, column 1: text around the plan"):
        read("a <plan/>")
    with pytest.raises(PlanFormatError) as caught:
        read(" " * 1_000_001)
    assert str(caught.value) == "The plan has 1,000,001 characters; 1,000,000 are allowed."
    read("<plan/>".rjust(1_000_000))
