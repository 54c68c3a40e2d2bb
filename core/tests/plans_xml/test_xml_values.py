"""The text between two quotes: what XML makes of it, what is mended in it, and what is refused with its place."""

from __future__ import annotations

import pytest

from portico._plans.xml_form.tags import read_value
from portico.errors import PlanFormatError

BEFORE = '<plan>&nbsp;<function.f b="&"/><function.f a="'
AFTER = '"/>&lt;<![CDATA[<function.g/></plan>'
UNESCAPED = "'&' is not escaped"
BRACKET = "'<' is not escaped"
CONTROL = "a control character stands in a value"
UNCERTAIN_NUMBER = "'&#' is neither a character's number with a ';' nor an escaped '&'"
STEP_INSIDE = "the value has a step inside; its last quote is missing, or '<' is not escaped"

Mends = list[tuple[int, str]]


def read(value: str, before: str = BEFORE, after: str = AFTER) -> tuple[str, Mends]:
    """Read a value that stands in a text; the mends are counted from where the value begins."""
    mends: Mends = []
    start = len(before)

    def fail(offset: int, problem: str) -> PlanFormatError:
        return PlanFormatError(f"{offset - start}: {problem}")

    got = read_value(f"{before}{value}{after}", start, start + len(value), mends, fail)
    return got, [(offset - start, what) for offset, what in mends]


@pytest.mark.parametrize(
    ("value", "read_as"),
    [
        ("", ""),
        ("it's “plain” > é 🧦", "it's “plain” > é 🧦"),
        ("&lt;b&gt; &amp; &quot;x&quot; &apos;y&apos;", "<b> & \"x\" 'y'"),
        ("&amp;lt;", "&lt;"),
        ("&#38;lt;", "&lt;"),
        ("&#60;&#x3C;&#x3c;", "<<<"),
        ("&#0000065;&#x000041;", "AA"),
        ("a\tb\nc\rd\r\ne\r\r\n", "a b c d e  "),
        ("&#9;&#10;&#13;", "\t\n\r"),
    ],
)
def test_what_is_well_formed_is_read_as_xml_says(value: str, read_as: str) -> None:
    assert read(value) == (read_as, [])


@pytest.mark.parametrize(
    ("value", "mends"),
    [
        ("&", [(0, UNESCAPED)]),
        ("a & b", [(2, UNESCAPED)]),
        ("AT&T; R&D;", [(2, UNESCAPED)]),
        ("?a=1&copy=2&amp=3", [(4, UNESCAPED)]),
        ("?a=1&copy", [(4, UNESCAPED)]),
        ("&nbsp &x", [(0, UNESCAPED)]),
        # One letter is one from the name of many, and "gt" is told from "g" by its ';' alone.
        ("&g;", [(0, UNESCAPED)]),
        ("&gr", [(0, UNESCAPED)]),
        ("&quick; &notthis;", [(0, UNESCAPED)]),
        ("1 < 2", [(2, BRACKET)]),
        ("<b>x</b>", [(0, BRACKET)]),
        ("<planet> </plan.x> <functional> <function>", [(0, BRACKET)]),
        ("a\x00b\x08\x0b\x0c\x0e\x1f", [(1, CONTROL)]),
        ("\x1b < & < &", [(0, CONTROL), (2, BRACKET), (4, UNESCAPED)]),
    ],
)
def test_what_is_not_escaped_stays_and_is_told_once_for_each_kind(value: str, mends: Mends) -> None:
    assert read(value) == (value, mends)


def test_what_is_escaped_stands_beside_what_is_not() -> None:
    assert read("&lt;a&b&#38;\nc<d&amp;") == ("<a&b& c<d&", [(5, UNESCAPED), (14, BRACKET)])


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("&#;", f"0: {UNCERTAIN_NUMBER}"),
        ("a&#12", f"1: {UNCERTAIN_NUMBER}"),
        ("&#xG;", f"0: {UNCERTAIN_NUMBER}"),
        ("&#00000065;", f"0: {UNCERTAIN_NUMBER}"),
        ("&#x0000041;", f"0: {UNCERTAIN_NUMBER}"),
        ("a &amp b", "2: &amp has no ';': it is either '&' or '&' and a word"),
        ("&quot", "0: &quot has no ';': it is either '\"' or '&' and a word"),
        ("a&nbsp;b", "1: &nbsp; is HTML's name of a character, or a text that is not escaped"),
        ("&AMP;", "0: &AMP; is HTML's name of a character, or a text that is not escaped"),
        ("&Amp;", "0: &Amp; is &amp; or a text that is not escaped"),
        (" &qout;", "1: &qout; is &quot; or a text that is not escaped"),
        ("&gr;", "0: &gr; is &gt; or a text that is not escaped"),
        ("&lr;", "0: &lr; is &lt; or a text that is not escaped"),
        ("&APO;", "0: &APO; is &apos; or a text that is not escaped"),
        ("x<![CDATA[y]]>", "1: CDATA inside of a value"),
        ("x\ud800", "1: half of a surrogate pair"),
        ("\udfff", "0: half of a surrogate pair"),
        ("x/>\n<function.C.D b=", f"-1: {STEP_INSIDE}"),
        ("x < / FUNCTION.f", f"-1: {STEP_INSIDE}"),
        ("x</function.f>", f"-1: {STEP_INSIDE}"),
        ("x\n</plan>", f"-1: {STEP_INSIDE}"),
        ("& <Plan a", f"-1: {STEP_INSIDE}"),
        ("<plan/>", f"-1: {STEP_INSIDE}"),
    ],
)
def test_what_may_be_meant_in_two_ways_is_refused_with_the_place(value: str, says: str) -> None:
    with pytest.raises(PlanFormatError) as caught:
        read(value)
    assert str(caught.value) == says


CHARACTERS = [9, 10, 13, 0x20, 0x21, 0xD7FF, 0xE000, 0xFFFD, 0x10000, 0x10FFFF]
NO_CHARACTERS = [0, 8, 11, 12, 14, 0x1F, 0xD800, 0xDFFF, 0xFFFE, 0xFFFF, 0x110000, 0x98967F]


@pytest.mark.parametrize("reference", ["&#{:d};", "&#x{:x};", "&#x{:X};"])
def test_a_reference_by_number_is_to_a_character_of_xml(reference: str) -> None:
    for code in CHARACTERS:
        assert read(reference.format(code)) == (chr(code), []), hex(code)
    for code in NO_CHARACTERS:
        with pytest.raises(PlanFormatError) as caught:
            read(f"a{reference.format(code)}")
        assert str(caught.value) == f"1: {reference.format(code)} is no character of XML", hex(code)


@pytest.mark.parametrize(
    ("value", "after", "read_as"),
    [("a&", "lt;", "a&"), ("a&l", "t;", "a&l"), ("a\r", "\n", "a "), ("<plan", ">", "<plan"), ("a", "&lt;", "a")],
)
def test_what_follows_a_value_is_not_read(value: str, after: str, read_as: str) -> None:
    assert read(value, after=after)[0] == read_as
