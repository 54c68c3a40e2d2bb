"""Damaged plans, one of each kind: read as what was written, or refused with the exact place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from portico._functions.functions import FunctionSpec
from portico._plans.plan import From, Plan, Step, Value
from portico._plans.xml_form.reading import XmlPlan
from portico.errors import PlanFormatError


def call(id: str, function: str, /, reason: str = "", **arguments: Any) -> Step:
    """Make a step; a text is a value, everything else an expression."""
    return Step(
        id,
        function,
        {name: Value(given) if isinstance(given, str) else given for name, given in arguments.items()},
        reason=reason,
    )


def spec(name: str, *parameters: str) -> FunctionSpec:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    return FunctionSpec(name, "", {"type": "object", "properties": properties, "required": list(parameters)}, {})


CATALOGUE = {each.name: each for each in (spec("Writer-Poem", "input"), spec("Writer-Translate", "input", "language"))}
POEM = call("s1", "Writer-Poem", input="John Doe")


@dataclass(frozen=True)
class Recovered:
    """A damaged text that has one reading, what was mended, and where."""

    text: str
    steps: tuple[Step, ...]
    mends: tuple[tuple[int, int, str], ...]
    goal: str = ""
    catalogue: bool = False


@dataclass(frozen=True)
class Refused:
    """A damaged text that has more than one reading, or none, and the place where that shows."""

    text: str
    line: int
    column: int
    says: str


RECOVERED = {
    "unescaped quotes around a word": Recovered(
        '<plan>\n  <function.Writer.Poem input="a "nice" poem"/>\n</plan>',
        (call("s1", "Writer-Poem", input='a "nice" poem'),),
        ((2, 34, '" is not escaped'),),
    ),
    "JSON in a value": Recovered(
        '<plan><function.Writer.Poem input="{"about": "John", "lines": 4}"/></plan>',
        (call("s1", "Writer-Poem", input='{"about": "John", "lines": 4}'),),
        ((1, 37, '" is not escaped'),),
    ),
    "a quotation at both ends of a value": Recovered(
        '<plan><function.Writer.Poem input=""John" and "Jane"" setContextVariable="P"/></plan>',
        (call("P", "Writer-Poem", input='"John" and "Jane"'),),
        ((1, 36, '" is not escaped'),),
    ),
    "an apostrophe between single quotes": Recovered(
        "<plan><function.Writer.Poem input='it's John' /></plan>",
        (call("s1", "Writer-Poem", input="it's John"),),
        ((1, 38, "' is not escaped"),),
    ),
    "an unescaped angle bracket": Recovered(
        '<plan><function.Writer.Poem input="1 < 2 and <b>bold</b>"/></plan>',
        (call("s1", "Writer-Poem", input="1 < 2 and <b>bold</b>"),),
        ((1, 38, "< is not escaped"),),
    ),
    "missing end tags": Recovered(
        '<plan>\n<function.Writer.Poem input="John Doe">\n<function.Writer.Translate input="$INPUT">\n</plan>',
        (POEM, call("s2", "Writer-Translate", input=From("input"))),
        (
            (2, 39, "the tag of function.Writer.Poem is not closed"),
            (3, 42, "the tag of function.Writer.Translate is not closed"),
        ),
    ),
    "a missing end of the plan": Recovered(
        '<plan>\n<function.Writer.Poem input="John Doe"/>\n', (POEM,), ((3, 1, "</plan> is missing"),)
    ),
    "an end tag of the wrong case": Recovered(
        '<Plan><Function.Writer.Poem input="John Doe"></function.writer.poem></PLAN>',
        (POEM,),
        ((1, 48, "</function.writer.poem> ends <Function.Writer.Poem>"), (1, 71, "</PLAN> ends <Plan>")),
    ),
    "an end tag without the name": Recovered(
        '<plan><function.Writer.Poem input="John Doe"></function></plan>',
        (POEM,),
        ((1, 48, "</function> ends <function.Writer.Poem>"),),
    ),
    "text around in a code fence": Recovered(
        'Here you are:\n```xml\n<plan><function.Writer.Poem input="John Doe"/></plan>\n```\nGood luck!',
        (POEM,),
        ((1, 1, "text around the plan"), (4, 1, "text around the plan")),
    ),
    "text between the steps": Recovered(
        '<plan>First:\n<function.Writer.Poem input="John Doe"/> Done.</plan>',
        (POEM,),
        ((1, 7, "text between the steps"), (2, 42, "text between the steps")),
    ),
    "a thought before the answer": Recovered(
        '<think>Maybe <plan><function.A.B/></plan>?</think>\n<plan><function.Writer.Poem input="John Doe"/></plan>',
        (POEM,),
        ((1, 1, "text around the plan"),),
    ),
    "an attribute twice with one value": Recovered(
        '<plan><function.Writer.Poem input="John Doe" input="John Doe"/></plan>',
        (POEM,),
        ((1, 45, "input is there twice, with one value"),),
    ),
    "a section of CDATA around the plan": Recovered(
        '<![CDATA[<plan><function.Writer.Poem input="John Doe"/></plan>]]>',
        (POEM,),
        ((1, 1, "text around the plan"), (1, 63, "text around the plan")),
    ),
    "a byte order mark and control characters": Recovered(
        '\ufeff\x00<plan><function.Writer.Poem input="John Doe"/></plan>\x1b',
        (POEM,),
        ((1, 1, "text around the plan"), (1, 56, "text around the plan")),
    ),
    "an unknown function": Recovered(
        '<plan><function.Wirter.Peom input="John Doe"></plan>',
        (call("s1", "Wirter-Peom", input="John Doe"),),
        ((1, 45, "the tag of function.Wirter.Peom is not closed"),),
        catalogue=True,
    ),
    "unescaped ampersands": Recovered(
        '<plan><function.Writer.Poem input="Tom & Jerry &amp; AT&T; ?a=1&copy=2"/></plan>',
        (call("s1", "Writer-Poem", input="Tom & Jerry & AT&T; ?a=1&copy=2"),),
        ((1, 40, "& is not escaped"),),
    ),
    "a tag without its end": Recovered(
        '<plan>\n<function.Writer.Poem input="John Doe"\n<function.Writer.Poem input="Jane"/></plan>',
        (POEM, call("s2", "Writer-Poem", input="Jane")),
        ((2, 39, "the tag of function.Writer.Poem does not end"),),
    ),
    "an end of the plan that is cut": Recovered(
        '<plan>\n<function.Writer.Poem input="John Doe"/>\n</pl', (POEM,), ((3, 1, "</plan> is missing"),)
    ),
    "an end tag too many": Recovered(
        '<plan><function.Writer.Poem input="John Doe"/></function.Writer.Poem></plan>',
        (POEM,),
        ((1, 47, "</function.Writer.Poem> ends what is closed"),),
    ),
    "the name of the tag in prose": Recovered(
        'This is the <plan>:\n<plan><function.Writer.Poem input="John Doe"/></plan>',
        (POEM,),
        ((1, 1, "text around the plan"),),
    ),
    "the same plan twice": Recovered(
        '<plan><function.Writer.Poem input="John Doe"/></plan>\n' * 2, (POEM,), ((2, 1, "the same plan again"),)
    ),
    "words without quotes": Recovered(
        "<plan><function.Writer.Translate input=$INPUT language=Chinese/></plan>",
        (call("s1", "Writer-Translate", input=From("input"), language="Chinese"),),
        ((1, 40, "the value of input has no quotes"), (1, 56, "the value of language has no quotes")),
    ),
    "typographic quotes": Recovered(
        "<plan><function.Writer.Poem input=“John Doe”/></plan>", (POEM,), ((1, 35, "typographic quotes"),)
    ),
    "commas, and no space between attributes": Recovered(
        '<plan><function.Writer.Translate input="a", language="b"setContextVariable="P" / ></plan>',
        (call("P", "Writer-Translate", input="a", language="b"),),
        (
            (1, 43, "a comma between attributes"),
            (1, 57, "no space between two attributes"),
            (1, 80, "a space between '/' and '>'"),
        ),
    ),
    "dashes in a comment": Recovered(
        '<plan><!-- first -- the poem --><function.Writer.Poem input="John Doe"/></plan>',
        (call("s1", "Writer-Poem", reason="first — the poem", input="John Doe"),),
        ((1, 18, "'--' inside a comment"),),
    ),
    "a processing instruction and words": Recovered(
        '<?xml version="1.0"?>\n<plan><?go on?>now <function.Writer.Poem input="John Doe"/></plan>',
        (POEM,),
        ((2, 7, "<?go on?> between the steps"), (2, 16, "text between the steps")),
    ),
    "marks of formatting": Recovered(
        '<plan><p><function.Writer.Poem input="John Doe"/><br></plan>',
        (POEM,),
        ((1, 7, "<p> between the steps"), (1, 50, "<br> between the steps")),
    ),
    "a function without its prefix": Recovered(
        '<plan><Writer.Poem input="John Doe"/><b></plan>',
        (POEM,),
        ((1, 8, "Writer.Poem lacks 'function.'"), (1, 38, "<b> between the steps")),
        catalogue=True,
    ),
    "a function without its prefix, with its end tag": Recovered(
        '<plan><Writer.Poem input="John Doe"></writer.poem></plan>',
        (POEM,),
        ((1, 8, "Writer.Poem lacks 'function.'"), (1, 39, "</writer.poem> ends <function.Writer.Poem>")),
        catalogue=True,
    ),
    "a goal around the plan": Recovered(
        '<goal>Write & sing <plan><function.Writer.Poem input="John Doe"/></plan>',
        (POEM,),
        ((1, 13, "& is not escaped"), (1, 20, "</goal> is missing")),
        goal="Write & sing",
    ),
}

REFUSED = {
    "text like attributes in a value": Refused(
        '<plan>\n<function.A.B text="say "hi" a="b" now"/></plan>',
        2,
        25,
        "a quote is not escaped, and where the value ends is not certain",
    ),
    "a value without its last quote": Refused(
        '<plan><function.A.B a="x b="y"/></plan>',
        1,
        28,
        "a quote is not escaped, and where the value ends is not certain",
    ),
    "a value that swallows the next step": Refused(
        '<plan>\n<function.A.B a="x/>\n<function.C.D b="y"/></plan>',
        3,
        17,
        "a quote is not escaped, and where the value ends is not certain",
    ),
    "HTML with quotes in a value": Refused(
        '<plan><function.A.B html="<a href="x">y</a>"/></plan>',
        1,
        35,
        "a quote is not escaped, and where the value ends is not certain",
    ),
    "one quote in a value": Refused(
        '<plan><function.A.B size="5" tall" b="c"/></plan>',
        1,
        28,
        "a quote is not escaped, and where the value ends is not certain",
    ),
    "quotes with backslashes": Refused(
        '<plan><function.A.B a="say \\"hi\\" now"/></plan>',
        1,
        29,
        "a quote is not escaped, and where the value ends is not certain",
    ),
    "an attribute twice with two values": Refused(
        '<plan><function.A.B a="x" a="y"/></plan>', 1, 27, "not XML: duplicate attribute"
    ),
    "one argument in two cases": Refused(
        '<plan><function.A.B a="x" A="y"/></plan>', 1, 7, "a and A are one argument with two values"
    ),
    "two words without quotes": Refused(
        "<plan><function.A.B a=New York/></plan>",
        1,
        20,
        'the tag of function\\.A\\.B does not go on with attribute="value" and does not end',
    ),
    "a path without quotes": Refused(
        "<plan><function.A.B a=x/y/></plan>",
        1,
        20,
        'the tag of function\\.A\\.B does not go on with attribute="value" and does not end',
    ),
    "CDATA in a value": Refused(
        '<plan><function.A.B a="<![CDATA[x]]>"/></plan>',
        1,
        23,
        "the value has <!\\[CDATA\\[ inside: '<' is not escaped, or the last quote is missing",
    ),
    "steps in CDATA": Refused(
        '<plan><![CDATA[<function.A.B a="x"/>]]></plan>',
        1,
        7,
        '<!\\[CDATA\\[<function\\.A\\.B a="x"/> is no step; a step is <function\\.Plugin\\.Name …>',
    ),
    "text inside of a function": Refused(
        "<plan><function.A.B>text</function.A.B></plan>",
        1,
        25,
        "</function\\.A\\.B> is no step; a step is <function\\.Plugin\\.Name …>",
    ),
    "a function inside of another": Refused(
        '<plan><function.A.B a="x"><function.C.D a="y"/></function.A.B></plan>',
        1,
        48,
        "</function\\.A\\.B> is no step; a step is <function\\.Plugin\\.Name …>",
    ),
    "an end tag of another function": Refused(
        "<plan>\n<function.A.B></function.C.D>\n</plan>",
        2,
        15,
        "</function\\.C\\.D> is no step; a step is <function\\.Plugin\\.Name …>",
    ),
    "a branch": Refused(
        '<plan>\n <if condition="x"><function.A.B/></if></plan>',
        2,
        2,
        '<if condition="x"> is no step; a step is <function\\.Plugin\\.Name …>',
    ),
    "a function outside": Refused(
        "<plan><function.A.B/></plan><function.C.D/>", 1, 29, "<function\\. outside the plan"
    ),
    "no plan around the functions": Refused("Do\n<function.C.D/>", 2, 16, "there is no <plan>"),
    "two plans": Refused("<plan><function.A.B/></plan>\n<plan />", 2, 1, "<plan outside the plan"),
    "a plan of prose": Refused("<plan>\nFirst do this.</plan>", 1, 7, "the plan is of text and has no step"),
    "no plan": Refused("I cannot\ndo that.", 2, 9, "there is no <plan>"),
    "nothing": Refused("", 1, 1, "there is no <plan>"),
    "cut inside of a value": Refused('<plan>\n<function.A.B/>\n<function.C.D a="x', 3, 17, "the value does not end"),
    "cut inside of a tag": Refused(
        "<plan>\n<function.A.B/>\n<func", 3, 1, "<func> is no step; a step is <function\\.Plugin\\.Name …>"
    ),
    "cut after an attribute": Refused(
        '<plan><function.A.B a="x" ', 1, 25, "a quote is not escaped, and where the value ends is not certain"
    ),
    "cut before the first step": Refused("<plan>\n", 2, 1, "the text ends before the plan does"),
    "cut inside of a comment": Refused("<plan><function.A.B/><!-- then", 1, 31, "the text ends before the plan does"),
    "a document type": Refused(
        '<!DOCTYPE plan [<!ENTITY x SYSTEM "file:///x">]><plan><function.A.B a="&x;"/></plan>',
        1,
        1,
        "<!DOCTYPE outside the plan",
    ),
    "a name of HTML": Refused(
        '<plan><function.A.B a="a&nbsp;b"/></plan>', 1, 25, "&nbsp; is no name that XML has, or '&' is not escaped"
    ),
    "an ampersand's name without its end": Refused(
        '<plan><function.A.B a="a &amp b"/></plan>', 1, 26, "&amp is no name that XML has, or '&' is not escaped"
    ),
    "a character that XML does not have": Refused(
        '<plan><function.A.B a="&#0;"/></plan>', 1, 24, "not XML: reference to invalid character number"
    ),
    "half of a surrogate pair": Refused('<plan><function.A.B a="\ud800"/></plan>', 1, 24, "half of a surrogate pair"),
    "words that belong to a tag": Refused('<plan><function.A.B a="x"/> b="y"/></plan>', 1, 30, "'=' belongs to no tag"),
    "an attribute without a value": Refused(
        '<plan><function.A.B a b="y"/></plan>',
        1,
        20,
        'the tag of function\\.A\\.B does not go on with attribute="value" and does not end',
    ),
    "a value that ends like a tag, and what follows": Refused(
        '<plan><function.A.B a="x"/>, y"></function.A.B></plan>', 1, 31, "'\"' belongs to no tag"
    ),
    "text between a closed tag and its end tag": Refused(
        '<plan><function.A.B a="x"/>and more</function.A.B></plan>',
        1,
        36,
        "</function\\.A\\.B> is no step; a step is <function\\.Plugin\\.Name …>",
    ),
    "an end tag without its slash, which would be a step": Refused(
        '<plan><function.A.B a="x"><function.A.B></plan>',
        1,
        27,
        "<function\\.A\\.B> is a step, or an end tag without its '/'",
    ),
    "a quote lost in the name of a variable": Refused(
        "<plan><function.A.B setContextVariable='A b='x' c=y'/></plan>",
        1,
        45,
        "a quote is not escaped, and where the value ends is not certain",
    ),
    "a backslash before a quote that a comma follows": Refused(
        '<plan>text<function.A.B a="C:\\", b=""/></plan>',
        1,
        31,
        "a quote is not escaped, and where the value ends is not certain",
    ),
    "a value that ends in an equals sign, and no space": Refused(
        '<plan><function.A.B a="x b="c=""/></plan>',
        1,
        28,
        "a quote is not escaped, and where the value ends is not certain",
    ),
    "a misspelt entity": Refused(
        '<plan><function.A.B a="&qot;x&quot;"/></plan>', 1, 24, "&qot; is no name that XML has, or '&' is not escaped"
    ),
    "an entity in capitals": Refused(
        '<plan><function.A.B a="a &aMP; b"/></plan>', 1, 26, "&aMP; is no name that XML has, or '&' is not escaped"
    ),
    "a comment that no step follows": Refused(
        '<plan><function.A.B a="x"/>\n<!-- then the mail -->\n', 3, 1, "the text ends before the plan does"
    ),
    "a bracket at the end": Refused(
        '<plan><function.A.B a="x"/>\n<', 2, 1, "<> is no step; a step is <function\\.Plugin\\.Name …>"
    ),
    "an end tag of one of two, cut": Refused(
        '<plan><function.A.B a="x"></', 1, 27, "</> is no step; a step is <function\\.Plugin\\.Name …>"
    ),
    "a misspelt variable inside of a text": Refused(
        '<plan><function.A.B setContextVariable="POEM"/>\n<function.A.B a="About $PEOM."/></plan>',
        2,
        15,
        "there is no variable \\$PEOM; nearest: POEM",
    ),
    "a variable that nothing sets": Refused(
        '<plan>text\n<function.A.B a="$POEM"/></plan>', 2, 15, "there is no variable \\$POEM; there are: input"
    ),
    "a variable that is set later": Refused(
        '<plan>text\n<function.A.B a="on $X"/><function.A.B setContextVariable="X"/></plan>',
        2,
        15,
        "\\$X is set only by this step or a later one",
    ),
}


@pytest.mark.parametrize("case", RECOVERED.values(), ids=RECOVERED.keys())
def test_what_has_one_reading_is_recovered_exactly(case: Recovered) -> None:
    catalogue = CATALOGUE if case.catalogue else None
    read = XmlPlan.read(case.text, catalogue, recover=True)
    assert read.plan == Plan(case.goal, case.steps, From(case.steps[-1].id))
    assert tuple((mend.line, mend.column, mend.what) for mend in read.recovered) == case.mends
    with pytest.raises(PlanFormatError) as caught:
        XmlPlan.read(case.text, catalogue)
    assert caught.value.line is not None, "without recovery it is an error, with its place"


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_what_has_no_one_reading_is_refused_with_the_place(case: Refused) -> None:
    with pytest.raises(PlanFormatError, match=case.says) as caught:
        XmlPlan.read(case.text, recover=True)
    assert (caught.value.line, caught.value.column) == (case.line, case.column), str(caught.value)
    assert str(caught.value).startswith(f"line {case.line}, column {case.column}: ")
