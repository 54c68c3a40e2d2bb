"""Runs as people see many of them: one a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from portico_cli.invocation import short_name
from portico_cli.job_places import host_of
from portico_cli.output import plain
from portico_cli.run_entries import STYLES, RunEntry, age, progress

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = ["RunTable"]

_COLUMNS = {"run": 0, "state": 0, "goal": 36, "planner": 70, "steps": 50, "worker": 90, "age": 44}
"""The columns of a table of runs, with the width that a terminal needs to show each; no worker, no such column."""
_LONGEST = 2_000
"""Characters of a goal; a longer one would take the room of all other columns, however wide a pipe is."""


@dataclass(frozen=True, slots=True)
class RunTable:
    """A table of runs, a line for each; a narrow terminal gets fewer columns rather than names that are cut."""

    runs: Sequence[RunEntry]
    now: datetime

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lay it out for a width."""
        from rich.cells import cell_len
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=False)
        width = options.max_width
        rows = [self._cells(each) for each in self.runs]
        headings = [name for name, least in _COLUMNS.items() if width >= least]
        if "worker" in headings and not any(cells["worker"] for cells in rows):
            headings.remove("worker")
        for name in headings:
            if name == "goal":
                table.add_column(name, ratio=1, no_wrap=True, overflow="ellipsis")
                continue
            least = max(cell_len(cells[name]) for cells in [{name: name}, *rows])
            right = name in ("steps", "age")
            table.add_column(name, justify="right" if right else "left", no_wrap=True, min_width=min(least, width // 2))
        for each, cells in zip(self.runs, rows, strict=True):
            styles = {"run": "bold", "state": STYLES.get(each.state, "")}
            table.add_row(*(Text(cells[name], style=styles.get(name, "")) for name in headings))
        yield table

    def _cells(self, each: RunEntry) -> dict[str, str]:
        state = each.run_state
        at = state.updated_at if state else each.job.submitted_at if each.job else ""
        return {
            "run": plain(short_name(each.name)),
            "state": each.state,
            "goal": plain(" ".join((each.goal or each.problem)[:_LONGEST].split())),
            "planner": plain(state.planner) if state else "",
            "steps": progress(state) if state else "",
            "worker": plain(host_of(each.worker)) if each.worker else "",
            "age": age(at, self.now) if at else "",
        }
