"""Keys of mappings that begin with ``_`` are hidden from every operation that looks into a mapping."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest

from portico.errors import TemplateError
from portico_templates.jinja2.language import Jinja2Templates

ROW = {"name": "Ada", "_id": "SECRET", "inner": {"_id": "SECRET", "city": "Oslo"}, "list": [{"_id": "SECRET"}]}
MACRO = "{% macro m(name='', inner='', list='', _id='') %}{{ _id }}{{ kwargs }}{{ varargs }}{% endmacro %}"


def render(source: str, row: Any) -> tuple[str, list[Any]]:
    """Return the text of a template, and what it gave to functions."""
    given: list[Any] = []

    async def call(name: str, arguments: Any, positional: Any = (), /) -> Any:
        given.extend([*positional, *arguments.values()])
        return row

    template = Jinja2Templates().compile(MACRO + source)
    return asyncio.run(template.render({"row": row, "rows": [row]}, call=call)), given


@pytest.mark.parametrize("kind", [dict, OrderedDict, MappingProxyType])
@pytest.mark.parametrize(
    "source",
    [
        "{{ row }}{{ rows }}{{ f() }}",
        "{{ row|string }}{{ row|e }}{{ row ~ rows }}",
        "{{ row|upper }}{{ row|title|upper }}{{ rows|capitalize|upper }}{{ row|center(9)|upper }}",
        "{{ row|truncate(999) }}{{ row|indent }}{{ row|trim }}{{ row|replace('a', 'b') }}{{ row|wordcount }}",
        "{% for key in row %}{{ key }}{{ loop.length }}{{ loop.nextitem }}{% endfor %}",
        "{% for key in row recursive %}{{ key }}{{ loop.revindex }}{{ loop(row.inner) if key == 'inner' }}{% endfor %}",
        "{% for key, value in row.items() %}{{ key }}{{ value }}{% endfor %}",
        "{% for key, value in row|items %}{{ key }}{{ value }}{% endfor %}",
        "{% for key, value in row|dictsort %}{{ key }}{{ value }}{% endfor %}",
        "{{ row.keys() }}{{ row.values() }}{{ row.get('_id') }}{{ row.inner.get('_id', '') }}",
        "{{ row|list }}{{ row|length }}{{ row|count }}{{ row|first }}{{ row|last }}{{ row|sort }}{{ row|join(' ') }}",
        "{{ row|map('upper')|list }}{{ row|select|list }}{{ row|batch(9)|list }}{{ row|reverse|list }}{{ row|max }}",
        "{{ ' '.join(row) }}{{ '%s %s' % (row, rows) }}{{ '{} {!r}'.format(row, rows) }}",
        "{{ '%(name)s' % row }}{{ '{name}'.format_map(row) }}{{ '{name}'.format(**row) }}{{ '%s'|format(row) }}",
        "{{ m(**row) }}{{ m(*row) }}{{ dict(row) }}{{ dict(**row) }}{{ namespace(row).name }}",
        "{{ rows|map('items')|map('list')|list }}{{ rows|map('length')|first }}",
        "{{ rows|groupby('name')|map('last')|list }}",
        "{{ rows|map(attribute='inner')|list }}{{ row|attr('inner') }}{{ row['list'][0] }}",
    ],
)
def test_no_operation_shows_a_hidden_key(source: str, kind: Any) -> None:
    rest = kind({"name": "Ada", "inner": {"city": "Oslo"}, "list": [{}]})
    assert render(source, kind(ROW))[0] == render(source, rest)[0]


@pytest.mark.parametrize("kind", [dict, OrderedDict])
@pytest.mark.parametrize("source", ["{{ row|tojson }}", "{{ rows|tojson(2) }}", "{{ rows|map('tojson')|list }}"])
def test_json_does_not_show_a_hidden_key(source: str, kind: Any) -> None:
    rest = kind({"name": "Ada", "inner": {"city": "Oslo"}, "list": [{}]})
    assert render(source, kind(ROW))[0] == render(source, rest)[0]


@pytest.mark.parametrize(
    "path",
    [
        "row._id",
        "row['_id']",
        "row.inner._id",
        "rows[0]['_id']",
        "f()._id",
        "row|attr('_id')",
        "rows|map(attribute='_id')|list",
        "rows|map(attribute='inner._id')|list",
        "rows|sort(attribute='_id')",
        "rows|groupby('_id')",
        "rows|selectattr('_id')|list",
        "'{0[_id]}'.format(row)",
        "{'_id': 1}._id",
    ],
)
def test_a_path_to_a_hidden_key_is_refused_with_what_to_do(path: str) -> None:
    with pytest.raises(TemplateError, match=r"Names that begin with '_' are hidden: pass '_id' under another name\."):
        render("{{ " + path + " }}", ROW)


def test_get_looks_up_one_key_and_goes_through_none() -> None:
    class Lazy(dict[str, str]):
        def __iter__(self) -> Any:
            raise AssertionError("all keys are gone through")

        def get(self, key: str, default: Any = None) -> Any:
            return f"{key}, {default}"

    source = "{{ row.get('a', 'b') }}; {{ row.get('_a', 'c') }}; {{ row.get('a', default='d') }}"
    assert render(source, Lazy())[0] == "a, b; c; a, d"


def test_functions_get_whole_values() -> None:
    _, given = render("{{ f(row) }}{{ f(x=rows) }}{{ f(row|default('')) }}{{ f(rows|first) }}{{ f(**row) }}", ROW)
    assert given == [ROW, [ROW], ROW, ROW, *ROW.values()]


def test_a_variable_may_begin_with_an_underscore() -> None:
    assert render("{% set _x = 'a' %}{{ _x }}{{ m(_id='b') }}", ROW)[0] == "ab{}[]"
