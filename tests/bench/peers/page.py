"""Writes what was measured: the table of `docs/explanation/performance.md` and its two plots."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

from tests.bench.peers.work import IMPORT, ROWS, Row

FOLDER = Path(__file__).parents[3] / "docs" / "explanation"
PAGE = FOLDER / "performance.md"
RESULTS = Path(__file__).with_name("results.json")
OURS = "Portico"
BEGIN, END = "<!-- written by `nox -s bench -- --peers` -->", "<!-- until here -->"
# What differs by less is the same: two runs of one program differ by that much.
ALIKE = 1.05
PROCESSOR, CLOCK = "processor", "ratio"
Columns: TypeAlias = dict[str, dict[str, Any]]
"""The rows of each framework, by its name."""

STYLE = """<style>
text{font:15px system-ui,sans-serif;fill:#1f2933}.note{fill:#56606e;font-size:13px}.title{font-weight:600}
.line{stroke:#d5dbe1;stroke-width:1}.floor{stroke:#7b8794;stroke-width:1.5;stroke-dasharray:4 3}
.peer{fill:#9aa5b1;fill-opacity:.8}.ours{fill:#0b7285}
@media(prefers-color-scheme:dark){text{fill:#e4e7eb}.note{fill:#9aa5b1}.line{stroke:#3e4c59}.floor{stroke:#9aa5b1}
.peer{fill:#7b8794}.ours{fill:#3bc9db}}
</style>"""


def value(key: str, row: Any, by: str = PROCESSOR) -> float | None:
    """Return the figure of a row that is shown: milliseconds of an import, else a ratio; None without one."""
    if not isinstance(row, dict):
        return None
    number: float = row["ms"] if key == IMPORT else row.get(by) or row[CLOCK]
    return number


def short(number: float) -> str:
    """Write a ratio with three figures that mean something."""
    return f"{number:.2f}" if number < 10 else f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def cell(key: str, row: Any, by: str = PROCESSOR) -> str:
    """Write the figure of a row: "failed" where it could not be measured, "—" where a framework does not have it."""
    number = value(key, row, by)
    if number is None:
        return "—" if row is None else "failed"
    return f"{number:,.0f} ms" if key == IMPORT else short(number)


def columns(saved: dict[str, Any]) -> Columns:
    """Return the rows of each framework; one that is measured in several environments has one column."""
    found: Columns = {}
    for peer in saved["peers"].values():
        found.setdefault(peer["name"], {}).update(peer.get("rows", {}))
    return found


def numbers_of(key: str, found: Columns, by: str = PROCESSOR) -> dict[str, float]:
    """Return the figures of a row by the names of the frameworks that have it."""
    figures = {name: value(key, rows.get(key), by) for name, rows in found.items()}
    return {name: number for name, number in figures.items() if number is not None}


def standing(numbers: dict[str, float]) -> str:
    """Say who is ahead in a row."""
    others = {name: number for name, number in numbers.items() if name != OURS}
    if OURS not in numbers:
        return "Portico has no figure"
    if not others:
        return "Portico alone"
    ours, best = numbers[OURS], min(others, key=others.__getitem__)
    if ours * ALIKE < others[best]:
        return "Portico"
    return f"**{best}**" if others[best] * ALIKE < ours else f"alike: Portico, {best}"


def lines_of(rows: Sequence[Row], found: Columns, by: str = PROCESSOR) -> list[str]:
    """Write the lines of a table."""
    lines = [f"| | Floor | {' | '.join(found)} | Ahead |", f"| --- | --- |{' ---: |' * len(found)} --- |"]
    for row in rows:
        cells = [cell(row.key, each.get(row.key), by) for each in found.values()]
        ahead = standing(numbers_of(row.key, found, by))
        lines.append(f"| {row.title} | {row.floor} | {' | '.join(cells)} | {ahead} |")
    return lines


def faults(saved: dict[str, Any]) -> list[str]:
    """Say what could not be measured."""
    found = []
    for peer in saved["peers"].values():
        found += [f"- {peer['name']} could not be measured: {peer['failed']}"] if "failed" in peer else []
        rows = {key: row for key, row in peer.get("rows", {}).items() if isinstance(row, str)}
        found += [f"- {peer['name']}, {key}: {row}" for key, row in rows.items()]
    return [*found, ""] if found else []


def versions(saved: dict[str, Any]) -> str:
    """Say where it was measured, and with which versions."""
    listed, clients = [], set()
    for peer in saved["peers"].values():
        known = dict(peer.get("versions", {}))
        clients |= {known.pop("openai")} if "openai" in known else set()
        note = f" ({peer['note']})" if peer["note"] else ""
        listed += [f"{name} {version}{note}" for name, version in known.items() if name not in ("numpy", "jinja2")]
    machine = saved["machine"]
    return (
        f"Measured on {machine['system']}, {machine['processor']} with {machine['cores']} cores, Python "
        f"{machine['python']}. Versions: {', '.join(listed)}; the `openai` client {' or '.join(sorted(clients))}, as "
        "each framework requires."
    )


def table(saved: dict[str, Any]) -> str:
    """Write both tables, what could not be measured, the machine and the versions."""
    found = columns(saved)
    by_clock = lines_of([row for row in ROWS if row.waits], found, CLOCK)
    said = "The rows that wait for answers, by the clock:"
    return "\n".join([*lines_of(ROWS, found), "", said, "", *by_clock, "", *faults(saved), versions(saved)])


def dots(saved: dict[str, Any]) -> str:
    """Draw a line for each ratio: its place on it is how many times the floor it takes, by powers of ten."""
    found = columns(saved)
    rows = [row for row in ROWS if row.key != IMPORT and numbers_of(row.key, found)]
    numbers = [number for row in rows for number in numbers_of(row.key, found).values()]
    low, high = math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers)))
    left, width, top, step = 390, 500, 58, 27

    def place(number: float) -> float:
        return left + (math.log10(number) - low) / (high - low) * width

    bottom = top + step * len(rows)
    parts = ['<text class="title" x="12" y="24">Times the raw floor; further to the left is faster</text>']
    for power in range(low, high + 1):
        x, kind = place(10.0**power), "line" if power else "floor"
        label = f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
        parts += [
            f'<line class="{kind}" x1="{x:.1f}" y1="{top - 8}" x2="{x:.1f}" y2="{bottom - 8}"/>',
            f'<text class="note" x="{x:.1f}" y="{bottom + 12}" text-anchor="middle">{label}×</text>',
        ]
    for number, row in enumerate(rows):
        y = top + step * number + step / 2 - 8
        parts.append(f'<text x="{left - 14}" y="{y + 5:.1f}" text-anchor="end">{escape(row.title)}</text>')
        # Ours last, so that it lies above the others.
        for name, ratio in sorted(numbers_of(row.key, found).items(), key=lambda item: item[0] == OURS):
            kind, size = ("ours", 7) if name == OURS else ("peer", 5)
            said = f"<title>{escape(name)}: {short(ratio)}×</title>"
            parts.append(f'<circle class="{kind}" cx="{place(ratio):.1f}" cy="{y:.1f}" r="{size}">{said}</circle>')
    parts.append(legend(left, 44))
    return drawing(left + width + 40, bottom + 26, "How many times the raw floor each framework takes", parts)


def bars(saved: dict[str, Any]) -> str:
    """Draw a bar for the import of each framework, the shortest first."""
    taken = sorted((number, name) for name, number in numbers_of(IMPORT, columns(saved)).items())
    left, width, top, step = 170, 560, 44, 30
    scale = width / max([number for number, _ in taken], default=1)
    parts = ['<text class="title" x="12" y="24">Milliseconds to import a framework, without a service</text>']
    for place, (number, name) in enumerate(taken):
        y, long, kind = top + step * place, max(2.0, number * scale), "ours" if name == OURS else "peer"
        parts += [
            f'<text x="{left - 12}" y="{y + 15}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="{kind}" x="{left}" y="{y}" width="{long:.1f}" height="20" rx="3"/>',
            f'<text class="note" x="{left + long + 8:.1f}" y="{y + 15}">{number:,.0f}</text>',
        ]
    return drawing(left + width + 70, top + step * len(taken) + 8, "How long each framework takes to import", parts)


def legend(x: int, y: int) -> str:
    """Say which dots are ours."""
    return (
        f'<circle class="ours" cx="{x + 7}" cy="{y - 5}" r="7"/><text class="note" x="{x + 20}" y="{y}">Portico</text>'
        f'<circle class="peer" cx="{x + 97}" cy="{y - 5}" r="5"/><text class="note" x="{x + 108}" y="{y}">a peer</text>'
    )


def drawing(width: int, height: int, said: str, parts: list[str]) -> str:
    """Put the parts of a picture together."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{said}">'
    return "\n".join([head, STYLE, *parts, "</svg>", ""])


def rendered(text: str, saved: dict[str, Any]) -> str:
    """Return a page with its table as the results give it."""
    block = f"{BEGIN}\n\n{table(saved)}\n\n{END}"
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: block, text, flags=re.DOTALL)


def write(saved: dict[str, Any]) -> None:
    """Write the table into the page, and both plots beside it."""
    PAGE.write_text(rendered(PAGE.read_text("utf-8"), saved), "utf-8")
    for name, picture in pictures(saved).items():
        (FOLDER / name).write_text(picture, "utf-8")


def pictures(saved: dict[str, Any]) -> dict[str, str]:
    """Return the plots by the names of their files."""
    return {"performance-ratios.svg": dots(saved), "performance-import.svg": bars(saved)}


if __name__ == "__main__":
    write(json.loads(RESULTS.read_text("utf-8")))
