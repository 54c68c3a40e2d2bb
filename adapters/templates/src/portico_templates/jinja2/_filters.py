"""Jinja2's filters, each within bounds and counted."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator
from functools import wraps
from numbers import Number
from typing import Any, TypeAlias

from jinja2 import pass_environment, pass_eval_context
from jinja2.async_utils import auto_await, auto_to_list
from jinja2.filters import FILTERS, do_indent, make_attrgetter
from jinja2.nodes import EvalContext
from jinja2.tests import TESTS

from portico import Trusted
from portico.errors import LimitExceeded
from portico_templates.handlebars.values import visible
from portico_templates.jinja2._data import Refused
from portico_templates.jinja2._rendering import RENDERING, OwnText, charge, check_growth, made

# They belong to modules above this one.
PromptEnvironment: TypeAlias = Any


# They read or write HTML, or write Python's own idea of a value; wordwrap can make a text large out of nothing.
_LEFT_OUT = ("forceescape", "pprint", "striptags", "urlencode", "urlize", "wordwrap", "xmlattr")
_LARGEST = {"batch": 10_000, "center": 10_000, "indent": 1_000, "round": 100, "slice": 10_000}
_OF_TEXTS = frozenset(["capitalize", "center", "lower", "title", "truncate", "upper", "wordcount"])
_COMPARING = frozenset(["dictsort", "groupby", "max", "min", "sort", "unique"])
_ELEMENTS = _COMPARING | {"batch", "list", "map", "reject", "rejectattr", "select", "selectattr", "slice"}


def prompt_filters(environment: PromptEnvironment) -> dict[str, Callable[..., Any]]:
    """Return the filters by name."""
    own: dict[str, Callable[..., Any]] = {"e": _escape, "escape": _escape, "indent": _indent, "tojson": _tojson}
    own |= {"attr": _attr, "format": _format, "join": _join, "replace": _replace, "safe": _safe, "string": _string}
    own |= {"sum": _sum, "trim": _trim}
    filters = {name: filter for name, filter in (FILTERS | own).items() if name not in _LEFT_OUT}
    return {name: _limit(name, filter, environment) for name, filter in filters.items()}


def prompt_tests(environment: PromptEnvironment) -> dict[str, Callable[..., Any]]:
    """Return the tests by name."""

    def prepared(test: Any, prepare: Callable[[Any], Any]) -> Callable[..., Any]:
        return wraps(test)(lambda *args: test(*map(prepare, args)))

    ways = {name: environment.known for name, test in TESTS.items() if test.__module__ == "_operator"}
    ways |= dict.fromkeys(("filter", "test"), environment.known) | dict.fromkeys(("lower", "upper"), environment.text)
    ways |= dict.fromkeys(("divisibleby", "even", "odd"), _number)
    changed = {name: prepared(TESTS[name], way) for name, way in ways.items()}
    return {**TESTS, **changed, "in": environment.contains}


def _number(value: Any) -> Any:
    if not isinstance(value, Number):
        raise Refused("This takes numbers only.")
    return value


def _limit(name: str, filter: Callable[..., Any], environment: PromptEnvironment) -> Callable[..., Any]:
    """Count what a filter goes through, and bound the numbers it is given."""
    position = 1 if hasattr(filter, "jinja_pass_arg") else 0
    largest = _LARGEST.get(name)

    @wraps(filter)
    async def run(*args: Any, **kwargs: Any) -> Any:
        before, value, others = args[:position], visible(args[position]), args[position + 1 :]
        if name in _COMPARING:
            if isinstance(value, Iterator) or hasattr(value, "__aiter__"):
                value = await auto_to_list(value)
            # Python compares in one go.
            if RENDERING.get().walk(value) and name not in ("dictsort", "groupby") and "attribute" not in kwargs:
                raise Refused(f"The filter {name} would compare what is hidden in these values: give it attribute=….")
        elif name == "round":
            _number(value)
        elif name in _OF_TEXTS and not isinstance(value, str):
            value = environment.text(value)
        charge(range(len(value)) if name in _ELEMENTS and isinstance(value, str) else value)
        for given in (*others, *kwargs.values()):
            environment.known(given)
            if largest is not None and isinstance(given, int):
                if abs(given) > largest:
                    raise LimitExceeded(f"The filter {name} takes numbers up to {largest:,}, not {given:,}.")
                charge(range(given) if given > 0 else None)
        result = made(await auto_await(filter(*before, value, *others, **kwargs)))
        return map(_counted, result) if name == "unique" else result

    return run


def _counted(element: Any) -> Any:
    RENDERING.get().step(1)
    return element


@pass_environment
def _attr(environment: PromptEnvironment, value: Any, name: str) -> Any:
    return environment.getattr(value, environment.text(name))


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
    check_growth(len(text) + len(text.splitlines()) * (len(width) if isinstance(width, str) else width))
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
    charge(range(len(value)) if isinstance(value, str) else value)
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
    if indent is not None and not 0 <= indent <= 16:
        raise Refused(f"The filter tojson indents by 0 to 16, not {indent}.")
    text: str = environment.text([value])[1:-1]
    return text if indent is None else json.dumps(json.loads(text), ensure_ascii=False, indent=indent)
