"""What a pursuit came to, for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from portico.chat import Citation
from portico_cli.answer_text import Hanging, answer_lines
from portico_cli.invocation import short_name
from portico_cli.output import plain, safe_text
from portico_cli.places import linked, place_of

if TYPE_CHECKING:
    from portico.plans.task import Answer, Infeasible
    from portico.ports.search_index import IndexReport
    from portico.pursuit import Held, Pursuit
    from portico.pursuits.journal import StartedStep

__all__ = ["answer", "citation_lines", "hold", "infeasibility", "one_line", "warning_lines"]

_LONGEST = 2_000
_FIXED = "plan"
"""What stands for the planner where a plan was run by itself."""


def answer(
    outcome: Answer, pursuit: Pursuit, reports: Mapping[str, IndexReport], *, terminal: bool
) -> Iterator[RenderableType]:
    """Yield the answer, its citations, warnings, and a line on who answered from what.

    A pipe gets the answer's text as it is, a terminal gets it laid out.
    """
    links = {citation.number: place_of(citation.name, citation.link).link for citation in outcome.citations}
    if terminal and outcome.text.strip():
        yield from answer_lines(outcome.text, links)
    elif outcome.text.strip():
        yield safe_text(outcome.text.strip("\n"))
    yield from citation_lines(outcome.citations)
    yield from warning_lines(outcome.warnings)
    yield Text()
    yield Hanging(Text(_footer(pursuit, reports), style="dim"))


def citation_lines(citations: Sequence[Citation]) -> Iterator[RenderableType]:
    """Yield an empty line and where each citation leads, by number; nothing where there are none."""
    if citations:
        yield Text()
        width = max(len(str(citation.number)) for citation in citations) + 3
        for citation in sorted(citations, key=lambda citation: citation.number):
            yield _citation(citation, width)


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


def hold(
    outcome: Held, pursuit: Pursuit, uncertain: Mapping[str, StartedStep], *, resumable: bool
) -> Iterator[RenderableType]:
    """Yield what waits for a person, and the commands that go on."""
    run = short_name(pursuit.run)
    if uncertain:
        for step, begun in uncertain.items():
            yield from _uncertainty(step, begun, run)
        return
    where = f" before step {outcome.step}" if outcome.step else ""
    yield Hanging(safe_text(f"Held{where}: {outcome.reason}", "bold"))
    if resumable:
        yield Hanging(Text(f"`portico resume {run}` goes on.", style="dim"))
    else:
        yield Hanging(Text(f"Run {run}. No journal is kept, so it cannot be resumed.", style="dim"))


def _uncertainty(step: str, begun: StartedStep, run: str) -> Iterator[RenderableType]:
    called = begun.step.function if isinstance(begun.step.function, str) else "its function"
    yield Hanging(
        safe_text(
            f"Nobody knows whether step {step} happened: the process ended after it began to call {called} and "
            "before its result was written down. It has effects, so it is not repeated unasked.",
            "bold",
        )
    )
    yield Hanging(Text("It was sent:" if begun.arguments else "It was sent nothing."))
    for name, value in begun.arguments.items():
        yield Hanging(safe_text(one_line(value)), f"  {plain(name)} = ", "    ", "dim")
    yield Text("Look whether it did. Then:")
    yield Hanging(safe_text(f"portico resume {run} --retry {step}"), "  ", "  ", "cyan")
    yield Hanging(Text("if it did not happen: the step runs again.", style="dim"), "      ", "      ")
    yield Hanging(safe_text(f"portico resume {run} --result {step} VALUE"), "  ", "  ", "cyan")
    yield Hanging(Text("if it happened: VALUE is taken for its result.", style="dim"), "      ", "      ")


def one_line(value: object) -> str:
    """Return a value as JSON on one line, cut where it is very long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"


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
    if pursuit.planner == _FIXED and not services:
        done = sum(record.error is None and "/" not in record.step.id for record in pursuit.steps)
        parts = [f"{_count(done, 'step')} done"]
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
