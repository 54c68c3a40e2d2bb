"""Properties of the Semantic Kernel language, for any template and any value."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import example, given, strategies as st

from portico._prompts.prompt import Prompt
from portico._prompts.semantic_kernel import SemanticKernelTemplates
from portico.errors import PorticoError, TemplateError

PIECES = [
    "{{",
    "}}",
    "{",
    "}",
    "'",
    '"',
    "\\",
    "$",
    "=",
    ".",
    " ",
    "\n",
    "a",
    "b",
    "_1",
    "-",
    "é",
    "{{f ",
    "{{$a}}",
    "a='x'",
]

names = st.text("ab_19Z", min_size=1, max_size=4)
blanks = st.text(" \t\r\n", max_size=3)
some_blanks = st.text(" \t\r\n", min_size=1, max_size=3)
sources = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=25).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=25).map(lambda pieces: "{{" + "".join(pieces) + "}}"),
)
quoted = (st.text(max_size=10) | st.sampled_from(["{{", "}}", "{{$a}}", "it's", '"', "\\", "\\n", "a=b"])).map(
    lambda text: "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
)
values = quoted | names.map("${}".format)
equals = st.builds(lambda before, after: f"{before}={after}", blanks, blanks)
named = st.builds("{}{}{}{}".format, some_blanks, names, equals, values)
calls = st.builds(
    lambda plugin, function, first, named: f"{plugin}{function}{first}{''.join(named)}",
    st.just("") | names.map("{}.".format),
    names,
    st.just("") | st.builds("{}{}".format, some_blanks, values),
    st.lists(named, max_size=3),
)
blocks = st.builds("{{{{{}{}{}}}}}".format, blanks, values | calls, blanks)
texts = st.text(min_size=1, max_size=10).filter(lambda text: "{{" not in text)


@st.composite
def templates(draw: st.DrawFn) -> list[tuple[str, bool]]:
    """Draw the pieces of a template, each with whether it is a block."""
    pieces: list[tuple[str, bool]] = []
    for block in draw(st.lists(blocks, max_size=5)):
        if draw(st.booleans()):
            pieces.append((draw(texts), False))
        pieces.append((block, True))
    return pieces


async def nothing(function: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> object:
    return None


def rendered(source: str, arguments: Mapping[str, object]) -> str:
    return asyncio.run(SemanticKernelTemplates().compile(source).render(arguments, call=nothing))


@pytest.mark.fuzz
@given(sources)
@example("{{")
@example("{{ '")
@example("{{$")
@example("{{\\}}")
@example("{{f a=")
@example("{{f a=\u2003}}")
@example("{{\x1f}}")
@example("\ud800{{$\udfff}}")
def test_any_text_is_a_template_or_a_template_error(source: str) -> None:
    try:
        asyncio.run(SemanticKernelTemplates().compile(source).render({"a": "x"}, call=nothing))
    except TemplateError as error:
        assert error.line is not None
        assert error.column is not None
        lines = source.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
        assert str(error).rstrip().endswith("^")


@given(sources.filter(lambda source: "{{" not in source))
def test_text_without_braces_is_rendered_as_it_is(source: str) -> None:
    assert rendered(source, {"a": "x"}) == source


@pytest.mark.fuzz
@given(st.text())
@example("\\")
@example("{{$a}}")
@example("\\'")
def test_any_text_can_be_quoted(text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    assert rendered(f"{{{{'{quoted}'}}}}", {}) == text


@pytest.mark.fuzz
@given(sources, sources)
def test_a_value_is_never_read_as_a_template(value: str, other: str) -> None:
    assert rendered("<{{$a}}|{{$b}}>", {"a": value, "b": other}) == f"<{value}|{other}>"


@given(templates(), st.dictionaries(names, st.text(max_size=10) | st.integers() | st.none(), max_size=4))
def test_the_pieces_together_are_the_prompt_and_text_stays_the_template_s(
    pieces: list[tuple[str, bool]], arguments: dict[str, object]
) -> None:
    source = "".join(text for text, _ in pieces)
    prompt = asyncio.run(SemanticKernelTemplates().compile(f"{source} <message").render(arguments, call=nothing))
    assert isinstance(prompt, Prompt)
    own = [text for text, is_value in prompt.pieces if not is_value]
    assert own == [text for text, is_block in [*pieces, (" <message", False)] if not is_block]
    assert prompt == f"{rendered(source, arguments)} <message"


SIZE = 1_000_000
HOSTILE = {
    "opening braces": "{" * SIZE,
    "blocks that are opened": "{{ " * (SIZE // 3),
    "empty blocks": "{{}}" * (SIZE // 4),
    "quotes": "{{" + "'" * SIZE,
    "quotes in turn": "{{" + "'\"" * (SIZE // 2),
    "an open quote in each block": "{{'}}" * (SIZE // 5),
    "backslashes": "{{'" + "\\" * (SIZE - 1),
    "escaped quotes": "{{'" + "\\'" * (SIZE // 2) + "}}",
    "one name": "{{" + "a" * SIZE + "}}",
    "dots": "{{" + "a." * (SIZE // 2) + "}}",
    "blanks": "{{$a" + " " * SIZE + "b}}",
    "blanks before an equals sign": "{{f a" + " " * SIZE + "}}",
    "equals signs": "{{f a" + "=" * SIZE + "}}",
    "arguments": "{{f " + "a='x' " * (SIZE // 6) + "}}",
    "lines before an error": "\n" * SIZE + "{{$}}",
    "blocks": "{{$a}}" * (SIZE // 6),
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_a_megabyte_made_to_be_slow_is_read_in_bounded_time(source: str) -> None:
    """Looking back at every character would take hours; reading once takes under a second."""
    started = time.perf_counter()
    try:
        asyncio.run(SemanticKernelTemplates().compile(source).render({}, call=nothing))
    except PorticoError as error:
        assert len(str(error)) < 1_000, "an error shows a part of the template only"
    assert time.perf_counter() - started < 20
