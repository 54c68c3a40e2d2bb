"""What the lenient scanner makes of a whole text: goal, steps and mends with their offsets, or the refusal."""

from __future__ import annotations

import pytest

from portico._plans.xml_form.lenient import parse_leniently
from portico.errors import PlanFormatError

CATALOGUE = {"P-f": None, "P-g-h": None, "echo": None}
LONGEST = "a" * 60


def scanned(text: str) -> list[str]:
    """Say what is read: the goal, each step with its offset, and what was mended, in the order in which it was."""
    mends: list[tuple[int, str]] = []
    plan = parse_leniently(text, CATALOGUE, mends)
    said = [] if plan.goal == "" else [f"goal: {plan.goal}"]
    for call in plan.calls:
        given = "".join(f" {name}={value}" for name, value in call.attributes.items())
        said.append(
            f"{plan.characters(call.offset)}: {call.function}{given}" + (f" # {call.reason}" * bool(call.reason))
        )
    return said + [f"{offset}: {mend}" for offset, mend in mends]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # What stands around a plan.
        ("\ufeff <plan/>\n", []),
        ("\ufeff <plan/> x", ["10: text around the plan"]),
        (" a <plan/> b", ["1: text around the plan"]),
        ('<plan/> "> ]]> ', ["8: text around the plan"]),
        ("x < y <plan/>", ["0: text around the plan"]),
        ("<<plan/>", ["0: text around the plan"]),
        ("<b>x</b> <P.f/> <div><plan/></div>", ["0: text around the plan"]),
        ("</function> <plan/> <func", ["0: text around the plan"]),
        ("<think> <plan><function.f/></plan></think><plan/>", ["0: text around the plan"]),
        (" <Thinking> a </thinkinG> b <plan/>", ["1: text around the plan"]),
        # The plan and its end.
        ("<PLAN></PLAN>", []),
        ("<Plan></plan>", ["6: </plan> ends <Plan>"]),
        ("< plan ></ plan\n >", []),
        ("<plan></plan ", ["6: </plan lacks its '>'"]),
        ("<plan></plan<", ["6: </plan lacks its '>'", "12: text around the plan"]),
        ("<plan></plan x>", ["6: </plan lacks its '>'", "13: text around the plan"]),
        ("<plan a='b' c='d'><b></plan>", ["5: attributes of the plan", "18: <b> between the steps"]),
        ("<plan a=b/>", ["8: the value of a has no quotes", "5: attributes of the plan"]),
        ("<plan/><plan/>", ["7: the same plan again"]),
        ("<plan></plan> x <plan></plan> y", ["16: the same plan again", "14: text around the plan"]),
        (
            "<plan><function.f></plan></function>",
            ["6: f", "6: the tag of function.f is not closed", "25: text around the plan"],
        ),
        # A plan of which something was only said.
        ("<plan> x <plan></plan>", ["0: text around the plan"]),
        (" <PLAN a='b'><!-- a --><b>x <plan><function.f/></plan>", ["34: f", "1: text around the plan"]),
        ("a <plan> is <b>bold</b> <plan/>", ["0: text around the plan"]),
        ("<?go?><plan>x <plan/>", ["0: a processing instruction", "6: text around the plan"]),
        # A goal, before the plan, around it, or inside.
        ("<goal> a &lt;b&gt; </goal><goal>other</goal><plan/>", ["goal: a <b>"]),
        ("<goal></goal><goal>other</goal><plan/>", ["goal: other"]),
        ("<GOAL>Do <plan/></GOAL >", ["goal: Do"]),
        ("<goal>Do <plan/>", ["goal: Do", "16: </goal> is missing"]),
        ("<goal>Do</goal </goal><plan/>", ["goal: Do", "8: </goal lacks its '>'"]),
        ('<goal x="y">Do</goal><plan/>', ["6: text around the plan"]),
        ("</goal><plan/>", []),
        ("<plan><goal>Do</goal><function.f/></plan>", ["goal: Do", "21: f"]),
        ("<plan><function.f/><goal>Do</goal></plan>", ["goal: Do", "6: f"]),
        # Text and marks between the steps.
        ("<plan> a <function.f/> b </plan>", ["9: f", "7: text between the steps", "23: text between the steps"]),
        (
            "<plan>1 < 2<function.f/></plan>",
            ["11: f", "6: text between the steps", "8: text between the steps", "10: text between the steps"],
        ),
        (
            "<plan><b><function.f/><br/><br / ></b ><CODE></plan>",
            [
                "9: f",
                "6: <b> between the steps",
                "22: <br> between the steps",
                "27: <br> between the steps",
                "34: </b> between the steps",
                "39: <CODE> between the steps",
            ],
        ),
        # Comments, of which those before a step are its reason.
        ("<!--a--><plan><function.f/></plan><!--b-->", ["14: f"]),
        ("<!--a--b--><plan/>", ["0: '--' inside of a comment"]),
        ("<plan/><!-- x", ["7: text around the plan"]),
        ("<plan><!--a--><!-- b\n c --><function.f/><!--   --><!--d--></plan>", ["27: f # a\nb\n c"]),
        ("<plan><!--a--><function.f/><!--b--><function.g/></plan>", ["14: f # a", "35: g # b"]),
        ("<plan><function.f><!--a--></function.f><function.g/></plan>", ["6: f", "39: g"]),
        ("<plan><!---><b>--></plan>", []),
        ("<plan><!----></plan>", ["6: '--' inside of a comment"]),
        ("<plan><!--x---><function.f/></plan>", ["15: f # x-", "6: '--' inside of a comment"]),
        ("<plan><!--x----><function.f/></plan>", ["16: f # x--", "6: '--' inside of a comment"]),
        ("<plan><!----x--><function.f/></plan>", ["16: f # --x", "6: '--' inside of a comment"]),
        ("<plan><!--a -- <b>--><function.f/></plan>", ["21: f # a -- <b>", "6: '--' inside of a comment"]),
        ("<plan><!--<planx -- a--></plan>", ["6: '--' inside of a comment"]),
        ("<plan><!--<plan> - a--></plan>", []),
        # Sections, declarations and instructions.
        ("<![CDATA[<plan/>]]>", ["0: text around the plan"]),
        ("<plan><![CDATA[ x ]]><function.f/></plan>", ["21: f", "6: CDATA between the steps"]),
        ("<plan><![CDATA[]]><!-- ]]> --></plan>", ["6: CDATA between the steps"]),
        ("<plan><!-- ]]> --><![CDATA[ x ]]></plan>", ["18: CDATA between the steps"]),
        ("<!ENTITYx><plan/>", ["0: text around the plan"]),
        ("<!<plan/>", ["0: text around the plan"]),
        ("<plan/><!", ["7: text around the plan"]),
        ("<?xml version='1.0'?><?XML?><plan/>", []),
        ("<?go?><plan><?xml?></plan>", ["0: a processing instruction", "12: a processing instruction"]),
        ("<? <plan/>", []),
        ("<?<plan/>", []),
        # Tags of functions.
        ("<plan>< Function.P.f /></plan>", ["6: P.f"]),
        ("<plan><function.f></function.f><function.g></function.g></plan>", ["6: f", "31: g"]),
        ("<plan><function.f></Function.F></plan>", ["6: f", "18: </Function.F> ends function.f"]),
        ("<plan><function.f></function\n></plan>", ["6: f", "18: </function> ends function.f"]),
        (
            "<plan><function.f></FUNCTION</plan>",
            ["6: f", "18: </FUNCTION> ends function.f", "18: </FUNCTION lacks its '>'"],
        ),
        ("<plan><function.f/> </function.F></plan>", ["6: f", "20: </function.F> ends what is closed"]),
        (
            "<plan><function.f><function.g></plan>",
            ["6: f", "18: g", "6: the tag of function.f is not closed", "18: the tag of function.g is not closed"],
        ),
        ("<plan><function.f><function.f/></plan>", ["6: f", "18: f", "6: the tag of function.f is not closed"]),
        (
            '<plan><function.f><function.f a="x"></plan>',
            ["6: f", "18: f a=x", "6: the tag of function.f is not closed", "18: the tag of function.f is not closed"],
        ),
        (
            "<plan><function.f><function.g></function></plan>",
            ["6: f", "18: g", "6: the tag of function.f is not closed", "30: </function> ends function.g"],
        ),
        (
            "<plan><P.f/><echo/></plan>",
            ["6: P.f", "12: echo", "6: P.f lacks 'function.'", "12: echo lacks 'function.'"],
        ),
        (
            '<plan><function.f a="say "hi" now"/><function.g/> x</plan>',
            ['6: f a=say "hi" now', "36: g", "25: a quote is not escaped", "50: text between the steps"],
        ),
        # Texts that are cut.
        ("<plan><function.f/>\n", ["6: f", "20: </plan> is missing"]),
        ("<plan><function.f/></ ", ["6: f", "22: </plan> is missing"]),
        ("<plan><function.f/></PLA", ["6: f", "24: </plan> is missing"]),
        ("<plan><function.f>", ["6: f", "6: the tag of function.f is not closed", "18: </plan> is missing"]),
        ("<plan><function.f><!--a-->", ["6: f", "6: the tag of function.f is not closed", "26: </plan> is missing"]),
        ("<plan><function.f/><!--end-->", ["6: f", "29: </plan> is missing"]),
        ("<plan><function.f/><!--a--><!--End-->", ["6: f", "37: </plan> is missing"]),
    ],
)
def test_what_has_one_reading_is_read_with_every_mend(text: str, said: list[str]) -> None:
    assert scanned(text) == said


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("", 1, "there is no <plan>"),
        ("x <!-- y", 9, "there is no <plan>"),
        ("x <y", 5, "there is no <plan>"),
        ("<!--><plan></plan>-->", 22, "there is no <plan>"),
        ("<goal>Do", 9, "there is no <plan>"),
        ("<think> x", 1, "<think> does not end"),
        ("</plan><plan/>", 1, "</plan> without a <plan>"),
        ("<plan></plan></plan>", 14, "</plan> without a <plan>"),
        ("<plan>x <b>y</b></plan>", 7, "the plan is of text and has no step"),
        ("<plan>\t", 8, "the text ends before the plan has a step"),
        ("x <plan> y", 11, "the text ends before the plan has a step"),
        ("<plan><function.f/><!--END--><!--a-->", 38, "the text ends after a comment, before the step that it is of"),
        ("<plan></plan><plan/>", 14, "a second plan"),
        ("<plan/><function.f/><plan/>", 8, "a function outside of the plan"),
        ("<plan><function.f/><plan></plan>", 20, "a plan inside of a plan"),
        ("<plan><function.f><plan></plan>", 19, "a plan inside of a plan"),
        ("<plan a/>", 7, "a in the plan has no value"),
        ("<plan", 6, "the text ends inside of the plan"),
        # Comments and declarations.
        ("<!-- x <PLAN></PLAN>", 1, "the comment does not end"),
        ("<plan><!--></plan>", 7, "the comment does not end"),
        ("<plan><!---></plan>", 7, "the comment does not end"),
        *(
            (f"<plan><!--{comment}--></plan>", 7, "where the comment ends is not certain: it has '--' and tags inside")
            for comment in (" -- <plan>", "<plan> -- ", "-- < / PLAN", "-- <FUNCTION.f", "-- <!--", "<!---")
        ),
        ("<!DOCTYPE plan><plan/>", 1, "a document type or an entity is refused"),
        ("<!entity x 'y'><plan/>", 1, "a document type or an entity is refused"),
        ("<plan><!x></plan>", 7, "a document type or an entity is refused"),
        *(
            (f"<plan>{section}", 7, "CDATA inside of the plan: it is not certain whether it is text or steps")
            for section in ("<![CDATA[<b>]]></plan>", "<![CDATA[ x </plan>", "<![CDATA[")
        ),
        (
            "<plan><function.f><![CDATA[ x ]]></function.f></plan>",
            19,
            "CDATA inside of the plan: it is not certain whether it is text or steps",
        ),
        ("<plan><?go></plan>", 7, "the processing instruction does not end"),
        # Functions.
        ("<function.f/><plan/>", 1, "a function outside of the plan"),
        ("</function.f><plan/>", 1, "the end of a function outside of the plan"),
        ("<plan/></function.f>", 8, "the end of a function outside of the plan"),
        ("<plan><function. /></plan>", 7, "a function without a name"),
        ("<plan><function.f", 7, "the text ends inside of a tag"),
        ("<plan><function.f ", 19, "the text ends inside of function.f"),
        ("<plan><function.f><Function.F></plan>", 19, "<Function.F> is a step, or an end tag without its '/'"),
        (
            "<plan><function.F><function.g></Function.f></plan>",
            31,
            "Function.f ends after another function began, which would be inside of it",
        ),
        ("<plan></function.f></plan>", 7, "</function.f> ends nothing"),
        ("<plan><function.f/></function.g></plan>", 20, "</function.g> ends nothing"),
        (
            "<plan><function.f/>x</function.f></plan>",
            21,
            "</function.f> ends what is closed, and there is text before it",
        ),
        ("<plan><function.f></function.g></plan>", 19, "</function.g> ends function.f"),
        ("<plan><function.f><goal>Do</goal></function.f></plan>", 19, "a goal inside of a function"),
        ("<plan><function.f> </function.f> x />", 36, "'/>' belongs to no tag"),
        ("<plan><function.f>  x</function.f></plan>", 21, "text inside of a function; its arguments are attributes"),
        (
            '<plan><function.f a="say "hi" now"/> x</plan>',
            26,
            "a quote is not escaped, and where the value ends is not certain",
        ),
        *((f"<plan> {odd}</plan>", 8, f"{odd!r} belongs to no tag") for odd in ("/>", '="', '">', "]]>", "-->")),
        # Other tags.
        ("<plan></if></plan>", 7, "</if> is no step; a step is <function.Plugin.Name …>"),
        ("<plan><P.g.h/></plan>", 7, "<P.g.h> is no step; a step is <function.Plugin.Name …>"),
        ("<plan><function/></plan>", 7, "<function> is no step; a step is <function.Plugin.Name …>"),
        ("<plan><function.f/></function></plan>", 20, "</function> is no step; a step is <function.Plugin.Name …>"),
        (f"<plan><{LONGEST}a></plan>", 7, f"<{LONGEST}> is no step; a step is <function.Plugin.Name …>"),
        ("<plan><function.f><b></function.f></plan>", 19, "<b> is no step; a step is <function.Plugin.Name …>"),
        ("<plan><b</plan>", 7, "<b> does not end"),
        ("<plan><b x></plan>", 7, "<b> does not end"),
        ("<plan><b ", 7, "<b> does not end"),
        # Texts that are cut inside of a tag.
        *(
            (f"<plan><function.f/>{cut}", 20, "the text ends inside of a tag")
            for cut in ("<", "< ", "<p", "</planx", "<function.f")
        ),
        *((f"<plan><function.f>{cut}", 19, "the text ends inside of a tag") for cut in ("<", "</")),
    ],
)
def test_what_may_be_read_in_two_ways_is_refused_at_its_place(text: str, column: int, says: str) -> None:
    with pytest.raises(PlanFormatError) as caught:
        scanned(text)
    assert str(caught.value) == f"line 1, column {column}: {says}."


def test_a_thousand_mends_and_a_thousand_steps_are_the_most() -> None:
    marks, steps = "<plan>" + "<b>" * 1_000, "<plan>" + "<function.f/>" * 1_000
    assert len(scanned(f"{marks}</plan>")) == len(scanned(f"{steps}</plan>")) == 1_000
    with pytest.raises(PlanFormatError, match="line 1, column 3007: more than 1,000 things to mend"):
        scanned(f"{marks}<b></plan>")
    with pytest.raises(PlanFormatError, match="line 1, column 13007: more than 1,000 steps"):
        scanned(f"{steps}<function.f/></plan>")
