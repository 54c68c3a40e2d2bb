"""A compiled template tells the calls of functions that are written in it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from portico.errors import PorticoError
from portico.plugins import FunctionCall
from portico_templates.handlebars.language import HandlebarsTemplates

LANGUAGE = HandlebarsTemplates(
    helpers={
        "shout": lambda options, text="": text.upper(),
        "inside": lambda options: f"{options.fn({})}{options.inverse({})}",
    }
)


def names(source: str) -> list[str]:
    return [call.function for call in LANGUAGE.compile(source).calls or () if call.certain]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{P-f}}", ["P-f"]),
        ("{{P-f 1}}", ["P-f"]),
        ("{{f a=1}}", ["f"]),
        ("{{P.f a}}", ["P.f"]),
        ("{{#P-f}}x{{/P-f}}", ["P-f"]),
        ("{{#P-f a}}x{{else}}{{P-g}}{{/P-f}}", ["P-f", "P-g"]),
        ("{{set 'x' (P-f (P-g) b=(P-h 1))}}", ["P-f", "P-g", "P-h"]),
        ("{{#each (P-list) as |x i|}}{{P-f x}}{{/each}}", ["P-list", "P-f"]),
        ("{{#if (equals (P-f) 1)}}{{P-g}}{{else if (P-h)}}{{P-i}}{{/if}}", ["P-f", "P-g", "P-h", "P-i"]),
        ("{{json (P-f)}}{{concat (P-g) 'x'}}{{shout (P-h)}}", ["P-f", "P-g", "P-h"]),
        ("{{#*inline 'x'}}{{P-f}}{{/inline}}{{> x a=(P-g)}}", ["P-f", "P-g"]),
        ("{{#message role=(P-f)}}{{P-g}}{{/message}}", ["P-f", "P-g"]),
        ("{{#with (P-f) as |P-x|}}{{P-x}}{{/with}}", ["P-f"]),
    ],
)
def test_a_call_is_told_wherever_it_stands(source: str, expected: list[str]) -> None:
    assert names(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "{{name}} {{a.b}} {{this}} {{@root.x}} {{../up}}",
        "{{shout 'x'}}{{json x}}{{range 1 2}}{{or a b}}{{doubleOpen}}{{lookup a 'b'}}",
        "{{#if a}}x{{/if}}{{#each b}}{{this}}{{/each}}{{#unless c}}{{/unless}}{{#raw}}x{{/raw}}",
        "{{set 'my-name' 1}}{{my-name}}",
        "{{#each a as |a-b|}}{{a-b}}{{/each}}",
        "{{{{raw}}}}{{P-f 1}}{{{{/raw}}}}",
        "{{! {{P-f}} }}{{!-- {{P-f}} --}}\\{{P-f}}",
    ],
)
def test_variables_helpers_and_comments_are_no_calls(source: str) -> None:
    assert names(source) == []


def test_a_call_tells_its_arguments_and_its_place() -> None:
    calls = LANGUAGE.compile("Dear\n  {{~P-f 'a' b c=1 d=(P-g) e=undefined}}").calls
    assert calls == (FunctionCall("P-f", 2, ("c", "d"), 2, 6), FunctionCall("P-g", 0, (), 2, 23))


def test_a_bare_name_is_a_variable_of_the_template_only_in_its_outermost_context() -> None:
    source = "{{a}}{{b.c}}{{#if a}}{{d}}{{else}}{{#e}}{{f}}{{else}}{{g}}{{/e}}{{/if}}{{h 1}}"
    source += "{{#inside}}{{i}}{{else}}{{j}}{{/inside}}"
    found = {call.function: call.variable for call in LANGUAGE.compile(source).calls or ()}
    assert found == {"a": "a", "b.c": "b", "d": "d", "e": "e", "f": "", "g": "g", "h": "", "i": "", "j": ""}


@pytest.mark.parametrize("source", ["{{> part}}", "{{#if a}}{{#> part}}x{{/part}}{{/if}}", "{{> (lookup . 'a')}}"])
def test_what_a_partial_of_the_language_calls_is_not_known(source: str) -> None:
    assert HandlebarsTemplates(partials={"part": "{{P-f}}"}).compile(source).calls is None


parts = st.sampled_from(
    [
        "{{Post.send}}",
        "{{a.b}}",
        "{{this.a}}",
        "{{json}}",
        "{{#plain}}x{{/plain}}",
        "{{^Post-send}}x{{/Post-send}}",
        "{{'P-x'}}",
        "{{[P y]}}",
        "{{#each list as |P|}}{{P}}{{P.f}}{{P-f}}{{/each}}",
        "{{#with n as |P-a|}}{{P-a}}{{/with}}",
        "{{#> part}}{{plain}}{{/part}}",
        "{{> (concat 'pa' (P-z))}}",
        "{{set 'P-s' 1}}{{P-s}}",
        "{{P-s}}",
        "{{shout (now)}}",
        "{{#P.q 1}}{{/P.q}}",
        "words\n",
        "{{P-a}}",
        "{{P-b 'x' y=1}}",
        "{{set 'v' (P-c)}}",
        "{{v}}",
        "{{json (P-d (P-e 1))}}",
        "{{{P-f n}}}",
        "{{> part}}",
        "{{P.g 1}}",
        "{{_p.q}}{{_p}}",
    ]
)
around = st.sampled_from(
    [
        "{}",
        "{{{{#each list}}}}{}{{{{/each}}}}",
        "{{{{#if n}}}}{}{{{{else}}}}{}{{{{/if}}}}",
        "{{{{#P-h}}}}{}{{{{/P-h}}}}",
        "{{{{#inside}}}}{}{{{{else}}}}{}{{{{/inside}}}}",
        "{{{{#with a}}}}{}{{{{else}}}}{}{{{{/with}}}}",
        "{{{{#message role='user'}}}}{}{{{{/message}}}}",
        "{{{{#*inline 'other'}}}}{}{{{{/inline}}}}{{{{> other b}}}}",
    ]
)
given_names = st.sets(st.sampled_from(["Post", "a", "P", "P-a", "P-s", "P-x", "plain", "v", "_p", "P y"]))


@given(st.lists(st.tuples(around, st.lists(parts, max_size=4)), max_size=4), given_names)
def test_nothing_is_called_that_was_not_told(pieces: list[tuple[str, list[str]]], given_: set[str]) -> None:
    source = "{{#*inline 'part'}}{{P-i 1}}{{/inline}}" + "".join(
        form.format(*["".join(inner)] * form.count("{}")) for form, inner in pieces
    )
    template = LANGUAGE.compile(source)
    made: set[str] = set()

    def call(name: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> object:
        made.add(name)
        return asyncio.sleep(0, "part")

    with suppress(PorticoError):
        variables = dict.fromkeys(given_, "x") | {"list": ["a", "b"], "n": 1}
        asyncio.run(template.render(variables, call=call))
    told = {call.function for call in template.calls or () if call.variable not in given_}
    assert made <= told, f"{source!r} called {made - told}, which it did not tell"
