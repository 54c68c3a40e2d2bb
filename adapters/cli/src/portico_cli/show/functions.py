"""Show functions and how they were selected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from portico_cli.show.layout import Hanging
from portico_cli.show.output import plain, safe_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from portico import Considered, FunctionSpec, Selection

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
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    shown = ", ".join(names[:_SHOWN])
    offered = f"{len(names):,} of {selection.considered:,} functions {'is' if len(names) == 1 else 'are'} offered"
    return f"{offered}: {shown}{more}." if names else f"{offered}."


def selection_lines(selection: Selection) -> Iterator[RenderableType]:
    """Yield what is offered and what came nearest to it, with scores and reasons."""
    from rich.text import Text

    offered = selection.offered
    if offered and len(offered) >= selection.considered:
        yield safe_text(f"All {len(offered):,} functions are offered: there are no more than a model sees.")
        return
    verb = "is" if len(offered) == 1 else "are"
    yield safe_text(f"{len(offered):,} of {selection.considered:,} functions {verb} offered.", "bold")
    if len(selection.requests) > 1:
        # The parts of a question are looked for each by itself; the whole of it is no news to who asked.
        for request in selection.requests:
            yield safe_text(f"  looking for: {' '.join(request.split())}", "dim")
    if offered:
        yield _table(offered)
    if selection.left_out:
        shown = selection.left_out[:_SHOWN]
        yield Text()
        yield safe_text("Left out, those first that came nearest:", "bold")
        yield _table(shown)
        others = selection.considered - len(offered) - len(shown)
        if others > 0:
            yield safe_text(f"and {others:,} more", "dim")


def _table(rows: Sequence[Considered]) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("words", justify="right", no_wrap=True)
    table.add_column("vector", justify="right", no_wrap=True)
    table.add_column("function", overflow="fold")
    table.add_column("why", style="dim")
    for each in rows:
        measured = each.reason not in ("always", "all")
        scores = (f"{value:.2f}" if measured else "" for value in (each.score, each.lexical, each.vector))
        table.add_row(*scores, safe_text(each.name, "cyan"), each.reason)
    return table


def _as_json(each: Considered) -> dict[str, Any]:
    scores = {name: round(getattr(each, name), 4) for name in ("score", "lexical", "vector")}
    return {"name": each.name, "reason": each.reason, **scores}


def function_lines(specs: Mapping[str, FunctionSpec], selection: Selection | None) -> Iterator[RenderableType]:
    """Yield the functions that may be offered; if they were selected, which and why."""
    from rich.text import Text

    if selection is not None:
        yield from selection_lines(selection)
        return
    if not specs:
        yield safe_text("There are no functions.")
    for name, spec in specs.items():
        words = " ".join(plain(spec.description).split())
        yield Hanging(Text.assemble((plain(name), "cyan"), "  ", (words, "dim")), "  ", "    ")
