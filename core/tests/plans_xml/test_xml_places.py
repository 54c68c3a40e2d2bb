"""Where things stand in a plan's text: lines and columns, thoughts, goals, and the attributes of a call."""

from __future__ import annotations

import pytest

from portico._plans.xml_form.lenient import attribute_offset
from portico._plans.xml_form.reading import XmlPlan
from portico._plans.xml_form.tags import Mend, end_of_goal, end_of_thoughts, format_error, places, words_of
from portico.errors import PlanFormatError


def fail(offset: int, problem: str) -> PlanFormatError:
    return PlanFormatError(f"{offset}: {problem}")


@pytest.mark.parametrize("text", ["", "ab", "\n", "é\n\nab\nc\n", "\n\n\n日本", "a\r\nb\u2028c\rd"])
def test_a_place_is_counted_from_one_by_line_feeds(text: str) -> None:
    expected = {
        offset: (before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)
        for offset, before in ((offset, text[:offset]) for offset in range(len(text) + 1))
    }
    for some in (expected, [0, *expected, len(text)], [*expected][1::2], [*expected][::3], [len(text)] * 2, []):
        offsets = sorted(some)
        assert places(text, iter(offsets)) == [expected[offset] for offset in offsets]


@pytest.mark.parametrize(("offset", "line", "column"), [(0, 1, 1), (3, 2, 1), (5, 2, 3), (6, 2, 3), (10**9, 2, 3)])
def test_an_error_has_its_place_which_is_inside_of_the_text(offset: int, line: int, column: int) -> None:
    error = format_error("ab\ncd", offset, "it is wrong")
    assert (str(error), error.line, error.column) == (f"line {line}, column {column}: it is wrong.", line, column)


def test_what_is_mended_is_printed_with_its_place() -> None:
    assert str(Mend(2, 14, "'&' is not escaped")) == "line 2, column 14: '&' is not escaped"


@pytest.mark.parametrize(
    ("thoughts", "answer"),
    [
        ("<think>a <plan/> is</think>", "<plan/></think>"),
        ("<Thinking>\n</think></THINKING>", "x"),
        ("<reasoning></reasoning>", ""),
    ],
)
@pytest.mark.parametrize("blank", ["", " \n"])
def test_thoughts_end_where_they_say(blank: str, thoughts: str, answer: str) -> None:
    assert end_of_thoughts(f"{blank}{thoughts}{answer}", fail) == (len(blank), len(blank) + len(thoughts))


@pytest.mark.parametrize("text", ["", "<plan/><think></think>", "So: <think></think>", "<thinks></thinks>"])
def test_thoughts_are_at_the_beginning(text: str) -> None:
    assert end_of_thoughts(text, fail) is None


@pytest.mark.parametrize("text", ["\n<Think>a </thinking><plan/>", "\n<Think>"])
def test_thoughts_without_an_end_are_refused(text: str) -> None:
    with pytest.raises(PlanFormatError) as caught:
        end_of_thoughts(text, fail)
    assert str(caught.value) == "1: <Think> does not end"


@pytest.mark.parametrize(
    ("goal", "after"),
    [
        ("Say it", "</goal><plan/></goal>"),
        ("Say <it> & <plant>", "</ GOAL >"),
        ("Say\nit ", "<PLAN><goal></goal>"),
        ("", "<plan/>"),
        ("Say it", ""),
    ],
)
def test_a_goal_ends_at_its_end_tag_or_its_plan(goal: str, after: str) -> None:
    before = "</goal><plan><goal>"
    assert end_of_goal(f"{before}{goal}{after}", len(before)) == len(before) + len(goal)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n a &lt;b&gt; &quot;c&quot; &apos;d&apos; &amp; e\n", "a <b> \"c\" 'd' & e"),
        ("&amp;lt; &amp;amp;", "&lt; &amp;"),
        ("AT&T &nbsp; &#65; &LT;", "AT&T &nbsp; &#65; &LT;"),
    ],
)
def test_the_words_of_a_goal_are_for_people(text: str, words: str) -> None:
    assert words_of(text) == words


def offset_of(tag: str, argument: str) -> int | None:
    """Return where an argument stands after the beginning of a tag that is between two others."""
    before, after = '<plan b="0"><!-- x="1" -->', '<function.g last="2"/></plan>'
    found = attribute_offset(f"{before}{tag}{after}", len(before), argument, {})
    return None if found is None else found - len(before)


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("a", "a "),
        ("B.c", "B.c"),
        ("b.C", "B.c"),
        ("x", None),
        ("last", None),
        ("function.f", None),
        ("Größe", "Größe"),
    ],
)
def test_an_argument_is_where_its_name_begins(argument: str, name: str | None) -> None:
    tag = """<function.f a = 'x="3" B.c="4"'\n B.c="a='5'" Größe="6"\tempty="">"""
    at = None if name is None else tag.index(f"\n {name}") + 2 if name == "B.c" else tag.index(name, 12)
    assert offset_of(tag, argument) == at


def test_of_two_names_the_one_in_the_same_case_is_meant() -> None:
    tag = '<function.f city="1" City="1" CITY="1"/>'
    for name in ("city", "City", "CITY"):
        assert offset_of(tag, name) == tag.index(name)
    assert offset_of(tag, "cITY") == tag.index("city"), "or the first"
    assert offset_of(tag, "SS") is None
    assert offset_of('<function.f ß="1"/>', "ss") is None


def test_in_a_mended_tag_attributes_are_where_the_scanner_finds_them() -> None:
    tag = """<function.f c=2 d=“3” a="say "it" now" b="$nothing"/>"""
    with pytest.raises(PlanFormatError, match=f"line 2, column {tag.index('b=') + 1}: there is no variable"):
        XmlPlan.read(f"<plan>\n{tag}</plan>", recover=True)


def test_where_no_tag_begins_there_is_no_attribute() -> None:
    assert offset_of(' a="1"', "a") is None
