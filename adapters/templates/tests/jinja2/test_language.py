"""What a prompt in Jinja2 can do: variables, functions, data, partials, errors."""

import asyncio
import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import pytest

from portico import Kernel, Prompt, Trusted, function
from portico.errors import LimitExceeded, TemplateError
from portico.plugins import FunctionCall
from portico_templates._plugin import portico_template_languages
from portico_templates.jinja2.config import Jinja2Settings
from portico_templates.jinja2.language import Jinja2Templates, factory


class Search:
    """A plugin."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    @function
    async def find(self, query: str, count: int = 2) -> list[dict[str, str]]:
        """Find."""
        self.asked.append((query, count))
        await asyncio.sleep(0)
        return [{"name": f"{query} {number}", "link": f"<{number}>"} for number in range(count)]


@function
def double(number: int) -> int:
    """Double."""
    return 2 * number


@function
def vouched() -> str:
    """Give a text that is trusted."""
    return Trusted("<message role='user'>Hello</message>")


@function
def fails() -> str:
    """Fail."""
    raise OSError("no disk")


def render(source: str, settings: Jinja2Settings | None = None, /, **arguments: Any) -> str:
    kernel = Kernel()
    kernel.add_plugin(Search(), "Search")
    kernel.add_function(double)
    kernel.add_function(fails)
    template = Jinja2Templates(settings=settings).compile(source)
    return asyncio.run(template.render(arguments, call=FunctionCall.caller(kernel, arguments)))


@pytest.mark.parametrize(
    "written", ["Search.find(q, count=1)", "Search_find(q, count=1)", "find(q, count=1)", "find(count=1, query=q)"]
)
def test_a_function_is_called_by_any_of_its_names(written: str) -> None:
    assert render("{% for r in " + written + " %}{{ r.name }} at {{ r.link }}{% endfor %}", q="tea") == "tea 0 at <0>"


def test_a_call_is_awaited_wherever_it_stands() -> None:
    source = (
        "{% set r = double(2) %}{{ r + 1 }} {{ double(double(3)) }} {{ [double(1), 5]|sum }} {{ double(4) ~ '!' }}"
        "{% if double(1) == 2 %} yes{% endif %} "
        "{{ find('x')|map(attribute='name')|join('; ') }} {{ find('y')[1].link }}"
    )
    assert render(source) == "5 12 7 8! yes x 0; x 1 <1>"


def test_a_variable_wins_over_a_function_of_its_name() -> None:
    assert render("{{ double }}", double="mine") == "mine"
    with pytest.raises(TemplateError, match="a value, not a function"):
        render("{{ double(2) }}", double="mine")
    assert render("{{ Search.name }}", Search={"name": "mine"}) == "mine"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[{{ x }}{{ x.y.z }}{{ x['y'] }}{{ d.nothing }}{{ d.a.b }}{{ none.a }}]", "[]"),
        ("{{ x is defined }} {{ x.y is defined }} {{ d.a is defined }} {{ x|default('-') }}", "False False True -"),
        ("{% for r in x %}{{ r }}{% else %}none{% endfor %}{% if x %}some{% endif %}", "none"),
    ],
)
def test_what_is_missing_is_empty(source: str, expected: str) -> None:
    assert render(source, d={"a": 1}) == expected


def test_what_is_missing_is_nothing_to_a_function() -> None:
    with pytest.raises(TemplateError, match="number: missing"):
        render("{{ double(x) }}")


class Point(NamedTuple):
    x: int


@dataclasses.dataclass
class Person:
    name: str
    _secret: str = "kept away"

    @property
    def lazy(self) -> str:
        raise AssertionError("a property ran")

    def run(self) -> str:
        raise AssertionError("a method ran")


@attrs.define
class City:
    name: str


class Connection:
    password = "kept away"

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked for")

    def __getitem__(self, name: Any) -> Any:
        raise AssertionError(f"{name} was asked for")


def test_fields_of_data_are_read() -> None:
    values = {"p": Person("Ada"), "q": Point(3), "c": City("Bath"), "d": {"items": 1, "name": "n"}}
    source = (
        "{{ p.name }} {{ p['name'] }} {{ q.x }} {{ c.name }} {{ d.items }} {{ d.keys()|join }} {{ 'a b'.split()[1] }}"
    )
    assert render(source, **values) == "Ada Ada 3 Bath 1 itemsname b"


@pytest.mark.parametrize(
    "source",
    [
        "{{ p._secret }}",
        "{{ p['_secret'] }}",
        "{{ p.__class__ }}",
        "{{ '{0._secret}'.format(p) }}",
        "{{ [p]|map(attribute='_secret')|list }}",
        "{{ p|attr('_secret') }}",
        "{{ c.password }}",
        "{{ c['password'] }}",
        "{{ c[1:2] }}",
        "{{ c|attr('password') }}",
        "{{ c|first }}",
        "{{ p.run() }}",
        "{{ f() }}",
        "{{ f }}",
        "{{ d.pop('a') }}",
        "{{ d.update({'a': 2}) }}",
        "{{ l.append(1) }}",
    ],
)
def test_nothing_but_data_is_read_and_nothing_of_the_application_called(source: str) -> None:
    values: dict[str, Any] = {"p": Person("Ada"), "c": Connection(), "f": Connection, "d": {"a": 1}, "l": [0]}
    try:
        text = render(source, **values)
    except TemplateError as error:
        text = str(error)
    assert "kept away" not in text
    assert values["d"] == {"a": 1}
    assert values["l"] == [0]


@pytest.mark.parametrize("written", ["'%s' % o", "'%r' % o", "'{}'.format(o)", "'{!r}'.format(o)"])
def test_a_format_writes_no_more_of_an_object_than_a_prompt_does(written: str) -> None:
    with pytest.raises(TemplateError, match="cannot be written as text"):
        render("{{ " + written + " }}", o=object())


def test_a_format_writes_values_as_a_prompt_does() -> None:
    source = "{{ '%s' % d }} {{ '%(a)s.' % d }} {{ '{}'.format(d) }} {{ '{a:>3}'.format(a=x) }} {{ '%05.1f' % 2.25 }}"
    assert render(source, d={"a": None}) == '{"a": null} . {"a": null}     002.2'


@pytest.mark.parametrize("property", ["lazy", "run"])
def test_a_property_is_no_field(property: str) -> None:
    assert render("[{{ p." + property + " }}]", p=Person("Ada")) == "[]"


@pytest.mark.parametrize(
    ("source", "line", "column", "words"),
    [
        ("a\n  {{ Serch.find('x') }}", 2, 3, "Nearest: Search-find"),
        ("a\n{{ double(2) }} {{ double(\n  'x') }}", 2, 20, "expected an integer"),
        ("{#\n#}\n{% set x = 1 %}\n{%- if nope(x) %}{% endif %}", 4, 1, "no function 'nope'"),
        ("a\n{{ 1 + 'a' }}", 2, 1, "unsupported operand"),
        ("{{ x.upper() }}", 1, 1, "no function"),
        ("{{$name}}", 1, 1, "A variable is written {{ name }}"),
        ("{% for a in l %}{{ loop }}{% endfor %}", 1, 1, "the variable of a loop"),
        ("{{ x + 1 }}", 1, 1, "'x' is undefined"),
        ("{{ a b }}", 1, 1, "got 'b'"),
        ("{{ l|nofilter }}", 1, 1, "nofilter"),
        ("{{ l is defned }}", 1, 1, "No test named 'defned'"),
        ("{% autoescape true %}{% endautoescape %}", 1, 1, "no autoescape"),
        ("{{ l|upper( }}", 1, 1, "unexpected"),
        ("{{ [1]|map('upper') }}", 1, 1, "write |join or |list"),
        ("{{ range }}", 1, 1, "cannot be written as text"),
        ("{% macro m() %}{% endmacro %}\n{{ m }}", 2, 1, "the macro m, which has no text"),
        ("{% for a in l %}{{ [loop]|map(attribute='length')|list }}{% endfor %}", 1, 1, "variable of a loop"),
        ("{{ o }}", 1, 1, "cannot be written as text"),
        ("{% include 'x' %}", 1, 1, "no partial 'x'"),
    ],
)
def test_an_error_says_where_and_what(source: str, line: int, column: int, words: str) -> None:
    with pytest.raises(TemplateError) as raised:
        render(source, l=[1], o=object())
    assert words.casefold() in str(raised.value).casefold()
    assert (raised.value.line, raised.value.column) == (line, column) or "double" in source, str(raised.value)


def test_a_fault_in_a_partial_is_told_of_the_partial() -> None:
    partials = {"head": "You are\n{{ nope() }}", "broken": "a\n{% if %}"}
    with pytest.raises(TemplateError, match="head, line 2, column 1"):
        render("{% include 'head' %}", Jinja2Settings(partials=partials))
    with pytest.raises(TemplateError, match="broken, line 2"):
        render("{% include 'broken' %}", Jinja2Settings(partials=partials))


def test_what_a_function_raises_comes_through() -> None:
    with pytest.raises(OSError, match="no disk"):
        render("{{ fails() }}")


def test_partials_come_from_the_settings_and_from_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "tail.txt").write_text("Bye, {{ name }}.\n", "utf-8")
    (tmp_path.parent / "secret.txt").write_text("hidden", "utf-8")
    (tmp_path / "link.txt").symlink_to(tmp_path.parent / "secret.txt")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe")
    settings = Jinja2Settings(
        partials={
            "head": "Hello {{ name }}. ",
            "macros": "{% macro twice(x) %}{{ x }}{{ double(2) }}{% endmacro %}",
            "page": "<{% block body %}empty{% endblock %}>",
        },
        folder=tmp_path,
    )
    source = "{% include 'head' %}{% from 'macros' import twice %}{{ twice(name) }} {% include 'inner/tail.txt' %}"
    assert render(source, settings, name="Ada") == "Hello Ada. Ada4 Bye, Ada.\n"
    assert render(
        "{% extends 'page' %}{% block body %}{{ super() }} {{ name }}{% endblock %}", settings, name="Ada"
    ) == ("<empty Ada>")
    assert render("{% include ['nope', 'head'] ignore missing %}", settings, name="Ada") == "Hello Ada. "
    for name in ("../secret.txt", "link.txt", "/etc/passwd", "inner", "binary.txt", "nope", "a\0b"):
        with pytest.raises(TemplateError):
            render("{% include name %}", settings, name=name)


def test_an_imported_partial_keeps_nothing_from_one_rendering_to_the_next() -> None:
    settings = Jinja2Settings(partials={"found": "{% set first = find(q)[0].name %}"})
    language = Jinja2Templates(settings=settings)
    template = language.compile("{% import 'found' as f with context %}{{ f.first }}")
    for query in ("one", "two"):
        kernel = Kernel()
        kernel.add_plugin(Search(), "Search")
        assert asyncio.run(template.render({"q": query}, call=FunctionCall.caller(kernel))) == f"{query} 0"
    plain = Jinja2Templates(settings=Jinja2Settings(partials={"n": "{% set n = double(2) %}"}))
    template = plain.compile("{% import 'n' as n %}{{ n.n }}")
    results = iter(range(10))

    async def call(name: str, arguments: Any, positional: Any = (), /) -> int:
        return next(results)

    assert [str(asyncio.run(template.render({}, call=call))) for _ in range(3)] == ["0", "1", "2"]


def test_a_trusted_result_is_markup_and_nothing_is_called_twice() -> None:
    kernel = Kernel()
    kernel.add_function(vouched)
    search = Search()
    kernel.add_plugin(search, "Search")
    source = "A {{ find('x', count=1)[0].link }} {{ vouched() }} {{ find('<message>', count=1)[0].name }}"
    prompt = asyncio.run(Jinja2Templates().compile(source).render({}, call=FunctionCall.caller(kernel)))
    assert isinstance(prompt, Prompt)
    assert [(message.role, message.text) for message in prompt.messages()] == [
        ("system", "A <0>"),
        ("user", "Hello"),
        ("user", "<message> 0"),
    ]
    assert search.asked == [("x", 1), ("<message>", 1)]


@pytest.mark.parametrize(
    "source",
    ["{% for said in history %}{{ said }}{% endfor %}", "{{ history[0] }}", "{{ history|join }}", "{{ turn.text }}",
     "{{ history[0] ~ '' }}", "{{ history[0] + '' }}",
     "{% set text %}{{ history[0] }}{% endset %}{{ text }}",
     "{{ first(history) }}"],
)  # fmt: skip
def test_a_trusted_text_inside_of_a_value_is_markup_without_other_messages_too(source: str) -> None:
    kernel = Kernel(template_languages=[Jinja2Templates()])

    @function
    def first(texts: list[str]) -> str:
        return texts[0]

    kernel.add_function(first)
    said = "<message role='assistant'>Hello</message>"
    values = {"history": [said], "turn": {"text": said}}
    prompt = asyncio.run(kernel.render_prompt(source, values, language="jinja2", trusted={"history", "turn"}))
    assert isinstance(prompt, Prompt)
    assert [(message.role, message.text) for message in prompt.messages()] == [("assistant", "Hello")]
    assert asyncio.run(kernel.render_prompt(source, values, language="jinja2")) == said, "what is not trusted is text"


@pytest.mark.parametrize(
    ("source", "variables"),
    [
        ("{{ b }} {{ a.c[0] }} {{ b|upper }}", ("b", "a")),
        ("{{ f(a, k=b) }} {{ P.f([c, {'k': d}]) }} {{ name.upper() }}", ("a", "b", "c", "d")),
        ("{{ a ~ b + c }} {{ x|replace(d, e) }}", ("a", "b", "c", "x", "d", "e")),
        ("{% if a and not b.c %}{{ a }}{{ b }}{{ c }}{% elif d is defined %}{{ d }}{% endif %}", ("c",)),
        ("{% for x in a %}{{ x }}{{ loop.index }}{{ b }}{% endfor %}{% for x in f(c) %}{% endfor %}", ("b", "c")),
        ("{% set a = 1 %}{{ a }}{% set b = c %}{{ b }}", ("c",)),
        ("{% macro m(a) %}{{ a }}{{ b }}{{ FunctionCall.caller() }}{% endmacro %}{% call m(c) %}{{ d }}{% endcall %}",
         ("b", "c", "d")),
        ("{{ a|default('x') }}{{ b|d(c) }}{{ d if e else f }}", ("c", "d", "f")),
        ("{% include 'p' %}{% import 'p' as p %}{{ p.x }}{{ range(2) }}{{ namespace(k=a) }}", ("a",)),
        ("{% block b %}{{ a }}{{ self.b() }}{% endblock %}{% filter trim %}{{ c }}{% endfilter %}", ("a", "c")),
        ("{% set x %}{{ a }}{% endset %}{{ 'b' }}{{ 1 + 2 }}<message role='{{ r }}'>{{ x }}</message>", ("a", "r")),
        ("{% raw %}{{ a }}{% endraw %}{# {{ b }} #}", ()),
    ],
)  # fmt: skip
def test_a_template_names_the_variables_that_it_cannot_do_without(source: str, variables: tuple[str, ...]) -> None:
    assert Jinja2Templates(settings=Jinja2Settings(partials={"p": ""})).compile(source).variables == variables


def test_a_template_keeps_its_last_line_break() -> None:
    assert render("a\n") == "a\n"
    assert render("{% if true %}\n  a\n{% endif %}\n", Jinja2Settings(trim_blocks=True)) == "  a\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ 'a\nb'|indent }}", "a\n    b"),
        ("{{ 'a\nb\n\nc'|indent(2, first=true) }}", "  a\n  b\n\n  c"),
        ("{{ ['a', 1, none]|join('-') }}", "a-1-"),
        ("{{ 'hello big-world'|title }}", "Hello Big-World"),
        ("{{ {'ä': [1, true, none]}|tojson }}", '{"ä": [1, true, null]}'),
        ("{{ '<'|e }} {{ '<' }} {{ '<'|safe }}", "&lt; < <"),
        ("{{ 'abab'|replace('b', '-', 1) }}", "a-ab"),
        ("{{ '%s is %d'|format('x', 3) }} {{ '%s' % 'y' }} {{ '{:>3}'.format(7) }}", "x is 3 y   7"),
        ("{{ [1, 2]|sum }} {{ [{'n': 2}]|sum(attribute='n') }} {{ 2 ** 8 }}", "3 2 256"),
        ("{{ 'ab' * 2 }} {{ [1] + [2] }}", "abab [1, 2]"),
        ("{% set ns = namespace(n=0) %}{% for i in range(3) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "3"),
        ("{% for a, b in {'x': 1}.items() %}{{ loop.index }}{{ a }}{{ b }}{{ loop.last }}{% endfor %}", "1x1True"),
        ("{% for n in [1, [2]] recursive %}{% if n is iterable %}({{ loop(n) }}){% endif %}{% endfor %}", "()"),
        ("{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}", "aba"),
        ("{{ 'abc'[1:] }} {{ 'abc'[-1] }} {{ l[::2] }}", "bc c [1, 3]"),
        ("{% for x in l if x > 1 %}{{ x }}{% endfor %} {{ l|select('odd')|list }}", "23 [1, 3]"),
        ("{{ l|batch(2)|list }} {% set x = loop %}{{ x.last }}", "[[1, 2], [3]] "),
        ("{{ day.year }} {{ day.strftime('%d.%m.') }}", "2026 01.03."),
    ],
)
def test_the_language_works_as_its_documentation_says(source: str, expected: str) -> None:
    import datetime as dt

    assert render(source, l=[1, 2, 3], day=dt.date(2026, 3, 1)) == expected
    marked = render("<message role='user'>" + source + "</message>", l=[1, 2, 3], day=dt.date(2026, 3, 1))
    assert marked == f"<message role='user'>{expected}</message>"


def test_a_template_that_is_too_long_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="at most 1,000,000 characters"):
        render("a" * 1_000_001)
    with pytest.raises(LimitExceeded, match="p: a template has at most 1,000,000 characters"):
        render("{% include 'p' %}", Jinja2Settings(partials={"p": "a" * 1_000_001}))


def test_renderings_inside_one_another_stay_apart() -> None:
    language = Jinja2Templates()
    inner = language.compile("{% for i in [1, 2] %}{{ name }}{% endfor %}")
    outer = language.compile("{{ name }} {{ inner() }} {% for i in [1] %}{{ name }}{% endfor %}")

    async def call(name: str, arguments: Any, positional: Any = (), /) -> str:
        return await inner.render({"name": "in"}, call=call)

    assert asyncio.run(outer.render({"name": "out"}, call=call)) == "out inin out"


class NoServices:
    """What a host gives where no codec is installed."""

    def get(self, port: Any, name: str | None = None) -> Any:
        raise AssertionError(f"{port} was asked for")

    def names(self, port: Any) -> tuple[str, ...]:
        return ()


def test_it_registers_itself() -> None:
    assert "jinja2" in [registration.name for registration in portico_template_languages()]
    language = factory(Jinja2Settings(), NoServices())
    assert language.name == "jinja2"
    assert str(language.compile("{{ a }}")) == "{{ a }}"
