"""Random damage: the scanner never crashes, hangs, or gives a step or a value that is not in the text."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from portico._plans.plan import From, Plan, Step, TextOf, Value
from portico._plans.xml_form.reading import XmlPlan
from portico.errors import PlanFormatError

VALUES = ["x", "two words", "it's", "3", "$A", "on $A!", "$input", "a/b", "a=b", "", "Ünï", "say &quot;hi&quot;"]
ENTITY = re.compile("&(?:quot|lt|gt|amp|apos|#[0-9]+|#x[0-9A-Fa-f]+);")


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Draw a plan's text as models write it, well-formed but for what values hold."""
    lines = []
    for number in range(draw(st.integers(1, 3))):
        attributes = [
            f'{name}="{draw(st.sampled_from(VALUES)) if number else draw(st.sampled_from(VALUES[:4]))}"'
            for name in draw(st.lists(st.sampled_from(["input", "text", "n"]), unique=True, max_size=2))
        ]
        attributes.append(f'setContextVariable="{"ABC"[number]}"')
        if draw(st.booleans()):
            lines.append("<!-- because it's so -->")
        gap = draw(st.sampled_from([" ", "\n    "]))
        lines.append(f"<function.P.f{number}{gap}{gap.join(attributes)}{draw(st.sampled_from(['/>', ' />']))}")
    around = draw(st.sampled_from([("", ""), ("Here:\n```xml\n", "\n```"), ("<goal>Do it</goal>\n", "\n<!-- END -->")]))
    return f"{around[0]}<plan>\n" + "\n".join(lines) + f"\n</plan>{around[1]}"


PIECES = st.sampled_from(
    [*"<>/\"'=& \n-!?$;,.“”", "<plan>", "</plan>", "<function.P.g", "/>", "<!--", "-->", "]]>", "x"]
)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Draw a document with some characters deleted, doubled, replaced or added, or cut."""
    text = draw(documents())
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(text)))
        match draw(st.sampled_from(["delete", "double", "replace", "add", "cut"])):
            case "delete":
                text = text[:place] + text[place + 1 :]
            case "double":
                text = text[: place + 1] + text[place:]
            case "replace":
                text = text[:place] + draw(PIECES | st.characters()) + text[place + 1 :]
            case "add":
                text = text[:place] + draw(PIECES) + text[place:]
            case _:
                text = text[:place]
    return text


def recovered(text: str) -> XmlPlan | None:
    """Read a text; None where it is refused, which must be with a place inside of it."""
    try:
        return XmlPlan.read(text, recover=True)
    except PlanFormatError as error:
        assert error.line is not None
        assert error.column is not None
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
        return None


def strictly(text: str) -> Plan | None:
    try:
        return XmlPlan.read(text).plan
    except PlanFormatError:
        return None


def assert_is_in(text: str, plan: Plan) -> None:
    """Hold that every function, argument and value of the plan stands in the text, in its order."""
    position = 0
    for step in plan.steps:
        assert isinstance(step.function, str)
        # Damage may put a hyphen into a name: which of them was the dot is not told.
        spelled = re.compile(r"\." + re.escape(step.function).replace(r"\-", "[-.]"))
        found = spelled.search(text, position)
        assert found, f"{step.function} is not in the text after {position}"
        position = found.start()
        for argument, expression in step.arguments.items():
            assert text.find(argument, position) >= 0, argument
            parts = expression.parts if isinstance(expression, TextOf) else (expression,)
            for part in parts:
                assert_part_is_in(text[position:], part)


def assert_part_is_in(text: str, part: Any) -> None:
    if isinstance(part, From):
        assert "$" in text
        return
    words = part.value if isinstance(part, Value) else part
    decoded = re.sub("[\t\n\r]", " ", text.replace("\r\n", "\n"))
    if words not in decoded:
        for entity, character in (("&quot;", '"'), ("&apos;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
            decoded = decoded.replace(entity, character)
        assert words in decoded, f"{words!r} is not in the text"


@pytest.mark.fuzz
@given(damaged())
@example("<plan>")
@example("<plan><function.")
@example("<plan><function.P.f a='")
@example("<plan/><plan/>")
@example("<goal><goal><plan/></goal>")
@example("<?xml ?><?xml ?><plan/>")
def test_damage_never_gives_what_is_not_in_the_text(text: str) -> None:
    read = recovered(text)
    strict = strictly(text)
    if read is not None:
        assert_is_in(text, read.plan)
    if strict is None:
        assert read is None or read.recovered, "what is mended is said"
    else:
        assert read is not None
        assert (read.plan, read.recovered) == (strict, ()), "what needs no mending is read by the parser alone"


@pytest.mark.fuzz
@given(st.text(st.characters(exclude_categories=()) | PIECES.filter(lambda piece: len(piece) == 1), max_size=60))
def test_any_text_is_a_plan_or_a_format_error(text: str) -> None:
    recovered(f"<plan>{text}</plan>")
    recovered(f'<plan><function.P.f a="{text}"/></plan>')
    recovered(text)


@pytest.mark.fuzz
@given(documents(), st.data())
def test_one_lost_mark_gives_the_same_plan_or_a_refusal(text: str, data: st.DataObject) -> None:
    """Losing a bracket, a slash, a quote, an equals sign or a space between attributes never changes what is run."""
    whole = XmlPlan.read(text, recover=True).plan
    marks = [match.start() for match in re.finditer(r"""[<>/"=]|(?<=["\d])[ \n]""", text)]
    place = data.draw(st.sampled_from(marks))
    inside = re.compile(r'="([^"]*)"')
    values = [match.span(1) for match in inside.finditer(text)]
    if any(start <= place < end for start, end in values):
        return
    read = recovered(text[:place] + text[place + 1 :])
    if read is not None:
        assert [without_reason(step) for step in read.plan.steps] == [without_reason(step) for step in whole.steps]


def without_reason(step: Step) -> Step:
    return Step(step.id, step.function, step.arguments, step.after)


LONG = 20_000


@pytest.mark.parametrize(
    "make",
    [
        lambda n: "<plan>" + "<" * n,
        lambda n: "<plan>" + "< " * n,
        lambda n: "<plan>" * n,
        lambda n: "<plan>" + "<!--" * n,
        lambda n: "<!--" * n + "<plan/>",
        lambda n: "<plan>" + "<function.P.f " * n,
        lambda n: "<plan><function.P.f a=" + '"' * n,
        lambda n: "<plan><function.P.f a=" + '" ' * n,
        lambda n: "<plan><function.P.f a=" + '" x ' * n,
        lambda n: '<plan><function.P.f a="' + "x" * n,
        lambda n: '<plan><function.P.f a="' + '" b' * n,
        lambda n: '<plan><function.P.f a="' + '"  ,  b  =' * n,
        lambda n: '<plan><function.P.f a="' + ' "x" y' * n + '"/></plan>',
        lambda n: '<plan><function.P.f a="' + " " * n + '"' + " " * n,
        lambda n: '<plan><function.P.f a="' + "&" * n + '"/></plan>',
        lambda n: '<plan><function.P.f a="' + "&amp" * n + '"/></plan>',
        lambda n: '<plan><function.P.f a="' + "<" * n + '"/></plan>',
        lambda n: '<plan><function.P.f a="' + "$x" * n + '"/>',
        lambda n: '<plan><function.P.f a="' + "$x " * n + '"/>',
        lambda n: '<plan><function.P.f a="$' + "x" * n + '"/>',
        lambda n: "<plan>" + "text<b>" * n,
        lambda n: "<plan>" + "<?x?>" * n,
        lambda n: "<?" * n + "<plan/>",
        lambda n: "<plan>" + "<?" * n,
        lambda n: "<goal>" * n + "<plan/>",
        lambda n: "<plan>" + "</function.P.f>" * n,
        lambda n: "<plan>" + "<function.P.f>" * n,
        lambda n: "<plan>" + "]]>" * n,
        lambda n: "<plan>" + "<![CDATA[" * n,
        lambda n: "<![CDATA[" * n + "<plan/>",
        lambda n: "<think>" * n + "<plan/>",
        lambda n: "<plan/>" + "<plan/>" * n,
        lambda n: "<plan>" + "\n" * n + "<function.P.f/></plan>" + "\n" * n,
        lambda n: "<plan>" + "".join(f"<function.P.f a{i}='x'/>" for i in range(n // 20)),
        lambda n: "<plan><function.P.f " + " ".join(f"a{i}='x'" for i in range(n)) + "></plan>",
        lambda n: "<plan><function.P.f " + "a" * n + "='x'></plan>",
        lambda n: "<plan><function." + "f" * n + "/>",
        lambda n: "<function. " * n,
        lambda n: "<plan a=" + "b" * n,
    ],
)
def test_the_work_grows_with_the_length_and_not_faster(make: Callable[[int], str]) -> None:
    """Work is counted in calls; what patterns do inside is bounded by the second text, of a megabyte."""
    assert calls(make(LONG // 2)) * 3 + 2_000 >= calls(make(LONG)), "twice the text is far more than twice the work"
    recovered(make(LONG * 5)[:1_000_000])


def calls(text: str) -> int:
    """Return how many functions are called to read a text."""
    counted = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        XmlPlan.read(text, recover=True)
    except PlanFormatError:
        pass
    finally:
        sys.setprofile(before)
    return counted
