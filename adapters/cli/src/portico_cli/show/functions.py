"""Show functions and how they were selected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from portico_cli.show.layout import Hanging, new_table
from portico_cli.show.output import safe_text

if TYPE_CHECKING:
    from portico import Considered, Function, Selection

_SHOWN = 8


def selection_to_json(selection: Selection | None) -> dict[str, Any] | None:
    """Return a selection as JSON values; None where nothing was selected."""
    if selection is None:
        return None
    return {
        "considered": selection.considered,
        "requests": list(selection.requests),
        "offered": [_as_json(each) for each in selection.offered],
        "left_out": [_as_json(each) for each in selection.left_out],
    }


def selection_words(selection: Selection) -> str:
    """Return in a line what is offered."""
    names = [each.name for each in selection.offered]
    more = ", …" if len(names) > _SHOWN else ""
    return f"Offered: {len(names):,} of {selection.considered:,} functions: {', '.join(names[:_SHOWN])}{more}"


def selection_lines(selection: Selection) -> Iterator[RenderableType]:
    """Yield what is offered and what came nearest to it, with scores and reasons."""
    offered = selection.offered
    yield safe_text(f"Offered: {len(offered):,} of {selection.considered:,} functions.", "bold")
    if len(selection.requests) > 1:
        # Each part of a question is searched for by itself.
        for request in selection.requests:
            yield safe_text(f"  looking for: {' '.join(request.split())}", "dim")
    if offered:
        yield _table(offered)
    if selection.left_out:
        yield Text()
        yield safe_text("Left out, the nearest first:", "bold")
        yield _table(selection.left_out[:_SHOWN])


def _table(rows: Sequence[Considered]) -> RenderableType:
    table = new_table("score", "words", "vector", "function", "why")
    for each in rows:
        measured = each.reason not in ("always", "all")
        scores = (f"{value:.2f}" if measured else "" for value in (each.score, each.lexical, each.vector))
        table.add_row(*scores, safe_text(each.name, "cyan"), each.reason)
    return table


def _as_json(each: Considered) -> dict[str, Any]:
    scores = {name: round(getattr(each, name), 4) for name in ("score", "lexical", "vector")}
    return {"name": each.name, "reason": each.reason, **scores}


def function_lines(functions: Sequence[Function]) -> Iterator[RenderableType]:
    """Yield the functions with their parameters and descriptions, by plugin."""
    for number, (plugin, members) in enumerate(groupby(functions, key=lambda function: function.plugin)):
        if number:
            yield Text()
        yield safe_text(plugin or "(no plugin)", "bold")
        for function in members:
            names = [each.name if each.required else f"[{each.name}]" for each in function.parameters]
            yield Hanging(Text.assemble((function.name, "cyan"), (f"({', '.join(names)})", "dim")), "  ")
            yield Hanging(safe_text(" ".join(function.description.split())), "    ")
