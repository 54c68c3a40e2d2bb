"""`portico plan`: propose a plan without running it, check one, compare two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from portico_cli.failures import DONE, FAILED, INFEASIBLE, Misused
from portico_cli.goal import read_goal
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.options import chat_option, overrides_of, planner_option
from portico_cli.origins import origin_of, run_words
from portico_cli.output import safe_text, show, write_as_it_is, write_json
from portico_cli.sources import Chosen, choose_sources, docs_option, run, source_option

if TYPE_CHECKING:
    from portico.functions import FunctionManual
    from portico.plans.plan import Plan
    from portico.plans.task import Answer, Infeasible
    from portico.pursuits.offering import Offer
    from portico_cli.plan_check import Placed
    from portico_cli.plan_files import Format

__all__ = ["command"]


@click.command(name="plan")
@click.argument("goal", required=False)
@click.option("--check", "checked", metavar="FILE", help="Check the plan in FILE, `-` for standard input.")
@click.option("--fix", is_flag=True, help="With --check: write what can be mended for certain into the file.")
@click.option("--diff", "compared", metavar="FILE FILE", nargs=2, help="Say what changed from one plan to another.")
@planner_option
@chat_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "xml", "mermaid"]),
    help="How the plan is written; text where nothing is said.",
)
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the plan to this file; as JSON, or as its ending .xml, .mmd or .txt says.",
)
@click.option(
    "--verbose",
    "-v",
    is_flag=True,
    help="Say on standard error which functions the planner's model was told of, with scores and reasons, where a "
    "function selector chose.",
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
    verbose: bool,
    docs: tuple[Path, ...],
    names: tuple[str, ...],
) -> None:
    """Propose a plan for GOAL and print it; nothing runs.

    GOAL is what is wanted, in words; `-` reads it from standard input.
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
        from portico_cli.plan_checking import check_file

        click.get_current_context().exit(check_file(invocation, chosen, checked, output, fix=fix))
    goal = read_goal(cast("str", goal))
    proposed = run(lambda: _propose(goal, chosen, origin_of(docs, names, chat)))
    if verbose:
        _tell_offered(proposed.offer)
    click.get_current_context().exit(_tell(invocation, proposed, _form(form, output), output))


@dataclass(frozen=True, slots=True)
class _Proposed:
    goal: str
    planner: str
    proposal: Plan | Answer | Infeasible
    findings: list[Placed]
    catalogue: dict[str, FunctionManual]
    origin: Mapping[str, Any]
    offer: Offer


async def _propose(goal: str, chosen: Chosen, origin: Mapping[str, Any]) -> _Proposed:
    from portico.plans.plan import Plan
    from portico.plans.task import Budget, Task
    from portico.ports.planner import Planner
    from portico.pursuits.offering import Offers
    from portico_cli.plan_check import Placed, check
    from portico_cli.step_progress import StepProgress

    async with chosen.application.kernel(chosen.sources) as kernel:
        planner = kernel.service(Planner)
        with StepProgress() as progress:
            offer = await Offers(kernel, planner, goal, progress).now()
            task = Task(goal, offer.functions, budget=kernel.budget or Budget())
            proposal = offer.none_fits() or offer.told(await planner.propose(task, emit=progress))
        findings = check(kernel, proposal, offer.manuals) if isinstance(proposal, Plan) else []
        placed = [Placed(each) for each in offer.explained(findings, kernel.manuals)]
        return _Proposed(goal, planner.name, proposal, placed, dict(kernel.manuals), origin, offer)


def _tell_offered(offer: Offer) -> None:
    import sys

    from portico_cli.output import console_for
    from portico_cli.selections import selection_lines

    console = console_for(sys.stderr)
    if offer.selection is None:
        count = len(offer.functions)
        console.print(safe_text(f"The planner was told of all functions, {count:,}.", "dim"))
        return
    for line in selection_lines(offer.selection):
        console.print(line)


def _form(form: str | None, output: Path | None) -> Format:
    if form is not None:
        return cast("Format", form)
    if output is None:
        return "text"
    endings: dict[str, Format] = {".xml": "xml", ".mmd": "mermaid", ".mermaid": "mermaid", ".txt": "text"}
    return endings.get(output.suffix.lower(), "json")


def _tell(invocation: Invocation, proposed: _Proposed, form: Format, output: Path | None) -> int:
    from portico.plans.plan import Plan
    from portico.plans.task import Answer

    proposal = proposed.proposal
    if isinstance(proposal, Plan):
        return _tell_plan(invocation, proposed, proposal, form, output)
    answered = isinstance(proposal, Answer)
    if invocation.json:
        write_json(_as_json(proposed))
    elif isinstance(proposal, Answer):
        show(safe_text(f"The planner {proposed.planner} needs no plan. It answers:", "dim"), safe_text(proposal.text))
    else:
        from portico_cli.answers import infeasibility

        show(*infeasibility(proposal))
    if answered and output is not None:
        raise Misused(f"There is no plan to write to {output}.")
    return DONE if answered else INFEASIBLE


def _tell_plan(invocation: Invocation, proposed: _Proposed, plan: Plan, form: Format, output: Path | None) -> int:
    from portico_cli.plan_check import finding_lines
    from portico_cli.plan_files import write_text, written_plan

    # Before anything is printed: XML cannot hold every plan.
    text = written_plan(plan, form, proposed.catalogue)
    if output is not None:
        write_text(output, text)
    if invocation.json:
        write_json({**_as_json(proposed), "text": None if form == "json" else text})
    elif output is not None:
        told = f" `{run_words(output, proposed.origin)}` runs it." if form in ("json", "xml") else ""
        show(safe_text(f"Wrote {output}.{told}"))
    elif form == "json":
        from portico.plans.json_form import plan_to_json

        write_json(plan_to_json(plan))
    else:
        write_as_it_is(text)
    wrong = any(each.finding.severity == "error" for each in proposed.findings)
    if proposed.findings and not invocation.json:
        import sys

        from portico_cli.output import console_for

        console = console_for(sys.stderr)
        for line in finding_lines("", proposed.findings):
            console.print(line)
        if wrong:
            console.print(safe_text("This plan cannot run. A pursuit would send the findings back to its planner."))
    return FAILED if wrong else DONE


def _as_json(proposed: _Proposed) -> dict[str, Any]:
    from portico.plans.json_form import plan_to_json
    from portico.plans.plan import Plan
    from portico.plans.task import Answer, Infeasible
    from portico_cli.plan_check import placed_to_json
    from portico_cli.selections import selection_to_json

    proposal = proposed.proposal
    return {
        "outcome": type(proposal).__name__.lower(),
        "goal": proposed.goal,
        "planner": proposed.planner,
        "plan": plan_to_json(proposal) if isinstance(proposal, Plan) else None,
        "findings": [placed_to_json(each) for each in proposed.findings],
        "answer": proposal.text if isinstance(proposal, Answer) else None,
        "reason": proposal.reason if isinstance(proposal, Infeasible) else None,
        "missing": list(proposal.missing) if isinstance(proposal, Infeasible) else [],
        "selection": selection_to_json(proposed.offer.selection),
    }


def _compare(invocation: Invocation, before: str, after: str) -> None:
    from portico_cli.plan_files import read_plan_file

    if before == after == "-":
        raise Misused("Only one of the two plans can be read from standard input.")
    difference = read_plan_file(before).plan.diff(read_plan_file(after).plan)
    if invocation.json:
        write_json(difference.to_json())
    else:
        show(safe_text(str(difference)))
