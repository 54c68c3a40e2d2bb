"""Properties of the Semantic Kernel language, for any template and any value."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import example, given, strategies as st

from portico._prompts.prompt import Prompt
from portico._prompts.semantic_kernel import (
    Argument,
    Block,
    Call,
    Node,
    Quoted,
    SemanticKernelTemplate,
    SemanticKernelTemplates,
    Text,
    Variable,
    parse,
)
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
quoted = st.builds(
    lambda text, quote: Quoted(quote + text.replace("\\", "\\\\").replace(quote, f"\\{quote}") + quote),
    st.text(max_size=10) | st.sampled_from(["{{", "}}", "{{$a}}", "it's", '"', "\\", "\\n", "a=b"]),
    st.sampled_from("'\""),
)
values = quoted | st.builds(Variable, names)
equals = st.builds(lambda before, after: f"{before}={after}", blanks, blanks)
calls = st.builds(
    lambda plugin, function, first, named: Call(plugin, function, (*first, *named)),
    st.none() | names,
    names,
    st.lists(st.builds(Argument, st.none(), values, some_blanks), max_size=1),
    st.lists(st.builds(Argument, names, values, some_blanks, equals), max_size=3),
)
blocks = st.builds(Block, values | calls, blanks, blanks)
texts = st.builds(Text, st.text(min_size=1, max_size=10).filter(lambda text: "{{" not in text))


@st.composite
def templates(draw: st.DrawFn) -> list[Node]:
    nodes: list[Node] = []
    for block in draw(st.lists(blocks, max_size=5)):
        if draw(st.booleans()):
            nodes.append(draw(texts))
        nodes.append(block)
    if draw(st.booleans()):
        nodes.append(draw(texts))
    return nodes


async def nothing(function: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> object:
    return None


def rendered(source: str, arguments: Mapping[str, object]) -> str:
    return asyncio.run(SemanticKernelTemplates().compile(source).render(arguments, call=nothing))


@pytest.mark.fuzz
@given(templates())
def test_what_is_printed_is_read_as_the_same_template(nodes: list[Node]) -> None:
    printed = str(SemanticKernelTemplate(nodes))
    assert list(parse(printed)) == nodes


@pytest.mark.fuzz
@given(sources)
def test_printing_a_parsed_template_gives_the_template_back(source: str) -> None:
    try:
        template = SemanticKernelTemplates().compile(source)
    except TemplateError:
        return
    assert str(template) == source
    assert parse(str(template)) == template.nodes


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
    assert rendered(f"{{{{{Quoted.of(text)}}}}}", {}) == text


@pytest.mark.fuzz
@given(sources, sources)
def test_a_value_is_never_read_as_a_template(value: str, other: str) -> None:
    assert rendered("<{{$a}}|{{$b}}>", {"a": value, "b": other}) == f"<{value}|{other}>"


@given(templates(), st.dictionaries(names, st.text(max_size=10) | st.integers() | st.none(), max_size=4))
def test_the_pieces_together_are_the_prompt_and_text_stays_the_template_s(
    nodes: list[Node], arguments: dict[str, object]
) -> None:
    tag = Text("<message")
    prompt = asyncio.run(SemanticKernelTemplate([*nodes, tag]).render(arguments, call=nothing))
    assert isinstance(prompt, Prompt)
    own = [text for text, is_value in prompt.pieces if not is_value]
    assert own == [node.text for node in [*nodes, tag] if isinstance(node, Text)]
    plain = asyncio.run(SemanticKernelTemplate(nodes).render(arguments, call=nothing))
    assert prompt == f"{plain}<message"


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
