"""A short template that makes values without end ends itself, whatever then looks at all of a value."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MEGABYTE = 2**20
GROWN = (
    "{% set ns = namespace(x=1, y=1) %}{% set d = {'a': 1} %}{% macro m(v) %}{{ v }}{% endmacro %}"
    "{% for _ in range(40) %}{% set ns.x = X %}{% set ns.y = Y %}{% endfor %}"
)
WAYS_TO_GROW = [
    "[x, x]",
    "(x, x)",
    "{'a': x, 'b': x}",
    "[x] + [x]",
    "(x,) * 2",
    "dict(a=x, b=(x,))",
    "[x, x]|batch(1)|list",
    "[x, x]|map('list')|list if x is iterable else [x, x]",
    "namespace(x=[x, x]).x",
    "cycler(x, x).items",
    "range(1)|batch(3, x)|list",
    "[(x,), {'a': x}]",
]
LOOKS = [
    "x",
    "x|tojson",
    "x|tojson(2)",
    "x|string",
    "x ~ y",
    "m(x)",
    "echo(x)",
    "echo(v=[x])",
    "x == y",
    "x != y",
    "x < y",
    "0 < x < y",
    "x in [y]",
    "x not in (y,)",
    "x in [y]|batch(1)|list",
    "x in ([y]|batch(1))",
    "x is eq(y)",
    "x is in([y])",
    "x is filter",
    "x is upper",
    "[x, y]|sort",
    "[x, y]|map('list')|sort(reverse=true)",
    "[x, y]|unique|list",
    "[[x], [y]]|groupby(0)",
    "[x, y]|min",
    "[x, y]|max",
    "{'a': x, 'b': y}|dictsort(by='value')",
    "[x, y]|join",
    "[x, y]|sum",
    "[y]|select('eq', x)|list",
    "[[y]]|selectattr(0, 'ge', x)|list",
    "[y]|map(x)|list",
    "x|upper",
    "x|title",
    "x|truncate(5)",
    "x|wordcount",
    "x|replace('a', 'b')",
    "x|e",
    "'%s' % x",
    "'%s %s'|format(x, y)",
    "'{} {!r}'.format(x, y)",
    "'-'.join([x, y])",
    "{x: 1}",
    "dict([[x, 1]])",
    "d[x]",
    "d.get(x)",
    "none_there[x].y",
    "d|attr(x)",
    "[y].count(x)",
    "[y].index(x)",
    "[y, 1].index([x])",
]
STATEMENTS = [
    "{% for e in [x, y] %}{{ loop.changed(e) }}{% endfor %}",
    "{% if x == y %}{% endif %}",
    "{% include x %}",
    "{% include [x, y] %}",
    "{% set z %}{{ x }}{% endset %}",
    "{% for e in [y] if e == x %}{% endfor %}",
    "{% filter replace('a', x) %}a{% endfilter %}",
]
NESTED = [
    "{% set ns = namespace(x=0) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ {(ns.x,): 1} }}",
    "{% set ns = namespace(x=0) %}{% for i in range(99999) %}{% set ns.x = (ns.x,) %}{% endfor %}{{ {ns.x: 1} }}",
]

BIG = "{% set b = 'a' * 3999000 %}{% set e = '\U0001f600' * 4000000 %}"
GREEDY = [
    *[
        "{{ " + written + " }}"
        for written in (
            "'a'|round(9, 'ceil')",
            "[0]|round(8, 'floor')",
            "'%999999999d' is odd",
            "'%999999999d' is even",
            "'%999999999d' is divisibleby(1)",
            "'%(a(b))999999999d' % {'a(b)': 1}",
            "('%999d' * 300000) % ((1,) * 300000)",
            "('{0:999}' * 500000).format(1)",
        )
    ],
    *[
        BIG + "{{ " + written + " }}"
        for written in (
            "'%s' * 9999 % ((b,) * 9999)",
            "'%(a)s' * 9999 % {'a': b}",
            "('{0}' * 9999).format(b)",
            "e|list|length",
            "e|join(',')|length",
            "','.join(e)|length",
            "e|batch(2)|list|length",
            "('ab ' * 1000000).split()|length",
            "([b] * 1000)|map('upper')|list|length",
            "([[b]] * 1000)|map('string')|list|length",
            "([b] * 1000)|map('safe')|list|length",
        )
    ],
    BIG + "".join(f"{{% set a{n} = b ~ {n} %}}" for n in range(300)),
    BIG + "".join(f"{{% set a{n} = e[1:] %}}" for n in range(300)),
    "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = ns.x + ['a' * 1000000] %}{% endfor %}",
    "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x, 'a'.center(999999)] %}{% endfor %}",
    (
        "{% set x %}{{ 'a' }}{% endset %}{% set n = namespace(x=x) %}"
        "{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}"
    ),
    "{% set b = 2 ** 49990 %}{% for i in range(99999) %}{% set z = b * b %}{% endfor %}",
    "{% set b = [0] * 300000 %}{% set c = b + [] %}{% for i in range(99999) %}{% if b == c %}{% endif %}{% endfor %}",
    "{% set b = 'a' * 3999000 %}{% for i in range(99999) %}{% if 'b' in b %}{% endif %}{% endfor %}",
]


def template(grow: str, look: str) -> str:
    grown = GROWN.replace("X", _of(grow, "x", "ns.x")).replace("Y", _of(grow, "x", "ns.y"))
    written = look if look.startswith("{%") else "{{ " + look + " }}"
    return grown + _of(_of(written, "x", "ns.x"), "y", "ns.y")


def _of(text: str, name: str, path: str) -> str:
    """Put a path in the place of a name that stands alone."""
    import re

    return re.sub(rf"(?<![\w.'%]){name}(?![\w='])", path, text)


ALL = [template(grow, look) for look in [*LOOKS, *STATEMENTS] for grow in WAYS_TO_GROW] + NESTED
FEW = [template(WAYS_TO_GROW[n % len(WAYS_TO_GROW)], look) for n, look in enumerate([*LOOKS, *STATEMENTS])] + NESTED

# Renders each template of the standard input in a small process, and prints how it ended, when, and the peak of memory.
PROGRAM = r"""
import asyncio, gc, json, re, resource, sys, time
from pathlib import Path
from portico.errors import FunctionNotFound, PorticoError
from portico_templates.jinja2.config import Jinja2Settings
from portico_templates.jinja2.language import Jinja2Templates

resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
async def call(name, arguments, positional=(), /):
    if name == "echo":
        return ""
    raise FunctionNotFound(name)
sources, settings = json.load(sys.stdin)
language = Jinja2Templates(settings=Jinja2Settings(**settings))
language.compile("{{ 1 }}")
for source in sources:
    begun = time.process_time()
    try:
        asyncio.run(language.compile(source).render({}, call=call))
        end = "rendered"
    except PorticoError as error:
        end = type(error).__name__
    took = time.process_time() - begun
    status = Path("/proc/self/status")  # what `getrusage` tells includes the process that started this one
    peak = re.search(r"VmHWM:\s*(\d+)", status.read_text())[1] if status.exists() else 0
    gc.collect()
    print(json.dumps([end, took, int(peak) * 1024]), flush=True)
"""


def ends(sources: list[str], settings: dict[str, Any], seconds: float) -> list[tuple[str, float, int]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps([sources, settings]), capture_output=True, text=True,
        timeout=seconds, check=False, cwd=Path(__file__).parent,
    )  # fmt: skip
    found = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    assert len(found) == len(sources), f"{sources[len(found)]!r} ended the process: {done.stderr[-800:]}"
    return found


def test_a_template_that_doubles_a_value_ends_whatever_looks_at_it() -> None:
    found = ends(FEW, {"max_steps": 20_000}, 60)
    assert {end for end, *_ in found} <= {"LimitExceeded", "TemplateError", "rendered"}
    assert found[-1][2] < 200 * MEGABYTE, "memory at the end"


def test_what_makes_much_out_of_few_characters_ends_with_little_memory() -> None:
    found = ends(GREEDY, {}, 120)
    assert {end for end, *_ in found} <= {"LimitExceeded", "TemplateError"}
    assert found[-1][2] < 200 * MEGABYTE, "memory at the end"


@pytest.mark.slow
@pytest.mark.parametrize("source", ALL + GREEDY)
def test_a_hungry_template_takes_one_second_and_200_megabytes_at_most(source: str) -> None:
    [(_, took, memory)] = ends([source], {}, 60)
    assert took < 1
    assert memory < 200 * MEGABYTE
