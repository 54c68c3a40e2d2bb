"""What a well-formed plan means: Semantic Kernel's rules, and where ours differ on purpose."""

from __future__ import annotations

from typing import Any

import pytest

from portico import Function, Kernel
from portico._functions.functions import FunctionSpec
from portico._plans.plan import Expression, From, Plan, Step, TextOf, Value
from portico._plans.xml_form.reading import XmlPlan
from portico.errors import PlanFormatError

POEM = """
<goal>Write a poem about John Doe, then translate it into Chinese.</goal>
<plan>
  <!-- A short poem -->
  <function.WriterPlugin.ShortPoem input="John Doe" setContextVariable="POEM"/>
  <!-- The same
       in Chinese -->
  <function.WriterPlugin.Translate input="$POEM" language="Chinese" appendToResult="RESULT__CHINESE_POEM"/>
</plan>
<!-- END -->
"""


def spec(
    name: str, properties: dict[str, Any] | None = None, required: tuple[str, ...] = (), *, effects: bool = False
) -> FunctionSpec:
    schema = {"type": "object", "properties": properties or {}, "required": list(required)}
    return FunctionSpec(name, "", schema, {"type": "string"}, effects)


def catalogue(*specs: FunctionSpec) -> dict[str, FunctionSpec]:
    return {each.name: each for each in specs}


def only(text: str, functions: dict[str, FunctionSpec] | None = None) -> Step:
    (step,) = XmlPlan.read(f"<plan>{text}</plan>", functions).plan.steps
    return step


def value(text: str, before: str = '<function.f setContextVariable="A"/>') -> Expression:
    """Return what a value is read as, after a step that sets the variable A."""
    return XmlPlan.read(f'<plan>{before}<function.g a="{text}"/></plan>').plan.steps[-1].arguments["a"]


def test_the_poem_of_the_planner_article_is_read() -> None:
    assert XmlPlan.read(POEM).plan == Plan(
        "Write a poem about John Doe, then translate it into Chinese.",
        (
            Step("POEM", "WriterPlugin-ShortPoem", {"input": Value("John Doe")}, (), "A short poem"),
            Step(
                "s2",
                "WriterPlugin-Translate",
                {"input": From("POEM"), "language": Value("Chinese")},
                (),
                "The same\n       in Chinese",
            ),
        ),
        From("s2"),
    )


@pytest.mark.parametrize("around", ["", "é日本: "])
def test_it_says_where_each_step_is(around: str) -> None:
    text = f'{around}<plan>\n<!-- 日本 --> <function.f/>\n  <function.g setContextVariable="X"/></plan>'
    read = XmlPlan.read(text, recover=True)
    assert [read.place_of(step) for step in ("s1", "X", "other")] == [(2, 13), (3, 3), None]


def test_the_goal_of_the_caller_is_the_plan_s() -> None:
    assert XmlPlan.read(POEM, goal="Other").plan.goal == "Other"


@pytest.mark.parametrize(
    "text", ["<goal>Do it<plan/></goal>", "<goal>Do it</goal><plan/>", "<xml><goal>Do it</goal><plan></plan></xml>"]
)
def test_a_goal_may_be_before_or_around(text: str) -> None:
    read = XmlPlan.read(text)
    assert read.plan.goal == "Do it"
    assert read.empty


@pytest.mark.parametrize("text", ["<plan />", "<PLAN></PLAN>", "<plan><!-- there is no such function --></plan>"])
def test_an_empty_plan_is_told_apart(text: str) -> None:
    read = XmlPlan.read(text)
    assert (read.empty, read.plan, read.recovered) == (True, Plan(""), ())


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("$A", From("A")),
        ("$a", From("A")),
        ("$INPUT", From("input")),
        ("on $A at $input.", TextOf(("on ", From("A"), " at ", From("input"), "."))),
        ("$A$A", TextOf((From("A"), From("A")))),
        ("$A.txt ", TextOf((From("A"), ".txt "))),
        ("See $A.Then go.", TextOf(("See ", From("A"), ".Then go."))),
        ("costs $5.00", Value("costs $5.00")),
        ("$A.", TextOf((From("A"), "."))),
        ("$A. b", TextOf((From("A"), ". b"))),
        ("$A.b [1]", TextOf((From("A"), ".b [1]"))),
        ("$A[007]", TextOf((From("A"), "[007]"))),
        ("$a.name", From("A", ("name",))),
        ("$A.list[0].x", From("A", ("list", 0, "x"))),
        ("$A.list[*].x", From("A", From.parse_path("$.list[*].x"))),
        ("$A.list[0,-1][1:]", From("A", From.parse_path("$.list[0,-1][1:]"))),
        ("$A['max temp'][-1]", From("A", ("max temp", -1))),
        ("$INPUT.city", From("input", ("city",))),
        ("将$A翻译成中文", TextOf(("将", From("A"), "翻译成中文"))),
        ("$AB and $A", TextOf(("$AB and ", From("A")))),
        ("{&quot;$top&quot;: 3}", Value('{"$top": 3}')),
        ("$100", Value("$100")),
        ("5 $", Value("5 $")),
        ("A", Value("A")),
        ("&#36;A", From("A")),
    ],
)
def test_known_variables_are_references_and_all_else_is_text(text: str, expression: Expression) -> None:
    assert value(text) == expression


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('<function.f a="$B"/>', r"line 1, column 19: there is no variable \$B; there are: input"),
        ('<function.f a="$INPTU"/>', r"there is no variable \$INPTU; nearest: input"),
        ('<function.f a="$B"/><function.g setContextVariable="B"/>', r"\$B is set only by this step or a later one"),
        ('<function.f a="$B or so" setContextVariable="b"/>', r"\$B is set only by this step or a later one"),
        ("<function.f><function.g/></function.f>", "inside a function"),
        ("<if><function.g/></if>", "<if> is no step"),
        ("text", "line 1, column 7: text between the steps"),
        ("<function.f>\n text</function.f>", "line 2, column 2: text inside a function"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_place(text: str, says: str) -> None:
    with pytest.raises(PlanFormatError, match=says):
        XmlPlan.read(f"<plan>{text}</plan>")


DAY = {"type": "object", "properties": {"date": {"type": "string"}, "été": {"type": "integer"}}}
FORECAST: dict[str, Any] = {
    "type": "object",
    "properties": {"on": {"anyOf": [DAY, {"type": "null"}]}, "hours": {"type": "array", "items": DAY}},
    "additionalProperties": False,
}
DAY["additionalProperties"] = False
FIELDS = {
    "f": FunctionSpec("f", "", {"type": "object", "properties": {"a": {"type": "string"}}}, FORECAST),
    "text": FunctionSpec("text", "", {"type": "object"}, {"type": "string"}),
    "open": FunctionSpec("open", "", {"type": "object"}, {"type": "object"}),
    "any": FunctionSpec("any", "", {"type": "object"}, {}),
}


@pytest.mark.parametrize(
    ("function", "text", "expression", "doubts"),
    [
        ("f", "$A.on.date", From("A", ("on", "date")), 0),
        ("f", "On $A.on.date.", TextOf(("On ", From("A", ("on", "date")), ".")), 0),
        ("f", "$A.on.date.txt", TextOf((From("A", ("on", "date")), ".txt")), 0),
        ("f", "$A.hours[0]['été'] °", TextOf((From("A", ("hours", 0, "été")), " °")), 0),
        ("f", "在$A.on.date下雨", TextOf(("在", From("A", ("on", "date")), "下雨")), 0),
        ("f", "$A.on: $A.hours[1]", TextOf((From("A", ("on",)), ": ", From("A", ("hours", 1)))), 0),
        ("f", "$A.of", TextOf((From("A"), ".of")), 1),
        ("f", "in $A.on.time", TextOf(("in ", From("A", ("on",)), ".time")), 1),
        ("text", "$A.txt", TextOf((From("A"), ".txt")), 0),
        ("text", "$A[0]", TextOf((From("A"), "[0]")), 0),
        ("open", "$A.txt", From("A", ("txt",)), 0),
        ("open", "a $A.txt", TextOf(("a ", From("A", ("txt",)))), 0),
        ("any", "$A.txt", From("A", ("txt",)), 0),
        ("any", "a $A.txt", TextOf(("a ", From("A"), ".txt")), 0),
        ("unknown", "$A.txt", From("A", ("txt",)), 0),
        ("unknown", "a $A.txt", TextOf(("a ", From("A"), ".txt")), 1),
    ],
)
def test_what_a_result_has_is_a_part_of_it_and_all_else_is_text(
    function: str, text: str, expression: Expression, doubts: int
) -> None:
    read = XmlPlan.read(f'<plan><function.{function} setContextVariable="A"/><function.f a="{text}"/></plan>', FIELDS)
    assert read.plan.steps[-1].arguments["a"] == expression
    assert [each.severity for each in read.findings] == ["warning"] * doubts
    assert XmlPlan.read(XmlPlan.write(read.plan, FIELDS), FIELDS).plan == read.plan


INPUT = {"Language": "Chinese", "list": [{"x": 1}], "input": "whole", "no word": 1, "A": "hidden"}


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("$LANGUAGE", From("input", ("Language",))),
        ("in $language.", TextOf(("in ", From("input", ("Language",)), "."))),
        ("$list[0].x", From("input", ("list", 0, "x"))),
        ("in $LIST[0].x of", TextOf(("in ", From("input", ("list", 0, "x")), " of"))),
        ("in $INPUT.Language!", TextOf(("in ", From("input", ("Language",)), "!"))),
        ("$INPUT", From("input")),
        ("$A", From("A")),
        ("$DONE", From("done")),
        ("the $done.day", TextOf(("the ", From("done", ("day",))))),
    ],
)
def test_members_of_the_input_and_results_so_far_are_variables(text: str, expression: Expression) -> None:
    written = f'<plan><function.f setContextVariable="A"/><function.f a="{text}"/></plan>'
    read = XmlPlan.read(written, FIELDS, input=INPUT | {"done": 0}, finished={"done": {"day": "today"}})
    assert read.plan.steps[-1].arguments["a"] == expression
    if "DONE" not in text.upper():
        assert XmlPlan.read(XmlPlan.write(read.plan, FIELDS, input=INPUT), FIELDS, input=INPUT).plan == read.plan


def test_a_required_parameter_gets_the_member_of_the_input_with_its_name() -> None:
    functions = catalogue(spec("f", {"language": {}}, ("language",)))
    read = XmlPlan.read("<plan><function.f/></plan>", functions, input={"language": "Chinese"})
    assert read.plan.steps[0].arguments == {"language": From("input", ("language",))}


def test_the_last_value_of_a_variable_counts() -> None:
    plan = XmlPlan.read(
        '<plan><function.f setContextVariable="A"/><function.g a="$A" setContextVariable="a"/>'
        '<function.h a="$A"/></plan>'
    ).plan
    assert [step.id for step in plan.steps] == ["A", "s2", "s3"]
    assert [step.arguments.get("a") for step in plan.steps] == [None, From("A"), From("s2")]


def test_appended_results_are_joined_by_line_breaks_and_are_variables() -> None:
    plan = XmlPlan.read(
        '<plan><function.f appendToResult="R1"/><function.g a="$R1" appendToResult="R2"/><function.h/></plan>'
    ).plan
    assert plan.steps[1].arguments == {"a": From("s1")}
    assert plan.result == TextOf((From("s1"), "\n", From("s2")))


def test_without_an_appended_result_it_is_the_last_step_s() -> None:
    assert XmlPlan.read("<plan><function.f/><function.g/></plan>").plan.result == From("s2")


def test_ids_are_variables_and_never_taken_ones() -> None:
    text = (
        '<plan><function.f setContextVariable="s2"/><function.f/><function.f setContextVariable="done"/>'
        '<function.f setContextVariable="input"/></plan>'
    )
    assert [step.id for step in XmlPlan.read(text, finished=["DONE"]).plan.steps] == ["s2", "s3", "s4", "s5"]
    with pytest.raises(PlanFormatError, match="line 1, column 19: 'a b' is no variable"):
        XmlPlan.read('<plan><function.f setContextVariable="a b"/></plan>')


def test_steps_that_have_run_are_variables() -> None:
    plan = XmlPlan.read('<plan><function.f a="$poem"/></plan>', finished=["POEM", "s1"]).plan
    assert plan.steps == (Step("s2", "f", {"a": From("POEM")}),)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Writer.Poem", "Writer-Poem"),
        ("Writer-Poem", "Writer-Poem"),
        ("writer.poem", "Writer-Poem"),
        ("Poem", "Writer-Poem"),
        ("_GLOBAL_FUNCTIONS_.echo", "echo"),
        ("Twice", "Twice"),
        ("Wirter.Peom", "Wirter-Peom"),
        ("a.b.c", "a.b.c"),
    ],
)
def test_functions_are_found_by_the_catalogue_and_else_stay_as_written(written: str, name: str) -> None:
    functions = catalogue(spec("Writer-Poem"), spec("echo"), spec("A-Twice"), spec("B-Twice"))
    assert only(f"<function.{written}/>", functions).function == name


def test_parameters_are_found_in_another_case() -> None:
    functions = catalogue(spec("f", {"City": {}, "a": {}, "A": {}}))
    assert list(only('<function.f city="x" a="y" z="w"/>', functions).arguments) == ["City", "a", "z"]


@pytest.mark.parametrize(
    ("schema", "text", "read"),
    [
        ({"type": "integer"}, "3", 3),
        ({"type": "integer"}, "03", "03"),
        ({"type": "integer"}, "3.0", "3.0"),
        ({"type": "integer"}, " 3", " 3"),
        ({"type": "number"}, "3", 3),
        ({"type": "number"}, "2.50", "2.50"),
        ({"type": "number"}, "NaN", "NaN"),
        ({"type": "number"}, "9" * 5000, "9" * 5000),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "True", True),
        ({"type": ["integer", "null"]}, "null", None),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "3", "3"),
        ({"type": "string"}, "3", "3"),
        ({}, "3", "3"),
        (True, "3", "3"),
        ({"enum": [1, 2]}, "2", 2),
        ({"const": 1}, "1", 1),
        ({"$ref": "#/$defs/loop"}, "1", "1"),
        ({"type": "array"}, "[1, 'a']", [1, "a"]),
        ({"type": "array"}, "[1,  2]", [1, 2]),
        ({"type": "array"}, "[" * 100_000, "[" * 100_000),
        ({"type": "object"}, '{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ({"type": "object"}, '{"$top": 3}', {"$top": 3}),
    ],
)
def test_texts_are_values_where_that_is_certain(schema: Any, text: str, read: Any) -> None:
    made = spec("f", {"a": schema})
    made.parameters["$defs"] = {"loop": {"$ref": "#/$defs/loop"}}  # type: ignore[index]
    escaped = text.replace('"', "&quot;")
    got = only(f'<function.f a="{escaped}"/>', {"f": made}).arguments["a"]
    assert isinstance(got, Value)
    assert (type(got.value), got.value) == (type(read), read)


def test_a_required_input_that_is_not_written_is_the_last_result() -> None:
    functions = catalogue(spec("f", {"input": {}, "style": {}, "more": {}}, ("input", "style")))
    text = (
        '<plan><function.f style="a"/><function.f setContextVariable="STYLE"/><function.f/>'
        '<function.f input="x" style="b"/></plan>'
    )
    first, second, third, fourth = XmlPlan.read(text, functions).plan.steps
    assert first.arguments == {"style": Value("a"), "input": From("input")}
    assert second.arguments == {"input": From("s1")}, "the check says that style is missing"
    assert third.arguments == {"input": From("STYLE"), "style": From("STYLE")}
    assert fourth.arguments == {"input": Value("x"), "style": Value("b")}, "what is written is never another"
    assert XmlPlan.read(text).plan.steps[2].arguments == {}


def test_steps_with_effects_keep_their_place() -> None:
    functions = catalogue(spec("look", {"a": {}}), spec("send", {"a": {}}, effects=True))
    text = (
        "<plan><function.look/><function.look/><function.send a='$s1'/><function.look/><function.send/>"
        "<function.look a='$s5'/></plan>"
    ).replace("<function.look/>", "<function.look setContextVariable='s1'/>", 1)
    text = text.replace("<function.send/>", "<function.send setContextVariable='s5'/>")
    plan = XmlPlan.read(text, functions).plan
    assert [step.after for step in plan.steps] == [(), (), ("s2",), ("s3",), ("s3", "s4"), ()]
    assert XmlPlan.read(XmlPlan.write(plan, functions), functions).plan == plan
    with pytest.raises(PlanFormatError, match=r"after: .*; a catalogue may help"):
        XmlPlan.write(plan)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<!DOCTYPE plan><plan/>", "line 1, column 1: a document type is refused"),
        ('\n <!DOCTYPE plan [<!ENTITY a SYSTEM "file:///etc/passwd">]><plan/>', "line 2, column 2: a document type"),
        ('<plan><function.f a="&b;"/></plan>', "line 1, column .*: not XML: undefined entity"),
        ("<plan>", "line 1, column 7: the text ends before the plan does"),
        ("<plan/><plan/>", "line 1, column 8: a second <plan>"),
        ("<plan/>text", "line 1, column 8: text around the plan"),
        ("<div><plan/></div>", "line 1, column 1: <div> is not of a plan"),
        ("<xml>" * 20 + "<plan/>" + "</xml>" * 20, "deeper than 8 levels"),
        ("<plan/></portico><portico>", "line 1, column .*: not XML"),
        ("<plan>é\n日本 <x/></plan>", "line 1, column 7: text between"),
        ("<plan>\n<!-- 日本 --> <if/></plan>", "line 2, column 13: <if> is no step"),
        ("", "line 1, column 1: there is no <plan>"),
        ("<plan>\ud800</plan>", "line 1, column 7: half of a surrogate pair"),
        ("<plan>" + "<function.f/>" * 1001 + "</plan>", "more than 1,000 steps"),
    ],
)
def test_strict_reading_refuses_what_is_not_of_the_form(text: str, says: str) -> None:
    with pytest.raises(PlanFormatError, match=says):
        XmlPlan.read(text)


@pytest.mark.parametrize("recover", [False, True])
def test_long_texts_are_refused_at_once(recover: bool) -> None:
    with pytest.raises(PlanFormatError, match="1,000,001 characters; 1,000,000 are allowed"):
        XmlPlan.read(" " * 1_000_001, recover=recover)


def test_a_declaration_and_a_byte_order_mark_are_xml() -> None:
    read = XmlPlan.read("\ufeff<?xml version='1.0' encoding='utf-16'?>\n<plan><function.f/></plan>", recover=True)
    assert read.recovered == ()
    with pytest.raises(PlanFormatError, match="line 2, column 7"):
        XmlPlan.read("\ufeff<?xml version='1.0'?>\n<plan>x</plan>")


async def test_a_plan_that_is_read_runs() -> None:
    def upper(text: str) -> str:
        return text.upper()

    def repeat(text: str, times: int) -> str:
        return text * times

    kernel = Kernel()
    for made in (upper, repeat):
        kernel.add_function(Function.of(made, plugin="Text"))
    plan = XmlPlan.read(
        '<plan><function.Text.upper text="ab $INPUT" setContextVariable="X"/>'
        '<function.text.repeat text="$X" times="2" appendToResult="R"/></plan>',
        {name: function.spec for name, function in kernel.functions.items()},
        goal="shout",
    ).plan
    run = await kernel.run_plan(plan, input="c")
    assert run.outcome.value == "AB CAB C"


def test_a_name_that_no_step_sets_stays_text_and_is_told() -> None:
    text = '<plan>\n<function.f a="x"/><function.f a="x"\n  b="in $W.city for $100 and $HOME"/></plan>'
    read = XmlPlan.read(text)
    assert read.plan.steps[1].arguments["b"] == Value("in $W.city for $100 and $HOME")
    assert [(each.severity, each.step, each.place, each.message) for each in read.findings] == [
        ("warning", "s2", "arguments.b", "there is no variable $W: it stays text"),
        ("warning", "s2", "arguments.b", "there is no variable $HOME: it stays text"),
    ]
    assert read.place_of("s2", "arguments.b") == (3, 3)


def test_variables_whose_letters_only_fold_alike_are_two() -> None:
    text = (
        '<plan><function.f setContextVariable="Maße"/><function.g setContextVariable="Masse"/>'
        '<function.h a="$MAßE" b="$MASSE"/></plan>'
    )
    assert XmlPlan.read(text).plan.steps[2].arguments == {"a": From("Maße"), "b": From("Masse")}


@pytest.mark.parametrize("recover", [False, True])
def test_the_place_of_each_attribute_is_known(recover: bool) -> None:
    catalogue = {"f": FunctionSpec("f", "", {"type": "object", "properties": {"Long_name": {}, "a": {}}}, {})}
    text = "é<plan>" if recover else "<!-- é --><plan>"
    text += """<function.f a = '> a="x"'\n  long_name="1"/></plan>"""
    read = XmlPlan.read(text, catalogue, recover=True)
    assert bool(read.recovered) == recover
    start = text.index("<function")
    assert read.place_of("s1") == (1, start + 1)
    assert read.place_of("s1", "function") == (1, start + 1)
    assert read.place_of("s1", "arguments.a") == (1, text.index("a =") + 1)
    assert read.place_of("s1", "arguments.a.text[0]") == (1, text.index("a =") + 1)
    assert read.place_of("s1", "arguments.Long_name") == (2, 3)
    assert read.place_of("s1", "arguments.missing") == (1, start + 1)
    assert read.place_of("s9") is None
    assert read.place_of(None) is None


def test_many_names_that_no_step_sets_take_no_time_that_grows_with_their_square() -> None:
    steps = "".join(f'<function.f setContextVariable="variable_{n}"/>' for n in range(900))
    words = " ".join(f"$unknown_{n}" for n in range(40_000))
    read = XmlPlan.read(f'<plan>{steps}<function.f a="{words}"/></plan>')
    assert len(read.findings) == 20
