"""A compiled template tells the calls of functions that are written in it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from portico import From, Kernel, Plan, PlanTemplate, Step, Value, function
from portico.errors import PlanError, PorticoError, TemplateError
from portico.plugins import FunctionCall
from portico.ports import Planner
from portico_templates.handlebars.language import HandlebarsTemplates
from portico_templates.jinja2.config import Jinja2Settings
from portico_templates.jinja2.language import Jinja2Templates
from portico_testkit.fakes.planner import ScriptedPlanner

PARTIALS = {"part": "{{ Inside.f() }}{% macro m() %}{{ Inside.g() }}{% endmacro %}"}
LANGUAGE = Jinja2Templates(settings=Jinja2Settings(partials=PARTIALS))


def names(source: str) -> list[str]:
    return [call.function for call in LANGUAGE.compile(source).calls or () if call.certain]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ f() }}", ["f"]),
        ("{{ P.f(1, x=2) }}", ["P-f"]),
        ("{{ P['f'](1) }}", ["P-f"]),
        ("{{ a.b.c() }}", ["a.b.c"]),
        ("{{ P.f(P.g(h())) }}", ["P-f", "P-g", "h"]),
        ("{% for x in P.list() %}{{ P.f(x) }}{% endfor %}", ["P-list", "P-f"]),
        ("{% if P.f() and not g() %}{{ h() }}{% else %}{{ i() }}{% endif %}", ["P-f", "g", "h", "i"]),
        ("{% set x = P.f() %}{{ x }}", ["P-f"]),
        ("{% macro m() %}{{ P.f() }}{% endmacro %}{{ m() }}", ["P-f"]),
        ("{{ P.f()|upper|default(P.g()) }}", ["P-f", "P-g"]),
        ("{{ Text.join(left=a, right=b) }}", ["Text-join"]),
    ],
)
def test_a_call_is_told_wherever_it_stands(source: str, expected: list[str]) -> None:
    assert names(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "{{ name }} {{ a.b }} {{ a['b'] }}",
        "{{ range(3) }}{{ dict(a=1) }}{{ namespace() }}",
        "{{ name.upper() }}{{ words.split(sep=',') }}{{ '{a}'.format(a=1) }}{{ x.format(a=1) }}{{ x.items() }}",
        "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(1) }}",
        "{% for x in y %}{{ loop.cycle(1, 2) }}{{ x.f() }}{% endfor %}",
        "{% raw %}{{ P.f() }}{% endraw %}{# {{ P.f() }} #}",
        "{{ P.f(*args) }}{{ P.f(**named) }}",
    ],
)
def test_variables_macros_and_methods_are_no_calls(source: str) -> None:
    assert names(source) == []


def test_a_call_tells_its_arguments_and_its_place() -> None:
    source = "Dear\n  {{ P.f('a', b, c=1) }}{{\nP.g() }} {{ P.f() }}"
    assert LANGUAGE.compile(source).calls == (
        FunctionCall("P-f", 2, ("c",), 2, 6, variable="P"),
        FunctionCall("P-g", 0, (), 3, 1, variable="P"),
        FunctionCall("P-f", 0, (), 3, 13, variable="P"),
    )


@pytest.mark.parametrize(
    "source",
    [
        "{% macro date(x) %}{{ x }}{% if x %}{{ date(x - 1) }}{% endif %}{% endmacro %}{{ date(1) }}",
        "{% macro f() %}{% endmacro %}{% macro m() %}{{ f() }}{% endmacro %}{% call m() %}{{ f() }}{% endcall %}",
        "{% macro date() %}{% endmacro %}{% for x in y %}{% if x %}{{ date() }}{% endif %}{% endfor %}",
        "{% set date = {} %}{{ date.f() }}",
        "{% for date in dates %}{{ date.f() }}{{ loop.cycle(1, 2) }}{% endfor %}{{ range(3) }}",
        "{% macro m(date) %}{{ date() }}{{ caller() }}{% endmacro %}",
        "{% with date = 1 %}{{ date() }}{% endwith %}",
        "{% block b %}{% endblock %}{{ self.b() }}",
    ],
)
def test_a_name_of_the_template_is_no_function(source: str) -> None:
    assert LANGUAGE.compile(source).calls == ()


@pytest.mark.parametrize(
    "source",
    [
        "{{ date() }}{% macro date() %}{% endmacro %}",
        "{% for date in date() %}{{ date() }}{% endfor %}",
        "{% if x %}{% macro date() %}{% endmacro %}{% endif %}{{ date() }}",
        "{% macro date() %}{% endmacro %}{% block b %}{{ date() }}{% endblock %}",
        "{% set date %}{{ date() }}{% endset %}",
        "{% macro m(date=date) %}{{ date() }}{% endmacro %}",
        "{% with %}{% set date = 1 %}{% macro m() %}{{ date() }}{% endmacro %}{% endwith %}",
        "{% set date = 1 %}{% block b %}{% for x in y %}{{ date() }}{% endfor %}{% set date = 1 %}{% endblock %}",
        "{% for x in y %}{% macro date() %}{% endmacro %}{{ date() }}{% endfor %}{{ date() }}",
    ],
)
def test_a_name_that_the_template_has_in_some_places_is_perhaps_a_function(source: str) -> None:
    assert {(call.function, call.certain) for call in LANGUAGE.compile(source).calls or ()} == {("date", False)}


@pytest.mark.parametrize("source", ["{{ 'Clock-now'() }}", "{{ ('a' ~ 'b')(1)() }}", "{{ [1](x) }}{{ 1|int()() }}"])
def test_a_value_that_is_called_is_a_mistake_in_the_template(source: str) -> None:
    template = LANGUAGE.compile(source)
    assert template.calls == ()
    with pytest.raises(TemplateError, match="not a function"):
        asyncio.run(template.render({}, call=FunctionCall.caller(Kernel())))


@pytest.mark.parametrize(
    "source", ["{% include 'part' %}", "{% if a %}{% import 'part' as p %}{% endif %}", "{% extends 'part' %}"]
)
def test_what_a_partial_calls_is_not_known(source: str) -> None:
    assert LANGUAGE.compile(source).calls is None


HELD = "{% set n = namespace() %}"
LATER = "{% macro m() %}{{ now() }}{% endmacro %}{% set n.m = m %}"
callees = st.sampled_from(["Post.send", "Post['send']", "now", "x.upper", "Post.replace", "a.b.c", "loop.f", "dict.f"])
forms = st.sampled_from(
    [
        "{{ @() }}",
        "{{ @(1, a=[2])|upper }}",
        "{{ @(*[1]) }}",
        "{{ @(**{'a': 1}) }}",
        "{% set f = @ %}{{ f() }}{{ f.send() }}",
        "{% set Post = Other %}{{ Post.send() }}{{ @() }}",
        "{% if no %}{% set Post = 1 %}{% endif %}{{ Post.send() }}",
        "{% for f in [@, Post] %}{{ f() }}{{ f.send() }}{% endfor %}",
        "{% for Post in [Post, Other, @] %}{{ Post.send() }}{{ Post() }}{% else %}{{ Post.send() }}{% endfor %}",
        "{% for i in [1, 2] %}{{ @() }}{% if i == 1 %}{% set Post = Other %}{% endif %}{{ Post.send() }}{% endfor %}",
        "{{ ([Post]|map(attribute='send')|first)() }}",
        "{{ ([@]|first)() }}{{ (no|default(@))() }}",
        "{{ (Post|attr('send'))() }}{{ Post['se' ~ 'nd']() }}",
        "{{ (@ or 1)() }}{{ (@ if 1 else 2)() }}",
        "{% macro m(f, Post=Other) %}{{ f() }}{{ Post.send() }}{% endmacro %}{{ m(@) }}{{ m(1, Post) }}",
        "{% macro m(Post) %}{{ Post.send() }}{{ caller() }}{% endmacro %}{% call m(Post) %}{{ @() }}{% endcall %}",
        "{% macro now() %}{{ @() }}{% endmacro %}{{ now() }}",
        "{% call @() %}x{% endcall %}",
        "{% with f = @, Post = Other %}{{ f() }}{{ Post.send() }}{% endwith %}",
        "{% set n = namespace(f=@) %}{{ n.f() }}{{ {'f': @}.f() }}{{ cycler(@).next()() }}",
        "{% block b %}{{ @() }}{% endblock %}{{ self.b() }}",
        "{% filter upper %}{{ @(@()) }}{% endfilter %}",
        "{% set t %}{{ @() }}{% endset %}{{ t.replace('a', 'b') }}",
        "{% include 'part' %}",
        "{% import 'part' as p with context %}{{ p.m() }}",
        "{% set now %}{{ now() }}{% endset %}",
        "{% macro m(now=now) %}{{ now() }}{% endmacro %}{{ m() }}",
        "{% set now = 1 %}{% block c %}{% for i in [1] %}{{ now() }}{% endfor %}{% set now = 1 %}{% endblock %}",
        "{% for i in [1, 2] %}{% set now = now() if i == 2 else 1 %}{% endfor %}{% set now = 1 %}",
        HELD + "{% for i in [1, 2] %}{{ n.m() if n.m }}{% set now = 1 %}" + LATER + "{% endfor %}",
        HELD + "{% with %}{% set now = 1 %}" + LATER + "{% endwith %}{{ n.m() }}",
        HELD + "{% set x %}{% set n.x = [x, now] %}{% endset %}{% for x in n.x %}{{ x() }}{% endfor %}",
        "{% macro a() %}{{ now() }}{% endmacro %}{{ a() if no }}{{ a() }}{% macro now() %}{% endmacro %}",
    ]
)


given_names = st.sets(st.sampled_from(["Other", "Post", "now", "x"]))


@given(st.lists(st.tuples(forms, callees), min_size=1, max_size=3), given_names)
def test_nothing_is_called_that_was_not_told(pieces: list[tuple[str, str]], given_: set[str]) -> None:
    source = "".join(form.replace("@", callee) for form, callee in pieces)
    made: set[str] = set()

    def call(name: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> object:
        made.add(name)
        return asyncio.sleep(0, "text")

    values = {"x": "text", "Other": {"send": "it"}, "Post": {}, "now": None}
    variables = {name: values[name] for name in given_}
    with suppress(TemplateError):  # Two blocks of one name.
        template = LANGUAGE.compile(source)
        with suppress(PorticoError):
            asyncio.run(template.render(variables, call=call))
        told = template.calls
        names = made if told is None else {each.function for each in told if each.variable not in variables}
        assert made <= names, f"{source!r} called {made - names}"


class Post:
    def __init__(self) -> None:
        self.sent: list[str] = []

    @function(effects=True)
    def send(self, text: str = "") -> str:
        self.sent.append(text)
        return text

    @function(effects=True)
    def replace(self, text: str) -> str:
        self.sent.append(text)
        return text


@function(effects=True)
def given_name(text: str = "") -> str:
    return text


@function
def shout(text: str) -> str:
    return text.upper()


@pytest.mark.parametrize(
    ("language", "source", "effects"),
    [
        ("jinja2", "{{ Post.send(*['x']) }}", True),
        ("jinja2", "{{ Post.replace('x') }}", True),
        ("jinja2", "{{ post.Send('x') }}", True),
        ("jinja2", "{% include 'part' %}", True),
        ("jinja2", "{{ text.replace('x', 'y') }}{{ shout('x') }}", False),
        ("handlebars", "{{Post.send}}", True),
        ("handlebars", "{{send}}", True),
        ("handlebars", "{{#Post-send}}{{/Post-send}}", True),
        ("handlebars", "{{json (Post-send 'x')}}", True),
        ("handlebars", "{{> part}}", True),
        ("handlebars", "{{text}}{{shout 'x'}}{{a.b}}{{#each list}}{{this}}{{/each}}", False),
        ("jinja2", "{% macro send(x) %}{{ x }}{% endmacro %}{{ send(1) }}", False),
        ("jinja2", "{{ given_name(1) }}", False),
        ("handlebars", "{{given_name}}{{given_name.x}}", False),
        ("handlebars", "{{#if x}}{{given_name}}{{else}}{{#given_name}}{{/given_name}}{{/if}}", False),
        ("handlebars", "{{#each x}}{{given_name}}{{/each}}", True),
        ("handlebars", "{{given_name 'x'}}", True),
    ],
)
def test_a_plan_may_have_the_effects_of_all_that_its_template_may_call(
    language: str, source: str, effects: bool
) -> None:
    kernel = Kernel(template_languages=[LANGUAGE, HandlebarsTemplates(partials={"part": "{{Post-send}}"})])
    kernel.add_plugin(Post())
    kernel.add_function(shout)
    kernel.add_function(given_name)
    step = Step("t", PlanTemplate(source, language), {"given_name": Value("x")})
    assert kernel.may_have_effects(Plan("Write", (step,))) is effects


@pytest.mark.parametrize("source", ["{{ Post.send(*['x']) }}", "{{ Post.replace('x') }}", "{% include 'part' %}"])
async def test_a_planned_template_calls_no_function_that_the_run_leaves_out(source: str) -> None:
    post = Post()
    plan = Plan("Write", (Step("t", PlanTemplate(source, "jinja2")),), result=From("t"))
    kernel = Kernel({Planner: ScriptedPlanner(plan)}, template_languages=[LANGUAGE])
    kernel.add_plugin(post)
    with pytest.raises(PlanError):
        await kernel.run_goal("Write", exclude=["Post"])
    assert not post.sent
