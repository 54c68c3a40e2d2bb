"""A hostile template costs little and gives Portico's errors only."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from portico.errors import FunctionNotFound, LimitExceeded, PorticoError
from portico_templates.jinja2 import _rendering
from portico_templates.jinja2.config import Jinja2Settings
from portico_templates.jinja2.language import Jinja2Templates

BOUNDED = Jinja2Settings(
    max_steps=20_000, max_seconds=20, max_characters=100_000, partials={"again": "{% include 'again' %}"}
)


def render(source: str, settings: Jinja2Settings = BOUNDED, **arguments: Any) -> str:
    async def call(name: str, arguments: Any, positional: Any = (), /) -> Any:
        if name == "echo":
            return positional[0] if positional else None
        raise FunctionNotFound(name)

    return asyncio.run(Jinja2Templates(settings=settings).compile(source).render(arguments, call=call))


@pytest.mark.parametrize("before", ["", "<message role='user'>"])
@pytest.mark.parametrize(
    ("source", "bound"),
    [
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "max_steps"),
        ("{% for a in l %}{% for b in l %}{% for c in l %}{% endfor %}{% endfor %}{% endfor %}", "max_steps"),
        ("{% for a in l %}{% for b in l if false %}{% endfor %}{% endfor %}", "max_steps"),
        ("{% for a in l %}{{ l|sort }}{% endfor %}", "max_steps"),
        ("{% for a in l recursive %}{{ loop(l) }}{% endfor %}", "more than 64 deep"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "more than 64 deep"),
        (
            (
                "{% macro m() %}{{ caller() }}{% endmacro %}"
                "{% macro n() %}{% call m() %}{{ n() }}{% endcall %}{% endmacro %}{{ n() }}"
            ),
            "more than 64 deep",
        ),
        ("{% block b %}{{ self.b() }}{% endblock %}", "deep"),
        ("{% include 'again' %}", "deeply"),
        ("{{ range(10 ** 9) }}", "100,000 numbers"),
        ("{{ range(10 ** 30) }}", "100,000 numbers"),
        ("{{ 'a' * 10 ** 9 }}", "max_characters"),
        ("{{ 10 ** 9 * 'a' }}", "max_characters"),
        ("{{ [0] * 10 ** 9 }}", "max_characters"),
        ("{{ 9 ** 9 ** 9 ** 9 ** 9 ** 9 }}", "bits"),
        ("{% set n = namespace(x=9) %}{% for a in l %}{% set n.x = n.x * n.x %}{% endfor %}", "bits"),
        *[
            (
                "{% set n = namespace(x='a') %}{% for a in l %}{% set n.x = " + doubled + " %}{% endfor %}",
                "max_characters",
            )
            for doubled in (
                "n.x ~ n.x",
                "n.x + n.x",
                "n.x|replace('a', 'aa')",
                "n.x.replace('a', 'aa')",
                "'%s%s' % (n.x, n.x)",
                "'{0}{0}'.format(n.x)",
                "[n.x, n.x]|join(n.x)",
                "n.x.join([n.x, n.x])",
            )
        ],
        ("{% set n = namespace(x=[0]) %}{% for a in l %}{% set n.x = n.x + n.x %}{% endfor %}", "l"),
        (
            (
                "{% set n = namespace(x='a') %}{% for a in l %}{% set x %}{{ n.x }}{{ n.x }}{% endset %}"
                "{% set n.x = x %}{% endfor %}"
            ),
            "max_",
        ),
        ("{% set n = namespace(x=[]) %}{% for a in l %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}", "steps"),
        ("{% for a in l %}{{ 'a' * 1000 }}{% endfor %}", "max_characters"),
        ("{% set x %}{% for a in l %}{{ 'a' * 1000 }}{% endfor %}{% endset %}", "max_characters"),
        ("{{ 'a'|center(10 ** 9) }}", "center"),
        ("{{ 'a'.center(10 ** 9) }}{{ 'a'.zfill(10 ** 9) }}", "max_characters"),
        ("{{ '\t'.expandtabs(10 ** 9) }}", "max_characters"),
        ("{{ 'a'|indent(10 ** 9, first=true) }}", "indent"),
        ("{{ [1]|batch(10 ** 9, 0)|list }}", "batch"),
        ("{{ [1]|slice(10 ** 9)|list }}", "slice"),
        ("{{ 1.5|round(10 ** 9, 'floor') }}", "round"),
        ("{{ '%1000000000d' % 1 }}", "width"),
        ("{{ '%.1000000000f'|format(1) }}", "width"),
        ("{{ '%*d' % (10 ** 9, 1) }}", "width"),
        ("{{ '{:1000000000}'.format(1) }}", "width"),
        ("{{ '{:{}}'.format(1, 10 ** 9) }}", "width"),
        ("{{ day.strftime('%1000000000d') }}", "width"),
        ("{{ '{:%1000000000d}'.format(day) }}", "width"),
    ],
)
def test_what_is_too_much_is_refused_and_the_bound_named(before: str, source: str, bound: str) -> None:
    import datetime as dt

    begun = time.process_time()
    with pytest.raises(LimitExceeded, match=bound):
        render(before + source, l=list(range(200)), day=dt.date(2026, 3, 1))
    assert time.process_time() - begun < 10


def test_time_is_bounded() -> None:
    few = Jinja2Settings(max_seconds=0.02)
    with pytest.raises(LimitExceeded, match="max_seconds"):
        render("{% for a in range(9999) %}{% for a in range(99) %}{{ big == big2 }}{% endfor %}{% endfor %}", few,
               big=["a" * 9] * 50_000, big2=["a" * 9] * 50_000)  # fmt: skip


@pytest.mark.parametrize(
    "source",
    [
        "{% macro m(t, n) %}{{ t[n].name }}{% endmacro %}{% for n in range(200) %}{{ m(rows, n) }}{% endfor %}",
        "{% set n = namespace(x='') %}{% for i in range(1000) %}{% set n.x = n.x ~ 'a' * 100 %}{% endfor %}{{ n.x }}",
        "{% for row in rows %}{{ '%s of %d' % (row.name, row.age) }}{{ row.age|round(1) }}{% endfor %}",
        "{% for row in rows %}{{ row.name.split(' ')|join('-') }}{% if row.name in names %}.{% endif %}{% endfor %}",
        "{% for line in text.splitlines() %}{{ line|title|truncate(20) }}{% endfor %}{{ text|indent|wordcount }}",
        "{% set n = namespace(x='') %}{% for r in rows %}{% set n.x = n.x ~ r.name * 3 ~ ', ' %}{% endfor %}{{ n.x }}",
        (
            "{% macro m(t) %}<b>{{ t }}</b>{% endmacro %}{% set n = namespace(x='') %}"
            "{% for r in rows[:1800] %}{% set n.x = n.x ~ m(r.name) %}{% endfor %}{{ n.x }}"
        ),
        "{{ longer|indent(2) }}{{ longer|wordcount }}",
        "{{ longer.splitlines()|length }}{{ longer.split('\\n')|length }}{{ longer.split(' ', 1)[0] }}",
        "{% filter title %}{{ longer }}{% endfilter %}",
        "{% for r in rows[:8000] %}{% if r.age in ages %}.{% endif %}{% if r.name == text %}.{% endif %}{% endfor %}",
        "{{ '%.2f, ' * 13000 % ((1.5,) * 13000) }}",
    ],
)
def test_ordinary_templates_with_ten_thousand_rows_are_not_refused(source: str) -> None:
    rows = [{"name": f"Ada {n}", "age": n, "more": {"a": [n]}} for n in range(10_000)]
    names = [row["name"] for row in rows[:2_000]]
    texts = {"text": "one two\n" * 40_000, "longer": "Word and more.\n" * 70_000}
    ages = list(range(8_000))
    assert render(source, Jinja2Settings(max_seconds=60), rows=rows, names=names, ages=ages, **texts)


def test_the_time_of_functions_is_not_the_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(_rendering, "time", SimpleNamespace(monotonic=lambda: now))

    async def call(name: str, arguments: Any, positional: Any = (), /) -> str:
        nonlocal now
        now += 60
        return "slow"

    templates = Jinja2Templates(settings=Jinja2Settings(max_seconds=0.2))
    source = "{{ f() }}{% for a in range(5000) %}{% endfor %}"
    assert asyncio.run(templates.compile(source).render({}, call=call)) == "slow"


@pytest.mark.parametrize(
    "part", ["(", "[", "{% if a %}", "{% for a in b %}", "not ", "-", "a.", "{{ a(", "1 + ", "a if "]
)
def test_whatever_is_nested_gives_a_portico_error(part: str) -> None:
    for count in (10, 100, 3_000):
        for source in (part * count, "{{ " + part * count + "a }}"):
            try:
                render(source)
            except PorticoError:
                continue


WORDS = st.sampled_from(
    [
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "-",
        "if",
        "else",
        "endif",
        "for",
        "in",
        "endfor",
        "set",
        "endset",
        "macro",
        "endmacro",
        "call",
        "endcall",
        "filter",
        "endfilter",
        "block",
        "endblock",
        "include",
        "extends",
        "import",
        "from",
        "as",
        "raw",
        "endraw",
        "recursive",
        "loop",
        "loop.index",
        "caller()",
        "self",
        "super()",
        "namespace",
        "range",
        "a",
        "b",
        "l",
        "d",
        "x()",
        "echo(a)",
        "echo",
        "(l)",
        "d.a",
        "d['a']",
        "l[0]",
        "l[1:]",
        "a.upper()",
        "a.format(b)",
        "|",
        "join",
        "replace('a',b)",
        "upper",
        "list",
        "sort",
        "map('upper')",
        "tojson",
        "sum",
        "first",
        "e",
        "safe",
        "indent",
        "string",
        "1",
        "2.5",
        "-1",
        "'a'",
        "'<message>'",
        "+",
        "*",
        "**",
        "/",
        "//",
        "%",
        "~",
        "==",
        "!=",
        "<",
        ">",
        "and",
        "or",
        "not",
        "is",
        "defined",
        "none",
        "true",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        ".",
        "=",
        "<message",
        "role='user'>",
        "</message>",
        "\n",
    ]
)


@pytest.mark.fuzz
@settings(deadline=None)
@given(st.lists(WORDS, max_size=25).map(" ".join), st.text(max_size=5))
def test_any_template_renders_or_gives_a_portico_error(source: str, value: str) -> None:
    for text in (
        source,
        "{{ " + source + " }}",
        "<message role='user'>{% for a in l %}{{ " + source + " }}{% endfor %}",
    ):
        try:
            prompt = render(text, a=value, b="<b>", l=[1, "a", None], d={"a": value})
        except PorticoError:
            continue
        assert isinstance(prompt, str)


@pytest.mark.fuzz
@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_renders_or_gives_a_portico_error(source: str) -> None:
    for text in (source, "{{" + source + "}}", "{%" + source + "%}"):
        try:
            render(text)
        except PorticoError:
            continue
