"""The outcomes of a run on the command line: exit codes, colours, what is printed, and the keys of ``--json``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any, NoReturn

import click
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from portico import Citation
from portico.plans import Answer, Infeasible, Plan, plan_to_json
from portico.ports import IndexReport
from portico_cli.failures import DONE, FAILED, HELD, INFEASIBLE
from portico_cli.invocation import Invocation, short_name
from portico_cli.show.functions import selection_to_json
from portico_cli.show.layout import Hanging, count_words, markdown, place_head
from portico_cli.show.output import plain, safe_text, show, write_json
from portico_cli.show.plans import (
    Placed,
    argument_lines,
    called_name,
    finding_to_json,
    function_to_json,
    outcome_to_json,
)

if TYPE_CHECKING:
    from portico import Paused, Proposal, Run, Usage
    from portico_cli.execution import Ended


@dataclass(frozen=True, slots=True)
class ShownState:
    """How a state of a run is shown, and the exit code of a command that ends in it."""

    style: str = ""
    code: int = FAILED
    resumable: bool = False


STATES = {
    "waiting": ShownState("blue"),
    "running": ShownState("cyan"),
    "done": ShownState("green", DONE),
    "failed": ShownState("red", resumable=True),
    "infeasible": ShownState("yellow", INFEASIBLE),
    "held": ShownState("yellow", HELD, resumable=True),
    "uncertain": ShownState("bold yellow", HELD, resumable=True),
    "interrupted": ShownState("magenta", resumable=True),
    "cancelled": ShownState("magenta", resumable=True),
    "unreadable": ShownState("red"),
}
_WORST = (FAILED, HELD, INFEASIBLE, DONE)
_COUNTS = ("added", "changed", "renamed", "removed", "unchanged")
_MOST_PROBLEMS = 50


def show_and_exit(invocation: Invocation, ended: Ended, reports: Mapping[str, IndexReport] | None = None) -> NoReturn:
    """Show how a run ended, with the ``reports`` of the indexes that were updated for it, and exit."""
    run = ended.run
    match run.outcome:
        case Answer() as answer:
            state, lines = "done", _answer_lines(answer, run, reports or {})
        case Infeasible() as infeasible:
            state, lines = "infeasible", _infeasible_lines(infeasible)
        case paused:
            state, lines = "held", _held_lines(paused, ended)
    if invocation.json:
        made = _run_to_json(run, ended.uncertain)
        made |= {} if ended.measured else {"usage": None}
        if reports is not None:
            made["indexes"] = {name: report_to_json(report) for name, report in reports.items()}
        write_json(made)
    else:
        show(*lines)
    click.get_current_context().exit(STATES[state].code)


def show_proposal(proposal: Proposal) -> None:
    """Show a proposal that is no plan."""
    outcome = proposal.outcome
    if isinstance(outcome, Answer):
        show(safe_text(f"The planner {proposal.planner} needs no plan:", "dim"), safe_text(outcome.text))
    elif isinstance(outcome, Infeasible):
        show(*_infeasible_lines(outcome))


def proposal_code(proposal: Proposal) -> int:
    """Return the exit code for a proposal."""
    wrong = any(each.severity == "error" for each in proposal.findings)
    return INFEASIBLE if isinstance(proposal.outcome, Infeasible) else FAILED if wrong else DONE


def worst_code(states: Iterable[str]) -> int:
    """Return the exit code of the worst state of several runs."""
    return min((STATES[state].code for state in states), key=_WORST.index)


def proposal_to_json(goal: str, proposal: Proposal) -> dict[str, Any]:
    """Return the proposal of a planner as JSON values."""
    outcome = proposal.outcome
    return {
        "outcome": type(outcome).__name__.lower(),
        "goal": goal,
        "planner": proposal.planner,
        "plan": plan_to_json(outcome) if isinstance(outcome, Plan) else None,
        "findings": [finding_to_json(Placed(each)) for each in proposal.findings],
        "answer": outcome.text if isinstance(outcome, Answer) else None,
        "reason": outcome.reason if isinstance(outcome, Infeasible) else None,
        "missing": list(outcome.missing) if isinstance(outcome, Infeasible) else [],
        "selection": selection_to_json(proposal.selection),
    }


def _run_to_json(run: Run, uncertain: Mapping[str, Any]) -> dict[str, Any]:
    from portico import Paused

    outcome = run.outcome
    found = outcome if isinstance(outcome, Answer) else Answer("")
    return {
        "outcome": "held" if isinstance(outcome, Paused) else type(outcome).__name__.lower(),
        "answer": outcome.text if isinstance(outcome, Answer) else None,
        "value": found.value,
        "citations": [asdict(each) for each in found.citations],
        "warnings": list(found.warnings),
        "reason": None if isinstance(outcome, Answer) else outcome.reason,
        "missing": list(outcome.missing) if isinstance(outcome, Infeasible) else [],
        "step": outcome.step if isinstance(outcome, Paused) else None,
        "uncertain": [
            {"id": step, "function": function_to_json(begun.step), "arguments": dict(begun.arguments)}
            for step, begun in uncertain.items()
        ],
        "plan": plan_to_json(run.plan) if run.plan.steps else None,
        "steps": [
            {"id": record.step.id, "function": function_to_json(record.step), **outcome_to_json(record)}
            for record in run.steps
        ],
        "usage": usage_to_json(run.usage),
        "run": run.name,
        "planner": run.planner,
        "service": run.services[-1] if run.services else None,
        "selection": selection_to_json(run.selection),
    }


def _answer_lines(outcome: Answer, run: Run, reports: Mapping[str, IndexReport]) -> Iterator[RenderableType]:
    """Yield the answer, its citations, the warnings, and a line on who answered from what."""
    if outcome.text.strip():
        # A pipe gets the text as it is.
        laid_out = sys.stdout.isatty() and isinstance(outcome.value, str | None)  # JSON is no Markdown
        yield markdown(outcome.text) if laid_out else safe_text(outcome.text.strip("\n"))
    yield from citation_lines(outcome.citations)
    yield from warning_lines(outcome.warnings)
    yield Text()
    yield Hanging(Text(_footer(run, reports), style="dim"))


def usage_to_json(usage: Usage) -> dict[str, int | float]:
    """Return token counts as JSON values, and the cost in US dollars where it is known."""
    counts: dict[str, int | float] = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return counts if usage.cost is None else {**counts, "cost": usage.cost}


def cost_words(usage: Usage) -> str:
    """Return what models cost, " for $0.0021"; nothing where it is not known, or nothing was to pay."""
    if not usage.cost:
        return ""
    return f" for ${usage.cost:.2f}" if usage.cost >= 1 else f" for ${max(usage.cost, 0.0001):.4f}"


def citation_lines(citations: Sequence[Citation]) -> Iterator[RenderableType]:
    """Yield an empty line and the place of each citation, by number; nothing if there are none."""
    if citations:
        yield Text()
    width = max((len(str(citation.number)) for citation in citations), default=0) + 3
    places = dict.fromkeys((each.number, each.name, each.link) for each in citations)
    for number, name, link in sorted(places, key=lambda place: place[0]):
        yield Hanging(place_head(name, link), f"[{number}]".ljust(width), "bold green")


def warning_lines(warnings: Sequence[str]) -> Iterator[RenderableType]:
    """Yield an empty line and the warnings; nothing if there are none."""
    if warnings:
        yield Text()
    for warning in warnings:
        yield Hanging(safe_text(warning, "yellow"), "! ", "yellow")


def _infeasible_lines(outcome: Infeasible) -> Iterator[RenderableType]:
    yield Hanging(safe_text(f"This cannot be done: {outcome.reason}", "bold"))
    for missing in outcome.missing:
        yield Hanging(safe_text(missing), "  missing: ", "dim")


def _held_lines(outcome: Paused, ended: Ended) -> Iterator[RenderableType]:
    """Yield what waits for a person, and the commands that continue."""
    run = short_name(ended.run.name)
    for step, begun in ended.uncertain.items():
        words = (
            f"Step {step} may or may not have happened: the process ended during its call of "
            f"{called_name(begun.step)}. The step has effects, so it runs again only if you say so."
        )
        yield Hanging(safe_text(words, "bold"))
        yield Text("It was sent:" if begun.arguments else "It was sent nothing.")
        yield from argument_lines(begun.arguments)
        yield Text("If it did not happen, this runs the step again:")
        yield Hanging(safe_text(f"portico resume {run} --retry {quote(step)}"), "  ", "cyan")
        yield Text("If it happened, VALUE becomes its result:")
        yield Hanging(safe_text(f"portico resume {run} --result {quote(step)} VALUE"), "  ", "cyan")
    if not ended.uncertain:
        where = f" before step {outcome.step}" if outcome.step else ""
        yield Hanging(safe_text(f"Held{where}: {outcome.reason}", "bold"))
        advice = f"`portico resume {run}` {'at a terminal asks, and ' if ended.asks else ''}continues."
        if not ended.resumable:
            advice = f"Run {run}. No journal is kept, so it cannot be resumed."
        yield Hanging(Text(advice, style="dim"))


def _footer(run: Run, reports: Mapping[str, IndexReport]) -> str:
    done = f"{count_words(len(run.plan.steps), 'step')} done"
    line = f"Answered by {', '.join(run.services)}" if run.services else done
    if run.passages:
        documents = {(each.link or "").partition("#")[0] or each.name for each in run.passages}
        line += f" from {count_words(len(run.passages), 'passage')} in {count_words(len(documents), 'document')}"
    line += cost_words(run.usage)
    problems = sum(len(report.problems) for report in reports.values())
    advice = f" {count_words(problems, 'problem')} while reading: `portico index PATH` shows why." if problems else ""
    return f"{plain(line)}.{advice}"


def report_to_json(report: IndexReport) -> dict[str, Any]:
    """Return the report of an index update as JSON values."""
    return {
        "documents": report.documents,
        **{name: getattr(report, name) for name in _COUNTS},
        "passages": report.passages,
        "embedded": report.embedded,
        "skipped": dict(sorted(report.skipped.items())),
        "problems": list(report.problems),
        "repaired": list(report.repaired),
    }


def report_lines(report: IndexReport) -> Iterator[RenderableType]:
    """Yield a table of the counts, what was repaired, and at most 50 problems."""
    table = Table.grid(padding=(0, 2))
    skipped = {f"skipped, {reason}": number for reason, number in sorted(report.skipped.items())}
    counts = {name: getattr(report, name) for name in _COUNTS}
    for name, number in {**counts, **skipped, "passages": report.passages, "embedded": report.embedded}.items():
        table.add_row(safe_text(name), Text(f"{number:,}", style="bold" if number else "dim"))
    yield table
    for problem in (*report.repaired, *report.problems[:_MOST_PROBLEMS]):
        yield Hanging(safe_text(problem, "yellow"), "! ", "yellow")
    if len(report.problems) > _MOST_PROBLEMS:
        yield Text(f"… and {len(report.problems) - _MOST_PROBLEMS:,} more; --json has all.", style="dim")
