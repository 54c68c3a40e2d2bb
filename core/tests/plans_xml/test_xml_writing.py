"""What a plan is written as, whole, and why a plan is refused, in words that say what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from portico._functions.functions import FunctionSpec
from portico._plans.plan import Expression, From, ListOf, ObjectOf, Plan, PlanTemplate, Step, TextOf, Value
from portico._plans.xml_form.reading import XmlPlan
from portico.errors import PlanFormatError

KINDS = {"input": {"type": "string"}, "n": {"type": "integer"}, "o": {"type": "object"}}
CATALOGUE = {
    "f": FunctionSpec("f", "", {"type": "object", "properties": KINDS, "required": ["input"]}, {}),
    "send": FunctionSpec("send", "", {"type": "object", "properties": {}}, {}, effects=True),
}
LONG = "x" * 61


def step(id: str = "s1", function: Any = "g", arguments: Any = None, **more: Any) -> Step:
    return Step(id, function, arguments or {}, **more)


def plan(*steps: Step, result: Expression | None = None, goal: str = "", **more: Any) -> Plan:
    """Make a plan of these steps or of one; its result is that of the last."""
    steps = steps or (step(),)
    return Plan(goal, steps, result or From(steps[-1].id), **more)


def given(value: Any, *, name: str = "a", function: str = "g", **others: Any) -> Plan:
    """Make a plan of a step with an argument, which is an expression or a value."""
    arguments = {name: value, **others}
    made = {key: each if isinstance(each, Expression) else Value(each) for key, each in arguments.items()}
    return plan(step(function=function, arguments=made))


RESULT = 'setContextVariable="s1" appendToResult="RESULT__s1"'
OBJECT = r"{&quot;é&quot;: [1, null, &quot;x\&quot;&quot;], &quot;b&quot;: {}}"
WRITTEN = {
    "a plan without steps": (Plan(""), ["<plan/>"]),
    "a goal": (Plan('Say <it> & "that"\r\nnow'), ['<goal>Say &lt;it&gt; &amp; "that"&#13;', "now</goal>", "<plan/>"]),
    "the poem of Semantic Kernel": (
        plan(
            step("POEM", "Writer-ShortPoem", {"input": Value('"John" & Doe\n')}, reason="First the poem"),
            step("s2", "Writer-Translate", {"input": From("POEM"), "language": Value("Chinese")}),
            goal="Say <it>",
        ),
        [
            "<goal>Say &lt;it&gt;</goal>",
            "<plan>",
            "  <!-- First the poem -->",
            '  <function.Writer.ShortPoem input="&quot;John&quot; &amp; Doe&#10;" setContextVariable="POEM"/>',
            f'  <function.Writer.Translate input="$POEM" language="Chinese" {RESULT.replace("s1", "s2")}/>',
            "</plan>",
        ],
    ),
    "every character that is escaped": (
        given("\r\t\n&<>\"'é🧦"),
        ["<plan>", f'  <function.g a="&#13;&#9;&#10;&amp;&lt;&gt;&quot;\'é🧦" {RESULT}/>', "</plan>"],
    ),
    "steps that nobody takes keep no result, but for those with a name of their own": (
        plan(
            step(arguments={"a": TextOf(("x ", From("input"), ", & y"))}, reason="why\nso-"),
            step("s2"),
            step("s4"),
            step("end", arguments={"b": From("s1")}),
        ),
        [
            "<plan>",
            "  <!-- why",
            "so- -->",
            '  <function.g a="x $input, &amp; y" setContextVariable="s1"/>',
            "  <function.g/>",
            '  <function.g setContextVariable="s4"/>',
            '  <function.g b="$s1" setContextVariable="end" appendToResult="RESULT__end"/>',
            "</plan>",
        ],
    ),
    "several results": (
        plan(*map(step, ["s2", "s1", "s3", "b"]), result=TextOf((From("s2"), "\n", From("s3"), "\n", From("b")))),
        [
            "<plan>",
            '  <function.g setContextVariable="s2" appendToResult="RESULT__s2"/>',
            '  <function.g setContextVariable="s1"/>',
            '  <function.g setContextVariable="s3" appendToResult="RESULT__s3"/>',
            '  <function.g setContextVariable="b" appendToResult="RESULT__b"/>',
            "</plan>",
        ],
    ),
    "a field as the result": (
        plan(result=From("s1", ("degreesFahrenheit",))),
        ["<plan>", '  <function.g setContextVariable="s1" appendToResult="RESULT__s1.degreesFahrenheit"/>', "</plan>"],
    ),
    "the name of a result is of no step": (
        plan(step("result__S2_"), step("RESULT__s2"), step("s2", arguments={"a": From("RESULT__s2")})),
        [
            "<plan>",
            '  <function.g setContextVariable="result__S2_"/>',
            '  <function.g setContextVariable="RESULT__s2"/>',
            '  <function.g a="$RESULT__s2" setContextVariable="s2" appendToResult="RESULT__s2__"/>',
            "</plan>",
        ],
    ),
    "values that are no texts": (
        given(From("input"), name="input", function="f", n=-3, o={"é": [1, None, 'x"'], "b": {}}),
        ["<plan>", f'  <function.f input="$input" n="-3" o="{OBJECT}" {RESULT}/>', "</plan>"],
    ),
    "an order that the catalogue tells": (
        plan(step(function="send"), step("s2", "f", {"input": Value("x")}, after=("s1",))),
        [
            "<plan>",
            "  <function.send/>",
            '  <function.f input="x" setContextVariable="s2" appendToResult="RESULT__s2"/>',
            "</plan>",
        ],
    ),
}


@pytest.mark.parametrize(("made", "lines"), WRITTEN.values(), ids=WRITTEN.keys())
def test_a_plan_is_written_as_semantic_kernel_wrote_it(made: Plan, lines: list[str]) -> None:
    text = XmlPlan.write(made, CATALOGUE)
    assert text.split("\n") == lines
    assert XmlPlan.read(text, CATALOGUE).plan == made


def test_bare_xml_leaves_out_what_is_not_of_the_steps() -> None:
    whole = plan(goal="g", notes={"round": 1}, fingerprints={"g": "0"}, input={"type": "object"})
    assert XmlPlan.write(whole, bare=True) == XmlPlan.write(plan(goal="g"))
    assert XmlPlan.write(replace(whole, input=None)) == XmlPlan.write(plan(goal="g"))


def test_a_thousand_steps_are_written() -> None:
    steps = [step(f"s{number}") for number in range(1, 1_001)]
    assert XmlPlan.write(plan(*steps)).count("\n  <function.g") == 1_000
    with pytest.raises(PlanFormatError) as caught:
        XmlPlan.write(plan(*steps, step("s1001")))
    assert "more than 1,000 steps" in str(caught.value)


TWO = (step(), step("s2"))


@pytest.mark.parametrize(
    ("refused", "says"),
    [
        (plan(input={}), "input: {} →"),
        (plan(goal=" g"), "goal"),
        (Plan("", (step(),)), "result"),
        (Plan("", (), Value(1)), "result"),
        (plan(result=Value(1)), "result"),
        (plan(result=From("s1", ("\\",))), "is no variable"),
        (plan(result=From("input")), "result"),
        (plan(result=From("s2")), "result"),
        (plan(*TWO, result=TextOf((From("s1"), ", ", From("s2")))), "result"),
        (plan(*TWO, result=TextOf(("\n", From("s1"), "\n", From("s2")))), "result"),
        (plan(*TWO, result=TextOf((From("s1"), "\n", "\n", "\n", From("s2")))), "result"),
        (plan(*TWO, result=TextOf((From("s2"), "\n", From("s1")))), "result"),
        (plan(step(function=Plan("inner"))), "step s1 is a plan or a template"),
        (plan(step(function=PlanTemplate("x", "handlebars"))), "step s1 is a plan or a template"),
        (plan(step(function="a-b-c")), "~ s1; function: "),
        (plan(step(function="_GLOBAL_FUNCTIONS_-g")), "~ s1; function: "),
        (plan(step("Input")), "which was Input"),
        (plan(step("A"), step("a")), "which was a"),
        (plan(step(seconds=1.0)), "seconds: 1.0 →"),
        (plan(step(attempts=2)), "attempts: 2 →"),
        (plan(step(reason=" a")), "~ s1; reason: "),
        (plan(step(reason="a\rb")), "~ s1; reason: "),
        (plan(step(after=("s0",))), r"after: .*; a catalogue may help"),
        (given(From("s1", ("x",))), "set only by this step or a later one"),
        (plan(step(), step("s2", arguments={"a": TextOf(("an ", From("s1", ("x",))))})), "~ s2; arguments.a: "),
        (given("", name="AppendToResult"), "one argument with two values"),
        (given(ListOf(())), "lists or objects"),
        (given(ObjectOf({})), "lists or objects"),
        (given(TextOf(("x",))), "arguments.a"),
        (given("$input"), "arguments.a"),
        (given("x", b=None), "arguments.b: null → .*; a catalogue may help"),
    ],
)
def test_what_xml_cannot_hold_is_refused_with_the_reason(refused: Plan, says: str) -> None:
    with pytest.raises(PlanFormatError, match=f"^XML cannot hold this plan.*{says}"):
        XmlPlan.write(refused)


@pytest.mark.parametrize(
    "refused",
    [
        plan(goal="\x01"),
        plan(goal="\ufffe"),
        plan(step(reason="a -- b")),
        plan(step(reason="a --><function.evil/><!-- b")),
        plan(step(reason="a\x0bb")),
        plan(step(function="g/><function.evil")),
        given("", name="max temp"),
        given("\x00", name=f"-{LONG}"),
        given(TextOf((Value("x"),))),
        given("\x00"),
        given(["\ud800"]),
        given(TextOf((From("input"), "\udfff"))),
    ],
)
def test_what_is_no_xml_or_reads_as_another_plan_is_refused(refused: Plan) -> None:
    with pytest.raises(PlanFormatError, match="XML cannot hold this plan"):
        XmlPlan.write(refused)


@pytest.mark.parametrize(
    "refused",
    [
        given("x", name="n", function="f"),
        given("x", name="INPUT", function="f"),
        given("x", name="input", function="f", n="3"),
        given("x", name="input", function="f", n=2.5),
        given("x", name="input", function="F"),
        plan(step(function="send"), step("s2", "send")),
    ],
)
def test_what_would_read_as_another_plan_with_the_catalogue_is_refused(refused: Plan) -> None:
    with pytest.raises(
        PlanFormatError, match=r"^XML cannot hold this plan. It would come back as another: .*\.$"
    ) as caught:
        XmlPlan.write(refused, CATALOGUE)
    assert "a catalogue may help" not in str(caught.value)


@pytest.mark.parametrize(
    ("refused", "says"),
    [
        (given("$nobody"), "line 2, column 15: there is no variable $nobody; there are: input."),
        (given("1", A="2"), "line 2, column 3: a and A are one argument with two values."),
        (given(TextOf((From("input"), "s"))), "line 2, column 15: there is no variable $inputs; nearest: input."),
    ],
)
def test_what_would_not_be_read_is_refused_with_what_the_reader_says(refused: Plan, says: str) -> None:
    with pytest.raises(PlanFormatError) as caught:
        XmlPlan.write(refused)
    assert str(caught.value) == f"XML cannot hold this plan. It would be read so: {says}"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (object(), "expected a JSON value, got a Python object"),
        (float("nan"), "JSON has no nan"),
        (10**5_000, "a whole number of more than 4,000 digits is too long"),
    ],
    ids=["an object", "nan", "a long number"],
)
def test_a_value_that_json_cannot_hold_is_refused_with_its_place(value: Any, says: str) -> None:
    with pytest.raises(PlanFormatError) as caught:
        XmlPlan.write(given([value]))
    assert str(caught.value) == f"$.steps[0].arguments.a.value[0]: {says}."
