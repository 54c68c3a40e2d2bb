"""A compiled template tells the calls of functions that are written in it."""

from __future__ import annotations

import pytest

from portico.plugins import FunctionCall
from portico_templates.jinja2.language import Jinja2Templates

LANGUAGE = Jinja2Templates()


def names(source: str) -> list[str]:
    return [call.function for call in LANGUAGE.compile(source).calls]


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
        FunctionCall("P-f", 2, ("c",), 2, 6),
        FunctionCall("P-g", 0, (), 3, 1),
        FunctionCall("P-f", 0, (), 3, 13),
    )
