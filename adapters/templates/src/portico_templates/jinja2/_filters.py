"""Jinja2's filters, each within bounds and counted."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from functools import wraps
from numbers import Number
from typing import Any, TypeAlias

from jinja2 import Undefined, nodes, pass_environment, pass_eval_context
from jinja2.async_utils import auto_to_list
from jinja2.filters import FILTERS, do_indent, do_title, make_attrgetter
from jinja2.nodes import EvalContext
from jinja2.tests import TESTS

from portico import Trusted
from portico.errors import LimitExceeded
from portico_templates.handlebars.values import visible
from portico_templates.jinja2._data import Missing, Refused, describe_kind
from portico_templates.jinja2._rendering import (
    OwnText,
    charge,
    charge_pieces,
    check_growth,
    count_lines,
    made,
    sized,
    work,
)

# They belong to modules above this one.
PromptEnvironment: TypeAlias = Any


# They read or write HTML, or write Python's own idea of a value; wordwrap can make a text large out of nothing.
_LEFT_OUT = ("forceescape", "pprint", "striptags", "urlencode", "urlize", "wordwrap", "xmlattr")
_OF_THE_TOP = frozenset(
    [
        "batch",
        "count",
        "d",
        "default",
        "first",
        "items",
        "last",
        "length",
        "list",
        "map",
        "reject",
        "rejectattr",
        "reverse",
        "select",
        "selectattr",
        "slice",
    ]
)
"""Filters that look at no more than the elements of what they are given."""
_OF_TEXTS = ("capitalize", "center", "lower", "title", "truncate", "upper", "wordcount")
VISIBLE = "visible keys"
"""The filter that ``*x`` and ``**x`` go through; no template can write its name."""
WHOLE = "_whole mapping"
"""The filter that ``**x`` of a call goes through, and the name by which it adds all of ``x`` for a function."""
_WRITTEN = "written names"
"""The filter that what is called goes through, with the names that are written."""
_OF_PIECES = ("batch", "groupby", "list", "map", "reject", "select", "slice", "sort", "unique")
"""Filters that cut a text to pieces."""
_HANDING_ON = frozenset(["d", "default", "first", "last", "max", "min", "random"])
"""Filters that give what is there already."""
_LARGEST = {"batch": 10_000, "center": 10_000, "indent": 1_000, "round": 100, "slice": 10_000}


_SOME_WORDS = re.compile(r"(?s).{1,50000}[^-\s({\[<]*")


def prompt_filters() -> dict[str, Callable[..., Any]]:
    """Return the filters by name."""
    filters = {name: _limit(name, filter) for name, filter in FILTERS.items() if name not in _LEFT_OUT}
    filters |= {name: _limit(name, _of_text(FILTERS[name] if name != "title" else _title)) for name in _OF_TEXTS}
    escape = _limit("escape", _escape)
    own: dict[str, Callable[..., Any]] = {
        "attr": _attr,
        "e": escape,
        "escape": escape,
        "format": _format,
        "indent": _limit("indent", _indent),
        "join": _join,
        "replace": _replace,
        "safe": _safe,
        "round": _limit("round", _of_numbers("round", FILTERS["round"])),
        "string": _string,
        "sum": _sum,
        "trim": _limit("trim", _trim),
        "tojson": _limit("tojson", _tojson),
        VISIBLE: visible,
        _WRITTEN: _written,
        WHOLE: lambda value: value if (seen := visible(value)) is value else {**seen, WHOLE: value},
    }
    return filters | own


def prompt_tests() -> dict[str, Any]:
    """Return the tests by name."""
    tests: dict[str, Any] = dict(TESTS)
    return tests | {name: _of_numbers(name, tests[name]) for name in ("divisibleby", "even", "odd")}


def mark_written(call: nodes.Call) -> None:
    """Let what is called go through the filter that knows the names by which it is written."""
    words: list[object] = []
    node = call.node
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        key = node.arg if isinstance(node, nodes.Getitem) else nodes.Const(node.attr)
        words.append(key.value if isinstance(key, nodes.Const) else None)
        node = node.node
    words.append(node.name if isinstance(node, nodes.Name) else None)
    known = tuple(reversed(words)) if all(isinstance(word, str) for word in words) else ()
    call.node = nodes.Filter(call.node, _WRITTEN, [nodes.Const(known)], [], None, None, lineno=call.lineno)


def written_words(call: nodes.Call) -> tuple[str, ...]:
    """Return the names by which something is called, as in ``Plugin.function``; none for what is computed."""
    return call.node.args[0].value  # type: ignore[attr-defined, no-any-return]


def _written(value: Any, words: tuple[str, ...]) -> Any:
    """Return what is called; a function is one only by its own names, so that a template tells what it calls."""
    if isinstance(value, Missing) and value.words and value.words != words:
        raise Refused(f"A function is called by its name: write {'.'.join(value.words)}(…).")
    return value


def _of_numbers(name: str, given: Callable[..., Any]) -> Callable[..., Any]:
    """Give a filter or test numbers only: of a text or list, Python makes more of it, or reads it as a format."""

    @wraps(given)
    def run(value: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(value, Number | Undefined):
            raise Refused(f"There is no {name} of {describe_kind(value)}, only of numbers.")
        return given(value, *args, **kwargs)

    return run


def _limit(name: str, filter: Callable[..., Any]) -> Callable[..., Any]:
    """Count what a filter goes through, and bound the numbers it is given."""
    position = 1 if hasattr(filter, "jinja_pass_arg") else 0
    largest = _LARGEST.get(name)

    @wraps(filter)
    def run(*args: Any, **kwargs: Any) -> Any:
        value = args[position]
        if name not in ("d", "default") and (seen := visible(value)) is not value:
            args, value = (*args[:position], seen, *args[position + 1 :]), seen
        if name in _OF_PIECES:
            charge_pieces(value)
        charge(value)
        if name in _OF_THE_TOP:
            # What is filled in may be so in each place.
            further = (*args[position + 1 :], *kwargs.values())
            numbers = [given for given in further if isinstance(given, int)]
            made(further, times=max(1, *numbers, work(value) if name == "map" else 1))
        else:
            made((args, kwargs))
        if largest is not None:
            for given in (*args[position + 1 :], *kwargs.values()):
                if isinstance(given, int) and abs(given) > largest:
                    raise LimitExceeded(f"The filter {name} takes numbers up to {largest:,}, not {given:,}.")
                charge(range(given) if isinstance(given, int) and given > 0 else None)
        result = filter(*args, **kwargs)
        return result if name in _HANDING_ON else sized(result)

    return run


def _of_text(filter: Callable[..., Any]) -> Callable[..., Any]:
    """Let a filter of texts see the text that a value has in a prompt, not Python's."""

    @pass_environment
    def run(environment: PromptEnvironment, value: Any, *args: Any, **kwargs: Any) -> Any:
        before = (environment,) if hasattr(filter, "jinja_pass_arg") else ()
        text = value if isinstance(value, str) else environment.text(value)
        return filter(*before, text, *args, **kwargs)

    return run


def _title(text: str) -> str:
    """Capitalise the words of a text, some at a time: all of them at once take many times its room."""
    return "".join([do_title(some[0]) for some in _SOME_WORDS.finditer(text)])


@pass_environment
def _attr(environment: PromptEnvironment, value: Any, name: str) -> Any:
    return environment.getattr(value, str(name))


@pass_environment
def _escape(environment: PromptEnvironment, value: Any) -> str:
    return html.escape(environment.text(value))


@pass_environment
def _format(environment: PromptEnvironment, value: Any, *args: Any, **kwargs: Any) -> str:
    if args and kwargs:
        raise Refused("The filter format takes arguments by place or by name, not both.")
    text: str = environment.percent(environment.text(value), kwargs or args)
    return text


@pass_environment
def _indent(environment: PromptEnvironment, value: Any, width: Any = 4, first: Any = False, blank: Any = False) -> str:
    text = environment.text(value)
    width = environment.text(width) if isinstance(width, str) else width
    lines = count_lines(text)
    charge(range(2 * lines))  # they are cut, and each is written again
    check_growth(len(text) + lines * (len(width) if isinstance(width, str) else width))
    return do_indent(text, width, first, blank)


@pass_eval_context
async def _join(context: EvalContext, value: Any, d: Any = "", attribute: Any = None) -> Any:
    environment: Any = context.environment
    elements = await _elements(environment, value, attribute)
    charge(elements)
    return environment.join(d, elements)


@pass_environment
def _replace(environment: PromptEnvironment, value: Any, old: Any, new: Any, count: int | None = None) -> Any:
    text = environment.text(value)
    charge(text)
    return environment.replace(text, environment.text(old), environment.text(new), -1 if count is None else count)


@pass_environment
def _safe(environment: PromptEnvironment, value: Any) -> Any:
    return environment.own(value)


@pass_environment
def _string(environment: PromptEnvironment, value: Any) -> str:
    text: str = value if isinstance(value, OwnText) else environment.text(value)
    return text


@pass_environment
async def _sum(environment: PromptEnvironment, iterable: Any, attribute: Any = None, start: Any = 0) -> Any:
    if isinstance(start, str | list | tuple):
        raise Refused("The filter sum adds numbers; join puts texts together, and + lists.")
    return sum(await _elements(environment, iterable, attribute), start)


async def _elements(environment: PromptEnvironment, value: Any, attribute: Any) -> list[Any]:
    charge_pieces(value)
    charge(value)
    elements = await auto_to_list(visible(value))
    if attribute is None:
        return elements
    return list(map(make_attrgetter(environment, attribute), elements))


@pass_environment
def _trim(environment: PromptEnvironment, value: Any, chars: str | None = None) -> str:
    text: str = environment.own(value) if isinstance(value, OwnText | Trusted) else environment.text(value)
    return text.trim(chars) if isinstance(text, OwnText) else text.strip(chars)


@pass_environment
def _tojson(environment: PromptEnvironment, value: Any, indent: int | None = None) -> str:
    data = environment.json(value, hide=True)
    if indent is not None and not 0 <= indent <= 16:
        raise Refused(f"The filter tojson indents by 0 to 16, not {indent}.")
    pieces, size = [], 0
    for piece in json.JSONEncoder(ensure_ascii=False, indent=indent).iterencode(data):
        size += len(piece)  # deep ones are mostly space
        check_growth(size)
        pieces.append(piece)
    return "".join(pieces)
