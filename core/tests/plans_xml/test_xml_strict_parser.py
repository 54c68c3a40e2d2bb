"""What the strict parser makes of a text: the goal and the calls as they are written, or the refusal with its place."""

from __future__ import annotations

import pytest

from portico._plans.xml_form.document import Document
from portico.errors import PlanFormatError

LONGEST = "a" * 60


def parsed(text: str) -> list[str]:
    """Say what is read: the goal, and each call with its offset, its attributes and its reason."""
    document = Document(text)
    calls, goal = document.parse()
    said = [] if goal == "" else [f"goal: {goal}"]
    for call in calls:
        line, column = document.place(call)
        offset = sum(len(each) + 1 for each in text.split("\n")[: line - 1]) + column - 1
        given = "".join(f" {name}={value}" for name, value in call.attributes.items())
        said.append(f"{offset}: {call.function}{given}" + (f" # {call.reason}" * (call.reason != "")))
    return said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<plan/>", []),
        (" \n<PLAN>\t</PLAN> ", []),
        ("<plan><function.f/><FUNCTION.P.g a='1' b='2'> </FUNCTION.P.g></plan>", ["6: f", "19: P.g a=1 b=2"]),
        ("<goal>日本</goal><plan>\n<function.f/></plan>", ["goal: 日本", "22: f"]),
        # A declaration and a byte order mark keep their places.
        ("\ufeff<plan><function.f/></plan>", ["7: f"]),
        ("<?xml version='1.0'?><plan><function.f/></plan>", ["27: f"]),
        ("\ufeff\n<?xml version='1.0' \nencoding='x'?>\n<plan><function.f/></plan>", ["44: f"]),
        # Goals: the texts of all, without the white space around.
        ("<Goal> a &lt; b </Goal><plan/>", ["goal: a < b"]),
        ("<goal>a<plan/>b</goal>", ["goal: ab"]),
        ("<goal><xml/>a</goal><goal>b</goal><plan/>", ["goal: ab"]),
        ("<xml><goal>a</goal><plan/></xml>", ["goal: a"]),
        ("<goal>a<plan><function.f/></plan></goal>", ["goal: a", "13: f"]),
        # Comments: those in the plan before a step are its reason.
        (
            "<!--a--><plan><!-- b\n c --><!-- --><!--d--><function.f/><!--e--><function.g/><!--f--></plan><!--g-->",
            ["43: f # b\n c\nd", "64: g # e"],
        ),
        ("<plan><function.f><!--a--></function.f><function.g/></plan>", ["6: f", "39: g"]),
        # The elements around a plan.
        ("<xml>" * 7 + "<plan/>" + "</xml>" * 7, []),
        ("<xml></xml>" * 9 + "<plan/>", []),
    ],
)
def test_a_well_formed_plan_is_read_as_it_is_written(text: str, said: list[str]) -> None:
    assert parsed(text) == said


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("", 1, "there is no <plan>"),
        ("<goal>a</goal>", 15, "there is no <plan>"),
        ("<plan/> <plan/>", 9, "a second <plan>"),
        ("<plan><plan/></plan>", 7, "<plan> is no step; a step is <function.Plugin.Name …>"),
        ("<plan><function/></plan>", 7, "<function> is no step; a step is <function.Plugin.Name …>"),
        (f"<plan><{LONGEST}/></plan>", 7, f"<{LONGEST}> is no step; a step is <function.Plugin.Name …>"),
        (f"<plan><{LONGEST}a/></plan>", 7, f"<{LONGEST}> is no step; a step is <function.Plugin.Name …>"),
        ("<plan><function.f><function.g/></function.f></plan>", 19, "<function.g> is inside a function"),
        (
            f"<plan><function.f><function.{LONGEST}/></function.f></plan>",
            19,
            f"<function.{LONGEST[:51]}> is inside a function",
        ),
        ("<plan/><div/>", 8, "<div> is not of a plan"),
        (f"<{LONGEST}a/>", 1, f"<{LONGEST}> is not of a plan"),
        ("<function.f/><plan/>", 1, "<function.f> is not of a plan"),
        ("<xml>" * 8 + "<plan/>" + "</xml>" * 8, 36, "elements deeper than 8 levels"),
        ("<xml>" * 3 + "<xml/>" + "<goal>" * 5, 46, "elements deeper than 8 levels"),
        ("<goal>a</goal> b<plan/>", 16, "text around the plan"),
        ("<GOAL>a</GOAL>b<plan/>", 15, "text around the plan"),
        ("<goal>a</goal><plan>  b</plan>", 23, "text between the steps"),
        ("<goal>a<plan>b</plan></goal>", 14, "text between the steps"),
        ("<plan><function.f> \t&lt;</function.f></plan>", 21, "text inside a function; its arguments are attributes"),
        ("<!doctype plan><plan/>", 1, "a document type is refused"),
        ("é<!DOCTYPE plan><plan/>", 1, "text around the plan"),
        ("<plan><!DOCTYPE x></plan>", 7, "a document type is refused"),
        ("<plan a='1' a='2'/>", 13, "not XML: duplicate attribute"),
        ("<plan><function.f></plan>", 21, "not XML: mismatched tag"),
        ("<plan/> b", 9, "text around the plan"),
        ("<plan/><!-- x", 8, "not XML: unclosed token"),
        ("<plan/><goal a='", 17, "the text ends before the plan does"),
        ("<plan", 6, "the text ends before the plan does"),
        ("<plan>", 7, "the text ends before the plan does"),
        ("<plan><function.f a='日\ud800'/></plan>", 23, "half of a surrogate pair"),
    ],
)
def test_anything_else_is_refused_at_its_place(text: str, column: int, says: str) -> None:
    with pytest.raises(PlanFormatError) as caught:
        parsed(text)
    assert str(caught.value) == f"line 1, column {column}: {says}."


def test_a_thousand_steps_are_the_most() -> None:
    steps = "<plan>" + "<function.f/>" * 1_000
    assert len(parsed(f"{steps}</plan>")) == 1_000
    with pytest.raises(PlanFormatError, match="line 1, column 13007: more than 1,000 steps"):
        parsed(f"{steps}<function.f/></plan>")


@pytest.mark.parametrize(("text", "cause"), [("<plan>", "ExpatError"), ("<plan>\ud800</plan>", "UnicodeEncodeError")])
def test_what_the_parser_said_is_the_cause(text: str, cause: str) -> None:
    with pytest.raises(PlanFormatError) as caught:
        parsed(text)
    assert type(caught.value.__cause__).__name__ == cause
