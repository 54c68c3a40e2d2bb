"""Which functions a template calls."""

from __future__ import annotations

from collections.abc import Iterator

from jinja2 import Environment, nodes

from portico.plugins import FunctionCall
from portico_templates.jinja2._data import METHODS
from portico_templates.jinja2._errors import places_of_calls
from portico_templates.jinja2._variables import undeclared_in

_OF_METHODS = frozenset(["keepends", "maxsplit", "sep", "tabsize", "timespec"])


def calls_of(tree: nodes.Template, source: str, environment: Environment) -> tuple[FunctionCall, ...]:
    """Return the calls of functions of the kernel that a template writes down, in the order of writing."""
    undeclared = undeclared_in(tree)
    places = FunctionCall.places(source)
    left: dict[tuple[str, ...], Iterator[int]] = {}
    found: list[FunctionCall] = []
    for call in tree.find_all(nodes.Call):
        words = _words(call.node)
        if not words or words[0] not in undeclared or call.dyn_args is not None or call.dyn_kwargs is not None:
            continue
        name = "-".join(words) if len(words) == 2 else ".".join(words)
        named = [argument.key for argument in call.kwargs]
        if len(words) == 2 and _may_be_method(words[1], named):
            continue
        # Jinja2 knows the line only; calls of one name stand in the source in the order in which they are found.
        spots = left.setdefault(words, iter(places_of_calls(source, words, environment)))
        at = next(spots, None)
        if at is None:
            found.append(FunctionCall(name, len(call.args), tuple(named), call.lineno, 1))
        else:
            found.append(places.call(name, len(call.args), named, at=at))
    return tuple(sorted(found, key=lambda call: (call.line, call.column)))


def _may_be_method(name: str, named: list[str]) -> bool:
    """Tell whether ``x.name(…)`` may be a method of a variable; those take few arguments by name."""
    return name in METHODS and (name == "format" or _OF_METHODS.issuperset(named))


def _words(node: nodes.Node) -> tuple[str, ...]:
    """Return the names by which something is called, as in ``Plugin.function``; none for what is computed."""
    words: list[str] = []
    while True:
        match node:
            case nodes.Name(name=str(name)):
                return (name, *reversed(words))
            case (
                nodes.Getattr(node=inner, attr=str(word)) | nodes.Getitem(node=inner, arg=nodes.Const(value=str(word)))
            ):
                words.append(word)
                node = inner
            case _:
                return ()
