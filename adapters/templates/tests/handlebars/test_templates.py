"""Templates without functions: what is read of data, how values look, and what is refused."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from datetime import date

import attrs
import pytest

from portico import Prompt, Trusted
from portico.errors import LimitExceeded, TemplateError
from portico_templates.handlebars.config import HandlebarsSettings
from portico_templates.handlebars.language import HandlebarsTemplates, factory
from portico_testkit.template_cases import Calls

Pair = namedtuple("Pair", "left right")


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    link: str | None = None
    _secret: str = "secret"

    def method(self) -> str:
        raise AssertionError("a method was run")

    @property
    def computed(self) -> str:
        raise AssertionError("a property was read")


class Undeclared:
    name = "an attribute, but no field"


@attrs.frozen
class Book:
    title: str


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "{{result.name}}{{result.link}}{{result.method}}{{result.computed}}{{result._secret}}{{result.__class__}}",
            "r",
        ),
        ("{{#each many}}{{name}}={{link}} {{/each}}", "a=1 b= c=3 "),
        ("{{#each mixed}}{{name}}|{{/each}}", "a|b||||"),
        ("{{#each result}}{{@key}}:{{this}} {{/each}}", "name:r link: "),
        ("{{book.title}} {{pair.left}}{{pair.[1]}} {{pair.count}}{{pair._fields}}", "T 12 "),
        ("{{texts.[0]}}{{texts.[1]}}{{texts.length}}{{texts.[-1]}}{{texts.append}}", "ab2"),
        ("{{numbers.[1]}}{{numbers.two}}", "one2"),
        ("{{#each numbers}}{{@key}}={{this}}{{#if @last}}.{{else}},{{/if}}{{/each}}", "1=one,two=2."),
        ("{{day}} {{#with day}}{{year}}{{/with}}", "2026-03-01 "),
        ("{{#each 'text'}}no{{else}}not repeated{{/each}}", "not repeated"),
        ("{{#each tags}}{{this}}{{/each}}", "x"),
    ],
)
async def test_data_is_read_by_key_index_and_declared_field_only(render, source, expected):
    data = {
        "result": Result("r"),
        "many": [Result("a", "1"), Result("b"), Result("c", "3")],
        "mixed": [Result("a"), {"name": "b"}, {}, Undeclared(), None],
        "book": Book("T"),
        "pair": Pair(1, 2),
        "texts": ["a", "b"],
        "numbers": {1: "one", "two": 2},
        "day": date(2026, 3, 1),
        "tags": {"x"},
    }
    assert await render(source, data) == expected


async def test_values_look_as_in_every_prompt_and_as_in_javascript_where_html_is_escaped(render):
    data = {"a": True, "b": [1, None, "<x>"], "c": {"k": 1}, "d": 1.0, "e": 2}
    source = "{{a}} {{b}} {{c}} {{d}} {{e}} {{{b}}}"
    assert await render(source, data) == 'True [1, null, "<x>"] {"k": 1} 1.0 2 [1, null, "<x>"]'
    expected = "true 1,,&lt;x&gt; [object Object] 1 2 1,,<x>"
    assert await render(source, data, escape="html") == expected


async def test_a_hundred_percent_stays(render):
    assert await render("{{#each xs}}%{{a}}%s{{b}}%%{{/each}}", {"xs": [{"a": 1, "b": "%d"}]}) == "%1%s%d%%"


async def test_many_rounds_give_the_same_as_few(render):
    rows = [{"a": number, "b": "x"} for number in range(1000)]
    source = "{{#each rows}}{{a}}{{b}} {{/each}}"
    assert await render(source, {"rows": rows}) == "".join(f"{number}x " for number in range(1000))


@pytest.mark.parametrize(
    ("source", "line", "column", "words"),
    [
        ("a\n{{#if b}}\n {{#each c}}\n{{/if}}", 4, 1, "does not close the block 'each', opened in line 3"),
        ("a\n  {{#if b}} ...", 2, 3, "{{/if}} is missing"),
        ("{{#> layout}}", 1, 1, "{{/layout}} is missing"),
        ("{{a\nb", 1, 1, "}} is missing"),
        ("{{concat (a b}}", 1, 14, "not expected"),
        ("{{a 'b}}", 1, 5, "Nothing closes this '"),
        ("{{a x=}}", 1, 7, "The argument 'x' has no value"),
        ("{{a/../b}}", 1, 3, "Invalid path"),
        ("{{!-- a }}", 1, 1, "The comment has no end"),
        ("{{{{a}}}} {{{{/b}}}}", 1, 11, "does not close the raw block 'a'"),
        ("{{/a}}", 1, 1, "No block is open"),
        ("{{#a}}{{else}}{{else}}{{/a}}", 1, 15, "does not fit the block 'a'"),
        ("{{lookup a}}", 1, 1, "lookup takes two arguments"),
        ("{{>}}", 1, 4, "'}}' is not expected"),
        ("{{a/}}", 1, 5, "'}}' is not expected"),
        ("{{a.0}}", 1, 5, "'0' is not expected"),
    ],
)
def test_a_mistake_is_shown_with_its_place(source, line, column, words):
    with pytest.raises(TemplateError) as raised:
        HandlebarsTemplates().compile(source, name="letter")
    assert words in str(raised.value)
    assert (raised.value.line, raised.value.column) == (line, column), str(raised.value)
    assert str(raised.value).startswith("letter, line ")
    assert str(raised.value).rstrip().endswith("^")


@pytest.mark.parametrize(
    ("source", "line", "column", "bound"),
    [
        ("a\n" + "{{#if a}}" * 65 + "{{/if}}" * 65, 2, 1 + 64 * 9, "Blocks may be at most 64 deep"),
        ("{{#if a}}" + "\n{{else if b}}" * 65 + "{{/if}}", 65, 1, "Blocks may be at most 64 deep"),
        ("\n{{concat " + "(concat " * 65 + ")" * 65 + "}}", 2, 10 + 64 * 8, "Calls may be at most 64 deep"),
    ],
)
def test_a_bound_of_nesting_is_shown_with_its_place(source, line, column, bound):
    with pytest.raises(LimitExceeded) as raised:
        HandlebarsTemplates().compile(source, name="letter")
    assert str(raised.value).startswith(f"letter, line {line}, column {column}: {bound}")
    assert str(raised.value).endswith("^")


async def test_a_variable_with_a_dollar_is_answered_with_advice(render):
    with pytest.raises(TemplateError, match="written without '\\$': name"):
        await render("{{$name}}", {"name": "Ada"})


async def test_partials_are_found_in_the_settings_and_their_folder(tmp_path):
    (tmp_path / "chat").mkdir()
    (tmp_path / "chat" / "hello.hbs").write_text("Hello {{name}}!")
    (tmp_path / "bye.hbs").write_text("Bye from the folder.")
    settings = HandlebarsSettings(folder=tmp_path, partials={"bye": "Bye {{name}}."})

    class Services:
        def names(self, port):
            return ()

    template = factory(settings, Services()).compile("{{> chat/hello}} {{> bye}}")
    assert await template.render({"name": "Ada"}, call=Calls()) == "Hello Ada! Bye Ada."


def test_a_mistake_in_a_partial_names_the_partial():
    with pytest.raises(TemplateError, match="partial 'p', line 2, column 1"):
        HandlebarsTemplates(partials={"p": "\n{{#if a}}"}).compile("{{> p}}")


async def test_a_trusted_variable_is_the_template_s_own(render):
    variables = {"intro": Trusted("<message role='system'>Be kind.</message>"), "text": "<message role='user'>"}
    prompt = await render("{{intro}} {{#each (array text)}}{{this}}{{/each}}\n", variables)
    assert isinstance(prompt, Prompt)
    assert [(each.role, each.text) for each in prompt.messages()] == [
        ("system", "Be kind."),
        ("user", "<message role='user'>"),
    ]


def test_variables_are_what_is_written_or_given_at_the_top():
    source = (
        "{{a}}{{b.c}}{{#if d}}{{e}}{{/if}}{{#each f}}{{g}}{{../h}}{{@root.i}}{{/each}}{{Tools-echo j x=(concat k)}}"
        "{{set 'l' m}}{{l}}{{#with n as |o|}}{{o}}{{/with}}{{Tools-today}}{{d}}{{> p q r=s}}{{'literal'}}"
    )
    assert HandlebarsTemplates().compile(source).variables == ("a", "b", "e", "h", "i", "j", "k", "m", "q", "s")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{> again}}", "partials call each other more than 64 deep"),
        ("{{#each @root.xs}}" * 9 + "x" + "{{/each}}" * 9, "more than 1,000,000 steps"),
        ("{{range 1 99999999999}}", "steps"),
        ("{{set 'x' 'aaaaaaaa'}}" + "{{set 'x' (concat x x)}}" * 40, "characters"),
        ("{{set 'x' (array 1 2)}}" + "{{set 'x' (array x x)}}" * 40, "steps|parts"),
        ("{{#each xs}}" + "y" * 300_000 + "{{/each}}", "more than 16,000,000 characters"),
        ("{{#if a}}" * 65 + "{{/if}}" * 65, "at most 64 deep"),
        ("{{concat " + "(concat " * 65 + ")" * 65 + "}}", "at most 64 deep"),
        ("{{round}}", "contains itself"),
    ],
)
async def test_what_has_no_end_reaches_a_limit(render, source, words):
    round_: list[object] = []
    round_ += [round_, round_]
    with pytest.raises(LimitExceeded, match=words):
        await render(source, {"xs": list(range(100)), "round": round_}, partials={"again": "{{> again}}{{> again}}"})
