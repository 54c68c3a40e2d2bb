"""Whatever a template says, it renders or it is an error of Portico's."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest
from hypothesis import given, strategies as st

from portico.errors import FunctionNotFound, LimitExceeded, PorticoError
from portico_templates.handlebars._parsing import parse
from portico_templates.handlebars.language import HandlebarsTemplates

PIECES = """
{{ }} {{{ }}} {{{{ }}}} {{# {{/ {{^ {{else}} {{> {{#> {{! {{!-- --}} {{* {{#*inline ~ ( ) [ ] | ' " = & \\ / . ..
a b this xs @ @root @index each if with unless lookup log set get message raw json concat array range add equals
1 -1.5 x= role= 'u' true null undefined p q rec @partial-block F-g <message </message> %s \0
{{/if}} {{/each}} {{/with}} {{/message}} {{/set}}
""".split()  # noqa: SIM905 - a list of so many would be three pages
WORDS = st.sampled_from(
    [
        *PIECES,
        *(" ", "\n", "\r\n", " as |", "{{#if a}}", "{{#each xs}}", "{{> rec}}", "{{F-g a}}", "{{else if a}}"),
        *("{{#each xs}}{{this}}", "{{#with (F-g a)}}", "{{set 'k' (F-g a)}}", "{{#message role='user'}}"),
    ]
)
SOURCES = st.lists(WORDS, max_size=40).map("".join) | st.text("{}#/^>!~()[]\"'|.@=& \n\\ab1", max_size=60)
DATA = {"a": "A", "b": {"c": [1, {"a": 2}]}, "xs": [1, 2, {"a": "z", "xs": [1]}], "f": lambda: "f", "n": None}
PARTIALS = {"p": "P{{a}}\n{{> q}}", "q": "{{#each xs}}{{this}}{{/each}}{{> @partial-block}}", "rec": "{{> rec}}x"}


def call(name, arguments, positional=(), /):
    if name != "F-g":
        raise FunctionNotFound(name)

    async def result():
        await asyncio.sleep(0)
        return [1, {"a": "b"}]

    return result()


@pytest.fixture(params=[{}, {"escape": "html"}], ids=str)
def language(request):
    return HandlebarsTemplates(partials=PARTIALS, max_steps=2_000, max_characters=100_000, **request.param)


async def tried(language, source):
    try:
        template = language.compile(source)
        await template.render(DATA, call=call)
        assert all(isinstance(name, str) for name in template.variables)
    except PorticoError as error:
        assert str(error)
    assert len(asyncio.all_tasks()) == 1, "a task is left"


@pytest.mark.fuzz
def test_any_source_renders_or_is_refused(language):
    @given(SOURCES)
    def check(source):
        asyncio.run(tried(language, source))

    check()


@pytest.mark.fuzz
@given(st.text("ab \n\\", max_size=30))
def test_text_without_braces_is_itself(text):
    template = HandlebarsTemplates().compile(text)
    assert asyncio.run(template.render({}, call=call)) == text


@pytest.mark.fuzz
@given(st.text(max_size=40), st.text(max_size=40))
def test_a_value_is_put_in_as_it_is(before, value):
    source = before.replace("{", "(").replace("\\", "/") + "{{a}}."
    assert (
        asyncio.run(HandlebarsTemplates().compile(source).render({"a": value}, call=call)) == f"{source[:-6]}{value}."
    )


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["name", "value"]), st.one_of(st.text(), st.integers(), st.none(), st.booleans())
        )
    )
)
def test_the_short_way_through_a_loop_gives_what_the_long_way_gives(rows):
    short = HandlebarsTemplates().compile("{{#each rows}}[{{name}}|{{value}}]{{/each}}")
    long = HandlebarsTemplates().compile("{{#each rows}}[{{this.name}}|{{#if true}}{{value}}{{/if}}]{{/each}}")
    renderings = [asyncio.run(each.render({"rows": rows}, call=call)) for each in (short, long)]
    assert renderings[0] == renderings[1]


@pytest.mark.fuzz
@given(SOURCES)
def test_parsing_twice_gives_the_same(source):
    try:
        first = parse(source)
    except PorticoError:
        return
    assert parse(source) == first


@pytest.mark.parametrize(
    ("source", "lines"), [("{{#each xs}}\n  {{> text}}\n{{/each}}", 20_000), (" " * 5_000 + "{{> text}}\n", 50_000)]
)
async def test_a_text_that_is_too_long_is_never_made(source, lines):
    template = HandlebarsTemplates(partials={"text": "{{@root.text}}\n"}, max_characters=100_000).compile(source)
    tracemalloc.start()
    try:
        with pytest.raises(LimitExceeded, match="100,000 characters"):
            await template.render({"text": "a\n" * lines, "xs": [1] * 100}, call=call)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
