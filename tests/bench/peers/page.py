"""Writes what was measured: the table of `docs/explanation/performance.md` and its two plots."""

from __future__ import annotations

import json
import math
import re
from html import escape
from pathlib import Path
from typing import Any

from tests.bench.peers.work import IMPORT, ROWS, Row

FOLDER = Path(__file__).parents[3] / "docs" / "explanation"
PAGE = FOLDER / "performance.md"
RESULTS = Path(__file__).with_name("results.json")
OURS = "Portico"
BEGIN, END = "<!-- written by `nox -s bench -- --peers` -->", "<!-- until here -->"
# What differs by less is the same: two runs of one program differ by that much.
ALIKE = 1.03
BY_CLOCK = {row.key: row.waits for row in ROWS}

STYLE = """<style>
text{font:15px system-ui,sans-serif;fill:#1f2933}.note{fill:#56606e;font-size:13px}.title{font-weight:600}
.line{stroke:#d5dbe1;stroke-width:1}.floor{stroke:#7b8794;stroke-width:1.5;stroke-dasharray:4 3}
.peer{fill:#9aa5b1;fill-opacity:.8}.ours{fill:#0b7285}
@media(prefers-color-scheme:dark){text{fill:#e4e7eb}.note{fill:#9aa5b1}.line{stroke:#3e4c59}.floor{stroke:#9aa5b1}
.peer{fill:#7b8794}.ours{fill:#3bc9db}}
</style>"""


def value(key: str, row: Any) -> float | None:
    """Return the figure of a row that is shown: milliseconds of an import, else a ratio; None without one."""
    if not isinstance(row, dict):
        return None
    return float(row["ms" if key == IMPORT else "ratio" if BY_CLOCK[key] else "processor"])


def short(number: float) -> str:
    """Write a ratio with three figures that mean something."""
    return f"{number:.2f}" if number < 10 else f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def cell(key: str, row: Any) -> str:
    """Write the figure of a row, or what there is instead."""
    number = value(key, row)
    if number is None:
        return "—" if row is None else "failed"
    return f"{number:.0f} ms" if key == IMPORT else short(number)


def columns(saved: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the rows of each framework; one that is measured in several environments has one column."""
    found: dict[str, dict[str, Any]] = {}
    for peer in saved["peers"].values():
        found.setdefault(peer["name"], {}).update(peer.get("rows", {}))
    return found


def standing(row: Row, found: dict[str, dict[str, Any]]) -> str:
    """Say who is ahead in a row."""
    numbers = {
        name: number for name, rows in found.items() if (number := value(row.key, rows.get(row.key))) is not None
    }
    ours = numbers.pop(OURS, None)
    if ours is None:
        return "Portico has no figure"
    if not numbers:
        return "Portico alone"
    best = min(numbers, key=numbers.__getitem__)
    if ours * ALIKE < numbers[best]:
        return "Portico"
    return f"**{best}**" if numbers[best] * ALIKE < ours else f"alike: Portico, {best}"


def table(saved: dict[str, Any]) -> str:
    """Write the table, what could not be measured, the machine and the versions."""
    found = columns(saved)
    lines = [f"| | Floor | {' | '.join(found)} | Ahead |", f"| --- | --- |{' ---: |' * len(found)} --- |"]
    for row in ROWS:
        cells = [cell(row.key, rows.get(row.key)) for rows in found.values()]
        lines.append(f"| {row.title} | {row.floor} | {' | '.join(cells)} | {standing(row, found)} |")
    peers = list(saved["peers"].values())
    failed = [f"{peer['name']} could not be measured: {peer['failed']}" for peer in peers if "failed" in peer]
    failed += [
        f"{peer['name']}, {key}: {row}"
        for peer in peers
        for key, row in peer.get("rows", {}).items()
        if isinstance(row, str)
    ]
    machine = saved["machine"]
    listed = [
        f"{each} {version}{', ' + peer['note'] if peer['note'] and each in name else ''}"
        for peer in peers
        for name in [peer["name"].lower().replace(" ", "-")]
        for each, version in peer.get("versions", {}).items()
        if each not in ("openai", "numpy", "jinja2")
    ]
    clients = sorted({peer["versions"]["openai"] for peer in peers if "versions" in peer})
    said = (
        f"Measured on {machine['system']}, {machine['processor']} with {machine['cores']} cores, Python "
        f"{machine['python']}. Versions: {'; '.join(listed)}; the `openai` client {' or '.join(clients)}, as each "
        "framework requires."
    )
    return "\n".join([*lines, "", *(f"- {line}" for line in failed), *([""] if failed else []), said])


def dots(saved: dict[str, Any]) -> str:
    """Draw a line for each ratio: its place on it is how many times the floor it takes, by powers of ten."""
    found = columns(saved)
    rows = [
        row for row in ROWS if row.key != IMPORT and any(value(row.key, each.get(row.key)) for each in found.values())
    ]
    numbers = [
        number for row in rows for each in found.values() if (number := value(row.key, each.get(row.key))) is not None
    ]
    low, high = math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers)))
    left, width, top, step = 330, 500, 58, 27

    def place(number: float) -> float:
        return left + (math.log10(number) - low) / (high - low) * width

    bottom = top + step * len(rows)
    parts = ['<text class="title" x="12" y="24">Times the raw floor; further to the left is faster</text>']
    for power in range(low, high + 1):
        x, label = place(10.0**power), f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
        parts.append(
            f'<line class="{"line" if power else "floor"}" x1="{x:.1f}" y1="{top - 8}" x2="{x:.1f}" y2="{bottom - 8}"/>'
        )
        parts.append(f'<text class="note" x="{x:.1f}" y="{bottom + 12}" text-anchor="middle">{label}×</text>')
    for number, row in enumerate(rows):
        y = top + step * number + step / 2 - 8
        parts.append(f'<text x="{left - 14}" y="{y + 5:.1f}" text-anchor="end">{escape(row.title)}</text>')
        # Ours last, so that it lies above the others.
        for name, each in sorted(found.items(), key=lambda item: item[0] == OURS):
            if (ratio := value(row.key, each.get(row.key))) is not None:
                kind, size = ("ours", 7) if name == OURS else ("peer", 5)
                said = f"<title>{escape(name)}: {short(ratio)}×</title>"
                parts.append(f'<circle class="{kind}" cx="{place(ratio):.1f}" cy="{y:.1f}" r="{size}">{said}</circle>')
    parts.append(legend(left, 44))
    return drawing(left + width + 40, bottom + 26, "How many times the raw floor each framework takes", parts)


def bars(saved: dict[str, Any]) -> str:
    """Draw a bar for the import of each framework, the shortest first."""
    found = columns(saved)
    taken = sorted(
        (number, name) for name, rows in found.items() if (number := value(IMPORT, rows.get(IMPORT))) is not None
    )
    left, width, top, step = 170, 560, 44, 30
    scale = width / max([number for number, _ in taken], default=1)
    parts = ['<text class="title" x="12" y="24">Milliseconds to import what a small application needs</text>']
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
