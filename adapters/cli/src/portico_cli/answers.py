"""What a pursuit came to, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from portico.chat import Citation
from portico_cli.answer_text import Hanging, answer_lines
from portico_cli.output import plain, safe_text
from portico_cli.places import linked, place_of

if TYPE_CHECKING:
    from portico.plans.task import Answer, Infeasible
    from portico.ports.search_index import IndexReport
    from portico.pursuit import Held, Pursuit

__all__ = ["answer", "hold", "infeasibility", "warning_lines"]


def answer(
    outcome: Answer, pursuit: Pursuit, reports: Mapping[str, IndexReport], *, terminal: bool
) -> Iterator[RenderableType]:
    """Yield the answer, its citations, warnings, and a line on who answered from what.

    A pipe gets the answer's text as it is, a terminal gets it laid out.
    """
    links = {citation.number: place_of(citation.name, citation.link).link for citation in outcome.citations}
    if terminal:
        yield from answer_lines(outcome.text, links)
    else:
        yield safe_text(outcome.text.strip("\n"))
    if outcome.citations:
        yield Text()
        width = max(len(str(citation.number)) for citation in outcome.citations) + 3
        for citation in sorted(outcome.citations, key=lambda citation: citation.number):
            yield _citation(citation, width)
    yield from warning_lines(outcome.warnings)
    yield Text()
    yield Hanging(Text(_footer(pursuit, reports), style="dim"))


def warning_lines(warnings: Sequence[str]) -> Iterator[RenderableType]:
    """Yield an empty line and the warnings, nothing where there are none."""
    if warnings:
        yield Text()
    for warning in warnings:
        yield Hanging(safe_text(warning, "yellow"), "! ", "  ", "yellow")


def infeasibility(outcome: Infeasible) -> Iterator[RenderableType]:
    """Yield why a goal cannot be reached and what would be needed."""
    yield Hanging(safe_text(f"This cannot be done: {outcome.reason}", "bold"))
    for missing in outcome.missing:
        yield Hanging(safe_text(missing), "  missing: ", "           ", "dim")


def hold(outcome: Held, pursuit: Pursuit) -> Iterator[RenderableType]:
    """Yield what waits for a person."""
    where = f" before step {outcome.step}" if outcome.step else ""
    yield Hanging(safe_text(f"Held{where}: {outcome.reason}", "bold"))
    yield Hanging(Text(f"Run {pursuit.run}.", style="dim"))


def _citation(citation: Citation, width: int) -> Hanging:
    place = place_of(citation.name, citation.link)
    text = Text()
    if place.shown:
        text.append_text(linked(Text(place.shown, style="cyan"), place.link))
    if place.title:
        text.append(("  " if place.shown else "") + place.title)
    return Hanging(text, f"[{citation.number}]".ljust(width), " " * width, "bold green")


def _footer(pursuit: Pursuit, reports: Mapping[str, IndexReport]) -> str:
    services = ", ".join(pursuit.services)
    parts = [f"Answered by {services}" if services else f"Answered by the planner {pursuit.planner}"]
    if reports:
        passages = sum(report.passages for report in reports.values())
        documents = sum(report.documents for report in reports.values())
        parts.append(f"from {_count(passages, 'passage')} in {_count(documents, 'document')}")
    skipped = sum(sum(report.skipped.values()) for report in reports.values())
    unread = sum(len(report.problems) for report in reports.values())
    line = plain(" ".join(parts)) + "."
    if skipped:
        line += f" {_count(skipped, 'file')} skipped."
    if unread:
        line += f" {_count(unread, 'problem')} while indexing."
    if skipped or unread:
        line += " `portico index PATH` says why."
    return line


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
