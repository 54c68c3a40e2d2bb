"""A report for people at a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from portico_cli.show.layout import Hanging, count_words, new_table
from portico_cli.show.output import plain, safe_text
from portico_eval.report import FIGURES, Report

if TYPE_CHECKING:
    from rich.console import RenderableType

_MOST = 50
_LISTS = (
    ("worse", "Passed before and fail now", "red"),
    ("better", "Failed before and pass now", "green"),
    ("new", "Were not there before", "dim"),
    ("gone", "Are not there any more", "dim"),
)


def value_words(name: str, value: float | None) -> str:
    """Return a figure in words; a dash where no case asks for it."""
    if value is None:
        return "–"
    match FIGURES[name].unit:
        case "$":
            return f"${value:.4f}"
        case "s":
            return f"{value:.2f} s"
        case "count":
            return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
    return f"{value:.3f}"


def report_lines(report: Report) -> Iterator[RenderableType]:
    """Yield the cases that failed with why, the table of the figures, and what changed since the earlier report."""
    failed = [each for each in report["cases"] if not each["passed"]]
    for case in failed[:_MOST]:
        bad = [run for run in case["runs"] if run["failures"]]
        often = f"  ({len(bad)} of {len(case['runs'])} runs)" if len(case["runs"]) > 1 else ""
        yield Hanging(Text.assemble((plain(case["id"]), "bold"), (often, "dim")), "✗ ", "red")
        for words in dict.fromkeys(words for run in bad for words in run["failures"]):
            yield Hanging(safe_text(words), "    ")
        if named := next((run["run"] for run in bad if run["run"]), None):
            yield Hanging(safe_text(f"portico runs {named}", "dim"), "    ")
    if len(failed) > _MOST:
        yield Text(f"… and {len(failed) - _MOST:,} more; --json has all.", style="dim")
    if failed:
        yield Text()
    yield from _figure_lines(report)
    against = report["against"]
    lists = {name: value for name, value in (against or {}).items() if isinstance(value, list)}
    changed = [(f"{words}: {', '.join(ids)}", style) for name, words, style in _LISTS if (ids := lists.get(name))]
    yield from [Text()] if changed else []
    yield from (Hanging(safe_text(*each)) for each in changed)
    passed = len(report["cases"]) - len(failed)
    words = f"{passed:,} of {count_words(len(report['cases']), 'case')} passed."
    if failed and against is not None and not lists["worse"]:
        words += " None fails that passed before."
    yield Text()
    yield Text(words, style="red" if failed else "green")


def _figure_lines(report: Report) -> Iterator[RenderableType]:
    against, spread = report["against"], report["spread"]
    columns = ["figure", "now", *(["±"] if spread else []), *(["earlier", "change"] if against is not None else [])]
    table = new_table(*columns)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, figure in FIGURES.items():
        now = report["figures"][name]
        change = against["figures"][name] if against is not None else None
        if now is None and (change is None or change["before"] is None):
            continue
        row = [Text(figure.words), Text(value_words(name, now), style="bold")]
        if spread:
            row.append(Text("" if spread[name] is None else value_words(name, spread[name]), style="dim"))
        if change is not None:
            moved = change["change"]
            row.append(Text(value_words(name, change["before"])))
            sign, style = "", "dim"
            if moved:
                sign, style = ("+" if moved > 0 else "−"), "green" if (moved < 0) == figure.lower else "red"
            row.append(Text("" if moved is None else f"{sign}{value_words(name, abs(moved))}", style=style))
        table.add_row(*row)
    yield table
