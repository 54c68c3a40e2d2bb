"""What an index update did, for programs and for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from portico.ports.search_index import IndexReport

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["report_lines", "report_to_json"]

_COUNTS = ("added", "changed", "renamed", "removed", "unchanged")
_MOST_PROBLEMS = 50


def report_to_json(report: IndexReport) -> dict[str, Any]:
    """Return a report as JSON values."""
    return {
        "documents": report.documents,
        **{name: getattr(report, name) for name in _COUNTS},
        "passages": report.passages,
        "embedded": report.embedded,
        "skipped": dict(sorted(report.skipped.items())),
        "problems": list(report.problems),
    }


def report_lines(report: IndexReport) -> Iterator[RenderableType]:
    """Yield a table of the counts and the problems, at most 50 of them."""
    from rich.table import Table
    from rich.text import Text

    from portico_cli.answer_text import Hanging
    from portico_cli.output import safe_text

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(justify="right")
    for name in _COUNTS:
        number = getattr(report, name)
        table.add_row(name, Text(f"{number:,}", style="bold" if number else "dim"))
    for reason, number in sorted(report.skipped.items()):
        table.add_row(safe_text(f"skipped, {reason}"), f"{number:,}")
    table.add_row("passages", f"{report.passages:,}")
    table.add_row("embedded", f"{report.embedded:,}")
    yield table
    for problem in report.problems[:_MOST_PROBLEMS]:
        yield Hanging(safe_text(problem, "yellow"), "! ", "  ", "yellow")
    if len(report.problems) > _MOST_PROBLEMS:
        yield Text(f"… and {len(report.problems) - _MOST_PROBLEMS:,} more; --json has all.", style="dim")
