"""Helpers that an application gives the language."""

from __future__ import annotations

import asyncio

import pytest

from portico import Prompt
from portico.errors import TemplateError
from portico_templates.handlebars.values import SafeString


def shout(options, text, times=1):
    return text.upper() * times


def bold(options):
    return f"<b>{options.fn()}</b>"


async def patient(options, text="-"):
    await asyncio.sleep(0)
    return f"{text}{await options.fn()}{text}" if options.is_block else text


def count(options, start=0):
    words = [options.fn({"n": start + index}, block_params=[index, options.context["word"]]) for index in range(2)]
    return "".join(words) or options.inverse()


HELPERS = {"shout": shout, "bold": bold, "patient": patient, "count": count, "if": lambda options, value: "mine"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{shout word}} {{shout word times=2}} {{shout (shout 'a')}}", "HEY HEYHEY A"),
        ("{{#bold}}a {{word}}{{/bold}}", "<b>a hey</b>"),
        ("{{#patient '*'}}{{Tools-echo word}}{{/patient}} {{patient 'x'}}", "*hey* x"),
        ("{{#each (patient word)}}no{{else}}nothing to repeat{{/each}}", "nothing to repeat"),
        ("{{#count start=1 as |i word|}}{{i}}{{n}}{{word}} {{/count}}", "01hey 12hey "),
        ("{{#count}}{{else}}empty{{/count}}", "empty"),
        ("{{#if word}}yes{{/if}}", "mine"),
        ("{{shout (Tools-echo word)}}", "HEY"),
    ],
)
async def test_helpers_are_given_arguments_and_their_block(render, source, expected):
    assert await render(source, {"word": "hey"}, helpers=HELPERS) == expected


async def test_a_helper_that_does_not_wait_cannot_have_calls_in_its_block(render):
    with pytest.raises(TemplateError, match="write it as `async def`") as raised:
        await render("x{{#bold}}{{Tools-echo 'a'}}{{/bold}}", helpers=HELPERS)
    assert (raised.value.line, raised.value.column) == (1, 2)


async def test_arguments_that_do_not_fit_a_helper_are_a_fault_of_the_template(render):
    for source in ("{{shout}}", "{{shout 'a' loud=true}}", "{{shout 1 2 3}}"):
        with pytest.raises(TemplateError, match="do not fit the helper 'shout'"):
            await render(source, helpers=HELPERS)


async def test_an_error_of_a_helper_comes_through_unchanged(render):
    def broken(options):
        return 1 + "1"

    with pytest.raises(TypeError, match="unsupported operand"):
        await render("{{broken}}", helpers={"broken": broken})


async def test_a_helper_s_text_is_a_value_but_for_what_its_block_wrote(render):
    def same(options):
        return options.fn()

    source = "<message role='user'>{{#same}}<text>a</text>{{word}}{{/same}}{{bad}}</message>"
    prompt = await render(source, {"word": "<text>"}, helpers={"same": same, "bad": lambda options: "</message>"})
    assert isinstance(prompt, Prompt)
    assert [part.text for part in prompt.messages()[0].content] == ["a", "<text></message>"]


async def test_a_safe_string_is_not_escaped(render):
    helpers = {"safe": lambda options, text: SafeString(text)}
    assert await render("{{safe '<b>'}}{{'<i>'}}{{x}}", {"x": "<u>"}, helpers=helpers, escape="html") == "<b>&lt;u&gt;"


async def test_a_block_parameter_that_the_block_does_not_give_is_a_mistake_where_it_is_used(render):
    helpers = {**HELPERS, "gives": lambda options: options.fn(block_params=[])}
    assert await render("{{#gives as |x|}}[{{x}}]{{/gives}}{{#bold as |x|}}y{{/bold}}", helpers=helpers) == "[]<b>y</b>"
    for block in ("bold", "if true"):
        source = f"{{{{#{block} as |x|}}}}\n {{{{x}}}}{{{{/{block.split()[0]}}}}}"
        with pytest.raises(TemplateError, match="gives no block parameter 'x'") as raised:
            await render(source, helpers={"bold": bold})
        assert (raised.value.line, raised.value.column) == (2, 4)


def missing(options, *values, **named):
    return f"[{options.name}|{','.join(map(str, values))}|{','.join(named)}]"


@pytest.mark.parametrize(
    ("source", "data", "expected"),
    [
        ("{{foo}}", {}, "[foo||]"),
        ("{{foo}}", {"foo": None}, "[foo||]"),
        ("{{foo}}", {"foo": 0}, "0"),
        ("{{foo 1 x=2}}", {}, "[foo|1|x]"),
        ("{{foo x=2}}", {}, "[foo||x]"),
        ("{{foo.bar}}", {}, ""),
        ("{{foo.bar 1}}", {"foo": {}}, "[foo.bar|1|]"),
        ("{{[foo bar]}}", {}, "[foo bar||]"),
        ("{{this.foo}}{{../foo}}", {}, ""),
        ("{{#foo}}in{{else}}no{{/foo}}", {"foo": None}, "in"),
        ("{{#foo}}in{{else}}no{{/foo}}", {"foo": False}, "no"),
        ("{{^foo}}no{{/foo}}", {}, ""),
        ("{{#if (foo 1)}}yes{{/if}} {{#if foo}}yes{{else}}no{{/if}}", {}, "yes no"),
        ("{{#each a}}{{q}}{{/each}}", {"a": [{}, {"q": 1}]}, "[q||]1"),
        ("{{#with foo}}{{x}}{{else}}no{{/with}}", {}, "no"),
    ],
)
@pytest.mark.parametrize("escape", ["none", "html"])
async def test_helper_missing_is_called_with_the_name_where_handlebars_js_does_so(
    render, source, data, expected, escape
):
    assert await render(source, data, helpers={"helperMissing": missing}, escape=escape) == expected


async def test_helper_missing_leaves_functions_alone_and_has_arguments_that_must_fit(render):
    helpers = {"helperMissing": lambda options: f"no {options.name}"}
    assert await render("{{Tools-echo 'a'}} {{x}}", helpers=helpers) == "a no x"
    with pytest.raises(TemplateError, match="do not fit the helper 'helperMissing'"):
        await render("{{foo 1}}", helpers=helpers)


async def test_log_takes_what_has_no_text(render, caplog):
    with caplog.at_level("INFO"):
        assert await render("{{log 'a' module long}}", {"module": asyncio, "long": 10**5000}) == ""
    assert "a <module object at" in caplog.text
