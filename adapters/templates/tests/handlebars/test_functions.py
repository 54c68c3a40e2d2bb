"""Functions of the kernel in a template: where they may stand, and in what order they run."""

from __future__ import annotations

import asyncio

import pytest

from portico.errors import TemplateError
from portico.plugins import FunctionCall
from portico_templates.handlebars.language import HandlebarsTemplates


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{Tools-echo a}}", "x"),
        ("{{Tools-echo text=a times=3}}", "xxx"),
        ("{{Tools-echo a times=2}}", "xx"),
        ("{{Tools.echo a}}|{{Tools_echo a}}|{{echo a}}", "x|x|x"),
        ("{{Tools-today}} {{today}} {{Tools.today}}", "Sunday Sunday Sunday"),
        ("{{#with (Tools-results a)}}{{#each this}}{{name}};{{/each}}{{/with}}", "x 0;x 1;"),
        ("{{#each (Tools-results query=a count=3)}}{{@index}}{{#unless @last}},{{/unless}}{{/each}}", "0,1,2"),
        ("{{#Tools-results a}}{{name}};{{/Tools-results}}", "x 0;x 1;"),
        ("{{#Tools-results a count=0}}some{{else}}none{{/Tools-results}}", "none"),
        ("{{#if (Tools-echo missing)}}yes{{else}}no{{/if}}", "no"),
        ("{{Tools-echo (Tools-echo (concat a 'y'))}}", "xy"),
        ("{{lookup (Tools-results a) 1}}", '{"name": "x 1", "value": "<b>1</b>", "link": null}'),
        ("{{lookup (lookup (Tools-results a) 1) 'value'}}", "<b>1</b>"),
        ("{{> one text=(Tools-echo a)}}", "(x)"),
        ("{{> (Tools-echo 'one') text=a}}", "(x)"),
    ],
)
async def test_a_function_may_stand_wherever_a_helper_may(render, source, expected):
    assert await render(source, {"a": "x"}, partials={"one": "({{text}})"}) == expected


async def test_a_variable_comes_before_a_function_without_arguments(render):
    assert await render("{{today}}{{missing}}", {"today": "Monday"}) == "Monday"
    assert await render("{{#today}}{{this}}{{/today}}{{#missing}}no{{/missing}}") == "Sunday"


async def test_calls_of_a_template_run_at_the_same_time_and_keep_their_places(render, tools):
    texts = [f"t{number}" for number in range(100)]
    assert await render("{{#each texts}}{{Tools-echo this}},{{/each}}", {"texts": texts}) == ",".join([*texts, ""])
    assert tools.log[:100] == [f"begin {text}" for text in texts], "one waited for another"


async def test_calls_never_cross_a_set(render, tools):
    source = "{{Tools-echo 'a'}}{{Tools-echo 'b'}}{{set 'x' (Tools-echo 'c')}}{{x}}{{Tools-echo 'd'}}"
    assert await render(source) == "abcd"
    assert tools.log[4:] == ["begin c", "end c", "begin d", "end d"]
    assert tools.log[:2] == ["begin a", "begin b"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{#each xs}}{{Tools-echo this}}{{set 'last' this}}{{@root.last}} {{/each}}{{last}}", "pp qq q"),
        ("{{#if (Tools-echo 'y')}}{{set 'last' 'in'}}{{Tools-echo 'z'}}{{/if}}{{Tools-echo last}}", "zin"),
        ("{{#with xs}}{{set 'last' (Tools-echo [1])}}{{/with}}{{last}}{{Tools-echo last}}", "qq"),
        ("{{> sets}}{{last}}", "p"),
        ("{{#> block}}{{set 'last' 'here'}}{{/block}}{{last}}", "[]here"),
        ("{{#message role='user'}}{{Tools-echo 'a'}}{{set 'last' 'b'}}{{last}}{{/message}}{{last}}", None),
        ("{{#raw}}{{Tools-echo 'a'}}{{set 'last' 'b'}}{{/raw}}{{last}}", "ab"),
        ("{{#unless none}}{{Tools-echo 'a'}}{{set 'last' 'b'}}{{/unless}}{{last}}", "ab"),
    ],
)
async def test_what_is_set_anywhere_holds_from_there_on(render, tools, source, expected):
    partials = {"sets": "{{set 'last' (Tools-echo xs.[0])}}", "block": "[{{> @partial-block}}]"}
    text = await render(source, {"xs": ["p", "q"]}, partials=partials)
    assert text == (expected or '<message role="user">ab</message>b')
    begun = [line for line in tools.log if line.startswith("begin")]
    assert len(tools.log) == 2 * len(begun)
    assert tools.log[::2] == begun, "a call began before the one on the other side of a set had ended"


async def test_setting_leaves_the_arguments_alone(render):
    variables = {"x": 1}
    assert await render("{{set 'x' 2}}{{x}}", variables) == "2"
    assert variables == {"x": 1}


async def test_a_failure_stops_the_others_and_comes_through_unchanged(render, tools):
    with pytest.raises(KeyError, match="b"):
        await render("{{Tools-echo 'a'}}{{Tools-fails 'b'}}{{#each (Tools-results 'c')}}{{Tools-echo name}}{{/each}}")
    assert len(asyncio.all_tasks()) == 1


async def test_what_is_wrong_after_a_call_was_made_leaves_nothing_behind(render, tools):
    for wrong in ("{{Tools-nope 'b'}}", "{{add 'x'}}", "{{> nothing}}", "{{Tools-echo}}"):
        with pytest.raises(TemplateError):
            await render("{{Tools-echo 'a'}}{{concat (Tools-echo 'c') 'd'}}{{#if (Tools-echo 'e')}}f{{/if}}" + wrong)
    assert tools.log == []


async def test_a_template_without_calls_renders_without_suspending(kernel):
    template = HandlebarsTemplates().compile("{{#each xs}}{{this}}{{/each}}")
    rendering = template.render({"xs": [1, 2]}, call=FunctionCall.caller(kernel))
    with pytest.raises(StopIteration) as stopped:
        rendering.send(None)
    assert stopped.value.value == "12"


@pytest.mark.parametrize(
    ("source", "line", "column", "words"),
    [
        ("a\n {{Tools-ecko 'x'}}", 2, 2, "Tools-echo"),
        ("{{Tools-echo}}", 1, 1, "text: missing"),
        ("{{#if (Tools-echo 1 2 3)}}{{/if}}", 1, 7, "at most 2 arguments"),
        ("{{name 'x'}}", 1, 1, "is a variable, which takes no arguments"),
    ],
)
async def test_a_call_that_cannot_be_made_is_shown_with_its_place(render, source, line, column, words):
    with pytest.raises(TemplateError, match=words) as raised:
        await render(source, {"name": "Ada"})
    assert (raised.value.line, raised.value.column) == (line, column)
