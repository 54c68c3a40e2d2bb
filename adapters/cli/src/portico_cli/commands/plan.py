"""`portico plan`: propose a plan without running it, check one, compare two."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from portico import Proposal
from portico.plans import Answer, Infeasible, Plan, plan_difference
from portico_cli.arguments import read_goal
from portico_cli.failures import DONE, FAILED, INFEASIBLE, Misused
from portico_cli.invocation import (
    Invocation,
    chat_option,
    common_options,
    docs_option,
    json_option,
    overrides_of,
    pass_invocation,
    planner_option,
    source_option,
)
from portico_cli.plan_files import (
    FORMS,
    Placed,
    check_file,
    finding_lines,
    form_of,
    placed_to_json,
    read_plan_file,
    write_text,
    written_plan,
)
from portico_cli.runs import origin_of, run_command_line
from portico_cli.show.answer import infeasible_lines
from portico_cli.show.functions import selection_to_json
from portico_cli.show.output import console_for, safe_text, show, write_as_it_is, write_json
from portico_cli.sources import Chosen, choose_sources, run
from portico_cli.terminal.progress import Progress

if TYPE_CHECKING:
    from portico import FunctionSpec


@click.command(name="plan")
@click.argument("goal", required=False)
@click.option("--check", "checked", metavar="FILE", help="Check the plan in FILE, `-` for standard input.")
@click.option("--fix", is_flag=True, help="With --check: write what can be mended for certain into the file.")
@click.option("--diff", "compared", metavar="FILE FILE", nargs=2, help="Show what changed from one plan to another.")
@planner_option
@chat_option
@click.option("--format", "form", type=click.Choice(list(FORMS)), help="How the plan is written; text by default.")
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the plan to this file; as JSON, or as its ending .xml, .mmd or .txt says.",
)
@docs_option
@source_option
@json_option
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    *,
    goal: str | None,
    checked: str | None,
    fix: bool,
    compared: tuple[str, str] | None,
    planner: str | None,
    chat: str | None,
    form: str | None,
    output: Path | None,
    docs: tuple[Path, ...],
    names: tuple[str, ...],
) -> None:
    """Propose a plan for GOAL and print it; nothing runs.

    GOAL is in words; `-` reads it from standard input.
    """
    if sum(each is not None for each in (goal, checked, compared)) != 1:
        raise click.UsageError("Give one of GOAL, --check FILE and --diff FILE FILE.")
    if fix and checked is None:
        raise click.UsageError("--fix goes with --check FILE.")
    if output is not None and (compared is not None or (checked is not None and not fix)):
        raise click.UsageError("--output goes with GOAL, and with --check FILE --fix.")
    if compared is not None:
        _compare(invocation, *compared)
        return
    chosen = choose_sources(invocation, docs, names, overrides_of(planner, chat))
    if checked is not None:
        code = check_file(invocation, chosen, checked, output, fix=fix)
    else:
        goal = read_goal(cast("str", goal))
        proposed = run(lambda: _propose(goal, chosen, origin_of(docs, names, chat)))
        ending = "text" if output is None else form_of(output)
        code = _show(invocation, proposed, form or ending, output)
    click.get_current_context().exit(code)


@dataclass(frozen=True, slots=True)
class _Proposed:
    goal: str
    proposal: Proposal
    catalogue: dict[str, FunctionSpec]
    origin: Mapping[str, Any]

    @property
    def findings(self) -> list[Placed]:
        return [Placed(each) for each in self.proposal.findings]


async def _propose(goal: str, chosen: Chosen, origin: Mapping[str, Any]) -> _Proposed:
    async with chosen.application.kernel(chosen.sources) as kernel:
        with Progress() as progress:
            proposal = await kernel.propose(goal, emit=progress)
        return _Proposed(goal, proposal, dict(kernel.specs), origin)


def _show(invocation: Invocation, proposed: _Proposed, form: str, output: Path | None) -> int:
    proposal = proposed.proposal.outcome
    if isinstance(proposal, Plan):
        return _show_plan(invocation, proposed, proposal, form, output)
    if invocation.json:
        write_json(_to_json(proposed))
    elif isinstance(proposal, Answer):
        show(safe_text(f"The planner {proposed.proposal.planner} needs no plan:", "dim"), safe_text(proposal.text))
    else:
        show(*infeasible_lines(proposal))
    if isinstance(proposal, Answer) and output is not None:
        raise Misused(f"There is no plan to write to {output}.")
    return DONE if isinstance(proposal, Answer) else INFEASIBLE


def _show_plan(invocation: Invocation, proposed: _Proposed, plan: Plan, form: str, output: Path | None) -> int:
    # Before anything is printed: XML cannot hold every plan.
    text = written_plan(plan, form, proposed.catalogue)
    if output is not None:
        write_text(output, text)
    if invocation.json:
        write_json({**_to_json(proposed), "text": None if form == "json" else text})
    elif output is not None:
        told = f" `{run_command_line(output, proposed.origin)}` runs it." if form in ("json", "xml") else ""
        show(safe_text(f"Wrote {output}.{told}"))
    else:
        write_as_it_is(text)
    wrong = any(each.finding.severity == "error" for each in proposed.findings)
    if proposed.findings and not invocation.json:
        console = console_for(sys.stderr)
        for line in finding_lines("", proposed.findings):
            console.print(line)
        if wrong:
            console.print(safe_text("This plan cannot run. A run would send the findings back to its planner."))
    return FAILED if wrong else DONE


def _to_json(proposed: _Proposed) -> dict[str, Any]:
    from portico.plans import plan_to_json

    proposal = proposed.proposal.outcome
    return {
        "outcome": type(proposal).__name__.lower(),
        "goal": proposed.goal,
        "planner": proposed.proposal.planner,
        "plan": plan_to_json(proposal) if isinstance(proposal, Plan) else None,
        "findings": [placed_to_json(each) for each in proposed.findings],
        "answer": proposal.text if isinstance(proposal, Answer) else None,
        "reason": proposal.reason if isinstance(proposal, Infeasible) else None,
        "missing": list(proposal.missing) if isinstance(proposal, Infeasible) else [],
        "selection": selection_to_json(proposed.proposal.selection),
    }


def _compare(invocation: Invocation, before: str, after: str) -> None:
    if before == after == "-":
        raise Misused("Only one of the two plans can be read from standard input.")
    difference = plan_difference(read_plan_file(before).plan, read_plan_file(after).plan)
    if invocation.json:
        write_json(difference.to_json())
    else:
        show(safe_text(str(difference)))
